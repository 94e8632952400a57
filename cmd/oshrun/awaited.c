/* SPDX-License-Identifier: BSD-3-Clause */
#include "awaited.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "boot/awaited.h"
#include "boot/report.h"
#include "end.h"
#include "hosts.h"

#define GRACE_NS 200000000u

/* What the job waits for. */
enum step {
    STEP_NONE,
    STEP_INIT,     /* some PEs wait for others that have not called shmem_init */
    STEP_READY,    /* all have; until GO */
    STEP_AGAIN,    /* the same, in a later shmem_init */
    STEP_FINALIZE, /* all PEs are in shmem_finalize */
    STEP_STOP,     /* they have ended, and proxies are asked to */
};

static const char *const is_late[] = {
    [STEP_INIT] = "has not called shmem_init",
    [STEP_READY] = QUOIT_REPORT_LATE_PE,
    [STEP_AGAIN] = "has not called shmem_init again",
    [STEP_FINALIZE] = "is waited for in shmem_finalize",
};

static enum step step_of(const struct job *job)
{
    if (job->role == ROLE_AGENT || job->end.phase != ENDING_NOT)
        return STEP_NONE;
    if (job->alive_count == 0)
        return job->proxies_stop_ns ? STEP_STOP : STEP_NONE;
    if (!job->has_layout)
        return job->hello_count > 0 ? STEP_INIT : STEP_NONE;
    if (!job->is_going)
        return STEP_READY;
    if (job->ready_count > 0)
        return STEP_AGAIN;
    return job->leaving_count == job->plan->pe_count ? STEP_FINALIZE : STEP_NONE;
}

static uint64_t key_of(const struct job *job, enum step step)
{
    const uint64_t counts[] = {step, job->hello_count, job->ready_count, job->leaving_count};
    uint64_t key = 1;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        key = (key ^ counts[i]) * 0x9e3779b97f4a7c15u + 1;
    return step == STEP_NONE ? 0 : key | 1;
}

static bool is_stopped(const struct seen *seen)
{
    return seen->process.state == 'T' || seen->process.state == 't';
}

/* One under a debugger takes as long as its user does. */
static bool awaits_pe(enum step step, const struct pe *pe)
{
    if (pe->is_ended || plan_debugs(pe->job->plan, pe->index))
        return false;
    if (step == STEP_INIT)
        return pe->phase == QUOIT_PHASE_STARTED;
    if (step == STEP_READY)
        return pe->phase == QUOIT_PHASE_LAID_OUT;
    if (step == STEP_AGAIN)
        return pe->phase != QUOIT_PHASE_READY;
    return pe->phase == QUOIT_PHASE_RUNNING && is_stopped(&pe->seen);
}

static enum proxy_stage lowest_stage(const struct job *job)
{
    enum proxy_stage lowest = PROXY_SERVES;
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (job->hosts[i].stage < lowest)
            lowest = job->hosts[i].stage;
    return lowest;
}

/* Proxies that are further than others wait for these. */
static bool awaits_proxy(enum step step, const struct host *host, enum proxy_stage lowest)
{
    if (!host->has_proxy || step == STEP_INIT || step == STEP_AGAIN)
        return false;
    if (step == STEP_STOP)
        return !is_stopped(&host->seen);
    return step == STEP_READY ? host->stage == lowest && lowest != PROXY_SERVES : is_stopped(&host->seen);
}

static void add(struct quoit_awaited *awaited, uint32_t number, const struct seen *seen)
{
    quoit_awaited_add(awaited, number, seen->pid, &seen->process, seen->before_ns);
}

/* Numbers: of PEs, then of hosts for their proxies. */
static void gather(const struct job *job, enum step step, struct quoit_awaited *awaited_out)
{
    *awaited_out = (struct quoit_awaited){.view.is_idle = true};
    enum proxy_stage lowest = lowest_stage(job);
    for (uint32_t i = 0; i < job->plan->pe_count; i++)
        if (awaits_pe(step, &job->pes[i]))
            add(awaited_out, i, &job->pes[i].seen);
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (awaits_proxy(step, &job->hosts[i], lowest))
            add(awaited_out, job->plan->pe_count + i, &job->hosts[i].seen);
}

static void look_at(struct seen *seen, pid_t pid)
{
    seen->before_ns = seen->process.busy_ns;
    seen->pid = pid;
    quoit_process_look(pid, &seen->process);
}

/* The processes of this machine. */
static void look_here(struct job *job)
{
    for (uint32_t i = 0; i < job->plan->pe_count; i++)
        if (job->pes[i].pid)
            look_at(&job->pes[i].seen, job->pes[i].program_pid ? job->pes[i].program_pid : job->pes[i].pid);
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (job->hosts[i].proxy_pid)
            look_at(&job->hosts[i].seen, job->hosts[i].proxy_pid);
}

/* The proxy, then the PEs. */
void awaited_answer(struct job *job)
{
    uint32_t host = job->own_host, first = quoit_job_config_first_pe(&job->config, host),
             count = quoit_job_config_pes_of_host(&job->config, host);
    struct seen *all = calloc(1 + (size_t)count, sizeof *all);
    if (!all)
        return;
    look_here(job);
    all[0] = job->hosts[host].seen;
    for (uint32_t i = 0; i < count; i++)
        all[1 + i] = job->pes[first + i].seen;
    control_send(&job->control, QUOIT_CONTROL_LOOKED, CONTROL_NO_PE, all, (1 + (size_t)count) * sizeof *all);
    free(all);
}

void awaited_take(struct host *host, const void *bytes, size_t count)
{
    struct job *job = host->job;
    uint32_t first = quoit_job_config_first_pe(&job->config, host->index),
             pe_count = quoit_job_config_pes_of_host(&job->config, host->index);
    const char *at = bytes;
    if (count != (1 + (size_t)pe_count) * sizeof host->seen)
        return;
    memcpy(&host->seen, at, sizeof host->seen);
    for (uint32_t i = 0; i < pe_count; i++)
        memcpy(&job->pes[first + i].seen, at + (1 + (size_t)i) * sizeof host->seen, sizeof host->seen);
}

static void describe(const struct job *job, enum step step, const struct quoit_awaited *awaited, uint64_t now_ns,
                     const char *joint, char text_out[QUOIT_REPORT_AWAITED_BYTES])
{
    char name[HOSTS_NAME_BYTES], who[HOSTS_NAME_BYTES + 32];
    uint32_t pe_count = job->plan->pe_count;
    bool is_proxy = awaited->number >= pe_count;
    hosts_name(job, is_proxy ? awaited->number - pe_count : job->pes[awaited->number].host, name);
    if (is_proxy)
        snprintf(who, sizeof who, "the proxy of %s", name);
    else
        snprintf(who, sizeof who, "PE %u on %s", awaited->number, name);
    quoit_report_describe_awaited(who, awaited->process, joint,
                                  is_proxy && step == STEP_READY ? QUOIT_REPORT_LATE_PROXY : is_late[step],
                                  now_ns - job->await.since_ns, text_out);
}

static void report(struct job *job, enum step step, const struct quoit_awaited *awaited, uint64_t now_ns)
{
    char late[QUOIT_REPORT_AWAITED_BYTES];
    struct quoit_report report;
    describe(job, step, awaited, now_ns, ", which", late);
    if (!quoit_report_open(&report, "oshrun"))
        return;
    quoit_report_awaited(&report, late, quoit_await_state_text(&awaited->facts), awaited->count - 1);
    output_report(&job->output, &report);
}

/* end.c kills those that have not ended then. */
static void prolong_stop(struct job *job, const struct quoit_awaited *awaited, uint64_t now_ns)
{
    for (uint32_t i = 0; i < job->plan->host_count; i++) /* an agent that is stopped answers no more */
        job->hosts[i].seen = (struct seen){0};
    uint64_t last_ns = job->stop_begin_ns + HOSTS_STOP_TIMES * HOSTS_STOP_NS;
    if (awaited->count > 0 && !awaited->view.is_idle)
        job->proxies_stop_ns = now_ns + HOSTS_STOP_NS < last_ns ? now_ns + HOSTS_STOP_NS : last_ns;
}

uint64_t awaited_step(struct job *job, uint64_t now_ns)
{
    enum step step = step_of(job);
    uint64_t limit_ns = plan_number(job->plan, QUOIT_OPT_LINK_TIMEOUT), next_ns;
    uint64_t report_ns =
        job->role == ROLE_HEAD ? limit_ns + QUOIT_AWAIT_LOOK_NS : limit_ns; /* with the first answers */
    struct quoit_awaited awaited;
    if (!quoit_await_is_due(&job->await, key_of(job, step), report_ns, now_ns, &next_ns))
        return next_ns;
    if (job->role == ROLE_HEAD) /* the answers to the last look; the first one knows nothing, and ends nothing */
        hosts_send_all(job, QUOIT_CONTROL_LOOK, CONTROL_NO_PE, NULL, 0);
    else
        look_here(job);
    gather(job, step, &awaited);
    if (step == STEP_STOP) {
        prolong_stop(job, &awaited, now_ns);
        job->await.looked_ns = now_ns;
        return now_ns + QUOIT_AWAIT_LOOK_NS;
    }
    enum quoit_await_verdict verdict = quoit_await_step(
        &job->await, &awaited.view, step == STEP_READY ? QUOIT_AWAIT_HANG_TIMES * limit_ns : UINT64_MAX, now_ns);
    if (awaited.count > 0 && verdict == QUOIT_AWAIT_REPORT)
        report(job, step, &awaited, now_ns);
    if (awaited.count > 0 && verdict == QUOIT_AWAIT_HANGS) {
        describe(job, step, &awaited, now_ns, "", job->await_text);
        end_begin(job, END_HANGS, STATUS_CANNOT_START, 0, GRACE_NS);
    }
    return now_ns + QUOIT_AWAIT_LOOK_NS;
}
