/* SPDX-License-Identifier: BSD-3-Clause */
/* raw_window.c - the copy through an emulated window with nothing above it: the upper bound of puts between neighbours.
 *
 * Use: raw_window WHERE [SMALLEST]      WHERE is a word for the output; SMALLEST size, in bytes
 * One process opens both ends of a link and writes from one host's memory into the other's. In a real job the ends
 * belong to different processes, but the copy is the same: one side makes it alone. This and raw_relay.c are the
 * benchmarks that do not use the public interface.
 */
#include <stdlib.h>
#include <string.h>

#include "raw_link.h"

static void write_window(void *arg, size_t bytes, size_t count)
{
    struct raw_end *end = arg;
    for (size_t i = 0; i < count; i++)
        if (quoit_port_write(end->port, QUOIT_WINDOW_MEMORY, 0, end->memory, bytes) != QUOIT_OK)
            raw_fail("write failed");
}

int main(int argc, char **argv)
{
    static const struct subject subjects[] = {{"window", write_window}};
    struct raw_end ends[2];
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "use: raw_window WHERE [SMALLEST]\n");
        return 2;
    }
    raw_open(ends, BYTES_MAX);
    for (size_t bytes = argc == 3 ? strtoul(argv[2], NULL, 10) : BYTES_MIN; bytes <= BYTES_MAX; bytes *= 2) {
        for (size_t at = 0; at < bytes; at++)
            ends[0].memory[at] = (unsigned char)(at * 7 + (at >> 8) + bytes);
        bench_measure(subjects, 1, &ends[0], bytes, argv[1]);
        if (memcmp(ends[0].memory, ends[1].memory, bytes) != 0)
            raw_fail("what arrived differs from what was sent");
    }
    raw_close(ends);
    return 0;
}
