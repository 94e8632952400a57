/* SPDX-License-Identifier: BSD-3-Clause */
#include "tree.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/log.h"
#include "hosts.h"
#include "net/net.h"
#include "setup.h"
#include "silence.h"
#include "spawn.h"

#define QUOTED_BYTES    (4 * PATH_MAX + 3)
#define ENDED_LIMIT_NS  (2u * QUOIT_NET_NOTICE_NS)
#define LATE_AGENTS_MAX 8u /* that are reported */

/* One word for a shell, whatever its characters. */
static void quote(const char *word, char quoted_out[QUOTED_BYTES])
{
    char *to = quoted_out;
    *to++ = '\'';
    for (; *word; word++) {
        if (*word == '\'')
            to = stpcpy(to, "'\\''");
        else
            *to++ = *word;
    }
    stpcpy(to, "'");
}

/* Between fork and exec. ssh joins the words of its command by blanks, and a shell there parses them. */
static void __attribute__((noreturn))
become_shell(const struct job *job, const char *name, const char *own_path, int in_fd, int out_fd, pid_t parent)
{
    const char *rsh = job->plan->launch.rsh;
    char script[PATH_MAX], quoted[QUOTED_BYTES];
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(in_fd, STDIN_FILENO) < 0 || dup2(out_fd, STDOUT_FILENO) < 0)
        _exit(STATUS_CANNOT_START);
    spawn_restore(job);
    if (allocation_is_own(&job->plan->launch, name))
        execl(own_path, own_path, "--agent", (char *)NULL);
    snprintf(script, sizeof script, "exec %s \"$@\"", rsh[0] ? rsh : "ssh -x -o BatchMode=yes");
    quote(own_path, quoted);
    execl("/bin/sh", "sh", "-c", script, "oshrun", name, rsh[0] ? own_path : quoted, "--agent", (char *)NULL);
    _exit(STATUS_NOT_FOUND);
}

static bool send_setup(const struct job *job, struct host *host)
{
    char folder[PATH_MAX];
    size_t count = 0;
    struct setup setup = {.host = host->index,
                          .machines = job->plan->machines,
                          .rsh = job->plan->launch.rsh,
                          .schedules = job->config.schedules,
                          .argc = job->argument_count,
                          .argv = job->arguments,
                          .environment = job->environment,
                          .folder = getcwd(folder, sizeof folder) ? folder : "/"};
    char *bytes = setup_pack(&setup, &count);
    bool is_sent = bytes && count <= CONTROL_FRAME_MAX;
    if (is_sent)
        control_send(&host->control, QUOIT_CONTROL_SETUP, host->index, bytes, count);
    else
        quoit_say("the environment is too large for the agents [Q0213]");
    free(bytes);
    return is_sent;
}

static bool start_agent(struct job *job, struct host *host, const struct tree_callbacks *callbacks,
                        const char *own_path)
{
    unsigned char key[CONTROL_KEY_BYTES];
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    const char *name = job->plan->machines.list[host->index].name;
    pid_t parent = getpid();
    bool is_ready = control_make_key(key) && pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0;
    host->rsh_pid = is_ready ? fork() : -1;
    if (host->rsh_pid == 0)
        become_shell(job, name, own_path, to[0], from[1], parent);
    if (host->rsh_pid < 0) {
        host->rsh_pid = 0;
        quoit_say("cannot start the agent on %s: %s (ulimit -n, ulimit -u) [Q0213]", name, strerror(errno));
        return false;
    }
    close(to[0]);
    close(from[1]);
    host->control = (struct control){.on_frame = callbacks->on_frame,
                                     .on_lost = callbacks->on_lost,
                                     .owner = host,
                                     .host = host->index,
                                     .limit_ns = plan_number(job->plan, QUOIT_OPT_NETWORK_LIMIT),
                                     .start_limit_ns = plan_number(job->plan, QUOIT_OPT_LINK_TIMEOUT)};
    return control_open(&host->control, &job->loop, from[0], to[1], key) && send_setup(job, host);
}

bool tree_is_under(const struct job *job, uint32_t host, uint32_t top)
{
    while (host != top && host != MACHINE_HEAD)
        host = job->plan->machines.list[host].parent;
    return host == top;
}

void tree_mark_gone(struct job *job, uint32_t top)
{
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (tree_is_under(job, i, top))
            hosts_lose(&job->hosts[i]);
}

void tree_describe_loss(const struct host *host, struct tree_lost *lost_out)
{
    *lost_out = (struct tree_lost){.has_answered = host->control.is_greeted};
    snprintf(lost_out->problem, sizeof lost_out->problem, "%s", host->control.problem);
}

bool tree_start(struct job *job, const struct tree_callbacks *callbacks)
{
    char own_path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own_path, sizeof own_path - 1);
    own_path[length > 0 ? length : 0] = '\0';
    bool is_started = true;
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        if (!hosts_is_next(&job->hosts[i]))
            continue;
        if (is_started)
            is_started = start_agent(job, &job->hosts[i], callbacks, own_path);
        if (!job->hosts[i].rsh_pid)
            tree_mark_gone(job, i);
    }
    return is_started;
}

/* One line for each, and no more than a user reads. */
static void report_late(struct job *job, const struct host *host)
{
    double limit_s = (double)host->control.start_limit_ns / 1e9;
    if (job->late_agent_count++ < LATE_AGENTS_MAX)
        quoit_say(
            "still waiting for the agent on %s, whose remote shell has not answered after %.1f s: it is waited for "
            "up to %.1f s [Q0132]",
            job->plan->machines.list[host->index].name, limit_s, CONTROL_START_LIMITS * limit_s);
}

uint64_t tree_step(struct job *job, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    bool is_ended = job->end.phase == ENDING_KILLED;
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        struct control *control = &job->hosts[i].control;
        if (!control->loop)
            continue;
        control->alive_ns = is_ended ? 0 : silence_sign_ns(job, i, now_ns);
        if (is_ended && control->limit_ns > ENDED_LIMIT_NS)
            control->limit_ns = ENDED_LIMIT_NS;
        bool was_late = control->is_late;
        uint64_t due_ns = control_step(control, now_ns);
        if (control->is_late && !was_late && !is_ended)
            report_late(job, &job->hosts[i]);
        if (due_ns < next_ns)
            next_ns = due_ns;
    }
    return next_ns;
}

void tree_drop(struct job *job)
{
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        if (job->hosts[i].control.loop)
            control_close(&job->hosts[i].control);
        if (job->hosts[i].via != HOST_NOT_BELOW)
            hosts_lose(&job->hosts[i]);
    }
}
