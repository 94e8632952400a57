/* SPDX-License-Identifier: BSD-3-Clause */
/* text.h - reads a text file of the kernel's (/proc, /sys) line by line, without stdio, which allocates.
 *
 * For threads with a descriptor table of their own (boot/apart.h): a malloc that a tool has put in place of libc's may
 * use descriptors of the tool, which are not in that table, or are others there. Threads: one at a time for one struct.
 */
#ifndef QUOIT_ENV_TEXT_H
#define QUOIT_ENV_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#define QUOIT_TEXT_BUFFER_BYTES 512

struct quoit_text {
    int fd; /* -1: the file could not be opened */
    size_t next, end;
    char buffer[QUOIT_TEXT_BUFFER_BYTES];
};

/* A file that cannot be opened has no lines. */
void quoit_text_open(struct quoit_text *text, const char *name);
/* The next line, without its newline, and cut to bytes - 1. False: the end, or an error. */
bool quoit_text_line(struct quoit_text *text, char *line_out, size_t bytes);
void quoit_text_close(struct quoit_text *text);

#endif
