/* SPDX-License-Identifier: BSD-3-Clause */
/* json.h - writes JSON, item by item, to a stream.
 *
 * Inside an object each item has a name; inside an array, and at the top, the name is NULL. Commas, quotes, escapes and
 * lines are the writer's: items of the outer levels stand on lines of their own, deeper ones side by side. The text is
 * one value, followed by an end of line when it is an object or array.
 *
 * Threads: one writer is one thread's. Errors: those of the stream stay with the stream (ferror).
 */
#ifndef QUOIT_BASE_JSON_H
#define QUOIT_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define QUOIT_JSON_DEPTH_MAX 16

struct quoit_json {
    FILE *out;
    uint32_t depth;                       /* open objects and arrays */
    bool has_item[QUOIT_JSON_DEPTH_MAX];  /* by depth */
    bool is_object[QUOIT_JSON_DEPTH_MAX]; /* by depth, from 1 */
};

void quoit_json_start(struct quoit_json *json, FILE *out);

void quoit_json_open_object(struct quoit_json *json, const char *name);
void quoit_json_open_array(struct quoit_json *json, const char *name);
/* Closes the innermost that is open. */
void quoit_json_close(struct quoit_json *json);

void quoit_json_text(struct quoit_json *json, const char *name, const char *text);
void quoit_json_text_array(struct quoit_json *json, const char *name, const char *const *texts, size_t count);
__attribute__((format(printf, 3, 4))) void quoit_json_format(struct quoit_json *json, const char *name,
                                                             const char *format, ...);
void quoit_json_count(struct quoit_json *json, const char *name, uint64_t value);
/* With six significant digits; null if it is no finite number. */
void quoit_json_number(struct quoit_json *json, const char *name, double value);
void quoit_json_bool(struct quoit_json *json, const char *name, bool value);

#endif
