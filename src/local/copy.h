/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.h - the ways to copy between PEs of one host.
 *
 *   memcpy   that of the C library, through the mapping of the other PE's segment
 *   movsb    the processor's own copy of strings (rep movsb), through the mapping; x86-64
 *   stream   stores that go past the caches, through the mapping; x86-64
 *   cma      the kernel copies to or from the other process (process_vm_writev, process_vm_readv)
 *
 * Promise: each copies every byte, for any size and alignment, and what it wrote is ordered before the caller's later
 * stores as that of memcpy is. The ranges may be the same, but do not overlap otherwise. Where the kernel refuses cma
 * in the middle of a job the rest goes by memcpy.
 *
 * Threads: any.
 */
#ifndef QUOIT_LOCAL_COPY_H
#define QUOIT_LOCAL_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(way, name, what `quoit info paths` says of it) */
#define QUOIT_COPY_METHODS(X)                                                                                          \
    X(MEMCPY, "memcpy", "the C library's copy through the mapping")                                                    \
    X(MOVSB, "movsb", "rep movsb through the mapping")                                                                 \
    X(STREAM, "stream", "stores past the caches, through the mapping")                                                 \
    X(CMA, "cma", "process_vm_readv and process_vm_writev")

enum quoit_copy_method {
#define X(way, ...) QUOIT_COPY_##way,
    QUOIT_COPY_METHODS(X)
#undef X
        QUOIT_COPY_METHOD_COUNT
};

const char *quoit_copy_method_name(enum quoit_copy_method way);
const char *quoit_copy_method_sentence(enum quoit_copy_method way);
/* The way called by the first `bytes` of `name`; COUNT if there is none. */
enum quoit_copy_method quoit_copy_method_find(const char *name, size_t bytes);
/* False: not on this kind of processor. Of cma quoit_copy_probe_cma() says more. */
bool quoit_copy_is_built(enum quoit_copy_method way);

/* Memory of another process of this host. */
struct quoit_copy_place {
    char *here;     /* where it is mapped in this process */
    uint64_t there; /* where it is mapped in its own, for cma */
    uint32_t pid;   /* of its process, for cma */
};

void quoit_copy_put(enum quoit_copy_method way, const struct quoit_copy_place *to, const void *from, size_t bytes);
void quoit_copy_get(enum quoit_copy_method way, void *to, const struct quoit_copy_place *from, size_t bytes);

/* Lets every process of this user reach the memory of this one, where the kernel (Yama) wants that said. */
void quoit_copy_allow_cma(void);
/* Tries to read the word at `place`, which holds `value` and is never changed, and to write it back: 0, or the errno
 * with which the kernel refuses; ESRCH if the pid is that of somebody else. */
int quoit_copy_probe_cma(const struct quoit_copy_place *place, uint64_t value);

#endif
