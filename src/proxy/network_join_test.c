/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a host that cannot join a network says why, in one line, and names both networks where two hosts take different
 * ones. Method: each step of joining fails in turn, on the network of network_rig.h; what is said goes to a file. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "proxy/network_rig.h"

#define TEXT_BYTES 1024

static void no_open(struct world *world)
{
    world->open_status = QUOIT_SYSTEM;
}
static void no_connect(struct world *world)
{
    world->connect_status = QUOIT_INVALID;
}
static void no_attach(struct world *world)
{
    world->attach_status = QUOIT_INVALID;
}
static void another_network(struct world *world)
{
    world->is_apart = true;
}
static void short_memory(struct world *world)
{
    world->missing_bytes = 1;
}
static void no_descriptors(struct world *world)
{
    struct rlimit limit;
    (void)world;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

/* Of host 0 and of host 1. */
static struct quoit_net_place place_of(const char *device, const char *address, uint8_t prefix_bits)
{
    struct quoit_net_place place = {.prefix_bits = prefix_bits, .kind = QUOIT_NET_PLACE_ETHERNET, .is_open = true};
    snprintf(place.device, sizeof place.device, "%s", device);
    assert_true(quoit_address_parse(address, &place.address));
    place.address.port = 1;
    return place;
}
static void put_places(struct world *world, const char *first, const char *second)
{
    world->places[0] = (struct quoit_net_places){.stack = 1, .list = {place_of("ens1", first, 24)}};
    world->places[1] = (struct quoit_net_places){.stack = 2, .list = {place_of("ens1", second, 24)}};
}
static void two_families(struct world *world)
{
    put_places(world, "10.0.0.1", "fd00::2");
}
static void one_address(struct world *world)
{
    put_places(world, "192.168.1.1", "192.168.1.1");
}
static void another_device(struct world *world)
{
    one_address(world);
    world->places[0].list[1] = place_of("e0", "10.0.0.1", 24);
    world->places[1].list[1] = place_of("e0", "10.0.0.2", 24);
    world->places[0].list[1].is_open = world->places[1].list[1].is_open = false;
    world->places[0].list[1].address.port = 0; /* nor could the hosts meet there */
}
static void two_devices(struct world *world)
{
    another_device(world);
    world->places[0].list[1].is_open = world->places[1].list[1].is_open = true;
}

/* Opens the lane; its status, and what was said. */
static enum quoit_status open_and_read(struct world *world, void (*spoil)(struct world *world),
                                       char text_out[TEXT_BYTES])
{
    int file_fd = memfd_create("said", MFD_CLOEXEC), stderr_fd = dup(STDERR_FILENO);
    struct rlimit limit;
    assert_true(file_fd >= 0);
    assert_true(stderr_fd >= 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(dup2(file_fd, STDERR_FILENO), STDERR_FILENO);
    spoil(world);
    enum quoit_status status = quoit_lane_open(&world->lane, &world->group, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(dup2(stderr_fd, STDERR_FILENO), STDERR_FILENO);
    ssize_t bytes = pread(file_fd, text_out, TEXT_BYTES - 1, 0);
    assert_in_range(bytes, 0, TEXT_BYTES - 1);
    text_out[bytes] = '\0';
    close(file_fd);
    close(stderr_fd);
    return status;
}

static void test_each_failure_is_said(void **state)
{
    static const struct {
        void (*spoil)(struct world *world);
        enum quoit_status status;
        const char *words, *code;
    } cases[] = {
        {no_open, QUOIT_SYSTEM, "the rig is broken ", "[Q0222]"},
        {no_connect, QUOIT_INVALID, "rig one refuses the address or the key of host 1: ", "[Q0222]"},
        {no_attach, QUOIT_INVALID, "rig one refuses the address or the key of host 1: ", "[Q0222]"},
        {another_network, QUOIT_UNSUPPORTED, "it takes rig one, and host 1 takes rig two; ", "[Q0222]"},
        {short_memory, QUOIT_INVALID, "the segments of host 1 are not within its memory ", "[Q0222]"},
        {no_descriptors, QUOIT_SYSTEM, "no descriptor to wait for it: ", "[Q0222]"},
        {two_families, QUOIT_UNSUPPORTED, "host 1 has ens1 fd00::2/24, and host 0 has ens1 10.0.0.1/24 ", "[Q0128]"},
        {one_address, QUOIT_UNSUPPORTED, "hosts 0 and 1 have the same address, ens1 192.168.1.1/24, ", "[Q0129]"},
        {another_device, QUOIT_UNSUPPORTED, "host 0 has no port left at e0 10.0.0.1/24 where ", "[Q0222]"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world world;
        char text[TEXT_BYTES];
        make_world(&world);
        assert_int_equal(open_and_read(&world, cases[i].spoil, text), cases[i].status);
        if (!strstr(text, "host 0 cannot join the network: ") || !strstr(text, cases[i].words) ||
            !strstr(text, cases[i].code) || strchr(text, '\n') != text + strlen(text) - 1)
            fail_msg("case %zu: said: %s", i, text);
        quoit_lane_close(&world.lane);
        free_world(&world);
    }
}

/* What all have in common is taken, passed to the network, and left to the PEs. */
static void test_the_place_is_chosen(void **state)
{
    struct world world;
    char text[TEXT_BYTES];
    (void)state;
    make_world(&world);
    assert_int_equal(open_and_read(&world, two_devices, text), QUOIT_OK);
    assert_string_equal(text, "");
    assert_int_equal(world.taken_count, 1);
    assert_int_equal(world.taken_place, 1);
    assert_memory_equal(&world.called_at, &world.places[1].list[1].address, sizeof world.called_at);
    const struct quoit_contacts *contacts = quoit_memory_contacts(&world.layout, world.memory);
    assert_memory_equal(&contacts->place, &world.places[0].list[1], sizeof contacts->place);
    assert_memory_equal(&contacts->hosts[1].address.at, &world.called_at, sizeof world.called_at);
    close_world(&world);
}

/* A network with addresses of its own has nothing to choose. */
static void test_no_place_is_chosen(void **state)
{
    struct world world;
    (void)state;
    open_world(&world);
    assert_int_equal(world.taken_count, 0);
    assert_int_equal(quoit_memory_contacts(&world.layout, world.memory)->place.address.family, 0);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_place_is_chosen),
        cmocka_unit_test(test_no_place_is_chosen),
        cmocka_unit_test(test_each_failure_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
