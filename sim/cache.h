/* SPDX-License-Identifier: BSD-3-Clause */
/* cache.h - what copies cost where hosts share processors: each processor has a cache, and what one copies from may be
 * in its own, in another's, or in none.
 *
 * A page is in the cache of the processor that touched it last, until that processor has fetched `cache_bytes` of
 * others. A copy takes the time that the caller names per byte if both sides are in the own cache, and longer, by
 * constants of the model, if a side is elsewhere. Single lines, which PEs write and wait for, are followed beside that:
 * several processors have one to read, and a writer takes it from all others. Only the memory of the simulated hosts is
 * known; other memory counts as cached.
 */
#ifndef SIM_CACHE_H
#define SIM_CACHE_H

#include <stddef.h>
#include <stdint.h>

struct sim_world;
struct sim_cache;

/* Of the memory of all hosts; nothing is cached yet. */
struct sim_cache *sim_cache_new(const struct sim_world *world);
void sim_cache_free(struct sim_cache *cache); /* or NULL */

/* The duration of a copy by the running task, in ns; both sides are in its processor's cache afterwards. NULL: a side
 * that is not in a host's memory. Without a model of caches, or between tasks, ps_per_byte alone counts. */
uint64_t sim_cache_copy_ns(struct sim_world *world, const char *to, const char *from, size_t bytes,
                           uint64_t ps_per_byte);

/* How much longer the running task reads or writes the line of this byte because another processor has it, in ns. */
uint64_t sim_cache_read_line_ns(const struct sim_world *world, const void *at);
uint64_t sim_cache_write_line_ns(const struct sim_world *world, const void *at);

#endif
