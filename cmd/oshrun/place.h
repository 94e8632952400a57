/* SPDX-License-Identifier: BSD-3-Clause */
/* place.h - from an address in a program to its function, file and line, by addr2line(1) if the machine has it. */
#ifndef OSHRUN_PLACE_H
#define OSHRUN_PLACE_H

#include <stddef.h>
#include <stdint.h>

#define PLACE_TEXT_BYTES 96

struct place {
    char function[PLACE_TEXT_BYTES]; /* "" if not known */
    char line[PLACE_TEXT_BYTES];     /* "stencil.c:88", "" if not known */
};

/* Fills places_out[0..count-1] for addresses relative to the program's load address; what is not known at deadline_ns
 * of quoit_clock_now_ns() stays empty. */
void place_find(const char *executable, const uint64_t *addresses, size_t count, uint64_t deadline_ns,
                struct place *places_out);

#endif
