/* SPDX-License-Identifier: BSD-3-Clause */
#include "virtual/model.h"
#include "base/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES     1024
#define MODELS_FOLDER  QUOIT_DATA_FOLDER "/quoit/models"
#define FACTOR_MAX     1000000.0
#define SET_TEXT_BYTES 512

enum type { RATE, TIME };

struct constant {
    const char *name;
    enum type type;
    uint64_t least;
    const char *meaning;
};

static const struct constant constants[] = {
#define X(name, type, least, meaning) {#name, type, least, meaning},
    QUOIT_MODEL_TABLE(X)
#undef X
};

static uint64_t *value_at(struct quoit_model *model, enum quoit_model_constant constant)
{
    uint64_t *const values[] = {
#define X(name, type, least, meaning) &model->name,
        QUOIT_MODEL_TABLE(X)
#undef X
    };
    return values[constant];
}

const char *quoit_model_name(enum quoit_model_constant constant)
{
    return constants[constant].name;
}

const char *quoit_model_meaning(enum quoit_model_constant constant)
{
    return constants[constant].meaning;
}

void quoit_model_format(const struct quoit_model *model, enum quoit_model_constant constant, char text[32])
{
    struct quoit_model copy = *model;
    uint64_t value = *value_at(&copy, constant);
    if (constants[constant].type == RATE)
        snprintf(text, 32, "%.6ge9", (double)value / 1e9);
    else
        snprintf(text, 32, "%lluns", (unsigned long long)value);
}

bool quoit_model_folder(char path_out[PATH_MAX])
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length <= 0)
        return false;
    program[length] = '\0';
    for (int up = 0; up < 2; up++) { /* PREFIX/bin/NAME */
        char *slash = strrchr(program, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    int bytes = snprintf(path_out, PATH_MAX, "%s/%s", program, MODELS_FOLDER);
    return bytes < PATH_MAX && access(path_out, R_OK | X_OK) == 0;
}

/* A name of the table, of this length; QUOIT_MODEL_CONSTANT_COUNT: there is none. */
static enum quoit_model_constant find(const char *name, size_t bytes)
{
    enum quoit_model_constant constant = 0;
    while (constant < QUOIT_MODEL_CONSTANT_COUNT &&
           (strlen(constants[constant].name) != bytes || strncmp(constants[constant].name, name, bytes) != 0))
        constant++;
    return constant;
}

static void list_names(char *text, size_t bytes)
{
    size_t used = 0;
    for (enum quoit_model_constant i = 0; i < QUOIT_MODEL_CONSTANT_COUNT && used < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i ? ", " : "", constants[i].name);
}

static bool set_value(struct quoit_model *model, enum quoit_model_constant constant, uint64_t value, const char *text,
                      char *problem, size_t bytes)
{
    const struct constant *row = &constants[constant];
    uint64_t most = row->type == RATE ? QUOIT_MODEL_RATE_MAX : QUOIT_MODEL_TIME_NS_MAX;
    if (value < row->least || value > most) {
        const char *unit = row->type == RATE ? " bytes per second" : " ns";
        snprintf(problem, bytes, "%s is %s, but must be from %llu to %llu%s", row->name, text,
                 (unsigned long long)row->least, (unsigned long long)most, unit);
        return false;
    }
    *value_at(model, constant) = value;
    return true;
}

static bool take_value(struct quoit_model *model, enum quoit_model_constant constant, const char *text, char *problem,
                       size_t bytes)
{
    const struct constant *row = &constants[constant];
    uint64_t value;
    bool has_unit = strspn(text, "0123456789.") != strlen(text);
    bool is_value =
        row->type == RATE ? quoit_parse_bytes(text, &value) : has_unit && quoit_parse_duration(text, &value);
    if (!is_value) {
        snprintf(problem, bytes, "%s is \"%s\", but must be %s", row->name, text,
                 row->type == RATE ? "a rate in bytes per second, such as 12.5e9"
                                   : "a time with its unit, such as 60ns");
        return false;
    }
    return set_value(model, constant, value, text, problem, bytes);
}

static char *trim(char *text)
{
    text += strspn(text, " \t\r\n");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        text[--length] = '\0';
    return text;
}

/* One line that is not a comment. */
static bool take_line(struct quoit_model_file *file, char *line, char *problem, size_t bytes)
{
    char *equals = strchr(line, '=');
    if (!equals) {
        snprintf(problem, bytes, "\"%.40s\" is not NAME = VALUE  # SOURCE", line);
        return false;
    }
    *equals = '\0';
    char *name = trim(line), *value = trim(equals + 1);
    if (strcmp(name, "about") == 0) {
        snprintf(file->about, sizeof file->about, "%s", value);
        return true;
    }
    char *mark = strchr(value, '#');
    char *source = mark ? trim(mark + 1) : "";
    enum quoit_model_constant constant = find(name, strlen(name));
    if (mark)
        *mark = '\0';
    if (constant == QUOIT_MODEL_CONSTANT_COUNT) {
        char names[256];
        list_names(names, sizeof names);
        snprintf(problem, bytes, "there is no constant %.40s; there is: %s", name, names);
    } else if (file->source[constant][0]) {
        snprintf(problem, bytes, "%s stands there twice", name);
    } else if (!source[0]) {
        snprintf(problem, bytes, "%s has no source: # and where the value is from, behind it", name);
    } else {
        snprintf(file->source[constant], QUOIT_MODEL_TEXT_BYTES, "%s", source);
        return take_value(&file->model, constant, trim(value), problem, bytes);
    }
    return false;
}

static bool read_lines(FILE *stream, struct quoit_model_file *file, char problem[QUOIT_MODEL_PROBLEM_BYTES])
{
    char line[LINE_BYTES], what[480];
    for (unsigned number = 1; fgets(line, sizeof line, stream); number++) {
        char *text = trim(line);
        if (!text[0] || text[0] == '#' || take_line(file, text, what, sizeof what))
            continue;
        snprintf(problem, QUOIT_MODEL_PROBLEM_BYTES, "%s:%u: %s", file->path, number, what);
        return false;
    }
    for (enum quoit_model_constant i = 0; i < QUOIT_MODEL_CONSTANT_COUNT; i++)
        if (!file->source[i][0]) {
            snprintf(problem, QUOIT_MODEL_PROBLEM_BYTES, "%s: %s is missing (%s)", file->path, constants[i].name,
                     constants[i].meaning);
            return false;
        }
    return true;
}

bool quoit_model_read(const char *name, struct quoit_model_file *file_out, char problem[QUOIT_MODEL_PROBLEM_BYTES])
{
    char folder[PATH_MAX] = "";
    bool is_path = strchr(name, '/') != NULL;
    *file_out = (struct quoit_model_file){.path = ""};
    if (!is_path && !quoit_model_folder(folder)) {
        snprintf(problem, QUOIT_MODEL_PROBLEM_BYTES, "the folder of the models, %s, is not below this program's prefix",
                 MODELS_FOLDER);
        return false;
    }
    int bytes = snprintf(file_out->path, PATH_MAX, "%s%s%s%s", folder, is_path ? "" : "/", name,
                         is_path ? "" : QUOIT_MODEL_ENDING);
    FILE *stream = bytes < PATH_MAX ? fopen(file_out->path, "re") : NULL;
    if (!stream && !is_path && errno == ENOENT)
        snprintf(problem, QUOIT_MODEL_PROBLEM_BYTES,
                 "there is no model %.64s (quoit model list prints them; the path of a file has a slash)", name);
    else if (!stream)
        snprintf(problem, QUOIT_MODEL_PROBLEM_BYTES, "cannot read %.256s: %s", name, strerror(errno));
    if (!stream)
        return false;
    bool is_good = read_lines(stream, file_out, problem);
    fclose(stream);
    return is_good;
}

static bool set_one(struct quoit_model_file *file, const char *text, char problem[QUOIT_MODEL_PROBLEM_BYTES])
{
    const char *equals = strchr(text, '=');
    enum quoit_model_constant constant = equals ? find(text, (size_t)(equals - text)) : QUOIT_MODEL_CONSTANT_COUNT;
    char *end = NULL, names[256];
    if (constant == QUOIT_MODEL_CONSTANT_COUNT) {
        list_names(names, sizeof names);
        snprintf(problem, QUOIT_MODEL_PROBLEM_BYTES, "\"%.64s\" is not NAME=VALUE or NAME=FACTORx of: %s", text, names);
        return false;
    }
    double factor = strtod(equals + 1, &end);
    snprintf(file->source[constant], QUOIT_MODEL_TEXT_BYTES, "--set %.200s", text);
    if (strcmp(end, "x") != 0)
        return take_value(&file->model, constant, equals + 1, problem, QUOIT_MODEL_PROBLEM_BYTES);
    double value = factor > 0 && factor < FACTOR_MAX ? factor * (double)*value_at(&file->model, constant) : 0;
    return set_value(&file->model, constant, (uint64_t)(value + 0.5), equals + 1, problem, QUOIT_MODEL_PROBLEM_BYTES);
}

bool quoit_model_set(struct quoit_model_file *file, const char *text, char problem[QUOIT_MODEL_PROBLEM_BYTES])
{
    char copy[SET_TEXT_BYTES], *rest = NULL;
    if ((size_t)snprintf(copy, sizeof copy, "%s", text) >= sizeof copy) {
        snprintf(problem, QUOIT_MODEL_PROBLEM_BYTES, "the text is longer than %u bytes", SET_TEXT_BYTES - 1);
        return false;
    }
    for (char *one = strtok_r(copy, ",", &rest); one; one = strtok_r(NULL, ",", &rest))
        if (!set_one(file, one, problem))
            return false;
    return true;
}
