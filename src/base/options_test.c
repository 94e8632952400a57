/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: each type of option is parsed as options.h says, wrong values are refused and change nothing, and misspelt
 * variables are found. Method: tables of texts with expected values, and a sweep of all defaults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/options.h"

#define LENGTH(array) (sizeof(array) / sizeof(array)[0])

static void test_bytes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t bytes;
    } good[] = {
        {"0", 0},
        {"17", 17},
        {"1K", 1024},
        {"1k", 1024},
        {"1.5G", 1610612736},
        {"512M", 536870912},
        {"0.5k", 512},
        {".25T", 274877906944ull},
        {"2T", 2199023255552ull},
        {"3.", 3},
        {"1.0000000001K", 1024},
        {"3.1M", 3250586}, /* rounded up */
        {"1GiB", 1073741824},
        {"64kb", 65536},
        {"1e6", 1000000},
        {"2.5E+3k", 2560000},
        {"1500e-3", 2},
        {"0e99T", 0},
        {"1e-99999999999G", 1},
    };
    for (size_t i = 0; i < LENGTH(good); i++) {
        uint64_t bytes = 99;
        assert_true(quoit_parse_bytes(good[i].text, &bytes));
        assert_int_equal(bytes, good[i].bytes);
    }
    static const char *const bad[] = {"",     "12Q",   "K",        "-1",        "+1",
                                      "1 K",  " 1",    "1e",       "0x10",      ".",
                                      "e6",   "1.2.3", "nan",      "99999999T", "99999999999999999999999",
                                      "1e-",  "1e40",  "4xK",      "1e1.5",     "1e99999999999",
                                      "20kk", "4Gfoo", "16Gbit/s", "17iB",      "17B"};
    for (size_t i = 0; i < LENGTH(bad); i++) {
        uint64_t bytes = 99;
        assert_false(quoit_parse_bytes(bad[i], &bytes));
        assert_int_equal(bytes, 99);
    }
}

static void test_durations_and_others(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {{"60s", 60000000000ull},
                {"60", 60000000000ull},
                {"500ms", 500000000},
                {"300000h", 1080000000000000000ull},
                {"2000000h", QUOIT_DURATION_NS_MAX}, /* its multiples are in the range too */
                {"1.5us", 1500},
                {"2min", 120000000000ull},
                {"1h", 3600000000000ull},
                {"7ns", 7}};
    uint64_t value = 0;
    for (size_t i = 0; i < LENGTH(good); i++) {
        assert_true(quoit_parse_duration(good[i].text, &value));
        assert_int_equal(value, good[i].ns);
    }
    assert_false(quoit_parse_duration("5 s", &value));
    assert_false(quoit_parse_duration("5m", &value)); /* ambiguous: minutes or milliseconds */
    assert_true(quoit_parse_uint("4294967296", &value));
    assert_int_equal(value, 4294967296ull);
    assert_false(quoit_parse_uint("18446744073709551616", &value));
    assert_false(quoit_parse_uint("1.0", &value));
    assert_true(quoit_parse_bool("Yes", &value));
    assert_int_equal(value, 1);
    assert_true(quoit_parse_bool("off", &value));
    assert_int_equal(value, 0);
    assert_false(quoit_parse_bool("2", &value));
}

/* Every default is a legal value and survives formatting and parsing. */
static void test_defaults(void **state)
{
    (void)state;
    struct quoit_options options, again;
    char problem[QUOIT_OPTION_PROBLEM_BYTES] = "", text[64];
    quoit_options_default(&options);
    quoit_options_default(&again);
    for (int i = 0; i < QUOIT_OPT_COUNT; i++) {
        const struct quoit_option *option = &quoit_options_table[i];
        enum quoit_option_id id = (enum quoit_option_id)i;
        assert_true(option->name || option->variable);
        assert_int_equal(options.values[i].source, QUOIT_FROM_DEFAULT);
        if (!option->fallback[0])
            continue;
        quoit_option_format(&options, id, text, sizeof text);
        if (!quoit_options_set(&again, id, text, QUOIT_FROM_COMMAND_LINE, "it", problem))
            fail_msg("default of %s: %s", option->variable, problem);
        assert_int_equal(again.values[i].number, options.values[i].number);
    }
    assert_int_equal(options.values[QUOIT_OPT_CHUNK].number, 32768);
    assert_int_equal(options.values[QUOIT_OPT_LINK_TIMEOUT].number, 10000000000ull);
    assert_int_equal(options.values[QUOIT_OPT_LANES].number, 2);
}

static void test_environment(void **state)
{
    (void)state;
    struct quoit_options options;
    char problem[QUOIT_OPTION_PROBLEM_BYTES] = "";
    char *good[] = {"PATH=/bin", "SHMEM_SYMMETRIC_SIZE=1.5G", "QUOIT_LANES=4", "SHMEM_DEBUG=", "QUOIT_SLOTS=", NULL};
    quoit_options_default(&options);
    assert_true(quoit_options_from_environment(&options, good, problem));
    assert_int_equal(options.values[QUOIT_OPT_SYMMETRIC_SIZE].number, 1610612736);
    assert_int_equal(options.values[QUOIT_OPT_SYMMETRIC_SIZE].source, QUOIT_FROM_ENVIRONMENT);
    assert_int_equal(options.values[QUOIT_OPT_LANES].number, 4);
    assert_int_equal(options.values[QUOIT_OPT_SHMEM_DEBUG].number, 1);
    assert_int_equal(options.values[QUOIT_OPT_SHMEM_INFO].number, 0);
    assert_int_equal(options.values[QUOIT_OPT_SLOTS].number, 16); /* empty means unset */

    char *ignored[] = {"SHMEM_SYMMETRIC_SIZE=20kk", NULL};
    quoit_options_default(&options);
    assert_true(quoit_options_from_environment(&options, ignored, problem));
    assert_int_equal(options.values[QUOIT_OPT_SYMMETRIC_SIZE].number, 20480);

    char *old[] = {"SMA_SYMMETRIC_SIZE=5M", "SMA_INFO=0", "SMA_VERSION=", "SMA_LANES=4", NULL};
    quoit_options_default(&options);
    assert_true(quoit_options_from_environment(&options, old, problem));
    assert_int_equal(options.values[QUOIT_OPT_SYMMETRIC_SIZE].number, 5 << 20);
    assert_int_equal(options.values[QUOIT_OPT_SHMEM_INFO].number, 1); /* any value */
    assert_int_equal(options.values[QUOIT_OPT_SHMEM_VERSION].number, 1);
    assert_int_equal(options.values[QUOIT_OPT_LANES].number, 2);
    char *both[] = {"SMA_SYMMETRIC_SIZE=5M", "SHMEM_SYMMETRIC_SIZE=6M", NULL};
    quoit_options_default(&options);
    assert_true(quoit_options_from_environment(&options, both, problem));
    assert_int_equal(options.values[QUOIT_OPT_SYMMETRIC_SIZE].number, 6 << 20);

    static const char *const bad[] = {"SHMEM_SYMMETRIC_SIZE=12Q",
                                      "SMA_SYMMETRIC_SIZE=many",
                                      "QUOIT_LANES=3",
                                      "QUOIT_LANES=16",
                                      "QUOIT_SLOTS=1",
                                      "QUOIT_CHUNK=100",
                                      "QUOIT_TAG=maybe",
                                      "QUOIT_BIND_TO=socket",
                                      "QUOIT_DEBUG=loud",
                                      "QUOIT_WINDOW_MEMORY=3G",
                                      "QUOIT_HOSTS=0",
                                      "QUOIT_TIMEOUT=soon",
                                      "QUOIT_PATH=mem"};
    for (size_t i = 0; i < LENGTH(bad); i++) {
        char *one[] = {(char *)bad[i], NULL};
        struct quoit_options before;
        quoit_options_default(&options);
        before = options;
        problem[0] = '\0';
        assert_false(quoit_options_from_environment(&options, one, problem));
        assert_memory_equal(&before, &options, sizeof options);
        assert_memory_equal(problem, bad[i], strcspn(bad[i], "="));
        assert_null(strchr(problem, '\n'));
    }
}

static void collect(void *arg, const char *text)
{
    strcat(strcat(arg, text), "\n");
}

static void test_unknown(void **state)
{
    (void)state;
    char found[1024] = "";
    char *environment[] = {"SHMEM_SYMETRIC_SIZE=1G",
                           "SHMEM_SYMMETRIC_SIZE=1G",
                           "QUOIT_LNAES=2",
                           "QUOIT_BOOT_FD=3",
                           "SHMEM_SOMETHING_ELSE=1",
                           "SHM=1",
                           "SMA_DEBUG=1",
                           "SMA_SYMETRIC_SIZE=1G",
                           NULL};
    quoit_options_unknown(environment, collect, found);
    assert_string_equal(found, "unknown variable SHMEM_SYMETRIC_SIZE: did you mean SHMEM_SYMMETRIC_SIZE?\n"
                               "unknown variable QUOIT_LNAES: did you mean QUOIT_LANES?\n"
                               "unknown variable SHMEM_SOMETHING_ELSE (oshrun --options lists what there is)\n"
                               "unknown variable SMA_SYMETRIC_SIZE: did you mean SHMEM_SYMMETRIC_SIZE?\n");
    found[0] = '\0';
    char *of_others[] = {"SHMEM_SYMMETRIC_HEAP_SIZE=1G",
                         "XT_SYMMETRIC_HEAP_SIZE=1G",
                         "NVSHMEM_SYMMETRIC_SIZE=1G",
                         "NVSHMEM_DEBUG=1",
                         NULL,
                         NULL};
    quoit_options_unknown(of_others, collect, found);
    assert_string_equal(found, "unknown variable SHMEM_SYMMETRIC_HEAP_SIZE: did you mean SHMEM_SYMMETRIC_SIZE?\n"
                               "unknown variable XT_SYMMETRIC_HEAP_SIZE: did you mean SHMEM_SYMMETRIC_SIZE?\n"
                               "unknown variable NVSHMEM_SYMMETRIC_SIZE: did you mean SHMEM_SYMMETRIC_SIZE?\n");
    found[0] = '\0';
    of_others[4] = "SHMEM_SYMMETRIC_SIZE=1G";
    quoit_options_unknown(of_others, collect, found);
    assert_string_equal(found, "unknown variable SHMEM_SYMMETRIC_HEAP_SIZE: did you mean SHMEM_SYMMETRIC_SIZE?\n");
    const char *nearest = NULL;
    assert_int_equal(quoit_option_find("timeout", NULL), QUOIT_OPT_TIMEOUT);
    assert_int_equal(quoit_option_find("time-out", &nearest), QUOIT_OPT_COUNT);
    assert_string_equal(nearest, "timeout");
    assert_int_equal(quoit_option_find("frobnicate", &nearest), QUOIT_OPT_COUNT);
    assert_null(nearest);
}

/* A whole number of any length is out of range; other text is no number. */
static void test_numbers_out_of_range(void **state)
{
    struct quoit_options options;
    char problem[QUOIT_OPTION_PROBLEM_BYTES];
    (void)state;
    quoit_options_default(&options);
    for (const char *text = "99999999999999999999"; strlen(text) >= 4; text++) {
        assert_false(quoit_options_set(&options, QUOIT_OPT_HOSTS, text, QUOIT_FROM_COMMAND_LINE, "--hosts", problem));
        assert_non_null(strstr(problem, "must be 1..1024"));
    }
    static const char *const no_numbers[] = {"", "x", "99999999999999999999x", "x9", "1 2"};
    for (size_t i = 0; i < LENGTH(no_numbers); i++) {
        assert_false(
            quoit_options_set(&options, QUOIT_OPT_HOSTS, no_numbers[i], QUOIT_FROM_COMMAND_LINE, "--hosts", problem));
        assert_null(strstr(problem, "1..1024"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),    cmocka_unit_test(test_durations_and_others),
        cmocka_unit_test(test_defaults), cmocka_unit_test(test_environment),
        cmocka_unit_test(test_unknown),  cmocka_unit_test(test_numbers_out_of_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
