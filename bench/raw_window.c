/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_window.c - the copy through an emulated window with nothing above it: the limit of puts between neighbours.
 *
 * Use: raw_window WHERE [SMALLEST]      WHERE is a word for the output; SMALLEST size, in bytes
 * One process opens both ends of a link and writes from one host's memory into the other's. Both ends of a real job are
 * different processes, but the copy is the same: one side makes it alone. This is the one benchmark that is not written
 * to the public interface.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "port/emulated/emulated.h"
#include "samples.h"

struct end {
    int memory_fd;
    unsigned char *memory;
    struct quoit_port *port;
};

static void fail(const char *what)
{
    fprintf(stderr, "raw_window: %s\n", what);
    exit(1);
}

static void write_window(void *arg, size_t bytes, size_t count)
{
    struct end *end = arg;
    for (size_t i = 0; i < count; i++)
        if (quoit_port_write(end->port, QUOIT_WINDOW_MEMORY, 0, end->memory, bytes) != QUOIT_OK)
            fail("write failed");
}

static int memory_file(const char *name, size_t bytes)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
        fail("no memory");
    return fd;
}

static void open_end(struct end *end, const struct end *peer, int link_fd, uint32_t side)
{
    struct quoit_emulated_config driver = {.link_fd = link_fd, .peer_memory_fd = peer->memory_fd, .side = side};
    struct quoit_port_config config = {
        .driver = &quoit_port_emulated, .memory = {.base = end->memory, .bytes = BYTES_MAX}, .driver_config = &driver};
    if (quoit_port_open(&config, &end->port) != QUOIT_OK)
        fail("open failed");
    quoit_port_link_enable(end->port);
}

int main(int argc, char **argv)
{
    static const struct subject subjects[] = {{"window", write_window}};
    struct end ends[2];
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "use: raw_window WHERE [SMALLEST]\n");
        return 2;
    }
    int link_fd = memory_file("bench-link", QUOIT_EMULATED_LINK_BYTES);
    for (int i = 0; i < 2; i++) {
        ends[i].memory_fd = memory_file("bench-host", BYTES_MAX);
        ends[i].memory = mmap(NULL, BYTES_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, ends[i].memory_fd, 0);
        if (ends[i].memory == MAP_FAILED)
            fail("no memory");
    }
    for (int i = 0; i < 2; i++)
        open_end(&ends[i], &ends[1 - i], link_fd, (uint32_t)i);
    if (!quoit_port_link_is_up(ends[0].port) ||
        quoit_port_set_translation(ends[1].port, QUOIT_WINDOW_MEMORY, 0, BYTES_MAX) != QUOIT_OK)
        fail("the link does not come up");

    for (size_t bytes = argc == 3 ? strtoul(argv[2], NULL, 10) : BYTES_MIN; bytes <= BYTES_MAX; bytes *= 2) {
        for (size_t at = 0; at < bytes; at++)
            ends[0].memory[at] = (unsigned char)(at * 7 + (at >> 8) + bytes);
        bench_measure(subjects, 1, &ends[0], bytes, argv[1]);
        if (memcmp(ends[0].memory, ends[1].memory, bytes) != 0)
            fail("what arrived differs from what was sent");
    }
    for (int i = 0; i < 2; i++)
        quoit_port_close(ends[i].port);
    return 0;
}
