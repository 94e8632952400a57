/* SPDX-License-Identifier: BSD-3-Clause */
/* beside.h - programs whose libshmem is of a version that this oshrun does not understand: the oshrun that stands
 * beside that library runs them, so that several versions can be installed, and one that is newer need not be chosen.
 */
#ifndef OSHRUN_BESIDE_H
#define OSHRUN_BESIDE_H

#include "plan.h"

/* Becomes the oshrun beside the programs' libshmem, with the same arguments, if this one does not understand that
 * library, and that one understands the libraries of all programs of the plan. Else it returns: also where a library's
 * version cannot be read before the program runs, such as that of a script; then its HELLO says it (foreign.h). */
void beside_continue(const struct plan *plan, char **argv);

#endif
