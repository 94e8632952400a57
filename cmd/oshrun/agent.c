/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "awaited.h"
#include "base/log.h"
#include "end.h"
#include "hosts.h"
#include "input.h"
#include "network.h"
#include "report.h"
#include "service.h"
#include "silence.h"
#include "spawn.h"
#include "stuck.h"
#include "top.h"
#include "trace.h"
#include "tree.h"

#define FLUSH_NS 5000000000u /* for the last words */

bool agent_is_asked(int argc, char **argv)
{
    return argc == 2 && strcmp(argv[1], "--agent") == 0;
}

/* Standard input and output are the conversation's alone; what else is printed here goes to standard error. */
static bool take_descriptors(struct agent_start *start)
{
    start->in_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    start->out_fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return start->in_fd >= 0 && start->out_fd >= 0 && nothing >= 0 && dup2(nothing, STDIN_FILENO) >= 0 &&
           dup2(STDERR_FILENO, STDOUT_FILENO) >= 0;
}

int agent_receive(struct agent_start *start)
{
    extern char **environ;
    char problem[CONTROL_PROBLEM_BYTES], who[MACHINE_NAME_BYTES + 16], *bytes = NULL;
    struct quoit_control_frame frame = {0};
    if (!take_descriptors(start)) {
        quoit_say("cannot start: %s [Q0213]", strerror(errno));
        return STATUS_CANNOT_START;
    }
    if (!control_receive_first(start->in_fd, start->out_fd, start->key, &frame, &bytes, problem)) {
        if (problem[0])
            quoit_say("--agent: %s [Q0210]", problem);
        return STATUS_BAD_USAGE;
    }
    if (!setup_unpack(bytes, frame.bytes, &start->setup)) {
        quoit_say("--agent: oshrun sends what this version does not understand [Q0210]");
        return STATUS_BAD_USAGE;
    }
    snprintf(who, sizeof who, "oshrun on %s", start->setup.machines.list[start->setup.host].name);
    quoit_log_setup(QUOIT_LOG_WARN, who);
    if (chdir(start->setup.folder) != 0) {
        quoit_say("%s: %s [Q0213]", start->setup.folder, strerror(errno));
        return STATUS_CANNOT_START;
    }
    char **merged = setup_environment(start->setup.environment, environ);
    if (merged)
        environ = merged;
    return merged ? PLAN_GO_ON : STATUS_CANNOT_START;
}

/* What PEs print: in parts that oshrun has room for. */
static void forward(void *arg, size_t pe, int which, const char *data, size_t bytes)
{
    struct job *job = arg;
    control_send(&job->control, QUOIT_CONTROL_OUTPUT, (uint32_t)(2 * pe) + (uint32_t)which, data, bytes);
    job->untaken_bytes += (uint32_t)bytes;
    output_hold(&job->output, job->untaken_bytes >= CONTROL_WINDOW_BYTES);
}

static void taken(struct job *job, uint32_t bytes)
{
    job->untaken_bytes -= bytes < job->untaken_bytes ? bytes : job->untaken_bytes;
    output_hold(&job->output, job->untaken_bytes >= CONTROL_WINDOW_BYTES);
}

static void take_signal(struct job *job, uint32_t whom, int number)
{
    if (number <= 0 || number > SIGRTMAX)
        return;
    if (whom == CONTROL_TO_PROXY)
        hosts_kill_proxy(job, job->own_host);
    else if (whom == CONTROL_TO_LOST_PROXY)
        hosts_dismiss_proxy(job, job->own_host);
    else if (whom == CONTROL_TO_PROGRAMS)
        end_signal_programs(job, number);
    else if (whom == CONTROL_TO_OTHERS)
        service_kill_others(job);
    else
        end_signal_all(job, number);
}

static void send_notes(struct job *job)
{
    report_wait_descs(job);
    for (uint32_t i = 0; i < job->plan->pe_count && job->notes; i++)
        if (job->pes[i].host == job->own_host && job->notes[i].is_alive)
            control_send(&job->control, QUOIT_CONTROL_NOTES, i, &job->notes[i], sizeof job->notes[i]);
}

static void send_records(struct job *job)
{
    const struct host *host = &job->hosts[job->own_host];
    if (host->front)
        control_send(&job->control, QUOIT_CONTROL_RECORDS, host->index, host->front, host->layout.traces);
}

/* Whether oshrun reports at the end what links and networks carried. */
static bool is_counted(const struct job *job)
{
    return plan_number(job->plan, QUOIT_OPT_STATS) || plan_text(job->plan, QUOIT_OPT_STATS_JSON)[0] ||
           plan_text(job->plan, QUOIT_OPT_PROFILE)[0];
}

static void send_profiles(struct job *job)
{
    struct host *host = &job->hosts[job->own_host];
    const struct quoit_layout *layout = &host->layout;
    for (uint32_t local = 0; host->front && layout->profile_bytes != 0 && local < layout->local_count; local++)
        control_send(&job->control, QUOIT_CONTROL_PROFILE, layout->first_pe + local,
                     quoit_memory_profile(layout, host->front, local), layout->profile_bytes);
}

/* Of PEs that were asked, what was noted stays true. */
static void take_note(struct job *job, enum end_question question)
{
    end_note(job, question);
    send_notes(job);
    if (question == END_ASKS_NOBODY)
        end_forget(job);
    else
        send_records(job);
}

/* Where the PEs are, then their end. */
static void take_kill(struct job *job, enum end_question question)
{
    end_as_ordered(job, question);
    send_notes(job);
    send_records(job);
}

static void fail(struct job *job)
{
    const int32_t status = STATUS_CANNOT_START;
    control_send(&job->control, QUOIT_CONTROL_FAILED, CONTROL_NO_PE, &status, sizeof status);
}

static void take_make(struct job *job, const struct quoit_control_frame *frame, const void *bytes)
{
    struct hosts_make make;
    bool is_due = frame->bytes == sizeof make && !job->hosts[job->own_host].front;
    if (is_due)
        memcpy(&make, bytes, sizeof make);
    if (!is_due || !hosts_make_here(job, &make))
        fail(job);
}

/* To this agent. */
static void take_own(struct job *job, const struct quoit_control_frame *frame, const void *bytes)
{
    struct quoit_boot_message message;
    const int32_t number = control_number(frame, bytes);
    bool is_mine = frame->pe < job->plan->pe_count && job->pes[frame->pe].host == job->own_host;
    switch (frame->kind) {
    case QUOIT_CONTROL_MAKE:
        take_make(job, frame, bytes);
        break;
    case QUOIT_CONTROL_CONTACTS:
        if (job->network && frame->bytes == job->plan->host_count * QUOIT_NETWORK_CONTACT_BYTES) {
            quoit_board_fill(network_board(job), bytes);
            hosts_send_contacts(job);
        }
        break;
    case QUOIT_CONTROL_SAY:
        if (is_mine && frame->bytes == sizeof message) {
            memcpy(&message, bytes, sizeof message);
            service_pass(&job->pes[frame->pe], &message);
        }
        break;
    case QUOIT_CONTROL_TAKEN:
        taken(job, (uint32_t)number);
        break;
    case QUOIT_CONTROL_INPUT:
        input_give(job, bytes, frame->bytes);
        break;
    case QUOIT_CONTROL_SIGNAL:
        take_signal(job, frame->pe, number);
        break;
    case QUOIT_CONTROL_LOOK:
        awaited_answer(job);
        break;
    case QUOIT_CONTROL_ASK_PROXY:
        silence_answer(job);
        break;
    case QUOIT_CONTROL_PROXY_STOPPED:
        if (job->network && frame->pe < job->plan->host_count)
            quoit_board_note_sign(network_board(job), frame->pe);
        break;
    case QUOIT_CONTROL_SURVEY:
        top_answer(job, bytes, frame->bytes);
        break;
    case QUOIT_CONTROL_STILL:
        stuck_answer(job, bytes, frame->bytes);
        break;
    case QUOIT_CONTROL_STOP:
        hosts_stop(job);
        break;
    case QUOIT_CONTROL_NOTE:
        take_note(job, (enum end_question)frame->pe);
        break;
    case QUOIT_CONTROL_KILL:
        take_kill(job, (enum end_question)frame->pe);
        break;
    default:
        break;
    }
}

/* Those below receive it first, since some frames take a while here. */
static void take_frame(struct control *control, const struct quoit_control_frame *frame, const void *bytes)
{
    struct job *job = control->owner;
    if (frame->host != job->own_host)
        hosts_pass(job, frame, bytes);
    if (frame->host == job->own_host || frame->host == QUOIT_CONTROL_TO_ALL)
        take_own(job, frame, bytes);
}

/* From below. */
static void take_from_below(struct control *control, const struct quoit_control_frame *frame, const void *bytes)
{
    const struct host *next = control->owner;
    struct job *job = next->job;
    if (frame->host >= job->plan->host_count || job->hosts[frame->host].via != next->index)
        return;
    if (frame->kind == QUOIT_CONTROL_LOST)
        tree_mark_gone(job, frame->host);
    control_pass(&job->control, frame, bytes);
    if (frame->kind == QUOIT_CONTROL_TRACE) /* of which there may be more than this process is to hold */
        control_flush(&job->control, FLUSH_NS);
}

static void lose_below(struct control *control)
{
    const struct host *next = control->owner;
    struct job *job = next->job;
    struct tree_lost lost;
    tree_describe_loss(next, &lost);
    tree_mark_gone(job, next->index);
    const struct quoit_control_frame frame = {.kind = QUOIT_CONTROL_LOST, .bytes = sizeof lost, .host = next->index};
    control_pass(&job->control, &frame, &lost);
}

static void lose_oshrun(struct control *control)
{
    struct job *job = control->owner;
    tree_drop(job);
    job->is_hurried = true; /* nobody reads any more */
    end_as_ordered(job, END_ASKS_NOBODY);
}

bool agent_open(struct job *job, const struct agent_start *start)
{
    job->control = (struct control){.on_frame = take_frame,
                                    .on_lost = lose_oshrun,
                                    .owner = job,
                                    .host = job->own_host,
                                    .limit_ns = plan_number(job->plan, QUOIT_OPT_NETWORK_LIMIT),
                                    .start_limit_ns = UINT64_MAX};
    job->output.forward = forward;
    job->output.forward_arg = job;
    return control_answer(&job->control, &job->loop, start->in_fd, start->out_fd, start->key);
}

void agent_begin(struct job *job)
{
    static const struct tree_callbacks callbacks = {.on_frame = take_from_below, .on_lost = lose_below};
    if (!tree_start(job, &callbacks) || !spawn_all(job))
        fail(job);
}

/* A PE that has closed its socket leaves its words in its record, and no message reports them. */
static void read_words(struct job *job)
{
    for (uint32_t i = 0; i < job->plan->pe_count; i++)
        if (job->pes[i].pid && job->pes[i].socket.fd < 0)
            service_drain(&job->pes[i]);
}

uint64_t agent_step(struct job *job, uint64_t now_ns)
{
    read_words(job);
    job->control.alive_ns = silence_sign_ns(job, HOST_NONE, now_ns);
    uint64_t below_ns = tree_step(job, now_ns), own_ns = control_step(&job->control, now_ns);
    return below_ns < own_ns ? below_ns : own_ns;
}

void agent_close(struct job *job)
{
    output_end(&job->output);
    tree_drop(job);
    if (is_counted(job))
        send_records(job);
    send_profiles(job);
    control_flush(&job->control, FLUSH_NS);
    trace_send(job);
    control_close(&job->control);
    input_close(job);
}
