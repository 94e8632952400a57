/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: an end can be called at all of its places until one is chosen, and at that one alone then; why a host is not
 * reached is said with both ends. Method: ends of this process on the loopback device, and sockets of the test. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "env/clock.h"
#include "net/tcp/tcp.h"

#define DEADLINE_NS 60000000000u
#define ATTEMPTS    20u

static const struct quoit_net_driver *const driver = &quoit_net_driver_tcp;

struct side {
    struct quoit_net_end *end;
    uint32_t message_count, broken_count, narrowed_bytes, lost_bytes;
};

static void on_done(void *arg, uint32_t host, uint64_t cookie, enum quoit_status status, uint64_t bytes)
{
    (void)arg, (void)host, (void)cookie, (void)status, (void)bytes;
}

static void on_message(void *arg, const void *message, uint32_t bytes)
{
    assert_int_equal(bytes, 6);
    assert_string_equal(message, "hello");
    ((struct side *)arg)->message_count++;
}

static void on_broken(void *arg, uint32_t host)
{
    assert_int_equal(host, 1);
    ((struct side *)arg)->broken_count++;
}

static void on_narrowed(void *arg, uint32_t host, uint32_t bytes, uint32_t lost_bytes)
{
    struct side *side = arg;
    assert_int_equal(host, 1);
    assert_int_equal(side->narrowed_bytes, 0);
    side->narrowed_bytes = bytes;
    side->lost_bytes = lost_bytes;
}

static void open_side(struct side *side, uint32_t host)
{
    char problem[QUOIT_NET_PROBLEM_BYTES];
    const struct quoit_net_driver_config config = {
        .device = "lo",
        .host = host,
        .host_count = 2,
        .events = {.arg = side, .done = on_done, .message = on_message, .broken = on_broken, .narrowed = on_narrowed}};
    *side = (struct side){0};
    assert_int_equal(driver->open(&config, &side->end, problem), QUOIT_OK);
}

#define until(condition, one, other)                                                                                   \
    do {                                                                                                               \
        const uint64_t deadline_ns = quoit_clock_now_ns() + DEADLINE_NS;                                               \
        while (!(condition)) {                                                                                         \
            driver->progress((one)->end);                                                                              \
            driver->progress((other)->end);                                                                            \
            sched_yield();                                                                                             \
            assert_true(quoit_clock_now_ns() < deadline_ns);                                                           \
        }                                                                                                              \
    } while (0)

static struct sockaddr_storage address_of(const struct quoit_wire_address *at)
{
    struct sockaddr_storage address;
    assert_true(quoit_address_read(at, if_nametoindex("lo"), &address));
    return address;
}

/* 0, or errno. */
static int call(const struct quoit_wire_address *at)
{
    const struct sockaddr_storage there = address_of(at);
    int fd = socket(there.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    int error = connect(fd, (const struct sockaddr *)&there, quoit_address_bytes(&there)) == 0 ? 0 : errno;
    close(fd);
    return error;
}

/* Skips the test where the loopback device has one address. */
static void open_two(struct side sides[2])
{
    for (uint32_t i = 0; i < 2; i++)
        open_side(&sides[i], i);
    if (sides[0].end->places.list[1].address.family != 0)
        return;
    for (uint32_t i = 0; i < 2; i++)
        driver->close(sides[i].end);
    skip();
}

static void test_all_places_until_one_is_chosen(void **state)
{
    struct side sides[2];
    (void)state;
    open_two(sides);
    const struct quoit_net_places *places = &sides[1].end->places;
    const struct quoit_wire_address first = places->list[0].address, second = places->list[1].address;
    assert_memory_equal(&sides[1].end->address.at, &first, sizeof first);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(places->list[i].is_open);
        assert_int_not_equal(places->list[i].address.port, 0);
        assert_int_equal(call(&places->list[i].address), 0);
    }
    for (uint32_t i = 0; i < 2; i++)
        driver->settle(sides[i].end, 1);
    assert_int_equal(call(&first), ECONNREFUSED);
    assert_int_equal(call(&second), 0);
    assert_memory_equal(&sides[1].end->address.at, &second, sizeof second);
    assert_string_equal(sides[1].end->choice.device, "lo");

    assert_int_equal(driver->connect(sides[0].end, 1, &sides[1].end->address), QUOIT_OK);
    char *buffer = driver->send_buffer(sides[0].end);
    memcpy(buffer, "hello", 6);
    assert_int_equal(driver->send(sides[0].end, 1, buffer, 6), QUOIT_OK);
    until(sides[1].message_count == 1, &sides[0], &sides[1]);
    for (uint32_t i = 0; i < 2; i++)
        driver->close(sides[i].end);
}

/* The one port that is allowed, of which an end knows that it is taken, and then that it is free. */
static void test_ports(void **state)
{
    (void)state;
    for (uint32_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        struct side side;
        struct quoit_net_end *other = NULL;
        char problem[QUOIT_NET_PROBLEM_BYTES] = "";
        open_side(&side, 0);
        const struct quoit_net_place first = side.end->places.list[0];
        const uint16_t port = ntohs(first.address.port);
        const struct quoit_net_driver_config config = {
            .device = "127.0.0.0/8", .host_count = 2, .ports = {port, port}, .events = quoit_net_no_events};
        if (first.address.family != AF_INET) {
            driver->close(side.end);
            skip();
        }
        assert_int_equal(driver->open(&config, &other, problem), QUOIT_SYSTEM);
        char expected[QUOIT_NET_PROBLEM_BYTES];
        snprintf(expected, sizeof expected,
                 "TCP: no port of --network-ports %u-%u is left to listen on lo 127.0.0.1/8: Address already in use",
                 port, port);
        assert_string_equal(problem, expected);
        driver->close(side.end);
        if (driver->open(&config, &other, problem) != QUOIT_OK)
            continue; /* another process has taken it */
        assert_int_equal(ntohs(other->places.list[0].address.port), port);
        assert_int_equal(other->places.list[1].address.family, 0);
        driver->close(other);
        return;
    }
    fail_msg("another process was faster each time");
}

/* The first message calls. */
static void call_by(struct side *side, const struct quoit_net_address *address)
{
    assert_int_equal(driver->connect(side->end, 1, address), QUOIT_OK);
    assert_int_equal(driver->send(side->end, 1, driver->send_buffer(side->end), 6), QUOIT_OK);
}

/* Nobody listens where host 1 was; then somebody does who says nothing. */
static void test_why_a_host_is_not_reached(void **state)
{
    struct side sides[2];
    char text[QUOIT_NET_PROBLEM_BYTES] = "", expected[QUOIT_NET_PROBLEM_BYTES], here[QUOIT_NET_PLACE_TEXT_BYTES];
    (void)state;
    for (uint32_t i = 0; i < 2; i++)
        open_side(&sides[i], i);
    struct quoit_net_place own = sides[0].end->places.list[0];
    const struct quoit_net_address address = sides[1].end->address;
    struct sockaddr_storage there = address_of(&address.at);
    own.address.port = 0;
    quoit_net_place_print(&own, here);
    driver->explain(sides[0].end, 1, text);
    assert_string_equal(text, "");
    driver->close(sides[1].end);
    call_by(&sides[0], &address);
    until(sides[0].broken_count > 0, &sides[0], &sides[0]);
    driver->explain(sides[0].end, 1, text);
    snprintf(expected, sizeof expected, "from %s to 127.0.0.1 port %u: Connection refused: ", here,
             ntohs(address.at.port));
    if (address.at.family == AF_INET)
        assert_memory_equal(text, expected, strlen(expected));
    driver->close(sides[0].end);

    open_side(&sides[0], 0);
    int silent = quoit_ports_listen(&there, (struct quoit_ports){0}, 4);
    assert_true(silent >= 0);
    struct quoit_net_address elsewhere = address;
    elsewhere.at = quoit_address_tell(&there);
    call_by(&sides[0], &elsewhere);
    const struct connection *connection = ((const struct tcp *)sides[0].end)->peers[1].connection;
    until(connection->step == CALL_GREETED, &sides[0], &sides[0]);
    driver->explain(sides[0].end, 1, text);
    assert_non_null(strstr(text, ": it is connected, and does not answer"));
    close(silent);
    driver->close(sides[0].end);
}

/* The next call of the side, and its hello. */
static int take_call(struct side *side, int listener, struct hello *hello_out)
{
    int fd = -1;
    until((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0, side, side);
    until(recv(fd, hello_out, sizeof *hello_out, MSG_PEEK | MSG_DONTWAIT) == sizeof *hello_out, side, side);
    assert_int_equal(recv(fd, hello_out, sizeof *hello_out, 0), sizeof *hello_out);
    assert_int_equal(hello_out->version, QUOIT_NET_DRIVER_VERSION);
    return fd;
}

/* As much as the hello says, and no more. */
static void take_probe(struct side *side, int fd, const struct hello *hello)
{
    char bytes[HELD_BYTES];
    uint64_t all = 0;
    while (all < hello->probe_bytes) {
        ssize_t come = 0;
        until((come = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0, side, side);
        all += (uint64_t)come;
    }
    assert_int_equal(all, hello->probe_bytes);
}

/* What comes in larger packets than a link takes is dropped, and gets no acknowledgement. */
static void drop_large_packets(int fd)
{
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_LEN, 0), BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 1500, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, UINT32_MAX)};
    const struct sock_fprog filter = {.len = 4, .filter = code};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter), 0);
}

/* The other end is the test, at an address of its own. A large packet of the side, or to it, does not arrive: the side
 * calls again with smaller ones, both ways, and says so once. */
static void lose_packets(bool is_from_side)
{
    struct side sides[2];
    struct hello hello;
    static const char bytes[HELD_BYTES] = {PROBE};
    struct sockaddr_in there = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002)};
    socklen_t there_bytes = sizeof there;
    for (uint32_t i = 0; i < 2; i++)
        open_side(&sides[i], i);
    struct quoit_net_address address = sides[1].end->address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(listener >= 0);
    if (address.at.family != AF_INET || bind(listener, (struct sockaddr *)&there, sizeof there) != 0)
        skip();
    assert_int_equal(listen(listener, 4), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&there, &there_bytes), 0);
    struct sockaddr_storage whole = {0};
    memcpy(&whole, &there, sizeof there);
    address.at = quoit_address_tell(&whole);
    call_by(&sides[0], &address);

    int fd = take_call(&sides[0], listener, &hello);
    const uint32_t large = hello.probe_bytes;
    assert_in_range(large, 1441, HELD_BYTES);
    assert_int_equal(hello.segment_bytes, 0);
    if (is_from_side)
        drop_large_packets(fd);
    const uint32_t some = is_from_side ? large : large / 2;
    assert_int_equal(send(fd, bytes, 1 + some, MSG_NOSIGNAL), 1 + some);
    int again = take_call(&sides[0], listener, &hello);
    close(fd);
    assert_int_equal(hello.segment_bytes, 1440);
    assert_in_range(hello.probe_bytes, 1400, 1440);
    assert_int_equal(sides[0].narrowed_bytes, 0);
    assert_int_equal(send(again, bytes, 1 + hello.probe_bytes, MSG_NOSIGNAL), 1 + hello.probe_bytes);
    take_probe(&sides[0], again, &hello);
    assert_int_equal(send(again, &(char){WELCOME}, 1, MSG_NOSIGNAL), 1);
    until(sides[0].narrowed_bytes != 0, &sides[0], &sides[0]);
    assert_int_equal(sides[0].narrowed_bytes, 1440);
    assert_int_equal(sides[0].lost_bytes, large);
    assert_int_equal(((const struct tcp *)sides[0].end)->probing_count, 0);
    close(again);
    close(listener);
    for (uint32_t i = 0; i < 2; i++)
        driver->close(sides[i].end);
}

static void test_packets_from_here_get_lost(void **state)
{
    (void)state;
    lose_packets(true);
}

static void test_packets_to_here_get_lost(void **state)
{
    (void)state;
    lose_packets(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_places_until_one_is_chosen), cmocka_unit_test(test_ports),
        cmocka_unit_test(test_why_a_host_is_not_reached),      cmocka_unit_test(test_packets_from_here_get_lost),
        cmocka_unit_test(test_packets_to_here_get_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
