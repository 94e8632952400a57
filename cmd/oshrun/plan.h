/* SPDX-License-Identifier: BSD-3-Clause */
/* plan.h - the command line: options, programs, and the place of each PE. Made before anything starts.
 *
 * Errors: bad usage is reported in one line; oshrun ends with the returned status, and nothing was started.
 */
#ifndef OSHRUN_PLAN_H
#define OSHRUN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "allocation.h"
#include "base/options.h"
#include "fault.h"
#include "local/schedules_file.h"
#include "machines.h"
#include "program.h"
#include "share/share.h"
#include "virtual/model.h"

#define PLAN_PE_COUNT_MAX 65536u

struct plan {
    struct quoit_options options;
    struct plan_program *programs;
    uint32_t program_count;
    struct fault *faults; /* [fault_count] */
    uint32_t fault_count;
    const char *debugger; /* the command of --debugger; "": none */
    bool *debugs;         /* [pe_count]: whether the PE runs under it; NULL without */
    uint32_t debugged_count;
    uint32_t terminal_pe; /* that may have oshrun's terminal: 0, or the only one that is debugged */
    uint32_t pe_count;
    uint32_t host_count;
    uint64_t ring_starts;     /* of --rings, as in the job config */
    uint64_t bare_hosts;      /* of --on: a bit for each host without PEs */
    struct machines machines; /* of --host and --hostfile, those that have PEs */
    uint32_t own_slot_count;  /* of this machine, where it is all of an allocation; 0: it is not */
    struct allocation launch; /* what starts agents: --rsh, or what the allocation has for that */
    bool is_agent;            /* machines were placed by oshrun, of whose command line this is */
    uint64_t schedules;       /* of an agent: as oshrun's job config has them */
    bool has_ring;            /* --ring, of hosts of this machine: */
    char ring_path[QUOIT_SHARE_PATH_BYTES];
    struct quoit_share_config ring;
    uint64_t cut_links;            /* of the ring, one bit per link */
    struct quoit_model_file model; /* of --virtual, with --set; its path "": there is none */
};

/* Reads the command line and the environment, including -x. PLAN_GO_ON, or the status to end with: an error was
 * reported. */
int plan_read(struct plan *plan, int argc, char **argv, char **environment);
/* Whether only help, version or options were requested. */
bool plan_is_question(const struct plan *plan);
/* Whether the plan is feasible: programs, counts, faults. PLAN_GO_ON, or the status to end with. */
int plan_check(struct plan *plan);
/* Whether the hosts are machines of --host that bridges join. */
bool plan_has_bridges(const struct plan *plan);
/* Whether a network joins the hosts, or with --rings some of them. After plan_check(). */
bool plan_has_network(const struct plan *plan);
/* Whether PEs of one host put and get through the network, too: --path network. */
bool plan_has_loopback(const struct plan *plan);
/* Where each PE is, in a job config that has no hosts yet. False: hosts have too many different numbers of PEs. */
bool plan_place(const struct plan *plan, struct quoit_job_config *config);
/* What a table of schedules for the hosts is for, which a network joins. */
void plan_schedules_key(const struct plan *plan, struct quoit_schedules_key *key_out);
/* The program of a PE. */
const struct plan_program *plan_program_of(const struct plan *plan, uint32_t pe);
/* --dry-run: prints a line per PE. */
void plan_print(const struct plan *plan);

/* Whether the PE runs under the command of --debugger. */
static inline bool plan_debugs(const struct plan *plan, uint32_t pe)
{
    return plan->debugs && plan->debugs[pe];
}
static inline uint64_t plan_number(const struct plan *plan, enum quoit_option_id id)
{
    return plan->options.values[id].number;
}
static inline const char *plan_text(const struct plan *plan, enum quoit_option_id id)
{
    return plan->options.values[id].text;
}
/* Processor for the PE of this index on its machine under --bind-to core; -1 without it. */
int plan_core_of(const struct plan *plan, uint32_t index);

#endif
