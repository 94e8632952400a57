/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a job ends, or is reported to hang, only if nothing can move any more: each thing that may still move, at any
 * host and in any round, keeps it alive, and where nothing does it is ended or reported.
 *
 * Method: rounds of three hosts, whose answers come in a random order. One host differs in one point. */
#include "boot/rounds.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define HOSTS   3u
#define POLLS_S (QUOIT_ROUNDS_POLLS_NS / QUOIT_ROUNDS_APART_NS)
#define PES     9u
#define LEAVER  2u

struct job {
    struct quoit_rounds rounds;
    struct quoit_prng prng;
    uint64_t now_ns;
    struct quoit_rounds_answer answers[HOSTS]; /* of the next round */
};

static void begin(struct job *job)
{
    memset(job, 0, sizeof *job);
    job->prng.state = 30;
    job->now_ns = 5000 * QUOIT_ROUNDS_APART_NS;
    for (uint32_t host = 0; host < HOSTS; host++) {
        struct quoit_rounds_answer *answer = &job->answers[host];
        *answer = (struct quoit_rounds_answer){
            .digest = 1000 + host, .traffic = 7, .is_at_rest = 1, .leaver = QUOIT_ROUNDS_NO_PE};
        for (uint32_t i = 0; i < QUOIT_ROUNDS_LOCKS_MAX; i++)
            answer->keepers[i] = QUOIT_ROUNDS_NO_PE;
    }
    job->answers[1].has_polls = 1;
    job->answers[0].leaving_count = 1;
    job->answers[0].leaver = LEAVER;
}

/* No PE leaves, and none polls. */
static void begin_sleep(struct job *job)
{
    begin(job);
    job->answers[1].has_polls = 0;
    job->answers[0].leaving_count = 0;
    job->answers[0].leaver = QUOIT_ROUNDS_NO_PE;
}

static enum quoit_rounds_verdict round_of(struct job *job)
{
    uint32_t first = (uint32_t)quoit_prng_choose(&job->prng, HOSTS);
    job->now_ns += QUOIT_ROUNDS_APART_NS;
    quoit_rounds_begin(&job->rounds, HOSTS, job->now_ns);
    for (uint32_t i = 0; i < HOSTS; i++) {
        uint32_t host = (first + i) % HOSTS;
        assert_true(job->rounds.is_open);
        job->answers[host].round = job->rounds.question.round;
        assert_true(quoit_rounds_take(&job->rounds, host, &job->answers[host], sizeof job->answers[host]));
    }
    assert_false(job->rounds.is_open);
    return quoit_rounds_end(&job->rounds, PES);
}

/* Rounds until a verdict, POLLS_S * 2 at most. */
static uint64_t rounds_until(struct job *job, enum quoit_rounds_verdict wanted)
{
    for (uint64_t i = 1; i <= 2 * POLLS_S; i++)
        if (round_of(job) == wanted)
            return i;
    return 0;
}

static void test_stillness_is_the_end(void **state)
{
    struct job job;
    (void)state;
    begin(&job);
    assert_int_equal(rounds_until(&job, QUOIT_ROUNDS_WARNS), QUOIT_ROUNDS_WARN_NS / QUOIT_ROUNDS_APART_NS + 1);
    assert_int_equal(rounds_until(&job, QUOIT_ROUNDS_POLLED),
                     (QUOIT_ROUNDS_POLLS_NS - QUOIT_ROUNDS_WARN_NS) / QUOIT_ROUNDS_APART_NS);
    begin(&job); /* without a poll it is a warning, once */
    job.answers[1].has_polls = 0;
    assert_int_not_equal(rounds_until(&job, QUOIT_ROUNDS_WARNS), 0);
    for (uint64_t i = 0; i < 2 * POLLS_S; i++)
        assert_int_equal(round_of(&job), QUOIT_ROUNDS_MOVES);
}

static void test_what_may_move_is_waited_for(void **state)
{
    (void)state;
    for (uint32_t host = 0; host < HOSTS; host++)
        for (int what = 0; what < 4; what++) {
            struct job job;
            begin(&job);
            for (uint64_t i = 0; i < 3 * POLLS_S; i++) {
                struct quoit_rounds_answer *answer = &job.answers[host];
                answer->digest = what == 0 ? 0 : what == 1 ? 5 + i / (POLLS_S - 1) : 1000 + host;
                answer->is_at_rest = what != 2;
                answer->is_threaded = what == 3;
                assert_int_not_equal(round_of(&job), QUOIT_ROUNDS_POLLED);
                assert_true(what == 3 || what == 1 || !job.rounds.has_warned);
            }
        }
}

/* Who watches was stopped, or the machine asleep: that time counts for little. */
static void test_time_between_rounds_is_not_stillness(void **state)
{
    struct job job;
    (void)state;
    begin(&job);
    for (int i = 0; i < 3; i++)
        assert_int_equal(round_of(&job), QUOIT_ROUNDS_MOVES);
    job.now_ns += 10 * QUOIT_ROUNDS_POLLS_NS;
    assert_int_equal(round_of(&job), QUOIT_ROUNDS_NOTES);
    assert_true(job.rounds.still_ns <= 5 * QUOIT_ROUNDS_APART_NS);
}

static void test_since_is_where_something_moved(void **state)
{
    struct job job;
    (void)state;
    begin(&job);
    round_of(&job);
    uint64_t since = job.rounds.question.since;
    round_of(&job);
    assert_int_equal(job.rounds.question.since, since);
    job.answers[2].digest++;
    round_of(&job);
    assert_int_equal(job.rounds.question.since, job.rounds.question.round);
}

static const struct quoit_rounds_lock lock = {
    .offset = 4096, .wanted = 8, .bytes = 4, .keeper = QUOIT_ROUNDS_NO_PE, .waiter = 7};

static void wait_for(struct job *job, uint32_t host, bool waits)
{
    job->answers[host].locks[0] = lock;
    job->answers[host].lock_count = waits;
}

/* The lock is waited for, then kept by one that has left, then waited for again. */
static void test_a_lock_is_kept(void **state)
{
    struct job job;
    (void)state;
    begin(&job);
    wait_for(&job, 0, true);
    assert_int_equal(round_of(&job), QUOIT_ROUNDS_MOVES);
    assert_int_equal(job.rounds.question.lock_count, 1);
    job.answers[2].keepers[0] = 5;
    assert_int_equal(round_of(&job), QUOIT_ROUNDS_MOVES);
    assert_int_equal(round_of(&job), QUOIT_ROUNDS_LOCK_KEPT);
    assert_int_equal(job.rounds.keeper, 5);
    assert_int_equal(job.rounds.waiter, 7);
}

/* It had waited for one before the keeper, and has the lock behind it. */
static void test_nobody_waits_for_the_keeper(void **state)
{
    struct job job;
    (void)state;
    begin(&job);
    wait_for(&job, 0, true);
    round_of(&job);
    job.answers[2].keepers[0] = 5;
    assert_int_equal(round_of(&job), QUOIT_ROUNDS_MOVES);
    wait_for(&job, 0, false);
    for (int i = 0; i < 4; i++)
        assert_int_not_equal(round_of(&job), QUOIT_ROUNDS_LOCK_KEPT);
    job.answers[2].keepers[0] = QUOIT_ROUNDS_NO_PE; /* it joined again, and released it */
    wait_for(&job, 1, true);
    for (int i = 0; i < 4; i++)
        assert_int_not_equal(round_of(&job), QUOIT_ROUNDS_LOCK_KEPT);
}

static void test_other_answers_are_refused(void **state)
{
    struct job job;
    (void)state;
    begin(&job);
    struct quoit_rounds_answer *answer = &job.answers[0];
    assert_false(quoit_rounds_take(&job.rounds, 0, answer, sizeof *answer));
    quoit_rounds_begin(&job.rounds, HOSTS, job.now_ns);
    answer->round = job.rounds.question.round - 1;
    assert_false(quoit_rounds_take(&job.rounds, 0, answer, sizeof *answer));
    answer->round++;
    assert_false(quoit_rounds_take(&job.rounds, 0, answer, sizeof *answer - 1));
    answer->lock_count = QUOIT_ROUNDS_LOCKS_MAX + 1;
    assert_false(quoit_rounds_take(&job.rounds, 0, answer, sizeof *answer));
    answer->lock_count = QUOIT_ROUNDS_LOCKS_MAX;
    assert_true(quoit_rounds_take(&job.rounds, 0, answer, sizeof *answer));
}

/* How many PEs are in shmem_finalize is known by the same looks as the rest. */
static void test_only_while_some_leave(void **state)
{
    struct job job;
    (void)state;
    for (uint32_t leaving = 0; leaving <= PES; leaving += PES) {
        begin(&job);
        job.answers[1].leaving_count = leaving;
        job.answers[0].leaving_count = 0;
        assert_int_equal(rounds_until(&job, QUOIT_ROUNDS_WARNS), 0);
        job.answers[1].leaving_count = PES - 1;
        assert_int_equal(rounds_until(&job, QUOIT_ROUNDS_WARNS), QUOIT_ROUNDS_WARN_NS / QUOIT_ROUNDS_APART_NS + 1);
        assert_int_equal(job.rounds.sum.leaver, LEAVER);
    }
    begin(&job); /* an answer that names no PE of the job */
    job.answers[0].leaver = PES;
    assert_int_equal(rounds_until(&job, QUOIT_ROUNDS_WARNS), 0);
}

/* No PE leaves, and all sleep: reported once, after a round in which their places are noted, and again only after
 * something has moved. */
static void test_a_hang_is_reported(void **state)
{
    const uint64_t due = QUOIT_ROUNDS_HANG_NS / QUOIT_ROUNDS_APART_NS;
    struct job job;
    (void)state;
    begin_sleep(&job);
    assert_int_equal(rounds_until(&job, QUOIT_ROUNDS_NOTES), due);
    assert_int_equal(round_of(&job), QUOIT_ROUNDS_HANGS);
    for (uint64_t i = 0; i < 4 * POLLS_S; i++)
        assert_int_equal(round_of(&job), QUOIT_ROUNDS_MOVES);
    job.answers[2].digest++;
    assert_int_equal(rounds_until(&job, QUOIT_ROUNDS_HANGS), due + 1);
}

/* Whatever may end a wait, at any host, for hours; and a job that moves a little, seldom. */
static void test_no_hang_is_reported(void **state)
{
    const uint64_t due = QUOIT_ROUNDS_HANG_NS / QUOIT_ROUNDS_APART_NS, hours = 3 * 3600;
    (void)state;
    for (uint32_t host = 0; host < HOSTS; host++)
        for (int what = 0; what < 8; what++) {
            struct job job;
            begin_sleep(&job);
            for (uint64_t i = 0; i < hours; i++) {
                struct quoit_rounds_answer *answer = &job.answers[host];
                answer->has_polls = what == 0;
                answer->is_threaded = what == 1;
                answer->is_woken = what == 2;
                answer->is_at_rest = what != 3;
                answer->digest = what == 4 ? 0 : what == 5 ? 5 + i / due : 1000 + host;
                answer->traffic = what == 6 ? i / due : 7;
                answer->leaving_count = what == 7 ? PES : 0; /* all leave */
                assert_int_not_equal(round_of(&job), QUOIT_ROUNDS_HANGS);
            }
        }
}

/* A round in which nobody was known to leave and something moved asks for what memory shows; all others for more. */
static void test_shallow_rounds(void **state)
{
    struct job job;
    (void)state;
    begin_sleep(&job);
    round_of(&job);
    assert_true(job.rounds.question.is_shallow);
    assert_int_equal(quoit_rounds_next_ns(&job.rounds), job.now_ns + QUOIT_ROUNDS_APART_NS);
    round_of(&job);
    assert_false(job.rounds.question.is_shallow);
    job.answers[0].digest = 0;
    round_of(&job);
    assert_int_equal(quoit_rounds_next_ns(&job.rounds), job.now_ns + QUOIT_ROUNDS_MOVES_NS);
    job.answers[1].leaving_count = 1;
    round_of(&job);
    assert_true(job.rounds.question.is_shallow); /* it was not known yet */
    assert_int_equal(quoit_rounds_next_ns(&job.rounds), job.now_ns + QUOIT_ROUNDS_APART_NS);
    round_of(&job);
    assert_false(job.rounds.question.is_shallow);
}

/* A host is stopped, or its answer was lost: later rounds are as if there had been none. */
static void test_a_round_is_given_up(void **state)
{
    struct job job;
    (void)state;
    begin(&job);
    round_of(&job);
    job.now_ns += QUOIT_ROUNDS_APART_NS;
    quoit_rounds_begin(&job.rounds, HOSTS, job.now_ns);
    struct quoit_rounds_answer late = job.answers[0];
    late.round = job.rounds.question.round;
    assert_true(quoit_rounds_take(&job.rounds, 1, &late, sizeof late));
    job.now_ns += QUOIT_ROUNDS_APART_NS;
    quoit_rounds_begin(&job.rounds, HOSTS, job.now_ns);
    assert_false(quoit_rounds_take(&job.rounds, 0, &late, sizeof late));
    for (uint32_t host = 0; host < HOSTS; host++) {
        job.answers[host].round = job.rounds.question.round;
        assert_true(quoit_rounds_take(&job.rounds, host, &job.answers[host], sizeof job.answers[host]));
    }
    assert_false(job.rounds.is_open);
    assert_int_equal(quoit_rounds_end(&job.rounds, PES), QUOIT_ROUNDS_MOVES);
    assert_int_not_equal(job.rounds.still_ns, 0); /* the same was seen before and after */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stillness_is_the_end),
        cmocka_unit_test(test_what_may_move_is_waited_for),
        cmocka_unit_test(test_time_between_rounds_is_not_stillness),
        cmocka_unit_test(test_since_is_where_something_moved),
        cmocka_unit_test(test_a_lock_is_kept),
        cmocka_unit_test(test_nobody_waits_for_the_keeper),
        cmocka_unit_test(test_other_answers_are_refused),
        cmocka_unit_test(test_only_while_some_leave),
        cmocka_unit_test(test_a_hang_is_reported),
        cmocka_unit_test(test_no_hang_is_reported),
        cmocka_unit_test(test_shallow_rounds),
        cmocka_unit_test(test_a_round_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
