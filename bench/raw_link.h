/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_link.h - both ends of an emulated link in one process, for the benchmarks of the bare window. */
#ifndef BENCH_RAW_LINK_H
#define BENCH_RAW_LINK_H

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "port/driver.h"
#include "samples.h"

struct raw_end {
    int memory_fd;
    unsigned char *memory;
    struct quoit_port *port;
};

static inline void raw_fail(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

static inline int raw_memory_file(const char *name, size_t bytes)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        raw_fail("no memory");
    return fd;
}

static inline void raw_open_end(struct raw_end *end, const struct raw_end *peer, int link_fd, uint32_t side,
                                size_t bytes)
{
    const struct quoit_port_driver *driver = quoit_port_driver_at(0);
    const struct quoit_port_site site = {.link_fd = link_fd, .peer_memory_fd = peer->memory_fd, .side = side};
    struct quoit_port_endpoint endpoint;
    struct quoit_port_config config = {
        .driver = driver, .memory = {.base = end->memory, .bytes = bytes}, .endpoint = &endpoint};
    if (driver->describe(&site, &endpoint) != QUOIT_OK || quoit_port_open(&config, &end->port) != QUOIT_OK)
        raw_fail("open failed");
    quoit_port_link_enable(end->port);
}

/* Two hosts with `bytes` of memory each, all of it in the window MEMORY of the other. */
static inline void raw_open(struct raw_end ends[2], size_t bytes)
{
    int link_fd;
    if (quoit_port_driver_at(0)->link_create(&link_fd) != QUOIT_OK)
        raw_fail("no link");
    for (int i = 0; i < 2; i++) {
        ends[i].memory_fd = raw_memory_file("bench-host", bytes);
        ends[i].memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, ends[i].memory_fd, 0);
        if (ends[i].memory == MAP_FAILED)
            raw_fail("no memory");
    }
    for (int i = 0; i < 2; i++)
        raw_open_end(&ends[i], &ends[1 - i], link_fd, (uint32_t)i, bytes);
    for (int i = 0; i < 2; i++)
        if (!quoit_port_link_is_up(ends[i].port) ||
            quoit_port_set_translation(ends[i].port, QUOIT_WINDOW_MEMORY, 0, bytes) != QUOIT_OK)
            raw_fail("the link does not come up");
}

static inline void raw_close(struct raw_end ends[2])
{
    for (int i = 0; i < 2; i++)
        quoit_port_close(ends[i].port);
}

#endif
