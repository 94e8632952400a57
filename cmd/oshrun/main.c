/* SPDX-License-Identifier: BSD-3-Clause */
/* oshrun - starts an OpenSHMEM job on this machine, on one host or on a ring of emulated hosts, and sees it to its end.
 */
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/log.h"
#include "env/clock.h"
#include "env/limits.h"
#include "trace.h"

#define INTERRUPT_GRACE_NS 2000000000u /* for PEs that handle SIGTERM */

/* The first asks the PEs to end, the second does not ask. */
static void interrupt(struct job *job, int signal_number)
{
    if (job->end.phase != ENDING_NOT) {
        job->is_hurried = true;
        job->end.deadline_ns = 0;
        return;
    }
    end_begin(job, END_INTERRUPTED, 128 + signal_number, 0, INTERRUPT_GRACE_NS);
    end_signal_all(job, SIGCONT);
    end_signal_all(job, SIGTERM);
}

static void take_signal(struct job *job, int signal_number)
{
    switch (signal_number) {
    case SIGCHLD:
        end_reap(job);
        break;
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
        interrupt(job, signal_number);
        break;
    case SIGTSTP:
        end_signal_all(job, SIGTSTP);
        raise(SIGSTOP);
        break;
    case SIGCONT:
        end_signal_all(job, SIGCONT);
        input_resume(&job->input);
        break;
    default:
        for (uint32_t i = 0; i < job->plan->pe_count; i++) {
            const struct pe *pe = &job->pes[i];
            if (pe->pid)
                kill(pe->program_pid ? pe->program_pid : pe->pid, signal_number);
        }
    }
}

static void signals_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct signalfd_siginfo info;
    while (read(watch->fd, &info, sizeof info) == (ssize_t)sizeof info)
        take_signal(watch->owner, (int)info.ssi_signo);
}

/* Signals become something to read; those of the terminal must not stop or kill oshrun itself. */
static bool open_signals(struct job *job)
{
    static const int taken[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGUSR1, SIGUSR2};
    sigset_t set;
    struct sigaction old;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        bool is_ignored = sigaction(taken[i], NULL, &old) == 0 && old.sa_handler == SIG_IGN; /* nohup */
        if (!is_ignored || taken[i] == SIGCHLD)
            sigaddset(&set, taken[i]);
    }
    signal(SIGCHLD, SIG_DFL); /* ignored, it would reap for us */
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN); /* a file beyond ulimit -f is an errno, which can be told */
    signal(SIGTTIN, SIG_IGN);
    signal(SIGTTOU, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, NULL);
    job->signals = (struct watch){
        .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .events = EPOLLIN, .ready = signals_ready, .owner = job};
    return job->signals.fd >= 0 && loop_add(&job->loop, &job->signals);
}

/* Standard descriptors that are closed would be taken by the first pipe or socket. */
static void fill_standard_descriptors(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

static void raise_file_limit(struct job *job)
{
    getrlimit(RLIMIT_NOFILE, &job->old_files);
    struct rlimit wanted = {job->old_files.rlim_max, job->old_files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &wanted);
}

/* Events that fit, a power of two. */
static uint32_t trace_count(uint64_t bytes)
{
    uint32_t count = QUOIT_TRACE_EVENTS_MIN;
    while (2ull * count * sizeof(struct quoit_trace_slot) <= bytes && count < QUOIT_TRACE_EVENTS_MAX)
        count *= 2;
    return count;
}

static bool is_option(const struct plan *plan, enum quoit_option_id id, const char *text)
{
    return strcmp(plan_text(plan, id), text) == 0;
}

static void make_shape(struct job *job)
{
    const struct plan *plan = job->plan;
    job->config = (struct quoit_job_config){
        .host_count = plan->host_count,
        .pe_count = plan->pe_count,
        .lane_count = (uint32_t)plan_number(plan, QUOIT_OPT_LANES),
        .slot_count = (uint32_t)plan_number(plan, QUOIT_OPT_SLOTS),
        .chunk_bytes = (uint32_t)plan_number(plan, QUOIT_OPT_CHUNK),
        .protocol = (uint8_t)quoit_protocol_named(plan_text(plan, QUOIT_OPT_PROTOCOL)),
        .barrier = is_option(plan, QUOIT_OPT_BARRIER, "papers") ? QUOIT_BARRIER_PAPERS : QUOIT_BARRIER_AUTO,
        .payload = is_option(plan, QUOIT_OPT_PAYLOAD, "copy") ? QUOIT_PAYLOAD_COPY : QUOIT_PAYLOAD_DMA,
    };
    if (plan_text(plan, QUOIT_OPT_TRACE)[0])
        job->config.trace_count = trace_count(plan_number(plan, QUOIT_OPT_TRACE_BUFFER));
    job->knobs = (struct quoit_emulated_knobs){
        .window_bytes[QUOIT_WINDOW_MEMORY] = plan_number(plan, QUOIT_OPT_WINDOW_MEMORY),
        .rate_bytes_per_s = plan_number(plan, QUOIT_OPT_LINK_RATE),
        .read_latency_ns = plan_number(plan, QUOIT_OPT_READ_LATENCY),
        .write_latency_ns = plan_number(plan, QUOIT_OPT_WRITE_LATENCY),
        .doorbell_latency_ns = plan_number(plan, QUOIT_OPT_DOORBELL_LATENCY),
        .dma_failures = (uint32_t)plan_number(plan, QUOIT_OPT_DMA_FAILURES),
    };
    uint32_t proxy_threads = plan->host_count > 1 ? job->config.lane_count * plan->host_count : 0;
    job->policy = quoit_wait_policy_for(plan->pe_count + proxy_threads, quoit_limits_core_count());
}

static bool open_job(struct job *job, const struct plan *plan, char **environment)
{
    job->plan = plan;
    job->environment = environment;
    job->pes = calloc(plan->pe_count, sizeof *job->pes);
    job->hosts = calloc(plan->host_count, sizeof *job->hosts);
    make_shape(job);
    raise_file_limit(job);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!job->pes || !job->hosts || !loop_open(&job->loop) || !open_signals(job) ||
        !guard_open(&job->guard, plan->pe_count) || !output_open(&job->output, &job->loop, 2 * (size_t)plan->pe_count))
        return false;
    for (uint32_t i = 0; i < plan->pe_count; i++) {
        job->pes[i].job = job;
        job->pes[i].index = i;
        job->pes[i].host = quoit_job_config_host_of_pe(&job->config, i);
        job->pes[i].socket.fd = -1;
    }
    for (uint32_t i = 0; i < plan->host_count; i++)
        job->hosts[i] = (struct host){.job = job, .index = i, .memory_fd = -1, .link_fd = -1, .proxy_ready.fd = -1};
    uint64_t timeout_ns = plan_number(plan, QUOIT_OPT_TIMEOUT);
    job->start_ns = quoit_clock_now_ns();
    job->timeout_at_ns = timeout_ns ? job->start_ns + timeout_ns : 0;
    return true;
}

static void run(struct job *job)
{
    guard_start(&job->guard); /* before there is something to guard */
    if (!spawn_all(job))
        end_begin(job, END_CANNOT_START, STATUS_CANNOT_START, 0, 0);
    for (;;) {
        uint64_t now_ns = quoit_clock_now_ns();
        uint64_t output_ns = output_step(&job->output, now_ns);
        uint64_t end_ns = end_step(job, now_ns);
        uint64_t fault_ns = fault_step(job, now_ns);
        uint64_t trace_ns = trace_step(job, now_ns);
        if (fault_ns < end_ns)
            end_ns = fault_ns;
        if (trace_ns < end_ns)
            end_ns = trace_ns;
        if (end_is_over(job))
            return;
        loop_turn(&job->loop, output_ns < end_ns ? output_ns : end_ns);
    }
}

int main(int argc, char **argv)
{
    extern char **environ;
    static struct plan plan;
    static struct job job;
    fill_standard_descriptors();
    quoit_log_setup(QUOIT_LOG_WARN, "oshrun");
    int status = plan_make(&plan, argc, argv, environ);
    if (status != PLAN_GO_ON)
        return status;
    if (plan_number(&plan, QUOIT_OPT_DRY_RUN)) {
        plan_print(&plan);
        return 0;
    }
    if (!open_job(&job, &plan, environ)) {
        quoit_say("cannot start: %s [Q0213]", strerror(errno));
        return STATUS_CANNOT_START;
    }
    if (!trace_open(&job))
        return STATUS_CANNOT_START;
    run(&job);
    end_sweep(&job);
    trace_finish(&job);
    output_finish(&job.output, job.is_hurried);
    if (plan_number(&plan, QUOIT_OPT_STATS))
        stats_print(&job);
    if (plan_text(&plan, QUOIT_OPT_STATS_JSON)[0])
        stats_write(&job, plan_text(&plan, QUOIT_OPT_STATS_JSON));
    report_end(&job);
    return job.end.status;
}
