/* SPDX-License-Identifier: BSD-3-Clause */
/* interpreter.h - the line of a program in Python that is in a call of this library. */
#ifndef QUOIT_BOOT_INTERPRETER_H
#define QUOIT_BOOT_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "host/pe_record.h"

#define QUOIT_INTERPRETER_LIMIT_NS 2000000000u /* of a line; a loaded machine needs a part of it */

/* Whether a file of Python is of this package, in an installed prefix, a build, or a folder of packages. */
static inline bool quoit_interpreter_is_own(const char *path)
{
    return strstr(path, "/quoit/python/quoit/") || strstr(path, "-packages/quoit/");
}
/* Whether it is no file of the user's: "<frozen runpy>" is of Python's own library, "<string>" is the text after
 * python -c. */
static inline bool quoit_interpreter_is_packaged(const char *path)
{
    return quoit_interpreter_is_own(path) || strstr(path, "/site-packages/") || strstr(path, "/dist-packages/") ||
           strstr(path, "/lib/python3") || strncmp(path, "<frozen ", strlen("<frozen ")) == 0;
}

/* Whether this process is one of Python. */
bool quoit_interpreter_is_there(void);
/* "heat.py:12": of the calling thread the innermost function of the program, which is in no installed package, nor in
 * Python's own library or this package; if there is none, the innermost of another package. By the interpreter of this
 * process, in a forked child, which waits for the interpreter's lock until deadline_ns of quoit_clock_now_ns(). False:
 * there is no line, or the interpreter did not answer. Any thread; in a signal handler, of a process that does not go
 * on afterwards. */
bool quoit_interpreter_line(uint64_t deadline_ns, char text_out[QUOIT_SOURCE_LINE_BYTES]);

#endif
