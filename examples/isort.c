/* SPDX-License-Identifier: BSD-3-Clause */
/* isort.c - a bucket sort of integers distributed over all PEs.
 *
 * Use: isort [keys a PE [seed]]     (1000000 keys and seed 1 unless given)
 * 1. Each PE generates its keys (bell-shaped, so equal ranges would be unbalanced) and counts them by bucket.
 * 2. A sum over all PEs gives the size of every bucket; contiguous buckets are assigned to PEs in equal shares.
 * 3. Each PE reserves room on every other by one fetch-and-add, and puts its keys there in batches.
 * 4. Each PE sorts its keys by counting.
 * The routines of OpenSHMEM 1.4 are enough, so that the same source runs on any library. Checked: each PE's keys are in
 * order and follow those of the PE before; none was lost or changed (number, sum and sum of squares of all keys).
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shmem.h>

#define KEY_BITS       20
#define BUCKET_BITS    10
#define BUCKET_COUNT   (1u << BUCKET_BITS)
#define BUCKET_OF(key) ((key) >> (KEY_BITS - BUCKET_BITS))

#define RUN   8   /* keys written at once while sorting */
#define BATCH 256 /* keys of a put: few enough that the batches of all PEs stay in the nearest cache */

/* Symmetric. */
static long long bucket_size_here[BUCKET_COUNT], bucket_size[BUCKET_COUNT];
static unsigned long filled; /* keys that have arrived, or will */
static long reduce_sync[2][SHMEM_REDUCE_SYNC_SIZE];
static long long reduce_work[2][BUCKET_COUNT / 2 + 1 + SHMEM_REDUCE_MIN_WRKDATA_SIZE];

struct digest {
    uint64_t count, sum, squares;
};

static uint64_t next_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15u;
    uint64_t z = (*state ^ (*state >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void make_keys(uint32_t *keys, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t r = next_random(&seed), mask = (1u << KEY_BITS) - 1;
        keys[i] = (uint32_t)(((r & mask) + (r >> 20 & mask) + (r >> 40 & mask)) / 3);
    }
}

static struct digest digest_of(const uint32_t *keys, size_t count)
{
    struct digest d = {.count = count};
    for (size_t i = 0; i < count; i++) {
        d.sum += keys[i];
        d.squares += (uint64_t)keys[i] * keys[i];
    }
    return d;
}

/* owner[b]: the PE of bucket b, non-decreasing. Returns the largest number of keys of one PE. */
static size_t deal_buckets(int *owner, int pe_count, uint64_t total)
{
    uint64_t before = 0, of_pe = 0, largest = 0;
    int pe = 0;
    for (unsigned b = 0; b < BUCKET_COUNT; b++) {
        while (pe < pe_count - 1 && before >= total * (uint64_t)(pe + 1) / (uint64_t)pe_count) {
            pe++;
            of_pe = 0;
        }
        owner[b] = pe;
        before += (uint64_t)bucket_size[b];
        of_pe += (uint64_t)bucket_size[b];
        largest = of_pe > largest ? of_pe : largest;
    }
    return largest;
}

/* The keys for one PE. */
struct share {
    uint64_t at; /* in its inbox: the place of the next batch */
    uint32_t fill, batch[BATCH];
};

static void send_batch(struct share *share, uint32_t *inbox, int pe)
{
    shmem_uint32_put(inbox + share->at, share->batch, share->fill, pe); /* the batch can be filled again */
    share->at += share->fill;
    share->fill = 0;
}

static void send_keys(const uint32_t *keys, size_t count, const int *owner, uint32_t *inbox, int pe_count)
{
    struct share *shares = calloc((size_t)pe_count, sizeof(*shares));
    for (unsigned b = 0; b < BUCKET_COUNT; b++)
        shares[owner[b]].at += (uint64_t)bucket_size_here[b];
    for (int i = 1; i <= pe_count; i++) {
        int pe = (shmem_my_pe() + i) % pe_count; /* each PE starts with another one */
        shares[pe].at = shmem_ulong_atomic_fetch_add(&filled, shares[pe].at, pe);
    }
    for (size_t i = 0; i < count; i++) {
        int pe = owner[BUCKET_OF(keys[i])];
        struct share *share = &shares[pe];
        share->batch[share->fill++] = keys[i];
        if (share->fill == BATCH)
            send_batch(share, inbox, pe);
    }
    for (int pe = 0; pe < pe_count; pe++)
        send_batch(&shares[pe], inbox, pe);
    shmem_barrier_all(); /* all keys have arrived */
    free(shares);
}

/* Of this PE's buckets. There is room for RUN keys more. */
static void sort_by_counting(uint32_t *keys, size_t count, const int *owner, int me)
{
    uint32_t first = 0, end = BUCKET_COUNT;
    while (first < end && owner[first] != me)
        first++;
    while (end > first && owner[end - 1] != me)
        end--;
    uint32_t least = first << (KEY_BITS - BUCKET_BITS), range = (end - first) << (KEY_BITS - BUCKET_BITS);
    uint32_t *how_many = calloc(range + 1, sizeof(*how_many));
    for (size_t i = 0; i < count; i++)
        how_many[keys[i] - least]++;
    size_t at = 0;
    for (uint32_t key = 0; key < range; key++) {
        for (int n = 0; n < RUN;
             n++) /* always RUN of them, which is faster than testing how many: the next ones overwrite the excess */
            keys[at + (size_t)n] = least + key;
        for (uint32_t n = RUN; n < how_many[key]; n++)
            keys[at + n] = least + key;
        at += how_many[key];
    }
    free(how_many);
}

/* Collective: the number of errors on all PEs. */
static uint64_t count_wrong(const uint32_t *keys, size_t count, struct digest before, int me, int pe_count)
{
    static long long here[7], all[7]; /* symmetric: wrong pairs, digest before, digest after */
    long long *largest = shmem_malloc((size_t)pe_count * sizeof(*largest)); /* of each PE, -1 if it has no key */
    if (largest == NULL)
        shmem_global_exit(2);
    struct digest after = digest_of(keys, count);
    long long mine = count > 0 ? (long long)keys[count - 1] : -1;
    for (int pe = me + 1; pe < pe_count; pe++)
        shmem_longlong_p(&largest[me], mine, pe);
    shmem_barrier_all();
    uint64_t wrong = 0;
    for (size_t i = 1; i < count; i++)
        wrong += keys[i - 1] > keys[i];
    for (int pe = 0; pe < me && count > 0; pe++)
        wrong += largest[pe] > (long long)keys[0];
    uint64_t parts[7] = {wrong, before.count, before.sum, before.squares, after.count, after.sum, after.squares};
    static_assert(sizeof(parts) == sizeof(here), "sums without sign wrap as those with sign do");
    memcpy(here, parts, sizeof(here));
    shmem_longlong_sum_to_all(all, here, 7, 0, 0, pe_count, reduce_work[1], reduce_sync[1]);
    for (int i = 1; i <= 3; i++)
        all[0] += all[i] != all[i + 3];
    shmem_free(largest);
    return (uint64_t)all[0];
}

int main(int argc, char **argv)
{
    size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

    shmem_init();
    int me = shmem_my_pe();
    int pe_count = shmem_n_pes();
    for (int i = 0; i < 2 * SHMEM_REDUCE_SYNC_SIZE; i++)
        (&reduce_sync[0][0])[i] = SHMEM_SYNC_VALUE;
    uint32_t *keys = malloc((count + 1) * sizeof(*keys));
    make_keys(keys, count, seed * 1000003 + (uint64_t)me);
    struct digest before = digest_of(keys, count);

    shmem_barrier_all();
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (size_t i = 0; i < count; i++)
        bucket_size_here[BUCKET_OF(keys[i])]++;
    shmem_longlong_sum_to_all(bucket_size, bucket_size_here, BUCKET_COUNT, 0, 0, pe_count, reduce_work[0],
                              reduce_sync[0]);
    int owner[BUCKET_COUNT];
    size_t room = deal_buckets(owner, pe_count, (uint64_t)count * (uint64_t)pe_count);
    uint32_t *inbox = shmem_malloc((room + RUN) * sizeof(*inbox));
    if (inbox == NULL) {
        fprintf(stderr, "isort: no room for %zu keys; give SHMEM_SYMMETRIC_SIZE\n", room);
        shmem_global_exit(2);
    }
    send_keys(keys, count, owner, inbox, pe_count);
    sort_by_counting(inbox, filled, owner, me);
    shmem_barrier_all();
    clock_gettime(CLOCK_MONOTONIC, &end);

    uint64_t wrong = count_wrong(inbox, filled, before, me, pe_count);
    double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
    if (me == 0)
        printf("isort: %zu keys on %d PEs in %.3f s (seed %llu): %s\n", count * (size_t)pe_count, pe_count, seconds,
               (unsigned long long)seed, wrong == 0 ? "verified" : "WRONG");
    shmem_free(inbox);
    free(keys);
    shmem_finalize();
    return wrong == 0 ? 0 : 1;
}
