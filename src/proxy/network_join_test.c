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

#define TEXT_BYTES 512

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
        const char *words;
    } cases[] = {
        {no_open, QUOIT_SYSTEM, "the rig is broken "},
        {no_connect, QUOIT_INVALID, "rig one refuses the address or the key of host 1: "},
        {no_attach, QUOIT_INVALID, "rig one refuses the address or the key of host 1: "},
        {another_network, QUOIT_UNSUPPORTED, "it takes rig one, and host 1 takes rig two; "},
        {short_memory, QUOIT_INVALID, "the segments of host 1 are not within its memory "},
        {no_descriptors, QUOIT_SYSTEM, "no descriptor to wait for it: "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct world world;
        char text[TEXT_BYTES];
        make_world(&world);
        assert_int_equal(open_and_read(&world, cases[i].spoil, text), cases[i].status);
        if (!strstr(text, "host 0 cannot join the network: ") || !strstr(text, cases[i].words) ||
            !strstr(text, "[Q0222]\n") || strchr(text, '\n') != text + strlen(text) - 1)
            fail_msg("case %zu: said: %s", i, text);
        quoit_lane_close(&world.lane);
        free_world(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_failure_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
