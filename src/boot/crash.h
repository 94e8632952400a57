/* SPDX-License-Identifier: BSD-3-Clause */
/* crash.h - records where a PE was when SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT ended it.
 *
 * What it is: handlers on an alternate stack, for those of the signals that the program does not handle itself. A
 * handler writes a struct quoit_crash_record for the launcher, then lets the signal end the process as if there were no
 * handler: same status, same core file. The first crash of a process counts; a forked child writes nothing.
 *
 * A computing PE reports its place in the same record when the launcher asks by SIGURG before it ends the job: the
 * launcher sets is_asked first, and the PE does not continue afterwards.
 *
 * Threads: one thread installs, once. The handler runs in any thread and is async-signal-safe.
 */
#ifndef QUOIT_BOOT_CRASH_H
#define QUOIT_BOOT_CRASH_H

#include "host/pe_record.h"

/* Installs the handlers, which write to `shared`; it must stay mapped until quoit_crash_remove. `call` and `call_from`
 * point to the name and the return address of the API routine last entered; both may be NULL. Sets shared->load_base.
 */
void quoit_crash_install(struct quoit_pe_shared *shared, const char *const *call, void *const *call_from);
/* Has tell(arg) called when a record was written, before the signal ends the process. Async-signal-safe. */
void quoit_crash_tell(void (*tell)(void *arg), void *arg);
/* Removes the handlers, before `shared` is unmapped. */
void quoit_crash_remove(void);

#endif
