/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: heartbeats, silent and lost hosts among many. Each end speaks to few others; a host that dies is lost at all
 * live ends, also when others die with it, and nobody else is; a host that is cut off from one end alone is lost when
 * that end awaits it or has a put under way, and one that is there is not. A host of which nothing comes is reported as
 * silent, and as heard when it is back; it is lost after the limit, but never while its machine answers. Ends that
 * leave speak to nobody whom they have not met. Method: all ends in one thread, on a driver of this file that hands
 * over what is sent, but for hosts that are dead or stopped and pairs that are cut, and on a clock that moves with each
 * step.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "env/clock.h"
#include "env/primitives.h"
#include "net/driver_rig.h"

#define HOSTS_MAX     100u
#define MESSAGE_BYTES 128u
#define LIMIT_NS      UINT64_C(250000000)
#define SOME_LIMITS   3u /* for so long nothing may happen */

struct letter {
    struct letter *next;
    uint32_t from;
    uint32_t bytes;
    _Alignas(8) char message[MESSAGE_BYTES];
};

struct fake {
    struct quoit_net_end end; /* first */
    struct quoit_net_events events;
    uint32_t host;
    struct letter *first, **last;
    _Alignas(8) char buffer[MESSAGE_BYTES];
};

/* All hosts, and what each end was told. */
static struct {
    uint32_t count;
    uint64_t limit_ns;
    struct quoit_net *nets[HOSTS_MAX];
    struct fake *fakes[HOSTS_MAX];
    bool is_dead[HOSTS_MAX];
    bool is_stopped[HOSTS_MAX]; /* what is sent to it waits */
    bool is_out[HOSTS_MAX];     /* its cable, so what it sends waits, too */
    bool answers[HOSTS_MAX];    /* its machine */
    bool is_seen[HOSTS_MAX];    /* to be there, by another way */
    bool is_cut[HOSTS_MAX][HOSTS_MAX];
    bool has_spoken[HOSTS_MAX][HOSTS_MAX];                /* from, to */
    bool has_lost[HOSTS_MAX][HOSTS_MAX];                  /* at, whom */
    enum quoit_net_silence silence[HOSTS_MAX][HOSTS_MAX]; /* at, of whom: as reported last */
    uint32_t report_count;
    uint64_t silent_ns, dark_ns; /* of the last report */
    struct quoit_net_window *window;
} world;

static uint64_t now_of_test_ns;

static uint64_t read_clock(void)
{
    return now_of_test_ns;
}

static void sleep_by_clock(uint64_t duration_ns)
{
    now_of_test_ns += duration_ns;
}

static const struct quoit_primitives primitives = {.now_ns = read_clock, .sleep_ns = sleep_by_clock};

static enum quoit_status fake_open(const struct quoit_net_driver_config *config, struct quoit_net_end **end_out,
                                   char problem[QUOIT_NET_PROBLEM_BYTES])
{
    struct fake *fake = calloc(1, sizeof *fake);
    (void)problem;
    assert_non_null(fake);
    fake->events = config->events;
    fake->host = config->host;
    fake->last = &fake->first;
    fake->end.limits =
        (struct quoit_net_limits){.message_bytes = MESSAGE_BYTES, .alignment = 1, .transfer_bytes = 1 << 20};
    world.fakes[config->host] = fake;
    *end_out = &fake->end;
    return QUOIT_OK;
}

static void drop_letters(struct fake *fake)
{
    for (struct letter *letter = fake->first, *next; letter; letter = next) {
        next = letter->next;
        free(letter);
    }
    fake->first = NULL;
    fake->last = &fake->first;
}

static void fake_close(struct quoit_net_end *end)
{
    drop_letters((struct fake *)end);
    free(end);
}

static void *fake_send_buffer(struct quoit_net_end *end)
{
    return ((struct fake *)end)->buffer;
}

static enum quoit_status fake_send(struct quoit_net_end *end, uint32_t host, void *buffer, uint32_t bytes)
{
    const struct fake *from = (const struct fake *)end;
    world.has_spoken[from->host][host] = true;
    if (world.is_dead[host] || world.is_cut[from->host][host])
        return QUOIT_OK;
    struct fake *to = world.fakes[host];
    struct letter *letter = calloc(1, sizeof *letter);
    assert_non_null(letter);
    letter->from = from->host;
    letter->bytes = bytes;
    memcpy(letter->message, buffer, bytes);
    *to->last = letter;
    to->last = &letter->next;
    return QUOIT_OK;
}

static uint32_t fake_progress(struct quoit_net_end *end)
{
    struct fake *fake = (struct fake *)end;
    uint32_t count = 0;
    for (struct letter **at = &fake->first; *at;) {
        struct letter *letter = *at;
        if (world.is_out[letter->from] || world.is_out[fake->host]) {
            at = &letter->next;
            continue;
        }
        *at = letter->next;
        fake->events.message(fake->events.arg, letter->message, letter->bytes);
        free(letter);
        count++;
    }
    for (fake->last = &fake->first; *fake->last;)
        fake->last = &(*fake->last)->next;
    return count;
}

static uint64_t fake_sign_age_ns(const struct quoit_net_end *end, uint32_t host)
{
    const struct fake *from = (const struct fake *)end;
    bool answers = world.answers[host] && !world.is_dead[host] && !world.is_cut[from->host][host] &&
                   !world.is_out[host] && !world.is_out[from->host];
    return answers ? 0 : UINT64_MAX;
}

static uint64_t other_sign_age_ns(void *arg, uint32_t host)
{
    (void)arg;
    return world.is_seen[host] ? 0 : UINT64_MAX;
}

static uint32_t own_of(const void *arg)
{
    return (uint32_t)((const struct quoit_net *const *)arg - (const struct quoit_net *const *)world.nets);
}

static void on_done(void *arg, uint32_t host, uint64_t cookie, enum quoit_status status)
{
    (void)arg, (void)host, (void)cookie, (void)status;
}

static void on_message(void *arg, uint32_t host, const void *payload, uint32_t bytes)
{
    (void)arg, (void)host, (void)payload, (void)bytes;
    fail(); /* the upper half sends nothing here */
}

static void on_lost(void *arg, uint32_t host, enum quoit_status status)
{
    uint32_t own = own_of(arg);
    assert_int_equal(status, QUOIT_TIMEOUT);
    assert_false(world.has_lost[own][host]);
    world.has_lost[own][host] = true;
}

static void on_silence(void *arg, uint32_t host, enum quoit_net_silence silence, uint64_t silent_ns, uint64_t dark_ns)
{
    uint32_t own = own_of(arg);
    assert_int_not_equal(world.silence[own][host], silence);
    assert_false(world.has_lost[own][host]);
    world.silence[own][host] = silence;
    world.silent_ns = silent_ns;
    world.dark_ns = dark_ns;
    world.report_count++;
}

static void close_world(void)
{
    for (uint32_t host = 0; host < world.count; host++)
        quoit_net_close(world.nets[host]);
    memset(&world, 0, sizeof world);
}

/* Each host makes progress, and none is dead, once more. */
static void progress_all(void)
{
    for (uint32_t host = 0; host < world.count; host++)
        if (!world.is_dead[host] && !world.is_stopped[host])
            quoit_net_progress(world.nets[host]);
    quoit_clock_sleep_ns(1000000);
}

static void progress_until(uint64_t end_ns)
{
    while (quoit_clock_now_ns() < end_ns)
        progress_all();
}

static void progress_for(uint32_t limits)
{
    progress_until(quoit_clock_now_ns() + limits * world.limit_ns);
}

static void connect_world(uint32_t count, uint64_t limit_ns)
{
    const struct quoit_net_address address = {.bytes = 1};
    char problem[QUOIT_NET_PROBLEM_BYTES];
    world.count = count;
    world.limit_ns = limit_ns;
    for (uint32_t host = 0; host < count; host++) {
        const struct quoit_net_config config = {.host = host,
                                                .host_count = count,
                                                .lost_limit_ns = limit_ns,
                                                .on_done = on_done,
                                                .on_message = on_message,
                                                .on_lost = on_lost,
                                                .on_silence = on_silence,
                                                .sign_age_ns = other_sign_age_ns,
                                                .arg = &world.nets[host]};
        assert_int_equal(quoit_net_open(&config, &world.nets[host], problem), QUOIT_OK);
    }
    for (uint32_t host = 0; host < count; host++)
        for (uint32_t other = 0; other < count; other++)
            if (other != host)
                assert_int_equal(quoit_net_connect(world.nets[host], other, &address), QUOIT_OK);
}

static void open_world_with(uint32_t count, uint64_t limit_ns)
{
    connect_world(count, limit_ns);
    progress_for(1);
}

static void open_world(uint32_t count)
{
    open_world_with(count, LIMIT_NS);
}

static void kill_host(uint32_t host)
{
    world.is_dead[host] = true;
    drop_letters(world.fakes[host]);
}

static bool have_all_lost_the_dead(void)
{
    for (uint32_t at = 0; at < world.count; at++)
        for (uint32_t whom = 0; whom < world.count && !world.is_dead[at]; whom++)
            if (world.is_dead[whom] && !world.has_lost[at][whom])
                return false;
    return true;
}

/* Nobody alive has lost one who is alive. */
static void check_the_living(void)
{
    for (uint32_t at = 0; at < world.count; at++)
        for (uint32_t whom = 0; whom < world.count; whom++)
            if (!world.is_dead[at] && !world.is_dead[whom] && world.has_lost[at][whom])
                fail_msg("%u of %u has lost %u", at, world.count, whom);
}

static void await_the_dead(void)
{
    while (!have_all_lost_the_dead())
        progress_all();
    progress_for(1);
    check_the_living();
}

static uint32_t most_spoken_to(void)
{
    uint32_t most = 0;
    for (uint32_t from = 0; from < world.count; from++) {
        uint32_t count = 0;
        for (uint32_t to = 0; to < world.count; to++)
            count += world.has_spoken[from][to];
        most = count > most ? count : most;
    }
    return most;
}

static void test_few_speak_to_each_other(void **state)
{
    static const struct {
        uint32_t hosts, most;
    } cases[] = {{4, 3}, {32, 31}, {33, 10}, {64, 11}, {HOSTS_MAX, 14}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        open_world(cases[i].hosts);
        progress_for(SOME_LIMITS);
        check_the_living();
        assert_int_equal(most_spoken_to(), cases[i].most);
        close_world();
    }
}

static void test_who_dies_is_lost_at_all(void **state)
{
    struct quoit_prng chance = {.state = 3};
    (void)state;
    for (uint32_t dead_count = 1; dead_count <= 25; dead_count += 12) {
        open_world(HOSTS_MAX);
        for (uint32_t i = 0; i < dead_count; i++)
            kill_host((uint32_t)quoit_prng_choose(&chance, HOSTS_MAX));
        await_the_dead();
        close_world();
    }
}

/* All who watch host 40 die with it, but the last. */
static void test_who_dies_with_its_watchers(void **state)
{
    const uint32_t own = 40, count = 64;
    (void)state;
    open_world(count);
    kill_host(own);
    for (uint32_t distance = 1; distance < count; distance *= 2) {
        kill_host((own + distance) % count);
        if (distance != 16)
            kill_host((own + count - distance) % count);
    }
    await_the_dead();
    close_world();
}

/* Hosts 0 and 21 do not watch each other, and reach all but each other. */
static void test_a_pair_that_is_cut(void **state)
{
    static const struct quoit_net_key key = {.memory_bytes = 64};
    static char bytes[8];
    (void)state;
    for (uint32_t has_put = 0; has_put < 2; has_put++) {
        open_world(64);
        assert_int_equal(quoit_net_attach(world.nets[0], 21, &key, &world.window), QUOIT_OK);
        world.is_cut[0][21] = world.is_cut[21][0] = true;
        progress_for(SOME_LIMITS);
        check_the_living();
        if (has_put)
            assert_int_equal(quoit_net_put(world.nets[0], world.window, 0, bytes, NULL, sizeof bytes, 1), QUOIT_OK);
        else
            quoit_net_await(world.nets[0], 21, true);
        while (!world.has_lost[0][21])
            progress_all();
        kill_host(21); /* as its job does */
        await_the_dead();
        close_world();
    }
}

/* It takes its time, and is there. */
static void test_a_host_that_is_awaited(void **state)
{
    (void)state;
    open_world(64);
    progress_for(SOME_LIMITS); /* unheard for longer than the limit */
    quoit_net_await(world.nets[0], 21, true);
    quoit_net_await(world.nets[21], 0, true);
    quoit_net_await(world.nets[5], 30, true);
    progress_for(SOME_LIMITS);
    check_the_living();
    quoit_net_await(world.nets[5], 30, false);
    world.is_cut[5][30] = world.is_cut[30][5] = true;
    progress_for(SOME_LIMITS);
    check_the_living();
    close_world();
}

/* A host is stopped, or its cable is out, for less than the limit: one report of each other one when it is silent, one
 * when it is back, and nothing is lost. */
static void test_a_host_that_is_silent_for_a_while(void **state)
{
    (void)state;
    for (uint32_t is_out = 0; is_out < 2; is_out++) {
        const uint32_t reports = is_out ? 4 : 2; /* it finds the others silent, too */
        open_world_with(3, QUOIT_NET_LOST_LIMIT_NS);
        const uint64_t begin_ns = quoit_clock_now_ns();
        world.report_count = 0;
        world.answers[0] = world.answers[1] = world.answers[2] = true;
        world.is_out[2] = is_out != 0;
        world.is_stopped[2] = !is_out;
        progress_until(begin_ns + QUOIT_NET_NOTICE_NS - 300000000u);
        assert_int_equal(world.report_count, 0);
        progress_until(begin_ns + QUOIT_NET_NOTICE_NS + 300000000u);
        assert_int_equal(world.silence[0][2], is_out ? QUOIT_NET_DARK : QUOIT_NET_ANSWERED);
        assert_int_equal(world.silence[1][2], world.silence[0][2]);
        assert_int_equal(world.silence[0][1], QUOIT_NET_PRESENT);
        progress_until(begin_ns + 50000000000u);
        assert_int_equal(world.report_count, reports);
        world.is_out[2] = world.is_stopped[2] = false;
        progress_until(begin_ns + 51000000000u);
        assert_int_equal(world.report_count, 2 * reports);
        assert_int_equal(world.silence[0][2], QUOIT_NET_PRESENT);
        assert_true(world.silent_ns > 49000000000u && world.silent_ns < 51000000000u);
        check_the_living();
        close_world();
    }
}

/* For as long as its machine answers, or it is seen; from then on for the limit. */
static void test_a_host_that_is_stopped_for_long(void **state)
{
    (void)state;
    for (uint32_t is_seen = 0; is_seen < 2; is_seen++) {
        open_world(3);
        world.is_stopped[2] = true;
        world.answers[2] = !is_seen;
        world.is_seen[2] = is_seen;
        progress_for(100);
        check_the_living();
        assert_int_equal(world.silence[0][2], QUOIT_NET_ANSWERED);
        world.answers[2] = world.is_seen[2] = false;
        const uint64_t begin_ns = quoit_clock_now_ns();
        progress_until(begin_ns + LIMIT_NS * 3 / 4);
        assert_int_equal(world.silence[0][2], QUOIT_NET_DARK);
        assert_true(world.silent_ns > 99 * LIMIT_NS);
        assert_true(world.dark_ns < LIMIT_NS);
        check_the_living();
        kill_host(2);
        await_the_dead();
        assert_true(quoit_clock_now_ns() - begin_ns < 3 * LIMIT_NS);
        close_world();
    }
}

/* From the start on: its machine shows no more than that somebody has the connection. Who is seen by another way is
 * waited for. */
static void test_a_host_that_never_speaks(void **state)
{
    (void)state;
    for (uint32_t is_seen = 0; is_seen < 2; is_seen++) {
        connect_world(3, LIMIT_NS);
        world.is_stopped[2] = world.answers[2] = true;
        world.is_seen[2] = is_seen;
        progress_for(4);
        check_the_living();
        assert_int_equal(world.silence[0][2], QUOIT_NET_ANSWERED);
        progress_for(20);
        assert_int_equal(world.has_lost[0][2], !is_seen);
        assert_int_equal(world.has_lost[1][2], !is_seen);
        assert_false(world.has_lost[0][1]);
        close_world();
    }
}

/* Silent to who awaits it, and so to nobody once nobody does. */
static void test_a_silent_host_that_is_awaited_no_more(void **state)
{
    (void)state;
    open_world(64);
    world.report_count = 0;
    world.answers[30] = true;
    world.is_cut[30][5] = true;
    quoit_net_await(world.nets[5], 30, true);
    progress_for(SOME_LIMITS);
    assert_int_equal(world.silence[5][30], QUOIT_NET_ANSWERED);
    quoit_net_await(world.nets[5], 30, false);
    progress_for(1);
    assert_int_equal(world.silence[5][30], QUOIT_NET_PRESENT);
    assert_int_equal(world.report_count, 2);
    check_the_living();
    close_world();
}

/* Each leaves when it has bid farewell to those it has met, and to no other. */
static void test_farewells(void **state)
{
    const uint32_t count = 64, from = 5, to = 30;
    static bool has_met[HOSTS_MAX][HOSTS_MAX];
    bool has_left[HOSTS_MAX] = {false};
    (void)state;
    open_world(count);
    assert_false(world.has_spoken[from][to]);
    quoit_net_await(world.nets[from], to, true);
    progress_for(1);
    quoit_net_await(world.nets[from], to, false);
    assert_true(world.has_spoken[from][to]);
    for (uint32_t one = 0; one < count; one++)
        for (uint32_t other = 0; other < count; other++)
            has_met[one][other] = world.has_spoken[one][other] || world.has_spoken[other][one];
    memset(world.has_spoken, 0, sizeof world.has_spoken);
    for (uint32_t left_count = 0; left_count < count;)
        for (uint32_t one = 0; one < count; one++) {
            if (has_left[one] || quoit_net_leave(world.nets[one], 0) != QUOIT_OK)
                continue;
            has_left[one] = true;
            left_count++;
        }
    for (uint32_t one = 0; one < count; one++)
        for (uint32_t other = 0; other < count; other++) {
            assert_int_equal(world.has_spoken[one][other], has_met[one][other]);
            assert_false(world.has_lost[one][other]);
        }
    close_world();
}

int main(void)
{
    now_of_test_ns = LIMIT_NS;
    quoit_primitives = &primitives;
    fake_driver.open = fake_open;
    fake_driver.close = fake_close;
    fake_driver.send_buffer = fake_send_buffer;
    fake_driver.send = fake_send;
    fake_driver.progress = fake_progress;
    fake_driver.sign_age_ns = fake_sign_age_ns;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_few_speak_to_each_other),
        cmocka_unit_test(test_farewells),
        cmocka_unit_test(test_who_dies_is_lost_at_all),
        cmocka_unit_test(test_who_dies_with_its_watchers),
        cmocka_unit_test(test_a_pair_that_is_cut),
        cmocka_unit_test(test_a_host_that_is_awaited),
        cmocka_unit_test(test_a_host_that_is_silent_for_a_while),
        cmocka_unit_test(test_a_host_that_is_stopped_for_long),
        cmocka_unit_test(test_a_host_that_never_speaks),
        cmocka_unit_test(test_a_silent_host_that_is_awaited_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
