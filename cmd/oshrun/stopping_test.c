/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: whatever stops and continues reach which processes of a job, in any order and at any moment, nothing stays
 * stopped once each process that was sent a stop was sent SIGCONT; and a stop that lasts stops all. Method: the two
 * machines of stopping.h beside a model of the kernel's rules for stop signals, of the sockets between front and
 * quoit-job, of a PE that has the terminal and of one that has not. Every interleaving of up to SENT_MAX stops, the
 * continues that are due for them, and the steps of the processes is visited once. */
#include "stopping.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define SENT_MAX    3
#define WORDS_MAX   12
#define VISITED_MAX (1u << 18)

enum process { FRONT, JOB, READER, OTHER, PROCESS_COUNT };

/* Of front, the signals that it blocks are pending until it takes them; the PEs take theirs at once. */
struct process_state {
    bool is_stopped;
    bool has_tstp;
    bool has_cont;
    bool has_stop_report; /* of a child, for waitpid */
    bool has_continue_report;
};

struct words {
    uint8_t count;
    uint8_t numbers[WORDS_MAX]; /* STOP, CONTINUE; ANSWER, or ASK + continue_count */
};

enum { STOP = 1, CONTINUE, ANSWER, ASK };

struct world {
    struct process_state processes[PROCESS_COUNT];
    struct words to_job;
    struct words to_front;
    struct stopping_front front;
    enum stopping_state job;
    uint8_t continue_count; /* that the job has taken */
    uint8_t reaped;         /* STOP, CONTINUE: what it has learnt of the reader and acts upon next; 0 */
    bool has_terminal;      /* the reader */
    bool is_wanted;
    uint8_t sent_count;
    bool is_due[PROCESS_COUNT];
    bool awaits_fg; /* a shell continues what it sees stopped */
};

static void push(struct words *words, uint8_t number)
{
    assert_true(words->count < WORDS_MAX); /* else they answer each other for ever */
    words->numbers[words->count++] = number;
}

static uint8_t pop(struct words *words)
{
    uint8_t number = words->numbers[0];
    memmove(words->numbers, words->numbers + 1, --words->count);
    words->numbers[words->count] = 0;
    return number;
}

/* The kernel */

static void stop(struct process_state *process)
{
    process->has_cont = false;
    process->has_stop_report |= !process->is_stopped;
    process->has_continue_report = false;
    process->is_stopped = true;
}

static void tstp(struct world *world, enum process whom)
{
    struct process_state *process = &world->processes[whom];
    if (whom == FRONT) {
        process->has_cont = false;
        process->has_tstp = true;
    } else if (whom != JOB) { /* which takes none */
        stop(process);
    }
}

static void cont(struct process_state *process)
{
    process->has_continue_report = process->is_stopped;
    process->has_stop_report = false;
    process->has_tstp = false;
    process->has_cont = true;
    process->is_stopped = false;
}

/* quoit-job, as suspend.c does it. */

static void job_takes(struct world *world, enum stopping_event event)
{
    unsigned deeds = stopping_take(&world->job, event);
    if (deeds & (STOPPING_STOP_PES | STOPPING_STOP_OTHERS)) {
        world->is_wanted |= world->has_terminal;
        world->has_terminal = false;
        tstp(world, OTHER);
        if (deeds & STOPPING_STOP_PES)
            tstp(world, READER);
    }
    if (deeds & STOPPING_CONTINUE_PES) {
        world->has_terminal |= world->is_wanted;
        world->is_wanted = false;
        cont(&world->processes[READER]);
        cont(&world->processes[OTHER]);
    }
    if (deeds & STOPPING_ANSWER)
        push(&world->to_front, ANSWER);
    if (deeds & STOPPING_ASK_FRONT)
        push(&world->to_front, (uint8_t)(ASK + world->continue_count));
    if (deeds & STOPPING_CONTINUE_FRONT)
        cont(&world->processes[FRONT]);
}

/* Takes the n-th thing that may come next; false: it is not there. */
static bool job_steps(struct world *world, int n)
{
    struct process_state *own = &world->processes[JOB], *reader = &world->processes[READER];
    if (own->is_stopped || (world->reaped && n != 2))
        return false;
    if (n == 0 && own->has_cont) {
        own->has_cont = false;
        job_takes(world, STOPPING_CONTINUED);
        return true;
    }
    if (n == 1 && world->to_job.count) {
        bool continues = pop(&world->to_job) == CONTINUE;
        world->continue_count += continues;
        job_takes(world, continues ? STOPPING_FRONT_CONTINUES : STOPPING_FRONT_STOPS);
        return true;
    }
    if (n == 2 && world->reaped) {
        bool has_stopped = world->reaped == STOP;
        world->reaped = 0;
        if (!has_stopped)
            job_takes(world, STOPPING_TERMINAL_CONTINUED);
        else if (world->has_terminal)
            job_takes(world, STOPPING_TERMINAL_STOPPED);
        return true;
    }
    if (n == 2 && (reader->has_stop_report || reader->has_continue_report)) {
        world->reaped = reader->has_stop_report ? STOP : CONTINUE;
        reader->has_stop_report = reader->has_continue_report = false;
        return true;
    }
    return false;
}

/* The front, as front.c does it. */

static void front_takes(struct world *world, enum stopping_front_event event)
{
    struct process_state *own = &world->processes[FRONT];
    unsigned deeds = stopping_front_take(&world->front, event);
    if (deeds & STOPPING_SEND_STOP)
        push(&world->to_job, STOP);
    if (deeds & STOPPING_SEND_CONTINUE)
        push(&world->to_job, CONTINUE);
    if ((deeds & STOPPING_STOP_SELF) && own->has_tstp) {
        own->has_tstp = false;
        own->is_stopped = true;
    }
}

static bool front_steps(struct world *world, int n)
{
    struct process_state *own = &world->processes[FRONT];
    if (own->is_stopped)
        return false;
    if (n == 0 && own->has_cont) {
        own->has_cont = false;
        front_takes(world, STOPPING_FRONT_CONT);
        return true;
    }
    if (n == 1 && own->has_tstp && !world->front.is_asking) {
        front_takes(world, STOPPING_FRONT_TSTP);
        return true;
    }
    if (n == 2 && world->to_front.count) {
        uint8_t number = pop(&world->to_front);
        if (number == ANSWER)
            front_takes(world, STOPPING_FRONT_ANSWER);
        else if (stopping_front_heeds(&world->front, (uint32_t)number - ASK) && !own->has_cont)
            tstp(world, FRONT);
        return true;
    }
    if (n == 3 && world->front.is_asking) {
        front_takes(world, STOPPING_FRONT_LATE);
        return true;
    }
    return false;
}

/* Who sends */

/* The n-th thing that a sender may do; false: not now. */
static bool sender_steps(struct world *world, int n)
{
    enum process whom = (enum process)(n % PROCESS_COUNT);
    int what = n / PROCESS_COUNT;
    if (what == 0 && world->is_due[whom]) {
        world->is_due[whom] = false;
        cont(&world->processes[whom]);
        return true;
    }
    if ((what == 1 || what == 2) && world->sent_count < SENT_MAX) {
        if (what == 1)
            stop(&world->processes[whom]);
        else
            tstp(world, whom);
        world->is_due[whom] = true;
        world->sent_count++;
        return true;
    }
    if (what == 3 && whom == FRONT && world->awaits_fg && world->processes[FRONT].is_stopped) {
        world->awaits_fg = false;
        cont(&world->processes[FRONT]);
        return true;
    }
    /* The key, while the reader has the terminal: a shell continues the job, or somebody that process. */
    if (what == 3 && (whom == READER || whom == OTHER) && world->has_terminal && world->sent_count < SENT_MAX) {
        tstp(world, READER);
        if (whom == READER)
            world->awaits_fg = true;
        else
            world->is_due[READER] = true;
        world->sent_count++;
        return true;
    }
    return false;
}

static bool is_all_continued(const struct world *world)
{
    for (int i = 0; i < PROCESS_COUNT; i++)
        if (world->is_due[i])
            return false;
    return !world->awaits_fg || !world->processes[FRONT].is_stopped;
}

static void check_runs(const struct world *world)
{
    for (int i = 0; i < PROCESS_COUNT; i++)
        assert_false(world->processes[i].is_stopped);
    assert_int_equal(world->job, STOPPING_RUNS);
    assert_false(world->front.is_asking);
}

/* Search */

struct search {
    struct world *worlds; /* VISITED_MAX, by hash; sent_count UINT8_MAX: none */
    uint32_t count;
    uint32_t final_count;
};

static bool is_new(struct search *search, const struct world *world)
{
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof *world; i++)
        hash = (hash ^ ((const unsigned char *)world)[i]) * 0x100000001b3u;
    uint32_t at = (uint32_t)(hash ^ hash >> 32) % VISITED_MAX;
    while (search->worlds[at].sent_count != UINT8_MAX) {
        if (memcmp(&search->worlds[at], world, sizeof *world) == 0)
            return false;
        at = (at + 1) % VISITED_MAX;
    }
    assert_true(++search->count < VISITED_MAX / 4 * 3);
    memcpy(&search->worlds[at], world, sizeof *world);
    return true;
}

static void visit(struct search *search, const struct world *from)
{
    bool has_step = false;
    if (!is_new(search, from))
        return;
    for (int n = 0; n < 7; n++) {
        struct world next;
        memcpy(&next, from, sizeof next);
        if (n < 4 ? front_steps(&next, n) : job_steps(&next, n - 4)) {
            has_step = true;
            visit(search, &next);
        }
    }
    if (!has_step && is_all_continued(from)) {
        search->final_count++;
        check_runs(from);
    }
    for (int n = 0; n < 4 * PROCESS_COUNT; n++) {
        struct world next;
        memcpy(&next, from, sizeof next);
        if (sender_steps(&next, n))
            visit(search, &next);
    }
}

static void test_nothing_stays_stopped(void **state)
{
    (void)state;
    struct search search = {.worlds = malloc(VISITED_MAX * sizeof(struct world))};
    struct world begin;
    assert_non_null(search.worlds);
    memset(search.worlds, 0xff, VISITED_MAX * sizeof(struct world));
    for (int has_terminal = 0; has_terminal < 2; has_terminal++) {
        memset(&begin, 0, sizeof begin); /* also what lies between members, which are compared */
        begin.has_terminal = has_terminal;
        visit(&search, &begin);
    }
    print_message("%u states, %u final\n", search.count, search.final_count);
    assert_true(search.final_count > 0);
    free(search.worlds);
}

/* Without a late answer. */
static void run_on(struct world *world)
{
    bool has_step = true;
    while (has_step) {
        has_step = false;
        for (int n = 0; n < 6; n++)
            has_step |= n < 3 ? front_steps(world, n) : job_steps(world, n - 3);
    }
}

static void check_all_stopped(const struct world *world)
{
    assert_true(world->processes[FRONT].is_stopped);
    assert_true(world->processes[READER].is_stopped);
    assert_true(world->processes[OTHER].is_stopped);
    assert_false(world->processes[JOB].is_stopped);
    assert_false(world->has_terminal);
}

static void test_a_stop_lasts(void **state)
{
    (void)state;
    for (int is_key = 0; is_key < 2; is_key++) {
        struct world world = {.has_terminal = true};
        tstp(&world, is_key ? READER : FRONT);
        run_on(&world);
        check_all_stopped(&world);
        cont(&world.processes[FRONT]);
        run_on(&world);
        check_runs(&world);
        assert_true(world.has_terminal);
    }
}

/* Without an answer, as from a stopped quoit-job, which stops the PEs when it is continued. */
static void test_no_answer(void **state)
{
    (void)state;
    struct world world = {.job = STOPPING_RUNS};
    stop(&world.processes[JOB]);
    tstp(&world, FRONT);
    run_on(&world);
    assert_false(world.processes[FRONT].is_stopped);
    front_takes(&world, STOPPING_FRONT_LATE);
    assert_true(world.processes[FRONT].is_stopped);
    cont(&world.processes[JOB]);
    world.processes[JOB].has_cont = false; /* taken before the socket */
    run_on(&world);
    check_all_stopped(&world);
    cont(&world.processes[FRONT]);
    run_on(&world);
    check_runs(&world);
}

/* A job that is to end goes on, with its front; so does one whose quoit-job is continued by somebody. */
static void test_other_continues(void **state)
{
    (void)state;
    for (int is_key = 0; is_key < 2; is_key++) {
        for (int is_end = 0; is_end < 2; is_end++) {
            struct world world = {.has_terminal = true};
            tstp(&world, is_key ? READER : FRONT);
            run_on(&world);
            check_all_stopped(&world);
            if (is_end)
                job_takes(&world, STOPPING_JOB_ENDS);
            else
                cont(&world.processes[JOB]);
            run_on(&world);
            check_runs(&world);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_stays_stopped),
        cmocka_unit_test(test_a_stop_lasts),
        cmocka_unit_test(test_no_answer),
        cmocka_unit_test(test_other_continues),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
