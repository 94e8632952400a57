/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what port.h promises between two concurrent sides: order, whole words, no lost wake, and a link that survives
 * the processes on it. Method: the other side is a process (a thread under the thread sanitizer) with its own opening;
 * each test runs for a given time, and every word that arrives is checked against what the sequence requires. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <sched.h>

#include "env/clock.h"
#include "env/wait.h"
#include "port/port_rig.h"

#define RUN_NS     700000000u
#define PATIENCE_S 60 /* a wait that takes longer was not woken */

#define WINDOW_AT    0x10000
#define WINDOW_BYTES 0x20000
#define ANSWER_AT    (WINDOW_BYTES - 64) /* in the window: the word that the reader of the window answers with */
#define STOP         UINT64_MAX

struct setup {
    struct rig rig;
    uint64_t seed;
    uint64_t count; /* what the test did, for its report */
};

static int set_up(void **state)
{
    struct setup *s = calloc(1, sizeof *s);
    rig_make(&s->rig, *state);
    s->seed = rig_seed();
    *state = s;
    return 0;
}

static int tear_down(void **state)
{
    struct setup *s = *state;
    rig_destroy(&s->rig);
    free(s);
    return 0;
}

/* A word of a host's window, as that host sees it. */
static _Atomic uint64_t *word_of(struct setup *s, uint32_t host, uint64_t offset)
{
    return (_Atomic uint64_t *)(void *)(s->rig.memory[host] + WINDOW_AT + offset);
}

/* Opens a side as its proxy does: translation, bit 0 on park 0. */
static struct quoit_port *open_proxy(struct setup *s, uint32_t side)
{
    struct quoit_port *port = rig_open(&s->rig, side);
    struct quoit_port_vector vector = rig_vector(0, 1);
    must(quoit_port_set_translation(port, QUOIT_WINDOW_SLOTS, WINDOW_AT, WINDOW_BYTES) == QUOIT_OK);
    must(quoit_port_set_vector(port, (uint32_t)__builtin_ctzll(rig_bell(port, 0)), &vector) == QUOIT_OK);
    quoit_port_doorbell_unmask(port, rig_bell(port, 0));
    quoit_port_link_enable(port);
    return port;
}

static void wait_for_link(struct quoit_port *port)
{
    while (!quoit_port_link_is_up(port))
        sched_yield();
}

/* A wait on a word of this host's window: clear, then check, then sleep. */
struct word_wait {
    struct quoit_port *port;
    _Atomic uint64_t *word;
    uint64_t at_least;
    uint64_t sleep_count;
};

static bool word_is_there(void *arg)
{
    struct word_wait *wait = arg;
    return atomic_load_explicit(wait->word, memory_order_acquire) >= wait->at_least;
}

static void clear_bit_0(void *arg)
{
    struct word_wait *wait = arg;
    quoit_port_doorbell_clear(wait->port, rig_bell(wait->port, 0));
}

static uint64_t wait_for_word(struct setup *s, uint32_t host, struct word_wait *wait, uint32_t spin_count)
{
    struct quoit_waiter waiter = {.park = rig_park(&s->rig, host, 0),
                                  .policy = {.spin_count = spin_count, .awake_ns = 0},
                                  .arm = clear_bit_0,
                                  .arm_arg = wait};
    must(quoit_wait_until(&waiter, word_is_there, wait, PATIENCE_S * 1000000000ull));
    wait->sleep_count += waiter.sleep_count;
    return atomic_load_explicit(wait->word, memory_order_acquire);
}

/* Order: side 0 fills slots and announces them, side 1 checks every word of every slot. A slot is announced by the word
 * of its number, or by the doorbell alone: then side 1 checks the last slot that was written before the ring. */
#define SLOT_COUNT 64
#define SLOT_BYTES 512

static uint64_t slot_word(uint64_t sequence, uint64_t index)
{
    return sequence << 16 | index;
}

static void check_slot(struct setup *s, uint64_t sequence)
{
    uint64_t at = sequence % SLOT_COUNT * SLOT_BYTES;
    uint64_t bytes = 8 + sequence % (SLOT_BYTES / 8) * 8;
    for (uint64_t i = 0; i < bytes / 8; i++)
        must(atomic_load_explicit(word_of(s, 1, at + i * 8), memory_order_relaxed) == slot_word(sequence, i));
}

#define TOLD_AT (SLOT_COUNT * SLOT_BYTES)

static void read_slots(void *arg)
{
    struct setup *s = arg;
    struct quoit_port *port = open_proxy(s, 1);
    struct word_wait wait = {.port = port, .word = word_of(s, 1, TOLD_AT)};
    wait_for_link(port);
    for (uint64_t sequence = 1;;) {
        wait.at_least = sequence;
        uint64_t told = wait_for_word(s, 1, &wait, 100);
        if (told == STOP)
            break;
        for (; sequence <= told; sequence++)
            check_slot(s, sequence);
        must(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, ANSWER_AT, told) == QUOIT_OK);
        quoit_port_ring(port, rig_bell(port, 0));
    }
    quoit_port_close(port);
}

static void test_writes_arrive_in_order(void **state)
{
    struct setup *s = *state;
    struct rig_other reader = {.run = read_slots, .arg = s};
    rig_other_start(&reader);
    struct quoit_port *port = open_proxy(s, 0);
    wait_for_link(port);
    struct word_wait wait = {.port = port, .word = word_of(s, 0, ANSWER_AT)};
    struct quoit_prng prng = {.state = s->seed};
    uint64_t deadline_ns = quoit_clock_now_ns() + RUN_NS, sequence = 0, words[SLOT_BYTES / 8];
    while (sequence % 256 != 0 || quoit_clock_now_ns() < deadline_ns) {
        sequence++;
        wait.at_least = sequence > SLOT_COUNT ? sequence - SLOT_COUNT : 0;
        if (!word_is_there(&wait)) {
            quoit_port_ring(port, rig_bell(port, 0)); /* what was written must be seen before waiting for its answer */
            wait_for_word(s, 0, &wait, 100);
        }
        for (uint64_t i = 0; i < SLOT_BYTES / 8; i++)
            words[i] = slot_word(sequence, i);
        uint64_t bytes = 8 + sequence % (SLOT_BYTES / 8) * 8;
        must(quoit_port_write(port, QUOIT_WINDOW_SLOTS, sequence % SLOT_COUNT * SLOT_BYTES, words, bytes) == QUOIT_OK);
        must(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, TOLD_AT, sequence) == QUOIT_OK);
        if (quoit_prng_choose(&prng, 16) == 0)
            quoit_port_ring(port, rig_bell(port, 0));
    }
    must(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, TOLD_AT, STOP) == QUOIT_OK);
    quoit_port_ring(port, rig_bell(port, 0));
    rig_other_join(&reader);
    quoit_port_close(port);
    printf("slots in order %llu, sleeps of the writer %llu\n", (unsigned long long)sequence,
           (unsigned long long)wait.sleep_count);
}

/* Scratchpads: both sides fill those of the other in turn and ring; the side that sees the bit finds all words of that
 * turn.
 */
#define PADS_STOP UINT32_MAX

static void offer_pads(struct quoit_port *port, uint32_t round)
{
    for (uint32_t i = 0; i < QUOIT_SCRATCHPAD_LEAST; i++)
        quoit_port_scratchpad_peer_write(port, i, round);
    must(quoit_port_ring(port, rig_bell(port, 0)));
}

static void take_pads(struct quoit_port *port, uint32_t round)
{
    uint64_t deadline_ns = quoit_clock_now_ns() + PATIENCE_S * 1000000000ull;
    while ((quoit_port_doorbell_read(port) & rig_bell(port, 0)) == 0) {
        must(quoit_clock_now_ns() < deadline_ns);
        sched_yield();
    }
    quoit_port_doorbell_clear(port, rig_bell(port, 0));
    uint32_t first = quoit_port_scratchpad_read(port, 0);
    must(first == round || first == PADS_STOP);
    for (uint32_t i = 1; i < QUOIT_SCRATCHPAD_LEAST; i++)
        must(quoit_port_scratchpad_read(port, i) == first);
}

static void answer_pads(void *arg)
{
    struct quoit_port *port = open_proxy(arg, 1);
    wait_for_link(port);
    for (uint32_t round = 1;; round++) {
        take_pads(port, round);
        if (quoit_port_scratchpad_read(port, 0) == PADS_STOP)
            break;
        offer_pads(port, round);
    }
    quoit_port_close(port);
}

static void test_scratchpads_arrive_before_a_doorbell(void **state)
{
    struct setup *s = *state;
    struct rig_other other = {.run = answer_pads, .arg = s};
    rig_other_start(&other);
    struct quoit_port *port = open_proxy(s, 0);
    wait_for_link(port);
    uint64_t deadline_ns = quoit_clock_now_ns() + RUN_NS;
    uint32_t round = 0;
    while (quoit_clock_now_ns() < deadline_ns) {
        offer_pads(port, ++round);
        take_pads(port, round);
    }
    offer_pads(port, PADS_STOP);
    rig_other_join(&other);
    quoit_port_close(port);
    printf("turns of scratchpads %u\n", round);
}

/* No lost wake: two sides pass a number back and forth, each asleep until the other's ring. The park's own timeout is
 * the test's patience, so one lost wake fails the test. */
static void throw_back(void *arg)
{
    struct setup *s = arg;
    struct quoit_port *port = open_proxy(s, 1);
    struct word_wait wait = {.port = port, .word = word_of(s, 1, 0)};
    struct quoit_prng prng = {.state = s->seed + 1};
    wait_for_link(port);
    for (uint64_t round = 1;; round++) {
        wait.at_least = round;
        if (wait_for_word(s, 1, &wait, (uint32_t)quoit_prng_choose(&prng, 40)) == STOP)
            break;
        must(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, ANSWER_AT, round) == QUOIT_OK);
        quoit_port_ring(port, rig_bell(port, 0));
    }
    quoit_port_close(port);
}

static void test_no_wake_is_lost(void **state)
{
    struct setup *s = *state;
    struct rig_other other = {.run = throw_back, .arg = s};
    rig_other_start(&other);
    struct quoit_port *port = open_proxy(s, 0);
    struct word_wait wait = {.port = port, .word = word_of(s, 0, ANSWER_AT)};
    struct quoit_prng prng = {.state = s->seed};
    wait_for_link(port);
    uint64_t deadline_ns = quoit_clock_now_ns() + RUN_NS, round = 0;
    while (quoit_clock_now_ns() < deadline_ns) {
        round++;
        must(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, 0, round) == QUOIT_OK);
        quoit_port_ring(port, rig_bell(port, 0));
        wait.at_least = round;
        wait_for_word(s, 0, &wait, (uint32_t)quoit_prng_choose(&prng, 40));
    }
    must(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, 0, STOP) == QUOIT_OK);
    quoit_port_ring(port, rig_bell(port, 0));
    rig_other_join(&other);
    quoit_port_close(port);
    printf("throws %llu, sleeps %llu\n", (unsigned long long)round, (unsigned long long)wait.sleep_count);
}

/* The same with several ringers of one bit: three openings of side 0 each increment a word and poll for the response to
 * it, while side 1 sleeps until the sum changes. */
#define RINGER_COUNT 3

struct ringer {
    struct setup *setup;
    uint64_t index;
    uint64_t count;
};

static void ring_alone(void *arg)
{
    struct ringer *ringer = arg;
    struct setup *s = ringer->setup;
    struct quoit_port *port = rig_open(&s->rig, 0);
    wait_for_link(port);
    uint64_t at = ringer->index * 64, patience_ns = quoit_clock_now_ns() + PATIENCE_S * 1000000000ull;
    for (uint64_t i = 1; i <= ringer->count; i++) {
        must(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, at, i) == QUOIT_OK);
        quoit_port_ring(port, rig_bell(port, 0));
        while (atomic_load_explicit(word_of(s, 0, at), memory_order_acquire) < i) {
            must(quoit_clock_now_ns() < patience_ns);
            sched_yield();
        }
    }
    quoit_port_close(port);
}

struct sum_wait {
    struct setup *setup;
    struct quoit_port *port;
    uint64_t seen[RINGER_COUNT];
};

static bool some_word_moved(void *arg)
{
    struct sum_wait *wait = arg;
    bool has_moved = false;
    for (uint64_t i = 0; i < RINGER_COUNT; i++) {
        uint64_t value = atomic_load_explicit(word_of(wait->setup, 1, i * 64), memory_order_acquire);
        if (value == wait->seen[i])
            continue;
        must(value == wait->seen[i] + 1);
        wait->seen[i] = value;
        must(quoit_port_write64(wait->port, QUOIT_WINDOW_SLOTS, i * 64, value) == QUOIT_OK);
        has_moved = true;
    }
    return has_moved;
}

static void clear_for_sum(void *arg)
{
    quoit_port_doorbell_clear(((struct sum_wait *)arg)->port, rig_bell(((struct sum_wait *)arg)->port, 0));
}

static void test_no_wake_of_several_ringers_is_lost(void **state)
{
    struct setup *s = *state;
    struct rig_other others[RINGER_COUNT];
    struct ringer ringers[RINGER_COUNT];
    uint64_t count = rig_rounds(&s->rig, 5000);
    for (uint64_t i = 0; i < RINGER_COUNT; i++) {
        ringers[i] = (struct ringer){.setup = s, .index = i, .count = count};
        others[i] = (struct rig_other){.run = ring_alone, .arg = &ringers[i]};
        rig_other_start(&others[i]);
    }
    /* Ports may bring threads, and AddressSanitizer's allocator does not outlive a fork beside them. */
    struct quoit_port *own = open_proxy(s, 0);
    struct sum_wait wait = {.setup = s, .port = open_proxy(s, 1)};
    rig_await_link(wait.port, true); /* before it answers those who have seen it up */
    struct quoit_waiter waiter = {
        .park = rig_park(&s->rig, 1, 0), .policy = {0, 0}, .arm = clear_for_sum, .arm_arg = &wait};
    while (wait.seen[0] + wait.seen[1] + wait.seen[2] < RINGER_COUNT * count)
        assert_true(quoit_wait_until(&waiter, some_word_moved, &wait, PATIENCE_S * 1000000000ull));
    for (uint64_t i = 0; i < RINGER_COUNT; i++)
        rig_other_join(&others[i]);
    quoit_port_close(own);
    quoit_port_close(wait.port);
    printf("rings %llu, sleeps %llu\n", (unsigned long long)(RINGER_COUNT * count),
           (unsigned long long)waiter.sleep_count);
}

/* Whole words: the writer overwrites ranges again and again, at every length and misalignment of its source, each time
 * with bytes that are alike. The reader may meet old and new words, never a mixed one. One range has words of 8 bytes,
 * the next of 4, the last of 2: there writes begin and end at any such word, and are short, so that a reader meets the
 * beginning of one often enough. */
#define WORDS_BYTES 16384
#define PARTS_BYTES 64 /* of the ranges with smaller words */
#define PARTS_TURNS 300
#define WORD_RANGES 3

static void write_alike_words(void *arg)
{
    struct setup *s = arg;
    struct quoit_port *port = open_proxy(s, 1);
    struct quoit_prng prng = {.state = s->seed};
    uint8_t source[WORDS_BYTES + 8];
    wait_for_link(port);
    for (uint64_t i = 1; atomic_load(word_of(s, 1, 0)) != STOP; i++) {
        uint64_t range = quoit_prng_choose(&prng, WORD_RANGES), size = 8 >> range;
        uint64_t range_bytes = range == 0 ? WORDS_BYTES : PARTS_BYTES;
        uint64_t most = range == 0 && quoit_prng_choose(&prng, 2) == 0 ? WORDS_BYTES / size : range == 0 ? 16 : 3;
        uint64_t bytes = size * (1 + quoit_prng_choose(&prng, most));
        uint64_t offset = range * WORDS_BYTES + size * quoit_prng_choose(&prng, (range_bytes - bytes) / size + 1);
        uint64_t skew = quoit_prng_choose(&prng, 8);
        memset(source, (int)(i & 0xff), sizeof source);
        must(quoit_port_write(port, QUOIT_WINDOW_SLOTS, offset, source + skew, bytes) == QUOIT_OK);
    }
    quoit_port_close(port);
}

static uint64_t read_words(struct setup *s)
{
    for (uint64_t at = 0; at < WORDS_BYTES; at += 8) {
        uint64_t word = atomic_load_explicit(word_of(s, 0, at), memory_order_relaxed);
        must(word == (word & 0xff) * 0x0101010101010101u);
    }
    return WORDS_BYTES / 8;
}

static uint64_t read_parts(struct setup *s)
{
    const uint32_t *words = (const uint32_t *)(const void *)word_of(s, 0, WORDS_BYTES);
    const uint16_t *halves = (const uint16_t *)(const void *)word_of(s, 0, 2 * WORDS_BYTES);
    for (uint32_t i = 0; i < PARTS_BYTES / sizeof *words; i++) {
        uint32_t word = __atomic_load_n(&words[i], __ATOMIC_RELAXED);
        must(word == (word & 0xff) * 0x01010101u);
    }
    for (uint32_t i = 0; i < PARTS_BYTES / sizeof *halves; i++) {
        uint16_t half = __atomic_load_n(&halves[i], __ATOMIC_RELAXED);
        must(half == (half & 0xff) * 0x0101u);
    }
    return PARTS_BYTES / sizeof *words + PARTS_BYTES / sizeof *halves;
}

static void test_words_are_whole(void **state)
{
    struct setup *s = *state;
    struct rig_other writer = {.run = write_alike_words, .arg = s};
    rig_other_start(&writer);
    struct quoit_port *port = open_proxy(s, 0);
    wait_for_link(port);
    uint64_t deadline_ns = quoit_clock_now_ns() + RUN_NS, read_count = 0;
    while (quoit_clock_now_ns() < deadline_ns) {
        read_count += read_words(s);
        for (uint32_t turn = 0; turn < PARTS_TURNS; turn++)
            read_count += read_parts(s);
    }
    must(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, 0, STOP) == QUOIT_OK);
    rig_other_join(&writer);
    quoit_port_close(port);
    printf("words read %llu\n", (unsigned long long)read_count);
}

/* Link down in the middle of large writes: the writer gets QUOIT_OK or QUOIT_LINK_DOWN and nothing else; whatever
 * arrived is what was written; and after each new link, with the translation set again, writing works. */
static void write_large(void *arg)
{
    struct setup *s = arg;
    struct quoit_port *port = rig_open(&s->rig, 1);
    uint8_t *source = malloc(WINDOW_BYTES);
    memset(source, 0x5a, WINDOW_BYTES);
    uint64_t down_count = 0, done_count = 0;
    while (atomic_load(word_of(s, 1, 0)) != STOP) {
        enum quoit_status status = quoit_port_write(port, QUOIT_WINDOW_SLOTS, 0, source, WINDOW_BYTES);
        must(status == QUOIT_OK || status == QUOIT_LINK_DOWN);
        down_count += status == QUOIT_LINK_DOWN;
        done_count += status == QUOIT_OK;
    }
    printf("large writes %llu, met by link-down %llu\n", (unsigned long long)done_count,
           (unsigned long long)down_count);
    fflush(stdout);
    free(source);
    quoit_port_close(port);
}

static void test_link_drops_under_large_writes(void **state)
{
    struct setup *s = *state;
    struct rig_other writer = {.run = write_large, .arg = s};
    rig_other_start(&writer);
    struct quoit_port *port = open_proxy(s, 0), *peer = open_proxy(s, 1);
    uint64_t deadline_ns = quoit_clock_now_ns() + RUN_NS;
    while (quoit_clock_now_ns() < deadline_ns) {
        rig_await_link(peer, true);
        uint32_t epoch = quoit_port_link_epoch(peer);
        quoit_port_link_disable(port);
        rig_await_link(peer, false);
        quoit_port_link_enable(port);
        rig_await_link(peer, true);
        assert_int_equal(quoit_port_link_epoch(peer), epoch + 1);
        must(quoit_port_set_translation(port, QUOIT_WINDOW_SLOTS, WINDOW_AT, WINDOW_BYTES) == QUOIT_OK);
        for (uint64_t spin = 0; atomic_load(word_of(s, 0, WINDOW_BYTES - 8)) == 0; spin++)
            spin % 64 == 63 ? quoit_clock_sleep_ns(100000) : (void)sched_yield();
        for (uint64_t at = 0; at < WINDOW_BYTES; at += 8) {
            uint64_t word = atomic_load_explicit(word_of(s, 0, at), memory_order_relaxed);
            must(word == 0x5a5a5a5a5a5a5a5au || word == 0);
        }
        atomic_store(word_of(s, 0, WINDOW_BYTES - 8), 0);
        for (uint64_t at = 0; at < WINDOW_AT; at += 8)
            must(*(uint64_t *)(void *)(s->rig.memory[0] + at) == 0); /* nothing beside the window */
    }
    must(quoit_port_set_translation(peer, QUOIT_WINDOW_SLOTS, WINDOW_AT, WINDOW_BYTES) == QUOIT_OK);
    must(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, 0, STOP) == QUOIT_OK);
    rig_other_join(&writer);
    quoit_port_close(port);
    quoit_port_close(peer);
}

/* The translation moves while others write: a write lands in the range of before or of after, nowhere else. */
#define RANGE_COUNT 8
#define RANGE_BYTES 8192

/* So that offset and bytes of two translations do not fit. */
static uint64_t range_bytes(uint64_t index, uint64_t unit)
{
    return (RANGE_BYTES - index * 1024 + unit - 1) / unit * unit;
}

static void write_into_moving_range(void *arg)
{
    struct setup *s = arg;
    struct quoit_port *port = rig_open(&s->rig, 1);
    uint8_t source[2 * RANGE_BYTES];
    memset(source, 0xc3, sizeof source);
    wait_for_link(port);
    while (atomic_load(word_of(s, 1, 0)) != STOP)
        must(quoit_port_write(port, QUOIT_WINDOW_MEMORY, 0, source, sizeof source) == QUOIT_OK);
    quoit_port_close(port);
}

static void test_translation_moves_under_writes(void **state)
{
    struct setup *s = *state;
    struct rig_other writer = {.run = write_into_moving_range, .arg = s};
    rig_other_start(&writer);
    struct quoit_port *port = open_proxy(s, 0), *peer = open_proxy(s, 1);
    struct quoit_port_limits limits;
    quoit_port_limits(port, &limits);
    uint64_t deadline_ns = quoit_clock_now_ns() + RUN_NS, move_count = 0;
    for (; quoit_clock_now_ns() < deadline_ns; move_count++) {
        uint64_t index = move_count % RANGE_COUNT;
        uint64_t bytes = range_bytes(index, limits.translation_bytes_align);
        must(quoit_port_set_translation(port, QUOIT_WINDOW_MEMORY, 2 * index * RANGE_BYTES, bytes) == QUOIT_OK);
        if (move_count % 64 == 0)
            sched_yield();
    }
    must(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, 0, STOP) == QUOIT_OK);
    rig_other_join(&writer);
    for (uint64_t at = 0; at < 2 * RANGE_COUNT * RANGE_BYTES; at++) {
        uint64_t index = at / (2 * RANGE_BYTES), inside = at % (2 * RANGE_BYTES);
        if (inside >= range_bytes(index, limits.translation_bytes_align))
            assert_int_equal(s->rig.memory[0][at], 0);
    }
    quoit_port_close(port);
    quoit_port_close(peer);
    printf("moves %llu\n", (unsigned long long)move_count);
}

/* Killed in mid-operation: a process that does everything at once is killed at a random instant, repeatedly; each time
 * the link must still work for the openings of the others. */
static void do_everything(struct setup *s, uint32_t side)
{
    struct quoit_port *port = open_proxy(s, side);
    struct quoit_prng prng = {.state = s->seed ^ s->count};
    uint8_t *source = calloc(1, WINDOW_BYTES);
    struct quoit_dma_done done[8];
    for (;;) {
        uint64_t bytes = quoit_prng_choose(&prng, WINDOW_BYTES + 1);
        (void)!quoit_port_write(port, QUOIT_WINDOW_SLOTS, 0, source, bytes);
        (void)!quoit_port_write64(port, QUOIT_WINDOW_SLOTS, bytes & ~(uint64_t)7, 0);
        quoit_port_ring(port, rig_bell(port, 0));
        quoit_port_scratchpad_peer_write(port, (uint32_t)bytes % QUOIT_SCRATCHPAD_LEAST, 1);
        if (quoit_port_dma_submit(port, 0, QUOIT_WINDOW_SLOTS, 0, source, bytes, 0) != QUOIT_INVALID)
            quoit_port_dma_poll(port, 0, done, 8);
        struct quoit_port_vector vector = rig_vector((uint32_t)bytes % 8, 1 + (uint32_t)bytes % 3);
        (void)!quoit_port_set_vector(port, (uint32_t)__builtin_ctzll(rig_bell(port, 1)), &vector);
        (void)!quoit_port_set_translation(port, QUOIT_WINDOW_MEMORY, bytes & ~(uint64_t)4095, 4096);
        quoit_port_doorbell_clear(port, rig_bell(port, 0) | rig_bell(port, 1));
        quoit_port_doorbell_mask(port, rig_bell(port, 1));
        quoit_port_doorbell_unmask(port, rig_bell(port, 1));
        if (bytes % 16 == 0)
            quoit_port_link_disable(port);
        quoit_port_link_enable(port);
        (void)!quoit_port_set_translation(port, QUOIT_WINDOW_SLOTS, WINDOW_AT, WINDOW_BYTES);
    }
}

/* The link as it is found, set up again by a new proxy on each side, carries data and wakes. */
static void check_link_works(struct setup *s, uint64_t round)
{
    struct quoit_port *ports[2] = {open_proxy(s, 0), open_proxy(s, 1)};
    rig_await_link(ports[0], true);
    rig_await_link(ports[1], true);
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t host = 1 - side;
        uint64_t offset = 8 * (round % 100), back = 0;
        assert_int_equal(quoit_port_write64(ports[side], QUOIT_WINDOW_SLOTS, offset, round + side), QUOIT_OK);
        assert_int_equal(quoit_port_read(ports[side], QUOIT_WINDOW_SLOTS, offset, &back, 8), QUOIT_OK);
        assert_int_equal(atomic_load(word_of(s, host, offset)), round + side);
        assert_int_equal(back, round + side);
        quoit_port_scratchpad_peer_write(ports[side], 1, (uint32_t)round);
        rig_arrive(&s->rig, ports[side]);
        assert_int_equal(quoit_port_scratchpad_read(ports[host], 1), (uint32_t)round);
        struct quoit_park *park = rig_park(&s->rig, host, 0);
        uint32_t key = quoit_park_prepare(park);
        quoit_port_doorbell_clear(ports[host], quoit_port_doorbell_read(ports[host]));
        quoit_port_ring(ports[side], rig_bell(ports[side], 0));
        rig_arrive(&s->rig, ports[side]);
        rig_interrupt(&s->rig);
        assert_int_not_equal(atomic_load(&park->epoch), key);
        assert_int_equal(quoit_port_doorbell_read(ports[host]), rig_bell(ports[host], 0));
        quoit_park_cancel(park);
    }
    rig_disconnect(ports);
}

static void test_killed_processes_leave_the_link_usable(void **state)
{
    struct setup *s = *state;
    struct quoit_prng prng = {.state = s->seed};
    for (s->count = 0; s->count < rig_rounds(&s->rig, 60); s->count++) {
        pid_t pids[2];
        fflush(NULL);
        for (uint32_t i = 0; i < 2; i++) {
            pids[i] = fork();
            if (pids[i] == 0) {
                rig_die_with_parent();
                do_everything(s, i);
            }
        }
        struct quoit_port *ports[2] = {open_proxy(s, 0), open_proxy(s, 1)};
        quoit_clock_sleep_ns(1000000 + quoit_prng_choose(&prng, 4000000));
        for (uint32_t i = 0; i < 2; i++) {
            kill(pids[i], SIGKILL);
            assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
        }
        rig_disconnect(ports);
        check_link_works(s, s->count);
    }
}

#define T(test)                                                                                                        \
    {                                                                                                                  \
#test, test, set_up, tear_down, NULL                                                                           \
    }

int main(void)
{
    int failures = 0;
    for (size_t i = 0; i < RIG_DRIVER_COUNT; i++) {
        if (rig_table_of(&rig_drivers[i]) == NULL)
            continue; /* a test driver, in a build without */
        struct CMUnitTest tests[] = {
            T(test_writes_arrive_in_order),
            T(test_scratchpads_arrive_before_a_doorbell),
            T(test_no_wake_is_lost),
            T(test_no_wake_of_several_ringers_is_lost),
            T(test_words_are_whole),
            T(test_link_drops_under_large_writes),
            T(test_translation_moves_under_writes),
            T(test_killed_processes_leave_the_link_usable),
        };
        for (size_t j = 0; j < sizeof tests / sizeof tests[0]; j++)
            tests[j].initial_state = (void *)(uintptr_t)&rig_drivers[i];
        failures += cmocka_run_group_tests_name(rig_drivers[i].name, tests, NULL, NULL);
    }
    return failures;
}
