/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/model.h"
#include "base/options.h"

#include <sched.h>
#include <stddef.h>
#include <string.h>

#define VALUE_MAX 1000000000000u

struct constant {
    const char *name;
    size_t at;
    uint64_t fitted;
    uint64_t from_public;
    const char *meaning;
    const char *source;
    const char *fit;
};

static const struct constant constants[] = {
#define X(name, fitted, from_public, meaning, source, fit)                                                             \
    {#name, offsetof(struct sim_model, name), fitted, from_public, meaning, source, fit},
    SIM_MODEL_TABLE(X)
#undef X
};
#define CONSTANT_COUNT (sizeof constants / sizeof constants[0])

static void set_all(struct sim_model *model, bool is_public)
{
    for (size_t i = 0; i < CONSTANT_COUNT; i++)
        memcpy((char *)model + constants[i].at, is_public ? &constants[i].from_public : &constants[i].fitted,
               sizeof(uint64_t));
}

void sim_model_default(struct sim_model *model)
{
    set_all(model, false);
}

static bool is_in_range(const char *name, uint64_t value)
{
    bool must_be_positive = strcmp(name, "core_count") == 0 || strcmp(name, "piece_bytes") == 0 ||
                            strcmp(name, "poll_ns") == 0 || strcmp(name, "yield_ns") == 0 ||
                            strcmp(name, "slice_ns") == 0 || strcmp(name, "window_memory_mib") == 0;
    if (strcmp(name, "piece_bytes") == 0 && value % 64 != 0)
        return false;
    if ((strcmp(name, "shared_core_count") == 0 || strcmp(name, "network_processor_count") == 0) && value > CPU_SETSIZE)
        return false;
    if (strcmp(name, "jitter_percent") == 0 && value > 100)
        return false;
    if (strcmp(name, "window_memory_mib") == 0 && (value & (value - 1)) != 0)
        return false;
    return value <= VALUE_MAX && (value > 0 || !must_be_positive);
}

bool sim_model_set(struct sim_model *model, const char *text, const char **problem_out)
{
    const char *equals = strchr(text, '=');
    uint64_t value;
    if (strcmp(text, "public") == 0 || strcmp(text, "fitted") == 0) {
        set_all(model, text[0] == 'p');
        return true;
    }
    for (size_t i = 0; i < CONSTANT_COUNT && equals; i++) {
        const char *name = constants[i].name;
        if (strlen(name) != (size_t)(equals - text) || strncmp(name, text, strlen(name)) != 0)
            continue;
        if (!quoit_parse_uint(equals + 1, &value) || !is_in_range(name, value)) {
            *problem_out = "the value is not a whole number in range";
            return false;
        }
        memcpy((char *)model + constants[i].at, &value, sizeof value);
        return true;
    }
    *problem_out =
        equals ? "there is no such constant (see --show-model)" : "it is neither NAME=VALUE nor public or fitted";
    return false;
}

static uint64_t value_of(const struct sim_model *model, const struct constant *constant)
{
    uint64_t value;
    memcpy(&value, (const char *)model + constant->at, sizeof value);
    return value;
}

void sim_model_print(const struct sim_model *model, FILE *out)
{
    for (size_t i = 0; i < CONSTANT_COUNT; i++) {
        const struct constant *one = &constants[i];
        fprintf(out, "%-24s %10llu  %s\n%37spublic %llu: %s\n", one->name, (unsigned long long)value_of(model, one),
                one->meaning, "", (unsigned long long)one->from_public, one->source);
        if (one->fit[0])
            fprintf(out, "%37sfitted %llu: %s\n", "", (unsigned long long)one->fitted, one->fit);
    }
}

void sim_model_write(const struct sim_model *model, struct quoit_json *json, const char *name)
{
    quoit_json_open_object(json, name);
    for (size_t i = 0; i < CONSTANT_COUNT; i++) {
        quoit_json_open_object(json, constants[i].name);
        quoit_json_count(json, "value", value_of(model, &constants[i]));
        quoit_json_count(json, "public", constants[i].from_public);
        quoit_json_count(json, "fitted", constants[i].fitted);
        quoit_json_text(json, "meaning", constants[i].meaning);
        quoit_json_text(json, "source", constants[i].source);
        quoit_json_text(json, "fit", constants[i].fit);
        quoit_json_close(json);
    }
    quoit_json_close(json);
}
