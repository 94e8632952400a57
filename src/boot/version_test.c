/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the version in the first message of a sender of any version of Quoit is read, and other bytes are never taken
 * for one. Method: messages with a version, cut short, without an end, with bytes of other data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "boot/version.h"

static const char *text_of(uint32_t magic, uint32_t kind, const char *bytes, size_t byte_count, size_t received)
{
    static struct quoit_boot_message message;
    static char text[QUOIT_VERSION_TEXT_BYTES];
    memset(&message, 0xff, sizeof message);
    message.magic = magic;
    message.kind = kind;
    memcpy(&message.body.hello.version, bytes, byte_count);
    quoit_version_get(&message, received, text);
    return text;
}

static void test_own(void **state)
{
    const struct quoit_version *own = quoit_version();
    const char *bytes = (const char *)own;
    char expected[64] = "version ";
    (void)state;
    strcat(expected, own->text);
    assert_string_equal(text_of(QUOIT_BOOT_MAGIC, QUOIT_BOOT_HELLO, bytes, sizeof *own, 40), expected);
    assert_string_equal(text_of(QUOIT_BOOT_MAGIC, QUOIT_BOOT_LAYOUT, bytes, sizeof *own, 4000), expected);
}

/* A message is read if it is whole, the first of its direction, and of a protocol that both speak. */
static void test_fits(void **state)
{
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_HELLO};
    struct quoit_version *version = &message.body.hello.version;
    (void)state;
    *version = (struct quoit_version){"9.8.7", QUOIT_PROTOCOL_NEWEST, QUOIT_PROTOCOL_NEWEST + 5};
    assert_true(quoit_boot_fits(&message, sizeof message));
    assert_false(quoit_boot_fits(&message, sizeof message - 1));
    message.kind = QUOIT_BOOT_READY;
    assert_false(quoit_boot_fits(&message, sizeof message));
    message.kind = QUOIT_BOOT_LAYOUT;
    assert_true(quoit_boot_fits(&message, sizeof message));
    version->protocol_oldest = QUOIT_PROTOCOL_NEWEST + 1;
    assert_false(quoit_boot_fits(&message, sizeof message));
    *version = (struct quoit_version){"0.1.0", 0, QUOIT_PROTOCOL_OLDEST - 1};
    assert_false(quoit_boot_fits(&message, sizeof message));
}

static void test_later(void **state)
{
    (void)state;
    assert_string_equal(text_of(QUOIT_BOOT_MAGIC, QUOIT_BOOT_HELLO, "12.3.4-rc1", 11, 40), "version 12.3.4-rc1");
}

static void test_none(void **state)
{
    static const char unknown[] = "an unknown version", zeros[QUOIT_VERSION_BYTES] = {0};
    (void)state;
    assert_string_equal(text_of(QUOIT_BOOT_MAGIC, QUOIT_BOOT_HELLO, zeros, sizeof zeros, 4000), unknown);
    assert_string_equal(text_of(QUOIT_BOOT_MAGIC, QUOIT_BOOT_HELLO, "1.0\033[31m", 9, 4000), unknown);
    assert_string_equal(text_of(QUOIT_BOOT_MAGIC, QUOIT_BOOT_HELLO, "123456789012345678901234", 24, 4000), unknown);
    assert_string_equal(text_of(QUOIT_BOOT_MAGIC, QUOIT_BOOT_HELLO, "1.0", 4, 39), unknown);
    assert_string_equal(text_of(QUOIT_BOOT_MAGIC, QUOIT_BOOT_ABORT, "1.0", 4, 4000), unknown);
    assert_string_equal(text_of(QUOIT_BOOT_MAGIC + 1, QUOIT_BOOT_HELLO, "1.0", 4, 4000), unknown);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own),
        cmocka_unit_test(test_fits),
        cmocka_unit_test(test_later),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
