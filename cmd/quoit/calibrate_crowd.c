/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes of one processor that yield to each other, as PEs and lanes of an emulated ring do. Every second one looks
 * as a lane of a ring of its own; the others read a line of so many pages of their own as a PE in barriers was seen to
 * use. Caches and translations have lost the more of that, the more processes ran meanwhile: Linux keeps the
 * translations of six processes a processor. */
#include "calibrate.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/clock.h"

#define PAGE_BYTES 4096
#define PAGES      32
#define LINE_BYTES 64
#define PAGES_SPAN (PAGES * 2 * PAGE_BYTES)
#define BATCHES    101
#define ROUNDS     50 /* turns of the first process in a batch */
#define LIMIT_NS   5000000000u

struct crowd {
    struct {
        _Alignas(LINE_BYTES) _Atomic uint64_t count;
    } turns[CALIBRATE_CROWD_MAX];
    _Atomic int ready_count;
    _Atomic bool is_over;
};

/* One of its processes: a lane, or NULL and pages. */
struct member {
    struct crowd *crowd;
    int index;
    struct calibrate_lane *lane;
    char *pages;
};

static void read_pages(void *arg)
{
    const volatile char *pages = arg;
    for (size_t i = 0; i < PAGES; i++)
        (void)pages[i * (PAGE_BYTES + LINE_BYTES)];
}

static bool open_member(struct member *member)
{
    if (member->index % 2 == 1)
        return (member->lane = calibrate_lane_open()) != NULL;
    member->pages = mmap(NULL, PAGES_SPAN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return member->pages != MAP_FAILED;
}

static void work(const struct member *member)
{
    if (member->lane)
        calibrate_lane_look(member->lane);
    else
        read_pages(member->pages);
}

static void take_turn(const struct member *member)
{
    work(member);
    atomic_fetch_add_explicit(&member->crowd->turns[member->index].count, 1, memory_order_relaxed);
    sched_yield();
}

/* Of a child: nothing of the parent's is closed or freed. */
static void take_turns(struct member *member)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (!open_member(member))
        _exit(1);
    atomic_fetch_add(&member->crowd->ready_count, 1);
    while (!atomic_load_explicit(&member->crowd->is_over, memory_order_relaxed))
        take_turn(member);
    _exit(0);
}

static bool await_all(struct crowd *crowd, int count)
{
    uint64_t until_ns = quoit_clock_now_ns() + LIMIT_NS;
    while (atomic_load(&crowd->ready_count) < count)
        if (sched_yield() != 0 || quoit_clock_now_ns() > until_ns)
            return false;
    return true;
}

static uint64_t turn_count(struct crowd *crowd)
{
    uint64_t sum = 0;
    for (int i = 0; i < CALIBRATE_CROWD_MAX; i++)
        sum += atomic_load_explicit(&crowd->turns[i].count, memory_order_relaxed);
    return sum;
}

static double time_turns(const struct member *member)
{
    double values[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        uint64_t start_ns = quoit_clock_now_ns(), start_count = turn_count(member->crowd);
        for (int i = 0; i < ROUNDS; i++)
            take_turn(member);
        values[batch] = (double)(quoit_clock_now_ns() - start_ns) / (double)(turn_count(member->crowd) - start_count);
    }
    return calibrate_median(values, BATCHES);
}

/* ns of a turn, of all members alike; 0: not all could be started. */
static double time_crowd(const struct member *first, int count)
{
    pid_t children[CALIBRATE_CROWD_MAX];
    struct crowd *crowd = first->crowd;
    int started = 1;
    double ns = 0;
    memset((void *)crowd, 0, sizeof *crowd);
    for (; started < count && (children[started] = fork()) >= 0; started++)
        if (children[started] == 0)
            take_turns(&(struct member){.crowd = crowd, .index = started});
    if (started == count && await_all(crowd, count - 1))
        ns = time_turns(first);
    atomic_store(&crowd->is_over, true);
    for (int i = 1; i < started; i++)
        waitpid(children[i], NULL, 0);
    return ns;
}

/* What the members do, by a process alone. */
static double time_work(const struct member *first)
{
    struct calibrate_lane *lane = calibrate_lane_open();
    if (!lane)
        return 0;
    double ns = (calibrate_time_of(calibrate_lane_look, lane) + calibrate_time_of(read_pages, first->pages)) / 2;
    calibrate_lane_close(lane);
    return ns;
}

void calibrate_crowds(int core, const int counts[], int crowd_count, double ns_out[])
{
    struct crowd *crowd =
        mmap(NULL, sizeof *crowd, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    struct member first = {.crowd = crowd};
    cpu_set_t before;
    sched_getaffinity(0, sizeof before, &before);
    calibrate_stay_on(core);
    bool is_open = crowd != MAP_FAILED && open_member(&first);
    double alone_ns = is_open ? time_work(&first) : 0;
    for (int i = 0; i < crowd_count; i++) {
        double turn_ns = is_open ? time_crowd(&first, counts[i]) : 0;
        ns_out[i] = turn_ns > alone_ns ? turn_ns - alone_ns : 0;
    }
    sched_setaffinity(0, sizeof before, &before);
    if (is_open)
        munmap(first.pages, PAGES_SPAN);
    if (crowd != MAP_FAILED)
        munmap(crowd, sizeof *crowd);
}
