/* SPDX-License-Identifier: BSD-3-Clause */
/* terminal.h - the controlling terminal, which at most one PE may use at a time.
 *
 * Keys that send signals reach the foreground process group: oshrun's own, until the PE that may have the terminal (PE
 * 0, or the only one under --debugger) reads from it or changes it. The kernel stops that PE; oshrun makes its group
 * the foreground and continues it. From then on Ctrl-C and Ctrl-Z go to that PE, as in a shell, until it ends. The
 * other PEs have no controlling terminal: they cannot open /dev/tty, so the terminal stops none of them.
 */
#ifndef OSHRUN_TERMINAL_H
#define OSHRUN_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <termios.h>

struct terminal {
    int fd;               /* /dev/tty; -1: there is none */
    pid_t home;           /* the process group of oshrun, as the user's shell knows it */
    uint32_t pe;          /* the PE that may have it */
    pid_t given_to;       /* its process group while it has the terminal; else 0 */
    bool is_wanted;       /* it stopped for lack of the terminal while oshrun was in the background */
    struct termios modes; /* as they were before */
};

void terminal_open(struct terminal *terminal, pid_t home, uint32_t pe);
/* In a PE between fork and exec. */
void terminal_renounce(const struct terminal *terminal);
/* Makes `group` the foreground. False if oshrun itself is in the background. */
bool terminal_give(struct terminal *terminal, pid_t group);
/* Makes oshrun the foreground again, if it was, with the terminal modes from before. */
void terminal_take_back(struct terminal *terminal);

#endif
