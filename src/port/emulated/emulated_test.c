/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the knobs of the emulated link and what only it can do: torn writes, a cut cable, bad files. Method: times are
 * checked from below only, so a loaded machine cannot fail a test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/observer.h"
#include "env/clock.h"
#include "port/emulated/opening.h"
#include "port/port_rig.h"

#define WINDOW_AT    0x10000
#define WINDOW_BYTES 0x40000
#define MS           1000000u

static int set_up(void **state)
{
    struct rig *rig = calloc(1, sizeof *rig);
    rig_make(rig, &rig_drivers[0]);
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    rig_destroy(*state);
    free(*state);
    return 0;
}

static void connect_windows(struct rig *rig, struct quoit_port *ports[2])
{
    rig_connect(rig, ports);
    for (uint32_t side = 0; side < 2; side++)
        assert_int_equal(quoit_port_set_translation(ports[side], QUOIT_WINDOW_MEMORY, WINDOW_AT, WINDOW_BYTES),
                         QUOIT_OK);
}

static uint8_t *window_of(struct rig *rig, uint32_t host)
{
    return rig->memory[host] + WINDOW_AT;
}

static enum quoit_status open_status(struct rig *rig, struct quoit_port **port_out)
{
    const struct quoit_port_endpoint endpoint = rig_describe(rig, 0);
    const struct quoit_port_config config = {
        .driver = rig_table(rig), .memory = {rig->memory[0], RIG_MEMORY_BYTES}, .endpoint = &endpoint};
    return quoit_port_open(&config, port_out);
}

static void test_config_is_checked(void **state)
{
    struct rig *rig = *state;
    struct quoit_port *port;
    struct quoit_port_endpoint endpoint;
    const struct quoit_port_site site = {.link_fd = rig->link_fd, .peer_memory_fd = rig->memory_fd[1], .side = 2};
    assert_int_equal(quoit_port_driver_describe(rig_table(rig), &site, &endpoint), QUOIT_OK);
    struct quoit_port_config config = {
        .driver = rig_table(rig), .memory = {rig->memory[0], RIG_MEMORY_BYTES}, .endpoint = NULL};
    assert_int_equal(quoit_port_open(&config, &port), QUOIT_INVALID);
    config.endpoint = &endpoint;
    assert_int_equal(quoit_port_open(&config, &port), QUOIT_INVALID);
    rig->knobs.window_bytes[0] = 3000;
    assert_int_equal(open_status(rig, &port), QUOIT_INVALID);
    rig->knobs.window_bytes[0] = 1 << 16;
    rig->knobs.translation_align = 48;
    assert_int_equal(open_status(rig, &port), QUOIT_INVALID);
    rig->knobs.translation_align = 1 << 16;
    rig->knobs.dma_channel_count = QUOIT_DMA_CHANNEL_COUNT + 1;
    assert_int_equal(open_status(rig, &port), QUOIT_INVALID);
    rig->knobs.dma_channel_count = 1;
    int link_fd = rig->link_fd;
    rig->link_fd = -1;
    assert_int_equal(open_status(rig, &port), QUOIT_SYSTEM);
    assert_int_equal(quoit_port_driver_memory(rig_table(rig), "short", 100, &rig->link_fd), QUOIT_OK);
    assert_int_equal(open_status(rig, &port), QUOIT_SYSTEM);
    close(rig->link_fd);
    rig->link_fd = link_fd;
    assert_int_equal(open_status(rig, &port), QUOIT_OK);
    struct quoit_port_limits limits;
    quoit_port_limits(port, &limits);
    assert_int_equal(limits.window_bytes[0], 1 << 16);
    assert_int_equal(limits.translation_align, 1 << 16);
    assert_int_equal(limits.dma_channel_count, 1);
    assert_int_equal(quoit_port_set_translation(port, QUOIT_WINDOW_SLOTS, 4096, 4096), QUOIT_INVALID);
    quoit_port_close(port);
}

/* A peer whose registers claim more memory than it has gets nothing, and no process crashes. */
static void test_peer_memory_is_not_believed(void **state)
{
    struct rig *rig = *state;
    struct quoit_port *ports[2];
    connect_windows(rig, ports);
    int whole_fd = rig->memory_fd[1];
    assert_int_equal(quoit_port_driver_memory(rig_table(rig), "short", WINDOW_AT, &rig->memory_fd[1]), QUOIT_OK);
    struct quoit_port *late = rig_open(rig, 0);
    close(rig->memory_fd[1]);
    rig->memory_fd[1] = whole_fd;
    uint64_t word = 5, ones = UINT64_MAX;
    assert_int_equal(quoit_port_write64(late, QUOIT_WINDOW_MEMORY, 0, word), QUOIT_OK);
    assert_int_equal(quoit_port_write(late, QUOIT_WINDOW_MEMORY, 0, &word, 8), QUOIT_OK);
    assert_int_equal(quoit_port_read(late, QUOIT_WINDOW_MEMORY, 0, &word, 8), QUOIT_OK);
    assert_int_equal(word, ones);
    quoit_port_close(late);
    rig_disconnect(ports);
}

static void test_cable_is_cut_and_mended(void **state)
{
    struct rig *rig = *state;
    struct quoit_port *ports[2];
    connect_windows(rig, ports);
    uint32_t epoch = quoit_port_link_epoch(ports[0]);
    assert_int_equal(quoit_port_cut(ports[0]), QUOIT_OK);
    assert_int_equal(quoit_port_cut(ports[1]), QUOIT_OK);
    assert_false(quoit_port_link_is_up(ports[1]));
    quoit_port_link_disable(ports[0]);
    quoit_port_link_enable(ports[0]);
    assert_false(quoit_port_link_is_up(ports[0])); /* wishes do not mend a cable */
    assert_int_equal(quoit_port_link_epoch(ports[0]), epoch);
    assert_int_equal(quoit_port_mend(ports[1]), QUOIT_OK);
    assert_true(quoit_port_link_is_up(ports[0]));
    assert_int_equal(quoit_port_link_epoch(ports[1]), epoch + 1);
    rig_disconnect(ports);
}

/* The first write that meets the cut arrives as a beginning of whole aligned words; the next one not at all. */
static void test_writes_are_torn_in_whole_words(void **state)
{
    struct rig *rig = *state;
    uint64_t seed = rig_seed(), partial_count = 0;
    struct quoit_prng prng = {.state = seed};
    rig->knobs.torn_write_seed = (uint32_t)seed | 1;
    struct quoit_port *ports[2];
    connect_windows(rig, ports);
    uint8_t source[512], *target = window_of(rig, 1);
    memset(source, 0x77, sizeof source);
    for (uint32_t round = 0; round < 300; round++) {
        uint64_t bytes = 1 + quoit_prng_choose(&prng, sizeof source), offset = quoit_prng_choose(&prng, 64);
        assert_int_equal(quoit_port_write64(ports[0], QUOIT_WINDOW_MEMORY, 0, 0), QUOIT_OK);
        memset(target, 0, 1024);
        assert_int_equal(quoit_port_cut(ports[1]), QUOIT_OK);
        assert_int_equal(quoit_port_write(ports[0], QUOIT_WINDOW_MEMORY, offset, source, bytes), QUOIT_LINK_DOWN);
        uint64_t end = offset;
        while (end < 1024 && target[end] == 0x77)
            end++;
        assert_true(end <= offset + bytes);
        assert_true(end == offset || end % 8 == 0);
        for (uint64_t i = 0; i < 1024; i++)
            assert_int_equal(target[i], i >= offset && i < end ? 0x77 : 0);
        partial_count += end != offset && end != offset + bytes;
        assert_int_equal(quoit_port_write(ports[0], QUOIT_WINDOW_MEMORY, 600, source, 100), QUOIT_LINK_DOWN);
        assert_int_equal(target[600], 0);
        assert_int_equal(quoit_port_mend(ports[1]), QUOIT_OK);
        assert_int_equal(quoit_port_set_translation(ports[1], QUOIT_WINDOW_MEMORY, WINDOW_AT, WINDOW_BYTES), QUOIT_OK);
    }
    assert_true(partial_count > 100);
    rig_disconnect(ports);
}

/* Nothing lands in a range that the peer has set again since the link went down. */
static void test_torn_write_respects_a_new_translation(void **state)
{
    struct rig *rig = *state;
    rig->knobs.torn_write_seed = 3;
    struct quoit_port *ports[2];
    connect_windows(rig, ports);
    uint8_t source[512];
    memset(source, 0x77, sizeof source);
    for (uint32_t round = 0; round < 50; round++) {
        assert_int_equal(quoit_port_write64(ports[0], QUOIT_WINDOW_MEMORY, 0, 0), QUOIT_OK);
        assert_int_equal(quoit_port_cut(ports[1]), QUOIT_OK);
        assert_int_equal(quoit_port_set_translation(ports[1], QUOIT_WINDOW_MEMORY, WINDOW_AT, WINDOW_BYTES), QUOIT_OK);
        assert_int_equal(quoit_port_write(ports[0], QUOIT_WINDOW_MEMORY, 0, source, sizeof source), QUOIT_LINK_DOWN);
        for (uint64_t i = 0; i < sizeof source; i++)
            assert_int_equal(window_of(rig, 1)[i], 0);
        assert_int_equal(quoit_port_mend(ports[1]), QUOIT_OK);
    }
    rig_disconnect(ports);
}

struct slow_write {
    struct quoit_port *port;
    const uint8_t *source;
    size_t bytes;
    enum quoit_status status;
};

static void *write_slowly(void *arg)
{
    struct slow_write *write = arg;
    write->status = quoit_port_write(write->port, QUOIT_WINDOW_MEMORY, 0, write->source, write->bytes);
    return NULL;
}

/* A long write is in progress, at 50 kB/s, when the cable is cut: it reports that, and its beginning has arrived. */
static void test_cut_in_the_middle_of_a_write(void **state)
{
    struct rig *rig = *state;
    rig->knobs.rate_bytes_per_s = 50000;
    rig->knobs.arrives_on_return = 1;
    struct quoit_port *ports[2];
    connect_windows(rig, ports);
    uint8_t *source = malloc(WINDOW_BYTES);
    memset(source, 0x66, WINDOW_BYTES);
    struct slow_write write = {.port = ports[0], .source = source, .bytes = WINDOW_BYTES};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_slowly, &write), 0);
    while (atomic_load((_Atomic uint8_t *)window_of(rig, 1)) == 0)
        quoit_clock_sleep_ns(MS);
    assert_int_equal(quoit_port_cut(ports[1]), QUOIT_OK);
    pthread_join(thread, NULL);
    assert_int_equal(write.status, QUOIT_LINK_DOWN);
    uint64_t end = 0;
    while (end < WINDOW_BYTES && window_of(rig, 1)[end] == 0x66)
        end++;
    assert_true(end > 0);
    assert_true(end < WINDOW_BYTES);
    for (; end < WINDOW_BYTES; end++)
        assert_int_equal(window_of(rig, 1)[end], 0);
    rig_disconnect(ports);
    free(source);
}

/* The same at full speed: a write returns QUOIT_LINK_DOWN though its beginning has arrived. Each write has its own
 * value, which its first byte shows; cuts are repeated until one falls into a write. */
struct fast_write {
    struct quoit_port *port;
    const _Atomic uint64_t *target;
    _Atomic bool was_met;
    _Atomic bool is_over;
};

static void *write_fast(void *arg)
{
    struct fast_write *write = arg;
    uint64_t *source = calloc(1, WINDOW_BYTES);
    for (uint64_t value = 1; !atomic_load(&write->is_over); value++) {
        source[0] = value;
        enum quoit_status status = quoit_port_write(write->port, QUOIT_WINDOW_MEMORY, 0, source, WINDOW_BYTES);
        must(status == QUOIT_OK || status == QUOIT_LINK_DOWN);
        if (status == QUOIT_LINK_DOWN && atomic_load(write->target) == value)
            atomic_store(&write->was_met, true);
    }
    free(source);
    return NULL;
}

static void test_cut_in_the_middle_of_a_fast_write(void **state)
{
    struct rig *rig = *state;
    struct quoit_port *ports[2];
    connect_windows(rig, ports);
    struct fast_write write = {.port = ports[0], .target = (_Atomic uint64_t *)(void *)window_of(rig, 1)};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_fast, &write), 0);
    uint64_t deadline_ns = quoit_clock_now_ns() + 20000 * (uint64_t)MS;
    while (!atomic_load(&write.was_met) && quoit_clock_now_ns() < deadline_ns) {
        quoit_clock_sleep_ns(MS / 5);
        assert_int_equal(quoit_port_cut(ports[1]), QUOIT_OK);
        quoit_clock_sleep_ns(MS / 5);
        assert_int_equal(quoit_port_mend(ports[1]), QUOIT_OK);
        assert_int_equal(quoit_port_set_translation(ports[1], QUOIT_WINDOW_MEMORY, WINDOW_AT, WINDOW_BYTES), QUOIT_OK);
    }
    atomic_store(&write.is_over, true);
    pthread_join(thread, NULL);
    assert_true(atomic_load(&write.was_met));
    rig_disconnect(ports);
}

/* Registers that belong together are read together: one thread moves the translation while another uses it; an offset
 * never lands in the range of another translation. */
struct moving {
    struct quoit_emulated_port *port;
    struct quoit_port *peer;
    _Atomic bool is_over;
};

static uint64_t bytes_for(uint64_t offset)
{
    return 4096 + offset / 64;
}

static void *move_translation(void *arg)
{
    struct moving *moving = arg;
    for (uint64_t i = 0; !atomic_load(&moving->is_over); i++) {
        uint64_t offset = i * 5 % 64 * 4096;
        must(quoit_port_set_translation(moving->peer, QUOIT_WINDOW_MEMORY, offset, bytes_for(offset)) == QUOIT_OK);
    }
    return NULL;
}

static void *take_translation_over(void *arg)
{
    struct moving *moving = arg;
    uint64_t word;
    while (!atomic_load(&moving->is_over))
        must(quoit_port_read(&moving->port->port, QUOIT_WINDOW_MEMORY, 0, &word, 8) == QUOIT_OK);
    return NULL;
}

static void test_write_from_a_descriptor(void **state)
{
    struct rig *rig = *state;
    struct quoit_port *ports[2];
    const char sent[] = "what a device has read";
    char head[8];
    ssize_t count;
    int ends[2];
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    connect_windows(rig, ports);
    assert_int_equal(
        quoit_port_write_from(ports[0], QUOIT_WINDOW_MEMORY, UINT64_MAX, ends[0], head, sizeof head, 100, &count),
        QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_port_write_from(ports[0], QUOIT_WINDOW_MEMORY, 24, ends[0], head, sizeof head, 100, &count),
                     QUOIT_OK);
    assert_true(count == -1 && errno == EAGAIN);
    assert_int_equal(write(ends[1], sent, sizeof sent), sizeof sent);
    assert_int_equal(quoit_port_write_from(ports[0], QUOIT_WINDOW_MEMORY, WINDOW_BYTES - 99, ends[0], head, sizeof head,
                                           100, &count),
                     QUOIT_UNSUPPORTED); /* one byte beyond the translation */
    assert_int_equal(quoit_port_write_from(ports[0], QUOIT_WINDOW_MEMORY, 24, ends[0], head, sizeof head, 100, &count),
                     QUOIT_OK);
    assert_int_equal(count, sizeof sent);
    assert_memory_equal(head, sent, sizeof head);
    assert_memory_equal(window_of(rig, 1) + 24, sent + sizeof head, sizeof sent - sizeof head);
    assert_int_equal(window_of(rig, 1)[24 + sizeof sent - sizeof head], 0);
    assert_int_equal(write(ends[1], sent, sizeof sent), sizeof sent);
    assert_int_equal(quoit_port_cut(ports[1]), QUOIT_OK);
    assert_int_equal(quoit_port_write_from(ports[0], QUOIT_WINDOW_MEMORY, 24, ends[0], head, sizeof head, 100, &count),
                     QUOIT_LINK_DOWN);
    assert_int_equal(read(ends[0], head, sizeof head), sizeof head); /* it was left to the caller */
    assert_int_equal(quoit_port_mend(ports[1]), QUOIT_OK);
    rig_disconnect(ports);
    rig->knobs.rate_bytes_per_s = 1u << 30;
    rig->knobs.arrives_on_return = 1;
    rig_connect(rig, ports);
    assert_int_equal(quoit_port_set_translation(ports[1], QUOIT_WINDOW_MEMORY, WINDOW_AT, WINDOW_BYTES), QUOIT_OK);
    assert_int_equal(quoit_port_write_from(ports[0], QUOIT_WINDOW_MEMORY, 24, ends[0], head, sizeof head, 100, &count),
                     QUOIT_UNSUPPORTED); /* the kernel keeps to no rate */
    rig_disconnect(ports);
    close(ends[0]);
    close(ends[1]);
}

#define FROM_HEAD_BYTES 2048
#define FROM_BYTES      60000
#define FROM_BEGIN      4096 /* in the window */

/* A message of `bytes`, which differ with `turn`, into a socket that keeps messages apart, and from it into the window.
 */
static void post_message(struct quoit_port *port, const int ends[2], uint64_t turn, size_t bytes, uint8_t *sent)
{
    uint8_t head[FROM_HEAD_BYTES];
    ssize_t count;
    for (size_t i = 0; i < bytes; i++)
        sent[i] = (uint8_t)(turn * 31 + i * 7 + i / 251);
    assert_int_equal(send(ends[1], sent, bytes, 0), bytes);
    assert_int_equal(quoit_port_write_from(port, QUOIT_WINDOW_MEMORY, FROM_BEGIN + turn % 64, ends[0], head,
                                           sizeof head, FROM_BYTES, &count),
                     QUOIT_OK);
    assert_int_equal(count, bytes);
    assert_memory_equal(head, sent, bytes < sizeof head ? bytes : sizeof head);
}

/* What is posted from a descriptor is a posted write: whole before what is written after it, and no sooner than the
 * rate allows. More messages than there are buffers, and some that need none. */
static void test_posted_from_a_descriptor(void **state)
{
    struct rig *rig = *state;
    struct quoit_port *ports[2];
    static uint8_t sent[FROM_BYTES], expected[WINDOW_BYTES];
    struct quoit_prng chance = {.state = 20222};
    uint8_t head[FROM_HEAD_BYTES];
    ssize_t count;
    int ends[2];
    rig->knobs = (struct quoit_port_knobs){.rate_bytes_per_s = 200000000};
    connect_windows(rig, ports);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
    uint8_t *window = window_of(rig, 1);
    _Atomic uint64_t *mark = (_Atomic uint64_t *)(void *)window;
    memcpy(expected, window, sizeof expected);
    for (uint64_t turn = 1; turn <= 60; turn++) {
        size_t bytes = 1 + quoit_prng_choose(&chance, turn % 3 == 0 ? FROM_HEAD_BYTES : sizeof sent);
        size_t inside = bytes > FROM_HEAD_BYTES ? bytes - FROM_HEAD_BYTES : 0;
        uint64_t begin_ns = quoit_clock_now_ns();
        post_message(ports[0], ends, turn, bytes, sent);
        assert_int_equal(quoit_port_write_from(ports[0], QUOIT_WINDOW_MEMORY, FROM_BEGIN, ends[0], head, sizeof head,
                                               FROM_BYTES, &count),
                         QUOIT_OK);
        assert_true(count == -1 && errno == EAGAIN);
        assert_int_equal(quoit_port_write64(ports[0], QUOIT_WINDOW_MEMORY, 0, turn), QUOIT_OK);
        memcpy(expected + FROM_BEGIN + turn % 64, sent + FROM_HEAD_BYTES, inside);
        while (atomic_load_explicit(mark, memory_order_acquire) != turn)
            sched_yield();
        assert_true(quoit_clock_now_ns() - begin_ns >= inside * 5); /* nanoseconds */
        assert_memory_equal(window + sizeof *mark, expected + sizeof *mark, sizeof expected - sizeof *mark);
    }
    rig_disconnect(ports);
    close(ends[0]);
    close(ends[1]);
}

/* A write that is due so soon has landed on return: no other thread was woken for it. One that the queue's thread is
 * awake for, as at its start, may land a little later; then that thread gets the time to fall asleep again. */
#define POST_COUNT 200u
#define LATE_MAX   20u
static void test_a_short_post_lands_at_once(void **state)
{
    struct rig *rig = *state;
    struct quoit_port *ports[2];
    uint64_t sent[16] = {0}; /* 1.28 us at the rate */
    uint32_t late_count = 0;
    rig->knobs = (struct quoit_port_knobs){.rate_bytes_per_s = 100000000};
    connect_windows(rig, ports);
    for (uint64_t turn = 1; turn <= POST_COUNT; turn++) {
        for (size_t i = 0; i < sizeof sent / sizeof sent[0]; i++)
            sent[i] = turn << 8 | i;
        assert_int_equal(quoit_port_write(ports[0], QUOIT_WINDOW_MEMORY, 64, sent, sizeof sent), QUOIT_OK);
        if (memcmp(window_of(rig, 1) + 64, sent, sizeof sent) == 0)
            continue;
        late_count++;
        uint64_t deadline_ns = quoit_clock_now_ns() + 20000 * (uint64_t)MS;
        do
            quoit_clock_sleep_ns(50 * MS);
        while (memcmp(window_of(rig, 1) + 64, sent, sizeof sent) != 0 && quoit_clock_now_ns() < deadline_ns);
        assert_memory_equal(window_of(rig, 1) + 64, sent, sizeof sent);
    }
    assert_in_range(late_count, 0, LATE_MAX);
    rig_disconnect(ports);
}

/* Nothing of it arrives behind a loss, and what is lost leaves its buffer to the next: or the third turn has none of
 * the eight, and waits until the test's time runs out. */
#define LOST_AT_ONCE 4
static void test_posted_from_a_descriptor_and_lost(void **state)
{
    struct rig *rig = *state;
    struct quoit_port *ports[2];
    static uint8_t sent[FROM_BYTES], before[WINDOW_BYTES];
    uint64_t word;
    int ends[2];
    rig->knobs = (struct quoit_port_knobs){.rate_bytes_per_s = 2000000};
    connect_windows(rig, ports);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
    for (uint64_t turn = 1; turn <= 12; turn++) {
        post_message(ports[0], ends, turn, sizeof sent, sent); /* 30 ms each */
        if (turn % LOST_AT_ONCE != 0)
            continue;
        assert_int_equal(quoit_port_cut(ports[1]), QUOIT_OK);
        assert_int_equal(quoit_port_read(ports[0], QUOIT_WINDOW_MEMORY, 0, &word, sizeof word), QUOIT_LINK_DOWN);
        memcpy(before, window_of(rig, 1), sizeof before);
        assert_int_equal(quoit_port_mend(ports[1]), QUOIT_OK);
        assert_int_equal(quoit_port_set_translation(ports[1], QUOIT_WINDOW_MEMORY, WINDOW_AT, WINDOW_BYTES), QUOIT_OK);
        quoit_clock_sleep_ns(5 * MS);
        assert_memory_equal(window_of(rig, 1), before, sizeof before);
    }
    rig_disconnect(ports);
    close(ends[0]);
    close(ends[1]);
}

static void test_registers_are_read_whole(void **state)
{
    struct rig *rig = *state;
    struct quoit_port *ports[2];
    connect_windows(rig, ports);
    assert_int_equal(quoit_port_set_translation(ports[1], QUOIT_WINDOW_MEMORY, 0, bytes_for(0)), QUOIT_OK);
    struct moving moving = {.port = quoit_emulated_port_of(ports[0]), .peer = ports[1]};
    pthread_t threads[2];
    assert_int_equal(pthread_create(&threads[0], NULL, move_translation, &moving), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, take_translation_over, &moving), 0);
    const struct quoit_emulated_pair *pair = &moving.port->peer->window[QUOIT_WINDOW_MEMORY];
    uint64_t deadline_ns = quoit_clock_now_ns() + 300 * MS, current, first, second;
    while (quoit_clock_now_ns() < deadline_ns) {
        if (!quoit_emulated_pair_get(pair, &current, &first, &second))
            continue;
        must(second == bytes_for(first));
        struct quoit_emulated_range range;
        if (quoit_emulated_view_read(moving.port->window_view[QUOIT_WINDOW_MEMORY], current, &range))
            must(range.second == bytes_for((uint64_t)(range.base - moving.port->peer_memory)));
    }
    atomic_store(&moving.is_over, true);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    rig_disconnect(ports);
}

#define CHANGES 1000u
static struct quoit_emulated_pair *changing;
static uint32_t change_count;

/* Called for what the driver says of a bad vector: by then there is another one. */
static void change_vector(int level, const char *text)
{
    (void)level;
    (void)text;
    if (++change_count < CHANGES)
        atomic_fetch_add(&changing->current, 2);
}

/* Who cuts a link wakes one park at most, and is not held up by a vector that is another one whenever it looks. */
static void test_hostile_link_vectors(void **state)
{
    const struct quoit_observer observer = {.log_line = change_vector};
    struct rig *rig = *state;
    struct quoit_port *ports[2];
    connect_windows(rig, ports);
    struct quoit_port_vector vector = rig_vector(0, 1);
    struct quoit_park *park = rig_park(rig, 1, 0);
    uint32_t key = quoit_park_prepare(park);
    changing = &quoit_emulated_port_of(ports[0])->peer->vector[QUOIT_EMULATED_VECTOR_LINK];
    quoit_emulated_pair_set(changing, 0, vector.park_offset, (uint64_t)sizeof(struct quoit_park) << 32 | 2);
    change_count = 0;
    quoit_observer = &observer;
    assert_int_equal(quoit_port_cut(ports[0]), QUOIT_OK);
    quoit_observer = NULL;
    assert_in_range(change_count, 1, QUOIT_EMULATED_LOOKS);
    assert_false(quoit_park_was_woken(park, key));
    assert_int_equal(quoit_port_set_vector(ports[1], QUOIT_VECTOR_LINK, &vector), QUOIT_OK);
    assert_int_equal(quoit_port_mend(ports[0]), QUOIT_OK);
    assert_true(quoit_park_was_woken(park, key));
    quoit_park_cancel(park);
    rig_disconnect(ports);
}

/* A ringer killed after it set the bit and before it woke anybody: the next ring wakes in its stead. And a bit whose
 * interrupt was delivered does not interrupt again until it was cleared. */
static void test_ring_after_a_killed_ringer(void **state)
{
    struct rig *rig = *state;
    struct quoit_port *ports[2];
    connect_windows(rig, ports);
    struct quoit_port_vector vector = rig_vector(0, 1);
    assert_int_equal(quoit_port_set_vector(ports[1], 5, &vector), QUOIT_OK);
    quoit_port_doorbell_unmask(ports[1], 1u << 5);
    struct quoit_park *park = rig_park(rig, 1, 0);
    uint32_t key = quoit_park_prepare(park);
    quoit_port_doorbell_clear(ports[1], 1u << 5);
    atomic_fetch_or(&quoit_emulated_port_of(ports[0])->peer->doorbell, 1u << 5);
    assert_int_equal(atomic_load(&park->epoch), key);
    quoit_port_ring(ports[0], 1u << 5);
    assert_int_equal(atomic_load(&park->epoch), key + 1);
    quoit_port_ring(ports[0], 1u << 5);
    assert_int_equal(atomic_load(&park->epoch), key + 1);
    quoit_park_cancel(park);
    rig_disconnect(ports);
}

/* Two openings and a DMA channel of one side share one rate; the other direction has its own. */
static void test_rate_is_kept(void **state)
{
    struct rig *rig = *state;
    rig->knobs.rate_bytes_per_s = 10000000;
    struct quoit_port *ports[2];
    connect_windows(rig, ports);
    struct quoit_port *second = rig_open(rig, 0);
    uint8_t *source = calloc(1, WINDOW_BYTES);
    uint64_t piece_bytes = 100000, start_ns = quoit_clock_now_ns();
    assert_int_equal(quoit_port_dma_submit(ports[0], 1, QUOIT_WINDOW_MEMORY, 0, source, piece_bytes, 0), QUOIT_OK);
    assert_int_equal(quoit_port_write(ports[0], QUOIT_WINDOW_MEMORY, 131072, source, piece_bytes), QUOIT_OK);
    assert_int_equal(quoit_port_write(second, QUOIT_WINDOW_MEMORY, 131072, source, piece_bytes), QUOIT_OK);
    struct quoit_dma_done done;
    while (quoit_port_dma_poll(ports[0], 1, &done, 1) == 0)
        quoit_clock_sleep_ns(MS / 10);
    assert_int_equal(done.status, QUOIT_OK);
    assert_true(quoit_clock_now_ns() - start_ns >= 30 * MS);
    quoit_port_close(second);
    rig_disconnect(ports);
    free(source);
}

static void test_latencies_are_kept(void **state)
{
    struct rig *rig = *state;
    rig->knobs.read_latency_ns = 2 * MS;
    rig->knobs.write_latency_ns = 3 * MS;
    rig->knobs.doorbell_latency_ns = 4 * MS;
    rig->knobs.dma_latency_ns = 20 * MS;
    struct quoit_port *ports[2];
    connect_windows(rig, ports);
    uint64_t start_ns = quoit_clock_now_ns(), word = 0, source = 9;
    assert_int_equal(quoit_port_write64(ports[0], QUOIT_WINDOW_MEMORY, 0, 8), QUOIT_OK);
    assert_int_equal(quoit_port_read(ports[0], QUOIT_WINDOW_MEMORY, 0, &word, 8), QUOIT_OK);
    assert_int_equal(word, 8);
    assert_true(quoit_clock_now_ns() - start_ns >= 5 * MS);
    start_ns = quoit_clock_now_ns();
    quoit_port_ring(ports[0], 1);
    while (quoit_port_doorbell_read(ports[1]) == 0)
        quoit_clock_sleep_ns(MS / 10);
    assert_true(quoit_clock_now_ns() - start_ns >= 4 * MS);
    start_ns = quoit_clock_now_ns();
    assert_int_equal(quoit_port_dma_submit(ports[0], 0, QUOIT_WINDOW_MEMORY, 0, &source, 8, 0), QUOIT_OK);
    struct quoit_dma_done done;
    while (quoit_port_dma_poll(ports[0], 0, &done, 1) == 0)
        quoit_clock_sleep_ns(MS / 10);
    assert_true(quoit_clock_now_ns() - start_ns >= 23 * MS);
    assert_int_equal(done.status, QUOIT_OK);
    assert_int_equal(*(uint64_t *)(void *)window_of(rig, 1), 9);
    rig_disconnect(ports);
}

/* A descriptor that waits for its latency does not outlive the link, though the link is back when its time comes. */
static void test_dma_does_not_outlive_the_link(void **state)
{
    struct rig *rig = *state;
    rig->knobs.dma_latency_ns = 50 * MS;
    struct quoit_port *ports[2];
    connect_windows(rig, ports);
    uint64_t source = 9, held_ns;
    struct quoit_dma_done done;
    do { /* again if this thread was held up until the descriptor's time had come */
        *(uint64_t *)(void *)window_of(rig, 1) = 0;
        uint64_t begin_ns = quoit_clock_now_ns();
        assert_int_equal(quoit_port_dma_submit(ports[0], 0, QUOIT_WINDOW_MEMORY, 0, &source, 8, 0), QUOIT_OK);
        assert_int_equal(quoit_port_cut(ports[0]), QUOIT_OK);
        held_ns = quoit_clock_now_ns() - begin_ns;
        assert_int_equal(quoit_port_mend(ports[0]), QUOIT_OK);
        assert_int_equal(quoit_port_set_translation(ports[1], QUOIT_WINDOW_MEMORY, WINDOW_AT, WINDOW_BYTES), QUOIT_OK);
        while (quoit_port_dma_poll(ports[0], 0, &done, 1) == 0)
            quoit_clock_sleep_ns(MS / 10);
    } while (held_ns >= rig->knobs.dma_latency_ns);
    assert_int_equal(done.status, QUOIT_LINK_DOWN);
    assert_int_equal(*(uint64_t *)(void *)window_of(rig, 1), 0);
    rig_disconnect(ports);
}

static void test_close_does_not_wait_for_dma(void **state)
{
    struct rig *rig = *state;
    rig->knobs.dma_latency_ns = 3600000000000u;
    struct quoit_port *ports[2];
    connect_windows(rig, ports);
    uint64_t source = 9;
    assert_int_equal(quoit_port_dma_submit(ports[0], 0, QUOIT_WINDOW_MEMORY, 0, &source, 8, 0), QUOIT_OK);
    rig_disconnect(ports); /* or the test's time runs out */
    assert_int_equal(*(uint64_t *)(void *)window_of(rig, 1), 0);
}

/* Every knob at once: a writer's words arrive in order and before the ring that announces them. */
struct ordered {
    struct rig *rig;
    struct quoit_port *port;
};

#define ORDERED_COUNT 1500

static void *write_in_order(void *arg)
{
    struct ordered *ordered = arg;
    uint64_t words[80];
    for (uint64_t i = 1; i <= ORDERED_COUNT; i++) {
        for (uint64_t j = 0; j < 80; j++)
            words[j] = i;
        must(quoit_port_write(ordered->port, QUOIT_WINDOW_MEMORY, 64, words, sizeof words) == QUOIT_OK);
        must(quoit_port_write64(ordered->port, QUOIT_WINDOW_MEMORY, 0, i) == QUOIT_OK);
        quoit_port_ring(ordered->port, 1);
    }
    return NULL;
}

static void test_order_with_every_knob(void **state)
{
    struct rig *rig = *state;
    rig->knobs = (struct quoit_port_knobs){.rate_bytes_per_s = 400000000,
                                           .read_latency_ns = 1000,
                                           .write_latency_ns = 3000,
                                           .dma_latency_ns = 1000,
                                           .doorbell_latency_ns = 2000,
                                           .torn_write_seed = 11};
    struct quoit_port *ports[2];
    connect_windows(rig, ports);
    struct ordered ordered = {.rig = rig, .port = ports[0]};
    _Atomic uint64_t *words = (_Atomic uint64_t *)(void *)window_of(rig, 1);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, write_in_order, &ordered), 0);
    for (uint64_t seen = 0, rung = 0; seen < ORDERED_COUNT;) {
        if (quoit_port_doorbell_read(ports[1]) != 0) {
            quoit_port_doorbell_clear(ports[1], 1);
            rung++;
            assert_true(atomic_load(&words[0]) >= rung); /* as many writes as rings, or more: rings merge */
        }
        uint64_t told = atomic_load(&words[0]);
        for (uint64_t j = 8; j < 88; j++)
            assert_true(atomic_load(&words[j]) >= told); /* the flag comes after its words */
        assert_true(told >= seen);
        seen = told;
        sched_yield();
    }
    pthread_join(thread, NULL);
    rig_disconnect(ports);
}

/* Posted writes of random sizes and offsets, in entries as long as the rate allows: when the mark is there so is every
 * byte, and nothing beside them has changed. */
static void test_writes_of_a_paced_wire_are_whole(void **state)
{
    struct rig *rig = *state;
    const uint64_t rates[] = {400000000, 1000000000, 4000000000}; /* entries of 4 KB, 8 KB, 16 KB */
    static uint8_t source[70000], expected[WINDOW_BYTES];
    struct quoit_prng chance = {.state = 20221};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct quoit_port *ports[2];
        rig->knobs = (struct quoit_port_knobs){.rate_bytes_per_s = rates[i]};
        connect_windows(rig, ports);
        uint8_t *window = window_of(rig, 1);
        _Atomic uint64_t *mark = (_Atomic uint64_t *)(void *)window;
        memcpy(expected, window, sizeof expected);
        for (uint64_t turn = 1; turn <= 60; turn++) {
            size_t bytes = 1 + quoit_prng_choose(&chance, sizeof source);
            uint64_t offset = sizeof *mark + quoit_prng_choose(&chance, sizeof expected - sizeof *mark - bytes);
            for (size_t at = 0; at < bytes; at++)
                source[at] = (uint8_t)(turn * 31 + at * 7 + at / 251);
            memcpy(expected + offset, source, bytes);
            uint64_t value = i << 32 | turn;
            assert_int_equal(quoit_port_write_marked(ports[0], QUOIT_WINDOW_MEMORY, offset, source, bytes, 0, value),
                             QUOIT_OK);
            memset(source, 0xee, bytes); /* the write has taken its source */
            while (atomic_load_explicit(mark, memory_order_acquire) != value)
                sched_yield();
            assert_memory_equal(window + sizeof *mark, expected + sizeof *mark, sizeof expected - sizeof *mark);
        }
        rig_disconnect(ports);
    }
}

/* Where the other shares of the wire, and the other end, look for it. */
static void test_the_part_of_a_wire_is_published(void **state)
{
    struct rig *rig = *state;
    struct quoit_port_wire wires[2] = {{.share = 2, .part = {.percent = 30}}, {.share = 5, .part = {.weight = 7}}};
    assert_int_equal(quoit_port_driver_link(rig_table(rig), &wires[0].fd), QUOIT_OK);
    wires[1].fd = wires[0].fd;
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < 2; i++) {
            const struct quoit_port_site site = {
                .link_fd = rig->link_fd, .peer_memory_fd = rig->memory_fd[1 - side], .side = side, .wire = &wires[i]};
            struct quoit_port_endpoint endpoint;
            struct quoit_port *port;
            assert_int_equal(quoit_port_driver_describe(rig_table(rig), &site, &endpoint), QUOIT_OK);
            const struct quoit_port_config config = {
                .driver = rig_table(rig), .memory = {rig->memory[side], RIG_MEMORY_BYTES}, .endpoint = &endpoint};
            assert_int_equal(quoit_port_open(&config, &port), QUOIT_OK);
            const _Atomic uint32_t *parts = ((struct quoit_emulated_port *)port)->wire->side[side].parts;
            assert_int_equal(atomic_load(&parts[2]), 30 << 16);
            assert_int_equal(atomic_load(&parts[5]), i == 0 ? 0 : 7);
            quoit_port_close(port);
        }
    }
    close(wires[0].fd);
}

/* The queue is a ring of bytes: entries that do not fit before its end begin at its start, and the gap is skipped.
 * Entries that landed earlier lie in that gap; here each of them would put an old word back. */
static void test_the_end_of_the_queue_is_skipped(void **state)
{
    enum { WORDS = 4096, OLD = 0x1111, TURNS = 12, BLOCK_BYTES = WORDS * 8 };
    struct rig *rig = *state;
    struct quoit_port *ports[2];
    static uint8_t source[BLOCK_BYTES], got[BLOCK_BYTES];
    rig->knobs.write_latency_ns = MS / 50;
    connect_windows(rig, ports);
    for (uint64_t i = 0; i < 2 * WORDS; i++) /* the shortest entries, once around and more */
        assert_int_equal(quoit_port_write64(ports[0], QUOIT_WINDOW_MEMORY, i % WORDS * 8, OLD + i), QUOIT_OK);
    for (uint32_t turn = 0; turn < TURNS; turn++) { /* first where the words are, then beside them */
        uint64_t at = turn == 0 ? 0 : BLOCK_BYTES;
        memset(source, (int)(0x80 + turn), sizeof source);
        for (uint64_t done = 0; done < BLOCK_BYTES; done += 8192)
            assert_int_equal(quoit_port_write(ports[0], QUOIT_WINDOW_MEMORY, at + done, source + done, 8192), QUOIT_OK);
    }
    assert_int_equal(quoit_port_read(ports[0], QUOIT_WINDOW_MEMORY, BLOCK_BYTES, got, sizeof got), QUOIT_OK);
    assert_memory_equal(got, source, sizeof got);
    memset(source, 0x80, sizeof source);
    assert_int_equal(quoit_port_read(ports[0], QUOIT_WINDOW_MEMORY, 0, got, sizeof got), QUOIT_OK);
    assert_memory_equal(got, source, sizeof got);
    rig_disconnect(ports);
}

/* Entries that begin before the end of the queue do not reach past it, where the buffers of long writes are: in each
 * turn all buffers wait to land while short writes follow, in some turns around the end of the queue. */
static void test_entries_stay_in_the_queue(void **state)
{
    enum { TURNS = 40, LONG = 32768, SHORT = 4096, SHORT_COUNT = 4 };
    struct rig *rig = *state;
    struct quoit_port *ports[2];
    static uint8_t expected[WINDOW_BYTES], source[LONG];
    rig->knobs.write_latency_ns = 10 * MS;
    connect_windows(rig, ports);
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        uint64_t word;
        for (uint64_t at = 0, bytes; at < WINDOW_BYTES + SHORT_COUNT * SHORT; at += bytes) {
            bool is_long = at < WINDOW_BYTES;
            uint64_t to = is_long ? at : at - WINDOW_BYTES + LONG / 2; /* not where a long write begins */
            bytes = is_long ? LONG : SHORT;
            for (size_t i = 0; i < bytes; i++)
                source[i] = (uint8_t)(turn * 31 + at / SHORT + i * 7 + i / 251);
            memcpy(expected + to, source, bytes);
            assert_int_equal(quoit_port_write(ports[0], QUOIT_WINDOW_MEMORY, to, source, bytes), QUOIT_OK);
        }
        assert_int_equal(quoit_port_read(ports[0], QUOIT_WINDOW_MEMORY, 0, &word, sizeof word), QUOIT_OK);
        assert_memory_equal(window_of(rig, 1), expected, sizeof expected);
    }
    rig_disconnect(ports);
}

#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_config_is_checked),
        T(test_peer_memory_is_not_believed),
        T(test_cable_is_cut_and_mended),
        T(test_writes_are_torn_in_whole_words),
        T(test_torn_write_respects_a_new_translation),
        T(test_cut_in_the_middle_of_a_write),
        T(test_cut_in_the_middle_of_a_fast_write),
        T(test_write_from_a_descriptor),
        T(test_posted_from_a_descriptor),
        T(test_a_short_post_lands_at_once),
        T(test_posted_from_a_descriptor_and_lost),
        T(test_registers_are_read_whole),
        T(test_hostile_link_vectors),
        T(test_ring_after_a_killed_ringer),
        T(test_the_part_of_a_wire_is_published),
        T(test_rate_is_kept),
        T(test_latencies_are_kept),
        T(test_dma_does_not_outlive_the_link),
        T(test_close_does_not_wait_for_dma),
        T(test_the_end_of_the_queue_is_skipped),
        T(test_entries_stay_in_the_queue),
        T(test_order_with_every_knob),
        T(test_writes_of_a_paced_wire_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
