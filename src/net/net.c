/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/net.h"
#include "base/assert.h"
#include "base/log.h"
#include "env/clock.h"
#include "net/interfaces.h"
#include "net/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Between two looks at a network that cannot be waited for; while a host has not answered yet, a part of the time since
 * anything moved. */
#define POLL_LEAST_NS 1000000u
#define POLL_MOST_NS  20000000u
#define POLL_SHARE    8u

void quoit_net_drop_held(struct host *host)
{
    for (struct held *held = host->held, *next; held; held = next) {
        next = held->next;
        free(held);
    }
    host->held = NULL;
}

/* Events of the driver */

static void on_done(void *arg, uint32_t host_index, uint64_t cookie, enum quoit_status status, uint64_t bytes)
{
    struct quoit_net *net = arg;
    struct host *host = &net->hosts[host_index];
    quoit_assert(host->outstanding_count > 0);
    quoit_assert(host->outstanding_bytes >= bytes);
    host->outstanding_count--;
    host->outstanding_bytes -= bytes;
    net->outstanding_count--;
    host->has_gone |= status != QUOIT_OK;
    if (status == QUOIT_OK)
        host->heard_ns = net->now_ns; /* its end, or at least its network, has answered */
    net->config.on_done(net->config.arg, host_index, cookie, status);
}

static void on_broken(void *arg, uint32_t host)
{
    quoit_net_break(arg, host);
}

static void on_narrowed(void *arg, uint32_t host, uint32_t bytes, uint32_t lost_bytes)
{
    struct quoit_net *net = arg;
    if (net->config.on_narrowed)
        net->config.on_narrowed(net->config.arg, host, bytes, lost_bytes);
}

/* Others, and this end if it is connected to itself. */
static bool may_send(const struct quoit_net *net, uint32_t host)
{
    return host < end_count(net) && (host != net->config.host || net->hosts[host].is_self);
}

/* Whether the message is of a host of this job. A peer can send anything. */
static bool is_ours(struct quoit_net *net, const struct message_header *header, uint32_t bytes)
{
    if (bytes < sizeof *header || header->version != QUOIT_NET_DRIVER_VERSION || !may_send(net, header->host) ||
        header->tag != tag_of(net, header, net->hosts[header->host].opened_ns) || header->kind == 0 ||
        header->kind >= MESSAGE_KIND_COUNT ||
        (header->host >= net->config.host_count && header->kind != MESSAGE_PAYLOAD &&
         header->kind != MESSAGE_PE_ENDPOINT)) {
        if (net->dropped_count++ == 0)
            quoit_log(QUOIT_LOG_WARN, "net: dropped %u bytes that are no message of this job", bytes);
        return false;
    }
    const struct host *host = &net->hosts[header->host];
    return header->host < net->config.host_count ? host->state != HOST_LOST
                                                 : host->state == HOST_CONNECTED || header->kind == MESSAGE_PE_ENDPOINT;
}

/* Keeps the message until those before it have come. Returns why not; NULL: it is kept. */
static const char *hold(struct host *host, const struct message_header *header, uint32_t bytes)
{
    const uint32_t next = host->heard_sequence + 1;
    struct held **at = &host->held;
    if (header->sequence - next >= QUOIT_NET_HELD_MAX)
        return "it came twice, or messages are missing";
    while (*at && (*at)->sequence - next < header->sequence - next)
        at = &(*at)->next;
    if (*at && (*at)->sequence == header->sequence)
        return "it came twice";
    struct held *held = malloc(sizeof *held + bytes);
    if (!held)
        return "no memory to keep it until its turn";
    *held = (struct held){.next = *at, .sequence = header->sequence, .bytes = bytes};
    memcpy(held->message, header, bytes);
    *at = held;
    return NULL;
}

/* A PE endpoint has come, perhaps once more; the words of an earlier one may come behind those of a later one. The next
 * watch answers. */
static void take_pe_endpoint(struct quoit_net *net, const struct message_header *header, uint32_t bytes)
{
    struct host *pe_endpoint = &net->hosts[header->host];
    struct arrival arrival;
    if (header->host < net->config.host_count || header->sequence != 1 || bytes != sizeof *header + sizeof arrival)
        return;
    memcpy(&arrival, header + 1, sizeof arrival);
    if (arrival.address.bytes == 0 || arrival.address.bytes > QUOIT_NET_ADDRESS_BYTES_MAX ||
        arrival.opened_ns <= pe_endpoint->opened_ns)
        return;
    if (pe_endpoint->state == HOST_CONNECTED)
        quoit_net_lose(net, header->host, QUOIT_GONE);
    if (net->driver->connect(net->end, header->host, &arrival.address) != QUOIT_OK)
        return;
    *pe_endpoint = (struct host){.state = HOST_CONNECTED,
                                 .is_heard = true,
                                 .is_asked = true,
                                 .heard_sequence = 1,
                                 .opened_ns = arrival.opened_ns};
    net->next_watch_ns = net->now_ns;
}

/* What another end has lost is lost here. */
static void take_loss(struct quoit_net *net, const void *payload, uint32_t bytes)
{
    struct loss loss;
    if (bytes != sizeof loss)
        return;
    memcpy(&loss, payload, sizeof loss);
    if (loss.host < net->config.host_count && net->hosts[loss.host].state == HOST_CONNECTED &&
        !net->hosts[loss.host].is_self)
        quoit_net_lose(net, loss.host, loss.status == QUOIT_TIMEOUT ? QUOIT_TIMEOUT : QUOIT_GONE);
}

/* The next message of its host. */
static void take(struct quoit_net *net, const struct message_header *header, uint32_t bytes)
{
    struct host *host = &net->hosts[header->host];
    uint32_t payload_bytes = bytes - (uint32_t)sizeof *header;
    net->unheard_count -= !host->is_heard && host->is_watched && host->state == HOST_CONNECTED;
    host->is_heard = true;
    host->is_met = true;
    host->heard_sequence = header->sequence;
    host->heard_ns = net->now_ns;
    quoit_net_note_silence(net, header->host, QUOIT_NET_PRESENT);
    if (header->kind == MESSAGE_LEAVING) {
        host->state = HOST_LEFT;
        if (net->config.on_left)
            net->config.on_left(net->config.arg, header->host);
    } else if (header->kind == MESSAGE_PAYLOAD) {
        net->config.on_message(net->config.arg, header->host, header + 1, payload_bytes);
    } else if (header->kind == MESSAGE_ASK) {
        host->is_asked = true;
        net->next_watch_ns = net->now_ns;
    } else if (header->kind == MESSAGE_LOST) {
        take_loss(net, header + 1, payload_bytes);
    }
}

static void on_message(void *arg, const void *message, uint32_t bytes)
{
    struct quoit_net *net = arg;
    const struct message_header *header = message;
    if (!is_ours(net, header, bytes))
        return;
    struct host *host = &net->hosts[header->host];
    if (header->kind == MESSAGE_PE_ENDPOINT) {
        take_pe_endpoint(net, header, bytes);
        return;
    }
    if (header->sequence != host->heard_sequence + 1) {
        const char *problem = hold(host, header, bytes);
        if (!problem)
            return;
        quoit_log(QUOIT_LOG_ERROR, "net: message %u of host %u came after %u: %s", header->sequence, header->host,
                  host->heard_sequence, problem);
        quoit_net_break(net, header->host);
        return;
    }
    take(net, header, bytes);
    while (host->held && host->held->sequence == host->heard_sequence + 1) {
        struct held *held = host->held;
        host->held = held->next;
        take(net, (const struct message_header *)(const void *)held->message, held->bytes);
        free(held);
    }
}

uint32_t quoit_net_progress(struct quoit_net *net)
{
    quoit_assert(!net->is_inside);
    net->is_inside = true;
    uint64_t before_ns = net->now_ns;
    net->now_ns = quoit_clock_now_ns();
    uint32_t done_count = net->driver->progress(net->end);
    if (done_count > 0)
        net->moved_ns = net->now_ns;
    quoit_net_look_after(net, before_ns);
    net->is_inside = false;
    return done_count;
}

/* Opening */

/* Closes an end that refuses it. */
static enum quoit_status register_memory(struct quoit_net *net, char problem[QUOIT_NET_PROBLEM_BYTES])
{
    const struct quoit_net_choice *choice = &net->end->choice;
    uint64_t bytes = net->config.memory_bytes;
    struct quoit_net_region region = {.memory = net->config.memory};
    if (!region.memory)
        return QUOIT_OK;
    enum quoit_status status = net->driver->reg(net->end, region.memory, bytes, &region.key, &region.of_driver);
    if (status != QUOIT_OK) {
        snprintf(problem, QUOIT_NET_PROBLEM_BYTES, "%s %s on %s does not register %llu MiB of memory (ulimit -l)",
                 choice->driver, choice->provider, choice->device, (unsigned long long)(bytes >> 20));
        net->driver->close(net->end);
        return status;
    }
    region.key.memory_bytes = bytes;
    net->region = region;
    return QUOIT_OK;
}

/* Whether the end is on the loopback device, and the best network of the driver is not: other machines, which that one
 * may reach, would wait in vain. */
static bool is_cut_off(const struct quoit_net *net, const struct quoit_net_driver_config *own)
{
    struct quoit_net_choice best;
    return net->end->choice.is_loopback && net->driver->survey(own->provider, own->device, &best, 1) == 1 &&
           !best.is_loopback;
}

/* The best network of the driver that opens and registers the memory. None does: the status and problem of the best. */
static enum quoit_status open_best(struct quoit_net *net, struct quoit_net_driver_config *own,
                                   char problem[QUOIT_NET_PROBLEM_BYTES])
{
    enum quoit_status first = QUOIT_OK;
    for (own->skip_count = 0;; own->skip_count++) {
        char more[QUOIT_NET_PROBLEM_BYTES] = "";
        enum quoit_status status = net->driver->open(own, &net->end, more);
        if (status == QUOIT_OK && own->skip_count > 0 && is_cut_off(net, own)) {
            net->driver->close(net->end);
            return first;
        }
        if (status == QUOIT_OK)
            status = register_memory(net, more);
        if (status == QUOIT_OK)
            return QUOIT_OK;
        if (own->skip_count == 0) {
            first = status;
            memcpy(problem, more, sizeof more);
        }
        if (status == QUOIT_UNSUPPORTED || status == QUOIT_NO_MEMORY)
            return first;
        quoit_log(QUOIT_LOG_WARN, "net: %s", more);
    }
}

static enum quoit_status open_driver(struct quoit_net *net, char problem[QUOIT_NET_PROBLEM_BYTES])
{
    const struct quoit_net_config *config = &net->config;
    const char *names[QUOIT_NET_DRIVER_NAMES];
    uint32_t count = quoit_net_driver_names(config->driver, names);
    enum quoit_status status = QUOIT_UNSUPPORTED;
    struct quoit_net_driver_config own = {
        .provider = config->provider,
        .device = config->device,
        .host = own_number(net),
        .host_count = config->host_count,
        .pe_endpoint_count = config->pe_endpoint_count,
        .is_pe_endpoint = config->is_pe_endpoint,
        .segment_bytes = config->segment_bytes,
        .events = {.arg = net, .done = on_done, .message = on_message, .broken = on_broken, .narrowed = on_narrowed},
    };
    (void)quoit_ports_read(config->ports, &own.ports); /* it was checked */
    for (uint32_t i = 0; i < count; i++) {
        struct quoit_net_signals signals;
        char more[QUOIT_NET_PROBLEM_BYTES] = "";
        enum quoit_status now = QUOIT_UNSUPPORTED;
        net->driver = quoit_net_driver_open(names[i], more);
        quoit_net_keep_signals(&signals);
        if (net->driver)
            now = open_best(net, &own, more);
        quoit_net_restore_signals(&signals);
        if (now == QUOIT_OK && !net->driver->settle && !config->is_pe_endpoint)
            quoit_interfaces_places(config->device, net->end->choice.device, &net->end->places);
        if (now == QUOIT_OK)
            return QUOIT_OK;
        if (status == QUOIT_UNSUPPORTED) { /* a network that is there and fails says more than one that is not */
            status = now;
            memcpy(problem, more, sizeof more);
        }
    }
    return status;
}

enum quoit_status quoit_net_open(const struct quoit_net_config *config, struct quoit_net **net_out,
                                 char problem[QUOIT_NET_PROBLEM_BYTES])
{
    quoit_assert(config->host < config->host_count);
    quoit_assert(config->host_count <= QUOIT_NET_HOSTS_MAX);
    struct quoit_net *net = calloc(1, sizeof *net);
    struct host *hosts = calloc(config->host_count + config->pe_endpoint_count, sizeof *hosts);
    struct loss *losses = calloc(config->host_count, sizeof *losses);
    enum quoit_status status = QUOIT_NO_MEMORY;
    problem[0] = '\0';
    if (!net || !hosts || !losses)
        goto free_net;
    net->config = *config;
    net->hosts = hosts;
    net->losses = losses;
    if (net->config.lost_limit_ns == 0)
        net->config.lost_limit_ns = QUOIT_NET_LOST_LIMIT_NS;
    if (net->config.start_limit_ns < net->config.lost_limit_ns)
        net->config.start_limit_ns = net->config.lost_limit_ns;
    status = quoit_net_check(config->device, config->ports, problem) ? open_driver(net, problem) : QUOIT_INVALID;
    if (status != QUOIT_OK)
        goto free_net;
    net->limits = net->end->limits;
    net->limits.message_bytes -= (uint32_t)sizeof(struct message_header);
    net->now_ns = net->opened_ns = quoit_clock_now_ns();
    *net_out = net;
    return QUOIT_OK;

free_net:
    if (!problem[0])
        snprintf(problem, QUOIT_NET_PROBLEM_BYTES, "%s%s", quoit_status_text(status),
                 status == QUOIT_NO_MEMORY ? " for its records and buffers (ulimit -d, ulimit -v)" : "");
    free(losses);
    free(hosts);
    free(net);
    return status;
}

void quoit_net_close(struct quoit_net *net)
{
    if (!net)
        return;
    for (struct quoit_net_window *window = net->windows, *next; window; window = next) {
        next = window->next;
        net->driver->detach(net->end, window->of_driver);
        free(window);
    }
    if (net->region.memory)
        net->driver->unreg(net->end, net->region.of_driver);
    net->driver->close(net->end);
    for (uint32_t i = 0; i < end_count(net); i++)
        quoit_net_drop_held(&net->hosts[i]);
    free(net->losses);
    free(net->hosts);
    free(net);
}

const struct quoit_net_limits *quoit_net_limits(const struct quoit_net *net)
{
    return &net->limits;
}

const struct quoit_net_choice *quoit_net_choice(const struct quoit_net *net)
{
    return &net->end->choice;
}

const struct quoit_net_address *quoit_net_address(const struct quoit_net *net)
{
    return &net->end->address;
}

const struct quoit_net_places *quoit_net_places(const struct quoit_net *net)
{
    return &net->end->places;
}

void quoit_net_take_place(struct quoit_net *net, uint32_t place)
{
    quoit_assert(place < QUOIT_NET_PLACES_MAX);
    quoit_assert(net->end->places.list[place].is_open);
    if (net->driver->settle)
        net->driver->settle(net->end, place);
}

const char *quoit_net_why(const struct quoit_net *net)
{
    return net->why;
}

enum quoit_status quoit_net_connect(struct quoit_net *net, uint32_t host_index, const struct quoit_net_address *address)
{
    quoit_assert(host_index < net->config.host_count);
    quoit_assert(host_index != net->config.host || !net->config.is_pe_endpoint);
    struct host *host = &net->hosts[host_index];
    quoit_assert(host->state == HOST_UNKNOWN);
    if (address->bytes == 0 || address->bytes > QUOIT_NET_ADDRESS_BYTES_MAX)
        return QUOIT_INVALID;
    enum quoit_status status = net->driver->connect(net->end, host_index, address);
    if (status != QUOIT_OK) {
        quoit_net_note_why(net, host_index);
        return status;
    }
    net->now_ns = quoit_clock_now_ns();
    host->heard_ns = net->moved_ns = net->now_ns;
    host->state = HOST_CONNECTED;
    host->is_self = host_index == net->config.host;
    host->is_watched = quoit_net_watches(net, host_index);
    net->unheard_count += !host->is_heard && host->is_watched;
    return QUOIT_OK;
}

const struct quoit_net_region *quoit_net_region(const struct quoit_net *net)
{
    return &net->region;
}

const struct quoit_net_key *quoit_net_region_key(const struct quoit_net_region *region)
{
    return &region->key;
}

enum quoit_status quoit_net_attach(struct quoit_net *net, uint32_t host, const struct quoit_net_key *key,
                                   struct quoit_net_window **window_out)
{
    quoit_assert(host < net->config.host_count);
    if (key->bytes > QUOIT_NET_KEY_BYTES_MAX)
        return QUOIT_INVALID;
    struct quoit_net_window *window = calloc(1, sizeof *window);
    if (!window)
        return QUOIT_NO_MEMORY;
    enum quoit_status status = net->driver->attach(net->end, host, key, &window->of_driver);
    if (status != QUOIT_OK) {
        free(window);
        return status;
    }
    window->net = net;
    window->host = host;
    window->bytes = key->memory_bytes;
    window->next = net->windows;
    net->windows = window;
    *window_out = window;
    return QUOIT_OK;
}

/* Operations */

/* Whether the host has answered the PE endpoint that it knows it. */
static bool is_known(struct quoit_net *net, uint32_t host_index)
{
    struct host *host = &net->hosts[host_index];
    if (!host->is_greeted) {
        const struct arrival arrival = {.opened_ns = net->opened_ns, .address = net->end->address};
        host->is_greeted =
            quoit_net_send_kind(net, host_index, MESSAGE_PE_ENDPOINT, &arrival, sizeof arrival) == QUOIT_OK;
    }
    return host->is_heard;
}

static enum quoit_status begin(struct quoit_net *net, const struct quoit_net_window *window,
                               enum quoit_status (*operation)(struct quoit_net_end *,
                                                              const struct quoit_net_transfer *),
                               struct quoit_net_transfer *transfer, const struct quoit_net_region *region)
{
    struct host *host = &net->hosts[window->host];
    const struct quoit_net_limits *limits = &net->limits;
    quoit_assert(window->net == net);
    quoit_assert(host->state != HOST_UNKNOWN);
    if (transfer->offset > window->bytes || transfer->bytes > window->bytes - transfer->offset ||
        transfer->bytes > limits->transfer_bytes || transfer->offset % limits->alignment != 0 ||
        transfer->bytes % limits->alignment != 0)
        return QUOIT_OUT_OF_RANGE;
    if (region && ((char *)transfer->local < region->memory ||
                   (char *)transfer->local + transfer->bytes > region->memory + region->key.memory_bytes))
        return QUOIT_OUT_OF_RANGE;
    if (limits->needs_region && !region && transfer->bytes > 0)
        return QUOIT_INVALID;
    if (host->state != HOST_CONNECTED)
        return QUOIT_GONE;
    if (net->config.is_pe_endpoint && limits->knows_pe_endpoints && !is_known(net, window->host))
        return QUOIT_FULL;
    if (host->outstanding_count >= QUOIT_NET_TRANSFERS_MAX)
        return QUOIT_FULL;
    if (host->outstanding_count > 0 && host->outstanding_bytes + transfer->bytes > QUOIT_NET_WINDOW_BYTES)
        return QUOIT_FULL;
    transfer->host = window->host;
    transfer->window = window->of_driver;
    transfer->region = region ? region->of_driver : NULL;
    quoit_net_expect(net, host);
    enum quoit_status status = operation(net->end, transfer);
    if (status == QUOIT_OK) {
        host->is_met = true;
        host->outstanding_count++;
        host->outstanding_bytes += transfer->bytes;
        net->outstanding_count++;
    } else if (status != QUOIT_FULL) {
        quoit_net_break(net, window->host);
        status = QUOIT_GONE;
    }
    return status;
}

enum quoit_status quoit_net_put(struct quoit_net *net, const struct quoit_net_window *window, uint64_t offset,
                                const void *source, const struct quoit_net_region *region, uint64_t bytes,
                                uint64_t cookie)
{
    struct quoit_net_transfer transfer = {
        .offset = offset, .local = (void *)(uintptr_t)source, .bytes = bytes, .cookie = cookie};
    return begin(net, window, net->driver->put, &transfer, region);
}

enum quoit_status quoit_net_get(struct quoit_net *net, const struct quoit_net_window *window, uint64_t offset,
                                void *destination, const struct quoit_net_region *region, uint64_t bytes,
                                uint64_t cookie)
{
    struct quoit_net_transfer transfer = {.offset = offset, .local = destination, .bytes = bytes, .cookie = cookie};
    return begin(net, window, net->driver->get, &transfer, region);
}

enum quoit_status quoit_net_send(struct quoit_net *net, uint32_t host, const void *payload, uint32_t bytes)
{
    quoit_assert(host < end_count(net));
    quoit_assert(net->hosts[host].state != HOST_UNKNOWN || host >= net->config.host_count);
    quoit_assert(!net->config.is_pe_endpoint || net->limits.takes_pe_endpoints);
    if (bytes > net->limits.message_bytes)
        return QUOIT_OUT_OF_RANGE;
    if (net->hosts[host].state != HOST_CONNECTED || net->hosts[host].is_broken)
        return QUOIT_GONE;
    if (net->config.is_pe_endpoint && !is_known(net, host))
        return QUOIT_FULL;
    return quoit_net_send_kind(net, host, MESSAGE_PAYLOAD, payload, bytes);
}

void quoit_net_await(struct quoit_net *net, uint32_t host_index, bool is_awaited)
{
    struct host *host = &net->hosts[host_index];
    quoit_net_expect(net, host);
    host->is_awaited = is_awaited;
}

uint64_t quoit_net_outstanding(const struct quoit_net *net, uint32_t host)
{
    return host == QUOIT_NET_ALL_HOSTS ? net->outstanding_count : net->hosts[host].outstanding_count;
}

bool quoit_net_is_lost(const struct quoit_net *net, uint32_t host)
{
    return net->hosts[host].state == HOST_LOST;
}

bool quoit_net_is_connected(const struct quoit_net *net, uint32_t host)
{
    return net->hosts[host].state == HOST_CONNECTED;
}

/* Whether something to the host, or to any, was done with GONE; forgets it. */
static bool take_gone(struct quoit_net *net, uint32_t host)
{
    bool has_gone = false;
    for (uint32_t i = 0; i < net->config.host_count; i++) {
        if (host != QUOIT_NET_ALL_HOSTS && host != i)
            continue;
        has_gone |= net->hosts[i].has_gone;
        net->hosts[i].has_gone = false;
    }
    return has_gone;
}

enum quoit_status quoit_net_flush(struct quoit_net *net, uint32_t host, uint64_t timeout_ns)
{
    uint64_t deadline_ns = 0;
    while (quoit_net_outstanding(net, host) != 0) {
        if (quoit_net_progress(net) != 0)
            continue;
        uint64_t now_ns = quoit_clock_now_ns();
        if (deadline_ns == 0)
            deadline_ns = now_ns + timeout_ns;
        else if (now_ns >= deadline_ns)
            return QUOIT_TIMEOUT;
    }
    return take_gone(net, host) ? QUOIT_GONE : QUOIT_OK;
}

int quoit_net_wait_fd(const struct quoit_net *net)
{
    return net->driver->wait_fd(net->end);
}

bool quoit_net_arm(struct quoit_net *net, uint64_t *until_ns_out)
{
    *until_ns_out = net->next_watch_ns;
    if (net->unheard_count == 0 && !net->has_broken && net->driver->wait_fd(net->end) >= 0 &&
        net->driver->arm(net->end))
        return true;
    uint64_t now_ns = quoit_clock_now_ns(), poll_ns = POLL_LEAST_NS;
    if (net->unheard_count > 0 && now_ns > net->moved_ns) /* where a host does not answer, nothing may move for long */
        poll_ns = (now_ns - net->moved_ns) / POLL_SHARE;
    poll_ns = poll_ns < POLL_LEAST_NS ? POLL_LEAST_NS : poll_ns < POLL_MOST_NS ? poll_ns : POLL_MOST_NS;
    if (*until_ns_out > now_ns + poll_ns)
        *until_ns_out = now_ns + poll_ns;
    return false;
}

/* Whether all that know this end have said that they leave, and know that it does. To others a farewell would be the
 * first word, and over some networks make a connection. */
static bool has_left(struct quoit_net *net)
{
    bool is_done = true;
    for (uint32_t i = 0; i < net->config.host_count; i++) {
        struct host *host = &net->hosts[i];
        if (host->state == HOST_UNKNOWN || host->state == HOST_LOST || (!host->is_met && !host->is_watched))
            continue;
        if (!host->is_farewell_sent)
            host->is_farewell_sent = quoit_net_send_kind(net, i, MESSAGE_LEAVING, NULL, 0) != QUOIT_FULL;
        is_done &= host->is_farewell_sent && host->state == HOST_LEFT;
    }
    return is_done;
}

enum quoit_status quoit_net_leave(struct quoit_net *net, uint64_t timeout_ns)
{
    uint64_t deadline_ns = quoit_clock_now_ns() + timeout_ns;
    net->is_leaving = true;
    quoit_net_progress(net); /* who has spoken to this end is met */
    while (!has_left(net)) {
        quoit_net_progress(net);
        if (quoit_clock_now_ns() >= deadline_ns)
            return QUOIT_TIMEOUT;
    }
    quoit_net_progress(net);
    return QUOIT_OK;
}
