/* SPDX-License-Identifier: BSD-3-Clause */
#include "head.h"

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
#include "end.h"
#include "hosts.h"
#include "input.h"
#include "network.h"
#include "reap.h"
#include "service.h"
#include "setup.h"
#include "spawn.h"

#define LOST_GRACE_NS 200000000u /* for the last output of the other hosts */

#define QUOTED_BYTES (4 * PATH_MAX + 3)

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

static struct pe *pe_of(const struct host *host, uint32_t pe)
{
    struct job *job = host->job;
    return pe < job->plan->pe_count && job->pes[pe].host == host->index ? &job->pes[pe] : NULL;
}

/* What a PE printed; frame->pe is twice its number, and one more for standard error. */
static void take_output(struct host *host, const struct talk_frame *frame, const char *bytes)
{
    const struct pe *pe = pe_of(host, frame->pe / 2);
    if (!pe)
        return;
    output_feed(&host->job->output, pe->index, (int)(frame->pe % 2), bytes, frame->bytes);
    host->pending_bytes += frame->bytes;
}

static void take_note(struct pe *pe, const struct wait_note *note)
{
    struct job *job = pe->job;
    if (!job->notes || pe->is_ended)
        return;
    job->notes[pe->index] = *note;
    job->notes[pe->index].call[sizeof note->call - 1] = '\0';
    job->notes[pe->index].wish_text[sizeof note->wish_text - 1] = '\0';
}

static void take_contact(struct host *host, const struct talk_frame *frame, const void *bytes)
{
    struct job *job = host->job;
    if (!job->network || frame->bytes != QUOIT_NETWORK_CONTACT_BYTES || host->has_contact)
        return;
    host->has_contact = true;
    if (network_add_contact(job, host->index, bytes))
        hosts_say_all(job, TALK_CONTACTS, 0, network_contact(job, 0),
                      (size_t)job->plan->host_count * QUOIT_NETWORK_CONTACT_BYTES);
}

/* Frames about a PE. */
static void take_of_pe(struct pe *pe, const struct talk_frame *frame, const void *bytes)
{
    struct service_passed passed = {0};
    struct reap_ended ended;
    if (frame->kind == TALK_MESSAGE && frame->bytes >= sizeof passed.message && frame->bytes <= sizeof passed) {
        memcpy(&passed, bytes, frame->bytes);
        passed.executable[sizeof passed.executable - 1] = '\0';
        service_hear(pe, &passed);
    } else if (frame->kind == TALK_ENDED && frame->bytes == sizeof ended) {
        memcpy(&ended, bytes, sizeof ended);
        reap_pe(pe, &ended);
    } else if (frame->kind == TALK_NOTES && frame->bytes == sizeof(struct wait_note)) {
        take_note(pe, bytes);
    }
}

static void take_frame(struct talk *talk, const struct talk_frame *frame, const void *bytes)
{
    struct host *host = talk->owner;
    struct job *job = host->job;
    struct pe *pe = pe_of(host, frame->pe);
    const int32_t number = talk_number(frame, bytes);
    switch (frame->kind) {
    case TALK_OUTPUT:
        take_output(host, frame, bytes);
        break;
    case TALK_TAKEN:
        input_taken(job, (uint32_t)number);
        break;
    case TALK_CONTACT:
        take_contact(host, frame, bytes);
        break;
    case TALK_PROXY:
        hosts_take_word(host, bytes, frame->bytes);
        break;
    case TALK_PROXY_ENDED:
        reap_proxy(host, number);
        break;
    case TALK_RECORDS:
        if (host->front && frame->bytes == host->layout.channels)
            memcpy(host->front, bytes, frame->bytes);
        break;
    case TALK_FAILED:
        end_begin(job, END_CANNOT_START, number ? number : STATUS_CANNOT_START, 0, 0);
        break;
    default:
        if (pe)
            take_of_pe(pe, frame, bytes);
    }
}

/* Its processes are gone, or end by themselves: an agent that hears nothing of oshrun ends them. */
static void lose_host(struct talk *talk)
{
    struct host *host = talk->owner;
    struct job *job = host->job;
    bool had_work = host->has_proxy;
    host->has_proxy = false;
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

static bool say_setup(const struct job *job, struct host *host)
{
    char folder[PATH_MAX];
    size_t count = 0;
    struct setup setup = {.host = host->index,
                          .machines = job->plan->machines,
                          .argc = job->argument_count,
                          .argv = job->arguments,
                          .environment = job->environment,
                          .folder = getcwd(folder, sizeof folder) ? folder : "/"};
    char *bytes = setup_pack(&setup, &count);
    bool is_said = bytes && count <= TALK_FRAME_MAX;
    if (is_said)
        talk_say(&host->talk, TALK_SETUP, host->index, bytes, count);
    else
        quoit_say("the environment is too large for the agents [Q0213]");
    free(bytes);
    return is_said;
}

static bool start_agent(struct job *job, struct host *host, const char *own_path)
{
    unsigned char key[TALK_KEY_BYTES];
    int to[2] = {-1, -1}, from[2] = {-1, -1};
    const char *name = job->plan->machines.list[host->index].name;
    pid_t parent = getpid();
    bool is_ready = talk_make_key(key) && pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0;
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
    host->has_proxy = network_is_alone(job);
    host->talk = (struct talk){.on_frame = take_frame,
                               .on_lost = lose_host,
                               .owner = host,
                               .limit_ns = plan_number(job->plan, QUOIT_OPT_LINK_LIMIT),
                               .start_limit_ns = plan_number(job->plan, QUOIT_OPT_LINK_TIMEOUT)};
    return talk_open(&host->talk, &job->loop, from[0], to[1], key) && say_setup(job, host);
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
    char own_path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", own_path, sizeof own_path - 1);
    own_path[length > 0 ? length : 0] = '\0';
    job->alive_count = job->plan->pe_count;
    bool is_started = expect_output(job);
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        if (is_started)
            is_started = start_agent(job, &job->hosts[i], own_path);
    if (is_started)
        is_started = input_open(job);
    for (uint32_t i = 0; i < job->plan->host_count && !is_started; i++)
        if (!job->hosts[i].rsh_pid) /* which had no time to begin */
            job->hosts[i].talk.is_lost = true;
    if (!is_started)
        job->alive_count = 0;
    return is_started;
}

/* Output that its reader has taken may be followed by more. */
static void pay(struct job *job, struct host *host)
{
    if (host->pending_bytes == 0 || !output_has_room(&job->output))
        return;
    talk_say(&host->talk, TALK_TAKEN, TALK_NO_PE, &host->pending_bytes, sizeof host->pending_bytes);
    host->pending_bytes = 0;
}

uint64_t head_step(struct job *job, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    input_step(job);
    for (uint32_t i = 0; i < job->plan->host_count; i++) {
        struct host *host = &job->hosts[i];
        pay(job, host);
        uint64_t due_ns = talk_step(&host->talk, now_ns);
        if (due_ns < next_ns)
            next_ns = due_ns;
    }
    return next_ns;
}

void head_close(struct job *job)
{
    for (uint32_t i = 0; i < job->plan->host_count; i++)
        talk_close(&job->hosts[i].talk);
    input_close(job);
}
