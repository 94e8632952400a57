// SPDX-License-Identifier: BSD-3-Clause
/* Aim: no input from user space harms the kernel: no warning, no hang, and the ports work afterwards. Method: processes
 * with two threads each make random calls on both ends of a link, about half of them plausible, and are killed at any
 * instant; then a link must come up and carry a word. The machine's log is judged by machines.py.
 *
 * Use: port_fuzz DEVICE DEVICE SECONDS [SEED]   prints the seed, and how often each call ended how
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/prng.h"

#include "quoit_ntb.h"

#define PORTS      2
#define FILES      24 /* of a process: ports, memory, eventfds */
#define MAPS       12
#define WORKERS    3
#define LIFE_MS    1500
#define CALL_BYTES 1024
#define HUGE_BYTES (2u << 20)
#define PATIENCE_S 60
#define OUTCOMES   3 /* done, refused, no such call */

static const unsigned long commands[] = {
    QUOIT_NTB_INFO,   QUOIT_NTB_LINK,       QUOIT_NTB_ACCEPT,   QUOIT_NTB_LEASE, QUOIT_NTB_MEMORY,
    QUOIT_NTB_WINDOW, QUOIT_NTB_RING,       QUOIT_NTB_DOORBELL, QUOIT_NTB_CLEAR, QUOIT_NTB_MASK,
    QUOIT_NTB_UNMASK, QUOIT_NTB_SCRATCHPAD, QUOIT_NTB_EVENTFD,  QUOIT_NTB_COPY,  QUOIT_NTB_SCRATCHPAD_PEER,
    QUOIT_NTB_JOIN,
};
#define COMMANDS (sizeof commands / sizeof commands[0])

struct counts {
    _Atomic uint64_t calls[COMMANDS][OUTCOMES];
    _Atomic uint64_t maps, touches, files;
};

struct map {
    char *base;
    size_t bytes;
};

struct worker {
    const char *const *devices;
    struct counts *counts;
    char *source;     /* of copies: a huge page, if there is one */
    int files[FILES]; /* -1: none. Both threads use them, and close each other's */
    struct map maps[MAPS];
};

struct thread {
    struct worker *worker;
    struct quoit_prng prng;
};

static uint32_t below(struct thread *thread, uint32_t bound)
{
    return (uint32_t)quoit_prng_choose(&thread->prng, bound);
}

static int some_file(struct thread *thread)
{
    return thread->worker->files[below(thread, FILES)];
}

static uint64_t some_number(struct thread *thread)
{
    static const uint64_t numbers[] = {0,          1,
                                       2,          3,
                                       7,          8,
                                       15,         63,
                                       64,         4096,
                                       8192,       65536,
                                       1 << 20,    2 << 20,
                                       4095,       UINT32_MAX,
                                       INT32_MAX,  UINT64_MAX,
                                       1u << 31,   1ull << 44,
                                       1ull << 63, UINT64_MAX - 4095,
                                       1ull << 40, 12};
    switch (below(thread, 4)) {
    case 0:
        return quoit_prng_next(&thread->prng);
    case 1:
        return (uint64_t)below(thread, 64) << 12;
    default:
        return numbers[below(thread, sizeof numbers / sizeof numbers[0])];
    }
}

static char *some_address(struct thread *thread)
{
    const struct map *map = &thread->worker->maps[below(thread, MAPS)];
    return map->base ? map->base + (below(thread, 4) ? 0 : 4096) : (char *)(uintptr_t)some_number(thread);
}

/* Words of it that make sense, so that calls come further than their first check. */
static void make_plausible(struct thread *thread, unsigned long command, void *call)
{
    if (command == QUOIT_NTB_LINK)
        ((struct quoit_ntb_link *)call)->wish = below(thread, 3);
    else if (command == QUOIT_NTB_ACCEPT)
        *(uint32_t *)call = below(thread, 4);
    else if (command == QUOIT_NTB_LEASE)
        *(struct quoit_ntb_lease *)call =
            (struct quoit_ntb_lease){.bit_count = below(thread, 4),
                                     .window = below(thread, 3),
                                     .bits_want = below(thread, 2) ? 1u << below(thread, 16) : 0,
                                     .offset = below(thread, 32) << 12,
                                     .bytes = below(thread, 64) << 12};
    else if (command == QUOIT_NTB_MEMORY)
        *(struct quoit_ntb_memory *)call = (struct quoit_ntb_memory){
            .address = (uintptr_t)(below(thread, 2) ? some_address(thread) : thread->worker->source),
            .bytes = (uint64_t)(1 + below(thread, 64)) << 12};
    else if (command == QUOIT_NTB_WINDOW)
        *(struct quoit_ntb_inbound *)call = (struct quoit_ntb_inbound){.memory_fd = some_file(thread),
                                                                       .window = below(thread, 3),
                                                                       .offset = below(thread, 4) << 12,
                                                                       .bytes = below(thread, 16) << 12};
    else if (command == QUOIT_NTB_SCRATCHPAD || command == QUOIT_NTB_SCRATCHPAD_PEER)
        ((struct quoit_ntb_scratchpad *)call)->index = below(thread, 9);
    else if (command == QUOIT_NTB_EVENTFD)
        *(struct quoit_ntb_eventfd *)call = (struct quoit_ntb_eventfd){.fd = below(thread, 8) ? some_file(thread) : -1,
                                                                       .on_link = below(thread, 2),
                                                                       .on_dma = below(thread, 2),
                                                                       .bits = below(thread, 65536)};
    else if (command == QUOIT_NTB_COPY)
        *(struct quoit_ntb_copy *)call = (struct quoit_ntb_copy){.memory_fd = some_file(thread),
                                                                 .window = below(thread, 3),
                                                                 .source = below(thread, 4) << 12,
                                                                 .offset = below(thread, 32) << 12,
                                                                 .bytes = 1 + below(thread, 65536)};
    else if (command == QUOIT_NTB_JOIN)
        *(int32_t *)call = some_file(thread);
    else
        *(uint64_t *)call = 1u << below(thread, 16);
}

static void call(struct thread *thread)
{
    struct worker *worker = thread->worker;
    uint64_t words[CALL_BYTES / 8];
    uint32_t at = below(thread, COMMANDS);
    unsigned long command = commands[at];
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        words[i] = some_number(thread);
    if (below(thread, 2))
        make_plausible(thread, command, words);
    if (below(thread, 16) == 0)
        command ^= 1ul << below(thread, 32); /* another size, direction or number */
    void *argument = below(thread, 32) ? (void *)words : (void *)some_address(thread);
    int result = ioctl(some_file(thread), command, argument);
    if (command == QUOIT_NTB_MEMORY && result >= 0) {
        int *slot = &worker->files[below(thread, FILES)], old = *slot;
        *slot = result;
        if (old >= 0)
            close(old);
    }
    worker->counts->calls[at][result >= 0 ? 0 : errno == ENOTTY || errno == EBADF ? 2 : 1]++;
}

static uint32_t index_of(unsigned long command)
{
    uint32_t at = 0;
    while (commands[at] != command)
        at++;
    return at;
}

/* All that a copy needs, in order, which chance alone does not find: some of it is refused now and then. */
static void copy(struct thread *thread)
{
    struct worker *worker = thread->worker;
    int port = some_file(thread), *slot = &worker->files[below(thread, FILES)], old = *slot;
    struct quoit_ntb_link link = {.wish = QUOIT_NTB_LINK_ENABLE};
    struct quoit_ntb_lease lease = {.window = below(thread, 2), .bytes = 64 << 12};
    struct quoit_ntb_memory memory = {.address = (uintptr_t)worker->source, .bytes = 64 << 12};
    (void)ioctl(port, QUOIT_NTB_LINK, &link);
    (void)ioctl(port, QUOIT_NTB_LEASE, &lease);
    int source = ioctl(port, QUOIT_NTB_MEMORY, &memory);
    if (source < 0)
        return;
    *slot = source;
    if (old >= 0)
        close(old);
    for (uint32_t i = below(thread, 80); i > 0; i--) {
        struct quoit_ntb_copy call = {.memory_fd = source,
                                      .window = lease.window,
                                      .source = below(thread, 32 << 12),
                                      .offset = below(thread, 32 << 12),
                                      .bytes = 1 + below(thread, 33 << 12)};
        worker->counts->calls[index_of(QUOIT_NTB_COPY)][ioctl(port, QUOIT_NTB_COPY, &call) == 0 ? 0 : 1]++;
    }
}

static void open_or_close(struct thread *thread)
{
    struct worker *worker = thread->worker;
    int *slot = &worker->files[below(thread, FILES)], old = *slot;
    switch (below(thread, 5)) {
    case 0:
        *slot = eventfd(0, EFD_CLOEXEC);
        break;
    case 1:
        *slot = -1;
        break;
    default:
        *slot = open(worker->devices[below(thread, PORTS)], O_RDWR | O_CLOEXEC);
    }
    if (old >= 0)
        close(old);
    worker->counts->files++;
}

static void map_or_unmap(struct thread *thread)
{
    struct worker *worker = thread->worker;
    struct map *map = &worker->maps[below(thread, MAPS)], old = *map;
    *map = (struct map){0};
    if (old.base)
        munmap(old.base, old.bytes);
    size_t bytes = (size_t)(1 + below(thread, 64)) << 12;
    uint64_t offset = QUOIT_NTB_OUTBOUND(below(thread, 10)) + ((uint64_t)below(thread, 64) << 12);
    int flags = below(thread, 4) ? MAP_SHARED : MAP_PRIVATE;
    int fd = some_file(thread);
    void *base = below(thread, 4) == 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                                       : mmap(NULL, bytes, below(thread, 3) ? PROT_READ | PROT_WRITE : PROT_READ, flags,
                                              fd, (off_t)(below(thread, 3) ? offset : 0));
    if (base == MAP_FAILED)
        return;
    *map = (struct map){base, bytes};
    worker->counts->maps++;
}

/* A fault that ends the process is as good as a kill. */
static void touch(struct thread *thread)
{
    const struct map *map = &thread->worker->maps[below(thread, MAPS)];
    if (!map->base || map->bytes == 0)
        return;
    volatile char *at = map->base + below(thread, (uint32_t)map->bytes);
    if (below(thread, 2))
        *at = (char)quoit_prng_next(&thread->prng);
    else
        (void)*at;
    thread->worker->counts->touches++;
}

static void listen(struct thread *thread)
{
    struct quoit_ntb_done done[4];
    struct pollfd wait = {.fd = some_file(thread), .events = POLLIN};
    if (poll(&wait, 1, 0) > 0 && (wait.revents & POLLIN))
        (void)!read(wait.fd, done, 1 + below(thread, sizeof done));
}

static void *run_thread(void *arg)
{
    struct thread *thread = arg;
    for (;;) {
        uint32_t kind = below(thread, 16);
        if (below(thread, 64) == 0)
            copy(thread);
        else if (kind < 9)
            call(thread);
        else if (kind < 11)
            open_or_close(thread);
        else if (kind < 13)
            map_or_unmap(thread);
        else if (kind < 15)
            touch(thread);
        else
            listen(thread);
    }
    return NULL;
}

static _Noreturn void run_worker(const char *const *devices, struct counts *counts, uint64_t seed)
{
    static struct worker worker;
    struct thread threads[2] = {{&worker, {seed}}, {&worker, {seed ^ UINT64_MAX}}};
    pthread_t other;
    worker.devices = devices;
    worker.counts = counts;
    worker.source = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
    if (worker.source == MAP_FAILED)
        worker.source = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < FILES; i++)
        worker.files[i] = i < 4 ? open(devices[i % PORTS], O_RDWR | O_CLOEXEC) : -1;
    if (pthread_create(&other, NULL, run_thread, &threads[1]) == 0)
        run_thread(&threads[0]);
    _exit(1);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The link comes up and a scratchpad carries a word. */
static bool works(const char *const *devices)
{
    int fds[PORTS];
    struct quoit_ntb_link link[PORTS] = {0};
    struct quoit_ntb_scratchpad pad = {.index = 1, .value = 0x600d}, found = {.index = 1};
    for (int i = 0; i < PORTS; i++)
        if ((fds[i] = open(devices[i], O_RDWR)) < 0)
            return false;
    for (double end_s = now_s() + PATIENCE_S; now_s() < end_s && !(link[0].is_up && link[1].is_up); usleep(10000))
        for (int i = 0; i < PORTS; i++) {
            link[i].wish = QUOIT_NTB_LINK_ENABLE;
            if (ioctl(fds[i], QUOIT_NTB_LINK, &link[i]) != 0)
                return false;
        }
    for (double end_s = now_s() + 5; now_s() < end_s && found.value != pad.value; usleep(10000))
        if (ioctl(fds[0], QUOIT_NTB_SCRATCHPAD_PEER, &pad) != 0 || ioctl(fds[1], QUOIT_NTB_SCRATCHPAD, &found) != 0)
            break;
    printf("afterwards: link %u %u, word %#x\n", link[0].is_up, link[1].is_up, found.value);
    for (int i = 0; i < PORTS; i++)
        close(fds[i]);
    return found.value == pad.value;
}

static void print_counts(const struct counts *counts)
{
    printf("%-8s %10s %10s %10s\n", "call", "done", "refused", "no call");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("0x%-6lx %10llu %10llu %10llu\n", commands[i] & 0xff, (unsigned long long)counts->calls[i][0],
               (unsigned long long)counts->calls[i][1], (unsigned long long)counts->calls[i][2]);
    printf("%llu files, %llu mappings, %llu accesses\n", (unsigned long long)counts->files,
           (unsigned long long)counts->maps, (unsigned long long)counts->touches);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "use: port_fuzz DEVICE DEVICE SECONDS [SEED]\n");
        return 2;
    }
    const char *const devices[PORTS] = {argv[1], argv[2]};
    struct counts *counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t seed = argc > 4 ? strtoull(argv[4], NULL, 0) : (uint64_t)time(NULL);
    struct thread chance = {.prng = {seed}};
    pid_t workers[WORKERS] = {0};
    uint32_t started = 0;
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    for (double end_s = now_s() + strtod(argv[3], NULL); now_s() < end_s; usleep(1000u * below(&chance, LIFE_MS))) {
        int i = (int)below(&chance, WORKERS);
        if (workers[i] > 0) {
            kill(workers[i], SIGKILL);
            waitpid(workers[i], NULL, 0);
        }
        uint64_t worker_seed = quoit_prng_next(&chance.prng);
        workers[i] = fork();
        if (workers[i] == 0)
            run_worker(devices, counts, worker_seed);
        started++;
    }
    for (int i = 0; i < WORKERS; i++)
        if (workers[i] > 0) {
            kill(workers[i], SIGKILL);
            waitpid(workers[i], NULL, 0);
        }
    printf("%u processes\n", started);
    print_counts(counts);
    bool is_alive = works(devices);
    printf("port_fuzz: %s\n", is_alive ? "passed" : "the ports do not work any more");
    return is_alive ? 0 : 1;
}
