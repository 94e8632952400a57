/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/agent_state.h"
#include "base/log.h"
#include "base/step.h"
#include "boot/ended.h"
#include "boot/proxy_process.h"
#include "env/process.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>

#define PATIENCE 2 /* so many limits it has for the answer */

/* To one that is not the last (quoit_proxy_process_send_frame). */
static void send_frame(const struct quoit_agent *agent, uint32_t host, enum quoit_control_kind kind,
                       const union quoit_control_body *body)
{
    quoit_proxy_process_send_frame(agent->proxy_fd, host, QUOIT_PROXY_SURELY, kind, body);
}

void quoit_agent_conclude(struct quoit_agent *agent, enum quoit_liveness_verdict verdict)
{
    if (verdict == QUOIT_LIVENESS_LEFT)
        quoit_agent_finish(agent, 1, true);
}

/* The PEs of all hosts have passed shmem_finalize: the lowest of this one, which waits for that, may return. */
static void let_leave(struct quoit_agent *agent)
{
    agent->has_left = true;
    quoit_life_bind(&agent->life, true);
    atomic_fetch_add(&quoit_agent_header(agent)->finalized_count, 1);
    quoit_step("agent", agent->host_index, "leave");
}

bool quoit_agent_take_contact(struct quoit_agent *agent, const struct quoit_boot_message *message)
{
    uint32_t host = message->body.contact.host;
    if (agent->proxy_fd < 0 || host >= agent->hosts->count || host != agent->board.contact_count)
        return false;
    if (quoit_board_add(&agent->board, host, message->body.contact.bytes))
        quoit_proxy_process_send_kind(agent->proxy_fd, QUOIT_PROXY_CONTACTS);
    return true;
}

void quoit_agent_start_proxy(struct quoit_agent *agent)
{
    if (quoit_board_open(&agent->board, agent->hosts->count) != QUOIT_OK) {
        quoit_say("no memory for the addresses of the hosts: %s [Q0302]", strerror(errno));
        quoit_agent_finish(agent, 1, true);
    }
    if (quoit_proxy_process_start(&agent->host, agent->board.fd, agent->hosts->tag, &agent->proxy_fd,
                                  &agent->proxy_pid) != QUOIT_OK)
        quoit_agent_finish(agent, 1, true);
}

/* Of the head. Its proxy serves until all have received that they may leave: its own PEs, whose launcher ends what they
 * leave behind, come last. */
static void take_finalized(struct quoit_agent *agent, uint32_t host, const union quoit_control_body *body)
{
    bool is_fewest = quoit_peers_left(&agent->peers, &body->left) && agent->proxy_fd >= 0;
    if (is_fewest)
        send_frame(agent, QUOIT_CONTROL_TO_ALL, QUOIT_CONTROL_LEFT, body);
    if (is_fewest && host != 0)
        quoit_agent_conclude(agent,
                             quoit_liveness_take(&agent->liveness, agent->proxy_fd, host, QUOIT_CONTROL_LEFT, body));
    if (!quoit_peers_finalized(&agent->peers, host))
        return;
    if (agent->proxy_fd < 0) {
        let_leave(agent);
        return;
    }
    send_frame(agent, QUOIT_CONTROL_TO_ALL, QUOIT_CONTROL_LEAVE, NULL);
    quoit_proxy_process_send_kind(agent->proxy_fd, QUOIT_PROXY_FLUSH);
}

/* Those of this host have. */
void quoit_agent_note_finalized(struct quoit_agent *agent)
{
    quoit_step("agent", agent->host_index, "finalized");
    const union quoit_control_body body = {.left = quoit_liveness_left(&agent->liveness)};
    agent->is_finalized_sent = true;
    if (quoit_agent_is_head(agent))
        take_finalized(agent, 0, &body);
    else
        send_frame(agent, 0, QUOIT_CONTROL_HOST_FINALIZED, &body);
}

static void let_go(struct quoit_agent *agent)
{
    const struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_GO};
    quoit_step("agent", agent->host_index, "go");
    agent->is_going = true;
    quoit_liveness_begin(&agent->liveness);
    agent->ready_count = 0;
    agent->is_ready_sent = false;
    agent->is_finalized_sent = false;
    agent->has_left = false;
    for (uint32_t pe = 0; pe < agent->count; pe++) {
        agent->members[pe].is_ready = false;
        quoit_agent_send(agent->members[pe].control_fd, &message, -1);
    }
}

/* Of the head. Where PEs wait again, a host that has ended since would not be noticed if nothing were sent to it. */
static void take_ready(struct quoit_agent *agent, uint32_t host)
{
    bool is_first = agent->peers.ready_count == 0;
    if (quoit_peers_ready(&agent->peers, host)) {
        if (agent->proxy_fd >= 0)
            send_frame(agent, QUOIT_CONTROL_TO_ALL, QUOIT_CONTROL_GO, NULL);
        let_go(agent);
    } else if (is_first && agent->is_going) {
        send_frame(agent, QUOIT_CONTROL_TO_ALL, QUOIT_CONTROL_WAITED, NULL);
    }
}

/* Those of this host are, once: the head sends GO when those of all are. */
void quoit_agent_note_ready(struct quoit_agent *agent)
{
    if (agent->is_ready_sent)
        return;
    agent->is_ready_sent = true;
    if (quoit_agent_is_head(agent))
        take_ready(agent, 0);
    else
        send_frame(agent, 0, QUOIT_CONTROL_HOST_READY, NULL);
}

static void lose(struct quoit_agent *agent, uint32_t host, bool is_launcher)
{
    if (host < agent->hosts->count)
        quoit_lost_note(&agent->lost, agent->host_index, host, is_launcher, quoit_clock_now_ns());
}

/* Whether a host whose proxy has gone has done its part. Until the PEs of all have finalized, the head alone knows of
 * whom they have. */
static bool has_finalized(const struct quoit_agent *agent, uint32_t host)
{
    if (agent->has_left)
        return true;
    return quoit_agent_is_head(agent) ? quoit_peers_has_finalized(&agent->peers, host)
                                      : agent->is_finalized_sent && host != 0;
}

/* The proxies of all hosts report it. Once its PEs have finalized, nobody needs a host but who calls shmem_init again.
 */
static void lose_host(struct quoit_agent *agent, uint32_t host)
{
    if (!has_finalized(agent, host)) {
        lose(agent, host, false);
        return;
    }
    agent->has_absent |= quoit_agent_is_head(agent) || host == 0; /* else the head reports it */
    agent->absent_host = host;
}

__attribute__((noreturn)) static void finish_lost(struct quoit_agent *agent)
{
    if (quoit_ended_claim(quoit_agent_header(agent), 1))
        quoit_lost_report(&agent->lost, agent->hosts, &agent->host.layout.job);
    quoit_agent_finish(agent, quoit_ended_decision(quoit_agent_header(agent)), true);
}

/* It would pass on what this host prints, so nobody may see that; its PEs would be left without it for ever. */
__attribute__((noreturn)) void quoit_agent_lose_launcher(struct quoit_agent *agent)
{
    bool is_joined = agent->proxy_fd >= 0 && agent->board.contact_count == agent->hosts->count; /* or is about to be */
    bool is_reported = agent->has_layout && !quoit_ended_claim(quoit_agent_header(agent), 1);
    if (!is_reported && is_joined) {
        quoit_proxy_process_send_frame(agent->proxy_fd, QUOIT_CONTROL_TO_ALL, QUOIT_PROXY_LAST,
                                       QUOIT_CONTROL_LAUNCHER_LOST, NULL);
        agent->is_end_sent = true;
    } else if (!is_reported) {
        quoit_ended_line("the launcher's process on host %s ended before its PEs; the job was ended [Q0320]",
                         quoit_agent_host_name(agent, agent->host_index));
    }
    quoit_agent_finish(agent, agent->has_layout ? quoit_ended_decision(quoit_agent_header(agent)) : 1,
                       true); /* others report first */
}

__attribute__((noreturn)) static void lose_proxy(struct quoit_agent *agent, const char *how)
{
    agent->is_end_sent = true; /* nobody receives it */
    if (quoit_ended_claim(quoit_agent_header(agent), 1))
        quoit_ended_line("the proxy of host %s %s; the job was ended [Q0315]",
                         quoit_agent_host_name(agent, agent->host_index), how);
    quoit_agent_finish(agent, quoit_ended_decision(quoit_agent_header(agent)), true);
}

/* Another host has ended the job, and has reported why. */
__attribute__((noreturn)) static void finish_as_ordered(struct quoit_agent *agent, int status)
{
    agent->is_end_sent = true;
    (void)quoit_ended_claim(quoit_agent_header(agent), status);
    atomic_store(&quoit_agent_header(agent)->is_reported, 1);
    quoit_agent_finish(agent, quoit_ended_decision(quoit_agent_header(agent)), false);
}

static void pass_contact(struct quoit_agent *agent, const struct quoit_proxy_message *contact)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_CONTACT};
    memcpy(message.body.contact.bytes, contact->body.contact.bytes, QUOIT_NETWORK_CONTACT_BYTES);
    agent->contacts_by_ns = 2 * quoit_agent_now_ns(agent) - agent->begin_ns + agent->host.network.link_timeout_ns;
    quoit_agent_send(agent->members[0].control_fd, &message, -1);
}

/* All run, and nothing is awaited of the head. */
bool quoit_agent_is_in_job(const struct quoit_agent *agent)
{
    return agent->is_going && !agent->is_ready_sent && !agent->is_finalized_sent;
}

static void take_silence(struct quoit_agent *agent, uint32_t by, const struct quoit_control_silence *found)
{
    const union quoit_control_body body = {.silence = *found};
    bool is_for_another = !quoit_liveness_take_silence(&agent->liveness, by, found);
    if (is_for_another && by == agent->host_index && quoit_agent_is_in_job(agent))
        quoit_proxy_process_send_frame(agent->proxy_fd, quoit_silence_reporter(found->host), QUOIT_PROXY_OFFERED,
                                       QUOIT_CONTROL_SILENCE, &body);
}

/* Of the supervisor of a host. */
static void take_frame(struct quoit_agent *agent, uint32_t host, enum quoit_control_kind kind,
                       const union quoit_control_body *body)
{
    switch (kind) {
    case QUOIT_CONTROL_HOST_READY:
        if (quoit_agent_is_head(agent))
            take_ready(agent, host);
        break;
    case QUOIT_CONTROL_GO:
        let_go(agent);
        break;
    case QUOIT_CONTROL_HOST_FINALIZED:
        if (quoit_agent_is_head(agent))
            take_finalized(agent, host, body);
        break;
    case QUOIT_CONTROL_LEAVE:
        let_leave(agent);
        break;
    case QUOIT_CONTROL_END:
        finish_as_ordered(agent, body->status);
    case QUOIT_CONTROL_LAUNCHER_LOST:
        lose(agent, host, true);
        break;
    case QUOIT_CONTROL_SILENCE:
        take_silence(agent, host, &body->silence);
        break;
    case QUOIT_CONTROL_LEFT:
    case QUOIT_CONTROL_ELSEWHERE: /* while this host has finalized, too */
        if (agent->is_going)
            quoit_agent_conclude(agent, quoit_liveness_take(&agent->liveness, agent->proxy_fd, host, kind, body));
        break;
    case QUOIT_CONTROL_LEAVING:
    case QUOIT_CONTROL_STILL:
    case QUOIT_CONTROL_STILL_SEEN:
        if (quoit_agent_is_in_job(agent))
            quoit_agent_conclude(agent, quoit_liveness_take(&agent->liveness, agent->proxy_fd, host, kind, body));
        break;
    default:
        break;
    }
}

void quoit_agent_receive_of_proxy(struct quoit_agent *agent)
{
    struct quoit_proxy_message message;
    ssize_t n = recv(agent->proxy_fd, &message, sizeof message, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (n != (ssize_t)sizeof message || message.magic != QUOIT_BOOT_MAGIC)
        lose_proxy(agent, "ended");
    switch (message.kind) {
    case QUOIT_PROXY_CONTACT:
        pass_contact(agent, &message);
        break;
    case QUOIT_PROXY_FLUSH:
        let_leave(agent);
        break;
    case QUOIT_PROXY_PING:
        agent->is_pinged = false;
        agent->ping_ns = quoit_agent_now_ns(agent);
        break;
    case QUOIT_PROXY_LOST:
        lose_host(agent, message.body.lost.host);
        break;
    case QUOIT_PROXY_SILENCE:
        take_silence(agent, agent->host_index, &message.body.silence);
        break;
    case QUOIT_PROXY_FRAME:
        take_frame(agent, message.body.frame.host, (enum quoit_control_kind)message.body.frame.kind,
                   &message.body.frame.body);
        break;
    default:
        break;
    }
}

/* All PEs have passed the launcher's first fence, and wait for each host's contact in the second, which no launcher
 * limits. Other hosts may take longer than this one by as much as it took, and by the limit. */
static void look_for_contacts(struct quoit_agent *agent, uint64_t now_ns)
{
    if (agent->contacts_by_ns == 0 || agent->board.contact_count >= agent->hosts->count ||
        now_ns < agent->contacts_by_ns)
        return;
    if (quoit_ended_claim(quoit_agent_header(agent), 1))
        quoit_ended_line("host %s has waited %.1f s for another host to join the network: it hangs, or needs a longer "
                         "QUOIT_LINK_TIMEOUT; the job was ended [Q0221]",
                         quoit_agent_host_name(agent, agent->host_index), (double)(now_ns - agent->begin_ns) / 1e9);
    quoit_agent_finish(agent, quoit_ended_decision(quoit_agent_header(agent)), true);
}

/* A proxy that hangs serves nobody, and to the other hosts it looks like one that is stopped, for which they wait. Its
 * process is there as long as it keeps its socket. */
static void look_for_hang(struct quoit_agent *agent, uint64_t now_ns)
{
    uint64_t limit_ns = agent->host.network.network_limit_ns;
    struct quoit_process proxy;
    if (!quoit_agent_is_in_job(agent)) {
        agent->ping_ns = now_ns;
    } else if (!agent->is_pinged && now_ns - agent->ping_ns >= limit_ns / QUOIT_AGENT_PINGS) {
        quoit_proxy_process_send_kind(agent->proxy_fd, QUOIT_PROXY_PING);
        agent->is_pinged = true;
        agent->ping_ns = now_ns;
    } else if (agent->is_pinged && now_ns - agent->ping_ns > PATIENCE * limit_ns) {
        agent->ping_ns = now_ns;
        if (quoit_process_look(agent->proxy_pid, &proxy) && (proxy.state == 'T' || proxy.state == 't'))
            return; /* until it is continued */
        kill(agent->proxy_pid, SIGKILL);
        lose_proxy(agent, "hangs");
    }
}

/* The lowest PE sends FINALIZED, unless its program has closed the socket. Then the hosts must not wait until it ends.
 */
static void look_for_finalized(struct quoit_agent *agent)
{
    if (agent->proxy_fd < 0 || !agent->is_going || agent->is_finalized_sent || agent->members[0].control_fd >= 0)
        return;
    for (uint32_t pe = 0; pe < agent->count; pe++) /* pairs with quoit_client_leave_word */
        if (atomic_load_explicit(&quoit_agent_record(agent, pe)->unsent_kind, memory_order_acquire) !=
            QUOIT_BOOT_FINALIZED)
            return;
    quoit_agent_note_finalized(agent);
}

void quoit_agent_step_hosts(struct quoit_agent *agent)
{
    if (agent->is_ready_sent && agent->has_absent)
        quoit_agent_finish_absent(agent, "the PEs of host", quoit_agent_host_name(agent, agent->absent_host));
    if (quoit_lost_is_due(&agent->lost, quoit_clock_now_ns()))
        finish_lost(agent);
    if (agent->proxy_fd >= 0) {
        look_for_contacts(agent, quoit_agent_now_ns(agent));
        look_for_hang(agent, quoit_agent_now_ns(agent));
    }
    look_for_finalized(agent);
}
