/* SPDX-License-Identifier: BSD-3-Clause */
#include "reap.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach.h"
#include "end.h"
#include "hosts.h"
#include "service.h"
#include "suspend.h"

#define FAILURE_GRACE_NS 200000000u /* for the last output of the PEs that are ended */

/* The effect of a PE's end on the job. */
static void judge_pe(struct job *job, struct pe *pe)
{
    bool is_signal = WIFSIGNALED(pe->wait_status);
    int status = is_signal ? 128 + WTERMSIG(pe->wait_status) : WEXITSTATUS(pe->wait_status);
    bool has_begun = pe->phase != QUOIT_PHASE_STARTED && pe->phase != QUOIT_PHASE_FINALIZED;
    if (hosts_have_lost_ring(job)) {
        end_begin(job, END_RING_GONE, STATUS_CANNOT_START, 0, 0);
    } else if (job->exec_errors[pe->index]) {
        end_begin(job, END_CANNOT_START, STATUS_NOT_RUNNABLE, pe->index, 0);
    } else if (end_is_by_key(pe)) {
        end_interrupt(job, WTERMSIG(pe->wait_status));
    } else if (pe->phase == QUOIT_PHASE_FINALIZED && !is_signal) {
        /* The others have finished shmem_finalize too, so they end by themselves, unless one waits in a later
         * shmem_init; the status is the job's. */
        if (status && !job->end.status && job->end.phase == ENDING_NOT) {
            job->end.status = status;
            job->end.culprit = pe->index;
        }
        job->through_count++;
    } else if (status || has_begun) {
        end_begin(job, END_PE_FAILED, status ? status : STATUS_CANNOT_START, pe->index, FAILURE_GRACE_NS);
    } else if (pe->phase == QUOIT_PHASE_STARTED) {
        job->quiet_exit_count++;
    }
}

static void pe_ended(struct job *job, struct pe *pe, int wait_status)
{
    pe->is_ended = true;
    pe->wait_status = wait_status;
    pe->pid = 0;
    job->alive_count--;
    attach_drain(pe);
    service_drain(pe); /* its last messages come before its end */
    if (job->role == ROLE_AGENT) {
        const struct reap_ended ended = {.wait_status = wait_status, .exec_error = job->exec_errors[pe->index]};
        control_send(&job->control, QUOIT_CONTROL_ENDED, pe->index, &ended, sizeof ended);
    } else {
        judge_pe(job, pe);
    }
    loop_close(&job->loop, &pe->socket);
    loop_close(&job->loop, &pe->second);
    if (pe->index == job->terminal.pe)
        terminal_take_back(&job->terminal);
}

static void proxy_ended(struct job *job, struct host *host, int wait_status)
{
    const int32_t status = wait_status;
    host->has_proxy = false;
    host->proxy_pid = 0;
    host->proxy_wait_status = wait_status;
    hosts_drain_proxy(host); /* its last words come before its end */
    if (job->role == ROLE_AGENT)
        control_send(&job->control, QUOIT_CONTROL_PROXY_ENDED, host->index, &status, sizeof status);
    loop_close(&job->loop, &host->proxy);
    bool has_exited = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0;
    bool is_orderly = job->proxies_stop_ns && (has_exited || !host->has_begun); /* else hosts_stop() killed it */
    if (!is_orderly)
        end_begin(job, END_PROXY_DIED, STATUS_CANNOT_START, host->index, FAILURE_GRACE_NS);
}

/* The end of its output says whether that is early. Of an agent: those that it kills itself are not worth a word. */
static void rsh_ended(struct host *host, int wait_status)
{
    struct job *job = host->job;
    const struct quoit_control_frame frame = {
        .kind = QUOIT_CONTROL_SHELL_ENDED, .bytes = sizeof(int32_t), .host = host->index};
    host->rsh_pid = 0;
    if (job->role == ROLE_AGENT && job->end.phase != ENDING_KILLED)
        control_pass(&job->control, &frame, &(int32_t){wait_status});
    host->rsh_wait_status = wait_status;
    host->has_rsh_status = true;
}

void reap_pe(struct pe *pe, const struct reap_ended *ended)
{
    if (pe->is_ended)
        return;
    pe->job->exec_errors[pe->index] = ended->exec_error;
    pe_ended(pe->job, pe, ended->wait_status);
}

void reap_proxy(struct host *host, int wait_status)
{
    if (host->has_proxy)
        proxy_ended(host->job, host, wait_status);
}

static void reap_one(struct job *job, pid_t pid, int wait_status)
{
    bool has_ended = WIFEXITED(wait_status) || WIFSIGNALED(wait_status);
    for (uint32_t i = 0; i < job->plan->pe_count; i++) {
        struct pe *pe = &job->pes[i];
        if (pe->pid != pid)
            continue;
        if (has_ended)
            pe_ended(job, pe, wait_status);
        else if (WIFSTOPPED(wait_status))
            suspend_stopped(job, pe, WSTOPSIG(wait_status));
        else
            suspend_continued(job, pe);
        return;
    }
    for (uint32_t i = 0; i < job->plan->host_count && has_ended; i++)
        if (job->hosts[i].proxy_pid == pid)
            proxy_ended(job, &job->hosts[i], wait_status);
        else if (job->hosts[i].rsh_pid == pid)
            rsh_ended(&job->hosts[i], wait_status);
}

void reap_children(struct job *job)
{
    int wait_status = 0;
    pid_t pid;
    while ((pid = waitpid(-1, &wait_status, WNOHANG | WUNTRACED | WCONTINUED)) > 0)
        reap_one(job, pid, wait_status);
}
