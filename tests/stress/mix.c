/* SPDX-License-Identifier: BSD-3-Clause */
/* mix.c - every PE does all kinds of operations at once, random sizes to random PEs, and every byte is checked.
 *
 * Use: mix [--seconds S] [--seed N] [--max-bytes B]     (3 seconds, seed 1, 4 MiB)
 * The run is divided into parts of about a second; after each, with no operation outstanding, all memory is compared
 * with the model. A failure prints the seed; the same seed gives the same operations, though not the same timing.
 */
#include "mix.h"

#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shmem.h>

void mix_fail(const struct mix *mix, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "mix: PE %d of %d, step %llu: %s (again: mix --seed %llu --max-bytes %zu)\n", mix->me,
            mix->pe_count, (unsigned long long)mix->step_count, text, (unsigned long long)mix->seed, mix->bytes_max);
    shmem_global_exit(1);
    abort();
}

void *mix_symmetric(const struct mix *mix, size_t count, size_t bytes)
{
    void *memory = shmem_calloc(count, bytes);
    if (memory == NULL)
        mix_fail(mix, "no symmetric memory for %zu x %zu bytes", count, bytes);
    return memory;
}

void *mix_private(const struct mix *mix, size_t count, size_t bytes)
{
    void *memory = calloc(count, bytes);
    if (memory == NULL)
        mix_fail(mix, "no memory for %zu x %zu bytes", count, bytes);
    return memory;
}

size_t mix_choose(struct mix *mix, size_t n)
{
    return (size_t)quoit_prng_choose(&mix->prng, n);
}

size_t mix_choose_size(struct mix *mix, size_t most)
{
    size_t bits = 1;
    while (most >> bits != 0)
        bits++;
    size_t below = (size_t)1 << mix_choose(mix, bits);
    size_t size = below + mix_choose(mix, below);
    return size < most ? size : most;
}

uint64_t mix_hash(uint64_t a, uint64_t b, uint64_t c)
{
    struct quoit_prng prng = {a * 0x9e3779b97f4a7c15u ^ (b + 1) * 0xd1b54a32d192ed03u ^ (c + 1) * 0x8cb92ba72f3d8dd7u};
    return quoit_prng_next(&prng);
}

void mix_fill(uint8_t *bytes, size_t count, uint64_t key)
{
    struct quoit_prng prng = {key};
    for (size_t i = 0; i < count; i += 8) {
        uint64_t word = quoit_prng_next(&prng);
        memcpy(bytes + i, &word, count - i < 8 ? count - i : 8);
    }
}

size_t mix_differs(const uint8_t *bytes, size_t count, uint64_t key)
{
    struct quoit_prng prng = {key};
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++) {
        if (i % 8 == 0)
            word = quoit_prng_next(&prng);
        if (bytes[i] != (uint8_t)(word >> i % 8 * 8))
            return i;
    }
    return count;
}

double mix_seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* One operation, or a burst of one kind, with any PE; often with the PE that all prefer in this part of the run. */
static void step(struct mix *mix, int preferred)
{
    int pe = mix_choose(mix, 3) == 0 ? preferred : (int)mix_choose(mix, (size_t)mix->pe_count);
    switch (mix_choose(mix, 4)) {
    case 0:
    case 1:
        transfers_step(mix, pe);
        break;
    case 2:
        messages_step(mix, pe);
        break;
    default:
        atomics_step(mix, pe);
    }
    messages_poll(mix);
    mix->step_count++;
}

static void run_piece(struct mix *mix, int piece, double seconds)
{
    int preferred = (int)(mix_hash(mix->seed, (uint64_t)piece, 5) % (uint64_t)mix->pe_count);
    /* In every third part only that PE works while the others sleep, so that nothing keeps the ring awake. */
    bool is_working = piece % 3 != 2 || mix->me == preferred;
    double end = mix_seconds_now() + seconds;
    while (is_working && mix_seconds_now() < end)
        step(mix, preferred);
    atomics_storm(mix, preferred);
    shmem_barrier_all(); /* completes all outstanding operations */
    transfers_completed(mix);
    atomics_completed(mix);
    messages_check(mix);
    shmem_barrier_all();
    atomics_check(mix);
    transfers_check(mix);
    shmem_barrier_all();
}

static void parse(int argc, char **argv, double *seconds_out, struct mix *mix)
{
    static const struct option options[] = {{"seconds", required_argument, NULL, 's'},
                                            {"seed", required_argument, NULL, 'n'},
                                            {"max-bytes", required_argument, NULL, 'b'},
                                            {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (option == 's')
            *seconds_out = atof(optarg);
        else if (option == 'n')
            mix->seed = strtoull(optarg, NULL, 0);
        else if (option == 'b')
            mix->bytes_max = strtoull(optarg, NULL, 0);
        else
            exit(2);
    }
    if (mix->bytes_max < 64) {
        fprintf(stderr, "mix: --max-bytes must be 64 or more\n");
        exit(2);
    }
}

int main(int argc, char **argv)
{
    static uint64_t here[2], all[2]; /* symmetric */
    struct mix mix = {.seed = 1, .bytes_max = 4 << 20};
    double seconds = 3;
    parse(argc, argv, &seconds, &mix);
    shmem_init();
    mix.me = shmem_my_pe();
    mix.pe_count = shmem_n_pes();
    mix.prng.state = mix_hash(mix.seed, (uint64_t)mix.me, 99);
    transfers_open(&mix);
    messages_open(&mix);
    atomics_open(&mix);
    shmem_barrier_all();
    if (mix.me == 0) {
        printf("mix: %d PEs begin\n", mix.pe_count);
        fflush(stdout);
    }

    int pieces = seconds < 2 ? 2 : (int)seconds;
    for (int piece = 0; piece < pieces; piece++)
        run_piece(&mix, piece, seconds / pieces);

    here[0] = mix.step_count;
    here[1] = mix.byte_count;
    shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, all, here, 2);
    if (mix.me == 0)
        printf("mix: %d PEs, %llu steps, %.1f MB, seed %llu: verified\n", mix.pe_count, (unsigned long long)all[0],
               (double)all[1] / 1e6, (unsigned long long)mix.seed);
    atomics_close(&mix);
    messages_close(&mix);
    transfers_close(&mix);
    shmem_finalize();
    return 0;
}
