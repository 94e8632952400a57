/* SPDX-License-Identifier: BSD-3-Clause */
/* input.h - standard input of the job: PE 0 has it, the others find its end at once.
 *
 * From a file or pipe PE 0 simply inherits oshrun's descriptor, so it takes no more than it reads. A terminal cannot be
 * read by PE 0, which is in a process group of its own; there oshrun reads and passes on through a pipe.
 */
#ifndef OSHRUN_INPUT_H
#define OSHRUN_INPUT_H

#include "loop.h"

struct input {
    struct loop *loop;
    struct watch terminal; /* oshrun's standard input; fd -1 when PE 0 inherited it */
    struct watch pipe;     /* to PE 0, while something waits for room */
    int read_end;          /* of the pipe; closed once PE 0 runs */
    char data[4096];
    size_t begin;
    size_t end;
};

/* The descriptor to be PE 0's standard input; -1 with errno if no pipe can be made. */
int input_open(struct input *input, struct loop *loop);
/* After PE 0 was started: begins to pass on. */
void input_start(struct input *input);
/* After oshrun came back to the foreground. */
void input_resume(struct input *input);
void input_close(struct input *input);

#endif
