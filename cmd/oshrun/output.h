/* SPDX-License-Identifier: BSD-3-Clause */
/* output.h - forwards the output of the PEs to oshrun's own standard output and error.
 *
 * What it is: a stream for each pipe of a PE, and a sink for each of the two outputs (one for both, if both lead to the
 * same file). Bytes of a stream keep their order. Lines of different streams are never mixed: a stream forwards whole
 * lines, and an unfinished line (a prompt) when all streams are quiet for a moment, after a second, or at the end.
 * Lines are held whole up to 16 MiB in all streams together; what is longer is forwarded in parts, and "[...]" marks
 * where another line comes between.
 *
 * Promises: never blocks, however slow the reader of a sink is; when a sink is full its streams are not read, so that
 * the PEs wait. Errors: a sink records the errno of a failed write: EPIPE when its reader has gone.
 */
#ifndef OSHRUN_OUTPUT_H
#define OSHRUN_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "boot/report.h"
#include "buffer.h"
#include "loop.h"

struct sink {
    struct watch watch;   /* for room to write, only while bytes are pending */
    bool is_always_ready; /* a regular file */
    int error;            /* errno of the failed write; nothing more is written */
    bool is_full;         /* its streams pause */
    struct buffer pending;
    struct stream *open_line; /* the stream that wrote the last line, if it is unfinished */
    struct output *output;
};

struct stream {
    struct watch watch;
    struct sink *sink;
    char *data; /* at most one unfinished line and what one read adds; NULL: it comes from another machine */
    size_t used;
    size_t capacity;
    size_t line_bytes; /* of the unfinished line, that were moved to the sink */
    bool is_cut;       /* the rest of a long line follows */
    const char *tag;   /* begins each line; "" for none. Owned by the caller */
    bool is_open;
    bool is_in_line;           /* the last bytes moved to the sink did not end a line */
    uint64_t partial_since_ns; /* 0: no unfinished line */
};

struct output {
    struct loop *loop;
    struct sink sinks[2];
    struct stream *streams; /* two per PE */
    size_t stream_count;
    size_t open_count;  /* streams before their end of file */
    size_t grown_bytes; /* of all buffers, beyond what each has at first */
    uint64_t last_read_ns;
    uint64_t last_write_ns; /* when a sink last accepted bytes, or last became non-empty */
    /* If it is set, lines, and unfinished ones as above, go there and to no sink; no bytes: the stream has ended. */
    void (*forward)(void *arg, size_t pe, int which, const char *data, size_t bytes);
    void *forward_arg;
    bool is_held; /* nothing is read for now */
};

/* False with errno if memory is short. */
bool output_open(struct output *output, struct loop *loop, size_t stream_count);
/* Begins to read `fd` (non-blocking), the stream of `which` (0 standard output, 1 error) of a PE. */
void output_add(struct output *output, size_t pe, int which, int fd, const char *tag);
/* The same for a stream that comes from another machine, by output_feed. */
void output_expect(struct output *output, size_t pe, int which, const char *tag);
/* Whole lines, or the beginning of one, as the other machine's output forwards them. No bytes: it has ended. */
void output_feed(struct output *output, size_t pe, int which, const char *data, size_t bytes);
/* Whether all sinks accept more. */
bool output_has_room(const struct output *output);
/* Stops reading, or goes on. */
void output_hold(struct output *output, bool is_held);
/* Moves lines that have waited too long to their sinks, and writes to the outputs. Returns when to call again at the
 * latest. */
uint64_t output_step(struct output *output, uint64_t now_ns);
/* errno of standard output, or of error; 0 while both can be written. */
int output_error(const struct output *output);
/* When something was last read, or `now_ns` while bytes wait to be written. */
uint64_t output_last_active_ns(const struct output *output, uint64_t now_ns);
/* How long no sink has accepted its pending bytes; 0: nothing is pending. */
uint64_t output_stuck_ns(const struct output *output, uint64_t now_ns);
/* Text from oshrun itself for standard error, after what is pending there. */
void output_print(struct output *output, const char *text, size_t bytes);
/* The same of a report, which it ends. */
void output_report(struct output *output, struct quoit_report *report);
/* Moves everything read to the sinks and closes the streams that are still open. */
void output_end(struct output *output);
void output_close(struct output *output);

#endif
