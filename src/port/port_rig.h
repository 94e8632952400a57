/* SPDX-License-Identifier: BSD-3-Clause */
/* port_rig.h - two hosts and a link between them, for the tests of ports. Included by tests only.
 *
 * What it is: a driver's tests need the memory of two hosts and a way to open either end of the link, any number of
 * times and from any process that was forked after rig_make(). A new driver adds one row to rig_drivers. A driver whose
 * hosts and clock are not those of this machine, such as the simulator's, provides a struct rig_world and rows that
 * name it: the suite is compiled once more with QUOIT_PORT_ROWS, the header that defines them (sim/port_rows.h).
 */
#ifndef QUOIT_PORT_PORT_RIG_H
#define QUOIT_PORT_PORT_RIG_H

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/must.h"
#include "base/prng.h"
#include "env/clock.h"
#include "env/wait.h"
#include "port/driver.h"

#define RIG_PATIENCE_NS  20000000000u
#define RIG_MEMORY_BYTES ((uint64_t)1 << 20)
#define RIG_MAP_BYTES    ((uint64_t)2 << 20) /* memory may be of huge pages */
#define RIG_LAST         0x80000 /* the first half of a host's memory is for windows, parks stand behind it */

struct rig_driver;

struct rig {
    const struct rig_driver *driver;
    uint8_t *memory[2]; /* of both hosts */
    int memory_fd[2];
    int link_fd;
    int device_fd[2];              /* of a cable */
    struct quoit_port_knobs knobs; /* those of the row, and what the test adds */
};

/* A thread of this host. */
struct rig_thread {
    void (*run)(void *arg);
    void *arg;
    pthread_t thread;
    _Atomic bool has_ended;
};

/* Hosts, threads and time, if not those of this machine. */
struct rig_world {
    const struct quoit_port_driver *driver;
    void (*run)(const struct rig_driver *driver, void (*body)(void *arg), void *arg); /* body, in a new world */
    uint8_t *(*memory)(uint32_t side);                                                /* of a host, all zero */
    struct quoit_port_endpoint (*describe)(uint32_t side);
    void (*arrive)(struct quoit_port *port);
    void (*start)(struct rig_thread *thread);
};

/* A driver as the suites see it: the name of its row in the table, and its knobs. */
struct rig_driver {
    const char *name;
    const char *driver;
    struct quoit_port_knobs knobs;
    const struct rig_world *world; /* NULL: this machine */
    const char *devices[2];        /* the ends of a link that is a cable; NULL: the driver makes links */
    uint64_t interrupt_ns;         /* within which an interrupt has woken what it wakes; 0: at once */
    uint32_t share;                /* the longest tests do this part of their rounds, 1/share; 0: all */
};

static inline const struct quoit_port_driver *rig_table_of(const struct rig_driver *driver)
{
    return driver->world ? driver->world->driver : quoit_port_driver_find(driver->driver);
}

static inline const struct quoit_port_driver *rig_table(const struct rig *rig)
{
    return rig_table_of(rig->driver);
}

static inline struct quoit_port_endpoint rig_describe(const struct rig *rig, uint32_t side)
{
    if (rig->driver->world)
        return rig->driver->world->describe(side);
    const struct quoit_port_site site = {.link_fd = rig->driver->devices[side] ? rig->device_fd[side] : rig->link_fd,
                                         .peer_memory_fd = rig->memory_fd[1 - side],
                                         .side = side,
                                         .knobs = rig->knobs};
    struct quoit_port_endpoint endpoint;
    must(quoit_port_driver_describe(rig_table(rig), &site, &endpoint) == QUOIT_OK);
    return endpoint;
}

static inline struct quoit_port *rig_open(struct rig *rig, uint32_t side)
{
    const struct quoit_port_endpoint endpoint = rig_describe(rig, side);
    const struct quoit_port_config config = {
        .driver = rig_table(rig), .memory = {rig->memory[side], RIG_MEMORY_BYTES}, .endpoint = &endpoint};
    struct quoit_port *port;
    must(quoit_port_open(&config, &port) == QUOIT_OK);
    return port;
}

static inline void rig_link_make(struct rig *rig)
{
    must(quoit_port_driver_link(rig_table(rig), &rig->link_fd) == QUOIT_OK);
    for (uint32_t side = 0; side < 2 && rig->driver->devices[side]; side++) {
        rig->device_fd[side] = open(rig->driver->devices[side], O_RDWR | O_CLOEXEC);
        must(rig->device_fd[side] >= 0);
    }
}

static inline void rig_make(struct rig *rig, const struct rig_driver *driver)
{
    *rig = (struct rig){.driver = driver, .knobs = driver->knobs};
    must(rig_table(rig) != NULL);
    if (driver->world) {
        for (uint32_t side = 0; side < 2; side++)
            rig->memory[side] = driver->world->memory(side);
        return;
    }
    for (uint32_t side = 0; side < 2; side++) {
        must(quoit_port_driver_memory(rig_table(rig), "port-test", RIG_MEMORY_BYTES, &rig->memory_fd[side]) ==
             QUOIT_OK);
        rig->memory[side] = mmap(NULL, RIG_MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, rig->memory_fd[side], 0);
        must(rig->memory[side] != MAP_FAILED);
    }
    rig_link_make(rig);
    quoit_park_setup();
}

static inline void rig_destroy(struct rig *rig)
{
    if (rig->driver->world)
        return;
    if (rig->link_fd >= 0)
        close(rig->link_fd);
    for (uint32_t side = 0; side < 2; side++) {
        if (rig->driver->devices[side])
            close(rig->device_fd[side]);
        munmap(rig->memory[side], RIG_MAP_BYTES);
        close(rig->memory_fd[side]);
    }
}

/* Returns when what the port has posted has arrived, or is lost. */
static inline void rig_arrive(const struct rig *rig, struct quoit_port *port)
{
    uint64_t word;
    (void)!quoit_port_read(port, QUOIT_WINDOW_MEMORY, 0, &word, sizeof word);
    if (rig->driver->world)
        rig->driver->world->arrive(port);
}

static inline void *rig_thread_main(void *arg)
{
    struct rig_thread *thread = arg;
    thread->run(thread->arg);
    return NULL;
}

static inline void rig_thread_start(const struct rig *rig, struct rig_thread *thread)
{
    if (rig->driver->world)
        rig->driver->world->start(thread);
    else
        must(pthread_create(&thread->thread, NULL, rig_thread_main, thread) == 0);
}

static inline void rig_thread_join(const struct rig *rig, struct rig_thread *thread)
{
    while (rig->driver->world && !thread->has_ended)
        quoit_clock_sleep_ns(1000);
    if (!rig->driver->world)
        must(pthread_join(thread->thread, NULL) == 0);
}

/* Returns when the port sees its link up, or down. */
static inline void rig_await_link(const struct quoit_port *port, bool is_up)
{
    uint64_t deadline_ns = quoit_clock_now_ns() + RIG_PATIENCE_NS;
    while (quoit_port_link_is_up(port) != is_up) {
        must(quoit_clock_now_ns() < deadline_ns);
        quoit_clock_sleep_ns(10000);
    }
}

/* Of both ends, when a change has woken what it wakes. */
static inline void rig_interrupt(const struct rig *rig)
{
    if (rig->driver->interrupt_ns)
        quoit_clock_sleep_ns(rig->driver->interrupt_ns);
}

static inline uint32_t rig_rounds(const struct rig *rig, uint32_t count)
{
    return rig->driver->share ? count / rig->driver->share + 1 : count;
}

/* Opens both ends and enables both. */
static inline void rig_connect(struct rig *rig, struct quoit_port *ports_out[2])
{
    for (uint32_t side = 0; side < 2; side++) {
        ports_out[side] = rig_open(rig, side);
        quoit_port_link_enable(ports_out[side]);
    }
    rig_await_link(ports_out[0], true);
    rig_await_link(ports_out[1], true);
}

static inline void rig_disconnect(struct quoit_port *ports[2])
{
    quoit_port_close(ports[0]);
    quoit_port_close(ports[1]);
}

/* The index-th doorbell bit of a port, of eight or more. */
static inline uint64_t rig_bell(const struct quoit_port *port, uint32_t index)
{
    struct quoit_port_limits limits;
    quoit_port_limits(port, &limits);
    must(__builtin_popcountll(limits.doorbell_bits) >= 8);
    while (index-- > 0)
        limits.doorbell_bits &= limits.doorbell_bits - 1;
    return limits.doorbell_bits & -limits.doorbell_bits;
}

static inline struct quoit_park *rig_park(struct rig *rig, uint32_t side, uint32_t index)
{
    return (struct quoit_park *)(void *)(rig->memory[side] + RIG_LAST) + index;
}

static inline struct quoit_port_vector rig_vector(uint32_t first_park, uint32_t count)
{
    return (struct quoit_port_vector){.park_offset = RIG_LAST + first_park * sizeof(struct quoit_park),
                                      .park_stride = sizeof(struct quoit_park),
                                      .park_count = count};
}

/* A seed that differs from run to run; QUOIT_TEST_SEED replays one. Printed by the caller. */
static inline uint64_t rig_seed(void)
{
    const char *given = getenv("QUOIT_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
    printf("replay with QUOIT_TEST_SEED=%llu\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}

/* The other side: a process, or a thread under the thread sanitizer. */
struct rig_other {
    void (*run)(void *arg);
    void *arg;
    pid_t pid;
    pthread_t thread;
};

/* In a process of a test: a test that fails must not leave it behind. */
static inline void rig_die_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == 1)
        _exit(1);
}

#if defined(__SANITIZE_THREAD__)
static inline void *rig_other_main(void *arg)
{
    struct rig_other *other = arg;
    other->run(other->arg);
    return NULL;
}

static inline void rig_other_start(struct rig_other *other)
{
    must(pthread_create(&other->thread, NULL, rig_other_main, other) == 0);
}

static inline void rig_other_join(struct rig_other *other)
{
    must(pthread_join(other->thread, NULL) == 0);
}
#else
static inline void rig_other_start(struct rig_other *other)
{
    fflush(NULL);
    other->pid = fork();
    must(other->pid >= 0);
    if (other->pid == 0) {
        rig_die_with_parent();
        other->run(other->arg);
        _exit(0);
    }
}

static inline void rig_other_join(struct rig_other *other)
{
    int status;
    must(waitpid(other->pid, &status, 0) == other->pid);
    must(WIFEXITED(status));
    must(WEXITSTATUS(status) == 0);
}
#endif

#if defined(QUOIT_PORT_ROWS)
#include QUOIT_PORT_ROWS
#else
static const struct rig_driver rig_drivers[] = {
    {"emulated, posted", "emulated", {.arrives_on_return = 0}, NULL, {NULL}, 0, 0},
    {"emulated, arrived", "emulated", {.arrives_on_return = 1}, NULL, {NULL}, 0, 0},
    {"emulated, late", "emulated", {.write_latency_ns = 20000, .doorbell_latency_ns = 5000}, NULL, {NULL}, 0, 0},
    {"emulated, odd doorbells", "mask-holes", {.arrives_on_return = 0}, NULL, {NULL}, 0, 0}, /* with QUOIT_TEST_DRIVERS
                                                                                              */
};
#endif
#define RIG_DRIVER_COUNT (sizeof rig_drivers / sizeof rig_drivers[0])

#endif
