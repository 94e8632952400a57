/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines of a file come whole, in order, cut to the room that is given, wherever the reads of the buffer end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "env/text.h"

static void make(char *name_out, const char *content, size_t bytes)
{
    strcpy(name_out, "/tmp/quoit-text-XXXXXX");
    int fd = mkstemp(name_out);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content, bytes), (ssize_t)bytes);
    close(fd);
}

static void test_lines(void **state)
{
    (void)state;
    char name[64], line[16];
    struct quoit_text text;
    static const char content[] = "first\n\nthird, which is longer than its room\nno newline";
    make(name, content, sizeof content - 1);
    quoit_text_open(&text, name);
    unlink(name);
    const char *const expected[] = {"first", "", "third, which is", "no newline"};
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
        assert_true(quoit_text_line(&text, line, sizeof line));
        assert_string_equal(line, expected[i]);
    }
    assert_false(quoit_text_line(&text, line, sizeof line));
    quoit_text_close(&text);
}

/* Lines of every length around a buffer's. */
static void test_buffers(void **state)
{
    (void)state;
    char name[64], line[2 * QUOIT_TEXT_BUFFER_BYTES];
    size_t bytes = 0, lengths = QUOIT_TEXT_BUFFER_BYTES + 3;
    char *content = malloc(lengths * (lengths + 1));
    for (size_t length = 0; length < lengths; length++) {
        memset(content + bytes, 'a' + (int)(length % 26), length);
        content[bytes + length] = '\n';
        bytes += length + 1;
    }
    make(name, content, bytes);
    free(content);
    struct quoit_text text;
    quoit_text_open(&text, name);
    unlink(name);
    for (size_t length = 0; length < lengths; length++) {
        assert_true(quoit_text_line(&text, line, sizeof line));
        assert_int_equal(strlen(line), length);
        for (size_t i = 0; i < length; i++)
            assert_int_equal(line[i], 'a' + (int)(length % 26));
    }
    assert_false(quoit_text_line(&text, line, sizeof line));
    quoit_text_close(&text);
}

static void test_no_file(void **state)
{
    (void)state;
    char line[16];
    struct quoit_text text;
    quoit_text_open(&text, "/proc/no such file");
    assert_false(quoit_text_line(&text, line, sizeof line));
    quoit_text_close(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
