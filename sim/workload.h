/* SPDX-License-Identifier: BSD-3-Clause */
/* workload.h - what the PEs of a simulated job do, and how the result is verified.
 *
 * To add one: a file workload_NAME.c with one const struct sim_workload, a declaration below, and a row in the table of
 * workload.c. Its run() is the program of one PE: blocking code over fabric and coll, as the API layer would call them.
 * It maintains a reference of what memory must hold; check() compares at the end, when everything is quiescent. Both
 * report through sim_fail().
 */
#ifndef SIM_WORKLOAD_H
#define SIM_WORKLOAD_H

#include "coll/coll.h"
#include "fabric/fabric.h"
#include "sim/world.h"

struct sim_pe {
    struct sim_world *world;
    struct sim_host *host;
    uint32_t index;
    struct quoit_fabric *fabric;   /* NULL: closed */
    struct quoit_context *context; /* the default one */
    struct quoit_regions regions;  /* as the API layer registers it with the fabric */
    struct quoit_team_state *team; /* of workloads with collectives: the one in use; NULL: none */
    struct quoit_team_range range; /* of that team */
    uint32_t rank;                 /* in it */
    struct quoit_prng prng;        /* a generator of its own, so a PE behaves the same in any interleaving */
};

struct sim_workload {
    const char *name;
    const char *sentence;
    bool measures;                             /* produces figures; never chosen by a seed */
    bool is_network;                           /* hosts are joined by a network (network.h); it measures */
    uint64_t (*heap_bytes)(uint32_t pe_count); /* requirements; NULL: none beyond its pieces */
    void (*setup)(struct sim_world *world);    /* before the PEs start; NULL: nothing */
    void (*run)(struct sim_pe *pe);            /* in the task of each PE */
    void (*check)(struct sim_world *world);    /* after everything is quiescent; NULL: nothing */
    void (*teardown)(struct sim_world *world); /* frees workload_state; NULL: nothing */
};

extern const struct sim_workload *const sim_workloads[];
extern const uint32_t sim_workload_count;
const struct sim_workload *sim_workload_find(const char *name);

extern const struct sim_workload sim_workload_alltoall;
extern const struct sim_workload sim_workload_hotspot;
extern const struct sim_workload sim_workload_halo;
extern const struct sim_workload sim_workload_mix;
extern const struct sim_workload sim_workload_order;
extern const struct sim_workload sim_workload_atomics;
extern const struct sim_workload sim_workload_collectives;
extern const struct sim_workload sim_workload_reuse;
extern const struct sim_workload sim_workload_threads;
extern const struct sim_workload sim_workload_burst;
extern const struct sim_workload sim_workload_stores;
extern const struct sim_workload sim_workload_raw;
extern const struct sim_workload sim_workload_bandwidth;
extern const struct sim_workload sim_workload_calls;
extern const struct sim_workload sim_workload_links;
extern const struct sim_workload sim_workload_put;
extern const struct sim_workload sim_workload_get;
extern const struct sim_workload sim_workload_barrier;
extern const struct sim_workload sim_workload_turnaround;
extern const struct sim_workload sim_workload_predict;
extern const struct sim_workload sim_workload_ethernet;
extern const struct sim_workload sim_workload_network;

/* Puts that each PE has outstanding at once in the workload turnaround. */
#define SIM_TURNAROUND_PUTS 8

/* Starts a task for each PE. */
void sim_pes_start(struct sim_world *world);
/* Closes the state of PEs that did not end. Their teams leak: only a live PE can delete one. */
void sim_pes_free(struct sim_world *world);

/* Memory of a PE by segment offset, from outside, for check(). */
char *sim_pe_segment(struct sim_world *world, uint32_t pe);

/* The reference for puts: each (source, destination) pair owns a piece of the destination's heap which only the source
 * writes, and each piece has its model here. Stored in workload_state. */
struct sim_pieces {
    uint32_t pe_count;
    uint32_t piece_bytes;
    uint64_t start;        /* in the heap; memory before it is the workload's */
    unsigned char *models; /* [source][destination][piece_bytes] */
};
#define SIM_PIECES_START 8192 /* the lowest start */
struct sim_pieces *sim_pieces_new(struct sim_world *world, uint32_t piece_bytes);
void sim_pieces_free(struct sim_pieces *pieces);
unsigned char *sim_pieces_model(struct sim_pieces *pieces, uint32_t source, uint32_t destination);
uint64_t sim_pieces_offset(const struct sim_pieces *pieces, const struct quoit_layout *layout, uint32_t source);
void sim_pieces_check(struct sim_world *world, struct sim_pieces *pieces);
/* setup, check and teardown of workloads whose whole state is pieces of SIM_PIECE_BYTES. */
#define SIM_PIECE_BYTES 3072
void sim_pieces_setup_world(struct sim_world *world);
void sim_pieces_check_world(struct sim_world *world);
void sim_pieces_free_world(struct sim_world *world);
/* Puts random bytes at a random offset of this PE's piece at `to`, and in the reference. is_nbi: with a quiet before
 * the source is reused. Includes the fence that orders two puts to one address. */
void sim_pieces_put(struct sim_pe *pe, struct sim_pieces *pieces, uint32_t to, bool is_nbi);
/* Gets a random part of this PE's piece at `from` and compares it. Includes a quiet. */
void sim_pieces_get(struct sim_pe *pe, struct sim_pieces *pieces, uint32_t from, bool is_nbi);

void sim_fill(struct quoit_prng *prng, void *bytes, size_t count);

/* A figure, of which the table shows the mean, the least and the largest. `name` and `unit` are static. */
struct sim_metric {
    const char *name;
    const char *unit;
    uint64_t count;
    double sum;
    double least;
    double largest;
};
#define SIM_METRICS_MAX 16
/* After a run with the protocol SCRATCHPAD: the time of each step of a put, averaged over each lane that sent. */
void sim_measure_put_steps(struct sim_world *world);
void sim_metric_add(struct sim_world *world, const char *name, const char *unit, double value);

#endif
