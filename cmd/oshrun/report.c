/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"
#include "boot/place.h"
#include "boot/report.h"
#include "boot/survey.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/clock.h"
#include "env/libc.h"
#include "clock.h"
#include "hosts.h"

#define LIST_BYTES      QUOIT_POSITIONS_LIST_BYTES
#define ABORT_TEXTS_MAX 4
#define PLACES_LIMIT_NS 1500000000u /* for all positions of a report: a busy machine must not delay the end */

/* Of the PEs for which is_member is true; see quoit_positions_list. */
struct members {
    const struct job *job;
    bool (*is_member)(const struct job *job, uint32_t pe, const void *arg);
    const void *arg;
};

static bool is_one_of(const void *arg, uint32_t pe)
{
    const struct members *members = arg;
    return members->is_member(members->job, pe, members->arg);
}

static uint32_t list_pes(const struct job *job, bool (*is_member)(const struct job *job, uint32_t pe, const void *arg),
                         const void *arg, char text[LIST_BYTES])
{
    const struct members members = {job, is_member, arg};
    return quoit_positions_list(0, job->plan->pe_count, is_one_of, &members, text);
}

static const struct quoit_pe_shared *shared_of(const void *job, uint32_t pe)
{
    return hosts_pe_shared(job, pe);
}

static const char *executable_of(const void *arg, uint32_t pe)
{
    const struct job *job = arg;
    return job->pes[pe].executable;
}

/* The outages; a job that hardly progresses may have many. */
static void write_outages(struct quoit_report *report, const struct job *job)
{
    uint32_t written = 0;
    for (uint32_t i = 0; i < job->plan->host_count && job->has_layout; i++) {
        struct quoit_direction direction;
        const struct host *host = &job->hosts[i];
        if (!quoit_layout_has_links(&host->layout))
            continue;
        quoit_survey_direction(&host->layout, host->front, QUOIT_RIGHT, quoit_clock_now_ns(), &direction);
        unsigned long long count = direction.down_count;
        if (count)
            fprintf(report->out, "%s %u-%u %llu time%s", written++ ? "," : "  links went down:", i,
                    hosts_neighbour(job, i, QUOIT_RIGHT), count, count == 1 ? "" : "s");
    }
    if (written)
        fprintf(report->out, "\n");
}

static struct quoit_positions positions_of(const struct job *job)
{
    return (struct quoit_positions){.list = job->notes,
                                    .count = job->plan->pe_count,
                                    .goes_on = job->end.phase == ENDING_NOT,
                                    .until_ns = job->end.places_by_ns,
                                    .shared_of = shared_of,
                                    .executable_of = executable_of,
                                    .arg = job};
}

/* The positions of all PEs. `includes_ended`: including those that had finished. Whether some had not. */
static bool write_positions(struct quoit_report *report, const struct job *job, uint32_t except, bool includes_ended)
{
    const struct quoit_positions positions = positions_of(job);
    return quoit_positions_write(report, &positions, except, includes_ended);
}

/* The same, and the last line. */
static void write_others(struct quoit_report *report, const struct job *job, uint32_t except, bool includes_ended)
{
    if (write_positions(report, job, except, includes_ended))
        quoit_report_ended(report, job->end.status);
    else
        fprintf(report->out, "  status %d\n", job->end.status);
}

static struct quoit_report_pe report_pe_of(const struct job *job, uint32_t index, char name[HOSTS_NAME_BYTES])
{
    const struct pe *pe = &job->pes[index];
    return (struct quoit_report_pe){.pe = index,
                                    .host = hosts_name(job, pe->host, name),
                                    .wait_status = pe->wait_status,
                                    .has_begun = pe->phase != QUOIT_PHASE_STARTED,
                                    .shared = hosts_pe_shared(job, index),
                                    .executable = pe->executable};
}

static void write_failed_pe(struct quoit_report *report, const struct job *job)
{
    char name[HOSTS_NAME_BYTES];
    const struct quoit_report_pe pe = report_pe_of(job, job->end.culprit, name);
    quoit_report_failed(report, &pe, job->end.places_by_ns);
    write_others(report, job, pe.pe, false);
}

/* The status is what shmem_global_exit was given; an exit handler that went wrong after that is reported all the same.
 */
static void write_exit(struct quoit_report *report, const struct job *job)
{
    const struct pe *pe = &job->pes[job->end.culprit];
    char host[HOSTS_NAME_BYTES];
    const struct quoit_report_pe known = report_pe_of(job, pe->index, host);
    if (job->notes && job->notes[pe->index].is_alive) {
        quoit_report_line(
            report, "Q0127",
            "PE %u on %s did not end after shmem_global_exit, stopped by a signal perhaps, and was killed", pe->index,
            known.host);
    } else if (WIFSIGNALED(pe->wait_status)) {
        quoit_report_killed(report, &known, WTERMSIG(pe->wait_status), job->end.places_by_ns);
        fprintf(report->out, "  in its exit handlers, after shmem_global_exit; status %d\n", job->end.status);
    }
}

static void write_dead_proxy(struct quoit_report *report, const struct host *host)
{
    int status = host->proxy_wait_status;
    const char *name = WIFSIGNALED(status) ? quoit_signal_name(WTERMSIG(status)) : NULL;
    bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    char how[64] = "", why[64 + HOSTS_NAME_BYTES] = "", text[HOSTS_NAME_BYTES], other[HOSTS_NAME_BYTES];
    if (host->has_closed) {
        quoit_report_line(report, "Q0236", "the proxy of %s closed its connection to oshrun and ran on; it was killed",
                          hosts_name(host->job, host->index, text));
        return;
    }
    if (host->is_dismissed && is_killed) {
        quoit_report_line(report, "Q0205",
                          host->is_silent
                              ? "the proxy of %s gave that of %s no sign for --network-limit; its PEs are cut off"
                              : "the connection of the proxy of %s to that of %s broke; its PEs are cut off",
                          hosts_name(host->job, host->index, text), hosts_name(host->job, host->missed_by, other));
        return;
    }
    if (host->proxy_failure != QUOIT_OK) {
        quoit_report_line(report, "Q0234", "the proxy of %s cannot serve its PEs: %s",
                          hosts_name(host->job, host->index, text),
                          quoit_status_text((enum quoit_status)host->proxy_failure));
        return;
    }
    if (!WIFSIGNALED(status)) {
        quoit_report_line(report, "Q0205",
                          "the proxy of %s could not serve its PEs, and ended with status %d: its own line says why",
                          hosts_name(host->job, host->index, text), WEXITSTATUS(status));
        return;
    }
    snprintf(how, sizeof how, " of SIG%s", name);
    if (is_killed)
        snprintf(why, sizeof why, " (kill -9, or memory ran out)");
    quoit_report_line(report, "Q0205", "the proxy of %s has died%s%s; its PEs are cut off",
                      hosts_name(host->job, host->index, text), how, why);
}

/* Its agent could not be started, has ended, or is silent. */
static void write_lost_host(struct quoit_report *report, const struct job *job)
{
    const struct host *host = &job->hosts[job->end.culprit];
    char name[HOSTS_NAME_BYTES], rsh[96] = "";
    int status = host->rsh_wait_status;
    if (host->has_rsh_status && WIFSIGNALED(status))
        snprintf(rsh, sizeof rsh, ", the remote shell was killed by SIG%s", quoit_signal_name(WTERMSIG(status)));
    else if (host->has_rsh_status && WEXITSTATUS(status))
        snprintf(rsh, sizeof rsh, ", status %d of the remote shell", WEXITSTATUS(status));
    quoit_report_line(report, "Q0225", host->has_answered ? "%s was lost: %s%s" : "cannot start the agent on %s: %s%s",
                      hosts_name(job, host->index, name), host->problem, rsh);
    if (host->has_answered)
        write_others(report, job, QUOIT_POSITIONS_NOBODY, false);
}

/* Steps over an address of above 4 GiB, which the kernel chooses for each process. */
static bool skip_address(const char **at)
{
    char *end = NULL;
    bool is_one = strncmp(*at, "0x", 2) == 0 && strtoull(*at, &end, 16) >> 32 != 0;
    if (is_one)
        *at = end;
    return is_one;
}

static bool skip_own_name(const char **at, uint32_t pe)
{
    char name[24];
    size_t length = (size_t)snprintf(name, sizeof name, "PE %u", pe);
    bool is_one = strncmp(*at, name, length) == 0 && !isdigit((unsigned char)(*at)[length]);
    if (is_one)
        *at += length;
    return is_one;
}

/* The texts of two PEs, but for addresses and where each names itself. */
static bool reads_the_same(const char *a, uint32_t pe_a, const char *b, uint32_t pe_b)
{
    while (*a) {
        const char *next_a = a, *next_b = b;
        if ((skip_address(&next_a) && skip_address(&next_b)) ||
            (next_a == a && skip_own_name(&next_a, pe_a) && skip_own_name(&next_b, pe_b))) {
            a = next_a;
            b = next_b;
        } else if (*a++ != *b++) {
            return false;
        }
    }
    return *b == '\0';
}

/* The same message, from the same position of the same program, as PE `arg`. */
static bool reported_the_same(const struct job *job, uint32_t pe, const void *arg)
{
    const struct pe *mine = &job->pes[pe], *other = arg;
    bool is_of_program = !mine->executable || !other->executable ? mine->executable == other->executable
                                                                 : strcmp(mine->executable, other->executable) == 0;
    return mine->abort_text && mine->abort_from == other->abort_from && is_of_program &&
           reads_the_same(mine->abort_text, pe, other->abort_text, (uint32_t)(other - job->pes));
}

static void write_abort_place(struct quoit_report *report, const struct job *job, const struct pe *pe)
{
    struct quoit_place place = {.line = ""};
    uint64_t before = pe->abort_from - 1; /* the call stands before the address it returns to */
    if (pe->abort_from)
        quoit_place_find(pe->executable, &before, 1, job->end.places_by_ns, &place);
    if (place.line[0])
        fprintf(report->out, "  at %s%s%s\n", place.function, place.function[0] ? "() " : "", place.line);
}

static void write_aborts(struct quoit_report *report, const struct job *job)
{
    uint32_t text_count = 0;
    for (uint32_t pe = 0; pe < job->plan->pe_count; pe++) {
        char pes[LIST_BYTES];
        const struct pe *first = &job->pes[pe];
        bool is_known = !first->abort_text;
        for (uint32_t before = 0; before < pe && !is_known; before++)
            is_known = reported_the_same(job, before, first);
        if (is_known || text_count == ABORT_TEXTS_MAX)
            continue;
        text_count++;
        list_pes(job, reported_the_same, first, pes);
        fprintf(report->out, "oshrun: %s: %s\n", pes, first->abort_text);
        write_abort_place(report, job, first);
    }
    quoit_report_ended(report, job->end.status);
}

static bool has_ended(const struct job *job, uint32_t pe, const void *arg)
{
    (void)arg;
    return !job->notes || !job->notes[pe].is_alive;
}

static bool waits_in_init(const struct job *job, uint32_t pe, const void *arg)
{
    return !has_ended(job, pe, arg) &&
           (job->notes[pe].phase == QUOIT_PHASE_HELLO || job->notes[pe].phase == QUOIT_PHASE_READY);
}

static void write_no_init(struct quoit_report *report, const struct job *job)
{
    char ended[LIST_BYTES], waiting[LIST_BYTES];
    list_pes(job, has_ended, NULL, ended);
    list_pes(job, waits_in_init, NULL, waiting);
    quoit_report_no_init(report, ended, waiting);
    fprintf(report->out, "  all PEs of a job must call it; the job was ended, status %d\n", job->end.status);
}

static void write_cannot_start(struct quoit_report *report, const struct job *job)
{
    uint32_t pe = job->end.culprit;
    int error = job->exec_errors[pe];
    if (error < 0)
        quoit_report_line(report, "Q0227", "cannot enter host%u of the ring %s: %s", job->pes[pe].host,
                          plan_text(job->plan, QUOIT_OPT_RING), strerror(-error));
    else if (error)
        quoit_report_line(report, "Q0212", "cannot run %s: %s", plan_program_of(job->plan, pe)->argv[0],
                          strerror(error));
}

static void write_lost_link(struct quoit_report *report, const struct job *job)
{
    uint32_t link = job->dead_links[0];
    const struct quoit_protocol_traits *protocol = quoit_job_config_traits(&job->config);
    quoit_report_line(report, "Q0218", "link %u-%u went down, which no job with %s %s outlives", link,
                      hosts_neighbour(job, link, QUOIT_RIGHT), protocol->has_failover ? "--barrier" : "--protocol",
                      protocol->has_failover ? "papers" : protocol->name);
}

/* Two links down partition their ring into two lines of hosts: the shorter one is reported as unreachable. */
static void write_cut_off(struct quoit_report *report, const struct job *job)
{
    if (job->dead_links[0] == job->dead_links[1]) {
        write_lost_link(report, job);
        return;
    }
    char hosts[LIST_BYTES];
    size_t used = 0;
    const struct quoit_host_range ring = job->hosts[job->dead_links[0]].layout.ring;
    uint32_t count = ring.count, first = job->dead_links[0] - ring.first, second = job->dead_links[1] - ring.first;
    bool is_outer = second - first > count / 2;
    uint32_t from = is_outer ? second + 1 : first + 1, cut_count = is_outer ? count - (second - first) : second - first;
    for (uint32_t i = 0; i < cut_count && used + 16 < sizeof hosts; i++)
        used +=
            (size_t)snprintf(hosts + used, sizeof hosts - used, "%s%u", i ? "," : "", ring.first + (from + i) % count);
    if (cut_count > 1 && used + 16 >= sizeof hosts)
        snprintf(hosts, sizeof hosts, "%u to %u", ring.first + from % count,
                 ring.first + (from + cut_count - 1) % count);
    first = job->dead_links[0];
    second = job->dead_links[1];
    quoit_report_line(report, "Q0217", "links %u-%u and %u-%u are down: host%s %s cannot be reached", first,
                      hosts_neighbour(job, first, QUOIT_RIGHT), second, hosts_neighbour(job, second, QUOIT_RIGHT),
                      cut_count == 1 ? "" : "s", hosts);
}

static enum quoit_report_leaving how_left(const struct pe *pe)
{
    return pe->leaves_by_exit ? QUOIT_REPORT_LEFT_BY_EXIT : QUOIT_REPORT_LEFT_BY_CALL;
}

static void write_left(struct quoit_report *report, const struct job *job)
{
    char name[HOSTS_NAME_BYTES];
    const struct pe *left = &job->pes[job->end.culprit];
    enum end_reason reason = job->end.reason;
    quoit_report_left(report,
                      reason == END_LEFT     ? QUOIT_REPORT_LEFT_ELSEWHERE
                      : reason == END_POLLED ? QUOIT_REPORT_LEFT_POLLED
                                             : QUOIT_REPORT_LEFT_LOCK,
                      left->index, hosts_name(job, left->host, name), how_left(left));
    write_others(report, job, left->index, reason == END_POLLED);
}

/* The first line of a hang, with the likely cause. False: it is none that is known. */
static bool write_hang(struct quoit_report *report, const struct job *job);

/* In virtual time. */
static void write_still(struct quoit_report *report, const struct job *job)
{
    char time[32];
    if (!job->notes || !write_hang(report, job))
        quoit_report_line(report, "Q0704", "nothing can happen after %s of virtual time", clock_text(job, time));
    write_others(report, job, QUOIT_POSITIONS_NOBODY, true);
}

static void write_timeout(struct quoit_report *report, const struct job *job)
{
    char time[32];
    quoit_option_format(&job->plan->options, QUOIT_OPT_TIMEOUT, time, sizeof time);
    quoit_report_line(report, "Q0206", "the job ran longer than %s (--timeout)", time);
    write_outages(report, job);
    write_others(report, job, QUOIT_POSITIONS_NOBODY, true);
}

static void write_reason(struct quoit_report *report, const struct job *job)
{
    char name[HOSTS_NAME_BYTES];
    const struct end *end = &job->end;
    switch (end->reason) {
    case END_NORMAL:
        if (end->status)
            quoit_report_line(report, "Q0202", "PE %u on %s exited with status %d", end->culprit,
                              hosts_name(job, job->pes[end->culprit].host, name), end->status);
        break;
    case END_PE_FAILED:
        write_failed_pe(report, job);
        break;
    case END_NO_INIT:
        write_no_init(report, job);
        break;
    case END_ABORTED:
        write_aborts(report, job);
        break;
    case END_PROXY_DIED:
        write_dead_proxy(report, &job->hosts[end->culprit]);
        write_others(report, job, QUOIT_POSITIONS_NOBODY, false);
        break;
    case END_HANGS:
        quoit_report_hangs(report, job->await_text);
        write_others(report, job, QUOIT_POSITIONS_NOBODY, false);
        break;
    case END_CUT_OFF:
        write_cut_off(report, job);
        write_others(report, job, QUOIT_POSITIONS_NOBODY, false);
        break;
    case END_HOST_LOST:
        write_lost_host(report, job);
        break;
    case END_RING_GONE:
        quoit_report_line(report, "Q0228",
                          "the ring %s has ended, and the job with it: quoit ring down, or its keeper was killed",
                          plan_text(job->plan, QUOIT_OPT_RING));
        break;
    case END_CANNOT_START:
        write_cannot_start(report, job);
        break;
    case END_TIMEOUT:
        write_timeout(report, job);
        break;
    case END_STILL:
        write_still(report, job);
        break;
    case END_INTERRUPTED:
        quoit_report_line(report, "Q0207", "ended by SIG%s", quoit_signal_name(end->status - 128));
        write_others(report, job, QUOIT_POSITIONS_NOBODY, true);
        break;
    case END_OUTPUT_GONE: /* a reader that left has seen enough */
        if (end->culprit != EPIPE)
            quoit_report_line(report, "Q0216", "cannot write the output: %s; the job was ended, status %d",
                              strerror((int)end->culprit), end->status);
        break;
    case END_LEFT:
    case END_POLLED:
    case END_LOCK_KEPT:
        write_left(report, job);
        break;
    case END_GLOBAL_EXIT:
        write_exit(report, job);
        break;
    case END_GUARD_GONE:
    case END_ORDERED:
        break;
    }
}

void report_wait_descs(struct job *job)
{
    const struct quoit_wait_desc_job view = hosts_wait_desc_job(job);
    for (uint32_t pe = 0; pe < job->plan->pe_count && job->notes; pe++)
        if (job_is_here(job, job->pes[pe].host))
            quoit_position_describe(&job->notes[pe], &view, pe, job->pes[pe].executable);
}

static bool write_hang(struct quoit_report *report, const struct job *job)
{
    char begin[96], time[32];
    const struct quoit_positions positions = positions_of(job);
    if (job->end.reason == END_STILL)
        snprintf(begin, sizeof begin, "every PE waits, and nothing can happen after %s of virtual time",
                 clock_text(job, time));
    else
        quoit_positions_describe_hang(job->stillness.rounds.still_ns, begin);
    return quoit_positions_report_hang(report, &positions, begin);
}

static bool write_leaver(struct quoit_report *report, const struct job *job)
{
    char name[HOSTS_NAME_BYTES];
    const struct quoit_rounds_answer *sum = &job->stillness.rounds.sum;
    const struct pe *leaver = &job->pes[sum->leaver];
    quoit_report_leaver(report, leaver->index, hosts_name(job, leaver->host, name), how_left(leaver), sum->has_polls,
                        QUOIT_ROUNDS_WARN_NS);
    return true;
}

void report_still(struct job *job, enum quoit_rounds_verdict verdict)
{
    struct quoit_report report;
    if (!job->notes || !quoit_report_open(&report, "oshrun"))
        return;
    report_wait_descs(job);
    job->end.places_by_ns = quoit_clock_now_ns() + PLACES_LIMIT_NS;
    if (verdict == QUOIT_ROUNDS_HANGS ? write_hang(&report, job) : write_leaver(&report, job)) {
        write_positions(&report, job, QUOIT_POSITIONS_NOBODY, true);
        fprintf(report.out, "  the job goes on; Ctrl-C ends it\n");
    }
    output_report(&job->output, &report);
}

void report_end(struct job *job)
{
    struct quoit_report report;
    if (!quoit_report_open(&report, "oshrun"))
        return;
    report_wait_descs(job);
    job->end.places_by_ns = quoit_clock_now_ns() + PLACES_LIMIT_NS;
    write_reason(&report, job);
    output_report(&job->output, &report);
}
