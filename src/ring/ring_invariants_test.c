/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: each invariant that quoit_ring_check_invariants() asserts can fail.
 * Method: a ring with outstanding requests, responses and acknowledgements is corrupted in one place; a child process
 * checks it and must abort naming the condition that this breaks. */
#include "ring/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "ring/state.h"

#define REQUEST QUOIT_CLASS_REQUEST
#define REPLY   QUOIT_CLASS_REPLY

static const uint32_t pe_counts[] = {1, 1, 1};

static void bring_request(struct quoit_ring *ring, uint8_t kind, uint16_t source_host, uint32_t number)
{
    enum quoit_side side = source_host == 0 ? QUOIT_LEFT : QUOIT_RIGHT;
    struct quoit_frame frame = {.sequence = quoit_ring_expected(ring, side, REQUEST),
                                .kind = kind,
                                .flags = side == QUOIT_LEFT ? QUOIT_FRAME_RIGHT : 0,
                                .source_host = source_host,
                                .dest_host = 1,
                                .bytes = 8,
                                .token = number,
                                .flow_sequence = number};
    struct quoit_verdict verdict;
    assert_int_equal(quoit_ring_receive(ring, side, REQUEST, &frame, 1, &verdict), QUOIT_OK);
    assert_int_equal(verdict.kind, QUOIT_VERDICT_DELIVER);
    if (quoit_frame_needs_response(kind))
        quoit_ring_reply(ring, &verdict.frame, 0);
}

/* Host 1 of 3: puts 1..3 and gets 4, 5 to host 2 outstanding, puts 1, 2 of them complete and one of these taken;
 * responses to host 0 and host 2 waiting, acknowledgements pending. */
static struct quoit_ring *make_busy_ring(void)
{
    struct quoit_ring_config config = {
        .host_self = 1,
        .slot_count = 8,
        .outstanding_max = 8,
        .pending_reply_max = 4,
        .fetch_max = 4,
        .transit_pause_after_ns = 100,
        .transit_pause_ns = 10,
        .limits = {.host_count = 3, .chunk_bytes = 64, .segment_bytes = 64, .pe_counts = pe_counts},
    };
    size_t bytes = quoit_ring_bytes(&config);
    void *memory = aligned_alloc(64, bytes);
    assert_non_null(memory);
    memset(memory, 0, bytes);
    struct quoit_ring *ring = quoit_ring_init(memory, &config);
    struct quoit_verdict verdict;
    for (uint32_t i = 0; i < 5; i++) {
        struct quoit_frame frame = {.kind = i < 3 ? QUOIT_FRAME_PUT : QUOIT_FRAME_GET, .dest_host = 2, .bytes = 8};
        quoit_ring_submit(ring, &frame, 0, i + 1, 1, &verdict);
        assert_int_equal(verdict.kind, QUOIT_VERDICT_SEND);
    }
    struct quoit_frame ack = {.sequence = 1,
                              .kind = QUOIT_FRAME_ACK,
                              .flags = QUOIT_FRAME_RIGHT,
                              .source_host = 2,
                              .dest_host = 1,
                              .flow_sequence = 2};
    uint64_t cookie;
    assert_int_equal(quoit_ring_receive(ring, QUOIT_RIGHT, REPLY, &ack, 1, &verdict), QUOIT_OK);
    assert_true(quoit_ring_next_completion(ring, &cookie));
    bring_request(ring, QUOIT_FRAME_GET, 0, 1);
    bring_request(ring, QUOIT_FRAME_GET, 2, 1);
    bring_request(ring, QUOIT_FRAME_GET, 2, 2);
    bring_request(ring, QUOIT_FRAME_PUT, 2, 3);
    quoit_ring_check_invariants(ring);
    return ring;
}

#define OUT          (ring->outbound[QUOIT_RIGHT][REQUEST])
#define IN           (ring->inbound[QUOIT_LEFT][REPLY])
#define FLOW         (ring->flows_out[3 + 2]) /* to the right, to host 2 */
#define PLAIN        (ring->pool.entries[FLOW.plain.head])
#define FETCHING     (ring->pool.entries[FLOW.fetching.head])
#define PENDING_ACKS (ring->acks[QUOIT_RIGHT]) /* of requests that came from the right */
#define PENDING_FLOW (ring->flows_in[0 + 2])
#define OTHER_FLOW   (ring->flows_in[0 + 0])
#define LINK         (ring->links.links[QUOIT_LEFT])
#define END          (ring->links.ends[4]) /* the left one of host 2 */
#define WAITING      (ring->replies.waiting[QUOIT_RIGHT])

/* X(what is corrupted, the condition that must be named) */
#define SPOIL_TABLE(X)                                                                                                 \
    X(OUT.credited_total = OUT.sent_total + 1, "out->credited_total <= out->sent_total")                               \
    X(OUT.sent_total += 9, "out->sent_total - out->credited_total <= slot_count")                                      \
    X(OUT.transit = QUOIT_RING_TRANSIT_COUNT, "out->transit < QUOIT_RING_TRANSIT_COUNT")                               \
    X(OUT.is_refused_in_pause = true, "out->transit == QUOIT_RING_PAUSED || !out->is_refused_in_pause")                \
    X(IN.advertised_total = 1, "in->advertised_total <= in->consumed_total")                                           \
    X(IN.in_use = 9, "in->in_use <= in->consumed_total - in->advertised_total")                                        \
    X(IN.consumed_total = 9, "in->consumed_total - in->advertised_total <= slot_count")                                \
    X(FLOW.acknowledged = FLOW.sent + 1, "!quoit_ring_is_before(flow->sent, flow->acknowledged)")                      \
    X(FLOW.acknowledged = 3, "quoit_ring_is_before(before, frame->flow_sequence)")                                     \
    X(ring->pool.entries[FLOW.fetching.tail].frame.flow_sequence = 4,                                                  \
      "quoit_ring_is_before(before, frame->flow_sequence)")                                                            \
    X(FETCHING.frame.flow_sequence = 6, "!quoit_ring_is_before(flow->sent, frame->flow_sequence)")                     \
    X(FETCHING.frame.token ^= 1, "quoit_ring_pool_find(pool, frame->token) == at")                                     \
    X(FETCHING.frame.dest_host = 0, "frame->dest_host == dest_host")                                                   \
    X(FETCHING.frame.flags = 0, "quoit_ring_flow_side(frame) == side")                                                 \
    X(FETCHING.frame.kind = QUOIT_FRAME_PUT, "!!quoit_frame_needs_response(frame->kind) == needs_response")            \
    X(PLAIN.is_free = true, "!pool->entries[at].is_free")                                                              \
    X(FLOW.plain.tail = FLOW.fetching.head, "last == list->tail")                                                      \
    X(FLOW.fetching.count = 1, "at == QUOIT_RING_NONE")                                                                \
    X(FLOW.fetching.count = 3, "at < pool->entry_count")                                                               \
    X(quoit_ring_list_pop(&ring->pool, &ring->pool.free),                                                              \
      "free_count + completed_count + flow_count == pool->entry_count")                                                \
    X(ring->pool.entries[ring->pool.free.head].is_free = false, "pool->entries[at].is_free")                           \
    X(ring->pool.entries[ring->pool.completed.head].is_free = true, "!pool->entries[at].is_free")                      \
    X(PENDING_FLOW.acknowledged = 4, "!quoit_ring_is_before(flows[i].executed, flows[i].acknowledged)")                \
    X(PENDING_FLOW.acknowledged = 3, "flows[i].is_ack_pending == (flows[i].executed != flows[i].acknowledged)")        \
    X(OTHER_FLOW.executed = 1, "flows[i].is_ack_pending == (flows[i].executed != flows[i].acknowledged)")              \
    X(PENDING_ACKS.count = 2, "at < flow_count")                                                                       \
    X(quoit_ring_ack_queue_init(&PENDING_ACKS), "ack_count == 0")                                                      \
    X(FLOW.fetch_count = 1, "flow->fetch_count == fetch_count")                                                        \
    X(FLOW.resend_plain = FLOW.fetching.head, "has_resend")                                                            \
    X(FLOW.resend_plain = FLOW.plain.head, "listed_count == due_count")                                                \
    X((ring->resending[0] = 5, FLOW.next_resending = 5), "i < QUOIT_SIDE_COUNT * host_count")                          \
    X(ring->links.topology_version = 1, "links->topology_version == sum")                                              \
    X(END.is_pending[QUOIT_LEFT] = true, "links->links[side].pending_count == pending_counts[side]")                   \
    X((quoit_ring_links_down(&ring->links, QUOIT_LEFT), LINK.reach = 1), "is_own_up || links->links[side].reach == 0") \
    X((quoit_ring_links_down(&ring->links, QUOIT_LEFT), LINK.is_confirmed = true),                                     \
      "is_own_up || !links->links[side].is_confirmed")                                                                 \
    X((quoit_ring_links_down(&ring->links, QUOIT_LEFT), LINK.pending_count = 1, END.is_pending[QUOIT_LEFT] = true),    \
      "is_own_up || pending_counts[side] == 0")                                                                        \
    X(PENDING_ACKS.head = 6, "at < flow_count")                                                                        \
    X(PENDING_ACKS.head = 0, "flows[at].is_ack_pending")                                                               \
    X(PENDING_FLOW.previous_ack = 0, "flows[at].previous_ack == before")                                               \
    X(PENDING_FLOW.next_ack = 0, "at == QUOIT_RING_NONE")                                                              \
    X(PENDING_ACKS.tail = 0, "before == acks->tail")                                                                   \
    X((quoit_ring_flow_take_ack(&ring->acks[QUOIT_LEFT], ring->flows_in, 3 + 0), ring->response_count[0] = 1),         \
      "ring->response_count[side] == 0 || ring->acks[side].count > 0")                                                 \
    X(WAITING.head = 4, "at < replies->entry_count")                                                                   \
    X(WAITING.count = 1, "at == QUOIT_RING_NONE")                                                                      \
    X(WAITING.tail = 3, "last == list->tail")                                                                          \
    X(ring->replies.free_count = 0, "waiting_count + replies->free_count == replies->entry_count")                     \
    X(ring->replies.free_head = 4, "at < replies->entry_count")                                                        \
    X(ring->replies.entries[ring->replies.free_head].next = 0, "at == QUOIT_RING_NONE")                                \
    X(ring->is_response_due = true, "!ring->is_response_due")

#define X(spoiling, condition) +1
enum { SPOIL_COUNT = 0 SPOIL_TABLE(X) };
#undef X

/* Applies corruption number `which`; returns the condition that it must break. */
static const char *spoil(struct quoit_ring *ring, int which)
{
    int at = 0;
#define X(spoiling, condition)                                                                                         \
    if (which == at++) {                                                                                               \
        spoiling;                                                                                                      \
        return condition;                                                                                              \
    }
    SPOIL_TABLE(X)
#undef X
    return NULL;
}

/* Checks the ring in a child; returns its output and its status. */
static int check_in_child(const struct quoit_ring *ring, char *text_out, size_t text_bytes)
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        quoit_ring_check_invariants(ring);
        _exit(0);
    }
    close(ends[1]);
    size_t length = 0;
    ssize_t n;
    while (length + 1 < text_bytes && (n = read(ends[0], text_out + length, text_bytes - 1 - length)) > 0)
        length += (size_t)n;
    text_out[length] = '\0';
    close(ends[0]);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void each_invariant_can_fail(void **state)
{
    (void)state;
    char text[1024];
    for (int which = 0; which < SPOIL_COUNT; which++) {
        struct quoit_ring *ring = make_busy_ring();
        char expected[256];
        snprintf(expected, sizeof expected, "assertion failed: %s (", spoil(ring, which));
        int status = check_in_child(ring, text, sizeof text);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || strstr(text, expected) == NULL)
            fail_msg("spoiling %d: wanted \"%s\", status %d, got \"%s\"", which, expected, status, text);
        free(ring);
    }
}

static void a_sound_ring_passes(void **state)
{
    (void)state;
    char text[1024];
    struct quoit_ring *ring = make_busy_ring();
    assert_int_equal(check_in_child(ring, text, sizeof text), 0);
    free(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_ring_passes),
        cmocka_unit_test(each_invariant_can_fail),
    };
    return cmocka_run_group_tests_name("ring.invariants", tests, NULL, NULL);
}
