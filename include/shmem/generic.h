/* SPDX-License-Identifier: BSD-3-Clause */
/* shmem/generic.h - the type-generic routines of C11, selected by the type of the first data argument. Included by
 * shmem.h.
 *
 * The context of a routine that takes one is optional and comes first. A type that the specification does not list is a
 * compile-time error: "not compatible with any generic association" or, with a context, "called object is not a
 * function".
 */
#ifndef QUOIT_SHMEM_GENERIC_H
#define QUOIT_SHMEM_GENERIC_H

#define QUOIT_FIRST_(A, ...)     A
#define QUOIT_FIRST(...)         QUOIT_FIRST_(__VA_ARGS__, 0)
#define QUOIT_SECOND_(A, B, ...) B
#define QUOIT_SECOND(...)        QUOIT_SECOND_(__VA_ARGS__, 0, 0)

/* TABLE is a table of types.h; ROW is the macro that makes an association from one row. */
#define QUOIT_SELECT(TABLE, ROW, ...)      _Generic(QUOIT_FIRST(__VA_ARGS__), TABLE(ROW) shmem_ctx_t : 0)(__VA_ARGS__)
#define QUOIT_SELECT_TEAM(TABLE, ROW, ...) _Generic(QUOIT_SECOND(__VA_ARGS__), TABLE(ROW) shmem_ctx_t : 0)(__VA_ARGS__)
#define QUOIT_SELECT_CTX(TABLE, ROW, ROW_CTX, ...)                                                                     \
    _Generic(QUOIT_FIRST(__VA_ARGS__), TABLE(ROW) shmem_ctx_t                                                          \
             : _Generic(QUOIT_SECOND(__VA_ARGS__), TABLE(ROW_CTX) default : 0))(__VA_ARGS__)

/* Remote memory access and put-with-signal. */
#define QUOIT_ROW_put(N, T)            T * : shmem_##N##_put,
#define QUOIT_ROW_ctx_put(N, T)        T * : shmem_ctx_##N##_put,
#define shmem_put(...)                 QUOIT_SELECT_CTX(QUOIT_RMA_SELECT, QUOIT_ROW_put, QUOIT_ROW_ctx_put, __VA_ARGS__)
#define QUOIT_ROW_get(N, T)            T * : shmem_##N##_get,
#define QUOIT_ROW_ctx_get(N, T)        T * : shmem_ctx_##N##_get,
#define shmem_get(...)                 QUOIT_SELECT_CTX(QUOIT_RMA_SELECT, QUOIT_ROW_get, QUOIT_ROW_ctx_get, __VA_ARGS__)
#define QUOIT_ROW_put_nbi(N, T)        T * : shmem_##N##_put_nbi,
#define QUOIT_ROW_ctx_put_nbi(N, T)    T * : shmem_ctx_##N##_put_nbi,
#define shmem_put_nbi(...)             QUOIT_SELECT_CTX(QUOIT_RMA_SELECT, QUOIT_ROW_put_nbi, QUOIT_ROW_ctx_put_nbi, __VA_ARGS__)
#define QUOIT_ROW_get_nbi(N, T)        T * : shmem_##N##_get_nbi,
#define QUOIT_ROW_ctx_get_nbi(N, T)    T * : shmem_ctx_##N##_get_nbi,
#define shmem_get_nbi(...)             QUOIT_SELECT_CTX(QUOIT_RMA_SELECT, QUOIT_ROW_get_nbi, QUOIT_ROW_ctx_get_nbi, __VA_ARGS__)
#define QUOIT_ROW_p(N, T)              T * : shmem_##N##_p,
#define QUOIT_ROW_ctx_p(N, T)          T * : shmem_ctx_##N##_p,
#define shmem_p(...)                   QUOIT_SELECT_CTX(QUOIT_RMA_SELECT, QUOIT_ROW_p, QUOIT_ROW_ctx_p, __VA_ARGS__)
#define QUOIT_ROW_iput(N, T)           T * : shmem_##N##_iput,
#define QUOIT_ROW_ctx_iput(N, T)       T * : shmem_ctx_##N##_iput,
#define shmem_iput(...)                QUOIT_SELECT_CTX(QUOIT_RMA_SELECT, QUOIT_ROW_iput, QUOIT_ROW_ctx_iput, __VA_ARGS__)
#define QUOIT_ROW_iget(N, T)           T * : shmem_##N##_iget,
#define QUOIT_ROW_ctx_iget(N, T)       T * : shmem_ctx_##N##_iget,
#define shmem_iget(...)                QUOIT_SELECT_CTX(QUOIT_RMA_SELECT, QUOIT_ROW_iget, QUOIT_ROW_ctx_iget, __VA_ARGS__)
#define QUOIT_ROW_ibput(N, T)          T * : shmem_##N##_ibput,
#define QUOIT_ROW_ctx_ibput(N, T)      T * : shmem_ctx_##N##_ibput,
#define shmem_ibput(...)               QUOIT_SELECT_CTX(QUOIT_RMA_SELECT, QUOIT_ROW_ibput, QUOIT_ROW_ctx_ibput, __VA_ARGS__)
#define QUOIT_ROW_ibget(N, T)          T * : shmem_##N##_ibget,
#define QUOIT_ROW_ctx_ibget(N, T)      T * : shmem_ctx_##N##_ibget,
#define shmem_ibget(...)               QUOIT_SELECT_CTX(QUOIT_RMA_SELECT, QUOIT_ROW_ibget, QUOIT_ROW_ctx_ibget, __VA_ARGS__)
#define QUOIT_ROW_put_signal(N, T)     T * : shmem_##N##_put_signal,
#define QUOIT_ROW_ctx_put_signal(N, T) T * : shmem_ctx_##N##_put_signal,
#define shmem_put_signal(...)                                                                                          \
    QUOIT_SELECT_CTX(QUOIT_RMA_SELECT, QUOIT_ROW_put_signal, QUOIT_ROW_ctx_put_signal, __VA_ARGS__)
#define QUOIT_ROW_put_signal_nbi(N, T)     T * : shmem_##N##_put_signal_nbi,
#define QUOIT_ROW_ctx_put_signal_nbi(N, T) T * : shmem_ctx_##N##_put_signal_nbi,
#define shmem_put_signal_nbi(...)                                                                                      \
    QUOIT_SELECT_CTX(QUOIT_RMA_SELECT, QUOIT_ROW_put_signal_nbi, QUOIT_ROW_ctx_put_signal_nbi, __VA_ARGS__)
#define QUOIT_ROW_g(N, T)     T * : shmem_##N##_g, const T * : shmem_##N##_g,
#define QUOIT_ROW_ctx_g(N, T) T * : shmem_ctx_##N##_g, const T * : shmem_ctx_##N##_g,
#define shmem_g(...)          QUOIT_SELECT_CTX(QUOIT_RMA_SELECT, QUOIT_ROW_g, QUOIT_ROW_ctx_g, __VA_ARGS__)

/* Atomics. */
#define QUOIT_ROW_atomic_fetch(N, T)     T * : shmem_##N##_atomic_fetch, const T * : shmem_##N##_atomic_fetch,
#define QUOIT_ROW_ctx_atomic_fetch(N, T) T * : shmem_ctx_##N##_atomic_fetch, const T * : shmem_ctx_##N##_atomic_fetch,
#define shmem_atomic_fetch(...)                                                                                        \
    QUOIT_SELECT_CTX(QUOIT_AMO_EXTENDED_SELECT, QUOIT_ROW_atomic_fetch, QUOIT_ROW_ctx_atomic_fetch, __VA_ARGS__)
#define QUOIT_ROW_atomic_set(N, T)     T * : shmem_##N##_atomic_set,
#define QUOIT_ROW_ctx_atomic_set(N, T) T * : shmem_ctx_##N##_atomic_set,
#define shmem_atomic_set(...)                                                                                          \
    QUOIT_SELECT_CTX(QUOIT_AMO_EXTENDED_SELECT, QUOIT_ROW_atomic_set, QUOIT_ROW_ctx_atomic_set, __VA_ARGS__)
#define QUOIT_ROW_atomic_swap(N, T)     T * : shmem_##N##_atomic_swap,
#define QUOIT_ROW_ctx_atomic_swap(N, T) T * : shmem_ctx_##N##_atomic_swap,
#define shmem_atomic_swap(...)                                                                                         \
    QUOIT_SELECT_CTX(QUOIT_AMO_EXTENDED_SELECT, QUOIT_ROW_atomic_swap, QUOIT_ROW_ctx_atomic_swap, __VA_ARGS__)
#define QUOIT_ROW_atomic_fetch_nbi(N, T)     T * : shmem_##N##_atomic_fetch_nbi,
#define QUOIT_ROW_ctx_atomic_fetch_nbi(N, T) T * : shmem_ctx_##N##_atomic_fetch_nbi,
#define shmem_atomic_fetch_nbi(...)                                                                                    \
    QUOIT_SELECT_CTX(QUOIT_AMO_EXTENDED_SELECT, QUOIT_ROW_atomic_fetch_nbi, QUOIT_ROW_ctx_atomic_fetch_nbi, __VA_ARGS__)
#define QUOIT_ROW_atomic_swap_nbi(N, T)     T * : shmem_##N##_atomic_swap_nbi,
#define QUOIT_ROW_ctx_atomic_swap_nbi(N, T) T * : shmem_ctx_##N##_atomic_swap_nbi,
#define shmem_atomic_swap_nbi(...)                                                                                     \
    QUOIT_SELECT_CTX(QUOIT_AMO_EXTENDED_SELECT, QUOIT_ROW_atomic_swap_nbi, QUOIT_ROW_ctx_atomic_swap_nbi, __VA_ARGS__)
#define QUOIT_ROW_atomic_compare_swap(N, T)     T * : shmem_##N##_atomic_compare_swap,
#define QUOIT_ROW_ctx_atomic_compare_swap(N, T) T * : shmem_ctx_##N##_atomic_compare_swap,
#define shmem_atomic_compare_swap(...)                                                                                 \
    QUOIT_SELECT_CTX(QUOIT_AMO_SELECT, QUOIT_ROW_atomic_compare_swap, QUOIT_ROW_ctx_atomic_compare_swap, __VA_ARGS__)
#define QUOIT_ROW_atomic_fetch_inc(N, T)     T * : shmem_##N##_atomic_fetch_inc,
#define QUOIT_ROW_ctx_atomic_fetch_inc(N, T) T * : shmem_ctx_##N##_atomic_fetch_inc,
#define shmem_atomic_fetch_inc(...)                                                                                    \
    QUOIT_SELECT_CTX(QUOIT_AMO_SELECT, QUOIT_ROW_atomic_fetch_inc, QUOIT_ROW_ctx_atomic_fetch_inc, __VA_ARGS__)
#define QUOIT_ROW_atomic_inc(N, T)     T * : shmem_##N##_atomic_inc,
#define QUOIT_ROW_ctx_atomic_inc(N, T) T * : shmem_ctx_##N##_atomic_inc,
#define shmem_atomic_inc(...)                                                                                          \
    QUOIT_SELECT_CTX(QUOIT_AMO_SELECT, QUOIT_ROW_atomic_inc, QUOIT_ROW_ctx_atomic_inc, __VA_ARGS__)
#define QUOIT_ROW_atomic_fetch_add(N, T)     T * : shmem_##N##_atomic_fetch_add,
#define QUOIT_ROW_ctx_atomic_fetch_add(N, T) T * : shmem_ctx_##N##_atomic_fetch_add,
#define shmem_atomic_fetch_add(...)                                                                                    \
    QUOIT_SELECT_CTX(QUOIT_AMO_SELECT, QUOIT_ROW_atomic_fetch_add, QUOIT_ROW_ctx_atomic_fetch_add, __VA_ARGS__)
#define QUOIT_ROW_atomic_add(N, T)     T * : shmem_##N##_atomic_add,
#define QUOIT_ROW_ctx_atomic_add(N, T) T * : shmem_ctx_##N##_atomic_add,
#define shmem_atomic_add(...)                                                                                          \
    QUOIT_SELECT_CTX(QUOIT_AMO_SELECT, QUOIT_ROW_atomic_add, QUOIT_ROW_ctx_atomic_add, __VA_ARGS__)
#define QUOIT_ROW_atomic_compare_swap_nbi(N, T)     T * : shmem_##N##_atomic_compare_swap_nbi,
#define QUOIT_ROW_ctx_atomic_compare_swap_nbi(N, T) T * : shmem_ctx_##N##_atomic_compare_swap_nbi,
#define shmem_atomic_compare_swap_nbi(...)                                                                             \
    QUOIT_SELECT_CTX(QUOIT_AMO_SELECT, QUOIT_ROW_atomic_compare_swap_nbi, QUOIT_ROW_ctx_atomic_compare_swap_nbi,       \
                     __VA_ARGS__)
#define QUOIT_ROW_atomic_fetch_inc_nbi(N, T)     T * : shmem_##N##_atomic_fetch_inc_nbi,
#define QUOIT_ROW_ctx_atomic_fetch_inc_nbi(N, T) T * : shmem_ctx_##N##_atomic_fetch_inc_nbi,
#define shmem_atomic_fetch_inc_nbi(...)                                                                                \
    QUOIT_SELECT_CTX(QUOIT_AMO_SELECT, QUOIT_ROW_atomic_fetch_inc_nbi, QUOIT_ROW_ctx_atomic_fetch_inc_nbi, __VA_ARGS__)
#define QUOIT_ROW_atomic_fetch_add_nbi(N, T)     T * : shmem_##N##_atomic_fetch_add_nbi,
#define QUOIT_ROW_ctx_atomic_fetch_add_nbi(N, T) T * : shmem_ctx_##N##_atomic_fetch_add_nbi,
#define shmem_atomic_fetch_add_nbi(...)                                                                                \
    QUOIT_SELECT_CTX(QUOIT_AMO_SELECT, QUOIT_ROW_atomic_fetch_add_nbi, QUOIT_ROW_ctx_atomic_fetch_add_nbi, __VA_ARGS__)
#define QUOIT_ROW_atomic_fetch_and(N, T)     T * : shmem_##N##_atomic_fetch_and,
#define QUOIT_ROW_ctx_atomic_fetch_and(N, T) T * : shmem_ctx_##N##_atomic_fetch_and,
#define shmem_atomic_fetch_and(...)                                                                                    \
    QUOIT_SELECT_CTX(QUOIT_AMO_BITWISE_SELECT, QUOIT_ROW_atomic_fetch_and, QUOIT_ROW_ctx_atomic_fetch_and, __VA_ARGS__)
#define QUOIT_ROW_atomic_and(N, T)     T * : shmem_##N##_atomic_and,
#define QUOIT_ROW_ctx_atomic_and(N, T) T * : shmem_ctx_##N##_atomic_and,
#define shmem_atomic_and(...)                                                                                          \
    QUOIT_SELECT_CTX(QUOIT_AMO_BITWISE_SELECT, QUOIT_ROW_atomic_and, QUOIT_ROW_ctx_atomic_and, __VA_ARGS__)
#define QUOIT_ROW_atomic_fetch_or(N, T)     T * : shmem_##N##_atomic_fetch_or,
#define QUOIT_ROW_ctx_atomic_fetch_or(N, T) T * : shmem_ctx_##N##_atomic_fetch_or,
#define shmem_atomic_fetch_or(...)                                                                                     \
    QUOIT_SELECT_CTX(QUOIT_AMO_BITWISE_SELECT, QUOIT_ROW_atomic_fetch_or, QUOIT_ROW_ctx_atomic_fetch_or, __VA_ARGS__)
#define QUOIT_ROW_atomic_or(N, T)     T * : shmem_##N##_atomic_or,
#define QUOIT_ROW_ctx_atomic_or(N, T) T * : shmem_ctx_##N##_atomic_or,
#define shmem_atomic_or(...)                                                                                           \
    QUOIT_SELECT_CTX(QUOIT_AMO_BITWISE_SELECT, QUOIT_ROW_atomic_or, QUOIT_ROW_ctx_atomic_or, __VA_ARGS__)
#define QUOIT_ROW_atomic_fetch_xor(N, T)     T * : shmem_##N##_atomic_fetch_xor,
#define QUOIT_ROW_ctx_atomic_fetch_xor(N, T) T * : shmem_ctx_##N##_atomic_fetch_xor,
#define shmem_atomic_fetch_xor(...)                                                                                    \
    QUOIT_SELECT_CTX(QUOIT_AMO_BITWISE_SELECT, QUOIT_ROW_atomic_fetch_xor, QUOIT_ROW_ctx_atomic_fetch_xor, __VA_ARGS__)
#define QUOIT_ROW_atomic_xor(N, T)     T * : shmem_##N##_atomic_xor,
#define QUOIT_ROW_ctx_atomic_xor(N, T) T * : shmem_ctx_##N##_atomic_xor,
#define shmem_atomic_xor(...)                                                                                          \
    QUOIT_SELECT_CTX(QUOIT_AMO_BITWISE_SELECT, QUOIT_ROW_atomic_xor, QUOIT_ROW_ctx_atomic_xor, __VA_ARGS__)
#define QUOIT_ROW_atomic_fetch_and_nbi(N, T)     T * : shmem_##N##_atomic_fetch_and_nbi,
#define QUOIT_ROW_ctx_atomic_fetch_and_nbi(N, T) T * : shmem_ctx_##N##_atomic_fetch_and_nbi,
#define shmem_atomic_fetch_and_nbi(...)                                                                                \
    QUOIT_SELECT_CTX(QUOIT_AMO_BITWISE_SELECT, QUOIT_ROW_atomic_fetch_and_nbi, QUOIT_ROW_ctx_atomic_fetch_and_nbi,     \
                     __VA_ARGS__)
#define QUOIT_ROW_atomic_fetch_or_nbi(N, T)     T * : shmem_##N##_atomic_fetch_or_nbi,
#define QUOIT_ROW_ctx_atomic_fetch_or_nbi(N, T) T * : shmem_ctx_##N##_atomic_fetch_or_nbi,
#define shmem_atomic_fetch_or_nbi(...)                                                                                 \
    QUOIT_SELECT_CTX(QUOIT_AMO_BITWISE_SELECT, QUOIT_ROW_atomic_fetch_or_nbi, QUOIT_ROW_ctx_atomic_fetch_or_nbi,       \
                     __VA_ARGS__)
#define QUOIT_ROW_atomic_fetch_xor_nbi(N, T)     T * : shmem_##N##_atomic_fetch_xor_nbi,
#define QUOIT_ROW_ctx_atomic_fetch_xor_nbi(N, T) T * : shmem_ctx_##N##_atomic_fetch_xor_nbi,
#define shmem_atomic_fetch_xor_nbi(...)                                                                                \
    QUOIT_SELECT_CTX(QUOIT_AMO_BITWISE_SELECT, QUOIT_ROW_atomic_fetch_xor_nbi, QUOIT_ROW_ctx_atomic_fetch_xor_nbi,     \
                     __VA_ARGS__)

/* Their names before 1.4, deprecated. */
#define QUOIT_ROW_fetch(N, T) T * : shmem_##N##_fetch, const T * : shmem_##N##_fetch,
#define shmem_fetch(...)      QUOIT_SELECT(QUOIT_AMO_OLD_EXTENDED_TYPES, QUOIT_ROW_fetch, __VA_ARGS__)
#define QUOIT_ROW_set(N, T)   T * : shmem_##N##_set,
#define shmem_set(...)        QUOIT_SELECT(QUOIT_AMO_OLD_EXTENDED_TYPES, QUOIT_ROW_set, __VA_ARGS__)
#define QUOIT_ROW_swap(N, T)  T * : shmem_##N##_swap,
#define shmem_swap(...)       QUOIT_SELECT(QUOIT_AMO_OLD_EXTENDED_TYPES, QUOIT_ROW_swap, __VA_ARGS__)
#define QUOIT_ROW_cswap(N, T) T * : shmem_##N##_cswap,
#define shmem_cswap(...)      QUOIT_SELECT(QUOIT_AMO_OLD_TYPES, QUOIT_ROW_cswap, __VA_ARGS__)
#define QUOIT_ROW_finc(N, T)  T * : shmem_##N##_finc,
#define shmem_finc(...)       QUOIT_SELECT(QUOIT_AMO_OLD_TYPES, QUOIT_ROW_finc, __VA_ARGS__)
#define QUOIT_ROW_inc(N, T)   T * : shmem_##N##_inc,
#define shmem_inc(...)        QUOIT_SELECT(QUOIT_AMO_OLD_TYPES, QUOIT_ROW_inc, __VA_ARGS__)
#define QUOIT_ROW_fadd(N, T)  T * : shmem_##N##_fadd,
#define shmem_fadd(...)       QUOIT_SELECT(QUOIT_AMO_OLD_TYPES, QUOIT_ROW_fadd, __VA_ARGS__)
#define QUOIT_ROW_add(N, T)   T * : shmem_##N##_add,
#define shmem_add(...)        QUOIT_SELECT(QUOIT_AMO_OLD_TYPES, QUOIT_ROW_add, __VA_ARGS__)

/* Waiting. */
#define QUOIT_ROW_wait_until(N, T)             T * : shmem_##N##_wait_until,
#define shmem_wait_until(...)                  QUOIT_SELECT(QUOIT_P2P_SELECT, QUOIT_ROW_wait_until, __VA_ARGS__)
#define QUOIT_ROW_test(N, T)                   T * : shmem_##N##_test,
#define shmem_test(...)                        QUOIT_SELECT(QUOIT_P2P_SELECT, QUOIT_ROW_test, __VA_ARGS__)
#define QUOIT_ROW_wait_until_all(N, T)         T * : shmem_##N##_wait_until_all,
#define shmem_wait_until_all(...)              QUOIT_SELECT(QUOIT_P2P_SELECT, QUOIT_ROW_wait_until_all, __VA_ARGS__)
#define QUOIT_ROW_wait_until_any(N, T)         T * : shmem_##N##_wait_until_any,
#define shmem_wait_until_any(...)              QUOIT_SELECT(QUOIT_P2P_SELECT, QUOIT_ROW_wait_until_any, __VA_ARGS__)
#define QUOIT_ROW_wait_until_some(N, T)        T * : shmem_##N##_wait_until_some,
#define shmem_wait_until_some(...)             QUOIT_SELECT(QUOIT_P2P_SELECT, QUOIT_ROW_wait_until_some, __VA_ARGS__)
#define QUOIT_ROW_test_all(N, T)               T * : shmem_##N##_test_all,
#define shmem_test_all(...)                    QUOIT_SELECT(QUOIT_P2P_SELECT, QUOIT_ROW_test_all, __VA_ARGS__)
#define QUOIT_ROW_test_any(N, T)               T * : shmem_##N##_test_any,
#define shmem_test_any(...)                    QUOIT_SELECT(QUOIT_P2P_SELECT, QUOIT_ROW_test_any, __VA_ARGS__)
#define QUOIT_ROW_test_some(N, T)              T * : shmem_##N##_test_some,
#define shmem_test_some(...)                   QUOIT_SELECT(QUOIT_P2P_SELECT, QUOIT_ROW_test_some, __VA_ARGS__)
#define QUOIT_ROW_wait_until_all_vector(N, T)  T * : shmem_##N##_wait_until_all_vector,
#define shmem_wait_until_all_vector(...)       QUOIT_SELECT(QUOIT_P2P_SELECT, QUOIT_ROW_wait_until_all_vector, __VA_ARGS__)
#define QUOIT_ROW_wait_until_any_vector(N, T)  T * : shmem_##N##_wait_until_any_vector,
#define shmem_wait_until_any_vector(...)       QUOIT_SELECT(QUOIT_P2P_SELECT, QUOIT_ROW_wait_until_any_vector, __VA_ARGS__)
#define QUOIT_ROW_wait_until_some_vector(N, T) T * : shmem_##N##_wait_until_some_vector,
#define shmem_wait_until_some_vector(...)      QUOIT_SELECT(QUOIT_P2P_SELECT, QUOIT_ROW_wait_until_some_vector, __VA_ARGS__)
#define QUOIT_ROW_test_all_vector(N, T)        T * : shmem_##N##_test_all_vector,
#define shmem_test_all_vector(...)             QUOIT_SELECT(QUOIT_P2P_SELECT, QUOIT_ROW_test_all_vector, __VA_ARGS__)
#define QUOIT_ROW_test_any_vector(N, T)        T * : shmem_##N##_test_any_vector,
#define shmem_test_any_vector(...)             QUOIT_SELECT(QUOIT_P2P_SELECT, QUOIT_ROW_test_any_vector, __VA_ARGS__)
#define QUOIT_ROW_test_some_vector(N, T)       T * : shmem_##N##_test_some_vector,
#define shmem_test_some_vector(...)            QUOIT_SELECT(QUOIT_P2P_SELECT, QUOIT_ROW_test_some_vector, __VA_ARGS__)

/* Collectives. */
#define QUOIT_ROW_alltoall(N, T)    T * : shmem_##N##_alltoall,
#define shmem_alltoall(...)         QUOIT_SELECT_TEAM(QUOIT_RMA_SELECT, QUOIT_ROW_alltoall, __VA_ARGS__)
#define QUOIT_ROW_alltoalls(N, T)   T * : shmem_##N##_alltoalls,
#define shmem_alltoalls(...)        QUOIT_SELECT_TEAM(QUOIT_RMA_SELECT, QUOIT_ROW_alltoalls, __VA_ARGS__)
#define QUOIT_ROW_broadcast(N, T)   T * : shmem_##N##_broadcast,
#define shmem_broadcast(...)        QUOIT_SELECT_TEAM(QUOIT_RMA_SELECT, QUOIT_ROW_broadcast, __VA_ARGS__)
#define QUOIT_ROW_collect(N, T)     T * : shmem_##N##_collect,
#define shmem_collect(...)          QUOIT_SELECT_TEAM(QUOIT_RMA_SELECT, QUOIT_ROW_collect, __VA_ARGS__)
#define QUOIT_ROW_fcollect(N, T)    T * : shmem_##N##_fcollect,
#define shmem_fcollect(...)         QUOIT_SELECT_TEAM(QUOIT_RMA_SELECT, QUOIT_ROW_fcollect, __VA_ARGS__)
#define QUOIT_ROW_and_reduce(N, T)  T * : shmem_##N##_and_reduce,
#define shmem_and_reduce(...)       QUOIT_SELECT_TEAM(QUOIT_REDUCE_BITWISE_SELECT, QUOIT_ROW_and_reduce, __VA_ARGS__)
#define QUOIT_ROW_or_reduce(N, T)   T * : shmem_##N##_or_reduce,
#define shmem_or_reduce(...)        QUOIT_SELECT_TEAM(QUOIT_REDUCE_BITWISE_SELECT, QUOIT_ROW_or_reduce, __VA_ARGS__)
#define QUOIT_ROW_xor_reduce(N, T)  T * : shmem_##N##_xor_reduce,
#define shmem_xor_reduce(...)       QUOIT_SELECT_TEAM(QUOIT_REDUCE_BITWISE_SELECT, QUOIT_ROW_xor_reduce, __VA_ARGS__)
#define QUOIT_ROW_min_reduce(N, T)  T * : shmem_##N##_min_reduce,
#define shmem_min_reduce(...)       QUOIT_SELECT_TEAM(QUOIT_REDUCE_ORDERED_SELECT, QUOIT_ROW_min_reduce, __VA_ARGS__)
#define QUOIT_ROW_max_reduce(N, T)  T * : shmem_##N##_max_reduce,
#define shmem_max_reduce(...)       QUOIT_SELECT_TEAM(QUOIT_REDUCE_ORDERED_SELECT, QUOIT_ROW_max_reduce, __VA_ARGS__)
#define QUOIT_ROW_sum_reduce(N, T)  T * : shmem_##N##_sum_reduce,
#define shmem_sum_reduce(...)       QUOIT_SELECT_TEAM(QUOIT_REDUCE_ARITHMETIC_SELECT, QUOIT_ROW_sum_reduce, __VA_ARGS__)
#define QUOIT_ROW_prod_reduce(N, T) T * : shmem_##N##_prod_reduce,
#define shmem_prod_reduce(...)      QUOIT_SELECT_TEAM(QUOIT_REDUCE_ARITHMETIC_SELECT, QUOIT_ROW_prod_reduce, __VA_ARGS__)
#define QUOIT_ROW_sum_inscan(N, T)  T * : shmem_##N##_sum_inscan,
#define shmem_sum_inscan(...)       QUOIT_SELECT_TEAM(QUOIT_REDUCE_ARITHMETIC_SELECT, QUOIT_ROW_sum_inscan, __VA_ARGS__)
#define QUOIT_ROW_sum_exscan(N, T)  T * : shmem_##N##_sum_exscan,
#define shmem_sum_exscan(...)       QUOIT_SELECT_TEAM(QUOIT_REDUCE_ARITHMETIC_SELECT, QUOIT_ROW_sum_exscan, __VA_ARGS__)

/* Names that are also routines. */
#define shmem_sync(...)                                                                                                \
    _Generic(QUOIT_FIRST(__VA_ARGS__), shmem_team_t : shmem_team_sync, default : shmem_sync)(__VA_ARGS__)
#define shmem_signal_add(...)                                                                                          \
    _Generic(QUOIT_FIRST(__VA_ARGS__), shmem_ctx_t : shmem_ctx_signal_add, default : shmem_signal_add)(__VA_ARGS__)
#define shmem_signal_set(...)                                                                                          \
    _Generic(QUOIT_FIRST(__VA_ARGS__), shmem_ctx_t : shmem_ctx_signal_set, default : shmem_signal_set)(__VA_ARGS__)

#endif
