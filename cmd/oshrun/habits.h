/* SPDX-License-Identifier: BSD-3-Clause */
/* habits.h - options as users of other launchers spell them.
 *
 * Threads: any.
 */
#ifndef OSHRUN_HABITS_H
#define OSHRUN_HABITS_H

#include "base/options.h"

/* The option that an argument names without its dashes, also in a spelling of other launchers. COUNT: none;
 * *nearest_out is the one that is most like it, or stays as it is. */
enum quoit_option_id habits_find(const char *name, const char **nearest_out);
/* What does here what an option of other launchers does; NULL: it is none of these. */
const char *habits_other(const char *name);

#endif
