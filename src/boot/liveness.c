/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/liveness.h"
#include "boot/crash.h"
#include "boot/ended.h"
#include "boot/hosts.h"
#include "boot/positions.h"
#include "boot/report.h"
#include "env/clock.h"
#include "env/process.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACES_NS        1000000000u /* for all lines of programs in a report */
#define END_STATUS       1
#define LOOK_EVERY_NS    900000000u            /* below the tick of the agent */
#define OWN_THREAD_COUNT 2u                    /* of a PE: the program's first, and the one of watch.h */
#define PROXY_NS         20000000u             /* for a proxy to fall asleep after a question or an answer */
#define GIVE_UP_NS       UINT64_C(10000000000) /* a question or an answer was lost, or a host is stopped */

/* What is known of the PEs of this host for a report. */
struct places {
    const struct quoit_liveness *liveness;
    struct quoit_position *list;
    char **executables;
};

static void offer(int proxy_fd, uint32_t host, enum quoit_control_kind kind, const union quoit_control_body *body)
{
    quoit_proxy_process_send_frame(proxy_fd, host, QUOIT_PROXY_OFFERED, kind, body);
}

/* pe: of this host, as everywhere here. */
static struct quoit_pe_shared *record(const struct quoit_liveness *liveness, uint32_t pe)
{
    return quoit_memory_pe(&liveness->host->layout, liveness->host->memory, pe);
}

/* The last message in its record; pairs with quoit_client_leave_word. */
static uint32_t word(const struct quoit_liveness *liveness, uint32_t pe)
{
    return atomic_load_explicit(&record(liveness, pe)->unsent_kind, memory_order_acquire);
}

/* A program in Python, which does not go on afterwards, is asked for its line once: an answer may take a while. */
static void ask_line(const struct quoit_liveness *liveness, uint32_t pe, char line_out[QUOIT_SOURCE_LINE_BYTES])
{
    struct quoit_pe_shared *shared = record(liveness, pe);
    if (atomic_load(&shared->has_interpreter) && liveness->processes[pe] > 0 && !atomic_load(&shared->is_asked)) {
        quoit_crash_ask(shared);
        kill(liveness->processes[pe], SIGURG);
        quoit_crash_await(shared, quoit_clock_now_ns() + QUOIT_CRASH_LINE_NS);
    }
    quoit_crash_line(shared, line_out);
}

/* Of a PE of this host whose job is about to be ended. */
static struct quoit_control_where find_where(const struct quoit_liveness *liveness, uint32_t pe)
{
    struct quoit_control_where where = {.pe = liveness->host->layout.first_pe + pe};
    memcpy(where.call, record(liveness, pe)->waiting_in, sizeof where.call);
    ask_line(liveness, pe, where.line);
    return where;
}

/* Of a PE of the job that has begun shmem_finalize. What one of another host has done is not known here. */
static enum quoit_report_leaving how_left(const struct quoit_liveness *liveness, uint32_t pe)
{
    uint32_t local = pe - liveness->host->layout.first_pe;
    if (local >= liveness->host->layout.local_count)
        return QUOIT_REPORT_LEFT_SOMEHOW;
    return record(liveness, local)->unsent_status ? QUOIT_REPORT_LEFT_BY_EXIT : QUOIT_REPORT_LEFT_BY_CALL;
}

static const char *name_of(const struct quoit_liveness *liveness, uint32_t pe)
{
    return liveness->hosts->list[quoit_job_config_host_of_pe(&liveness->host->layout.job, pe)].name;
}

/* Of any host. */
static void write_where(const struct quoit_report *report, const struct quoit_control_where *where)
{
    char pe[24], call[QUOIT_CALL_NAME_BYTES], line[QUOIT_SOURCE_LINE_BYTES];
    snprintf(pe, sizeof pe, "PE %u", where->pe);
    snprintf(call, sizeof call, "%.*s", (int)sizeof call - 1, where->call);
    snprintf(line, sizeof line, "%.*s", (int)sizeof line - 1, where->line);
    quoit_report_place(report, pe, true, false, call, line, "");
    fputc('\n', report->out);
}

static struct quoit_wait_desc_host wait_desc_host_of(void *arg, uint32_t pe)
{
    const struct quoit_boot *host = arg;
    (void)pe;
    return (struct quoit_wait_desc_host){.layout = &host->layout, .front = host->memory, .memory_fd = host->memory_fd};
}

static struct quoit_wait_desc_job wait_desc_job_of(const struct quoit_liveness *liveness)
{
    const struct quoit_boot *host = liveness->host;
    return (struct quoit_wait_desc_job){.pe_count = host->layout.job.pe_count,
                                        .is_partial = true,
                                        .host_of = wait_desc_host_of,
                                        .arg = (void *)(uintptr_t)host};
}

static bool is_stopped(pid_t process)
{
    struct quoit_process facts;
    return process > 0 && quoit_process_look(process, &facts) && (facts.state == 'T' || facts.state == 't');
}

static char *executable_of(pid_t process)
{
    char link[32], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/exe", (int)process);
    ssize_t length = process > 0 ? readlink(link, path, sizeof path) : 0;
    return length > 0 ? strndup(path, (size_t)length) : NULL;
}

static void note_position(const struct places *places, uint32_t pe)
{
    const struct quoit_liveness *liveness = places->liveness;
    struct quoit_position *position = &places->list[pe];
    position->is_alive = liveness->processes[pe] > 0;
    position->is_stopped = is_stopped(liveness->processes[pe]);
    position->phase = word(liveness, pe) == QUOIT_BOOT_FINALIZED ? QUOIT_PHASE_FINALIZED : QUOIT_PHASE_RUNNING;
    places->executables[pe] = executable_of(liveness->processes[pe]);
    if (position->phase == QUOIT_PHASE_RUNNING)
        quoit_position_note(position, record(liveness, pe));
}

static bool is_to_answer(const struct places *places, uint32_t pe)
{
    const struct quoit_position *position = &places->list[pe];
    return position->is_alive && !position->is_stopped && position->phase == QUOIT_PHASE_RUNNING &&
           atomic_load(&record(places->liveness, pe)->has_interpreter);
}

/* Programs in Python, which do not go on afterwards, are asked for their lines, all at once. */
static void ask_lines(const struct places *places, uint32_t except)
{
    const struct quoit_liveness *liveness = places->liveness;
    uint64_t until_ns = quoit_clock_now_ns() + QUOIT_CRASH_LINE_NS;
    for (uint32_t pe = 0; pe < liveness->host->layout.local_count; pe++)
        if (pe != except && is_to_answer(places, pe) && !atomic_load(&record(liveness, pe)->is_asked)) {
            quoit_crash_ask(record(liveness, pe));
            kill(liveness->processes[pe], SIGURG);
        }
    for (uint32_t pe = 0; pe < liveness->host->layout.local_count; pe++) {
        if (pe == except || !is_to_answer(places, pe))
            continue;
        quoit_crash_await(record(liveness, pe), until_ns);
        quoit_crash_line(record(liveness, pe), places->list[pe].line);
    }
}

static const struct quoit_pe_shared *position_record(const void *arg, uint32_t pe)
{
    return record(((const struct places *)arg)->liveness, pe);
}

static const char *position_executable(const void *arg, uint32_t pe)
{
    return ((const struct places *)arg)->executables[pe];
}

static void close_places(struct places *places)
{
    for (uint32_t pe = 0; pe < places->liveness->host->layout.local_count && places->executables; pe++)
        free(places->executables[pe]);
    free(places->executables);
    free(places->list);
}

/* goes_on, except: as of quoit_liveness_write_places. False: no memory. */
static bool open_places(const struct quoit_liveness *liveness, uint32_t except, bool goes_on, struct places *places_out)
{
    const struct quoit_layout *layout = &liveness->host->layout;
    const struct quoit_wait_desc_job job = wait_desc_job_of(liveness);
    *places_out = (struct places){.liveness = liveness,
                                  .list = calloc(layout->local_count, sizeof *places_out->list),
                                  .executables = calloc(layout->local_count, sizeof *places_out->executables)};
    if (!places_out->list || !places_out->executables) {
        close_places(places_out);
        return false;
    }
    for (uint32_t pe = 0; pe < layout->local_count; pe++)
        note_position(places_out, pe);
    if (!goes_on)
        ask_lines(places_out, except - layout->first_pe);
    for (uint32_t pe = 0; pe < layout->local_count; pe++)
        quoit_position_describe(&places_out->list[pe], &job, layout->first_pe + pe, places_out->executables[pe]);
    return true;
}

static struct quoit_positions positions_of(const struct places *places, bool goes_on)
{
    const struct quoit_layout *layout = &places->liveness->host->layout;
    return (struct quoit_positions){.list = places->list,
                                    .first = layout->first_pe,
                                    .count = layout->local_count,
                                    .goes_on = goes_on,
                                    .until_ns = quoit_clock_now_ns() + PLACES_NS,
                                    .shared_of = position_record,
                                    .executable_of = position_executable,
                                    .arg = places};
}

void quoit_liveness_write_places(const struct quoit_liveness *liveness, const struct quoit_report *report,
                                 uint32_t except, bool goes_on)
{
    struct places places;
    if (!open_places(liveness, except, goes_on, &places))
        return;
    const struct quoit_positions positions = positions_of(&places, goes_on);
    (void)quoit_positions_write(report, &positions, except, false);
    close_places(&places);
}

struct quoit_control_left quoit_liveness_left(const struct quoit_liveness *liveness)
{
    struct quoit_control_left left = {.meeting_count = UINT64_MAX};
    for (uint32_t pe = 0; pe < liveness->host->layout.local_count; pe++)
        if (word(liveness, pe) == QUOIT_BOOT_FINALIZED && record(liveness, pe)->unsent_meetings < left.meeting_count)
            left = (struct quoit_control_left){.meeting_count = record(liveness, pe)->unsent_meetings,
                                               .pe = liveness->host->layout.first_pe + pe,
                                               .how = how_left(liveness, liveness->host->layout.first_pe + pe)};
    return left;
}

/* shmem_finalize waits for all PEs. If one has left it while another has not entered it, or entered it after more
 * collectives, the former matched a collective of the latter. Each records LEAVING before any can record FINALIZED. */
static bool find_elsewhere(const struct quoit_liveness *liveness, struct quoit_control_elsewhere *found_out)
{
    struct quoit_control_left left = quoit_liveness_left(liveness);
    if (liveness->has_left && liveness->left.meeting_count < left.meeting_count)
        left = liveness->left;
    *found_out = (struct quoit_control_elsewhere){.left = left.pe, .how = left.how};
    for (uint32_t pe = 0; pe < liveness->host->layout.local_count && left.meeting_count != UINT64_MAX; pe++) {
        uint32_t kind = word(liveness, pe);
        bool is_elsewhere =
            kind == 0 || (kind == QUOIT_BOOT_LEAVING && record(liveness, pe)->unsent_meetings > left.meeting_count);
        if (!is_elsewhere || found_out->count == QUOIT_CONTROL_ELSEWHERE_MAX)
            continue;
        found_out->pes[found_out->count++] = find_where(liveness, pe);
    }
    return found_out->count > 0;
}

/* found: of any host. */
static enum quoit_liveness_verdict report_left(const struct quoit_liveness *liveness,
                                               const struct quoit_control_elsewhere *found)
{
    uint32_t pe_count = liveness->host->layout.job.pe_count;
    if (found->left >= pe_count || found->count > QUOIT_CONTROL_ELSEWHERE_MAX)
        return QUOIT_LIVENESS_FINE;
    bool is_own = found->pes[0].pe - liveness->host->layout.first_pe < liveness->host->layout.local_count;
    struct quoit_report report;
    if (!quoit_ended_claim(liveness->host->memory, END_STATUS))
        return QUOIT_LIVENESS_LEFT;
    if (quoit_report_open(&report, "quoit")) {
        quoit_report_left(&report, QUOIT_REPORT_LEFT_ELSEWHERE, found->left, name_of(liveness, found->left),
                          found->how == QUOIT_REPORT_LEFT_BY_EXIT ? QUOIT_REPORT_LEFT_BY_EXIT
                                                                  : QUOIT_REPORT_LEFT_BY_CALL);
        if (is_own)
            quoit_liveness_write_places(liveness, &report, found->left, false);
        for (uint32_t i = 0; i < found->count && !is_own; i++)
            write_where(&report, &found->pes[i]);
        quoit_report_ended(&report, END_STATUS);
        quoit_report_print(&report);
    }
    return QUOIT_LIVENESS_LEFT;
}

/* One that has passed shmem_finalize waits for nothing that this job knows. */
static struct quoit_looks_pe looks_pe_of(void *arg, uint32_t pe)
{
    const struct quoit_liveness *liveness = arg;
    uint32_t local = pe - liveness->host->layout.first_pe, kind = word(liveness, local);
    return (struct quoit_looks_pe){.process = kind == QUOIT_BOOT_FINALIZED ? 0 : liveness->processes[local],
                                   .is_leaving = kind == QUOIT_BOOT_LEAVING};
}

/* The questions travel as the traffic of the hosts does, so that is not looked at. */
static void look(const struct quoit_liveness *liveness, const struct quoit_rounds_question *question,
                 struct quoit_rounds_answer *answer_out)
{
    const struct quoit_boot *host = liveness->host;
    const struct quoit_looks looks = {.layout = &host->layout,
                                      .front = host->memory,
                                      .memory_fd = host->memory_fd,
                                      .wait_descs = wait_desc_job_of(liveness),
                                      .seen = liveness->seen,
                                      .own_thread_count = OWN_THREAD_COUNT,
                                      .misses_host = liveness->silences.silent_count > 0,
                                      .proxy = liveness->proxy,
                                      .proxy_ns = PROXY_NS,
                                      .pe_of = looks_pe_of,
                                      .arg = (void *)(uintptr_t)liveness};
    quoit_looks_take(&looks, question, answer_out);
}

/* Q0242 and Q0244. */
static void report_end(const struct quoit_liveness *liveness, enum quoit_rounds_verdict verdict)
{
    const struct quoit_rounds *rounds = &liveness->rounds;
    bool is_lock = verdict == QUOIT_ROUNDS_LOCK_KEPT;
    uint32_t left = is_lock ? rounds->keeper : rounds->sum.leaver;
    struct quoit_report report;
    if (!quoit_report_open(&report, "quoit"))
        return;
    quoit_report_left(&report, is_lock ? QUOIT_REPORT_LEFT_LOCK : QUOIT_REPORT_LEFT_POLLED, left,
                      name_of(liveness, left), how_left(liveness, left));
    if (is_lock && rounds->waiter - liveness->host->layout.first_pe >= liveness->host->layout.local_count)
        write_where(&report, &(struct quoit_control_where){.pe = rounds->waiter, .call = "shmem_set_lock"});
    quoit_liveness_write_places(liveness, &report, left, false);
    quoit_report_ended(&report, END_STATUS);
    quoit_report_print(&report);
}

/* Of several hosts this one knows no more than its own PEs. */
static void report_hang(const struct quoit_liveness *liveness)
{
    const struct quoit_layout *layout = &liveness->host->layout;
    struct quoit_report report;
    struct places places;
    char begin[96];
    quoit_positions_describe_hang(liveness->rounds.still_ns, begin);
    if (!open_places(liveness, QUOIT_POSITIONS_NOBODY, true, &places))
        return;
    const struct quoit_positions positions = positions_of(&places, true);
    bool is_open = quoit_report_open(&report, "quoit"), is_all = layout->local_count == layout->job.pe_count;
    if (is_open && !is_all)
        quoit_report_line(&report, "Q0140",
                          "%s: for a value that no PE is left to write, a lock whose holder waits too, or in "
                          "collectives that do not match",
                          begin);
    if (is_open && (!is_all || quoit_positions_report_hang(&report, &positions, begin)))
        (void)quoit_positions_write(&report, &positions, QUOIT_POSITIONS_NOBODY, false);
    quoit_report_print(&report);
    close_places(&places);
}

static void report_leaver(const struct quoit_liveness *liveness)
{
    const struct quoit_rounds_answer *sum = &liveness->rounds.sum;
    struct quoit_report report;
    if (!quoit_report_open(&report, "quoit"))
        return;
    quoit_report_leaver(&report, sum->leaver, name_of(liveness, sum->leaver), how_left(liveness, sum->leaver),
                        sum->has_polls, QUOIT_ROUNDS_WARN_NS);
    quoit_liveness_write_places(liveness, &report, QUOIT_POSITIONS_NOBODY, true);
    quoit_report_print(&report);
}

static enum quoit_liveness_verdict conclude(struct quoit_liveness *liveness)
{
    const struct quoit_job_config *job = &liveness->host->layout.job;
    struct quoit_rounds *rounds = &liveness->rounds;
    enum quoit_rounds_verdict verdict = quoit_rounds_end(rounds, job->pe_count);
    if (verdict == QUOIT_ROUNDS_MOVES || verdict == QUOIT_ROUNDS_NOTES)
        return QUOIT_LIVENESS_FINE;
    if (verdict == QUOIT_ROUNDS_HANGS || verdict == QUOIT_ROUNDS_WARNS) {
        (verdict == QUOIT_ROUNDS_HANGS ? report_hang : report_leaver)(liveness);
        return QUOIT_LIVENESS_FINE;
    }
    if (quoit_ended_claim(liveness->host->memory, END_STATUS))
        report_end(liveness, verdict);
    return QUOIT_LIVENESS_LEFT;
}

void quoit_liveness_begin(struct quoit_liveness *liveness)
{
    liveness->has_left = false;
}

enum quoit_liveness_verdict quoit_liveness_step(struct quoit_liveness *liveness, int proxy_fd, uint64_t now_ns)
{
    union quoit_control_body body;
    if (now_ns < liveness->next_ns)
        return QUOIT_LIVENESS_FINE;
    liveness->next_ns = now_ns + LOOK_EVERY_NS;
    if (!find_elsewhere(liveness, &body.elsewhere))
        return QUOIT_LIVENESS_FINE;
    if (liveness->host->layout.host == 0)
        return report_left(liveness, &body.elsewhere);
    offer(proxy_fd, 0, QUOIT_CONTROL_ELSEWHERE, &body); /* again and again, until the job ends */
    return QUOIT_LIVENESS_FINE;
}

static bool has_leaver(const struct quoit_liveness *liveness)
{
    for (uint32_t pe = 0; pe < liveness->host->layout.local_count; pe++)
        if (word(liveness, pe) == QUOIT_BOOT_LEAVING)
            return true;
    return false;
}

/* All PEs of this host sleep in a routine: those of the others may, too. */
static bool may_hang(const struct quoit_liveness *liveness)
{
    for (uint32_t pe = 0; pe < liveness->host->layout.local_count; pe++)
        if (!__atomic_load_n(&record(liveness, pe)->waiting_in[0], __ATOMIC_RELAXED))
            return false;
    return true;
}

static enum quoit_liveness_verdict take_answer(struct quoit_liveness *liveness, uint32_t host,
                                               const struct quoit_rounds_answer *answer)
{
    struct quoit_rounds *rounds = &liveness->rounds;
    bool is_last = quoit_rounds_take(rounds, host, answer, sizeof *answer) && !rounds->is_open;
    return is_last ? conclude(liveness) : QUOIT_LIVENESS_FINE;
}

static enum quoit_liveness_verdict begin_round(struct quoit_liveness *liveness, int proxy_fd, uint64_t now_ns)
{
    struct quoit_rounds *rounds = &liveness->rounds;
    struct quoit_rounds_answer own;
    quoit_rounds_begin(rounds, liveness->host->layout.job.host_count, now_ns);
    liveness->is_due = false;
    const union quoit_control_body body = {.question = rounds->question};
    if (proxy_fd >= 0)
        offer(proxy_fd, QUOIT_CONTROL_TO_ALL, QUOIT_CONTROL_STILL, &body);
    look(liveness, &rounds->question, &own);
    return take_answer(liveness, 0, &own);
}

enum quoit_liveness_verdict quoit_liveness_ask(struct quoit_liveness *liveness, int proxy_fd, uint64_t now_ns)
{
    bool is_first = liveness->host->layout.host == 0;
    uint64_t apart_ns = liveness->rounds.is_open ? GIVE_UP_NS : QUOIT_ROUNDS_APART_NS;
    if ((liveness->asked_ns && now_ns < liveness->asked_ns + apart_ns) ||
        !(liveness->is_due || has_leaver(liveness) || (is_first && may_hang(liveness))))
        return QUOIT_LIVENESS_FINE;
    liveness->asked_ns = now_ns;
    if (is_first)
        return begin_round(liveness, proxy_fd, now_ns);
    offer(proxy_fd, 0, QUOIT_CONTROL_LEAVING, NULL);
    return QUOIT_LIVENESS_FINE;
}

static void answer(const struct quoit_liveness *liveness, int proxy_fd, const struct quoit_rounds_question *question)
{
    union quoit_control_body body = {0};
    if (question->lock_count > QUOIT_ROUNDS_LOCKS_MAX)
        return;
    look(liveness, question, &body.answer);
    offer(proxy_fd, 0, QUOIT_CONTROL_STILL_SEEN, &body);
}

enum quoit_liveness_verdict quoit_liveness_take(struct quoit_liveness *liveness, int proxy_fd, uint32_t host,
                                                enum quoit_control_kind kind, const union quoit_control_body *body)
{
    switch (kind) {
    case QUOIT_CONTROL_STILL:
        answer(liveness, proxy_fd, &body->question);
        break;
    case QUOIT_CONTROL_STILL_SEEN:
        return take_answer(liveness, host, &body->answer);
    case QUOIT_CONTROL_LEFT:
        liveness->has_left = true;
        liveness->left = body->left;
        break;
    case QUOIT_CONTROL_ELSEWHERE:
        return report_left(liveness, &body->elsewhere);
    default:
        liveness->is_due = true;
    }
    return QUOIT_LIVENESS_FINE;
}

bool quoit_liveness_take_silence(struct quoit_liveness *liveness, uint32_t by,
                                 const struct quoit_control_silence *found)
{
    const struct quoit_hosts *hosts = liveness->hosts;
    const struct quoit_boot *own = liveness->host;
    struct quoit_silences *silences = &liveness->silences;
    uint64_t now_ns = quoit_clock_now_ns();
    char who[QUOIT_HOSTS_TEXT_BYTES + 8], text[QUOIT_SILENCE_TEXT_BYTES];
    if (found->host >= hosts->count)
        return true;
    quoit_silences_take(silences, by, found, now_ns);
    if (quoit_silence_reporter(found->host) != own->layout.host)
        return false;
    enum quoit_silence_line line = quoit_silences_due(silences, found->host, false, 0, now_ns);
    if (line == QUOIT_SILENCE_NO_LINE || quoit_ended_decision(own->memory) >= 0)
        return true;
    snprintf(who, sizeof who, "host %s", hosts->list[found->host].name);
    quoit_silence_text(&silences->hosts[found->host], line, who, "QUOIT_NETWORK_LIMIT", own->network.network_limit_ns,
                       now_ns, text);
    quoit_ended_line("%s", text);
    return true;
}
