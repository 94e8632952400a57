/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of options: values read from an environment, and each row as docs/dsm.md prints it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "dsm/options.h"

static void test_values(void **state)
{
    (void)state;
    struct quoit_dsm_options options;
    char *environment[] = {"PATH=/bin", "DSM_PROTOCOL=draw", "DSM_MEMORY=64M", "DSM_PAGE=16K", NULL};
    quoit_dsm_options_read(&options, environment);
    assert_int_equal(options.values[QUOIT_DSM_PROTOCOL], QUOIT_DSM_DRAW);
    assert_int_equal(options.values[QUOIT_DSM_MEMORY], 64 << 20);
    assert_int_equal(options.values[QUOIT_DSM_PAGE], 16384);
    assert_int_equal(options.values[QUOIT_DSM_PREFETCH], 64);
    char word[32];
    assert_string_equal(quoit_dsm_option_word(QUOIT_DSM_HOME, QUOIT_DSM_HOME_MIGRATE, word), "migrate");
    assert_null(quoit_dsm_option_word(QUOIT_DSM_HOME, 4, word));
    assert_string_equal(quoit_dsm_option_variable(QUOIT_DSM_SYNCS), "DSM_SYNCS");
}

static void test_page_of_the_manual(void **state)
{
    (void)state;
    static char text[1 << 16];
    FILE *file = fopen(QUOIT_SOURCE_FOLDER "/docs/dsm.md", "r");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (int option = 0; option < QUOIT_DSM_OPTION_COUNT; option++) {
        char row[1024];
        quoit_dsm_option_row(option, row, sizeof row);
        if (!strstr(text, row))
            fail_msg("docs/dsm.md lacks the row: %s", row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_page_of_the_manual)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
