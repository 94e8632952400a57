/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a model file is taken with all its values, or refused with the line of what is wrong. Method: a good file, the
 * same with one line changed for each mistake, and values at and beyond each limit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "virtual/model.h"

static const char good[] = "# a comment\nabout = of a test\n\nmemory_rate = 2.5e9 # measured\n"
                           "  line_latency=80ns#a paper\nlook_time = 1us   # assumed\n"
                           "link_rate = 1e9 # x\nlink_latency = 1us # x\nread_latency = 2us # x\n"
                           "doorbell_time = 3ns # x\nrequest_time = 4ns # x\nframe_time = 5ns # x\n";

static bool read_text(const char *text, struct quoit_model_file *file, char *problem)
{
    char name[] = "/tmp/quoit-model-XXXXXX";
    int fd = mkstemp(name);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    bool is_good = quoit_model_read(name, file, problem);
    unlink(name);
    return is_good;
}

static void test_good(void **state)
{
    (void)state;
    struct quoit_model_file file;
    char problem[QUOIT_MODEL_PROBLEM_BYTES] = "";
    assert_true(read_text(good, &file, problem));
    assert_string_equal(file.about, "of a test");
    assert_int_equal(file.model.memory_rate, 2500000000u);
    assert_int_equal(file.model.line_latency, 80);
    assert_int_equal(file.model.look_time, 1000);
    assert_int_equal(file.model.frame_time, 5);
    assert_string_equal(file.source[QUOIT_MODEL_OF_line_latency], "a paper");
}

static void refuse(const char *text, const char *what)
{
    struct quoit_model_file file;
    char problem[QUOIT_MODEL_PROBLEM_BYTES] = "";
    assert_false(read_text(text, &file, problem));
    if (!strstr(problem, what))
        fail_msg("\"%s\" does not say \"%s\"", problem, what);
}

static void test_wrong_lines(void **state)
{
    (void)state;
    refuse("about = x\nnonsense\n", ":2: \"nonsense\" is not NAME = VALUE");
    refuse("clock_rate = 3 # x\n", ":1: there is no constant clock_rate; there is: memory_rate");
    refuse("line_latency = 60ns\n", ":1: line_latency has no source");
    refuse("line_latency = 60ns #  \n", ":1: line_latency has no source");
    refuse("line_latency = 60 # x\n", ":1: line_latency is \"60\", but must be a time with its unit");
    refuse("line_latency = 60ns # x\nline_latency = 60ns # x\n", ":2: line_latency stands there twice");
    refuse("memory_rate = fast # x\n", ":1: memory_rate is \"fast\", but must be a rate");
    refuse("memory_rate = -1 # x\n", ":1: memory_rate is \"-1\"");
    refuse("memory_rate = 1e9 # x\nlook_time = 60ns # x\n", "line_latency is missing");
    refuse("", "memory_rate is missing");
}

/* QUOIT_MODEL_RATE_MAX and QUOIT_MODEL_TIME_NS_MAX, and the least values. */
static void test_limits(void **state)
{
    (void)state;
    struct quoit_model_file file;
    char problem[QUOIT_MODEL_PROBLEM_BYTES] = "", text[64];
    assert_true(read_text(good, &file, problem));
    snprintf(text, sizeof text, "memory_rate=%llu,look_time=%lluns", QUOIT_MODEL_RATE_MAX, QUOIT_MODEL_TIME_NS_MAX);
    assert_true(quoit_model_set(&file, text, problem));
    assert_int_equal(file.model.memory_rate, QUOIT_MODEL_RATE_MAX);
    assert_int_equal(file.model.look_time, QUOIT_MODEL_TIME_NS_MAX);
    snprintf(text, sizeof text, "memory_rate=%llu", QUOIT_MODEL_RATE_MAX + 1);
    assert_false(quoit_model_set(&file, text, problem));
    assert_non_null(strstr(problem, "must be from 1000000 to"));
    snprintf(text, sizeof text, "look_time=%lluns", QUOIT_MODEL_TIME_NS_MAX + 1);
    assert_false(quoit_model_set(&file, text, problem));
    assert_false(quoit_model_set(&file, "look_time=0ns", problem));
    assert_true(quoit_model_set(&file, "look_time=1ns,memory_rate=1e6", problem));
}

static void test_factors(void **state)
{
    (void)state;
    struct quoit_model_file file;
    char problem[QUOIT_MODEL_PROBLEM_BYTES] = "";
    assert_true(read_text(good, &file, problem));
    assert_true(quoit_model_set(&file, "memory_rate=2x,line_latency=0.5x", problem));
    assert_int_equal(file.model.memory_rate, 5000000000u);
    assert_int_equal(file.model.line_latency, 40);
    static const char *const wrong[] = {"memory_rate",    "rate=2x",         "memory_rate=0x", "memory_rate=-1x",
                                        "look_time=nanx", "look_time=1e30x", "look_time=2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        problem[0] = '\0';
        assert_false(quoit_model_set(&file, wrong[i], problem));
        assert_string_not_equal(problem, "");
    }
}

static void test_missing(void **state)
{
    (void)state;
    struct quoit_model_file file;
    char problem[QUOIT_MODEL_PROBLEM_BYTES] = "";
    assert_false(quoit_model_read("/nowhere/a.model", &file, problem));
    assert_non_null(strstr(problem, "cannot read /nowhere/a.model"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),    cmocka_unit_test(test_wrong_lines), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_factors), cmocka_unit_test(test_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
