/* SPDX-License-Identifier: BSD-3-Clause */
/* prefix.h - finds installed files relative to this program, so that an installation can be moved. */
#ifndef QUOIT_PREFIX_H
#define QUOIT_PREFIX_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

/* The path of a file or folder below this program's prefix, two directories above it. False: it is missing or
 * unreadable; prefix_find says so on stderr. */
bool prefix_has(const char *name, char path_out[PATH_MAX]);
bool prefix_find(const char *name, char path_out[PATH_MAX]);

/* The path of oshrun or oshcc, which may have the suffix .quoit where another project has that name. */
bool prefix_has_program(const char *name, char path_out[PATH_MAX]);
/* The program that a shell finds by this name. False: none. */
bool prefix_search(const char *name, char path_out[PATH_MAX]);

/* Runs a program with its words, the last NULL, and standard input and output from and to these files if they are not
 * NULL. Blocks until it ends; returns its status, 128 and the signal that ended it, or 127 with a message if it could
 * not be run. */
int prefix_run(char *const *words, FILE *input, FILE *output);

/* The same for one of our Python programs, with arguments up to the first that is NULL, at most PREFIX_ARGUMENTS_MAX.
 */
#define PREFIX_ARGUMENTS_MAX 250
int prefix_run_python(const char *name, char *const *arguments, FILE *input, FILE *output);

/* Makes a page of a report (docs/report.md). False: stderr says why. */
bool prefix_make_page(FILE *data, const char *path);

#endif
