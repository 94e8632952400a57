/* SPDX-License-Identifier: BSD-3-Clause */
/* port_check.h - what the programs have in common that test /dev/ntbN itself (port_pair, port_dma, port_beside). A
 * check that fails ends the program, with the line and the condition. */
#ifndef TESTS_VM_PORT_CHECK_H
#define TESTS_VM_PORT_CHECK_H

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "quoit_ntb.h"

#define PATIENCE_S 60
#define SPINS      1000
#define MAGIC      0x71756f69u
#define HUGE_BYTES (2u << 20)

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            printf("%s: line %d: %s: %s\n", __FILE_NAME__, __LINE__, #condition, strerror(errno));                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static inline double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static inline int fails_with(int result, int error)
{
    return result < 0 && errno == error;
}

static inline void await_word(volatile uint64_t *word, uint64_t value)
{
    double end_s = now_s() + PATIENCE_S;
    for (int i = 0; *word < value; i++) {
        CHECK(now_s() < end_s);
        if (i > SPINS)
            usleep(100); /* the other machine may need the processor */
    }
}

static inline struct quoit_ntb_link look(int port)
{
    struct quoit_ntb_link link = {.wish = QUOIT_NTB_LINK_LOOK};
    CHECK(ioctl(port, QUOIT_NTB_LINK, &link) == 0);
    return link;
}

static inline struct quoit_ntb_link bring_up(int port, int on_link)
{
    struct quoit_ntb_link link = {.wish = QUOIT_NTB_LINK_ENABLE};
    double end_s = now_s() + PATIENCE_S;
    CHECK(ioctl(port, QUOIT_NTB_LINK, &link) == 0);
    while (!link.is_up) {
        struct pollfd wait = {.fd = on_link, .events = POLLIN};
        uint64_t count;
        if (poll(&wait, 1, 500) > 0)
            CHECK(read(on_link, &count, sizeof count) == sizeof count);
        link.wish = QUOIT_NTB_LINK_LOOK;
        CHECK(ioctl(port, QUOIT_NTB_LINK, &link) == 0);
        CHECK(now_s() < end_s);
    }
    return link;
}

/* What a bridge or an engine sees in one piece: without an IOMMU a huge page, which such a machine has reserved. */
static inline void *make_huge_page(void)
{
    const int flags = MAP_SHARED | MAP_ANONYMOUS;
    void *base = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);
    if (base == MAP_FAILED)
        base = mmap(NULL, HUGE_BYTES, PROT_READ | PROT_WRITE, flags, -1, 0);
    CHECK(base != MAP_FAILED);
    return base;
}

/* Memory of this process, whole pages. */
static inline int pin(int port, void *base, uint64_t bytes)
{
    struct quoit_ntb_memory wanted = {.address = (uintptr_t)base, .bytes = bytes};
    int fd = ioctl(port, QUOIT_NTB_MEMORY, &wanted);
    CHECK(fd >= 0);
    return fd;
}

static inline void *map(int fd, uint64_t bytes, uint64_t at)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)at);
    CHECK(base != MAP_FAILED);
    return base;
}

static inline void expose(int port, int memory, uint64_t bytes)
{
    struct quoit_ntb_inbound inbound = {.memory_fd = memory, .window = 0, .bytes = bytes};
    CHECK(ioctl(port, QUOIT_NTB_WINDOW, &inbound) == 0);
}

/* Returns the epoch. Both windows are ready when both scratchpads say so. */
static inline uint32_t meet(int port, int on_link, int memory, uint64_t bytes)
{
    struct quoit_ntb_scratchpad mine = {.index = 0, .value = MAGIC}, theirs = {.index = 0};
    uint32_t epoch = bring_up(port, on_link).epoch;
    expose(port, memory, bytes);
    CHECK(ioctl(port, QUOIT_NTB_ACCEPT, &epoch) == 0);
    for (double end_s = now_s() + PATIENCE_S; theirs.value != MAGIC; usleep(20000)) {
        CHECK(ioctl(port, QUOIT_NTB_SCRATCHPAD_PEER, &mine) == 0);
        CHECK(ioctl(port, QUOIT_NTB_SCRATCHPAD, &theirs) == 0);
        CHECK(now_s() < end_s);
    }
    return epoch;
}

/* Returns once the link is down. */
static inline void release(int port)
{
    struct quoit_ntb_link link = {.wish = QUOIT_NTB_LINK_RELEASE};
    CHECK(ioctl(port, QUOIT_NTB_LINK, &link) == 0);
    for (double end_s = now_s() + PATIENCE_S; look(port).is_up; usleep(1000))
        CHECK(now_s() < end_s);
}

/* Returns the epoch that comes after this one. */
static inline uint32_t await_epoch_after(int port, uint32_t epoch)
{
    for (double end_s = now_s() + PATIENCE_S; look(port).epoch == epoch; usleep(1000))
        CHECK(now_s() < end_s);
    return look(port).epoch;
}

#endif
