/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a range of ports is read as it is written, and sockets listen within it. Method: a table; sockets on the
 * loopback device. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/ports.h"

#define ATTEMPTS 100u

static void test_read_ports(void **state)
{
    static const struct {
        const char *text;
        bool is_right;
        uint16_t low, high;
    } cases[] = {
        {NULL, true, 0, 0},
        {"", true, 0, 0},
        {"50000", true, 50000, 50000},
        {"50000-50100", true, 50000, 50100},
        {"1-65535", true, 1, 65535},
        {"0-10", false, 0, 0},
        {"10-9", false, 0, 0},
        {"10-", false, 0, 0},
        {"-10", false, 0, 0},
        {"10-65536", false, 0, 0},
        {"10-20-30", false, 0, 0},
        {"1 0", false, 0, 0},
        {"0x10", false, 0, 0},
        {"4294967297", false, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct quoit_ports ports;
        if (quoit_ports_read(cases[i].text, &ports) != cases[i].is_right)
            fail_msg("%s", cases[i].text);
        if (cases[i].is_right) {
            assert_int_equal(ports.low, cases[i].low);
            assert_int_equal(ports.high, cases[i].high);
        }
    }
}

static int listen_here(struct quoit_ports ports, uint16_t *port_out)
{
    struct sockaddr_storage address = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&address;
    v4->sin_family = AF_INET;
    v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = quoit_ports_listen(&address, ports, 4);
    *port_out = ntohs(v4->sin_port);
    return fd;
}

/* Two sockets of a range of two ports that nobody else has just now, and no third; a connection that lingers keeps no
 * port from the next one. */
static void test_listen(void **state)
{
    uint16_t port, taken[3];
    int fds[3];
    (void)state;
    for (uint32_t attempt = 0; attempt < ATTEMPTS; attempt++) {
        int any = listen_here((struct quoit_ports){0}, &port);
        assert_true(any >= 0);
        close(any);
        if (port == UINT16_MAX)
            continue;
        const struct quoit_ports two = {.low = port, .high = (uint16_t)(port + 1)};
        for (uint32_t i = 0; i < 3; i++)
            fds[i] = listen_here(two, &taken[i]);
        int error = errno;
        if (fds[0] < 0 || fds[1] < 0) { /* another process has one of them */
            close(fds[0]);
            continue;
        }
        assert_int_equal(fds[2], -1);
        assert_int_equal(error, EADDRINUSE);
        assert_int_not_equal(taken[0], taken[1]);
        for (uint32_t i = 0; i < 2; i++)
            assert_in_range(taken[i], two.low, two.high);
        struct sockaddr_in there = {
            .sin_family = AF_INET, .sin_port = htons(taken[0]), .sin_addr = {htonl(INADDR_LOOPBACK)}};
        int caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(caller, (const struct sockaddr *)&there, sizeof there), 0);
        int called = accept(fds[0], NULL, NULL);
        assert_true(called >= 0);
        close(called); /* first: it lingers at the port of the listener */
        close(caller);
        close(fds[0]);
        const struct quoit_ports one = {.low = taken[0], .high = taken[0]};
        fds[0] = listen_here(one, &port);
        assert_true(fds[0] >= 0);
        close(fds[0]);
        close(fds[1]);
        return;
    }
    skip(); /* each time somebody was faster */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_ports),
        cmocka_unit_test(test_listen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
