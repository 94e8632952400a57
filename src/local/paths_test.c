/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a table of methods is what its file says, or the built-in one with one line of explanation. Method: tables
 * printed and read again; single mistakes, and seeded random damage to a valid text, judged by comparison with the
 * valid texts.
 * Replay: QUOIT_TEST_SEED=<seed printed>. */
#include "local/paths.h"
#include "base/prng.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const struct quoit_paths_machine machine = {.name = "loom", .processor = "Some Processor 3000 @ 2 GHz"};

static size_t print(const struct quoit_paths *paths, char text_out[QUOIT_PATHS_FILE_BYTES])
{
    FILE *file = fmemopen(text_out, QUOIT_PATHS_FILE_BYTES, "w");
    assert_non_null(file);
    quoit_paths_print(paths, &machine, file);
    long bytes = ftell(file);
    fclose(file);
    return (size_t)bytes;
}

/* A random table of methods that this processor has. */
static void make_random(struct quoit_paths *paths, struct quoit_prng *prng)
{
    quoit_paths_default(paths);
    paths->source = QUOIT_PATHS_TUNED;
    for (int kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++)
        for (uint32_t i = 0; i < QUOIT_PATHS_SIZE_COUNT; i++)
            do
                paths->way[kind][i] = (uint8_t)quoit_prng_choose(prng, QUOIT_COPY_METHOD_COUNT);
            while (!quoit_copy_is_built((enum quoit_copy_method)paths->way[kind][i]));
}

static void test_round_trip(void **state)
{
    (void)state;
    struct quoit_prng prng = {7};
    char text[QUOIT_PATHS_FILE_BYTES], problem[QUOIT_PATHS_PROBLEM_BYTES];
    for (int i = 0; i < 100; i++) {
        struct quoit_paths made, read;
        make_random(&made, &prng);
        memset(&read, 0, sizeof read);
        size_t bytes = print(&made, text);
        assert_true(quoit_paths_parse(&read, text, bytes, &machine, problem));
        assert_memory_equal(made.way, read.way, sizeof made.way);
        assert_int_equal(read.source, QUOIT_PATHS_TUNED);
        assert_int_equal(read.plain_bytes, QUOIT_PATHS_PLAIN_BYTES);
    }
}

static void test_choice(void **state)
{
    (void)state;
    struct quoit_paths paths;
    quoit_paths_default(&paths);
    paths.way[QUOIT_BUFFER_HEAP][0] = QUOIT_COPY_MOVSB;
    paths.way[QUOIT_BUFFER_HEAP][3] = QUOIT_COPY_STREAM;
    paths.way[QUOIT_BUFFER_HEAP][QUOIT_PATHS_SIZE_COUNT - 1] = QUOIT_COPY_CMA;
    static const struct {
        size_t bytes;
        enum quoit_copy_method way;
    } wanted[] = {
        {0, QUOIT_COPY_MEMCPY},           {65536, QUOIT_COPY_MEMCPY},        {65537, QUOIT_COPY_MOVSB},
        {131072, QUOIT_COPY_MOVSB},       {131073, QUOIT_COPY_MEMCPY},       {524288, QUOIT_COPY_MEMCPY},
        {524289, QUOIT_COPY_STREAM},      {1u << 20, QUOIT_COPY_STREAM},     {(1u << 20) + 1, QUOIT_COPY_MEMCPY},
        {32u << 20, QUOIT_COPY_MEMCPY},   {(32u << 20) + 1, QUOIT_COPY_CMA}, {64u << 20, QUOIT_COPY_CMA},
        {(size_t)1 << 40, QUOIT_COPY_CMA}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        assert_int_equal(quoit_paths_choose(&paths, QUOIT_BUFFER_HEAP, wanted[i].bytes), wanted[i].way);
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

/* With `from` replaced by `to`, the text is refused with a reason that contains `reason`. */
static void refuse(const char *from, const char *to, const char *reason)
{
    struct quoit_paths paths, before;
    char good[QUOIT_PATHS_FILE_BYTES], bad[2 * QUOIT_PATHS_FILE_BYTES], problem[QUOIT_PATHS_PROBLEM_BYTES] = "";
    quoit_paths_default(&paths);
    before = paths;
    print(&paths, good);
    char *at = strstr(good, from);
    assert_non_null(at);
    snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - good), good, to, at + strlen(from));
    assert_false(quoit_paths_parse(&paths, bad, strlen(bad), &machine, problem));
    assert_memory_equal(&paths, &before, sizeof paths);
    if (!strstr(problem, reason) || strchr(problem, '\n'))
        fail_msg("\"%s\" for \"%s\" gave: %s", to, from, problem);
}

static void test_bad_input(void **state)
{
    (void)state;
    refuse("quoit paths 1", "quoit paths 2", "does not begin");
    refuse("quoit paths 1", "", "does not begin");
    refuse("machine loom", "machine lathe", "not measured on this machine (loom, Some Processor 3000 @ 2 GHz)");
    refuse("machine loom", "machine loom2", "not measured");
    refuse("Processor 3000", "Processor 2000", "not measured");
    refuse("heap 128K memcpy", "heap 128K magic", "line 4 is not \"heap 128K WAY\"");
    refuse("heap 128K memcpy", "heap 128K", "line 4");
    refuse("heap 128K memcpy\n", "", "line 4");
    refuse("heap 128K memcpy", "heap 128K memcpy ", "line 4");
    refuse("heap 256K memcpy", "heap 128K memcpy", "line 5");
    refuse("globals 64M memcpy\n", "", "line 23");
    refuse("globals 64M memcpy\n", "globals 64M mem", "line 23");
    refuse("globals 64M memcpy\n", "globals 64M memcpy\n\n", "goes on");
}

/* Damage: bytes changed, removed or inserted. Only a text that is word for word a table is accepted. */
static void test_fuzz(void **state)
{
    (void)state;
    const char *seed = getenv("QUOIT_TEST_SEED");
    struct quoit_prng prng = {seed ? strtoull(seed, NULL, 0) : 20261121};
    print_message("QUOIT_TEST_SEED=%llu\n", (unsigned long long)prng.state);
    uint32_t taken_count = 0;
    for (int round = 0; round < 20000; round++) {
        struct quoit_paths made, read;
        char text[QUOIT_PATHS_FILE_BYTES], again[QUOIT_PATHS_FILE_BYTES], problem[QUOIT_PATHS_PROBLEM_BYTES] = "";
        make_random(&made, &prng);
        size_t bytes = print(&made, text);
        for (uint64_t hits = quoit_prng_choose(&prng, 3); hits > 0; hits--) {
            size_t at = quoit_prng_choose(&prng, bytes), last = bytes - 1;
            uint64_t kind = quoit_prng_choose(&prng, 3);
            if (kind == 0)
                text[at] = (char)quoit_prng_next(&prng);
            else if (kind == 1)
                bytes = at + 1;
            else
                memmove(text + at, text + at + 1, last - at);
        }
        char *exact = malloc(bytes); /* sized exactly, so that a sanitizer detects reads past the end */
        assert_non_null(exact);
        memcpy(exact, text, bytes);
        bool is_taken = quoit_paths_parse(&read, exact, bytes, &machine, problem);
        free(exact);
        assert_int_equal(is_taken, problem[0] == '\0');
        if (!is_taken)
            continue;
        taken_count++;
        size_t again_bytes = print(&read, again);
        bool is_same = (again_bytes == bytes && memcmp(again, text, bytes) == 0) ||
                       (again_bytes == bytes + 1 && memcmp(again, text, bytes) == 0); /* only its final newline is
                                                                                       * missing */
        assert_true(is_same);
    }
    assert_true(taken_count > 1000 && taken_count < 19000);
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
    char folder[] = "/tmp/quoit_paths_XXXXXX", name[QUOIT_PATHS_NAME_BYTES], problem[QUOIT_PATHS_PROBLEM_BYTES] = "";
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
    char below[QUOIT_PATHS_NAME_BYTES];
    snprintf(below, sizeof below, "%s/quoit", folder);
    assert_int_equal(mkdir(below, 0700), 0);

    quoit_paths_default(&tuned);
    tuned.way[QUOIT_BUFFER_GLOBALS][4] = QUOIT_COPY_CMA;
    FILE *file = fopen(name, "w");
    assert_non_null(file);
    quoit_paths_print(&tuned, &own, file);
    fclose(file);
    assert_true(quoit_paths_load(&paths, "auto", problem));
    assert_int_equal(paths.source, QUOIT_PATHS_TUNED);
    assert_memory_equal(paths.way, tuned.way, sizeof tuned.way);
    assert_true(quoit_paths_load(&paths, "memcpy", problem));
    assert_int_equal(paths.source, QUOIT_PATHS_FORCED);

    static char large[QUOIT_PATHS_FILE_BYTES + 1];
    memset(large, '\n', sizeof large);
    static const struct {
        const char *text;
        size_t bytes;
        const char *reason;
    } bad[] = {{"", 0, "does not begin"},
               {"quoit paths 1\nmachine elsewhere\n", 32, "not measured"},
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
        cmocka_unit_test(test_fuzz),       cmocka_unit_test(test_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
