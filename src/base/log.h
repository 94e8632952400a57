/* SPDX-License-Identifier: BSD-3-Clause */
/* log.h - log lines on stderr, for people who debug Quoit. Lowercase, values after a space.
 *
 * A line is one write(2), so lines of several processes never interleave. Any thread may log. The user's mistakes, and
 * anything that ends the process, go through quoit_say, which ignores the log level.
 */
#ifndef QUOIT_BASE_LOG_H
#define QUOIT_BASE_LOG_H

#include <stdarg.h>

enum quoit_log_level { QUOIT_LOG_ERROR, QUOIT_LOG_WARN, QUOIT_LOG_INFO, QUOIT_LOG_DEBUG };

/* Sets the most verbose level that is printed (initially WARN) and the prefix of each line: `who` ("PE 3", "host 2",
 * "oshrun") is copied and cut at 31 bytes. */
void quoit_log_setup(enum quoit_log_level level, const char *who);
int quoit_log_is_on(enum quoit_log_level level);
void quoit_log_line(enum quoit_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define quoit_log(level, ...)                                                                                          \
    do {                                                                                                               \
        if (quoit_log_is_on(level))                                                                                    \
            quoit_log_line(level, __VA_ARGS__);                                                                        \
    } while (0)

/* Writes "prefix: text\n" to stderr as one line, whatever the log level. */
void quoit_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void quoit_say_va(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

#endif
