/* SPDX-License-Identifier: BSD-3-Clause */
/* home.h - homes that move.
 *
 * Between two barriers of all PEs, an epoch, each PE sees every notice of the others exactly once, so all take the same
 * decision without a message: a page moves to the PE that alone wrote it in QUOIT_DSM_STREAK epochs in a row. A barrier
 * at which no page moves costs nothing more. That all see the same is in doubt for a PE that has, or had, several
 * threads, since those may release while one is in the barrier, and for one that found entries of a log overwritten: it
 * says so with its position at the next barrier, and then no page moves, and all streaks start anew. Needs the
 * library's lock. */
#ifndef QUOIT_DSM_HOME_H
#define QUOIT_DSM_HOME_H

#include "dsm/state.h"

/* How a page is kept coherent, where that differs from the run: enum dsm_protocol | enum dsm_copies << 3 | enum
 * dsm_word << 5 | PLACED, if the program chose the home. */
#define QUOIT_DSM_KIND_SHIFT 16
#define QUOIT_DSM_PLACED     0x80

#define QUOIT_DSM_STREAK 3

/* In the word of a page: its home was appointed without having used it, and its memory there was not taken yet. */
#define QUOIT_DSM_UNTAKEN (1ull << 32)

static inline uint8_t quoit_dsm_kind(uint64_t protocol, uint64_t copies, uint64_t word)
{
    return (uint8_t)(protocol | copies << 3 | word << 5);
}

/* The word of a page in its directory: its kind, and its home + 1, or 0 if it has no home yet. */
static inline uint64_t quoit_dsm_home_word(int home, uint8_t kind)
{
    return (uint64_t)kind << QUOIT_DSM_KIND_SHIFT | (uint64_t)(home + 1);
}

static inline int quoit_dsm_home_in(uint64_t word)
{
    return (int)(word & 0xffff) - 1;
}

static inline void quoit_dsm_home_learn(struct quoit_dsm *dsm, uint64_t page, uint64_t word)
{
    quoit_dsm_home_set(dsm, page, quoit_dsm_home_in(word));
    dsm->kind_of[page] = (uint8_t)(word >> QUOIT_DSM_KIND_SHIFT);
}

static inline enum quoit_dsm_protocol quoit_dsm_protocol_of(const struct quoit_dsm *dsm, uint64_t page)
{
    uint8_t own = dsm->kind_of[page] & 7;
    return own != 0 && !dsm->races ? (enum quoit_dsm_protocol)own : dsm->protocol;
}

/* Whether pages come from the handler at the home, and whether diffs go to it. */
static inline bool quoit_dsm_fetches_by_service(enum quoit_dsm_protocol protocol)
{
    return protocol == QUOIT_DSM_ASYNC || protocol == QUOIT_DSM_DRAW;
}

static inline bool quoit_dsm_diffs_by_service(enum quoit_dsm_protocol protocol)
{
    return protocol == QUOIT_DSM_ASYNC || protocol == QUOIT_DSM_ARDMAR;
}

static inline enum quoit_dsm_copies quoit_dsm_copies_of(const struct quoit_dsm *dsm, uint64_t page)
{
    uint64_t own = dsm->kind_of[page] >> 3 & 3;
    return (enum quoit_dsm_copies)(own != 0 ? own : dsm->options.values[QUOIT_DSM_COPIES]);
}

/* Bytes of the words of which diffs consist: 1, 4 or 8. */
static inline unsigned quoit_dsm_word_of(const struct quoit_dsm *dsm, uint64_t page)
{
    static const unsigned bytes[] = {1, 4, 8};
    unsigned own = dsm->kind_of[page] >> 5 & 3;
    return bytes[own != 0 ? own - 1 : dsm->options.values[QUOIT_DSM_WORD]];
}

/* Takes over the homes of consecutive pages, as their directory has them, that this PE does not know, and takes the
 * memory of pages there where nobody has yet: from then on this PE may use it. */
void quoit_dsm_homes_learn(struct quoit_dsm *dsm, uint64_t page, const uint64_t *words, uint64_t count);

/* A page was written in this epoch, here or, as a notice says, by another PE. */
void quoit_dsm_written(struct quoit_dsm *dsm, uint64_t page, int writer);

/* What a PE adds to its position at a barrier if it has a doubt; and after the barrier, whether nobody has one: removes
 * it from the positions. */
uint64_t quoit_dsm_homes_doubt(struct quoit_dsm *dsm);
bool quoit_dsm_homes_sure(const struct quoit_dsm *dsm, uint64_t *heads);

/* Moves homes. Called after a barrier whose notices are applied and whose diffs have arrived; heads: the positions that
 * the barrier handed round. Collective if homes migrate; ends with a barrier if any does. */
void quoit_dsm_homes_move(struct quoit_dsm *dsm, const uint64_t *heads, bool is_sure);

/* Changes the home of one page; the new home fetches the content from the old one. All PEs call it, between two
 * barriers. */
void quoit_dsm_home_move(struct quoit_dsm *dsm, uint64_t page, int from, int to);

#endif
