/* SPDX-License-Identifier: BSD-3-Clause */
/* ask.h - a text from a forked child, which may hang or die without harm to this process. Any thread. */
#ifndef QUOIT_BOOT_ASK_H
#define QUOIT_BOOT_ASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What `answer` writes to the descriptor, in the child, before its end or deadline_ns of quoit_clock_now_ns(); the
 * child ends when it returns, and is killed then. Ends text_out with 0. False: there was no child. */
bool quoit_ask_child(void (*answer)(void *arg, int fd), void *arg, uint64_t deadline_ns, char *text_out, size_t bytes);

#endif
