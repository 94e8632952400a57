/* SPDX-License-Identifier: BSD-3-Clause */
/* help.h - what oshrun tells about itself: all of it made from the table of options. */
#ifndef OSHRUN_HELP_H
#define OSHRUN_HELP_H

#include "plan.h"

/* If the user asked (--help, --version, --options, --man-options), answers on standard output and returns true. */
bool help_answer(const struct plan *plan);

#endif
