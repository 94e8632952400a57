/* SPDX-License-Identifier: BSD-3-Clause */
/* homes - homes that move to the single writer. Each page has a random schedule, known to all PEs: who writes it in an
 * epoch, alone or with another PE, or nobody; the writers store random bytes at random places. After each barrier every
 * PE compares pages, at the end all, with the same schedule played in private memory; and homes with the rule: a page
 * goes to the PE that was its only writer in three of its epochs in a row. A placed page stays.
 *
 * Use: homes stays|moves|any [--threads] [EPOCHS]. stays: no page may move; moves: as the rule says; any: not compared.
 */
#include <dsm.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/prng.h"

#define PAGES  160
#define BYTES  4096
#define STREAK 3

static unsigned char model[PAGES][BYTES];
static struct {
    int writer, count, home;
} rule[PAGES];
static int me, pes, epochs = 40;

__attribute__((noreturn, format(printf, 1, 2))) static void fail(const char *format, ...)
{
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    fprintf(stderr, "homes: PE %d: %s\n", me, text);
    _exit(1);
}

static uint64_t chance(uint64_t a, uint64_t b, uint64_t c)
{
    struct quoit_prng prng = {a * 0x100000001b3u + b * 0xc2b2ae3d27d4eb4fu + c};
    return quoit_prng_next(&prng);
}

/* A period of a page is 1 to 8 epochs, with one writer, or rarely two; in some epochs of it nobody writes. */
static int writer_of(int page, int epoch, int which)
{
    uint64_t period = (uint64_t)epoch / (chance(1, (uint64_t)page, 0) % 8 + 1);
    uint64_t word = chance(2, (uint64_t)page, period);
    if (chance(3, (uint64_t)page, (uint64_t)epoch) % 6 == 0 || (which == 1 && word / 64 % 8 != 0))
        return -1;
    return (int)((word + (uint64_t)which) % (uint64_t)pes);
}

/* The two writers of a page have halves of their own. */
static void write_page(unsigned char *page, int number, int epoch, int which)
{
    struct quoit_prng prng = {chance(4, (uint64_t)number, (uint64_t)(2 * epoch + which))};
    bool is_shared = writer_of(number, epoch, 1) >= 0;
    for (int i = 0; i < 30; i++) {
        uint64_t at = quoit_prng_choose(&prng, is_shared ? BYTES / 2 : BYTES) + (uint64_t)which * BYTES / 2;
        page[at] = (unsigned char)(page[at] + 1 + quoit_prng_choose(&prng, 255)); /* never the same value */
    }
}

/* Writing the same byte twice may restore it, but 30 places in a row do not. */
static void play(unsigned char (*pages)[BYTES], int epoch, int pe)
{
    for (int page = 0; page < PAGES; page++) {
        for (int which = 0; which < 2; which++) {
            int writer = writer_of(page, epoch, which);
            if (writer >= 0 && (pe < 0 || writer == pe))
                write_page(pages[page], page, epoch, which);
        }
    }
}

static void follow_rule(int epoch)
{
    for (int page = 0; page < PAGES; page++) {
        int writer = writer_of(page, epoch, 0), other = writer_of(page, epoch, 1);
        if (writer < 0 && other < 0)
            continue;
        bool is_alone = other < 0 || writer < 0 || other == writer;
        if (!is_alone || rule[page].writer != writer)
            rule[page].count = 0;
        rule[page].writer = writer;
        rule[page].count += is_alone;
        if (rule[page].count >= STREAK)
            rule[page].home = writer;
    }
}

static void *idle(void *argument)
{
    sleep(1000);
    return argument;
}

static void compare(unsigned char (*pages)[BYTES], int epoch, const char *how)
{
    for (int page = 0; page < PAGES; page++) {
        bool is_read = chance(5, (uint64_t)page, (uint64_t)(epoch * pes + me)) % 2 == 0 || epoch == epochs - 1;
        for (int i = 0; is_read && i < BYTES; i++) {
            if (pages[page][i] != model[page][i])
                fail("epoch %d: byte %d of page %d is %d, but the model has %d", epoch, i, page, pages[page][i],
                     model[page][i]);
        }
        int home = dsm_home(pages[page]);
        if (strcmp(how, "any") != 0 && home != rule[page].home)
            fail("epoch %d: page %d is at PE %d, but the rule says PE %d", epoch, page, home, rule[page].home);
    }
}

int main(int count, char **words)
{
    const char *how = count > 1 ? words[1] : "any";
    bool has_threads = false;
    for (int i = 2; i < count; i++) {
        if (strcmp(words[i], "--threads") == 0)
            has_threads = true;
        else
            epochs = atoi(words[i]);
    }
    dsm_init();
    me = dsm_my_pe();
    pes = dsm_n_pes();
    pthread_t thread;
    if (has_threads && me == pes - 1 && pthread_create(&thread, NULL, idle, NULL) != 0)
        fail("no thread");
    unsigned char(*first)[BYTES] = dsm_all_malloc(sizeof(unsigned char[PAGES + 1][BYTES]));
    unsigned char(*pages)[BYTES] = (void *)(((uintptr_t)first + BYTES - 1) & ~(uintptr_t)(BYTES - 1));
    unsigned char **placed = dsm_all_malloc(sizeof *placed); /* PE 0 alone writes it, but it stays */
    if (me == 0) {
        memset(pages, 0, sizeof(unsigned char[PAGES][BYTES]));
        *placed = dsm_malloc_placed(BYTES, DSM_ON_PE, pes - 1);
    }
    dsm_barrier_all();
    for (int i = 0; i < 2; i++) { /* pages that have been read leave exclusive mode, which counts as a write by PE 0 */
        compare(pages, epochs - 1, "any");
        dsm_barrier_all();
    }
    for (int epoch = 0; epoch < epochs; epoch++) {
        play(pages, epoch, me);
        play(model, epoch, -1);
        dsm_barrier_all();
        if (strcmp(how, "moves") == 0)
            follow_rule(epoch);
        if (chance(6, 0, (uint64_t)epoch) % 2 != 0 && epoch < epochs - 1)
            continue; /* then a PE may write on while others still read its log */
        compare(pages, epoch, how);
        if (dsm_home(*placed) != pes - 1)
            fail("epoch %d: the placed page is at PE %d", epoch, dsm_home(*placed));
        if (me == 0)
            **placed = (unsigned char)epoch;
        dsm_barrier_all();
    }
    dsm_finalize();
    if (me == 0)
        printf("homes: ended\n");
    return 0;
}
