/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/agent_state.h"
#include "boot/ended.h"
#include "boot/exit.h"
#include "env/descriptors.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#define OBEY_NS 500000000u /* for END to reach them */
#define SOON_MS 20

/* Sends a message, with a descriptor if it is not negative. A PE that has gone is detected elsewhere. */
void quoit_agent_send(int fd, const struct quoit_boot_message *message, int with_fd)
{
    if (fd >= 0)
        (void)quoit_send_with_descriptors(fd, message, sizeof *message, &with_fd, with_fd >= 0, 0);
}

void quoit_agent_drop(struct quoit_agent *agent, uint32_t index)
{
    close(agent->connections[index].fd);
    agent->connections[index] = agent->connections[--agent->connection_count];
}

uint32_t quoit_agent_watched_count(const struct quoit_agent *agent)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < agent->connection_count; i++)
        count += agent->connections[i].role == QUOIT_AGENT_WATCH;
    return count;
}

/* Drops the connections of processes that have ended, until all have or until_ns has passed. */
static bool wait_for_ends(struct quoit_agent *agent, uint64_t until_ns)
{
    for (uint64_t now_ns; quoit_agent_watched_count(agent) > 0 && (now_ns = quoit_clock_now_ns()) < until_ns;) {
        uint32_t count = agent->connection_count;
        for (uint32_t i = 0; i < count; i++)
            agent->polls[i] = (struct pollfd){.fd = agent->connections[i].fd, .events = POLLIN};
        if (poll(agent->polls, count, (int)((until_ns - now_ns) / 1000000) + 1) <= 0)
            continue;
        for (uint32_t i = count; i-- > 0;) {
            char byte;
            if (agent->polls[i].revents && recv(agent->connections[i].fd, &byte, 1, MSG_DONTWAIT) <= 0)
                quoit_agent_drop(agent, i);
        }
    }
    return quoit_agent_watched_count(agent) == 0;
}

/* A PE in shmem_global_exit, whose exit handlers run. */
static bool is_exiting(const struct quoit_agent *agent, uint32_t pe)
{
    /* Pairs with quoit_client_leave_word. */
    return agent->is_going &&
           atomic_load_explicit(&quoit_agent_record(agent, pe)->unsent_kind, memory_order_acquire) == QUOIT_BOOT_ABORT;
}

/* For instance PEs that are stopped. A process whose connection is open is alive, so its pid is not reused. */
static void kill_the_rest(struct quoit_agent *agent, bool has_exit_handlers)
{
    for (uint32_t i = 0; i < agent->connection_count; i++) {
        const struct quoit_agent_connection *connection = &agent->connections[i];
        const struct quoit_agent_member *member = &agent->members[connection->pe];
        if (connection->role == QUOIT_AGENT_WATCH && member->process > 0 &&
            !(has_exit_handlers && is_exiting(agent, connection->pe)))
            kill(member->process, SIGKILL);
    }
}

/* PEs that have not connected only the launcher can end; one of the others asks it. */
static void send_end(struct quoit_agent *agent, int status)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_END};
    message.body.end.status = status;
    message.body.end.has_to_ask = !agent->is_going;
    for (uint32_t i = 0; i < agent->connection_count; i++)
        if (agent->connections[i].role == QUOIT_AGENT_WATCH) {
            quoit_agent_send(agent->connections[i].fd, &message, -1);
            message.body.end.has_to_ask = false;
        }
}

/* The proxy ends when it has passed the end on to other hosts, or as its socket closes. One that hangs or is stopped
 * does not, and nobody else would end it. */
static void end_proxy(const struct quoit_agent *agent)
{
    struct quoit_proxy_message message;
    struct pollfd proxy = {.fd = agent->proxy_fd, .events = POLLIN};
    uint64_t until_ns = quoit_clock_now_ns() + 2 * OBEY_NS;
    bool has_ended = false;
    while (!has_ended && quoit_clock_now_ns() < until_ns)
        has_ended = poll(&proxy, 1, SOON_MS) > 0 && recv(agent->proxy_fd, &message, sizeof message, MSG_DONTWAIT) <= 0;
    if (!has_ended)
        kill(agent->proxy_pid, SIGKILL);
}

/* Ends all PEs. is_new: the reason has just been reported; another host that is notified asks the launcher at
 * once. */
__attribute__((noreturn)) void quoit_agent_finish(struct quoit_agent *agent, int status, bool is_new)
{
    if (is_new)
        quoit_ended_pause();
    if (agent->proxy_fd >= 0 && !agent->is_end_sent)
        quoit_proxy_process_send_frame(agent->proxy_fd, QUOIT_CONTROL_TO_ALL, QUOIT_PROXY_LAST, QUOIT_CONTROL_END,
                                       &(const union quoit_control_body){.status = status});
    send_end(agent, status);
    if (!wait_for_ends(agent, quoit_clock_now_ns() + OBEY_NS)) {
        kill_the_rest(agent, true);
        if (!wait_for_ends(agent, quoit_clock_now_ns() + QUOIT_EXIT_LIMIT_NS + OBEY_NS))
            kill_the_rest(agent, false);
    }
    if (agent->proxy_fd >= 0)
        end_proxy(agent);
    _exit(status);
}

/* Below the line about one that has failed: where the others of this host were, and the status. Its line is out before:
 * it takes a while to find these. */
static void report_others(const struct quoit_agent *agent, uint32_t pe, int status)
{
    struct quoit_report report;
    if (!quoit_report_open(&report, "quoit"))
        return;
    quoit_liveness_write_places(&agent->liveness, &report, quoit_agent_pe(agent, pe), false);
    quoit_report_ended(&report, status);
    quoit_report_print(&report);
}

/* Ends the job because of one PE, which has reported the reason itself if it could. */
__attribute__((noreturn)) void quoit_agent_finish_for(struct quoit_agent *agent, uint32_t pe)
{
    struct quoit_pe_shared *shared = quoit_agent_record(agent, pe);
    int status = quoit_ended_status(shared);
    bool is_new = quoit_ended_claim(quoit_agent_header(agent), status);
    bool is_reported =
        is_new && quoit_ended_report(quoit_agent_pe(agent, pe), quoit_agent_host_name(agent, agent->host_index), shared,
                                     agent->members[pe].process);
    atomic_store(&quoit_agent_header(agent)->is_reported, 1);
    if (is_reported)
        report_others(agent, pe, status);
    quoit_agent_finish(agent, quoit_ended_decision(quoit_agent_header(agent)), is_new);
}

__attribute__((noreturn)) void quoit_agent_finish_start(struct quoit_agent *agent, uint32_t pe, const char *how)
{
    quoit_ended_line("PE %u %s during shmem_init; the job was ended [Q0312]", quoit_agent_pe(agent, pe), how);
    quoit_agent_finish(agent, 1, true);
}

/* Who has ended is waited for in another shmem_init. */
__attribute__((noreturn)) void quoit_agent_finish_absent(struct quoit_agent *agent, const char *kind, const char *name)
{
    if (quoit_ended_claim(quoit_agent_header(agent), 1))
        quoit_ended_report_absent(kind, name);
    quoit_agent_finish(agent, quoit_ended_decision(quoit_agent_header(agent)), true);
}
