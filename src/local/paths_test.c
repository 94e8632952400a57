/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a table of paths is what its file says, or the built-in one with one line of explanation. Method:
 * random tables written as quoit tune writes them and read again; single mistakes; files that are missing, foreign or
 * not regular files. */
#include "local/paths.h"
#include "base/prng.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct quoit_paths_machine machine = {.name = "loom", .processor = "Some Processor 3000 @ 2 GHz"};

/* As quoit tune writes it. */
static void print(const struct quoit_paths *paths, const struct quoit_paths_machine *of,
                  char text_out[QUOIT_TUNED_FILE_BYTES])
{
    FILE *file = fmemopen(text_out, QUOIT_TUNED_FILE_BYTES, "w");
    assert_non_null(file);
    fprintf(file, "quoit paths 2\nmachine %s\nprocessor %s\n", of->name, of->processor);
    for (enum quoit_buffer_kind kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++) {
        fprintf(file, "%s", quoit_buffer_kind_name(kind));
        for (uint32_t i = 0; i < QUOIT_PATHS_SIZE_COUNT; i++)
            fprintf(file, " %s", quoit_copy_method_name((enum quoit_copy_method)paths->method[kind][i]));
        fprintf(file, "\n");
    }
    assert_int_equal(fclose(file), 0);
}

/* A random table of methods that this processor has. */
static void make_random(struct quoit_paths *paths, struct quoit_prng *prng)
{
    quoit_paths_default(paths);
    paths->source = QUOIT_PATHS_TUNED;
    for (int kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++)
        for (uint32_t i = 0; i < QUOIT_PATHS_SIZE_COUNT; i++)
            do
                paths->method[kind][i] = (uint8_t)quoit_prng_choose(prng, QUOIT_COPY_METHOD_COUNT);
            while (!quoit_copy_is_built((enum quoit_copy_method)paths->method[kind][i]));
}

static void test_round_trip(void **state)
{
    (void)state;
    struct quoit_prng prng = {7};
    char text[QUOIT_TUNED_FILE_BYTES], problem[QUOIT_TUNED_PROBLEM_BYTES];
    for (int i = 0; i < 100; i++) {
        struct quoit_paths made, read;
        make_random(&made, &prng);
        memset(&read, 0, sizeof read);
        print(&made, &machine, text);
        assert_true(quoit_paths_parse(&read, text, &machine, problem));
        assert_memory_equal(made.method, read.method, sizeof made.method);
        assert_int_equal(read.source, QUOIT_PATHS_TUNED);
        assert_int_equal(read.plain_bytes, QUOIT_PATHS_PLAIN_BYTES);
    }
}

static void test_choice(void **state)
{
    (void)state;
    struct quoit_paths paths;
    quoit_paths_default(&paths);
    paths.method[QUOIT_BUFFER_HEAP][0] = QUOIT_COPY_MOVSB;
    paths.method[QUOIT_BUFFER_HEAP][3] = QUOIT_COPY_STREAM;
    paths.method[QUOIT_BUFFER_HEAP][QUOIT_PATHS_SIZE_COUNT - 1] = QUOIT_COPY_CMA;
    static const struct {
        size_t bytes;
        enum quoit_copy_method method;
    } wanted[] = {
        {0, QUOIT_COPY_MEMCPY},           {65536, QUOIT_COPY_MEMCPY},        {65537, QUOIT_COPY_MOVSB},
        {131072, QUOIT_COPY_MOVSB},       {131073, QUOIT_COPY_MEMCPY},       {524288, QUOIT_COPY_MEMCPY},
        {524289, QUOIT_COPY_STREAM},      {1u << 20, QUOIT_COPY_STREAM},     {(1u << 20) + 1, QUOIT_COPY_MEMCPY},
        {32u << 20, QUOIT_COPY_MEMCPY},   {(32u << 20) + 1, QUOIT_COPY_CMA}, {64u << 20, QUOIT_COPY_CMA},
        {(size_t)1 << 40, QUOIT_COPY_CMA}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        assert_int_equal(quoit_paths_choose(&paths, QUOIT_BUFFER_HEAP, wanted[i].bytes), wanted[i].method);
        assert_int_equal(quoit_paths_choose(&paths, QUOIT_BUFFER_GLOBALS, wanted[i].bytes), QUOIT_COPY_MEMCPY);
    }
    assert_true(quoit_paths_use(&paths, QUOIT_COPY_CMA));
    quoit_paths_drop(&paths, QUOIT_COPY_CMA);
    assert_false(quoit_paths_use(&paths, QUOIT_COPY_CMA));
    assert_int_equal(quoit_paths_choose(&paths, QUOIT_BUFFER_HEAP, (size_t)1 << 40), QUOIT_COPY_MEMCPY);
    quoit_paths_force(&paths, QUOIT_COPY_CMA);
    assert_int_equal(quoit_paths_choose(&paths, QUOIT_BUFFER_GLOBALS, 1), QUOIT_COPY_CMA);
    assert_int_equal(quoit_paths_choose(&paths, QUOIT_BUFFER_HEAP, (size_t)1 << 50), QUOIT_COPY_CMA);
}

/* It is no method of copying, so nothing is inlined and no table names it. */
static void test_network(void **state)
{
    (void)state;
    struct quoit_paths paths;
    char problem[QUOIT_TUNED_PROBLEM_BYTES] = "";
    assert_true(quoit_paths_load(&paths, "memcpy", problem));
    assert_false(paths.is_network);
    assert_true(quoit_paths_load(&paths, QUOIT_PATHS_NETWORK, problem));
    assert_true(paths.is_network);
    assert_int_equal(paths.source, QUOIT_PATHS_FORCED);
    assert_int_equal(paths.plain_bytes, 0);
    assert_int_equal(quoit_paths_choose(&paths, QUOIT_BUFFER_HEAP, (size_t)1 << 30), QUOIT_COPY_MEMCPY);
}

/* With `from` replaced by `to`, the text is refused with a reason that contains `reason`. */
static void refuse(const char *from, const char *to, const char *reason)
{
    struct quoit_paths paths, before;
    char good[QUOIT_TUNED_FILE_BYTES], bad[2 * QUOIT_TUNED_FILE_BYTES], problem[QUOIT_TUNED_PROBLEM_BYTES] = "";
    quoit_paths_default(&paths);
    before = paths;
    print(&paths, &machine, good);
    char *at = strstr(good, from);
    assert_non_null(at);
    snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    assert_false(quoit_paths_parse(&paths, bad, &machine, problem));
    assert_memory_equal(&paths, &before, sizeof paths);
    if (!strstr(problem, reason) || strchr(problem, '\n'))
        fail_msg("\"%s\" for \"%s\" gave: %s", to, from, problem);
}

static void test_bad_input(void **state)
{
    (void)state;
    refuse("quoit paths 2", "quoit paths 1", "does not begin");
    refuse("quoit paths 2", "", "does not begin");
    refuse("machine loom", "machine lathe", "not measured on this machine (loom, Some Processor 3000 @ 2 GHz)");
    refuse("machine loom", "machine loom2", "not measured");
    refuse("Processor 3000", "Processor 2000", "not measured");
    refuse("heap memcpy", "heap magic", "line 4 is not \"heap\" and 10 methods");
    refuse("heap memcpy", "heap mem", "line 4");
    refuse("heap memcpy", "heap " QUOIT_PATHS_NETWORK, "line 4");
    refuse("heap memcpy", "heap", "line 4");
    refuse("heap memcpy", "heap memcpy ", "line 4");
    refuse("heap memcpy", "heap memcpy memcpy", "line 4");
    refuse("heap", "globals", "line 4");
    refuse("\nglobals", "", "line 4");
    refuse("globals memcpy", "globals", "line 5 is not \"globals\" and 10 methods");
    refuse("globals", "statics", "line 5");
    refuse("memcpy\nglobals", "memcpy\nmore", "line 5");
    for (const char *cut = "memcpy memcpy memcpy memcpy\nglobals"; *cut != '\n'; cut++)
        refuse("memcpy memcpy memcpy memcpy\nglobals", cut + 1, "line");
}

static void test_goes_on(void **state)
{
    (void)state;
    struct quoit_paths paths;
    char text[QUOIT_TUNED_FILE_BYTES + 8], problem[QUOIT_TUNED_PROBLEM_BYTES] = "";
    quoit_paths_default(&paths);
    print(&paths, &machine, text);
    text[strlen(text) - 1] = '\0'; /* without its end of line it may have been cut */
    assert_false(quoit_paths_parse(&paths, text, &machine, problem));
    strcat(text, "\n\n");
    assert_false(quoit_paths_parse(&paths, text, &machine, problem));
    assert_non_null(strstr(problem, "goes on"));
}

static void write_file(const char *name, const char *text, size_t bytes)
{
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static void test_load(void **state)
{
    (void)state;
    char folder[] = "/tmp/quoit_paths_XXXXXX", name[QUOIT_TUNED_NAME_BYTES], problem[QUOIT_TUNED_PROBLEM_BYTES] = "";
    assert_non_null(mkdtemp(folder));
    setenv("XDG_CONFIG_HOME", folder, 1);
    struct quoit_paths_machine own, other = {.name = "a/b"};
    struct quoit_paths paths, tuned;
    quoit_paths_machine(&own);
    assert_true(own.name[0] && own.processor[0]);
    assert_false(quoit_paths_file(&other, name));
    assert_true(quoit_paths_file(&own, name));
    assert_memory_equal(name, folder, strlen(folder));

    assert_true(quoit_paths_load(&paths, "auto", problem)); /* no file: nothing to say */
    assert_int_equal(paths.source, QUOIT_PATHS_BUILT_IN);
    char below[QUOIT_TUNED_NAME_BYTES];
    snprintf(below, sizeof below, "%s/quoit", folder);
    assert_int_equal(mkdir(below, 0700), 0);

    quoit_paths_default(&tuned);
    tuned.method[QUOIT_BUFFER_GLOBALS][4] = QUOIT_COPY_CMA;
    char text[QUOIT_TUNED_FILE_BYTES];
    print(&tuned, &own, text);
    write_file(name, text, strlen(text));
    assert_true(quoit_paths_load(&paths, "auto", problem));
    assert_int_equal(paths.source, QUOIT_PATHS_TUNED);
    assert_memory_equal(paths.method, tuned.method, sizeof tuned.method);
    assert_true(quoit_paths_load(&paths, "memcpy", problem));
    assert_int_equal(paths.source, QUOIT_PATHS_FORCED);

    static char large[QUOIT_TUNED_FILE_BYTES + 1];
    memset(large, '\n', sizeof large);
    static const struct {
        const char *text;
        size_t bytes;
        const char *reason;
    } bad[] = {{"", 0, "does not begin"},
               {"quoit paths 2\nmachine elsewhere\n", 32, "not measured"},
               {large, sizeof large, "larger than any table"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        write_file(name, bad[i].text, bad[i].bytes);
        assert_false(quoit_paths_load(&paths, "auto", problem));
        assert_int_equal(paths.source, QUOIT_PATHS_BUILT_IN);
        assert_non_null(strstr(problem, bad[i].reason));
        assert_non_null(strstr(problem, name));
    }
    unlink(name);
    assert_int_equal(mkdir(name, 0700), 0); /* a directory in its place */
    assert_false(quoit_paths_load(&paths, "auto", problem));
    assert_non_null(strstr(problem, "cannot be read"));
    rmdir(name);
    assert_int_equal(mkfifo(name, 0600), 0); /* a pipe does not block the start */
    assert_false(quoit_paths_load(&paths, "auto", problem));
    unlink(name);
    rmdir(below);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_choice), cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_goes_on),    cmocka_unit_test(test_load),   cmocka_unit_test(test_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
