/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the output is valid JSON and holds the values that were written. Method: compares whole texts for every kind of
 * item, for empty and nested containers, and for characters that need escapes. */
#include "base/json.h"

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

struct text {
    char *bytes;
    size_t count;
    FILE *file;
    struct quoit_json json;
};

static void begin(struct text *text)
{
    text->file = open_memstream(&text->bytes, &text->count);
    assert_non_null(text->file);
    quoit_json_start(&text->json, text->file);
}

static void expect(struct text *text, const char *what)
{
    fclose(text->file);
    assert_string_equal(text->bytes, what);
    free(text->bytes);
}

static void test_items(void **state)
{
    (void)state;
    struct text text;
    begin(&text);
    quoit_json_open_object(&text.json, NULL);
    quoit_json_text(&text.json, "quote\"d", "a\\b\n\x01 \xc3\xa4");
    quoit_json_count(&text.json, "count", UINT64_MAX);
    quoit_json_number(&text.json, "number", 0.25);
    quoit_json_number(&text.json, "none", NAN);
    quoit_json_bool(&text.json, "yes", true);
    quoit_json_format(&text.json, "format", "%d-%s", 7, "x");
    quoit_json_close(&text.json);
    expect(&text, "{\n  \"quote\\\"d\": \"a\\\\b\\u000a\\u0001 \xc3\xa4\",\n  \"count\": 18446744073709551615,\n"
                  "  \"number\": 0.25,\n  \"none\": null,\n  \"yes\": true,\n  \"format\": \"7-x\"\n}\n");
}

static void test_levels(void **state)
{
    (void)state;
    struct text text;
    begin(&text);
    quoit_json_open_array(&text.json, NULL);
    quoit_json_open_array(&text.json, NULL);
    quoit_json_close(&text.json);
    quoit_json_open_object(&text.json, NULL);
    quoit_json_open_array(&text.json, "deep");
    quoit_json_open_array(&text.json, NULL);
    quoit_json_count(&text.json, NULL, 1);
    quoit_json_bool(&text.json, NULL, false);
    quoit_json_close(&text.json);
    quoit_json_close(&text.json);
    quoit_json_close(&text.json);
    quoit_json_close(&text.json);
    expect(&text, "[\n  [],\n  {\n    \"deep\": [\n      [1, false]\n    ]\n  }\n]\n");
}

/* The deepest nesting, and one level more, which is an error of ours. */
static void open_arrays(uint32_t depth, FILE *file)
{
    struct quoit_json json;
    quoit_json_start(&json, file);
    for (uint32_t i = 0; i < depth; i++)
        quoit_json_open_array(&json, NULL);
    for (uint32_t i = 0; i < depth; i++)
        quoit_json_close(&json);
}

static void test_depth(void **state)
{
    (void)state;
    int status;
    FILE *nowhere = fopen("/dev/null", "w");
    assert_non_null(nowhere);
    open_arrays(QUOIT_JSON_DEPTH_MAX - 1, nowhere);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        close(STDERR_FILENO);
        open_arrays(QUOIT_JSON_DEPTH_MAX, nowhere);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    fclose(nowhere);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
