/* SPDX-License-Identifier: BSD-3-Clause */
/* dsm_barnes - N bodies by the method of Barnes and Hut, on shared pages: an array of bodies, and a tree in an array
 * of cells. Space is divided into 64 cubes; a PE builds the trees of its cubes, PE 0 joins them, then each PE moves its
 * bodies. Verified by the energy, and by direct sums of forces; the checksum does not depend on the number of PEs.
 *
 * Use: oshrun -n 4 dsm_barnes [BODIES [STEPS]] */
#include <dsm.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CUBES      64
#define THETA      0.5
#define SOFTENING  0.05
#define STEP       0.01
#define DEPTH_MAX  48
#define EMPTY      0
#define CELL_OF(c) ((c) + 1)  /* a child word refers to a cell, */
#define BODY_OF(b) (-1 - (b)) /* or to a body */

struct body {
    double place[3], speed[3], force[3], mass;
};

struct cell {
    double centre[3], mass, width;
    long children[8];
};

struct cube {
    long root; /* a child word */
    double lower[3], width;
};

static struct {
    struct body *bodies;
    struct cell *cells; /* each cube has a part of its own */
    struct cube *cubes;
    double *bounds;
    long count, cells_each;
    int me, pes;
} nb = {.count = 1024};

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A ball of equal bodies, the same everywhere. */
static void place_bodies(void)
{
    unsigned long seed = 1;
    for (long i = 0; i < nb.count; i++) {
        struct body *body = &nb.bodies[i];
        double square;
        do {
            square = 0;
            for (int k = 0; k < 3; k++) {
                seed = seed * 6364136223846793005ul + 1442695040888963407ul;
                body->place[k] = (double)(seed >> 11) / (double)(1ul << 52) - 1;
                square += body->place[k] * body->place[k];
            }
        } while (square > 1);
        body->speed[0] = -0.5 * body->place[1];
        body->speed[1] = 0.5 * body->place[0];
        body->speed[2] = 0;
        body->mass = 1.0 / (double)nb.count;
    }
}

/* Every PE computes the same bounding box; the cubes are its quarters in each dimension. */
static void find_box(double *lower, double *width)
{
    double upper[3];
    *width = 0;
    for (int k = 0; k < 3; k++) {
        lower[k] = upper[k] = nb.bodies[0].place[k];
        for (long i = 1; i < nb.count; i++) {
            lower[k] = fmin(lower[k], nb.bodies[i].place[k]);
            upper[k] = fmax(upper[k], nb.bodies[i].place[k]);
        }
        *width = fmax(*width, upper[k] - lower[k]);
    }
    *width *= 1.0001;
}

static int cube_of(const struct body *body, const double *lower, double width)
{
    int cube = 0;
    for (int k = 0; k < 3; k++)
        cube = cube * 4 + (int)((body->place[k] - lower[k]) / width * 4);
    return cube;
}

static int octant_of(const struct body *body, const double *middle)
{
    return (body->place[0] >= middle[0]) * 4 + (body->place[1] >= middle[1]) * 2 + (body->place[2] >= middle[2]);
}

/* Inserts a body below a child word, in the cube from `lower` on. */
static void insert(long *word, long index, const double *lower, double width, long *next_cell, int depth)
{
    double corner[3] = {lower[0], lower[1], lower[2]};
    while (*word != EMPTY) {
        double middle[3] = {corner[0] + width / 2, corner[1] + width / 2, corner[2] + width / 2};
        if (*word < 0) { /* occupied by a body: a cell replaces it */
            long other = BODY_OF(*word);
            struct cell *fresh = &nb.cells[*next_cell];
            *fresh = (struct cell){.width = width};
            *word = CELL_OF((*next_cell)++);
            fresh->children[octant_of(&nb.bodies[other], middle)] = BODY_OF(other);
        }
        int octant = octant_of(&nb.bodies[index], middle);
        width /= 2;
        for (int k = 0; k < 3; k++)
            corner[k] = octant & 4 >> k ? middle[k] : corner[k];
        word = &nb.cells[*word - 1].children[octant];
        if (++depth > DEPTH_MAX) {
            fprintf(stderr, "dsm_barnes: two bodies are at one place\n");
            exit(1);
        }
    }
    *word = BODY_OF(index);
}

/* Masses and centres, bottom-up. */
static void sum_masses(long word)
{
    struct cell *cell = &nb.cells[word - 1];
    double mass = 0, centre[3] = {0, 0, 0};
    for (int i = 0; i < 8; i++) {
        long child = cell->children[i];
        if (child == EMPTY)
            continue;
        if (child > 0)
            sum_masses(child);
        const double *at = child > 0 ? nb.cells[child - 1].centre : nb.bodies[BODY_OF(child)].place;
        double weight = child > 0 ? nb.cells[child - 1].mass : nb.bodies[BODY_OF(child)].mass;
        mass += weight;
        for (int k = 0; k < 3; k++)
            centre[k] += weight * at[k];
    }
    cell->mass = mass;
    for (int k = 0; k < 3; k++)
        cell->centre[k] = centre[k] / mass;
}

static void build(void)
{
    double lower[3], width;
    find_box(lower, &width);
    for (int i = nb.me; i < CUBES; i += nb.pes) {
        long next_cell = i * nb.cells_each;
        struct cube *cube = &nb.cubes[i];
        cube->root = EMPTY;
        cube->width = width / 4;
        for (int k = 0; k < 3; k++)
            cube->lower[k] = lower[k] + width / 4 * (i >> (4 - 2 * k) & 3);
        for (long body = 0; body < nb.count; body++) {
            if (cube_of(&nb.bodies[body], lower, width) != i)
                continue;
            insert(&cube->root, body, cube->lower, cube->width, &next_cell, 0);
            if (next_cell + DEPTH_MAX > (i + 1) * nb.cells_each) {
                fprintf(stderr, "dsm_barnes: more than %ld cells in one cube\n", nb.cells_each);
                exit(1);
            }
        }
        if (cube->root > 0)
            sum_masses(cube->root);
    }
}

static void pull(const double *from, double mass, const double *to, double *force, double *energy)
{
    double apart[3], square = SOFTENING * SOFTENING;
    for (int k = 0; k < 3; k++) {
        apart[k] = from[k] - to[k];
        square += apart[k] * apart[k];
    }
    double inverse = 1 / sqrt(square);
    for (int k = 0; k < 3; k++)
        force[k] += mass * apart[k] * inverse * inverse * inverse;
    *energy -= mass * inverse;
}

static void pull_by_tree(long word, long index, double *force, double *energy)
{
    if (word == EMPTY || word == BODY_OF(index))
        return;
    const double *place = nb.bodies[index].place;
    if (word < 0) {
        pull(nb.bodies[BODY_OF(word)].place, nb.bodies[BODY_OF(word)].mass, place, force, energy);
        return;
    }
    const struct cell *cell = &nb.cells[word - 1];
    double square = 0;
    for (int k = 0; k < 3; k++)
        square += (cell->centre[k] - place[k]) * (cell->centre[k] - place[k]);
    if (cell->width * cell->width < THETA * THETA * square) {
        pull(cell->centre, cell->mass, place, force, energy);
        return;
    }
    for (int i = 0; i < 8; i++)
        pull_by_tree(cell->children[i], index, force, energy);
}

/* Forces on this PE's bodies, and their energy, with each pair counted half. */
static double find_forces(long first, long end)
{
    double energy = 0;
    for (long i = first; i < end; i++) {
        double force[3] = {0, 0, 0}, potential = 0, square = 0;
        for (int cube = 0; cube < CUBES; cube++)
            pull_by_tree(nb.cubes[cube].root, i, force, &potential);
        for (int k = 0; k < 3; k++) {
            nb.bodies[i].force[k] = force[k];
            square += nb.bodies[i].speed[k] * nb.bodies[i].speed[k];
        }
        energy += nb.bodies[i].mass * (square + potential) / 2;
    }
    return energy;
}

static void move(long first, long end, double kick)
{
    for (long i = first; i < end; i++) {
        for (int k = 0; k < 3; k++) {
            nb.bodies[i].speed[k] += kick * nb.bodies[i].force[k];
            nb.bodies[i].place[k] += STEP * nb.bodies[i].speed[k];
        }
    }
}

/* The largest difference of some bodies' forces from a direct sum, relative to the mean force. */
static double force_error(void)
{
    double largest = 0, mean = 0;
    for (long i = 0; i < nb.count; i += nb.count / 16 + 1) {
        double force[3] = {0, 0, 0}, unused = 0, square = 0, apart = 0;
        for (long other = 0; other < nb.count; other++) {
            if (other != i)
                pull(nb.bodies[other].place, nb.bodies[other].mass, nb.bodies[i].place, force, &unused);
        }
        for (int k = 0; k < 3; k++) {
            square += force[k] * force[k];
            apart += (force[k] - nb.bodies[i].force[k]) * (force[k] - nb.bodies[i].force[k]);
        }
        mean += sqrt(square) / 16;
        largest = fmax(largest, sqrt(apart));
    }
    return largest / mean;
}

/* PE 0 sums the results of all PEs. */
static double add_energies(double own)
{
    double sum = 0;
    nb.bounds[nb.me * 512] = own;
    dsm_barrier_all();
    for (int pe = 0; pe < nb.pes; pe++)
        sum += nb.bounds[pe * 512];
    dsm_barrier_all();
    return sum;
}

static void take_memory(void)
{
    nb.cells_each = nb.count / 4 + 256;
    nb.bodies = dsm_all_malloc((size_t)nb.count * sizeof *nb.bodies);
    nb.cells = dsm_all_malloc((size_t)(CUBES * nb.cells_each) * sizeof *nb.cells);
    nb.cubes = dsm_all_malloc(CUBES * sizeof *nb.cubes);
    nb.bounds = dsm_all_malloc((size_t)nb.pes * 512 * sizeof *nb.bounds);
    if (nb.me == 0)
        place_bodies();
    dsm_barrier_all();
}

int main(int count, char **words)
{
    nb.count = count > 1 ? atol(words[1]) : nb.count;
    long steps = count > 2 ? atol(words[2]) : 4;
    if (nb.count < 2 || steps < 1) {
        fprintf(stderr, "dsm_barnes: BODIES is at least 2 and STEPS at least 1\n");
        return 2;
    }
    dsm_init();
    nb.me = dsm_my_pe();
    nb.pes = dsm_n_pes();
    take_memory();
    long first = nb.count * nb.me / nb.pes, end = nb.count * (nb.me + 1) / nb.pes;
    double before = 0, after = 0, since = seconds();
    for (long step = 0; step <= steps; step++) {
        build();
        dsm_barrier_all();
        double energy = add_energies(find_forces(first, end));
        before = step == 0 ? energy : before;
        after = energy;
        if (step < steps)
            move(first, end, STEP);
        dsm_barrier_all();
    }
    double took = seconds() - since;
    int is_right = 1;
    if (nb.me == 0) {
        double sum = 0, error = force_error(), drift = fabs(after / before - 1);
        for (long i = 0; i < nb.count; i++)
            sum += (double)(i + 1) * (nb.bodies[i].place[0] + nb.bodies[i].place[1] + nb.bodies[i].place[2]);
        is_right = error < 0.02 && drift < 0.02;
        printf("checksum %.10e\nlargest error of a force %.4f, of the energy %.4f\nverification %s\n"
               "%ld bodies, %ld steps, %d PEs: %.4f s\n",
               sum, error, drift, is_right ? "PASSED" : "FAILED", nb.count, steps, nb.pes, took);
    }
    dsm_barrier_all();
    dsm_finalize();
    return is_right ? 0 : 1;
}
