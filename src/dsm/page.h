/* SPDX-License-Identifier: BSD-3-Clause */
/* page.h - the states of one page on one PE, as a table. Pure.
 *
 * The frame of a page at its home holds the current content, which other PEs fetch and write their diffs to; elsewhere
 * a frame is a cached copy. The home works in its frame directly: it neither fetches nor makes diffs, but it logs. A
 * detector that sees the first write of an interval as a fault takes the twin then; the one that learns of writes only
 * at the release (WP_ASYNC) takes it at the fetch.
 *
 * Exclusive mode: until another PE fetches a page, writes of its home are not detected, since no copy exists that a
 * notice would invalidate. Once left it is not entered again. */
#ifndef QUOIT_DSM_PAGE_H
#define QUOIT_DSM_PAGE_H

#include <stdbool.h>
#include <stdint.h>

enum quoit_dsm_state {
    QUOIT_DSM_INVALID,   /* no access: the next one faults */
    QUOIT_DSM_CLEAN,     /* readable; a write is detected */
    QUOIT_DSM_DIRTY,     /* writable; the first write of this interval was detected */
    QUOIT_DSM_EXCLUSIVE, /* at home and writable, its writes are not detected: no other PE has ever fetched it */
    QUOIT_DSM_STATE_COUNT
};

enum quoit_dsm_event {
    QUOIT_DSM_READ,    /* a load faulted */
    QUOIT_DSM_WRITE,   /* a store faulted */
    QUOIT_DSM_RELEASE, /* the interval ends and the detector reports the page; it is watched again already */
    QUOIT_DSM_NOTICE,  /* another PE wrote the page in an interval that is now visible here */
    QUOIT_DSM_RENEW,   /* as NOTICE, for a page whose copies are brought up to date */
    QUOIT_DSM_DROP,    /* the copy is given up without a notice: the home moves, or the program asks for the newest */
    QUOIT_DSM_ALONE,   /* an access faulted at the home, and no other PE has fetched the page */
    QUOIT_DSM_SHARE,   /* at the home: another PE has fetched the page, or is about to */
    QUOIT_DSM_EVENT_COUNT
};

/* What the caller does, in the order of the bits. */
enum {
    QUOIT_DSM_DO_CLOSE = 1 << 0, /* take all access away, before the diff: later writes of other threads must fault */
    QUOIT_DSM_DO_DIFF = 1 << 1,  /* write the bytes that differ from the twin to the home, if there is a twin */
    QUOIT_DSM_DO_LOG = 1 << 2,   /* a home's page: a notice without a diff */
    QUOIT_DSM_DO_NEED = 1 << 3,  /* the next fetch must find the version of the notice */
    QUOIT_DSM_DO_AWAIT = 1 << 4, /* a home: the diff of the notice must have arrived before the program goes on */
    QUOIT_DSM_DO_FETCH = 1 << 5, /* read the page from its home */
    QUOIT_DSM_DO_TWIN = 1 << 6,  /* copy the page for the diff, unless the twin is there */
    QUOIT_DSM_DO_OPEN_READ = 1 << 7,  /* allow loads, watch stores */
    QUOIT_DSM_DO_OPEN_WRITE = 1 << 8, /* allow both */
    QUOIT_DSM_DO_UPDATE = 1 << 9,     /* before the acquire ends: store what others wrote into the copy */
};

struct quoit_dsm_move {
    uint16_t effects;
    uint8_t next; /* enum quoit_dsm_state */
};

/* The move of a page. sees_writes: the detector reports first writes as faults. */
struct quoit_dsm_move quoit_dsm_page_move(enum quoit_dsm_state state, enum quoit_dsm_event event, bool is_home,
                                          bool sees_writes);

/* For messages: "invalid", "clean", "dirty", "exclusive". */
const char *quoit_dsm_state_name(enum quoit_dsm_state state);

#endif
