/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a write through the mapped window has at least 90 % of the rate of a bare copy through the same mapping. Method:
 * one machine with both ends of a link; blocks of several lengths are written by quoit_port_write(), by memcpy() and by
 * loops of words and of vectors into the same place, in turn; of each the fastest of many counts, as another machine
 * may have the processor meanwhile. The fastest of the bare copies is the measure. All bytes are compared at the other
 * end: that alone decides the status, since a machine may be busy.
 *
 * Use: port_copy [ROUNDS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "port/linux/opening.h"
#include "port/port_rig.h"

#define ROUNDS_MAX    100000
#define VECTOR_BYTES  16u
#define BYTES_MAX     ((size_t)RIG_LAST)
#define PERCENT_LEAST 90

typedef uint64_t vector __attribute__((vector_size(VECTOR_BYTES)));

enum kind { WRITE, MEMCPY, WORDS, VECTORS, KINDS };

struct bench {
    struct quoit_port *port;
    char *window, *source;
};

static void copy(const struct bench *bench, enum kind kind, size_t bytes)
{
    if (kind == WRITE) {
        must(quoit_port_write(bench->port, QUOIT_WINDOW_MEMORY, 0, bench->source, bytes) == QUOIT_OK);
        return;
    }
    if (kind == MEMCPY)
        memcpy(bench->window, bench->source, bytes);
    else if (kind == WORDS)
#pragma GCC unroll 8
        for (size_t at = 0; at < bytes; at += sizeof(uint64_t))
            *(volatile uint64_t *)(void *)(bench->window + at) = *(const uint64_t *)(const void *)(bench->source + at);
    else
        for (size_t at = 0; at < bytes; at += VECTOR_BYTES)
            *(volatile vector *)(void *)(bench->window + at) = *(const vector *)(const void *)(bench->source + at);
    quoit_linux_flush_stores();
}

/* Returns the part of the bare copy's rate, in percent. */
static unsigned measure(const struct bench *bench, const uint8_t *memory, size_t bytes, int rounds)
{
    uint64_t least_ns[KINDS] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    for (int round = 0; round < rounds; round++)
        for (enum kind kind = 0; kind < KINDS; kind++) {
            bench->source[round % bytes]++;
            uint64_t begin_ns = quoit_clock_now_ns();
            copy(bench, kind, bytes);
            uint64_t now_ns = quoit_clock_now_ns();
            if (now_ns - begin_ns < least_ns[kind])
                least_ns[kind] = now_ns - begin_ns;
            must(memcmp(memory, bench->source, bytes) == 0);
        }
    uint64_t bare_ns = UINT64_MAX;
    for (enum kind kind = MEMCPY; kind < KINDS; kind++)
        bare_ns = least_ns[kind] < bare_ns ? least_ns[kind] : bare_ns;
    unsigned percent = (unsigned)(100 * bare_ns / least_ns[WRITE]);
    printf("%7zu bytes: write %8.1f us, memcpy %8.1f us, words %8.1f us, vectors %8.1f us: %u %% of the bare rate\n",
           bytes, (double)least_ns[WRITE] / 1e3, (double)least_ns[MEMCPY] / 1e3, (double)least_ns[WORDS] / 1e3,
           (double)least_ns[VECTORS] / 1e3, percent);
    fflush(stdout);
    return percent;
}

int main(int argc, char **argv)
{
    static const size_t lengths[] = {4096, 16384, 65536, BYTES_MAX};
    int rounds = argc > 1 ? atoi(argv[1]) : 300;
    bool is_reached = true;
    struct rig rig;
    struct quoit_port *ports[2];
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "port_copy: ROUNDS is %d, allowed are 1 to %d\n", rounds, ROUNDS_MAX);
        return 2;
    }
    rig_make(&rig, &rig_drivers[0]);
    rig_connect(&rig, ports);
    must(quoit_port_set_translation(ports[1], QUOIT_WINDOW_MEMORY, 0, BYTES_MAX) == QUOIT_OK);
    struct bench bench = {.port = ports[0],
                          .window = quoit_linux_port_of(ports[0])->window[QUOIT_WINDOW_MEMORY],
                          .source = aligned_alloc(4096, BYTES_MAX)};
    must(bench.source != NULL);
    for (size_t at = 0; at < BYTES_MAX; at++)
        bench.source[at] = (char)(at * 7 + at / 251);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        is_reached &= measure(&bench, rig.memory[1], lengths[i], rounds) >= PERCENT_LEAST;
    free(bench.source);
    rig_disconnect(ports);
    rig_destroy(&rig);
    printf("port_copy: every byte arrived; %d %% of the rate of a bare copy %s\n", PERCENT_LEAST,
           is_reached ? "reached" : "NOT REACHED");
    return 0;
}
