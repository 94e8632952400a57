/* SPDX-License-Identifier: BSD-3-Clause */
/* oshrun - starts an OpenSHMEM job on this machine, on one host or on a ring of emulated hosts, and runs it to its end.
 */

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/step.h"
#include "env/calls.h"
#include "env/clock.h"
#include "env/descriptors.h"
#include "env/limits.h"
#include "serve/serve.h"
#include "agent.h"
#include "awaited.h"
#include "beside.h"
#include "children.h"
#include "clock.h"
#include "end.h"
#include "front.h"
#include "guard.h"
#include "head.h"
#include "help.h"
#include "hosts.h"
#include "inject.h"
#include "reap.h"
#include "report.h"
#include "service.h"
#include "silence.h"
#include "spawn.h"
#include "profile.h"
#include "stats.h"
#include "stuck.h"
#include "suspend.h"
#include "trace.h"

#define FLUSH_TURN_NS 50000000u

/* An agent's signals come from oshrun, by the conversation; what a terminal or a shell sends both is not counted
 * twice. */
static void take_signal_of_agent(struct job *job, int signal_number)
{
    if (signal_number == SIGCHLD)
        reap_children(job);
    else if (signal_number == SIGTERM || signal_number == SIGHUP)
        end_as_ordered(job, END_ASKS_NOBODY);
    else if (signal_number == GUARD_GONE_SIGNAL)
        end_lose_guard(job);
}

static void take_signal(struct job *job, int signal_number)
{
    if (job->role == ROLE_AGENT) {
        take_signal_of_agent(job, signal_number);
        return;
    }
    switch (signal_number) {
    case SIGCHLD:
        reap_children(job);
        break;
    case SIGINT:
    case SIGTERM:
    case SIGHUP:
    case SIGQUIT:
        end_interrupt(job, signal_number);
        break;
    case SIGTSTP:
        suspend_key(job);
        break;
    case SIGCONT:
        suspend_take(job, STOPPING_CONTINUED);
        break;
    default:
        if (signal_number == GUARD_GONE_SIGNAL)
            end_lose_guard(job);
        else
            end_signal_programs(job, signal_number);
    }
}

static void signals_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct signalfd_siginfo info;
    while (read(watch->fd, &info, sizeof info) == (ssize_t)sizeof info)
        take_signal(watch->owner, (int)info.ssi_signo);
}

/* Signals that the front was sent, which mean the whole job. */
static void front_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct job *job = watch->owner;
    struct front_word word;
    ssize_t n;
    while ((n = recv(watch->fd, &word, sizeof word, MSG_DONTWAIT)) == (ssize_t)sizeof word)
        if (word.number == SIGTSTP)
            suspend_take(job, STOPPING_FRONT_STOPS);
        else if (word.number == SIGCONT)
            suspend_continue(job);
        else
            take_signal(job, word.number);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        loop_close(&job->loop, watch);
        end_lose_guard(job);
    }
}

/* Signals become readable through a descriptor; those of the terminal must not stop or kill oshrun itself. */
static bool open_signals(struct job *job)
{
    sigset_t set;
    guard_block_signals(&set);
    job->signals = (struct watch){
        .fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK), .events = EPOLLIN, .ready = signals_ready, .owner = job};
    job->front = (struct watch){.fd = job->guard.front_fd, .events = EPOLLIN, .ready = front_ready, .owner = job};
    return job->signals.fd >= 0 && loop_add(&job->loop, &job->signals) && loop_add(&job->loop, &job->front);
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

/* Of hosts that a network alone joins: as oshrun gives its agents, or as a file has it. */
static uint64_t find_schedules(const struct plan *plan)
{
    struct quoit_schedules_key key;
    char problem[QUOIT_TUNED_PROBLEM_BYTES];
    uint64_t schedules = plan->schedules;
    if (plan->is_agent || !plan_has_network(plan) || plan->ring_starts != 0)
        return schedules;
    plan_schedules_key(plan, &key);
    if (!quoit_schedules_load(&schedules, plan_text(plan, QUOIT_OPT_SCHEDULES), &key, problem))
        quoit_say("%s", problem);
    return schedules;
}

static void make_config(struct job *job)
{
    const struct plan *plan = job->plan;
    job->config = (struct quoit_job_config){
        .lane_count = (uint32_t)plan_number(plan, QUOIT_OPT_LANES),
        .slot_count = (uint32_t)plan_number(plan, QUOIT_OPT_SLOTS),
        .chunk_bytes = (uint32_t)plan_number(plan, QUOIT_OPT_CHUNK),
        .protocol = (uint8_t)quoit_protocol_named(plan_text(plan, QUOIT_OPT_PROTOCOL)),
        .barrier = is_option(plan, QUOIT_OPT_BARRIER, "papers") ? QUOIT_BARRIER_PAPERS : QUOIT_BARRIER_AUTO,
        .payload = is_option(plan, QUOIT_OPT_PAYLOAD, "copy") ? QUOIT_PAYLOAD_COPY : QUOIT_PAYLOAD_DMA,
        .direct_puts =
            is_option(plan, QUOIT_OPT_DIRECT_PUTS, "always") ? QUOIT_DIRECT_PUTS_ALWAYS : QUOIT_DIRECT_PUTS_EXACT,
        .has_loopback = plan_has_loopback(plan),
    };
    plan_place(plan, &job->config);
    if (plan_has_network(plan) && plan->ring_starts == 0) {
        job->config.protocol = QUOIT_PROTOCOL_NETWORK;
        job->config.lane_count = 1; /* a host has one endpoint */
    }
    job->config.schedules = find_schedules(plan);
    if (plan_text(plan, QUOIT_OPT_TRACE)[0])
        job->config.trace_count = trace_count(plan_number(plan, QUOIT_OPT_TRACE_BUFFER));
    /* Clocks of several machines are compared by what PEs record for a profile. */
    job->config.has_profile =
        plan_text(plan, QUOIT_OPT_PROFILE)[0] || (job->config.trace_count && plan->machines.count > 0);
}

/* Those of the ring, with --ring. */
static void make_links(struct job *job)
{
    const struct plan *plan = job->plan;
    if (plan->has_ring) {
        job->driver = quoit_port_driver_find(plan->ring.driver);
        job->knobs = plan->ring.knobs;
        return;
    }
    job->driver = quoit_port_driver_find(plan_text(plan, QUOIT_OPT_DRIVER));
    job->knobs = (struct quoit_port_knobs){
        .window_bytes[QUOIT_WINDOW_MEMORY] = plan_number(plan, QUOIT_OPT_WINDOW_MEMORY),
        .rate_bytes_per_s = plan_number(plan, QUOIT_OPT_LINK_RATE),
        .read_latency_ns = plan_number(plan, QUOIT_OPT_READ_LATENCY),
        .write_latency_ns = plan_number(plan, QUOIT_OPT_WRITE_LATENCY),
        .doorbell_latency_ns = plan_number(plan, QUOIT_OPT_DOORBELL_LATENCY),
        .dma_failures = (uint32_t)plan_number(plan, QUOIT_OPT_DMA_FAILURES),
        .arrives_on_return = is_option(plan, QUOIT_OPT_WRITES, "arrived"),
    };
    clock_set_knobs(plan, &job->knobs);
}

static bool open_job(struct job *job, const struct plan *plan, char **environment)
{
    job->plan = plan;
    job->heap_most_bytes = UINT64_MAX;
    job->environment = environment;
    job->pes = calloc(plan->pe_count, sizeof *job->pes);
    job->hosts = calloc(plan->host_count, sizeof *job->hosts);
    if (quoit_silences_open(&job->silences, plan->host_count) != QUOIT_OK)
        return false;
    make_config(job);
    make_links(job);
    if (job->role == ROLE_AGENT)
        job->terminal = (struct terminal){.fd = -1, .pe = plan->terminal_pe};
    else
        terminal_open(&job->terminal, job->guard.group, plan->terminal_pe);
    job->exec_errors = mmap(NULL, plan->pe_count * sizeof *job->exec_errors, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!job->pes || !job->hosts || job->exec_errors == MAP_FAILED || !loop_open(&job->loop) || !open_signals(job) ||
        !output_open(&job->output, &job->loop, 2 * (size_t)plan->pe_count))
        return false;
    for (uint32_t i = 0; i < plan->pe_count; i++) {
        job->pes[i].job = job;
        job->pes[i].index = i;
        job->pes[i].host = quoit_job_config_host_of_pe(&job->config, i);
        job->pes[i].socket.fd = -1;
        job->pes[i].second.fd = -1;
        job->pes[i].program.fd = -1;
    }
    for (uint32_t i = 0; i < plan->host_count; i++)
        job->hosts[i] = (struct host){
            .job = job,
            .index = i,
            .memory_fd = -1,
            .link_fd = -1,
            .proxy.fd = -1,
            .attach.fd = -1,
            .missed_by = HOST_NONE,
            .control.is_lost = true, /* until it is opened */
        };
    hosts_find_ways(job);
    uint64_t timeout_ns = plan_number(plan, QUOIT_OPT_TIMEOUT);
    job->start_ns = quoit_clock_now_ns();
    job->timeout_at_ns = timeout_ns && job->role != ROLE_AGENT ? loop_now_ns(&job->loop) + timeout_ns : 0;
    return true;
}

static void start(struct job *job)
{
    if (job->role == ROLE_AGENT)
        agent_begin(job);
    else if (!(job->role == ROLE_HEAD ? head_start(job) : spawn_all(job)))
        end_begin(job, END_CANNOT_START, STATUS_CANNOT_START, 0, 0);
}

/* What is due with the other machines. */
static uint64_t control_to_others(struct job *job, uint64_t now_ns)
{
    if (job->role == ROLE_ALONE)
        return UINT64_MAX;
    return job->role == ROLE_HEAD ? head_step(job, now_ns) : agent_step(job, now_ns);
}

static void run(struct job *job)
{
    start(job);
    for (;;) {
        uint64_t now_ns = loop_now_ns(&job->loop);
        if (job->role != ROLE_AGENT)
            service_step(job);
        suspend_step(job);
        uint64_t control_ns = control_to_others(job, now_ns);
        uint64_t silence_ns = silence_step(job, now_ns);
        uint64_t output_ns = output_step(&job->output, now_ns);
        uint64_t awaited_ns = awaited_step(job, now_ns); /* may put off what end_step() does */
        uint64_t end_ns = end_step(job, now_ns);
        uint64_t fault_ns = inject_step(job, now_ns);
        uint64_t trace_ns = trace_step(job, now_ns);
        uint64_t stuck_ns = stuck_step(job, now_ns);
        uint64_t clock_ns = clock_step(job, now_ns);
        if (stuck_ns < end_ns)
            end_ns = stuck_ns;
        if (clock_ns < end_ns)
            end_ns = clock_ns;
        if (awaited_ns < end_ns)
            end_ns = awaited_ns;
        if (control_ns < end_ns)
            end_ns = control_ns;
        if (silence_ns < end_ns)
            end_ns = silence_ns;
        if (fault_ns < end_ns)
            end_ns = fault_ns;
        if (trace_ns < end_ns)
            end_ns = trace_ns;
        if (end_is_over(job))
            return;
        loop_turn(&job->loop, output_ns < end_ns ? output_ns : end_ns);
    }
}

/* Until the readers have everything, or oshrun was asked not to wait for them. */
static void flush_output(struct job *job)
{
    for (;;) {
        uint64_t now_ns = loop_now_ns(&job->loop);
        output_step(&job->output, now_ns);
        if (output_stuck_ns(&job->output, now_ns) == 0 || end_gives_up_output(job, now_ns))
            return;
        loop_turn(&job->loop, now_ns + FLUSH_TURN_NS);
    }
}

/* The command line, before the plan cuts it into programs. */
static bool keep_arguments(struct job *job, int argc, char **argv)
{
    job->argument_count = argc;
    job->arguments = calloc((size_t)argc + 1, sizeof *job->arguments);
    for (int i = 0; i < argc && job->arguments; i++)
        job->arguments[i] = argv[i];
    return job->arguments != NULL;
}

static void report_cannot_start(int error)
{
    quoit_say("cannot start: %s%s [Q0213]", strerror(error),
              error == EAGAIN ? " (ulimit -u, or a control group's pids)" : "");
}

/* argc and argv are those of this process. */
static int serve_oshrun(struct job *job, struct plan *plan, const struct agent_start *start, int argc, char **argv)
{
    extern char **environ;
    job->role = ROLE_AGENT;
    job->own_host = start->setup.host;
    if (!guard_start(argc, argv, start->in_fd, start->out_fd, &job->guard) || !open_job(job, plan, environ) ||
        !agent_open(job, start)) {
        report_cannot_start(errno);
        return STATUS_CANNOT_START;
    }
    run(job);
    children_sweep();
    quoit_step("agent", job->own_host, "end");
    agent_close(job);
    output_close(&job->output);
    return 0;
}

/* What the user preloads is meant for the program: it would have threads in oshrun, which take signals that oshrun
 * waits for, and descriptors. This program begins anew without it, and the PEs get it (spawn.c). */
static void leave_tools(char **argv)
{
    static const char *const names[] = {"LD_PRELOAD", "LD_AUDIT"};
    bool has_some = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char kept[32];
        const char *value = getenv(names[i]);
        snprintf(kept, sizeof kept, SPAWN_KEPT_PREFIX "%s", names[i]);
        if (!value || !value[0] || getenv(kept)) /* else it has begun anew already */
            continue;
        has_some = true;
        setenv(kept, value, 1);
        unsetenv(names[i]);
    }
    if (has_some && execv("/proc/self/exe", argv) != 0)
        execv((const char *)(uintptr_t)getauxval(AT_EXECFN), argv); /* without /proc */
}

/* Receives what oshrun asks of this agent. PLAN_GO_ON, or the status to end with. */
static int become_agent(struct plan *plan, struct agent_start *agent)
{
    int status = agent_receive(agent);
    if (status != PLAN_GO_ON)
        return status;
    plan->is_agent = true;
    plan->machines = agent->setup.machines;
    plan->schedules = agent->setup.schedules;
    plan->launch = (struct allocation){.rsh = agent->setup.rsh, .own = ALLOCATION_OWN_AS_OTHERS};
    return PLAN_GO_ON;
}

int main(int argc, char **argv)
{
    extern char **environ;
    static struct plan plan;
    static struct job job;
    static struct agent_start agent;
    int status = PLAN_GO_ON, own_argc = argc;
    char **own_argv = argv;
    leave_tools(argv);
    quoit_fill_standard_descriptors();
    quoit_log_setup(QUOIT_LOG_WARN, "oshrun");
    quoit_serve_if_asked(argc, argv);
    raise_file_limit(&job); /* a network of many hosts has many connections */
    if (agent_is_asked(argc, argv)) {
        status = become_agent(&plan, &agent);
        if (status != PLAN_GO_ON)
            return status;
        argc = agent.setup.argc;
        argv = agent.setup.argv;
    }
    if (!keep_arguments(&job, argc, argv))
        return STATUS_CANNOT_START;
    status = plan_read(&plan, argc, argv, environ);
    if (status == PLAN_GO_ON && plan_is_question(&plan)) {
        help_answer(&plan);
        return 0;
    }
    if (status == PLAN_GO_ON)
        status = plan_check(&plan);
    if (status == PLAN_GO_ON)
        status = clock_plan(&plan);
    if (status != PLAN_GO_ON)
        return status;
    if (!plan.is_agent)
        beside_continue(&plan, argv);
    if (plan_number(&plan, QUOIT_OPT_DRY_RUN)) {
        plan_print(&plan);
        return 0;
    }
    bool has_network = plan_has_network(&plan) || plan.machines.count > 0;
    if (!quoit_calls_check(QUOIT_CALLS_LAUNCHER | (has_network ? QUOIT_CALLS_NETWORK : 0)))
        return STATUS_CANNOT_START;
    if (plan.is_agent)
        return serve_oshrun(&job, &plan, &agent, own_argc, own_argv);
    job.role = plan.machines.count ? ROLE_HEAD : ROLE_ALONE;
    if (!guard_start(argc, argv, -1, -1, &job.guard) || !open_job(&job, &plan, environ)) {
        report_cannot_start(errno);
        return STATUS_CANNOT_START;
    }
    if (!clock_open(&job) || !trace_open(&job) || !profile_open(&job))
        return STATUS_CANNOT_START;
    run(&job);
    terminal_take_back(&job.terminal);
    if (job.role == ROLE_HEAD)
        head_close(&job);
    children_sweep();
    bool is_written = trace_finish(&job);
    output_end(&job.output);
    flush_output(&job);
    if (plan_number(&plan, QUOIT_OPT_STATS))
        stats_print(&job);
    if (plan_text(&plan, QUOIT_OPT_STATS_JSON)[0])
        is_written &= stats_write(&job, plan_text(&plan, QUOIT_OPT_STATS_JSON));
    is_written &= profile_finish(&job);
    report_end(&job);
    clock_print(&job);
    flush_output(&job);
    output_close(&job.output);
    return job.end.status || is_written ? job.end.status : STATUS_CANNOT_START;
}
