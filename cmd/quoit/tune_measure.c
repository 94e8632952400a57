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
#include <sys/wait.h>
#include <unistd.h>

#include "base/options.h"
#include "env/clock.h"
#include "env/map.h"
#include "env/wait.h"

#define ROUNDS_MIN 5u
#define SPIN_COUNT 2000u
#define CACHES_MAX 10u
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

static bool read_text(int core, const char *what, char text_out[256])
{
    char name[128];
    snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu%d/%s", core, what);
    FILE *file = fopen(name, "re");
    if (!file)
        return false;
    bool is_read = fgets(text_out, 256, file) != NULL;
    fclose(file);
    if (is_read)
        text_out[strcspn(text_out, "\n")] = '\0';
    return is_read;
}

/* A file of the last cache of a processor. */
static bool read_last_cache(int core, const char *what, char text_out[256])
{
    long best = 0;
    uint32_t best_index = 0;
    for (uint32_t i = 0; i < CACHES_MAX; i++) {
        char name[64];
        snprintf(name, sizeof name, "cache/index%u/level", i);
        if (read_text(core, name, text_out) && atol(text_out) > best) {
            best = atol(text_out);
            best_index = i;
        }
    }
    char name[64];
    snprintf(name, sizeof name, "cache/index%u/%s", best_index, what);
    return best > 0 && read_text(core, name, text_out);
}

uint64_t tune_cache_bytes(int core)
{
    char text[256];
    uint64_t bytes = 0;
    return read_last_cache(core, "size", text) && quoit_parse_bytes(text, &bytes) ? bytes : 0;
}

/* 0: share the last cache, or the machine does not tell; 1: only the socket; 2: not even that. */
static int distance(int a, int b)
{
    char text_a[256], text_b[256];
    if (read_text(a, "topology/physical_package_id", text_a) && read_text(b, "topology/physical_package_id", text_b) &&
        strcmp(text_a, text_b) != 0)
        return 2;
    return read_last_cache(a, "shared_cpu_list", text_a) && read_last_cache(b, "shared_cpu_list", text_b) &&
                   strcmp(text_a, text_b) != 0
               ? 1
               : 0;
}

uint32_t tune_find_places(struct tune_place places_out[TUNE_PLACES_MAX])
{
    static const char *const names[TUNE_PLACES_MAX] = {"same cache", "other cache", "other socket"};
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
        int where = distance(own, core);
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
                  : rig->config->kind == QUOIT_BUFFER_HEAP ? quoit_map_take(fd, 0, base, 0, total)
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

static double time_copy(struct rig *rig, enum quoit_copy_way way, enum tune_use use, size_t bytes)
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

/* All ways in turn. The first round only warms up. */
static void measure_size(struct rig *rig, const bool *works, enum tune_use use, size_t bytes, double *ns_out)
{
    uint64_t end_ns = quoit_clock_now_ns() + rig->config->cell_ns;
    for (uint32_t round = 0; round <= ROUNDS_MIN || quoit_clock_now_ns() < end_ns; round++)
        for (enum quoit_copy_way way = 0; way < QUOIT_COPY_WAY_COUNT; way++) {
            double ns = works[way] ? time_copy(rig, way, use, bytes) : 0;
            if (round <= 1 || ns < ns_out[way])
                ns_out[way] = ns;
        }
}

bool tune_measure(const struct tune_config *config, struct tune_result *result_out, void (*step)(void *arg), void *arg)
{
    struct rig rig = {.config = config};
    bool works[QUOIT_COPY_WAY_COUNT];
    pid_t self = getpid();
    stay_on(config->place->own_core);
    if (!make_memory(&rig))
        return false;
    rig.other = fork();
    if (rig.other < 0) {
        munmap(rig.from, 2 * config->buffer_bytes + QUOIT_HUGE_PAGE_BYTES);
        return fail("fork");
    }
    if (rig.other == 0)
        be_other(&rig, self);
    time_copy(&rig, QUOIT_COPY_MEMCPY, TUNE_HOT, config->buffer_bytes); /* the other is there, and has it all mapped */
    struct quoit_copy_place word = {.there = (uintptr_t)&rig.meeting->word, .pid = (uint32_t)rig.other};
    for (enum quoit_copy_way way = 0; way < QUOIT_COPY_WAY_COUNT; way++)
        works[way] =
            quoit_copy_is_built(way) && (way != QUOIT_COPY_CMA || quoit_copy_probe_cma(&word, WORD_VALUE) == 0);
    for (enum tune_use use = 0; use < TUNE_USE_COUNT; use++)
        for (uint32_t i = 0; i < QUOIT_PATHS_SIZE_COUNT; i++) {
            measure_size(&rig, works, use, quoit_paths_size(i), result_out->ns[use][i]);
            step(arg);
        }
    kill(rig.other, SIGKILL);
    waitpid(rig.other, NULL, 0);
    munmap(rig.from, 2 * config->buffer_bytes + QUOIT_HUGE_PAGE_BYTES);
    return true;
}
