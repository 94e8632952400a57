/* SPDX-License-Identifier: BSD-3-Clause */
/* crash.h - records where a PE was when SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT ended it.
 *
 * What it is: handlers on an alternate stack, for those of the signals that the program does not handle itself. A
 * handler writes a struct quoit_crash_record for the launcher, then lets the signal end the process as if there were no
 * handler: same status, same core file. The first crash of a process counts; a forked child writes nothing.
 *
 * A PE reports its place in the same record when its supervisor asks by SIGURG before it ends the job; it does not
 * continue afterwards. One that computes has its instruction to answer with, a program in Python its line, which the
 * thread that waits finds, if one does.
 *
 * Threads: one thread installs, once. The handler runs in any thread and is async-signal-safe.
 */
#ifndef QUOIT_BOOT_CRASH_H
#define QUOIT_BOOT_CRASH_H

#include <stdbool.h>

#include "host/pe_record.h"

/* Installs the handlers, which write to `shared`; it must stay mapped until quoit_crash_remove. `call` and `call_from`
 * point to the name and the return address of the API routine last entered; both may be NULL. Sets shared->load_base.
 */
void quoit_crash_install(struct quoit_pe_shared *shared, const char *const *call, void *const *call_from);
/* Has notify(arg) called when a record was written, before the signal ends the process. Async-signal-safe. */
void quoit_crash_notify(void (*notify)(void *arg), void *arg);
/* Removes the handlers, before `shared` is unmapped. */
void quoit_crash_remove(void);

/* For the supervisor of a PE, which is about to end the job. _ask: SIGURG to the PE's process is to follow. _await: the
 * answer is there; false: not until until_ns of quoit_clock_now_ns(), since the PE is stopped, or has a handler of its
 * own. A program in Python may need QUOIT_CRASH_LINE_NS; for others a moment is enough. */
#define QUOIT_CRASH_LINE_NS 2500000000u
void quoit_crash_ask(struct quoit_pe_shared *shared);
bool quoit_crash_await(const struct quoit_pe_shared *shared, uint64_t until_ns);
/* The line of the answer, "" if there is none. Of a PE that may have written anything. */
void quoit_crash_line(const struct quoit_pe_shared *shared, char line_out[QUOIT_SOURCE_LINE_BYTES]);

#endif
