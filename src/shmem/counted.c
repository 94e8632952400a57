/* SPDX-License-Identifier: BSD-3-Clause */
#include "shmem/counted.h"
#include "env/clock.h"
#include "shmem/fast.h"

/* A call to be counted once it has returned. */
struct counted {
    struct quoit_profile *profile;
    struct quoit_profile_site *site; /* NULL: left to the slow path */
    uint64_t begin_ns;               /* 0: it is not timed */
    bool is_due;
};

/* `bytes` at `to` change: 0, if it is a read. What wakes a sleeper takes longer than the others, so it is timed. */
QUOIT_INLINE struct counted begin(const char *call, const struct quoit_reach *reach, const char *to, size_t bytes)
{
    const struct quoit_self *self = &quoit_job.fabric->self;
    struct counted counted = {.profile = self->profile};
    if (__builtin_expect(quoit_profile_thread.depth != 0, 0)) /* in a routine of a library above this one */
        return counted;
    uint64_t from = quoit_profile_from(__atomic_load_n(&self->call_from, __ATOMIC_RELAXED));
    counted.site = quoit_profile_find(self->profile, call, from);
    if (__builtin_expect(!counted.site, 0))
        return counted;
    counted.is_due = quoit_profile_is_due(counted.site);
    bool wakes = bytes != 0 &&
                 __builtin_expect(atomic_load_explicit(&reach->park->sleeper_count, memory_order_relaxed) != 0, 0) &&
                 quoit_park_is_watched(reach->park, quoit_fast_at(reach, to), bytes);
    if (__builtin_expect(counted.is_due || wakes, 0))
        counted.begin_ns = quoit_clock_now_ns();
    return counted;
}

QUOIT_INLINE void end(const struct counted *counted, enum quoit_profile_kind kind, const struct quoit_reach *reach,
                      size_t bytes)
{
    uint64_t end_ns = __builtin_expect(counted->begin_ns != 0, 0) ? quoit_clock_now_ns() : 0;
    uint32_t pe = quoit_job.counted.first_pe + (uint32_t)(reach - quoit_job.counted.reaches);
    quoit_profile_count(counted->profile, counted->site, bytes);
    quoit_profile_count_peer(counted->profile, kind, pe, bytes);
    if (__builtin_expect(end_ns != 0, 0))
        quoit_profile_timed(counted->profile, counted->site, counted->begin_ns, end_ns, counted->is_due);
}

bool quoit_counted_put(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                       const char *call)
{
    const struct quoit_reach *reach;
    char *to;
    size_t bytes = nelems * element_bytes;
    if (!source || nelems - 1 >= QUOIT_FAST_BYTES / element_bytes ||
        !quoit_fast_reach_by(&quoit_job.counted, ctx, dest, bytes, pe, &to, &reach))
        return false;
    struct counted counted = begin(call, reach, to, bytes);
    if (!counted.site)
        return false;
    if (bytes == sizeof(uint64_t))
        quoit_local_put_unit(reach->park, quoit_fast_at(reach, to), to, source, sizeof(uint64_t));
    else
        quoit_local_put(reach->park, quoit_fast_at(reach, to), to, source, bytes);
    end(&counted, QUOIT_PROFILE_PUT, reach, bytes);
    return true;
}

bool quoit_counted_get(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, size_t element_bytes, int pe,
                       const char *call)
{
    const struct quoit_reach *reach;
    char *from;
    size_t bytes = nelems * element_bytes;
    if (!dest || nelems - 1 >= QUOIT_FAST_BYTES / element_bytes ||
        !quoit_fast_reach_by(&quoit_job.counted, ctx, source, bytes, pe, &from, &reach))
        return false;
    struct counted counted = begin(call, reach, from, 0);
    if (!counted.site)
        return false;
    if (bytes == sizeof(uint64_t))
        __builtin_memcpy(dest, from, sizeof(uint64_t));
    else
        memmove(dest, from, bytes);
    end(&counted, QUOIT_PROFILE_GET, reach, bytes);
    return true;
}

bool quoit_counted_amo(shmem_ctx_t ctx, enum quoit_amo op, uint32_t size, const void *address, uint64_t operand,
                       uint64_t compare, int pe, const char *call, uint64_t *old_out)
{
    const struct quoit_reach *reach;
    char *word;
    if (!quoit_fast_reach_by(&quoit_job.counted, ctx, address, size, pe, &word, &reach) ||
        ((uintptr_t)address & (size - 1)) != 0)
        return false;
    struct counted counted = begin(call, reach, word, op == QUOIT_AMO_FETCH ? 0 : size);
    if (!counted.site)
        return false;
    *old_out = quoit_local_amo(reach->park, quoit_fast_at(reach, word), word, op, size, operand, compare);
    end(&counted, QUOIT_PROFILE_AMO, reach, size);
    if (op == QUOIT_AMO_FETCH || (op == QUOIT_AMO_COMPARE_SWAP && *old_out != compare))
        quoit_poll_word(address, *old_out);
    return true;
}
