/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what net_test.c, which knows no driver, cannot ask of this one: who is let in, what a peer may not send, frames
 * that come in pieces, two ends that call each other, calls that nobody answers at once, and whether a machine is there
 * whose process says nothing. Method: the ends of two hosts in this process, over the
 * loopback device, between pages that may not be accessed; where it says so the test itself is host 1, with a socket
 * and bytes of its own. */
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

#include "base/digest.h"
#include "base/prng.h"
#include "env/clock.h"
#include "net/tcp/tcp.h"

#define HOST_COUNT      3u
#define MEMORY_BYTES    8192u
#define DEADLINE_NS     20000000000u
#define UNAUTHENTICATED 80u /* more than are heard at once */
#define FRAME_COUNT     200u
#define PUT_BYTES       (8u << 20)
#define WINDOW_BYTES    65536
#define PIECES_BYTES    (300u << 10) /* of a put that leaves in pieces */

static const struct quoit_net_driver *const driver = &quoit_net_driver_tcp;

struct side {
    struct quoit_net_end *end;
    char *memory;
    void *region;
    uint32_t done_count, gone_count, message_count, broken_mask;
    uint64_t done_cookie; /* the last one's */
    char message[MESSAGE_BYTES];
    uint32_t message_bytes;
};

static void on_done(void *arg, uint32_t host, uint64_t cookie, enum quoit_status status, uint64_t bytes)
{
    struct side *side = arg;
    (void)host, (void)bytes;
    side->done_cookie = cookie;
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

static struct quoit_net_key open_side_with(struct side *side, uint32_t host, uint32_t pe_endpoint_count)
{
    char problem[QUOIT_NET_PROBLEM_BYTES];
    struct quoit_net_key key;
    const struct quoit_net_driver_config config = {
        .device = "lo",
        .host = host,
        .host_count = HOST_COUNT,
        .pe_endpoint_count = pe_endpoint_count,
        .events = {.arg = side, .done = on_done, .message = on_message, .broken = on_broken}};
    *side = (struct side){.memory = guarded(MEMORY_BYTES)};
    assert_int_equal(driver->open(&config, &side->end, problem), QUOIT_OK);
    assert_int_equal(driver->reg(side->end, side->memory, MEMORY_BYTES, &key, &side->region), QUOIT_OK);
    return key;
}

static struct quoit_net_key open_side(struct side *side, uint32_t host)
{
    return open_side_with(side, host, 0);
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
        struct side *until_sides[] = {(one), (other)};                                                                 \
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
    const struct quoit_wire_address *at = &side->end->address.at;
    assert_int_equal(side->end->address.bytes, sizeof(struct wire_address));
    assert_int_equal(at->family, AF_INET);
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = at->port};
    memcpy(&there.sin_addr, at->bytes, sizeof there.sin_addr);
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

/* The test is the host, which has been let in. */
static int be_host_with(struct side *side, uint32_t host, int window_bytes)
{
    char word = 0;
    int fd = call_with(side, window_bytes);
    const struct hello hello = hello_to(side, host);
    assert_int_equal(send(fd, &hello, sizeof hello, MSG_NOSIGNAL), sizeof hello);
    until(has_something(fd), side, NULL);
    assert_int_equal(recv(fd, &word, 1, 0), 1);
    assert_int_equal(word, WELCOME);
    return fd;
}

static int be_host_1(struct side *side)
{
    return be_host_with(side, 1, 0);
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
static void test_unauthenticated_that_wait(void **state)
{
    struct side side;
    int fds[UNAUTHENTICATED];
    (void)state;
    open_side(&side, 0);
    for (uint32_t i = 0; i < UNAUTHENTICATED; i++) {
        fds[i] = call(&side);
        assert_int_equal(send(fds[i], "quoit", i % 6, MSG_NOSIGNAL), i % 6);
    }
    int own = be_host_1(&side);
    for (uint32_t i = 0; i < UNAUTHENTICATED; i++) {
        until(has_something(fds[i]), &side, NULL);
        assert_true(is_closed(fds[i]));
        close(fds[i]);
    }
    assert_int_equal(side.broken_mask, 0);
    close(own);
    close_side(&side);
}

/* Keys and addresses that did not arrive whole are refused. */
static void test_keys_and_addresses(void **state)
{
    struct side sides[2];
    struct quoit_net_key keys[2];
    void *window;
    (void)state;
    for (uint32_t i = 0; i < 2; i++)
        keys[i] = open_side(&sides[i], i);
    for (int wrong = 0; wrong < 3; wrong++) {
        struct quoit_net_key key = keys[1];
        struct quoit_net_address address = sides[1].end->address;
        if (wrong == 0) {
            key.bytes--;
            address.bytes--;
        } else {
            key.data[wrong == 1 ? 0 : key.bytes - 1] ^= 1;
            address.data[wrong == 1 ? 0 : address.bytes - 1] ^= 1;
        }
        assert_int_equal(driver->attach(sides[0].end, 1, &key, &window), QUOIT_INVALID);
        assert_int_equal(driver->connect(sides[0].end, 1, &address), QUOIT_INVALID);
    }
    close_side(&sides[0]);
    close_side(&sides[1]);
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

static void send_frame(int fd, const struct frame *frame, const char *payload, size_t bytes)
{
    assert_int_equal(send(fd, frame, sizeof *frame, MSG_NOSIGNAL), sizeof *frame);
    assert_int_equal(send(fd, payload, bytes, MSG_NOSIGNAL), bytes);
}

/* Beginnings of an answer that fit no get of this end, though each but one of their fields fits the get that is under
 * way: the end closes the connection, and nothing was written or reported. The get has the place of an earlier one that
 * was answered. */
static void test_answers_that_fit_no_get(void **state)
{
    static const char payload[128] = {[0 ... 127] = 1};
    enum { EARLIER, NOT_BEGUN, OFFSET, TOO_LONG, OTHER_HOST, OF_A_PUT, CASE_COUNT };
    (void)state;
    for (uint32_t wrong = 0; wrong < CASE_COUNT; wrong++) {
        struct side side;
        struct frame asked[2], answer;
        char local[128] = {0};
        void *window;
        struct quoit_net_key key = open_side(&side, 0);
        int fd = be_host_1(&side), other_fd = be_host_with(&side, 2, 0);
        assert_int_equal(driver->attach(side.end, 1, &key, &window), QUOIT_OK);
        const struct quoit_net_transfer transfer = {.host = 1, .window = window, .local = local, .bytes = 64};
        assert_int_equal(driver->get(side.end, &transfer), QUOIT_OK);
        receive_whole(&side, fd, &asked[0], sizeof asked[0]);
        answer = (struct frame){.kind = FRAME_ANSWER, .bytes = 64, .id = asked[0].id};
        send_frame(fd, &answer, payload, 64);
        until(side.done_count == 1, &side, NULL);
        assert_memory_equal(local, payload, 64);
        memset(local, 0, sizeof local);
        if (wrong == OF_A_PUT)
            assert_int_equal(driver->put(side.end, &transfer), QUOIT_OK);
        else
            assert_int_equal(driver->get(side.end, &transfer), QUOIT_OK);
        receive_whole(&side, fd, &asked[1], sizeof asked[1]);
        answer.id = asked[0].id + (1ull << 32); /* the same place once more */
        if (wrong != OF_A_PUT)
            assert_int_equal(asked[1].id, answer.id);
        answer.id = wrong == EARLIER ? asked[0].id : wrong == NOT_BEGUN ? answer.id + 1 : answer.id;
        answer.address = wrong == OFFSET ? 1 : wrong == OF_A_PUT ? 64 : 0;
        answer.bytes = wrong == TOO_LONG ? 65 : wrong == OF_A_PUT ? 0 : 63;
        send_frame(wrong == OTHER_HOST ? other_fd : fd, &answer, payload, answer.bytes);
        until(side.broken_mask == (wrong == OTHER_HOST ? 1u << 2 : 1u << 1), &side, NULL);
        for (uint32_t i = 0; i < sizeof local; i++)
            assert_int_equal(local[i], 0);
        assert_int_equal(side.done_count, 1);
        driver->detach(side.end, window);
        close(fd);
        close(other_fd);
        close_side(&side);
    }
}

/* A put that leaves in pieces is one put: its last piece says so, and it is done when the other end has confirmed it,
 * before one that was posted behind it. */
static void test_a_put_in_pieces(void **state)
{
    struct side side;
    struct quoit_prng chance = {.state = 36};
    struct frame frame, landed = {.kind = FRAME_LANDED};
    void *window;
    char *local = malloc(PIECES_BYTES), *come = calloc(1, PIECES_BYTES);
    uint64_t piece_count = 0;
    (void)state;
    assert_non_null(local);
    assert_non_null(come);
    for (uint32_t i = 0; i < PIECES_BYTES; i++)
        local[i] = (char)quoit_prng_choose(&chance, 256);
    struct quoit_net_key key = open_side(&side, 0);
    int fd = be_host_1(&side);
    assert_int_equal(driver->attach(side.end, 1, &key, &window), QUOIT_OK);
    const uint64_t sizes[2] = {PIECES_BYTES, 8};
    for (uint32_t i = 0; i < 2; i++) {
        const struct quoit_net_transfer transfer = {
            .host = 1, .window = window, .local = local, .bytes = sizes[i], .cookie = i};
        assert_int_equal(driver->put(side.end, &transfer), QUOIT_OK);
    }
    for (uint32_t i = 0; i < 2; i++) {
        for (uint64_t bytes = 0; bytes < sizes[i]; bytes += frame.bytes, piece_count++) {
            receive_whole(&side, fd, &frame, sizeof frame);
            assert_int_equal(frame.kind, FRAME_PUT);
            assert_int_equal(frame.address - (uint64_t)(uintptr_t)side.memory, bytes);
            assert_true(frame.bytes > 0 && frame.bytes <= sizes[i] - bytes);
            assert_int_equal(frame.is_last, bytes + frame.bytes == sizes[i]);
            receive_whole(&side, fd, come + bytes, frame.bytes);
        }
        assert_memory_equal(come, local, PIECES_BYTES);
        assert_int_equal(side.done_count, 0);
    }
    assert_true(piece_count > 3);
    for (uint32_t i = 0; i < 2; i++) {
        landed.bytes = i + 1; /* one put more than there are is of no other */
        send_frame(fd, &landed, "", 0);
        until(side.done_count == i + 1, &side, NULL);
        assert_int_equal(side.done_cookie, i);
    }
    driver->detach(side.end, window);
    close(fd);
    close_side(&side);
    free(come);
    free(local);
}

/* Puts and messages whose bytes come in pieces of any size; a model of the memory repeats the puts. What is no last
 * piece of a put is not confirmed. */
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
        bool is_put = i < FRAME_COUNT - 1 && quoit_prng_choose(&chance, 3) != 0;
        bool is_last = is_put && quoit_prng_choose(&chance, 2) != 0;
        const struct frame frame = {.kind = is_put ? FRAME_PUT : FRAME_MESSAGE,
                                    .bytes = bytes,
                                    .address = (uint64_t)(uintptr_t)side.memory + offset,
                                    .is_last = is_last};
        memcpy(stream + all, &frame, sizeof frame);
        all += sizeof frame;
        for (uint64_t at = 0; at < bytes; at++)
            stream[all + at] = (char)quoit_prng_choose(&chance, 256);
        if (is_put)
            memcpy(model + offset, stream + all, bytes);
        all += bytes;
        put_count += is_last;
        message_count += !is_put;
    }
    int fd = be_host_1(&side);
    struct frame landed;
    uint64_t landed_count = 0;
    while (landed_count < put_count || side.message_count < message_count || has_something(fd)) {
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
    assert_int_equal(sent, all);
    assert_int_equal(side.message_count, message_count);
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

/* The test is host 1, whose machine takes calls: it hangs up on some, and answers the last one. */
static void test_a_call_that_is_repeated(void **state)
{
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof here;
    struct wire_address wire = {.secret = "the secret of 1"};
    struct quoit_net_address address = {.bytes = sizeof wire};
    struct side side;
    (void)state;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (const struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(listen(listener, 8), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&here, &bytes), 0);
    struct sockaddr_storage there = {0};
    memcpy(&there, &here, sizeof here);
    address.at = quoit_address_tell(&there);
    wire.digest = quoit_digest((const char *)&wire + sizeof wire.digest, sizeof wire - sizeof wire.digest);
    memcpy(address.data, &wire, sizeof wire);
    open_side(&side, 2);
    assert_int_equal(driver->connect(side.end, 1, &address), QUOIT_OK);
    memcpy(driver->send_buffer(side.end), "for 1", 6);
    assert_int_equal(driver->send(side.end, 1, driver->send_buffer(side.end), 6), QUOIT_OK);
    assert_true(driver->sign_age_ns(side.end, 0) == UINT64_MAX); /* it was not called */
    for (uint32_t calls = 0; calls < 4; calls++) {
        struct hello hello;
        struct frame frame;
        char word = WELCOME, message[8] = "";
        until(has_something(listener), &side, NULL);
        int fd = accept(listener, NULL, NULL);
        assert_true(fd >= 0);
        if (calls > 0) { /* else before its hello */
            receive_whole(&side, fd, &hello, sizeof hello);
            assert_memory_equal(hello.secret, wire.secret, sizeof hello.secret);
            assert_int_equal(hello.host, 2);
        }
        if (calls == 3) {
            assert_int_equal(send(fd, &word, 1, MSG_NOSIGNAL), 1);
            receive_whole(&side, fd, &frame, sizeof frame);
            assert_int_equal(frame.bytes, 6);
            receive_whole(&side, fd, message, 6);
            assert_string_equal(message, "for 1");
            until(driver->sign_age_ns(side.end, 1) == 0, &side, NULL);
        }
        assert_int_equal(side.broken_mask, 0);
        close(fd);
    }
    until(side.broken_mask == 1u << 1, &side, NULL); /* an open connection is not opened again */
    close_side(&side);
    open_side(&side, 2);
    close(listener);
    assert_int_equal(driver->connect(side.end, 1, &address), QUOIT_OK);
    assert_int_equal(((struct tcp *)side.end)->connection_count, 0); /* it is called when something is sent */
    assert_int_equal(driver->send(side.end, 1, driver->send_buffer(side.end), 6), QUOIT_OK);
    until(side.broken_mask == 1u << 1, &side, NULL); /* refused: nobody is there */
    close_side(&side);
}

/* The test is host 1, reads nothing, and its machine has taken all that it has room for. */
static void test_a_machine_answers_for_a_process(void **state)
{
    struct side side;
    uint32_t sent_count = 0;
    (void)state;
    open_side(&side, 0);
    int fd = be_host_with(&side, 1, WINDOW_BYTES);
    until(driver->sign_age_ns(side.end, 1) == 0, &side, NULL);
    for (uint32_t full_count = 0; full_count < 1000;) {
        void *buffer = driver->send_buffer(side.end);
        if (!buffer || driver->send(side.end, 1, buffer, MESSAGE_BYTES) != QUOIT_OK)
            full_count++;
        else
            sent_count++;
        driver->progress(side.end);
    }
    assert_true(sent_count > SENDS_MAX);
    until(driver->sign_age_ns(side.end, 1) == 0, &side, NULL);
    assert_int_equal(side.broken_mask, 0);
    close(fd);
    until(side.broken_mask == 1u << 1, &side, NULL);
    driver->abandon(side.end, 1);
    assert_true(driver->sign_age_ns(side.end, 1) == UINT64_MAX);
    close_side(&side);
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

/* A put of PUT_BYTES that has begun to leave for host 1, which the test plays and which reads slowly. */
struct long_put {
    struct side side;
    void *window;
    char *local, *come; /* what is put; room for what host 1 reads of it */
    int fd;             /* of host 1 */
};

static void begin_long_put(struct long_put *put)
{
    *put = (struct long_put){.local = calloc(1, PUT_BYTES), .come = malloc(PUT_BYTES)};
    assert_non_null(put->local);
    assert_non_null(put->come);
    struct quoit_net_key key = open_side(&put->side, 0);
    put->fd = be_host_with(&put->side, 1, WINDOW_BYTES);
    assert_int_equal(driver->attach(put->side.end, 1, &key, &put->window), QUOIT_OK);
    const struct quoit_net_transfer transfer = {
        .host = 1, .window = put->window, .local = put->local, .bytes = PUT_BYTES};
    assert_int_equal(driver->put(put->side.end, &transfer), QUOIT_OK);
}

/* Host 1 goes before the end of it. */
static void break_long_put(struct long_put *put)
{
    close(put->fd);
    until(put->side.broken_mask != 0, &put->side, NULL);
    driver->abandon(put->side.end, 1);
    assert_int_equal(put->side.gone_count, 1);
    driver->detach(put->side.end, put->window);
    close_side(&put->side);
    free(put->come);
    free(put->local);
}

/* A message, such as a heartbeat, that is sent behind a long put comes long before its end, though the other side reads
 * slowly. */
static void test_a_message_overtakes_a_put(void **state)
{
    struct long_put put;
    struct side *side = &put.side;
    uint64_t before_bytes = 0;
    struct frame frame = {0};
    (void)state;
    begin_long_put(&put);
    for (uint32_t i = 0; i < 1000; i++)
        driver->progress(side->end);
    char *buffer = driver->send_buffer(side->end);
    assert_non_null(buffer);
    assert_int_equal(driver->send(side->end, 1, buffer, 8), QUOIT_OK);
    while (frame.kind != FRAME_MESSAGE) {
        until(has_something(put.fd), side, NULL);
        receive_whole(side, put.fd, &frame, sizeof frame);
        if (frame.kind == FRAME_PUT) {
            assert_int_equal(frame.address - (uint64_t)(uintptr_t)side->memory, before_bytes);
            receive_whole(side, put.fd, put.come, frame.bytes);
            before_bytes += frame.bytes;
        }
        assert_true(before_bytes < PUT_BYTES / 8);
    }
    print_message("behind %llu bytes of %u\n", (unsigned long long)before_bytes, PUT_BYTES);
    break_long_put(&put);
}

/* Takes what has come, and counts it. */
static void take_what_came(int fd, char *to, uint64_t *all)
{
    ssize_t now = recv(fd, to, PUT_BYTES, MSG_DONTWAIT);
    *all += now > 0 ? (uint64_t)now : 0;
}

/* An end whose peer does not read may sleep, and its descriptor is readable again as soon as there is room. */
static void test_sleep_until_there_is_room(void **state)
{
    const uint64_t piece_bytes = 128u << 10;
    struct side side;
    void *window;
    char *local = calloc(1, PUT_BYTES), *come = malloc(PUT_BYTES);
    uint64_t all = 0;
    (void)state;
    assert_non_null(local);
    assert_non_null(come);
    struct quoit_net_key key = open_side(&side, 0);
    int fd = be_host_with(&side, 1, WINDOW_BYTES);
    assert_int_equal(driver->attach(side.end, 1, &key, &window), QUOIT_OK);
    const struct quoit_net_transfer transfer = {.host = 1, .window = window, .local = local, .bytes = PUT_BYTES};
    assert_int_equal(driver->put(side.end, &transfer), QUOIT_OK);
    until(driver->arm(side.end) && !has_something(driver->wait_fd(side.end)), &side, NULL);
    until((take_what_came(fd, come, &all), has_something(driver->wait_fd(side.end))), NULL, NULL);
    assert_true(all > 0);
    until((take_what_came(fd, come, &all), all == PUT_BYTES / piece_bytes * (piece_bytes + sizeof(struct frame))),
          &side, NULL);
    until(driver->arm(side.end) && !has_something(driver->wait_fd(side.end)), &side, NULL);
    close(fd);
    until(side.broken_mask != 0, &side, NULL);
    driver->abandon(side.end, 1);
    driver->detach(side.end, window);
    close_side(&side);
    free(come);
    free(local);
}

/* An end may have descriptor 0, as in a program whose standard input is closed. */
static void test_descriptor_0(void **state)
{
    struct side side;
    int saved_fd = dup(STDIN_FILENO);
    (void)state;
    close(STDIN_FILENO);
    open_side(&side, 0);
    assert_int_equal(driver->wait_fd(side.end), 0);
    close(be_host_1(&side));
    until(side.broken_mask == 1u << 1, &side, NULL);
    driver->abandon(side.end, 1);
    close_side(&side);
    if (saved_fd >= 0) {
        assert_int_equal(dup2(saved_fd, STDIN_FILENO), STDIN_FILENO);
        close(saved_fd);
    }
}

static void ask(int fd, const struct side *side, uint64_t id, uint64_t bytes)
{
    const struct frame frame = {
        .kind = FRAME_GET, .bytes = bytes, .address = (uint64_t)(uintptr_t)side->memory, .id = id};
    send_frame(fd, &frame, "", 0);
}

/* Gets that are asked for together are answered in their order, however many follow each other. One that asks for more
 * than any end does, and reads no answer, is not served for ever. */
static void test_gets_together(void **state)
{
    const uint64_t count = 2 * QUOIT_NET_TRANSFERS_MAX;
    struct side side;
    struct frame answer;
    char come[64];
    (void)state;
    open_side(&side, 0);
    int fd = be_host_with(&side, 1, WINDOW_BYTES);
    for (uint32_t i = 0; i < MEMORY_BYTES; i++)
        side.memory[i] = (char)(i * 7 + 1);
    for (uint64_t id = 0; id < count; id++) {
        ask(fd, &side, id, id % 64);
        if (id % 4 < 3)
            continue;
        for (uint64_t asked = id - 3; asked <= id; asked++) {
            receive_whole(&side, fd, &answer, sizeof answer);
            assert_int_equal(answer.kind, FRAME_ANSWER);
            assert_int_equal(answer.id, asked);
            assert_int_equal(answer.bytes, asked % 64);
            receive_whole(&side, fd, come, answer.bytes);
            assert_memory_equal(come, side.memory, answer.bytes);
        }
    }
    assert_int_equal(side.broken_mask, 0);
    for (uint64_t id = 0; !side.broken_mask && id < 2 * count; id++) {
        ask(fd, &side, id, MEMORY_BYTES);
        driver->progress(side.end);
    }
    until(side.broken_mask == 1u << 1, &side, NULL);
    close(fd);
    close_side(&side);
}

/* While a long put leaves, answers have every other turn. */
static void test_answers_and_puts_take_turns(void **state)
{
    enum { ANSWERS = 16 };
    struct long_put put;
    struct side *side = &put.side;
    struct frame frame;
    uint32_t puts[ANSWERS] = {0};
    (void)state;
    begin_long_put(&put);
    for (uint32_t i = 0; i < ANSWERS; i++)
        ask(put.fd, side, i, MEMORY_BYTES);
    for (uint32_t i = 0; i < 1000; i++)
        driver->progress(side->end);
    for (uint32_t answer_count = 0; answer_count < ANSWERS;) {
        receive_whole(side, put.fd, &frame, sizeof frame);
        receive_whole(side, put.fd, put.come, frame.bytes);
        if (frame.kind == FRAME_PUT)
            puts[answer_count]++;
        else
            assert_int_equal(frame.id, answer_count++);
    }
    assert_true(puts[0] < PUT_BYTES / (128u << 10) / 2);
    for (uint32_t i = 1; i < ANSWERS; i++)
        assert_int_equal(puts[i], 1);
    break_long_put(&put);
}

/* A PE endpoint may send messages before it is taken, and neither put nor get: the connection is closed. What it sends
 * once it is taken is served. */
static void test_a_pe_endpoint_that_was_not_taken(void **state)
{
    (void)state;
    for (enum frame_kind kind = FRAME_PUT; kind <= FRAME_GET; kind++) {
        for (int is_taken = 0; is_taken < 2; is_taken++) {
            struct side side;
            open_side_with(&side, 0, 1);
            const struct frame message = {.kind = FRAME_MESSAGE, .bytes = 8};
            const struct frame frame = {
                .kind = kind, .bytes = 8, .address = (uint64_t)(uintptr_t)side.memory, .is_last = 1};
            struct frame answer;
            int fd = be_host_with(&side, HOST_COUNT, 0);
            send_frame(fd, &message, "endpoint", 8);
            until(side.message_count == 1, &side, NULL);
            if (is_taken)
                assert_int_equal(driver->connect(side.end, HOST_COUNT, &side.end->address), QUOIT_OK);
            send_frame(fd, &frame, "8 bytes", kind == FRAME_PUT ? 8 : 0);
            until(has_something(fd), &side, NULL);
            assert_int_equal(is_closed(fd), !is_taken);
            if (is_taken) {
                assert_int_equal(recv(fd, &answer, sizeof answer, 0), sizeof answer);
                assert_int_equal(answer.kind, kind == FRAME_PUT ? FRAME_LANDED : FRAME_ANSWER);
            }
            assert_string_equal(side.memory, kind == FRAME_PUT && is_taken ? "8 bytes" : "");
            close(fd);
            close_side(&side);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_let_in),
        cmocka_unit_test(test_unauthenticated_that_wait),
        cmocka_unit_test(test_keys_and_addresses),
        cmocka_unit_test(test_what_no_end_sends),
        cmocka_unit_test(test_answers_that_fit_no_get),
        cmocka_unit_test(test_a_put_in_pieces),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_two_that_call_each_other),
        cmocka_unit_test(test_a_call_that_is_repeated),
        cmocka_unit_test(test_a_machine_answers_for_a_process),
        cmocka_unit_test(test_a_get_that_is_abandoned),
        cmocka_unit_test(test_a_message_overtakes_a_put),
        cmocka_unit_test(test_sleep_until_there_is_room),
        cmocka_unit_test(test_descriptor_0),
        cmocka_unit_test(test_gets_together),
        cmocka_unit_test(test_answers_and_puts_take_turns),
        cmocka_unit_test(test_a_pe_endpoint_that_was_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
