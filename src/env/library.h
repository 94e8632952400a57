/* SPDX-License-Identifier: BSD-3-Clause */
/* library.h - opens a shared library at run time. Any thread. */
#ifndef QUOIT_ENV_LIBRARY_H
#define QUOIT_ENV_LIBRARY_H

#include <stdbool.h>

/* False in a program that is linked statically. */
bool quoit_library_can_open(void);
/* As dlopen(), whose flags it takes; NULL in a program that is linked statically. dlopen() is looked up by name, since
 * a direct call makes the linker warn in such programs. */
void *quoit_library_open(const char *path, int flags);
/* Why the last one of this thread returned NULL; valid until its next call. */
const char *quoit_library_problem(void);

#endif
