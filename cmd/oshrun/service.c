/* SPDX-License-Identifier: BSD-3-Clause */
#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/log.h"
#include "base/step.h"
#include "boot/exit.h"
#include "boot/version.h"
#include "children.h"
#include "end.h"
#include "env/descriptors.h"
#include "foreign.h"
#include "hosts.h"
#include "network.h"
#include "silence.h"

#define ABORT_GRACE_NS 200000000u  /* for the same message from other PEs, and for their output */
#define WAY_NS         3000000000u /* after it an agent that has not passed a message on is known to be silent */
#define EXIT_MARGIN_NS 5000000000u /* after the limit of a PE's exit handlers, which it keeps itself */

/* After shmem_global_exit: what is left is a shell or a debugger around the program. */
static void program_ended(struct watch *watch, uint32_t events)
{
    const struct pe *pe = watch->owner;
    (void)events;
    end_signal(pe, SIGKILL);
    loop_close(&pe->job->loop, watch);
}

static void mark_exiting(struct pe *pe)
{
    pe->is_exiting = true;
    if (pe->program.fd >= 0)
        loop_add(&pe->job->loop, &pe->program);
}

/* A PE's messages are not trusted: the kernel identifies the sender of HELLO, and only a descendant is ever signalled,
 * through a pidfd, so a reused pid is never signalled. */
static void learn_program(struct pe *pe, pid_t sender)
{
    pe->program_pid = pe->pid;
    if (sender <= 0 || sender == pe->pid)
        return;
    int fd = (int)syscall(SYS_pidfd_open, sender, 0);
    if (fd >= 0 && children_include(sender)) {
        pe->program_pid = sender;
        pe->program = (struct watch){.fd = fd, .events = EPOLLIN, .ready = program_ended, .owner = pe};
    } else if (fd >= 0) {
        close(fd);
    }
}

static void learn_executable(struct pe *pe)
{
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/exe", pe->program_pid);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length > 0)
        pe->executable = strndup(path, (size_t)length);
}

static void lower_heap(struct job *job, const struct quoit_boot_message *hello)
{
    uint64_t bytes = hello->body.hello.heap_most_bytes;
    if (bytes < job->heap_most_bytes)
        job->heap_most_bytes = bytes;
}

static void take_hello(struct pe *pe, const struct quoit_boot_message *message, pid_t sender)
{
    struct job *job = pe->job;
    pe->phase = QUOIT_PHASE_HELLO;
    if (job_is_here(job, pe->host)) { /* else its agent has */
        learn_program(pe, sender);
        learn_executable(pe);
    }
    if (message->body.hello.data_bytes > job->config.data_bytes)
        job->config.data_bytes = message->body.hello.data_bytes;
    lower_heap(job, message);
    job->hello_count++;
}

/* The caller runs its exit handlers, and ends by itself; this limit is for one that was stopped. */
static void take_exit(struct pe *pe, int status)
{
    struct job *job = pe->job;
    bool is_first = job->end.phase == ENDING_NOT;
    mark_exiting(pe);
    end_begin(job, END_GLOBAL_EXIT, status, pe->index, QUOIT_EXIT_LIMIT_NS + EXIT_MARGIN_NS);
    if (is_first)
        service_kill_others(job);
}

static void take_abort(struct pe *pe, const struct quoit_boot_message *message)
{
    char text[QUOIT_BOOT_TEXT_BYTES];
    snprintf(text, sizeof text, "%.*s", (int)sizeof text - 1, message->body.abort.text);
    if (text[0] && !pe->abort_text) {
        pe->abort_text = strdup(text);
        pe->abort_from = message->body.abort.from;
    }
    int status = message->body.abort.status & 0xff;
    if (text[0] && pe->job->end.phase == ENDING_GRACE && pe->job->end.reason == END_ABORTED)
        end_prolong(pe->job, ABORT_GRACE_NS); /* a busy machine: more may come */
    else if (text[0])
        end_begin(pe->job, END_ABORTED, status, pe->index, ABORT_GRACE_NS);
    else
        take_exit(pe, status);
}

static void take_leaving(struct pe *pe, uint64_t meeting_count, bool is_exit)
{
    pe->is_leaving = true;
    pe->leaves_by_exit = is_exit;
    pe->meeting_count = meeting_count;
    pe->job->leaving_count++;
}

static void take_finalized(struct pe *pe)
{
    pe->phase = QUOIT_PHASE_FINALIZED;
    if (!pe->job->finalized) {
        pe->job->finalized = pe;
        pe->job->finalized_ns = loop_now_ns(&pe->job->loop);
    }
}

/* Of an agent: what it must know itself of a PE whose message it passes on to oshrun. */
static void follow(struct pe *pe, const struct quoit_boot_message *message, pid_t sender)
{
    if (message->kind == QUOIT_BOOT_HELLO && pe->phase == QUOIT_PHASE_STARTED)
        take_hello(pe, message, sender);
    else if (message->kind == QUOIT_BOOT_READY)
        pe->phase = QUOIT_PHASE_READY;
    else if (message->kind == QUOIT_BOOT_LEAVING)
        pe->is_leaving = true;
    else if (message->kind == QUOIT_BOOT_FINALIZED)
        pe->phase = QUOIT_PHASE_FINALIZED;
    else if (message->kind == QUOIT_BOOT_ABORT && !message->body.abort.text[0])
        mark_exiting(pe);
}

/* To oshrun, with what only this machine knows when a PE joins. */
static void pass_on(struct pe *pe, const struct quoit_boot_message *message)
{
    struct service_passed passed = {.message = *message};
    if (message->kind == QUOIT_BOOT_HELLO) {
        lower_heap(pe->job, message);
        passed.heap_default_bytes = hosts_default_heap(pe->job, message->body.hello.data_bytes);
        snprintf(passed.executable, sizeof passed.executable, "%s", pe->executable ? pe->executable : "");
    }
    control_send(&pe->job->control, QUOIT_CONTROL_MESSAGE, pe->index, &passed,
                 message->kind == QUOIT_BOOT_HELLO ? sizeof passed : sizeof passed.message);
}

/* The same of a word in a record, as the messages that it stands for. */
static void pass_word_on(struct pe *pe, uint32_t kind, const struct quoit_pe_shared *shared)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_LEAVING};
    if ((kind == QUOIT_BOOT_LEAVING || kind == QUOIT_BOOT_FINALIZED) && !pe->is_leaving) {
        message.body.leaving.meeting_count = shared->unsent_meetings;
        message.body.leaving.is_exit = shared->unsent_status;
        pe->is_leaving = true;
        pass_on(pe, &message);
    }
    message = (struct quoit_boot_message){.magic = QUOIT_BOOT_MAGIC, .kind = kind};
    if (kind == QUOIT_BOOT_FINALIZED) {
        pe->phase = QUOIT_PHASE_FINALIZED;
        pass_on(pe, &message);
    } else if (kind == QUOIT_BOOT_ABORT && !pe->has_left_abort) {
        message.body.abort.status = (int32_t)shared->unsent_status;
        pe->has_left_abort = true;
        mark_exiting(pe);
        pass_on(pe, &message);
    }
}

/* The message that a PE without its socket left in its record. */
static void read_word(struct pe *pe)
{
    const struct quoit_pe_shared *shared = hosts_pe_shared(pe->job, pe->index);
    uint32_t kind = shared && pe->phase == QUOIT_PHASE_RUNNING && job_is_here(pe->job, pe->host)
                        ? atomic_load_explicit(&shared->unsent_kind, memory_order_acquire)
                        : 0; /* pairs with leave_word in boot/oshrun.c */
    if (pe->job->role == ROLE_AGENT) {
        pass_word_on(pe, kind, shared);
        return;
    }
    if (kind == QUOIT_BOOT_ABORT && !pe->is_exiting)
        take_exit(pe, (int)(shared->unsent_status & 0xff));
    if ((kind == QUOIT_BOOT_LEAVING || kind == QUOIT_BOOT_FINALIZED) && !pe->is_leaving)
        take_leaving(pe, shared->unsent_meetings, shared->unsent_status != 0);
    if (kind == QUOIT_BOOT_FINALIZED)
        take_finalized(pe);
}

/* An unexpected message means a program that uses the boot socket by itself. */
static void take_message(struct pe *pe, const struct quoit_boot_message *message, pid_t sender)
{
    if (message->kind == QUOIT_BOOT_HELLO && pe->phase == QUOIT_PHASE_STARTED) {
        take_hello(pe, message, sender);
    } else if (message->kind == QUOIT_BOOT_READY &&
               (pe->phase == QUOIT_PHASE_LAID_OUT || pe->phase == QUOIT_PHASE_FINALIZED)) {
        pe->phase = QUOIT_PHASE_READY;
        pe->job->ready_count++;
    } else if (message->kind == QUOIT_BOOT_LEAVING && pe->phase == QUOIT_PHASE_RUNNING && !pe->is_leaving) {
        take_leaving(pe, message->body.leaving.meeting_count, message->body.leaving.is_exit != 0);
    } else if (message->kind == QUOIT_BOOT_FINALIZED && pe->phase == QUOIT_PHASE_RUNNING) {
        take_finalized(pe);
    } else if (message->kind == QUOIT_BOOT_ABORT) {
        take_abort(pe, message);
    } else if (message->kind == QUOIT_BOOT_HELLO) {
        quoit_say("PE %u started a second OpenSHMEM program (process %d): the PEs of a job are one program each, from "
                  "shmem_init to its end [Q0208]\n  give each program an oshrun of its own",
                  pe->index, (int)sender);
        end_begin(pe->job, END_CANNOT_START, STATUS_CANNOT_START, pe->index, 0);
    } else {
        quoit_say("PE %u sent a message out of turn (%u) [Q0214]", pe->index, message->kind);
        end_begin(pe->job, END_CANNOT_START, STATUS_CANNOT_START, pe->index, 0);
    }
}

/* Whether the PE's process runs another program, from which the memory of its host has gone. An ending process has no
 * memory at all. */
static bool has_exec(const struct pe *pe)
{
    char path[48], line[PATH_MAX + 128];
    struct stat memory;
    bool has_memory = false, is_mapped = false;
    const struct host *host = &pe->job->hosts[pe->host];
    if (!pe->program_pid || host->memory_fd < 0 || fstat(host->memory_fd, &memory) != 0)
        return false;
    snprintf(path, sizeof path, "/proc/%d/maps", pe->program_pid);
    FILE *maps = fopen(path, "re");
    while (maps && !is_mapped && fgets(line, sizeof line, maps)) {
        unsigned long inode = 0;
        unsigned major_number = 0, minor_number = 0;
        has_memory = true;
        is_mapped = sscanf(line, "%*s %*s %*s %x:%x %lu", &major_number, &minor_number, &inode) == 3 &&
                    inode == memory.st_ino && makedev(major_number, minor_number) == memory.st_dev;
    }
    if (maps)
        fclose(maps);
    return has_memory && !is_mapped;
}

/* Its connection has closed: the process has ended, which SIGCHLD reports, the program has closed descriptors that are
 * not its own, or it has started another one in its place, which the other PEs would wait for. */
static void socket_closed(struct pe *pe)
{
    struct job *job = pe->job;
    loop_close(&job->loop, &pe->socket);
    if (pe->phase != QUOIT_PHASE_RUNNING || !has_exec(pe))
        return;
    char link[64], program[256];
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_ABORT};
    message.body.abort.status = STATUS_CANNOT_START;
    snprintf(link, sizeof link, "/proc/%d/exe", pe->program_pid);
    ssize_t length = readlink(link, program, sizeof program);
    snprintf(message.body.abort.text, sizeof message.body.abort.text,
             "its program was replaced by %.*s (exec) between shmem_init and shmem_finalize, so the other PEs would "
             "wait for it for ever [Q0243]",
             length > 0 ? (int)length : 1, length > 0 ? program : "?");
    if (job->role == ROLE_AGENT)
        pass_on(pe, &message);
    else
        take_abort(pe, &message);
}

/* What this version cannot read: the HELLO of another version ends the job as if the PE had reported why, which an
 * agent passes on; anything else is out of turn. */
static void replace_unreadable(struct quoit_boot_message *message, size_t byte_count, pid_t sender)
{
    char text[QUOIT_BOOT_TEXT_BYTES];
    bool is_hello = byte_count >= offsetof(struct quoit_boot_message, body) && message->magic == QUOIT_BOOT_MAGIC &&
                    message->kind == QUOIT_BOOT_HELLO;
    if (!is_hello) {
        message->kind = 0;
        return;
    }
    foreign_describe_version(message, byte_count, sender, text);
    *message = (struct quoit_boot_message){.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_ABORT};
    message->body.abort.status = STATUS_CANNOT_START;
    memcpy(message->body.abort.text, text, sizeof text);
}

static void drain_socket(struct pe *pe)
{
    while (pe->socket.fd >= 0) {
        struct quoit_boot_message message;
        struct quoit_ancillary came = {.fd_max = 0};
        ssize_t n = quoit_receive_with_descriptors(pe->socket.fd, &message, sizeof message, &came, MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            socket_closed(pe);
            return;
        }
        bool is_whole = n == (ssize_t)sizeof message && !came.is_truncated && message.magic == QUOIT_BOOT_MAGIC &&
                        (message.kind != QUOIT_BOOT_HELLO || quoit_boot_fits(&message, sizeof message));
        if (!is_whole)
            replace_unreadable(&message, (size_t)n, came.sender);
        if (pe->job->role == ROLE_AGENT) {
            follow(pe, &message, came.sender);
            pass_on(pe, &message);
        } else {
            take_message(pe, &message, came.sender);
        }
    }
}

void service_drain(struct pe *pe)
{
    drain_socket(pe);
    read_word(pe);
}

void service_kill_others(struct job *job)
{
    for (uint32_t i = 0; i < job->plan->pe_count; i++)
        drain_socket(&job->pes[i]); /* which shows who else is in shmem_global_exit */
    end_kill_others(job);
}

static void socket_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    service_drain(watch->owner);
}

void service_watch(struct pe *pe, int socket_fd)
{
    pe->socket = (struct watch){.fd = socket_fd, .events = EPOLLIN, .ready = socket_ready, .owner = pe};
    loop_add(&pe->job->loop, &pe->socket);
}

/* Sends one message, with descriptors. A PE that has gone is detected elsewhere. */
static void send_message(struct pe *pe, const struct quoit_boot_message *message, const int *fds, uint32_t fd_count)
{
    if (pe->job->role == ROLE_HEAD)
        hosts_send(pe->job, pe->host, QUOIT_CONTROL_SAY, pe->index, message, sizeof *message);
    else if (pe->socket.fd >= 0)
        (void)quoit_send_with_descriptors(pe->socket.fd, message, sizeof *message, fds, fd_count, 0);
}

/* shmem_finalize waits for all PEs. If one is through it while another has not entered it, or entered it after more
 * collectives, the former matched a collective of the latter, and the others wait for ever. */
static void look_for_one_that_left(struct job *job)
{
    const struct pe *left = job->finalized;
    if (!left)
        return;
    if (job->leaving_count < job->plan->pe_count)
        for (uint32_t i = 0; i < job->plan->pe_count; i++)
            service_drain(&job->pes[i]); /* every PE sends LEAVING before any can send FINALIZED */
    /* What it sent another agent may still be under way. */
    bool is_whole =
        job->role != ROLE_HEAD || (loop_now_ns(&job->loop) - job->finalized_ns >= WAY_NS && !silence_has_agent(job));
    if (job->leaving_count < job->plan->pe_count && !is_whole)
        return;
    for (uint32_t i = 0; i < job->plan->pe_count; i++)
        if (!job->pes[i].is_leaving || job->pes[i].meeting_count > left->meeting_count)
            end_begin(job, END_LEFT, STATUS_CANNOT_START, left->index, ABORT_GRACE_NS);
}

/* Of a PE of this machine: its process, for who reads the host's memory. */
static void publish_process(const struct pe *pe)
{
    struct quoit_pe_shared *shared = hosts_pe_shared(pe->job, pe->index);
    if (shared)
        atomic_store_explicit(&shared->outer_pid, (uint32_t)pe->program_pid, memory_order_relaxed);
}

/* To a PE of this machine, with the descriptors of its host's memory and ports. To one of another, that machine's agent
 * sends it so. */
static void send_layout_here(struct pe *pe, struct quoit_boot_message *message)
{
    const struct job *job = pe->job;
    int fds[QUOIT_BOOT_FDS_MAX] = {job->hosts[pe->host].memory_fd};
    uint32_t fd_count = 1;
    bool has_ports = job->role != ROLE_HEAD && quoit_layout_has_links(&job->hosts[pe->host].layout);
    for (int side = 0; side < QUOIT_SIDE_COUNT && has_ports; side++) {
        struct quoit_port_endpoint *end = &message->body.layout.ends[side];
        if (hosts_describe(job, pe->host, (enum quoit_side)side, end) != QUOIT_OK)
            continue; /* the host's proxy could not either, and reports it */
        memcpy(fds + fd_count, end->fds, end->fd_count * sizeof fds[0]);
        fd_count += end->fd_count;
    }
    publish_process(pe);
    send_message(pe, message, fds, fd_count);
    pe->phase = QUOIT_PHASE_LAID_OUT;
}

static void send_layout(struct pe *pe)
{
    struct job *job = pe->job;
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_LAYOUT};
    message.body.layout.version = *quoit_version();
    message.body.layout.job = job->config;
    message.body.layout.pe = pe->index;
    message.body.layout.host = pe->host;
    snprintf(message.body.layout.driver, sizeof message.body.layout.driver, "%s", job->driver->name);
    send_layout_here(pe, &message);
}

void service_receive(struct pe *pe, const struct service_passed *passed)
{
    struct job *job = pe->job;
    if (passed->message.kind == QUOIT_BOOT_HELLO && !pe->executable && passed->executable[0])
        pe->executable = strndup(passed->executable, sizeof passed->executable);
    if (passed->message.kind == QUOIT_BOOT_HELLO &&
        (job->heap_default_bytes == 0 || passed->heap_default_bytes < job->heap_default_bytes))
        job->heap_default_bytes = passed->heap_default_bytes;
    take_message(pe, &passed->message, 0);
}

void service_pass(struct pe *pe, const struct quoit_boot_message *message)
{
    const struct host *host = &pe->job->hosts[pe->host];
    if (message->kind == QUOIT_BOOT_LAYOUT && host->front) {
        struct quoit_boot_message layout = *message;
        send_layout_here(pe, &layout);
    } else if (message->kind == QUOIT_BOOT_GO) {
        quoit_step("agent", pe->job->own_host, "go");
        pe->phase = QUOIT_PHASE_RUNNING;
        pe->is_leaving = false;
        send_message(pe, message, NULL, 0);
    }
}

static bool proxies_are_ready(const struct job *job)
{
    for (uint32_t i = 0; i < job->plan->host_count && quoit_job_config_has_proxies(&job->config); i++)
        if (job->hosts[i].stage != PROXY_SERVES)
            return false;
    return true;
}

void service_step(struct job *job)
{
    uint32_t pe_count = job->plan->pe_count;
    const struct host *cut_off = hosts_cut_off(job);
    if (job->end.phase != ENDING_NOT)
        return;
    if (cut_off && !job->proxies_stop_ns) { /* a host that stops first looks like a dead one */
        end_begin(job, END_CUT_OFF, STATUS_CANNOT_START, cut_off->index, ABORT_GRACE_NS);
        return;
    }
    if (job->has_layout && hosts_have_lost_ring(job)) { /* before, its PEs end with it */
        end_begin(job, END_RING_GONE, STATUS_CANNOT_START, 0, 0);
        return;
    }
    look_for_one_that_left(job);
    bool is_again = job->is_going && job->ready_count > 0;
    if ((job->hello_count > 0 && job->quiet_exit_count > 0) || (is_again && job->through_count > 0)) {
        end_begin(job, END_NO_INIT, STATUS_CANNOT_START, 0, ABORT_GRACE_NS);
        return;
    }
    if (job->hello_count == pe_count && !job->has_layout) {
        if (!hosts_start(job, job->config.data_bytes)) {
            end_begin(job, END_CANNOT_START, STATUS_CANNOT_START, 0, 0);
            return;
        }
        job->has_layout = true;
        for (uint32_t i = 0; i < pe_count; i++)
            send_layout(&job->pes[i]);
    }
    if (job->ready_count == pe_count && proxies_are_ready(job)) {
        const struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_GO};
        quoit_step("oshrun", 0, "go");
        job->is_going = true;
        job->ready_count = 0;
        job->leaving_count = 0;
        job->finalized = NULL;
        for (uint32_t i = 0; i < pe_count; i++) {
            job->pes[i].phase = QUOIT_PHASE_RUNNING;
            job->pes[i].is_leaving = false;
            send_message(&job->pes[i], &message, NULL, 0);
        }
    }
}
