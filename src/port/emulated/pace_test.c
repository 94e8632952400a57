/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a wire with a rate is used whole by a sender that always has something to send, however late its thread wakes;
 * and time in which nobody had something to send is lost, as on a real wire. Method: the driver's pacing alone, on a
 * clock that moves only when a sender sleeps, yields or works. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "base/prng.h"
#include "env/primitives.h"
#include "port/emulated/opening.h"

#define RATE       2000000000u /* bytes per second */
#define PART_BYTES 4096u
#define PART_NS    2048u
#define PARTS      100000u
#define US         1000u
#define MS         1000000u
#define SPAN_US    50000u

static struct {
    uint64_t now_ns;
    uint64_t late_ns; /* at most, of a sleep */
    struct quoit_prng chance;
    struct quoit_wait_habit habit;
} clock_of_test;

static uint64_t now_ns(void)
{
    return clock_of_test.now_ns;
}

static uint64_t chance_of_late(void)
{
    return clock_of_test.late_ns != 0 ? quoit_prng_choose(&clock_of_test.chance, clock_of_test.late_ns) : 0;
}

static void sleep_ns(uint64_t duration_ns)
{
    clock_of_test.now_ns += duration_ns + chance_of_late();
}

static void yield(bool is_in_vain)
{
    (void)is_in_vain;
    clock_of_test.now_ns += 500 + (quoit_prng_choose(&clock_of_test.chance, 100) == 0 ? chance_of_late() : 0);
}

static struct quoit_wait_habit *habit(void)
{
    return &clock_of_test.habit;
}

static const struct quoit_primitives primitives = {
    .now_ns = now_ns, .sleep_ns = sleep_ns, .yield = yield, .habit = habit};

/* Openings without memory: alone on its link, or a share of a wire; and another share of that. */
struct rig {
    struct quoit_emulated_port port;
    struct quoit_emulated_port other;
    struct quoit_emulated_side side;
    struct quoit_emulated_wire wire;
};

static int set_up(void **state)
{
    struct rig *rig = aligned_alloc(64, (sizeof *rig + 63) / 64 * 64);
    memset(rig, 0, sizeof *rig);
    rig->port.own = &rig->side;
    rig->port.knobs.rate_bytes_per_s = rig->other.knobs.rate_bytes_per_s = RATE;
    rig->other.wire = &rig->wire;
    rig->other.share = 1;
    memset(&clock_of_test, 0, sizeof clock_of_test);
    clock_of_test.now_ns = 5000 * (uint64_t)MS;
    quoit_primitives = &primitives;
    *state = rig;
    return 0;
}

static int tear_down(void **state)
{
    quoit_primitives = NULL;
    free(*state);
    return 0;
}

/* Returns the time that the parts took, in hundredths of what the wire needs for them. */
static uint64_t send_parts(struct rig *rig, void (*send)(struct quoit_emulated_port *port, uint64_t bytes))
{
    uint64_t begin_ns = clock_of_test.now_ns;
    for (uint32_t i = 0; i < PARTS; i++)
        send(&rig->port, PART_BYTES);
    return (clock_of_test.now_ns - begin_ns) * 100 / ((uint64_t)PARTS * PART_NS);
}

static void post(struct quoit_emulated_port *port, uint64_t bytes)
{
    (void)quoit_emulated_take_wire(port, bytes);
}

static void pace(struct quoit_emulated_port *port, uint64_t bytes)
{
    quoit_emulated_pace(port, bytes, false);
}

static void pace_asleep(struct quoit_emulated_port *port, uint64_t bytes)
{
    quoit_emulated_pace(port, bytes, true);
}

static void test_late_wakes_lose_nothing(void **state)
{
    struct rig *rig = *state;
    for (uint32_t late_us = 0; late_us <= 3000; late_us += 500) {
        clock_of_test.late_ns = late_us * US;
        rig->port.wire = NULL;
        uint64_t alone = send_parts(rig, pace), asleep = send_parts(rig, pace_asleep);
        rig->port.wire = &rig->wire;
        uint64_t shared = send_parts(rig, pace), posted = send_parts(rig, post);
        print_message("late by up to %u us: %lu, %lu, %lu and %lu hundredths of the wire's time\n", late_us, alone,
                      asleep, shared, posted);
        assert_in_range(alone, 97, 103);
        assert_in_range(asleep, 97, 103);
        assert_in_range(shared, 97, 103);
        assert_in_range(posted, 97, 103);
    }
}

/* Time that a sender spends otherwise, longer than it may be ahead, is lost; it gets no credit for it. */
static void test_absence_is_no_credit(void **state)
{
    struct rig *rig = *state;
    rig->port.wire = &rig->wire;
    clock_of_test.late_ns = 100 * US;
    for (uint32_t i = 0; i < 100; i++) {
        send_parts(rig, post);
        clock_of_test.now_ns += (uint64_t)(i + 1) * 200 * US;
        uint64_t begin_ns = clock_of_test.now_ns;
        assert_true(quoit_emulated_take_wire(&rig->port, PART_BYTES) >= begin_ns + PART_NS);
    }
}

/* A sender that was not run for a second has not a second of the wire to make good. */
static void test_credit_is_bounded(void **state)
{
    struct rig *rig = *state;
    rig->port.wire = &rig->wire;
    send_parts(rig, post);
    while (rig->wire.side[0].due_ns[0] <= clock_of_test.now_ns + 40 * US)
        post(&rig->port, PART_BYTES);
    uint64_t before_ns = clock_of_test.now_ns;
    clock_of_test.late_ns = 2000 * (uint64_t)MS;
    while (clock_of_test.now_ns - before_ns < 900 * MS)
        post(&rig->port, PART_BYTES);
    clock_of_test.late_ns = 0;
    assert_in_range(send_parts(rig, post), 97, 100); /* 4 ms of the 205 ms that they take */
}

/* A sender that waits for room among what it has posted was there all the time. */
static void test_full_queue_is_no_absence(void **state)
{
    struct rig *rig = *state;
    uint64_t begin_ns = clock_of_test.now_ns;
    for (uint32_t i = 0; i < PARTS; i++) {
        uint64_t end_ns = quoit_emulated_take_wire(&rig->port, PART_BYTES);
        if (end_ns > clock_of_test.now_ns + 100 * US) {
            clock_of_test.now_ns = end_ns + 2 * MS; /* it wakes late */
            quoit_emulated_has_waited(&rig->port);
        }
    }
    assert_in_range((clock_of_test.now_ns - begin_ns) * 100 / ((uint64_t)PARTS * PART_NS), 97, 103);
}

/* Takes the wire for the share until its part is ahead for longer than that; returns when that has been sent. */
static uint64_t get_ahead(struct rig *rig, struct quoit_emulated_port *port, uint64_t ahead_ns)
{
    uint64_t end_ns = 0;
    while (rig->wire.side[0].due_ns[port->share] <= clock_of_test.now_ns + ahead_ns)
        end_ns = quoit_emulated_take_wire(port, PART_BYTES);
    return end_ns;
}

/* A short write of a share with nothing else to send passes what another share has taken before; a long one, one of
 * many and one of a share that is late do not. Either way the wire is taken for it. */
static void test_short_write_passes_another_share(void **state)
{
    struct rig *rig = *state;
    rig->port.wire = &rig->wire;
    for (uint32_t bytes = 8; bytes <= PART_BYTES; bytes *= 8) {
        uint64_t busy_ns = get_ahead(rig, &rig->port, 40 * US);
        uint64_t end_ns = quoit_emulated_take_wire(&rig->other, bytes);
        assert_in_range(end_ns, clock_of_test.now_ns, clock_of_test.now_ns + 2 * PART_NS);
        uint64_t next_ns = quoit_emulated_take_wire(&rig->port, PART_BYTES);
        assert_int_equal(next_ns, busy_ns + (uint64_t)bytes * PART_NS / PART_BYTES + PART_NS);
        clock_of_test.now_ns += 10 * MS;
    }
    uint64_t busy_ns = get_ahead(rig, &rig->port, 40 * US);
    assert_int_equal(quoit_emulated_take_wire(&rig->other, 2 * PART_BYTES), busy_ns + 2 * PART_NS);
    clock_of_test.now_ns += 10 * MS;
    get_ahead(rig, &rig->port, 40 * US);
    busy_ns = get_ahead(rig, &rig->other, 20 * US);
    assert_int_equal(quoit_emulated_take_wire(&rig->other, 8), busy_ns + 4);
    clock_of_test.now_ns += 100 * US;
    quoit_emulated_has_waited(&rig->other);
    busy_ns = get_ahead(rig, &rig->port, 40 * US);
    assert_int_equal(quoit_emulated_take_wire(&rig->other, 8), busy_ns + 4);
}

/* One share always has something to send; the other waits for each of its short writes before the next, and has nothing
 * to send at times. By no instant has more arrived than the wire could have sent, but for what a share may be ahead. */
static void test_short_writes_keep_the_rate(void **state)
{
    static uint32_t arrived[SPAN_US]; /* bytes, in each microsecond */
    struct rig *rig = *state;
    rig->port.wire = &rig->wire;
    memset(arrived, 0, sizeof arrived);
    const uint64_t begin_ns = clock_of_test.now_ns;
    uint64_t next_ns = begin_ns, sum = 0, sum_of_short = 0;
    for (; clock_of_test.now_ns - begin_ns < (SPAN_US - 200) * US; clock_of_test.now_ns += 200) {
        if (rig->wire.side[0].due_ns[0] <= clock_of_test.now_ns + 40 * US)
            arrived[(quoit_emulated_take_wire(&rig->port, PART_BYTES) - begin_ns) / US] += PART_BYTES;
        if (clock_of_test.now_ns < next_ns)
            continue;
        uint32_t bytes = 1 + (uint32_t)quoit_prng_choose(&clock_of_test.chance, PART_BYTES);
        next_ns = quoit_emulated_take_wire(&rig->other, bytes);
        arrived[(next_ns - begin_ns) / US] += bytes;
        sum_of_short += bytes;
        next_ns += quoit_prng_choose(&clock_of_test.chance, 100) == 0 ? 200 * US : 0;
    }
    for (uint64_t us = 0; us < SPAN_US; us++) {
        sum += arrived[us];
        assert_true(sum <= (us + 1 + 50) * (RATE / 1000000) + 2 * PART_BYTES);
    }
    print_message("of what the wire could have sent: %lu %% in all, %lu %% in short writes\n",
                  sum * 100 / (SPAN_US * (RATE / 1000000)), sum_of_short * 100 / (SPAN_US * (RATE / 1000000)));
    assert_in_range(sum * 100 / (SPAN_US * (RATE / 1000000)), 90, 100);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_late_wakes_lose_nothing),
        T(test_absence_is_no_credit),
        T(test_credit_is_bounded),
        T(test_full_queue_is_no_absence),
        T(test_short_write_passes_another_share),
        T(test_short_writes_keep_the_rate),
    };
    return cmocka_run_group_tests_name("port.emulated.pace", tests, NULL, NULL);
}
