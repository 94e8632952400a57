/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/ended.h"
#include "boot/place.h"
#include "boot/protocol.h"
#include "base/text.h"
#include "env/clock.h"
#include "env/libc.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
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

static void say_crash(uint32_t pe, struct quoit_pe_shared *shared, pid_t process, int signal_number)
{
    struct quoit_crash_record crash = {0};
    char where[2 * QUOIT_PLACE_TEXT_BYTES + QUOIT_CALL_NAME_BYTES + 32] = "", address[32] = "";
    uint64_t base = atomic_load(&shared->load_base);
    struct quoit_place place;
    memcpy(crash.call, shared->crash.call, sizeof crash.call - 1);
    uint64_t at = shared->crash.instruction - base - (shared->crash.is_inside ? 1 : 0); /* a call precedes its return */
    if (signal_number == SIGSEGV || signal_number == SIGBUS)
        snprintf(address, sizeof address, " (address 0x%llx)", (unsigned long long)shared->crash.fault_address);
    char program[32];
    snprintf(program, sizeof program, "/proc/%d/exe", (int)process);
    quoit_place_find(shared->crash.instruction && process ? program : NULL, &at, 1, quoit_clock_now_ns() + PLACE_NS,
                     &place);
    if (place.line[0] || crash.call[0])
        snprintf(where, sizeof where, "\n  %s%s%s%s%s%s%s", place.line[0] ? "at " : "", place.function,
                 place.function[0] ? "() " : "", place.line, place.line[0] && crash.call[0] ? ", " : "",
                 crash.call[0] ? (shared->crash.is_inside ? "in " : "after ") : "", crash.call);
    const char *name = quoit_signal_name(signal_number);
    quoit_ended_line("PE %u was killed by SIG%s%s [Q0201]%s", pe, name, address, where);
}

void quoit_ended_say(uint32_t pe, struct quoit_pe_shared *shared, pid_t process)
{
    uint32_t kind = atomic_load_explicit(&shared->unsent_kind, memory_order_acquire);
    int signal_number = (int)atomic_load_explicit(&shared->crash.signal, memory_order_acquire);
    if (kind == QUOIT_BOOT_ABORT)
        return;
    if (kind == QUOIT_BOOT_EXITED)
        quoit_ended_line("PE %u exited with status %d before shmem_finalize; the job was ended [Q0202]", pe,
                         quoit_ended_status(shared));
    else if (signal_number)
        say_crash(pe, shared, process, signal_number);
    else
        quoit_ended_line("PE %u ended before shmem_finalize: killed, or by _exit or exec; the job was ended [Q0203]",
                         pe);
}

void quoit_ended_say_agent(void)
{
    char host[HOST_BYTES];
    if (gethostname(host, sizeof host) != 0)
        host[0] = '\0';
    host[sizeof host - 1] = '\0';
    quoit_ended_line("the agent of host %s ended before its PEs; the job was ended [Q0240]", host);
}
