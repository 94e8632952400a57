/* SPDX-License-Identifier: BSD-3-Clause */
#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void pass_on(struct input *input)
{
    while (input->begin < input->end) {
        ssize_t n = write(input->pipe.fd, input->data + input->begin, input->end - input->begin);
        if (n > 0) {
            input->begin += (size_t)n;
        } else if (n < 0 && errno == EAGAIN) {
            loop_pause(input->loop, &input->terminal);
            loop_add(input->loop, &input->pipe);
            return;
        } else if (n < 0 && errno != EINTR) {
            input_close(input); /* PE 0 wants no more */
            return;
        }
    }
    loop_pause(input->loop, &input->pipe);
    loop_add(input->loop, &input->terminal);
}

static void pipe_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    pass_on(watch->owner);
}

static void terminal_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct input *input = watch->owner;
    ssize_t n = read(watch->fd, input->data, sizeof input->data);
    if (n > 0) {
        input->begin = 0;
        input->end = (size_t)n;
        pass_on(input);
    } else if (n < 0 && errno == EIO) {
        loop_pause(input->loop, watch); /* in the background; input_resume goes on */
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        input_close(input);
    }
}

int input_open(struct input *input, struct loop *loop)
{
    *input = (struct input){.loop = loop, .terminal.fd = -1, .pipe.fd = -1, .read_end = -1};
    if (!isatty(STDIN_FILENO))
        return STDIN_FILENO;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    fcntl(ends[1], F_SETFL, O_NONBLOCK);
    input->read_end = ends[0];
    input->pipe = (struct watch){.fd = ends[1], .events = EPOLLOUT, .ready = pipe_ready, .owner = input};
    input->terminal = (struct watch){
        .fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), .events = EPOLLIN, .ready = terminal_ready, .owner = input};
    return input->read_end;
}

void input_start(struct input *input)
{
    if (input->read_end < 0)
        return;
    close(input->read_end);
    input->read_end = -1;
    loop_add(input->loop, &input->terminal);
}

void input_resume(struct input *input)
{
    if (input->terminal.fd >= 0 && !input->pipe.is_added)
        loop_add(input->loop, &input->terminal);
}

void input_close(struct input *input)
{
    loop_close(input->loop, &input->terminal);
    loop_close(input->loop, &input->pipe);
}
