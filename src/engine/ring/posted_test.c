/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: whatever a link loses, each direct put is written exactly once at the neighbour, in order, and quiet returns
 * when it has arrived. Method: one PE on a port of the test, which holds posted writes until the test lets a part
 * arrive, cuts the link or reads through the window; the test executes requests whenever the PE waits, so nothing
 * depends on time. Every write at the neighbour is counted by word. First losses written out one by one, then random
 * ones. */
#include "engine/ring/ring_engine.h"
#include "base/prng.h"
#include "engine/ring/journal.h"
#include "env/primitives.h"
#include "port/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define POSTED_MAX   4096u /* on the wire */
#define WORDS_MAX    65536u
#define WINDOW_BYTES (32u << 20)
#define BELLS        0xffffu
#define SIDE         QUOIT_RIGHT
#define RANDOM_PUTS  3000u
#define RANDOM_SEEDS 20u
#define LOOKS_MAX    1000000u
#define PUT_WORDS    (QUOIT_JOURNAL_PUT_MAX / 8)

struct posted {
    uint64_t offset;
    uint64_t mark_offset;
    uint64_t mark;
    size_t bytes;
    uint64_t words[PUT_WORDS];
};

static struct {
    struct quoit_layout layout;
    struct quoit_self self;
    struct quoit_engine *engine;
    struct quoit_context context;
    struct quoit_peer peer;
    char *memory;
    char *neighbour; /* the first segment of the next host */
    uint64_t heap;   /* where the heap begins in a segment */
    /* the link */
    uint32_t capabilities;
    uint64_t window_bytes;
    bool is_cut;
    uint32_t epoch;
    uint32_t bound;
    uint32_t bind_count;
    uint32_t open_count;      /* ports */
    uint32_t attempt_count;   /* to open one */
    uint32_t refused_attempt; /* this one fails; 0: none */
    struct posted *wire;
    uint32_t wire_count;
    uint32_t rung_behind; /* so many were on the wire when the doorbell rang last */
    /* requests */
    uint32_t submit_head;
    uint32_t put_pes; /* of puts: a bit for each PE of the host */
    uint32_t question_count;
    uint32_t unordered_count;
    uint32_t strided_count;
    uint64_t written_at_atomic;
    /* what happened at the neighbour */
    uint32_t write_counts[WORDS_MAX];
    uint64_t last_written; /* numbers of puts never go back */
    bool is_in_order;
    uint64_t now_ns;
    uint32_t look_count;
} test;

/* At the neighbour */

/* Every word of a put is its number, and no two puts go to the same place. */
static void write_there(uint64_t offset, const void *from, size_t bytes)
{
    uint64_t first = (offset - test.heap) / 8, number;
    assert_int_equal(bytes % 8, 0);
    assert_in_range(first + bytes / 8, 1, WORDS_MAX);
    memcpy(test.neighbour + offset, from, bytes);
    memcpy(&number, from, sizeof number);
    for (uint64_t i = 0; i < bytes / 8; i++)
        test.write_counts[first + i]++;
    test.is_in_order &= number >= test.last_written;
    test.last_written = number;
}

static void arrive(uint32_t count)
{
    assert_in_range(count, 0, test.wire_count);
    for (uint32_t i = 0; i < count; i++) {
        struct posted *posted = &test.wire[i];
        write_there(posted->offset, posted->words, posted->bytes);
        if (posted->mark_offset != 0)
            memcpy(test.neighbour + posted->mark_offset, &posted->mark, sizeof posted->mark);
    }
    memmove(test.wire, test.wire + count, (test.wire_count - count) * sizeof *test.wire);
    test.wire_count -= count;
}

/* What was posted may still arrive until a call returns LINK_DOWN. */
static void cut(void)
{
    test.is_cut = true;
}

static enum quoit_status refuse(void)
{
    test.wire_count = 0;
    return QUOIT_LINK_DOWN;
}

static struct quoit_host_header *header(void)
{
    return (struct quoit_host_header *)test.memory;
}

/* The link is whole, and both proxies have it up. */
static void come_back(void)
{
    test.is_cut = false;
    test.wire_count = 0;
    test.epoch++;
    atomic_store(&header()->links[SIDE].port_epoch, test.epoch);
}

/* The port */

static bool reaches(void)
{
    return !test.is_cut && (test.bound == 0 || test.bound == test.epoch);
}

static enum quoit_status port_write_marked(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                           const void *source, size_t bytes, uint64_t mark_offset, uint64_t mark)
{
    (void)port;
    assert_int_equal(window, QUOIT_WINDOW_MEMORY);
    if (!reaches())
        return refuse();
    assert_in_range(bytes, 1, QUOIT_JOURNAL_PUT_MAX);
    assert_in_range(test.wire_count, 0, POSTED_MAX - 1);
    struct posted *posted = &test.wire[test.wire_count++];
    *posted = (struct posted){.offset = offset, .bytes = bytes, .mark_offset = mark_offset, .mark = mark};
    memcpy(posted->words, source, bytes);
    return QUOIT_OK;
}

static enum quoit_status port_write(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                    const void *source, size_t bytes)
{
    enum quoit_status status = QUOIT_OK;
    for (size_t at = 0; at < bytes && status == QUOIT_OK; at += QUOIT_JOURNAL_PUT_MAX) {
        size_t part = bytes - at < QUOIT_JOURNAL_PUT_MAX ? bytes - at : QUOIT_JOURNAL_PUT_MAX;
        status = port_write_marked(port, window, offset + at, (const char *)source + at, part, 0, 0);
    }
    return status;
}

static enum quoit_status port_write64(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                      uint64_t value)
{
    return port_write(port, window, offset, &value, sizeof value);
}

static enum quoit_status port_read(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                   void *destination, size_t bytes)
{
    (void)port;
    (void)window;
    if (!reaches())
        return refuse();
    arrive(test.wire_count);
    memcpy(destination, test.neighbour + offset, bytes);
    return QUOIT_OK;
}

static enum quoit_status port_open(const struct quoit_port_config *config, struct quoit_port **port_out)
{
    (void)config;
    if (++test.attempt_count == test.refused_attempt)
        return QUOIT_SYSTEM;
    test.open_count++;
    *port_out = calloc(1, sizeof **port_out);
    assert_non_null(*port_out);
    (*port_out)->limits = (struct quoit_port_limits){.window_bytes = {1 << 20, test.window_bytes},
                                                     .translation_align = 4096,
                                                     .translation_bytes_align = 1,
                                                     .doorbell_bits = BELLS,
                                                     .scratchpad_count = QUOIT_SCRATCHPAD_COUNT,
                                                     .capabilities = test.capabilities};
    return QUOIT_OK;
}

static void port_close(struct quoit_port *port)
{
    test.open_count--;
    free(port);
}

static bool port_link_is_up(const struct quoit_port *port)
{
    (void)port;
    return !test.is_cut;
}

static uint32_t port_link_epoch(const struct quoit_port *port)
{
    (void)port;
    return test.epoch;
}

static enum quoit_status port_bind(struct quoit_port *port, uint32_t epoch)
{
    (void)port;
    if (test.is_cut || epoch != test.epoch)
        return QUOIT_LINK_DOWN;
    test.bound = epoch;
    test.bind_count++;
    return QUOIT_OK;
}

static bool port_ring(struct quoit_port *port, uint64_t bits)
{
    (void)port;
    (void)bits;
    test.rung_behind = test.wire_count;
    return reaches();
}

static uint64_t port_doorbell_read(struct quoit_port *port)
{
    (void)port;
    return 0;
}

static void port_doorbell_clear(struct quoit_port *port, uint64_t bits)
{
    (void)port;
    (void)bits;
}

static void not_called(void)
{
    fail_msg("a PE has no business with this");
}

static void port_link_enable(struct quoit_port *port, bool is_enabled)
{
    (void)port;
    (void)is_enabled;
    not_called();
}

static enum quoit_status port_set_translation(struct quoit_port *port, enum quoit_window window, uint64_t offset,
                                              uint64_t bytes)
{
    (void)port;
    (void)window;
    (void)offset;
    (void)bytes;
    not_called();
    return QUOIT_INVALID;
}

static uint32_t port_scratchpad_read(struct quoit_port *port, uint32_t index)
{
    (void)port;
    not_called();
    return index;
}

static void port_scratchpad_peer_write(struct quoit_port *port, uint32_t index, uint32_t value)
{
    (void)port;
    (void)index;
    (void)value;
    not_called();
}

static void port_doorbell_set_mask(struct quoit_port *port, uint64_t bits, bool is_masked)
{
    (void)port;
    (void)bits;
    (void)is_masked;
    not_called();
}

static void port_set_vector(struct quoit_port *port, uint32_t bit, const struct quoit_port_vector *vector)
{
    (void)port;
    (void)bit;
    (void)vector;
    not_called();
}

static const struct quoit_port_ops port_ops = {
    .open = port_open,
    .close = port_close,
    .link_enable = port_link_enable,
    .link_is_up = port_link_is_up,
    .link_epoch = port_link_epoch,
    .bind = port_bind,
    .set_translation = port_set_translation,
    .write = port_write,
    .write64 = port_write64,
    .write_marked = port_write_marked,
    .read = port_read,
    .scratchpad_read = port_scratchpad_read,
    .scratchpad_peer_write = port_scratchpad_peer_write,
    .ring = port_ring,
    .doorbell_read = port_doorbell_read,
    .doorbell_clear = port_doorbell_clear,
    .doorbell_set_mask = port_doorbell_set_mask,
    .set_vector = port_set_vector,
};
static const struct quoit_port_driver port_driver = {.name = "test", .ops = &port_ops};

/* The proxy: sees losses and executes requests, in order, whenever the PE waits. */

static void execute(struct quoit_request *request)
{
    const struct quoit_frame *frame = &request->frame;
    switch (frame->kind) {
    case QUOIT_FRAME_PUT:
        test.put_pes |= 1u << frame->dest_pe;
        test.unordered_count += (frame->flags & QUOIT_FRAME_ORDERED) == 0;
        write_there(frame->offset, test.memory + request->data_offset, frame->bytes);
        break;
    case QUOIT_FRAME_PUT_STRIDED:
        test.strided_count++;
        for (uint32_t at = 0; at < frame->bytes; at += frame->size)
            write_there(frame->offset + at / frame->size * frame->operand, test.memory + request->data_offset + at,
                        frame->size);
        break;
    case QUOIT_FRAME_GET:
        test.question_count++;
        memcpy(test.memory + request->data_offset, test.neighbour + frame->offset, frame->bytes);
        arrive(test.wire_count); /* as late as it may */
        break;
    default: /* the one that wakes adds 0; others see how much has been written */
        assert_int_equal(frame->kind, QUOIT_FRAME_AMO);
        if (frame->operand != 0)
            test.written_at_atomic = test.last_written;
    }
}

static void serve(void)
{
    struct quoit_channel *channel = quoit_memory_channel(&test.layout, test.memory, 0, 0);
    struct quoit_link_record *record = &header()->links[SIDE];
    if (++test.look_count > LOOKS_MAX)
        fail_msg("the PE waits for what does not come");
    if (test.is_cut || atomic_load(&record->port_epoch) != test.epoch)
        atomic_store(&record->port_epoch, 0);
    while (test.submit_head != atomic_load(&channel->submit_tail)) {
        uint16_t index = channel->submit[test.submit_head++ % QUOIT_REQUESTS_A_CHANNEL];
        uint32_t tail = atomic_load(&channel->complete_tail);
        execute(&channel->requests[index]);
        channel->complete[tail % QUOIT_REQUESTS_A_CHANNEL] = index;
        atomic_store(&channel->complete_tail, tail + 1);
    }
}

/* Time */

static uint64_t now_ns(void)
{
    return ++test.now_ns;
}

static void sleep_ns(uint64_t duration_ns)
{
    test.now_ns += duration_ns;
    serve();
}

static uint32_t pause_once(uint32_t most, bool is_in_vain)
{
    (void)most;
    (void)is_in_vain;
    serve();
    return 1;
}

static void yield(bool is_in_vain)
{
    (void)is_in_vain;
    serve();
}

static void barrier(void)
{
}

static void sleep_on(_Atomic uint32_t *word, uint32_t value, uint64_t timeout_ns)
{
    (void)word;
    (void)value;
    (void)timeout_ns;
    serve();
}

static void wake_all(_Atomic uint32_t *word)
{
    (void)word;
}

static struct quoit_wait_habit *habit(void)
{
    static _Thread_local struct quoit_wait_habit own;
    return &own;
}

static int unknown_processor(void)
{
    return -1;
}

static const struct quoit_primitives primitives = {.now_ns = now_ns,
                                                   .sleep_ns = sleep_ns,
                                                   .pause = pause_once,
                                                   .yield = yield,
                                                   .barrier = barrier,
                                                   .sleep_on = sleep_on,
                                                   .wake_all = wake_all,
                                                   .habit = habit,
                                                   .processor_own = unknown_processor};

/* The PE */

static char *map(uint64_t bytes)
{
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    return memory;
}

static void make_host(uint32_t capabilities, enum quoit_direct_puts direct_puts, uint64_t window_bytes)
{
    const struct quoit_job_config job = {.host_count = 3,
                                         .pe_count = 6,
                                         .lane_count = 1,
                                         .slot_count = 2,
                                         .chunk_bytes = QUOIT_JOURNAL_PUT_MAX,
                                         .direct_puts = (uint8_t)direct_puts,
                                         .data_bytes = 4096,
                                         .heap_bytes = WORDS_MAX * 8};
    memset(&test, 0, sizeof test);
    test.capabilities = capabilities;
    test.window_bytes = window_bytes;
    test.epoch = 1;
    test.is_in_order = true;
    assert_int_equal(quoit_layout_make(&job, 0, &test.layout), QUOIT_OK);
    test.heap = test.layout.segment_heap;
    test.memory = map(test.layout.total_bytes);
    test.neighbour = map(test.layout.segment_stride);
    test.wire = calloc(POSTED_MAX, sizeof *test.wire);
    assert_non_null(test.wire);
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
        header()->direct_bytes[side] = QUOIT_DMA_NEVER;
        header()->links[side].own_doorbells = header()->links[side].peer_doorbells = BELLS;
    }
    atomic_store(&header()->links[SIDE].port_epoch, test.epoch);
    quoit_primitives = &primitives;
    quoit_self_init(&test.self, &test.layout, test.memory, 0, quoit_wait_policy_for(1, 2));
}

static void free_host(void)
{
    quoit_primitives = NULL;
    munmap(test.memory, test.layout.total_bytes);
    munmap(test.neighbour, test.layout.segment_stride);
    free(test.wire);
}

static enum quoit_status open_engine(void)
{
    const struct quoit_port_endpoint endpoint = {0};
    struct quoit_port_config ports[QUOIT_SIDE_COUNT];
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
        ports[side] = (struct quoit_port_config){
            .driver = &port_driver, .memory = {test.memory, test.layout.total_bytes}, .endpoint = &endpoint};
    return quoit_engine_ring_open(&test.self, ports, QUOIT_PE_ENDPOINT_NO, &test.engine);
}

static void start_with(uint32_t capabilities, enum quoit_direct_puts direct_puts, uint64_t window_bytes)
{
    make_host(capabilities, direct_puts, window_bytes);
    assert_int_equal(open_engine(), QUOIT_OK);
    test.self.engines[test.self.engine_count++] = test.engine;
    test.peer = (struct quoit_peer){.engine = test.engine, .pe = 2, .host = 1};
    assert_true(test.engine->ops->connect(test.engine, &test.peer));
}

static int start(void **state)
{
    (void)state;
    start_with(QUOIT_PORT_DIRECT | QUOIT_PORT_WHOLE_MARKS, QUOIT_DIRECT_PUTS_EXACT, WINDOW_BYTES);
    assert_true(test.peer.is_direct);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    test.engine->ops->close(test.engine);
    assert_int_equal(test.open_count, 0);
    free_host();
    return 0;
}

/* Put `number` of `word_count` words to the words from `word` on; the source is used again at once. */
static void put(uint64_t number, uint64_t word, size_t word_count)
{
    uint64_t *words = malloc(word_count * sizeof *words);
    assert_non_null(words);
    for (size_t i = 0; i < word_count; i++)
        words[i] = number;
    test.engine->ops->put(&test.context, &test.peer, test.heap + 8 * word, words, 8 * word_count, false);
    memset(words, 0xee, word_count * sizeof *words);
    free(words);
}

static void quiet(void)
{
    test.engine->ops->quiet(test.engine, &test.context);
}

/* Words [0, end) were written once, and hold what was put. */
static void check_once(uint64_t end)
{
    for (uint64_t i = 0; i < end; i++)
        if (test.write_counts[i] != 1)
            fail_msg("word %llu was written %u times", (unsigned long long)i, test.write_counts[i]);
    assert_true(test.is_in_order);
}

static uint64_t word_there(uint64_t word)
{
    uint64_t value;
    memcpy(&value, test.neighbour + test.heap + 8 * word, sizeof value);
    return value;
}

static uint64_t resend_count(void)
{
    return ((struct quoit_ring_engine *)test.engine)->direct[SIDE].resend_count;
}

static void what_has_arrived_is_not_sent_again(void **state)
{
    (void)state;
    put(1, 0, 1);
    put(2, 1, 1);
    put(3, 2, 1);
    arrive(2);
    cut();
    quiet();
    check_once(3);
    assert_int_equal(resend_count(), 1);
    assert_int_equal(test.question_count, 1);
}

/* What the first loss took went by requests and left no mark: the mark that stands there says less than is known. */
static void what_an_earlier_loss_took_is_not_sent_again(void **state)
{
    (void)state;
    put(1, 0, 1);
    put(2, 1, 1);
    arrive(1);
    cut();
    quiet();
    come_back();
    put(3, 2, 1);
    cut();
    quiet();
    check_once(3);
    assert_int_equal(resend_count(), 2);
    assert_int_equal(test.question_count, 2);
}

static void all_may_have_arrived(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 10; i++)
        put(i + 1, i, 1);
    arrive(10);
    cut();
    quiet();
    check_once(10);
    assert_int_equal(resend_count(), 0);
}

static void what_is_lost_goes_in_order_and_does_not_land_early(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 12; i++)
        put(i + 1, i * 100, 100);
    cut();
    quiet();
    check_once(1200);
    assert_int_equal(resend_count(), 12);
    assert_int_equal(test.unordered_count, 0);
    for (uint64_t i = 0; i < 1200; i++)
        assert_int_equal(word_there(i), i / 100 + 1);
}

/* Entries are used again only when what they hold is known to have arrived. */
static void what_is_lost_goes_to_its_pe(void **state)
{
    const uint64_t number = 1;
    struct quoit_peer second = {.engine = test.engine, .pe = 3, .host = 1, .local = 1};
    (void)state;
    assert_true(test.engine->ops->connect(test.engine, &second));
    test.engine->ops->put(&test.context, &second, test.heap, &number, sizeof number, false);
    assert_int_equal(test.wire_count, 1);
    cut();
    quiet();
    check_once(1);
    assert_int_equal(test.put_pes, 1u << 1);
}

static void fill_the_journal(uint64_t words_a_put, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        put(i + 1, i * words_a_put, words_a_put);
    assert_int_not_equal(test.wire_count, 0);
    assert_int_not_equal(test.wire_count, count);
    arrive(test.wire_count / 2);
    cut();
    quiet();
    check_once(count * words_a_put);
    for (uint64_t i = 0; i < count * words_a_put; i++)
        assert_int_equal(word_there(i), i / words_a_put + 1);
}

static void a_full_journal_loses_nothing(void **state)
{
    fill_the_journal(PUT_WORDS, 3 * QUOIT_JOURNAL_BYTES / QUOIT_JOURNAL_PUT_MAX);
    stop(state);
    start(state);
    fill_the_journal(1, 3 * QUOIT_JOURNAL_BYTES / (sizeof(struct quoit_journal_entry) + 8));
}

/* A wait for something else makes good what was lost; nobody need call. */
static bool has_been_made_good(void *arg)
{
    (void)arg;
    return test.write_counts[1] != 0;
}

static void a_wait_makes_good_what_was_lost(void **state)
{
    (void)state;
    put(1, 0, 1);
    put(2, 1, 1);
    arrive(1);
    cut();
    quoit_self_wait(&test.self, has_been_made_good, NULL, NULL);
    check_once(2);
}

/* A put after a fence never overtakes one before it, whatever way both go. */
static void random_losses(void **state)
{
    for (uint64_t seed = 1; seed <= RANDOM_SEEDS; seed++) {
        struct quoit_prng prng = {.state = seed};
        uint64_t word = 0;
        for (uint64_t number = 1; number <= RANDOM_PUTS && word + PUT_WORDS <= WORDS_MAX; number++) {
            size_t words = 1 + quoit_prng_choose(&prng, quoit_prng_choose(&prng, 20) ? 4 : PUT_WORDS);
            test.engine->ops->fence(test.engine, &test.context);
            put(number, word, words);
            word += words;
            if (quoit_prng_choose(&prng, 3) == 0)
                arrive((uint32_t)quoit_prng_choose(&prng, test.wire_count + 1));
            if (quoit_prng_choose(&prng, 40) == 0)
                cut();
            if (quoit_prng_choose(&prng, 20) == 0 && test.is_cut)
                come_back();
            if (quoit_prng_choose(&prng, 30) == 0) {
                quiet();
                check_once(word);
            }
        }
        quiet();
        check_once(word);
        assert_in_range(resend_count(), 20, RANDOM_PUTS);
        stop(state);
        start(state);
    }
}

static void an_atomic_behind_a_fence_comes_after_what_was_put(bool is_lost)
{
    const struct quoit_atomic add = {.op = QUOIT_AMO_ADD, .size = 8, .offset = test.heap, .operand = 1};
    put(1, 0, 1);
    put(2, 1, 1);
    test.engine->ops->fence(test.engine, &test.context);
    if (is_lost)
        cut();
    test.engine->ops->amo(&test.context, &test.peer, &add, NULL, false);
    quiet();
    assert_int_equal(test.written_at_atomic, 2);
    check_once(2);
}

static void a_fence_puts_an_atomic_behind(void **state)
{
    an_atomic_behind_a_fence_comes_after_what_was_put(false);
    stop(state);
    start(state);
    an_atomic_behind_a_fence_comes_after_what_was_put(true);
}

/* It is in no journal: confirmed before it returns, or it goes by requests, whole. */
static void a_large_put_is_there_when_it_returns(void **state)
{
    (void)state;
    put(1, 0, PUT_WORDS + 1);
    assert_int_equal(test.rung_behind, 2);
    assert_int_equal(test.wire_count, 0);
    check_once(PUT_WORDS + 1);
    put(2, PUT_WORDS + 1, 1);
    cut();
    put(3, PUT_WORDS + 2, 2 * PUT_WORDS);
    quiet();
    check_once(3 * PUT_WORDS + 2);
    assert_int_equal(resend_count(), 1);
}

/* Elements behind a loss go by requests together, whether the link is back or not: each by itself would find the loss
 * again, and be made good alone. */
static void put_words_strided_over_a_loss(bool is_back)
{
    const uint64_t words[] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    const size_t count = sizeof words / sizeof words[0];
    const struct quoit_strided strided = {
        .offset = test.heap + 8, .remote_stride = 8, .private_stride = 8, .count = count, .element_bytes = 8};
    put(1, 0, 1);
    arrive(1);
    cut();
    if (is_back)
        come_back();
    test.engine->ops->put_strided(&test.context, &test.peer, &strided, words);
    quiet();
    check_once(1 + count);
    assert_int_equal(test.question_count, 1);
    assert_int_equal(resend_count(), 1);
    assert_int_equal(test.strided_count, 1);
}

static void a_strided_put_finds_a_loss_once(void **state)
{
    put_words_strided_over_a_loss(false);
    stop(state);
    start(state);
    put_words_strided_over_a_loss(true);
}

/* Without the promise that a put and its mark are lost together or not at all, nothing is written to the neighbour
 * unless the user wants it. */
static void puts_are_direct_where_none_arrives_twice(void **state)
{
    static const struct {
        uint32_t capabilities;
        enum quoit_direct_puts wait_desc;
        bool is_direct;
    } rows[] = {
        {0, QUOIT_DIRECT_PUTS_ALWAYS, false},
        {QUOIT_PORT_WHOLE_MARKS | QUOIT_PORT_ARRIVES_ON_RETURN, QUOIT_DIRECT_PUTS_ALWAYS, false},
        {QUOIT_PORT_DIRECT, QUOIT_DIRECT_PUTS_EXACT, false},
        {QUOIT_PORT_DIRECT, QUOIT_DIRECT_PUTS_ALWAYS, true},
        {QUOIT_PORT_DIRECT | QUOIT_PORT_WHOLE_MARKS, QUOIT_DIRECT_PUTS_EXACT, true},
        {QUOIT_PORT_DIRECT | QUOIT_PORT_ARRIVES_ON_RETURN, QUOIT_DIRECT_PUTS_EXACT, true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start_with(rows[i].capabilities, rows[i].wait_desc, WINDOW_BYTES);
        assert_int_equal(test.peer.is_direct, rows[i].is_direct);
        put(1, 0, 3);
        assert_int_equal(test.wire_count != 0, rows[i].is_direct);
        arrive(test.wire_count);
        quiet();
        check_once(3);
        stop(state);
    }
}

/* The window ends behind word 3: a put that ends there is direct, one that goes on goes by requests, whole. */
static void puts_are_direct_up_to_the_end_of_the_window(void **state)
{
    static const struct {
        uint64_t word;
        size_t word_count;
        bool is_direct;
    } rows[] = {{0, 4, true}, {3, 1, true}, {3, 2, false}, {4, 1, false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        start_with(QUOIT_PORT_DIRECT | QUOIT_PORT_WHOLE_MARKS, QUOIT_DIRECT_PUTS_EXACT, QUOIT_RUNTIME_LINK_BYTES);
        test.heap = QUOIT_RUNTIME_LINK_BYTES - 4 * sizeof(uint64_t);
        put(1, rows[i].word, rows[i].word_count);
        assert_int_equal(test.wire_count, rows[i].is_direct);
        arrive(test.wire_count);
        quiet();
        for (uint64_t word = 0; word < 5; word++)
            assert_int_equal(test.write_counts[word], word >= rows[i].word && word < rows[i].word + rows[i].word_count);
        stop(state);
    }
}

/* Otherwise each quiet would cost the next put a new binding, or the way through the proxy. */
static void quiet_closes_nothing_where_nothing_is_lost(void **state)
{
    (void)state;
    put(1, 0, 1);
    quiet();
    put(2, 1, 1);
    assert_int_equal(test.wire_count, 1);
    quiet();
    check_once(2);
    assert_int_equal(test.bind_count, 1);
    cut();
    put(3, 2, 1);
    quiet();
    come_back();
    put(4, 3, 1);
    assert_int_equal(test.wire_count, 1);
    assert_int_equal(test.bind_count, 2);
    quiet();
    check_once(4);
}

static void a_port_that_cannot_be_opened_is_an_error(void **state)
{
    (void)state;
    for (uint32_t attempt = 1; attempt <= QUOIT_SIDE_COUNT; attempt++) {
        make_host(QUOIT_PORT_DIRECT | QUOIT_PORT_WHOLE_MARKS, QUOIT_DIRECT_PUTS_EXACT, WINDOW_BYTES);
        test.refused_attempt = attempt;
        assert_int_equal(open_engine(), QUOIT_SYSTEM);
        assert_int_equal(test.attempt_count, attempt);
        assert_int_equal(test.open_count, 0);
        free_host();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_has_arrived_is_not_sent_again, start, stop),
        cmocka_unit_test_setup_teardown(what_an_earlier_loss_took_is_not_sent_again, start, stop),
        cmocka_unit_test_setup_teardown(all_may_have_arrived, start, stop),
        cmocka_unit_test_setup_teardown(what_is_lost_goes_in_order_and_does_not_land_early, start, stop),
        cmocka_unit_test_setup_teardown(what_is_lost_goes_to_its_pe, start, stop),
        cmocka_unit_test_setup_teardown(a_full_journal_loses_nothing, start, stop),
        cmocka_unit_test_setup_teardown(a_wait_makes_good_what_was_lost, start, stop),
        cmocka_unit_test_setup_teardown(a_fence_puts_an_atomic_behind, start, stop),
        cmocka_unit_test_setup_teardown(a_strided_put_finds_a_loss_once, start, stop),
        cmocka_unit_test_setup_teardown(random_losses, start, stop),
        cmocka_unit_test_setup_teardown(a_large_put_is_there_when_it_returns, start, stop),
        cmocka_unit_test_setup_teardown(quiet_closes_nothing_where_nothing_is_lost, start, stop),
        cmocka_unit_test(puts_are_direct_where_none_arrives_twice),
        cmocka_unit_test(puts_are_direct_up_to_the_end_of_the_window),
        cmocka_unit_test(a_port_that_cannot_be_opened_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
