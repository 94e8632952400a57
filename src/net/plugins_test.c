/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: to open a driver reads little, above all not the kernel's symbols, which takes longer than all else of a start.
 * Method: what the kernel counts of this process' reads, around the first look at the networks of a driver. */
#include "net/driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define READ_BYTES_MAX (1u << 20) /* the symbols of a kernel are several times that */

static unsigned long long read_bytes(void)
{
    unsigned long long bytes = 0;
    FILE *file = fopen("/proc/self/io", "r");
    if (!file || fscanf(file, "rchar: %llu", &bytes) != 1)
        bytes = 0;
    if (file)
        fclose(file);
    return bytes;
}

static void test_opening_reads_little(void **state)
{
    struct quoit_net_choice choices[8];
    const struct quoit_net_config config = {.driver = "ofi", .host_count = 1};
    char problem[QUOIT_NET_PROBLEM_BYTES];
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* sanitizers do not let the driver stand between libfabric and libc */
#endif
    unsigned long long before = read_bytes();
    if (before == 0 || !quoit_net_driver_open("ofi", problem))
        skip(); /* nothing counts here, or there is no libfabric */
    assert_true(quoit_net_survey(&config, choices, 8) > 0);
    assert_in_range(read_bytes() - before, 1, READ_BYTES_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_opening_reads_little)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
