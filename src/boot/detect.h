/* SPDX-License-Identifier: BSD-3-Clause */
/* detect.h - who has started this process, by its environment: one row of one table a launcher.
 *
 * A launcher that has PMI or PMIx is spoken with by that (exchange.h). One that has started several processes and
 * offers neither would run N jobs of one PE each, with nothing wrong but the results: it is refused, with what helps.
 *
 * Threads: one at a time. Errors: reported to the user before a function returns one.
 */
#ifndef QUOIT_BOOT_DETECT_H
#define QUOIT_BOOT_DETECT_H

#include <stdbool.h>

#include "base/status.h"

/* Whether PE 0 of another launcher's job reports what is wrong for all of them, so that this process need not. */
bool quoit_detect_is_silent(void);
/* Marks the environment: what this process starts, and inherits it, is no PE of its launcher's job. */
void quoit_detect_mark_joined(void);
/* Whether a PE of another launcher's job has started this process, which has inherited the PE's environment. */
bool quoit_detect_is_inherited(void);
/* Whether this process is the PE that has marked the environment, and not a forked child of it. */
bool quoit_detect_has_joined(void);
/* UNSUPPORTED: a launcher that offers neither PMI nor PMIx has started several processes, this one among them. */
QUOIT_MUST_USE enum quoit_status quoit_detect_refuse_unsupported(void);

#endif
