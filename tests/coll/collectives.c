/* SPDX-License-Identifier: BSD-3-Clause */
/* collectives.c - random collectives give the result of a sequential program, byte for byte.
 *
 * Use: collectives [--seed N] [--steps N] [--seconds S]     (seed 1; 100 steps, or as many as fit in S seconds)
 * Aim: every collective of the public header, of each type and operator, on any number of hosts, one after another
 * without a barrier, on the world, on teams made by splits (strided in both directions, in two dimensions, splits of
 * splits) and on active sets. Method: all members draw the same operations from one seed; contents are functions of
 * (key, rank, position), so each member computes its expected result alone. After each operation the source is
 * overwritten at once, and dest is compared, with the bytes around it, and refilled.
 */
#include "collectives.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MARGIN_BYTES 64  /* on both sides of dest, which nobody may touch */
#define PLACE_BYTES  256 /* dest and source begin up to so many bytes further */
#define ROOM_BYTES   (BYTES_MAX + PLACE_BYTES + 2 * MARGIN_BYTES)
#define TEAMS_DEEP   3
#define SYNC_BANKS   (2 * TEAMS_DEEP + 1)
#define SYNCS        8 /* active sets in a row without a meeting */

static struct {
    uint64_t seed;
    uint64_t step_count;
    uint64_t operation_count;
    struct quoit_prng chance; /* differs between PEs: delays */
    unsigned char *source, *dest;
    unsigned char *work; /* symmetric */
    unsigned char *model, *scratch;
} test;

static long syncs[SYNC_BANKS * SYNCS][SHMEM_SYNC_SIZE]; /* symmetric */

static void fail(const struct group *group, const char *what)
{
    fprintf(stderr, "collectives: PE %d, rank %d of %d, PEs %d by %d%s, operation %llu: %s (again: --seed %llu)\n",
            shmem_my_pe(), group->rank, group->size, group->start, group->stride,
            group->team == SHMEM_TEAM_INVALID ? " as active set" : "", (unsigned long long)test.operation_count, what,
            (unsigned long long)test.seed);
    shmem_global_exit(1);
    abort();
}

uint64_t collective_mix(uint64_t word)
{
    word = (word ^ (word >> 33)) * 0xff51afd7ed558ccdu;
    word = (word ^ (word >> 33)) * 0xc4ceb9fe1a85ec53u;
    return word ^ (word >> 33);
}

void collective_fill(const struct operation *operation, int rank, size_t at, void *to, size_t bytes)
{
    uint64_t key = collective_mix(operation->key + (uint64_t)rank * 0x9e3779b97f4a7c15u);
    unsigned char *out = to;
    for (size_t i = at; i < at + bytes; i++)
        *out++ = (unsigned char)((key >> (i % 8 * 8)) ^ (i * 131 + i / 256));
}

size_t collective_count(struct group *group, size_t element_bytes, size_t most)
{
    uint64_t form = quoit_prng_choose(&group->prng, 20);
    size_t limit = (size_t)1 << quoit_prng_choose(&group->prng, 21);
    size_t count = quoit_prng_choose(&group->prng, (limit < most ? limit : most) + 1) / element_bytes;
    if (form == 0)
        return 0;
    return form <= 2 && element_bytes <= most ? 1 : count;
}

static void delay(void)
{
    if (quoit_prng_choose(&test.chance, 10) == 0)
        nanosleep(&(struct timespec){.tv_nsec = (long)quoit_prng_choose(&test.chance, 400000)}, NULL);
}

void collective_begin(struct operation *operation, struct group *group, size_t element_bytes, size_t source_bytes,
                      size_t dest_bytes, bool is_in_place)
{
    size_t places = PLACE_BYTES / element_bytes;
    uint64_t source_place = quoit_prng_choose(&group->prng, places) * element_bytes;
    uint64_t dest_place = quoit_prng_choose(&group->prng, places) * element_bytes;
    *operation = (struct operation){.group = group,
                                    .key = quoit_prng_next(&group->prng),
                                    .is_in_place = is_in_place,
                                    .dest = test.dest + MARGIN_BYTES + dest_place,
                                    .model = test.model + MARGIN_BYTES,
                                    .scratch = test.scratch,
                                    .source_bytes = source_bytes,
                                    .dest_bytes = dest_bytes,
                                    .element_bytes = element_bytes,
                                    .value_bytes = element_bytes};
    operation->source = is_in_place ? operation->dest : test.source + source_place;
    memset(operation->dest - MARGIN_BYTES, 0xee, dest_bytes + 2 * MARGIN_BYTES);
    memset(test.model, 0xee, dest_bytes + 2 * MARGIN_BYTES);
    delay();
}

/* The first byte that differs, from the lower margin on; SIZE_MAX: none does. */
static size_t find_difference(const struct operation *operation)
{
    const unsigned char *dest = operation->dest - MARGIN_BYTES, *model = operation->model - MARGIN_BYTES;
    size_t all = operation->dest_bytes + 2 * MARGIN_BYTES;
    for (size_t i = 0; i < all; i++) {
        bool is_inside = i >= MARGIN_BYTES && i < MARGIN_BYTES + operation->dest_bytes;
        if (dest[i] != model[i] &&
            (!is_inside || (i - MARGIN_BYTES) % operation->element_bytes < operation->value_bytes))
            return i;
    }
    return SIZE_MAX;
}

void collective_end(const struct operation *operation, const char *name, const char *type, int status)
{
    char text[200];
    if (!operation->is_in_place)
        memset(operation->source, 0x3c, operation->source_bytes);
    delay();
    test.operation_count++;
    size_t at = find_difference(operation);
    if (status == 0 && at == SIZE_MAX)
        return;
    snprintf(text, sizeof text, "%s of %s%s, %zu bytes, status %d: byte %td is %02x, not %02x", name, type,
             operation->is_in_place ? " in place" : "", operation->dest_bytes, status, (ptrdiff_t)at - MARGIN_BYTES,
             at == SIZE_MAX ? 0 : operation->dest[(ptrdiff_t)at - MARGIN_BYTES],
             at == SIZE_MAX ? 0 : operation->model[(ptrdiff_t)at - MARGIN_BYTES]);
    fail(operation->group, text);
}

static void use_team(struct group *group, shmem_team_t team)
{
    group->team = team;
    group->rank = shmem_team_my_pe(team);
    group->size = shmem_team_n_pes(team);
    group->start = shmem_team_translate_pe(team, 0, SHMEM_TEAM_WORLD);
    group->stride = group->size > 1 ? shmem_team_translate_pe(team, 1, SHMEM_TEAM_WORLD) - group->start : 1;
    group->set_count = 0;
}

static int pe_of(const struct group *group, int rank)
{
    return group->start + group->stride * rank;
}

/* A put to the next member is there after quiet and sync, and after a barrier alone. */
static void meet(struct group *group)
{
    static uint64_t mark;
    uint64_t key = quoit_prng_next(&group->prng);
    bool is_world = group->team == SHMEM_TEAM_WORLD && quoit_prng_choose(&group->prng, 2) == 0;
    int next = pe_of(group, (group->rank + 1) % group->size);
    int failed = shmem_team_sync(group->team);
    shmem_uint64_p(&mark, key, next);
    if (is_world) {
        shmem_barrier_all();
    } else {
        shmem_quiet();
        failed |= shmem_team_sync(group->team);
    }
    if (failed || mark != key)
        fail(group, "a put before a sync came after it");
    if (is_world)
        shmem_sync_all();
    else
        shmem_team_sync(group->team);
    test.operation_count++;
}

/* The same of an active set. */
static void meet_set(struct group *group)
{
    static uint64_t mark;
    uint64_t key = quoit_prng_next(&group->prng);
    shmem_sync(group->start, group->log_stride, group->size, group->sync);
    shmem_uint64_p(&mark, key, pe_of(group, (group->rank + 1) % group->size));
    shmem_barrier(group->start, group->log_stride, group->size, group->sync);
    if (mark != key)
        fail(group, "a put before a barrier came after it");
    shmem_barrier(group->start, group->log_stride, group->size, group->sync);
    test.operation_count++;
}

/* Some of the members as an active set; the others go on. */
static void use_set(struct group *group)
{
    static void (*const operations[])(struct group * group) = {collective_broadcast, collective_collect,
                                                               collective_alltoall,  collective_alltoalls,
                                                               collective_reduce,    meet_set};
    int first = (int)quoit_prng_choose(&group->prng, (uint64_t)group->size);
    int log_step = (int)quoit_prng_choose(&group->prng, 4);
    int most = (group->size - 1 - first) / (1 << log_step) + 1;
    struct group set = *group;
    set.size =
        quoit_prng_choose(&group->prng, 3) == 0 ? most : 1 + (int)quoit_prng_choose(&group->prng, (uint64_t)most);
    set.prng.state = quoit_prng_next(&group->prng);
    if (group->set_count++ % SYNCS == SYNCS - 1)
        shmem_team_sync(group->team); /* the next pSync was used by members who may still be there */
    int distance = group->rank - first;
    if (distance < 0 || distance % (1 << log_step) != 0 || distance >> log_step >= set.size)
        return;
    set.team = SHMEM_TEAM_INVALID;
    set.rank = distance >> log_step;
    set.start = pe_of(group, first);
    set.stride = group->stride << log_step;
    set.log_stride = __builtin_ctz((unsigned)set.stride);
    set.sync = syncs[group->bank * SYNCS + group->set_count % SYNCS];
    operations[quoit_prng_choose(&set.prng, sizeof operations / sizeof operations[0])](&set);
}

static void step(struct group *group, int depth);

/* What a split made, or nothing; `number` tells the sibling groups apart. */
static struct group child_of(const struct group *parent, shmem_team_t team, int bank, int number)
{
    struct group child = *parent;
    child.prng.state = collective_mix(parent->prng.state + (uint64_t)number * 0x9e3779b97f4a7c15u);
    child.bank = bank;
    use_team(&child, team);
    return child;
}

/* The members fall apart by turns; each new team works on its own, and may split again. */
static void split_by_turns(struct group *group, int depth)
{
    int stride = 1 + (int)quoit_prng_choose(&group->prng, (uint64_t)group->size), failed = 0;
    int count = (int)quoit_prng_choose(&group->prng, 6);
    bool is_backward = quoit_prng_choose(&group->prng, 2) == 0;
    shmem_team_t made = SHMEM_TEAM_INVALID;
    for (int first = 0; first < stride; first++) {
        shmem_team_t other;
        int size = (group->size - first + stride - 1) / stride;
        failed |= shmem_team_split_strided(group->team, is_backward ? first + stride * (size - 1) : first,
                                           is_backward ? -stride : stride, size, NULL, 0, &other);
        if (other != SHMEM_TEAM_INVALID)
            made = other;
    }
    if (failed || made == SHMEM_TEAM_INVALID)
        fail(group, "no team came of a split by turns");
    struct group child = child_of(group, made, group->bank, group->rank % stride);
    for (int i = 0; i < count; i++)
        step(&child, depth + 1);
    shmem_team_destroy(made);
}

/* One team of some members; the others wait. */
static void split_some(struct group *group, int depth)
{
    int first = (int)quoit_prng_choose(&group->prng, (uint64_t)group->size);
    int last = (int)quoit_prng_choose(&group->prng, (uint64_t)group->size);
    int distance = last > first ? last - first : first - last;
    int step_by = 1 + (int)quoit_prng_choose(&group->prng, (uint64_t)distance + 1), size = distance / step_by + 1;
    int count = (int)quoit_prng_choose(&group->prng, 6);
    shmem_team_t made;
    int failed = shmem_team_split_strided(group->team, first, last < first ? -step_by : step_by, size, NULL, 0, &made);
    int to = last < first ? first - group->rank : group->rank - first;
    bool is_member = to >= 0 && to % step_by == 0 && to / step_by < size;
    if (failed || is_member != (made != SHMEM_TEAM_INVALID))
        fail(group, "a split of some members made the wrong ones members");
    if (!is_member)
        return;
    struct group child = child_of(group, made, group->bank, 0);
    if (child.rank != to / step_by || child.size != size)
        fail(group, "a split of some members gave the wrong ranks");
    for (int i = 0; i < count; i++)
        step(&child, depth + 1);
    shmem_team_destroy(made);
}

/* Rows and columns, all at work by turns with the team that they came of. */
static void split_in_two(struct group *group, int depth)
{
    int range = 1 + (int)quoit_prng_choose(&group->prng, (uint64_t)group->size);
    int count = (int)quoit_prng_choose(&group->prng, 12);
    shmem_team_t rows, columns;
    if (shmem_team_split_2d(group->team, range, NULL, 0, &rows, NULL, 0, &columns) != 0 || rows == SHMEM_TEAM_INVALID ||
        columns == SHMEM_TEAM_INVALID)
        fail(group, "no teams came of a split in two dimensions");
    struct group row = child_of(group, rows, 2 * depth + 1, group->rank / range);
    struct group column = child_of(group, columns, 2 * depth + 2, group->size + group->rank % range);
    if (row.rank != group->rank % range || column.rank != group->rank / range)
        fail(group, "a split in two dimensions gave the wrong ranks");
    for (int i = 0; i < count; i++) {
        uint64_t turn = quoit_prng_choose(&group->prng, 3);
        step(turn == 0 ? &row : turn == 1 ? &column : group, turn == 2 ? TEAMS_DEEP : depth + 1);
    }
    shmem_team_destroy(columns);
    shmem_team_destroy(rows);
}

static void split(struct group *group, int depth)
{
    static void (*const splits[])(struct group * group, int depth) = {split_by_turns, split_some, split_in_two};
    shmem_team_sync(group->team); /* pSyncs are free again */
    splits[quoit_prng_choose(&group->prng, sizeof splits / sizeof splits[0])](group, depth);
    shmem_team_sync(group->team);
    group->set_count = 0;
}

static void step(struct group *group, int depth)
{
    static void (*const operations[])(struct group * group) = {
        collective_broadcast, collective_collect, collective_alltoall, collective_alltoalls,
        collective_reduce,    collective_reduce,  collective_scan,     meet};
    bool can_be_set = group->stride > 0 && (group->stride & (group->stride - 1)) == 0;
    uint64_t form = quoit_prng_choose(&group->prng, 16);
    if (depth < TEAMS_DEEP && form == 0)
        split(group, depth);
    else if (can_be_set && form < 5)
        use_set(group);
    else
        operations[quoit_prng_choose(&group->prng, sizeof operations / sizeof operations[0])](group);
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* As many as were asked for, or until PE 0 says that the time is over. */
static void run(struct group *world, double seconds)
{
    static int does_go_on, does_now;
    double end = seconds_now() + seconds;
    for (uint64_t done = 0; seconds > 0 || done < test.step_count; done++) {
        does_now = seconds_now() < end;
        if (seconds > 0 && done % 16 == 0) {
            shmem_int_broadcast(SHMEM_TEAM_WORLD, &does_go_on, &does_now, 1, 0);
            if (!does_go_on)
                return;
        }
        step(world, 0);
    }
}

static double parse(int argc, char **argv)
{
    static const struct option options[] = {{"seed", required_argument, NULL, 'n'},
                                            {"steps", required_argument, NULL, 'c'},
                                            {"seconds", required_argument, NULL, 's'},
                                            {NULL, 0, NULL, 0}};
    double seconds = 0;
    int option;
    test.seed = 1;
    test.step_count = 100;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 'n')
            test.seed = strtoull(optarg, NULL, 0);
        else if (option == 'c')
            test.step_count = strtoull(optarg, NULL, 0);
        else if (option == 's')
            seconds = atof(optarg);
        else
            exit(2);
    }
    return seconds;
}

int main(int argc, char **argv)
{
    struct group world = {.set_count = 0};
    double seconds = parse(argc, argv);
    shmem_init();
    world.prng.state = collective_mix(test.seed);
    test.chance.state = test.seed * 1000 + (uint64_t)shmem_my_pe();
    test.source = shmem_malloc(ROOM_BYTES);
    test.dest = shmem_malloc(ROOM_BYTES);
    test.work = shmem_malloc(ROOM_BYTES);
    test.model = malloc(ROOM_BYTES);
    test.scratch = malloc(ROOM_BYTES);
    use_team(&world, SHMEM_TEAM_WORLD);
    if (!test.source || !test.dest || !test.work || !test.model || !test.scratch)
        fail(&world, "no memory");
    world.work = test.work;
    for (int i = 0; i < SYNC_BANKS * SYNCS; i++)
        for (int word = 0; word < SHMEM_SYNC_SIZE; word++)
            syncs[i][word] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    run(&world, seconds);
    shmem_barrier_all();
    for (int i = 0; i < SYNC_BANKS * SYNCS; i++)
        for (int word = 0; word < SHMEM_SYNC_SIZE; word++)
            if (syncs[i][word] != SHMEM_SYNC_VALUE)
                fail(&world, "a pSync was not given back as it was");
    if (shmem_my_pe() == 0)
        printf("collectives: %llu operations of PE 0, %d PEs, seed %llu: verified\n",
               (unsigned long long)test.operation_count, world.size, (unsigned long long)test.seed);
    free(test.scratch);
    free(test.model);
    shmem_free(test.work);
    shmem_free(test.dest);
    shmem_free(test.source);
    shmem_finalize();
    return 0;
}
