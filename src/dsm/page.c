/* SPDX-License-Identifier: BSD-3-Clause */
#include "dsm/page.h"

#include "base/assert.h"

#define CLOSE      QUOIT_DSM_DO_CLOSE
#define DIFF       QUOIT_DSM_DO_DIFF
#define LOG        QUOIT_DSM_DO_LOG
#define NEED       QUOIT_DSM_DO_NEED
#define AWAIT      QUOIT_DSM_DO_AWAIT
#define FETCH      QUOIT_DSM_DO_FETCH
#define TWIN       QUOIT_DSM_DO_TWIN
#define OPEN_READ  QUOIT_DSM_DO_OPEN_READ
#define OPEN_WRITE QUOIT_DSM_DO_OPEN_WRITE
#define UPDATE     QUOIT_DSM_DO_UPDATE
#define TO(state, effects)                                                                                             \
    {                                                                                                                  \
        (effects), QUOIT_DSM_##state                                                                                   \
    }

#define NEVER TO(STATE_COUNT, 0)

typedef struct quoit_dsm_move row[QUOIT_DSM_EVENT_COUNT];

/* Copies, with a detector that sees first writes. A dropped or noticed page is closed before its diff is made, so that
 * no write is missed between the two. */
static const row copies[QUOIT_DSM_STATE_COUNT] = {
    [QUOIT_DSM_INVALID] = {TO(CLEAN, FETCH | OPEN_READ), TO(DIRTY, FETCH | TWIN | OPEN_WRITE), TO(INVALID, 0),
                           TO(INVALID, NEED), TO(INVALID, NEED), TO(INVALID, 0), NEVER, NEVER},
    [QUOIT_DSM_CLEAN] = {TO(CLEAN, OPEN_READ), TO(DIRTY, TWIN | OPEN_WRITE), TO(CLEAN, DIFF),
                         TO(INVALID, CLOSE | DIFF | NEED), TO(CLEAN, NEED | UPDATE), TO(INVALID, CLOSE | DIFF), NEVER,
                         NEVER},
    [QUOIT_DSM_DIRTY] = {TO(DIRTY, OPEN_WRITE), TO(DIRTY, OPEN_WRITE), TO(CLEAN, DIFF),
                         TO(INVALID, CLOSE | DIFF | NEED), TO(DIRTY, NEED | UPDATE), TO(INVALID, CLOSE | DIFF), NEVER,
                         NEVER},
};

/* Copies under WP_ASYNC: any open page may have been written, and there is always a twin. */
static const row async_copies[QUOIT_DSM_STATE_COUNT] = {
    [QUOIT_DSM_INVALID] = {TO(CLEAN, FETCH | TWIN | OPEN_READ), TO(CLEAN, FETCH | TWIN | OPEN_READ), TO(INVALID, 0),
                           TO(INVALID, NEED), TO(INVALID, NEED), TO(INVALID, 0), NEVER, NEVER},
    [QUOIT_DSM_CLEAN] = {TO(CLEAN, OPEN_READ), TO(CLEAN, OPEN_READ), TO(CLEAN, DIFF), TO(INVALID, CLOSE | DIFF | NEED),
                         TO(CLEAN, NEED | UPDATE), TO(INVALID, CLOSE | DIFF), NEVER, NEVER},
};

/* A page that becomes shared counts as written: it is DIRTY until the release ends. */
static const row homes[QUOIT_DSM_STATE_COUNT] = {
    [QUOIT_DSM_INVALID] = {TO(CLEAN, OPEN_READ), TO(DIRTY, OPEN_WRITE), TO(INVALID, 0), TO(INVALID, AWAIT),
                           TO(INVALID, AWAIT), TO(INVALID, 0), TO(EXCLUSIVE, OPEN_WRITE), TO(INVALID, 0)},
    [QUOIT_DSM_CLEAN] = {TO(CLEAN, OPEN_READ), TO(DIRTY, OPEN_WRITE), TO(CLEAN, LOG), TO(CLEAN, AWAIT),
                         TO(CLEAN, AWAIT), TO(INVALID, CLOSE | LOG), NEVER, TO(CLEAN, 0)},
    [QUOIT_DSM_DIRTY] = {TO(DIRTY, OPEN_WRITE), TO(DIRTY, OPEN_WRITE), TO(CLEAN, LOG), TO(DIRTY, AWAIT),
                         TO(DIRTY, AWAIT), TO(INVALID, CLOSE | LOG), NEVER, TO(DIRTY, 0)},
    [QUOIT_DSM_EXCLUSIVE] = {TO(EXCLUSIVE, OPEN_WRITE), TO(EXCLUSIVE, OPEN_WRITE), TO(EXCLUSIVE, 0),
                             TO(EXCLUSIVE, AWAIT), TO(EXCLUSIVE, AWAIT), TO(INVALID, CLOSE), NEVER, TO(DIRTY, 0)},
};

/* DIRTY lasts from the review of exclusive pages to the end of the same release. */
static const row async_homes[QUOIT_DSM_STATE_COUNT] = {
    [QUOIT_DSM_INVALID] = {TO(CLEAN, OPEN_READ), TO(CLEAN, OPEN_READ), TO(INVALID, 0), TO(INVALID, AWAIT),
                           TO(INVALID, AWAIT), TO(INVALID, 0), TO(EXCLUSIVE, OPEN_WRITE), TO(INVALID, 0)},
    [QUOIT_DSM_CLEAN] = {TO(CLEAN, OPEN_READ), TO(CLEAN, OPEN_READ), TO(CLEAN, LOG), TO(CLEAN, AWAIT), TO(CLEAN, AWAIT),
                         TO(INVALID, CLOSE | LOG), NEVER, TO(CLEAN, 0)},
    [QUOIT_DSM_DIRTY] = {NEVER, NEVER, TO(CLEAN, LOG), NEVER, NEVER, NEVER, NEVER, TO(DIRTY, 0)},
    [QUOIT_DSM_EXCLUSIVE] = {TO(EXCLUSIVE, OPEN_WRITE), TO(EXCLUSIVE, OPEN_WRITE), TO(EXCLUSIVE, 0),
                             TO(EXCLUSIVE, AWAIT), TO(EXCLUSIVE, AWAIT), TO(INVALID, CLOSE), NEVER, TO(DIRTY, 0)},
};

struct quoit_dsm_move quoit_dsm_page_move(enum quoit_dsm_state state, enum quoit_dsm_event event, bool is_home,
                                          bool sees_writes)
{
    quoit_assert(state < QUOIT_DSM_STATE_COUNT);
    quoit_assert(event < QUOIT_DSM_EVENT_COUNT);
    quoit_assert(sees_writes || is_home || state != QUOIT_DSM_DIRTY);
    quoit_assert(is_home || state != QUOIT_DSM_EXCLUSIVE);
    const row *rows = sees_writes ? copies : async_copies;
    if (is_home)
        rows = sees_writes ? homes : async_homes;
    quoit_assert(rows[state][event].next < QUOIT_DSM_STATE_COUNT);
    return rows[state][event];
}

const char *quoit_dsm_state_name(enum quoit_dsm_state state)
{
    static const char *const names[] = {"invalid", "clean", "dirty", "exclusive"};
    return state < QUOIT_DSM_STATE_COUNT ? names[state] : "?";
}
