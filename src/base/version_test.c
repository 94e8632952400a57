/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: two versions fit exactly if their ranges of protocols meet, and a word holds all of a version. Method: every
 * pair of ranges within 0..6 against a count of the protocols that both have; words written and read; words that are
 * none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/version.h"

#define PROTOCOLS 7u

static bool share_one(const struct quoit_version *one, const struct quoit_version *other)
{
    for (uint32_t i = 0; i < PROTOCOLS; i++)
        if (one->protocol_oldest <= i && i <= one->protocol_newest && other->protocol_oldest <= i &&
            i <= other->protocol_newest)
            return true;
    return false;
}

static void test_ranges(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < PROTOCOLS * PROTOCOLS * PROTOCOLS * PROTOCOLS; i++) {
        const struct quoit_version one = {"1.2", i % PROTOCOLS, i / PROTOCOLS % PROTOCOLS},
                                   other = {"3.4", i / 49 % PROTOCOLS, i / 343};
        if (one.protocol_oldest <= one.protocol_newest && other.protocol_oldest <= other.protocol_newest)
            assert_int_equal(quoit_versions_fit(&one, &other), share_one(&one, &other));
    }
    assert_true(quoit_versions_fit(quoit_version(), quoit_version()));
}

static void test_words(void **state)
{
    static const struct quoit_version versions[] = {{"0.9.0", 1, 1}, {"10.20.30-rc1", 0, UINT32_MAX}, {"1", 7, 12}};
    char word[QUOIT_VERSION_FIELD_BYTES];
    struct quoit_version read;
    (void)state;
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        quoit_version_write(&versions[i], word);
        assert_true(quoit_version_read(word, &read));
        assert_memory_equal(&read, &versions[i], sizeof read);
    }
    quoit_version_write(&versions[0], word);
    assert_string_equal(word, "0.9.0:1-1");
}

static void test_no_words(void **state)
{
    static const struct {
        const char *word, *text;
    } rows[] = {{"", ""},
                {"0.9.0", "0.9.0"},
                {"0.9.0:", "0.9.0"},
                {"0.9.0:1", "0.9.0"},
                {"0.9.0:1-", "0.9.0"},
                {"0.9.0:1-1 ", "0.9.0"},
                {"0.9.0:1-1x", "0.9.0"},
                {"0.9.0:01-1", "0.9.0"},
                {"0.9.0:-1-1", "0.9.0"},
                {"0.9.0:1-4294967296", "0.9.0"},
                {"v1:1-1", ""},
                {"1.0\033[31m:1-1", ""},
                {"012345678901234567890123:1-1", ""}};
    struct quoit_version read;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_false(quoit_version_read(rows[i].word, &read));
        assert_string_equal(read.text, rows[i].text);
        assert_false(quoit_versions_fit(quoit_version(), &read));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_no_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
