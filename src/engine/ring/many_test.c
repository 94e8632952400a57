/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: small puts share a request as long as that changes no order: none joins one that the proxy has taken, that
 * another request to the same host follows, that a fence precedes, or that belongs to another context or, by now, to
 * another host. Who waits for puts with signals asks for their acknowledgements, once a host. A fence waits for what
 * goes to PEs of the own host by the loopback. Method: one PE of a job over a network; the test is its proxy, and reads
 * what was submitted. */
#include "engine/ring/pe_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "env/clock.h"

#define WORD_WHOLE 24u /* a put of 8 bytes in a request */
#define LATE_NS    20000000u

static struct pe_rig rig;

static struct {
    uint64_t last_word;
    _Atomic bool has_responded;
} test;

static void open_with(uint32_t chunk_bytes, bool has_loopback)
{
    memset(&test, 0, sizeof test);
    pe_rig_map(&rig, chunk_bytes, has_loopback);
    pe_rig_open(&rig, QUOIT_PE_ENDPOINT_NO);
}

static int open_test(void **state)
{
    (void)state;
    open_with(2 * QUOIT_MANY_BYTES_MAX, false);
    return 0;
}

static int open_loopback(void **state)
{
    (void)state;
    open_with(2 * QUOIT_MANY_BYTES_MAX, true);
    return 0;
}

#define SMALL_BYTES 64u /* of a chunk: the least that --chunk allows */

static int open_small(void **state)
{
    (void)state;
    open_with(SMALL_BYTES, false);
    return 0;
}

static int close_test(void **state)
{
    (void)state;
    pe_rig_close(&rig);
    return 0;
}

static uint32_t submit_count(void)
{
    return atomic_load(&pe_rig_channel(&rig)->submit_tail);
}

/* The number-th request that was submitted, from 0. */
static uint16_t index_of(uint32_t number)
{
    assert_in_range(number, 0, submit_count() - 1);
    return pe_rig_channel(&rig)->submit[number % QUOIT_REQUESTS_A_CHANNEL];
}

static struct quoit_request *request(uint32_t number)
{
    return &pe_rig_channel(&rig)->requests[index_of(number)];
}

static void put_in(struct quoit_context *context, uint32_t pe)
{
    uint64_t word = ++test.last_word;
    rig.engine->ops->put(context, &rig.peers[pe], rig.heap + 8 * word, &word, sizeof word, false);
}

static void put(uint32_t pe)
{
    put_in(&rig.context, pe);
}

static void take(uint32_t number)
{
    atomic_fetch_or(&request(number)->many_bytes, QUOIT_REQUEST_IS_TAKEN);
}

/* As the proxy says that a request is executed. */
static void complete(uint32_t number)
{
    struct quoit_channel *shared = pe_rig_channel(&rig);
    uint32_t tail = atomic_load(&shared->complete_tail);
    shared->complete[tail % QUOIT_REQUESTS_A_CHANNEL] = index_of(number);
    atomic_store(&shared->complete_tail, tail + 1);
}

/* The request has the words first, first + 1, ..., for these PEs. */
static void check_words(uint32_t number, uint64_t first, const uint32_t *pes, uint32_t count)
{
    const struct quoit_request *found = request(number);
    const char *staging = rig.memory + found->data_offset;
    assert_int_equal(found->frame.kind, QUOIT_FRAME_PUT_MANY);
    assert_int_equal(atomic_load(&found->many_bytes) & ~QUOIT_REQUEST_IS_TAKEN, count * WORD_WHOLE);
    for (uint32_t i = 0; i < count; i++) {
        struct quoit_frame_put one;
        uint64_t word;
        memcpy(&one, staging + (size_t)i * WORD_WHOLE, sizeof one);
        memcpy(&word, staging + (size_t)i * WORD_WHOLE + sizeof one, sizeof word);
        assert_int_equal(word, first + i);
        assert_int_equal(one.offset, rig.heap + 8 * word);
        assert_int_equal(one.bytes, 8);
        assert_int_equal(one.dest_pe, rig.peers[pes[i]].local);
        assert_int_equal(found->frame.dest_host, rig.peers[pes[i]].host);
    }
}

static void test_a_row_shares_a_request(void **state)
{
    static const uint32_t pes[] = {2, 3, 2, 2, 3};
    (void)state;
    for (uint32_t i = 0; i < 5; i++)
        put(pes[i]);
    assert_int_equal(submit_count(), 1);
    assert_int_equal(atomic_load(&rig.context.ring.outstanding_count), 1);
    check_words(0, 1, pes, 5);
    take(0);
    put(2);
    assert_int_equal(submit_count(), 2);
    check_words(0, 1, pes, 5);
    check_words(1, 6, pes, 1);
}

static void test_hosts_have_their_own(void **state)
{
    static const uint32_t second[] = {2, 2}, third[] = {4};
    (void)state;
    put(2);
    put(4);
    test.last_word = 1; /* the next word is that after the first */
    put(2);
    assert_int_equal(submit_count(), 2);
    check_words(0, 1, second, 2);
    check_words(1, 2, third, 1);
}

/* A put behind an atomic to the same host stays behind it. */
static void test_another_request_ends_it(void **state)
{
    const struct quoit_atomic add = {.op = QUOIT_AMO_ADD, .size = 8, .offset = rig.heap, .operand = 1};
    (void)state;
    put(2);
    rig.engine->ops->amo(&rig.context, &rig.peers[4], &add, NULL, false); /* elsewhere */
    put(2);
    assert_int_equal(submit_count(), 2);
    rig.engine->ops->amo(&rig.context, &rig.peers[3], &add, NULL, false);
    put(2);
    assert_int_equal(submit_count(), 4);
    assert_int_equal(request(2)->frame.kind, QUOIT_FRAME_AMO);
    check_words(3, 3, (const uint32_t[]){2}, 1);
}

static void test_a_fence_ends_it(void **state)
{
    (void)state;
    put(2);
    rig.engine->ops->fence(rig.engine, &rig.context);
    put(2);
    put(2);
    assert_int_equal(submit_count(), 2);
    check_words(0, 1, (const uint32_t[]){2}, 1);
    check_words(1, 2, (const uint32_t[]){2, 2}, 2);
    assert_int_equal(request(0)->frame.flags, 0);
    assert_int_equal(request(1)->frame.flags, QUOIT_FRAME_ORDERED);
    rig.engine->ops->fence(rig.engine, &rig.context);
    put(2);
    assert_int_equal(submit_count(), 3);
}

static void test_contexts_have_their_own(void **state)
{
    (void)state;
    put(2);
    put_in(&rig.other_context, 2);
    put_in(&rig.other_context, 2);
    put(2);
    assert_int_equal(submit_count(), 3);
    assert_int_equal(atomic_load(&rig.context.ring.outstanding_count), 2);
    assert_int_equal(atomic_load(&rig.other_context.ring.outstanding_count), 1);
}

static void test_sizes(void **state)
{
    static const char bytes[300];
    (void)state;
    uint32_t most = QUOIT_MANY_BYTES_MAX / WORD_WHOLE;
    for (uint32_t i = 0; i < most; i++)
        put(2);
    assert_int_equal(submit_count(), 1);
    put(2);
    assert_int_equal(submit_count(), 2);
    rig.engine->ops->put(&rig.context, &rig.peers[2], rig.heap, bytes, 1, true);
    rig.engine->ops->put(&rig.context, &rig.peers[2], rig.heap, bytes, 256, false);
    assert_int_equal(submit_count(), 2);
    assert_int_equal(atomic_load(&request(1)->many_bytes), 24 + 24 + 272);
    rig.engine->ops->put(&rig.context, &rig.peers[2], rig.heap, bytes, 257, false);
    assert_int_equal(submit_count(), 3);
    assert_int_equal(request(2)->frame.kind, QUOIT_FRAME_PUT);
}

/* Puts of all sizes, where a chunk holds 48 bytes and what names them: those above go in chunks of their own, and the
 * bytes of no other request change. */
static void test_small_chunks(void **state)
{
    char bytes[256];
    (void)state;
    for (uint32_t size = 1; size <= sizeof bytes; size++) {
        bool is_packed = size <= SMALL_BYTES - sizeof(struct quoit_frame_put);
        uint32_t part_count = is_packed ? 1 : (size + SMALL_BYTES - 1) / SMALL_BYTES, first = submit_count();
        const char *staging = rig.memory + quoit_layout_staging(&rig.layout, 0, 0, 0);
        char *expected = malloc((size_t)QUOIT_REQUESTS_A_CHANNEL * SMALL_BYTES);
        assert_non_null(expected);
        memcpy(expected, staging, (size_t)QUOIT_REQUESTS_A_CHANNEL * SMALL_BYTES);
        for (uint32_t i = 0; i < size; i++)
            bytes[i] = (char)(i * 7 + size);
        rig.engine->ops->put(&rig.context, &rig.peers[2], rig.heap, bytes, size, false);
        assert_int_equal(submit_count() - first, part_count);
        for (uint32_t part = 0; part < part_count; part++) {
            const struct quoit_frame *frame = &request(first + part)->frame;
            uint32_t at = part * SMALL_BYTES, rest = size - at;
            char *chunk = expected + (size_t)index_of(first + part) * SMALL_BYTES;
            if (is_packed) {
                const struct quoit_frame_put put_in_it = {.offset = rig.heap, .bytes = size};
                memset(chunk, 0, quoit_frame_put_bytes(size));
                memcpy(chunk, &put_in_it, sizeof put_in_it);
                memcpy(chunk + sizeof put_in_it, bytes, size);
            } else {
                assert_int_equal(frame->bytes, rest < SMALL_BYTES ? rest : SMALL_BYTES);
                assert_int_equal(frame->offset, rig.heap + at);
                memcpy(chunk, bytes + at, frame->bytes);
            }
            assert_int_equal(frame->kind, is_packed ? QUOIT_FRAME_PUT_MANY : QUOIT_FRAME_PUT);
            complete(first + part);
        }
        assert_memory_equal(staging, expected, (size_t)QUOIT_REQUESTS_A_CHANNEL * SMALL_BYTES);
        free(expected);
        rig.engine->ops->quiet(rig.engine, &rig.context);
    }
}

static void put_signal(struct quoit_context *context, uint32_t pe, size_t bytes)
{
    const struct quoit_signal signal = {.offset = rig.heap, .value = 1, .op = QUOIT_AMO_SET};
    const uint64_t word = 1;
    rig.engine->ops->put_signal(context, &rig.peers[pe], rig.heap + 8, bytes ? &word : NULL, bytes, &signal, false);
}

/* A put with a signal, in one request: what goes before its last chunk is nothing. Nor is there more without data. */
static void test_a_signal(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        put_signal(&rig.context, 2, i * sizeof(uint64_t));
        assert_int_equal(submit_count(), i + 1);
        assert_int_equal(request(i)->frame.kind, QUOIT_FRAME_PUT_SIGNAL);
        assert_int_equal(request(i)->frame.bytes, i * sizeof(uint64_t));
    }
}

static struct quoit_ring_engine *ring(void)
{
    return (struct quoit_ring_engine *)rig.engine;
}

static void hurry(void)
{
    quoit_channel_hurry(ring(), &rig.context);
}

/* The number-th request asks for acknowledgements, of that host. */
static void check_asks(uint32_t number, uint32_t pe)
{
    assert_int_equal(request(number)->frame.kind, QUOIT_FRAME_PUT);
    assert_int_equal(request(number)->frame.bytes, 0);
    assert_int_equal(request(number)->frame.dest_host, rig.peers[pe].host);
}

static void test_who_waits_asks(void **state)
{
    (void)state;
    put_signal(&rig.context, 2, 0);
    put_signal(&rig.context, 2, 0);
    put_signal(&rig.context, 4, 0);
    assert_int_equal(submit_count(), 3);
    hurry();
    assert_int_equal(submit_count(), 5);
    check_asks(3, 2);
    check_asks(4, 4);
    assert_int_equal(atomic_load(&rig.context.ring.outstanding_count), 5);
    assert_int_equal(atomic_load(&ring()->channels[0].patient_count), 0);
    hurry(); /* it is asked for already */
    assert_int_equal(submit_count(), 5);
    put_signal(&rig.context, 2, 0);
    put(3); /* its own acknowledgement comes at once */
    put_signal(&rig.other_context, 4, 0);
    hurry();
    assert_int_equal(submit_count(), 8);
}

/* Nothing is asked for once it has come. */
static void test_who_waits_for_nothing_asks_nothing(void **state)
{
    (void)state;
    put_signal(&rig.context, 2, 0);
    complete(0);
    quoit_channel_reap(ring());
    hurry();
    assert_int_equal(submit_count(), 1);
}

/* What the proxy completes once it was asked. */
static void *respond(void *unused)
{
    (void)unused;
    while (submit_count() < 2)
        quoit_clock_sleep_ns(100000);
    complete(0);
    complete(1);
    quoit_park_wake(&rig.self.shared->park);
    return NULL;
}

static void test_quiet_asks(void **state)
{
    pthread_t proxy;
    (void)state;
    put_signal(&rig.context, 2, 0);
    assert_int_equal(pthread_create(&proxy, NULL, respond, NULL), 0);
    rig.engine->ops->quiet(rig.engine, &rig.context);
    assert_int_equal(pthread_join(proxy, NULL), 0);
    assert_int_equal(submit_count(), 2);
    check_asks(1, 2);
}

/* The proxy takes its time. */
static void *respond_late(void *unused)
{
    (void)unused;
    quoit_clock_sleep_ns(LATE_NS);
    atomic_store(&test.has_responded, true);
    complete(0);
    quoit_park_wake(&rig.self.shared->park);
    return NULL;
}

/* What the PE does itself, through the mapping, would overtake a request to PE 1; none can overtake one to PE 2. */
static void test_a_fence_waits_for_the_loopback(void **state)
{
    pthread_t proxy;
    (void)state;
    put(1);
    put(2);
    assert_int_equal(submit_count(), 2);
    check_words(0, 1, (const uint32_t[]){1}, 1);
    assert_int_equal(pthread_create(&proxy, NULL, respond_late, NULL), 0);
    rig.engine->ops->fence(rig.engine, &rig.context);
    bool has_waited = atomic_load(&test.has_responded);
    assert_int_equal(pthread_join(proxy, NULL), 0);
    assert_true(has_waited);
    assert_int_equal(atomic_load(&rig.context.ring.outstanding_count), 1);
}

static void test_a_fence_asks_the_own_host(void **state)
{
    pthread_t proxy;
    (void)state;
    put_signal(&rig.context, 1, 0);
    assert_int_equal(pthread_create(&proxy, NULL, respond, NULL), 0);
    rig.engine->ops->fence(rig.engine, &rig.context);
    assert_int_equal(pthread_join(proxy, NULL), 0);
    assert_int_equal(submit_count(), 2);
    check_asks(1, 1);
}

/* The slot of a request that is done is used again, for another host and with as many bytes. */
static void test_a_slot_that_is_used_again(void **state)
{
    (void)state;
    put(2);
    take(0);
    complete(0);
    rig.engine->ops->quiet(rig.engine, &rig.context);
    assert_int_equal(atomic_load(&rig.context.ring.outstanding_count), 0);
    put(4);
    assert_int_equal(index_of(1), index_of(0));
    put(2);
    assert_int_equal(submit_count(), 3);
    check_words(1, 2, (const uint32_t[]){4}, 1);
    check_words(2, 3, (const uint32_t[]){2}, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_test, close_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_row_shares_a_request),
        TEST(test_hosts_have_their_own),
        TEST(test_another_request_ends_it),
        TEST(test_a_fence_ends_it),
        TEST(test_contexts_have_their_own),
        TEST(test_sizes),
        TEST(test_a_slot_that_is_used_again),
        TEST(test_a_signal),
        TEST(test_who_waits_asks),
        TEST(test_who_waits_for_nothing_asks_nothing),
        TEST(test_quiet_asks),
        cmocka_unit_test_setup_teardown(test_small_chunks, open_small, close_test),
        cmocka_unit_test_setup_teardown(test_a_fence_waits_for_the_loopback, open_loopback, close_test),
        cmocka_unit_test_setup_teardown(test_a_fence_asks_the_own_host, open_loopback, close_test),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
