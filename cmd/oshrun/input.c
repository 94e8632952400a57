/* SPDX-License-Identifier: BSD-3-Clause */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "hosts.h"

#define READ_BYTES 16384u

struct input {
    struct watch watch; /* of the head: standard input; of an agent: the pipe to the PE */
    bool is_file;       /* always ready */
    bool is_terminal;   /* read in the foreground alone: in the background the kernel refuses */
    bool is_ended;
    uint32_t untaken_bytes; /* of the head */
    size_t begin, end;      /* of an agent: what waits in `data` */
    char data[CONTROL_WINDOW_BYTES];
};

static bool may_read(const struct job *job)
{
    return !job->input->is_terminal || job->terminal.given_to;
}

static void user_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    char bytes[READ_BYTES];
    struct job *job = watch->owner;
    struct input *input = job->input;
    if (!may_read(job))
        return;
    ssize_t n = read(watch->fd, bytes, sizeof bytes);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        input->is_ended = true;
        loop_close(&job->loop, watch);
        n = 0;
    }
    input->untaken_bytes += (uint32_t)n;
    hosts_send(job, job->pes[job->terminal.pe].host, QUOIT_CONTROL_INPUT, job->terminal.pe, bytes, (size_t)n);
}

bool input_open(struct job *job)
{
    struct input *input = calloc(1, sizeof *input);
    if (!input)
        return false;
    job->input = input;
    input->watch = (struct watch){
        .fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), .events = EPOLLIN, .ready = user_ready, .owner = job};
    /* As the keys go to the group in the foreground, it must be this one. In the background nothing is read. */
    input->is_terminal = isatty(STDIN_FILENO);
    input->is_ended = input->is_terminal && !terminal_give(&job->terminal, getpgrp());
    input->is_file = !input->is_ended && !loop_add(&job->loop, &input->watch);
    return true;
}

void input_step(struct job *job)
{
    struct input *input = job->input;
    if (!input || input->is_ended)
        return;
    bool has_room = may_read(job) && input->untaken_bytes + READ_BYTES <= CONTROL_WINDOW_BYTES;
    if (input->is_file)
        while (!input->is_ended && input->untaken_bytes + READ_BYTES <= CONTROL_WINDOW_BYTES)
            user_ready(&input->watch, EPOLLIN);
    else if (has_room)
        loop_add(&job->loop, &input->watch);
    else
        loop_pause(&job->loop, &input->watch);
}

void input_taken(struct job *job, uint32_t bytes)
{
    if (job->input && bytes <= job->input->untaken_bytes)
        job->input->untaken_bytes -= bytes;
}

/* As much as the PE takes. */
static void pour(struct job *job)
{
    struct input *input = job->input;
    uint32_t poured = 0;
    while (input->begin < input->end && input->watch.fd >= 0) {
        ssize_t n = write(input->watch.fd, input->data + input->begin, input->end - input->begin);
        if (n > 0) {
            input->begin += (size_t)n;
            poured += (uint32_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            break;
        } else if (n < 0 && errno != EINTR) {
            loop_close(&job->loop, &input->watch); /* the PE reads no more */
        }
    }
    if (poured)
        control_send(&job->control, QUOIT_CONTROL_TAKEN, job->terminal.pe, &poured, sizeof poured);
    if (input->watch.fd >= 0 && input->begin < input->end)
        loop_add(&job->loop, &input->watch);
    else if (input->watch.fd >= 0 && input->is_ended)
        loop_close(&job->loop, &input->watch);
    else
        loop_pause(&job->loop, &input->watch);
}

static void pe_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    pour(watch->owner);
}

int input_open_pe(struct job *job)
{
    int ends[2];
    job->input = calloc(1, sizeof *job->input);
    if (!job->input || pipe2(ends, O_CLOEXEC) != 0) {
        quoit_say("cannot make the standard input of PE %u: %s [Q0213]", job->terminal.pe, strerror(errno));
        return -1;
    }
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    job->input->watch = (struct watch){.fd = ends[1], .events = EPOLLOUT, .ready = pe_ready, .owner = job};
    return ends[0];
}

void input_give(struct job *job, const char *data, size_t bytes)
{
    struct input *input = job->input;
    if (!input)
        return;
    if (input->begin > 0)
        memmove(input->data, input->data + input->begin, input->end - input->begin);
    input->end -= input->begin;
    input->begin = 0;
    if (bytes <= sizeof input->data - input->end) { /* else oshrun sent more than was TAKEN */
        memcpy(input->data + input->end, data, bytes);
        input->end += bytes;
    }
    input->is_ended |= bytes == 0;
    pour(job);
}

void input_close(struct job *job)
{
    if (!job->input)
        return;
    loop_close(&job->loop, &job->input->watch);
    free(job->input);
    job->input = NULL;
}
