/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits and tests on local objects. One untyped description serves all forms: values are mapped to 64-bit numbers that
 * compare as the values of their type do. */
#include "shmem/audit.h"
#include "shmem/span.h"
#include "shmem/fast.h"

#include <stdatomic.h>
#include <string.h>

struct wait_set {
    const void *ivars;
    const int *status;      /* NULL: none is excluded */
    const void *cmp_values; /* one value, or one per object */
    size_t count;
    uint64_t offset; /* segment offset of ivars; filled in by check() */
    int cmp;
    uint8_t bytes; /* of an object */
    bool is_signed;
    bool is_vector;
    bool is_found; /* any: an object, at index `at`, satisfied the comparison */
    size_t at;
    size_t start;                      /* any: the index at which to start */
    size_t missing;                    /* all: the first object that did not satisfy the comparison */
    struct quoit_wait_desc *wait_desc; /* of a wait: what reports name of the objects */
};

/* A number that compares, unsigned, as the object does in its type. */
static uint64_t ordered(const void *object, uint8_t bytes, bool is_signed)
{
    uint64_t value = 0;
    switch (bytes) {
    case 2:
        value = __atomic_load_n((const uint16_t *)object, __ATOMIC_ACQUIRE);
        break;
    case 4:
        value = __atomic_load_n((const uint32_t *)object, __ATOMIC_ACQUIRE);
        break;
    default:
        value = __atomic_load_n((const uint64_t *)object, __ATOMIC_ACQUIRE);
    }
    return is_signed ? value ^ (1ull << (8 * bytes - 1)) : value;
}

static bool compare(uint64_t a, int cmp, uint64_t b)
{
    switch (cmp) {
    case SHMEM_CMP_EQ:
        return a == b;
    case SHMEM_CMP_NE:
        return a != b;
    case SHMEM_CMP_GT:
        return a > b;
    case SHMEM_CMP_GE:
        return a >= b;
    case SHMEM_CMP_LT:
        return a < b;
    default:
        return a <= b;
    }
}

static bool is_excluded(const struct wait_set *set, size_t i)
{
    return set->status && set->status[i] != 0;
}

static const void *value_for(const struct wait_set *set, size_t i)
{
    return (const char *)set->cmp_values + (set->is_vector ? i * set->bytes : 0);
}

static bool holds(const struct wait_set *set, size_t i)
{
    return compare(ordered((const char *)set->ivars + i * set->bytes, set->bytes, set->is_signed), set->cmp,
                   ordered(value_for(set, i), set->bytes, set->is_signed));
}

static void wait_desc_for(struct wait_set *set, size_t i)
{
    set->missing = i;
    if (!set->wait_desc)
        return;
    set->wait_desc->offset = set->offset + i * set->bytes;
    set->wait_desc->address = quoit_job_file_address((const char *)set->ivars + i * set->bytes);
    memcpy(&set->wait_desc->wanted, value_for(set, i), set->bytes);
}

static bool all_hold(void *arg)
{
    struct wait_set *set = arg;
    for (size_t i = 0; i < set->count; i++)
        if (!is_excluded(set, i) && !holds(set, i)) {
            if (i != set->missing)
                wait_desc_for(set, i);
            return false;
        }
    return true;
}

/* True also for an empty set, with is_found false. */
static bool any_holds(void *arg)
{
    struct wait_set *set = arg;
    bool is_empty = true;
    for (size_t n = 0, i = set->start; n < set->count; n++, i = i + 1 < set->count ? i + 1 : 0) {
        if (is_excluded(set, i))
            continue;
        is_empty = false;
        if (holds(set, i)) {
            set->is_found = true;
            set->at = i;
            return true;
        }
    }
    return is_empty;
}

static void check(struct wait_set *set, const char *call)
{
    quoit_check_running(call);
    if (set->cmp < SHMEM_CMP_EQ || set->cmp > SHMEM_CMP_LE)
        quoit_wrong(QUOIT_WRONG_CHOICE, call, "cmp is %d, but one of SHMEM_CMP_EQ (%d) to SHMEM_CMP_LE (%d) is needed",
                    set->cmp, SHMEM_CMP_EQ, SHMEM_CMP_LE);
    if (set->count == 0)
        return;
    const char *argument = set->count == 1 ? "ivar" : "ivars";
    set->offset = quoit_check_symmetric(set->ivars, quoit_check_bytes(set->count, set->bytes, call), argument, call);
    quoit_check_word(set->ivars, set->bytes, argument, call);
    quoit_check_private(set->cmp_values, (set->is_vector ? set->count : 1) * set->bytes, "cmp_values", call);
}

/* Sleeps on, through changes to other addresses. */
static void wait_for(struct wait_set *set, bool (*is_done)(void *arg), void *arg, const char *call)
{
    struct quoit_wait_desc wait_desc = {.count = set->count < UINT32_MAX ? (uint32_t)set->count : UINT32_MAX,
                                        .bytes = set->bytes,
                                        .cmp = (uint8_t)set->cmp,
                                        .is_signed = set->is_signed};
    set->wait_desc = &wait_desc;
    wait_desc_for(set, set->missing);
    quoit_self_wait_at(&quoit_job.fabric->self, set->offset, set->count * set->bytes, is_done, arg, call, &wait_desc);
    set->wait_desc = NULL;
}

static void wait_all(struct wait_set *set, const char *call)
{
    QUOIT_SPAN(call);
    check(set, call);
    if (!all_hold(set))
        wait_for(set, all_hold, set, call);
}

static int test_one(struct wait_set *set, const char *call)
{
    QUOIT_SPAN(call);
    check(set, call);
    return all_hold(set);
}

static int test_all(struct wait_set *set, const char *call)
{
    return quoit_poll_test(test_one(set, call));
}

/* Starts each search at another index, so that no satisfied object is skipped for ever. */
static void begin_any(struct wait_set *set, const char *call)
{
    check(set, call);
    if (set->count != 0)
        set->start = atomic_fetch_add_explicit(&quoit_job.wait_turn, 1, memory_order_relaxed) % set->count;
}

static size_t wait_any(struct wait_set *set, const char *call)
{
    QUOIT_SPAN(call);
    begin_any(set, call);
    if (!any_holds(set))
        wait_for(set, any_holds, set, call);
    return set->is_found ? set->at : SIZE_MAX;
}

static size_t test_any(struct wait_set *set, const char *call)
{
    QUOIT_SPAN(call);
    begin_any(set, call);
    quoit_poll_test(any_holds(set));
    return set->is_found ? set->at : SIZE_MAX;
}

static size_t find_some(struct wait_set *set, size_t *indices, const char *call)
{
    size_t found_count = 0;
    check(set, call);
    quoit_check_private(indices, set->count * sizeof *indices, "indices", call);
    for (size_t i = 0; i < set->count; i++)
        if (!is_excluded(set, i) && holds(set, i))
            indices[found_count++] = i;
    return found_count;
}

static size_t test_some(struct wait_set *set, size_t *indices, const char *call)
{
    QUOIT_SPAN(call);
    size_t found_count = find_some(set, indices, call);
    quoit_poll_test(found_count != 0);
    return found_count;
}

static size_t wait_some(struct wait_set *set, size_t *indices, const char *call)
{
    QUOIT_SPAN(call);
    begin_any(set, call);
    quoit_check_private(indices, set->count * sizeof *indices, "indices", call);
    if (!any_holds(set))
        wait_for(set, any_holds, set, call);
    size_t found_count = find_some(set, indices, call);
    if (found_count == 0 && set->is_found) { /* it was satisfied a moment ago, which ends the wait */
        indices[0] = set->at;
        return 1;
    }
    return found_count;
}

/* One object with valid arguments. */
QUOIT_INLINE bool is_sound(const void *ivar, uint8_t bytes, int cmp)
{
    return __builtin_expect(cmp >= SHMEM_CMP_EQ && cmp <= SHMEM_CMP_LE &&
                                quoit_fast_has(&quoit_job.fast, ivar, bytes) && ((uintptr_t)ivar & (bytes - 1u)) == 0,
                            1);
}

QUOIT_INLINE bool is_met(const void *ivar, const void *value, uint8_t bytes, bool is_signed, int cmp)
{
    return compare(ordered(ivar, bytes, is_signed), cmp, ordered(value, bytes, is_signed));
}

/* A converted -1 is below 1 only in a signed type. */
#define SET(T, IVARS, STATUS, VALUES, COUNT, CMP, IS_VECTOR)                                                           \
    (&(struct wait_set){.ivars = (IVARS),                                                                              \
                        .status = (STATUS),                                                                            \
                        .cmp_values = (VALUES),                                                                        \
                        .count = (COUNT),                                                                              \
                        .cmp = (CMP),                                                                                  \
                        .bytes = sizeof(T),                                                                            \
                        .is_signed = (T)-1 < (T)1,                                                                     \
                        .is_vector = (IS_VECTOR)})

#define IS_MET(T, IVAR, VALUE, CMP) is_met(IVAR, &(VALUE), sizeof(T), (T)-1 < (T)1, CMP)

#define WAIT(NAME, T, P, CMP)                                                                                          \
    QUOIT_API(void, NAME, P)                                                                                           \
    {                                                                                                                  \
        if (is_sound(ivar, sizeof(T), CMP) && IS_MET(T, ivar, cmp_value, CMP))                                         \
            return;                                                                                                    \
        QUOIT_JOB_ENTER("shmem_" #NAME);                                                                               \
        wait_all(SET(T, ivar, NULL, &cmp_value, 1, CMP, false), "shmem_" #NAME);                                       \
    }
#define X(N, T)                                                                                                        \
    WAIT(N##_wait_until, T, (T * ivar, int cmp, T cmp_value), cmp)                                                     \
    QUOIT_API(int, N##_test, (T * ivar, int cmp, T cmp_value))                                                         \
    {                                                                                                                  \
        if (is_sound(ivar, sizeof(T), cmp))                                                                            \
            return quoit_poll_test_of(ivar, sizeof(T), IS_MET(T, ivar, cmp_value, cmp));                               \
        QUOIT_JOB_ENTER("shmem_" #N "_test");                                                                          \
        return quoit_poll_test_of(ivar, sizeof(T),                                                                     \
                                  test_one(SET(T, ivar, NULL, &cmp_value, 1, cmp, false), "shmem_" #N "_test"));       \
    }
QUOIT_P2P_TYPES(X)
#undef X
#define X(N, T) WAIT(N##_wait, T, (T * ivar, T cmp_value), SHMEM_CMP_NE)
QUOIT_WAIT_TYPES(X)
#undef X
WAIT(wait_until, long, (long *ivar, int cmp, long cmp_value), cmp)
WAIT(wait, long, (long *ivar, long cmp_value), SHMEM_CMP_NE)

#define OVER(R, T, NAME, WORK, VALUES, VALUE, IS_VECTOR)                                                               \
    QUOIT_API(R, NAME, (T * ivars, size_t nelems, const int *status, int cmp, VALUES))                                 \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_" #NAME);                                                                               \
        return WORK(SET(T, ivars, status, VALUE, nelems, cmp, IS_VECTOR), "shmem_" #NAME);                             \
    }
#define OVER_SOME(T, NAME, WORK, VALUES, VALUE, IS_VECTOR)                                                             \
    QUOIT_API(size_t, NAME, (T * ivars, size_t nelems, size_t * indices, const int *status, int cmp, VALUES))          \
    {                                                                                                                  \
        QUOIT_JOB_ENTER("shmem_" #NAME);                                                                               \
        return WORK(SET(T, ivars, status, VALUE, nelems, cmp, IS_VECTOR), indices, "shmem_" #NAME);                    \
    }
#define FORMS(N, T, FORM, VALUES, VALUE, IS_VECTOR)                                                                    \
    OVER(void, T, N##_wait_until_all##FORM, wait_all, VALUES, VALUE, IS_VECTOR)                                        \
    OVER(size_t, T, N##_wait_until_any##FORM, wait_any, VALUES, VALUE, IS_VECTOR)                                      \
    OVER_SOME(T, N##_wait_until_some##FORM, wait_some, VALUES, VALUE, IS_VECTOR)                                       \
    OVER(int, T, N##_test_all##FORM, test_all, VALUES, VALUE, IS_VECTOR)                                               \
    OVER(size_t, T, N##_test_any##FORM, test_any, VALUES, VALUE, IS_VECTOR)                                            \
    OVER_SOME(T, N##_test_some##FORM, test_some, VALUES, VALUE, IS_VECTOR)
#define X(N, T)                                                                                                        \
    FORMS(N, T, , T cmp_value, &cmp_value, false)                                                                      \
    FORMS(N, T, _vector, const T *cmp_values, cmp_values, true)
QUOIT_P2P_TYPES(X)
#undef X

/* The value is read once, while the comparison holds, so the value returned is the one that satisfied it. */
struct signal_wait {
    const uint64_t *signal;
    uint64_t cmp_value;
    uint64_t value;
    int cmp;
};

static bool signal_holds(void *arg)
{
    struct signal_wait *wait = arg;
    wait->value = __atomic_load_n(wait->signal, __ATOMIC_ACQUIRE);
    return compare(wait->value, wait->cmp, wait->cmp_value);
}

QUOIT_API(uint64_t, signal_wait_until, (uint64_t * sig_addr, int cmp, uint64_t cmp_value))
{
    const char *call = "shmem_signal_wait_until";
    struct signal_wait wait = {.signal = sig_addr, .cmp = cmp, .cmp_value = cmp_value};
    QUOIT_JOB_ENTER(call);
    QUOIT_SPAN(call);
    struct wait_set *set = SET(uint64_t, sig_addr, NULL, &cmp_value, 1, cmp, false);
    check(set, call);
    if (!signal_holds(&wait))
        wait_for(set, signal_holds, &wait, call);
    return wait.value;
}
