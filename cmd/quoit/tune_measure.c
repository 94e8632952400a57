/* SPDX-License-Identifier: BSD-3-Clause */
#include "tune_measure.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/clock.h"
#include "env/map.h"
#include "env/wait.h"

#define ROUNDS_MIN 2u
#define SPIN_COUNT 2000u
#define WORD_VALUE 0x7175ull

/* What the two processes share beside the buffers. */
struct meeting {
    _Atomic uint64_t asked; /* writer: this process. How often the other is to read */
    _Atomic uint64_t done;  /* writer: the other */
    _Atomic uint64_t bytes;
    uint64_t word; /* for probing */
};

struct rig {
    const struct tune_config *config;
    struct meeting *meeting;
    char *from;
    char *to;
    pid_t other;
    uint64_t cursor; /* of the walk */
    uint64_t sum;    /* so that reads are not left out */
};

static bool fail(const char *what)
{
    fprintf(stderr, "quoit tune: %s: %s\n", what, strerror(errno));
    return false;
}

uint32_t tune_find_places(const struct tune_topology *topology, void *state,
                          struct tune_place places_out[TUNE_PLACES_MAX])
{
    static const char *const names[TUNE_PLACES_MAX] = {
        [TUNE_SAME_CACHE] = "same cache",
        [TUNE_OTHER_CACHE] = "other cache",
        [TUNE_OTHER_SOCKET] = "other socket",
    };
    cpu_set_t allowed;
    int own = -1;
    struct tune_place found[TUNE_PLACES_MAX] = {{.name = NULL}};
    CPU_ZERO(&allowed);
    sched_getaffinity(0, sizeof allowed, &allowed);
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, &allowed))
            continue;
        if (own < 0) {
            own = core;
            continue;
        }
        enum tune_distance where = topology->distance(state, own, core);
        if (!found[where].name)
            found[where] = (struct tune_place){.own_core = own, .other_core = core, .name = names[where]};
    }
    uint32_t count = 0;
    for (int i = 0; i < TUNE_PLACES_MAX; i++)
        if (found[i].name)
            places_out[count++] = found[i];
    if (count == 0)
        places_out[count++] = (struct tune_place){.own_core = own, .other_core = own, .name = "one processor"};
    return count;
}

static void stay_on(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof set, &set); /* where it is refused the figures are only less steady */
}

static void wait_for(const _Atomic uint64_t *word, uint64_t value)
{
    for (uint32_t i = 0; atomic_load_explicit(word, memory_order_acquire) != value; i++)
        if (i % SPIN_COUNT == SPIN_COUNT - 1)
            quoit_wait_yield();
        else
            quoit_pause();
}

/* One word of each line, which is what brings it here. */
static uint64_t read_lines(const char *from, uint64_t bytes)
{
    uint64_t sum = 0;
    for (uint64_t at = 0; at < bytes; at += 64)
        sum += *(const volatile uint64_t *)(const void *)(from + at);
    return sum;
}

__attribute__((noreturn)) static void be_other(struct rig *rig, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(1);
    quoit_copy_allow_cma();
    stay_on(rig->config->place->other_core);
    for (uint64_t turn = 1;; turn++) {
        wait_for(&rig->meeting->asked, turn);
        rig->sum += read_lines(rig->to, atomic_load(&rig->meeting->bytes));
        atomic_store_explicit(&rig->meeting->done, turn, memory_order_release);
    }
}

/* Two buffers and the meeting in one file; memory is taken now, so that a machine without it says so here. */
static bool make_memory(struct rig *rig)
{
    uint64_t bytes = rig->config->buffer_bytes;
    uint64_t total = 2 * bytes + QUOIT_HUGE_PAGE_BYTES;
    int fd = memfd_create("quoit-tune", MFD_CLOEXEC);
    if (fd < 0)
        return fail("memory");
    char *base = ftruncate(fd, (off_t)total) ? NULL : quoit_map_file(fd, total, PROT_READ | PROT_WRITE);
    int problem = !base                                    ? errno
                  : rig->config->kind == QUOIT_BUFFER_HEAP ? quoit_map_take(base, 0, total)
                                                           : posix_fallocate(fd, 0, (off_t)total);
    close(fd);
    if (problem) {
        errno = problem;
        return fail("memory (--memory takes less)");
    }
    rig->from = base;
    rig->to = base + bytes;
    rig->meeting = (struct meeting *)(void *)(base + 2 * bytes);
    rig->meeting->word = WORD_VALUE;
    memset(rig->from, 1, 2 * bytes); /* and mapped here, as it is after the first use */
    return true;
}

static double time_copy(struct rig *rig, enum quoit_copy_method way, enum tune_use use, size_t bytes)
{
    struct meeting *meeting = rig->meeting;
    uint64_t at = 0;
    if (use == TUNE_COLD) {
        if (rig->cursor + bytes > rig->config->buffer_bytes)
            rig->cursor = 0;
        at = rig->cursor;
        rig->cursor += bytes;
    }
    struct quoit_copy_place to = {
        .here = rig->to + at, .there = (uintptr_t)(rig->to + at), .pid = (uint32_t)rig->other};
    uint64_t begin_ns = quoit_clock_now_ns();
    quoit_copy_put(way, &to, rig->from + at, bytes);
    if (use == TUNE_HOT) {
        uint64_t turn = atomic_load(&meeting->asked) + 1;
        atomic_store(&meeting->bytes, bytes);
        atomic_store_explicit(&meeting->asked, turn, memory_order_release);
        wait_for(&meeting->done, turn);
    }
    return (double)(quoit_clock_now_ns() - begin_ns);
}

/* All ways in turn, the quickest time of each. The first round only warms up. */
static void measure_size(struct rig *rig, const bool *works, enum tune_use use, size_t bytes, double *ns_out)
{
    uint64_t end_ns = quoit_clock_now_ns() + rig->config->cell_ns;
    for (uint32_t round = 0; round <= ROUNDS_MIN || quoit_clock_now_ns() < end_ns; round++)
        for (enum quoit_copy_method way = 0; way < QUOIT_COPY_METHOD_COUNT; way++) {
            double ns = works[way] ? time_copy(rig, way, use, bytes) : 0;
            if (round <= 1 || ns < ns_out[way])
                ns_out[way] = ns;
        }
}

static bool start_other(struct rig *rig)
{
    pid_t self = getpid();
    rig->other = fork();
    if (rig->other == 0)
        be_other(rig, self);
    if (rig->other < 0)
        return fail("fork");
    time_copy(rig, QUOIT_COPY_MEMCPY, TUNE_HOT, rig->config->buffer_bytes); /* it is there, and has it all mapped */
    return true;
}

static uint64_t used_ns(const struct rusage *usage)
{
    return (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000000u +
           (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) * 1000u;
}

/* Ends the other process. Both processes never sleep, so what they lack of all the time went to somebody else. */
static double stop_other(struct rig *rig, uint64_t begin_ns, const struct rusage *begin)
{
    struct rusage end, other = {.ru_utime.tv_sec = 0};
    uint64_t wall_ns = quoit_clock_now_ns() - begin_ns;
    getrusage(RUSAGE_SELF, &end);
    kill(rig->other, SIGKILL);
    wait4(rig->other, NULL, 0, &other);
    bool is_shared = rig->config->place->own_core == rig->config->place->other_core;
    double had = (double)(used_ns(&end) - used_ns(begin) + used_ns(&other)) / (double)wall_ns / (is_shared ? 1 : 2);
    return had < 1 ? 1 - had : 0;
}

bool tune_measure(const struct tune_config *config, struct tune_result *result_out, void (*step)(void *arg), void *arg)
{
    struct rig rig = {.config = config};
    struct rusage begin;
    bool works[QUOIT_COPY_METHOD_COUNT];
    stay_on(config->place->own_core);
    if (!make_memory(&rig))
        return false;
    getrusage(RUSAGE_SELF, &begin);
    uint64_t begin_ns = quoit_clock_now_ns();
    bool is_started = start_other(&rig);
    struct quoit_copy_place word = {.there = (uintptr_t)&rig.meeting->word, .pid = (uint32_t)rig.other};
    for (enum quoit_copy_method way = 0; way < QUOIT_COPY_METHOD_COUNT && is_started; way++)
        works[way] =
            quoit_copy_is_built(way) && (way != QUOIT_COPY_CMA || quoit_copy_probe_cma(&word, WORD_VALUE) == 0);
    for (uint32_t pass = 0; pass < TUNE_PASS_COUNT && is_started; pass++)
        for (enum tune_use use = 0; use < TUNE_USE_COUNT; use++)
            for (uint32_t i = 0; i < QUOIT_PATHS_SIZE_COUNT; i++) {
                measure_size(&rig, works, use, quoit_paths_size(i), result_out->ns[pass][use][i]);
                step(arg);
            }
    if (is_started)
        result_out->lost = stop_other(&rig, begin_ns, &begin);
    munmap(rig.from, 2 * config->buffer_bytes + QUOIT_HUGE_PAGE_BYTES);
    return is_started;
}
