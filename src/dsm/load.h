/* SPDX-License-Identifier: BSD-3-Clause */
/* load.h - how many bytes an instruction of x86-64 loads. Pure. */
#ifndef QUOIT_DSM_LOAD_H
#define QUOIT_DSM_LOAD_H

#include <stddef.h>

/* The bytes that the instruction loads from memory, 1 to 64; 1 for an unknown instruction, so that no byte counts as
 * loaded that may not have been. A `rep` loads one element at a time. Reads at most 15 bytes of code. */
size_t quoit_dsm_load_bytes(const unsigned char *code);

#endif
