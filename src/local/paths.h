/* SPDX-License-Identifier: BSD-3-Clause */
/* paths.h - the copy method between PEs of one host: a table by kind of buffer and size.
 *
 * Up to QUOIT_PATHS_PLAIN_BYTES the method is memcpy, inlined in the API, without a table lookup. Above, each size up
 * to the next power of two has an entry; the last one also serves everything larger. The table is built in, or measured
 * by `quoit tune` and read at start from a file for this machine, or one method is forced for all sizes (--path). A
 * zeroed table is valid: memcpy. The network's loopback can only be forced.
 *
 * The file (tuned.h):
 *     quoit paths 2
 *     machine NAME
 *     processor NAME
 *     heap METHOD METHOD ...             one for each size: up to 128K, 256K, ... 64M and more
 *     globals METHOD METHOD ...
 *
 * Threads: a table is read-only after start.
 * Errors: a file that is malformed or from another machine is described in one line, and the built-in table is used.
 */
#ifndef QUOIT_LOCAL_PATHS_H
#define QUOIT_LOCAL_PATHS_H

#include "local/copy.h"
#include "local/tuned.h"

#define QUOIT_PATHS_PLAIN_BYTES ((size_t)64 << 10) /* above, a call costs under 1 % of the copy */
#define QUOIT_PATHS_SIZE_COUNT  10u                /* 128 KiB to 64 MiB */
#define QUOIT_PATHS_NETWORK     "network"          /* among the methods of --path */

/* Where the object of the other PE lies. */
enum quoit_buffer_kind { QUOIT_BUFFER_HEAP, QUOIT_BUFFER_GLOBALS, QUOIT_BUFFER_KIND_COUNT };
enum quoit_paths_source { QUOIT_PATHS_BUILT_IN, QUOIT_PATHS_TUNED, QUOIT_PATHS_FORCED };

struct quoit_paths {
    size_t plain_bytes;                                              /* memcpy up to this size */
    uint8_t method[QUOIT_BUFFER_KIND_COUNT][QUOIT_PATHS_SIZE_COUNT]; /* enum quoit_copy_method */
    uint8_t source;                                                  /* enum quoit_paths_source */
    bool is_network; /* puts and gets go through the network's loopback instead, whatever the table says */
};

const char *quoit_buffer_kind_name(enum quoit_buffer_kind kind);

/* The largest size of an entry. */
static inline size_t quoit_paths_size(uint32_t index)
{
    return QUOIT_PATHS_PLAIN_BYTES << (index + 1);
}

static inline enum quoit_copy_method quoit_paths_choose(const struct quoit_paths *paths, enum quoit_buffer_kind kind,
                                                        size_t bytes)
{
    if (bytes <= paths->plain_bytes)
        return QUOIT_COPY_MEMCPY;
    uint32_t index = 0;
    while (index + 1 < QUOIT_PATHS_SIZE_COUNT && bytes > quoit_paths_size(index))
        index++;
    return (enum quoit_copy_method)paths->method[kind][index];
}

bool quoit_paths_use(const struct quoit_paths *paths, enum quoit_copy_method method);

void quoit_paths_default(struct quoit_paths *paths);
/* All sizes use this method. */
void quoit_paths_force(struct quoit_paths *paths, enum quoit_copy_method method);
/* All sizes go through the network's loopback. */
void quoit_paths_force_network(struct quoit_paths *paths);
/* Replaces a method by memcpy. */
void quoit_paths_drop(struct quoit_paths *paths, enum quoit_copy_method method);

/* Identifies this machine. One line each. */
struct quoit_paths_machine {
    char name[80];
    char processor[80];
};
void quoit_paths_machine(struct quoit_paths_machine *machine_out);

/* This machine's file, paths.NAME. False: there is no place for it. */
bool quoit_paths_file(const struct quoit_paths_machine *machine, char name_out[QUOIT_TUNED_NAME_BYTES]);
/* False, with the problem described and *paths unchanged, if the text is not a table for this machine. */
bool quoit_paths_parse(struct quoit_paths *paths, const char *text, const struct quoit_paths_machine *machine,
                       char problem_out[QUOIT_TUNED_PROBLEM_BYTES]);

/* The table for --path `choice` ("auto", a method or QUOIT_PATHS_NETWORK). False, with the built-in table and a line
 * for the user in problem_out, if there is a file and it is unusable. */
bool quoit_paths_load(struct quoit_paths *paths, const char *choice, char problem_out[QUOIT_TUNED_PROBLEM_BYTES]);

#endif
