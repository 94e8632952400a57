/* SPDX-License-Identifier: BSD-3-Clause */
/* net_rig.h - hosts joined by a network, for its tests and its bench. Included by them only.
 *
 * What it is: each host is a process that was forked by rig_run(), with an end of its own and registered memory behind
 * a memfd, as Quoit's segments are. A shared board carries what a launcher would: addresses, keys, and barriers, in
 * which a host goes on making progress.
 */
#ifndef QUOIT_NET_NET_RIG_H
#define QUOIT_NET_NET_RIG_H

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/must.h"
#include "base/prng.h"
#include "env/clock.h"
#include "net/net.h"

#define RIG_HOSTS_MAX    4
#define RIG_MEMORY_BYTES ((uint64_t)24 << 20)
#define RIG_DEADLINE_NS  60000000000u /* of any wait */
#define RIG_TAG          0x51756f6974u
#define RIG_CONNECTED    2u /* the barrier after which all are */

struct rig_board {
    _Atomic uint32_t arrived_count;
    _Atomic uint32_t word[RIG_HOSTS_MAX]; /* for the test */
    pid_t pids[RIG_HOSTS_MAX];            /* written by each before the first barrier */
    struct quoit_net_address addresses[RIG_HOSTS_MAX];
    struct quoit_net_key keys[RIG_HOSTS_MAX];
};

struct rig {
    const char *driver;
    const char *provider;
    const char *device;
    uint64_t lost_limit_ns; /* 0: the default */
    uint64_t late_ns;       /* so long the last host makes no progress when all have connected */
    uint32_t host_count;
    uint32_t host; /* of this process */
    uint32_t pe_endpoint_count;
    bool has_two_tags; /* of jobs: even hosts do not know odd ones */
    bool stays;        /* hosts do not leave at the end: they must have died, or be lost */
    bool rushes;       /* hosts run as soon as they have connected themselves */
    bool has_loopback; /* each host is connected to itself, too */
    struct rig_board *board;
    uint32_t barrier_count;
    struct quoit_net *net;
    const struct quoit_net_region *region;
    struct quoit_net_window *windows[RIG_HOSTS_MAX];
    char *memory;
    /* Counted and set by the callbacks. */
    uint64_t done_count;
    uint64_t gone_count;
    uint64_t message_count;
    uint32_t lost_mask;   /* hosts */
    uint32_t silent_mask; /* hosts that are */
    uint32_t pe_endpoint_lost_count;
    enum quoit_status lost_status;
    uint64_t lost_ns;
    void (*on_message)(struct rig *rig, uint32_t host, const void *payload, uint32_t bytes);
    void (*on_done)(struct rig *rig, uint32_t host, uint64_t cookie, enum quoit_status status);
    void (*enter)(struct rig *rig); /* each host, before it opens its end. NULL: nothing */
    void *arg;                      /* the test's */
};

/* A rig of the driver on the loopback device. False: the driver, or its library, is not here. */
static inline bool rig_find(struct rig *rig_out, const char *driver, uint32_t host_count)
{
    struct quoit_net_choice choice = {0};
    const struct quoit_net_config config = {.driver = driver, .device = "lo"};
    *rig_out =
        (struct rig){.driver = driver, .device = "lo", .lost_limit_ns = RIG_DEADLINE_NS, .host_count = host_count};
    bool is_found = quoit_net_survey(&config, &choice, 1) != 0 && choice.is_usable;
    if (!is_found)
        printf("skipped: %s: %s\n", driver, choice.reason);
    return is_found;
}

/* What belongs at an offset of the memory of `host` in round `round`. */
static inline char rig_byte_at(uint32_t host, uint64_t offset, uint64_t round)
{
    return (char)(((offset + 1) * 2654435761u >> 7) + host * 31 + round * 17);
}

static inline void rig_fill(char *to, uint32_t host, uint64_t offset, uint64_t bytes, uint64_t round)
{
    for (uint64_t i = 0; i < bytes; i++)
        to[i] = rig_byte_at(host, offset + i, round);
}

static inline bool rig_is_filled(const char *from, uint32_t host, uint64_t offset, uint64_t bytes, uint64_t round)
{
    for (uint64_t i = 0; i < bytes; i++)
        if (from[i] != rig_byte_at(host, offset + i, round))
            return false;
    return true;
}

static inline void rig_done(void *arg, uint32_t host, uint64_t cookie, enum quoit_status status)
{
    struct rig *rig = arg;
    rig->done_count++;
    rig->gone_count += status != QUOIT_OK;
    if (rig->on_done)
        rig->on_done(rig, host, cookie, status);
}

static inline void rig_message(void *arg, uint32_t host, const void *payload, uint32_t bytes)
{
    struct rig *rig = arg;
    rig->message_count++;
    if (rig->on_message)
        rig->on_message(rig, host, payload, bytes);
}

static inline void rig_lost(void *arg, uint32_t host, enum quoit_status status)
{
    struct rig *rig = arg;
    if (host >= rig->host_count) {
        rig->pe_endpoint_lost_count++;
        return;
    }
    must((rig->lost_mask >> host & 1) == 0);
    rig->lost_mask |= 1u << host;
    rig->lost_status = status;
    rig->lost_ns = quoit_clock_now_ns();
}

static inline void rig_silence(void *arg, uint32_t host, enum quoit_net_silence silence, uint64_t silent_ns,
                               uint64_t dark_ns)
{
    struct rig *rig = arg;
    (void)silent_ns, (void)dark_ns;
    rig->silent_mask &= ~(1u << host);
    rig->silent_mask |= (silence != QUOIT_NET_PRESENT ? 1u : 0u) << host;
}

/* All hosts meet. */
static inline void rig_barrier(struct rig *rig)
{
    uint32_t target = ++rig->barrier_count * rig->host_count;
    uint64_t deadline_ns = quoit_clock_now_ns() + RIG_DEADLINE_NS;
    atomic_fetch_add(&rig->board->arrived_count, 1);
    if (rig->late_ns && rig->host == rig->host_count - 1 && rig->barrier_count == RIG_CONNECTED)
        quoit_clock_sleep_ns(rig->late_ns);
    while (atomic_load(&rig->board->arrived_count) < target) {
        if (rig->net && quoit_net_progress(rig->net) != 0)
            continue;
        sched_yield();
        must(quoit_clock_now_ns() < deadline_ns);
    }
}

/* Progresses until the condition holds. */
#define rig_until(rig, condition)                                                                                      \
    do {                                                                                                               \
        uint64_t rig_deadline_ns = quoit_clock_now_ns() + RIG_DEADLINE_NS;                                             \
        while (!(condition)) {                                                                                         \
            if (quoit_net_progress((rig)->net) == 0)                                                                   \
                sched_yield();                                                                                         \
            must(quoit_clock_now_ns() < rig_deadline_ns);                                                              \
        }                                                                                                              \
    } while (0)

/* Begins an operation, again after FULL; evaluates to its status. */
#define rig_retry(rig, operation)                                                                                      \
    ({                                                                                                                 \
        enum quoit_status rig_status;                                                                                  \
        while ((rig_status = (operation)) == QUOIT_FULL)                                                               \
            if (quoit_net_progress((rig)->net) == 0)                                                                   \
                sched_yield();                                                                                         \
        rig_status;                                                                                                    \
    })

static inline void rig_put(struct rig *rig, uint32_t host, uint64_t offset, const void *source, uint64_t bytes,
                           uint64_t cookie)
{
    must(rig_retry(rig, quoit_net_put(rig->net, rig->windows[host], offset, source, rig->region, bytes, cookie)) ==
         QUOIT_OK);
}

static inline void rig_get(struct rig *rig, uint32_t host, uint64_t offset, void *destination, uint64_t bytes,
                           uint64_t cookie)
{
    must(rig_retry(rig, quoit_net_get(rig->net, rig->windows[host], offset, destination, rig->region, bytes, cookie)) ==
         QUOIT_OK);
}

static inline void rig_send(struct rig *rig, uint32_t host, const void *payload, uint32_t bytes)
{
    must(rig_retry(rig, quoit_net_send(rig->net, host, payload, bytes)) == QUOIT_OK);
}

static inline void rig_flush(struct rig *rig)
{
    must(quoit_net_flush(rig->net, QUOIT_NET_ALL_HOSTS, RIG_DEADLINE_NS) == QUOIT_OK);
}

static inline void rig_open(struct rig *rig)
{
    char problem[QUOIT_NET_PROBLEM_BYTES];
    int fd = memfd_create("net-rig", MFD_CLOEXEC);
    must(fd >= 0 && ftruncate(fd, (off_t)RIG_MEMORY_BYTES) == 0);
    rig->memory = mmap(NULL, RIG_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(rig->memory != MAP_FAILED);
    close(fd);
    const struct quoit_net_config config = {.driver = rig->driver,
                                            .provider = rig->provider,
                                            .device = rig->device,
                                            .host = rig->host,
                                            .host_count = rig->host_count,
                                            .pe_endpoint_count = rig->pe_endpoint_count,
                                            .tag = RIG_TAG + (rig->has_two_tags ? rig->host % 2 : 0),
                                            .lost_limit_ns = rig->lost_limit_ns,
                                            .memory = rig->memory,
                                            .memory_bytes = RIG_MEMORY_BYTES,
                                            .on_done = rig_done,
                                            .on_message = rig_message,
                                            .on_lost = rig_lost,
                                            .on_silence = rig_silence,
                                            .arg = rig};
    enum quoit_status status = quoit_net_open(&config, &rig->net, problem);
    if (status != QUOIT_OK)
        fprintf(stderr, "quoit_net_open: %s: %s\n", quoit_status_text(status), problem);
    must(status == QUOIT_OK);
    rig->region = quoit_net_region(rig->net);
    rig->board->addresses[rig->host] = *quoit_net_address(rig->net);
    rig->board->keys[rig->host] = *quoit_net_region_key(rig->region);
}

static inline void rig_connect(struct rig *rig)
{
    for (uint32_t host = 0; host < rig->host_count; host++) {
        if (host == rig->host && !rig->has_loopback)
            continue;
        must(quoit_net_connect(rig->net, host, &rig->board->addresses[host]) == QUOIT_OK);
        must(quoit_net_attach(rig->net, host, &rig->board->keys[host], &rig->windows[host]) == QUOIT_OK);
    }
}

static inline void rig_host_main(struct rig *rig, uint32_t host, void (*run)(struct rig *rig))
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(100);
    rig->host = host;
    rig->board->pids[host] = getpid();
    if (rig->enter)
        rig->enter(rig);
    rig_open(rig);
    rig_barrier(rig);
    rig_connect(rig);
    if (!rig->rushes)
        rig_barrier(rig);
    run(rig);
    if (!rig->stays) {
        rig_barrier(rig);
        must(quoit_net_leave(rig->net, RIG_DEADLINE_NS) == QUOIT_OK);
        must(rig->lost_mask == 0);
    }
    quoit_net_close(rig->net);
    munmap(rig->memory, RIG_MEMORY_BYTES);
    fflush(stdout);
    _exit(0);
}

/* Runs all hosts to their end. Returns a mask of those that did not end with status 0. */
static inline uint32_t rig_run(struct rig *rig, void (*run)(struct rig *rig))
{
    uint32_t failed_mask = 0;
    pid_t pids[RIG_HOSTS_MAX];
    rig->board = mmap(NULL, sizeof *rig->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(rig->board != MAP_FAILED);
    fflush(NULL);
    for (uint32_t host = 0; host < rig->host_count; host++) {
        pids[host] = fork();
        must(pids[host] >= 0);
        if (pids[host] == 0)
            rig_host_main(rig, host, run);
    }
    for (uint32_t host = 0; host < rig->host_count; host++) {
        int status = 0;
        while (waitpid(pids[host], &status, WUNTRACED) < 0 && errno == EINTR)
            ;
        if (WIFSTOPPED(status)) { /* those before it have ended */
            kill(pids[host], SIGKILL);
            waitpid(pids[host], &status, 0);
        }
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
            failed_mask |= 1u << host;
    }
    munmap(rig->board, sizeof *rig->board);
    return failed_mask;
}

#endif
