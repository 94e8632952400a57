/* SPDX-License-Identifier: BSD-3-Clause */
#include "end.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot/crash.h"
#include "children.h"
#include "env/clock.h"
#include "env/process.h"
#include "hosts.h"

#define ANSWER_NS           100000000u  /* for PEs that are asked for their position */
#define DRAIN_NS            200000000u  /* for pipes that another process holds open */
#define SWEEP_EVERY_NS      10000000u   /* during that time */
#define OUTPUT_STUCK_NS     1000000000u /* oshrun is to end, and the reader of the output is stalled */
#define GRACE_NS_MAX        700000000u  /* limit of end_prolong: everything ends within a second */
#define INTERRUPT_GRACE_NS  2000000000u /* for PEs that handle SIGTERM */
#define UNSTOPPED_NAMED_MAX 4           /* proxies and agents that a warning names */
#define UNSTOPPED_BYTES     (256 + UNSTOPPED_NAMED_MAX * (HOSTS_NAME_BYTES + 16))

/* A group id is not reused before its leader is reaped. */
void end_signal(const struct pe *pe, int signal_number)
{
    if (pe->pid && kill(-pe->pid, signal_number) != 0)
        kill(pe->pid, signal_number); /* it has not created its group yet */
}

void end_kill_others(struct job *job)
{
    const int32_t number = SIGKILL;
    hosts_send_all(job, QUOIT_CONTROL_SIGNAL, CONTROL_TO_OTHERS, &number, sizeof number);
    for (uint32_t i = 0; i < job->plan->pe_count; i++)
        if (!job->pes[i].is_exiting)
            end_signal(&job->pes[i], number);
}

void end_signal_all_but(struct job *job, pid_t spared, int signal_number)
{
    const int32_t number = signal_number;
    hosts_send_all(job, QUOIT_CONTROL_SIGNAL, CONTROL_TO_GROUPS, &number, sizeof number);
    for (uint32_t i = 0; i < job->plan->pe_count; i++)
        if (job->pes[i].pid != spared)
            end_signal(&job->pes[i], signal_number);
}

void end_signal_all(struct job *job, int signal_number)
{
    end_signal_all_but(job, 0, signal_number);
}

/* To the program of a PE, not to a shell or debugger around it. */
static void signal_program(const struct pe *pe, int signal_number)
{
    if (pe->program.fd >= 0)
        syscall(SYS_pidfd_send_signal, pe->program.fd, signal_number, NULL, 0);
    else if (pe->pid)
        kill(pe->pid, signal_number);
}

void end_signal_programs(struct job *job, int signal_number)
{
    const int32_t number = signal_number;
    hosts_send_all(job, QUOIT_CONTROL_SIGNAL, CONTROL_TO_PROGRAMS, &number, sizeof number);
    for (uint32_t i = 0; i < job->plan->pe_count; i++)
        signal_program(&job->pes[i], signal_number);
}

static bool is_stopped(const struct pe *pe)
{
    struct quoit_process process;
    pid_t pid = pe->program_pid ? pe->program_pid : pe->pid;
    return quoit_process_look(pid, &process) && (process.state == 'T' || process.state == 't');
}

bool end_is_by_key(const struct pe *pe)
{
    const struct terminal *terminal = &pe->job->terminal;
    int number = pe->is_ended && WIFSIGNALED(pe->wait_status) ? WTERMSIG(pe->wait_status) : 0;
    return pe->index == terminal->pe && terminal->given_to && (number == SIGINT || number == SIGQUIT);
}

/* The position of every PE, before it is killed. */
static void take_notes(struct job *job)
{
    job->notes = calloc(job->plan->pe_count, sizeof *job->notes);
    for (uint32_t i = 0; i < job->plan->pe_count && job->notes; i++) {
        struct quoit_position *note = &job->notes[i];
        const struct quoit_pe_shared *shared = hosts_pe_shared(job, i);
        note->is_alive = !job->pes[i].is_ended || end_is_by_key(&job->pes[i]); /* its record says where it was */
        note->phase = job->pes[i].phase;
        if (!job_is_here(job, job->pes[i].host)) /* its agent says more */
            continue;
        note->is_stopped = note->is_alive && is_stopped(&job->pes[i]);
        if (!shared || note->phase != QUOIT_PHASE_RUNNING)
            continue;
        quoit_position_note(note, shared);
    }
}

/* One that SIGTERM would not end has something left to do: what SIGURG asks would keep it from that. */
static bool is_spared(const struct pe *pe)
{
    return quoit_process_handles(pe->program_pid ? pe->program_pid : pe->pid, SIGTERM);
}

static bool is_to_answer(const struct job *job, uint32_t pe, enum end_question question)
{
    const struct quoit_pe_shared *shared = hosts_pe_shared(job, pe);
    const struct quoit_position *note = &job->notes[pe];
    if (!shared || !job_is_here(job, job->pes[pe].host) || job->pes[pe].is_ended || note->is_stopped ||
        note->phase != QUOIT_PHASE_RUNNING || (question == END_ASKS_ENDING && is_spared(&job->pes[pe])))
        return false;
    return atomic_load(&shared->has_interpreter) || (question != END_ASKS_INTERPRETERS && !note->call[0]);
}

/* They get a moment, or what an interpreter needs; those that do not answer are omitted. */
static void ask_where(struct job *job, enum end_question question)
{
    uint64_t begin_ns = quoit_clock_now_ns();
    for (uint32_t i = 0; i < job->plan->pe_count; i++)
        if (is_to_answer(job, i, question)) {
            quoit_crash_ask(hosts_pe_shared(job, i));
            signal_program(&job->pes[i], SIGURG);
        }
    for (uint32_t i = 0; i < job->plan->pe_count; i++) {
        const struct quoit_pe_shared *shared = hosts_pe_shared(job, i);
        if (!is_to_answer(job, i, question))
            continue;
        quoit_crash_await(shared, begin_ns + (atomic_load(&shared->has_interpreter) ? QUOIT_CRASH_LINE_NS : ANSWER_NS));
        quoit_crash_line(shared, job->notes[i].line);
    }
}

void end_forget(struct job *job)
{
    free(job->notes);
    job->notes = NULL;
}

void end_note(struct job *job, enum end_question question)
{
    end_forget(job);
    take_notes(job);
    if (question != END_ASKS_NOBODY && job->notes)
        ask_where(job, question);
}

static void kill_all(struct job *job, uint64_t now_ns, enum end_question question)
{
    if (!job->notes)
        end_note(job, question);
    if (job->role == ROLE_HEAD)
        hosts_send_all(job, QUOIT_CONTROL_KILL, question, NULL, 0);
    else
        end_signal_all(job, SIGKILL);
    hosts_kill(job);
    job->end.phase = ENDING_KILLED;
    job->end.deadline_ns = now_ns + DRAIN_NS;
}

/* What the report of this reason has to say about the other PEs; see report.c. */
static enum end_question question_of(enum end_reason reason)
{
    switch (reason) {
    case END_TIMEOUT:
    case END_POLLED:
        return END_ASKS_ALL;
    case END_PE_FAILED:
    case END_STILL:
    case END_PROXY_DIED:
    case END_HANGS:
    case END_CUT_OFF:
    case END_HOST_LOST:
    case END_LEFT:
    case END_LOCK_KEPT:
        return END_ASKS_INTERPRETERS;
    default:
        return END_ASKS_NOBODY;
    }
}

void end_begin(struct job *job, enum end_reason reason, int status, uint32_t culprit, uint64_t grace_ns)
{
    if (job->end.phase != ENDING_NOT || job->role == ROLE_AGENT) /* an agent does not decide: end_as_ordered */
        return;
    uint64_t now_ns = loop_now_ns(&job->loop);
    end_forget(job); /* what was noted for a report */
    job->end = (struct end){.phase = ENDING_GRACE,
                            .reason = reason,
                            .status = status,
                            .culprit = culprit,
                            .begin_ns = now_ns,
                            .deadline_ns = now_ns + grace_ns};
    if (grace_ns == 0)
        kill_all(job, now_ns, question_of(reason));
}

void end_as_ordered(struct job *job, enum end_question question)
{
    uint64_t now_ns = loop_now_ns(&job->loop);
    if (job->end.phase == ENDING_KILLED && job->notes)
        return;
    job->end = (struct end){.reason = END_ORDERED, .begin_ns = now_ns};
    kill_all(job, now_ns, question);
}

void end_prolong(struct job *job, uint64_t grace_ns)
{
    struct end *end = &job->end;
    uint64_t wanted_ns = loop_now_ns(&job->loop) + grace_ns, last_ns = end->begin_ns + GRACE_NS_MAX;
    if (end->phase == ENDING_GRACE && wanted_ns > end->deadline_ns && !job->is_hurried)
        end->deadline_ns = wanted_ns < last_ns ? wanted_ns : last_ns;
}

/* For a job that ended successfully, but not in the manner that oshrun had requested. */
static void end_be(struct job *job, enum end_reason reason, int status)
{
    job->end.phase = ENDING_KILLED;
    job->end.reason = reason;
    job->end.status = status;
}

bool end_gives_up_output(struct job *job, uint64_t now_ns)
{
    bool is_late = job->timeout_at_ns && now_ns >= job->timeout_at_ns;
    if (is_late && job->end.reason == END_NORMAL && job->alive_count == 0)
        end_be(job, END_TIMEOUT, STATUS_TIMEOUT);
    bool has_to_end = is_late || job->end.reason == END_INTERRUPTED;
    return job->is_hurried || (has_to_end && output_stuck_ns(&job->output, now_ns) > OUTPUT_STUCK_NS);
}

void end_lose_guard(struct job *job)
{
    job->is_hurried = true;
    if (job->role == ROLE_AGENT)
        end_as_ordered(job, END_ASKS_NOBODY);
    else
        end_begin(job, END_GUARD_GONE, 128 + SIGKILL, 0, 0);
}

void end_interrupt(struct job *job, int signal_number)
{
    if (job->alive_count == 0 && job->end.reason == END_NORMAL) /* only the output is left, waiting for its reader */
        end_be(job, END_INTERRUPTED, 128 + signal_number);
    if (job->end.phase != ENDING_NOT) {
        job->is_hurried = true;
        job->end.deadline_ns = 0;
        return;
    }
    end_begin(job, END_INTERRUPTED, 128 + signal_number, 0, INTERRUPT_GRACE_NS);
    hosts_send_all(job, QUOIT_CONTROL_NOTE, END_ASKS_ENDING, NULL, 0);
    end_note(job, END_ASKS_ENDING);
    end_signal_all(job, SIGCONT);
    end_signal_all(job, SIGTERM);
}

bool end_is_over(const struct job *job)
{
    if (job->alive_count || !hosts_are_gone(job))
        return false;
    return job->output.open_count == 0 || job->end.is_drained;
}

/* Proxies that were asked to stop, and agents whose proxy has stopped, but which run on. The PEs have ended, so the
 * job's status is theirs. */
static void report_unstopped(struct job *job, uint64_t now_ns)
{
    char text[UNSTOPPED_BYTES], name[HOSTS_NAME_BYTES];
    size_t used = (size_t)snprintf(text, sizeof text, "oshrun: warning: ");
    uint32_t count = 0;
    if (job->role == ROLE_AGENT)
        return; /* the head reports */
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        const struct host *host = &job->hosts[i];
        if (hosts_is_gone(host))
            continue;
        if (count < UNSTOPPED_NAMED_MAX)
            used += (size_t)snprintf(text + used, sizeof text - used, "%sthe %s%s", count ? ", " : "",
                                     host->has_proxy ? "proxy of " : "agent on ", hosts_name(job, i, name));
        count++;
    }
    if (count == 0)
        return;
    if (count > UNSTOPPED_NAMED_MAX)
        used += (size_t)snprintf(text + used, sizeof text - used, " and %u more", count - UNSTOPPED_NAMED_MAX);
    used += (size_t)snprintf(text + used, sizeof text - used,
                             " did not end within %u s after the PEs, and %s killed [Q0229]\n",
                             (unsigned)((now_ns - job->stop_begin_ns) / 1000000000u), count == 1 ? "was" : "were");
    output_print(&job->output, text, used);
}

/* After the kill: remaining bytes in the pipes are still forwarded, until they are quiet. A process that held them open
 * from a group of its own has become a child by now. */
static uint64_t drain(struct job *job, uint64_t now_ns)
{
    if (job->end.reason != END_NORMAL && job->role != ROLE_HEAD && !hosts_have_agents(job)) /* else: remote shells */
        children_kill();
    if (job->alive_count || !hosts_are_gone(job))
        return now_ns + SWEEP_EVERY_NS;
    uint64_t until_ns = output_last_active_ns(&job->output, now_ns) + DRAIN_NS;
    if (job->end.deadline_ns > until_ns)
        until_ns = job->end.deadline_ns;
    if (end_gives_up_output(job, now_ns) || now_ns >= until_ns)
        job->end.is_drained = true;
    return now_ns + SWEEP_EVERY_NS < until_ns ? now_ns + SWEEP_EVERY_NS : until_ns;
}

uint64_t end_step(struct job *job, uint64_t now_ns)
{
    struct end *end = &job->end;
    if (end->phase == ENDING_NOT && job->role == ROLE_AGENT && !job->proxies_stop_ns)
        return UINT64_MAX;
    if (end->phase == ENDING_NOT && job->timeout_at_ns && now_ns >= job->timeout_at_ns)
        end_begin(job, END_TIMEOUT, STATUS_TIMEOUT, 0, 0);
    int error = output_error(&job->output);
    if (end->phase == ENDING_NOT && error)
        end_begin(job, END_OUTPUT_GONE, error == EPIPE ? 128 + SIGPIPE : STATUS_CANNOT_START, (uint32_t)error, 0);
    if (end->phase == ENDING_NOT && job->alive_count == 0) {
        if (!job->proxies_stop_ns)
            hosts_stop(job);
        if (!hosts_are_gone(job) && now_ns >= job->proxies_stop_ns) {
            report_unstopped(job, now_ns);
            kill_all(job, now_ns, END_ASKS_NOBODY);
        } else if (hosts_are_gone(job) && job->output.open_count) {
            /* A process started by a PE holds its output open. */
            end->phase = ENDING_KILLED;
        }
    }
    if (end->phase == ENDING_GRACE && (now_ns >= end->deadline_ns || job->alive_count == 0))
        kill_all(job, now_ns, question_of(end->reason));
    if (end->phase == ENDING_KILLED)
        return drain(job, now_ns);
    if (end->phase == ENDING_GRACE)
        return end->deadline_ns;
    if (job->proxies_stop_ns)
        return job->proxies_stop_ns;
    return job->timeout_at_ns ? job->timeout_at_ns : UINT64_MAX;
}
