/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what of the driver of real bridges needs no bridge: its memory, and what it says when there is no device. The
 * contract suite runs over it in virtual machines (tests/vm). */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "port/driver.h"

static const struct quoit_port_driver *driver(void)
{
    const struct quoit_port_driver *found = quoit_port_driver_find("linux");
    assert_non_null(found);
    return found;
}

/* Of at least the size asked for, all zero, shared, and nobody can shrink it. */
static void check_memory(uint64_t bytes)
{
    int fd;
    struct stat file;
    assert_int_equal(quoit_port_driver_memory(driver(), "test", bytes, &fd), QUOIT_OK);
    assert_int_equal(fstat(fd, &file), 0);
    assert_true((uint64_t)file.st_size >= bytes);
    unsigned char *one = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unsigned char *two = mmap(NULL, (size_t)file.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(one != MAP_FAILED);
    assert_true(two != MAP_FAILED);
    assert_int_equal(one[bytes - 1], 0);
    one[bytes - 1] = 7;
    assert_int_equal(two[bytes - 1], 7);
    assert_int_equal(ftruncate(fd, 0), -1);
    munmap(one, (size_t)file.st_size);
    munmap(two, (size_t)file.st_size);
    close(fd);
}

static void test_memory(void **state)
{
    (void)state;
    check_memory(4096);
    check_memory((uint64_t)3 << 20);
}

static void test_links_are_cables(void **state)
{
    (void)state;
    int fd = 0;
    assert_false(quoit_port_driver_is_one_machine(driver()));
    assert_int_equal(quoit_port_driver_link(driver(), &fd), QUOIT_OK);
    assert_int_equal(fd, -1);
    struct quoit_port_endpoint endpoint;
    const struct quoit_port_site site = {.link_fd = -1};
    assert_int_equal(quoit_port_driver_describe(driver(), &site, &endpoint), QUOIT_INVALID);
}

/* A descriptor of something else is refused by its kind, and nothing is left open. */
static void test_what_is_no_bridge_is_refused(void **state)
{
    (void)state;
    char memory[64];
    const struct quoit_port_site site = {.link_fd = open("/dev/null", O_RDWR | O_CLOEXEC)};
    struct quoit_port_endpoint endpoint;
    struct quoit_port *port = NULL;
    assert_int_equal(quoit_port_driver_describe(driver(), &site, &endpoint), QUOIT_OK);
    struct quoit_port_config config = {.driver = driver(), .memory = {memory, sizeof memory}, .endpoint = &endpoint};
    assert_int_equal(quoit_port_open(&config, &port), QUOIT_SYSTEM);
    endpoint.fd_count = 0;
    assert_int_equal(quoit_port_open(&config, &port), QUOIT_INVALID);
    close(site.link_fd);
    endpoint.fd_count = 1; /* a descriptor that is closed */
    assert_int_equal(quoit_port_open(&config, &port), QUOIT_SYSTEM);
    assert_null(port);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_links_are_cables),
        cmocka_unit_test(test_what_is_no_bridge_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
