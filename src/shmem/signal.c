/* SPDX-License-Identifier: BSD-3-Clause */
/* Put-with-signal and the operations on signals. Only atomics change a signal. */
#include "shmem/audit.h"
#include "shmem/span.h"
#include "shmem/fast.h"

#include <stdatomic.h>

/* Further conditions under --check. */
static void check_apart(const void *dest, const void *source, const uint64_t *sig_addr,
                        const struct quoit_target *target, const char *call)
{
    if (target->pe == quoit_job.pe)
        quoit_check_disjoint(dest, target->bytes, source, target->bytes, true, call);
    if ((uintptr_t)sig_addr < (uintptr_t)dest + target->bytes && (uintptr_t)dest < (uintptr_t)(sig_addr + 1))
        quoit_wrong(QUOIT_WRONG_OVERLAP, call, "sig_addr %p lies in dest %p with %zu bytes, but must be apart",
                    (const void *)sig_addr, dest, target->bytes);
}

/* False: another host, large, or a mistake. */
QUOIT_INLINE bool put_signal_fast(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes,
                                  uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, const char *call)
{
    const struct quoit_reach *reach;
    if (nelems > QUOIT_FAST_BYTES / element_bytes || !source || ((uintptr_t)sig_addr & (sizeof *sig_addr - 1)) != 0 ||
        (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD))
        return false;
    char *word, *to;
    if (!quoit_fast_reach(ctx, sig_addr, sizeof *sig_addr, pe, &word, &reach) ||
        !quoit_fast_reach(ctx, dest, nelems * element_bytes, pe, &to, &reach))
        return false;
    const uint64_t at = quoit_fast_at(reach, to), signal_at = quoit_fast_at(reach, word);
    if (quoit_fast_is_unit(nelems, element_bytes)) {
        quoit_local_put_unit(reach->park, at, to, source, quoit_fast_unit(element_bytes));
    } else {
        QUOIT_FAST_ENTER(nelems * element_bytes, call);
        quoit_local_put(reach->park, at, to, source, nelems * element_bytes);
    }
    if (sig_op == SHMEM_SIGNAL_SET)
        quoit_local_amo(reach->park, signal_at, word, QUOIT_AMO_SET, sizeof *sig_addr, signal, 0);
    else
        quoit_local_amo(reach->park, signal_at, word, QUOIT_AMO_ADD, sizeof *sig_addr, signal, 0);
    return true;
}

static void put_signal_slow(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes,
                            uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, bool is_nbi, const char *call)
{
    QUOIT_SPAN_TO(call, nelems * element_bytes, (uint32_t)pe);
    struct quoit_target target = quoit_check_target(ctx, dest, "dest", nelems, element_bytes, pe, call);
    quoit_span_peer(&call_span, QUOIT_PROFILE_PUT, target.pe);
    quoit_check_private(source, target.bytes, "source", call);
    if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD)
        quoit_wrong(QUOIT_WRONG_CHOICE, call,
                    "sig_op is %d, but SHMEM_SIGNAL_SET (%d) or SHMEM_SIGNAL_ADD (%d) is "
                    "needed",
                    sig_op, SHMEM_SIGNAL_SET, SHMEM_SIGNAL_ADD);
    quoit_check_word(sig_addr, sizeof *sig_addr, "sig_addr", call);
    if (__builtin_expect(quoit_job.audit != NULL, 0))
        check_apart(dest, source, sig_addr, &target, call);
    struct quoit_signal update = {
        .offset = quoit_check_symmetric(sig_addr, sizeof *sig_addr, "sig_addr", call),
        .value = signal,
        .op = sig_op == SHMEM_SIGNAL_SET ? QUOIT_AMO_SET : QUOIT_AMO_ADD,
    };
    quoit_fabric_put_signal(quoit_job.fabric, target.context, target.offset, source, target.bytes, &update, target.pe,
                            is_nbi);
}

QUOIT_INLINE void put_signal(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes,
                             uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, bool is_nbi, const char *call)
{
    if (__builtin_expect(put_signal_fast(ctx, dest, source, nelems, element_bytes, sig_addr, signal, sig_op, pe, call),
                         1))
        return;
    QUOIT_JOB_ENTER(call);
    put_signal_slow(ctx, dest, source, nelems, element_bytes, sig_addr, signal, sig_op, pe, is_nbi, call);
}

#define PUT_SIGNAL(NAME, T, BYTES, IS_NBI)                                                                             \
    QUOIT_API(void, NAME,                                                                                              \
              (T * dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe))     \
    {                                                                                                                  \
        put_signal(SHMEM_CTX_DEFAULT, dest, source, nelems, BYTES, sig_addr, signal, sig_op, pe, IS_NBI,               \
                   "shmem_" #NAME);                                                                                    \
    }                                                                                                                  \
    QUOIT_API(void, ctx_##NAME,                                                                                        \
              (shmem_ctx_t ctx, T * dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal,         \
               int sig_op, int pe))                                                                                    \
    {                                                                                                                  \
        put_signal(ctx, dest, source, nelems, BYTES, sig_addr, signal, sig_op, pe, IS_NBI, "shmem_ctx_" #NAME);        \
    }
#define X(N, T)                                                                                                        \
    PUT_SIGNAL(N##_put_signal, T, sizeof(T), false)                                                                    \
    PUT_SIGNAL(N##_put_signal_nbi, T, sizeof(T), true)
QUOIT_RMA_TYPES(X)
#undef X
#define X(BITS, BYTES)                                                                                                 \
    PUT_SIGNAL(put##BITS##_signal, void, BYTES, false)                                                                 \
    PUT_SIGNAL(put##BITS##_signal_nbi, void, BYTES, true)
QUOIT_RMA_SIZES(X)
#undef X
PUT_SIGNAL(putmem_signal, void, 1, false)
PUT_SIGNAL(putmem_signal_nbi, void, 1, true)

QUOIT_API(void, signal_add, (uint64_t * sig_addr, uint64_t signal, int pe))
{
    quoit_amo(SHMEM_CTX_DEFAULT, QUOIT_AMO_ADD, sizeof *sig_addr, sig_addr, "sig_addr", signal, pe, "shmem_signal_add");
}
QUOIT_API(void, ctx_signal_add, (shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe))
{
    quoit_amo(ctx, QUOIT_AMO_ADD, sizeof *sig_addr, sig_addr, "sig_addr", signal, pe, "shmem_ctx_signal_add");
}
QUOIT_API(void, signal_set, (uint64_t * sig_addr, uint64_t signal, int pe))
{
    quoit_amo(SHMEM_CTX_DEFAULT, QUOIT_AMO_SET, sizeof *sig_addr, sig_addr, "sig_addr", signal, pe, "shmem_signal_set");
}
QUOIT_API(void, ctx_signal_set, (shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int pe))
{
    quoit_amo(ctx, QUOIT_AMO_SET, sizeof *sig_addr, sig_addr, "sig_addr", signal, pe, "shmem_ctx_signal_set");
}

QUOIT_API(uint64_t, signal_fetch, (const uint64_t *sig_addr))
{
    QUOIT_JOB_ENTER("shmem_signal_fetch");
    quoit_check_running("shmem_signal_fetch");
    quoit_check_word(sig_addr, sizeof *sig_addr, "sig_addr", "shmem_signal_fetch");
    uint64_t value = __atomic_load_n(sig_addr, __ATOMIC_ACQUIRE);
    quoit_poll_test(!quoit_poll_is_same(sig_addr, value));
    return value;
}
