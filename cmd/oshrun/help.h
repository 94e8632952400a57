/* SPDX-License-Identifier: BSD-3-Clause */
/* help.h - help and manual texts, made from the options table. */
#ifndef OSHRUN_HELP_H
#define OSHRUN_HELP_H

#include "plan.h"

/* Handles --help, --version, --options, --man-options: see plan_is_question. */
void help_answer(const struct plan *plan);

#endif
