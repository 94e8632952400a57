/* SPDX-License-Identifier: BSD-3-Clause */
/* own_file.h - the file that holds this code: libshmem or another of our shared objects, or a program that is linked
 * with them statically. What is installed with it lies at places relative to it. Threads: any.
 */
#ifndef QUOIT_ENV_OWN_FILE_H
#define QUOIT_ENV_OWN_FILE_H

#include <limits.h>
#include <stdbool.h>

/* Its path. False: it cannot be found, and path_out is "". */
bool quoit_own_file(char path_out[PATH_MAX]);
/* Whether it is the program, not a shared object of it. */
bool quoit_own_is_program(void);

#endif
