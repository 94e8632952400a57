/* SPDX-License-Identifier: BSD-3-Clause */
/* help.h - what oshrun tells of itself, made from the table of options. */
#ifndef OSHRUN_HELP_H
#define OSHRUN_HELP_H

#include "plan.h"

/* Answers --help, --version, --options, --man-options: see plan_is_question. */
void help_answer(const struct plan *plan);

#endif
