/* SPDX-License-Identifier: BSD-3-Clause */
/* program.h - the processes that serve a job beside its PEs, proxies and agents, and the keeper of a ring. Each is
 * oshrun or quoit, or a program that is linked with libshmem.a itself, executed with an option that says which, one
 * socket to who starts it (SOCK_SEQPACKET) and standard error. It has nothing else of that process: no descriptor,
 * thread, signal mask, process group or preloaded library (docs/design/launchers.md).
 */
#ifndef QUOIT_BOOT_PROGRAM_H
#define QUOIT_BOOT_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define QUOIT_PROGRAM_FD      3                  /* its socket */
#define QUOIT_PROGRAM_CARRIED "quoit-in-program" /* the name under which a program executes what it carries */

/* oshrun of the installation that a file, such as a libshmem, is of. False: it stands in none. */
bool quoit_program_find_beside(const char *file, char path_out[PATH_MAX]);
/* oshrun of the installation that this library is of, else that of a folder of PATH that has Quoit. False: there is
 * none, and path_out is the library's file, or "". */
bool quoit_program_find(char path_out[PATH_MAX]);
/* Whether this program carries the agent and the proxy of a host itself, as one that is linked with libshmem.a does. */
bool quoit_program_is_carried(void);
/* Starts `path option` as a child of this process, whose end of the socket goes to *fd_out. path NULL: this program.
 * Returns 0 or an errno; nothing was reported. What the user preloads into the program (LD_PRELOAD, LD_AUDIT) is not
 * loaded there: what it measures or checks is the program. Any thread. */
int quoit_program_spawn(const char *path, const char *option, int *fd_out, pid_t *pid_out);

/* Of the program itself, from its main thread while there is no other: */

/* Whether it was started by quoit_program_spawn; else that is reported [Q0210]. `option`: that it has. */
bool quoit_program_has_starter(const char *option);
/* Forks, and ends the parent, for which its starter waits: so the program is no child of a process whose own code waits
 * for its children. The parent calls publish() with the child's pid before it ends, so that the starter knows it even
 * if the child never runs. False: no fork; errno is set. */
bool quoit_program_leave_starter(void (*publish)(pid_t pid));
/* Has the kernel kill this program when its starter ends, also while it is stopped. A starter that has ended before is
 * no longer its parent. */
void quoit_program_end_with_starter(void);
/* Ignores the signals that launchers send to all processes of a host: what the PEs do with them is theirs, and the
 * program ends after the PEs. */
void quoit_program_ignore_signals(void);

#endif
