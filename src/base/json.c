/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/json.h"
#include "base/assert.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#define LINE_DEPTH 3 /* containers up to this depth put each item on its own line */

void quoit_json_start(struct quoit_json *json, FILE *out)
{
    *json = (struct quoit_json){.out = out};
}

static void put_quoted(FILE *out, const char *text)
{
    putc('"', out);
    for (; *text; text++) {
        if ((unsigned char)*text < ' ') {
            fprintf(out, "\\u%04x", (unsigned)(unsigned char)*text);
            continue;
        }
        if (*text == '"' || *text == '\\')
            putc('\\', out);
        putc(*text, out);
    }
    putc('"', out);
}

static void put_line(struct quoit_json *json)
{
    fprintf(json->out, "\n%*s", 2 * (int)json->depth, "");
}

/* Writes the separator, indentation and name that precede a value. */
static void begin_item(struct quoit_json *json, const char *name)
{
    uint32_t depth = json->depth;
    quoit_assert((name != NULL) == json->is_object[depth]);
    if (json->has_item[depth])
        putc(',', json->out);
    if (depth > 0 && depth <= LINE_DEPTH)
        put_line(json);
    else if (json->has_item[depth])
        putc(' ', json->out);
    json->has_item[depth] = true;
    if (name) {
        put_quoted(json->out, name);
        fputs(": ", json->out);
    }
}

static void open_level(struct quoit_json *json, const char *name, bool is_object)
{
    quoit_assert(json->depth + 1 < QUOIT_JSON_DEPTH_MAX);
    begin_item(json, name);
    putc(is_object ? '{' : '[', json->out);
    json->depth++;
    json->has_item[json->depth] = false;
    json->is_object[json->depth] = is_object;
}

void quoit_json_open_object(struct quoit_json *json, const char *name)
{
    open_level(json, name, true);
}

void quoit_json_open_array(struct quoit_json *json, const char *name)
{
    open_level(json, name, false);
}

void quoit_json_close(struct quoit_json *json)
{
    quoit_assert(json->depth > 0);
    bool is_object = json->is_object[json->depth];
    bool is_on_lines = json->depth <= LINE_DEPTH && json->has_item[json->depth];
    json->depth--;
    if (is_on_lines)
        put_line(json);
    putc(is_object ? '}' : ']', json->out);
    if (json->depth == 0)
        putc('\n', json->out);
}

void quoit_json_text(struct quoit_json *json, const char *name, const char *text)
{
    begin_item(json, name);
    put_quoted(json->out, text);
}

void quoit_json_format(struct quoit_json *json, const char *name, const char *format, ...)
{
    char *text;
    va_list list;
    va_start(list, format);
    int length = vasprintf(&text, format, list);
    va_end(list);
    quoit_assert(length >= 0);
    quoit_json_text(json, name, text);
    free(text);
}

void quoit_json_count(struct quoit_json *json, const char *name, uint64_t value)
{
    begin_item(json, name);
    fprintf(json->out, "%llu", (unsigned long long)value);
}

void quoit_json_number(struct quoit_json *json, const char *name, double value)
{
    begin_item(json, name);
    if (isfinite(value))
        fprintf(json->out, "%.6g", value);
    else
        fputs("null", json->out);
}

void quoit_json_bool(struct quoit_json *json, const char *name, bool value)
{
    begin_item(json, name);
    fputs(value ? "true" : "false", json->out);
}
