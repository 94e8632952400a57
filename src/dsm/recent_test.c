/* SPDX-License-Identifier: BSD-3-Clause */
/* A releaser's ring of notices, read by an acquirer or handed over, beside a plain list of all that was added. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "dsm/recent.h"

#define PES    40
#define STEPS  4000
#define FAR    ((1ull << 36) - 100) /* positions that need more bits than a record has */
#define LAPPED (((1ull << 18) - 2) * QUOIT_DSM_RECENT)

struct added {
    int writer;
    uint64_t position, notice;
};

struct list {
    struct quoit_dsm_record records[QUOIT_DSM_RECENT];
    struct quoit_dsm_recent recent;
    struct added all[STEPS + QUOIT_DSM_RECENT];
    size_t count;
    uint64_t known[PES];
    struct quoit_prng prng;
};

/* The next notice of a random one of some writers. */
static void add(struct list *list, int writers)
{
    int writer = (int)quoit_prng_choose(&list->prng, (uint64_t)writers);
    struct added one = {writer, list->known[writer]++, quoit_prng_next(&list->prng) >> 18};
    quoit_dsm_recent_add(&list->recent, one.writer, one.position, one.notice);
    list->all[list->count++] = one;
}

/* `added` before: 0, or at least a lap. */
static void begin(struct list *list, uint64_t added, uint64_t position)
{
    memset(list, 0, sizeof *list);
    list->recent = (struct quoit_dsm_recent){list->records, added};
    list->prng.state = 1;
    for (int pe = 0; pe < PES; pe++)
        list->known[pe] = position;
    for (int i = 0; added > 0 && i < QUOIT_DSM_RECENT; i++)
        add(list, 3);
}

static struct quoit_dsm_records records_of(const struct list *list)
{
    return (struct quoit_dsm_records){list->records, QUOIT_DSM_RECENT};
}

static void expect_last(const struct list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct added *one = &list->all[i];
        uint64_t notice = 0;
        bool is_there = quoit_dsm_recent_find(records_of(list), one->writer, one->position, &notice);
        assert_int_equal(is_there, list->count - i <= QUOIT_DSM_RECENT);
        if (is_there)
            assert_true(notice == one->notice);
    }
}

/* The last ones are found, and no others; over the end of the laps, and of the bits of a position. */
static void test_find(void **state)
{
    (void)state;
    static const uint64_t starts[][2] = {{0, 0}, {LAPPED, 0}, {0, FAR}};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        struct list list;
        begin(&list, starts[i][0], starts[i][1]);
        uint64_t notice;
        for (int writer = 0; writer < PES; writer++)
            assert_false(quoit_dsm_recent_find(records_of(&list), writer, list.known[writer], &notice));
        for (int step = 0; step < 300; step++) {
            add(&list, 3);
            expect_last(&list);
        }
    }
}

/* A reader that has one word of a record from the lap before. */
static void test_torn(void **state)
{
    (void)state;
    struct list list;
    begin(&list, 0, 0);
    for (int i = 0; i < 2 * QUOIT_DSM_RECENT; i++)
        add(&list, 3);
    struct quoit_dsm_record before[QUOIT_DSM_RECENT];
    memcpy(before, list.records, sizeof before);
    for (int i = 0; i < QUOIT_DSM_RECENT; i++)
        add(&list, 3);
    for (size_t i = 0; i < QUOIT_DSM_RECENT; i++) {
        const struct added *old = &list.all[list.count - 2 * QUOIT_DSM_RECENT + i];
        const struct added *new = &list.all[list.count - QUOIT_DSM_RECENT + i];
        struct quoit_dsm_record torn[2] = {{before[i].what, list.records[i].whose},
                                           {list.records[i].what, before[i].whose}};
        uint64_t notice;
        for (int which = 0; which < 2; which++) {
            struct quoit_dsm_records one = {&torn[which], 1};
            assert_false(quoit_dsm_recent_find(one, old->writer, old->position, &notice));
            assert_false(quoit_dsm_recent_find(one, new->writer, new->position, &notice));
        }
    }
}

/* Compares what is handed over with the list. */
static void expect_handed(struct list *list, const uint64_t *seen, int pe)
{
    struct quoit_dsm_handed handed;
    assert_true(quoit_dsm_recent_hand(&list->recent, list->known, seen, PES, pe, &handed));
    uint32_t count = 0;
    for (uint64_t writer = 0; writer < PES; writer++) {
        if (writer == (uint64_t)pe || seen[writer] >= list->known[writer])
            continue;
        assert_true(handed.items[count].whose == writer);
        assert_true(handed.items[count++].what == list->known[writer]);
    }
    assert_int_equal(handed.writer_count, count);
    struct quoit_dsm_records records = {handed.items + count, handed.record_count};
    uint32_t expected = 0;
    for (size_t i = list->count > QUOIT_DSM_RECENT ? list->count - QUOIT_DSM_RECENT : 0; i < list->count; i++) {
        const struct added *one = &list->all[i];
        uint64_t notice = 0;
        bool is_lacking = one->writer != pe && one->position >= seen[one->writer];
        assert_int_equal(quoit_dsm_recent_find(records, one->writer, one->position, &notice), is_lacking);
        expected += is_lacking;
        if (is_lacking)
            assert_true(notice == one->notice);
    }
    assert_int_equal(handed.record_count, expected);
}

static void test_hand(void **state)
{
    (void)state;
    static const uint64_t starts[][2] = {{0, 0}, {LAPPED, 0}, {0, FAR}};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        struct list list;
        begin(&list, starts[i][0], starts[i][1]);
        uint64_t seen[PES];
        memcpy(seen, list.known, sizeof seen);
        expect_handed(&list, seen, 1);
        for (int step = 0; step < STEPS; step++) {
            add(&list, 5);
            expect_handed(&list, seen, step % 6);
            int writer = (int)quoit_prng_choose(&list.prng, 5);
            uint64_t age = quoit_prng_choose(&list.prng, 20); /* what the acquirer applied by itself since is less */
            if (seen[writer] + age < list.known[writer])
                seen[writer] = list.known[writer] - age;
            if (step % 500 == 499) /* it has applied more than the releaser knows of */
                seen[writer] = list.known[writer] + 3;
        }
    }
}

/* Notices of as many writers as are handed over, and of one more. */
static void test_many_writers(void **state)
{
    (void)state;
    struct list list;
    begin(&list, 0, 0);
    uint64_t seen[PES] = {0};
    for (int writer = 0; writer < QUOIT_DSM_HANDED_WRITERS; writer++) {
        quoit_dsm_recent_add(&list.recent, writer, 0, 1);
        list.all[list.count++] = (struct added){writer, list.known[writer]++, 1};
    }
    expect_handed(&list, seen, PES - 1);
    quoit_dsm_recent_add(&list.recent, PES - 1, 0, 1);
    list.all[list.count++] = (struct added){PES - 1, list.known[PES - 1]++, 1};
    struct quoit_dsm_handed handed;
    assert_false(quoit_dsm_recent_hand(&list.recent, list.known, seen, PES, PES - 2, &handed));
    expect_handed(&list, seen, PES - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_find), cmocka_unit_test(test_torn),
                                       cmocka_unit_test(test_hand), cmocka_unit_test(test_many_writers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
