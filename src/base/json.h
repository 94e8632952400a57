/* SPDX-License-Identifier: BSD-3-Clause */
/* json.h - a streaming JSON writer.
 *
 * Inside an object each item has a name; inside an array and at the top level the name is NULL. The writer adds commas,
 * quotes, escapes and line breaks: items of the outer levels get a line each, deeper ones share a line. The output is
 * one value, followed by a newline when it is an object or array.
 *
 * Threads: a writer belongs to one thread. Errors: stream errors stay in the stream (ferror). Names and texts are
 * copied to the stream before a call returns.
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
/* Closes the innermost open object or array. */
void quoit_json_close(struct quoit_json *json);

void quoit_json_text(struct quoit_json *json, const char *name, const char *text);
__attribute__((format(printf, 3, 4))) void quoit_json_format(struct quoit_json *json, const char *name,
                                                             const char *format, ...);
void quoit_json_count(struct quoit_json *json, const char *name, uint64_t value);
/* Prints six significant digits, or null if the value is not finite. */
void quoit_json_number(struct quoit_json *json, const char *name, double value);
void quoit_json_bool(struct quoit_json *json, const char *name, bool value);

#endif
