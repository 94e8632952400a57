/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"
#include "base/assert.h"
#include "base/observer.h"
#include "base/text.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 1024
#define WHO_BYTES  32

/* Set once at start, before threads exist. The only file-scope state of this layer: any function must be able to log.
 */
static _Atomic int log_level = QUOIT_LOG_WARN;
static char log_who[WHO_BYTES] = "quoit";

void quoit_log_setup(enum quoit_log_level level, const char *who)
{
    atomic_store(&log_level, level);
    snprintf(log_who, sizeof log_who, "%s", who);
}

int quoit_log_is_on(enum quoit_log_level level)
{
    return (int)level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

static void write_line(char *line, int length)
{
    if (length > LINE_BYTES - 2)
        length = LINE_BYTES - 2;
    quoit_text_clean(line, (size_t)length);
    line[length++] = '\n';
    for (int done = 0; done < length;) {
        ssize_t n = write(STDERR_FILENO, line + done, (size_t)(length - done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return;
        done += (int)n;
    }
}

void quoit_say_va(const char *format, va_list args)
{
    char line[LINE_BYTES];
    int length = snprintf(line, sizeof line, "%s: ", log_who);
    int n = vsnprintf(line + length, sizeof line - (size_t)length, format, args);
    write_line(line, length + (n > 0 ? n : 0));
}

void quoit_say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    quoit_say_va(format, args);
    va_end(args);
}

void quoit_log_line(enum quoit_log_level level, const char *format, ...)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    char text[LINE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    quoit_observe(log_line, level, text);
    quoit_say("%s: %s", names[level], text);
}

void quoit_assert_failed(const char *condition, const char *file, int line)
{
    quoit_observe(assertion, condition, file, line);
    quoit_say("internal error: assertion failed: %s (%s:%d)", condition, file, line);
    abort();
}
