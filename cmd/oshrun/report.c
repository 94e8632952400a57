/* SPDX-License-Identifier: BSD-3-Clause */
#include "report.h"
#include "base/text.h"
#include "boot/place.h"
#include "boot/survey.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/clock.h"
#include "env/libc.h"
#include "clock.h"
#include "hosts.h"

#define CODE_COLUMN     80
#define GROUPS_MAX      8 /* more than this explain nothing */
#define GROUPS_TOLD_MAX 4
#define LIST_BYTES      64
#define SENTENCE_BYTES  256
#define ABORT_TEXTS_MAX 4
#define NOT_A_PE        UINT32_MAX
#define PLACES_LIMIT_NS 1500000000u /* for all positions of a report: a busy machine must not delay the end */

/* PEs at the same position. */
struct group {
    const struct wait_note *note;
    const char *executable;
    struct quoit_place place;  /* of the call */
    uint32_t like[GROUPS_MAX]; /* the first PE at each address: compilers make several calls of one line */
    uint32_t like_count;
    uint32_t count;
    char pes[LIST_BYTES];
};

/* "PE 3" or "PEs 0-2,5,7" of those for which is_member is true; truncated with ... */
static uint32_t list_pes(const struct job *job, bool (*is_member)(const struct job *job, uint32_t pe, const void *arg),
                         const void *arg, char text[LIST_BYTES])
{
    char list[LIST_BYTES - 8] = "";
    size_t used = 0;
    uint32_t count = 0, pe_count = job->plan->pe_count;
    for (uint32_t pe = 0; pe < pe_count; pe++) {
        if (!is_member(job, pe, arg))
            continue;
        uint32_t last = pe;
        while (last + 1 < pe_count && is_member(job, last + 1, arg))
            last++;
        count += last - pe + 1;
        if (used + 28 < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, last > pe + 1 ? "%s%u-%u" : "%s%u",
                                     used ? "," : "", pe, last);
        else if (list[used - 1] != '.')
            used += (size_t)snprintf(list + used, sizeof list - used, ",...");
        if (last > pe + 1)
            pe = last;
    }
    snprintf(text, LIST_BYTES, "PE%s %s", count == 1 ? "" : "s", list);
    return count;
}

/* Prints a sentence with its code at the right margin. */
static void tell(FILE *out, const char *code, const char *format, ...) __attribute__((format(printf, 3, 4)));
static void tell(FILE *out, const char *code, const char *format, ...)
{
    char text[SENTENCE_BYTES + QUOIT_BOOT_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(out, "oshrun: %-*s [%s]\n", CODE_COLUMN - 8, text, code);
}

/* In the same call of the same line, as far as the PEs told it. */
static bool is_alike(const struct job *job, uint32_t a, uint32_t b)
{
    const struct wait_note *x = &job->notes[a], *y = &job->notes[b];
    const char *p = job->pes[a].executable, *q = job->pes[b].executable;
    if (!x->is_alive || !y->is_alive)
        return x->is_alive == y->is_alive;
    return x->phase == y->phase && x->is_stopped == y->is_stopped && strcmp(x->call, y->call) == 0 &&
           strcmp(x->wait_desc_text, y->wait_desc_text) == 0 && strcmp(x->line, y->line) == 0 &&
           (p == q || (p && q && strcmp(p, q) == 0));
}

static bool is_same_place(const struct job *job, uint32_t a, uint32_t b)
{
    const struct wait_note *x = &job->notes[a], *y = &job->notes[b];
    return is_alike(job, a, b) && (!x->is_alive || x->from == y->from);
}

struct membership {
    const struct group *group;
    uint32_t except;
};

static bool is_in_group(const struct job *job, uint32_t pe, const void *arg)
{
    const struct membership *membership = arg;
    bool is_member = false;
    for (uint32_t i = 0; i < membership->group->like_count && !is_member; i++)
        is_member = is_same_place(job, pe, membership->group->like[i]);
    return pe != membership->except && is_member;
}

static void find_place(const struct job *job, struct group *group)
{
    uint64_t before = group->note->from - 1; /* the call stands before the address it returns to */
    if (group->note->is_alive && group->note->call[0] && group->note->from)
        quoit_place_find(group->executable, &before, 1, job->end.told_by_ns, &group->place);
}

/* Joins the groups whose addresses are of one line. Returns how many are left. */
static uint32_t join_lines(const struct job *job, struct group *groups, uint32_t group_count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < group_count; i++) {
        const struct group *group = &groups[i];
        uint32_t k = 0;
        while (k < kept && !(group->place.line[0] && strcmp(groups[k].place.line, group->place.line) == 0 &&
                             is_alike(job, groups[k].like[0], group->like[0])))
            k++;
        if (k < kept)
            groups[k].like[groups[k].like_count++] = group->like[0];
        else
            groups[kept++] = *group;
    }
    return kept;
}

/* Groups the PEs, except `except`, by position. Returns the number of groups, at most GROUPS_MAX. */
static uint32_t group_pes(const struct job *job, uint32_t except, struct group *groups)
{
    uint32_t group_count = 0;
    for (uint32_t pe = 0; pe < job->plan->pe_count && group_count < GROUPS_MAX && job->notes; pe++) {
        bool is_known = pe == except;
        for (uint32_t i = 0; i < group_count && !is_known; i++)
            is_known = is_same_place(job, pe, groups[i].like[0]);
        if (is_known)
            continue;
        struct group *group = &groups[group_count++];
        *group = (struct group){
            .note = &job->notes[pe], .executable = job->pes[pe].executable, .like = {pe}, .like_count = 1};
        find_place(job, group);
    }
    group_count = join_lines(job, groups, group_count);
    for (uint32_t i = 0; i < group_count; i++) {
        const struct membership membership = {&groups[i], except};
        groups[i].count = list_pes(job, is_in_group, &membership, groups[i].pes);
    }
    return group_count;
}

/* The position of the first of them that answered the launcher's request; see crash.h. */
static void tell_computing(FILE *out, const struct job *job, const struct group *group)
{
    for (uint32_t pe = group->like[0]; pe < job->plan->pe_count; pe++) {
        const struct quoit_pe_shared *shared = hosts_pe_shared(job, pe);
        struct quoit_place place;
        if (!shared || atomic_load_explicit(&shared->crash.signal, memory_order_acquire) != SIGURG ||
            !is_same_place(job, pe, group->like[0]))
            continue;
        uint64_t base = atomic_load(&shared->load_base);
        uint64_t address = shared->crash.instruction - base - (shared->crash.is_inside ? 1 : 0);
        if (shared->crash.instruction <= base)
            return;
        quoit_place_find(job->pes[pe].executable, &address, 1, job->end.told_by_ns, &place);
        if (!place.function[0] && !place.line[0])
            return;
        fprintf(out, " (");
        if (group->count > 1)
            fprintf(out, "PE %u ", pe);
        fprintf(out, "%s%s%s%s)", place.function[0] ? "in " : "at ", place.function, place.function[0] ? "() " : "",
                place.line);
        return;
    }
}

static void tell_group(FILE *out, const struct job *job, const struct group *group)
{
    static const char *const verbs[2][2] = {{"were", "was"}, {"are", "is"}};
    const struct wait_note *note = group->note;
    const char *were = verbs[job->end.phase == ENDING_NOT][group->count == 1];
    const struct quoit_place *place = &group->place;
    if (!note->is_alive)
        fprintf(out, "  %s had ended", group->pes);
    else if (note->is_stopped)
        fprintf(out, "  %s %s stopped by a signal", group->pes, were);
    else if (note->phase == PE_STARTED)
        fprintf(out, "  %s had not called shmem_init", group->pes);
    else if (note->phase == PE_FINALIZED)
        fprintf(out, "  %s %s through shmem_finalize", group->pes, were);
    else if (note->phase != PE_RUNNING)
        fprintf(out, "  %s %s waiting in shmem_init", group->pes, were);
    else if (!note->call[0])
        fprintf(out, "  %s %s running", group->pes, were);
    else
        fprintf(out, "  %s %s waiting in %s", group->pes, were, note->call);
    if (note->is_alive && note->line[0])
        fprintf(out, " (%s)", note->line);
    else if (place->line[0])
        fprintf(out, " (%s)", place->line);
    else if (place->function[0])
        fprintf(out, " (in %s)", place->function);
    if (note->is_alive && note->call[0])
        fprintf(out, "%s", note->wait_desc_text);
    else if (note->is_alive && note->phase == PE_RUNNING && !note->line[0])
        tell_computing(out, job, group);
}

/* The outages; a job that hardly progresses may have many. */
static void tell_outages(FILE *out, const struct job *job)
{
    uint32_t told = 0;
    for (uint32_t i = 0; i < job->plan->host_count && job->has_layout; i++) {
        struct quoit_direction direction;
        const struct host *host = &job->hosts[i];
        if (!quoit_layout_has_links(&host->layout))
            continue;
        quoit_survey_direction(&host->layout, host->front, QUOIT_RIGHT, quoit_clock_now_ns(), &direction);
        unsigned long long count = direction.down_count;
        if (count)
            fprintf(out, "%s %u-%u %llu time%s", told++ ? "," : "  links went down:", i,
                    hosts_neighbour(job, i, QUOIT_RIGHT), count, count == 1 ? "" : "s");
    }
    if (told)
        fprintf(out, "\n");
}

/* The positions of all PEs. `tells_ended`: including those that had finished. Whether some had not. */
static bool tell_positions(FILE *out, const struct job *job, uint32_t except, bool tells_ended)
{
    struct group groups[GROUPS_MAX];
    uint32_t told = 0, group_count = group_pes(job, except, groups);
    bool has_killed = false;
    for (uint32_t i = 0; i < group_count; i++) {
        has_killed |= groups[i].note->is_alive;
        if (!groups[i].note->is_alive && !tells_ended)
            continue;
        if (told == GROUPS_TOLD_MAX) {
            fprintf(out, "  and others elsewhere\n");
            break;
        }
        tell_group(out, job, &groups[i]);
        fprintf(out, "\n");
        told++;
    }
    return has_killed;
}

/* The same, and the last line. */
static void tell_others(FILE *out, const struct job *job, uint32_t except, bool tells_ended)
{
    if (tell_positions(out, job, except, tells_ended))
        fprintf(out, "  the job was ended, status %d\n", job->end.status);
    else
        fprintf(out, "  status %d\n", job->end.status);
}

static const struct quoit_crash_record *crash_of(const struct job *job, uint32_t pe)
{
    const struct quoit_pe_shared *shared = hosts_pe_shared(job, pe);
    if (!shared || atomic_load_explicit(&shared->crash.signal, memory_order_acquire) == 0)
        return NULL;
    return &shared->crash;
}

/* "at solve() stencil.c:88, in shmem_putmem" */
static void tell_crash_place(FILE *out, const struct job *job, uint32_t pe, const struct quoit_crash_record *crash)
{
    struct quoit_place place;
    char call[QUOIT_CALL_NAME_BYTES];
    uint64_t base = atomic_load(&hosts_pe_shared(job, pe)->load_base);
    uint64_t address = crash->instruction - base - (crash->is_inside ? 1 : 0);
    if (crash->instruction <= base)
        return;
    quoit_place_find(job->pes[pe].executable, &address, 1, job->end.told_by_ns, &place);
    snprintf(call, sizeof call, "%.*s", (int)sizeof call - 1, crash->call);
    bool is_in_call = crash->is_inside && crash->call_from == crash->instruction;
    if (place.function[0] || place.line[0])
        fprintf(out, "  at %s%s%s%s", place.function, place.function[0] ? "()" : "",
                place.function[0] && place.line[0] ? " " : "", place.line);
    else
        fprintf(out, "  at 0x%llx of %s", (unsigned long long)address, job->pes[pe].executable);
    if (call[0])
        fprintf(out, ", %s %s", is_in_call ? "in" : "after", call);
    fprintf(out, "\n");
}

static void tell_signal(FILE *out, const struct job *job, const struct pe *pe, int signal_number,
                        const struct quoit_crash_record *crash)
{
    char host[HOSTS_NAME_BYTES];
    const char *name = quoit_signal_name(signal_number);
    char address[48] = "";
    if (crash && (signal_number == SIGSEGV || signal_number == SIGBUS))
        snprintf(address, sizeof address, " (address 0x%llx)", (unsigned long long)crash->fault_address);
    if (signal_number == SIGKILL)
        snprintf(address, sizeof address, " (kill -9, or memory ran out)");
    tell(out, "Q0201", "PE %u on %s was killed by SIG%s%s", pe->index, hosts_name(job, pe->host, host), name, address);
    if (crash)
        tell_crash_place(out, job, pe->index, crash);
}

static void tell_failed_pe(FILE *out, const struct job *job)
{
    const struct pe *pe = &job->pes[job->end.culprit];
    const struct quoit_crash_record *crash = crash_of(job, pe->index);
    int status = WIFEXITED(pe->wait_status) ? WEXITSTATUS(pe->wait_status) : 0;
    char host[HOSTS_NAME_BYTES];
    hosts_name(job, pe->host, host);
    if (WIFSIGNALED(pe->wait_status))
        tell_signal(out, job, pe, WTERMSIG(pe->wait_status), crash);
    else if (crash && status == 128 + (int)crash->signal) /* a shell is in between */
        tell_signal(out, job, pe, (int)crash->signal, crash);
    else if (status == 0)
        tell(out, "Q0203", "PE %u on %s ended with status 0, but without shmem_finalize", pe->index, host);
    else
        tell(out, "Q0202", "PE %u on %s exited with status %d%s", pe->index, host, status,
             pe->phase == PE_STARTED ? "" : " before shmem_finalize");
    tell_others(out, job, pe->index, false);
}

/* The status is what shmem_global_exit was given; an exit handler that went wrong after that is reported all the same.
 */
static void tell_exit(FILE *out, const struct job *job)
{
    const struct pe *pe = &job->pes[job->end.culprit];
    const struct quoit_crash_record *crash = crash_of(job, pe->index);
    char host[HOSTS_NAME_BYTES];
    if (job->notes && job->notes[pe->index].is_alive) {
        tell(out, "Q0127",
             "PE %u on %s did not end after shmem_global_exit, stopped by a signal perhaps, and was killed", pe->index,
             hosts_name(job, pe->host, host));
    } else if (WIFSIGNALED(pe->wait_status)) {
        tell_signal(out, job, pe, WTERMSIG(pe->wait_status), crash);
        fprintf(out, "  in its exit handlers, after shmem_global_exit; status %d\n", job->end.status);
    }
}

static void tell_dead_proxy(FILE *out, const struct host *host)
{
    int status = host->proxy_wait_status;
    const char *name = WIFSIGNALED(status) ? quoit_signal_name(WTERMSIG(status)) : NULL;
    bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    char how[64] = "", why[64 + HOSTS_NAME_BYTES] = "", text[HOSTS_NAME_BYTES], other[HOSTS_NAME_BYTES];
    if (host->has_closed) {
        tell(out, "Q0236", "the proxy of %s closed its connection to oshrun and ran on; it was killed",
             hosts_name(host->job, host->index, text));
        return;
    }
    if (host->is_dismissed && is_killed) {
        tell(out, "Q0205",
             host->is_silent ? "the proxy of %s gave that of %s no sign for --network-limit; its PEs are cut off"
                             : "the connection of the proxy of %s to that of %s broke; its PEs are cut off",
             hosts_name(host->job, host->index, text), hosts_name(host->job, host->missed_by, other));
        return;
    }
    if (host->proxy_failure != QUOIT_OK) {
        tell(out, "Q0234", "the proxy of %s cannot serve its PEs: %s", hosts_name(host->job, host->index, text),
             quoit_status_text((enum quoit_status)host->proxy_failure));
        return;
    }
    if (!WIFSIGNALED(status)) {
        tell(out, "Q0205", "the proxy of %s could not serve its PEs, and ended with status %d: its own line says why",
             hosts_name(host->job, host->index, text), WEXITSTATUS(status));
        return;
    }
    snprintf(how, sizeof how, " of SIG%s", name);
    if (is_killed)
        snprintf(why, sizeof why, " (kill -9, or memory ran out)");
    tell(out, "Q0205", "the proxy of %s has died%s%s; its PEs are cut off", hosts_name(host->job, host->index, text),
         how, why);
}

/* Its agent could not be started, has ended, or is silent. */
static void tell_lost_host(FILE *out, const struct job *job)
{
    const struct host *host = &job->hosts[job->end.culprit];
    char name[HOSTS_NAME_BYTES], rsh[96] = "";
    int status = host->rsh_wait_status;
    if (host->has_rsh_status && WIFSIGNALED(status))
        snprintf(rsh, sizeof rsh, ", the remote shell was killed by SIG%s", quoit_signal_name(WTERMSIG(status)));
    else if (host->has_rsh_status && WEXITSTATUS(status))
        snprintf(rsh, sizeof rsh, ", status %d of the remote shell", WEXITSTATUS(status));
    tell(out, "Q0225", host->has_answered ? "%s was lost: %s%s" : "cannot start the agent on %s: %s%s",
         hosts_name(job, host->index, name), host->problem, rsh);
    if (host->has_answered)
        tell_others(out, job, NOT_A_PE, false);
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
static bool said_the_same(const struct job *job, uint32_t pe, const void *arg)
{
    const struct pe *mine = &job->pes[pe], *other = arg;
    bool is_of_program = !mine->executable || !other->executable ? mine->executable == other->executable
                                                                 : strcmp(mine->executable, other->executable) == 0;
    return mine->abort_text && mine->abort_from == other->abort_from && is_of_program &&
           reads_the_same(mine->abort_text, pe, other->abort_text, (uint32_t)(other - job->pes));
}

static void tell_abort_place(FILE *out, const struct job *job, const struct pe *pe)
{
    struct quoit_place place = {.line = ""};
    uint64_t before = pe->abort_from - 1; /* the call stands before the address it returns to */
    if (pe->abort_from)
        quoit_place_find(pe->executable, &before, 1, job->end.told_by_ns, &place);
    if (place.line[0])
        fprintf(out, "  at %s%s%s\n", place.function, place.function[0] ? "() " : "", place.line);
}

static void tell_aborts(FILE *out, const struct job *job)
{
    uint32_t text_count = 0;
    for (uint32_t pe = 0; pe < job->plan->pe_count; pe++) {
        char pes[LIST_BYTES];
        const struct pe *first = &job->pes[pe];
        bool is_told = !first->abort_text;
        for (uint32_t before = 0; before < pe && !is_told; before++)
            is_told = said_the_same(job, before, first);
        if (is_told || text_count == ABORT_TEXTS_MAX)
            continue;
        text_count++;
        list_pes(job, said_the_same, first, pes);
        fprintf(out, "oshrun: %s: %s\n", pes, first->abort_text);
        tell_abort_place(out, job, first);
    }
    fprintf(out, "  the job was ended, status %d\n", job->end.status);
}

static bool has_ended(const struct job *job, uint32_t pe, const void *arg)
{
    (void)arg;
    return !job->notes || !job->notes[pe].is_alive;
}

static bool waits_in_init(const struct job *job, uint32_t pe, const void *arg)
{
    return !has_ended(job, pe, arg) && (job->notes[pe].phase == PE_HELLO || job->notes[pe].phase == PE_READY);
}

static void tell_no_init(FILE *out, const struct job *job)
{
    char ended[LIST_BYTES], waiting[LIST_BYTES];
    list_pes(job, has_ended, NULL, ended);
    list_pes(job, waits_in_init, NULL, waiting);
    tell(out, "Q0204", "%s ended without shmem_init, in which %s waited", ended, waiting);
    fprintf(out, "  all PEs of a job must call it; the job was ended, status %d\n", job->end.status);
}

static void tell_cannot_start(FILE *out, const struct job *job)
{
    uint32_t pe = job->end.culprit;
    int error = job->exec_errors[pe];
    if (error < 0)
        tell(out, "Q0227", "cannot enter host%u of the ring %s: %s", job->pes[pe].host,
             plan_text(job->plan, QUOIT_OPT_RING), strerror(-error));
    else if (error)
        tell(out, "Q0212", "cannot run %s: %s", plan_program_of(job->plan, pe)->argv[0], strerror(error));
}

static void tell_lost_link(FILE *out, const struct job *job)
{
    uint32_t link = job->dead_links[0];
    const struct quoit_protocol_traits *protocol = quoit_job_config_traits(&job->config);
    tell(out, "Q0218", "link %u-%u went down, which no job with %s %s outlives", link,
         hosts_neighbour(job, link, QUOIT_RIGHT), protocol->has_failover ? "--barrier" : "--protocol",
         protocol->has_failover ? "papers" : protocol->name);
}

/* Two links down partition their ring into two lines of hosts: the shorter one is reported as unreachable. */
static void tell_cut_off(FILE *out, const struct job *job)
{
    if (job->dead_links[0] == job->dead_links[1]) {
        tell_lost_link(out, job);
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
    tell(out, "Q0217", "links %u-%u and %u-%u are down: host%s %s cannot be reached", first,
         hosts_neighbour(job, first, QUOIT_RIGHT), second, hosts_neighbour(job, second, QUOIT_RIGHT),
         cut_count == 1 ? "" : "s", hosts);
}

static void tell_left(FILE *out, const struct job *job)
{
    char name[HOSTS_NAME_BYTES];
    const struct pe *left = &job->pes[job->end.culprit];
    enum end_reason reason = job->end.reason;
    const char *code = reason == END_LEFT ? "Q0209" : reason == END_POLLED ? "Q0244" : "Q0242";
    const char *what = reason == END_LEFT     ? "while others were elsewhere"
                       : reason == END_POLLED ? "and the others do nothing but wait or poll for what no PE will write"
                                              : "with a lock for which others wait";
    tell(out, code, "PE %u on %s left the job by %s %s", left->index, hosts_name(job, left->host, name),
         left->leaves_by_exit ? "exit(0) or return from main" : "shmem_finalize", what);
    tell_others(out, job, left->index, reason == END_POLLED);
}

/* The first line of a hang, with the likely cause. False: it is none that is known. */
static bool tell_hang(FILE *out, const struct job *job);

/* In virtual time. */
static void tell_still(FILE *out, const struct job *job)
{
    char time[32];
    if (!job->notes || !tell_hang(out, job))
        tell(out, "Q0704", "nothing can happen after %s of virtual time", clock_text(job, time));
    tell_others(out, job, NOT_A_PE, true);
}

static void tell_timeout(FILE *out, const struct job *job)
{
    char time[32];
    quoit_option_format(&job->plan->options, QUOIT_OPT_TIMEOUT, time, sizeof time);
    tell(out, "Q0206", "the job ran longer than %s (--timeout)", time);
    tell_outages(out, job);
    tell_others(out, job, NOT_A_PE, true);
}

static void tell_reason(FILE *out, const struct job *job)
{
    char name[HOSTS_NAME_BYTES];
    const struct end *end = &job->end;
    switch (end->reason) {
    case END_NORMAL:
        if (end->status)
            tell(out, "Q0202", "PE %u on %s exited with status %d", end->culprit,
                 hosts_name(job, job->pes[end->culprit].host, name), end->status);
        break;
    case END_PE_FAILED:
        tell_failed_pe(out, job);
        break;
    case END_NO_INIT:
        tell_no_init(out, job);
        break;
    case END_ABORTED:
        tell_aborts(out, job);
        break;
    case END_PROXY_DIED:
        tell_dead_proxy(out, &job->hosts[end->culprit]);
        tell_others(out, job, NOT_A_PE, false);
        break;
    case END_HANGS:
        tell(out, "Q0238", "%s; it could run, and has done nothing", job->await_text);
        tell_others(out, job, NOT_A_PE, false);
        break;
    case END_CUT_OFF:
        tell_cut_off(out, job);
        tell_others(out, job, NOT_A_PE, false);
        break;
    case END_HOST_LOST:
        tell_lost_host(out, job);
        break;
    case END_RING_GONE:
        tell(out, "Q0228", "the ring %s has ended, and the job with it: quoit ring down, or its keeper was killed",
             plan_text(job->plan, QUOIT_OPT_RING));
        break;
    case END_CANNOT_START:
        tell_cannot_start(out, job);
        break;
    case END_TIMEOUT:
        tell_timeout(out, job);
        break;
    case END_STILL:
        tell_still(out, job);
        break;
    case END_INTERRUPTED:
        tell(out, "Q0207", "ended by SIG%s", quoit_signal_name(end->status - 128));
        tell_others(out, job, NOT_A_PE, true);
        break;
    case END_OUTPUT_GONE: /* a reader that left has seen enough */
        if (end->culprit != EPIPE)
            tell(out, "Q0216", "cannot write the output: %s; the job was ended, status %d", strerror((int)end->culprit),
                 end->status);
        break;
    case END_LEFT:
    case END_POLLED:
    case END_LOCK_KEPT:
        tell_left(out, job);
        break;
    case END_GLOBAL_EXIT:
        tell_exit(out, job);
        break;
    case END_GUARD_GONE:
    case END_TOLD:
        break;
    }
}

void report_wait_descs(struct job *job)
{
    const struct quoit_wait_desc_job view = hosts_wait_desc_job(job);
    struct quoit_wait_desc_reading reading = {0};
    for (uint32_t pe = 0; pe < job->plan->pe_count && job->notes; pe++)
        if (job->notes[pe].is_alive && job->notes[pe].call[0] && job_is_here(job, job->pes[pe].host)) {
            quoit_wait_desc_read(&view, pe, &job->notes[pe].wait_desc, NULL, &reading);
            quoit_wait_desc_describe(&reading, job->pes[pe].executable, job->notes[pe].wait_desc_text);
            job->notes[pe].holder = reading.holder;
        }
}

/* Whether a routine is one that all PEs of a team call. */
static bool is_collective(const char *call)
{
    static const char *const parts[] = {"barrier", "sync",       "broadcast",   "collect", "alltoall",
                                        "reduce",  "_to_all",    "malloc",      "calloc",  "align",
                                        "free",    "team_split", "team_destroy"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (strstr(call, parts[i]))
            return true;
    return false;
}

enum waits { WAITS_FOR_VALUE, WAITS_FOR_LOCK, WAITS_FOR_OTHERS, WAITS_OTHERWISE };

static enum waits waits_of(const struct job *job, uint32_t pe)
{
    const struct wait_note *note = &job->notes[pe];
    if (!note->is_alive || note->is_stopped || note->phase != PE_RUNNING || !note->call[0])
        return WAITS_OTHERWISE;
    if (note->wait_desc.count > 0)
        return note->wait_desc.is_lock ? WAITS_FOR_LOCK : WAITS_FOR_VALUE;
    return is_collective(note->call) ? WAITS_FOR_OTHERS : WAITS_OTHERWISE;
}

static bool waits_as(const struct job *job, uint32_t pe, const void *arg)
{
    return waits_of(job, pe) == *(const enum waits *)arg;
}

/* A PE that waits for a lock whose holder is known; NOT_A_PE. */
static uint32_t find_lock_waiter(const struct job *job)
{
    for (uint32_t pe = 0; pe < job->plan->pe_count; pe++)
        if (waits_of(job, pe) == WAITS_FOR_LOCK && job->notes[pe].holder < job->plan->pe_count)
            return pe;
    return NOT_A_PE;
}

static bool tell_hang(FILE *out, const struct job *job)
{
    static const enum waits for_value = WAITS_FOR_VALUE, for_others = WAITS_FOR_OTHERS, otherwise = WAITS_OTHERWISE;
    char begin[96], time[32], values[LIST_BYTES], others[LIST_BYTES], rest[LIST_BYTES];
    uint32_t waiter = find_lock_waiter(job), value_count = list_pes(job, waits_as, &for_value, values);
    uint32_t other_count = list_pes(job, waits_as, &for_others, others);
    if (job->end.reason == END_STILL)
        snprintf(begin, sizeof begin, "every PE waits, and nothing can happen after %s of virtual time",
                 clock_text(job, time));
    else
        snprintf(begin, sizeof begin, "warning: every PE waits, and nothing has moved for %llu s",
                 (unsigned long long)(job->stillness.rounds.still_ns / 1000000000u));
    if (list_pes(job, waits_as, &otherwise, rest) > 0)
        return false;
    if (waiter != NOT_A_PE)
        tell(out, "Q0142", "%s: PE %u waits for a lock whose holder, PE %u, waits too", begin, waiter,
             job->notes[waiter].holder);
    else if (value_count > 0)
        tell(out, "Q0140", "%s: no PE is left to write what %s %s for", begin, values,
             value_count == 1 ? "waits" : "wait");
    else if (other_count == job->plan->pe_count)
        tell(out, "Q0141", "%s: the collectives that the PEs are in do not match", begin);
    else
        return false;
    return true;
}

static bool tell_leaver(FILE *out, const struct job *job)
{
    char name[HOSTS_NAME_BYTES];
    const struct quoit_rounds_answer *sum = &job->stillness.rounds.sum;
    const struct pe *leaver = &job->pes[sum->leaver];
    tell(out, "Q0220",
         "warning: PE %u on %s waits in shmem_finalize%s, the others wait elsewhere%s, and nothing has moved for %u s",
         leaver->index, hosts_name(job, leaver->host, name),
         leaver->leaves_by_exit ? ", by exit(0) or return from main" : "",
         sum->has_polls ? " or do nothing but poll" : "", (unsigned)(QUOIT_ROUNDS_WARN_NS / 1000000000u));
    return true;
}

void report_still(struct job *job, enum quoit_rounds_verdict verdict)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = job->notes ? open_memstream(&text, &bytes) : NULL;
    if (!out)
        return;
    report_wait_descs(job);
    job->end.told_by_ns = quoit_clock_now_ns() + PLACES_LIMIT_NS;
    if (verdict == QUOIT_ROUNDS_HANGS ? tell_hang(out, job) : tell_leaver(out, job)) {
        tell_positions(out, job, NOT_A_PE, true);
        fprintf(out, "  the job goes on; Ctrl-C ends it\n");
    }
    fclose(out);
    quoit_text_clean(text, bytes);
    output_say(&job->output, text, bytes);
    free(text);
}

void report_end(struct job *job)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return;
    report_wait_descs(job);
    job->end.told_by_ns = quoit_clock_now_ns() + PLACES_LIMIT_NS;
    tell_reason(out, job);
    fclose(out);
    quoit_text_clean(text, bytes); /* it contains names and texts of PEs */
    output_say(&job->output, text, bytes);
    free(text);
}
