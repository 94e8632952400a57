/* SPDX-License-Identifier: BSD-3-Clause */
#include "coll/team.h"
#include "base/assert.h"
#include "base/observer.h"
#include "host/protocol.h"

#include <stdlib.h>
#include <string.h>

#define FLAG_BYTES 4096u
_Static_assert(sizeof(struct quoit_team_flags) <= FLAG_BYTES, "the flags have their place");
_Static_assert(1u << QUOIT_DISSEMINATION_ROUNDS >= QUOIT_RING_HOSTS_MAX, "a flag for each round");

#define WORLD_BYTES (252u << 10)
#define PIECE_BYTES (48u << 10)
#define PIECE_COUNT (QUOIT_TEAM_PIECES + QUOIT_SET_PIECES)
_Static_assert(WORLD_BYTES + (PIECE_COUNT - 1) * PIECE_BYTES <= QUOIT_RUNTIME_RENDEZVOUS_SLOT_AT,
               "all pieces have room");

/* Up to this many hosts on links an exchange by rounds is the fastest barrier: it has no more rounds than
 * dissemination, even between distant hosts, and fewer messages than arrivals, which pay off where a round over a link
 * that is down takes long. */
#define EXCHANGE_HOSTS_MAX 8

static struct quoit_team_space space_of(uint32_t piece)
{
    struct quoit_team_space space = {
        .start = 0, .slot_bytes = 4096, .gather_bytes = 8192, .table_bytes = 32768, .inbound_bytes = 32768};
    uint32_t limit = WORLD_BYTES;
    if (piece != 0) {
        space = (struct quoit_team_space){.start = WORLD_BYTES + (uint64_t)(piece - 1) * PIECE_BYTES,
                                          .slot_bytes = 1024,
                                          .gather_bytes = 2048,
                                          .table_bytes = 8192,
                                          .inbound_bytes = 4096};
        limit = PIECE_BYTES;
    }
    space.slots = space.start + FLAG_BYTES;
    space.gather = space.slots + QUOIT_SLOT_COUNT * space.slot_bytes;
    space.table = space.gather + 2 * space.gather_bytes;
    space.inbound = space.table + 2 * space.table_bytes;
    space.halving = piece == 0 ? QUOIT_RUNTIME_LINK_BYTES : space.inbound;
    space.halving_bytes = piece == 0 ? QUOIT_RUNTIME_HALVING_BYTES : space.inbound_bytes * 2 * QUOIT_TRAVEL_COUNT;
    quoit_assert(space.inbound + space.inbound_bytes * 2 * QUOIT_TRAVEL_COUNT <= space.start + limit);
    return space;
}

/* Fills in hosts (with room for size) and this member's own place. Members of a host have consecutive ranks. */
static void group_members(struct quoit_team_state *team)
{
    const struct quoit_fabric *fabric = team->fabric;
    uint32_t last_host = UINT32_MAX;
    for (uint32_t rank = 0; rank < team->range.size; rank++) {
        uint32_t pe = quoit_team_pe_of(team, rank);
        quoit_assert(pe < fabric->self.pe_count);
        if (fabric->peers[pe].host != last_host) {
            last_host = fabric->peers[pe].host;
            team->hosts[team->host_count++] = (struct quoit_team_host){.first_rank = rank, .leader_pe = pe};
        }
        struct quoit_team_host *host = &team->hosts[team->host_count - 1];
        host->member_count++;
        if (pe < host->leader_pe)
            host->leader_pe = pe; /* the window of a link covers the first segments of a host */
        if (pe == fabric->self.pe) {
            team->rank = rank;
            team->host = team->host_count - 1;
        }
    }
}

struct quoit_team_state *quoit_team_new(struct quoit_fabric *fabric, const struct quoit_team_range *range,
                                        uint32_t piece, uint64_t first_flag)
{
    quoit_assert(piece < PIECE_COUNT);
    quoit_assert(range->size > 0);
    struct quoit_team_state *team = calloc(1, sizeof *team);
    if (!team)
        return NULL;
    team->fabric = fabric;
    team->range = *range;
    team->space = space_of(piece);
    team->flag_base = first_flag;
    quoit_context_init(&team->context, piece);
    team->hosts = calloc(range->size, sizeof *team->hosts);
    team->starts = calloc((size_t)range->size + 1, sizeof *team->starts);
    team->scratch = aligned_alloc(64, QUOIT_SCRATCH_BYTES);
    if (!team->hosts || !team->starts || !team->scratch)
        goto delete_team;
    team->host = UINT32_MAX;
    group_members(team);
    quoit_assert(team->host != UINT32_MAX); /* the calling PE is a member */

    const struct quoit_team_host *own = &team->hosts[team->host];
    team->local_count = own->member_count;
    team->local = team->rank - own->first_rank;
    team->is_leader = own->leader_pe == fabric->self.pe;
    if (team->is_leader && team->host_count > 1) {
        team->partials = aligned_alloc(64, team->host_count * team->space.gather_bytes);
        if (!team->partials)
            goto delete_team;
    }
    team->has_host_barrier = piece == 0 && quoit_fabric_has_host_barrier(fabric);
    team->has_links = !quoit_job_config_has_network(&fabric->self.layout.job);
    team->receives = team->is_leader && team->host_count > 1 && quoit_fabric_has_messages(fabric);
    team->are_neighbours = team->has_links && team->host_count == quoit_fabric_host_count(fabric);
    team->leader_workspace = fabric->peers[own->leader_pe].segment;
    team->flags = (struct quoit_team_flags *)(team->leader_workspace + team->space.start);
    return team;

delete_team:
    quoit_team_delete(team);
    return NULL;
}

uint64_t quoit_team_next_flag(const struct quoit_team_state *team)
{
    uint64_t counts[] = {team->phase,         team->publish_count,
                         team->round,         team->dissemination_count,
                         team->halving_count, team->arrivals_count * team->host_count,
                         team->sent_count[0], team->sent_count[1],
                         team->come_count[0], team->come_count[1]};
    uint64_t most = 0;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        most = counts[i] > most ? counts[i] : most;
    for (uint32_t round = 0; round < QUOIT_DISSEMINATION_ROUNDS; round++) {
        most = team->tree_sent_count[round] > most ? team->tree_sent_count[round] : most;
        most = team->tree_come_count[round] > most ? team->tree_come_count[round] : most;
        most = team->post_sent_count[round] > most ? team->post_sent_count[round] : most;
        most = team->post_come_count[round] > most ? team->post_come_count[round] : most;
    }
    return team->flag_base + most + 1;
}

/* For the next team that has this PE as leader on the piece. Nothing of this one is still to come: the leader leaves a
 * phase only when all members have arrived at it, and they arrive at the next only with the leader. Nothing of the next
 * has come: its members agree on the piece together with this PE, which offers it only when the team is gone. Only in a
 * program that is wrong have members arrived at a next phase: they took shmem_finalize or shmem_team_destroy of this PE
 * for their own collective. They wait there until the launcher ends the job, and no next team comes to be. */
static void reset_arrivals(const struct quoit_team_state *team)
{
    uint64_t arrived = atomic_load_explicit(&team->flags->arrived.value, memory_order_acquire);
    quoit_assert(arrived >= team->phase * team->local_count);
    if (arrived == team->phase * team->local_count)
        atomic_store_explicit(&team->flags->arrived.value, 0, memory_order_release);
}

void quoit_team_quiet(struct quoit_team_state *team)
{
    quoit_fabric_quiet(team->fabric, &team->context);
}

void quoit_team_delete(struct quoit_team_state *team)
{
    if (!team)
        return;
    quoit_team_quiet(team); /* outstanding requests refer to the context */
    if (team->is_leader && team->flags)
        reset_arrivals(team);
    free(team->hosts);
    free(team->starts);
    free(team->partials);
    free(team->scratch);
    free(team);
}

/* A lower bound of a host's copy rate while its processors serve its PEs in turn. */
#define BYTES_A_NS 8u
/* From this size on no data is still cached when it is read. Non-temporal stores avoid reading the lines of dest: an
 * alltoall of 16 PEs with blocks of 1 MiB takes half the time. For data that fits the caches they are slower. */
#define STREAM_BYTES (64u << 20)

uint64_t quoit_coll_count(const struct quoit_team_state *team)
{
    return team->enter_count;
}

void quoit_team_enter(struct quoit_team_state *team, const char *call, uint64_t group_bytes)
{
    team->call = call;
    team->enter_count++;
    team->busy_ns = team->local_count > 1 ? group_bytes / BYTES_A_NS : 0;
    team->streams = group_bytes >= STREAM_BYTES;
}

void quoit_team_copy(const struct quoit_team_state *team, void *to, const void *from, size_t bytes)
{
    const struct quoit_copy_place place = {.here = to};
    quoit_copy_put(team->streams ? QUOIT_COPY_STREAM : QUOIT_COPY_MEMCPY, &place, from, bytes);
}

struct flag_wait {
    const struct quoit_flag *flag;
    uint64_t value;
    struct quoit_fabric *receives; /* whose messages bring it; NULL: others bring it */
};

static bool flag_has_come(void *arg)
{
    const struct flag_wait *wait = arg;
    if (wait->receives && atomic_load_explicit(&wait->flag->value, memory_order_relaxed) < wait->value)
        quoit_fabric_receive(wait->receives);
    return atomic_load_explicit(&wait->flag->value, memory_order_acquire) >= wait->value;
}

void quoit_team_wait(struct quoit_team_state *team, const struct quoit_flag *flag, uint64_t value)
{
    struct flag_wait wait = {flag, value, NULL};
    if (!flag_has_come(&wait))
        quoit_self_wait_busy(&team->fabric->self, flag_has_come, &wait, team->call, team->busy_ns);
    quoit_observe(flag_seen, flag);
}

/* Until is_done, which receives, for something that a message of the leader of `host` brings. NULL: of one of several.
 */
static void wait_for_message(struct quoit_team_state *team, bool (*is_done)(void *arg), void *arg,
                             const struct quoit_team_host *host)
{
    if (team->receives)
        quoit_self_wait_message(&team->fabric->self, is_done, arg, team->call, team->busy_ns,
                                host ? &team->fabric->peers[host->leader_pe] : NULL);
    else
        quoit_self_wait_busy(&team->fabric->self, is_done, arg, team->call, team->busy_ns);
}

static struct quoit_fabric *receives(const struct quoit_team_state *team)
{
    return team->receives ? team->fabric : NULL;
}

/* Waits until *flag, which a message of the leader of `host` sets, is at least `value`. */
static void wait_for_flag(struct quoit_team_state *team, uint32_t host, const struct quoit_flag *flag, uint64_t value)
{
    struct flag_wait wait = {flag, value, receives(team)};
    if (!flag_has_come(&wait))
        wait_for_message(team, flag_has_come, &wait, &team->hosts[host]);
    quoit_observe(flag_seen, flag);
}

void quoit_team_wait_all(struct quoit_team_state *team, size_t flag_offset, uint64_t value)
{
    for (uint32_t i = 0; i < team->local_count; i++) {
        const char *flags = (const char *)quoit_team_flags_of(team, i);
        quoit_team_wait(team, (const struct quoit_flag *)(flags + flag_offset), value);
    }
}

void quoit_team_wake(struct quoit_team_state *team)
{
    const struct quoit_team_host *host = &team->hosts[team->host];
    for (uint32_t i = 0; i < host->member_count; i++)
        if (i != team->local)
            quoit_park_wake(team->fabric->peers[quoit_team_pe_of(team, host->first_rank + i)].park);
}

/* One counter, so that the last member to arrive knows that it is the last and wakes no other in order to hand over:
 * with more PEs than processors each context switch costs more than everything else. */
void quoit_team_phase(struct quoit_team_state *team, quoit_team_work *work, void *arg)
{
    if (team->local_count == 1) {
        if (work)
            work(team, arg);
        return;
    }
    struct quoit_team_flags *flags = team->flags;
    uint64_t phase = ++team->phase;
    uint64_t complete = phase * team->local_count;
    /* release: this member's writes; acquire: the others'. Pairs with itself and with the wait below. */
    bool is_last = atomic_fetch_add_explicit(&flags->arrived.value, 1, memory_order_acq_rel) + 1 == complete;
    bool does_work = work && team->host_count > 1 ? team->is_leader : is_last;
    if (!does_work) {
        if (is_last)
            quoit_park_wake(team->fabric->peers[team->hosts[team->host].leader_pe].park);
        quoit_team_wait(team, &flags->released, team->flag_base + phase);
        return;
    }
    if (!is_last)
        quoit_team_wait(team, &flags->arrived, complete);
    if (work)
        work(team, arg);
    atomic_store_explicit(&flags->released.value, team->flag_base + phase, memory_order_release);
    quoit_team_wake(team);
}

/* The fence: a direct message must not overtake one to the same leader that goes through the proxies, because a flag's
 * value promises that all earlier messages have arrived. Over a network alone none is direct, and large payload behind
 * a fence could not go from memory to memory. */
static void keep_order(struct quoit_team_state *team)
{
    if (quoit_layout_has_links(&team->fabric->self.layout))
        quoit_fabric_fence(team->fabric, &team->context);
}

static void send_to(struct quoit_team_state *team, uint32_t host, const struct quoit_team_message *message,
                    size_t flag_offset, uint64_t value)
{
    static const struct quoit_team_message nothing;
    const struct quoit_team_message *what = message ? message : &nothing;
    const struct quoit_message whole = {.offset = what->offset,
                                        .source = what->source,
                                        .bytes = what->bytes,
                                        .has_flag = true,
                                        .flag = team->space.start + flag_offset,
                                        .value = value};
    keep_order(team);
    quoit_fabric_message(team->fabric, &team->context, &whole, team->hosts[host].leader_pe,
                         &team->hosts[host].is_direct);
}

/* By the proxy, for a flag of its own: the order with what goes by send_to() is not known. */
static void post_to(struct quoit_team_state *team, uint32_t host, const struct quoit_team_message *message,
                    size_t flag_offset, uint64_t value)
{
    const struct quoit_signal signal = {.offset = team->space.start + flag_offset, .value = value, .op = QUOIT_AMO_SET};
    keep_order(team);
    quoit_fabric_put_signal(team->fabric, &team->context, message->offset, message->source, message->bytes, &signal,
                            team->hosts[host].leader_pe, false);
}

/* Of a message, what its flag's part does not have. */
static void send_before(struct quoit_team_state *team, uint32_t host, const struct quoit_team_message *message)
{
    const struct quoit_message part = {.offset = message->offset, .source = message->source, .bytes = message->bytes};
    if (message->bytes != 0)
        quoit_fabric_message(team->fabric, &team->context, &part, team->hosts[host].leader_pe,
                             &team->hosts[host].is_direct);
}

void quoit_team_round(struct quoit_team_state *team, const struct quoit_team_message *const messages[])
{
    uint64_t value = team->flag_base + ++team->round;
    for (int travel = 0; travel < QUOIT_TRAVEL_COUNT; travel++)
        if (messages[travel])
            send_to(team, quoit_schedule_neighbour(team->host_count, team->host, travel), messages[travel],
                    offsetof(struct quoit_team_flags, rounds[travel]), value);
    for (int travel = 0; travel < QUOIT_TRAVEL_COUNT; travel++)
        if (messages[travel])
            wait_for_flag(team, quoit_schedule_neighbour(team->host_count, team->host, 1 - travel),
                          &team->flags->rounds[travel], value);
}

void quoit_team_stream(struct quoit_team_state *team, const struct quoit_team_message *message,
                       enum quoit_travel travel)
{
    send_to(team, quoit_schedule_neighbour(team->host_count, team->host, travel), message,
            offsetof(struct quoit_team_flags, stream[travel]), team->flag_base + ++team->sent_count[travel]);
}

void quoit_team_stream_wait(struct quoit_team_state *team, enum quoit_travel travel)
{
    wait_for_flag(team, quoit_schedule_neighbour(team->host_count, team->host, 1 - travel),
                  &team->flags->stream[travel], team->flag_base + ++team->come_count[travel]);
}

struct stream_wait {
    const struct quoit_team_state *team;
    const bool *may_come;
    enum quoit_travel come;
};

static bool any_has_come(void *arg)
{
    struct stream_wait *wait = arg;
    const struct quoit_team_state *team = wait->team;
    for (enum quoit_travel travel = QUOIT_NEXT; travel < QUOIT_TRAVEL_COUNT; travel++) {
        struct flag_wait next = {&team->flags->stream[travel], team->flag_base + team->come_count[travel] + 1,
                                 receives(team)};
        wait->come = travel;
        if (wait->may_come[travel] && flag_has_come(&next))
            return true;
    }
    return false;
}

enum quoit_travel quoit_team_stream_wait_any(struct quoit_team_state *team, const bool may_come[QUOIT_TRAVEL_COUNT])
{
    struct stream_wait wait = {.team = team, .may_come = may_come};
    if (!any_has_come(&wait))
        wait_for_message(team, any_has_come, &wait, NULL);
    team->come_count[wait.come]++;
    return wait.come;
}

static uint32_t host_of_round(const struct quoit_team_state *team, uint32_t round)
{
    return quoit_schedule_disseminate(team->host_count, team->host, round).send;
}

void quoit_team_tree_send(struct quoit_team_state *team, const struct quoit_team_message *message, uint32_t round)
{
    send_to(team, host_of_round(team, round), message, offsetof(struct quoit_team_flags, tree[round]),
            team->flag_base + ++team->tree_sent_count[round]);
}

void quoit_team_tree_wait(struct quoit_team_state *team, uint32_t round)
{
    wait_for_flag(team, quoit_schedule_disseminate(team->host_count, team->host, round).receive,
                  &team->flags->tree[round], team->flag_base + ++team->tree_come_count[round]);
}

void quoit_team_post(struct quoit_team_state *team, const struct quoit_team_message *message, uint32_t round)
{
    post_to(team, host_of_round(team, round), message, offsetof(struct quoit_team_flags, posts[round]),
            team->flag_base + ++team->post_sent_count[round]);
}

void quoit_team_post_wait(struct quoit_team_state *team, uint32_t round)
{
    quoit_team_wait(team, &team->flags->posts[round], team->flag_base + ++team->post_come_count[round]);
}

void quoit_team_halving_round(struct quoit_team_state *team, const struct quoit_team_message parts[2], uint32_t round,
                              bool is_gathering)
{
    uint32_t hosts = team->host_count, distance = quoit_schedule_halve(hosts, round).first;
    uint32_t to = (team->host + (is_gathering ? hosts - distance : distance)) % hosts;
    uint32_t from = (team->host + (is_gathering ? distance : hosts - distance)) % hosts;
    size_t flag_offset = is_gathering ? offsetof(struct quoit_team_flags, gather[round])
                                      : offsetof(struct quoit_team_flags, halve[round]);
    uint64_t value = team->flag_base + team->halving_count;
    send_before(team, to, &parts[1]);
    send_to(team, to, &parts[0], flag_offset, value);
    wait_for_flag(team, from, is_gathering ? &team->flags->gather[round] : &team->flags->halve[round], value);
}

/* The blocks of this host and of those before it, which lie in two parts if they go round from the first to the last.
 */
static struct quoit_team_message blocks_to(struct quoit_team_state *team, uint32_t host, uint64_t offset,
                                           uint32_t count)
{
    const uint64_t *starts = team->starts;
    uint32_t end = team->host + 1, last_count = count > end ? count - end : 0;
    uint32_t first = end + last_count - count, last = team->host_count - last_count;
    uint64_t at = offset + starts[last], bytes = starts[team->host_count] - starts[last];
    send_before(
        team, host,
        &(struct quoit_team_message){.offset = at, .source = quoit_coll_address(team->fabric, at), .bytes = bytes});
    at = offset + starts[first];
    return (struct quoit_team_message){
        .offset = at, .source = quoit_coll_address(team->fabric, at), .bytes = starts[end] - starts[first]};
}

/* blocks: the offset of an exchange's; NULL: a barrier. */
static void disseminate(struct quoit_team_state *team, const uint64_t *blocks)
{
    uint64_t value = team->flag_base + ++team->dissemination_count;
    uint32_t round_count = quoit_schedule_dissemination_rounds(team->host_count);
    for (uint32_t round = 0; round < round_count; round++) {
        uint32_t host = host_of_round(team, round);
        struct quoit_team_message message = {.bytes = 0};
        if (blocks)
            message = blocks_to(team, host, *blocks, quoit_schedule_dissemination_blocks(team->host_count, round));
        send_to(team, host, &message, offsetof(struct quoit_team_flags, disseminate[round]), value);
        wait_for_flag(team, quoit_schedule_disseminate(team->host_count, team->host, round).receive,
                      &team->flags->disseminate[round], value);
    }
}

static bool exchanges_by_dissemination(const struct quoit_team_state *team, uint64_t bytes)
{
    const struct quoit_choice choice = quoit_team_choice(team);
    return quoit_choice_disseminates(&choice, bytes);
}

void quoit_team_before_exchange(struct quoit_team_state *team)
{
    static const struct quoit_team_message nothing;
    const struct quoit_team_message *const ready[QUOIT_TRAVEL_COUNT] = {&nothing, &nothing};
    if (exchanges_by_dissemination(team, team->starts[team->host_count]))
        disseminate(team, NULL);
    else
        quoit_team_round(team, ready);
}

static void exchange_by_rounds(struct quoit_team_state *team, uint64_t offset)
{
    uint32_t round_count = quoit_schedule_exchange_rounds(team->host_count);
    for (uint32_t round = 0; round < round_count; round++) {
        struct quoit_team_message messages[QUOIT_TRAVEL_COUNT];
        const struct quoit_team_message *sent[QUOIT_TRAVEL_COUNT] = {NULL, NULL};
        for (int travel = 0; travel < QUOIT_TRAVEL_COUNT; travel++) {
            if (!quoit_schedule_exchange_sends(team->host_count, round, travel))
                continue;
            uint32_t block = quoit_schedule_exchange(team->host_count, team->host, round, travel).send;
            uint64_t at = offset + team->starts[block];
            messages[travel] = (struct quoit_team_message){.offset = at,
                                                           .source = quoit_coll_address(team->fabric, at),
                                                           .bytes = team->starts[block + 1] - team->starts[block]};
            sent[travel] = &messages[travel];
        }
        quoit_team_round(team, sent);
    }
}

void quoit_team_exchange(struct quoit_team_state *team, uint64_t offset)
{
    if (exchanges_by_dissemination(team, team->starts[team->host_count]))
        disseminate(team, &offset);
    else
        exchange_by_rounds(team, offset);
}

void quoit_team_exchange_partials(struct quoit_team_state *team, const void *block, size_t bytes)
{
    size_t slice_bytes = quoit_team_slice_bytes(team);
    quoit_assert(bytes <= team->space.gather_bytes);
    quoit_assert(slice_bytes > 0);
    for (size_t at = 0; at < bytes; at += slice_bytes) {
        size_t slice = bytes - at < slice_bytes ? bytes - at : slice_bytes;
        uint64_t offset = team->space.table + team->table_turn++ % 2 * team->space.table_bytes;
        char *table = quoit_coll_address(team->fabric, offset);
        for (uint32_t host = 0; host <= team->host_count; host++)
            team->starts[host] = host * slice;
        memcpy(table + team->host * slice, (const char *)block + at, slice);
        quoit_team_exchange(team, offset);
        for (uint32_t host = 0; host < team->host_count; host++)
            memcpy(team->partials + host * bytes + at, table + host * slice, slice);
    }
}

struct arrivals_wait {
    const struct quoit_team_state *team;
    uint64_t base; /* base of this barrier's flag values */
    struct quoit_arrivals arrivals;
};

/* The number of arrivals that the neighbour on that side advertised. A neighbour in a later barrier has seen all
 * arrive. */
static uint32_t advertised(const struct arrivals_wait *wait, enum quoit_travel travel)
{
    uint64_t value = atomic_load_explicit(&wait->team->flags->arrivals[travel].value, memory_order_acquire);
    uint64_t most = wait->team->host_count - 1;
    if (value <= wait->base)
        return 0;
    return (uint32_t)(value - wait->base < most ? value - wait->base : most);
}

static bool arrivals_have_changed(void *arg)
{
    const struct arrivals_wait *wait = arg;
    return advertised(wait, QUOIT_NEXT) != wait->arrivals.known[QUOIT_NEXT] ||
           advertised(wait, QUOIT_PREVIOUS) != wait->arrivals.known[QUOIT_PREVIOUS];
}

static void advertise_arrivals(struct quoit_team_state *team, const struct arrivals_wait *wait,
                               enum quoit_travel travel)
{
    send_to(team, quoit_schedule_neighbour(team->host_count, team->host, travel), NULL,
            offsetof(struct quoit_team_flags, arrivals[travel]),
            wait->base + quoit_schedule_arrivals_advertise(team->host_count, &wait->arrivals, travel));
}

/* A value encodes the barrier and the number of arrivals: host_count values per barrier. */
static void sync_by_arrivals(struct quoit_team_state *team)
{
    struct arrivals_wait wait = {.team = team, .base = team->flag_base + team->arrivals_count++ * team->host_count};
    for (enum quoit_travel travel = QUOIT_NEXT; travel < QUOIT_TRAVEL_COUNT; travel++)
        advertise_arrivals(team, &wait, travel);
    while (!quoit_schedule_arrivals_are_all(team->host_count, &wait.arrivals)) {
        if (!arrivals_have_changed(&wait))
            quoit_self_wait(&team->fabric->self, arrivals_have_changed, &wait, team->call);
        for (enum quoit_travel travel = QUOIT_NEXT; travel < QUOIT_TRAVEL_COUNT; travel++) {
            uint32_t before = quoit_schedule_arrivals_advertise(team->host_count, &wait.arrivals, travel);
            wait.arrivals.known[travel] = advertised(&wait, travel);
            if (quoit_schedule_arrivals_advertise(team->host_count, &wait.arrivals, travel) != before)
                advertise_arrivals(team, &wait, travel);
        }
    }
}

void quoit_team_sync_hosts(struct quoit_team_state *team, void *unused)
{
    (void)unused;
    if (team->host_count == 1)
        return;
    if (team->has_host_barrier) {
        quoit_fabric_host_barrier(team->fabric, team->call);
        return;
    }
    if (exchanges_by_dissemination(team, 0)) {
        disseminate(team, NULL);
    } else if (!team->has_links || team->host_count <= EXCHANGE_HOSTS_MAX) {
        memset(team->starts, 0, (team->host_count + 1) * sizeof *team->starts);
        exchange_by_rounds(team, 0);
    } else if (team->are_neighbours) {
        sync_by_arrivals(team);
    } else {
        disseminate(team, NULL);
    }
}
