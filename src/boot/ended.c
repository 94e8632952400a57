/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/ended.h"
#include "boot/protocol.h"
#include "boot/report.h"
#include "base/text.h"
#include "env/clock.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define DECIDED    0x100u
#define PLACE_NS   1000000000u
#define GRACE_NS   200000000u
#define READ_NS    5000000000u
#define LOOK_NS    5000000u
#define LINE_BYTES 512
#define HOST_BYTES 65

bool quoit_ended_claim(struct quoit_host_header *header, int status)
{
    uint32_t none = 0;
    return atomic_compare_exchange_strong(&header->is_ended, &none, DECIDED | ((uint32_t)status & 0xff));
}

int quoit_ended_decision(const struct quoit_host_header *header)
{
    uint32_t word = atomic_load(&header->is_ended);
    return word ? (int)(word & 0xff) : -1;
}

void quoit_ended_line(const char *format, ...)
{
    char line[LINE_BYTES] = "quoit: ";
    va_list args;
    size_t length = strlen(line);
    va_start(args, format);
    int n = vsnprintf(line + length, sizeof line - length - 1, format, args);
    va_end(args);
    length += n < 0 ? 0 : (size_t)n;
    if (length > sizeof line - 2)
        length = sizeof line - 2;
    quoit_text_clean(line, length); /* PEs can write control sequences into the names in it */
    line[length++] = '\n';
    if (write(STDERR_FILENO, line, length) < 0)
        return; /* standard error is closed */
}

/* What was written to standard error and has not been read. */
static bool has_unread(void)
{
    struct stat status;
    int count = 0;
    if (fstat(STDERR_FILENO, &status) != 0)
        return false;
    bool is_known = S_ISFIFO(status.st_mode)   ? ioctl(STDERR_FILENO, FIONREAD, &count) == 0
                    : S_ISSOCK(status.st_mode) ? ioctl(STDERR_FILENO, TIOCOUTQ, &count) == 0
                                               : false;
    return is_known && count > 0;
}

void quoit_ended_pause(void)
{
    uint64_t until_ns = quoit_clock_now_ns() + READ_NS;
    quoit_clock_sleep_ns(GRACE_NS);
    while (has_unread() && quoit_clock_now_ns() < until_ns)
        quoit_clock_sleep_ns(LOOK_NS);
}

int quoit_ended_status(struct quoit_pe_shared *shared)
{
    /* Pairs with quoit_client_leave_word. */
    uint32_t kind = atomic_load_explicit(&shared->unsent_kind, memory_order_acquire);
    if (kind == QUOIT_BOOT_ABORT || kind == QUOIT_BOOT_EXITED)
        return (int)(shared->unsent_status & 0xff);
    uint32_t signal_number = atomic_load_explicit(&shared->crash.signal, memory_order_acquire);
    return signal_number ? 128 + (int)(signal_number & 0x7f) : 1;
}

/* As waitpid() would have it. */
static int wait_status_of(struct quoit_pe_shared *shared)
{
    int signal_number = (int)atomic_load_explicit(&shared->crash.signal, memory_order_acquire);
    if (atomic_load_explicit(&shared->unsent_kind, memory_order_acquire) == QUOIT_BOOT_EXITED)
        return W_EXITCODE(quoit_ended_status(shared), 0);
    return signal_number ? W_EXITCODE(0, signal_number) : QUOIT_REPORT_STATUS_NONE;
}

bool quoit_ended_report(uint32_t pe, const char *host, struct quoit_pe_shared *shared, pid_t process)
{
    struct quoit_report report;
    char link[32], program[PATH_MAX];
    if (atomic_load_explicit(&shared->unsent_kind, memory_order_acquire) == QUOIT_BOOT_ABORT ||
        !quoit_report_open(&report, "quoit"))
        return false;
    snprintf(link, sizeof link, "/proc/%d/exe", (int)process);
    ssize_t length = process ? readlink(link, program, sizeof program - 1) : 0;
    program[length > 0 ? length : 0] = '\0';
    const struct quoit_report_pe known = {.pe = pe,
                                          .host = host,
                                          .wait_status = wait_status_of(shared),
                                          .has_begun = true,
                                          .shared = shared,
                                          .executable = program[0] ? program : NULL};
    quoit_report_failed(&report, &known, quoit_clock_now_ns() + PLACE_NS);
    quoit_report_print(&report);
    return true;
}

void quoit_ended_report_absent(const char *kind, const char *name)
{
    char text[HOST_BYTES + 32];
    struct quoit_report report;
    snprintf(text, sizeof text, "%s %s", kind, name);
    if (!quoit_report_open(&report, "quoit"))
        return;
    quoit_report_no_init(&report, text, "others");
    quoit_report_ended(&report, 1);
    quoit_report_print(&report);
}

void quoit_ended_report_awaited(const struct quoit_awaited *awaited, const char *who, const char *deed,
                                uint64_t waited_ns, bool hangs)
{
    char text[QUOIT_REPORT_AWAITED_BYTES];
    struct quoit_report report;
    quoit_report_describe_awaited(who, (int32_t)awaited->process, hangs ? "" : ", which", deed, waited_ns, text);
    if (!quoit_report_open(&report, "quoit"))
        return;
    if (hangs) {
        quoit_report_hangs(&report, text);
        quoit_report_ended(&report, 1);
    } else {
        quoit_report_awaited(&report, text, quoit_await_state_text(&awaited->facts), awaited->count - 1);
    }
    quoit_report_print(&report);
}

void quoit_ended_report_agent(void)
{
    char host[HOST_BYTES];
    if (gethostname(host, sizeof host) != 0)
        host[0] = '\0';
    host[sizeof host - 1] = '\0';
    quoit_ended_line("the agent of host %s ended before its PEs; the job was ended [Q0240]", host);
}
