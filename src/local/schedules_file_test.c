/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a table of schedules is what its file says, or the rules with one line of explanation; and it is found by its
 * hosts alone. Method: random tables written as quoit tune writes them and read again; single mistakes; files that are
 * missing or of other hosts. */
#include "local/schedules_file.h"
#include "base/prng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct quoit_schedules_key key = {.host_count = 12, .digest = 0xbead5, .network = "ofi"};

/* As quoit tune writes it. */
static void print(uint64_t schedules, char text_out[QUOIT_TUNED_FILE_BYTES])
{
    FILE *file = fmemopen(text_out, QUOIT_TUNED_FILE_BYTES, "w");
    assert_non_null(file);
    fprintf(file, "quoit schedules 1\nhosts 12\nnetwork ofi\ndigest 000bead5\n");
    for (enum quoit_collective i = 0; i < QUOIT_COLLECTIVE_COUNT; i++) {
        fprintf(file, "%s", quoit_collective_name(i));
        for (uint32_t j = 0; j < QUOIT_SCHEDULE_SIZES; j++)
            fprintf(file, " %s", quoit_schedule_name(i, quoit_schedules_choose(schedules, i, quoit_schedule_size(j))));
        fprintf(file, "\n");
    }
    assert_int_equal(fclose(file), 0);
}

static uint64_t make_random(struct quoit_prng *prng)
{
    uint64_t word = 0;
    for (enum quoit_collective i = 0; i < QUOIT_COLLECTIVE_COUNT; i++)
        for (uint32_t j = 0; j < QUOIT_SCHEDULE_SIZES; j++) {
            enum quoit_schedule schedule = (enum quoit_schedule)quoit_prng_choose(prng, QUOIT_SCHEDULE_COUNT);
            word = quoit_schedules_with(word, i, j, quoit_schedule_name(i, schedule) ? schedule : QUOIT_SCHEDULE_LOG);
        }
    return quoit_schedules_from(word, QUOIT_SCHEDULES_TUNED);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct quoit_prng prng = {7};
    char text[QUOIT_TUNED_FILE_BYTES], problem[QUOIT_TUNED_PROBLEM_BYTES];
    for (int i = 0; i < 100; i++) {
        uint64_t made = make_random(&prng), read = 0;
        print(made, text);
        assert_true(quoit_schedules_parse(&read, text, &key, problem));
        assert_true(read == made);
    }
}

/* The table with its first `from` replaced. */
static void refuse(const char *from, const char *to, const char *reason)
{
    struct quoit_prng prng = {1};
    char good[QUOIT_TUNED_FILE_BYTES], bad[2 * QUOIT_TUNED_FILE_BYTES], problem[QUOIT_TUNED_PROBLEM_BYTES] = "";
    uint64_t schedules = 77;
    print(make_random(&prng), good);
    const char *at = strstr(good, from);
    assert_non_null(at);
    snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    assert_false(quoit_schedules_parse(&schedules, bad, &key, problem));
    assert_int_equal(schedules, 77);
    assert_non_null(strstr(problem, reason));
}

static void test_mistakes(void **state)
{
    (void)state;
    refuse("quoit schedules 1", "quoit schedules 2", "does not begin");
    refuse("quoit", "", "does not begin");
    refuse("hosts 12", "hosts 13", "not measured on these hosts");
    refuse("network ofi", "network ucx", "not measured on these hosts");
    refuse("000bead5", "000bead6", "not measured on these hosts");
    refuse("broadcast ", "broadcasts ", "line 5 is not \"broadcast\" and 10 schedules");
    refuse("\nreduce ", " tree\nreduce ", "line 5 is not \"broadcast\" and 10 schedules");
    refuse("\nexchange ", "\nexchange  ", "line 7 is not \"exchange\" and 10 schedules");
    refuse("\nexchange ", "\nexchange halving ", "line 7 is not \"exchange\" and 10 schedules");
    refuse("\nreduce ", "\n", "line 6 is not \"reduce\" and 10 schedules");
}

static struct quoit_schedules_key key_of(const char *network, const char *provider, const char *device)
{
    struct quoit_options options;
    struct quoit_schedules_key made;
    char problem[QUOIT_OPTION_PROBLEM_BYTES];
    const struct {
        enum quoit_option_id id;
        const char *text;
    } given[] = {
        {QUOIT_OPT_NETWORK, network}, {QUOIT_OPT_NETWORK_PROVIDER, provider}, {QUOIT_OPT_NETWORK_DEVICE, device}};
    quoit_options_default(&options);
    for (int i = 0; i < 3; i++)
        assert_true(quoit_options_set(&options, given[i].id, given[i].text, QUOIT_FROM_COMMAND_LINE, "it", problem));
    quoit_schedules_key_begin(&made, &options);
    return made;
}

static void test_keys(void **state)
{
    (void)state;
    struct quoit_schedules_key some = key_of("ofi", "", ""), same, other;
    same = other = some;
    quoit_schedules_key_add(&some, "a");
    quoit_schedules_key_add(&some, "b");
    quoit_schedules_key_add(&same, "eve@b");
    quoit_schedules_key_add(&same, "a");
    quoit_schedules_key_add(&other, "a");
    quoit_schedules_key_add(&other, "c");
    assert_int_equal(some.host_count, 2);
    assert_int_equal(some.digest, same.digest);
    assert_int_not_equal(some.digest, other.digest);
    assert_int_not_equal(key_of("ofi", "", "eth1").digest, key_of("ofi", "eth1", "").digest);
    assert_string_equal(key_of("ring", "", "").network, "auto");
    assert_int_equal(strlen(key_of("a-name-of-a-driver-that-is-much-too-long", "", "").network),
                     QUOIT_SCHEDULES_NETWORK_BYTES - 1);
}

static void test_load(void **state)
{
    (void)state;
    struct quoit_prng prng = {9};
    char folder[] = "/tmp/quoit-schedules-XXXXXX", below[64], path[QUOIT_TUNED_NAME_BYTES];
    char text[QUOIT_TUNED_FILE_BYTES], problem[QUOIT_TUNED_PROBLEM_BYTES];
    uint64_t made = make_random(&prng), read = 5;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(setenv("XDG_CONFIG_HOME", folder, 1), 0);
    snprintf(below, sizeof below, "%s/quoit", folder);
    assert_int_equal(mkdir(below, 0700), 0);
    assert_true(quoit_schedules_file(&key, path));
    assert_string_equal(strrchr(path, '/'), "/schedules.12.ofi.000bead5");
    assert_true(quoit_schedules_load(&read, "auto", &key, problem));
    assert_int_equal(read, 0);
    print(made, text);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
    assert_true(quoit_schedules_load(&read, "auto", &key, problem));
    assert_true(read == made);
    assert_true(quoit_schedules_load(&read, "broadcast:tree", &key, problem));
    assert_int_equal(quoit_schedules_source(read), QUOIT_SCHEDULES_FORCED);
    assert_false(quoit_schedules_load(&read, "broadcast:bush", &key, problem));
    assert_int_equal(read, 0);
    assert_non_null(strstr(problem, "--schedules"));
    assert_int_equal(truncate(path, 30), 0);
    read = 5;
    assert_false(quoit_schedules_load(&read, "auto", &key, problem));
    assert_int_equal(read, 0);
    assert_non_null(strstr(problem, "[Q0306]"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(below), 0);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
