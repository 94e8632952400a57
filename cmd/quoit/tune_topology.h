/* SPDX-License-Identifier: BSD-3-Clause */
/* tune_topology.h - which processors of this machine share what.
 *
 * Two readers of one contract: hwloc, where quoit was built with it (it knows more machines, and what a hypervisor or
 * HWLOC_XMLFILE says of them), and /sys of Linux, which needs nothing. Their answers are the same on machines that
 * both know; tune_topology_test.c compares them.
 *
 * Threads: one.
 */
#ifndef QUOIT_TUNE_TOPOLOGY_H
#define QUOIT_TUNE_TOPOLOGY_H

#include <stdint.h>

/* How near two processors are. */
enum tune_distance {
    TUNE_SAME_CACHE, /* they share the last cache, or nobody tells */
    TUNE_OTHER_CACHE,
    TUNE_OTHER_SOCKET,
    TUNE_DISTANCE_COUNT
};

struct tune_topology {
    const char *name;
    /* What the calls below are given; NULL: this reader cannot tell anything here. */
    void *(*open)(void);
    void (*close)(void *state);
    /* Bytes of the last cache of a processor; 0: not known. */
    uint64_t (*cache_bytes)(void *state, int core);
    enum tune_distance (*distance)(void *state, int a, int b);
};

extern const struct tune_topology tune_topology_sys;
extern const struct tune_topology tune_topology_hwloc; /* only where CMake found hwloc: QUOIT_HWLOC */

#endif
