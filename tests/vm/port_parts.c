// SPDX-License-Identifier: BSD-3-Clause
/* Aim: parts of a port are ports that have nothing in common but the link: what is sent through one arrives in memory
 * of the same part alone, leases end at its limits, and a holder that dies or comes disturbs no other part; memory of a
 * dead holder is given back, and no store that was for it meets the next one's. Method: one machine with both ends of a
 * link, each in three parts; every byte of all parts is compared.
 *
 * Use: port_parts DEVICE DEVICE   whose parts are DEVICE, DEVICE.1 and DEVICE.2
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "port_check.h"

#define PARTS      3
#define WINDOWS    2
#define BYTES      (16u << 10) /* of each window that is exposed */
#define WORDS      (BYTES / 8)
#define DEATHS     8
#define LATE_US    20000 /* in which a late store would arrive */
#define NAME_BYTES 64

enum { NEAR, FAR, ENDS };

struct part {
    int ports[ENDS];                 /* near exposes, far stores */
    volatile uint64_t *in[WINDOWS];  /* memory of near */
    volatile uint64_t *out[WINDOWS]; /* mapped by far */
    struct quoit_ntb_info info;
    uint32_t epoch;
};

static const char *devices[ENDS];

static int open_part(int end, uint32_t part)
{
    char name[NAME_BYTES];
    snprintf(name, sizeof name, part ? "%s.%u" : "%s", devices[end], part);
    int port = open(name, O_RDWR | O_CLOEXEC);
    CHECK(port >= 0);
    return port;
}

static volatile uint64_t *make_pages(void)
{
    void *base = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(base != MAP_FAILED);
    return base;
}

static void expose_pages(int port, uint32_t window, volatile uint64_t *pages)
{
    int memory = pin(port, (void *)(uintptr_t)pages, BYTES);
    struct quoit_ntb_inbound set = {.memory_fd = memory, .window = window, .bytes = BYTES};
    CHECK(ioctl(port, QUOIT_NTB_WINDOW, &set) == 0);
    close(memory);
}

static volatile uint64_t *map_out(int port, uint32_t window)
{
    struct quoit_ntb_lease lease = {.window = window, .bytes = BYTES};
    CHECK(ioctl(port, QUOIT_NTB_LEASE, &lease) == 0);
    return map(port, BYTES, QUOIT_NTB_OUTBOUND(window));
}

static void open_all(struct part *parts)
{
    for (uint32_t p = 0; p < PARTS; p++) {
        for (int end = 0; end < ENDS; end++) {
            struct quoit_ntb_link wish = {.wish = QUOIT_NTB_LINK_ENABLE};
            parts[p].ports[end] = open_part(end, p);
            CHECK(ioctl(parts[p].ports[end], QUOIT_NTB_LINK, &wish) == 0);
        }
        CHECK(ioctl(parts[p].ports[FAR], QUOIT_NTB_INFO, &parts[p].info) == 0);
        for (uint32_t w = 0; w < WINDOWS; w++) {
            parts[p].in[w] = make_pages();
            expose_pages(parts[p].ports[NEAR], w, parts[p].in[w]);
            parts[p].out[w] = map_out(parts[p].ports[FAR], w);
        }
    }
    for (uint32_t p = 0; p < PARTS; p++)
        for (int end = 0; end < ENDS; end++)
            parts[p].epoch = bring_up(parts[p].ports[end], -1).epoch;
}

/* Of no two places the same. */
static uint64_t word_of(uint32_t part, uint32_t window, uint32_t at)
{
    return ((uint64_t)part << 40 | (uint64_t)window << 32 | at) * UINT64_C(0x9e3779b97f4a7c15) + 1;
}

static void check_bytes(const struct part *parts)
{
    for (uint32_t p = 0; p < PARTS; p++)
        for (uint32_t w = 0; w < WINDOWS; w++)
            for (uint32_t i = 0; i < WORDS; i++)
                parts[p].out[w][i] = word_of(p, w, i);
    for (uint32_t p = 0; p < PARTS; p++)
        for (uint32_t w = 0; w < WINDOWS; w++) {
            (void)parts[p].out[w][0]; /* all has arrived */
            for (uint32_t i = 0; i < WORDS; i++)
                CHECK(parts[p].in[w][i] == word_of(p, w, i));
        }
    printf("bytes of all parts: passed\n");
}

static void check_limits(const struct part *parts)
{
    uint64_t bits = 0;
    for (uint32_t p = 0; p < PARTS; p++) {
        const struct quoit_ntb_info *info = &parts[p].info;
        CHECK(info->doorbell_bits != 0 && (info->doorbell_bits & bits) == 0);
        bits |= info->doorbell_bits;
        for (uint32_t w = 0; w < WINDOWS; w++) {
            uint64_t limit = info->windows[w].peer_bytes;
            struct quoit_ntb_lease last = {.window = w, .offset = limit - 4096, .bytes = 4096};
            struct quoit_ntb_lease behind = {.window = w, .offset = limit, .bytes = 4096};
            CHECK(ioctl(parts[p].ports[FAR], QUOIT_NTB_LEASE, &last) == 0);
            CHECK(fails_with(ioctl(parts[p].ports[FAR], QUOIT_NTB_LEASE, &behind), EINVAL));
        }
        struct quoit_ntb_lease other = {.bits_want = parts[(p + 1) % PARTS].info.doorbell_bits};
        CHECK(fails_with(ioctl(parts[p].ports[FAR], QUOIT_NTB_LEASE, &other), EINVAL));
    }
    printf("limits: passed\n");
}

/* The same index, of each part another word; and rings. */
static void check_words(const struct part *parts)
{
    for (uint32_t p = 0; p < PARTS; p++)
        for (uint32_t i = 0; i < parts[p].info.scratchpad_count; i++) {
            struct quoit_ntb_scratchpad pad = {.index = i, .value = 100 * (p + 1) + i};
            CHECK(ioctl(parts[p].ports[FAR], QUOIT_NTB_SCRATCHPAD_PEER, &pad) == 0);
        }
    for (uint32_t p = 0; p < PARTS; p++) {
        (void)parts[p].out[0][0];
        for (uint32_t i = 0; i < parts[p].info.scratchpad_count; i++) {
            struct quoit_ntb_scratchpad pad = {.index = i};
            CHECK(ioctl(parts[p].ports[NEAR], QUOIT_NTB_SCRATCHPAD, &pad) == 0 && pad.value == 100 * (p + 1) + i);
        }
    }
    for (uint32_t p = 0; p < PARTS; p++) {
        struct quoit_ntb_lease lease = {.bits_want = parts[p].info.doorbell_bits};
        struct quoit_ntb_bits all = {.bits = lease.bits_want}, none;
        CHECK(ioctl(parts[p].ports[NEAR], QUOIT_NTB_LEASE, &lease) == 0);
        CHECK(ioctl(parts[p].ports[FAR], QUOIT_NTB_LEASE, &lease) == 0);
        CHECK(ioctl(parts[p].ports[FAR], QUOIT_NTB_RING, &all) == 0);
        double end_s = now_s() + PATIENCE_S;
        do
            CHECK(ioctl(parts[p].ports[NEAR], QUOIT_NTB_DOORBELL, &all) == 0 && now_s() < end_s);
        while (all.bits != parts[p].info.doorbell_bits);
        CHECK(ioctl(parts[p].ports[NEAR], QUOIT_NTB_CLEAR, &all) == 0);
        CHECK(ioctl(parts[p].ports[NEAR], QUOIT_NTB_DOORBELL, &none) == 0 && none.bits == 0);
    }
    printf("scratchpads and doorbells: passed\n");
}

struct storm {
    volatile uint64_t *to;
    _Atomic bool is_over;
};

/* What it stores arrives, or vanishes. */
static void *store_without_end(void *arg)
{
    struct storm *storm = arg;
    while (!storm->is_over)
        for (uint32_t i = 0; i < WORDS && !storm->is_over; i += 64)
            storm->to[i] = UINT64_MAX / 3;
    return NULL;
}

/* Exposes `pages` by part 1 of the near end in another epoch than that of the holder before, which it tells, and is
 * killed then. */
static pid_t start_holder(volatile uint64_t *pages, uint32_t before, int told)
{
    pid_t child = fork();
    struct quoit_ntb_link link = {.wish = QUOIT_NTB_LINK_ENABLE};
    CHECK(child >= 0);
    if (child > 0)
        return child;
    int port = open_part(NEAR, 1);
    CHECK(ioctl(port, QUOIT_NTB_LINK, &link) == 0);
    for (double end_s = now_s() + PATIENCE_S; !link.is_up || link.epoch == before; link = look(port))
        CHECK(now_s() < end_s && usleep(1000) == 0);
    expose_pages(port, 0, pages);
    CHECK(write(told, &link.epoch, sizeof link.epoch) == sizeof link.epoch);
    for (;;)
        pause();
}

/* One after the other holds part 1 and is killed while the far end stores into its memory. The far end accepts each
 * epoch, in which it stores, before the next holder comes: so what is in memory of one was stored in its epoch. */
static void check_deaths(const struct part *parts)
{
    int told[2], port = open_part(FAR, 1);
    struct quoit_ntb_link wish = {.wish = QUOIT_NTB_LINK_ENABLE};
    struct storm storm = {.to = map_out(port, 0)};
    pthread_t thread;
    CHECK(pipe(told) == 0 && ioctl(port, QUOIT_NTB_LINK, &wish) == 0);
    uint32_t arrived = 0, holder_epoch = 0;
    CHECK(pthread_create(&thread, NULL, store_without_end, &storm) == 0);
    for (int i = 0; i < DEATHS; i++) {
        volatile uint64_t *pages = make_pages();
        pid_t holder = start_holder(pages, holder_epoch, told[1]);
        CHECK(read(told[0], &holder_epoch, sizeof holder_epoch) == sizeof holder_epoch);
        uint32_t epoch = bring_up(port, -1).epoch;
        usleep(LATE_US);
        for (uint32_t at = 0; i > 0 && at < WORDS; at++)
            CHECK(pages[at] == 0); /* the far end works in the epoch before */
        CHECK(ioctl(port, QUOIT_NTB_ACCEPT, &epoch) == 0);
        for (double end_s = now_s() + PATIENCE_S; i > 0 && pages[0] == 0;)
            CHECK(now_s() < end_s);
        arrived += pages[0] != 0;
        CHECK(kill(holder, SIGKILL) == 0 && waitpid(holder, NULL, 0) == holder);
        munmap((void *)(uintptr_t)pages, BYTES);
    }
    storm.is_over = true;
    pthread_join(thread, NULL);
    close(port);
    for (uint32_t p = 0; p < PARTS; p += 2) /* those that nobody left */
        for (int end = 0; end < ENDS; end++)
            CHECK(look(parts[p].ports[end]).is_up && look(parts[p].ports[end]).epoch == parts[p].epoch);
    printf("%d holders killed, stored into memory of %u: passed\n", DEATHS, arrived);
}

static uint64_t pinned_kib(void)
{
    char line[256];
    uint64_t kib = UINT64_MAX;
    FILE *file = fopen("/proc/self/status", "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file))
        (void)sscanf(line, "VmPin: %llu", (unsigned long long *)&kib);
    fclose(file);
    return kib;
}

/* What a holder has left is given back when the other end has left it too. */
static void check_pins(struct part *part)
{
    uint64_t before = pinned_kib();
    close(part->ports[NEAR]);
    for (double end_s = now_s() + PATIENCE_S; pinned_kib() != before - WINDOWS * BYTES / 1024; usleep(1000))
        CHECK(now_s() < end_s);
    CHECK(!look(part->ports[FAR]).is_up);
    part->out[0][0] = 1; /* vanishes */
    close(part->ports[FAR]);
    for (uint32_t w = 0; w < WINDOWS; w++)
        munmap((void *)(uintptr_t)part->out[w], BYTES); /* which keeps it open */
    printf("pinned memory: passed\n");
}

int main(int argc, char **argv)
{
    static struct part parts[PARTS];
    CHECK(argc == ENDS + 1);
    devices[NEAR] = argv[1];
    devices[FAR] = argv[2];
    open_all(parts);
    check_bytes(parts);
    check_limits(parts);
    check_words(parts);
    check_pins(&parts[1]);
    check_deaths(parts);
    for (uint32_t p = 0; p < PARTS; p += 2)
        for (uint32_t w = 0; w < WINDOWS; w++)
            for (uint32_t i = 0; i < WORDS; i++)
                CHECK(parts[p].in[w][i] == word_of(p, w, i));
    printf("port_parts: passed\n");
    return 0;
}
