// SPDX-License-Identifier: BSD-3-Clause
/* Aim: clients of one port do not disturb each other, and calls that meet do not wait for each other for ever; a
 * translation does not outlive a loss of the link. Method: one machine with both ends of a link; each check is a
 * process of its own with a limit of time.
 *
 * Use: port_beside DEVICE DEVICE [part]   of parts of ports: a window that was lost is mapped again, and what a holder
 * has exposed is unmapped with the link, not with the holder's end
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "port_check.h"

#define PORTS           2
#define WINDOWS         2
#define PAGE_BYTES      4096u
#define RACE_S          8
#define LIMIT_S         80 /* of one check */
#define MAPPED_LEAST    100
#define BEFORE_CLOSE_US 10000
#define ACCEPTS         200
#define SLOW_BYTES      (32u << 20) /* machines.py has windows of as much, and a slow IOMMU */
#define PATIENCE_MS     500         /* at least, or a busy machine is taken for a dead one */
#define BIG_BYTES       (8u << 20)
#define CLOSES          10
#define STATUS_BYTES    4096
#define PATIENCE        "/sys/module/quoit_ntb/parameters/patience_ms"

static int open_port(const char *device)
{
    int port = open(device, O_RDWR | O_CLOEXEC);
    CHECK(port >= 0);
    return port;
}

static char *make_pages(uint64_t bytes)
{
    char *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(base != MAP_FAILED);
    return base;
}

static void lease_page(int port)
{
    struct quoit_ntb_lease lease = {.window = 0, .bytes = PAGE_BYTES};
    CHECK(ioctl(port, QUOIT_NTB_LEASE, &lease) == 0);
}

struct mapper {
    int port;
    _Atomic bool is_over;
    uint64_t count;
};

static void *map_again_and_again(void *arg)
{
    struct mapper *self = arg;
    for (; !self->is_over; self->count++) {
        volatile char *page = map(self->port, PAGE_BYTES, QUOIT_NTB_OUTBOUND(0));
        *page = 1;
        munmap((void *)(uintptr_t)page, PAGE_BYTES);
    }
    return NULL;
}

/* The last user of pinned memory is a window, which gives it back while another thread maps. */
static void check_release_beside_map(const char *const *devices)
{
    struct mapper mapper = {.port = open_port(devices[0])};
    char *page = make_pages(PAGE_BYTES);
    uint64_t count = 0;
    pthread_t thread;
    lease_page(mapper.port);
    CHECK(pthread_create(&thread, NULL, map_again_and_again, &mapper) == 0);
    for (double end_s = now_s() + RACE_S; now_s() < end_s; count++) {
        int memory = pin(mapper.port, page, PAGE_BYTES);
        expose(mapper.port, memory, PAGE_BYTES);
        close(memory);
        expose(mapper.port, -1, 0);
    }
    mapper.is_over = true;
    pthread_join(thread, NULL);
    printf("%llu releases beside %llu mappings\n", (unsigned long long)count, (unsigned long long)mapper.count);
    CHECK(count >= MAPPED_LEAST && mapper.count >= MAPPED_LEAST);
}

/* A window that a client has set would belong to nobody once the client has joined another one. */
static void check_join_with_window(const char *const *devices)
{
    int port = open_port(devices[0]), other = open_port(devices[0]);
    int memory = pin(port, make_pages(PAGE_BYTES), PAGE_BYTES);
    struct quoit_ntb_inbound set = {.memory_fd = memory, .window = 1, .bytes = PAGE_BYTES}, back = {.window = 1};
    CHECK(ioctl(other, QUOIT_NTB_WINDOW, &set) == 0);
    CHECK(fails_with(ioctl(other, QUOIT_NTB_JOIN, &port), EBUSY));
    CHECK(ioctl(other, QUOIT_NTB_WINDOW, &back) == 0);
    CHECK(ioctl(other, QUOIT_NTB_JOIN, &port) == 0);
    CHECK(ioctl(other, QUOIT_NTB_WINDOW, &set) == 0); /* of both */
    CHECK(ioctl(port, QUOIT_NTB_WINDOW, &back) == 0);
}

static void enable_link(const int *ports)
{
    struct quoit_ntb_link link = {.wish = QUOIT_NTB_LINK_ENABLE};
    CHECK(ioctl(ports[1], QUOIT_NTB_LINK, &link) == 0);
    for (int i = 0; i < PORTS; i++)
        bring_up(ports[i], -1);
}

static void open_link(const char *const *devices, int *ports)
{
    for (int i = 0; i < PORTS; i++)
        ports[i] = open_port(devices[i]);
    enable_link(ports);
}

static void await_loss(int port)
{
    for (double end_s = now_s() + PATIENCE_S; look(port).is_up; usleep(1000))
        CHECK(now_s() < end_s);
}

/* The cable is out, and with it the registers that hold the translations. What comes after it is not written to memory
 * that was there before: neither to what its holder has not set again, nor to what it has taken back meanwhile.
 * machines.py reads what is printed, and has the cable. */
static void check_cable(const char *const *devices)
{
    int ports[PORTS];
    volatile uint64_t *words = (uint64_t *)(void *)make_pages(PAGE_BYTES), *out[WINDOWS];
    open_link(devices, ports);
    int memory = pin(ports[0], (void *)(uintptr_t)words, PAGE_BYTES);
    for (uint32_t i = 0; i < WINDOWS; i++) {
        struct quoit_ntb_lease lease = {.window = i, .bytes = PAGE_BYTES};
        struct quoit_ntb_inbound set = {.memory_fd = memory, .window = i, .bytes = PAGE_BYTES};
        CHECK(ioctl(ports[1], QUOIT_NTB_LEASE, &lease) == 0 && ioctl(ports[0], QUOIT_NTB_WINDOW, &set) == 0);
        out[i] = map(ports[1], PAGE_BYTES, QUOIT_NTB_OUTBOUND(i));
        out[i][i] = 1;
        await_word(words + i, 1);
    }
    printf("cable out\n");
    for (int i = 0; i < PORTS; i++)
        await_loss(ports[i]);
    CHECK(ioctl(ports[0], QUOIT_NTB_WINDOW, &(struct quoit_ntb_inbound){.window = 1}) == 0);
    printf("cable in\n");
    for (int i = 0; i < PORTS; i++)
        bring_up(ports[i], -1);
    for (uint32_t i = 0; i < WINDOWS; i++) {
        out[i][i] = 2;
        uint64_t read = out[i][i]; /* behind the write */
        printf("window %u: %llu in memory, %llu read by the peer\n", i, (unsigned long long)words[i],
               (unsigned long long)read);
        CHECK(words[i] == 1 && read == UINT64_MAX);
    }
    expose(ports[0], memory, PAGE_BYTES);
    out[0][0] = 3;
    await_word(words, 3);
}

static long count_faults(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_minflt + usage.ru_majflt;
}

/* A client that accepts epochs without end does not empty the mappings of another one. */
static void check_accept_beside_map(const char *const *devices)
{
    int ports[PORTS], other;
    open_link(devices, ports);
    other = open_port(devices[0]);
    lease_page(ports[0]);
    volatile char *page = map(ports[0], PAGE_BYTES, QUOIT_NTB_OUTBOUND(0));
    *page = 1;
    long before = count_faults();
    for (uint32_t i = 0; i < ACCEPTS; i++) {
        CHECK(ioctl(other, QUOIT_NTB_ACCEPT, &(uint32_t){0}) == 0);
        *page = 2;
    }
    long others = count_faults() - before;
    for (uint32_t i = 0; i < ACCEPTS; i++) {
        CHECK(ioctl(ports[0], QUOIT_NTB_ACCEPT, &(uint32_t){0}) == 0);
        *page = 3;
    }
    long own = count_faults() - before - others;
    printf("%u calls of another client: %ld faults; %u own ones: %ld\n", ACCEPTS, others, ACCEPTS, own);
    CHECK(others < ACCEPTS / 10 && own >= ACCEPTS);
}

static void set_patience(unsigned patience_ms)
{
    FILE *file = fopen(PATIENCE, "w");
    CHECK(file != NULL && fprintf(file, "%u\n", patience_ms) > 0 && fclose(file) == 0);
}

static bool is_part;

/* What was lost with the link is set again, to the same memory: nothing is written before that, and it is not mapped
 * again, unless it is of a part. */
static void check_again(const int *ports, int memory, volatile uint64_t *word, unsigned map_ms)
{
    lease_page(ports[1]);
    volatile uint64_t *out = map(ports[1], PAGE_BYTES, QUOIT_NTB_OUTBOUND(0));
    *out = 1;
    await_word(word, 1);
    release(ports[1]);
    await_loss(ports[0]);
    enable_link(ports);
    *out = 2;
    (void)*out; /* it has arrived, wherever */
    CHECK(*word == 1);
    double begin_s = now_s();
    expose(ports[0], memory, SLOW_BYTES);
    unsigned again_ms = (unsigned)((now_s() - begin_s) * 1e3);
    *out = 3;
    await_word(word, 3);
    printf("set again in %u ms\n", again_ms);
    CHECK(is_part || again_ms < map_ms / 4);
}

/* The IOMMU takes much longer for the memory of a window than the peer has patience: the link stays up. */
static void check_slow_mapping(const char *const *devices)
{
    int ports[PORTS];
    char *base = make_pages(SLOW_BYTES);
    CHECK(madvise(base, SLOW_BYTES, MADV_NOHUGEPAGE) == 0 || errno == EINVAL); /* or the kernel makes none */
    open_link(devices, ports);
    int memory = pin(ports[0], base, SLOW_BYTES);
    double begin_s = now_s();
    expose(ports[0], memory, SLOW_BYTES);
    double mapped_s = now_s();
    expose(ports[0], -1, 0);
    unsigned map_ms = (unsigned)((mapped_s - begin_s) * 1e3), unmap_ms = (unsigned)((now_s() - mapped_s) * 1e3);
    printf("mapped in %u ms, unmapped in %u ms\n", map_ms, unmap_ms);
    CHECK(map_ms / 2 >= PATIENCE_MS);
    struct quoit_ntb_link before[PORTS] = {look(ports[0]), look(ports[1])};
    set_patience(map_ms / 2);
    expose(ports[0], memory, SLOW_BYTES);
    expose(ports[0], memory, SLOW_BYTES / 2); /* instead of the other */
    expose(ports[0], -1, 0);
    expose(ports[0], memory, SLOW_BYTES);
    for (int i = 0; i < PORTS; i++) {
        struct quoit_ntb_link link = look(ports[i]);
        printf("end %d: epoch %u, before %u, up %u\n", i, link.epoch, before[i].epoch, link.is_up);
        CHECK(before[i].is_up && link.is_up && link.epoch == before[i].epoch);
    }
    check_again(ports, memory, (uint64_t *)(void *)base, map_ms);
}

struct waiter {
    int port, status;
    uint64_t pinned_kib;
};

/* Once the holder before has left its lease: what this process still has pinned. */
static void *lease_after(void *arg)
{
    struct waiter *self = arg;
    struct quoit_ntb_lease lease = {.window = 0, .bytes = PAGE_BYTES};
    char text[STATUS_BYTES] = "";
    while (ioctl(self->port, QUOIT_NTB_LEASE, &lease) != 0)
        CHECK(errno == EBUSY);
    CHECK(pread(self->status, text, sizeof text - 1, 0) > 0);
    const char *pinned = strstr(text, "VmPin:");
    CHECK(pinned != NULL);
    self->pinned_kib = strtoull(pinned + strlen("VmPin:"), NULL, 10);
    return NULL;
}

/* A holder of a big window ends: what it leased is free, and port->lock with it, before its memory is given back. A
 * slow IOMMU would not show it by the beat: while that of QEMU unmaps, no processor reaches a register. */
static void check_big_release(const char *const *devices)
{
    char *base = make_pages(BIG_BYTES);
    bool is_before = false;
    for (int i = 0; i < CLOSES && !is_before; i++) {
        int other = open_port(devices[0]);
        struct waiter waiter = {.port = open_port(devices[0]), .status = open("/proc/self/status", O_RDONLY)};
        pthread_t thread;
        CHECK(waiter.status >= 0);
        lease_page(other);
        int memory = pin(other, base, BIG_BYTES);
        expose(other, memory, BIG_BYTES);
        close(memory); /* the window alone has it now */
        CHECK(pthread_create(&thread, NULL, lease_after, &waiter) == 0);
        usleep(BEFORE_CLOSE_US);
        close(other);
        pthread_join(thread, NULL);
        printf("leased while %llu KiB were pinned\n", (unsigned long long)waiter.pinned_kib);
        is_before = waiter.pinned_kib >= BIG_BYTES >> 10;
        close(waiter.port);
        close(waiter.status);
    }
    CHECK(is_before);
}

/* More than a machine has is refused, and the kernel, whose log is read later, has nothing to say of it. */
static void check_huge_memory(const char *const *devices)
{
    int port = open_port(devices[0]);
    for (uint64_t bytes = PAGE_BYTES; bytes != 0; bytes *= 2) {
        struct quoit_ntb_memory huge = {.address = 0, .bytes = bytes};
        CHECK(ioctl(port, QUOIT_NTB_MEMORY, &huge) < 0 && errno != ENOTTY); /* nothing is at 0 */
    }
    close(port);
}

struct check {
    const char *name;
    void (*run)(const char *const *devices);
};

static const struct check checks[] = {
    {"join with a window", check_join_with_window},
    {"accept beside map", check_accept_beside_map},
    {"cable", check_cable},
    {"slow mapping", check_slow_mapping},
    {"big release", check_big_release},
    {"huge memory", check_huge_memory},
    {"release beside map", check_release_beside_map},
};

/* A process that hangs in the kernel cannot be killed: it is left. */
static bool passes(const struct check *check, const char *const *devices)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        check->run(devices);
        exit(0);
    }
    for (double end_s = now_s() + LIMIT_S; now_s() < end_s; usleep(10000))
        if (waitpid(child, &status, WNOHANG) == child) {
            bool is_good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
            printf("%s: %s\n", check->name, is_good ? "passed" : "failed");
            return is_good;
        }
    printf("%s: not over in %d s\n", check->name, LIMIT_S);
    return false;
}

int main(int argc, char **argv)
{
    CHECK(argc == PORTS + 1 || argc == PORTS + 2);
    is_part = argc == PORTS + 2;
    const char *const devices[PORTS] = {argv[1], argv[2]};
    bool is_good = true;
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (!is_part || checks[i].run != check_big_release)
            is_good &= passes(&checks[i], devices);
    printf("port_beside: %s\n", is_good ? "passed" : "failed");
    return is_good ? 0 : 1;
}
