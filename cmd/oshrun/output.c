/* SPDX-License-Identifier: BSD-3-Clause */
#include "output.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"

#define STREAM_BYTES    65536u      /* of a stream's buffer, which grows with a longer line */
#define LINES_MAX_BYTES (16u << 20) /* of what all buffers have grown by */
#define CUT_MARK        "[...]"
#define SINK_FULL_BYTES (1u << 20)
#define PARTIAL_NS      200000000u   /* when nothing else is being printed */
#define PARTIAL_MAX_NS  1000000000u  /* although others print */
#define LONG_NS         10000000000u /* of silence in a line that is too long for a prompt: its writer is held up */

static void sink_append(struct sink *sink, const char *data, size_t bytes)
{
    if (bytes == 0 || sink->error)
        return;
    if (buffer_used(&sink->pending) == 0)
        sink->output->last_write_ns = loop_now_ns(sink->output->loop);
    if (!buffer_append(&sink->pending, data, bytes))
        sink->error = ENOMEM;
}

/* Whether a write of up to PIPE_BUF bytes would not block. The descriptor is shared with the process that started
 * oshrun, so it is not made non-blocking. */
static bool sink_has_room(const struct sink *sink)
{
    struct pollfd look = {.fd = sink->watch.fd, .events = POLLOUT};
    return sink->is_always_ready || poll(&look, 1, 0) == 1;
}

static void sink_write(struct sink *sink)
{
    struct buffer *pending = &sink->pending;
    while (buffer_used(pending) > 0 && !sink->error && sink_has_room(sink)) {
        size_t bytes = buffer_used(pending);
        if (!sink->is_always_ready && bytes > PIPE_BUF)
            bytes = PIPE_BUF;
        ssize_t n = write(sink->watch.fd, pending->data + pending->begin, bytes);
        if (n > 0) {
            pending->begin += (size_t)n;
            sink->output->last_write_ns = loop_now_ns(sink->output->loop);
        }
        if (n < 0 && errno == EAGAIN)
            break;
        if (n < 0 && errno != EINTR)
            sink->error = errno;
    }
    if (sink->error)
        pending->begin = pending->end = 0;
}

static void sink_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    sink_write(watch->owner);
}

/* Another line follows an unfinished one: a prompt ends here, a line that did not fit is marked. */
static void sink_break_line(struct sink *sink)
{
    struct stream *stream = sink->open_line;
    stream->is_cut = stream->line_bytes > STREAM_BYTES;
    if (stream->is_cut)
        sink_append(sink, CUT_MARK, strlen(CUT_MARK));
    sink_append(sink, "\n", 1);
    stream->is_in_line = false;
    sink->open_line = NULL;
}

static void sink_begin_line(struct sink *sink, struct stream *stream)
{
    sink_append(sink, stream->tag, strlen(stream->tag));
    if (stream->is_cut)
        sink_append(sink, CUT_MARK, strlen(CUT_MARK));
    stream->is_cut = false;
}

/* Whole lines of a stream, or the beginning of one. */
static void sink_take(struct sink *sink, struct stream *stream, const char *data, size_t bytes)
{
    const char *at = data, *end = data + bytes, *last = memrchr(data, '\n', bytes);
    if (sink->open_line && sink->open_line != stream)
        sink_break_line(sink);
    size_t tag_bytes = strlen(stream->tag);
    while (at < end) {
        const char *newline = tag_bytes ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        const char *next = newline ? newline + 1 : end;
        if (!stream->is_in_line)
            sink_begin_line(sink, stream);
        sink_append(sink, at, (size_t)(next - at));
        stream->is_in_line = next[-1] != '\n';
        at = next;
    }
    stream->line_bytes = last ? (size_t)(end - last - 1) : stream->line_bytes + bytes;
    sink->open_line = stream->is_in_line ? stream : NULL;
}

static void forward(struct output *output, const struct stream *stream, size_t bytes)
{
    size_t index = (size_t)(stream - output->streams);
    output->forward(output->forward_arg, index / 2, (int)(index % 2), stream->data, bytes);
}

/* For a line that is longer than the buffer. */
static void stream_grow(struct stream *stream)
{
    struct output *output = stream->sink->output;
    size_t more = stream->capacity;
    char *data = output->grown_bytes + more <= LINES_MAX_BYTES ? realloc(stream->data, stream->capacity + more) : NULL;
    if (!data)
        return;
    stream->data = data;
    stream->capacity += more;
    output->grown_bytes += more;
}

static void stream_shrink(struct stream *stream)
{
    char *data = stream->capacity > STREAM_BYTES ? realloc(stream->data, STREAM_BYTES) : NULL;
    if (!data)
        return;
    stream->sink->output->grown_bytes -= stream->capacity - STREAM_BYTES;
    stream->data = data;
    stream->capacity = STREAM_BYTES;
}

/* Moves `bytes` of a stream, whole lines or the beginning of one, on. */
static void stream_hand_over(struct stream *stream, size_t bytes)
{
    struct output *output = stream->sink->output;
    if (bytes == 0)
        return;
    if (output->forward) {
        forward(output, stream, bytes);
        stream->is_in_line = stream->data[bytes - 1] != '\n';
    } else {
        sink_take(stream->sink, stream, stream->data, bytes);
    }
    stream->used -= bytes;
    memmove(stream->data, stream->data + bytes, stream->used);
    stream->partial_since_ns = 0;
    if (stream->used < STREAM_BYTES)
        stream_shrink(stream);
}

static void stream_end(struct output *output, struct stream *stream)
{
    if (!stream->is_open)
        return;
    stream->is_open = false;
    stream_hand_over(stream, stream->used);
    if (output->forward)
        forward(output, stream, 0);
    loop_close(output->loop, &stream->watch);
    free(stream->data);
    stream->data = NULL;
    stream->capacity = 0;
    output->open_count--;
}

/* The `bytes` that were read behind what was used. */
static void stream_take(struct stream *stream, size_t bytes)
{
    const char *newline = memrchr(stream->data + stream->used, '\n', bytes);
    stream->used += bytes;
    if (newline)
        stream_hand_over(stream, (size_t)(newline + 1 - stream->data));
    else if (stream->is_in_line)
        stream_hand_over(stream, stream->used);
    else if (stream->used == stream->capacity)
        stream_grow(stream);
    if (stream->used == stream->capacity)
        stream_hand_over(stream, stream->used);
    if (stream->used > 0 && (stream->partial_since_ns == 0 || stream->used > STREAM_BYTES)) /* that is no prompt */
        stream->partial_since_ns = stream->sink->output->last_read_ns;
}

static void stream_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct stream *stream = watch->owner;
    struct output *output = stream->sink->output;
    ssize_t n = read(watch->fd, stream->data + stream->used, stream->capacity - stream->used);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    output->last_read_ns = loop_now_ns(output->loop);
    if (n <= 0)
        stream_end(output, stream);
    else
        stream_take(stream, (size_t)n);
}

bool output_open(struct output *output, struct loop *loop, size_t stream_count)
{
    struct stat facts;
    *output = (struct output){.loop = loop, .stream_count = stream_count};
    output->streams = calloc(stream_count, sizeof *output->streams);
    if (!output->streams)
        return false;
    for (size_t i = 0; i < stream_count; i++)
        output->streams[i].watch.fd = -1;
    for (int i = 0; i < 2; i++) {
        struct sink *sink = &output->sinks[i];
        sink->output = output;
        sink->watch = (struct watch){.fd = i + 1, .events = EPOLLOUT, .ready = sink_ready, .owner = sink};
        sink->is_always_ready = fstat(i + 1, &facts) == 0 && S_ISREG(facts.st_mode);
    }
    return true;
}

/* Both outputs in one file must be one sink, or their lines would mix. */
static struct sink *sink_for(struct output *output, int which)
{
    struct stat out, error;
    bool is_same = fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &error) == 0 && out.st_dev == error.st_dev &&
                   out.st_ino == error.st_ino;
    return &output->sinks[is_same ? 0 : which];
}

void output_expect(struct output *output, size_t pe, int which, const char *tag)
{
    struct stream *stream = &output->streams[pe * 2 + (size_t)which];
    stream->sink = sink_for(output, which);
    stream->tag = tag;
    stream->is_open = true;
    output->open_count++;
}

void output_feed(struct output *output, size_t pe, int which, const char *data, size_t bytes)
{
    struct stream *stream = &output->streams[pe * 2 + (size_t)which];
    if (!stream->is_open)
        return;
    output->last_read_ns = loop_now_ns(output->loop);
    if (bytes == 0)
        stream_end(output, stream);
    else
        sink_take(stream->sink, stream, data, bytes);
}

bool output_has_room(const struct output *output)
{
    return !output->sinks[0].is_full && !output->sinks[1].is_full;
}

/* What a stream still holds of a line has waited for its reader, not for the PE. */
static void stream_pause(struct output *output, struct stream *stream, bool is_paused, uint64_t now_ns)
{
    if (stream->watch.fd >= 0 && is_paused)
        loop_pause(output->loop, &stream->watch);
    else if (stream->watch.fd >= 0)
        loop_add(output->loop, &stream->watch);
    if (!is_paused) {
        stream->partial_since_ns = stream->used ? now_ns : 0;
        output->last_read_ns = now_ns;
    }
}

void output_hold(struct output *output, bool is_held)
{
    for (size_t i = 0; i < output->stream_count && output->is_held != is_held; i++)
        if (output->streams[i].is_open)
            stream_pause(output, &output->streams[i], is_held, loop_now_ns(output->loop));
    output->is_held = is_held;
}

void output_add(struct output *output, size_t pe, int which, int fd, const char *tag)
{
    struct stream *stream = &output->streams[pe * 2 + (size_t)which];
    output_expect(output, pe, which, tag);
    stream->data = malloc(STREAM_BYTES);
    quoit_assert(stream->data);
    stream->capacity = STREAM_BYTES;
    stream->watch = (struct watch){.fd = fd, .events = EPOLLIN, .ready = stream_ready, .owner = stream};
    loop_add(output->loop, &stream->watch);
}

/* Streams of a full sink are not read, until half of it has been written. */
static void regulate(struct output *output, struct sink *sink, uint64_t now_ns)
{
    size_t waiting = buffer_used(&sink->pending);
    bool is_full = sink->is_full ? waiting > SINK_FULL_BYTES / 2 : waiting > SINK_FULL_BYTES;
    if (is_full == sink->is_full)
        return;
    sink->is_full = is_full;
    for (size_t i = 0; i < output->stream_count; i++) {
        struct stream *stream = &output->streams[i];
        if (stream->is_open && stream->sink == sink)
            stream_pause(output, stream, is_full, now_ns);
    }
}

uint64_t output_step(struct output *output, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    for (size_t i = 0; i < output->stream_count; i++) {
        struct stream *stream = &output->streams[i];
        if (stream->partial_since_ns == 0 || stream->sink->is_full || output->is_held)
            continue; /* who does not take more delays the rest of the line */
        bool is_long = stream->used > STREAM_BYTES;
        uint64_t due_ns = output->last_read_ns + PARTIAL_NS;
        if (is_long || due_ns > stream->partial_since_ns + PARTIAL_MAX_NS)
            due_ns = stream->partial_since_ns + (is_long ? LONG_NS : PARTIAL_MAX_NS);
        if (due_ns <= now_ns)
            stream_hand_over(stream, stream->used);
        else if (due_ns < next_ns)
            next_ns = due_ns;
    }
    for (int i = 0; i < 2; i++) {
        struct sink *sink = &output->sinks[i];
        sink_write(sink);
        if (buffer_used(&sink->pending) > 0)
            loop_add(output->loop, &sink->watch);
        else
            loop_pause(output->loop, &sink->watch);
        regulate(output, sink, now_ns);
    }
    return next_ns;
}

int output_error(const struct output *output)
{
    return output->sinks[0].error ? output->sinks[0].error : output->sinks[1].error;
}

uint64_t output_last_active_ns(const struct output *output, uint64_t now_ns)
{
    for (int i = 0; i < 2; i++)
        if (buffer_used(&output->sinks[i].pending) > 0)
            return now_ns;
    return output->is_held ? now_ns : output->last_read_ns;
}

uint64_t output_stuck_ns(const struct output *output, uint64_t now_ns)
{
    for (int i = 0; i < 2; i++)
        if (buffer_used(&output->sinks[i].pending) > 0)
            return now_ns > output->last_write_ns ? now_ns - output->last_write_ns : 1;
    return 0;
}

void output_print(struct output *output, const char *text, size_t bytes)
{
    struct sink *sink = sink_for(output, 1);
    if (sink->open_line && bytes)
        sink_break_line(sink);
    sink_append(sink, text, bytes);
    sink_write(sink);
}

void output_report(struct output *output, struct quoit_report *report)
{
    quoit_report_close(report);
    if (report->text)
        output_print(output, report->text, report->bytes);
    free(report->text);
    report->text = NULL;
}

void output_end(struct output *output)
{
    for (size_t i = 0; i < output->stream_count; i++)
        stream_end(output, &output->streams[i]);
}

void output_close(struct output *output)
{
    for (int i = 0; i < 2; i++) {
        struct sink *sink = &output->sinks[i];
        loop_pause(output->loop, &sink->watch);
        free(sink->pending.data);
        *sink = (struct sink){.watch = {.fd = -1}};
    }
    free(output->streams);
    output->streams = NULL;
    output->stream_count = 0;
}
