/* SPDX-License-Identifier: BSD-3-Clause */
/* output.h - what the PEs print, on its way to oshrun's own standard output and error.
 *
 * What it is: a stream for each pipe of a PE, and a sink for each of the two outputs (one for both, if both lead to the
 * same file). Bytes of a stream keep their order. Lines of different streams are never mixed: a stream hands over whole
 * lines, and what stays without a newline (a prompt) when all is quiet for a moment, after a second, or at the end.
 *
 * Promises: never blocks, whatever reads the sink; when a sink is full its streams are not read, so that the PEs wait.
 * Errors: a sink that cannot be written keeps the errno: EPIPE when its reader has gone.
 */
#ifndef OSHRUN_OUTPUT_H
#define OSHRUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop.h"

struct sink {
    struct watch watch;   /* for room to write, only while there is something waiting */
    bool is_always_ready; /* a regular file */
    int error;            /* errno of the write that failed; nothing more is written */
    bool is_full;         /* its streams pause */
    char *data;
    size_t begin;
    size_t end;
    size_t capacity;
    struct stream *open_line; /* who wrote the last line, if that has no newline yet */
    struct output *output;
};

struct stream {
    struct watch watch;
    struct sink *sink;
    char *data; /* at most one unfinished line and what one read adds */
    size_t used;
    const char *tag;           /* begins each line; "" for none. Owned by the caller */
    bool is_in_line;           /* the last bytes handed over had no newline at the end */
    uint64_t partial_since_ns; /* 0: no unfinished line */
};

struct output {
    struct loop *loop;
    struct sink sinks[2];
    struct stream *streams; /* two a PE */
    size_t stream_count;
    size_t open_count; /* streams before their end of file */
    uint64_t last_read_ns;
    uint64_t last_write_ns; /* when a sink took something, or began to have something to write */
};

/* False with errno if memory is short. */
bool output_open(struct output *output, struct loop *loop, size_t stream_count);
/* Begins to read `fd` (non-blocking), the stream of `which` (0 standard output, 1 error) of a PE. */
void output_add(struct output *output, size_t pe, int which, int fd, const char *tag);
/* Hands over what waits too long and writes what can be written. Returns when to call again at the latest. */
uint64_t output_step(struct output *output, uint64_t now_ns);
/* errno of standard output, or of error; 0 while both can be written. */
int output_error(const struct output *output);
/* When something was last read, or `now_ns` while something waits to be written. */
uint64_t output_last_active_ns(const struct output *output, uint64_t now_ns);
/* For how long no sink has taken what waits to be written; 0: nothing waits. */
uint64_t output_stuck_ns(const struct output *output, uint64_t now_ns);
/* Text of oshrun's own for standard error, behind what waits there. */
void output_say(struct output *output, const char *text, size_t bytes);
/* Hands over all that has been read and gives up the streams that are open still. */
void output_end(struct output *output);
void output_close(struct output *output);

#endif
