/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm_fft - the three-dimensional FFT of the NAS benchmarks (FT) on shared pages: a partial differential equation is
 * solved in frequency space. Verified by the checksums of the definition.
 *
 * Each PE has a slab of z in space and a slab of y in frequency space. A transform along z reads the slabs of all
 * others.
 *
 * Use: oshrun -n 4 dsm_fft [CLASS], S or W */
#include <complex.h>
#include <dsm.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ITERATIONS 6
#define SUMMED     1024
#define ALPHA      1e-6
#define MULTIPLIER 1220703125ull /* 5^13 */
#define SEED       314159265ull
#define LONGEST    128

typedef double complex complex_t;

static const struct class
{
    char name;
    long nx, ny, nz;
    double sums[ITERATIONS][2];
} classes[] = {
    {'S',
     64,
     64,
     64,
     {{5.546087004964e+02, 4.845363331978e+02},
      {5.546385409189e+02, 4.865304269511e+02},
      {5.546148406171e+02, 4.883910722336e+02},
      {5.545423607415e+02, 4.901273169046e+02},
      {5.544255039624e+02, 4.917475857993e+02},
      {5.542683411902e+02, 4.932597244941e+02}}},
    {'W',
     128,
     128,
     32,
     {{5.673612178944e+02, 5.293246849175e+02},
      {5.631436885271e+02, 5.282149986629e+02},
      {5.594024089970e+02, 5.270996558037e+02},
      {5.560698047020e+02, 5.260027904925e+02},
      {5.530898991250e+02, 5.249400845633e+02},
      {5.504159734538e+02, 5.239212247086e+02}}},
};

struct shared {
    dsm_lock_t lock;
    double sums[ITERATIONS][2];
};

static struct {
    long nx, ny, nz;
    complex_t *space, *frequency, *result; /* [z][y][x], [y][z][x], [y][z][x] */
    struct shared *shared;
    long first_z, end_z, first_y, end_y;
    complex_t roots[LONGEST];
} ft;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Random numbers: the generator of the definition, modulo 2^46. */

static uint64_t power(uint64_t exponent)
{
    uint64_t result = 1, base = MULTIPLIER;
    for (; exponent != 0; exponent >>= 1) {
        if (exponent & 1)
            result = result * base & ((1ull << 46) - 1);
        base = base * base & ((1ull << 46) - 1);
    }
    return result;
}

static double next_random(uint64_t *seed)
{
    *seed = *seed * MULTIPLIER & ((1ull << 46) - 1);
    return (double)*seed / (double)(1ull << 46);
}

static void fill_own(void)
{
    uint64_t plane = (uint64_t)(ft.nx * ft.ny);
    for (long z = ft.first_z; z < ft.end_z; z++) {
        uint64_t seed = SEED * power(2 * plane * (uint64_t)z) & ((1ull << 46) - 1);
        for (uint64_t i = 0; i < plane; i++) {
            double real = next_random(&seed);
            ft.space[(uint64_t)z * plane + i] = real + next_random(&seed) * I;
        }
    }
}

/* One dimension */

/* Of a count that divides the longest length; sign -1 forward, 1 backward. */
static void transform(complex_t *line, long count, int sign)
{
    for (long i = 1, j = 0; i < count; i++) {
        long bit = count >> 1;
        for (; j & bit; bit >>= 1)
            j ^= bit;
        j ^= bit;
        if (i < j) {
            complex_t held = line[i];
            line[i] = line[j];
            line[j] = held;
        }
    }
    for (long length = 2; length <= count; length *= 2) {
        long step = LONGEST / length;
        for (long start = 0; start < count; start += length) {
            for (long k = 0; k < length / 2; k++) {
                complex_t root = sign > 0 ? ft.roots[k * step] : conj(ft.roots[k * step]);
                complex_t even = line[start + k], odd = line[start + k + length / 2];
                double real = creal(odd) * creal(root) - cimag(odd) * cimag(root);
                double imaginary = creal(odd) * cimag(root) + cimag(odd) * creal(root);
                line[start + k] = even + (real + imaginary * I);
                line[start + k + length / 2] = even - (real + imaginary * I);
            }
        }
    }
}

/* Along x and y, in this PE's slab of space. */
static void transform_planes(int sign)
{
    complex_t line[LONGEST];
    for (long z = ft.first_z; z < ft.end_z; z++) {
        complex_t *plane = ft.space + z * ft.ny * ft.nx;
        for (long y = 0; y < ft.ny; y++)
            transform(plane + y * ft.nx, ft.nx, sign);
        for (long x = 0; x < ft.nx; x++) {
            for (long y = 0; y < ft.ny; y++)
                line[y] = plane[y * ft.nx + x];
            transform(line, ft.ny, sign);
            for (long y = 0; y < ft.ny; y++)
                plane[y * ft.nx + x] = line[y];
        }
    }
}

/* Along z, in this PE's slab of frequency space. */
static void transform_depths(complex_t *slab, int sign)
{
    complex_t line[LONGEST];
    for (long y = ft.first_y; y < ft.end_y; y++) {
        complex_t *plane = slab + y * ft.nz * ft.nx;
        for (long x = 0; x < ft.nx; x++) {
            for (long z = 0; z < ft.nz; z++)
                line[z] = plane[z * ft.nx + x];
            transform(line, ft.nz, sign);
            for (long z = 0; z < ft.nz; z++)
                plane[z * ft.nx + x] = line[z];
        }
    }
}

/* Three dimensions */

static void to_frequency(void)
{
    transform_planes(-1);
    dsm_barrier_all();
    for (long y = ft.first_y; y < ft.end_y; y++) {
        for (long z = 0; z < ft.nz; z++) {
            for (long x = 0; x < ft.nx; x++)
                ft.frequency[(y * ft.nz + z) * ft.nx + x] = ft.space[(z * ft.ny + y) * ft.nx + x];
        }
    }
    transform_depths(ft.frequency, -1);
}

static double wave_number(long at, long count)
{
    return (double)((at + count / 2) % count - count / 2);
}

static void evolve(void)
{
    double scale = -4 * ALPHA * M_PI * M_PI;
    for (long y = ft.first_y; y < ft.end_y; y++) {
        for (long z = 0; z < ft.nz; z++) {
            double ky = wave_number(y, ft.ny), kz = wave_number(z, ft.nz);
            for (long x = 0; x < ft.nx; x++) {
                double kx = wave_number(x, ft.nx);
                long at = (y * ft.nz + z) * ft.nx + x;
                ft.frequency[at] *= exp(scale * (kx * kx + ky * ky + kz * kz));
                ft.result[at] = ft.frequency[at];
            }
        }
    }
}

static void to_space(void)
{
    transform_depths(ft.result, 1);
    dsm_barrier_all();
    for (long z = ft.first_z; z < ft.end_z; z++) {
        for (long y = 0; y < ft.ny; y++) {
            for (long x = 0; x < ft.nx; x++)
                ft.space[(z * ft.ny + y) * ft.nx + x] = ft.result[(y * ft.nz + z) * ft.nx + x];
        }
    }
    transform_planes(1);
}

static void sum_up(int iteration)
{
    complex_t sum = 0;
    for (long j = 1; j <= SUMMED; j++) {
        long x = j % ft.nx, y = 3 * j % ft.ny, z = 5 * j % ft.nz;
        if (ft.first_z <= z && z < ft.end_z)
            sum += ft.space[(z * ft.ny + y) * ft.nx + x];
    }
    double points = (double)(ft.nx * ft.ny * ft.nz);
    dsm_lock(&ft.shared->lock);
    ft.shared->sums[iteration][0] += creal(sum) / points;
    ft.shared->sums[iteration][1] += cimag(sum) / points;
    dsm_unlock(&ft.shared->lock);
}

static int verify(const struct class *class)
{
    int failed = 0;
    for (int i = 0; i < ITERATIONS; i++) {
        const double *sum = ft.shared->sums[i], *expected = class->sums[i];
        if (fabs(sum[0] / expected[0] - 1) < 1e-12 && fabs(sum[1] / expected[1] - 1) < 1e-12)
            continue;
        printf("iteration %d: checksum is %.12e %.12e, but %.12e %.12e is required\n", i + 1, sum[0], sum[1],
               expected[0], expected[1]);
        failed++;
    }
    return failed;
}

static void share_out(int me, int pes)
{
    ft.first_z = ft.nz * me / pes;
    ft.end_z = ft.nz * (me + 1) / pes;
    ft.first_y = ft.ny * me / pes;
    ft.end_y = ft.ny * (me + 1) / pes;
    for (long i = 0; i < LONGEST; i++)
        ft.roots[i] = cos(2 * M_PI * (double)i / LONGEST) + sin(2 * M_PI * (double)i / LONGEST) * I;
    size_t bytes = (size_t)(ft.nx * ft.ny * ft.nz) * sizeof(complex_t);
    ft.space = dsm_all_malloc(bytes);
    ft.frequency = dsm_all_malloc(bytes);
    ft.result = dsm_all_malloc(bytes);
    ft.shared = dsm_all_malloc(sizeof *ft.shared);
}

int main(int count, char **words)
{
    const struct class *class = &classes[count > 1 && words[1][0] == 'W'];
    dsm_init();
    int me = dsm_my_pe(), pes = dsm_n_pes(), failed = 0;
    ft.nx = class->nx;
    ft.ny = class->ny;
    ft.nz = class->nz;
    share_out(me, pes);
    fill_own();
    dsm_barrier_all();
    double since = seconds();
    to_frequency();
    for (int i = 0; i < ITERATIONS; i++) {
        evolve();
        to_space();
        sum_up(i);
        dsm_barrier_all(); /* before others overwrite what the transform read */
    }
    double took = seconds() - since;
    if (me == 0) {
        failed = verify(class);
        printf("FT class %c: verification %s, %d PEs: %.4f s\n", class->name, failed ? "FAILED" : "PASSED", pes, took);
    }
    dsm_barrier_all();
    dsm_all_free(ft.shared);
    dsm_all_free(ft.result);
    dsm_all_free(ft.frequency);
    dsm_all_free(ft.space);
    dsm_finalize();
    return failed != 0;
}
