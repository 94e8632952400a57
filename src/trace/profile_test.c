/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what grows with a run stays within its size and loses nothing of its sums; what a PE may have written wrongly
 * is within bounds after quoit_profile_mend(). Method: more places, collectives, objects and time than there is room
 * for; a record of random bytes. tests/profile counts whole jobs. */
#include "trace/profile.h"
#include "base/prng.h"
#include "env/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define PES 3

static struct quoit_profile *new_profile(void)
{
    struct quoit_profile *profile = calloc(1, quoit_profile_bytes(PES));
    assert_non_null(profile);
    quoit_profile_begin(profile, false);
    return profile;
}

static void no_place(struct quoit_profile *profile, struct quoit_profile_site *site)
{
    (void)profile;
    (void)site;
}

static const char put_name[] = "shmem_putmem";

static void call_from(struct quoit_profile *profile, uintptr_t from, uint64_t bytes)
{
    assert_true(quoit_profile_enter(profile, put_name, (const void *)from, bytes));
    quoit_profile_note_peer(QUOIT_PROFILE_PUT, (uint32_t)(from % PES));
    quoit_profile_leave(profile, PES, true, no_place);
}

static void more_places_than_there_is_room_for(void **state)
{
    (void)state;
    struct quoit_profile *profile = new_profile();
    uint64_t calls = 0, bytes = 0, put_bytes = 0;
    for (uintptr_t from = 1; from <= QUOIT_PROFILE_SITES; from++)
        for (uint64_t again = 0; again < 2; again++)
            call_from(profile, from, from + again);
    for (uint32_t i = 0; i < QUOIT_PROFILE_SITES; i++) {
        const struct quoit_profile_site *site = &profile->sites[i];
        calls += site->count;
        bytes += site->bytes;
        assert_int_equal(site->count, site->call_id ? 2 : 0);
        assert_int_equal(site->bytes, site->call_id ? 2 * site->from + 1 : 0);
    }
    assert_int_equal(profile->site_count, QUOIT_PROFILE_SITES / 4 * 3);
    assert_int_equal(calls + profile->unplaced_count, 2 * QUOIT_PROFILE_SITES);
    for (uint32_t pe = 0; pe < PES; pe++)
        put_bytes += profile->peers[pe].bytes[QUOIT_PROFILE_PUT];
    assert_int_equal(put_bytes, QUOIT_PROFILE_SITES * (QUOIT_PROFILE_SITES + 1) + QUOIT_PROFILE_SITES);
    assert_true(bytes < put_bytes);
    free(profile);
}

static void calls_inside_others_are_part_of_them(void **state)
{
    (void)state;
    struct quoit_profile *profile = new_profile();
    assert_true(quoit_profile_enter(profile, "shmem_realloc", NULL, 10));
    assert_false(quoit_profile_enter(profile, "shmem_malloc", NULL, 20));
    uint64_t now_ns = quoit_clock_now_ns();
    quoit_profile_wait(profile, now_ns, now_ns + 5);
    quoit_profile_leave(profile, PES, false, no_place);
    quoit_profile_leave(profile, PES, true, no_place);
    assert_int_equal(profile->site_count, 1);
    for (uint32_t i = 0; i < QUOIT_PROFILE_SITES; i++)
        if (profile->sites[i].call_id != 0) {
            assert_string_equal(profile->sites[i].call, "shmem_realloc");
            assert_int_equal(profile->sites[i].bytes, 10);
            assert_int_equal(profile->sites[i].wait_ns, 5);
        }
    free(profile);
}

/* Waits of a length that makes the bins double many times. */
static void bins_keep_their_sum(void **state)
{
    (void)state;
    struct quoit_profile *profile = new_profile();
    uint64_t sum_ns = 0, at_ns = profile->begin_ns;
    assert_true(quoit_profile_enter(profile, "shmem_quiet", NULL, 0));
    for (uint64_t i = 1; i < 400; i++) {
        quoit_profile_wait(profile, at_ns, at_ns + i * 1000003);
        sum_ns += i * 1000003;
        at_ns += i * 1500007;
    }
    uint64_t found_ns = 0;
    for (uint32_t i = 0; i < QUOIT_PROFILE_BINS; i++) {
        assert_true(profile->bins[i].wait_ns <= profile->bin_ns);
        found_ns += profile->bins[i].wait_ns;
    }
    assert_int_equal(found_ns, sum_ns);
    assert_true(profile->bin_ns > QUOIT_PROFILE_BIN_NS);
    quoit_profile_leave(profile, PES, true, no_place);
    free(profile);
}

/* Two PEs with teams in another order, and another number of them, keep the same collectives of the one they share. */
static void the_same_collectives_are_kept(void **state)
{
    (void)state;
    struct quoit_profile *pair[2] = {new_profile(), new_profile()};
    for (int which = 0; which < 2; which++)
        for (uint64_t i = 0; i < 3 * QUOIT_PROFILE_MEETINGS; i++) {
            assert_true(quoit_profile_enter(pair[which], "shmem_sync", NULL, 0));
            quoit_profile_note_group(0, 1, which && i % 3 == 0 ? 2 : PES, 0);
            quoit_profile_leave(pair[which], PES, true, no_place);
        }
    for (int which = 0; which < 2; which++) {
        const struct quoit_profile *profile = pair[which];
        uint64_t next[QUOIT_PROFILE_GROUPS] = {0}, step = profile->meeting_step;
        assert_int_equal(step, 4);
        for (uint32_t i = 0; i < profile->meeting_count; i++) {
            const struct quoit_profile_meeting *meeting = &profile->meetings[i];
            assert_int_equal(meeting->number, next[meeting->group]);
            next[meeting->group] += step;
        }
        for (uint32_t i = 0; i < profile->group_count; i++)
            assert_int_equal(next[i], (profile->groups[i].count + step - 1) / step * step);
        free(pair[which]);
    }
}

/* A site with so many calls that only some are timed: none is lost, and their times are within the time that has
 * passed. Of a collective each is timed; so is each call where the clock costs nothing. */
static void many_calls_are_counted_and_some_timed(void **state)
{
    (void)state;
    enum { CALLS = 200000 };
    struct quoit_profile *profile = new_profile();
    profile->clock_ns = 50;
    for (uint64_t i = 0; i < CALLS; i++) {
        call_from(profile, 1, 8);
        if (i % 100 != 0)
            continue;
        assert_true(quoit_profile_enter(profile, "shmem_sync", NULL, 0));
        quoit_profile_note_group(0, 1, PES, 0);
        quoit_profile_leave(profile, PES, true, no_place);
    }
    const struct quoit_profile_site *put = quoit_profile_find(profile, put_name, 1);
    assert_int_equal(put->count, CALLS);
    assert_int_equal(put->bytes, 8 * CALLS);
    assert_int_equal(profile->peers[1].count[QUOIT_PROFILE_PUT], CALLS);
    assert_true(put->timed_count > 0 && put->timed_count < CALLS / 2);
    assert_true(put->covered_count <= CALLS);
    quoit_profile_mend(profile);
    assert_int_equal(put->covered_count, CALLS);
    uint64_t site_ns = 0, bin_ns = 0;
    for (uint32_t i = 0; i < QUOIT_PROFILE_SITES; i++) {
        const struct quoit_profile_site *site = &profile->sites[i];
        site_ns += site->ns;
        if (site->call_id != 0 && site != put)
            assert_int_equal(site->timed_count, site->count);
    }
    for (uint32_t i = 0; i < QUOIT_PROFILE_BINS; i++) {
        assert_true(profile->bins[i].call_ns <= profile->bin_ns);
        bin_ns += profile->bins[i].call_ns;
    }
    assert_int_equal(site_ns, bin_ns);
    assert_true(site_ns <= profile->end_ns - profile->begin_ns);
    free(profile);
    profile = new_profile();
    profile->clock_ns = 0;
    for (uint64_t i = 0; i < 10000; i++)
        call_from(profile, 1, 8);
    assert_int_equal(quoit_profile_find(profile, put_name, 1)->timed_count, 10000);
    free(profile);
}

/* Each call of 1 ms, at intervals of 1 ms: those that are not timed count as those that are, and waits as they were. */
static void calls_that_are_not_timed_count_as_those_that_are(void **state)
{
    (void)state;
    struct quoit_profile *profile = new_profile();
    struct quoit_profile_site *site;
    profile->clock_ns = 0;
    call_from(profile, 1, 8);
    site = quoit_profile_find(profile, put_name, 1);
    uint64_t first_ns = site->ns, now_ns = site->timed_ns;
    for (uint64_t i = 0; i < 9; i++)
        quoit_profile_count(profile, site, 8);
    quoit_profile_count(profile, site, 8);
    quoit_profile_timed(profile, site, now_ns + 19000000, now_ns + 20000000, true);
    assert_int_equal(site->ns - first_ns, 10000000);
    quoit_profile_count(profile, site, 8);
    quoit_profile_count(profile, site, 8);
    quoit_profile_timed(profile, site, now_ns + 25000000, now_ns + 30000000, false); /* unlike the others */
    assert_int_equal(site->ns - first_ns, 15000000);
    quoit_profile_count(profile, site, 8);
    quoit_profile_timed(profile, site, now_ns + 31000000, now_ns + 32000000, true);
    assert_int_equal(site->ns - first_ns, 17000000);
    assert_int_equal(site->covered_count, 14);
    assert_int_equal(site->timed_count, 4);
    quoit_profile_count(profile, site, 8);
    quoit_profile_count(profile, site, 8);
    quoit_profile_timed(profile, site, now_ns + 32000000, now_ns + 40000000, true); /* there is no room for another */
    assert_int_equal(site->ns - first_ns, 25000000);
    free(profile);
}

static void anything_is_within_bounds(void **state)
{
    (void)state;
    struct quoit_prng prng = {36};
    struct quoit_profile *profile = new_profile();
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < quoit_profile_bytes(PES) / 8; i++)
            ((uint64_t *)(void *)profile)[i] = quoit_prng_next(&prng);
        quoit_profile_mend(profile);
        assert_true(profile->object_count <= QUOIT_PROFILE_OBJECTS);
        assert_true(profile->meeting_count <= QUOIT_PROFILE_MEETINGS);
        for (uint32_t i = 0; i < profile->meeting_count; i++) {
            assert_true(profile->meetings[i].group < profile->group_count);
            assert_true(profile->meetings[i].site < QUOIT_PROFILE_SITES);
        }
        for (uint32_t i = 0; i < QUOIT_PROFILE_SITES; i++) {
            assert_true(profile->sites[i].object < QUOIT_PROFILE_OBJECTS);
            assert_true(strnlen(profile->sites[i].call, QUOIT_PROFILE_CALL_BYTES) < QUOIT_PROFILE_CALL_BYTES);
        }
    }
    free(profile);
}

static void objects_have_an_index_each(void **state)
{
    (void)state;
    struct quoit_profile *profile = new_profile();
    char name[2 * QUOIT_PROFILE_OBJECT_BYTES];
    for (uint32_t i = 1; i < 2 * QUOIT_PROFILE_OBJECTS; i++)
        for (int again = 0; again < 2; again++) {
            snprintf(name, sizeof name, "%02u-%0400d", i, 0);
            assert_int_equal(quoit_profile_object(profile, name),
                             i < QUOIT_PROFILE_OBJECTS ? i : QUOIT_PROFILE_OBJECTS);
        }
    free(profile);
}

/* A line stands in place of any return address, of this thread alone, until it is taken back. */
static void lines_stand_for_return_addresses(void **state)
{
    (void)state;
    struct quoit_profile *profile = new_profile();
    uint32_t file = quoit_profile_file(profile, "/a/heat.py"), found = 0;
    call_from(profile, 70000, 1);
    quoit_profile_set_line(file, 12);
    call_from(profile, 70000, 2);
    call_from(profile, 80000, 4);
    quoit_profile_set_line(file, 13);
    call_from(profile, 70000, 8);
    quoit_profile_set_line(0, 0);
    call_from(profile, 70000, 16);
    for (uint32_t i = 0; i < QUOIT_PROFILE_SITES; i++) {
        const struct quoit_profile_site *site = &profile->sites[i];
        if (site->call_id == 0)
            continue;
        bool is_line = quoit_profile_is_line(site->from);
        assert_int_equal(site->bytes, !is_line ? 17 : (uint32_t)site->from == 12 ? 6 : 8);
        assert_int_equal(is_line ? quoit_profile_file_of(site->from) : file, file);
        found++;
    }
    assert_int_equal(found, 3);
    assert_string_equal(profile->objects[file], "/a/heat.py");
    free(profile);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_places_than_there_is_room_for),
        cmocka_unit_test(calls_inside_others_are_part_of_them),
        cmocka_unit_test(bins_keep_their_sum),
        cmocka_unit_test(the_same_collectives_are_kept),
        cmocka_unit_test(many_calls_are_counted_and_some_timed),
        cmocka_unit_test(calls_that_are_not_timed_count_as_those_that_are),
        cmocka_unit_test(anything_is_within_bounds),
        cmocka_unit_test(objects_have_an_index_each),
        cmocka_unit_test(lines_stand_for_return_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
