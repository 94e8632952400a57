/* SPDX-License-Identifier: BSD-3-Clause */
/* report.h - tables and plots as one HTML page, by the installed report.py (docs/report.md says what it reads). */
#ifndef QUOIT_REPORT_H
#define QUOIT_REPORT_H

#include <stdbool.h>
#include <stdio.h>

/* Turns `data`, a file open for reading and writing that holds a report as JSON, into the page at `path`; the file's
 * position is lost. report.py is found from where this program is, so an installation may be moved. Blocks until the
 * page is there. False: it is not, and stderr says why. */
bool report_make(FILE *data, const char *path);

#endif
