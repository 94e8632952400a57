/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/report.h"
#include "base/text.h"
#include "boot/place.h"
#include "env/libc.h"

#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CODE_COLUMN    80
#define SENTENCE_BYTES 1280 /* a PE's own text is up to 1024 */

bool quoit_report_open(struct quoit_report *report, const char *speaker)
{
    *report = (struct quoit_report){.speaker = speaker};
    report->out = open_memstream(&report->text, &report->bytes);
    return report->out != NULL;
}

void quoit_report_close(struct quoit_report *report)
{
    if (!report->out)
        return;
    fclose(report->out);
    report->out = NULL;
    if (report->text)
        quoit_text_clean(report->text, report->bytes);
}

void quoit_report_print(struct quoit_report *report)
{
    quoit_report_close(report);
    for (size_t done = 0; report->text && done < report->bytes;) {
        ssize_t n = write(STDERR_FILENO, report->text + done, report->bytes - done);
        if (n <= 0) /* standard error is closed */
            break;
        done += (size_t)n;
    }
    free(report->text);
    report->text = NULL;
}

void quoit_report_line(struct quoit_report *report, const char *code, const char *format, ...)
{
    char text[SENTENCE_BYTES];
    va_list args;
    if (!report->out)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int used = fprintf(report->out, "%s: ", report->speaker);
    fprintf(report->out, "%-*s [%s]\n", CODE_COLUMN - used, text, code);
}

void quoit_report_ended(const struct quoit_report *report, int status)
{
    if (report->out)
        fprintf(report->out, "  the job was ended, status %d\n", status);
}

static const struct quoit_crash_record *crash_of(const struct quoit_report_pe *pe)
{
    bool has_crashed = pe->shared && atomic_load_explicit(&pe->shared->crash.signal, memory_order_acquire) != 0;
    return has_crashed ? &pe->shared->crash : NULL;
}

/* "at solve() stencil.c:88, in shmem_putmem" */
static void write_crash_place(FILE *out, const struct quoit_report_pe *pe, const struct quoit_crash_record *crash,
                              uint64_t until_ns)
{
    struct quoit_place place = {.line = ""};
    char call[QUOIT_CALL_NAME_BYTES];
    uint64_t base = atomic_load(&pe->shared->load_base);
    uint64_t address = crash->instruction - base - (crash->is_inside ? 1 : 0); /* a call precedes its return address */
    bool is_in_program = crash->instruction > base && pe->executable;
    if (is_in_program)
        quoit_place_find(pe->executable, &address, 1, until_ns, &place);
    snprintf(call, sizeof call, "%.*s", (int)sizeof call - 1, crash->call);
    bool is_in_call = crash->is_inside && crash->call_from == crash->instruction;
    if (!is_in_program)
        return;
    if (place.function[0] || place.line[0])
        fprintf(out, "  at %s%s%s%s", place.function, place.function[0] ? "()" : "",
                place.function[0] && place.line[0] ? " " : "", place.line);
    else
        fprintf(out, "  at 0x%llx of %s", (unsigned long long)address, pe->executable);
    if (call[0])
        fprintf(out, ", %s %s", is_in_call ? "in" : "after", call);
    fprintf(out, "\n");
}

void quoit_report_killed(struct quoit_report *report, const struct quoit_report_pe *pe, int signal_number,
                         uint64_t until_ns)
{
    const struct quoit_crash_record *crash = crash_of(pe);
    const char *name = quoit_signal_name(signal_number);
    char address[48] = "";
    if (!report->out)
        return;
    if (crash && (signal_number == SIGSEGV || signal_number == SIGBUS))
        snprintf(address, sizeof address, " (address 0x%llx)", (unsigned long long)crash->fault_address);
    if (signal_number == SIGKILL)
        snprintf(address, sizeof address, " (kill -9, or memory ran out)");
    quoit_report_line(report, "Q0201", "PE %u on %s was killed by SIG%s%s", pe->pe, pe->host, name, address);
    if (crash)
        write_crash_place(report->out, pe, crash, until_ns);
}

void quoit_report_failed(struct quoit_report *report, const struct quoit_report_pe *pe, uint64_t until_ns)
{
    const struct quoit_crash_record *crash = crash_of(pe);
    bool is_known = pe->wait_status != QUOIT_REPORT_STATUS_NONE;
    int status = is_known && WIFEXITED(pe->wait_status) ? WEXITSTATUS(pe->wait_status) : 0;
    if (is_known && WIFSIGNALED(pe->wait_status))
        quoit_report_killed(report, pe, WTERMSIG(pe->wait_status), until_ns);
    else if (crash && status == 128 + (int)crash->signal) /* a shell is in between */
        quoit_report_killed(report, pe, (int)crash->signal, until_ns);
    else if (!is_known)
        quoit_report_line(report, "Q0203", "PE %u on %s ended before shmem_finalize: killed, or by _exit or exec",
                          pe->pe, pe->host);
    else if (status == 0)
        quoit_report_line(report, "Q0203", "PE %u on %s ended with status 0, but without shmem_finalize", pe->pe,
                          pe->host);
    else
        quoit_report_line(report, "Q0202", "PE %u on %s exited with status %d%s", pe->pe, pe->host, status,
                          pe->has_begun ? " before shmem_finalize" : "");
}

void quoit_report_no_init(struct quoit_report *report, const char *ended, const char *waiting)
{
    quoit_report_line(report, "Q0204", "%s ended without shmem_init, in which %s waited", ended, waiting);
}

static const char *const leaving_texts[] = {
    [QUOIT_REPORT_LEFT_SOMEHOW] = "shmem_finalize, exit(0) or return from main",
    [QUOIT_REPORT_LEFT_BY_CALL] = "shmem_finalize",
    [QUOIT_REPORT_LEFT_BY_EXIT] = "exit(0) or return from main",
};

void quoit_report_left(struct quoit_report *report, enum quoit_report_left why, uint32_t pe, const char *host,
                       enum quoit_report_leaving how)
{
    static const struct {
        const char *code, *text;
    } whys[] = {
        [QUOIT_REPORT_LEFT_ELSEWHERE] = {"Q0209", "while others were elsewhere"},
        [QUOIT_REPORT_LEFT_LOCK] = {"Q0242", "with a lock for which others wait"},
        [QUOIT_REPORT_LEFT_POLLED] = {"Q0244", "and the others do nothing but wait or poll for what no PE will write"},
    };
    quoit_report_line(report, whys[why].code, "PE %u on %s left the job by %s %s", pe, host, leaving_texts[how],
                      whys[why].text);
}

void quoit_report_leaver(struct quoit_report *report, uint32_t pe, const char *host, enum quoit_report_leaving how,
                         bool has_polls, uint64_t still_ns)
{
    quoit_report_line(
        report, "Q0220",
        "warning: PE %u on %s waits in shmem_finalize%s, the others wait elsewhere%s, and nothing has moved for %u s",
        pe, host, how == QUOIT_REPORT_LEFT_BY_EXIT ? ", by exit(0) or return from main" : "",
        has_polls ? " or do nothing but poll" : "", (unsigned)(still_ns / 1000000000u));
}

void quoit_report_place(const struct quoit_report *report, const char *pes, bool is_one, bool goes_on, const char *call,
                        const char *place, const char *more)
{
    static const char *const verbs[2][2] = {{"were", "was"}, {"are", "is"}};
    if (!report->out)
        return;
    fprintf(report->out, "  %s %s %s%s", pes, verbs[goes_on][is_one], call[0] ? "waiting in " : "running", call);
    if (place[0])
        fprintf(report->out, " (%s)", place);
    fprintf(report->out, "%s", more);
}

void quoit_report_describe_awaited(const char *who, int32_t process, const char *joint, const char *deed,
                                   uint64_t waited_ns, char text_out[QUOIT_REPORT_AWAITED_BYTES])
{
    char number[32] = "";
    if (process)
        snprintf(number, sizeof number, " (process %d)", (int)process);
    snprintf(text_out, QUOIT_REPORT_AWAITED_BYTES, "%.200s%s%s %s after %llu s", who, number, joint, deed,
             (unsigned long long)(waited_ns / 1000000000u));
}

void quoit_report_awaited(struct quoit_report *report, const char *awaited, const char *state, uint32_t more_count)
{
    char more[32] = "";
    if (more_count > 0)
        snprintf(more, sizeof more, "; and for %u more", more_count);
    quoit_report_line(report, "Q0237", QUOIT_REPORT_AWAITED, awaited, state, more);
}

void quoit_report_hangs(struct quoit_report *report, const char *awaited)
{
    quoit_report_line(report, "Q0238", "%s; it could run, and has done nothing", awaited);
}
