/* SPDX-License-Identifier: BSD-3-Clause */
/* options.h - the variables of libqdsm: one table makes the parser and the table in docs/dsm.md.
 *
 * All PEs must have the same values; dsm_init ends the job with a message that names a variable where they differ. A
 * size takes K, M, G or T behind it; a word is one of those listed. */
#ifndef QUOIT_DSM_OPTIONS_H
#define QUOIT_DSM_OPTIONS_H

#include <stddef.h>
#include <stdint.h>

/* X(NAME, variable, default, least, most, words or NULL for a number, sentence) */
#define QUOIT_DSM_OPTIONS(X)                                                                                           \
    X(PROTOCOL, "DSM_PROTOCOL", 0, 0, 5, "auto async ardmar draw newgendsm direct",                                    \
      "how pages travel; auto is direct where all PEs share a host, else newgendsm")                                   \
    X(DETECT, "DSM_DETECT", 0, 0, 3, "auto async wp segv",                                                             \
      "how writes are seen: userfaultfd WP_ASYNC with PAGEMAP_SCAN, userfaultfd write faults, or SIGSEGV")             \
    X(HANDLER, "DSM_HANDLER", 0, 0, 1, "auto on",                                                                      \
      "whether each PE has a handler: as DSM_PROTOCOL needs it, or also for blocks whose own protocol does")           \
    X(COPIES, "DSM_COPIES", 0, 0, 2, "auto invalidate update",                                                         \
      "what an acquire does to copies of pages that others wrote: drop them, or bring them up to date; auto chooses "  \
      "for each page by its use")                                                                                      \
    X(WORD, "DSM_WORD", 0, 0, 2, "1 4 8",                                                                              \
      "the smallest aligned unit, in bytes, that two PEs write apart between two synchronisations; releases between "  \
      "hosts send changed units whole, so 4 or 8 makes them quicker")                                                  \
    X(HOME, "DSM_HOME", 3, 0, 3, "first cyclic block migrate",                                                         \
      "where a page without a placement lives: first touch, page number modulo PEs, runs of pages, or first touch "    \
      "and then with the PE that alone wrote it between three barriers in a row")                                      \
    X(EXCLUSIVE_MODE, "DSM_EXCLUSIVE", 0, 0, 1, "on off",                                                              \
      "whether a home writes pages that no other PE has fetched without notices, for which the first fetch of a page " \
      "takes two atomics more; off: as the paper has it")                                                              \
    X(MEMORY, "DSM_MEMORY", 0, 0, 1ull << 40, NULL,                                                                    \
      "shared memory that can be in use at once, reserved in the symmetric heap of each PE and taken where pages are " \
      "used; 0: half of that heap, or 256M if another library does not give its size")                                 \
    X(SPACE, "DSM_SPACE", 256ull << 30, 16ull << 20, 1ull << 42, NULL,                                                 \
      "addresses reserved for allocations, which cost memory only where they are touched")                             \
    X(PAGE, "DSM_PAGE", 4096, 4096, 2ull << 20, NULL, "unit of coherence, a power of two")                             \
    X(SYNCS, "DSM_SYNCS", 65536, 64, 1ull << 24, NULL, "synchronisation objects that each PE can keep")                \
    X(LOG, "DSM_LOG", 1ull << 18, 64, 1ull << 24, NULL, "write notices that each PE keeps, a power of two")            \
    X(PREFETCH, "DSM_PREFETCH", 64, 1, 512, NULL, "most pages that one fault fetches")                                 \
    X(LOCAL, "DSM_LOCAL", 0, 0, 1, "auto off",                                                                         \
      "whether PEs of one host reach each other's frames by loads and stores, or by puts and gets as others do")       \
    X(CALLS, "DSM_CALLS", 0, 0, 1, "auto off",                                                                         \
      "whether system calls may have buffers in shared memory, by a filter (seccomp) that programs started by a PE "   \
      "inherit; off: such a call fails with EFAULT if a page is not accessible at that moment")                        \
    X(PARANOID, "DSM_PARANOID", 0, 0, 1, NULL, "1: every barrier compares each cached page with its home")             \
    X(RACES, "DSM_RACES", 0, 0, 2, "off writes reads",                                                                 \
      "report bytes that two PEs changed, or one changed and one read, without a synchronisation that orders them")    \
    X(DELAY, "DSM_DELAY", 0, 0, 1000000, NULL,                                                                         \
      "for tests: a random pause of up to so many us before every one-sided operation")                                \
    X(SEED, "DSM_SEED", 1, 0, UINT64_MAX, NULL, "for tests: the seed of those pauses")                                 \
    X(BREAK, "DSM_BREAK", 0, 0, 10, "no notice version run causality home exclusive update arrival handed move",       \
      "for tests: leave out one step of the protocol, which the tests must see")                                       \
    X(STATS, "DSM_STATS", 0, 0, 4, "off text json blocks pages",                                                       \
      "what dsm_finalize prints on stderr: a line a PE, or JSON for each block or page that anything happened to")

enum quoit_dsm_option {
#define X(NAME, ...) QUOIT_DSM_##NAME,
    QUOIT_DSM_OPTIONS(X)
#undef X
        QUOIT_DSM_OPTION_COUNT
};

enum quoit_dsm_protocol {
    QUOIT_DSM_AUTO,
    QUOIT_DSM_ASYNC,
    QUOIT_DSM_ARDMAR,
    QUOIT_DSM_DRAW,
    QUOIT_DSM_NEWGENDSM,
    QUOIT_DSM_DIRECT
};
enum quoit_dsm_detect { QUOIT_DSM_DETECT_AUTO, QUOIT_DSM_DETECT_ASYNC, QUOIT_DSM_DETECT_WP, QUOIT_DSM_DETECT_SEGV };
enum quoit_dsm_home_rule { QUOIT_DSM_HOME_FIRST, QUOIT_DSM_HOME_CYCLIC, QUOIT_DSM_HOME_BLOCK, QUOIT_DSM_HOME_MIGRATE };
/* Of a block: those of dsm.h, whose DSM_COPIES_RUN and DSM_WORD_RUN are 0. */
enum quoit_dsm_copies { QUOIT_DSM_COPIES_AUTO, QUOIT_DSM_COPIES_INVALIDATE, QUOIT_DSM_COPIES_UPDATE };
enum quoit_dsm_break {
    QUOIT_DSM_BREAK_NO,
    QUOIT_DSM_BREAK_NOTICE,    /* the last notice of an interval is not logged */
    QUOIT_DSM_BREAK_VERSION,   /* a fetch does not wait for the version it needs */
    QUOIT_DSM_BREAK_RUN,       /* the last run of a diff is one byte short */
    QUOIT_DSM_BREAK_CAUSALITY, /* an acquire takes over only the notices of the last releaser */
    QUOIT_DSM_BREAK_HOME,      /* a home's own writes make no notice */
    QUOIT_DSM_BREAK_EXCLUSIVE, /* a home never learns that others have fetched its pages */
    QUOIT_DSM_BREAK_UPDATE,    /* copies that should be brought up to date are left as they are */
    QUOIT_DSM_BREAK_ARRIVAL,   /* a PE of one thread goes on before the pages that it fetches are there */
    QUOIT_DSM_BREAK_HANDED,    /* a hand-over of a lock leaves out the last notice of each writer */
    QUOIT_DSM_BREAK_MOVE       /* the last PE does not learn that homes have moved */
};

struct quoit_dsm_options {
    uint64_t values[QUOIT_DSM_OPTION_COUNT];
};

/* Reads the environment; a wrong value, or an unknown variable that begins with DSM_, ends the process with a message
 * that says what is allowed. */
void quoit_dsm_options_read(struct quoit_dsm_options *options, char *const *environment);

/* The word of a value, or NULL if the option is a number; and the variable's name. `buffer` has room for 32 bytes. */
const char *quoit_dsm_option_word(enum quoit_dsm_option option, uint64_t value, char *buffer);
const char *quoit_dsm_option_variable(enum quoit_dsm_option option);

/* The row of an option in docs/dsm.md, into a buffer of `bytes`. */
void quoit_dsm_option_row(enum quoit_dsm_option option, char *buffer, size_t bytes);

#endif
