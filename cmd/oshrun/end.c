/* SPDX-License-Identifier: BSD-3-Clause */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/clock.h"

#define FAILURE_GRACE_NS 200000000u /* for the last output of the PEs that are ended */
#define DRAIN_NS         200000000u /* for pipes that something else holds open */
#define SWEEP_ROUNDS_MAX 100

void end_signal_all(struct job *job, int signal_number)
{
    for (uint32_t i = 0; i < job->plan->pe_count; i++) {
        int group = atomic_load(&job->guard.entries[i].group);
        int program = atomic_load(&job->guard.entries[i].program);
        if (group > 0)
            kill(-group, signal_number);
        if (program > 0 && signal_number == SIGKILL)
            kill(program, SIGKILL); /* it may have left the group */
    }
}

/* Where every PE is now, before it is killed. */
static void take_notes(struct job *job)
{
    job->notes = calloc(job->plan->pe_count, sizeof *job->notes);
    for (uint32_t i = 0; i < job->plan->pe_count && job->notes; i++) {
        struct wait_note *note = &job->notes[i];
        const struct quoit_pe_shared *shared = hosts_pe_shared(job, i);
        note->is_alive = !job->pes[i].is_ended;
        note->phase = job->pes[i].phase;
        if (!shared || note->phase != PE_RUNNING)
            continue;
        memcpy(note->call, shared->waiting_in, sizeof note->call);
        note->call[sizeof note->call - 1] = '\0';
        uint64_t from = atomic_load(&shared->waiting_from), base = atomic_load(&shared->load_base);
        note->from = note->call[0] && from > base ? from - base : 0;
    }
}

static void kill_all(struct job *job, uint64_t now_ns)
{
    if (!job->notes)
        take_notes(job);
    end_signal_all(job, SIGKILL);
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (job->hosts[i].proxy_pid)
            kill(job->hosts[i].proxy_pid, SIGKILL);
    job->end.phase = ENDING_KILLED;
    job->end.deadline_ns = now_ns + DRAIN_NS;
}

void end_begin(struct job *job, enum end_reason reason, int status, uint32_t culprit, uint64_t grace_ns)
{
    if (job->end.phase != ENDING_NOT)
        return;
    uint64_t now_ns = quoit_clock_now_ns();
    job->end = (struct end){.phase = ENDING_GRACE,
                            .reason = reason,
                            .status = status,
                            .culprit = culprit,
                            .deadline_ns = now_ns + grace_ns};
    if (grace_ns == 0)
        kill_all(job, now_ns);
}

/* What the end of one PE means for the job. */
static void judge_pe(struct job *job, struct pe *pe)
{
    bool is_signal = WIFSIGNALED(pe->wait_status);
    int status = is_signal ? 128 + WTERMSIG(pe->wait_status) : WEXITSTATUS(pe->wait_status);
    bool has_begun = pe->phase != PE_STARTED && pe->phase != PE_FINALIZED;
    if (atomic_load(&job->guard.entries[pe->index].exec_error)) {
        end_begin(job, END_CANNOT_START, STATUS_NOT_RUNNABLE, pe->index, 0);
    } else if (pe->phase == PE_FINALIZED && !is_signal) {
        /* The others are through shmem_finalize too, so they end by themselves, if none waits to begin anew; the status
         * is the job's. */
        if (status && !job->end.status && job->end.phase == ENDING_NOT) {
            job->end.status = status;
            job->end.culprit = pe->index;
        }
        job->through_count++;
        service_step(job);
    } else if (status || has_begun) {
        end_begin(job, END_PE_FAILED, status ? status : STATUS_CANNOT_START, pe->index, FAILURE_GRACE_NS);
    } else if (pe->phase == PE_STARTED) {
        job->quiet_exit_count++;
        service_step(job);
    }
}

static void pe_ended(struct job *job, struct pe *pe, int wait_status)
{
    int group = pe->pid;
    pe->is_ended = true;
    pe->wait_status = wait_status;
    pe->pid = 0;
    job->alive_count--;
    if (kill(-group, 0) != 0 && errno == ESRCH)
        atomic_store(&job->guard.entries[pe->index].group, 0);
    service_drain(pe); /* what it said last comes before its end */
    judge_pe(job, pe);
    loop_close(&job->loop, &pe->socket);
    atomic_store(&job->guard.entries[pe->index].program, 0);
    if (pe->index == 0)
        input_close(&job->input);
}

static void proxy_ended(struct job *job, struct host *host, int wait_status)
{
    host->proxy_pid = 0;
    host->proxy_wait_status = wait_status;
    loop_close(&job->loop, &host->proxy_ready);
    bool is_orderly = job->proxies_stop_ns && WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
    if (!is_orderly)
        end_begin(job, END_PROXY_DIED, STATUS_CANNOT_START, host->index, FAILURE_GRACE_NS);
}

void end_reap(struct job *job)
{
    for (;;) {
        int wait_status = 0;
        pid_t pid = waitpid(-1, &wait_status, WNOHANG);
        if (pid <= 0)
            return;
        if (pid == job->guard.pid) /* somebody ended it: the job is guarded further on */
            guard_start(&job->guard);
        for (uint32_t i = 0; i < job->plan->pe_count; i++)
            if (job->pes[i].pid == pid)
                pe_ended(job, &job->pes[i], wait_status);
        for (uint32_t i = 0; i < job->plan->host_count; i++)
            if (job->hosts[i].proxy_pid == pid)
                proxy_ended(job, &job->hosts[i], wait_status);
    }
}

bool end_is_over(const struct job *job)
{
    if (job->alive_count || !hosts_are_gone(job))
        return false;
    return job->output.open_count == 0 || job->end.is_drained;
}

/* After the kill: everything in the pipes is still passed on, until they are quiet. */
static uint64_t drain(struct job *job, uint64_t now_ns)
{
    if (job->alive_count || !hosts_are_gone(job))
        return UINT64_MAX;
    uint64_t until_ns = output_last_active_ns(&job->output, now_ns) + DRAIN_NS;
    if (job->end.deadline_ns > until_ns)
        until_ns = job->end.deadline_ns;
    if (job->is_hurried || now_ns >= until_ns)
        job->end.is_drained = true;
    return until_ns;
}

uint64_t end_step(struct job *job, uint64_t now_ns)
{
    struct end *end = &job->end;
    if (end->phase == ENDING_NOT && job->timeout_at_ns && now_ns >= job->timeout_at_ns)
        end_begin(job, END_TIMEOUT, 124, 0, 0);
    int error = output_error(&job->output);
    if (end->phase == ENDING_NOT && error)
        end_begin(job, END_OUTPUT_GONE, error == EPIPE ? 128 + SIGPIPE : STATUS_CANNOT_START, (uint32_t)error, 0);
    if (end->phase == ENDING_NOT && job->alive_count == 0) {
        if (!job->proxies_stop_ns)
            hosts_stop(job);
        if (!hosts_are_gone(job) && now_ns >= job->proxies_stop_ns)
            kill_all(job, now_ns);
        else if (hosts_are_gone(job) && job->output.open_count)
            /* Something that the PEs started holds their output open. */
            end->phase = ENDING_KILLED;
    }
    if (end->phase == ENDING_GRACE && (now_ns >= end->deadline_ns || job->alive_count == 0))
        kill_all(job, now_ns);
    if (end->phase == ENDING_KILLED)
        return drain(job, now_ns);
    if (end->phase == ENDING_GRACE)
        return end->deadline_ns;
    if (job->proxies_stop_ns)
        return job->proxies_stop_ns;
    return job->timeout_at_ns ? job->timeout_at_ns : UINT64_MAX;
}

/* The children of this process, as the kernel lists them; orphans of the job have become children of it. */
static int list_children(pid_t *pids, int count_max)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[bytes > 0 ? bytes : 0] = '\0';
    int count = 0;
    char *at = text, *end = text;
    while (count < count_max) {
        long pid = strtol(at, &end, 10);
        if (end == at)
            break;
        pids[count++] = (pid_t)pid;
        at = end;
    }
    return count;
}

void end_sweep(struct job *job)
{
    guard_stop(&job->guard);
    end_signal_all(job, SIGKILL);
    for (int round = 0; round < SWEEP_ROUNDS_MAX; round++) {
        pid_t pids[256];
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD)
            return;
        int count = list_children(pids, 256);
        for (int i = 0; i < count; i++)
            kill(pids[i], SIGKILL);
        quoit_clock_sleep_ns(1000000);
    }
}
