/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: each rule of docs/design/failover.md by itself: which frames count, what is retransmitted in which direction,
 * what may land, what is waited for, what is advertised. Method: the ring of host 1 of 5, given links that go down and
 * up, and hand-made frames. */
#include "ring/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ring/state.h"

#define REQUEST QUOIT_CLASS_REQUEST
#define REPLY   QUOIT_CLASS_REPLY
/* Link ends: this host's, those at the other ends of its links, and a distant one. */
#define OWN_RIGHT 3
#define FAR_LEFT  1
#define FAR_RIGHT 4
#define REMOTE    7

static const uint32_t pe_counts[] = {1, 1, 1, 1, 1};

static struct quoit_ring *make_ring(uint32_t slot_count)
{
    struct quoit_ring_config config = {
        .host_self = 1,
        .slot_count = slot_count,
        .outstanding_max = 8,
        .pending_reply_max = 4,
        .fetch_max = 2,
        .transit_pause_after_ns = 100,
        .transit_pause_ns = 10,
        .limits = {.host_count = 5, .chunk_bytes = 64, .segment_bytes = 1024, .pe_counts = pe_counts},
    };
    size_t bytes = quoit_ring_bytes(&config);
    void *memory = aligned_alloc(64, bytes);
    assert_non_null(memory);
    memset(memory, 0, bytes);
    return quoit_ring_init(memory, &config);
}

static enum quoit_status receive(struct quoit_ring *ring, enum quoit_side side, struct quoit_frame frame,
                                 struct quoit_verdict *verdict_out)
{
    enum quoit_class class = quoit_frame_class(frame.kind);
    frame.sequence = quoit_ring_expected(ring, side, class);
    enum quoit_status status = quoit_ring_receive(ring, side, class, &frame, 1, verdict_out);
    if (status == QUOIT_OK && verdict_out->kind == QUOIT_VERDICT_DELIVER && quoit_frame_needs_response(frame.kind))
        quoit_ring_reply(ring, &verdict_out->frame, 4711);
    quoit_ring_check_invariants(ring);
    return status;
}

static enum quoit_verdict_kind show(struct quoit_ring *ring, enum quoit_side side, struct quoit_frame frame)
{
    struct quoit_verdict verdict;
    assert_int_equal(receive(ring, side, frame, &verdict), QUOIT_OK);
    return verdict.kind;
}

static struct quoit_frame update(enum quoit_side from, uint32_t end, uint32_t state, uint32_t version)
{
    struct quoit_frame frame = {.kind = QUOIT_FRAME_TOPOLOGY,
                                .source_host = from == QUOIT_LEFT ? 0 : 2,
                                .dest_host = 1,
                                .topology_version = version};
    quoit_frame_add_update(&frame, end, state);
    return frame;
}

static void learn(struct quoit_ring *ring, enum quoit_side from, uint32_t end, uint32_t state, uint32_t version)
{
    assert_int_equal(show(ring, from, update(from, end, state, version)), QUOIT_VERDICT_CONSUMED);
}

/* A request of host 0 that arrives from the left, whichever side names its flow. */
static struct quoit_frame request_due(uint8_t kind, uint32_t number, uint32_t version)
{
    return (struct quoit_frame){.kind = kind,
                                .op = QUOIT_AMO_ADD,
                                .size = 8,
                                .flags = QUOIT_FRAME_RIGHT,
                                .dest_host = 1,
                                .bytes = 8,
                                .token = 1000 + number,
                                .flow_sequence = number,
                                .topology_version = version};
}

static struct quoit_verdict submit(struct quoit_ring *ring, uint8_t kind, uint16_t dest_host, uint64_t cookie)
{
    struct quoit_frame frame = {.kind = kind, .op = QUOIT_AMO_ADD, .size = 8, .dest_host = dest_host, .bytes = 8};
    struct quoit_verdict verdict;
    quoit_ring_submit(ring, &frame, 0, cookie, 1, &verdict);
    quoit_ring_check_invariants(ring);
    return verdict;
}

static struct quoit_verdict next_reply(struct quoit_ring *ring)
{
    struct quoit_verdict verdict;
    quoit_ring_next_reply(ring, 1, &verdict);
    quoit_ring_check_invariants(ring);
    return verdict;
}

static struct quoit_verdict next_resend(struct quoit_ring *ring)
{
    struct quoit_verdict verdict;
    quoit_ring_next_resend(ring, 1, &verdict);
    quoit_ring_check_invariants(ring);
    return verdict;
}

/* Sends all pending updates; returns their number. */
static uint32_t advertise_all(struct quoit_ring *ring)
{
    uint32_t count = 0;
    while (ring->links.links[QUOIT_LEFT].pending_count + ring->links.links[QUOIT_RIGHT].pending_count > 0) {
        struct quoit_verdict verdict = next_reply(ring);
        assert_int_equal(verdict.kind, QUOIT_VERDICT_SEND);
        assert_int_equal(verdict.frame.kind, QUOIT_FRAME_TOPOLOGY);
        assert_int_equal(verdict.frame.topology_version, ring->links.topology_version);
        count++;
    }
    return count;
}

static void updates_are_advertised_to_both_sides_once(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(8);
    learn(ring, QUOIT_LEFT, REMOTE, 1, 1);
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        struct quoit_verdict verdict = next_reply(ring);
        assert_int_equal(verdict.side, side);
        assert_int_equal(verdict.frame.kind, QUOIT_FRAME_TOPOLOGY);
        assert_int_equal(verdict.frame.size, 1);
        assert_int_equal(quoit_frame_update(&verdict.frame, 0).end, REMOTE);
        assert_int_equal(quoit_frame_update(&verdict.frame, 0).state, 1);
        assert_int_equal(verdict.frame.topology_version, 1);
        assert_int_equal(verdict.frame.dest_host, side == QUOIT_LEFT ? 0 : 2);
    }
    learn(ring, QUOIT_RIGHT, REMOTE, 1, 1);
    learn(ring, QUOIT_RIGHT, REMOTE, 0, 1); /* late */
    assert_int_equal(next_reply(ring).kind, QUOIT_VERDICT_NO_RESOURCE);
    struct quoit_ring_topology topology;
    quoit_ring_topology(ring, &topology);
    assert_int_equal(topology.topology_version, 1);
    assert_int_equal(topology.dead_count, 1);
    assert_int_equal(topology.dead_links[0], 3);
    struct quoit_verdict verdict;
    assert_int_equal(receive(ring, QUOIT_LEFT, update(QUOIT_LEFT, OWN_RIGHT, 1, 2), &verdict), QUOIT_INVALID);
    struct quoit_frame strange = update(QUOIT_LEFT, REMOTE, 2, 2);
    strange.source_host = 4; /* not the neighbour */
    assert_int_equal(receive(ring, QUOIT_LEFT, strange, &verdict), QUOIT_INVALID);
    free(ring);
}

static void updates_may_take_the_last_slot_and_go_first(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(2);
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 1, 0)), QUOIT_VERDICT_DELIVER);
    assert_int_equal(next_reply(ring).frame.kind, QUOIT_FRAME_ACK);
    learn(ring, QUOIT_RIGHT, REMOTE, 1, 1);
    struct quoit_frame passing = request_due(QUOIT_FRAME_ACK, 1, 1); /* from the right, to host 0 */
    passing.source_host = 3;
    passing.dest_host = 0;
    assert_int_equal(show(ring, QUOIT_RIGHT, passing), QUOIT_VERDICT_NO_RESOURCE);
    struct quoit_verdict verdict = next_reply(ring);
    assert_int_equal(verdict.side, QUOIT_LEFT);
    assert_int_equal(verdict.frame.kind, QUOIT_FRAME_TOPOLOGY);
    assert_int_equal(quoit_ring_credit(ring, QUOIT_LEFT, REPLY, 2), QUOIT_OK);
    assert_int_equal(show(ring, QUOIT_RIGHT, passing), QUOIT_VERDICT_SEND);
    free(ring);
}

static void only_frames_of_the_own_version_count(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(8);
    struct quoit_verdict verdict;
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 1, 1)), QUOIT_VERDICT_NO_RESOURCE);
    learn(ring, QUOIT_LEFT, REMOTE, 1, 1);
    learn(ring, QUOIT_RIGHT, REMOTE, 1, 1);
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 1, 0)), QUOIT_VERDICT_CONSUMED);
    assert_int_equal(ring->flows_in[5 + 0].executed, 0);
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 1, 1)), QUOIT_VERDICT_DELIVER);
    struct quoit_frame passing = request_due(QUOIT_FRAME_PUT, 1, 0);
    passing.dest_host = 2;
    assert_int_equal(show(ring, QUOIT_LEFT, passing), QUOIT_VERDICT_CONSUMED);
    passing.topology_version = 1;
    assert_int_equal(show(ring, QUOIT_LEFT, passing), QUOIT_VERDICT_SEND);
    struct quoit_frame early = request_due(QUOIT_FRAME_ACK, 0, 2); /* replies come after the updates */
    assert_int_equal(receive(ring, QUOIT_LEFT, early, &verdict), QUOIT_INVALID);
    free(ring);
}

static void executions_wait_until_nothing_old_can_land(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(16);
    learn(ring, QUOIT_LEFT, REMOTE, 1, 1);
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 1, 1)), QUOIT_VERDICT_NO_RESOURCE);
    learn(ring, QUOIT_RIGHT, REMOTE, 1, 50); /* as if host 2 were far ahead */
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 1, 1)), QUOIT_VERDICT_DELIVER);
    /* this end goes down: wait until the other one does */
    quoit_ring_link_down(ring, QUOIT_RIGHT);
    learn(ring, QUOIT_LEFT, OWN_RIGHT, 1, 2);
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 2, 2)), QUOIT_VERDICT_NO_RESOURCE);
    learn(ring, QUOIT_LEFT, FAR_RIGHT, 1, 3);
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 2, 3)), QUOIT_VERDICT_DELIVER);
    /* it comes up: the other end cannot land before it knows that this end is up, and must advertise its topology anew
     */
    quoit_ring_link_up(ring, QUOIT_RIGHT, 1);
    learn(ring, QUOIT_LEFT, OWN_RIGHT, 2, 4);
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 3, 4)), QUOIT_VERDICT_DELIVER);
    learn(ring, QUOIT_LEFT, FAR_RIGHT, 2, 5);
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 4, 5)), QUOIT_VERDICT_NO_RESOURCE);
    learn(ring, QUOIT_RIGHT, FAR_RIGHT, 2, 4);
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 4, 5)), QUOIT_VERDICT_NO_RESOURCE);
    learn(ring, QUOIT_RIGHT, OWN_RIGHT, 2, 5);
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 4, 5)), QUOIT_VERDICT_DELIVER);
    free(ring);
}

/* Ends in different epochs: the neighbour lands nothing before it knows that both are up in one, so nothing that it
 * could advertise is waited for. */
static void executions_do_not_wait_for_an_end_in_another_epoch(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(8);
    quoit_ring_link_down(ring, QUOIT_RIGHT);
    learn(ring, QUOIT_LEFT, OWN_RIGHT, 1, 1);
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 1, 1)), QUOIT_VERDICT_NO_RESOURCE);
    quoit_ring_link_up(ring, QUOIT_RIGHT, 1); /* the update that the other end went down is still on its way */
    learn(ring, QUOIT_LEFT, OWN_RIGHT, 2, 2);
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 1, 2)), QUOIT_VERDICT_DELIVER);
    free(ring);

    ring = make_ring(8);
    quoit_ring_link_down(ring, QUOIT_RIGHT);
    learn(ring, QUOIT_LEFT, FAR_RIGHT, 2, 3); /* the other end is up in the next epoch, this one is not yet */
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 1, 3)), QUOIT_VERDICT_DELIVER);
    free(ring);
}

static void a_link_is_used_when_both_ends_are_up_in_one_epoch(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(16);
    struct quoit_verdict verdict = submit(ring, QUOIT_FRAME_PUT, 2, 1);
    assert_int_equal(verdict.side, QUOIT_RIGHT);
    assert_true(verdict.may_land);
    learn(ring, QUOIT_LEFT, FAR_RIGHT, 1, 1);
    quoit_ring_link_down(ring, QUOIT_RIGHT);
    assert_false(quoit_ring_link_is_up(ring, QUOIT_RIGHT));
    quoit_ring_link_up(ring, QUOIT_RIGHT, 1);
    assert_int_equal(advertise_all(ring), 2); /* both ends in one frame for each side */
    verdict = next_resend(ring);
    assert_int_equal(verdict.side, QUOIT_LEFT);
    assert_int_equal(verdict.cookie, 1);
    learn(ring, QUOIT_RIGHT, FAR_RIGHT, 2, 4);
    verdict = next_resend(ring);
    assert_int_equal(verdict.side, QUOIT_RIGHT);
    assert_int_equal(verdict.frame.topology_version, 4);
    assert_false(verdict.may_land);
    assert_false(submit(ring, QUOIT_FRAME_PUT, 2, 2).may_land); /* host 2 may not know that we are up */
    learn(ring, QUOIT_RIGHT, OWN_RIGHT, 2, 4);
    assert_true(submit(ring, QUOIT_FRAME_PUT, 2, 3).may_land);
    free(ring);

    ring = make_ring(8);
    quoit_ring_link_down(ring, QUOIT_RIGHT);
    quoit_ring_link_up(ring, QUOIT_RIGHT, 1); /* the other end still seems to be up, but in the previous epoch */
    advertise_all(ring);
    assert_int_equal(submit(ring, QUOIT_FRAME_PUT, 2, 1).side, QUOIT_LEFT);
    free(ring);
}

/* Seven ends have changed when a link comes up: its neighbour learns of them from two frames, the other neighbour of
 * those that it may not have learned yet. A host that learns six changes from one frame adopts once. */
static void one_frame_carries_six_updates(void **state)
{
    (void)state;
    static const uint32_t ends[] = {0, 1, 5, 6, 7, 8, 9};
    struct quoit_ring *ring = make_ring(4);
    struct quoit_frame frame = update(QUOIT_LEFT, ends[0], 1, 6);
    for (uint32_t i = 1; i < QUOIT_LINK_UPDATES_MAX; i++)
        quoit_frame_add_update(&frame, ends[i], i + 1);
    assert_int_equal(show(ring, QUOIT_LEFT, frame), QUOIT_VERDICT_CONSUMED);
    assert_int_equal(ring->links.topology_version, 1 + 2 + 3 + 4 + 5 + 6);
    learn(ring, QUOIT_LEFT, ends[6], QUOIT_LINK_STATE_MAX, 7);
    assert_int_equal(ring->links.links[QUOIT_LEFT].pending_count, 7);
    struct quoit_verdict verdict = next_reply(ring);
    assert_int_equal(verdict.frame.size, QUOIT_LINK_UPDATES_MAX);
    for (uint32_t i = 0; i < QUOIT_LINK_UPDATES_MAX; i++) {
        assert_int_equal(quoit_frame_update(&verdict.frame, i).end, ends[i]);
        assert_int_equal(quoit_frame_update(&verdict.frame, i).state, i + 1);
    }
    verdict = next_reply(ring);
    assert_int_equal(verdict.side, QUOIT_LEFT);
    assert_int_equal(verdict.frame.size, 1);
    assert_int_equal(quoit_frame_update(&verdict.frame, 0).state, QUOIT_LINK_STATE_MAX);
    assert_int_equal(advertise_all(ring), 2);

    frame = update(QUOIT_LEFT, ends[0], 2, 8); /* one of six claims of an end of this host what it never advertised */
    quoit_frame_add_update(&frame, OWN_RIGHT, 1);
    assert_int_equal(receive(ring, QUOIT_LEFT, frame, &verdict), QUOIT_INVALID);
    free(ring);
}

static void requests_are_retransmitted_in_the_other_direction_before_new_ones(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(4);
    for (uint64_t cookie = 1; cookie <= 3; cookie++)
        assert_int_equal(submit(ring, cookie == 2 ? QUOIT_FRAME_GET : QUOIT_FRAME_PUT, 3, cookie).side, QUOIT_RIGHT);
    assert_int_equal(next_resend(ring).kind, QUOIT_VERDICT_NO_RESOURCE);
    quoit_ring_link_down(ring, QUOIT_RIGHT);
    for (uint64_t cookie = 1; cookie <= 3; cookie++) {
        assert_int_equal(submit(ring, QUOIT_FRAME_PUT, 3, 4).kind, QUOIT_VERDICT_NO_RESOURCE);
        struct quoit_verdict verdict = next_resend(ring);
        assert_int_equal(verdict.kind, QUOIT_VERDICT_SEND);
        assert_int_equal(verdict.side, QUOIT_LEFT);
        assert_int_equal(verdict.cookie, cookie);
        assert_int_equal(verdict.frame.flow_sequence, cookie);
        assert_int_equal(verdict.frame.flags, QUOIT_FRAME_RIGHT | QUOIT_FRAME_ORDERED);
        assert_int_equal(verdict.frame.topology_version, 1);
        assert_false(verdict.may_land);
    }
    assert_int_equal(quoit_ring_credit(ring, QUOIT_LEFT, REQUEST, 2), QUOIT_OK);
    assert_int_equal(submit(ring, QUOIT_FRAME_PUT, 3, 4).frame.flow_sequence, 4);
    quoit_ring_link_down(ring, QUOIT_LEFT); /* cut off: all wait */
    assert_int_equal(next_resend(ring).kind, QUOIT_VERDICT_NO_RESOURCE);
    assert_int_equal(submit(ring, QUOIT_FRAME_PUT, 3, 5).kind, QUOIT_VERDICT_NO_RESOURCE);
    free(ring);
}

static void repeated_requests_get_a_response_but_are_not_executed(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(16);
    for (uint32_t number = 1; number <= 3; number++)
        assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_AMO_FETCH, number, 0)), QUOIT_VERDICT_DELIVER);
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 4, 0)), QUOIT_VERDICT_DELIVER);
    assert_int_equal(next_reply(ring).frame.flow_sequence, 4);
    learn(ring, QUOIT_LEFT, REMOTE, 1, 1); /* the other two responses are discarded */
    learn(ring, QUOIT_RIGHT, REMOTE, 1, 1);
    assert_int_equal(advertise_all(ring), 2);
    assert_int_equal(next_reply(ring).kind, QUOIT_VERDICT_NO_RESOURCE);
    for (uint32_t number = 2; number <= 4; number++) {
        uint8_t kind = number == 4 ? QUOIT_FRAME_PUT : QUOIT_FRAME_AMO_FETCH;
        assert_int_equal(show(ring, QUOIT_LEFT, request_due(kind, number, 1)), QUOIT_VERDICT_CONSUMED);
    }
    for (uint32_t number = 2; number <= 3; number++) {
        struct quoit_frame response = next_reply(ring).frame;
        assert_int_equal(response.kind, QUOIT_FRAME_VALUE);
        assert_int_equal(response.token, 1000 + number);
        assert_int_equal(response.operand, 4711);
        assert_int_equal(response.flow_sequence, 4);
    }
    assert_int_equal(next_reply(ring).kind, QUOIT_VERDICT_NO_RESOURCE); /* the responses acknowledged the put */
    assert_int_equal(show(ring, QUOIT_LEFT, request_due(QUOIT_FRAME_PUT, 4, 1)), QUOIT_VERDICT_CONSUMED);
    assert_int_equal(next_reply(ring).frame.kind, QUOIT_FRAME_ACK);
    struct quoit_verdict verdict;
    struct quoit_frame forgotten = request_due(QUOIT_FRAME_AMO_FETCH, 1, 1); /* a third outstanding one: fetch_max is 2
                                                                              */
    assert_int_equal(receive(ring, QUOIT_LEFT, forgotten, &verdict), QUOIT_INVALID);
    free(ring);
}

static void fetches_of_a_flow_are_bounded(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(8);
    assert_int_equal(submit(ring, QUOIT_FRAME_AMO_FETCH, 2, 1).kind, QUOIT_VERDICT_SEND);
    assert_int_equal(submit(ring, QUOIT_FRAME_AMO_FETCH, 2, 2).kind, QUOIT_VERDICT_SEND);
    assert_int_equal(submit(ring, QUOIT_FRAME_AMO_FETCH, 2, 3).kind, QUOIT_VERDICT_NO_RESOURCE);
    assert_int_equal(submit(ring, QUOIT_FRAME_GET, 2, 3).kind, QUOIT_VERDICT_SEND);
    assert_int_equal(submit(ring, QUOIT_FRAME_AMO_FETCH, 3, 4).kind, QUOIT_VERDICT_SEND);
    struct quoit_frame response = {.kind = QUOIT_FRAME_VALUE,
                                   .flags = QUOIT_FRAME_RIGHT,
                                   .source_host = 2,
                                   .dest_host = 1,
                                   .token = ring->pool.entries[0].frame.token,
                                   .flow_sequence = 1};
    assert_int_equal(show(ring, QUOIT_RIGHT, response), QUOIT_VERDICT_DELIVER);
    assert_int_equal(submit(ring, QUOIT_FRAME_AMO_FETCH, 2, 5).kind, QUOIT_VERDICT_SEND);
    free(ring);
}

static void a_link_starts_anew(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(16);
    submit(ring, QUOIT_FRAME_PUT, 2, 1);
    learn(ring, QUOIT_RIGHT, REMOTE, 0, 0);
    quoit_ring_link_down(ring, QUOIT_RIGHT);
    assert_false(quoit_ring_credit_due(ring, QUOIT_RIGHT, REPLY, true));
    quoit_ring_link_up(ring, QUOIT_RIGHT, 7);
    assert_int_equal(quoit_ring_expected(ring, QUOIT_RIGHT, REPLY), 1);
    assert_int_equal(quoit_ring_consumed_total(ring, QUOIT_RIGHT, REPLY), 0);
    learn(ring, QUOIT_RIGHT, FAR_RIGHT, 14, 28);
    struct quoit_verdict verdict = next_resend(ring);
    assert_int_equal(verdict.side, QUOIT_RIGHT);
    assert_int_equal(verdict.frame.sequence, 1);
    assert_int_equal(verdict.slot_index, 0);
    /* host 3 sends its request against the direction of its flow; the response takes the open direction */
    learn(ring, QUOIT_RIGHT, OWN_RIGHT, 14, 28);
    learn(ring, QUOIT_LEFT, FAR_LEFT, 0, 28);
    struct quoit_frame frame = request_due(QUOIT_FRAME_GET, 1, 29);
    frame.source_host = 3;
    frame.flags = 0;
    learn(ring, QUOIT_LEFT, 5, 1, 29); /* the link between hosts 2 and 3 */
    learn(ring, QUOIT_RIGHT, 5, 1, 29);
    assert_int_equal(show(ring, QUOIT_LEFT, frame), QUOIT_VERDICT_DELIVER);
    advertise_all(ring);
    verdict = next_reply(ring);
    assert_int_equal(verdict.frame.kind, QUOIT_FRAME_DATA);
    assert_int_equal(verdict.side, QUOIT_LEFT);
    free(ring);
}

/* From the left, in one frame: the current state of each end. */
static void learn_all(struct quoit_ring *ring, uint32_t count, const struct quoit_link_update updates[])
{
    struct quoit_verdict verdict;
    struct quoit_frame frame = update(QUOIT_LEFT, updates[0].end, updates[0].state, ring->links.topology_version);
    for (uint32_t i = 1; i < count; i++)
        quoit_frame_add_update(&frame, updates[i].end, updates[i].state);
    assert_int_equal(receive(ring, QUOIT_LEFT, frame, &verdict), QUOIT_OK);
    quoit_ring_check_invariants(ring);
}

static void assert_cut(const struct quoit_ring *ring, uint32_t dead_count, uint32_t cut_count)
{
    struct quoit_ring_topology topology;
    quoit_ring_topology(ring, &topology);
    assert_int_equal(topology.dead_count, dead_count);
    assert_int_equal(topology.cut_count, cut_count);
}

/* From fewer than two known dead links to two or more: which ones, and how many, does not matter. */
static void cuts_of_the_ring_are_counted(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(8);
    learn_all(ring, 1, (struct quoit_link_update[]){{7, 1}}); /* of link 3 */
    assert_cut(ring, 1, 0);
    learn_all(ring, 1, (struct quoit_link_update[]){{5, 1}}); /* of link 2 */
    assert_cut(ring, 2, 1);
    quoit_ring_link_down(ring, QUOIT_RIGHT);
    assert_cut(ring, 3, 1);
    learn_all(ring, 2, (struct quoit_link_update[]){{7, 2}, {8, 2}});
    assert_cut(ring, 2, 1); /* others, but never fewer */
    learn_all(ring, 3, (struct quoit_link_update[]){{5, 2}, {6, 2}, {7, 3}});
    assert_cut(ring, 2, 1); /* all at once: fewer than two were never known */
    learn_all(ring, 2, (struct quoit_link_update[]){{7, 4}, {8, 4}});
    assert_cut(ring, 1, 1);
    learn_all(ring, 1, (struct quoit_link_update[]){{5, 3}});
    assert_cut(ring, 2, 2);
    quoit_ring_link_up(ring, QUOIT_RIGHT, 1);
    learn_all(ring, 1, (struct quoit_link_update[]){{4, 2}});
    assert_cut(ring, 1, 2);
    quoit_ring_link_down(ring, QUOIT_LEFT);
    assert_cut(ring, 2, 3);
    free(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_advertised_to_both_sides_once),
        cmocka_unit_test(updates_may_take_the_last_slot_and_go_first),
        cmocka_unit_test(only_frames_of_the_own_version_count),
        cmocka_unit_test(executions_wait_until_nothing_old_can_land),
        cmocka_unit_test(executions_do_not_wait_for_an_end_in_another_epoch),
        cmocka_unit_test(a_link_is_used_when_both_ends_are_up_in_one_epoch),
        cmocka_unit_test(one_frame_carries_six_updates),
        cmocka_unit_test(requests_are_retransmitted_in_the_other_direction_before_new_ones),
        cmocka_unit_test(repeated_requests_get_a_response_but_are_not_executed),
        cmocka_unit_test(fetches_of_a_flow_are_bounded),
        cmocka_unit_test(a_link_starts_anew),
        cmocka_unit_test(cuts_of_the_ring_are_counted),
    };
    return cmocka_run_group_tests_name("ring.failover", tests, NULL, NULL);
}
