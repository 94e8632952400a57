/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/service.h"
#include "base/assert.h"
#include "base/log.h"
#include "env/clock.h"
#include "link/handshake.h"
#include "link/holddown.h"
#include "ring/route.h"

#include <stdlib.h>

#define POLL_NS    100000   /* between two polls of the neighbour's words, if it has no doorbell bit for them */
#define CONTROL_NS 1000000  /* the same if it has one */
#define RECHECK_NS 10000000 /* while some link is not UP */
#define IDLE_NS    500000000
#define LOST_NS    100000000 /* for which a ring that a bridge has lost may leave its client asleep */

struct side {
    struct quoit_port *port;
    struct quoit_link_record *record;
    uint32_t port_epoch; /* to which the opening is bound; from PROPOSED on */
    uint32_t epoch;      /* of the link: proposed in PROPOSED, agreed from CLEAN on */
    struct quoit_holddown holddown;
    bool is_flapping_reported;
    bool is_expected_down; /* by start() */
    uint64_t doorbells;    /* bits of the client */
    uint64_t control;      /* the service's own bit; 0: none */
    uint64_t peer_control; /* the neighbour's; 0: none, or not told yet */
};

struct quoit_service {
    struct quoit_service_config config;
    struct side sides[QUOIT_SIDE_COUNT];
    struct quoit_client client; /* while has_client; a side is IDLE without */
    bool has_client;
    bool loses_rings;          /* a port does not promise that they arrive */
    uint64_t next_wake_ns;     /* when the client is woken for those; 0: now */
    uint64_t cut_off_since_ns; /* two links or more are known to be down since then; 0: not so */
    uint32_t cut_count;        /* the client's number of this time */
    bool is_cut_off_reported;
    enum quoit_status status; /* what ended the manager */
};

static const char *side_name(enum quoit_side side)
{
    return side == QUOIT_LEFT ? "left" : "right";
}

uint64_t quoit_service_doorbells(const struct quoit_service *service, enum quoit_side side)
{
    return service->sides[side].doorbells;
}

struct quoit_port *quoit_service_port(const struct quoit_service *service, enum quoit_side side)
{
    return service->sides[side].port;
}

void quoit_service_wake(struct quoit_service *service)
{
    quoit_park_wake(service->config.park);
}

/* States of one side */

static void move(struct side *side, enum quoit_link_state to)
{
    quoit_link_move(side->record, to, quoit_clock_now_ns());
}

static void tell_cut_off(struct quoit_service *service, uint32_t first_link, uint32_t second_link)
{
    if (!service->is_cut_off_reported && service->client.cut_off)
        service->client.cut_off(service->client.arg, first_link, second_link);
    service->is_cut_off_reported = true;
}

/* QUOIT_DEAD_LINKS(), or 0. */
static uint64_t dead_links(const struct quoit_service *service)
{
    return service->has_client && service->client.dead_links ? service->client.dead_links(service->client.arg) : 0;
}

/* What was in flight is gone for good. */
static void lose(struct quoit_service *service, enum quoit_side index)
{
    uint32_t host = service->config.host;
    uint32_t link = index == QUOIT_RIGHT ? host : quoit_ring_neighbour(service->config.host_count, QUOIT_LEFT, host);
    move(&service->sides[index], QUOIT_LINK_STATE_LOST);
    tell_cut_off(service, link, link);
}

static void hold_down(struct side *side, enum quoit_side index, uint64_t now_ns)
{
    struct quoit_link_record *record = side->record;
    uint64_t hold_ns = quoit_holddown_outage(&side->holddown, now_ns);
    atomic_store_explicit(&record->flap_score, side->holddown.score, memory_order_relaxed);
    atomic_store_explicit(&record->held_until_ns, hold_ns ? now_ns + hold_ns : 0, memory_order_relaxed);
    if (hold_ns == 0 || side->is_flapping_reported)
        return;
    side->is_flapping_reported = true;
    quoit_log(QUOIT_LOG_WARN,
              "the link to the %s flaps: outage %u; from now on it is held down for a while after each while no other "
              "link is down (docs/design/link-state.md)",
              side_name(index), atomic_load_explicit(&record->outage_count, memory_order_relaxed));
}

static void begin_down(struct quoit_service *service, enum quoit_side index)
{
    struct side *side = &service->sides[index];
    move(side, QUOIT_LINK_STATE_DRAINING);
    hold_down(side, index, quoit_clock_now_ns());
    side->epoch++;
    atomic_store_explicit(&side->record->target, QUOIT_LINK_TARGET(side->epoch, false), memory_order_release);
    /* After the target: a request that a PE submits after seeing this leaves with a lane that follows, see poll_pe().
     */
    atomic_store(&side->record->port_epoch, 0);
    service->client.changed(service->client.arg, index);
    quoit_log(QUOIT_LOG_INFO, "the link to the %s went down", side_name(index));
}

/* Held for as long as was decided, unless that partitions the ring. */
static bool is_held(const struct quoit_service *service, enum quoit_side index, uint64_t now_ns)
{
    const struct quoit_link_record *other = service->sides[quoit_ring_opposite(index)].record;
    uint64_t until_ns = atomic_load_explicit(&service->sides[index].record->held_until_ns, memory_order_relaxed);
    return now_ns < until_ns && quoit_link_state_of(other) == QUOIT_LINK_STATE_UP && dead_links(service) == 0;
}

static void tell(struct side *side, struct quoit_handshake_word word)
{
    quoit_handshake_write(side->port, word);
    if (side->peer_control)
        quoit_port_ring(side->port, side->peer_control);
}

static void step_absent(struct quoit_service *service, enum quoit_side index)
{
    struct side *side = &service->sides[index];
    bool has_number = side->epoch <= QUOIT_LINK_STATE_MAX / 2; /* else the ring goes on without the link */
    if (!has_number || !quoit_port_link_is_up(side->port))
        return;
    if (is_held(service, index, quoit_clock_now_ns())) {
        atomic_fetch_add_explicit(&side->record->hold_count, 1, memory_order_relaxed);
        move(side, QUOIT_LINK_STATE_HELD);
        return;
    }
    side->port_epoch = quoit_port_link_epoch(side->port);
    if (quoit_port_bind(side->port, side->port_epoch) != QUOIT_OK)
        return;
    const struct quoit_handshake_bits bits = {.client = side->doorbells, .control = side->control};
    quoit_handshake_introduce(side->port, service->config.host, &service->client, index, bits);
    tell(side, (struct quoit_handshake_word){.kind = QUOIT_HANDSHAKE_PROPOSED, .epoch = side->epoch});
    move(side, QUOIT_LINK_STATE_PROPOSED);
}

static void step_held(struct quoit_service *service, enum quoit_side index)
{
    struct side *side = &service->sides[index];
    if (is_held(service, index, quoit_clock_now_ns()))
        return;
    atomic_store_explicit(&side->record->held_until_ns, 0, memory_order_relaxed);
    move(side, QUOIT_LINK_STATE_ABSENT);
}

static enum quoit_status offer_windows(struct side *side, const struct quoit_client *client, enum quoit_side index)
{
    enum quoit_status status = QUOIT_OK;
    for (enum quoit_window window = 0; window < QUOIT_WINDOW_COUNT && status == QUOIT_OK; window++)
        status = quoit_port_set_translation(side->port, window, client->windows[index][window].offset,
                                            client->windows[index][window].bytes);
    return status;
}

/* The neighbour is down too, so no host writes here. */
static void make_clean(struct quoit_service *service, enum quoit_side index, uint32_t proposed)
{
    struct side *side = &service->sides[index];
    const struct quoit_client *client = &service->client;
    uint32_t neighbour = quoit_ring_neighbour(service->config.host_count, index, service->config.host);
    struct quoit_handshake_bits bits = {.client = atomic_load(&side->record->peer_doorbells)};
    enum quoit_status status = quoit_handshake_check(side->port, neighbour, client, index, side->port_epoch, &bits);
    const struct quoit_handshake_neighbour found = quoit_handshake_neighbour(side->port);
    if (status != QUOIT_LINK_DOWN) {
        atomic_store_explicit(&side->record->peer_host, found.host, memory_order_relaxed);
        atomic_store_explicit(&side->record->peer_side, found.side, memory_order_relaxed);
    }
    if (status == QUOIT_OK) {
        atomic_store(&side->record->peer_doorbells, bits.client);
        side->peer_control = bits.control;
        quoit_port_doorbell_clear(side->port, side->doorbells);
        side->epoch = proposed > side->epoch ? proposed : side->epoch;
        client->clean(client->arg, index);
        status = offer_windows(side, client, index);
    }
    if (status == QUOIT_LINK_DOWN)
        return;
    if (status != QUOIT_OK) {
        service->status = status;
        return;
    }
    tell(side, (struct quoit_handshake_word){.kind = QUOIT_HANDSHAKE_CLEAN, .epoch = side->epoch});
    move(side, QUOIT_LINK_STATE_CLEAN);
}

static void come_up(struct quoit_service *service, enum quoit_side index)
{
    struct side *side = &service->sides[index];
    bool was_up = atomic_load_explicit(&side->record->down_since_ns, memory_order_relaxed) != 0;
    move(side, QUOIT_LINK_STATE_UP);
    atomic_store_explicit(&side->record->target, QUOIT_LINK_TARGET(side->epoch, true), memory_order_release);
    atomic_store(&side->record->port_epoch, side->port_epoch);
    service->client.changed(service->client.arg, index);
    if (was_up)
        quoit_log(QUOIT_LOG_INFO, "the link to the %s is up again", side_name(index));
}

static bool has_lost(const struct side *side)
{
    return !quoit_port_link_is_up(side->port) || quoit_port_link_epoch(side->port) != side->port_epoch;
}

static void step_handshake(struct quoit_service *service, enum quoit_side index)
{
    struct side *side = &service->sides[index];
    struct quoit_handshake_word word = quoit_handshake_read(side->port);
    bool is_proposed = quoit_link_state_of(side->record) == QUOIT_LINK_STATE_PROPOSED;
    if (has_lost(side))
        move(side, QUOIT_LINK_STATE_ABSENT);
    else if (is_proposed && (word.kind == QUOIT_HANDSHAKE_PROPOSED ||
                             (word.kind == QUOIT_HANDSHAKE_CLEAN && word.epoch >= side->epoch)))
        make_clean(service, index, word.epoch);
    else if (!is_proposed && word.kind == QUOIT_HANDSHAKE_CLEAN && word.epoch == side->epoch)
        come_up(service, index);
}

/* One move of one side; true when it moved. */
static bool step_side(struct quoit_service *service, enum quoit_side index)
{
    struct side *side = &service->sides[index];
    enum quoit_link_state before = quoit_link_state_of(side->record);
    switch (before) {
    case QUOIT_LINK_STATE_UP:
        if (!has_lost(side)) /* asked once, because the answer may change at any instant */
            break;
        if (service->client.has_failover)
            begin_down(service, index);
        else
            lose(service, index);
        break;
    case QUOIT_LINK_STATE_DRAINING:
        if (service->client.has_followed(service->client.arg, index))
            move(side, QUOIT_LINK_STATE_ABSENT);
        break;
    case QUOIT_LINK_STATE_ABSENT:
        step_absent(service, index);
        break;
    case QUOIT_LINK_STATE_HELD:
        step_held(service, index);
        break;
    case QUOIT_LINK_STATE_PROPOSED:
    case QUOIT_LINK_STATE_CLEAN:
        step_handshake(service, index);
        break;
    case QUOIT_LINK_STATE_IDLE:
    case QUOIT_LINK_STATE_LOST:
    case QUOIT_LINK_STATE_COUNT:
        break;
    }
    return quoit_link_state_of(side->record) != before;
}

static bool step_sides(struct quoit_service *service)
{
    bool has_moved = false;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && service->status == QUOIT_OK; side++) {
        if (service->sides[side].control)
            quoit_port_doorbell_clear(service->sides[side].port, service->sides[side].control);
        has_moved |= step_side(service, side);
    }
    return has_moved;
}

static bool is_awaited(const struct side *side)
{
    return !side->is_expected_down && quoit_link_state_of(side->record) != QUOIT_LINK_STATE_UP;
}

void quoit_service_expect_down(struct quoit_service *service, enum quoit_side index)
{
    struct side *side = &service->sides[index];
    quoit_assert(service->has_client && service->client.has_failover);
    side->is_expected_down = true;
    side->epoch = 1;
    atomic_store(&side->record->peer_doorbells, side->doorbells);
    atomic_store_explicit(&side->record->target, QUOIT_LINK_TARGET(side->epoch, false), memory_order_release);
}

enum quoit_status quoit_service_start(struct quoit_service *service, uint64_t timeout_ns)
{
    uint64_t begin_ns = quoit_clock_now_ns();
    quoit_assert(service->has_client);
    while ((is_awaited(&service->sides[QUOIT_LEFT]) || is_awaited(&service->sides[QUOIT_RIGHT])) &&
           service->status == QUOIT_OK) {
        bool has_moved = step_sides(service);
        if (!has_moved && quoit_clock_now_ns() - begin_ns > timeout_ns) {
            quoit_log(QUOIT_LOG_ERROR, "a neighbour of host %u did not come up in %llu ms", service->config.host,
                      (unsigned long long)(timeout_ns / 1000000));
            return QUOIT_TIMEOUT;
        }
        if (!has_moved)
            quoit_clock_sleep_ns(POLL_NS);
    }
    return service->status;
}

/* Two dead links cut hosts off. The update that one is back may be late, so the condition must persist for a while.
 * Only knowledge of fewer than two starts the time over, which the client counts, since it may be over before the
 * manager looks. Which two are dead may change meanwhile: while a third link flaps, the hosts are cut off none the
 * less.
 */
static void watch_cut_off(struct quoit_service *service, uint64_t now_ns)
{
    uint64_t dead = dead_links(service);
    if (dead == 0) {
        service->cut_off_since_ns = 0;
        return;
    }
    if (service->cut_off_since_ns == 0 || service->cut_count != QUOIT_DEAD_LINKS_CUT(dead)) {
        service->cut_off_since_ns = now_ns;
        service->cut_count = QUOIT_DEAD_LINKS_CUT(dead);
    }
    if (now_ns - service->cut_off_since_ns >= service->client.cut_off_limit_ns)
        tell_cut_off(service, QUOIT_DEAD_LINKS_FIRST(dead), QUOIT_DEAD_LINKS_SECOND(dead));
}

/* What rings of a port would wake looks at its memory. */
static void wake_vectors(const struct quoit_service *service, enum quoit_side index)
{
    const uint64_t bits = service->sides[index].doorbells;
    char *memory = service->config.ports[index].memory.base;
    struct quoit_port_vector vectors[QUOIT_DOORBELL_COUNT] = {0};
    service->client.vectors(service->client.arg, bits, vectors);
    for (uint64_t left = bits; left != 0; left &= left - 1) {
        const struct quoit_port_vector *vector = &vectors[__builtin_ctzll(left)];
        for (uint32_t i = 0; i < vector->park_count; i++)
            quoit_park_wake((struct quoit_park *)(void *)(memory + vector->park_offset + i * vector->park_stride));
    }
}

static void wake_for_lost_rings(struct quoit_service *service, uint64_t now_ns)
{
    if (!service->has_client || !service->loses_rings || now_ns < service->next_wake_ns)
        return;
    service->next_wake_ns = now_ns + LOST_NS;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        wake_vectors(service, side);
}

static uint64_t sleep_ns(const struct quoit_service *service, uint64_t now_ns)
{
    uint64_t sleep_ns = service->has_client && service->loses_rings ? LOST_NS : IDLE_NS;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        const struct quoit_link_record *record = service->sides[side].record;
        enum quoit_link_state state = quoit_link_state_of(record);
        uint64_t own_ns = RECHECK_NS;
        if (state == QUOIT_LINK_STATE_PROPOSED || state == QUOIT_LINK_STATE_CLEAN) {
            own_ns = service->sides[side].control ? CONTROL_NS : POLL_NS;
        } else if (state == QUOIT_LINK_STATE_HELD) {
            uint64_t until_ns = atomic_load_explicit(&record->held_until_ns, memory_order_relaxed);
            own_ns = until_ns > now_ns ? until_ns - now_ns : 1;
        } else if ((state == QUOIT_LINK_STATE_UP && service->cut_off_since_ns == 0) || state == QUOIT_LINK_STATE_IDLE) {
            own_ns = IDLE_NS;
        }
        sleep_ns = own_ns < sleep_ns ? own_ns : sleep_ns;
    }
    return sleep_ns;
}

enum quoit_status quoit_service_manage(struct quoit_service *service, _Atomic uint32_t *is_stopping)
{
    struct quoit_park *park = service->config.park;
    while (service->status == QUOIT_OK && !atomic_load_explicit(is_stopping, memory_order_relaxed)) {
        uint32_t key = quoit_park_prepare(park);
        bool has_moved = step_sides(service);
        uint64_t now_ns = quoit_clock_now_ns();
        watch_cut_off(service, now_ns);
        wake_for_lost_rings(service, now_ns);
        if (has_moved || atomic_load_explicit(is_stopping, memory_order_relaxed))
            quoit_park_cancel(park);
        else
            quoit_park_sleep(park, key, sleep_ns(service, now_ns));
    }
    return service->status;
}

/* The client */

static enum quoit_status check_windows(const struct quoit_service *service, const struct quoit_client *client)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_port_limits limits;
        quoit_port_limits(service->sides[side].port, &limits);
        for (enum quoit_window window = 0; window < QUOIT_WINDOW_COUNT; window++) {
            const struct quoit_window_range *range = &client->windows[side][window];
            if (range->bytes > limits.window_bytes[window]) {
                quoit_log(QUOIT_LOG_ERROR, "%s needs a window of %llu bytes, the port has %llu", client->name,
                          (unsigned long long)range->bytes, (unsigned long long)limits.window_bytes[window]);
                return QUOIT_OUT_OF_RANGE;
            }
            if (range->offset % limits.translation_align != 0 || range->bytes % limits.translation_bytes_align != 0) {
                quoit_log(QUOIT_LOG_ERROR,
                          "%s has a window of 0x%llx bytes at 0x%llx of its memory; the port to the %s translates "
                          "multiples of 0x%llx bytes at multiples of 0x%llx",
                          client->name, (unsigned long long)range->bytes, (unsigned long long)range->offset,
                          side_name(side), (unsigned long long)limits.translation_bytes_align,
                          (unsigned long long)limits.translation_align);
                return QUOIT_OUT_OF_RANGE;
            }
        }
    }
    return QUOIT_OK;
}

static uint64_t valid_doorbells(const struct side *side)
{
    struct quoit_port_limits limits;
    quoit_port_limits(side->port, &limits);
    return limits.doorbell_bits;
}

/* The service's own bit is the highest that is free. */
static enum quoit_status take_control(struct quoit_service *service, enum quoit_side index)
{
    struct side *side = &service->sides[index];
    const struct quoit_port_vector manager = {
        .park_offset = service->config.park_offset, .park_stride = sizeof(struct quoit_park), .park_count = 1};
    uint64_t free_bits = valid_doorbells(side) & ~side->doorbells;
    if (free_bits == 0 || side->control)
        return QUOIT_OK;
    uint32_t bit = QUOIT_DOORBELL_COUNT - 1 - (uint32_t)__builtin_clzll(free_bits);
    enum quoit_status status = quoit_port_set_vector(side->port, bit, &manager);
    if (status != QUOIT_OK)
        return status;
    side->control = UINT64_C(1) << bit;
    quoit_port_doorbell_unmask(side->port, side->control);
    return QUOIT_OK;
}

/* The bits of a port for a client: the lowest, without the service's own unless the client cannot do without. */
static enum quoit_status find_doorbells(const struct quoit_service *service, const struct quoit_client *client,
                                        enum quoit_side index, uint64_t *bits_out)
{
    const struct side *side = &service->sides[index];
    uint64_t valid = valid_doorbells(side), free_bits = valid & ~side->control, bits = 0;
    uint32_t valid_count = (uint32_t)__builtin_popcountll(valid);
    if (valid_count < client->doorbell_least) {
        quoit_log(QUOIT_LOG_ERROR,
                  "%s needs at least %u doorbell bits of the port to the %s, which has %u: mask 0x%llx", client->name,
                  client->doorbell_least, side_name(index), valid_count, (unsigned long long)valid);
        return QUOIT_OUT_OF_RANGE;
    }
    if ((uint32_t)__builtin_popcountll(free_bits) < client->doorbell_least)
        free_bits = valid;
    for (uint32_t i = 0; i < client->doorbell_most && free_bits != 0; i++, free_bits &= free_bits - 1)
        bits |= free_bits & -free_bits;
    *bits_out = bits;
    return QUOIT_OK;
}

static enum quoit_status set_doorbells(struct quoit_service *service, const struct quoit_client *client,
                                       enum quoit_side index, uint64_t bits)
{
    struct side *side = &service->sides[index];
    struct quoit_port_vector vectors[QUOIT_DOORBELL_COUNT] = {0};
    side->control &= ~bits;
    side->doorbells = bits;
    client->vectors(client->arg, bits, vectors);
    for (uint64_t left = bits; left != 0; left &= left - 1) {
        uint32_t bit = (uint32_t)__builtin_ctzll(left);
        enum quoit_status status = quoit_port_set_vector(side->port, bit, &vectors[bit]);
        if (status != QUOIT_OK)
            return status;
    }
    quoit_port_doorbell_clear(side->port, bits);
    quoit_port_doorbell_unmask(side->port, bits);
    return QUOIT_OK;
}

static void reclaim_doorbells(struct quoit_service *service)
{
    for (enum quoit_side index = 0; index < QUOIT_SIDE_COUNT; index++) {
        struct side *side = &service->sides[index];
        quoit_port_doorbell_mask(side->port, side->doorbells);
        quoit_port_doorbell_clear(side->port, side->doorbells);
        side->doorbells = 0;
        enum quoit_status status = take_control(service, index);
        quoit_assert(status == QUOIT_OK); /* the same vector as at open() */
    }
}

/* The state starts over for a new client: its first epoch is 0. */
static void begin(struct quoit_service *service)
{
    service->has_client = true;
    service->cut_off_since_ns = 0;
    service->is_cut_off_reported = false;
    for (enum quoit_side index = 0; index < QUOIT_SIDE_COUNT; index++) {
        struct side *side = &service->sides[index];
        side->epoch = 0;
        side->is_expected_down = false;
        side->peer_control = 0;
        atomic_store(&side->record->own_doorbells, side->doorbells);
        atomic_store(&side->record->peer_doorbells, 0);
        atomic_store_explicit(&side->record->target, QUOIT_LINK_TARGET(0, false), memory_order_release);
        atomic_store_explicit(&side->record->down_since_ns, 0, memory_order_relaxed);
        move(side, QUOIT_LINK_STATE_ABSENT);
    }
}

enum quoit_status quoit_service_attach(struct quoit_service *service, const struct quoit_client *client)
{
    uint64_t bits[QUOIT_SIDE_COUNT];
    if (service->has_client)
        return QUOIT_FULL;
    enum quoit_status status = check_windows(service, client);
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && status == QUOIT_OK; side++)
        status = find_doorbells(service, client, side, &bits[side]);
    if (status != QUOIT_OK)
        return status;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && status == QUOIT_OK; side++)
        status = set_doorbells(service, client, side, bits[side]);
    if (status != QUOIT_OK) {
        reclaim_doorbells(service);
        return status;
    }
    service->client = *client;
    begin(service);
    return QUOIT_OK;
}

/* The neighbours see the link go down, so nothing meant for this client arrives for the next one. */
static void close_windows(struct quoit_service *service)
{
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_port *port = service->sides[side].port;
        atomic_store(&service->sides[side].record->port_epoch, 0);
        if (quoit_link_state_of(service->sides[side].record) != QUOIT_LINK_STATE_IDLE)
            move(&service->sides[side], QUOIT_LINK_STATE_IDLE);
        quoit_port_link_disable(port);
        for (enum quoit_window window = 0; window < QUOIT_WINDOW_COUNT; window++) {
            enum quoit_status status = quoit_port_set_translation(port, window, 0, 0);
            quoit_assert(status == QUOIT_OK || status == QUOIT_LINK_DOWN);
        }
        quoit_port_link_enable(port);
    }
}

void quoit_service_detach(struct quoit_service *service)
{
    quoit_assert(service->has_client);
    reclaim_doorbells(service);
    service->has_client = false;
    close_windows(service);
}

/* Opening */

static enum quoit_status open_side(struct quoit_service *service, enum quoit_side index)
{
    struct side *side = &service->sides[index];
    const struct quoit_port_vector manager = {
        .park_offset = service->config.park_offset, .park_stride = sizeof(struct quoit_park), .park_count = 1};
    enum quoit_status status = quoit_port_open(&service->config.ports[index], &side->port);
    if (status != QUOIT_OK)
        return status;
    struct quoit_port_limits limits;
    quoit_port_limits(side->port, &limits);
    service->loses_rings |= (limits.capabilities & QUOIT_PORT_RINGS_ARRIVE) == 0;
    status = quoit_port_set_vector(side->port, QUOIT_VECTOR_LINK, &manager);
    return status == QUOIT_OK ? take_control(service, index) : status;
}

enum quoit_status quoit_service_open(const struct quoit_service_config *config, struct quoit_service **service_out)
{
    struct quoit_service *service = calloc(1, sizeof *service);
    enum quoit_status status = service ? QUOIT_OK : QUOIT_NO_MEMORY;
    if (!service)
        return status;
    service->config = *config;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT && status == QUOIT_OK; side++) {
        service->sides[side].record = &config->records[side];
        status = open_side(service, side);
    }
    if (status != QUOIT_OK) {
        quoit_service_close(service);
        return status;
    }
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_port_link_enable(service->sides[side].port);
    *service_out = service;
    return QUOIT_OK;
}

void quoit_service_close(struct quoit_service *service)
{
    if (!service)
        return;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        quoit_port_close(service->sides[side].port);
    free(service);
}
