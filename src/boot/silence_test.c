/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: of what several hosts find of each other, in any order and with losses, one line when a host is silent and one
 * when it is back, the last sign of its machine, and no trace of reports that no proxy sends. Method: reports at
 * random, against a model that keeps them all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "boot/silence.h"
#include "net/net.h"

#define HOSTS  5u
#define SECOND UINT64_C(1000000000)
#define STEPS  20000u

static void find(struct quoit_silences *silences, uint32_t by, uint32_t of, uint32_t silence, uint64_t silent_ns,
                 uint64_t dark_ns, uint64_t now_ns)
{
    const struct quoit_control_silence report = {
        .host = of, .silence = silence, .silent_ns = silent_ns, .dark_ns = dark_ns};
    quoit_silences_take(silences, by, &report, now_ns);
}

static void check_text(const struct quoit_silences *silences, enum quoit_silence_line line, uint64_t now_ns,
                       const char *wanted)
{
    char text[QUOIT_SILENCE_TEXT_BYTES];
    quoit_silence_text(&silences->hosts[2], line, "host2", "--network-limit", 60 * SECOND, now_ns, text);
    assert_string_equal(text, wanted);
}

static void test_lines(void **state)
{
    const uint64_t now_ns = 200 * SECOND; /* of lines */
    struct quoit_silences silences;
    (void)state;
    assert_int_equal(quoit_silences_open(&silences, HOSTS), QUOIT_OK);
    assert_int_equal(quoit_silences_due(&silences, 2, false, 0, now_ns), QUOIT_SILENCE_NO_LINE);
    assert_int_equal(quoit_silences_sign_ns(&silences, 2, 7), 7);
    find(&silences, 0, 2, QUOIT_NET_ANSWERED, 2 * SECOND, 0, 100 * SECOND);
    assert_int_equal(quoit_silences_due(&silences, 2, false, 0, now_ns), QUOIT_SILENCE_BEGINS);
    check_text(&silences, QUOIT_SILENCE_BEGINS, 100 * SECOND,
               "nothing has come from host2 for 2.0 s, but its machine answers; the job waits for it [Q0317]");
    assert_int_equal(quoit_silences_sign_ns(&silences, 2, 100 * SECOND), 100 * SECOND);
    find(&silences, 1, 2, QUOIT_NET_DARK, 3 * SECOND, SECOND, 101 * SECOND);
    assert_int_equal(quoit_silences_due(&silences, 2, false, 0, now_ns), QUOIT_SILENCE_NO_LINE);
    assert_int_equal(quoit_silences_sign_ns(&silences, 2, 105 * SECOND), 100 * SECOND);
    check_text(&silences, QUOIT_SILENCE_BEGINS, 101 * SECOND,
               "nothing has come from host2 for 3.0 s; the job waits for it, up to --network-limit (60 s) [Q0317]");
    find(&silences, 0, 2, QUOIT_NET_PRESENT, 4 * SECOND, 0, 102 * SECOND);
    assert_int_equal(quoit_silences_due(&silences, 2, false, 0, now_ns), QUOIT_SILENCE_NO_LINE);
    find(&silences, 1, 2, QUOIT_NET_PRESENT, 5 * SECOND, 0, 103 * SECOND);
    assert_int_equal(silences.silent_count, 0);
    assert_int_equal(quoit_silences_due(&silences, 2, true, 0, now_ns),
                     QUOIT_SILENCE_NO_LINE); /* its agent is silent still */
    assert_int_equal(quoit_silences_due(&silences, 2, false, 0, now_ns), QUOIT_SILENCE_IS_OVER);
    check_text(&silences, QUOIT_SILENCE_IS_OVER, 103 * SECOND, "host2 is back after 5.0 s [Q0318]");
    assert_int_equal(quoit_silences_due(&silences, 2, false, 0, now_ns), QUOIT_SILENCE_NO_LINE);
    quoit_silences_close(&silences);
}

static void test_another_way_alone(void **state)
{
    const uint64_t now_ns = 10 * SECOND;
    struct quoit_silences silences;
    (void)state;
    assert_int_equal(quoit_silences_open(&silences, HOSTS), QUOIT_OK);
    assert_int_equal(quoit_silences_due(&silences, 2, true, 8 * SECOND, now_ns), QUOIT_SILENCE_BEGINS);
    check_text(&silences, QUOIT_SILENCE_BEGINS, 10 * SECOND,
               "nothing has come from host2 for 2.0 s; the job waits for it, up to --network-limit (60 s) [Q0317]");
    assert_int_equal(quoit_silences_sign_ns(&silences, 2, 10 * SECOND), 10 * SECOND);
    assert_int_equal(silences.silent_count, 0);
    assert_int_equal(quoit_silences_due(&silences, 2, false, 0, now_ns), QUOIT_SILENCE_IS_OVER);
    quoit_silences_close(&silences);
}

static void test_what_no_proxy_sends(void **state)
{
    const uint64_t now_ns = SECOND;
    struct quoit_silences silences;
    (void)state;
    assert_int_equal(quoit_silences_open(&silences, HOSTS), QUOIT_OK);
    find(&silences, HOSTS, 2, QUOIT_NET_DARK, SECOND, SECOND, SECOND);
    find(&silences, 0, HOSTS, QUOIT_NET_DARK, SECOND, SECOND, SECOND);
    find(&silences, 0, UINT32_MAX, QUOIT_NET_DARK, SECOND, SECOND, SECOND);
    find(&silences, 2, 2, QUOIT_NET_DARK, SECOND, SECOND, SECOND);
    find(&silences, 0, 2, QUOIT_NET_DARK + 1, SECOND, SECOND, SECOND);
    assert_int_equal(silences.silent_count, 0);
    for (uint32_t host = 0; host < HOSTS; host++)
        assert_int_equal(quoit_silences_due(&silences, host, false, 0, now_ns), QUOIT_SILENCE_NO_LINE);
    find(&silences, 0, 2, QUOIT_NET_DARK, UINT64_MAX, UINT64_MAX, SECOND); /* longer than the clock */
    assert_int_equal(quoit_silences_sign_ns(&silences, 2, SECOND), 0);
    quoit_silences_close(&silences);
}

/* Host 2 is cut off: it finds the others silent, as they find it. There is no line about them, unless they are so for
 * long after it is back. */
static void test_a_host_that_is_cut_off(void **state)
{
    struct quoit_silences silences;
    uint64_t now_ns = 100 * SECOND;
    (void)state;
    assert_int_equal(quoit_silences_open(&silences, HOSTS), QUOIT_OK);
    find(&silences, 0, 2, QUOIT_NET_DARK, 2 * SECOND, 2 * SECOND, now_ns);
    assert_int_equal(quoit_silences_due(&silences, 2, false, 0, now_ns), QUOIT_SILENCE_BEGINS);
    find(&silences, 2, 0, QUOIT_NET_DARK, 3 * SECOND, 3 * SECOND, now_ns);
    assert_int_equal(quoit_silences_due(&silences, 0, false, 0, now_ns), QUOIT_SILENCE_NO_LINE);
    now_ns += 20 * SECOND;
    find(&silences, 0, 2, QUOIT_NET_PRESENT, 22 * SECOND, 0, now_ns);
    assert_int_equal(quoit_silences_due(&silences, 2, false, 0, now_ns), QUOIT_SILENCE_IS_OVER);
    now_ns += QUOIT_NET_NOTICE_NS;
    assert_int_equal(quoit_silences_due(&silences, 0, false, 0, now_ns), QUOIT_SILENCE_NO_LINE);
    assert_int_equal(quoit_silences_due(&silences, 0, false, 0, now_ns + 1), QUOIT_SILENCE_BEGINS);
    find(&silences, 0, 2, QUOIT_NET_DARK, 2 * SECOND, 2 * SECOND, now_ns + 2); /* what is printed stays so */
    assert_int_equal(quoit_silences_due(&silences, 0, false, 0, now_ns + 2), QUOIT_SILENCE_NO_LINE);
    find(&silences, 2, 0, QUOIT_NET_PRESENT, 2 * SECOND, 0, now_ns + 3);
    assert_int_equal(quoit_silences_due(&silences, 0, false, 0, now_ns + 3), QUOIT_SILENCE_IS_OVER);
    quoit_silences_close(&silences);
}

/* Of hosts 2 to 4, by hosts 0 and 1, which are there. Reports that change nothing, and that skip one that was lost. */
static void test_random_reports(void **state)
{
    struct quoit_silences silences;
    struct quoit_prng chance = {.state = 31};
    uint32_t found[2][HOSTS] = {{0}};
    bool is_reported[HOSTS] = {false};
    (void)state;
    assert_int_equal(quoit_silences_open(&silences, HOSTS), QUOIT_OK);
    for (uint64_t now_ns = 100 * SECOND; now_ns < 100 * SECOND + STEPS; now_ns++) {
        uint32_t by = (uint32_t)quoit_prng_choose(&chance, 2), of = 2 + (uint32_t)quoit_prng_choose(&chance, HOSTS - 2);
        uint32_t silence = (uint32_t)quoit_prng_choose(&chance, QUOIT_NET_DARK + 1), silent_count = 0;
        find(&silences, by, of, silence, SECOND, SECOND, now_ns);
        found[by][of] = silence;
        for (uint32_t host = 2; host < HOSTS; host++) {
            bool is_silent = found[0][host] != QUOIT_NET_PRESENT || found[1][host] != QUOIT_NET_PRESENT;
            bool is_dark = found[0][host] == QUOIT_NET_DARK || found[1][host] == QUOIT_NET_DARK;
            silent_count += is_silent;
            assert_int_equal(quoit_silences_sign_ns(&silences, host, now_ns) == now_ns, !is_dark);
            enum quoit_silence_line wanted = is_silent == is_reported[host] ? QUOIT_SILENCE_NO_LINE
                                             : is_silent                    ? QUOIT_SILENCE_BEGINS
                                                                            : QUOIT_SILENCE_IS_OVER;
            assert_int_equal(quoit_silences_due(&silences, host, false, 0, now_ns), wanted);
            is_reported[host] = is_silent;
        }
        assert_int_equal(silences.silent_count, silent_count);
    }
    quoit_silences_close(&silences);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_another_way_alone),
        cmocka_unit_test(test_what_no_proxy_sends),
        cmocka_unit_test(test_a_host_that_is_cut_off),
        cmocka_unit_test(test_random_reports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
