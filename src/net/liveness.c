/* SPDX-License-Identifier: BSD-3-Clause */
/* Which hosts are there: heartbeats, and what their silence means. */
#include "net/state.h"

#include <string.h>

#define HEARTBEATS      8       /* within the limit, or the time after which a host is silent if that is shorter */
#define AWAY_HEARTBEATS 2       /* after longer without progress this host was held up, not the others silent */
#define RETRY_NS        1000000 /* a heartbeat that found no buffer */
#define WATCH_ALL_HOSTS 32      /* with more each end watches some; see watches() */
#define UNHEARD_LIMITS  5       /* so many limits of a start a machine's signs count for a host that never spoke */

static uint64_t heartbeat_ns(const struct quoit_net *net)
{
    uint64_t limit_ns = net->config.lost_limit_ns;
    return (limit_ns < QUOIT_NET_NOTICE_NS ? limit_ns : QUOIT_NET_NOTICE_NS) / HEARTBEATS;
}

enum quoit_status quoit_net_send_kind(struct quoit_net *net, uint32_t host_index, enum message_kind kind,
                                      const void *payload, uint32_t bytes)
{
    struct host *host = &net->hosts[host_index];
    struct message_header *header = net->driver->send_buffer(net->end);
    if (!header)
        return QUOIT_FULL;
    *header = (struct message_header){.sequence = host->sent_sequence + 1,
                                      .host = (uint16_t)own_number(net),
                                      .kind = (uint8_t)kind,
                                      .version = QUOIT_NET_DRIVER_VERSION};
    header->tag = tag_of(net, header, net->opened_ns);
    if (bytes)
        memcpy(header + 1, payload, bytes);
    enum quoit_status status = net->driver->send(net->end, host_index, header, (uint32_t)sizeof *header + bytes);
    if (status == QUOIT_OK) {
        host->sent_sequence++;
        host->is_met = true;
        host->beat_ns = net->now_ns + heartbeat_ns(net);
    } else if (status != QUOIT_FULL) {
        quoit_net_break(net, host_index);
        status = QUOIT_GONE;
    }
    return status;
}

void quoit_net_note_why(struct quoit_net *net, uint32_t host_index)
{
    net->why[0] = '\0';
    if (net->driver->explain)
        net->driver->explain(net->end, host_index, net->why);
}

void quoit_net_lose(struct quoit_net *net, uint32_t host_index, enum quoit_status status)
{
    struct host *host = &net->hosts[host_index];
    bool was_connected = host->state == HOST_CONNECTED;
    host->is_broken = false;
    if (host_index >= net->config.host_count) { /* another PE endpoint may come in its place */
        if (!was_connected)
            return;
        quoit_net_drop_held(host);
        *host = (struct host){.opened_ns = host->opened_ns};
        net->driver->abandon(net->end, host_index);
        net->config.on_lost(net->config.arg, host_index, status);
        return;
    }
    if (host->state == HOST_LOST)
        return;
    if (was_connected) /* one that has left may break its connection */
        host->state = net->is_leaving && status == QUOIT_GONE ? HOST_LEFT : HOST_LOST;
    net->unheard_count -= was_connected && !host->is_heard && host->is_watched;
    quoit_net_note_why(net, host_index);
    net->driver->abandon(net->end, host_index);
    if (host->state != HOST_LOST || !was_connected)
        return;
    net->losses[net->loss_count++] = (struct loss){.host = host_index, .status = (uint32_t)status};
    net->next_watch_ns = net->now_ns;
    net->config.on_lost(net->config.arg, host_index, status);
}

/* Callbacks may send, and so find another host broken: the next progress loses that one. */
static void lose_broken(struct quoit_net *net)
{
    net->has_broken = false;
    for (uint32_t i = 0; i < end_count(net); i++)
        if (net->hosts[i].is_broken)
            quoit_net_lose(net, i, QUOIT_GONE);
}

/* Others may have spoken while nobody listened: of a time without progress only a heartbeat's counts as silence. That
 * does, and so does the silence before, or an end that is held up again and again would never find a dead host. */
static void forgive(struct quoit_net *net, uint64_t away_ns)
{
    uint64_t excused_ns = away_ns - heartbeat_ns(net);
    for (uint32_t i = 0; i < net->config.host_count; i++) {
        uint64_t heard_ns = net->hosts[i].heard_ns + excused_ns;
        net->hosts[i].heard_ns = heard_ns < net->now_ns ? heard_ns : net->now_ns;
    }
}

/* Of many hosts an end watches those at distances 1, 2, 4 and so on, both ways; they watch it. So each host has more
 * than log2 of their number that notice its death, and a loss that each who learns of it reports to those it watches
 * reaches all in log2 steps, as long as one way is left. */
bool quoit_net_watches(const struct quoit_net *net, uint32_t host_index)
{
    const uint32_t count = net->config.host_count;
    uint32_t ahead = (host_index + count - net->config.host) % count, behind = count - ahead;
    return !net->config.is_pe_endpoint && ahead != 0 &&
           (count <= WATCH_ALL_HOSTS || (ahead & (ahead - 1)) == 0 || (behind & (behind - 1)) == 0);
}

/* Whether the end waits for signs of the host. */
static bool is_expected(const struct host *host)
{
    return !host->is_self && (host->is_watched || host->is_awaited || host->outstanding_count > 0);
}

void quoit_net_expect(struct quoit_net *net, struct host *host)
{
    if (!is_expected(host))
        host->heard_ns = net->now_ns;
}

/* Says what is due. FULL: not all of it. */
static enum quoit_status speak(struct quoit_net *net, uint32_t host_index)
{
    struct host *host = &net->hosts[host_index];
    enum quoit_status status = QUOIT_OK;
    while (host->is_watched && host->told_count < net->loss_count && status == QUOIT_OK) {
        status =
            quoit_net_send_kind(net, host_index, MESSAGE_LOST, &net->losses[host->told_count], sizeof net->losses[0]);
        host->told_count += status == QUOIT_OK;
    }
    bool is_due = is_expected(host) && net->now_ns >= host->beat_ns;
    if (status == QUOIT_OK && (host->is_asked || is_due)) { /* ASK is no answer, or two would ask for ever */
        bool asks = !host->is_asked && !host->is_watched;
        status = quoit_net_send_kind(net, host_index, asks ? MESSAGE_ASK : MESSAGE_HEARTBEAT, NULL, 0);
        host->is_asked &= status != QUOIT_OK;
    }
    return status;
}

/* When the host, or its machine, gave the last sign. */
static uint64_t sign_ns(const struct host *host)
{
    return host->answered_ns > host->heard_ns ? host->answered_ns : host->heard_ns;
}

void quoit_net_note_silence(struct quoit_net *net, uint32_t host_index, enum quoit_net_silence silence)
{
    struct host *host = &net->hosts[host_index];
    if (silence == (enum quoit_net_silence)host->silence)
        return;
    if (host->silence == QUOIT_NET_PRESENT)
        host->silent_ns = host->heard_ns;
    host->silence = (uint8_t)silence;
    uint64_t until_ns = silence == QUOIT_NET_PRESENT ? host->heard_ns : net->now_ns;
    if (net->config.on_silence)
        net->config.on_silence(net->config.arg, host_index, silence, until_ns - host->silent_ns,
                               net->now_ns - sign_ns(host));
}

static void note_sign(struct quoit_net *net, struct host *host, uint64_t age_ns)
{
    if (age_ns < net->now_ns && net->now_ns - age_ns > host->answered_ns)
        host->answered_ns = net->now_ns - age_ns;
}

/* A machine acknowledges for the process that has the connection. Of a host that has never spoken that may be one of
 * another job, all of whose messages are dropped. */
static void look_for_signs(struct quoit_net *net, uint32_t host_index)
{
    struct host *host = &net->hosts[host_index];
    uint64_t silent_ns = net->now_ns - host->heard_ns;
    if (net->driver->sign_age_ns && (host->is_heard || silent_ns < UNHEARD_LIMITS * net->config.start_limit_ns))
        note_sign(net, host, net->driver->sign_age_ns(net->end, host_index));
    if (net->config.sign_age_ns)
        note_sign(net, host, net->config.sign_age_ns(net->config.arg, host_index));
}

/* Silence alone is no death: the time counts in which neither the host nor its machine gives a sign. */
static void look_for_silence(struct quoit_net *net, uint32_t host_index)
{
    struct host *host = &net->hosts[host_index];
    const struct quoit_net_config *config = &net->config;
    uint64_t limit_ns = host->is_heard ? config->lost_limit_ns : config->start_limit_ns;
    uint64_t notice_ns = host->is_heard ? quoit_net_notice_ns(limit_ns) : limit_ns / 2;
    uint64_t silent_ns = is_expected(host) ? net->now_ns - host->heard_ns : 0;
    if (silent_ns > notice_ns / 2)
        look_for_signs(net, host_index);
    uint64_t dark_ns = net->now_ns - sign_ns(host);
    if (silent_ns <= notice_ns)
        quoit_net_note_silence(net, host_index, QUOIT_NET_PRESENT);
    else if (dark_ns > limit_ns)
        quoit_net_lose(net, host_index, QUOIT_TIMEOUT);
    else
        quoit_net_note_silence(net, host_index, dark_ns > notice_ns ? QUOIT_NET_DARK : QUOIT_NET_ANSWERED);
}

static void watch(struct quoit_net *net)
{
    net->next_watch_ns = net->now_ns + heartbeat_ns(net) / 2;
    for (uint32_t i = 0; i < net->config.host_count; i++)
        if (net->hosts[i].state == HOST_CONNECTED)
            look_for_silence(net, i);
    for (uint32_t i = 0; i < end_count(net); i++) {
        const struct host *host = &net->hosts[i];
        bool is_due = host->state == HOST_CONNECTED && speak(net, i) == QUOIT_FULL;
        if (is_due && host->silence == QUOIT_NET_PRESENT) /* else there is no room before it is heard again */
            net->next_watch_ns = net->now_ns + RETRY_NS;
    }
}

void quoit_net_look_after(struct quoit_net *net, uint64_t before_ns)
{
    if (net->now_ns - before_ns > AWAY_HEARTBEATS * heartbeat_ns(net))
        forgive(net, net->now_ns - before_ns);
    if (net->now_ns >= net->next_watch_ns && !net->config.is_pe_endpoint)
        watch(net);
    if (net->has_broken)
        lose_broken(net);
}
