/* SPDX-License-Identifier: BSD-3-Clause */
/* net.h - the one-sided operations of libqdsm: every use of shmem.h while the protocol runs, in one place.
 *
 * Tests insert random pauses before each of them (DSM_DELAY). Remote addresses are symmetric addresses of this PE. put
 * returns when `from` may be reused. A put is complete after the next settle, and ordered before what follows a fence.
 *
 * A word of symmetric memory that several PEs change, at any time, is changed by these alone, on the own PE too:
 * OpenSHMEM promises no atomicity between its atomics and the processor's. Words with one writer, such as versions and
 * the log, may be stored by the processor, and any word may be loaded by it: that supposes only that an aligned word of
 * 8 bytes arrives as a whole. */
#ifndef QUOIT_DSM_NET_H
#define QUOIT_DSM_NET_H

#include "dsm/state.h"

/* Takes a context for gets that are waited for alone, if there is one; and gives it back. */
void quoit_dsm_net_start(struct quoit_dsm *dsm);
void quoit_dsm_net_stop(struct quoit_dsm *dsm);

void quoit_dsm_get(struct quoit_dsm *dsm, void *to, const void *from, size_t bytes, int pe);
/* A get into symmetric memory. True: it is complete after get_end; nobody else may see `to` before. False: it is
 * complete, since the PE has other threads. One at a time, under the library's lock. Not ordered with puts of this PE.
 */
bool quoit_dsm_get_begin(struct quoit_dsm *dsm, void *to, const void *from, size_t bytes, int pe);
void quoit_dsm_get_end(struct quoit_dsm *dsm);
void quoit_dsm_put(struct quoit_dsm *dsm, void *to, const void *from, size_t bytes, int pe);
void quoit_dsm_fence(struct quoit_dsm *dsm);
void quoit_dsm_settle(struct quoit_dsm *dsm);
void quoit_dsm_set(struct quoit_dsm *dsm, uint64_t *word, uint64_t value, int pe);
/* Sets the word after the data has arrived: in one message, if the library has that. */
void quoit_dsm_put_then_set(struct quoit_dsm *dsm, void *to, const void *from, size_t bytes, uint64_t *word,
                            uint64_t value, int pe);
uint64_t quoit_dsm_fetch(struct quoit_dsm *dsm, uint64_t *word, int pe);
uint64_t quoit_dsm_swap(struct quoit_dsm *dsm, uint64_t *word, uint64_t value, int pe);
uint64_t quoit_dsm_compare_swap(struct quoit_dsm *dsm, uint64_t *word, uint64_t expected, uint64_t value, int pe);
/* Non-blocking: complete after the next settle, and ordered before what follows a fence. */
void quoit_dsm_increment(struct quoit_dsm *dsm, uint64_t *word, int pe);
void quoit_dsm_or(struct quoit_dsm *dsm, uint64_t *word, uint64_t bits, int pe);
void quoit_dsm_and(struct quoit_dsm *dsm, uint64_t *word, uint64_t bits, int pe);
uint64_t quoit_dsm_add(struct quoit_dsm *dsm, uint64_t *word, uint64_t value, int pe);
/* Sleep until a word of this PE is at least, or differs from, a value; return the word. */
uint64_t quoit_dsm_wait_least(struct quoit_dsm *dsm, uint64_t *word, uint64_t least);
uint64_t quoit_dsm_wait_not(struct quoit_dsm *dsm, uint64_t *word, uint64_t value);
/* As set, by a store if the word of the PE is mapped here at `peer_word`; NULL: it is not. Of words with one writer. */
void quoit_dsm_store(struct quoit_dsm *dsm, uint64_t *word, uint64_t *peer_word, uint64_t value, int pe);
/* The random pause of DSM_DELAY; handlers call it for what arrives too. */
void quoit_dsm_pause(struct quoit_dsm *dsm);
/* A pause between two checks of a value that changes soon. */
void quoit_dsm_relax(void);
uint64_t quoit_dsm_now_ns(void);
/* Whether this PE certainly has one thread. */
bool quoit_dsm_is_single_threaded(void);

#endif
