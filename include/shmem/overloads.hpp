/* SPDX-License-Identifier: BSD-3-Clause */
/* shmem/overloads.hpp - for C++ what generic.h is for C11: overloads that call the routine of their type. Included by
 * shmem.h. C++11 and later.
 */
#ifndef QUOIT_SHMEM_OVERLOADS_HPP
#define QUOIT_SHMEM_OVERLOADS_HPP

/* One overload without and one with a context. P: parameters, A: the arguments made of them, each in parentheses. */
#define QUOIT_UNPACK(...) __VA_ARGS__
#define QUOIT_OVERLOAD(R, N, DEED, P, A)                                                                               \
    inline R shmem_##DEED(QUOIT_UNPACK P)                                                                              \
    {                                                                                                                  \
        return shmem_##N##_##DEED(QUOIT_UNPACK A);                                                                     \
    }
#define QUOIT_OVERLOAD_CTX(R, N, DEED, P, A)                                                                           \
    QUOIT_OVERLOAD(R, N, DEED, P, A)                                                                                   \
    inline R shmem_##DEED(shmem_ctx_t ctx, QUOIT_UNPACK P)                                                             \
    {                                                                                                                  \
        return shmem_ctx_##N##_##DEED(ctx, QUOIT_UNPACK A);                                                            \
    }

/* Remote memory access, put-with-signal and collectives. */
#define X(N, T)                                                                                                        \
    QUOIT_OVERLOAD_CTX(void, N, put, (T * dest, const T *source, size_t nelems, int pe), (dest, source, nelems, pe))   \
    QUOIT_OVERLOAD_CTX(void, N, get, (T * dest, const T *source, size_t nelems, int pe), (dest, source, nelems, pe))   \
    QUOIT_OVERLOAD_CTX(void, N, put_nbi, (T * dest, const T *source, size_t nelems, int pe),                           \
                       (dest, source, nelems, pe))                                                                     \
    QUOIT_OVERLOAD_CTX(void, N, get_nbi, (T * dest, const T *source, size_t nelems, int pe),                           \
                       (dest, source, nelems, pe))                                                                     \
    QUOIT_OVERLOAD_CTX(void, N, p, (T * dest, T value, int pe), (dest, value, pe))                                     \
    QUOIT_OVERLOAD_CTX(T, N, g, (const T *source, int pe), (source, pe))                                               \
    QUOIT_OVERLOAD_CTX(void, N, iput,                                                                                  \
                       (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),               \
                       (dest, source, dst, sst, nelems, pe))                                                           \
    QUOIT_OVERLOAD_CTX(void, N, iget,                                                                                  \
                       (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),               \
                       (dest, source, dst, sst, nelems, pe))                                                           \
    QUOIT_OVERLOAD_CTX(                                                                                                \
        void, N, ibput,                                                                                                \
        (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe),               \
        (dest, source, dst, sst, bsize, nblocks, pe))                                                                  \
    QUOIT_OVERLOAD_CTX(                                                                                                \
        void, N, ibget,                                                                                                \
        (T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe),               \
        (dest, source, dst, sst, bsize, nblocks, pe))                                                                  \
    QUOIT_OVERLOAD_CTX(                                                                                                \
        void, N, put_signal,                                                                                           \
        (T * dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe),           \
        (dest, source, nelems, sig_addr, signal, sig_op, pe))                                                          \
    QUOIT_OVERLOAD_CTX(                                                                                                \
        void, N, put_signal_nbi,                                                                                       \
        (T * dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe),           \
        (dest, source, nelems, sig_addr, signal, sig_op, pe))                                                          \
    QUOIT_OVERLOAD(int, N, alltoall, (shmem_team_t team, T * dest, const T *source, size_t nelems),                    \
                   (team, dest, source, nelems))                                                                       \
    QUOIT_OVERLOAD(int, N, collect, (shmem_team_t team, T * dest, const T *source, size_t nelems),                     \
                   (team, dest, source, nelems))                                                                       \
    QUOIT_OVERLOAD(int, N, fcollect, (shmem_team_t team, T * dest, const T *source, size_t nelems),                    \
                   (team, dest, source, nelems))                                                                       \
    QUOIT_OVERLOAD(int, N, alltoalls,                                                                                  \
                   (shmem_team_t team, T * dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems),        \
                   (team, dest, source, dst, sst, nelems))                                                             \
    QUOIT_OVERLOAD(int, N, broadcast, (shmem_team_t team, T * dest, const T *source, size_t nelems, int PE_root),      \
                   (team, dest, source, nelems, PE_root))
QUOIT_RMA_SELECT(X)
#undef X

/* Atomics. */
#define X(N, T)                                                                                                        \
    QUOIT_OVERLOAD_CTX(T, N, atomic_fetch, (const T *source, int pe), (source, pe))                                    \
    QUOIT_OVERLOAD_CTX(void, N, atomic_set, (T * dest, T value, int pe), (dest, value, pe))                            \
    QUOIT_OVERLOAD_CTX(T, N, atomic_swap, (T * dest, T value, int pe), (dest, value, pe))                              \
    QUOIT_OVERLOAD_CTX(void, N, atomic_fetch_nbi, (T * fetch, const T *source, int pe), (fetch, source, pe))           \
    QUOIT_OVERLOAD_CTX(void, N, atomic_swap_nbi, (T * fetch, T * dest, T value, int pe), (fetch, dest, value, pe))
QUOIT_AMO_EXTENDED_SELECT(X)
#undef X

#define X(N, T)                                                                                                        \
    QUOIT_OVERLOAD_CTX(T, N, atomic_compare_swap, (T * dest, T cond, T value, int pe), (dest, cond, value, pe))        \
    QUOIT_OVERLOAD_CTX(T, N, atomic_fetch_inc, (T * dest, int pe), (dest, pe))                                         \
    QUOIT_OVERLOAD_CTX(void, N, atomic_inc, (T * dest, int pe), (dest, pe))                                            \
    QUOIT_OVERLOAD_CTX(T, N, atomic_fetch_add, (T * dest, T value, int pe), (dest, value, pe))                         \
    QUOIT_OVERLOAD_CTX(void, N, atomic_add, (T * dest, T value, int pe), (dest, value, pe))                            \
    QUOIT_OVERLOAD_CTX(void, N, atomic_compare_swap_nbi, (T * fetch, T * dest, T cond, T value, int pe),               \
                       (fetch, dest, cond, value, pe))                                                                 \
    QUOIT_OVERLOAD_CTX(void, N, atomic_fetch_inc_nbi, (T * fetch, T * dest, int pe), (fetch, dest, pe))                \
    QUOIT_OVERLOAD_CTX(void, N, atomic_fetch_add_nbi, (T * fetch, T * dest, T value, int pe), (fetch, dest, value, pe))
QUOIT_AMO_SELECT(X)
#undef X

#define X(N, T)                                                                                                        \
    QUOIT_OVERLOAD_CTX(T, N, atomic_fetch_and, (T * dest, T value, int pe), (dest, value, pe))                         \
    QUOIT_OVERLOAD_CTX(void, N, atomic_and, (T * dest, T value, int pe), (dest, value, pe))                            \
    QUOIT_OVERLOAD_CTX(void, N, atomic_fetch_and_nbi, (T * fetch, T * dest, T value, int pe),                          \
                       (fetch, dest, value, pe))                                                                       \
    QUOIT_OVERLOAD_CTX(T, N, atomic_fetch_or, (T * dest, T value, int pe), (dest, value, pe))                          \
    QUOIT_OVERLOAD_CTX(void, N, atomic_or, (T * dest, T value, int pe), (dest, value, pe))                             \
    QUOIT_OVERLOAD_CTX(void, N, atomic_fetch_or_nbi, (T * fetch, T * dest, T value, int pe), (fetch, dest, value, pe)) \
    QUOIT_OVERLOAD_CTX(T, N, atomic_fetch_xor, (T * dest, T value, int pe), (dest, value, pe))                         \
    QUOIT_OVERLOAD_CTX(void, N, atomic_xor, (T * dest, T value, int pe), (dest, value, pe))                            \
    QUOIT_OVERLOAD_CTX(void, N, atomic_fetch_xor_nbi, (T * fetch, T * dest, T value, int pe), (fetch, dest, value, pe))
QUOIT_AMO_BITWISE_SELECT(X)
#undef X

/* Their names before 1.4, deprecated. */
#define X(N, T)                                                                                                        \
    QUOIT_OVERLOAD(T, N, fetch, (const T *source, int pe), (source, pe))                                               \
    QUOIT_OVERLOAD(void, N, set, (T * dest, T value, int pe), (dest, value, pe))                                       \
    QUOIT_OVERLOAD(T, N, swap, (T * dest, T value, int pe), (dest, value, pe))
QUOIT_AMO_OLD_EXTENDED_TYPES(X)
#undef X

#define X(N, T)                                                                                                        \
    QUOIT_OVERLOAD(T, N, cswap, (T * dest, T cond, T value, int pe), (dest, cond, value, pe))                          \
    QUOIT_OVERLOAD(T, N, finc, (T * dest, int pe), (dest, pe))                                                         \
    QUOIT_OVERLOAD(void, N, inc, (T * dest, int pe), (dest, pe))                                                       \
    QUOIT_OVERLOAD(T, N, fadd, (T * dest, T value, int pe), (dest, value, pe))                                         \
    QUOIT_OVERLOAD(void, N, add, (T * dest, T value, int pe), (dest, value, pe))
QUOIT_AMO_OLD_TYPES(X)
#undef X

/* Waiting. wait_until of long is a routine already. */
#define X(N, T) QUOIT_OVERLOAD(int, N, test, (T * ivar, int cmp, T cmp_value), (ivar, cmp, cmp_value))
QUOIT_P2P_SELECT(X)
#undef X

QUOIT_OVERLOAD(void, short, wait_until, (short *ivar, int cmp, short cmp_value), (ivar, cmp, cmp_value))
QUOIT_OVERLOAD(void, ushort, wait_until, (unsigned short *ivar, int cmp, unsigned short cmp_value),
               (ivar, cmp, cmp_value))
QUOIT_OVERLOAD(void, int, wait_until, (int *ivar, int cmp, int cmp_value), (ivar, cmp, cmp_value))
QUOIT_OVERLOAD(void, longlong, wait_until, (long long *ivar, int cmp, long long cmp_value), (ivar, cmp, cmp_value))
QUOIT_OVERLOAD(void, uint, wait_until, (unsigned int *ivar, int cmp, unsigned int cmp_value), (ivar, cmp, cmp_value))
QUOIT_OVERLOAD(void, ulong, wait_until, (unsigned long *ivar, int cmp, unsigned long cmp_value), (ivar, cmp, cmp_value))
QUOIT_OVERLOAD(void, ulonglong, wait_until, (unsigned long long *ivar, int cmp, unsigned long long cmp_value),
               (ivar, cmp, cmp_value))

#define X(N, T)                                                                                                        \
    QUOIT_OVERLOAD(void, N, wait_until_all, (T * ivars, size_t nelems, const int *status, int cmp, T cmp_value),       \
                   (ivars, nelems, status, cmp, cmp_value))                                                            \
    QUOIT_OVERLOAD(size_t, N, wait_until_any, (T * ivars, size_t nelems, const int *status, int cmp, T cmp_value),     \
                   (ivars, nelems, status, cmp, cmp_value))                                                            \
    QUOIT_OVERLOAD(size_t, N, wait_until_some,                                                                         \
                   (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp, T cmp_value),              \
                   (ivars, nelems, indices, status, cmp, cmp_value))                                                   \
    QUOIT_OVERLOAD(int, N, test_all, (T * ivars, size_t nelems, const int *status, int cmp, T cmp_value),              \
                   (ivars, nelems, status, cmp, cmp_value))                                                            \
    QUOIT_OVERLOAD(size_t, N, test_any, (T * ivars, size_t nelems, const int *status, int cmp, T cmp_value),           \
                   (ivars, nelems, status, cmp, cmp_value))                                                            \
    QUOIT_OVERLOAD(size_t, N, test_some,                                                                               \
                   (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp, T cmp_value),              \
                   (ivars, nelems, indices, status, cmp, cmp_value))                                                   \
    QUOIT_OVERLOAD(void, N, wait_until_all_vector,                                                                     \
                   (T * ivars, size_t nelems, const int *status, int cmp, const T *cmp_values),                        \
                   (ivars, nelems, status, cmp, cmp_values))                                                           \
    QUOIT_OVERLOAD(size_t, N, wait_until_any_vector,                                                                   \
                   (T * ivars, size_t nelems, const int *status, int cmp, const T *cmp_values),                        \
                   (ivars, nelems, status, cmp, cmp_values))                                                           \
    QUOIT_OVERLOAD(size_t, N, wait_until_some_vector,                                                                  \
                   (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp, const T *cmp_values),      \
                   (ivars, nelems, indices, status, cmp, cmp_values))                                                  \
    QUOIT_OVERLOAD(int, N, test_all_vector,                                                                            \
                   (T * ivars, size_t nelems, const int *status, int cmp, const T *cmp_values),                        \
                   (ivars, nelems, status, cmp, cmp_values))                                                           \
    QUOIT_OVERLOAD(size_t, N, test_any_vector,                                                                         \
                   (T * ivars, size_t nelems, const int *status, int cmp, const T *cmp_values),                        \
                   (ivars, nelems, status, cmp, cmp_values))                                                           \
    QUOIT_OVERLOAD(size_t, N, test_some_vector,                                                                        \
                   (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp, const T *cmp_values),      \
                   (ivars, nelems, indices, status, cmp, cmp_values))
QUOIT_P2P_SELECT(X)
#undef X

/* Reductions and scans. */
#define X(N, T)                                                                                                        \
    QUOIT_OVERLOAD(int, N, and_reduce, (shmem_team_t team, T * dest, const T *source, size_t nreduce),                 \
                   (team, dest, source, nreduce))                                                                      \
    QUOIT_OVERLOAD(int, N, or_reduce, (shmem_team_t team, T * dest, const T *source, size_t nreduce),                  \
                   (team, dest, source, nreduce))                                                                      \
    QUOIT_OVERLOAD(int, N, xor_reduce, (shmem_team_t team, T * dest, const T *source, size_t nreduce),                 \
                   (team, dest, source, nreduce))
QUOIT_REDUCE_BITWISE_SELECT(X)
#undef X

#define X(N, T)                                                                                                        \
    QUOIT_OVERLOAD(int, N, min_reduce, (shmem_team_t team, T * dest, const T *source, size_t nreduce),                 \
                   (team, dest, source, nreduce))                                                                      \
    QUOIT_OVERLOAD(int, N, max_reduce, (shmem_team_t team, T * dest, const T *source, size_t nreduce),                 \
                   (team, dest, source, nreduce))
QUOIT_REDUCE_ORDERED_SELECT(X)
#undef X

#define X(N, T)                                                                                                        \
    QUOIT_OVERLOAD(int, N, sum_reduce, (shmem_team_t team, T * dest, const T *source, size_t nreduce),                 \
                   (team, dest, source, nreduce))                                                                      \
    QUOIT_OVERLOAD(int, N, prod_reduce, (shmem_team_t team, T * dest, const T *source, size_t nreduce),                \
                   (team, dest, source, nreduce))                                                                      \
    QUOIT_OVERLOAD(int, N, sum_inscan, (shmem_team_t team, T * dest, const T *source, size_t nreduce),                 \
                   (team, dest, source, nreduce))                                                                      \
    QUOIT_OVERLOAD(int, N, sum_exscan, (shmem_team_t team, T * dest, const T *source, size_t nreduce),                 \
                   (team, dest, source, nreduce))
QUOIT_REDUCE_ARITHMETIC_SELECT(X)
#undef X

/* Programs that hold their numbers in C's complex types, which compilers know in C++ too: the same layout. */
__extension__ typedef float _Complex quoit_c_complexf;
__extension__ typedef double _Complex quoit_c_complexd;
#define QUOIT_OVERLOAD_C(N, T, DEED)                                                                                   \
    inline int shmem_##N##_##DEED(shmem_team_t team, quoit_c_##N *dest, const quoit_c_##N *source, size_t nelems)      \
    {                                                                                                                  \
        return shmem_##N##_##DEED(team, reinterpret_cast<T *>(dest), reinterpret_cast<const T *>(source), nelems);     \
    }                                                                                                                  \
    inline int shmem_##DEED(shmem_team_t team, quoit_c_##N *dest, const quoit_c_##N *source, size_t nelems)            \
    {                                                                                                                  \
        return shmem_##N##_##DEED(team, dest, source, nelems);                                                         \
    }
#define QUOIT_OVERLOAD_C_TO_ALL(N, T, DEED)                                                                            \
    inline void shmem_##N##_##DEED(quoit_c_##N *dest, const quoit_c_##N *source, int nreduce, int PE_start,            \
                                   int logPE_stride, int PE_size, quoit_c_##N *pWrk, long *pSync)                      \
    {                                                                                                                  \
        shmem_##N##_##DEED(reinterpret_cast<T *>(dest), reinterpret_cast<const T *>(source), nreduce, PE_start,        \
                           logPE_stride, PE_size, reinterpret_cast<T *>(pWrk), pSync);                                 \
    }
#define X(N, T)                                                                                                        \
    QUOIT_OVERLOAD_C(N, T, sum_reduce)                                                                                 \
    QUOIT_OVERLOAD_C(N, T, prod_reduce)                                                                                \
    QUOIT_OVERLOAD_C(N, T, sum_inscan)                                                                                 \
    QUOIT_OVERLOAD_C(N, T, sum_exscan)                                                                                 \
    QUOIT_OVERLOAD_C_TO_ALL(N, T, sum_to_all)                                                                          \
    QUOIT_OVERLOAD_C_TO_ALL(N, T, prod_to_all)
QUOIT_REDUCE_COMPLEX_TYPES(X)
#undef X

/* Names that are also routines. */
inline int shmem_sync(shmem_team_t team)
{
    return shmem_team_sync(team);
}
inline void shmem_signal_add(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)
{
    shmem_ctx_signal_add(ctx, sig_addr, signal, pe);
}
inline void shmem_signal_set(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe)
{
    shmem_ctx_signal_set(ctx, sig_addr, signal, pe);
}

#undef QUOIT_UNPACK
#undef QUOIT_OVERLOAD
#undef QUOIT_OVERLOAD_CTX
#undef QUOIT_OVERLOAD_C
#undef QUOIT_OVERLOAD_C_TO_ALL

#endif
