/* SPDX-License-Identifier: BSD-3-Clause */
#include "tune_topology.h"

#include <hwloc.h>
#include <stddef.h>

static void *open_topology(void)
{
    hwloc_topology_t topology;
    if (hwloc_topology_init(&topology) != 0)
        return NULL;
    if (hwloc_topology_load(topology) == 0)
        return topology;
    hwloc_topology_destroy(topology);
    return NULL;
}

static void close_topology(void *state)
{
    hwloc_topology_destroy(state);
}

/* The outermost cache above a processor; NULL: none is known. */
static hwloc_obj_t last_cache(hwloc_topology_t topology, int core)
{
    hwloc_obj_t found = NULL;
    for (hwloc_obj_t at = hwloc_get_pu_obj_by_os_index(topology, (unsigned)core); at; at = at->parent)
        if (hwloc_obj_type_is_dcache(at->type))
            found = at;
    return found;
}

static hwloc_obj_t socket_of(hwloc_topology_t topology, int core)
{
    hwloc_obj_t at = hwloc_get_pu_obj_by_os_index(topology, (unsigned)core);
    while (at && at->type != HWLOC_OBJ_PACKAGE)
        at = at->parent;
    return at;
}

static uint64_t cache_bytes(void *state, int core)
{
    hwloc_obj_t cache = last_cache(state, core);
    return cache ? cache->attr->cache.size : 0;
}

static enum tune_distance distance(void *state, int a, int b)
{
    if (socket_of(state, a) != socket_of(state, b))
        return TUNE_OTHER_SOCKET;
    return last_cache(state, a) != last_cache(state, b) ? TUNE_OTHER_CACHE : TUNE_SAME_CACHE;
}

const struct tune_topology tune_topology_hwloc = {
    .name = "hwloc",
    .open = open_topology,
    .close = close_topology,
    .cache_bytes = cache_bytes,
    .distance = distance,
};
