/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: numbers, acknowledgements and responses of one flow, also where the numbers wrap.
 * Method: a pool and one flow by hand; then random traffic across the wrap against a model with 64-bit numbers.
 * Seed: QUOIT_SEED (default 1). */
#include "ring/flow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/prng.h"

#define ENTRY_COUNT 8u

struct source {
    struct quoit_ring_entry entries[ENTRY_COUNT];
    struct quoit_ring_pool pool;
    struct quoit_ring_flow_out flow;
};

static void start(struct source *source, uint32_t number)
{
    *source = (struct source){0};
    quoit_ring_pool_init(&source->pool, source->entries, ENTRY_COUNT);
    quoit_ring_flow_out_init(&source->flow);
    source->flow.sent = source->flow.acknowledged = number;
}

static uint32_t send(struct source *source, uint8_t kind, uint64_t cookie)
{
    struct quoit_frame frame = {.kind = kind, .dest_host = 1, .source_pe = 2, .dest_pe = 3, .bytes = 8, .offset = 64};
    uint32_t index = quoit_ring_pool_take(&source->pool, &frame, cookie);
    quoit_ring_flow_send(&source->pool, &source->flow, index);
    return source->entries[index].frame.token;
}

static void check(const struct source *source)
{
    quoit_ring_check_pool(&source->pool, quoit_ring_check_flow_out(&source->pool, &source->flow, 1, QUOIT_LEFT));
}

static uint64_t next_completed(struct source *source)
{
    uint64_t cookie;
    check(source);
    return quoit_ring_pool_next_completed(&source->pool, &cookie) ? cookie : 0;
}

static struct quoit_frame response_to(uint32_t token, uint8_t kind, uint32_t number)
{
    return (struct quoit_frame){.kind = kind,
                                .source_pe = 3,
                                .dest_pe = 2,
                                .bytes = kind == QUOIT_FRAME_DATA ? 8 : 0,
                                .offset = 64,
                                .token = token,
                                .flow_sequence = number};
}

static void acknowledgement_completes_plain_requests_in_order(void **state)
{
    (void)state;
    static const uint32_t bases[] = {0, UINT32_MAX - 2, UINT32_MAX, (1u << 31) - 2};
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
        struct source s;
        uint32_t base = bases[i];
        uint64_t cookie;
        start(&s, base);
        send(&s, QUOIT_FRAME_PUT, 1);
        uint32_t get = send(&s, QUOIT_FRAME_GET, 2);
        send(&s, QUOIT_FRAME_AMO, 3);
        send(&s, QUOIT_FRAME_PUT, 4);
        send(&s, QUOIT_FRAME_PUT, 5);
        assert_int_equal(quoit_ring_flow_acknowledge(&s.pool, &s.flow, base - 1), QUOIT_INVALID);
        assert_int_equal(quoit_ring_flow_acknowledge(&s.pool, &s.flow, base + 6), QUOIT_INVALID);
        assert_int_equal(quoit_ring_flow_acknowledge(&s.pool, &s.flow, base + (1u << 31)), QUOIT_INVALID);
        assert_int_equal(next_completed(&s), 0);
        assert_int_equal(quoit_ring_flow_acknowledge(&s.pool, &s.flow, base + 3), QUOIT_OK);
        assert_int_equal(next_completed(&s), 1);
        assert_int_equal(next_completed(&s), 3);
        assert_int_equal(next_completed(&s), 0);
        struct quoit_frame response = response_to(get, QUOIT_FRAME_DATA, base + 4);
        assert_int_equal(quoit_ring_flow_complete(&s.pool, &s.flow, &response, &cookie), QUOIT_OK);
        assert_int_equal(cookie, 2);
        assert_int_equal(next_completed(&s), 4);
        assert_int_equal(next_completed(&s), 2);
        assert_int_equal(quoit_ring_flow_acknowledge(&s.pool, &s.flow, base + 5), QUOIT_OK);
        assert_int_equal(next_completed(&s), 5);
        assert_int_equal(s.pool.free.count, ENTRY_COUNT);
    }
}

static void a_response_to_nothing_is_refused(void **state)
{
    (void)state;
    struct source s;
    uint64_t cookie;
    start(&s, 0);
    send(&s, QUOIT_FRAME_PUT, 1);
    uint32_t get = send(&s, QUOIT_FRAME_GET, 2);
    uint32_t fetch = send(&s, QUOIT_FRAME_AMO_FETCH, 3);
    const struct quoit_frame good = response_to(get, QUOIT_FRAME_DATA, 2);
    struct quoit_frame bad[10];
    for (int i = 0; i < 10; i++)
        bad[i] = good;
    bad[0].token = get + (1u << 16);                   /* another use of the entry */
    bad[1].token = (get & ~0xffffu) + 7;               /* a free entry */
    bad[2].token = 0xffff;                             /* beyond the pool */
    bad[3].token = s.entries[0].frame.token;           /* a put */
    bad[4] = response_to(fetch, QUOIT_FRAME_VALUE, 3); /* not the oldest request */
    bad[5].kind = QUOIT_FRAME_VALUE;
    bad[6].bytes = 4;
    bad[7].source_pe = 0;
    bad[8].flow_sequence = 1; /* before its own request */
    bad[9].flow_sequence = 4; /* never sent */
    for (int i = 0; i < 10; i++)
        assert_int_equal(quoit_ring_flow_complete(&s.pool, &s.flow, &bad[i], &cookie), QUOIT_INVALID);
    check(&s);
    assert_int_equal(s.flow.fetching.count, 2);
    assert_int_equal(quoit_ring_flow_complete(&s.pool, &s.flow, &good, &cookie), QUOIT_OK);
    assert_int_equal(quoit_ring_flow_complete(&s.pool, &s.flow, &good, &cookie), QUOIT_INVALID); /* again */
    assert_int_equal(quoit_ring_flow_complete(&s.pool, &s.flow, &bad[4], &cookie), QUOIT_OK);
    assert_int_equal(cookie, 3);
}

static void the_frame_is_stored_until_completion(void **state)
{
    (void)state;
    struct source s;
    start(&s, UINT32_MAX - 1);
    for (uint64_t cookie = 1; cookie <= 4; cookie++)
        send(&s, QUOIT_FRAME_PUT, cookie);
    uint32_t at = s.flow.plain.head;
    for (uint32_t i = 0; i < 4; i++, at = s.entries[at].next) {
        assert_int_equal(s.entries[at].frame.flow_sequence, (uint32_t)(UINT32_MAX + i));
        assert_int_equal(s.entries[at].frame.offset, 64);
        assert_int_equal(s.entries[at].cookie, i + 1);
    }
}

static void random_traffic_over_the_wrap(void **state)
{
    (void)state;
    const char *text = getenv("QUOIT_SEED");
    struct quoit_prng prng = {text ? strtoull(text, NULL, 0) : 1};
    print_message("seed %llu\n", (unsigned long long)prng.state);
    struct source s;
    uint64_t sent = UINT32_MAX - 500u, acknowledged = sent; /* the model does not wrap */
    uint64_t completed = sent;
    start(&s, (uint32_t)sent);
    while (acknowledged < UINT32_MAX + 500ull) {
        if (quoit_prng_choose(&prng, 2) && s.pool.free.count > 0) {
            send(&s, QUOIT_FRAME_PUT, ++sent);
        } else {
            uint64_t number = acknowledged - 3 + quoit_prng_choose(&prng, 8 + sent - acknowledged);
            bool is_good = number >= acknowledged && number <= sent;
            assert_int_equal(quoit_ring_flow_acknowledge(&s.pool, &s.flow, (uint32_t)number),
                             is_good ? QUOIT_OK : QUOIT_INVALID);
            acknowledged = is_good ? number : acknowledged;
        }
        for (; completed < acknowledged; completed++)
            assert_int_equal(next_completed(&s), completed + 1);
        assert_int_equal(next_completed(&s), 0);
    }
}

static void check_pending(const struct quoit_ring_ack_queue *acks, const struct quoit_ring_flow_in *flows)
{
    quoit_ring_check_flows_in(flows, 4, quoit_ring_check_ack_queue(acks, flows, 4));
}

static void flows_with_pending_acks_are_found_in_order(void **state)
{
    (void)state;
    struct quoit_ring_flow_in flows[4] = {{.executed = UINT32_MAX, .acknowledged = UINT32_MAX}};
    struct quoit_ring_ack_queue acks;
    quoit_ring_ack_queue_init(&acks);
    check_pending(&acks, flows);
    static const uint32_t executes[] = {2, 0, 3, 0, 2};
    for (size_t i = 0; i < 5; i++) {
        quoit_ring_flow_execute(&acks, flows, executes[i]);
        check_pending(&acks, flows);
    }
    assert_int_equal(acks.count, 3);
    assert_int_equal(acks.head, 2);
    assert_int_equal(quoit_ring_flow_take_ack(&acks, flows, 0), 1); /* the middle one; its number wrapped */
    check_pending(&acks, flows);
    assert_int_equal(quoit_ring_flow_take_ack(&acks, flows, 0), 1); /* nothing is pending: returns the same */
    quoit_ring_flow_execute(&acks, flows, 1);
    assert_int_equal(quoit_ring_flow_take_ack(&acks, flows, acks.head), 2);
    check_pending(&acks, flows);
    assert_int_equal(acks.head, 3);
    assert_int_equal(quoit_ring_flow_take_ack(&acks, flows, acks.tail), 1); /* flow 1 */
    check_pending(&acks, flows);
    assert_int_equal(quoit_ring_flow_take_ack(&acks, flows, 3), 1);
    check_pending(&acks, flows);
    assert_int_equal(acks.count, 0);
    /* a request arrived again: its source lacks its acknowledgement and all later ones */
    quoit_ring_flow_execute(&acks, flows, 2);
    quoit_ring_flow_execute(&acks, flows, 2);
    assert_int_equal(quoit_ring_flow_take_ack(&acks, flows, 2), 4);
    quoit_ring_flow_repeat(&acks, flows, 2, 3);
    check_pending(&acks, flows);
    assert_int_equal(acks.count, 1);
    assert_int_equal(flows[2].acknowledged, 2);
    quoit_ring_flow_repeat(&acks, flows, 2, 4);
    assert_int_equal(flows[2].acknowledged, 2);
    assert_int_equal(quoit_ring_flow_take_ack(&acks, flows, 2), 4);
    quoit_ring_flow_repeat(&acks, flows, 0, 0); /* across the wrap */
    assert_int_equal(flows[0].acknowledged, UINT32_MAX);
    check_pending(&acks, flows);
}

/* Retransmits everything that is due; returns the cookies in order, as decimal digits. */
static uint64_t resend_all(struct source *source)
{
    uint64_t cookies = 0;
    uint32_t index;
    while ((index = quoit_ring_flow_peek_resend(&source->pool, &source->flow)) != QUOIT_RING_NONE) {
        cookies = cookies * 10 + source->entries[index].cookie;
        quoit_ring_flow_pass_resend(&source->pool, &source->flow);
        check(source);
    }
    return cookies;
}

static void outstanding_requests_are_retransmitted_in_order(void **state)
{
    (void)state;
    struct source s;
    uint64_t cookie;
    start(&s, UINT32_MAX - 2); /* the third one has number 0 */
    send(&s, QUOIT_FRAME_PUT, 1);
    uint32_t fetch = send(&s, QUOIT_FRAME_AMO_FETCH, 2);
    send(&s, QUOIT_FRAME_PUT, 3);
    send(&s, QUOIT_FRAME_AMO, 4);
    uint32_t get = send(&s, QUOIT_FRAME_GET, 5);
    assert_int_equal(resend_all(&s), 0);
    quoit_ring_flow_start_resend(&s.flow);
    assert_int_equal(resend_all(&s), 12345);
    assert_int_equal(resend_all(&s), 0);
    /* acknowledged before its turn: not retransmitted, unless it needs a response */
    quoit_ring_flow_start_resend(&s.flow);
    assert_int_equal(quoit_ring_flow_acknowledge(&s.pool, &s.flow, UINT32_MAX), QUOIT_OK);
    check(&s);
    assert_int_equal(resend_all(&s), 2345);
    /* a response to a request that is still to be retransmitted is invalid */
    quoit_ring_flow_start_resend(&s.flow);
    struct quoit_frame response = response_to(fetch, QUOIT_FRAME_VALUE, UINT32_MAX);
    assert_int_equal(quoit_ring_flow_complete(&s.pool, &s.flow, &response, &cookie), QUOIT_INVALID);
    assert_int_equal(s.flow.fetch_count, 1);
    quoit_ring_flow_pass_resend(&s.pool, &s.flow);
    assert_int_equal(quoit_ring_flow_complete(&s.pool, &s.flow, &response, &cookie), QUOIT_OK);
    assert_int_equal(s.flow.fetch_count, 0);
    assert_int_equal(resend_all(&s), 345);
    send(&s, QUOIT_FRAME_PUT, 6); /* new: not to be retransmitted */
    assert_int_equal(resend_all(&s), 0);
    response = response_to(get, QUOIT_FRAME_DATA, 2);
    assert_int_equal(quoit_ring_flow_complete(&s.pool, &s.flow, &response, &cookie), QUOIT_OK);
    check(&s);
    quoit_ring_flow_start_resend(&s.flow);
    assert_int_equal(resend_all(&s), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(acknowledgement_completes_plain_requests_in_order),
        cmocka_unit_test(a_response_to_nothing_is_refused),
        cmocka_unit_test(the_frame_is_stored_until_completion),
        cmocka_unit_test(random_traffic_over_the_wrap),
        cmocka_unit_test(flows_with_pending_acks_are_found_in_order),
        cmocka_unit_test(outstanding_requests_are_retransmitted_in_order),
    };
    return cmocka_run_group_tests_name("ring.flow", tests, NULL, NULL);
}
