/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what net_test.c, which knows no driver, cannot ask of this one: who is let in, what a peer may not send, frames
 * that come in pieces, and two ends that call each other. Method: the ends of two hosts in this process, over the loopback
 * device, between pages that may not be accessed; where it says so the test itself is host 1, with a socket and bytes of
 * its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/prng.h"
#include "env/clock.h"
#include "net/tcp/tcp.h"

#define HOST_COUNT   3u
#define MEMORY_BYTES 8192u
#define DEADLINE_NS  20000000000u
#define STRANGERS    80u /* more than are heard at once */
#define FRAME_COUNT  200u
#define PUT_BYTES    (8u << 20)
#define WINDOW_BYTES 65536

static const struct quoit_net_driver *const driver = &quoit_net_driver_tcp;

struct side {
    struct quoit_net_end *end;
    char *memory;
    void *region;
    uint32_t done_count, gone_count, message_count, broken_mask;
    char message[MESSAGE_BYTES];
    uint32_t message_bytes;
};

static void on_done(void *arg, uint32_t host, uint64_t cookie, enum quoit_status status, uint64_t bytes)
{
    struct side *side = arg;
    (void)host, (void)cookie, (void)bytes;
    side->done_count += status == QUOIT_OK;
    side->gone_count += status == QUOIT_GONE;
}

static void on_message(void *arg, const void *message, uint32_t bytes)
{
    struct side *side = arg;
    side->message_count++;
    side->message_bytes = bytes;
    memcpy(side->message, message, bytes);
}

static void on_broken(void *arg, uint32_t host)
{
    ((struct side *)arg)->broken_mask |= 1u << host;
}

static char *guarded(size_t bytes)
{
    const size_t page = 4096;
    char *all = mmap(NULL, bytes + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(all, MAP_FAILED);
    assert_int_equal(mprotect(all + page, bytes, PROT_READ | PROT_WRITE), 0);
    return all + page;
}

static struct quoit_net_key open_side(struct side *side, uint32_t host)
{
    char problem[QUOIT_NET_PROBLEM_BYTES];
    struct quoit_net_key key;
    const struct quoit_net_driver_config config = {
        .device = "lo",
        .host = host,
        .host_count = HOST_COUNT,
        .events = {.arg = side, .done = on_done, .message = on_message, .broken = on_broken}};
    *side = (struct side){.memory = guarded(MEMORY_BYTES)};
    assert_int_equal(driver->open(&config, &side->end, problem), QUOIT_OK);
    assert_int_equal(driver->reg(side->end, side->memory, MEMORY_BYTES, &key, &side->region), QUOIT_OK);
    return key;
}

static void close_side(struct side *side)
{
    driver->unreg(side->end, side->region);
    driver->close(side->end);
    munmap(side->memory - 4096, MEMORY_BYTES + 8192);
}

#define until(condition, one, other)                                                                                   \
    do {                                                                                                               \
        const uint64_t deadline_ns = quoit_clock_now_ns() + DEADLINE_NS;                                               \
        struct side *until_sides[] = {(one), (other)};                                                                  \
        while (!(condition)) {                                                                                         \
            for (int side_index = 0; side_index < 2; side_index++)                                                     \
                if (until_sides[side_index])                                                                           \
                    driver->progress(until_sides[side_index]->end);                                                    \
            sched_yield();                                                                                             \
            assert_true(quoit_clock_now_ns() < deadline_ns);                                                           \
        }                                                                                                              \
    } while (0)

/* A socket that is connected to the end's port. window_bytes: about what it takes without being read; 0: the kernel's
 * choice. */
static int call_with(const struct side *side, int window_bytes)
{
    struct wire_address address;
    assert_int_equal(side->end->address.bytes, sizeof address);
    memcpy(&address, side->end->address.data, sizeof address);
    assert_int_equal(address.address.family, AF_INET);
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = address.address.port};
    memcpy(&there.sin_addr, address.address.bytes, sizeof there.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (window_bytes)
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &window_bytes, sizeof window_bytes), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&there, sizeof there), 0);
    return fd;
}

static int call(const struct side *side)
{
    return call_with(side, 0);
}

static struct hello hello_to(const struct side *side, uint32_t host)
{
    struct wire_address address;
    struct hello hello = {.host = host, .version = QUOIT_NET_DRIVER_VERSION};
    memcpy(&address, side->end->address.data, sizeof address);
    memcpy(hello.secret, address.secret, sizeof hello.secret);
    return hello;
}

static bool has_something(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN};
    return poll(&one, 1, 0) == 1;
}

/* Host 1: the test, which has been let in. */
static int be_host_1_with(struct side *side, int window_bytes)
{
    char word = 0;
    int fd = call_with(side, window_bytes);
    const struct hello hello = hello_to(side, 1);
    assert_int_equal(send(fd, &hello, sizeof hello, MSG_NOSIGNAL), sizeof hello);
    until(has_something(fd), side, NULL);
    assert_int_equal(recv(fd, &word, 1, 0), 1);
    assert_int_equal(word, WELCOME);
    return fd;
}

static int be_host_1(struct side *side)
{
    return be_host_1_with(side, 0);
}

static void receive_whole(struct side *side, int fd, void *to, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes;) {
        until(has_something(fd), side, NULL);
        ssize_t now = recv(fd, (char *)to + at, bytes - at, 0);
        assert_true(now > 0);
        at += (uint64_t)now;
    }
}

static bool is_closed(int fd)
{
    char word;
    return recv(fd, &word, 1, MSG_PEEK | MSG_DONTWAIT) <= 0;
}

static void test_who_is_let_in(void **state)
{
    struct side side;
    (void)state;
    open_side(&side, 0);
    for (uint32_t lie = 0; lie < 5; lie++) {
        int fd = call(&side);
        struct hello hello = hello_to(&side, 1);
        hello.secret[lie % SECRET_BYTES] ^= lie < 2 ? 1 : 0;
        hello.host = lie == 2 ? HOST_COUNT : lie == 3 ? UINT32_MAX : 1;
        hello.version += lie == 4;
        assert_int_equal(send(fd, &hello, sizeof hello, MSG_NOSIGNAL), sizeof hello);
        until(has_something(fd), &side, NULL);
        assert_true(is_closed(fd));
        close(fd);
    }
    close(be_host_1(&side));
    until(side.broken_mask == 1u << 1, &side, NULL);
    assert_int_equal(side.message_count, 0);
    close_side(&side);
}

/* Those that say nothing, or not enough, are not heard for ever, and no one waits for ever behind them. */
static void test_strangers_that_wait(void **state)
{
    struct side side;
    int fds[STRANGERS];
    (void)state;
    open_side(&side, 0);
    for (uint32_t i = 0; i < STRANGERS; i++) {
        fds[i] = call(&side);
        assert_int_equal(send(fds[i], "quoit", i % 6, MSG_NOSIGNAL), i % 6);
    }
    int own = be_host_1(&side);
    for (uint32_t i = 0; i < STRANGERS; i++) {
        until(has_something(fds[i]), &side, NULL);
        assert_true(is_closed(fds[i]));
        close(fds[i]);
    }
    assert_int_equal(side.broken_mask, 0);
    close(own);
    close_side(&side);
}

/* What no end of the job sends: the connection is closed, and nothing was written or told. */
static void test_what_no_end_sends(void **state)
{
    struct side side;
    (void)state;
    for (uint32_t kind = 0; kind < 9; kind++) {
        static const char payload[64] = "never";
        open_side(&side, 0);
        const uint64_t base = (uint64_t)(uintptr_t)side.memory;
        const struct frame frames[] = {
            {.kind = 0},
            {.kind = FRAME_KIND_COUNT},
            {.kind = FRAME_MESSAGE, .bytes = MESSAGE_BYTES + 1},
            {.kind = FRAME_PUT, .bytes = 64, .address = base - 1, .is_last = 1},
            {.kind = FRAME_PUT, .bytes = 64, .address = base + MEMORY_BYTES - 63, .is_last = 1},
            {.kind = FRAME_PUT, .bytes = UINT64_MAX - 1, .address = base + 8, .is_last = 1},
            {.kind = FRAME_GET, .bytes = 9, .address = base + MEMORY_BYTES - 8},
            {.kind = FRAME_ANSWER, .bytes = 64, .id = 1ull << 32},
            {.kind = FRAME_ANSWER, .bytes = 64, .id = UINT64_MAX},
        };
        int fd = be_host_1(&side);
        assert_int_equal(send(fd, &frames[kind], sizeof frames[kind], MSG_NOSIGNAL), sizeof frames[kind]);
        assert_int_equal(send(fd, payload, sizeof payload, MSG_NOSIGNAL), sizeof payload);
        until(side.broken_mask == 1u << 1, &side, NULL);
        until(has_something(fd), &side, NULL);
        assert_true(is_closed(fd));
        assert_int_equal(side.message_count + side.done_count, 0);
        for (uint32_t i = 0; i < MEMORY_BYTES; i++)
            assert_int_equal(side.memory[i], 0);
        close(fd);
        close_side(&side);
    }
}

/* Puts and messages whose bytes come in pieces of any size; a model of the memory repeats the puts. */
static void test_pieces(void **state)
{
    struct side side;
    struct quoit_prng chance = {.state = quoit_clock_now_ns()};
    char *stream = malloc(FRAME_COUNT * (sizeof(struct frame) + MEMORY_BYTES)), *model = calloc(1, MEMORY_BYTES);
    uint64_t all = 0, sent = 0;
    uint32_t message_count = 0, put_count = 0;
    (void)state;
    print_message("seed %llu\n", (unsigned long long)chance.state);
    assert_non_null(stream);
    assert_non_null(model);
    open_side(&side, 0);
    for (uint32_t i = 0; i < FRAME_COUNT; i++) {
        uint64_t bytes = quoit_prng_choose(&chance, MEMORY_BYTES + 1);
        uint64_t offset = quoit_prng_choose(&chance, MEMORY_BYTES - bytes + 1);
        bool is_put = quoit_prng_choose(&chance, 3) != 0;
        const struct frame frame = {.kind = is_put ? FRAME_PUT : FRAME_MESSAGE,
                                    .bytes = bytes,
                                    .address = (uint64_t)(uintptr_t)side.memory + offset,
                                    .is_last = is_put};
        memcpy(stream + all, &frame, sizeof frame);
        all += sizeof frame;
        for (uint64_t at = 0; at < bytes; at++)
            stream[all + at] = (char)quoit_prng_choose(&chance, 256);
        if (is_put)
            memcpy(model + offset, stream + all, bytes);
        all += bytes;
        put_count += is_put;
        message_count += !is_put;
    }
    int fd = be_host_1(&side);
    struct frame landed;
    uint64_t landed_count = 0;
    while (sent < all || landed_count < put_count) {
        uint64_t most = 1 + quoit_prng_choose(&chance, quoit_prng_choose(&chance, 2) ? 40 : 40000);
        ssize_t now = send(fd, stream + sent, most < all - sent ? most : all - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        sent += now > 0 ? (uint64_t)now : 0;
        driver->progress(side.end);
        if (recv(fd, &landed, sizeof landed, MSG_DONTWAIT) == (ssize_t)sizeof landed) {
            assert_int_equal(landed.kind, FRAME_LANDED);
            landed_count += landed.bytes;
        }
        assert_int_equal(side.broken_mask, 0);
    }
    until(side.message_count == message_count, &side, NULL);
    assert_int_equal(landed_count, put_count);
    assert_memory_equal(side.memory, model, MEMORY_BYTES);
    close(fd);
    close_side(&side);
    free(model);
    free(stream);
}

/* Both call at once, in either order; what one says and puts arrives at the other, over one connection. */
static void test_two_that_call_each_other(void **state)
{
    (void)state;
    for (uint32_t first = 0; first < 2; first++) {
        struct side sides[2];
        struct quoit_net_key keys[2];
        void *windows[2];
        for (uint32_t i = 0; i < 2; i++)
            keys[i] = open_side(&sides[i], i);
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t own = i ^ first, other = 1 - own;
            assert_int_equal(driver->connect(sides[own].end, other, &sides[other].end->address), QUOIT_OK);
            assert_int_equal(driver->attach(sides[own].end, other, &keys[other], &windows[own]), QUOIT_OK);
        }
        for (uint32_t own = 0; own < 2; own++) {
            char *buffer = driver->send_buffer(sides[own].end);
            assert_non_null(buffer);
            memcpy(buffer, own ? "from 1" : "from 0", 7);
            assert_int_equal(driver->send(sides[own].end, 1 - own, buffer, 7), QUOIT_OK);
            const struct quoit_net_transfer transfer = {.host = 1 - own,
                                                        .window = windows[own],
                                                        .offset = 100,
                                                        .local = own ? "put by 1" : "put by 0",
                                                        .bytes = 9};
            assert_int_equal(driver->put(sides[own].end, &transfer), QUOIT_OK);
        }
        const struct side *a = &sides[0], *b = &sides[1];
        until(a->message_count + b->message_count + a->done_count + b->done_count == 4, &sides[0], &sides[1]);
        for (uint32_t own = 0; own < 2; own++) {
            assert_string_equal(sides[own].message, own ? "from 0" : "from 1");
            assert_string_equal(sides[own].memory + 100, own ? "put by 0" : "put by 1");
            assert_int_equal(sides[own].broken_mask, 0);
            assert_int_equal(((struct tcp *)sides[own].end)->connection_count, 1);
            driver->detach(sides[own].end, windows[own]);
        }
        close_side(&sides[0]);
        close_side(&sides[1]);
    }
}

/* A get that is abandoned while half of it is there: nothing is written any more, and it is told once. */
static void test_a_get_that_is_abandoned(void **state)
{
    struct side side;
    struct frame asked, answer;
    void *window;
    char *local = guarded(4096);
    (void)state;
    struct quoit_net_key key = open_side(&side, 0);
    int fd = be_host_1(&side);
    assert_int_equal(driver->attach(side.end, 1, &key, &window), QUOIT_OK);
    const struct quoit_net_transfer transfer = {.host = 1, .window = window, .local = local, .bytes = 4096};
    assert_int_equal(driver->get(side.end, &transfer), QUOIT_OK);
    until(has_something(fd), &side, NULL);
    assert_int_equal(recv(fd, &asked, sizeof asked, 0), sizeof asked);
    assert_int_equal(asked.kind, FRAME_GET);
    assert_int_equal(asked.bytes, 4096);
    answer = (struct frame){.kind = FRAME_ANSWER, .bytes = 2048, .id = asked.id};
    static const char ones[2048] = {[0 ... 2047] = 1};
    assert_int_equal(send(fd, &answer, sizeof answer, MSG_NOSIGNAL), sizeof answer);
    assert_int_equal(send(fd, ones, 1024, MSG_NOSIGNAL), 1024);
    until(local[1023] == 1, &side, NULL);
    driver->abandon(side.end, 1);
    assert_int_equal(side.gone_count, 1);
    (void)send(fd, ones, 1024, MSG_NOSIGNAL);
    for (uint32_t i = 0; i < 1000; i++)
        driver->progress(side.end);
    for (uint32_t i = 0; i < 4096; i++)
        assert_int_equal(local[i], i < 1024);
    assert_int_equal(side.done_count, 0);
    assert_int_equal(side.gone_count, 1);
    driver->detach(side.end, window);
    close(fd);
    close_side(&side);
    munmap(local - 4096, 3 * 4096);
}

/* A message, such as a heartbeat, that is sent behind a long put comes long before its end, though the other side reads
 * slowly. */
static void test_a_message_overtakes_a_put(void **state)
{
    struct side side;
    void *window;
    char *local = calloc(1, PUT_BYTES), *come = malloc(PUT_BYTES);
    uint64_t before_bytes = 0;
    struct frame frame = {0};
    (void)state;
    assert_non_null(local);
    assert_non_null(come);
    struct quoit_net_key key = open_side(&side, 0);
    int fd = be_host_1_with(&side, WINDOW_BYTES);
    assert_int_equal(driver->attach(side.end, 1, &key, &window), QUOIT_OK);
    const struct quoit_net_transfer transfer = {.host = 1, .window = window, .local = local, .bytes = PUT_BYTES};
    assert_int_equal(driver->put(side.end, &transfer), QUOIT_OK);
    for (uint32_t i = 0; i < 1000; i++)
        driver->progress(side.end);
    char *buffer = driver->send_buffer(side.end);
    assert_non_null(buffer);
    assert_int_equal(driver->send(side.end, 1, buffer, 8), QUOIT_OK);
    while (frame.kind != FRAME_MESSAGE) {
        until(has_something(fd), &side, NULL);
        receive_whole(&side, fd, &frame, sizeof frame);
        if (frame.kind == FRAME_PUT) {
            assert_int_equal(frame.address - (uint64_t)(uintptr_t)side.memory, before_bytes);
            receive_whole(&side, fd, come, frame.bytes);
            before_bytes += frame.bytes;
        }
        assert_true(before_bytes < PUT_BYTES / 8);
    }
    print_message("behind %llu bytes of %u\n", (unsigned long long)before_bytes, PUT_BYTES);
    close(fd);
    until(side.broken_mask != 0, &side, NULL);
    driver->abandon(side.end, 1);
    assert_int_equal(side.gone_count, 1);
    driver->detach(side.end, window);
    close_side(&side);
    free(come);
    free(local);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_let_in),
        cmocka_unit_test(test_strangers_that_wait),
        cmocka_unit_test(test_what_no_end_sends),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_two_that_call_each_other),
        cmocka_unit_test(test_a_get_that_is_abandoned),
        cmocka_unit_test(test_a_message_overtakes_a_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
