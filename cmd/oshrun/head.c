/* SPDX-License-Identifier: BSD-3-Clause */
#include "head.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "awaited.h"
#include "base/log.h"
#include "end.h"
#include "hosts.h"
#include "input.h"
#include "reap.h"
#include "service.h"
#include "silence.h"
#include "spawn.h"
#include "stuck.h"
#include "top.h"
#include "trace.h"
#include "tree.h"

#define LOST_GRACE_NS 200000000u /* for the last output of the other hosts */

static struct pe *pe_of(const struct host *host, uint32_t pe)
{
    struct job *job = host->job;
    return pe < job->plan->pe_count && job->pes[pe].host == host->index ? &job->pes[pe] : NULL;
}

/* What a PE printed; frame->pe is twice its number, and one more for standard error. */
static void take_output(struct host *host, const struct quoit_control_frame *frame, const char *bytes)
{
    const struct pe *pe = pe_of(host, frame->pe / 2);
    if (!pe)
        return;
    output_feed(&host->job->output, pe->index, (int)(frame->pe % 2), bytes, frame->bytes);
    host->pending_bytes += frame->bytes;
}

static void take_note(struct pe *pe, const struct quoit_position *note)
{
    struct job *job = pe->job;
    if (!job->notes || pe->is_ended)
        return;
    job->notes[pe->index] = *note;
    job->notes[pe->index].call[sizeof note->call - 1] = '\0';
    job->notes[pe->index].wait_desc_text[sizeof note->wait_desc_text - 1] = '\0';
    job->notes[pe->index].line[sizeof note->line - 1] = '\0';
}

static void take_of_proxy(struct host *host, const struct quoit_control_frame *frame, const void *bytes)
{
    struct quoit_proxy_message message;
    if (frame->bytes != sizeof message)
        return;
    memcpy(&message, bytes, sizeof message);
    hosts_take_message(host, &message);
}

/* Frames about a PE. */
static void take_of_pe(struct pe *pe, const struct quoit_control_frame *frame, const void *bytes)
{
    struct service_passed passed = {0};
    struct reap_ended ended;
    if (frame->kind == QUOIT_CONTROL_MESSAGE && frame->bytes >= sizeof passed.message &&
        frame->bytes <= sizeof passed) {
        memcpy(&passed, bytes, frame->bytes);
        passed.executable[sizeof passed.executable - 1] = '\0';
        service_receive(pe, &passed);
    } else if (frame->kind == QUOIT_CONTROL_ENDED && frame->bytes == sizeof ended) {
        memcpy(&ended, bytes, sizeof ended);
        reap_pe(pe, &ended);
    } else if (frame->kind == QUOIT_CONTROL_NOTES && frame->bytes == sizeof(struct quoit_position)) {
        take_note(pe, bytes);
    }
}

/* Its processes are gone, or end by themselves: an agent that receives nothing from above ends them. */
static void lose_one(struct host *host)
{
    struct job *job = host->job;
    bool had_work = host->has_proxy;
    if (host->is_gone)
        return;
    hosts_lose(host);
    for (uint32_t i = 0; i < job->plan->pe_count; i++) {
        struct pe *pe = &job->pes[i];
        if (pe->host != host->index)
            continue;
        for (int which = 0; which < 2; which++)
            output_feed(&job->output, i, which, NULL, 0);
        if (pe->is_ended)
            continue;
        had_work = true;
        pe->is_ended = true;
        pe->wait_status = SIGKILL;
        job->alive_count--;
    }
    if (had_work)
        end_begin(job, END_HOST_LOST, STATUS_CANNOT_START, host->index, LOST_GRACE_NS);
}

/* With those that are reached through it; the first one is named. */
static void lose(struct host *host, const struct tree_lost *lost)
{
    struct job *job = host->job;
    host->has_answered = lost->has_answered;
    snprintf(host->problem, sizeof host->problem, "%s", lost->problem);
    lose_one(host);
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        struct host *below = &job->hosts[i];
        if (below->is_gone || !tree_is_under(job, i, host->index))
            continue;
        below->has_answered = true;
        snprintf(below->problem, sizeof below->problem, "the agent on %s, which leads to it, was lost",
                 job->plan->machines.list[host->index].name);
        lose_one(below);
    }
}

static void lose_next(struct control *control)
{
    struct tree_lost lost;
    tree_describe_loss(control->owner, &lost);
    lose(control->owner, &lost);
}

static void take_loss(struct host *host, const struct quoit_control_frame *frame, const void *bytes)
{
    struct tree_lost lost;
    if (frame->bytes != sizeof lost)
        return;
    memcpy(&lost, bytes, sizeof lost);
    lost.problem[sizeof lost.problem - 1] = '\0';
    lose(host, &lost);
}

static void take_frame(struct control *control, const struct quoit_control_frame *frame, const void *bytes)
{
    const struct host *next = control->owner;
    struct job *job = next->job;
    if (frame->host >= job->plan->host_count || job->hosts[frame->host].via != next->index)
        return;
    struct host *host = &job->hosts[frame->host];
    struct pe *pe = pe_of(host, frame->pe);
    const int32_t number = control_number(frame, bytes);
    switch (frame->kind) {
    case QUOIT_CONTROL_OUTPUT:
        take_output(host, frame, bytes);
        break;
    case QUOIT_CONTROL_TAKEN:
        input_taken(job, (uint32_t)number);
        break;
    case QUOIT_CONTROL_PROXY:
        take_of_proxy(host, frame, bytes);
        break;
    case QUOIT_CONTROL_PROXY_ENDED:
        reap_proxy(host, number);
        break;
    case QUOIT_CONTROL_RECORDS:
        if (host->front && frame->bytes == host->layout.traces)
            memcpy(host->front, bytes, frame->bytes);
        break;
    case QUOIT_CONTROL_PROFILE:
        if (pe && host->front && host->layout.profile_bytes == frame->bytes && frame->bytes != 0)
            memcpy(quoit_memory_profile(&host->layout, host->front, pe->index - host->layout.first_pe), bytes,
                   frame->bytes);
        break;
    case QUOIT_CONTROL_TRACE:
        trace_receive(host, frame, bytes);
        break;
    case QUOIT_CONTROL_LOOKED:
        awaited_take(host, bytes, frame->bytes);
        break;
    case QUOIT_CONTROL_SURVEYED:
        top_take(host, bytes, frame->bytes);
        break;
    case QUOIT_CONTROL_STILL_SEEN:
        stuck_take(host, bytes, frame->bytes);
        break;
    case QUOIT_CONTROL_SILENT:
        host->is_agent_silent = number > 0;
        host->agent_received_ns = loop_now_ns(&job->loop) - (uint64_t)number * 1000000u;
        break;
    case QUOIT_CONTROL_PROXY_STOPPED:
        silence_take(host);
        break;
    case QUOIT_CONTROL_LOST:
        take_loss(host, frame, bytes);
        break;
    case QUOIT_CONTROL_SHELL_ENDED:
        host->rsh_wait_status = number;
        host->has_rsh_status = true;
        break;
    case QUOIT_CONTROL_FAILED:
        end_begin(job, END_CANNOT_START, number ? number : STATUS_CANNOT_START, 0, 0);
        break;
    default:
        if (pe)
            take_of_pe(pe, frame, bytes);
    }
}

static bool expect_output(struct job *job)
{
    for (uint32_t i = 0; i < job->plan->pe_count; i++) {
        struct pe *pe = &job->pes[i];
        pe->tag = spawn_tag(job, pe);
        for (int which = 0; which < 2 && pe->tag && !plan_text(job->plan, QUOIT_OPT_OUTPUT)[0]; which++)
            output_expect(&job->output, i, which, pe->tag);
        if (!pe->tag)
            return false;
    }
    return true;
}

bool head_start(struct job *job)
{
    static const struct tree_callbacks callbacks = {.on_frame = take_frame, .on_lost = lose_next};
    job->alive_count = job->plan->pe_count;
    bool is_expected = expect_output(job);
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        job->hosts[i].has_proxy = quoit_job_config_has_proxies(&job->config);
    bool is_started = is_expected && tree_start(job, &callbacks) && input_open(job);
    if (!is_expected)
        tree_drop(job);
    if (!is_started)
        job->alive_count = 0;
    return is_started;
}

/* Output that its reader has taken may be followed by more. */
static void pay(struct job *job, struct host *host)
{
    if (host->pending_bytes == 0 || !output_has_room(&job->output))
        return;
    hosts_send(job, host->index, QUOIT_CONTROL_TAKEN, CONTROL_NO_PE, &host->pending_bytes, sizeof host->pending_bytes);
    host->pending_bytes = 0;
}

/* An agent that runs ends soon after its kill. One that is stopped would be waited for until it is lost, after
 * --network-limit. */
static void drop_unstopped(struct job *job, uint64_t now_ns)
{
    if (job->end.phase == ENDING_KILLED && job->end.reason == END_NORMAL && !hosts_are_gone(job) &&
        now_ns >= job->proxies_stop_ns + HOSTS_STOP_NS)
        tree_drop(job);
}

uint64_t head_step(struct job *job, uint64_t now_ns)
{
    drop_unstopped(job, now_ns);
    input_step(job);
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        pay(job, &job->hosts[i]);
    uint64_t top_ns = top_step(job, now_ns), tree_ns = tree_step(job, now_ns);
    return top_ns < tree_ns ? top_ns : tree_ns;
}

void head_close(struct job *job)
{
    top_close(job);
    tree_drop(job);
    input_close(job);
}
