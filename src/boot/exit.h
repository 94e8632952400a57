/* SPDX-License-Identifier: BSD-3-Clause */
/* exit.h - shmem_global_exit: ends the job, and this process as exit does.
 *
 * The launcher is informed first. oshrun ends the other PEs at once; under other launchers they end with this process,
 * since some launchers kill the rest of a job as soon as one process has ended. Then the exit handlers, the destructors
 * of static objects and the streams of this process run, in the calling thread, for at most QUOIT_EXIT_LIMIT_NS: they
 * may wait for PEs that are no longer there, or for a lock that the thread itself holds, if a signal handler called.
 *
 * Threads: any. Of several, and of several calls of one (an exit handler may call too), the first decides the status.
 */
#ifndef QUOIT_BOOT_EXIT_H
#define QUOIT_BOOT_EXIT_H

#include "boot/boot.h"

#define QUOIT_EXIT_LIMIT_NS 30000000000u

/* Does not return. `boot` may be one that was not started: then there is nobody to inform. */
__attribute__((noreturn)) void quoit_exit_job(struct quoit_boot *boot, int status);
/* Whether this process is in quoit_exit_job. If so, and in another thread than the caller's, does not return: the
 * process ends under the caller. */
bool quoit_exit_has_begun(const struct quoit_boot *boot);

#endif
