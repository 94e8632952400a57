/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm_lu - LU factorisation of a dense matrix by blocks, on shared pages, without pivoting.
 *
 * PEs form a grid over the blocks. Those of a PE are contiguous, column by column, and begin with a page: each page has
 * one writer, which is its home. Verified by solving a system whose solution is known.
 *
 * Use: oshrun -n 4 dsm_lu [SIZE [BLOCK]] */
#include <dsm.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define PAGE_WORDS (4096 / (long)sizeof(double))

static struct {
    double *blocks; /* [PE][block column][block row][row][column] */
    long *starts;   /* [PE] index of its first word */
    long size, block, count;
    int me, grid_rows, grid_columns;
} lu = {.size = 512, .block = 16};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int owner(long row, long column)
{
    return (int)(row % lu.grid_rows * lu.grid_columns + column % lu.grid_columns);
}

/* Block rows, and block columns, of which a PE has blocks. */
static long rows_of(int pe)
{
    return (lu.count - pe / lu.grid_columns + lu.grid_rows - 1) / lu.grid_rows;
}

static long columns_of(int pe)
{
    return (lu.count - pe % lu.grid_columns + lu.grid_columns - 1) / lu.grid_columns;
}

static double *block_at(long row, long column)
{
    int pe = owner(row, column);
    long index = column / lu.grid_columns * rows_of(pe) + row / lu.grid_rows;
    return lu.blocks + lu.starts[pe] + index * lu.block * lu.block;
}

/* Returns the number of words of all parts. */
static long place_parts(int pes)
{
    long words = 0;
    lu.starts = malloc((size_t)pes * sizeof *lu.starts);
    for (int pe = 0; pe < pes; pe++) {
        lu.starts[pe] = words;
        long own = rows_of(pe) * columns_of(pe) * lu.block * lu.block;
        words += (own + PAGE_WORDS - 1) / PAGE_WORDS * PAGE_WORDS;
    }
    return words;
}

static double *at(long row, long column)
{
    return block_at(row / lu.block, column / lu.block) + row % lu.block * lu.block + column % lu.block;
}

/* The matrix is a formula, so the check needs no communication. */
static double value_of(long row, long column)
{
    unsigned long mix = (unsigned long)(row * 7919 + column * 104729) * 0x9e3779b97f4a7c15ul;
    return (double)(mix >> 40) / (1 << 24) + (row == column ? (double)lu.size : 0);
}

static void fill_own(void)
{
    for (long row = 0; row < lu.size; row += lu.block) {
        for (long column = 0; column < lu.size; column += lu.block) {
            if (owner(row / lu.block, column / lu.block) != lu.me)
                continue;
            for (long i = 0; i < lu.block * lu.block; i++)
                block_at(row / lu.block, column / lu.block)[i] = value_of(row + i / lu.block, column + i % lu.block);
        }
    }
}

static void factor_diagonal(double *a)
{
    long n = lu.block;
    for (long k = 0; k < n; k++) {
        for (long i = k + 1; i < n; i++) {
            double factor = a[i * n + k] /= a[k * n + k];
            for (long j = k + 1; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
    }
}

/* A block to the right of the diagonal one: solved with its lower triangle. */
static void solve_right(double *a, const double *diagonal)
{
    long n = lu.block;
    for (long k = 0; k < n; k++) {
        for (long i = k + 1; i < n; i++) {
            double factor = diagonal[i * n + k];
            for (long j = 0; j < n; j++)
                a[i * n + j] -= factor * a[k * n + j];
        }
    }
}

/* A block below the diagonal one: solved with its upper triangle. */
static void solve_below(double *a, const double *diagonal)
{
    long n = lu.block;
    for (long i = 0; i < n; i++) {
        for (long k = 0; k < n; k++) {
            double factor = a[i * n + k] /= diagonal[k * n + k];
            for (long j = k + 1; j < n; j++)
                a[i * n + j] -= factor * diagonal[k * n + j];
        }
    }
}

static void subtract_product(double *restrict a, const double *restrict left, const double *restrict right)
{
    long n = lu.block;
    for (long i = 0; i < n; i++) {
        for (long k = 0; k < n; k++) {
            double factor = left[i * n + k];
            for (long j = 0; j < n; j++)
                a[i * n + j] -= factor * right[k * n + j];
        }
    }
}

static void factor(void)
{
    for (long k = 0; k < lu.count; k++) {
        if (owner(k, k) == lu.me)
            factor_diagonal(block_at(k, k));
        dsm_barrier_all();
        for (long i = k + 1; i < lu.count; i++) {
            if (owner(k, i) == lu.me)
                solve_right(block_at(k, i), block_at(k, k));
            if (owner(i, k) == lu.me)
                solve_below(block_at(i, k), block_at(k, k));
        }
        dsm_barrier_all();
        for (long i = k + 1; i < lu.count; i++) {
            for (long j = k + 1; j < lu.count; j++) {
                if (owner(i, j) == lu.me)
                    subtract_product(block_at(i, j), block_at(i, k), block_at(k, j));
            }
        }
    }
    dsm_barrier_all();
}

/* The right-hand side belongs to a solution of ones: the error of the solution by the factors. */
static double largest_error(void)
{
    double *x = malloc((size_t)lu.size * sizeof *x), largest = 0;
    for (long row = 0; row < lu.size; row++) {
        x[row] = 0;
        for (long column = 0; column < lu.size; column++)
            x[row] += value_of(row, column);
        for (long column = 0; column < row; column++)
            x[row] -= *at(row, column) * x[column];
    }
    for (long row = lu.size - 1; row >= 0; row--) {
        for (long column = row + 1; column < lu.size; column++)
            x[row] -= *at(row, column) * x[column];
        x[row] /= *at(row, row);
        largest = fmax(largest, fabs(x[row] - 1));
    }
    free(x);
    return largest;
}

int main(int count, char **words)
{
    lu.size = count > 1 ? atol(words[1]) : lu.size;
    lu.block = count > 2 ? atol(words[2]) : lu.block;
    if (lu.size < 1 || lu.block < 1 || lu.size % lu.block != 0) {
        fprintf(stderr, "dsm_lu: SIZE is a multiple of BLOCK, both at least 1\n");
        return 2;
    }
    dsm_init();
    int pes = dsm_n_pes(), is_right = 1;
    lu.me = dsm_my_pe();
    lu.count = lu.size / lu.block;
    for (lu.grid_rows = 1; (lu.grid_rows + 1) * (lu.grid_rows + 1) <= pes;)
        lu.grid_rows++;
    while (pes % lu.grid_rows != 0)
        lu.grid_rows--;
    lu.grid_columns = pes / lu.grid_rows;
    lu.blocks = dsm_all_malloc((size_t)place_parts(pes) * sizeof *lu.blocks);
    fill_own();
    dsm_barrier_all();
    double since = seconds();
    factor();
    double took = seconds() - since;
    if (lu.me == 0) {
        double error = largest_error();
        is_right = error < 1e-9;
        printf("largest error %.1e\nverification %s\n%ld x %ld, blocks of %ld, %d PEs: %.4f s\n", error,
               is_right ? "PASSED" : "FAILED", lu.size, lu.size, lu.block, pes, took);
    }
    dsm_barrier_all();
    dsm_all_free(lu.blocks);
    free(lu.starts);
    dsm_finalize();
    return is_right ? 0 : 1;
}
