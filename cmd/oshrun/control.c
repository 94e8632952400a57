/* SPDX-License-Identifier: BSD-3-Clause */
#include "control.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/version.h"
#include "env/clock.h"
#include "foreign.h"
#include "net/net.h"

#define NAME        "quoit-agent"
#define READ_BYTES  65536u
#define NOISE_MAX   65536u /* bytes that a login may print before the agent's line */
#define PINGS       8      /* within the time after which a side is silent */
#define PARSE_BYTES 8u     /* alignment of a frame's bytes */
#define LINE_BYTES  512    /* of a side's first line */

static size_t padded(size_t bytes)
{
    return (bytes + PARSE_BYTES - 1) & ~(size_t)(PARSE_BYTES - 1);
}

static void append(struct buffer *buffer, const void *data, size_t bytes)
{
    bool has_room = buffer_append(buffer, data, bytes);
    quoit_assert(has_room);
}

static void lose(struct control *control, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void lose(struct control *control, const char *format, ...)
{
    va_list args;
    if (control->is_lost)
        return;
    control->is_lost = true;
    va_start(args, format);
    vsnprintf(control->problem, sizeof control->problem, format, args);
    va_end(args);
    loop_close(control->loop, &control->in);
    loop_close(control->loop, &control->out);
    control->on_lost(control);
}

static void print_greeting(char text_out[64], const unsigned char key[CONTROL_KEY_BYTES])
{
    int used = snprintf(text_out, 64, "%s ", NAME);
    for (int i = 0; i < CONTROL_KEY_BYTES; i++)
        used += snprintf(text_out + used, 64 - (size_t)used, "%02x", key[i]);
}

static void print_line(char line_out[LINE_BYTES], const char *greeting)
{
    char version[QUOIT_VERSION_FIELD_BYTES], own[PATH_MAX];
    quoit_version_write(quoit_version(), version);
    foreign_own_file(own);
    snprintf(line_out, LINE_BYTES, "%s %s %.300s\n", greeting, version, own);
}

int32_t control_number(const struct quoit_control_frame *frame, const void *bytes)
{
    int32_t number = 0;
    if (frame->bytes == sizeof number)
        memcpy(&number, bytes, sizeof number);
    return number;
}

bool control_make_key(unsigned char key_out[CONTROL_KEY_BYTES])
{
    return getrandom(key_out, CONTROL_KEY_BYTES, 0) == CONTROL_KEY_BYTES;
}

static void write_some(struct control *control)
{
    struct buffer *outgoing = &control->outgoing;
    while (buffer_used(outgoing) > 0 && control->out.fd >= 0) {
        ssize_t n = write(control->out.fd, outgoing->data + outgoing->begin, buffer_used(outgoing));
        if (n > 0)
            outgoing->begin += (size_t)n;
        else if (n < 0 && errno == EAGAIN)
            break;
        else if (n < 0 && errno != EINTR)
            break; /* the reading end shows the same, after what the other side sent last */
    }
    if (control->out.fd >= 0 && buffer_used(outgoing) > 0)
        loop_add(control->loop, &control->out);
    else
        loop_pause(control->loop, &control->out);
}

static void out_ready(struct watch *watch, uint32_t events)
{
    struct control *control = watch->owner;
    write_some(control);
    if (events & (EPOLLERR | EPOLLHUP)) /* nothing can be written any more */
        loop_pause(control->loop, watch);
}

/* `rest` is what stands behind the key: " VERSION PATH". False: the other side is lost. */
static bool takes_version(struct control *control, char *rest)
{
    struct quoit_version version;
    char own[PATH_MAX], *word = rest + strspn(rest, " "), *path = word + strcspn(word, " ");
    if (*path)
        *path++ = '\0';
    if (quoit_version_read(word, &version) && quoit_versions_fit(quoit_version(), &version))
        return true;
    foreign_own_file(own);
    lose(control,
         "its oshrun is Quoit of version %s (%.300s), which this oshrun of version %s (%.300s) does not "
         "understand",
         version.text[0] ? version.text : "unknown", *path ? path : "of unknown path", quoit_version()->text, own);
    return false;
}

/* The other side's line, after what a login printed. True: it was found and is consumed. */
static bool find_greeting(struct control *control)
{
    struct buffer *incoming = &control->incoming;
    size_t length = strlen(control->greeting);
    for (;;) {
        char *line = incoming->data + incoming->begin;
        char *end = memchr(line, '\n', buffer_used(incoming));
        if (!end) {
            if (buffer_used(incoming) > NOISE_MAX)
                lose(control, "it prints something that is not of Quoit");
            return false;
        }
        *end = '\0';
        incoming->begin += (size_t)(end + 1 - line);
        char *found = strstr(line, control->greeting); /* after a prompt, or an escape sequence */
        if (!found)
            continue;
        return takes_version(control, found + length);
    }
}

static void take_frames(struct control *control)
{
    struct buffer *incoming = &control->incoming;
    struct quoit_control_frame frame;
    while (!control->is_lost && buffer_used(incoming) >= sizeof frame) {
        memcpy(&frame, incoming->data + incoming->begin, sizeof frame);
        if (frame.kind == 0 || frame.kind >= QUOIT_CONTROL_KIND_COUNT || frame.bytes > CONTROL_FRAME_MAX) {
            lose(control, "it sends what this version does not understand");
            return;
        }
        if (buffer_used(incoming) < sizeof frame + padded(frame.bytes))
            return;
        const char *bytes = incoming->data + incoming->begin + sizeof frame;
        incoming->begin += sizeof frame + padded(frame.bytes);
        if (frame.kind == QUOIT_CONTROL_GIVES_UP)
            lose(control, "it gave up: %.*s", (int)frame.bytes, bytes);
        else if (frame.kind != QUOIT_CONTROL_PING)
            control->on_frame(control, &frame, bytes);
    }
}

/* Frames begin at multiples of PARSE_BYTES in the buffer, as long as what is before them does. */
static void align(struct buffer *incoming)
{
    size_t used = buffer_used(incoming);
    if (incoming->begin % PARSE_BYTES == 0)
        return;
    memmove(incoming->data, incoming->data + incoming->begin, used);
    incoming->begin = 0;
    incoming->end = used;
}

static void in_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct control *control = watch->owner;
    bool has_room = buffer_reserve(&control->incoming, READ_BYTES);
    quoit_assert(has_room);
    ssize_t n = read(watch->fd, control->incoming.data + control->incoming.end, READ_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        lose(control, "%s", n < 0 ? strerror(errno) : "the connection ended");
        return;
    }
    control->incoming.end += (size_t)n;
    control->received_ns = loop_now_ns(control->loop);
    if (!control->is_greeted) {
        control->is_greeted = find_greeting(control);
        align(&control->incoming);
    }
    if (control->is_greeted && !control->is_lost)
        take_frames(control);
}

bool control_open(struct control *control, struct loop *loop, int in_fd, int out_fd,
                  const unsigned char key[CONTROL_KEY_BYTES])
{
    char line[LINE_BYTES];
    control->loop = loop;
    control->in = (struct watch){.fd = in_fd, .events = EPOLLIN, .ready = in_ready, .owner = control};
    control->out = (struct watch){.fd = out_fd, .events = EPOLLOUT, .ready = out_ready, .owner = control};
    control->opened_ns = control->received_ns = loop_now_ns(loop);
    control->sent_ns = quoit_clock_now_ns();
    print_greeting(control->greeting, key);
    fcntl(in_fd, F_SETFL, fcntl(in_fd, F_GETFL) | O_NONBLOCK);
    fcntl(out_fd, F_SETFL, fcntl(out_fd, F_GETFL) | O_NONBLOCK);
    print_line(line, control->greeting);
    append(&control->outgoing, line, strlen(line));
    return loop_add(loop, &control->in) && loop_add(loop, &control->out);
}

bool control_answer(struct control *control, struct loop *loop, int in_fd, int out_fd,
                    const unsigned char key[CONTROL_KEY_BYTES])
{
    control->is_greeted = true;
    return control_open(control, loop, in_fd, out_fd, key);
}

static bool read_all(int fd, void *to, size_t bytes)
{
    char *at = to;
    while (bytes > 0) {
        ssize_t n = read(fd, at, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t)n;
    }
    return true;
}

static bool read_line(int fd, char line_out[LINE_BYTES])
{
    for (size_t i = 0; i < LINE_BYTES - 1; i++) {
        if (!read_all(fd, &line_out[i], 1))
            return false;
        if (line_out[i] == '\n') {
            line_out[i] = '\0';
            return true;
        }
    }
    return false;
}

bool control_receive_first(int in_fd, int out_fd, unsigned char key_out[CONTROL_KEY_BYTES],
                           struct quoit_control_frame *frame_out, char **bytes_out,
                           char problem_out[CONTROL_PROBLEM_BYTES])
{
    char line[LINE_BYTES];
    struct quoit_version version;
    const char *hex = line + sizeof NAME;
    bool is_good = read_line(in_fd, line) && strncmp(line, NAME " ", sizeof NAME) == 0 &&
                   strlen(hex) > (size_t)(2 * CONTROL_KEY_BYTES);
    for (int i = 0; i < CONTROL_KEY_BYTES && is_good; i++) {
        unsigned byte;
        is_good = sscanf(hex + 2 * (size_t)i, "%2x", &byte) == 1;
        key_out[i] = (unsigned char)byte;
    }
    if (!is_good) {
        snprintf(problem_out, CONTROL_PROBLEM_BYTES, "oshrun starts its agents itself, on the hosts of --host");
        return false;
    }
    /* Another version learns of it by the answer, since oshrun has the user's attention. */
    line[sizeof NAME + 2 * CONTROL_KEY_BYTES + 1 + strcspn(hex + (size_t)(2 * CONTROL_KEY_BYTES) + 1, " ")] = '\0';
    bool is_same = quoit_version_read(hex + (size_t)(2 * CONTROL_KEY_BYTES) + 1, &version) &&
                   quoit_versions_fit(quoit_version(), &version);
    *bytes_out = NULL;
    if (!is_same) {
        char greeting[64], answer[LINE_BYTES];
        print_greeting(greeting, key_out);
        print_line(answer, greeting);
        dprintf(out_fd, "%s", answer);
    }
    if (is_same && read_all(in_fd, frame_out, sizeof *frame_out) && frame_out->kind == QUOIT_CONTROL_SETUP &&
        frame_out->bytes <= CONTROL_FRAME_MAX)
        *bytes_out = malloc(padded(frame_out->bytes) + 1);
    if (*bytes_out && read_all(in_fd, *bytes_out, padded(frame_out->bytes)))
        return true;
    snprintf(problem_out, CONTROL_PROBLEM_BYTES, "%s",
             is_same ? "oshrun has ended, or sends what this version does not understand" : "");
    return false;
}

void control_send(struct control *control, enum quoit_control_kind kind, uint32_t pe, const void *bytes, size_t count)
{
    const struct quoit_control_frame frame = {.kind = kind, .pe = pe, .bytes = (uint32_t)count, .host = control->host};
    control_pass(control, &frame, bytes);
}

void control_pass(struct control *control, const struct quoit_control_frame *frame, const void *bytes)
{
    static const char zeros[PARSE_BYTES] = {0};
    quoit_assert(frame->bytes <= CONTROL_FRAME_MAX);
    if (control->is_lost)
        return;
    append(&control->outgoing, frame, sizeof *frame);
    append(&control->outgoing, bytes, frame->bytes);
    append(&control->outgoing, zeros, padded(frame->bytes) - frame->bytes);
    control->sent_ns = quoit_clock_now_ns();
    write_some(control);
}

/* The other side may have been stopped, and goes on: it is to know why it is alone. */
static void give_up(struct control *control, uint64_t silent_ns)
{
    char text[64];
    int bytes = snprintf(text, sizeof text, "nothing had come to it for %.1f s", (double)silent_ns / 1e9);
    control_send(control, QUOIT_CONTROL_GIVES_UP, CONTROL_NO_PE, text, (size_t)bytes);
    lose(control, "nothing came from it for %.1f s", (double)silent_ns / 1e9);
}

/* Whether the other side is lost. */
static bool look_for_silence(struct control *control, uint64_t now_ns)
{
    uint64_t silent_ns = now_ns - control->received_ns;
    uint64_t sign_ns = control->alive_ns > control->received_ns ? control->alive_ns : control->received_ns;
    control->is_silent = silent_ns > quoit_net_notice_ns(control->limit_ns);
    if (now_ns - sign_ns <= control->limit_ns && silent_ns / CONTROL_ALIVE_LIMITS <= control->limit_ns)
        return false;
    give_up(control, silent_ns);
    return true;
}

uint64_t control_step(struct control *control, uint64_t now_ns)
{
    if (control->is_lost)
        return UINT64_MAX;
    uint64_t ping_ns = quoit_net_notice_ns(control->limit_ns) / PINGS;
    if (quoit_clock_now_ns() - control->sent_ns >= ping_ns && buffer_used(&control->outgoing) == 0)
        control_send(control, QUOIT_CONTROL_PING, CONTROL_NO_PE, NULL, 0);
    uint64_t unanswered_ns = control->is_greeted ? 0 : now_ns - control->opened_ns;
    control->is_late = unanswered_ns > control->start_limit_ns;
    if (unanswered_ns / CONTROL_START_LIMITS > control->start_limit_ns) {
        lose(control, "it did not answer within %.1f s",
             (double)(CONTROL_START_LIMITS * control->start_limit_ns) / 1e9);
        return UINT64_MAX;
    }
    if (control->is_greeted && look_for_silence(control, now_ns))
        return UINT64_MAX;
    return now_ns + ping_ns;
}

void control_flush(struct control *control, uint64_t limit_ns)
{
    uint64_t until_ns = quoit_clock_now_ns() + limit_ns;
    while (!control->is_lost && buffer_used(&control->outgoing) > 0 && quoit_clock_now_ns() < until_ns) {
        struct pollfd look = {.fd = control->out.fd, .events = POLLOUT};
        if (poll(&look, 1, 50) == 1 && (look.revents & (POLLERR | POLLHUP)))
            return;
        write_some(control);
    }
}

void control_close(struct control *control)
{
    control->is_lost = true;
    loop_close(control->loop, &control->in);
    loop_close(control->loop, &control->out);
    free(control->incoming.data);
    free(control->outgoing.data);
    control->incoming = control->outgoing = (struct buffer){0};
}
