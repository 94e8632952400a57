/* SPDX-License-Identifier: BSD-3-Clause */
/* heat2d.c - heat in a square plate, by Jacobi steps, on a grid of PEs with halo exchange.
 *
 * Use: heat2d [cells [steps]]     (a plate of 256 x 256 cells and 200 steps unless given)
 * The plate is cut into blocks, one a PE. After each step a PE puts the edges of its block into the halos of its
 * neighbours: rows with put-with-signal, columns with a strided put, a fence and an atomic on the signal. Two plates
 * alternate: a neighbour is never more than one step ahead, so it writes the plate that is not being read. At the end
 * PE 0 repeats the computation alone and compares every cell.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <shmem.h>

enum side { UP, DOWN, LEFT, RIGHT, SIDE_COUNT };

struct block { /* cells [row, row+rows) x [column, column+columns) of the plate */
    size_t row, rows, column, columns;
};

static size_t cells;               /* the plate has cells x cells */
static int across, down;           /* the grid of PEs */
static size_t pitch;               /* distance between rows in a block with its halo: the same on all PEs */
static double *plate[2];           /* symmetric: a block with a halo of one cell around it */
static uint64_t ready[SIDE_COUNT]; /* symmetric: steps whose halo from that side has arrived */

static struct block block_of(int pe)
{
    size_t x = (size_t)(pe % across), y = (size_t)(pe / across);
    struct block b = {.row = cells * y / (size_t)down, .column = cells * x / (size_t)across};
    b.rows = cells * (y + 1) / (size_t)down - b.row;
    b.columns = cells * (x + 1) / (size_t)across - b.column;
    return b;
}

/* The cell at the start: the upper edge of the plate is hot, the left edge half as hot; both are constant. */
static double at_start(size_t row, size_t column)
{
    return row == 0 ? 100.0 : column == 0 ? 50.0 : 0.0;
}

/* One step for the cells of a block; `b` gives its place, so that the edge of the plate is kept constant. */
static void step(double *to, const double *from, struct block b, size_t width)
{
    for (size_t r = 1; r <= b.rows; r++) {
        for (size_t c = 1; c <= b.columns; c++) {
            size_t row = b.row + r - 1, column = b.column + c - 1, i = r * width + c;
            if (row == 0 || column == 0 || row == cells - 1 || column == cells - 1)
                to[i] = from[i];
            else
                to[i] = 0.25 * (from[i - 1] + from[i + 1] + from[i - width] + from[i + width]);
        }
    }
}

static void start_block(double *to, struct block b, size_t width)
{
    for (size_t r = 0; r < b.rows; r++)
        for (size_t c = 0; c < b.columns; c++)
            to[(r + 1) * width + c + 1] = at_start(b.row + r, b.column + c);
}

/* Puts the edges of this PE's block of `now` into the neighbours' halos and signals that `step_count` steps are done.
 */
static void send_edges(double *now, int me, struct block b, uint64_t step_count)
{
    int x = me % across, y = me / across;
    if (y > 0) {
        size_t halo = (block_of(me - across).rows + 1) * pitch + 1;
        shmem_double_put_signal(now + halo, now + pitch + 1, b.columns, &ready[DOWN], step_count, SHMEM_SIGNAL_SET,
                                me - across);
    }
    if (y < down - 1)
        shmem_double_put_signal(now + 1, now + b.rows * pitch + 1, b.columns, &ready[UP], step_count, SHMEM_SIGNAL_SET,
                                me + across);
    ptrdiff_t stride = (ptrdiff_t)pitch;
    if (x > 0)
        shmem_double_iput(now + pitch + block_of(me - 1).columns + 1, now + pitch + 1, stride, stride, b.rows, me - 1);
    if (x < across - 1)
        shmem_double_iput(now + pitch, now + pitch + b.columns, stride, stride, b.rows, me + 1);
    shmem_fence(); /* the columns arrive before the words that signal them */
    if (x > 0)
        shmem_uint64_atomic_set(&ready[RIGHT], step_count, me - 1);
    if (x < across - 1)
        shmem_uint64_atomic_set(&ready[LEFT], step_count, me + 1);
}

static void wait_for_halos(int me, uint64_t step_count)
{
    int x = me % across, y = me / across;
    if (y > 0)
        shmem_uint64_wait_until(&ready[UP], SHMEM_CMP_GE, step_count);
    if (y < down - 1)
        shmem_uint64_wait_until(&ready[DOWN], SHMEM_CMP_GE, step_count);
    if (x > 0)
        shmem_uint64_wait_until(&ready[LEFT], SHMEM_CMP_GE, step_count);
    if (x < across - 1)
        shmem_uint64_wait_until(&ready[RIGHT], SHMEM_CMP_GE, step_count);
}

/* PE 0: the same computation alone, and the largest difference from plate[last] of all PEs. */
static double difference_to_sequential(int steps, int last)
{
    struct block whole = {0, cells, 0, cells};
    size_t width = cells + 2;
    double *alone[2] = {calloc(width * width, sizeof(double)), calloc(width * width, sizeof(double))};
    double *row = malloc(cells * sizeof(double));
    double largest = 0;
    start_block(alone[0], whole, width);
    for (int s = 0; s < steps; s++)
        step(alone[(s + 1) % 2], alone[s % 2], whole, width);
    for (int pe = 0; pe < shmem_n_pes(); pe++) {
        struct block b = block_of(pe);
        for (size_t r = 0; r < b.rows; r++) {
            shmem_double_get(row, plate[last] + (r + 1) * pitch + 1, b.columns, pe);
            for (size_t c = 0; c < b.columns; c++)
                largest = fmax(largest, fabs(row[c] - alone[last][(b.row + r + 1) * width + b.column + c + 1]));
        }
    }
    free(row);
    free(alone[1]);
    free(alone[0]);
    return largest;
}

int main(int argc, char **argv)
{
    static int is_wrong;
    cells = argc > 1 ? strtoul(argv[1], NULL, 10) : 256;
    int steps = argc > 2 ? atoi(argv[2]) : 200;

    shmem_init();
    int me = shmem_my_pe();
    int pe_count = shmem_n_pes();
    for (down = (int)sqrt(pe_count); pe_count % down != 0; down--)
        ;
    across = pe_count / down;
    if (me == 0 && (cells < (size_t)across || steps < 0)) {
        fprintf(stderr,
                "heat2d: %zu x %zu cells and %d steps, but %d PEs need %d x %d cells or more and steps 0 or more\n",
                cells, cells, steps, pe_count, across, across);
        shmem_global_exit(2);
    }
    shmem_barrier_all();

    struct block b = block_of(me);
    pitch = cells / (size_t)across + 3; /* the widest block and its halo */
    for (int i = 0; i < 2; i++)
        plate[i] = shmem_calloc((cells / (size_t)down + 3) * pitch, sizeof(double));
    if (plate[0] == NULL || plate[1] == NULL) {
        fprintf(stderr, "heat2d: no room for %zu x %zu cells; give SHMEM_SYMMETRIC_SIZE\n", cells, cells);
        shmem_global_exit(2);
    }
    start_block(plate[0], b, pitch);
    shmem_barrier_all();

    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    send_edges(plate[0], me, b, 1);
    for (int s = 0; s < steps; s++) {
        wait_for_halos(me, (uint64_t)s + 1);
        step(plate[(s + 1) % 2], plate[s % 2], b, pitch);
        send_edges(plate[(s + 1) % 2], me, b, (uint64_t)s + 2);
    }
    shmem_barrier_all();
    clock_gettime(CLOCK_MONOTONIC, &end);

    if (me == 0) {
        double seconds = (double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) / 1e9;
        double difference = difference_to_sequential(steps, steps % 2);
        printf("heat2d: %zu x %zu cells on %d x %d PEs, %d steps in %.3f s; difference to one PE alone %g: %s\n", cells,
               cells, down, across, steps, seconds, difference, difference <= 1e-12 ? "verified" : "WRONG");
        int wrong = difference <= 1e-12 ? 0 : 1;
        for (int pe = 0; pe < pe_count; pe++)
            shmem_int_p(&is_wrong, wrong, pe);
    }
    shmem_barrier_all();
    int status = is_wrong;
    shmem_finalize();
    return status;
}
