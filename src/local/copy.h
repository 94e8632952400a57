/* SPDX-License-Identifier: BSD-3-Clause */
/* copy.h - methods of copying between PEs of one host.
 *
 *   memcpy   the C library's, through the mapping of the other PE's segment
 *   movsb    the processor's string copy (rep movsb), through the mapping; x86-64
 *   stream   non-temporal stores, through the mapping; x86-64
 *   cma      cross-memory attach: the kernel copies to or from the other process (process_vm_writev, process_vm_readv)
 *
 * Promise: every method copies every byte, for any size and alignment, and its writes are ordered before the caller's
 * later stores, as memcpy's are. The ranges may be identical but must not overlap otherwise. If the kernel refuses cma
 * in the middle of a job, memcpy copies the rest.
 *
 * Threads: any.
 */
#ifndef QUOIT_LOCAL_COPY_H
#define QUOIT_LOCAL_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(method, name) */
#define QUOIT_COPY_METHODS(X)                                                                                          \
    X(MEMCPY, "memcpy")                                                                                                \
    X(MOVSB, "movsb")                                                                                                  \
    X(STREAM, "stream")                                                                                                \
    X(CMA, "cma")

enum quoit_copy_method {
#define X(method, ...) QUOIT_COPY_##method,
    QUOIT_COPY_METHODS(X)
#undef X
        QUOIT_COPY_METHOD_COUNT
};

const char *quoit_copy_method_name(enum quoit_copy_method method);
/* The method named by the first `bytes` of `name`; COUNT if there is none. */
enum quoit_copy_method quoit_copy_method_find(const char *name, size_t bytes);
/* False: not available on this kind of processor. For cma, quoit_copy_probe_cma() decides. */
bool quoit_copy_is_built(enum quoit_copy_method method);

/* Memory of another process of this host. */
struct quoit_copy_place {
    char *here;     /* its mapping in this process */
    uint64_t there; /* its address in its own process, for cma */
    uint32_t pid;   /* of its process, for cma */
};

void quoit_copy_put(enum quoit_copy_method method, const struct quoit_copy_place *to, const void *from, size_t bytes);
void quoit_copy_get(enum quoit_copy_method method, void *to, const struct quoit_copy_place *from, size_t bytes);

/* Permits cma into this process for all processes of this user, where the kernel (Yama) requires that. */
void quoit_copy_allow_cma(void);
/* Reads the word at `place`, which holds `value` and never changes, and writes it back. Returns 0 or the errno of the
 * refusal; ESRCH if the pid belongs to another process. */
int quoit_copy_probe_cma(const struct quoit_copy_place *place, uint64_t value);

#endif
