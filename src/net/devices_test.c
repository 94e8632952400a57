/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: which devices a list of the user takes, and what is no list. Method: tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "net/devices.h"

static void test_take(void **state)
{
    static const struct {
        const char *list, *name, *address;
        bool is_taken;
    } cases[] = {
        {NULL, "eth0", "10.1.0.4", true},
        {"", "eth0", "10.1.0.4", true},
        {"eth0", "eth0", "10.1.0.4", true},
        {"eth0", "eth1", "10.1.0.4", false},
        {"eth0", "eth01", NULL, false},
        {"10.1.0.4", "eth0", "10.1.0.4", true},
        {"10.1.0.4", "eth0", "10.1.0.5", false},
        {"10.1.0.0/16", "eth0", "10.1.255.255", true},
        {"10.1.0.0/16", "eth0", "10.2.0.0", false},
        {"10.1.0.0/16", "eth0", NULL, false},
        {"10.1.0.0/15", "eth0", "10.0.7.7", true},
        {"10.1.0.0/15", "eth0", "10.2.0.0", false},
        {"0.0.0.0/0", "eth0", "10.2.0.0", true},
        {"0.0.0.0/0", "eth0", "fd00::1", false},
        {"fd00:1::/64", "eth0", "fd00:1::7", true},
        {"fd00:1::/64", "eth0", "fd00:1:0:1::7", false},
        {"::/0", "eth0", "10.2.0.0", false},
        {"^docker0", "docker0", "172.17.0.1", false},
        {"^docker0", "eth0", "10.1.0.4", true},
        {"^172.16.0.0/12", "docker0", "172.17.0.1", false},
        {"10.1.0.0/16,^docker0,ib0", "ib0", "10.9.0.1", true},
        {"10.1.0.0/16,^docker0,ib0", "eth0", "10.1.0.1", true},
        {"10.1.0.0/16,^docker0,ib0", "eth1", "10.2.0.1", false},
        {"10.1.0.0/16,^docker0,ib0", "docker0", "10.1.0.1", false},
        {"docker0,^docker0", "docker0", "10.1.0.1", false},
        {"mlx5_0:1", "mlx5_0:1", NULL, true},
        {"mlx5_0:1,eth0", "mlx5_1:1", NULL, false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct quoit_wire_address address = {0};
        char problem[QUOIT_DEVICES_PROBLEM_BYTES];
        if (cases[i].address)
            assert_true(quoit_address_parse(cases[i].address, &address));
        if (cases[i].list && !quoit_devices_check(cases[i].list, problem))
            fail_msg("%s is refused: %s", cases[i].list, problem);
        if (quoit_devices_take(cases[i].list, cases[i].name, &address) != cases[i].is_taken ||
            (!cases[i].address && quoit_devices_take(cases[i].list, cases[i].name, NULL) != cases[i].is_taken))
            fail_msg("%s and %s, %s", cases[i].list, cases[i].name, cases[i].address);
    }
}

static void test_wrong_lists(void **state)
{
    static const struct {
        const char *list, *words;
    } cases[] = {
        {"eth0,", "an entry is empty"},
        {",eth0", "an entry is empty"},
        {"^", "an entry is empty"},
        {"10.1.0.0/33", "\"10.1.0.0/33\" is no subnet"},
        {"10.1.0.0/", "\"10.1.0.0/\" is no subnet"},
        {"eth0,^10.1.0.0/x", "\"10.1.0.0/x\" is no subnet"},
        {"10.1/16", "\"10.1/16\" is no subnet"},
        {"fd00::/129", "\"fd00::/129\" is no subnet"},
        {"fd00::/0064", "is no subnet"},
        {"eth0/24", "is no subnet"},
    };
    char problem[QUOIT_DEVICES_PROBLEM_BYTES], list[QUOIT_DEVICES_BYTES + 1];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (quoit_devices_check(cases[i].list, problem) || !strstr(problem, cases[i].words))
            fail_msg("%s: %s", cases[i].list, problem);
    memset(list, 'e', sizeof list - 1);
    list[sizeof list - 1] = '\0';
    assert_false(quoit_devices_check(list, problem));
    list[100] = '\0';
    assert_false(quoit_devices_check(list, problem));
    assert_non_null(strstr(problem, "too long"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take),
        cmocka_unit_test(test_wrong_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
