/* SPDX-License-Identifier: BSD-3-Clause */
/* crash.h - the last words of a PE: where it was when SIGSEGV, SIGBUS, SIGFPE, SIGILL or SIGABRT ended it.
 *
 * What it is: handlers for those signals, for which the program has none of its own, on a stack of their own. They
 * write a struct quoit_crash_record for the launcher and let the signal end the process as if they had not been there:
 * same status, same core file. The first crash of a process counts; a child that the program forks writes nothing.
 *
 * A PE that computes says where in the same record when the launcher asks by SIGURG, before it ends the job: it sets
 * is_asked first, and the PE does not go on after the answer.
 *
 * Threads: install once, from one thread. The handler runs in any thread and is async-signal-safe.
 */
#ifndef QUOIT_BOOT_CRASH_H
#define QUOIT_BOOT_CRASH_H

#include "host/pe_record.h"

/* The record goes to `shared`, which must stay mapped until quoit_crash_remove. `call` and `call_from` say where the
 * name of the API routine last entered and its return address stand; both may be NULL. Sets shared->load_base. */
void quoit_crash_install(struct quoit_pe_shared *shared, const char *const *call, void *const *call_from);
/* Before `shared` is unmapped. */
void quoit_crash_remove(void);

#endif
