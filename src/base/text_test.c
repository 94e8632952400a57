/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: nothing that a terminal obeys passes, and all that it shows does. Method: examples; every pair of bytes, against
 * the converter of the C library. */
#include "base/text.h"

#include <langinfo.h>
#include <locale.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include <cmocka.h>

static void test_examples(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"plain text\n  second line", "plain text\n  second line"},
        {"a\033[31mb\033]0;title\007c\r\t\b\177", "a?[31mb?]0;title?c????"},
        {"m\303\274ller \342\202\254 \360\237\230\200", "m\303\274ller \342\202\254 \360\237\230\200"},
        {"csi \302\2331m", "csi ??1m"},                /* U+009B begins a sequence, too */
        {"\233bare \377\376", "?bare ??"},             /* no UTF-8 */
        {"cut \342\202", "cut ??"},                    /* ends inside a character */
        {"long \300\257 \340\200\257", "long ?? ???"}, /* characters that have a shorter form */
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        char text[64];
        memcpy(text, pairs[i][0], strlen(pairs[i][0]) + 1);
        quoit_text_clean(text, strlen(text));
        assert_string_equal(text, pairs[i][1]);
    }
}

static void test_every_pair(void **state)
{
    (void)state;
    if (!setlocale(LC_CTYPE, "C.UTF-8") || strcmp(nl_langinfo(CODESET), "UTF-8") != 0)
        skip(); /* no such locale here */
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        char text[3] = {(char)(pair >> 8), (char)pair, 'x'};
        quoit_text_clean(text, sizeof text);
        assert_int_equal(text[2], 'x');
        for (size_t at = 0; at < sizeof text;) { /* what is left is printable, whole */
            wchar_t point;
            mbstate_t shift = {0};
            size_t length = mbrtowc(&point, text + at, sizeof text - at, &shift);
            assert_true(length > 0 && length <= 2);
            assert_true(point == L'\n' || (point >= 0x20 && point < 0x7f) || point > 0x9f);
            at += length;
        }
        unsigned high = pair >> 8, low = pair & 0xff;
        bool is_two = high >= 0xc2 && high <= 0xdf && low >= 0x80 && low <= 0xbf && pair >= 0xc2a0;
        if (is_two || (high >= ' ' && high < 0x7f && low >= ' ' && low < 0x7f))
            assert_true((unsigned char)text[0] == high && (unsigned char)text[1] == low);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_examples), cmocka_unit_test(test_every_pair)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
