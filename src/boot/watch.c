/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/watch.h"
#include "boot/agent.h"
#include "boot/apart.h"
#include "boot/ended.h"
#include "boot/exit.h"
#include "boot/protocol.h"
#include "boot/report.h"
#include "base/log.h"
#include "env/await.h"
#include "env/clock.h"
#include "env/process.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_MS 1000 /* between two questions to the agent */

struct watch {
    struct quoit_boot *boot;
    int fd;
    bool is_lowest; /* and then: */
    pid_t agent;
    bool is_forked; /* the agent has sent the pid that it keeps; before it is a child of this process */
    bool is_asked;  /* and has not answered */
    bool is_reported;
    uint64_t question; /* counts them */
    uint64_t busy_ns;  /* of the agent, at the last look */
    struct quoit_await await;
};

/* It forks, and its parent ends at once. */
static void reap(struct watch *watch)
{
    while (!watch->is_forked && waitpid(watch->agent, NULL, 0) < 0 && errno == EINTR)
        ;
    watch->is_forked = true;
}

__attribute__((noreturn)) static void obey(struct watch *watch, const struct quoit_boot_message *end)
{
    struct quoit_exchange *exchange = &watch->boot->exchange;
    if (end->body.end.has_to_ask)
        exchange->ops->abort(exchange, end->body.end.status, "the job could not start");
    _exit(end->body.end.status);
}

/* All hosts have passed the shmem_finalize that this PE is about to leave. */
static bool is_through(const struct quoit_boot *boot)
{
    const struct quoit_host_header *header = boot->memory;
    const struct quoit_pe_shared *own = quoit_memory_pe(&boot->layout, boot->memory, boot->pe - boot->layout.first_pe);
    /* Pairs with quoit_client_leave_word. */
    return atomic_load_explicit(&own->unsent_kind, memory_order_acquire) == QUOIT_BOOT_FINALIZED &&
           atomic_load(&header->finalized_count) >= boot->finalized_count;
}

/* After shmem_finalize that is expected. During shmem_init the lowest PE reports it, and the others see their own
 * connections end. */
static void agent_gone(struct watch *watch)
{
    struct quoit_boot *boot = watch->boot;
    struct quoit_boot_message end = {.body.end = {.status = 1, .has_to_ask = true}};
    if (!atomic_load(&boot->needs_agent) || quoit_exit_has_begun(boot))
        return;
    if (!atomic_load(&boot->has_records)) {
        if (!watch->is_lowest)
            return;
        if (!watch->is_reported)
            quoit_ended_report_agent();
        quoit_ended_pause();
        obey(watch, &end);
    }
    struct quoit_host_header *header = boot->memory;
    if (is_through(boot))
        return;
    if (quoit_ended_claim(header, 1) && !watch->is_reported)
        quoit_ended_report_agent();
    quoit_ended_pause();
    _exit(quoit_ended_decision(header));
}

/* False: the agent has ended. */
static bool receive(struct watch *watch)
{
    struct quoit_boot_message message;
    ssize_t n = quoit_apart_receive(watch->fd, &message, sizeof message);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    if (n != (ssize_t)sizeof message || message.magic != QUOIT_BOOT_MAGIC)
        return true;
    if (message.kind == QUOIT_BOOT_END && !quoit_exit_has_begun(watch->boot))
        obey(watch, &message);
    if (message.kind == QUOIT_BOOT_PING && watch->is_lowest) {
        reap(watch);
        watch->agent = message.body.pid;
        watch->is_asked = false;
    }
    return true;
}

static void end_hanging_agent(struct watch *watch)
{
    struct quoit_boot *boot = watch->boot;
    watch->is_reported = true;
    if (!atomic_load(&boot->has_records) || quoit_ended_claim(boot->memory, 1))
        quoit_ended_line(
            "the agent of PE %u's host (process %d) hangs: for %llu s it could run, and has not answered; the "
            "job was ended [Q0241]",
            boot->exchange.rank, (int)watch->agent,
            (unsigned long long)((quoit_clock_now_ns() - watch->await.since_ns) / 1000000000u));
    kill(watch->agent, SIGKILL); /* its connection is open, so it is still that process */
}

/* Without a report (report.h): this thread may not allocate. */
static void report_late_agent(const struct watch *watch, const struct quoit_process *facts, uint64_t waited_ns)
{
    char who[40], awaited[QUOIT_REPORT_AWAITED_BYTES];
    snprintf(who, sizeof who, "the agent of PE %u's host", watch->boot->exchange.rank);
    quoit_report_describe_awaited(who, (int32_t)watch->agent, ", which", "does not answer", waited_ns, awaited);
    quoit_ended_line(QUOIT_REPORT_AWAITED " [Q0237]", awaited, quoit_await_state_text(facts), "");
}

/* Nobody else would see that it is stopped or hangs, until a PE fails. */
static void look_at_agent(struct watch *watch)
{
    const struct quoit_boot_message ping = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_PING};
    struct quoit_await_view view = {.is_idle = true};
    struct quoit_process facts;
    uint64_t now_ns = quoit_clock_now_ns(), next_ns, limit_ns = watch->boot->network.link_timeout_ns;
    if (!watch->is_asked) {
        (void)quoit_apart_send(watch->fd, &ping, sizeof ping);
        watch->is_asked = true;
        watch->question++;
    }
    if (!quoit_await_is_due(&watch->await, watch->question, limit_ns, now_ns, &next_ns))
        return;
    (void)quoit_process_look(watch->agent, &facts);
    quoit_await_add(&view, &facts, watch->busy_ns);
    watch->busy_ns = facts.busy_ns;
    enum quoit_await_verdict verdict =
        quoit_await_step(&watch->await, &view, QUOIT_AWAIT_HANG_TIMES * limit_ns, now_ns);
    if (verdict == QUOIT_AWAIT_REPORT)
        report_late_agent(watch, &facts, now_ns - watch->await.since_ns);
    if (verdict == QUOIT_AWAIT_HANGS && !watch->is_reported)
        end_hanging_agent(watch);
}

static void run(void *arg)
{
    struct quoit_boot *boot = arg;
    struct watch watch = {.boot = boot, .fd = boot->watch_fd, .is_lowest = boot->agent != 0, .agent = boot->agent};
    bool is_open = true;
    watch.is_asked = true; /* it sends its pid without a question */
    watch.question = 1;
    while (is_open) {
        if (quoit_apart_wait(watch.fd, watch.is_lowest ? TICK_MS : -1))
            is_open = receive(&watch);
        else if (watch.is_lowest)
            look_at_agent(&watch);
    }
    if (watch.is_lowest)
        reap(&watch);
    agent_gone(&watch);
    quoit_apart_close(watch.fd);
}

enum quoit_status quoit_watch_start(struct quoit_boot *boot, int fd, pid_t agent)
{
    const int fds[] = {boot->exchange.fd, fd};
    int is_shared = 0;
    boot->watch_fd = fd;
    boot->agent = agent;
    atomic_store(&boot->needs_agent, true);
    enum quoit_status status = quoit_apart_start(run, boot, fds, 2, &is_shared);
    if (status != QUOIT_OK)
        quoit_say("cannot start a thread: %s [Q0312]", strerror(errno));
    if (status != QUOIT_OK || !is_shared)
        close(fd);
    return status;
}

enum quoit_status quoit_watch_connect(struct quoit_boot *boot, const char *name)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_WATCH};
    int fd = -1;
    message.body.hello.pe = boot->exchange.rank;
    enum quoit_status status = quoit_agent_connect(name, &fd);
    if (status == QUOIT_GONE)
        return QUOIT_OK; /* the caller's next step reports it */
    if (status != QUOIT_OK)
        return status;
    if (send(fd, &message, sizeof message, MSG_NOSIGNAL) == (ssize_t)sizeof message)
        return quoit_watch_start(boot, fd, 0);
    close(fd);
    return QUOIT_OK;
}
