/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what share.h promises of several clients on one ring: own links and memory, cuts for all, an end that
 * disturbs no other client, division of the rate, limits, hostile registers, and processes that are killed. Method: a
 * ring of the emulated driver; ports opened on shares and used as port.h says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/prng.h"
#include "env/clock.h"
#include "port/emulated/registers.h"
#include "share/message.h"
#include "share/share.h"

#define HOST_COUNT   3
#define MEMORY_BYTES ((uint64_t)1 << 20)
#define WINDOW_AT    0x10000
#define WINDOW_BYTES 0x80000
#define PARK_AT      0xf0000
#define LIMIT_NS     60000000000u
#define SPARSE_BYTES ((uint64_t)1 << 36)
#define WAKES        ((uint64_t)0x1000 << 32 | 0x4000) /* a park in each of so many pages */

/* A client's ports at both ends of a link. */
struct pair {
    struct quoit_port *ports[2];
    uint8_t *memory[2];
};

static struct quoit_shared_ring *open_ring(struct quoit_port_knobs knobs)
{
    const struct quoit_share_config config = {.driver = "emulated", .host_count = HOST_COUNT, .knobs = knobs};
    struct quoit_shared_ring *ring;
    assert_int_equal(quoit_shared_ring_open(&config, &ring), QUOIT_OK);
    return ring;
}

static struct quoit_share_request request_of(uint32_t id)
{
    struct quoit_share_request request = {.id = id, .label = "a test"};
    for (uint32_t host = 0; host < HOST_COUNT; host++)
        request.memory_bytes[host] = MEMORY_BYTES;
    return request;
}

static const struct quoit_share *take_part(struct quoit_shared_ring *ring, uint32_t id, struct quoit_port_part part)
{
    struct quoit_share_request request = request_of(id);
    const struct quoit_share *share;
    request.part = part;
    assert_int_equal(quoit_share_take(ring, &request, &share), QUOIT_OK);
    return share;
}

static const struct quoit_share *take(struct quoit_shared_ring *ring, uint32_t id)
{
    return take_part(ring, id, (struct quoit_port_part){0});
}

/* Both ends of link `link`, translated to WINDOW_AT. */
static struct pair open_pair(const struct quoit_share *share, uint32_t link)
{
    struct pair pair;
    for (uint32_t side = 0; side < 2; side++) {
        uint32_t host = (link + side) % HOST_COUNT;
        struct quoit_port_endpoint end;
        pair.memory[side] = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, share->memory_fds[host], 0);
        assert_ptr_not_equal(pair.memory[side], MAP_FAILED);
        assert_int_equal(quoit_share_describe(share, host, side, &end), QUOIT_OK);
        const struct quoit_port_config config = {.driver = quoit_port_driver_find("emulated"),
                                                 .memory = {pair.memory[side], MEMORY_BYTES},
                                                 .endpoint = &end};
        assert_int_equal(quoit_port_open(&config, &pair.ports[side]), QUOIT_OK);
        const struct quoit_port_vector park = {.park_offset = PARK_AT, .park_count = 1};
        assert_int_equal(quoit_port_set_vector(pair.ports[side], QUOIT_VECTOR_LINK, &park), QUOIT_OK);
    }
    for (uint32_t side = 0; side < 2; side++) {
        quoit_port_link_enable(pair.ports[side]);
        assert_int_equal(quoit_port_set_translation(pair.ports[side], QUOIT_WINDOW_MEMORY, WINDOW_AT, WINDOW_BYTES),
                         QUOIT_OK);
    }
    return pair;
}

static void close_pair(struct pair *pair)
{
    for (uint32_t side = 0; side < 2; side++) {
        quoit_port_close(pair->ports[side]);
        munmap(pair->memory[side], MEMORY_BYTES);
    }
}

static void assert_link(const struct pair *pair, bool is_up, uint32_t epoch)
{
    for (uint32_t side = 0; side < 2; side++) {
        assert_int_equal(quoit_port_link_is_up(pair->ports[side]), is_up);
        assert_int_equal(quoit_port_link_epoch(pair->ports[side]), epoch);
    }
}

static void assert_writes(const struct pair *pair, uint64_t value)
{
    uint64_t back = 0;
    assert_int_equal(quoit_port_write64(pair->ports[0], QUOIT_WINDOW_MEMORY, 64, value), QUOIT_OK);
    assert_int_equal(quoit_port_read(pair->ports[0], QUOIT_WINDOW_MEMORY, 64, &back, sizeof back), QUOIT_OK);
    assert_int_equal(back, value);
    assert_int_equal(*(uint64_t *)(void *)(pair->memory[1] + WINDOW_AT + 64), value);
}

/* Two clients use the same addresses, bits and scratchpads; neither sees the other's. */
static void test_shares_are_apart(void **state)
{
    (void)state;
    struct quoit_shared_ring *ring = open_ring((struct quoit_port_knobs){0});
    const struct quoit_share *shares[] = {take(ring, 7), take(ring, 0)};
    assert_int_equal(shares[0]->id, 7);
    assert_int_not_equal(shares[1]->id, 7);
    struct pair first = open_pair(shares[0], 1), second = open_pair(shares[1], 1);
    assert_writes(&first, 0x1111);
    assert_writes(&second, 0x2222);
    assert_int_equal(*(uint64_t *)(void *)(first.memory[1] + WINDOW_AT + 64), 0x1111);
    quoit_port_scratchpad_peer_write(first.ports[0], 3, 33);
    assert_true(quoit_port_ring(first.ports[0], 1 << 4));
    assert_int_equal(quoit_port_scratchpad_read(first.ports[1], 3), 33);
    assert_int_equal(quoit_port_scratchpad_read(second.ports[1], 3), 0);
    assert_int_equal(quoit_port_doorbell_read(first.ports[1]), 1 << 4);
    assert_int_equal(quoit_port_doorbell_read(second.ports[1]), 0);
    quoit_port_link_disable(first.ports[0]);
    assert_link(&first, false, 1);
    assert_link(&second, true, 1);
    close_pair(&first);
    close_pair(&second);
    quoit_shared_ring_close(ring);
}

static uint32_t park_epoch(const struct pair *pair, uint32_t side)
{
    return atomic_load(&((struct quoit_park *)(void *)(pair->memory[side] + PARK_AT))->epoch);
}

/* A cut takes the link down in all shares, later ones too, and wakes both ends; other links stay up. */
static void test_a_cut_is_for_all(void **state)
{
    (void)state;
    struct quoit_shared_ring *ring = open_ring((struct quoit_port_knobs){0});
    const struct quoit_share *shares[] = {take(ring, 1), take(ring, 2)};
    struct pair cut[] = {open_pair(shares[0], 1), open_pair(shares[1], 1)};
    struct pair whole = open_pair(shares[0], 0);
    struct quoit_share_config config;
    uint64_t cut_links;
    for (uint32_t i = 0; i < 2; i++) /* a wake needs a sleeper: these only announce themselves */
        for (uint32_t side = 0; side < 2; side++)
            quoit_park_prepare((struct quoit_park *)(void *)(cut[i].memory[side] + PARK_AT));
    uint32_t before[] = {park_epoch(&cut[0], 0), park_epoch(&cut[0], 1), park_epoch(&cut[1], 0),
                         park_epoch(&cut[1], 1)};
    assert_int_equal(quoit_shared_ring_cut(ring, 1, true), QUOIT_OK);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_not_equal(park_epoch(&cut[i / 2], i % 2), before[i]);
    assert_link(&cut[0], false, 1);
    assert_link(&cut[1], false, 1);
    assert_link(&whole, true, 1);
    struct pair late = open_pair(take(ring, 3), 1);
    assert_link(&late, false, 0);
    quoit_shared_ring_info(ring, &config, &cut_links);
    assert_int_equal(cut_links, 1 << 1);
    assert_int_equal(quoit_shared_ring_cut(ring, 1, false), QUOIT_OK);
    assert_link(&cut[0], true, 2);
    assert_link(&cut[1], true, 2);
    assert_link(&late, true, 1);
    assert_int_equal(quoit_shared_ring_cut(ring, HOST_COUNT, true), QUOIT_OUT_OF_RANGE);
    close_pair(&cut[0]);
    close_pair(&cut[1]);
    close_pair(&late);
    close_pair(&whole);
    quoit_shared_ring_close(ring);
}

/* Writes of an ended client go nowhere; the next client has fresh memory and epochs; other clients are undisturbed. */
static void test_an_end_moves_nobody_else(void **state)
{
    (void)state;
    struct quoit_shared_ring *ring = open_ring((struct quoit_port_knobs){0});
    const struct quoit_share *other = take(ring, 1);
    struct pair stays = open_pair(other, 2);
    for (uint32_t turn = 0; turn < 5; turn++) {
        const struct quoit_share *share = take(ring, 9);
        struct pair pair = open_pair(share, 2);
        assert_link(&pair, true, 1);
        assert_int_equal(*(uint64_t *)(void *)(pair.memory[1] + WINDOW_AT + 64), 0);
        assert_writes(&pair, 100 + turn);
        quoit_share_end(ring, share);
        assert_link(&pair, false, 1);
        assert_int_equal(quoit_port_write64(pair.ports[0], QUOIT_WINDOW_MEMORY, 64, 1), QUOIT_LINK_DOWN);
        quoit_port_link_disable(pair.ports[0]);
        quoit_port_link_enable(pair.ports[0]);
        assert_link(&pair, false, 1); /* for ever */
        assert_link(&stays, true, 1);
        assert_writes(&stays, turn);
        close_pair(&pair);
    }
    close_pair(&stays);
    quoit_shared_ring_close(ring);
}

static uint32_t open_fd_count(void)
{
    uint32_t count = 0;
    for (int fd = 0; fd < 4096; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static void test_limits(void **state)
{
    (void)state;
    uint32_t fd_count = open_fd_count();
    struct quoit_shared_ring *ring = open_ring((struct quoit_port_knobs){0});
    struct quoit_share_request request = request_of(0);
    const struct quoit_share *shares[QUOIT_SHARES_MAX], *share;
    struct quoit_shared_ring *none;
    for (uint32_t i = 0; i < QUOIT_SHARES_MAX; i++)
        shares[i] = take(ring, 0);
    assert_int_equal(quoit_share_take(ring, &request, &share), QUOIT_FULL);
    uint32_t id = shares[4]->id;
    quoit_share_end(ring, shares[5]);
    request.id = id;
    assert_int_equal(quoit_share_take(ring, &request, &share), QUOIT_FULL); /* the id is taken */
    quoit_share_end(ring, shares[4]);
    assert_int_equal(quoit_share_take(ring, &request, &share), QUOIT_OK);
    request = (struct quoit_share_request){0};
    assert_int_equal(quoit_share_take(ring, &request, &share), QUOIT_INVALID);
    request.memory_bytes[0] = QUOIT_SHARE_MEMORY_MAX + 1; /* leaves nothing behind */
    assert_int_equal(quoit_share_take(ring, &request, &share), QUOIT_SYSTEM);
    request.memory_bytes[0] = QUOIT_SHARE_MEMORY_MAX;
    request.memory_bytes[1] = MEMORY_BYTES;
    request.part.weight = 101;
    assert_int_equal(quoit_share_take(ring, &request, &share), QUOIT_INVALID);
    request.part = (struct quoit_port_part){.percent = 100};
    assert_int_equal(quoit_share_take(ring, &request, &share), QUOIT_INVALID);
    request.part = (struct quoit_port_part){0};
    assert_int_equal(quoit_share_take(ring, &request, &share), QUOIT_OK); /* on some hosts: of three links, one */
    assert_true(share->link_fds[0] >= 0);
    assert_int_equal(share->link_fds[1], -1);
    assert_int_equal(share->link_fds[2], -1);
    assert_int_equal(share->memory_fds[2], -1);
    quoit_shared_ring_close(ring);
    assert_int_equal(open_fd_count(), fd_count);
    quoit_log_setup((enum quoit_log_level) - 1, "the messages about the ring");
    assert_int_equal(quoit_shared_ring_open(&(struct quoit_share_config){.driver = "none", .host_count = 3}, &none),
                     QUOIT_UNSUPPORTED);
    assert_int_equal(quoit_shared_ring_open(&(struct quoit_share_config){.driver = "linux", .host_count = 3}, &none),
                     QUOIT_OK); /* its links are cables: nothing to share or to cut */
    request = request_of(0);
    assert_int_equal(quoit_share_take(none, &request, &share), QUOIT_UNSUPPORTED);
    assert_int_equal(quoit_shared_ring_cut(none, 0, true), QUOIT_UNSUPPORTED);
    quoit_shared_ring_close(none);
    assert_int_equal(quoit_shared_ring_open(&(struct quoit_share_config){.driver = "emulated", .host_count = 1}, &none),
                     QUOIT_INVALID);
    assert_int_equal(
        quoit_shared_ring_open(
            &(struct quoit_share_config){.driver = "emulated", .host_count = QUOIT_SHARE_HOSTS_MAX + 1}, &none),
        QUOIT_INVALID);
    quoit_log_setup(QUOIT_LOG_WARN, "");
}

/* One client's vectors have parks all over a large memory: the owner cuts the link, and takes none of it. */
static void test_hostile_vectors(void **state)
{
    (void)state;
    struct quoit_shared_ring *ring = open_ring((struct quoit_port_knobs){0});
    struct quoit_share_request request = {.memory_bytes = {SPARSE_BYTES, SPARSE_BYTES}};
    const struct quoit_share *share;
    struct stat file;
    assert_int_equal(quoit_share_take(ring, &request, &share), QUOIT_OK);
    struct quoit_emulated_link *link =
        mmap(NULL, QUOIT_EMULATED_LINK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, share->link_fds[0], 0);
    assert_ptr_not_equal(link, MAP_FAILED);
    atomic_store(&link->state, QUOIT_EMULATED_BOTH_ENABLED);
    for (uint32_t side = 0; side < 2; side++)
        quoit_emulated_pair_set(&link->side[side].vector[QUOIT_EMULATED_VECTOR_LINK], 0, 0, WAKES);
    quoit_log_setup((enum quoit_log_level) - 1, "what the driver says of such registers");
    assert_int_equal(quoit_shared_ring_cut(ring, 0, true), QUOIT_OK);
    quoit_log_setup(QUOIT_LOG_WARN, "");
    for (uint32_t host = 0; host < 2; host++) {
        assert_int_equal(fstat(share->memory_fds[host], &file), 0);
        assert_int_equal(file.st_blocks, 0);
    }
    munmap(link, QUOIT_EMULATED_LINK_BYTES);
    quoit_shared_ring_close(ring);
}

/* One client writes random values into all its registers and parks. The owner still cuts, mends and ends its links, and
 * the other client's link works. */
static void test_hostile_registers(void **state)
{
    (void)state;
    const char *text = getenv("QUOIT_SEED");
    struct quoit_prng chance = {.state = text ? strtoull(text, NULL, 0) : quoit_clock_now_ns()};
    printf("replay with QUOIT_SEED=%llu\n", (unsigned long long)chance.state);
    struct quoit_shared_ring *ring = open_ring((struct quoit_port_knobs){0});
    struct pair good = open_pair(take(ring, 1), 0);
    quoit_log_setup((enum quoit_log_level) - 1, "what the driver says of such registers");
    for (uint32_t turn = 0; turn < 200; turn++) {
        const struct quoit_share *share = take(ring, 2);
        struct stat file;
        assert_int_equal(fstat(share->link_fds[0], &file), 0);
        assert_int_equal(ftruncate(share->link_fds[0], 0), -1);
        assert_int_equal(ftruncate(share->memory_fds[0], 0), -1);
        uint64_t *words = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, share->link_fds[0], 0);
        assert_ptr_not_equal(words, MAP_FAILED);
        for (int64_t i = 0; i < file.st_size / 8; i++)
            words[i] = quoit_prng_choose(&chance, 3) ? quoit_prng_next(&chance) >> quoit_prng_choose(&chance, 64) : 0;
        words[0] = 3 | (uint64_t)turn << 32; /* up, so that a cut is a change */
        assert_int_equal(quoit_shared_ring_cut(ring, 0, true), QUOIT_OK);
        words[0] &= ~(uint64_t)4;
        assert_int_equal(quoit_shared_ring_cut(ring, 0, false), QUOIT_OK);
        quoit_share_end(ring, share);
        munmap(words, (size_t)file.st_size);
        assert_link(&good, true, turn + 2);
    }
    quoit_log_setup(QUOIT_LOG_WARN, "");
    close_pair(&good);
    quoit_shared_ring_close(ring);
}

#define RATE        (4u << 20) /* bytes a second: slow, so that the wire is the limit, not the processors */
#define FLOOD_NS    400000000u
#define FLOOD_BYTES 16384u

struct flood {
    struct quoit_port *port;
    uint64_t bytes; /* of each write */
    _Atomic uint32_t *is_stopping;
    uint64_t sent;
    pthread_t thread;
};

static void *run_flood(void *arg)
{
    struct flood *flood = arg;
    static const char data[FLOOD_BYTES];
    while (!atomic_load(flood->is_stopping)) {
        assert_int_equal(quoit_port_write(flood->port, QUOIT_WINDOW_MEMORY, 0, data, flood->bytes), QUOIT_OK);
        flood->sent += flood->bytes;
    }
    return NULL;
}

/* One client floods with three threads of large writes, the other with one thread of smaller ones. The second gets its
 * part, less the time that its thread needs to wake; together they stay below the rate. One alone gets all of it. */
enum verdict { SHARED, NOT_SHARED, NOT_SHOWN };
struct division {
    struct quoit_port_part parts[2];
    double expected; /* of the second client */
};
static enum verdict share_rate(struct quoit_port_knobs knobs, uint32_t flood_count, const struct division *division)
{
    struct quoit_shared_ring *ring = open_ring(knobs);
    struct pair pairs[] = {open_pair(take_part(ring, 1, division->parts[0]), 0),
                           open_pair(take_part(ring, 2, division->parts[1]), 0)};
    struct flood floods[4];
    _Atomic uint32_t is_stopping = 0;
    uint64_t begin_ns = quoit_clock_now_ns(), total = 0;
    for (uint32_t i = 0; i < flood_count; i++) {
        floods[i] = (struct flood){.port = pairs[i == 3].ports[0],
                                   .bytes = i == 3 ? FLOOD_BYTES / 2 : FLOOD_BYTES,
                                   .is_stopping = &is_stopping};
        assert_int_equal(pthread_create(&floods[i].thread, NULL, run_flood, &floods[i]), 0);
    }
    quoit_clock_sleep_ns(FLOOD_NS);
    atomic_store(&is_stopping, 1);
    for (uint32_t i = 0; i < flood_count; i++) {
        pthread_join(floods[i].thread, NULL);
        total += floods[i].sent;
    }
    double seconds = (double)(quoit_clock_now_ns() - begin_ns) / 1e9, rate = (double)total / seconds / RATE;
    double part = flood_count == 4 ? (double)floods[3].sent / (double)total : division->expected;
    printf("%.2f of the rate was used, %.2f of that by the last client; expected are %.2f\n", rate, part,
           division->expected);
    assert_true(rate < 1.2);
    close_pair(&pairs[0]);
    close_pair(&pairs[1]);
    quoit_shared_ring_close(ring);
    if (part > 0.7 * division->expected && 1 - part >= 0.7 * (1 - division->expected) && rate > 0.6)
        return SHARED;
    return rate > 0.9 ? NOT_SHARED : NOT_SHOWN;
}

/* On a busy machine threads may get no processor in time, and the wire is idle: such a turn shows nothing. A turn with
 * a full wire must show the division. */
static void assert_rate_is_shared(struct quoit_port_knobs knobs, uint32_t flood_count, struct division division)
{
    enum verdict verdict = NOT_SHOWN;
    bool was_full = false;
    for (uint32_t turn = 0; turn < 8 && verdict != SHARED; turn++) {
        verdict = share_rate(knobs, flood_count, &division);
        was_full |= verdict == NOT_SHARED;
    }
    if (verdict != SHARED && !was_full) {
        printf("not shown: the threads of this test got no processor in time\n");
        skip();
    }
    assert_int_equal(verdict, SHARED);
}

static void test_the_rate_is_shared(void **state)
{
    (void)state;
    const struct quoit_port_knobs posted = {.rate_bytes_per_s = RATE};
    const struct division halves = {.expected = 0.5}, all = {.expected = 1};
    assert_rate_is_shared((struct quoit_port_knobs){.rate_bytes_per_s = RATE, .arrives_on_return = 1}, 4, halves);
    assert_rate_is_shared(posted, 4, halves);
    assert_rate_is_shared(posted, 1, all);
}

/* A flood leaves the other client its part: a job and the Ethernet devices, and jobs of two weights. */
static void test_the_rate_is_shared_in_parts(void **state)
{
    (void)state;
    const struct quoit_port_knobs posted = {.rate_bytes_per_s = RATE};
    const struct division divisions[] = {{{{.percent = 25}, {0}}, 0.75},
                                         {{{0}, {.percent = 25}}, 0.25},
                                         {{{.weight = 50}, {0}}, 0.667},
                                         {{{0}, {.weight = 50}}, 0.333},
                                         {{{.percent = 10}, {.percent = 20}}, 0.667}};
    for (size_t i = 0; i < sizeof divisions / sizeof divisions[0]; i++)
        assert_rate_is_shared(posted, 4, divisions[i]);
    assert_rate_is_shared(posted, 1, (struct division){{{.percent = 10}, {0}}, 1});
}

/* Across processes */

struct server {
    struct quoit_shared_ring *ring;
    char path[64];
    struct quoit_share_server *served;
    int stop_fds[2];
    pthread_t thread;
};

static void *run_server(void *arg)
{
    struct server *server = arg;
    struct pollfd polls[] = {{.fd = quoit_share_server_fd(server->served), .events = POLLIN},
                             {.fd = server->stop_fds[0], .events = POLLIN}};
    while (poll(polls, 2, -1) >= 0 && polls[1].revents == 0)
        quoit_share_server_step(server->served);
    return NULL;
}

/* set_up is called before the server's thread starts; NULL: nothing to do. */
static void start_server_with(struct server *server, uint32_t host_count, void (*set_up)(struct quoit_share_server *))
{
    const struct quoit_share_config config = {.driver = "emulated", .host_count = host_count};
    assert_int_equal(quoit_shared_ring_open(&config, &server->ring), QUOIT_OK);
    snprintf(server->path, sizeof server->path, "@quoit-share-test.%d", (int)getpid());
    assert_int_equal(quoit_share_server_open(server->ring, server->path, false, &server->served), QUOIT_OK);
    if (set_up)
        set_up(server->served);
    assert_int_equal(pipe(server->stop_fds), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, run_server, server), 0);
}

static void start_server(struct server *server, uint32_t host_count)
{
    start_server_with(server, host_count, NULL);
}

static void stop_server(struct server *server)
{
    assert_int_equal(write(server->stop_fds[1], "", 1), 1);
    pthread_join(server->thread, NULL);
    quoit_share_server_close(server->served);
    close(server->stop_fds[0]);
    close(server->stop_fds[1]);
    quoit_shared_ring_close(server->ring);
}

static void await_clients(const struct server *server, uint32_t count)
{
    struct quoit_share_list list;
    uint64_t deadline_ns = quoit_clock_now_ns() + LIMIT_NS;
    do {
        assert_int_equal(quoit_share_query(server->path, &list), QUOIT_OK);
        assert_true(quoit_clock_now_ns() < deadline_ns);
    } while (list.client_count != count);
}

/* A process that attaches, uses its links and waits to be killed. */
static pid_t fork_client(const struct server *server, uint32_t id)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const struct quoit_share_request request = request_of(id);
    struct quoit_share share;
    int connection;
    if (quoit_share_attach(server->path, &request, &share, &connection) != QUOIT_OK)
        _exit(1);
    struct pair pair = open_pair(&share, id % HOST_COUNT);
    for (uint64_t i = 0;; i++)
        (void)!quoit_port_write64(pair.ports[0], QUOIT_WINDOW_MEMORY, 8 * (i % 1000), i);
}

static void test_processes_that_are_killed(void **state)
{
    (void)state;
    struct server server;
    struct quoit_share mine;
    struct quoit_share_list list;
    int connection;
    start_server(&server, HOST_COUNT);
    const struct quoit_share_request request = request_of(1000);
    assert_int_equal(quoit_share_attach(server.path, &request, &mine, &connection), QUOIT_OK);
    struct pair pair = open_pair(&mine, 0);
    for (uint32_t turn = 0; turn < 3; turn++) {
        pid_t pids[8];
        for (uint32_t i = 0; i < 8; i++)
            pids[i] = fork_client(&server, 1 + i);
        await_clients(&server, 9);
        for (uint32_t i = 0; i < 8; i++) {
            assert_int_equal(kill(pids[i], SIGKILL), 0);
            assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
        }
        await_clients(&server, 1);
        assert_link(&pair, true, 1);
        assert_writes(&pair, turn);
    }
    assert_int_equal(quoit_share_query(server.path, &list), QUOIT_OK);
    assert_int_equal(list.clients[0].id, 1000);
    assert_int_equal(list.clients[0].pid, getpid());
    assert_int_equal(list.clients[0].uid, getuid());
    assert_string_equal(list.clients[0].label, "a test");
    assert_int_equal(list.ring.host_count, HOST_COUNT);
    close(connection);
    await_clients(&server, 0);
    assert_link(&pair, false, 1);
    close_pair(&pair);
    quoit_share_close(&mine);
    stop_server(&server);
}

static int connect_to(const char *path)
{
    struct sockaddr_un address;
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    socklen_t bytes = quoit_share_address(path, &address);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, bytes), 0);
    return fd;
}

static pid_t think_for_long(void *arg, uint32_t host)
{
    (void)arg;
    (void)host;
    quoit_clock_sleep_ns(2000000000u);
    return 0;
}

static void let_it_think(struct quoit_share_server *server)
{
    quoit_share_server_set_processes(server, think_for_long, NULL);
}

/* An owner that is held up for two seconds answers all the same. */
static void test_an_owner_that_is_held_up(void **state)
{
    (void)state;
    struct server server;
    struct quoit_share_namespaces namespaces;
    start_server_with(&server, HOST_COUNT, let_it_think);
    assert_int_equal(quoit_share_get_namespaces(server.path, 0, &namespaces), QUOIT_AGAIN);
    stop_server(&server);
}

/* Clients that are silent, send garbage or send a second request delay no other client and get nothing. */
static void test_clients_that_misbehave(void **state)
{
    (void)state;
    struct server server;
    struct quoit_share_list list;
    struct quoit_share share;
    struct quoit_share_message garbage = {.head = quoit_share_head_make(QUOIT_SHARE_MAGIC, sizeof garbage, 77)};
    int silent[60], connection;
    char byte;
    start_server(&server, HOST_COUNT);
    for (uint32_t i = 0; i < 60; i++)
        silent[i] = connect_to(server.path);
    assert_int_equal(quoit_share_query(server.path, &list), QUOIT_OK);
    assert_int_equal(list.client_count, 0);
    int fd = connect_to(server.path);
    assert_int_equal(send(fd, "garbage", 7, 0), 7);
    assert_int_equal(recv(fd, &byte, 1, 0), 0); /* hung up */
    close(fd);
    fd = connect_to(server.path);
    assert_int_equal(send(fd, &garbage, sizeof garbage, 0), sizeof garbage);
    assert_int_equal(recv(fd, &garbage, sizeof garbage, 0), sizeof garbage);
    assert_int_equal(garbage.head.status, QUOIT_INVALID);
    close(fd);
    struct quoit_share_request request = request_of(5);
    memcpy(request.label, "\x1b[31m, and longer than there is room for it", QUOIT_SHARE_LABEL_BYTES);
    assert_int_equal(quoit_share_attach(server.path, &request, &share, &connection), QUOIT_OK);
    assert_int_equal(quoit_share_query(server.path, &list), QUOIT_OK);
    assert_string_equal(list.clients[0].label, "?[31m, and longer than there is");
    struct quoit_share second;
    int other;
    assert_int_equal(quoit_share_attach(server.path, &request, &second, &other), QUOIT_FULL);
    assert_int_equal(send(connection, &garbage, sizeof garbage, 0), sizeof garbage);
    await_clients(&server, 0); /* a message after the share was taken ends it */
    quoit_share_close(&share);
    close(connection);
    assert_int_equal(quoit_share_cut(server.path, 2, true), QUOIT_OK);
    assert_int_equal(quoit_share_query(server.path, &list), QUOIT_OK);
    assert_int_equal(list.cut_links, 1 << 2);
    assert_int_equal(quoit_share_cut(server.path, 2, false), QUOIT_OK);
    assert_int_equal(quoit_share_cut(server.path, HOST_COUNT, true), QUOIT_OUT_OF_RANGE);
    for (uint32_t i = 0; i < 60; i++)
        close(silent[i]);
    stop_server(&server);
    assert_int_equal(quoit_share_query(server.path, &list), QUOIT_GONE);
}

static void set_limit(struct quoit_share_server *server)
{
    quoit_share_server_set_user_limit(server, 1);
}

/* A user has no more shares than the limit, and no percentage of the rate. */
static void test_limits_of_a_user(void **state)
{
    (void)state;
    struct server server;
    struct quoit_share share, second;
    struct quoit_share_request request = request_of(0);
    int connection, other;
    start_server_with(&server, HOST_COUNT, set_limit);
    request.part.percent = 50;
    for (uint32_t turn = 0; turn < 2; turn++) {
        assert_int_equal(quoit_share_attach(server.path, &request, &share, &connection), QUOIT_OK);
        assert_int_equal(share.part.percent, 0);
        assert_int_equal(quoit_share_attach(server.path, &request, &second, &other), QUOIT_OUT_OF_RANGE);
        quoit_share_close(&share);
        close(connection);
        await_clients(&server, 0);
    }
    stop_server(&server);
}

static pid_t process_of(void *arg, uint32_t host)
{
    (void)arg;
    return host == 0 ? getpid() : 0;
}

static void set_processes(struct quoit_share_server *server)
{
    quoit_share_server_set_processes(server, process_of, NULL);
}

/* The user gets the namespaces of a host's process: here those of this process. */
static void test_namespaces_of_hosts(void **state)
{
    (void)state;
    struct server server;
    struct quoit_share_namespaces namespaces;
    struct stat own, there;
    start_server(&server, HOST_COUNT);
    assert_int_equal(quoit_share_get_namespaces(server.path, 0, &namespaces), QUOIT_UNSUPPORTED);
    stop_server(&server);
    start_server_with(&server, HOST_COUNT, set_processes);
    assert_int_equal(quoit_share_get_namespaces(server.path, HOST_COUNT, &namespaces), QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_share_get_namespaces(server.path, 1, &namespaces), QUOIT_AGAIN);
    assert_int_equal(quoit_share_get_namespaces(server.path, 0, &namespaces), QUOIT_OK);
    assert_int_equal(stat("/proc/self/ns/net", &own), 0);
    assert_int_equal(fstat(namespaces.fds[QUOIT_SHARE_NS_NET], &there), 0);
    assert_int_equal(own.st_ino, there.st_ino);
    quoit_share_close_namespaces(&namespaces);
    stop_server(&server);
}

/* Owners that do not reply, and other users */

static int listen_at(const char *path)
{
    struct sockaddr_un address;
    socklen_t bytes = quoit_share_address(path, &address);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

struct mute {
    int listen_fd;
    bool reads; /* the request, before it hangs up */
    uint32_t connection_count;
};

static void *run_mute(void *arg)
{
    struct mute *mute = arg;
    int fd;
    while ((fd = accept(mute->listen_fd, NULL, NULL)) >= 0) {
        char request[32];
        if (mute->reads)
            (void)!recv(fd, request, sizeof request, 0);
        close(fd);
        mute->connection_count++;
    }
    return NULL;
}

/* An owner that hangs up on every request is of a build from before message headers; if nobody listens there is none.
 */
static void test_an_owner_without_headers(void **state)
{
    (void)state;
    char path[64];
    struct quoit_share_list list;
    snprintf(path, sizeof path, "@quoit-share-mute.%d", (int)getpid());
    for (uint32_t turn = 0; turn < 2; turn++) {
        struct mute mute = {.listen_fd = listen_at(path), .reads = turn == 0};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, run_mute, &mute), 0);
        quoit_log_setup((enum quoit_log_level) - 1, "what is said of the build");
        assert_int_equal(quoit_share_query(path, &list), QUOIT_INVALID);
        quoit_log_setup(QUOIT_LOG_WARN, "");
        shutdown(mute.listen_fd, SHUT_RDWR); /* ends accept() */
        pthread_join(thread, NULL);
        close(mute.listen_fd);
        assert_true(mute.connection_count >= 2); /* one hang-up is not enough */
        assert_int_equal(quoit_share_query(path, &list), QUOIT_GONE);
    }
}

#define OTHER_UID 65534

static void become_other(void)
{
    if (setresgid(OTHER_UID, OTHER_UID, OTHER_UID) != 0 || setresuid(OTHER_UID, OTHER_UID, OTHER_UID) != 0)
        _exit(77);
}

/* The status of a query by the other user. */
static enum quoit_status query_as_other(const char *path)
{
    int result;
    pid_t pid = fork();
    if (pid == 0) {
        struct quoit_share_list list;
        become_other();
        _exit((int)quoit_share_query(path, &list));
    }
    assert_int_equal(waitpid(pid, &result, 0), pid);
    assert_true(WIFEXITED(result));
    return (enum quoit_status)WEXITSTATUS(result);
}

/* A user who may not connect is told so, also while silent clients take all places. */
static void test_other_users_are_refused(void **state)
{
    (void)state;
    struct server server;
    int silent[20];
    if (geteuid() != 0)
        skip();
    start_server(&server, HOST_COUNT);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(query_as_other(server.path), QUOIT_UNSUPPORTED);
        silent[i] = connect_to(server.path);
    }
    for (uint32_t i = 0; i < 20; i++)
        close(silent[i]);
    stop_server(&server);
}

/* Serves a ring of the other user until it is killed. */
static pid_t fork_owner(const char *path)
{
    int ready_fds[2];
    char byte;
    assert_int_equal(pipe(ready_fds), 0);
    pid_t pid = fork();
    if (pid == 0) {
        const struct quoit_share_config config = {.driver = "emulated", .host_count = HOST_COUNT};
        struct quoit_shared_ring *ring;
        struct quoit_share_server *server;
        become_other();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (quoit_shared_ring_open(&config, &ring) != QUOIT_OK ||
            quoit_share_server_open(ring, path, false, &server) != QUOIT_OK || write(ready_fds[1], "r", 1) != 1)
            _exit(1);
        struct pollfd polled = {.fd = quoit_share_server_fd(server), .events = POLLIN};
        while (poll(&polled, 1, -1) > 0)
            quoit_share_server_step(server);
        _exit(1);
    }
    assert_int_equal(read(ready_fds[0], &byte, 1), 1);
    close(ready_fds[0]);
    close(ready_fds[1]);
    return pid;
}

/* An abstract name counts only if its owner is the user whom it claims. */
static void test_names_of_other_users(void **state)
{
    (void)state;
    char path[QUOIT_SHARE_PATH_BYTES], name[32];
    struct quoit_share_list list;
    if (geteuid() != 0)
        skip();
    snprintf(name, sizeof name, "test.%d", (int)getpid());
    for (uint32_t turn = 0; turn < 2; turn++) {
        quoit_share_path(turn == 0 ? OTHER_UID : 1, name, path);
        pid_t owner = fork_owner(path);
        assert_int_equal(quoit_share_query(path, &list), turn == 0 ? QUOIT_OK : QUOIT_GONE);
        assert_int_equal(kill(owner, SIGKILL), 0);
        assert_int_equal(waitpid(owner, NULL, 0), owner);
    }
}

static void test_user_and_name(void **state)
{
    (void)state;
    const char *name;
    assert_int_equal(quoit_share_user("lab", &name), geteuid());
    assert_string_equal(name, "lab");
    assert_int_equal(quoit_share_user("1234:lab", &name), 1234);
    assert_string_equal(name, "lab");
    assert_int_equal(quoit_share_user("root:lab", &name), 0);
    assert_int_equal(quoit_share_user("no-such-user:lab", &name), UINT32_MAX);
    assert_int_equal(quoit_share_user(":lab", &name), UINT32_MAX);
}

/* All descriptors of the largest ring fit one message, and are what they should be. */
static void test_the_largest_ring(void **state)
{
    (void)state;
    struct server server;
    struct quoit_share share;
    struct quoit_share_request request = {.label = "a test"};
    struct stat first, other;
    int connection;
    for (uint32_t host = 0; host < QUOIT_SHARE_HOSTS_MAX; host++)
        request.memory_bytes[host] = 4096 * (1 + (uint64_t)host);
    start_server(&server, QUOIT_SHARE_HOSTS_MAX);
    assert_int_equal(quoit_share_attach(server.path, &request, &share, &connection), QUOIT_OK);
    assert_int_equal(fstat(share.link_fds[0], &first), 0);
    for (uint32_t host = 0; host < QUOIT_SHARE_HOSTS_MAX; host++) {
        assert_int_equal(fstat(share.memory_fds[host], &other), 0);
        assert_int_equal(other.st_size, request.memory_bytes[host]);
        assert_int_equal(fstat(share.wire_fds[host], &other), 0);
        assert_int_equal(fstat(share.link_fds[host], &other), 0);
        assert_int_equal(other.st_size, first.st_size);
    }
    quoit_share_close(&share);
    close(connection);
    stop_server(&server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares_are_apart),          cmocka_unit_test(test_a_cut_is_for_all),
        cmocka_unit_test(test_an_end_moves_nobody_else),  cmocka_unit_test(test_limits),
        cmocka_unit_test(test_hostile_vectors),           cmocka_unit_test(test_hostile_registers),
        cmocka_unit_test(test_the_rate_is_shared),        cmocka_unit_test(test_the_rate_is_shared_in_parts),
        cmocka_unit_test(test_processes_that_are_killed), cmocka_unit_test(test_clients_that_misbehave),
        cmocka_unit_test(test_an_owner_that_is_held_up),  cmocka_unit_test(test_the_largest_ring),
        cmocka_unit_test(test_namespaces_of_hosts),       cmocka_unit_test(test_limits_of_a_user),
        cmocka_unit_test(test_an_owner_without_headers),  cmocka_unit_test(test_other_users_are_refused),
        cmocka_unit_test(test_names_of_other_users),      cmocka_unit_test(test_user_and_name),
    };
    quoit_park_setup();
    return cmocka_run_group_tests_name("share.share", tests, NULL, NULL);
}
