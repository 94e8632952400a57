/* SPDX-License-Identifier: BSD-3-Clause */
/* diff.h - the bytes of a page that differ from its twin. Pure; any thread.
 *
 * Differences are found byte by byte: C11 lets two threads write adjacent bytes, so a wider word would send, and at the
 * home overwrite, a byte that another PE wrote. A program may say that its words are wider. The widest vectors of the
 * processor are selected once per process. `bytes` is a multiple of 64 everywhere. */
#ifndef QUOIT_DSM_DIFF_H
#define QUOIT_DSM_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct quoit_dsm_run {
    uint32_t offset, bytes;
};

/* Each 64-byte block of page that differs from twin: one bit a byte into masks[bytes / 64]. Returns whether any does.
 */
bool quoit_dsm_diff_masks(const char *page, const char *twin, size_t bytes, uint64_t *masks);

/* Sets all bits of each aligned word of word_bytes, 1, 4 or 8, of which any is set. */
void quoit_dsm_diff_widen(uint64_t *masks, size_t bytes, unsigned word_bytes);

/* The runs of set bits of masks, in order; at most run_max are written. Returns their number, which may be larger than
 * run_max. */
size_t quoit_dsm_diff_runs(const uint64_t *masks, size_t bytes, struct quoit_dsm_run *runs, size_t run_max);

/* Stores the bytes of page whose bits are set into home, and no other: the rest of home may be written by others at the
 * same time. */
void quoit_dsm_diff_store(char *home, const char *page, size_t bytes, const uint64_t *masks);

/* In one pass: stores the bytes of page that differ from twin into home and into twin, which nobody else writes.
 * Returns their number; *blocks_out is the number of 64-byte blocks that contain them. */
size_t quoit_dsm_diff_move(char *home, char *twin, const char *page, size_t bytes, size_t *blocks_out);

#endif
