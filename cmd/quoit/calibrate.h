/* SPDX-License-Identifier: BSD-3-Clause */
/* calibrate.h - measures what copies, wakes, switches, cache lines and the code of the ring cost on this machine, for
 * the simulator. */
#ifndef QUOIT_CALIBRATE_H
#define QUOIT_CALIBRATE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/json.h"

/* Measures for some seconds and prints JSON. Each value is a median; other load on the machine changes it. False: out
 * of memory, or no ring could be emulated. */
bool calibrate_print(FILE *out);

/* ns of one run of what: the median of short batches. */
double calibrate_time_of(void (*run)(void *arg), void *arg);
/* The same of a sum, in which a term of factor -1 is taken away. Each batch runs all terms one after another: while the
 * machine changes between two speeds, as processors do that share a core, both sides of a difference meet the same. */
#define CALIBRATE_TERM_MAX 4
struct calibrate_term {
    void (*run)(void *arg);
    void *arg;
    double factor;
};
double calibrate_sum_of(const struct calibrate_term *terms, int term_count);
double calibrate_median(double *values, size_t count);

/* The code of an emulated ring without its threads: two hosts in this process, whose lanes one thread steps in turn, so
 * that nobody waits and every line is in its cache. False: no ring could be emulated. */
bool calibrate_ring(const int cores[2], struct quoit_json *json);
/* A lane that has no work, of a ring of two hosts of its own; NULL: no ring could be emulated. */
struct calibrate_lane;
struct calibrate_lane *calibrate_lane_open(void);
void calibrate_lane_look(void *lane);
void calibrate_lane_close(struct calibrate_lane *lane);

/* ns from the yield of a process to the next one's return from its own, where so many of one processor yield to each
 * other: one value for each count, an even one. 0: not all processes could be started. */
#define CALIBRATE_CROWD_MAX 8
void calibrate_crowds(int core, const int counts[], int crowd_count, double ns_out[]);

/* Binds the calling thread; -1: nothing happens. */
void calibrate_stay_on(int core);
/* Runs `own`, bound to a processor meanwhile, beside `other` in a thread that binds itself. False: no thread could be
 * started, and nothing ran. */
bool calibrate_beside(int core, void (*own)(void *arg), void *(*other)(void *arg), void *arg);

#endif
