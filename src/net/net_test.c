/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: every network driver keeps the contract of net.h. Method: for each driver that is found, hosts are processes of
 * this machine over its loopback device (net_rig.h); every byte is checked, hosts are killed and frozen, and
 * unauthenticated peers write to their ports. A driver whose library is missing is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/net_rig.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>

static const char *driver_now; /* of the tests that run */

/* The driver of tests/drivers has no library that could be missing, and no port. It is slow. */
static bool is_shuffle(void)
{
    return strcmp(driver_now, "shuffle") == 0;
}

static void skip_without_library(void)
{
    if (is_shuffle())
        skip();
}

/* Skips the test when the driver, or its library, is not here. */
static struct rig make_rig(uint32_t host_count)
{
    struct rig rig;
    if (!rig_find(&rig, driver_now, host_count))
        skip();
    return rig;
}

static uint32_t next_host(const struct rig *rig)
{
    return (rig->host + 1) % rig->host_count;
}

/* Puts of all sizes, and gets of what they left. The first 8 MiB of a host are the target, then come source and
 * destination; the bytes round the target stay as they were. */
static void run_sizes(struct rig *rig)
{
    static const uint64_t sizes[] = {0, 1, 7, 8, 63, 64, 65, 4096, 8191, 16384, 65537, 1 << 20, 7 << 20};
    uint32_t peer = next_host(rig);
    char *source = rig->memory + (8 << 20), *destination = rig->memory + (16 << 20);
    for (uint64_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        uint64_t bytes = sizes[i], offset = 64 + i;
        rig_fill(source, rig->host, offset, bytes, i);
        memset(rig->memory, 0x5a, 128 + bytes);
        memset(destination, 0x77, bytes + 1);
        rig_barrier(rig);
        rig_put(rig, peer, offset, source, bytes, i);
        rig_flush(rig);
        rig_get(rig, peer, offset, destination, bytes, i);
        rig_flush(rig);
        must(rig_is_filled(destination, rig->host, offset, bytes, i));
        must(destination[bytes] == 0x77);
        rig_barrier(rig);
        uint32_t writer = (rig->host + rig->host_count - 1) % rig->host_count;
        must(rig->memory[offset - 1] == 0x5a && rig->memory[offset + bytes] == 0x5a);
        must(rig_is_filled(rig->memory + offset, writer, offset, bytes, i));
    }
    must(quoit_net_put(rig->net, rig->windows[peer], RIG_MEMORY_BYTES - 7, source, rig->region, 8, 0) ==
         QUOIT_OUT_OF_RANGE);
    must(quoit_net_get(rig->net, rig->windows[peer], UINT64_MAX - 3, source, rig->region, 8, 0) == QUOIT_OUT_OF_RANGE);
    must(quoit_net_put(rig->net, rig->windows[peer], 0, rig->memory + RIG_MEMORY_BYTES - 7, rig->region, 8, 0) ==
         QUOIT_OUT_OF_RANGE);
    must(quoit_net_send(rig->net, peer, source, quoit_net_limits(rig->net)->message_bytes + 1) == QUOIT_OUT_OF_RANGE);
}

static void test_sizes(void **state)
{
    (void)state;
    struct rig rig = make_rig(3);
    assert_int_equal(rig_run(&rig, run_sizes), 0);
}

/* Random puts and gets, many under way, against a model of the peer's memory. A host writes one third of each peer's
 * first MiB: the part of its number. */
#define BATCH_SPACE ((uint64_t)1 << 18)
#define BATCH_COUNT 64

struct batches {
    struct quoit_prng chance;
    char *model; /* [host_count][BATCH_SPACE] */
    uint64_t issued_count;
};

static void run_batch(struct rig *rig, struct batches *batches, uint32_t round)
{
    char *source = rig->memory + (8 << 20), *destination = rig->memory + (16 << 20);
    uint64_t at = 0, own = rig->host * BATCH_SPACE;
    struct {
        uint32_t host;
        uint64_t offset, bytes, at;
    } gets[BATCH_COUNT];
    uint32_t get_count = 0;
    for (uint32_t i = 0; i < BATCH_COUNT; i++) { /* puts of one batch do not overlap: they have no order */
        uint64_t slot = BATCH_SPACE / BATCH_COUNT, bytes = 1 + quoit_prng_choose(&batches->chance, slot - 1);
        uint64_t offset = i * slot + quoit_prng_choose(&batches->chance, slot - bytes + 1);
        uint32_t peer =
            (rig->host + 1 + (uint32_t)quoit_prng_choose(&batches->chance, rig->host_count - 1)) % rig->host_count;
        char *model = batches->model + peer * BATCH_SPACE;
        rig_fill(source + at, rig->host, offset, bytes, round);
        memcpy(model + offset, source + at, bytes);
        rig_put(rig, peer, own + offset, source + at, bytes, batches->issued_count++);
        at += bytes;
    }
    rig_flush(rig);
    at = 0;
    for (uint32_t i = 0; i < BATCH_COUNT; i++) {
        uint64_t bytes = 1 + quoit_prng_choose(&batches->chance, 20000);
        uint64_t offset = quoit_prng_choose(&batches->chance, BATCH_SPACE - bytes);
        uint32_t peer =
            (rig->host + 1 + (uint32_t)quoit_prng_choose(&batches->chance, rig->host_count - 1)) % rig->host_count;
        gets[get_count].host = peer, gets[get_count].offset = offset, gets[get_count].bytes = bytes;
        gets[get_count++].at = at;
        rig_get(rig, peer, own + offset, destination + at, bytes, batches->issued_count++);
        at += bytes;
    }
    rig_flush(rig);
    for (uint32_t i = 0; i < get_count; i++)
        must(memcmp(destination + gets[i].at, batches->model + gets[i].host * BATCH_SPACE + gets[i].offset,
                    gets[i].bytes) == 0);
}

static void run_batches(struct rig *rig)
{
    struct batches batches = {.chance.state = *(const uint64_t *)rig->arg + rig->host};
    batches.model = calloc(rig->host_count, BATCH_SPACE);
    must(batches.model);
    for (uint32_t round = 0; round < 20; round++)
        run_batch(rig, &batches, round);
    must(rig->done_count == batches.issued_count);
    free(batches.model);
}

static uint64_t choose_seed(void)
{
    const char *text = getenv("QUOIT_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : quoit_clock_now_ns();
    print_message("seed %llu: QUOIT_TEST_SEED=%llu replays it\n", (unsigned long long)seed, (unsigned long long)seed);
    return seed;
}

static void test_batches(void **state)
{
    (void)state;
    struct rig rig = make_rig(3);
    uint64_t seed = choose_seed();
    rig.arg = &seed;
    assert_int_equal(rig_run(&rig, run_batches), 0);
}

/* Messages of all lengths from every host to every other, all at once: each arrives once, in order, whole. */
#define MESSAGE_COUNT 3000

static uint32_t bytes_of_message(const struct rig *rig, uint64_t number)
{
    uint32_t most = quoit_net_limits(rig->net)->message_bytes;
    return number % 7 == 0 ? (uint32_t)((number * 7919) % (most + 1)) : (uint32_t)(number % 65);
}

static void check_message(struct rig *rig, uint32_t host, const void *payload, uint32_t bytes)
{
    uint64_t *heard_counts = rig->arg, number = heard_counts[host]++;
    must((uintptr_t)payload % 8 == 0);
    must(bytes == bytes_of_message(rig, number));
    must(rig_is_filled(payload, host, 0, bytes, number));
}

static void run_messages(struct rig *rig)
{
    uint64_t heard_counts[RIG_HOSTS_MAX] = {0};
    char payload[65536];
    rig->arg = heard_counts;
    rig->on_message = check_message;
    rig_barrier(rig);
    must(quoit_net_limits(rig->net)->message_bytes <= sizeof payload);
    for (uint64_t number = 0; number < MESSAGE_COUNT; number++)
        for (uint32_t host = 0; host < rig->host_count; host++) {
            if (host == rig->host && !rig->has_loopback)
                continue;
            uint32_t bytes = bytes_of_message(rig, number);
            rig_fill(payload, rig->host, 0, bytes, number);
            rig_send(rig, host, payload, bytes);
            memset(payload, 0, bytes); /* the call has copied it */
        }
    uint64_t sender_count = rig->host_count - !rig->has_loopback;
    rig_until(rig, rig->message_count == MESSAGE_COUNT * sender_count);
    rig_barrier(rig);
    must(rig->message_count == MESSAGE_COUNT * sender_count);
}

static void test_messages(void **state)
{
    (void)state;
    struct rig rig = make_rig(3);
    assert_int_equal(rig_run(&rig, run_messages), 0);
}

/* A host alone, and one of two, sends, puts and gets to itself as to others. */
static void test_loopback(void **state)
{
    (void)state;
    struct rig alone = make_rig(1), pair = make_rig(2);
    alone.has_loopback = pair.has_loopback = true;
    assert_int_equal(rig_run(&alone, run_sizes), 0);
    assert_int_equal(rig_run(&alone, run_messages), 0);
    assert_int_equal(rig_run(&pair, run_messages), 0);
}

/* What was done before a message was sent is in memory when it arrives. */
static void check_data(struct rig *rig, uint32_t host, const void *payload, uint32_t bytes)
{
    const uint64_t *words = payload;
    must(bytes == 2 * sizeof *words);
    must(rig_is_filled(rig->memory, host, 0, words[1], words[0]));
}

static void run_put_then_message(struct rig *rig)
{
    char *source = rig->memory + (8 << 20);
    rig->on_message = check_data;
    rig_barrier(rig);
    for (uint64_t round = 1; round <= 300; round++) {
        uint64_t bytes = round % 50 == 0 ? 1 << 20 : round % 5 == 0 ? 20000 : 8;
        if (rig->host == 1) {
            rig_until(rig, rig->message_count == round);
            rig_send(rig, 0, (uint64_t[]){round, 0}, 16);
            continue;
        }
        rig_fill(source, 0, 0, bytes, round);
        rig_put(rig, 1, 0, source, bytes, round);
        rig_flush(rig);
        rig_send(rig, 1, (uint64_t[]){round, bytes}, 16);
        rig_until(rig, rig->message_count == round);
    }
}

static void test_put_then_message(void **state)
{
    (void)state;
    struct rig rig = make_rig(2);
    assert_int_equal(rig_run(&rig, run_put_then_message), 0);
}

/* More puts under way than the driver has entries: FULL, never lost; each cookie comes back once. */
#define MANY_COUNT 20000

static void count_cookie(struct rig *rig, uint32_t host, uint64_t cookie, enum quoit_status status)
{
    uint8_t *seen = rig->arg;
    (void)host;
    must(status == QUOIT_OK);
    must(cookie < MANY_COUNT);
    must(seen[cookie]++ == 0);
}

static void run_many(struct rig *rig)
{
    uint64_t *source = (uint64_t *)(rig->memory + (8 << 20)), full_count = 0;
    uint32_t peer = next_host(rig);
    rig->arg = calloc(MANY_COUNT, 1);
    rig->on_done = count_cookie;
    for (uint64_t i = 0; i < MANY_COUNT; i++) {
        source[i] = i * 3 + rig->host;
        while (quoit_net_put(rig->net, rig->windows[peer], i * 8, &source[i], rig->region, 8, i) == QUOIT_FULL) {
            quoit_net_progress(rig->net);
            full_count++;
        }
    }
    must(quoit_net_outstanding(rig->net, peer) <= QUOIT_NET_TRANSFERS_MAX);
    rig_flush(rig);
    must(full_count > 0);
    must(rig->done_count == MANY_COUNT);
    rig_barrier(rig);
    for (uint64_t i = 0; i < MANY_COUNT; i++)
        must(((uint64_t *)rig->memory)[i] == i * 3 + peer);
    free(rig->arg);
}

static void test_many(void **state)
{
    (void)state;
    struct rig rig = make_rig(2);
    assert_int_equal(rig_run(&rig, run_many), 0);
}

/* A host is killed, or frozen, while others put to it: they find it lost within the limit, nothing hangs, later calls
 * say GONE, and the others go on with each other. */
#define LOST_LIMIT_NS UINT64_C(2000000000) /* no host that lives is held up for so long, */
#define LOST_SLACK_NS 30000000000u         /* and this end of a busy machine no longer than that */

/* Two hosts that have lost the third. */
static void go_on_with(struct rig *rig, uint32_t other)
{
    char *source = rig->memory + (8 << 20);
    rig_fill(source, rig->host, 0, 100000, 9);
    rig_put(rig, other, 0, source, 100000, 0);
    must(quoit_net_flush(rig->net, other, RIG_DEADLINE_NS) == QUOIT_OK);
    rig_send(rig, other, "done", 4);
    rig_until(rig, rig->message_count == 1);
    must(rig_is_filled(rig->memory, other, 0, 100000, 9));
    must(quoit_net_leave(rig->net, RIG_DEADLINE_NS) == QUOIT_OK);
}

static void run_lost(struct rig *rig)
{
    int signal_number = *(const int *)rig->arg;
    char *source = rig->memory + (8 << 20);
    uint32_t victim = 2, other = 1 - rig->host;
    rig_barrier(rig);
    if (rig->host == victim) {
        rig_until(rig, false); /* until the signal */
    }
    for (uint32_t i = 0; i < 8; i++) { /* host 1 may find the victim dead already */
        enum quoit_status status =
            rig_retry(rig, quoit_net_put(rig->net, rig->windows[victim], i * 65536, source, rig->region, 65536, i));
        must(status == QUOIT_OK || (rig->host == 1 && status == QUOIT_GONE));
    }
    if (rig->host == 0)
        kill(rig->board->pids[victim], signal_number);
    uint64_t begin_ns = quoit_clock_now_ns();
    while (!quoit_net_is_lost(rig->net, victim)) {
        enum quoit_status status = quoit_net_put(rig->net, rig->windows[victim], 0, source, rig->region, 4096, 1000);
        must(status == QUOIT_OK || status == QUOIT_FULL || status == QUOIT_GONE);
        quoit_net_progress(rig->net);
        must(quoit_clock_now_ns() - begin_ns < LOST_LIMIT_NS + LOST_SLACK_NS);
    }
    must(rig->lost_mask == 1u << victim);
    must(rig->lost_status == (signal_number == SIGSTOP ? QUOIT_TIMEOUT : QUOIT_GONE) ||
         rig->lost_status == QUOIT_TIMEOUT);
    must(quoit_net_outstanding(rig->net, victim) == 0);
    must(quoit_net_flush(rig->net, victim, 1) == (rig->gone_count > 0 ? QUOIT_GONE : QUOIT_OK));
    must(quoit_net_put(rig->net, rig->windows[victim], 0, source, rig->region, 8, 0) == QUOIT_GONE);
    must(quoit_net_get(rig->net, rig->windows[victim], 0, source, rig->region, 8, 0) == QUOIT_GONE);
    must(quoit_net_send(rig->net, victim, source, 8) == QUOIT_GONE);
    go_on_with(rig, other);
}

static void lose_by(int signal_number)
{
    skip_without_library();
    struct rig rig = make_rig(3);
    rig.lost_limit_ns = LOST_LIMIT_NS;
    rig.stays = true;
    rig.arg = &signal_number;
    assert_int_equal(rig_run(&rig, run_lost), 1u << 2);
}

static void test_killed(void **state)
{
    (void)state;
    lose_by(SIGKILL);
}

/* A host is killed while connections are made, and while it puts to the others, which still have to confirm them. */
static void run_killed_early(struct rig *rig)
{
    const uint32_t victim = 2;
    char *source = rig->memory + (8 << 20);
    struct quoit_prng chance = {.state = *(const uint64_t *)rig->arg + rig->host};
    uint64_t kill_ns = 0, deadline_ns = quoit_clock_now_ns() + rig->lost_limit_ns + LOST_SLACK_NS;
    atomic_store(&rig->board->word[rig->host], 1);
    while (!quoit_net_is_lost(rig->net, victim)) {
        for (uint32_t host = 0; host < rig->host_count; host++) {
            uint64_t bytes = 1 + quoit_prng_choose(&chance, 70000);
            if (host == rig->host || (rig->host != victim && host != victim))
                continue;
            enum quoit_status status =
                quoit_net_put(rig->net, rig->windows[host], 1 << 20, source, rig->region, bytes, 0);
            must(status == QUOIT_OK || status == QUOIT_FULL || status == QUOIT_GONE);
        }
        quoit_net_progress(rig->net);
        must(rig->host == victim || quoit_clock_now_ns() < deadline_ns);
        if (rig->host != 0 || atomic_load(&rig->board->word[1]) == 0 || atomic_load(&rig->board->word[victim]) == 0)
            continue;
        if (kill_ns == 0)
            kill_ns = quoit_clock_now_ns() + quoit_prng_choose(&chance, 10000000);
        if (quoit_clock_now_ns() >= kill_ns)
            kill(rig->board->pids[victim], SIGKILL);
    }
    go_on_with(rig, 1 - rig->host);
}

static void test_killed_early(void **state)
{
    (void)state;
    skip_without_library();
    struct quoit_prng seeds = {.state = choose_seed()};
    for (uint32_t round = 0; round < 5; round++) {
        uint64_t seed = quoit_prng_next(&seeds);
        struct rig rig = make_rig(3);
        rig.lost_limit_ns = 5 * LOST_LIMIT_NS; /* the broken connection tells sooner; three hosts share processors */
        rig.stays = true;
        rig.rushes = true;
        rig.arg = &seed;
        assert_int_equal(rig_run(&rig, run_killed_early), 1u << 2);
    }
}

/* The network may not show that its machine is there. */
static void test_frozen(void **state)
{
    (void)state;
    if (strcmp(driver_now, "tcp") == 0)
        return; /* it does; see test_stopped */
    lose_by(SIGSTOP);
}

/* A host is stopped while the others have puts under way to it, until they find it silent, or, where the network shows
 * that its machine is there, for several of the limit. Continued, it does what it was to do. */
#define STOPPED_LIMIT_NS UINT64_C(400000000)

static void run_stopped(struct rig *rig)
{
    const uint32_t victim = 2;
    _Atomic uint32_t *is_over = &rig->board->word[0], *is_continued = &rig->board->word[1];
    char *source = rig->memory + (8 << 20);
    rig_fill(source, rig->host, 0, 65536, 1);
    if (rig->host != victim) { /* some libraries connect with the first operation, for which both ends are needed */
        rig_put(rig, victim, (1 + rig->host) << 20, rig->memory, 8, 0);
        rig_flush(rig);
    }
    rig_barrier(rig);
    if (rig->host == victim) {
        rig_until(rig, atomic_load(is_continued) != 0);
    } else {
        if (rig->host == 0)
            kill(rig->board->pids[victim], SIGSTOP);
        uint64_t end_ns = quoit_clock_now_ns() + 4 * STOPPED_LIMIT_NS;
        rig_put(rig, victim, (1 + rig->host) << 20, source, 65536, 0);
        rig_until(rig, rig->silent_mask >> victim & 1 && quoit_clock_now_ns() > end_ns);
        atomic_fetch_add(is_over, 1);
        rig_until(rig, atomic_load(is_over) == 2);
        if (rig->host == 0) {
            kill(rig->board->pids[victim], SIGCONT);
            atomic_store(is_continued, 1);
        }
        rig_flush(rig);
        rig_until(rig, (rig->silent_mask >> victim & 1) == 0);
    }
    rig_barrier(rig);
    must(rig->lost_mask == 0);
    for (uint32_t host = 0; host < 2 && rig->host == victim; host++)
        must(rig_is_filled(rig->memory + ((1 + host) << 20), host, 0, 65536, 1));
}

static void test_stopped(void **state)
{
    (void)state;
    skip_without_library();
    struct rig rig = make_rig(3);
    if (strcmp(driver_now, "tcp") == 0)
        rig.lost_limit_ns = STOPPED_LIMIT_NS;
    assert_int_equal(rig_run(&rig, run_stopped), 0);
}

/* Hosts that say nothing for long, but live, are not lost; a sleeping host wakes for a message, and sleeps, or is told
 * that it cannot, also while the other does not answer its connection. */
static void run_sleep(struct rig *rig)
{
    int fd = quoit_net_wait_fd(rig->net);
    uint64_t nap_count = 0, end_ns = quoit_clock_now_ns() + 3 * LOST_LIMIT_NS;
    while (quoit_clock_now_ns() < end_ns && rig->message_count == 0) {
        uint64_t until_ns;
        if (quoit_net_progress(rig->net) != 0 || fd < 0 || !quoit_net_arm(rig->net, &until_ns))
            continue;
        uint64_t now_ns = quoit_clock_now_ns();
        struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
        poll(&poll_fd, 1, until_ns > now_ns ? (int)((until_ns - now_ns) / 1000000 + 1) : 0);
        nap_count++;
        if (rig->host == 0 && now_ns > end_ns - LOST_LIMIT_NS && rig->arg == NULL) {
            rig_send(rig, 1, "wake", 4);
            rig->arg = rig;
        }
    }
    must(rig->lost_mask == 0);
    must(fd < 0 || nap_count > 3);
    must(rig->host != 1 || rig->message_count == 1);
    must(nap_count < 500); /* an end that is never quiet would not sleep */
}

static void test_sleep(void **state)
{
    (void)state;
    struct rig rig = make_rig(2);
    rig.lost_limit_ns = LOST_LIMIT_NS;
    rig.late_ns = LOST_LIMIT_NS / 5;
    assert_int_equal(rig_run(&rig, run_sleep), 0);
}

/* An end of another job at the address of host 1: nothing that it says is believed. */
static void run_unauthenticated(struct rig *rig)
{
    rig_barrier(rig);
    if (rig->host == 1)
        must(quoit_net_send(rig->net, 0, "I am host 1", 11) != QUOIT_OUT_OF_RANGE);
    rig_until(rig, rig->lost_mask != 0);
    must(rig->message_count == 0);
    rig_barrier(rig);
}

static void test_unauthenticated(void **state)
{
    (void)state;
    struct rig rig = make_rig(2);
    rig.lost_limit_ns = LOST_LIMIT_NS;
    rig.stays = true;
    rig.has_two_tags = true;
    assert_int_equal(rig_run(&rig, run_unauthenticated), 0);
}

/* The TCP ports on which a process listens. */
static uint32_t list_ports(pid_t pid, uint16_t *ports_out, uint32_t max_count)
{
    char path[64], line[512];
    uint32_t count = 0;
    snprintf(path, sizeof path, "/proc/%d/net/tcp", pid);
    FILE *table = fopen(path, "re");
    while (table && fgets(line, sizeof line, table) && count < max_count) {
        unsigned port, state;
        unsigned long inode;
        if (sscanf(line, "%*d: %*x:%x %*x:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %lu", &port, &state, &inode) != 3 ||
            state != 10)
            continue;
        char wanted[64], link_path[400], link_text[64];
        snprintf(wanted, sizeof wanted, "socket:[%lu]", inode);
        snprintf(path, sizeof path, "/proc/%d/fd", pid);
        DIR *folder = opendir(path);
        for (struct dirent *entry; folder && (entry = readdir(folder)) != NULL;) {
            snprintf(link_path, sizeof link_path, "%s/%s", path, entry->d_name);
            ssize_t bytes = readlink(link_path, link_text, sizeof link_text - 1);
            if (bytes > 0 && (link_text[bytes] = '\0', strcmp(link_text, wanted) == 0))
                ports_out[count++] = (uint16_t)port;
        }
        if (folder)
            closedir(folder);
    }
    if (table)
        fclose(table);
    return count;
}

static void send_garbage(uint16_t port, struct quoit_prng *chance, uint32_t kind)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    unsigned char bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = kind == 0 ? (unsigned char)quoit_prng_next(chance) : kind == 1 ? 0 : 0xff;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct timeval limit = {.tv_usec = 200000};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        (void)!send(fd, bytes, 1 + quoit_prng_choose(chance, sizeof bytes - 1), MSG_NOSIGNAL);
    quoit_clock_sleep_ns(5000000);
    close(fd);
}

/* Garbage sent to the listening ports of a host: it goes on. Host 2 has no part in it but to send garbage. */
static void run_garbage(struct rig *rig)
{
    char *source = rig->memory + (8 << 20);
    rig_barrier(rig);
    if (rig->host == 2) {
        struct quoit_prng chance = {.state = 4711};
        uint16_t ports[8];
        uint32_t count = list_ports(rig->board->pids[0], ports, 8);
        must(count > 0);
        for (uint32_t i = 0; i < 15; i++) {
            send_garbage(ports[i % count], &chance, i % 3);
            quoit_net_progress(rig->net);
        }
        atomic_store(&rig->board->word[0], 1);
        return;
    }
    for (uint64_t round = 0; round < 5 || atomic_load(&rig->board->word[0]) == 0; round++) {
        uint32_t peer = 1 - rig->host;
        rig_fill(source, rig->host, 0, 5000, round);
        rig_put(rig, peer, 0, source, 5000, round);
        rig_flush(rig);
        rig_get(rig, peer, 0, source + 8192, 5000, round);
        rig_flush(rig);
        must(rig_is_filled(source + 8192, rig->host, 0, 5000, round));
    }
}

static void test_garbage(void **state)
{
    (void)state;
    skip_without_library();
    struct rig rig = make_rig(3);
    assert_int_equal(rig_run(&rig, run_garbage), 0);
}

/* Keys that libfabric leaves to its driver, as over TCP, are not known to an unauthenticated peer: two hosts that do
 * the same have different ones. */
static void run_keys(struct rig *rig)
{
    uint64_t keys[2];
    for (uint32_t host = 0; host < 2; host++)
        memcpy(&keys[host], rig->board->keys[host].data, sizeof keys[host]);
    must(keys[0] != keys[1]);
}

static void test_keys(void **state)
{
    (void)state;
    if (strcmp(driver_now, "ofi") != 0)
        skip();
    struct rig rig = make_rig(2);
    assert_int_equal(rig_run(&rig, run_keys), 0);
}

/* What another host sent as its address or key may be anything. */
static void run_bad_names(struct rig *rig)
{
    static struct quoit_net_address address;
    static struct quoit_net_key key;
    struct quoit_net_window *window;
    address.bytes = QUOIT_NET_ADDRESS_BYTES_MAX + 1;
    must(quoit_net_connect(rig->net, 2, &address) == QUOIT_INVALID);
    address.bytes = 0;
    must(quoit_net_connect(rig->net, 2, &address) == QUOIT_INVALID);
    address.bytes = 3;
    must(quoit_net_connect(rig->net, 2, &address) == QUOIT_INVALID);
    key.bytes = QUOIT_NET_KEY_BYTES_MAX + 1;
    must(quoit_net_attach(rig->net, 1, &key, &window) == QUOIT_INVALID);
    key.bytes = 1;
    must(quoit_net_attach(rig->net, 1, &key, &window) == QUOIT_INVALID);
}

static void test_bad_names(void **state)
{
    (void)state;
    char problem[QUOIT_NET_PROBLEM_BYTES];
    struct rig rig = make_rig(1);
    struct quoit_net_config config = {.driver = driver_now, .device = "lo", .host_count = QUOIT_NET_HOSTS_MAX};
    assert_int_equal(quoit_net_open(&config, &rig.net, problem), QUOIT_OK);
    run_bad_names(&rig);
    quoit_net_close(rig.net);
}

/* The library below takes no signal away from the program: psm's handlers write a file at each abort. It is the first
 * test, in a process that has not loaded the library yet. */
static void load_library(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGFPE, SIGINT, SIGTERM};
    const struct quoit_net_config config = {.driver = driver_now};
    struct quoit_net_choice choice;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        signal(numbers[i], SIG_DFL);
    must(quoit_net_survey(&config, &choice, 1) == 1);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct sigaction now;
        must(sigaction(numbers[i], NULL, &now) == 0);
        must(now.sa_handler == SIG_DFL);
    }
    _exit(0);
}

static void test_signals(void **state)
{
    (void)state;
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        load_library();
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    (void)make_rig(1); /* says if nothing was tested */
}

/* A driver that does not exist, a provider that does not exist: a sentence that names it. */
static void test_missing(void **state)
{
    (void)state;
    char problem[QUOIT_NET_PROBLEM_BYTES];
    struct quoit_net *net = NULL;
    struct quoit_net_config config = {.driver = "carrier-pigeon", .host_count = 2};
    assert_int_equal(quoit_net_open(&config, &net, problem), QUOIT_UNSUPPORTED);
    assert_non_null(strstr(problem, "carrier-pigeon"));
    config.driver = "../../ofi";
    assert_int_equal(quoit_net_open(&config, &net, problem), QUOIT_UNSUPPORTED);
    skip_without_library();
    (void)make_rig(2);
    config.driver = driver_now;
    config.provider = "no-such-provider";
    assert_int_equal(quoit_net_open(&config, &net, problem), QUOIT_UNSUPPORTED);
    assert_non_null(strstr(problem, "no-such-provider"));
    config.provider = NULL;
    config.device = "eth99";
    assert_int_equal(quoit_net_open(&config, &net, problem), QUOIT_UNSUPPORTED);
    assert_non_null(strstr(problem, "eth99"));
}

int main(void)
{
    static const char *const drivers[] = {"tcp", "ofi", "ucx", "shuffle"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_signals),
        cmocka_unit_test(test_missing),
        cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_loopback),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_put_then_message),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_killed_early),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_sleep),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_unauthenticated),
        cmocka_unit_test(test_keys),
    };
    int failed_count = 0;
    cmocka_set_test_filter(getenv("QUOIT_TEST_ONLY")); /* NULL: all */
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        driver_now = drivers[i];
        failed_count += cmocka_run_group_tests_name(drivers[i], tests, NULL, NULL);
    }
    return failed_count;
}
