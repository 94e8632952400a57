/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a frame is accepted only if it stays inside the limits, and the layout is that of docs/wire-format.md. Method:
 * every offset by hand; boundary cases by hand; random, mostly nearly valid frames against a slow model that visits
 * each byte that a frame would touch. Seed: QUOIT_SEED (default 1).
 */
#include "wire/frame.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/prng.h"

static const uint32_t pe_counts[] = {2, 1, 3, 0};
static const struct quoit_frame_limits small = {
    .host_count = 4, .chunk_bytes = 64, .segment_bytes = 256, .pe_counts = pe_counts};

static void layout_is_the_documented_one(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct quoit_frame), 64);
    assert_int_equal(offsetof(struct quoit_frame, sequence), 0);
    assert_int_equal(offsetof(struct quoit_frame, kind), 8);
    assert_int_equal(offsetof(struct quoit_frame, op), 9);
    assert_int_equal(offsetof(struct quoit_frame, size), 10);
    assert_int_equal(offsetof(struct quoit_frame, flags), 11);
    assert_int_equal(offsetof(struct quoit_frame, source_host), 12);
    assert_int_equal(offsetof(struct quoit_frame, dest_host), 14);
    assert_int_equal(offsetof(struct quoit_frame, source_pe), 16);
    assert_int_equal(offsetof(struct quoit_frame, dest_pe), 18);
    assert_int_equal(offsetof(struct quoit_frame, bytes), 20);
    assert_int_equal(offsetof(struct quoit_frame, offset), 24);
    assert_int_equal(offsetof(struct quoit_frame, token), 32);
    assert_int_equal(offsetof(struct quoit_frame, flow_sequence), 36);
    assert_int_equal(offsetof(struct quoit_frame, operand), 40);
    assert_int_equal(offsetof(struct quoit_frame, operand2), 48);
    assert_int_equal(offsetof(struct quoit_frame, trace), 56);
    assert_int_equal(offsetof(struct quoit_frame, topology_version), 60);
    assert_int_equal(sizeof(struct quoit_frame_put), 16);
    assert_int_equal(offsetof(struct quoit_frame_put, offset), 0);
    assert_int_equal(offsetof(struct quoit_frame_put, bytes), 8);
    assert_int_equal(offsetof(struct quoit_frame_put, dest_pe), 12);
    assert_int_equal(offsetof(struct quoit_frame_put, unused), 14);
    assert_int_equal(quoit_frame_put_bytes(1), 24);
    assert_int_equal(quoit_frame_put_bytes(8), 24);
    assert_int_equal(quoit_frame_put_bytes(9), 32);
    assert_int_equal(quoit_slot_bytes(4096), 4160);
    assert_true(quoit_slot_bytes(UINT32_MAX) == (uint64_t)UINT32_MAX + 64);
}

static void values_of_the_wire_are_the_documented_ones(void **state)
{
    (void)state;
    static const uint8_t kinds[] = {QUOIT_FRAME_NONE,       QUOIT_FRAME_PUT,       QUOIT_FRAME_PUT_STRIDED,
                                    QUOIT_FRAME_PUT_SIGNAL, QUOIT_FRAME_GET,       QUOIT_FRAME_GET_STRIDED,
                                    QUOIT_FRAME_AMO,        QUOIT_FRAME_AMO_FETCH, QUOIT_FRAME_MESSAGE,
                                    QUOIT_FRAME_PUT_MANY,   QUOIT_FRAME_DATA,      QUOIT_FRAME_VALUE,
                                    QUOIT_FRAME_ACK,        QUOIT_FRAME_TOPOLOGY};
    static const uint8_t ops[] = {QUOIT_AMO_SET,  QUOIT_AMO_ADD,          QUOIT_AMO_AND,   QUOIT_AMO_OR,  QUOIT_AMO_XOR,
                                  QUOIT_AMO_SWAP, QUOIT_AMO_COMPARE_SWAP, QUOIT_AMO_FETCH, QUOIT_AMO_TAKE};
    for (uint8_t i = 0; i < sizeof kinds; i++)
        assert_int_equal(kinds[i], i);
    for (uint8_t i = 0; i < sizeof ops; i++)
        assert_int_equal(ops[i], i);
    for (uint8_t kind = 0; kind < 16; kind++) {
        assert_int_equal(quoit_frame_class(kind), kind < 10 ? QUOIT_CLASS_REQUEST : QUOIT_CLASS_REPLY);
        assert_int_equal(!!quoit_frame_needs_response(kind), kind == 4 || kind == 5 || kind == 7);
        struct quoit_frame frame = {.kind = kind, .bytes = 40};
        bool carries = kind == 1 || kind == 2 || kind == 3 || (kind >= 8 && kind <= 10);
        assert_int_equal(quoit_frame_payload_bytes(&frame), carries ? 40 : 0);
        frame.flags = QUOIT_FRAME_LANDED;
        assert_int_equal(quoit_frame_payload_bytes(&frame), 0);
    }
}

static bool is_ok(struct quoit_frame frame)
{
    return quoit_frame_check(&frame, quoit_frame_class(frame.kind), &small) == QUOIT_OK;
}

static void memory_is_taken_inside_the_segment(void **state)
{
    (void)state;
    struct quoit_frame take = {.kind = QUOIT_FRAME_AMO_FETCH, .dest_host = 1, .op = QUOIT_AMO_TAKE, .size = 8};
    take.operand = 256;
    assert_true(is_ok(take));
    take.offset = 8;
    assert_false(is_ok(take));
    take.operand = UINT64_MAX - 7;
    assert_false(is_ok(take));
    take.operand = 248;
    assert_true(is_ok(take));
    take.kind = QUOIT_FRAME_AMO; /* which returns nothing */
    assert_false(is_ok(take));
    struct quoit_frame_limits wide = small;
    wide.segment_bytes = 4 * QUOIT_TAKE_BYTES_MAX;
    take.kind = QUOIT_FRAME_AMO_FETCH;
    take.operand = QUOIT_TAKE_BYTES_MAX;
    assert_int_equal(quoit_frame_check(&take, QUOIT_CLASS_REQUEST, &wide), QUOIT_OK);
    take.operand++;
    assert_int_equal(quoit_frame_check(&take, QUOIT_CLASS_REQUEST, &wide), QUOIT_INVALID);
}

static void boundaries_are_exact(void **state)
{
    (void)state;
    struct quoit_frame put = {.kind = QUOIT_FRAME_PUT, .dest_host = 1, .offset = 192, .bytes = 64};
    assert_true(is_ok(put));
    assert_int_equal(quoit_frame_check(&put, QUOIT_CLASS_REPLY, &small), QUOIT_INVALID);
    put.offset = 193;
    assert_false(is_ok(put));
    put.offset = UINT64_MAX - 10;
    assert_false(is_ok(put));
    put.offset = 0;
    put.bytes = 65;
    assert_false(is_ok(put));
    put.bytes = 0;
    put.offset = 256;
    assert_true(is_ok(put));
    put.offset = 257;
    assert_false(is_ok(put));

    struct quoit_frame strided = {.kind = QUOIT_FRAME_GET_STRIDED, .dest_host = 2, .size = 4, .bytes = 64};
    strided.operand = 16; /* 15 steps of 16 and 4 bytes: ends at 244 */
    strided.offset = 12;
    assert_true(is_ok(strided));
    strided.offset = 13;
    assert_false(is_ok(strided));
    strided.operand = (uint64_t)-16;
    strided.offset = 240;
    assert_true(is_ok(strided));
    strided.offset = 239;
    assert_false(is_ok(strided));
    strided.operand = (uint64_t)INT64_MIN;
    assert_false(is_ok(strided));
    strided.bytes = 4; /* one element: the stride is unused */
    assert_true(is_ok(strided));
    strided.bytes = 6;
    assert_false(is_ok(strided));
    struct quoit_frame amo = {.kind = QUOIT_FRAME_AMO, .dest_host = 1, .op = QUOIT_AMO_ADD, .size = 8, .offset = 248};
    assert_true(is_ok(amo));
    amo.offset = 252;
    assert_false(is_ok(amo));
    amo.size = 4;
    assert_true(is_ok(amo));
    amo.op = QUOIT_AMO_FETCH;
    assert_false(is_ok(amo));
    amo.kind = QUOIT_FRAME_AMO_FETCH;
    assert_true(is_ok(amo));
    amo.flags = QUOIT_FRAME_LANDED;
    assert_false(is_ok(amo));

    struct quoit_frame message = {
        .kind = QUOIT_FRAME_MESSAGE, .dest_host = 3, .source_pe = 77, .dest_pe = 78, .op = 15};
    message.bytes = small.chunk_bytes;
    assert_true(is_ok(message)); /* host 3 has no PE, and the frame is for none */
    message.bytes++;
    assert_false(is_ok(message));
    message.bytes = 0;
    message.op = 16;
    assert_false(is_ok(message));
    message.op = 0;
    message.flags = QUOIT_FRAME_LANDED;
    assert_false(is_ok(message));
}

static void updates_name_ends_that_are_there(void **state)
{
    (void)state;
    struct quoit_frame topology = {.kind = QUOIT_FRAME_TOPOLOGY, .dest_host = 3};
    assert_false(is_ok(topology));
    for (uint32_t i = 0; i < QUOIT_LINK_UPDATES_MAX; i++) {
        quoit_frame_add_update(&topology, 7 - i, QUOIT_LINK_STATE_MAX);
        assert_true(is_ok(topology)); /* host 3 has no PE */
    }
    assert_int_equal(quoit_frame_update(&topology, 4).end, 3);
    assert_int_equal(quoit_frame_update(&topology, 4).state, QUOIT_LINK_STATE_MAX);
    topology.size = 7;
    assert_false(is_ok(topology));
    topology.size = 0;
    topology.offset = topology.operand = topology.operand2 = 0;
    quoit_frame_add_update(&topology, 2, 1);
    quoit_frame_add_update(&topology, 8, 1);
    assert_false(is_ok(topology));
}

static void elements_of_a_stride_are_bounded(void **state)
{
    (void)state;
    struct quoit_frame strided = (struct quoit_frame){
        .kind = QUOIT_FRAME_PUT_STRIDED, .dest_host = 1, .size = QUOIT_STRIDE_SIZE_MAX, .bytes = QUOIT_STRIDE_SIZE_MAX};
    assert_true(is_ok(strided));
    strided.bytes = ++strided.size;
    assert_false(is_ok(strided));
}

static enum quoit_status check_many(const void *payload, uint32_t bytes)
{
    const struct quoit_frame many = {.kind = QUOIT_FRAME_PUT_MANY, .dest_host = 2, .bytes = bytes};
    assert_true(is_ok(many));
    return quoit_frame_check_many(&many, payload, &small);
}

/* Each difference from two good puts alone is refused. */
static void puts_of_many_are_checked(void **state)
{
    (void)state;
    struct {
        struct quoit_frame_put first;
        uint64_t word;
        struct quoit_frame_put second;
        char bytes[16];
    } good = {.first = {.offset = 248, .bytes = 8, .dest_pe = 2}, .second = {.offset = 247, .bytes = 9}}, bad;
    assert_int_equal(sizeof good, 56);
    assert_int_equal(check_many(&good, 56), QUOIT_OK);
    assert_int_equal(check_many(&good, 24), QUOIT_OK);
    assert_int_equal(check_many(&good, 32), QUOIT_INVALID); /* the second is cut short, in its header, */
    assert_int_equal(check_many(&good, 40), QUOIT_INVALID); /* behind it, */
    assert_int_equal(check_many(&good, 48), QUOIT_INVALID); /* and in its bytes */
    for (int mistake = 0; mistake < 7; mistake++) {
        bad = good;
        bad.first.offset += mistake == 0;
        bad.first.offset = mistake == 1 ? UINT64_MAX - 4 : bad.first.offset;
        bad.first.dest_pe += mistake == 2;
        bad.first.unused = mistake == 3;
        bad.second.bytes = mistake == 4 ? 0 : mistake == 5 ? 17 : mistake == 6 ? UINT32_MAX - 3 : 9;
        bad.second.offset = mistake == 5 ? 0 : 247;
        assert_int_equal(check_many(&bad, 56), QUOIT_INVALID);
    }
    const struct quoit_frame_limits wide = {
        .host_count = 4, .chunk_bytes = 2 * QUOIT_MANY_BYTES_MAX, .segment_bytes = 256, .pe_counts = pe_counts};
    struct quoit_frame many = {.kind = QUOIT_FRAME_PUT_MANY, .dest_host = 2, .bytes = QUOIT_MANY_BYTES_MAX};
    assert_int_equal(quoit_frame_check(&many, QUOIT_CLASS_REQUEST, &wide), QUOIT_OK);
    many.bytes += 8;
    assert_int_equal(quoit_frame_check(&many, QUOIT_CLASS_REQUEST, &wide), QUOIT_INVALID);
}

/* The model: what docs/wire-format.md says, one byte at a time. */
static bool model_touches_inside(const struct quoit_frame_limits *limits, __int128 first, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        if (first + i < 0 || first + i >= (__int128)limits->segment_bytes)
            return false;
    return true;
}

static bool model_strided(const struct quoit_frame *f, const struct quoit_frame_limits *limits)
{
    if (f->size == 0 || f->size > 16)
        return false;
    uint32_t left = f->bytes;
    __int128 at = f->offset;
    if (left == 0)
        return at <= (__int128)limits->segment_bytes;
    for (; left >= f->size; left -= f->size) {
        if (!model_touches_inside(limits, at, f->size))
            return false;
        at += (int64_t)f->operand;
    }
    return left == 0;
}

static bool model_block(const struct quoit_frame *f, const struct quoit_frame_limits *limits)
{
    if (f->bytes == 0)
        return f->offset <= limits->segment_bytes;
    return model_touches_inside(limits, f->offset, f->bytes);
}

static bool model_word(uint64_t offset, uint32_t bytes, const struct quoit_frame_limits *limits)
{
    return (offset & (bytes - 1)) == 0 && model_touches_inside(limits, offset, bytes);
}

static bool model_updates(const struct quoit_frame *f, const struct quoit_frame_limits *limits)
{
    uint8_t bytes[24];
    memcpy(bytes, &f->offset, 8);
    memcpy(bytes + 8, &f->operand, 16);
    for (uint32_t at = 0; at < 4u * f->size; at += 4)
        if (at >= 24 || (bytes[at + 3] << 3 | bytes[at + 2] >> 5) >= (int)(2 * limits->host_count))
            return false;
    return f->size > 0;
}

static bool model(const struct quoit_frame *f, enum quoit_class class, const struct quoit_frame_limits *limits)
{
    bool moves = f->kind <= 5 || f->kind == 10;
    bool is_amo = f->kind == 6 || f->kind == 7;
    bool is_put = f->kind >= 1 && f->kind <= 3;
    if (f->kind < 1 || f->kind > 13 || (f->kind < 10) != (class == QUOIT_CLASS_REQUEST))
        return false;
    if ((f->source_host == f->dest_host && !limits->has_loopback) || f->source_host >= limits->host_count ||
        f->dest_host >= limits->host_count)
        return false;
    if (f->kind != 8 && f->kind < 12 &&
        (f->source_pe >= limits->pe_counts[f->source_host] || f->dest_pe >= limits->pe_counts[f->dest_host]))
        return false;
    if (f->kind == 13 && !model_updates(f, limits))
        return false;
    if (f->flags > 15 || (!is_put && (f->flags & 1)))
        return false;
    if (moves && f->bytes > limits->chunk_bytes)
        return false;
    if (f->kind == 2 || f->kind == 5 || (f->kind == 10 && f->size != 0))
        return model_strided(f, limits);
    if (moves && !model_block(f, limits))
        return false;
    if (f->kind == 8)
        return f->op < 16 && f->bytes <= limits->chunk_bytes;
    if (f->kind == 9) /* a chunk is smaller than what one may have at most */
        return f->bytes >= 24 && (f->bytes & 7) == 0 && f->bytes <= limits->chunk_bytes;
    if (f->kind == 3)
        return f->op <= 1 && model_word(f->operand2, 8, limits);
    if (is_amo && f->kind == 7 && f->op == 8 &&
        (f->operand > 1 << 20 || !model_touches_inside(limits, f->offset, (uint32_t)f->operand)))
        return false;
    if (is_amo)
        return f->op < (f->kind == 7 ? 9 : 7) && (f->size == 4 || f->size == 8) &&
               model_word(f->offset, f->size, limits);
    return true;
}

static uint64_t odd_number(struct quoit_prng *prng, uint64_t around)
{
    switch (quoit_prng_choose(prng, 6)) {
    case 0:
        return quoit_prng_next(prng);
    case 1:
        return (uint64_t)0 - quoit_prng_choose(prng, 300);
    case 2:
        return around + quoit_prng_choose(prng, 5) - 2;
    case 3:
        return ((uint64_t)1 << 63) + quoit_prng_choose(prng, 3) - 1;
    case 4:
        return around - quoit_prng_choose(prng, 128);
    default:
        return quoit_prng_choose(prng, 20);
    }
}

static void make_frame(struct quoit_prng *prng, struct quoit_frame *f, const struct quoit_frame_limits *limits)
{
    static const uint8_t sizes[] = {0, 1, 2, 4, 8, 16, 8, 4};
    for (size_t i = 0; i < sizeof *f / 8; i++) /* noise in every field that the kind ignores */
        ((uint64_t *)f)[i] = quoit_prng_next(prng);
    f->kind = (uint8_t)quoit_prng_choose(prng, QUOIT_FRAME_KIND_COUNT);
    f->op = (uint8_t)quoit_prng_choose(prng, f->kind == QUOIT_FRAME_PUT_SIGNAL ? 2
                                             : f->kind == QUOIT_FRAME_MESSAGE  ? 18
                                                                               : 9);
    f->size = sizes[quoit_prng_choose(prng, 8)];
    f->flags = (uint8_t)(quoit_prng_choose(prng, 8) ? QUOIT_FRAME_RIGHT : quoit_prng_choose(prng, 17));
    f->source_host = (uint16_t)quoit_prng_choose(prng, 3);
    f->dest_host = (uint16_t)((f->source_host + !limits->has_loopback + quoit_prng_choose(prng, 2)) % 3);
    f->source_pe = (uint16_t)quoit_prng_choose(prng, pe_counts[f->source_host]);
    f->dest_pe = (uint16_t)quoit_prng_choose(prng, pe_counts[f->dest_host]);
    f->bytes = (uint32_t)(quoit_prng_choose(prng, 9) * 8);
    f->offset = quoit_prng_choose(prng, 2) ? quoit_prng_choose(prng, limits->segment_bytes)
                                           : limits->segment_bytes - 8 * quoit_prng_choose(prng, 10);
    if (quoit_prng_choose(prng, 3))
        f->offset &= ~(uint64_t)7;
    f->operand = quoit_prng_choose(prng, 60) - 30;
    f->operand2 = quoit_prng_choose(prng, limits->segment_bytes) & ~(uint64_t)7;
    if (f->kind == QUOIT_FRAME_TOPOLOGY) {
        uint64_t count = 1 + quoit_prng_choose(prng, QUOIT_LINK_UPDATES_MAX);
        f->size = 0;
        f->offset = f->operand = f->operand2 = 0;
        while (f->size < count)
            quoit_frame_add_update(f, (uint32_t)quoit_prng_choose(prng, 2 * limits->host_count),
                                   (uint32_t)quoit_prng_choose(prng, QUOIT_LINK_STATE_MAX + 1));
    }
}

static void spoil_one_field(struct quoit_prng *prng, struct quoit_frame *f, const struct quoit_frame_limits *limits)
{
    uint64_t segment = limits->segment_bytes;
    switch (quoit_prng_choose(prng, 13)) {
    case 0:
        f->kind = (uint8_t)odd_number(prng, QUOIT_FRAME_KIND_COUNT);
        break;
    case 1:
        f->op = (uint8_t)odd_number(prng, QUOIT_AMO_COUNT);
        break;
    case 2:
        f->size = (uint8_t)odd_number(prng, 16);
        break;
    case 3:
        f->flags = (uint8_t)odd_number(prng, 15);
        break;
    case 4:
        f->source_host = (uint16_t)odd_number(prng, limits->host_count);
        break;
    case 5:
        f->dest_host = (uint16_t)odd_number(prng, limits->host_count);
        break;
    case 6:
        f->source_pe = (uint16_t)odd_number(prng, 3);
        break;
    case 7:
        f->dest_pe = (uint16_t)odd_number(prng, 3);
        break;
    case 8:
        f->bytes = (uint32_t)odd_number(prng, limits->chunk_bytes);
        break;
    case 9:
        f->offset = odd_number(prng, segment);
        break;
    case 10:
        f->operand = odd_number(prng, quoit_prng_choose(prng, 2) ? segment / 8 : 1u << 24);
        break;
    case 11:
        f->token = (uint32_t)odd_number(prng, 2 * limits->host_count);
        break;
    default:
        f->operand2 = odd_number(prng, segment);
        break;
    }
}

static void check_agrees_with_the_model(void **state)
{
    (void)state;
    const char *text = getenv("QUOIT_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : 1;
    struct quoit_prng prng = {seed};
    struct quoit_frame_limits wide = small;
    wide.segment_bytes = UINT64_MAX - 100;
    wide.has_loopback = true;
    unsigned accepted[QUOIT_FRAME_KIND_COUNT] = {0}, refused[QUOIT_FRAME_KIND_COUNT] = {0};
    for (int i = 0; i < 400000; i++) {
        struct quoit_frame frame;
        const struct quoit_frame_limits *limits = quoit_prng_choose(&prng, 4) ? &small : &wide;
        make_frame(&prng, &frame, limits);
        for (uint64_t n = quoit_prng_choose(&prng, 3); n > 0; n--)
            spoil_one_field(&prng, &frame, limits);
        enum quoit_class class = quoit_frame_class(frame.kind);
        if (quoit_prng_choose(&prng, 20) == 0)
            class = (enum quoit_class) !class;
        bool expected = model(&frame, class, limits);
        bool actual = quoit_frame_check(&frame, class, limits) == QUOIT_OK;
        if (actual != expected)
            fail_msg("frame %d kind %u: check says %d, model says %d; replay: QUOIT_SEED=%llu unit_wire_frame_test", i,
                     frame.kind, actual, expected, (unsigned long long)seed);
        if (frame.kind < QUOIT_FRAME_KIND_COUNT)
            (actual ? accepted : refused)[frame.kind]++;
    }
    assert_int_equal(accepted[QUOIT_FRAME_NONE], 0);
    for (int kind = QUOIT_FRAME_PUT; kind < QUOIT_FRAME_KIND_COUNT; kind++) {
        assert_true(accepted[kind] > 1000);
        assert_true(refused[kind] > 1000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_is_the_documented_one),
        cmocka_unit_test(values_of_the_wire_are_the_documented_ones),
        cmocka_unit_test(boundaries_are_exact),
        cmocka_unit_test(memory_is_taken_inside_the_segment),
        cmocka_unit_test(updates_name_ends_that_are_there),
        cmocka_unit_test(elements_of_a_stride_are_bounded),
        cmocka_unit_test(puts_of_many_are_checked),
        cmocka_unit_test(check_agrees_with_the_model),
    };
    return cmocka_run_group_tests_name("wire.frame", tests, NULL, NULL);
}
