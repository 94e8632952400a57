/* SPDX-License-Identifier: BSD-3-Clause */
/* tune_measure.h - how long each way of copying to another PE of this machine takes.
 *
 * The other PE is a child process that has the same memory mapped. Memory is as a job has it: of a memfd, for the heap
 * with huge pages where the kernel gives them. Two uses of the caches: HOT, the same buffers again and again, timed
 * until the other process has read what it got; COLD, a walk through buffers that are larger than the caches, where the
 * copy alone is timed. Ways take turns, and the quickest time of each counts, since what else the machine does only
 * adds to times; and all is done in several passes, seconds apart, so that their difference tells what is noise.
 *
 * Threads: one. Errors: false, with a line on stderr.
 */
#ifndef QUOIT_TUNE_MEASURE_H
#define QUOIT_TUNE_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "local/paths.h"
#include "tune_topology.h"

enum tune_use { TUNE_HOT, TUNE_COLD, TUNE_USE_COUNT };

/* Where the two processes run. */
struct tune_place {
    int own_core;
    int other_core; /* may be the same one */
    const char *name;
};
#define TUNE_PLACES_MAX TUNE_DISTANCE_COUNT
#define TUNE_PASS_COUNT 3

/* The pairs of allowed processors that this machine has, one a distance. At least one. */
uint32_t tune_find_places(const struct tune_topology *topology, void *state,
                          struct tune_place places_out[TUNE_PLACES_MAX]);

struct tune_config {
    const struct tune_place *place;
    enum quoit_buffer_kind kind;
    uint64_t buffer_bytes; /* of each of two buffers; at least the largest size */
    uint64_t cell_ns;      /* about so long for one size, use and pass */
};

struct tune_result {
    /* Time of one copy; 0: the way does not work here. */
    double ns[TUNE_PASS_COUNT][TUNE_USE_COUNT][QUOIT_PATHS_SIZE_COUNT][QUOIT_COPY_METHOD_COUNT];
    double lost; /* share of the two processors' time that others took, 0 to 1 */
};

/* step(arg) is called after each size, use and pass. */
bool tune_measure(const struct tune_config *config, struct tune_result *result_out, void (*step)(void *arg), void *arg);

#endif
