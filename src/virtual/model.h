/* SPDX-License-Identifier: BSD-3-Clause */
/* model.h - what a machine costs in virtual time, and the files that describe machines.
 *
 * A model file is text: "about = WORDS", then for each constant of the table a line "NAME = VALUE  # SOURCE", where
 * SOURCE says where the value comes from. Lines that begin with # are comments. Each constant stands there exactly
 * once. Rates are in bytes per second, times have a unit, such as 12.5e9 and 60ns.
 *
 * Threads: any. Errors: false, and one line for the user, with file and line.
 */
#ifndef QUOIT_VIRTUAL_MODEL_H
#define QUOIT_VIRTUAL_MODEL_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#define QUOIT_MODEL_RATE_MAX    1000000000000000ull /* bytes per second */
#define QUOIT_MODEL_TIME_NS_MAX 1000000000ull
#define QUOIT_MODEL_ENDING      ".model"

/* X(name, RATE or TIME, smallest value, meaning) */
#define QUOIT_MODEL_TABLE(X)                                                                                           \
    X(memory_rate, RATE, 1000000, "a copy in a host's memory by one core, bytes per second")                           \
    X(line_latency, TIME, 1, "one core takes a cache line that another one wrote: each put, get and atomic")           \
    X(look_time, TIME, 1, "a PE that polls looks once")                                                                \
    X(link_rate, RATE, 1000000, "one direction of a link, bytes per second")                                           \
    X(link_latency, TIME, 1, "a write through a link, from its begin to its first byte in the neighbour's memory")     \
    X(read_latency, TIME, 1, "a read through a link, there and back")                                                  \
    X(doorbell_time, TIME, 1, "ringing the neighbour: the processor's part")                                           \
    X(request_time, TIME, 1, "a PE makes a request to its host's proxy")                                               \
    X(frame_time, TIME, 1, "a lane takes a frame or a request")

struct quoit_model {
#define X(name, type, least, meaning) uint64_t name;
    QUOIT_MODEL_TABLE(X)
#undef X
};

enum quoit_model_constant {
#define X(name, type, least, meaning) QUOIT_MODEL_OF_##name,
    QUOIT_MODEL_TABLE(X)
#undef X
        QUOIT_MODEL_CONSTANT_COUNT
};

#define QUOIT_MODEL_TEXT_BYTES    256
#define QUOIT_MODEL_PROBLEM_BYTES (PATH_MAX + 512)

struct quoit_model_file {
    struct quoit_model model;
    char path[PATH_MAX];
    char about[QUOIT_MODEL_TEXT_BYTES];
    char source[QUOIT_MODEL_CONSTANT_COUNT][QUOIT_MODEL_TEXT_BYTES];
};

/* The folder of the installed models, found from the running program. False: there is none. */
bool quoit_model_folder(char path_out[PATH_MAX]);
/* Reads an installed model by its name, or the file of this path if it has a slash. */
bool quoit_model_read(const char *name, struct quoit_model_file *file_out, char problem[QUOIT_MODEL_PROBLEM_BYTES]);
/* NAME=VALUE, or NAME=FACTORx of the value now, as memory_rate=2x; several with commas. */
bool quoit_model_set(struct quoit_model_file *file, const char *text, char problem[QUOIT_MODEL_PROBLEM_BYTES]);
/* Of the table, in its order. */
const char *quoit_model_name(enum quoit_model_constant constant);
const char *quoit_model_meaning(enum quoit_model_constant constant);
/* The value with its unit, as a file has it. */
void quoit_model_format(const struct quoit_model *model, enum quoit_model_constant constant, char text[32]);

#endif
