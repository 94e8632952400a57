/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: every ring that may be drawn is drawn whole, and no other. Method: each number of hosts up to the limit: each
 * host and each direction's text stands in the picture once. */
#include "boot/picture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void describe(void *arg, uint32_t from, enum quoit_side side, char text_out[QUOIT_PICTURE_TEXT_BYTES])
{
    (void)arg;
    snprintf(text_out, QUOIT_PICTURE_TEXT_BYTES, "<%u%c>", from, side == QUOIT_RIGHT ? 'R' : 'L');
}

/* To be freed. */
static char *draw(uint32_t host_count)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    const struct quoit_picture picture = {.hosts = {.count = host_count}, .indent = "", .describe = describe};
    quoit_picture_print(&picture, out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static uint32_t count(const char *text, const char *wanted)
{
    uint32_t found = 0;
    for (; (text = strstr(text, wanted)) != NULL; text++)
        found++;
    return found;
}

static void test_each_direction_once(void **state)
{
    (void)state;
    for (uint32_t host_count = 2; host_count <= QUOIT_PICTURE_HOSTS_MAX; host_count++) {
        char *text = draw(host_count);
        for (uint32_t from = 0; from < host_count; from++)
            for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
                char wanted[QUOIT_PICTURE_TEXT_BYTES];
                describe(NULL, from, side, wanted);
                if (count(text, wanted) != 1)
                    fail_msg("%s is not once in the picture of %u hosts:\n%s", wanted, host_count, text);
            }
        free(text);
    }
}

static void test_no_other_ring(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 1, QUOIT_PICTURE_HOSTS_MAX + 1, QUOIT_RING_HOSTS_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        char *text = draw(counts[i]);
        assert_string_equal(text, "");
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_direction_once),
        cmocka_unit_test(test_no_other_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
