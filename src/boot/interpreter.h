/* SPDX-License-Identifier: BSD-3-Clause */
/* interpreter.h - the line of a program in Python that is in a call of this library. */
#ifndef QUOIT_BOOT_INTERPRETER_H
#define QUOIT_BOOT_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>

#include "host/pe_record.h"

#define QUOIT_INTERPRETER_LIMIT_NS 2000000000u /* of a line; a loaded machine needs a part of it */

/* Whether this process is one of Python. */
bool quoit_interpreter_is_there(void);
/* "heat.py:12": of the calling thread the innermost function of the program, which is in no installed package, nor in
 * Python's own library or this package; if there is none, the innermost of another package. By the interpreter of this
 * process, in a forked child, which waits for the interpreter's lock until deadline_ns of quoit_clock_now_ns(). False:
 * there is no line, or the interpreter did not answer. Any thread; in a signal handler, of a process that does not go
 * on afterwards. */
bool quoit_interpreter_line(uint64_t deadline_ns, char text_out[QUOIT_SOURCE_LINE_BYTES]);

#endif
