/* SPDX-License-Identifier: BSD-3-Clause */
/* run.h - one run from seed to verdict; called by `quoit sim` and `quoit figures`.
 *
 * A plan holds what was requested; the seed chooses the rest: hosts, PEs, slots, chunk, lanes, window, DMA, workload
 * and faults. So a failing run is replayed with its seed and the same plan.
 */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "sim/workload.h"

/* 0, NULL: chosen by the seed, among small sizes, which find mistakes. Workloads that measure are never chosen by a
 * seed; with one of them the default is 5 hosts, 1 PE each, 1 lane, 16 slots, chunks of 32 KiB, no fault. */
#define SIM_HOSTS_MEASURED 5
struct sim_plan {
    uint32_t host_count;
    uint32_t pe_count;
    uint32_t lane_count;
    uint32_t slot_count;
    uint32_t chunk_bytes;
    uint32_t step_count;
    uint64_t bytes; /* of workloads that measure; 0: 1 MiB */
    const struct sim_workload *workload;
    const struct sim_fault *faults[SIM_FAULTS_MAX];
    uint32_t fault_count;
    bool has_no_faults; /* none, whatever the seed chooses */
    const struct sim_canary *canary;
    uint8_t protocol; /* these three as in the job config; 0 is the default there */
    uint8_t barrier;
    uint8_t payload;
    uint64_t schedules; /* as in the job config */
    struct sim_model model;
    bool has_own_way; /* has_direct_puts was set, so it is not chosen; measured is without */
    bool has_direct_puts;
    bool has_posted_puts; /* direct puts too, with writes that return before they have arrived */
    bool has_own_window;  /* window_memory_mib was set, so it is not chosen */
    uint64_t dma_bytes;   /* as the proxy's configuration */
    bool has_own_dma;     /* it was set, so it is not chosen */
    bool has_page_dma;    /* as the world's configuration */
    struct sim_pattern pattern;
    uint32_t client_count; /* of the links: 1 or 2; 0: chosen by the seed */
    FILE *trace;
};

struct sim_result {
    bool is_ok;
    bool has_canary_sung;
    bool is_cut_off;      /* ended by two dead links, as required */
    bool has_lost_client; /* the second one was ended by a fault */
    char failure[SIM_FAILURE_BYTES];
    uint64_t trace_hash;
    uint64_t event_count;
    uint64_t request_count;
    uint64_t virtual_ns;
    struct sim_metric metrics[SIM_METRICS_MAX];
    uint32_t metric_count;
};

void sim_plan_default(struct sim_plan *plan);
void sim_config_choose(const struct sim_plan *plan, uint64_t seed, struct sim_config *config_out);
/* Of the second client of the same links: a job of its own, on as many hosts. False: there is none. */
bool sim_config_choose_second(const struct sim_plan *plan, const struct sim_config *config,
                              struct sim_config *second_out);
/* `second`: NULL: there is none. One run at a time: the world is global to the process. */
void sim_run(const struct sim_config *config, const struct sim_config *second, struct sim_result *result_out);

#endif
