/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: all hosts choose where they are called by one rule, which also names what keeps them apart. Method: a table of
 * hosts' lists and what is taken of them, each also with the hosts in the other order, which must not change it; and as
 * many hosts as a network has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/places.h"

#define HOSTS_MAX  4u
#define MANY_HOSTS 4096u

/* A place is a letter for its kind (Fabric, Ethernet, Virtual, Loopback), its speed, address and prefix, then s: ssh
 * came there, c: it is closed. "@7" in front of a list is the host's stack; else each has its own. */
struct example {
    const char *what;
    const char *hosts[HOSTS_MAX];
    const char *taken; /* addresses, in the order of the hosts; NULL: none */
    enum quoit_net_places_verdict verdict;
    const char *trouble; /* the hosts that are named */
};

static const struct example examples[] = {
    {"one subnet", {"E10 10.0.0.1/24", "E10 10.0.0.2/24"}, "10.0.0.1 10.0.0.2", 0, NULL},
    {"an adapter with one address everywhere comes first",
     {"E10 192.168.1.1/24, E10 10.0.0.1/24", "E10 192.168.1.1/24, E10 10.0.0.2/24"},
     "10.0.0.1 10.0.0.2",
     0,
     NULL},
    {"two of three hosts have one address",
     {"E100 10.1.0.1/24, E10 10.0.0.1/24", "E100 10.1.0.2/24, E10 10.0.0.2/24", "E100 10.1.0.1/24, E10 10.0.0.3/24"},
     "10.0.0.1 10.0.0.2 10.0.0.3",
     0,
     NULL},
    {"a fabric is before faster Ethernet",
     {"E1000 10.0.0.1/24, F400 10.1.0.1/24", "E1000 10.0.0.2/24, F400 10.1.0.2/24"},
     "10.1.0.1 10.1.0.2",
     0,
     NULL},
    {"a fabric that one host lacks",
     {"E10 10.0.0.1/24, F400 10.1.0.1/24", "E10 10.0.0.2/24, F400 10.1.0.2/24", "E10 10.0.0.3/24"},
     "10.0.0.1 10.0.0.2 10.0.0.3",
     0,
     NULL},
    {"the faster one",
     {"E10 10.0.0.1/24, E100 10.1.0.1/24", "E10 10.0.0.2/24, E100 10.1.0.2/24"},
     "10.1.0.1 10.1.0.2",
     0,
     NULL},
    {"as fast as the slowest host",
     {"E100 10.0.0.1/24, E25 10.1.0.1/24", "E10 10.0.0.2/24, E25 10.1.0.2/24"},
     "10.1.0.1 10.1.0.2",
     0,
     NULL},
    {"of equals the one that ssh used",
     {"E10 10.0.0.1/24, E10 10.1.0.1/24s", "E10 10.0.0.2/24, E10 10.1.0.2/24s"},
     "10.1.0.1 10.1.0.2",
     0,
     NULL},
    {"ssh came over the slow one",
     {"E10 10.0.0.1/24s, E100 10.1.0.1/24", "E10 10.0.0.2/24s, E100 10.1.0.2/24"},
     "10.1.0.1 10.1.0.2",
     0,
     NULL},
    {"adapters are before a bridge",
     {"V100 10.2.0.1/24, E10 10.0.0.1/24", "V100 10.2.0.2/24, E10 10.0.0.2/24"},
     "10.0.0.1 10.0.0.2",
     0,
     NULL},
    {"halves of pairs, as in namespaces", {"V100 10.2.0.1/24", "V100 10.2.0.2/24"}, "10.2.0.1 10.2.0.2", 0, NULL},
    {"routed", {"E10 10.1.0.5/24", "E10 10.2.0.5/24"}, "10.1.0.5 10.2.0.5", 0, NULL},
    {"routed is before an overlay of all",
     {"V0 100.64.0.1/10, E10 10.1.0.5/24", "V0 100.64.0.2/10, E10 10.2.0.5/24"},
     "10.1.0.5 10.2.0.5",
     0,
     NULL},
    {"a subnet of all is before what is routed and faster",
     {"E100 10.1.0.5/24, E10 10.0.0.1/24", "E100 10.2.0.5/24, E10 10.0.0.2/24"},
     "10.0.0.1 10.0.0.2",
     0,
     NULL},
    {"addresses without a subnet", {"E10 10.0.0.1/32", "E10 10.0.0.2/32"}, "10.0.0.1 10.0.0.2", 0, NULL},
    {"prefixes that differ", {"E10 10.0.0.1/16", "E10 10.0.0.2/24, E10 10.5.0.1/24"}, "10.0.0.1 10.0.0.2", 0, NULL},
    {"halves of a subnet, and one of both",
     {"E100 10.0.0.1/25, E10 10.9.0.1/23", "E100 10.0.0.129/25, E10 10.9.1.1/23"},
     "10.9.0.1 10.9.1.1",
     0,
     NULL},
    {"the better of two in the subnet",
     {"E10 10.0.0.1/24, E100 10.0.0.9/24", "E100 10.0.0.2/24"},
     "10.0.0.9 10.0.0.2",
     0,
     NULL},
    {"IPv4 before IPv6",
     {"E10 fd00::1/64, E10 10.0.0.1/24", "E10 fd00::2/64, E10 10.0.0.2/24"},
     "10.0.0.1 10.0.0.2",
     0,
     NULL},
    {"faster IPv6",
     {"E100 fd00::1/64, E10 10.0.0.1/24", "E100 fd00::2/64, E10 10.0.0.2/24"},
     "fd00::1 fd00::2",
     0,
     NULL},
    {"a host has IPv6 alone", {"E10 fd00::1/64, E10 10.0.0.1/24", "E10 fd00::2/64"}, "fd00::1 fd00::2", 0, NULL},
    {"IPv4 alone and IPv6 alone", {"E10 10.0.0.1/24", "E10 fd00::2/64"}, NULL, QUOIT_NET_PLACES_APART, "1 0"},
    {"the third has IPv6 alone",
     {"E10 10.0.0.1/24", "E10 10.0.0.2/24", "E10 fd00::2/64"},
     NULL,
     QUOIT_NET_PLACES_APART,
     "2 0"},
    {"link-local addresses last",
     {"E100 fe80::1/64, E10 10.0.0.1/24", "E100 fe80::2/64, E10 10.0.0.2/24"},
     "10.0.0.1 10.0.0.2",
     0,
     NULL},
    {"those of IPv4, too",
     {"E100 169.254.0.1/16, V1 10.0.0.1/24", "E100 169.254.0.2/16, V1 10.0.0.2/24"},
     "10.0.0.1 10.0.0.2",
     0,
     NULL},
    {"link-local addresses alone", {"E10 fe80::1/64", "E10 fe80::2/64"}, "fe80::1 fe80::2", 0, NULL},
    {"one address",
     {"E10 192.168.1.1/24", "E10 10.0.0.1/24", "E10 192.168.1.1/24"},
     NULL,
     QUOIT_NET_PLACES_SAME,
     "0 2"},
    {"one address, of stacks in another order than the hosts",
     {"@9 E10 192.168.1.1/24", "@9 E10 192.168.1.1/24", "@5 E10 192.168.1.1/24"},
     NULL,
     QUOIT_NET_PLACES_SAME,
     "0 2"},
    {"one address, which is one stack's",
     {"@5 E10 192.168.1.1/24", "@5 E10 192.168.1.1/24"},
     "192.168.1.1 192.168.1.1",
     0,
     NULL},
    {"loopback beside something else",
     {"L0 127.0.0.1/8, E1 10.0.0.1/24", "L0 127.0.0.1/8, E1 10.0.0.2/24"},
     "10.0.0.1 10.0.0.2",
     0,
     NULL},
    {"loopback alone", {"E1 10.0.0.1/24", "L0 127.0.0.1/8"}, NULL, QUOIT_NET_PLACES_LOOPBACK, "1 0"},
    {"loopback of one machine",
     {"@5 L0 127.0.0.1/8, L0 ::1/128", "@5 L0 127.0.0.1/8, L0 ::1/128"},
     "127.0.0.1 127.0.0.1",
     0,
     NULL},
    {"loopback of two machines", {"L0 127.0.0.1/8", "L0 127.0.0.1/8"}, NULL, QUOIT_NET_PLACES_LOOPBACK, "0 1"},
    {"what is closed is not taken",
     {"E10 10.0.0.1/24, E100 10.1.0.1/24c", "E10 10.0.0.2/24, E100 10.1.0.2/24"},
     "10.0.0.1 10.0.0.2",
     0,
     NULL},
    {"nothing is open", {"E10 10.0.0.1/24", "E10 10.0.0.2/24c"}, NULL, QUOIT_NET_PLACES_NONE, "1"},
};
#define EXAMPLE_COUNT (sizeof examples / sizeof examples[0])

static void read_place(const char *text, uint32_t index, struct quoit_net_place *place_out)
{
    static const char kinds[] = "FEVL";
    char kind, address[64], marks[4] = "";
    unsigned speed, bits;
    assert_in_range(sscanf(text, "%c%u %63[^/]/%u%3[sc]", &kind, &speed, address, &bits, marks), 4, 5);
    *place_out = (struct quoit_net_place){.kind = (uint8_t)(strchr(kinds, kind) - kinds),
                                          .speed = (uint16_t)speed,
                                          .prefix_bits = (uint8_t)bits,
                                          .is_ssh = strchr(marks, 's') != NULL,
                                          .is_open = strchr(marks, 'c') == NULL};
    assert_true(quoit_address_parse(address, &place_out->address));
    snprintf(place_out->device, sizeof place_out->device, "eth%u", index);
}

static void read_places(const char *text, uint32_t host, struct quoit_net_places *places_out)
{
    char copy[256], *rest = copy;
    uint32_t count = 0;
    snprintf(copy, sizeof copy, "%s", text);
    *places_out = (struct quoit_net_places){.stack = 100 + host};
    if (rest[0] == '@') {
        places_out->stack = (uint64_t)(rest[1] - '0');
        rest += 3;
    }
    for (char *word; (word = strsep(&rest, ",")) != NULL; count++)
        read_place(word + strspn(word, " "), count, &places_out->list[count]);
}

/* Which are taken, between blanks. */
static void print_taken(const struct quoit_net_places *const *hosts, uint32_t count, const uint8_t *taken,
                        char *text_out, size_t bytes)
{
    size_t used = 0;
    for (uint32_t host = 0; host < count; host++) {
        char address[QUOIT_ADDRESS_TEXT_BYTES];
        assert_in_range(taken[host], 0, QUOIT_NET_PLACES_MAX - 1);
        quoit_address_print(&hosts[host]->list[taken[host]].address, address);
        used += (size_t)snprintf(text_out + used, bytes - used, "%s%s", host ? " " : "", address);
    }
}

static void check_trouble(const struct example *example, const struct quoit_net_places_trouble *trouble)
{
    unsigned first, second = trouble->hosts[1];
    assert_in_range(sscanf(example->trouble, "%u %u", &first, &second), 1, 2);
    if (trouble->hosts[0] != first || trouble->hosts[1] != second)
        fail_msg("%s: hosts %u and %u are named", example->what, trouble->hosts[0], trouble->hosts[1]);
}

static void check(const struct example *example)
{
    struct quoit_net_places lists[HOSTS_MAX];
    const struct quoit_net_places *hosts[HOSTS_MAX], *turned[HOSTS_MAX];
    struct quoit_net_places_trouble trouble;
    uint8_t taken[HOSTS_MAX], taken_turned[HOSTS_MAX], again[HOSTS_MAX];
    char text[256];
    uint32_t count = 0;
    for (; count < HOSTS_MAX && example->hosts[count]; count++) {
        read_places(example->hosts[count], count, &lists[count]);
        hosts[count] = &lists[count];
    }
    for (uint32_t host = 0; host < count; host++)
        turned[host] = hosts[count - 1 - host];
    enum quoit_net_places_verdict verdict = quoit_net_places_choose(hosts, count, true, taken, &trouble);
    if (verdict != example->verdict)
        fail_msg("%s: verdict %d", example->what, verdict);
    if (verdict != QUOIT_NET_PLACES_CHOSEN) {
        check_trouble(example, &trouble);
        assert_int_equal(quoit_net_places_choose(turned, count, true, taken_turned, &trouble), verdict);
        return;
    }
    print_taken(hosts, count, taken, text, sizeof text);
    if (strcmp(text, example->taken) != 0)
        fail_msg("%s: %s is taken", example->what, text);
    assert_int_equal(quoit_net_places_choose(turned, count, true, taken_turned, &trouble), QUOIT_NET_PLACES_CHOSEN);
    for (uint32_t host = 0; host < count; host++)
        again[host] = taken_turned[count - 1 - host];
    print_taken(hosts, count, again, text, sizeof text);
    if (strcmp(text, example->taken) != 0)
        fail_msg("%s: %s is taken with the hosts in the other order", example->what, text);
}

static void test_examples(void **state)
{
    (void)state;
    for (size_t i = 0; i < EXAMPLE_COUNT; i++)
        check(&examples[i]);
}

/* What is not open counts where that is asked. */
static void test_closed(void **state)
{
    struct quoit_net_places lists[2];
    const struct quoit_net_places *const hosts[] = {&lists[0], &lists[1]};
    struct quoit_net_places_trouble trouble;
    uint8_t taken[2];
    (void)state;
    read_places("E10 10.0.0.1/24, E100 10.1.0.1/24c", 0, &lists[0]);
    read_places("E10 10.0.0.2/24c, E100 10.1.0.2/24c", 1, &lists[1]);
    assert_true(quoit_net_places_any_open(hosts, 2));
    assert_false(quoit_net_places_any_open(&hosts[1], 1));
    assert_int_equal(quoit_net_places_choose(hosts, 2, true, taken, &trouble), QUOIT_NET_PLACES_NONE);
    assert_int_equal(quoit_net_places_choose(hosts, 2, false, taken, &trouble), QUOIT_NET_PLACES_CHOSEN);
    assert_int_equal(taken[0], 1);
    assert_int_equal(taken[1], 1);
}

/* 10.0.0.0/16 with an address for each host, and a faster adapter with one address on two of them. */
static void test_many(void **state)
{
    struct quoit_net_places *lists = calloc(MANY_HOSTS, sizeof *lists);
    const struct quoit_net_places **hosts = calloc(MANY_HOSTS, sizeof *hosts);
    uint8_t *taken = calloc(MANY_HOSTS, sizeof *taken);
    struct quoit_net_places_trouble trouble;
    char text[128];
    (void)state;
    assert_non_null(lists);
    assert_non_null(hosts);
    assert_non_null(taken);
    for (uint32_t host = 0; host < MANY_HOSTS; host++) {
        uint32_t fast = host == MANY_HOSTS - 1 ? 7 : host;
        snprintf(text, sizeof text, "E100 10.1.%u.%u/16, E10 10.0.%u.%u/16", fast / 250, fast % 250 + 1, host / 250,
                 host % 250 + 1);
        read_places(text, host, &lists[host]);
        hosts[host] = &lists[host];
    }
    assert_int_equal(quoit_net_places_choose(hosts, MANY_HOSTS, true, taken, &trouble), QUOIT_NET_PLACES_CHOSEN);
    for (uint32_t host = 0; host < MANY_HOSTS; host++)
        assert_int_equal(taken[host], 1);
    snprintf(text, sizeof text, "E100 10.1.16.99/16, E10 10.0.16.99/16");
    read_places(text, MANY_HOSTS - 1, &lists[MANY_HOSTS - 1]);
    assert_int_equal(quoit_net_places_choose(hosts, MANY_HOSTS, true, taken, &trouble), QUOIT_NET_PLACES_CHOSEN);
    for (uint32_t host = 0; host < MANY_HOSTS; host++)
        assert_int_equal(taken[host], 0);
    free(taken);
    free(hosts);
    free(lists);
}

static void test_text(void **state)
{
    struct quoit_net_places places;
    struct quoit_net_place place;
    char text[QUOIT_NET_PLACE_TEXT_BYTES], list[64];
    (void)state;
    read_places("E10 10.0.0.1/24, E10 fd00::1/64", 0, &places);
    place = places.list[0];
    assert_string_equal(quoit_net_place_print(&place, text), "eth0 10.0.0.1/24");
    place.address.port = htons(50000);
    assert_string_equal(quoit_net_place_print(&place, text), "eth0 10.0.0.1/24 port 50000");
    assert_string_equal(quoit_net_places_print(&places, list, sizeof list), "eth0 10.0.0.1/24, eth1 fd00::1/64");
    assert_string_equal(quoit_net_places_print(&places, list, 20), "eth0 10.0.0.1/24, e");
    places = (struct quoit_net_places){0};
    assert_string_equal(quoit_net_places_print(&places, list, sizeof list), "no device");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),
        cmocka_unit_test(test_closed),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
