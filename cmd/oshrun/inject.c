/* SPDX-License-Identifier: BSD-3-Clause */
#include "inject.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/prng.h"
#include "env/clock.h"
#include "hosts.h"

#define PRINTED_FIRST    100        /* changes of links */
#define PRINTED_EVERY_NS 100000000u /* beyond these */
#define LATE_NS          10000000u  /* changes that are later than this are skipped */

/* Prints through the sink of standard error, whose reader may stall. The first changes are all printed, then a few per
 * second. */
static void report(struct job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void report(struct job *job, const char *format, ...)
{
    char text[256];
    struct fault_log *log = &job->fault_log;
    uint64_t now_ns = quoit_clock_now_ns();
    if (log->printed_count >= PRINTED_FIRST && now_ns - log->printed_ns < PRINTED_EVERY_NS) {
        log->suppressed_count++;
        return;
    }
    int used = snprintf(text, sizeof text, "oshrun: ");
    va_list args;
    va_start(args, format);
    used += vsnprintf(text + used, sizeof text - (size_t)used, format, args);
    va_end(args);
    if (log->suppressed_count)
        used += snprintf(text + used, sizeof text - (size_t)used, ", after %llu changes that are not printed",
                         (unsigned long long)log->suppressed_count);
    used += snprintf(text + used, sizeof text - (size_t)used, "\n");
    output_print(&job->output, text, (size_t)used);
    log->suppressed_count = 0;
    log->printed_count++;
    log->printed_ns = now_ns;
}

/* The link from a host to the next, opened on first use. */
static struct quoit_port *port_of(struct job *job, uint32_t link)
{
    struct host *host = &job->hosts[link];
    if (host->fault_port)
        return host->fault_port;
    struct quoit_port_endpoint end;
    const struct quoit_port_config config = {
        .driver = job->driver, .memory = {host->front, host->layout.channels}, .endpoint = &end};
    if (hosts_describe(job, link, QUOIT_RIGHT, &end) != QUOIT_OK ||
        quoit_port_open(&config, &host->fault_port) != QUOIT_OK)
        report(job, "--fault: cannot reach link %u-%u", link, hosts_neighbour(job, link, QUOIT_RIGHT));
    return host->fault_port;
}

static void set_link(struct job *job, uint32_t link, bool is_up)
{
    struct quoit_port *port = port_of(job, link);
    if (!port)
        return;
    if ((is_up ? quoit_port_mend(port) : quoit_port_cut(port)) != QUOIT_OK)
        report(job, "--fault: the driver %s cannot cut a link", job->driver->name);
    else
        report(job, "link %u-%u %s (--fault)", link, hosts_neighbour(job, link, QUOIT_RIGHT),
               is_up ? "is up again" : "goes down");
}

/* One change; sets when the next one is due. */
static void change(struct job *job, struct fault_run *run)
{
    const struct fault *fault = run->fault;
    uint64_t due_ns = run->next_ns;
    run->next_ns = UINT64_MAX;
    switch (fault->kind) {
    case FAULT_HOST:
        report(job, "host%u dies (--fault)", fault->first);
        hosts_kill_proxy(job, fault->first);
        return;
    case FAULT_LINK:
        set_link(job, fault->first, run->is_down);
        if (!run->is_down && fault->for_ns)
            run->next_ns = due_ns + fault->for_ns;
        break;
    case FAULT_RANDOM:
        if (!run->is_down) {
            struct quoit_prng prng = {.state = run->prng_state};
            do /* link l is that of host l, which may have none */
                run->link = (uint32_t)quoit_prng_choose(&prng, job->plan->host_count);
            while (!quoit_layout_has_links(&job->hosts[run->link].layout));
            run->prng_state = prng.state;
        }
        set_link(job, run->link, run->is_down);
        run->next_ns = due_ns + (run->is_down ? fault->at_ns - fault->for_ns : fault->for_ns);
        break;
    }
    run->is_down = !run->is_down;
}

static bool start_runs(struct job *job, uint64_t now_ns)
{
    const struct plan *plan = job->plan;
    job->faults = calloc(plan->fault_count, sizeof *job->faults);
    for (uint32_t i = 0; i < plan->fault_count && job->faults; i++)
        job->faults[i] = (struct fault_run){
            .fault = &plan->faults[i], .next_ns = now_ns + plan->faults[i].at_ns, .prng_state = plan->faults[i].seed};
    return job->faults != NULL;
}

uint64_t inject_step(struct job *job, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    if (!job->plan->fault_count || !job->is_going || job->end.phase != ENDING_NOT || job->proxies_stop_ns)
        return UINT64_MAX;
    if (!job->faults && !start_runs(job, now_ns))
        return UINT64_MAX;
    for (uint32_t i = 0; i < job->plan->fault_count; i++) {
        struct fault_run *run = &job->faults[i];
        if (run->next_ns <= now_ns) /* one per turn, since changes may be due faster than they can be made */
            change(job, run);
        if (run->next_ns < now_ns && now_ns - run->next_ns > LATE_NS)
            run->next_ns = now_ns;
        if (run->next_ns < next_ns)
            next_ns = run->next_ns;
    }
    return next_ns;
}
