/* SPDX-License-Identifier: BSD-3-Clause */
/* figures.h - the papers' figures: the runs they need, what is drawn from them, and what the papers say of them.
 *
 * A book holds the runs of the simulator. Figures ask it for values; while it collects, it only notes which runs are
 * asked for; then all are made, side by side on the processors there are; then the same functions are called again and
 * get their values. So a figure says once what it needs, and runs that several figures need are made once.
 */
#ifndef QUOIT_FIGURES_H
#define QUOIT_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "sim/run.h"

enum figures_protocol { FIGURES_PAPERS, FIGURES_OURS, FIGURES_PROTOCOL_COUNT };

/* One run. All zero but workload, hosts, lanes and bytes: the papers' protocol with RING-22's DMA. */
struct figures_key {
    const char *workload;
    enum figures_protocol protocol;
    bool is_copied;    /* payload by programmed copy */
    bool has_page_dma; /* RING-19's: a descriptor a page; RING-22's has one for all of a request */
    uint32_t host_count;
    uint32_t lane_count;
    uint64_t bytes;
};

struct figures_run {
    struct figures_key key;
    bool is_done;
    struct sim_result result;
};

/* A relation that a paper reports: the range it names, and what the simulation gives. */
struct figures_relation {
    const char *figure;
    const char *source; /* the paper's sentence, or what of ours is asked */
    char name[96];
    const char *unit;
    double low;
    double high;
    double value;
    double other; /* the same with our protocol; NAN: it means nothing there */
};

#define FIGURES_RUNS_MAX      1024
#define FIGURES_RELATIONS_MAX 64

struct figures_book {
    bool is_collecting;
    bool is_quick; /* few sizes */
    struct sim_model model;
    struct figures_run *runs; /* shared with the processes that make them */
    uint32_t run_count;
    struct figures_relation relations[FIGURES_RELATIONS_MAX];
    uint32_t relation_count;
};

struct figures_entry {
    const char *name;
    const char *title;
    /* Writes the figure's items: texts and plots. */
    void (*draw)(struct figures_book *book, struct quoit_json *json);
    /* Adds its relations to the book. */
    void (*relate)(struct figures_book *book, const char *name);
};
extern const struct figures_entry figures_entries[];
extern const uint32_t figures_entry_count;

/* figures_book.c. Out of memory ends the program. */
/* hybrid.c: `quoit figures hybrid`, which measures. argv[0] is "hybrid"; returns the exit status. */
int figures_hybrid(int argc, char **argv);

void figures_book_open(struct figures_book *book);
void figures_book_close(struct figures_book *book);
/* Makes what was asked for. False: a run failed, and stderr says which and why. */
bool figures_book_make(struct figures_book *book);
/* The mean of a metric of a run; 0 while the book collects. */
double figures_value(struct figures_book *book, const struct figures_key *key, const char *metric);
__attribute__((format(printf, 3, 4))) struct figures_relation *
figures_relate(struct figures_book *book, const char *figure, const char *name, ...);
static inline bool figures_is_in_range(const struct figures_relation *relation)
{
    return relation->value >= relation->low && relation->value <= relation->high;
}

#endif
