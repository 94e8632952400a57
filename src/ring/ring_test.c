/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the verdict of each call, field by field, and the refusal of each frame that no correct peer sends.
 * Method: the ring of host 1 of 5, given hand-made frames. */
#include "ring/ring.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "ring/state.h"

#define REQUEST QUOIT_CLASS_REQUEST
#define REPLY   QUOIT_CLASS_REPLY

static const uint32_t pe_counts[] = {2, 2, 2, 2, 2};

static struct quoit_ring *make_ring(uint32_t slot_count, uint32_t outstanding_max, uint32_t pending_reply_max)
{
    struct quoit_ring_config config = {
        .host_self = 1,
        .slot_count = slot_count,
        .outstanding_max = outstanding_max,
        .pending_reply_max = pending_reply_max,
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

static struct quoit_frame put_to(uint16_t dest_host)
{
    return (struct quoit_frame){
        .kind = QUOIT_FRAME_PUT, .dest_host = dest_host, .source_pe = 1, .bytes = 16, .offset = 32, .trace = 99};
}

/* A request of host 0 to host 1 from the left: number `number` of its flow. */
static struct quoit_frame request_due(const struct quoit_ring *ring, uint8_t kind, uint32_t number)
{
    return (struct quoit_frame){.sequence = quoit_ring_expected(ring, QUOIT_LEFT, REQUEST),
                                .kind = kind,
                                .op = QUOIT_AMO_ADD,
                                .size = 4,
                                .flags = QUOIT_FRAME_RIGHT,
                                .source_host = 0,
                                .dest_host = 1,
                                .source_pe = 1,
                                .dest_pe = 0,
                                .bytes = 8,
                                .offset = 64,
                                .token = 1000 + number,
                                .flow_sequence = number,
                                .operand = 4,
                                .trace = 500 + number};
}

static struct quoit_verdict submit(struct quoit_ring *ring, struct quoit_frame frame, uint64_t cookie)
{
    struct quoit_verdict verdict;
    quoit_ring_submit(ring, &frame, 0, cookie, 1, &verdict);
    quoit_ring_check_invariants(ring);
    return verdict;
}

static enum quoit_status receive(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class,
                                 struct quoit_frame frame, struct quoit_verdict *verdict_out)
{
    return quoit_ring_receive(ring, side, class, &frame, 1, verdict_out);
}

static void must_refuse(struct quoit_ring *ring, enum quoit_side side, enum quoit_class class, struct quoit_frame frame)
{
    struct quoit_verdict verdict;
    uint64_t expected = quoit_ring_expected(ring, side, class);
    assert_int_equal(receive(ring, side, class, frame, &verdict), QUOIT_INVALID);
    assert_int_equal(quoit_ring_expected(ring, side, class), expected);
    quoit_ring_check_invariants(ring);
}

static void a_submitted_request_is_filled_in(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(4, 8, 2);
    struct quoit_frame frame = put_to(3);
    frame.flags = QUOIT_FRAME_ORDERED | QUOIT_FRAME_LANDED;
    struct quoit_verdict verdict = submit(ring, frame, 7);
    assert_int_equal(verdict.kind, QUOIT_VERDICT_SEND);
    assert_int_equal(verdict.side, QUOIT_RIGHT);
    assert_int_equal(verdict.class, REQUEST);
    assert_int_equal(verdict.slot_index, 0);
    assert_false(verdict.may_land);
    assert_int_equal(verdict.frame.sequence, 1);
    assert_int_equal(verdict.frame.source_host, 1);
    assert_int_equal(verdict.frame.flags, QUOIT_FRAME_RIGHT | QUOIT_FRAME_ORDERED);
    assert_int_equal(verdict.frame.flow_sequence, 1);
    assert_int_equal(verdict.frame.trace, 99);
    assert_int_equal(verdict.frame.offset, 32);
    verdict = submit(ring, put_to(2), 8);
    assert_int_equal(verdict.slot_index, 1);
    assert_true(verdict.may_land);
    assert_int_equal(verdict.frame.sequence, 2);
    assert_int_equal(verdict.frame.flow_sequence, 1); /* another flow */
    verdict = submit(ring, put_to(3), 9);
    assert_int_equal(verdict.frame.flow_sequence, 2);
    verdict = submit(ring, put_to(0), 10);
    assert_int_equal(verdict.side, QUOIT_LEFT);
    assert_int_equal(verdict.frame.flags, 0);
    assert_int_equal(verdict.frame.sequence, 1);
    free(ring);
}

static void submission_holds_at_the_bubble_and_at_the_bound(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(2, 2, 1);
    assert_int_equal(submit(ring, put_to(2), 1).kind, QUOIT_VERDICT_SEND);
    struct quoit_verdict verdict = submit(ring, put_to(2), 2);
    assert_int_equal(verdict.kind, QUOIT_VERDICT_NO_RESOURCE);
    assert_int_equal(verdict.retry_at_ns, 0);
    assert_int_equal(submit(ring, put_to(0), 3).kind, QUOIT_VERDICT_SEND); /* the other queue has its own slots */
    assert_int_equal(quoit_ring_credit(ring, QUOIT_RIGHT, REQUEST, 1), QUOIT_OK);
    assert_int_equal(submit(ring, put_to(2), 4).kind, QUOIT_VERDICT_NO_RESOURCE); /* two are outstanding */
    struct quoit_frame ack = {.sequence = 1,
                              .kind = QUOIT_FRAME_ACK,
                              .flags = QUOIT_FRAME_RIGHT,
                              .source_host = 2,
                              .dest_host = 1,
                              .flow_sequence = 1};
    assert_int_equal(receive(ring, QUOIT_RIGHT, REPLY, ack, &verdict), QUOIT_OK);
    assert_int_equal(verdict.kind, QUOIT_VERDICT_CONSUMED);
    assert_int_equal(submit(ring, put_to(2), 5).kind, QUOIT_VERDICT_NO_RESOURCE); /* complete, but not yet taken */
    uint64_t cookie;
    assert_true(quoit_ring_next_completion(ring, &cookie));
    assert_int_equal(cookie, 1);
    verdict = submit(ring, put_to(2), 6);
    assert_int_equal(verdict.kind, QUOIT_VERDICT_SEND);
    assert_int_equal(verdict.slot_index, 1);
    ack.sequence = 2;
    ack.flow_sequence = 3;
    must_refuse(ring, QUOIT_RIGHT, REPLY, ack); /* never sent */
    ack.flow_sequence = 0;
    must_refuse(ring, QUOIT_RIGHT, REPLY, ack); /* goes back */
    ack.source_host = 3;
    ack.flow_sequence = 1;
    must_refuse(ring, QUOIT_RIGHT, REPLY, ack); /* nothing was sent there */
    free(ring);
}

static void frames_of_no_correct_peer_are_refused(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(4, 8, 2);
    const struct quoit_frame good = request_due(ring, QUOIT_FRAME_PUT, 1);
    struct quoit_frame bad = good;
    bad.sequence = 2;
    must_refuse(ring, QUOIT_LEFT, REQUEST, bad);
    must_refuse(ring, QUOIT_LEFT, REPLY, good);
    bad = good;
    bad.flow_sequence = 2; /* one is missing */
    must_refuse(ring, QUOIT_LEFT, REQUEST, bad);
    bad = good;
    bad.offset = 1020;
    must_refuse(ring, QUOIT_LEFT, REQUEST, bad);
    bad = good;
    bad.source_host = 1; /* travelled all around the ring */
    bad.dest_host = 2;
    must_refuse(ring, QUOIT_LEFT, REQUEST, bad);
    bad = good;
    bad.source_host = 3; /* passed its destination */
    bad.dest_host = 4;
    must_refuse(ring, QUOIT_LEFT, REQUEST, bad);
    bad = good;
    bad.dest_host = 2; /* only the last sender may land */
    bad.flags |= QUOIT_FRAME_LANDED;
    must_refuse(ring, QUOIT_LEFT, REQUEST, bad);
    struct quoit_frame response = {
        .sequence = 1, .kind = QUOIT_FRAME_VALUE, .flags = QUOIT_FRAME_RIGHT, .source_host = 2, .dest_host = 1};
    must_refuse(ring, QUOIT_RIGHT, REPLY, response); /* no such request */
    struct quoit_verdict verdict;
    bad = good;
    bad.flags |= QUOIT_FRAME_LANDED;
    assert_int_equal(receive(ring, QUOIT_LEFT, REQUEST, bad, &verdict), QUOIT_OK);
    assert_int_equal(verdict.kind, QUOIT_VERDICT_DELIVER);
    free(ring);
}

static void transit_passes_on_what_it_got(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(2, 8, 2);
    struct quoit_verdict verdict;
    assert_int_equal(submit(ring, put_to(3), 1).kind, QUOIT_VERDICT_SEND);
    struct quoit_frame frame = request_due(ring, QUOIT_FRAME_PUT, 41);
    frame.dest_host = 2;
    assert_int_equal(receive(ring, QUOIT_LEFT, REQUEST, frame, &verdict), QUOIT_OK);
    assert_int_equal(verdict.kind, QUOIT_VERDICT_SEND); /* the slot that an injection may not take */
    assert_int_equal(verdict.side, QUOIT_RIGHT);
    assert_int_equal(verdict.class, REQUEST);
    assert_int_equal(verdict.slot_index, 1);
    assert_true(verdict.may_land);
    frame.sequence = 2;
    assert_memory_equal(&verdict.frame, &frame, sizeof frame);
    assert_int_equal(quoit_ring_expected(ring, QUOIT_LEFT, REQUEST), 2);
    assert_int_equal(receive(ring, QUOIT_LEFT, REQUEST, frame, &verdict), QUOIT_OK);
    assert_int_equal(verdict.kind, QUOIT_VERDICT_NO_RESOURCE);
    assert_int_equal(verdict.retry_at_ns, 0);
    assert_int_equal(quoit_ring_expected(ring, QUOIT_LEFT, REQUEST), 2);
    assert_true(quoit_ring_credit_due(ring, QUOIT_LEFT, REQUEST, false));
    assert_int_equal(quoit_ring_consumed_total(ring, QUOIT_LEFT, REQUEST), 1);
    quoit_ring_keep_slots(ring, QUOIT_LEFT, REQUEST, 1); /* it is still being relayed */
    assert_false(quoit_ring_credit_due(ring, QUOIT_LEFT, REQUEST, true));
    assert_int_equal(quoit_ring_consumed_total(ring, QUOIT_LEFT, REQUEST), 0);
    quoit_ring_check_invariants(ring);
    assert_false(quoit_ring_is_quiescent(ring));
    quoit_ring_keep_slots(ring, QUOIT_LEFT, REQUEST, 0);
    assert_true(quoit_ring_credit_due(ring, QUOIT_LEFT, REQUEST, false));
    quoit_ring_credit_advertised(ring, QUOIT_LEFT, REQUEST);
    assert_false(quoit_ring_credit_due(ring, QUOIT_LEFT, REQUEST, true));
    assert_int_equal(quoit_ring_credit(ring, QUOIT_RIGHT, REQUEST, 3), QUOIT_INVALID);
    assert_int_equal(quoit_ring_credit(ring, QUOIT_RIGHT, REQUEST, 2), QUOIT_OK);
    assert_int_equal(receive(ring, QUOIT_LEFT, REQUEST, frame, &verdict), QUOIT_OK);
    assert_int_equal(verdict.kind, QUOIT_VERDICT_SEND);
    free(ring);
}

/* Delivers a request from host 0 and responds, if it needs a response. */
static enum quoit_verdict_kind serve(struct quoit_ring *ring, uint8_t kind, uint32_t number)
{
    struct quoit_verdict verdict;
    assert_int_equal(receive(ring, QUOIT_LEFT, REQUEST, request_due(ring, kind, number), &verdict), QUOIT_OK);
    if (verdict.kind == QUOIT_VERDICT_DELIVER && quoit_frame_needs_response(kind))
        quoit_ring_reply(ring, &verdict.frame, 4711);
    quoit_ring_check_invariants(ring);
    return verdict.kind;
}

static struct quoit_frame next_reply(struct quoit_ring *ring)
{
    struct quoit_verdict verdict;
    quoit_ring_next_reply(ring, 1, &verdict);
    quoit_ring_check_invariants(ring);
    if (verdict.kind == QUOIT_VERDICT_NO_RESOURCE)
        return (struct quoit_frame){.kind = QUOIT_FRAME_NONE};
    assert_int_equal(verdict.class, REPLY);
    assert_int_equal(verdict.side, quoit_ring_opposite(quoit_ring_flow_side(&verdict.frame)));
    return verdict.frame;
}

static void responses_carry_what_the_source_needs(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(8, 8, 4);
    serve(ring, QUOIT_FRAME_GET, 1);
    serve(ring, QUOIT_FRAME_GET_STRIDED, 2);
    serve(ring, QUOIT_FRAME_AMO_FETCH, 3);
    struct quoit_frame expected = {.sequence = 1,
                                   .kind = QUOIT_FRAME_DATA,
                                   .flags = QUOIT_FRAME_RIGHT,
                                   .source_host = 1,
                                   .dest_host = 0,
                                   .source_pe = 0,
                                   .dest_pe = 1,
                                   .bytes = 8,
                                   .offset = 64,
                                   .token = 1001,
                                   .flow_sequence = 3,
                                   .operand = 4,
                                   .trace = 501};
    struct quoit_frame frame = next_reply(ring);
    assert_memory_equal(&frame, &expected, sizeof frame);
    expected.sequence = 2;
    expected.size = 4;
    expected.token = 1002;
    expected.trace = 502;
    frame = next_reply(ring);
    assert_memory_equal(&frame, &expected, sizeof frame);
    expected = (struct quoit_frame){.sequence = 3,
                                    .kind = QUOIT_FRAME_VALUE,
                                    .flags = QUOIT_FRAME_RIGHT,
                                    .source_host = 1,
                                    .dest_host = 0,
                                    .dest_pe = 1,
                                    .token = 1003,
                                    .flow_sequence = 3,
                                    .operand = 4711,
                                    .trace = 503};
    frame = next_reply(ring);
    assert_memory_equal(&frame, &expected, sizeof frame);
    assert_int_equal(next_reply(ring).kind, QUOIT_FRAME_NONE); /* the responses acknowledged everything */
    free(ring);
}

static void requests_that_ask_wait_for_room(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(4, 8, 2);
    assert_int_equal(serve(ring, QUOIT_FRAME_GET, 1), QUOIT_VERDICT_DELIVER);
    assert_int_equal(serve(ring, QUOIT_FRAME_AMO_FETCH, 2), QUOIT_VERDICT_DELIVER);
    assert_int_equal(serve(ring, QUOIT_FRAME_GET, 3), QUOIT_VERDICT_NO_RESOURCE);
    assert_int_equal(serve(ring, QUOIT_FRAME_PUT, 3), QUOIT_VERDICT_DELIVER); /* needs none */
    assert_int_equal(next_reply(ring).flow_sequence, 3);
    assert_int_equal(serve(ring, QUOIT_FRAME_GET, 4), QUOIT_VERDICT_DELIVER);
    free(ring);
}

static void acknowledgements_gather_but_do_not_starve(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(64, 8, 2);
    for (uint32_t number = 1; number <= 5; number++)
        serve(ring, QUOIT_FRAME_PUT, number);
    struct quoit_frame frame = next_reply(ring);
    assert_int_equal(frame.kind, QUOIT_FRAME_ACK);
    assert_int_equal(frame.flow_sequence, 5);
    assert_int_equal(frame.dest_host, 0);
    assert_int_equal(frame.flags, QUOIT_FRAME_RIGHT);
    assert_int_equal(next_reply(ring).kind, QUOIT_FRAME_NONE);
    /* one put of host 4, then an endless stream of gets of host 0 */
    struct quoit_verdict verdict;
    struct quoit_frame put = request_due(ring, QUOIT_FRAME_PUT, 1);
    put.source_host = 4;
    assert_int_equal(receive(ring, QUOIT_LEFT, REQUEST, put, &verdict), QUOIT_OK);
    uint32_t response_count = 0;
    for (uint32_t number = 6;; number++, response_count++) {
        serve(ring, QUOIT_FRAME_GET, number);
        frame = next_reply(ring);
        if (frame.kind == QUOIT_FRAME_ACK)
            break;
        assert_in_range(response_count, 0, QUOIT_RING_RESPONSES_BEFORE_ACK);
    }
    assert_int_equal(response_count, QUOIT_RING_RESPONSES_BEFORE_ACK);
    assert_int_equal(frame.dest_host, 4);
    assert_int_equal(frame.flow_sequence, 1);
    free(ring);
}

static void both_sides_reply_in_turn(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(8, 8, 4);
    struct quoit_verdict verdict;
    for (uint32_t number = 1; number <= 2; number++) {
        serve(ring, QUOIT_FRAME_GET, number);
        struct quoit_frame get = request_due(ring, QUOIT_FRAME_GET, number);
        get.sequence = quoit_ring_expected(ring, QUOIT_RIGHT, REQUEST);
        get.source_host = 2;
        get.flags = 0;
        assert_int_equal(receive(ring, QUOIT_RIGHT, REQUEST, get, &verdict), QUOIT_OK);
        quoit_ring_reply(ring, &verdict.frame, 0);
    }
    uint32_t dest_sum = 0;
    for (int i = 0; i < 2; i++) {
        uint16_t one = next_reply(ring).dest_host;
        uint16_t other = next_reply(ring).dest_host;
        assert_true(one != other);
        dest_sum += one + other;
    }
    assert_int_equal(dest_sum, 4);
    free(ring);
}

static void quiescence_waits_for_everything(void **state)
{
    (void)state;
    struct quoit_ring *ring = make_ring(4, 8, 2);
    struct quoit_verdict verdict;
    uint64_t cookie;
    assert_true(quoit_ring_is_quiescent(ring));
    verdict = submit(ring, put_to(2), 5);
    assert_false(quoit_ring_is_quiescent(ring));
    assert_int_equal(quoit_ring_credit(ring, QUOIT_RIGHT, REQUEST, 1), QUOIT_OK);
    assert_false(quoit_ring_is_quiescent(ring));
    struct quoit_frame ack = {.sequence = 1,
                              .kind = QUOIT_FRAME_ACK,
                              .flags = QUOIT_FRAME_RIGHT,
                              .source_host = 2,
                              .dest_host = 1,
                              .flow_sequence = 1};
    assert_int_equal(receive(ring, QUOIT_RIGHT, REPLY, ack, &verdict), QUOIT_OK);
    quoit_ring_credit_advertised(ring, QUOIT_RIGHT, REPLY);
    assert_false(quoit_ring_is_quiescent(ring)); /* the completion is not taken */
    assert_true(quoit_ring_next_completion(ring, &cookie));
    assert_true(quoit_ring_is_quiescent(ring));
    serve(ring, QUOIT_FRAME_PUT, 1);
    assert_false(quoit_ring_is_quiescent(ring)); /* a credit to advertise, an acknowledgement to send */
    quoit_ring_credit_advertised(ring, QUOIT_LEFT, REQUEST);
    assert_false(quoit_ring_is_quiescent(ring));
    assert_int_equal(next_reply(ring).kind, QUOIT_FRAME_ACK);
    assert_false(quoit_ring_is_quiescent(ring)); /* its slot's credit has not returned */
    assert_int_equal(quoit_ring_credit(ring, QUOIT_LEFT, REPLY, 1), QUOIT_OK);
    assert_true(quoit_ring_is_quiescent(ring));
    serve(ring, QUOIT_FRAME_GET, 2);
    quoit_ring_credit_advertised(ring, QUOIT_LEFT, REQUEST);
    assert_false(quoit_ring_is_quiescent(ring));
    free(ring);
}

static void as_many_outstanding_as_tokens_tell_apart(void **state)
{
    (void)state;
    int status;
    free(make_ring(4, QUOIT_RING_OUTSTANDING_MAX, 4));
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        close(STDERR_FILENO);
        free(make_ring(4, QUOIT_RING_OUTSTANDING_MAX + 1, 4));
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_submitted_request_is_filled_in),
        cmocka_unit_test(submission_holds_at_the_bubble_and_at_the_bound),
        cmocka_unit_test(frames_of_no_correct_peer_are_refused),
        cmocka_unit_test(transit_passes_on_what_it_got),
        cmocka_unit_test(responses_carry_what_the_source_needs),
        cmocka_unit_test(requests_that_ask_wait_for_room),
        cmocka_unit_test(acknowledgements_gather_but_do_not_starve),
        cmocka_unit_test(both_sides_reply_in_turn),
        cmocka_unit_test(quiescence_waits_for_everything),
        cmocka_unit_test(as_many_outstanding_as_tokens_tell_apart),
    };
    return cmocka_run_group_tests_name("ring.ring", tests, NULL, NULL);
}
