/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: which network a driver takes, and how it tells the others. Method: networks that the test makes up; interfaces
 * of this machine, of which the loopback device is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <string.h>

#include "net/address.h"
#include "net/candidates.h"
#include "net/interfaces.h"

#define COUNT 5u

/* Best first: c, e, b, d; a is not taken. */
static void make(struct quoit_net_candidate candidates[COUNT])
{
    static const uint64_t costs[COUNT] = {1, 7, 2, 9, 2};
    for (uint32_t i = 0; i < COUNT; i++) {
        candidates[i] = (struct quoit_net_candidate){.choice = {.driver = "d", .is_usable = i != 0}, .cost = costs[i]};
        candidates[i].choice.device[0] = (char)('a' + i);
    }
}

static void test_best(void **state)
{
    struct quoit_net_candidate candidates[COUNT];
    (void)state;
    make(candidates);
    for (uint32_t i = 0; i < COUNT - 1; i++)
        assert_int_equal(quoit_net_best(candidates, COUNT, i)->choice.device[0], "cebd"[i]);
    assert_null(quoit_net_best(candidates, COUNT, COUNT - 1));
    assert_null(quoit_net_best(candidates, COUNT, COUNT + 7));
    assert_null(quoit_net_best(candidates, 1, 0));
    assert_null(quoit_net_best(candidates, 0, 0));
}

static void test_survey(void **state)
{
    struct quoit_net_candidate candidates[COUNT];
    struct quoit_net_choice choices[COUNT];
    (void)state;
    make(candidates);
    assert_int_equal(quoit_net_survey_candidates(candidates, COUNT, "d", NULL, NULL, choices, COUNT), COUNT);
    for (uint32_t i = 0; i < COUNT; i++)
        assert_int_equal(choices[i].device[0], "cabde"[i]);
    assert_int_equal(quoit_net_survey_candidates(candidates, COUNT, "d", NULL, NULL, choices, 2), 2);
    assert_int_equal(quoit_net_survey_candidates(candidates, COUNT, "d", NULL, NULL, choices, 0), 0);
    assert_int_equal(quoit_net_survey_candidates(candidates, 1, "d", "p", "x", choices, COUNT), 2);
    assert_false(choices[0].is_usable);
    assert_string_equal(choices[0].driver, "d");
    assert_string_equal(choices[0].reason, "no network by provider p on device x");
    assert_int_equal(choices[1].device[0], 'a');
}

static void test_interfaces(void **state)
{
    struct quoit_interface all[QUOIT_INTERFACES_MAX], one;
    uint32_t count = quoit_interfaces_list(all), found_count = 0;
    (void)state;
    for (uint32_t i = 0; i < count; i++) {
        const struct quoit_net_place *place = &all[i].place;
        struct in6_addr bytes;
        assert_int_equal(inet_pton(all[i].address.ss_family, all[i].text, &bytes), 1);
        assert_memory_equal(&bytes, place->address.bytes, quoit_address_bits(&place->address) / 8);
        assert_in_range(place->prefix_bits, 1, quoit_address_bits(&place->address));
        assert_true(quoit_net_place_cost(place) < QUOIT_NET_PLACE_COSTS);
        assert_int_equal(place->kind == QUOIT_NET_PLACE_LOOPBACK, strcmp(place->device, "lo") == 0);
        assert_false(place->is_open);
        found_count += place->kind == QUOIT_NET_PLACE_LOOPBACK;
    }
    if (found_count == 0)
        skip(); /* it is down here */
    assert_true(quoit_interface_find("lo", &one));
    assert_int_equal(one.place.kind, QUOIT_NET_PLACE_LOOPBACK);
    assert_true(one.address.ss_family == AF_INET ? strncmp(one.text, "127.", 4) == 0 : strcmp(one.text, "::1") == 0);
    assert_true(one.address.ss_family == AF_INET6 || one.place.prefix_bits == 8);
    assert_false(quoit_interface_find("nowhere0", &one));
}

/* The places of an end on the loopback device, and of one on a device that is none. */
static void test_places_here(void **state)
{
    struct quoit_interface lo;
    struct quoit_net_places places;
    (void)state;
    if (!quoit_interface_find("lo", &lo))
        skip();
    quoit_interfaces_places("lo", "lo", &places);
    assert_true(places.list[0].is_open);
    assert_string_equal(places.list[0].device, "lo");
    assert_int_equal(places.stack, quoit_interfaces_stack());
    assert_int_not_equal(places.stack, 0);
    quoit_interfaces_places("^lo", "lo", &places);
    for (uint32_t i = 0; i < QUOIT_NET_PLACES_MAX; i++)
        assert_string_not_equal(places.list[i].device, "lo");
    quoit_interfaces_places(NULL, "adapter0", &places);
    for (uint32_t i = 0; i < QUOIT_NET_PLACES_MAX; i++)
        assert_false(places.list[i].is_open || strcmp(places.list[i].device, "lo") == 0);
}

static void test_reasons(void **state)
{
    struct quoit_net_choice choice = {0};
    (void)state;
    quoit_net_say_usable(&choice, "10.0.0.1", false);
    assert_true(choice.is_usable);
    assert_false(choice.is_loopback);
    assert_string_equal(choice.reason, "address 10.0.0.1");
    quoit_net_say_usable(&choice, "::1", true);
    assert_true(choice.is_loopback);
    assert_string_equal(choice.reason, "address ::1, this machine alone");
    quoit_net_say_usable(&choice, "", false);
    assert_string_equal(choice.reason, "");
    quoit_net_say_unusable(&choice, NULL, NULL);
    assert_false(choice.is_usable);
    assert_string_equal(choice.reason, "taken only if its provider is named");
    quoit_net_say_unusable(&choice, NULL, "eth1");
    assert_string_equal(choice.reason, "another network was asked for");
    quoit_net_say_unusable(&choice, "tcp", NULL);
    assert_string_equal(choice.reason, "another network was asked for");
}

static void test_wire_v4(void **state)
{
    struct sockaddr_storage address = {0}, read;
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    (void)state;
    v4->sin_family = AF_INET;
    v4->sin_port = htons(4711);
    assert_int_equal(inet_pton(AF_INET, "10.1.2.3", &v4->sin_addr), 1);
    const struct quoit_wire_address told = quoit_address_tell(&address);
    assert_true(quoit_address_read(&told, 0, &read));
    assert_memory_equal(&read, &address, sizeof read);
}

static struct sockaddr_storage make_v6(const char *text, uint16_t port, uint32_t scope)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&address;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = port;
    v6->sin6_scope_id = scope;
    assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
    return address;
}

/* A link-local address says nothing without its device, whose number is another one on each host. */
static void test_wire_v6(void **state)
{
    const struct sockaddr_storage there = make_v6("fe80::7", 4712, 5);
    const struct sockaddr_storage seen = make_v6("fe80::7", 4712, 9), global = make_v6("2001:db8::7", 4713, 0);
    struct sockaddr_storage read;
    (void)state;
    struct quoit_wire_address told = quoit_address_tell(&there);
    assert_true(quoit_address_read(&told, 9, &read));
    assert_memory_equal(&read, &seen, sizeof read);
    told = quoit_address_tell(&global);
    assert_true(quoit_address_read(&told, 9, &read));
    assert_memory_equal(&read, &global, sizeof read);
}

static void test_wire_refuses(void **state)
{
    const struct sockaddr_storage none = {0};
    struct sockaddr_storage read;
    struct quoit_wire_address told = quoit_address_tell(&none);
    (void)state;
    assert_int_equal(told.family, 0);
    assert_false(quoit_address_read(&told, 9, &read));
    told.family = AF_UNIX;
    assert_false(quoit_address_read(&told, 9, &read));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_best),        cmocka_unit_test(test_survey),       cmocka_unit_test(test_interfaces),
        cmocka_unit_test(test_places_here), cmocka_unit_test(test_reasons),      cmocka_unit_test(test_wire_v4),
        cmocka_unit_test(test_wire_v6),     cmocka_unit_test(test_wire_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
