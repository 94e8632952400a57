/* SPDX-License-Identifier: BSD-3-Clause */
/* place.h - maps addresses in a program to function, file and line, by addr2line(1) if the machine has it. */
#ifndef QUOIT_BOOT_PLACE_H
#define QUOIT_BOOT_PLACE_H

#include <stddef.h>
#include <stdint.h>

#define QUOIT_PLACE_TEXT_BYTES 96

struct quoit_place {
    char function[QUOIT_PLACE_TEXT_BYTES]; /* "" if unknown */
    char line[QUOIT_PLACE_TEXT_BYTES];     /* "stencil.c:88"; "" if unknown */
};

/* Fills places_out[0..count-1] for addresses relative to the program's load address. Entries not resolved by
 * deadline_ns of quoit_clock_now_ns() stay empty. */
void quoit_place_find(const char *executable, const uint64_t *addresses, size_t count, uint64_t deadline_ns,
                      struct quoit_place *places_out);

#endif
