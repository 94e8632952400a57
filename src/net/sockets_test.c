/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the promises of sockets.h. Method: two processes' ends in this one, over the loopback device; random messages of
 * both, whose payload and flags a model repeats; unauthenticated peers, and bytes that no end would send, by sockets of
 * the test.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/prng.h"
#include "env/clock.h"
#include "net/interfaces.h"
#include "net/sockets.h"

#define COUNT        5u
#define MEMORY_BYTES (1u << 20)
#define FLAGS        8u    /* words at the start of the memory */
#define PAYLOAD_FROM 4096u /* behind the flags */
#define LONG_BYTES   (8u << 20)
#define DEADLINE_NS  100000000000u
#define LOW          1u
#define HIGH         3u

struct end {
    struct quoit_sockets *sockets;
    char *memory; /* between two pages that may not be accessed */
    char *model;  /* what it has to be */
};

static struct end ends[COUNT];

static char *guarded_memory(void)
{
    const size_t page = 4096;
    char *all = mmap(NULL, MEMORY_BYTES + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(all, MAP_FAILED);
    assert_int_equal(mprotect(all + page, MEMORY_BYTES, PROT_READ | PROT_WRITE), 0);
    return all + page;
}

static void open_end(uint32_t number)
{
    struct end *end = &ends[number];
    end->memory = guarded_memory();
    end->model = calloc(1, MEMORY_BYTES);
    assert_non_null(end->model);
    struct quoit_interface lo;
    assert_true(quoit_interface_find("lo", &lo));
    const struct quoit_sockets_config config = {
        .place = lo.place, .self = number, .count = COUNT, .memory = end->memory, .memory_bytes = MEMORY_BYTES};
    assert_int_equal(quoit_sockets_open(&config, &end->sockets), QUOIT_OK);
}

static int open_two(void **state)
{
    (void)state;
    memset(ends, 0, sizeof ends);
    open_end(LOW);
    open_end(HIGH);
    return 0;
}

static int close_all(void **state)
{
    (void)state;
    for (uint32_t number = 0; number < COUNT; number++) {
        quoit_sockets_close(ends[number].sockets);
        if (ends[number].memory)
            munmap(ends[number].memory - 4096, MEMORY_BYTES + 2 * 4096);
        free(ends[number].model);
    }
    return 0;
}

static uint32_t look(uint32_t number)
{
    return quoit_sockets_look(ends[number].sockets);
}

static enum quoit_socket_state state_of(uint32_t number, uint32_t peer)
{
    return quoit_sockets_state(ends[number].sockets, peer);
}

static void await_state(uint32_t number, uint32_t peer, enum quoit_socket_state state)
{
    uint64_t until_ns = quoit_clock_now_ns() + DEADLINE_NS;
    while (state_of(number, peer) != state) {
        assert_true(quoit_clock_now_ns() < until_ns);
        look(number);
        look(peer);
        sched_yield();
    }
}

static struct quoit_connection_request invite(uint32_t number, uint32_t peer)
{
    struct quoit_connection_request connection_request;
    assert_int_equal(quoit_sockets_invite(ends[number].sockets, peer, &connection_request), QUOIT_OK);
    return connection_request;
}

static void join_by(const struct quoit_connection_request *connection_request, uint32_t joining)
{
    assert_int_equal(quoit_sockets_join(ends[joining].sockets, connection_request), QUOIT_OK);
    await_state(joining, connection_request->from, QUOIT_SOCKET_OPEN);
    await_state(connection_request->from, joining, QUOIT_SOCKET_OPEN);
}

static void join_two(uint32_t inviting, uint32_t joining)
{
    const struct quoit_connection_request connection_request = invite(inviting, joining);
    join_by(&connection_request, joining);
}

static enum quoit_status send_one(uint32_t number, uint32_t peer, struct quoit_socket_message *message)
{
    return quoit_sockets_send(ends[number].sockets, peer, message);
}

/* One way of the traffic: messages to one end, of which one is under way. */
struct traffic {
    uint32_t from, to;
    struct quoit_socket_message message;
    char *source; /* [MEMORY_BYTES] */
    bool is_begun;
    uint64_t sent_count;
    uint64_t flags[FLAGS]; /* of the messages sent, what the flag will be */
};

static void begin(struct traffic *traffic, struct quoit_prng *prng)
{
    static const uint32_t bounds[] = {1, 9, 200, 5000, 40000, 300000};
    uint64_t bytes = quoit_prng_choose(prng, bounds[quoit_prng_choose(prng, 6)]);
    uint64_t offset = PAYLOAD_FROM + quoit_prng_choose(prng, MEMORY_BYTES - PAYLOAD_FROM - bytes + 1);
    uint32_t flag = (uint32_t)quoit_prng_choose(prng, FLAGS + 1);
    for (uint64_t i = 0; i < bytes; i++)
        traffic->source[i] = (char)quoit_prng_next(prng);
    memcpy(ends[traffic->to].model + offset, traffic->source, bytes);
    traffic->message = (struct quoit_socket_message){
        .offset = offset, .source = traffic->source, .bytes = bytes, .flag = QUOIT_SOCKETS_NO_FLAG};
    if (flag < FLAGS) {
        traffic->message.flag = flag * 8;
        traffic->message.value = traffic->flags[flag] = ++traffic->sent_count;
        memcpy(ends[traffic->to].model + traffic->message.flag, &traffic->message.value, 8);
    }
    traffic->is_begun = true;
}

static void assert_received(const struct end *end)
{
    assert_memory_equal(end->memory, end->model, MEMORY_BYTES);
}

static uint64_t flag_at(uint32_t number, uint64_t offset)
{
    return atomic_load((_Atomic uint64_t *)(void *)(ends[number].memory + offset));
}

static void test_messages_arrive_in_order(void **state)
{
    struct quoit_prng prng;
    struct traffic traffics[2] = {{.from = LOW, .to = HIGH}, {.from = HIGH, .to = LOW}};
    uint64_t until_ns = quoit_clock_now_ns() + DEADLINE_NS;
    (void)state;
    prng.state = 4711;
    join_two(LOW, HIGH);
    for (int way = 0; way < 2; way++)
        traffics[way].source = calloc(1, MEMORY_BYTES);
    for (uint32_t turn = 0; turn < 4000; turn++) {
        struct traffic *traffic = &traffics[quoit_prng_choose(&prng, 2)];
        if (!traffic->is_begun)
            begin(traffic, &prng);
        enum quoit_status status = send_one(traffic->from, traffic->to, &traffic->message);
        traffic->is_begun = status != QUOIT_OK;
        assert_true(status == QUOIT_OK || status == QUOIT_FULL);
        if (status == QUOIT_FULL || quoit_prng_choose(&prng, 4) == 0)
            look(traffic->to);
    }
    for (int way = 0; way < 2; way++) {
        struct traffic *traffic = &traffics[way];
        while (traffic->is_begun) {
            traffic->is_begun = send_one(traffic->from, traffic->to, &traffic->message) != QUOIT_OK;
            look(traffic->to);
            assert_true(quoit_clock_now_ns() < until_ns);
        }
        /* the last one says that all before it have come */
        struct quoit_socket_message last = {.flag = (FLAGS + 1) * 8, .value = 1};
        memcpy(ends[traffic->to].model + last.flag, &last.value, 8);
        while (send_one(traffic->from, traffic->to, &last) != QUOIT_OK)
            look(traffic->to);
        while (flag_at(traffic->to, last.flag) == 0) {
            look(traffic->to);
            assert_true(quoit_clock_now_ns() < until_ns);
        }
        assert_received(&ends[traffic->to]);
        assert_true(traffic->sent_count > 500);
        free(traffic->source);
    }
}

/* What a flag promises is there when it is seen, also while more is coming. */
static void test_a_flag_follows_its_payload(void **state)
{
    static char source[60000];
    uint64_t until_ns = quoit_clock_now_ns() + DEADLINE_NS;
    (void)state;
    join_two(HIGH, LOW);
    for (uint64_t round = 1; round <= 200; round++) {
        memset(source, (int)round, sizeof source);
        struct quoit_socket_message message = {
            .offset = PAYLOAD_FROM, .source = source, .bytes = sizeof source, .flag = 0, .value = round};
        while (send_one(LOW, HIGH, &message) != QUOIT_OK)
            look(HIGH);
        while (flag_at(HIGH, 0) < round) {
            look(HIGH);
            assert_true(quoit_clock_now_ns() < until_ns);
        }
        assert_memory_equal(ends[HIGH].memory + PAYLOAD_FROM, source, sizeof source);
    }
}

/* More connections than are read one by one. */
static void test_all_connections_are_looked_at(void **state)
{
    uint64_t until_ns = quoit_clock_now_ns() + DEADLINE_NS;
    (void)state;
    for (uint32_t number = 0; number < COUNT; number++) {
        if (number != LOW && number != HIGH)
            open_end(number);
        if (number != LOW)
            join_two(number, LOW);
    }
    for (uint64_t round = 1; round <= 100; round++)
        for (uint32_t number = 0; number < COUNT; number++) {
            struct quoit_socket_message message = {.flag = number * 8, .value = round};
            if (number == LOW)
                continue;
            assert_int_equal(send_one(number, LOW, &message), QUOIT_OK);
            while (flag_at(LOW, number * 8) != round) {
                look(LOW);
                assert_true(quoit_clock_now_ns() < until_ns);
            }
        }
}

static void test_of_two_connection_requests_the_lower_is_taken(void **state)
{
    (void)state;
    const struct quoit_connection_request of_low = invite(LOW, HIGH), of_high = invite(HIGH, LOW);
    assert_int_equal(quoit_sockets_join(ends[LOW].sockets, &of_high), QUOIT_OK);
    assert_int_equal(state_of(LOW, HIGH), QUOIT_SOCKET_INVITED);
    assert_int_equal(quoit_sockets_join(ends[HIGH].sockets, &of_low), QUOIT_OK);
    assert_int_equal(state_of(HIGH, LOW), QUOIT_SOCKET_JOINING);
    await_state(HIGH, LOW, QUOIT_SOCKET_OPEN);
    await_state(LOW, HIGH, QUOIT_SOCKET_OPEN);
    struct quoit_socket_message there = {.flag = 8, .value = 5}, back = {.flag = 16, .value = 6};
    assert_int_equal(send_one(LOW, HIGH, &there), QUOIT_OK);
    assert_int_equal(send_one(HIGH, LOW, &back), QUOIT_OK);
    while (flag_at(HIGH, 8) != 5 || flag_at(LOW, 16) != 6) {
        look(LOW);
        look(HIGH);
    }
}

/* Connects to where the connection request says, as an unauthenticated peer may. */
static int knock(const struct quoit_connection_request *connection_request)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = connection_request->address.port};
    memcpy(&address.sin_addr, connection_request->address.bytes, sizeof address.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void test_unauthenticated_are_dropped(void **state)
{
    enum { UNAUTHENTICATED = 12 };
    int fds[UNAUTHENTICATED];
    char byte;
    (void)state;
    const struct quoit_connection_request connection_request = invite(LOW, HIGH);
    uint8_t token[QUOIT_SOCKETS_TOKEN_BYTES];
    memcpy(token, connection_request.token, sizeof token);
    token[sizeof token - 1] ^= 1;
    for (uint32_t i = 0; i < UNAUTHENTICATED; i++) {
        fds[i] = knock(&connection_request);
        if (i % 3 != 0) /* some say nothing, some half, some what is nearly right */
            assert_true(send(fds[i], token, i % 3 == 1 ? sizeof token : sizeof token / 2, MSG_NOSIGNAL) > 0);
        look(LOW);
    }
    join_by(&connection_request, HIGH);
    for (uint32_t i = 0; i < UNAUTHENTICATED; i++) {
        assert_int_not_equal(recv(fds[i], &byte, 1, 0), 1); /* closed */
        close(fds[i]);
    }
}

/* The other end connects, and shows its token long after: it is late, not gone. */
static void test_a_token_that_comes_late(void **state)
{
    uint64_t until_ns = quoit_clock_now_ns() + 2500000000u;
    (void)state;
    const struct quoit_connection_request connection_request = invite(LOW, HIGH);
    int fd = knock(&connection_request);
    while (quoit_clock_now_ns() < until_ns) {
        look(LOW);
        quoit_clock_sleep_ns(1000000);
    }
    assert_int_equal(send(fd, connection_request.token, sizeof connection_request.token, MSG_NOSIGNAL),
                     sizeof connection_request.token);
    await_state(LOW, HIGH, QUOIT_SOCKET_OPEN);
    close(fd);
    await_state(LOW, HIGH, QUOIT_SOCKET_LOST);
}

static void test_a_connection_request_that_leads_nowhere(void **state)
{
    struct quoit_connection_request connection_request = invite(LOW, HIGH);
    struct quoit_socket_message message = {.flag = 0, .value = 1};
    (void)state;
    struct quoit_connection_request wrong = connection_request;
    wrong.from = COUNT;
    assert_int_equal(quoit_sockets_join(ends[HIGH].sockets, &wrong), QUOIT_INVALID);
    wrong.from = HIGH;
    assert_int_equal(quoit_sockets_join(ends[HIGH].sockets, &wrong), QUOIT_INVALID);
    wrong = connection_request;
    wrong.address.family = 77;
    assert_int_equal(quoit_sockets_join(ends[HIGH].sockets, &wrong), QUOIT_INVALID);
    assert_int_equal(state_of(HIGH, LOW), QUOIT_SOCKET_NONE);
    quoit_sockets_close(ends[LOW].sockets); /* and nobody listens there any more */
    ends[LOW].sockets = NULL;
    enum quoit_status status = quoit_sockets_join(ends[HIGH].sockets, &connection_request);
    assert_true(status == QUOIT_OK || status == QUOIT_SYSTEM);
    uint64_t until_ns = quoit_clock_now_ns() + DEADLINE_NS;
    while (state_of(HIGH, LOW) != QUOIT_SOCKET_LOST) {
        look(HIGH);
        assert_true(quoit_clock_now_ns() < until_ns);
    }
    assert_int_equal(send_one(HIGH, LOW, &message), QUOIT_GONE);
}

/* A process that has the token and sends what it likes writes nothing beyond the memory. */
static void test_what_no_end_would_send(void **state)
{
    struct quoit_prng prng;
    (void)state;
    prng.state = 11;
    const struct {
        uint64_t offset, bytes, flag;
    } wrong[] = {{MEMORY_BYTES, 1, 0}, {MEMORY_BYTES - 8, 16, 0}, {UINT64_MAX - 3, 8, 0},
                 {0, UINT64_MAX, 0},   {0, 8, MEMORY_BYTES},      {0, 8, MEMORY_BYTES - 4},
                 {0, 8, 12},           {0, 8, UINT64_MAX - 1}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0] + 20; i++) {
        bool is_random = i >= sizeof wrong / sizeof wrong[0];
        uint64_t words[8] = {0};
        for (int word = 0; is_random && word < 8; word++)
            words[word] = quoit_prng_next(&prng);
        if (!is_random)
            memcpy(words, &wrong[i], sizeof wrong[i]);
        const struct quoit_connection_request connection_request = invite(LOW, HIGH);
        int fd = knock(&connection_request);
        assert_int_equal(send(fd, connection_request.token, sizeof connection_request.token, MSG_NOSIGNAL),
                         sizeof connection_request.token);
        assert_int_equal(send(fd, words, sizeof words, MSG_NOSIGNAL), sizeof words);
        uint64_t until_ns = quoit_clock_now_ns() + DEADLINE_NS;
        while (state_of(LOW, HIGH) != QUOIT_SOCKET_LOST) {
            look(LOW);
            assert_true(quoit_clock_now_ns() < until_ns);
        }
        assert_received(&ends[LOW]); /* nothing */
        close(fd);
        close_all(NULL);
        open_two(NULL);
    }
}

static void test_a_long_message_waits_for_the_other_end(void **state)
{
    char *source = calloc(1, LONG_BYTES);
    uint64_t until_ns = quoit_clock_now_ns() + DEADLINE_NS;
    (void)state;
    join_two(LOW, HIGH);
    enum { PARTS = LONG_BYTES / (MEMORY_BYTES / 2) };
    memset(source, 0x5a, LONG_BYTES);
    struct quoit_socket_message parts[PARTS], other = {.flag = 8, .value = 1};
    uint32_t sent = 0;
    for (uint32_t i = 0; i < PARTS; i++)
        parts[i] = (struct quoit_socket_message){.offset = PAYLOAD_FROM,
                                                 .source = source + (size_t)i * (MEMORY_BYTES / 2),
                                                 .bytes = MEMORY_BYTES / 2,
                                                 .flag = 0,
                                                 .value = i + 1};
    struct pollfd fds[2];
    for (bool is_full = false; sent < PARTS && !is_full;) {
        if (send_one(LOW, HIGH, &parts[sent]) == QUOIT_OK) {
            sent++;
            continue;
        }
        assert_int_equal(quoit_sockets_poll(ends[LOW].sockets, HIGH, fds), 2);
        is_full = poll(fds, 2, 10) == 0; /* the kernel may still be about to pass on what it has */
        assert_true(quoit_clock_now_ns() < until_ns);
    }
    assert_true(sent < PARTS); /* nobody receives */
    assert_int_equal(send_one(LOW, HIGH, &other), QUOIT_FULL);
    while (sent < PARTS) {
        look(HIGH);
        while (poll(fds, 2, 0) == 0) { /* there is no room yet */
            look(HIGH);
            assert_true(quoit_clock_now_ns() < until_ns);
        }
        if (send_one(LOW, HIGH, &parts[sent]) == QUOIT_OK)
            sent++;
        assert_true(quoit_clock_now_ns() < until_ns);
    }
    while (send_one(LOW, HIGH, &other) != QUOIT_OK)
        look(HIGH);
    assert_int_equal(quoit_sockets_poll(ends[LOW].sockets, HIGH, fds), 1);
    assert_int_equal(quoit_sockets_poll(ends[LOW].sockets, 0, fds), 0);
    while (flag_at(HIGH, 8) == 0)
        look(HIGH);
    assert_int_equal(flag_at(HIGH, 0), PARTS);
    assert_memory_equal(ends[HIGH].memory + PAYLOAD_FROM, source, MEMORY_BYTES / 2);
    free(source);
}

/* What was sent before the end is received, and the end afterwards. */
static void test_an_end_that_goes(void **state)
{
    struct quoit_socket_message message = {.flag = 8, .value = 9}, late = {.flag = 8, .value = 10};
    uint64_t until_ns = quoit_clock_now_ns() + DEADLINE_NS;
    (void)state;
    join_two(LOW, HIGH);
    assert_int_equal(send_one(HIGH, LOW, &message), QUOIT_OK);
    quoit_sockets_close(ends[HIGH].sockets);
    ends[HIGH].sockets = NULL;
    while (state_of(LOW, HIGH) != QUOIT_SOCKET_LOST) {
        look(LOW);
        assert_true(quoit_clock_now_ns() < until_ns);
    }
    assert_int_equal(flag_at(LOW, 8), 9);
    assert_int_equal(send_one(LOW, HIGH, &late), QUOIT_GONE);
    assert_false(quoit_sockets_has_any(ends[LOW].sockets));
}

static void test_a_place_without_an_address(void **state)
{
    struct quoit_sockets *sockets;
    const struct quoit_sockets_config config = {.place = {.device = "nosuch0"}, .count = COUNT};
    (void)state;
    assert_int_equal(quoit_sockets_open(&config, &sockets), QUOIT_UNSUPPORTED);
}

#define ON_TWO(test) cmocka_unit_test_setup_teardown(test, open_two, close_all)

int main(void)
{
    const struct CMUnitTest tests[] = {ON_TWO(test_messages_arrive_in_order),
                                       ON_TWO(test_a_flag_follows_its_payload),
                                       ON_TWO(test_all_connections_are_looked_at),
                                       ON_TWO(test_of_two_connection_requests_the_lower_is_taken),
                                       ON_TWO(test_unauthenticated_are_dropped),
                                       ON_TWO(test_a_token_that_comes_late),
                                       ON_TWO(test_a_connection_request_that_leads_nowhere),
                                       ON_TWO(test_what_no_end_would_send),
                                       ON_TWO(test_a_long_message_waits_for_the_other_end),
                                       ON_TWO(test_an_end_that_goes),
                                       cmocka_unit_test(test_a_place_without_an_address)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
