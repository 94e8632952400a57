/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: to open a driver reads little, above all not the kernel's symbols, which takes longer than all else of a start;
 * and libfabric wakes itself through pipes, while pairs of sockets of anybody else stay what they are, and so does
 * time. TCP is preferred where no adapter of a fabric is. Method: what the kernel counts of this process' reads, around
 * the first look at the networks of a driver; the descriptors of an end; the driver's own socketpair() and
 * gettimeofday(), called from here; folders of devices that the test makes. */
#include "net/driver.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#define READ_BYTES_MAX (1u << 20) /* the symbols of a kernel are several times that */
#define FDS_MAX        1024

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

static uint32_t count_local_sockets(void)
{
    uint32_t count = 0;
    for (int fd = 0; fd < FDS_MAX; fd++) {
        int domain = AF_UNSPEC;
        socklen_t bytes = sizeof domain;
        count += getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 && domain == AF_UNIX;
    }
    return count;
}

static uint32_t count_pipes(void)
{
    uint32_t count = 0;
    for (int fd = 0; fd < FDS_MAX; fd++) {
        struct stat about;
        count += fstat(fd, &about) == 0 && S_ISFIFO(about.st_mode);
    }
    return count;
}

static void test_an_end_wakes_itself_through_pipes(void **state)
{
    const struct quoit_net_config config = {
        .driver = "ofi", .provider = "tcp;ofi_rxm", .device = "lo", .host_count = 1};
    char problem[QUOIT_NET_PROBLEM_BYTES];
    struct quoit_net *net;
    (void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* as above */
#endif
    uint32_t socket_count = count_local_sockets(), pipe_count = count_pipes();
    if (quoit_net_open(&config, &net, problem) != QUOIT_OK)
        skip(); /* there is no libfabric */
    assert_int_equal(count_local_sockets(), socket_count);
    assert_true(count_pipes() > pipe_count);
    quoit_net_close(net);
}

/* The driver's shared object; the caller closes it. Skips the test where there is no libfabric. */
static void *open_object(void)
{
    char problem[QUOIT_NET_PROBLEM_BYTES];
    const struct quoit_net_driver *driver = quoit_net_driver_open("ofi", problem);
    Dl_info about;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    skip(); /* as above */
#endif
    if (!driver)
        skip();
    assert_int_not_equal(dladdr(driver, &about), 0);
    void *object = dlopen(about.dli_fname, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(object);
    return object;
}

/* Only psm's is another one. */
static void test_the_time_of_others_stays(void **state)
{
    (void)state;
#if defined(__x86_64__)
    void *object = open_object();
    __typeof__(&gettimeofday) time_of_day = (__typeof__(&gettimeofday))dlsym(object, "gettimeofday");
    assert_true(time_of_day != gettimeofday);
    struct timeval before, now, after;
    assert_int_equal(gettimeofday(&before, NULL), 0);
    assert_int_equal(time_of_day(&now, NULL), 0);
    assert_int_equal(gettimeofday(&after, NULL), 0);
    assert_false(timercmp(&now, &before, <));
    assert_false(timercmp(&now, &after, >));
    dlclose(object);
#endif
}

static void test_pairs_of_others_stay_sockets(void **state)
{
    char word[4] = "";
    int fds[2];
    (void)state;
    void *object = open_object();
    __typeof__(&socketpair) pair = (__typeof__(&socketpair))dlsym(object, "socketpair");
    assert_true(pair != socketpair);
    assert_int_equal(pair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    assert_int_equal(write(fds[0], "one", 4), 4);
    assert_int_equal(read(fds[1], word, 4), 4);
    assert_string_equal(word, "one");
    assert_int_equal(write(fds[1], "two", 4), 4);
    assert_int_equal(read(fds[0], word, 4), 4);
    assert_string_equal(word, "two");
    close(fds[0]);
    close(fds[1]);
    dlclose(object);
}

static void make_folder(const char *root, const char *path)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    assert_int_equal(mkdir(whole, 0700), 0);
}

static void remove_folder(const char *root, const char *path)
{
    char whole[256];
    snprintf(whole, sizeof whole, "%s/%s", root, path);
    assert_int_equal(rmdir(whole), 0);
}

static void test_adapters_of_fabrics(void **state)
{
    static const char *const classes[] = {"infiniband", "cxi", "cxi_user"};
    char root[] = "/tmp/quoit-classes-XXXXXX", path[QUOIT_NET_PROBLEM_BYTES] = "", expected[256];
    (void)state;
    assert_non_null(mkdtemp(root));
    assert_false(quoit_net_find_adapter("/no/such/folder", path));
    assert_false(quoit_net_find_adapter(root, path));
    make_folder(root, "net");
    make_folder(root, "net/eth0");
    for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++) {
        char device[64];
        snprintf(device, sizeof device, "%s/adapter0", classes[i]);
        make_folder(root, classes[i]);
        assert_false(quoit_net_find_adapter(root, path)); /* its driver is loaded, and finds none */
        make_folder(root, device);
        assert_true(quoit_net_find_adapter(root, path));
        snprintf(expected, sizeof expected, "%s/%s", root, device);
        assert_string_equal(path, expected);
        remove_folder(root, device);
        remove_folder(root, classes[i]);
    }
    remove_folder(root, "net/eth0");
    remove_folder(root, "net");
    assert_int_equal(rmdir(root), 0);
}

static void test_which_driver_comes_first(void **state)
{
    char path[QUOIT_NET_PROBLEM_BYTES], text[QUOIT_NET_PROBLEM_BYTES];
    bool has_adapter = quoit_net_find_adapter(QUOIT_NET_CLASSES, path);
    (void)state;
    quoit_net_explain_auto(text);
    assert_string_equal(quoit_net_driver_name(0), has_adapter ? "ofi" : "tcp");
    assert_string_equal(quoit_net_driver_name(1), "ucx");
    assert_string_equal(quoit_net_driver_name(2), has_adapter ? "tcp" : "ofi");
    assert_null(quoit_net_driver_name(3));
    assert_memory_equal(text, has_adapter ? "ofi" : "tcp", 3);
    assert_int_equal(strstr(text, path) != NULL && has_adapter, has_adapter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opening_reads_little),     cmocka_unit_test(test_an_end_wakes_itself_through_pipes),
        cmocka_unit_test(test_the_time_of_others_stays), cmocka_unit_test(test_pairs_of_others_stay_sockets),
        cmocka_unit_test(test_adapters_of_fabrics),      cmocka_unit_test(test_which_driver_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
