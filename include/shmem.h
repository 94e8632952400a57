/* SPDX-License-Identifier: BSD-3-Clause */
/* shmem.h - OpenSHMEM 1.6: a program of many processing elements (PEs) that access each other's memory.
 *
 * What it is: each PE is a process. Symmetric objects (the program's global and static variables, and memory from
 * shmem_malloc) exist on every PE; a routine names such an object by its local address, and a PE by its number. Only
 * symmetric objects are accessible on another PE; "private" below means any memory of the calling process.
 *
 * Units: counts are in elements of the routine's type, unless the routine's name ends in mem (bytes) or a size in bits.
 * Threads: as provided by shmem_init_thread. At SHMEM_THREAD_MULTIPLE any thread may call any routine, but a team takes
 * part in one collective at a time, and one thread of a PE at a time is in the first collective of an active set
 * (deprecated).
 * Errors: a wrong argument (a PE out of range, an address that is not symmetric) ends the job with a message that names
 * routine, argument, value and what is allowed; quoit explain CODE explains a message by its code. Routines that return
 * int return 0 on success. When a PE or host dies, the launcher ends the job.
 * Profiling: every routine shmem_NAME is weak, with a strong twin pshmem_NAME, so a tool can interpose (section 10).
 *
 * The type-generic forms (shmem_put for shmem_long_put, ...) are in shmem/generic.h for C11 and in shmem/overloads.hpp
 * for C++; both are included at the end. Section numbers are those of the OpenSHMEM 1.6 specification.
 */
#ifndef QUOIT_SHMEM_H
#define QUOIT_SHMEM_H

#include <shmem/types.h>
#include <shmem/shmem4py.h>
#include <shmem/version.h>

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
#define SHMEM_MAX_NAME_LEN  256
#define SHMEM_VENDOR_STRING "Quoit " QUOIT_VERSION

/* Thread levels, each including those before it. */
#define SHMEM_THREAD_SINGLE     0
#define SHMEM_THREAD_FUNNELED   1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE   3

/* Handles are integers cast to opaque pointer types, so the compiler keeps them apart; every use is checked. */
typedef struct quoit_team_handle *shmem_team_t;
typedef struct quoit_ctx_handle *shmem_ctx_t;
#define SHMEM_TEAM_INVALID ((shmem_team_t)0)
#define SHMEM_TEAM_WORLD   ((shmem_team_t)1)
#define SHMEM_TEAM_SHARED  ((shmem_team_t)2) /* the PEs of this PE's host */
#define SHMEM_CTX_INVALID  ((shmem_ctx_t)0)
#define SHMEM_CTX_DEFAULT  ((shmem_ctx_t)1)

typedef struct {
    int num_contexts;
} shmem_team_config_t;
#define SHMEM_TEAM_NUM_CONTEXTS 1L

typedef struct {
    size_t total_ops;
} shmem_ctx_session_config_t;

#define SHMEM_CTX_SERIALIZED        1L
#define SHMEM_CTX_PRIVATE           2L
#define SHMEM_CTX_NOSTORE           4L
#define SHMEM_CTX_SESSION_TOTAL_OPS 1L
#define SHMEM_CTX_SESSION_BATCH     1L

#define SHMEM_MALLOC_ATOMICS_REMOTE 1L
#define SHMEM_MALLOC_SIGNAL_REMOTE  2L

#define SHMEM_SIGNAL_SET 0
#define SHMEM_SIGNAL_ADD 1

#define SHMEM_CMP_EQ 0
#define SHMEM_CMP_NE 1
#define SHMEM_CMP_GT 2
#define SHMEM_CMP_GE 3
#define SHMEM_CMP_LT 4
#define SHMEM_CMP_LE 5

/* Sizes of the work arrays of active-set collectives, deprecated: in elements of long, and of the reduction's type. */
#define SHMEM_SYNC_VALUE              0L
#define SHMEM_SYNC_SIZE               8
#define SHMEM_BARRIER_SYNC_SIZE       SHMEM_SYNC_SIZE
#define SHMEM_BCAST_SYNC_SIZE         SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE        SHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE       SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALL_SYNC_SIZE      SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE     SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 8

#define _SHMEM_MAJOR_VERSION           SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION           SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN            SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING           SHMEM_VENDOR_STRING
#define _SHMEM_CMP_EQ                  SHMEM_CMP_EQ
#define _SHMEM_CMP_NE                  SHMEM_CMP_NE
#define _SHMEM_CMP_GT                  SHMEM_CMP_GT
#define _SHMEM_CMP_GE                  SHMEM_CMP_GE
#define _SHMEM_CMP_LT                  SHMEM_CMP_LT
#define _SHMEM_CMP_LE                  SHMEM_CMP_LE
#define _SHMEM_SYNC_VALUE              SHMEM_SYNC_VALUE
#define _SHMEM_BARRIER_SYNC_SIZE       SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_BCAST_SYNC_SIZE         SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE        SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE       SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* Declares one routine, shmem_NAME, and its profiling twin. */
#define QUOIT_ROUTINE(RETURN, NAME, PARAMETERS)                                                                        \
    RETURN shmem_##NAME PARAMETERS;                                                                                    \
    RETURN pshmem_##NAME PARAMETERS;

/* --- Set-up, exit and query (9.1), thread support (9.2) --------------------------------------------------------------
 * init returns once every PE of the job has called it. Calls nest: the library ends with the finalize that matches the
 * first init. A return from main, or exit(0), finalizes implicitly. global_exit ends the whole job with `status`, from
 * any PE and any thread, and does not return: the other PEs are ended where they are, without their exit handlers; the
 * calling process ends as by exit(status), with its handlers, destructors of static objects and streams, for which it
 * has 30 s. In an exit handler finalize and free return at once, and what waits for other PEs waits until then.
 * init_thread stores the level that it provides in *provided and returns 0. */
QUOIT_ROUTINE(void, init, (void))
QUOIT_ROUTINE(int, init_thread, (int requested, int *provided))
QUOIT_ROUTINE(void, query_thread, (int *provided))
QUOIT_ROUTINE(void, query_initialized, (int *initialized))
QUOIT_ROUTINE(void, finalize, (void))
QUOIT_ROUTINE(__attribute__((noreturn)) void, global_exit, (int status))
QUOIT_ROUTINE(int, my_pe, (void))
QUOIT_ROUTINE(int, n_pes, (void))
/* The accessible queries return 1 for yes, 0 for no. ptr returns the local address through which this PE may load and
 * store `dest` of that PE, or NULL if that PE is on another host or `dest` is not symmetric. `name` has room for
 * SHMEM_MAX_NAME_LEN bytes. pcontrol (section 10) is for profiling tools; the library ignores it. */
QUOIT_ROUTINE(int, pe_accessible, (int pe))
QUOIT_ROUTINE(int, addr_accessible, (const void *addr, int pe))
QUOIT_ROUTINE(void *, ptr, (const void *dest, int pe))
QUOIT_ROUTINE(void, info_get_version, (int *major, int *minor))
QUOIT_ROUTINE(void, info_get_name, (char *name))
QUOIT_ROUTINE(void, pcontrol, (int level, ...))

/* --- Symmetric heap (9.3) --------------------------------------------------------------------------------------------
 * Collective over all PEs with the same arguments. Blocks have at least `size` bytes and are aligned to 64. The result
 * is NULL, on all PEs, when size is 0, when the heap's limit (SHMEM_SYMMETRIC_SIZE) or the machine's memory is
 * exhausted, or when the alignment is not a power of two (undefined in the specification; --check reports it). The
 * caller owns the block until free. Routines that allocate end with a barrier; those that free begin with one. */
QUOIT_ROUTINE(void *, malloc, (size_t size))
QUOIT_ROUTINE(void *, calloc, (size_t count, size_t size))
QUOIT_ROUTINE(void *, align, (size_t alignment, size_t size))
QUOIT_ROUTINE(void *, malloc_with_hints, (size_t size, long hints))
QUOIT_ROUTINE(void *, realloc, (void *ptr, size_t size))
QUOIT_ROUTINE(void, free, (void *ptr))

/* --- Teams (9.4) -----------------------------------------------------------------------------------------------------
 * my_pe, n_pes and translate_pe are local; they return -1 for SHMEM_TEAM_INVALID, and translate_pe also for a PE that
 * is not in dest_team. The splits are collective over the parent team and give SHMEM_TEAM_INVALID to PEs outside the
 * new team. team_ptr (9.1) is ptr with a PE of a team; team_sync (9.10) is a barrier that completes no memory updates.
 */
QUOIT_ROUTINE(int, team_my_pe, (shmem_team_t team))
QUOIT_ROUTINE(int, team_n_pes, (shmem_team_t team))
QUOIT_ROUTINE(int, team_get_config, (shmem_team_t team, long config_mask, shmem_team_config_t *config))
QUOIT_ROUTINE(int, team_translate_pe, (shmem_team_t src_team, int src_pe, shmem_team_t dest_team))
QUOIT_ROUTINE(void *, team_ptr, (shmem_team_t team, const void *dest, int pe))
QUOIT_ROUTINE(int, team_split_strided,
              (shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t *config,
               long config_mask, shmem_team_t *new_team))
QUOIT_ROUTINE(int, team_split_2d,
              (shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask,
               shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, long yaxis_mask,
               shmem_team_t *yaxis_team))
QUOIT_ROUTINE(void, team_destroy, (shmem_team_t team))
QUOIT_ROUTINE(int, team_sync, (shmem_team_t team))

/* --- Contexts (9.5) and sessions (9.9) -------------------------------------------------------------------------------
 * A context is a stream of operations with its own fence and quiet; its PE numbers are those of its team. All routines
 * are local. create returns non-zero and SHMEM_CTX_INVALID when no context is left. destroy completes the context's
 * operations. A session is a hint, which this library ignores. */
QUOIT_ROUTINE(int, ctx_create, (long options, shmem_ctx_t *ctx))
QUOIT_ROUTINE(int, team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t *ctx))
QUOIT_ROUTINE(void, ctx_destroy, (shmem_ctx_t ctx))
QUOIT_ROUTINE(int, ctx_get_team, (shmem_ctx_t ctx, shmem_team_t *team))
QUOIT_ROUTINE(void, ctx_session_start,
              (shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config, long config_mask))
QUOIT_ROUTINE(void, ctx_session_stop, (shmem_ctx_t ctx))

/* A routine without and with a context. The variadic arguments are the parameters that follow the context. */
#define QUOIT_WITH_CTX(RETURN, NAME, ...)                                                                              \
    QUOIT_ROUTINE(RETURN, NAME, (__VA_ARGS__))                                                                         \
    QUOIT_ROUTINE(RETURN, ctx_##NAME, (shmem_ctx_t ctx, __VA_ARGS__))

/* --- Remote memory access (9.6) --------------------------------------------------------------------------------------
 * put copies private `source` to symmetric `dest` on `pe` and returns when source may be reused; the data is delivered
 * by the next quiet. get copies symmetric `source` on `pe` to private `dest` and returns with the data. The _nbi forms
 * return at once and complete by the next quiet: until then source must not change, and dest is undefined. iput and
 * iget copy elements that are dst and sst elements apart; ibput and ibget copy blocks of bsize elements. p and g copy
 * one element by value. */
#define X(NAME, TYPE)                                                                                                  \
    QUOIT_WITH_CTX(void, NAME##_put, TYPE *dest, const TYPE *source, size_t nelems, int pe)                            \
    QUOIT_WITH_CTX(void, NAME##_get, TYPE *dest, const TYPE *source, size_t nelems, int pe)                            \
    QUOIT_WITH_CTX(void, NAME##_put_nbi, TYPE *dest, const TYPE *source, size_t nelems, int pe)                        \
    QUOIT_WITH_CTX(void, NAME##_get_nbi, TYPE *dest, const TYPE *source, size_t nelems, int pe)                        \
    QUOIT_WITH_CTX(void, NAME##_p, TYPE *dest, TYPE value, int pe)                                                     \
    QUOIT_WITH_CTX(TYPE, NAME##_g, const TYPE *source, int pe)                                                         \
    QUOIT_WITH_CTX(void, NAME##_iput, TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,     \
                   int pe)                                                                                             \
    QUOIT_WITH_CTX(void, NAME##_iget, TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,     \
                   int pe)                                                                                             \
    QUOIT_WITH_CTX(void, NAME##_ibput, TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,     \
                   size_t nblocks, int pe)                                                                             \
    QUOIT_WITH_CTX(void, NAME##_ibget, TYPE *dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,     \
                   size_t nblocks, int pe)
QUOIT_RMA_TYPES(X)
#undef X
#define X(BITS, BYTES)                                                                                                 \
    QUOIT_WITH_CTX(void, put##BITS, void *dest, const void *source, size_t nelems, int pe)                             \
    QUOIT_WITH_CTX(void, get##BITS, void *dest, const void *source, size_t nelems, int pe)                             \
    QUOIT_WITH_CTX(void, put##BITS##_nbi, void *dest, const void *source, size_t nelems, int pe)                       \
    QUOIT_WITH_CTX(void, get##BITS##_nbi, void *dest, const void *source, size_t nelems, int pe)                       \
    QUOIT_WITH_CTX(void, iput##BITS, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,      \
                   int pe)                                                                                             \
    QUOIT_WITH_CTX(void, iget##BITS, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,      \
                   int pe)                                                                                             \
    QUOIT_WITH_CTX(void, ibput##BITS, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,      \
                   size_t nblocks, int pe)                                                                             \
    QUOIT_WITH_CTX(void, ibget##BITS, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,      \
                   size_t nblocks, int pe)
QUOIT_RMA_SIZES(X)
#undef X
QUOIT_WITH_CTX(void, putmem, void *dest, const void *source, size_t nelems, int pe)
QUOIT_WITH_CTX(void, getmem, void *dest, const void *source, size_t nelems, int pe)
QUOIT_WITH_CTX(void, putmem_nbi, void *dest, const void *source, size_t nelems, int pe)
QUOIT_WITH_CTX(void, getmem_nbi, void *dest, const void *source, size_t nelems, int pe)

/* --- Atomics (9.7) ---------------------------------------------------------------------------------------------------
 * One atomic operation on a symmetric object of `pe`, atomic with respect to other atomics of the same type on it. The
 * fetching forms return the old value; with _nbi they store it at private `fetch` by the next quiet. The others
 * complete by the next quiet. Objects are aligned to their size. */
#define X(NAME, TYPE)                                                                                                  \
    QUOIT_WITH_CTX(TYPE, NAME##_atomic_fetch, const TYPE *source, int pe)                                              \
    QUOIT_WITH_CTX(void, NAME##_atomic_set, TYPE *dest, TYPE value, int pe)                                            \
    QUOIT_WITH_CTX(TYPE, NAME##_atomic_swap, TYPE *dest, TYPE value, int pe)                                           \
    QUOIT_WITH_CTX(void, NAME##_atomic_fetch_nbi, TYPE *fetch, const TYPE *source, int pe)                             \
    QUOIT_WITH_CTX(void, NAME##_atomic_swap_nbi, TYPE *fetch, TYPE *dest, TYPE value, int pe)
QUOIT_AMO_EXTENDED_TYPES(X)
#undef X
#define X(NAME, TYPE)                                                                                                  \
    QUOIT_WITH_CTX(TYPE, NAME##_atomic_compare_swap, TYPE *dest, TYPE cond, TYPE value, int pe)                        \
    QUOIT_WITH_CTX(TYPE, NAME##_atomic_fetch_inc, TYPE *dest, int pe)                                                  \
    QUOIT_WITH_CTX(void, NAME##_atomic_inc, TYPE *dest, int pe)                                                        \
    QUOIT_WITH_CTX(TYPE, NAME##_atomic_fetch_add, TYPE *dest, TYPE value, int pe)                                      \
    QUOIT_WITH_CTX(void, NAME##_atomic_add, TYPE *dest, TYPE value, int pe)                                            \
    QUOIT_WITH_CTX(void, NAME##_atomic_compare_swap_nbi, TYPE *fetch, TYPE *dest, TYPE cond, TYPE value, int pe)       \
    QUOIT_WITH_CTX(void, NAME##_atomic_fetch_inc_nbi, TYPE *fetch, TYPE *dest, int pe)                                 \
    QUOIT_WITH_CTX(void, NAME##_atomic_fetch_add_nbi, TYPE *fetch, TYPE *dest, TYPE value, int pe)
QUOIT_AMO_TYPES(X)
#undef X
#define X(NAME, TYPE)                                                                                                  \
    QUOIT_WITH_CTX(TYPE, NAME##_atomic_fetch_and, TYPE *dest, TYPE value, int pe)                                      \
    QUOIT_WITH_CTX(void, NAME##_atomic_and, TYPE *dest, TYPE value, int pe)                                            \
    QUOIT_WITH_CTX(TYPE, NAME##_atomic_fetch_or, TYPE *dest, TYPE value, int pe)                                       \
    QUOIT_WITH_CTX(void, NAME##_atomic_or, TYPE *dest, TYPE value, int pe)                                             \
    QUOIT_WITH_CTX(TYPE, NAME##_atomic_fetch_xor, TYPE *dest, TYPE value, int pe)                                      \
    QUOIT_WITH_CTX(void, NAME##_atomic_xor, TYPE *dest, TYPE value, int pe)                                            \
    QUOIT_WITH_CTX(void, NAME##_atomic_fetch_and_nbi, TYPE *fetch, TYPE *dest, TYPE value, int pe)                     \
    QUOIT_WITH_CTX(void, NAME##_atomic_fetch_or_nbi, TYPE *fetch, TYPE *dest, TYPE value, int pe)                      \
    QUOIT_WITH_CTX(void, NAME##_atomic_fetch_xor_nbi, TYPE *fetch, TYPE *dest, TYPE value, int pe)
QUOIT_AMO_BITWISE_TYPES(X)
#undef X
/* The names before OpenSHMEM 1.4, deprecated. */
#define X(NAME, TYPE)                                                                                                  \
    QUOIT_ROUTINE(TYPE, NAME##_fetch, (const TYPE *source, int pe))                                                    \
    QUOIT_ROUTINE(void, NAME##_set, (TYPE * dest, TYPE value, int pe))                                                 \
    QUOIT_ROUTINE(TYPE, NAME##_swap, (TYPE * dest, TYPE value, int pe))
QUOIT_AMO_OLD_EXTENDED_TYPES(X)
#undef X
#define X(NAME, TYPE)                                                                                                  \
    QUOIT_ROUTINE(TYPE, NAME##_cswap, (TYPE * dest, TYPE cond, TYPE value, int pe))                                    \
    QUOIT_ROUTINE(TYPE, NAME##_finc, (TYPE * dest, int pe))                                                            \
    QUOIT_ROUTINE(void, NAME##_inc, (TYPE * dest, int pe))                                                             \
    QUOIT_ROUTINE(TYPE, NAME##_fadd, (TYPE * dest, TYPE value, int pe))                                                \
    QUOIT_ROUTINE(void, NAME##_add, (TYPE * dest, TYPE value, int pe))
QUOIT_AMO_OLD_TYPES(X)
#undef X

/* --- Signals (9.8) ---------------------------------------------------------------------------------------------------
 * put_signal is a put followed by an update (SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD) of the 64-bit word sig_addr on the
 * same PE: a PE that sees the update sees the data. signal_fetch reads this PE's own word. signal_wait_until (9.11)
 * returns the value that satisfied the comparison. */
#define QUOIT_SIGNAL_PARAMETERS(TYPE)                                                                                  \
    TYPE *dest, const TYPE *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe
#define X(NAME, TYPE)                                                                                                  \
    QUOIT_WITH_CTX(void, NAME##_put_signal, QUOIT_SIGNAL_PARAMETERS(TYPE))                                             \
    QUOIT_WITH_CTX(void, NAME##_put_signal_nbi, QUOIT_SIGNAL_PARAMETERS(TYPE))
QUOIT_RMA_TYPES(X)
#undef X
#define X(BITS, BYTES)                                                                                                 \
    QUOIT_WITH_CTX(void, put##BITS##_signal, QUOIT_SIGNAL_PARAMETERS(void))                                            \
    QUOIT_WITH_CTX(void, put##BITS##_signal_nbi, QUOIT_SIGNAL_PARAMETERS(void))
QUOIT_RMA_SIZES(X)
#undef X
QUOIT_WITH_CTX(void, putmem_signal, QUOIT_SIGNAL_PARAMETERS(void))
QUOIT_WITH_CTX(void, putmem_signal_nbi, QUOIT_SIGNAL_PARAMETERS(void))
QUOIT_WITH_CTX(void, signal_add, uint64_t *sig_addr, uint64_t signal, int pe)
QUOIT_WITH_CTX(void, signal_set, uint64_t *sig_addr, uint64_t signal, int pe)
QUOIT_ROUTINE(uint64_t, signal_fetch, (const uint64_t *sig_addr))
QUOIT_ROUTINE(uint64_t, signal_wait_until, (uint64_t * sig_addr, int cmp, uint64_t cmp_value))

/* --- Point-to-point synchronization (9.11) ---------------------------------------------------------------------------
 * wait_until blocks (spins briefly, then sleeps) until `ivar CMP cmp_value` holds for a local symmetric object; test
 * evaluates it once. The forms over nelems objects skip those whose status[i] is not 0 (status may be NULL). _all waits
 * for all of them; _any returns the index of one that holds, SIZE_MAX if there is none; _some stores the indices of
 * those that hold and returns their number; _vector compares object i with cmp_values[i]. */
#define X(NAME, TYPE)                                                                                                  \
    QUOIT_ROUTINE(void, NAME##_wait_until, (TYPE * ivar, int cmp, TYPE cmp_value))                                     \
    QUOIT_ROUTINE(int, NAME##_test, (TYPE * ivar, int cmp, TYPE cmp_value))
QUOIT_P2P_TYPES(X)
#undef X
#define QUOIT_P2P_FORMS(NAME, TYPE, FORM, VALUES)                                                                      \
    QUOIT_ROUTINE(void, NAME##_wait_until_all##FORM,                                                                   \
                  (TYPE * ivars, size_t nelems, const int *status, int cmp, VALUES))                                   \
    QUOIT_ROUTINE(size_t, NAME##_wait_until_any##FORM,                                                                 \
                  (TYPE * ivars, size_t nelems, const int *status, int cmp, VALUES))                                   \
    QUOIT_ROUTINE(size_t, NAME##_wait_until_some##FORM,                                                                \
                  (TYPE * ivars, size_t nelems, size_t * indices, const int *status, int cmp, VALUES))                 \
    QUOIT_ROUTINE(int, NAME##_test_all##FORM, (TYPE * ivars, size_t nelems, const int *status, int cmp, VALUES))       \
    QUOIT_ROUTINE(size_t, NAME##_test_any##FORM, (TYPE * ivars, size_t nelems, const int *status, int cmp, VALUES))    \
    QUOIT_ROUTINE(size_t, NAME##_test_some##FORM,                                                                      \
                  (TYPE * ivars, size_t nelems, size_t * indices, const int *status, int cmp, VALUES))
#define X(NAME, TYPE)                                                                                                  \
    QUOIT_P2P_FORMS(NAME, TYPE, , TYPE cmp_value)                                                                      \
    QUOIT_P2P_FORMS(NAME, TYPE, _vector, const TYPE *cmp_values)
QUOIT_P2P_TYPES(X)
#undef X
#undef QUOIT_P2P_FORMS
/* wait blocks while the object has the value. Deprecated, as are the forms for long without a type name. */
#define X(NAME, TYPE) QUOIT_ROUTINE(void, NAME##_wait, (TYPE * ivar, TYPE cmp_value))
QUOIT_WAIT_TYPES(X)
#undef X
QUOIT_ROUTINE(void, wait_until, (long *ivar, int cmp, long cmp_value))
QUOIT_ROUTINE(void, wait, (long *ivar, long cmp_value))

/* --- Memory ordering (9.12) ------------------------------------------------------------------------------------------
 * fence orders the puts, atomics and signals of a context to each PE: earlier ones are delivered before later ones.
 * quiet returns when all operations of the context are complete; pe_quiet does so for the given PEs. Without ctx: the
 * default context. */
QUOIT_ROUTINE(void, fence, (void))
QUOIT_ROUTINE(void, ctx_fence, (shmem_ctx_t ctx))
QUOIT_ROUTINE(void, quiet, (void))
QUOIT_ROUTINE(void, ctx_quiet, (shmem_ctx_t ctx))
QUOIT_WITH_CTX(void, pe_quiet, const int *target_pes, size_t npes)

/* --- Distributed locks (9.13) ----------------------------------------------------------------------------------------
 * `lock` is a symmetric long, initially 0, that serves as one mutex for the whole job, granted in order of request.
 * clear first completes the holder's operations. test returns 0 if it acquired the lock, 1 if another PE holds it. */
QUOIT_ROUTINE(void, set_lock, (long *lock))
QUOIT_ROUTINE(void, clear_lock, (long *lock))
QUOIT_ROUTINE(int, test_lock, (long *lock))

/* --- Collectives of teams (9.10) -------------------------------------------------------------------------------------
 * All PEs of the team call them in the same order; dest and source are symmetric. barrier_all is quiet plus sync_all.
 * broadcast copies PE_root's source to every dest. collect concatenates the sources, whose sizes may differ; fcollect
 * those of equal size. alltoall: block j of source goes to PE j, block i of dest comes from PE i; alltoalls adds
 * strides in elements. NAME_OP_reduce combines all sources elementwise into every dest, which may be source. inscan and
 * exscan are the prefix sums over PEs 0..me and 0..me-1. */
QUOIT_ROUTINE(void, barrier_all, (void))
QUOIT_ROUTINE(void, sync_all, (void))
#define QUOIT_COLLECTIVES(NAME, TYPE)                                                                                  \
    QUOIT_ROUTINE(int, NAME##alltoall, (shmem_team_t team, TYPE * dest, const TYPE *source, size_t nelems))            \
    QUOIT_ROUTINE(int, NAME##alltoalls,                                                                                \
                  (shmem_team_t team, TYPE * dest, const TYPE *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems))   \
    QUOIT_ROUTINE(int, NAME##broadcast,                                                                                \
                  (shmem_team_t team, TYPE * dest, const TYPE *source, size_t nelems, int PE_root))                    \
    QUOIT_ROUTINE(int, NAME##collect, (shmem_team_t team, TYPE * dest, const TYPE *source, size_t nelems))             \
    QUOIT_ROUTINE(int, NAME##fcollect, (shmem_team_t team, TYPE * dest, const TYPE *source, size_t nelems))
#define X(NAME, TYPE) QUOIT_COLLECTIVES(NAME##_, TYPE)
QUOIT_RMA_TYPES(X)
#undef X
#undef QUOIT_COLLECTIVES
QUOIT_ROUTINE(int, alltoallmem, (shmem_team_t team, void *dest, const void *source, size_t nelems))
QUOIT_ROUTINE(int, alltoallsmem,
              (shmem_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems))
QUOIT_ROUTINE(int, broadcastmem, (shmem_team_t team, void *dest, const void *source, size_t nelems, int PE_root))
QUOIT_ROUTINE(int, collectmem, (shmem_team_t team, void *dest, const void *source, size_t nelems))
QUOIT_ROUTINE(int, fcollectmem, (shmem_team_t team, void *dest, const void *source, size_t nelems))
#define QUOIT_REDUCE(NAME, TYPE, OP)                                                                                   \
    QUOIT_ROUTINE(int, NAME##OP, (shmem_team_t team, TYPE * dest, const TYPE *source, size_t nreduce))
#define X(NAME, TYPE)                                                                                                  \
    QUOIT_REDUCE(NAME, TYPE, _and_reduce) QUOIT_REDUCE(NAME, TYPE, _or_reduce) QUOIT_REDUCE(NAME, TYPE, _xor_reduce)
QUOIT_REDUCE_BITWISE_TYPES(X)
#undef X
#define X(NAME, TYPE) QUOIT_REDUCE(NAME, TYPE, _min_reduce) QUOIT_REDUCE(NAME, TYPE, _max_reduce)
QUOIT_REDUCE_ORDERED_TYPES(X)
#undef X
#define X(NAME, TYPE)                                                                                                  \
    QUOIT_REDUCE(NAME, TYPE, _sum_reduce)                                                                              \
    QUOIT_REDUCE(NAME, TYPE, _prod_reduce)                                                                             \
    QUOIT_REDUCE(NAME, TYPE, _sum_inscan)                                                                              \
    QUOIT_REDUCE(NAME, TYPE, _sum_exscan)
QUOIT_REDUCE_ARITHMETIC_TYPES(X)
#undef X
#undef QUOIT_REDUCE

/* --- Collectives of active sets (9.10), deprecated -------------------------------------------------------------------
 * The set is PE_start, PE_start + 2^logPE_stride, ... (PE_size PEs). pSync is a symmetric array of SHMEM_*_SYNC_SIZE
 * longs, all SHMEM_SYNC_VALUE, that no other call uses meanwhile; it has that value again on return. pWrk is not used.
 */
#define QUOIT_ACTIVE_SET int PE_start, int logPE_stride, int PE_size
QUOIT_ROUTINE(void, barrier, (QUOIT_ACTIVE_SET, long *pSync))
QUOIT_ROUTINE(void, sync, (QUOIT_ACTIVE_SET, long *pSync))
#define X(BITS)                                                                                                        \
    QUOIT_ROUTINE(void, broadcast##BITS,                                                                               \
                  (void *dest, const void *source, size_t nelems, int PE_root, QUOIT_ACTIVE_SET, long *pSync))         \
    QUOIT_ROUTINE(void, collect##BITS, (void *dest, const void *source, size_t nelems, QUOIT_ACTIVE_SET, long *pSync)) \
    QUOIT_ROUTINE(void, fcollect##BITS,                                                                                \
                  (void *dest, const void *source, size_t nelems, QUOIT_ACTIVE_SET, long *pSync))                      \
    QUOIT_ROUTINE(void, alltoall##BITS,                                                                                \
                  (void *dest, const void *source, size_t nelems, QUOIT_ACTIVE_SET, long *pSync))                      \
    QUOIT_ROUTINE(                                                                                                     \
        void, alltoalls##BITS,                                                                                         \
        (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, QUOIT_ACTIVE_SET, long *pSync))
X(32)
X(64)
#undef X
#define QUOIT_TO_ALL(NAME, TYPE, OP)                                                                                   \
    QUOIT_ROUTINE(void, NAME##OP,                                                                                      \
                  (TYPE * dest, const TYPE *source, int nreduce, QUOIT_ACTIVE_SET, TYPE *pWrk, long *pSync))
#define X(NAME, TYPE)                                                                                                  \
    QUOIT_TO_ALL(NAME, TYPE, _and_to_all) QUOIT_TO_ALL(NAME, TYPE, _or_to_all) QUOIT_TO_ALL(NAME, TYPE, _xor_to_all)
QUOIT_TO_ALL_BITWISE_TYPES(X)
#undef X
#define X(NAME, TYPE) QUOIT_TO_ALL(NAME, TYPE, _min_to_all) QUOIT_TO_ALL(NAME, TYPE, _max_to_all)
QUOIT_TO_ALL_ORDERED_TYPES(X)
#undef X
#define X(NAME, TYPE) QUOIT_TO_ALL(NAME, TYPE, _sum_to_all) QUOIT_TO_ALL(NAME, TYPE, _prod_to_all)
QUOIT_TO_ALL_ARITHMETIC_TYPES(X)
#undef X
#undef QUOIT_TO_ALL

/* --- Names without the shmem_ prefix (9.1, annex E), deprecated ------------------------------------------------------
 *
 */
void start_pes(int npes);
int _my_pe(void);
int _num_pes(void);
void *shmalloc(size_t size);
void shfree(void *ptr);
void *shrealloc(void *ptr, size_t size);
void *shmemalign(size_t alignment, size_t size);

#undef QUOIT_ROUTINE
#undef QUOIT_WITH_CTX
#undef QUOIT_SIGNAL_PARAMETERS
#undef QUOIT_ACTIVE_SET
#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#ifndef QUOIT_WITHOUT_GENERICS
#ifdef __cplusplus
#include <shmem/overloads.hpp>
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#include <shmem/generic.h>
#endif
#endif

#endif
