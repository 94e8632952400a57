/* SPDX-License-Identifier: BSD-3-Clause */
#include "clock.h"
#include "base/log.h"
#include "end.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_EVERY_NS 5000000u
#define NS_PER_US     1000u
#define NS_PER_S      1000000000ull
#define LONG_TURN_NS  (10 * NS_PER_S)

/* Threads of a host's proxy: its lanes and the manager. */
static uint32_t service_count_of(const struct plan *plan)
{
    return plan->host_count > 1 ? (uint32_t)plan_number(plan, QUOIT_OPT_LANES) + 1 : 0;
}

int clock_plan(struct plan *plan)
{
    const char *name = plan_text(plan, QUOIT_OPT_VIRTUAL), *set = plan_text(plan, QUOIT_OPT_SET);
    char problem[QUOIT_MODEL_PROBLEM_BYTES];
    const char *compute = plan_text(plan, QUOIT_OPT_COMPUTE);
    if (strcmp(compute, "zero") != 0 && strcmp(compute, "measured") != 0) {
        quoit_say("--compute is \"%s\", but must be zero or measured [Q0210]", compute);
        return STATUS_BAD_USAGE;
    }
    if (!name[0] && !set[0])
        return PLAN_GO_ON;
    if (!name[0])
        quoit_say("--set %s changes the model of --virtual, which is not there [Q0210]", set);
    else if (plan->machines.count > 0 || plan->has_ring || plan_has_network(plan))
        quoit_say("--virtual has a ring of hosts of its model: no --host, --ring, --rings, --network or --path network "
                  "[Q0210]");
    else if (strcmp(plan_text(plan, QUOIT_OPT_PROTOCOL), "queue") != 0 || plan->fault_count > 0)
        quoit_say(
            "--virtual has links that stay up and --protocol queue: no --fault, no --protocol scratchpad [Q0210]");
    else if (plan->pe_count + (uint64_t)plan->host_count * service_count_of(plan) > QUOIT_VIRTUAL_THREADS_MAX)
        quoit_say("--virtual has at most %u PEs and threads of proxies [Q0210]", QUOIT_VIRTUAL_THREADS_MAX);
    else if (!quoit_model_read(name, &plan->model, problem))
        quoit_say("--virtual: %s [Q0702]", problem);
    else if (set[0] && !quoit_model_set(&plan->model, set, problem))
        quoit_say("--set: %s [Q0703]", problem);
    else
        return PLAN_GO_ON;
    return STATUS_BAD_USAGE;
}

void clock_set_knobs(const struct plan *plan, struct quoit_port_knobs *knobs)
{
    const struct quoit_model *model = &plan->model.model;
    if (!plan->model.path[0])
        return;
    knobs->rate_bytes_per_s = model->link_rate;
    knobs->write_latency_ns = model->link_latency;
    knobs->read_latency_ns = model->read_latency;
    knobs->doorbell_latency_ns = model->doorbell_time;
    knobs->arrives_on_return = 1;
}

bool clock_open(struct job *job)
{
    const struct plan *plan = job->plan;
    if (!plan->model.path[0])
        return true;
    uint64_t limit_ns = plan_number(plan, QUOIT_OPT_TIMEOUT);
    job->timeout_at_ns = 0; /* a limit of virtual time */
    struct quoit_virtual_config config = {.model = plan->model.model,
                                          .pe_count = plan->pe_count,
                                          .host_count = plan->host_count,
                                          .service_count = service_count_of(plan),

                                          .is_compute_measured =
                                              strcmp(plan_text(plan, QUOIT_OPT_COMPUTE), "measured") == 0,
                                          .limit_ns = limit_ns};
    if (quoit_virtual_create(&config, &job->clock, job->clock_path) == QUOIT_OK &&
        setenv(QUOIT_VIRTUAL_VARIABLE, job->clock_path, 1) == 0) /* for the proxies */
        return true;
    quoit_say("cannot make the virtual clock: %s [Q0213]", strerror(errno));
    return false;
}

/* 0: it cannot be known. */
static uint64_t processor_ns(pid_t pid)
{
    clockid_t of_process;
    struct timespec used;
    if (pid <= 0 || clock_getcpuclockid(pid, &of_process) != 0 || clock_gettime(of_process, &used) != 0)
        return 0;
    return (uint64_t)used.tv_sec * NS_PER_S + (uint64_t)used.tv_nsec;
}

/* A PE keeps its turn while it computes, and for ever where it polls memory. Says so of the first that has it long. */
static void look_at_turn(struct job *job)
{
    uint32_t pe = atomic_load_explicit(&job->clock->turn, memory_order_relaxed);
    uint64_t count = atomic_load_explicit(&job->clock->turn_count, memory_order_relaxed);
    if (pe >= job->plan->pe_count || job->plan->pe_count == 1 || job->turn.is_reported)
        return;
    uint64_t used_ns = processor_ns(job->pes[pe].program_pid);
    if (count != job->turn.count || used_ns < job->turn.begin_ns) {
        job->turn.count = count;
        job->turn.begin_ns = used_ns;
    } else if (used_ns - job->turn.begin_ns >= LONG_TURN_NS) {
        job->turn.is_reported = true;
        quoit_say("warning: PE %u computes for %llu s without a routine, and the others wait for their turn: if it "
                  "polls memory, let it call shmem_test [Q0706]",
                  pe, LONG_TURN_NS / NS_PER_S);
    }
}

uint64_t clock_step(struct job *job, uint64_t now_ns)
{
    if (!job->clock || job->end.phase != ENDING_NOT)
        return UINT64_MAX;
    switch ((enum quoit_virtual_verdict)atomic_load_explicit(&job->clock->verdict, memory_order_acquire)) {
    case QUOIT_VIRTUAL_STILL:
        end_begin(job, END_STILL, STATUS_CANNOT_START, 0, 0);
        break;
    case QUOIT_VIRTUAL_LATE:
        end_begin(job, END_TIMEOUT, STATUS_TIMEOUT, 0, 0);
        break;
    case QUOIT_VIRTUAL_RUNS:
        look_at_turn(job);
        break;
    }
    return now_ns + LOOK_EVERY_NS;
}

uint64_t clock_ns(const struct job *job)
{
    uint64_t ended_ns = atomic_load(&job->clock->ended_ns), ns = ended_ns ? ended_ns : atomic_load(&job->clock->now_ns);
    if (atomic_load(&job->clock->verdict) == QUOIT_VIRTUAL_STILL)
        ns = job->clock->changed_ns; /* what came after were looks in vain */
    return ns - QUOIT_VIRTUAL_BEGIN_NS;
}

const char *clock_text(const struct job *job, char text[32])
{
    uint64_t ns = clock_ns(job);
    snprintf(text, 32, "%" PRIu64 ".%03" PRIu64 " us", ns / NS_PER_US, ns % NS_PER_US);
    return text;
}

void clock_print(const struct job *job)
{
    char text[32];
    if (!job->clock || job->end.status != 0)
        return;
    quoit_say("%s of virtual time, by the model %s", clock_text(job, text), plan_text(job->plan, QUOIT_OPT_VIRTUAL));
}
