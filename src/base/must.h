/* SPDX-License-Identifier: BSD-3-Clause */
/* must.h - what has to be so in a test outside of its own thread or process: else the process prints it and aborts,
 * which the parent sees. Included by tests only. Any thread. */
#ifndef QUOIT_BASE_MUST_H
#define QUOIT_BASE_MUST_H

#include <stdio.h>
#include <stdlib.h>

#define must(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                                    \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
