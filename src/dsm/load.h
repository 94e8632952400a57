/* SPDX-License-Identifier: BSD-3-Clause */
/* load.h - how many bytes an instruction of x86-64 loads. Pure. */
#ifndef QUOIT_DSM_LOAD_H
#define QUOIT_DSM_LOAD_H

#include <stddef.h>

/* The bytes that the instruction loads at its address in memory, 1 to 64; 1 for one that is not known, so that nothing
 * is taken for loaded that may not have been. A `rep` loads one element at a time. At most 15 bytes of code are read.
 */
size_t quoit_dsm_load_bytes(const unsigned char *code);

#endif
