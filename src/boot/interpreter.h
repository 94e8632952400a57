/* SPDX-License-Identifier: BSD-3-Clause */
/* interpreter.h - the line of a program in Python that is in a call of this library. */
#ifndef QUOIT_BOOT_INTERPRETER_H
#define QUOIT_BOOT_INTERPRETER_H

#include <stdbool.h>
#include <stdint.h>

#define QUOIT_INTERPRETER_TEXT_BYTES 96

/* "heat.py:12": of the calling thread the innermost function that is in no installed package. By the interpreter of
 * this process, in a forked child, which waits for the interpreter's lock until deadline_ns of quoit_clock_now_ns().
 * False: there is none, or it does not say. Any thread. */
bool quoit_interpreter_line(uint64_t deadline_ns, char text_out[QUOIT_INTERPRETER_TEXT_BYTES]);

#endif
