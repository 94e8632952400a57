/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what descriptors.h promises: descriptors arrive with their message and as many as fit, none leaks, the sender is
 * whom the kernel says. Method: a socket pair, files known by their inodes, and the descriptors of this process counted
 * before and after. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "env/descriptors.h"

static uint32_t open_count(void)
{
    uint32_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static ino_t inode_of(int fd)
{
    struct stat facts;
    assert_int_equal(fstat(fd, &facts), 0);
    return facts.st_ino;
}

static void make_pair(int pair[2])
{
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

static void close_all(const int *fds, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        close(fds[i]);
}

/* Sends `sent` descriptors to one who has room for fd_max. */
static void pass(uint32_t sent, uint32_t fd_max)
{
    int pair[2], fds[QUOIT_DESCRIPTORS_MAX], came[QUOIT_DESCRIPTORS_MAX];
    const char text[] = "with descriptors";
    char back[sizeof text];
    struct quoit_ancillary ancillary = {.fds = fd_max ? came : NULL, .fd_max = fd_max};
    make_pair(pair);
    for (uint32_t i = 0; i < sent; i++)
        assert_true((fds[i] = memfd_create("test", MFD_CLOEXEC)) >= 0);
    uint32_t before = open_count();
    assert_int_equal(quoit_send_with_descriptors(pair[0], text, sizeof text, fds, sent, 0), sizeof text);
    assert_int_equal(quoit_receive_with_descriptors(pair[1], back, sizeof back, &ancillary, 0), sizeof text);
    assert_string_equal(back, text);
    assert_int_equal(ancillary.fd_count, sent < fd_max ? sent : fd_max);
    assert_int_equal(ancillary.is_truncated, sent > fd_max);
    assert_int_equal(ancillary.sender, 0);
    assert_int_equal(open_count(), before + ancillary.fd_count);
    for (uint32_t i = 0; i < ancillary.fd_count; i++) {
        assert_int_equal(inode_of(came[i]), inode_of(fds[i]));
        assert_int_equal(fcntl(came[i], F_GETFD), FD_CLOEXEC);
    }
    close_all(came, ancillary.fd_count);
    close_all(fds, sent);
    close_all(pair, 2);
}

static void descriptors_arrive_and_none_leaks(void **state)
{
    (void)state;
    static const uint32_t counts[] = {0, 1, 2, 3, 4, 5, 6, 64, QUOIT_DESCRIPTORS_MAX};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++)
            pass(counts[i], counts[j]);
}

/* A process that may not open what comes gets the message, and knows. */
static void a_full_table_is_told(void **state)
{
    (void)state;
    int pair[2], came[2];
    char byte = 'b';
    struct rlimit old, none;
    struct quoit_ancillary ancillary = {.fds = came, .fd_max = 2};
    make_pair(pair);
    assert_int_equal(quoit_send_with_descriptors(pair[0], &byte, 1, pair, 2, 0), 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = (struct rlimit){.rlim_cur = 0, .rlim_max = old.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    ssize_t n = quoit_receive_with_descriptors(pair[1], &byte, 1, &ancillary, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(n, 1);
    assert_int_equal(ancillary.fd_count, 0);
    assert_true(ancillary.is_truncated);
    close_all(pair, 2);
}

static void the_sender_is_known_where_asked_for(void **state)
{
    (void)state;
    int pair[2], one = 1, fd = -1, status;
    char byte = 'b';
    struct quoit_ancillary ancillary = {.fds = &fd, .fd_max = 1};
    make_pair(pair);
    assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof one), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(quoit_send_with_descriptors(pair[0], &byte, 1, &pair[0], 1, 0) != 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    uint32_t before = open_count();
    assert_int_equal(quoit_receive_with_descriptors(pair[1], &byte, 1, &ancillary, 0), 1);
    assert_int_equal(ancillary.sender, child);
    assert_int_equal(ancillary.fd_count, 1);
    assert_int_equal(inode_of(fd), inode_of(pair[0]));
    close(fd);
    assert_int_equal(open_count(), before);
    close_all(pair, 2);
}

/* As the kernel's own calls, also in what they say of the other end; and a packet that is too long is cut. */
static void ends_and_sizes(void **state)
{
    (void)state;
    int pair[2];
    char bytes[4] = "abc";
    struct quoit_ancillary ancillary = {.fd_max = 0};
    make_pair(pair);
    assert_int_equal(quoit_receive_with_descriptors(pair[1], bytes, 4, &ancillary, MSG_DONTWAIT), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(quoit_send_with_descriptors(pair[0], bytes, 4, NULL, 0, 0), 4);
    assert_int_equal(quoit_receive_with_descriptors(pair[1], bytes, 3, &ancillary, 0), 3);
    assert_true(ancillary.is_truncated);
    close(pair[0]);
    assert_int_equal(quoit_receive_with_descriptors(pair[1], bytes, 4, &ancillary, 0), 0);
    assert_int_equal(quoit_send_with_descriptors(pair[1], bytes, 4, NULL, 0, 0), -1);
    assert_int_equal(errno, EPIPE);
    close(pair[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_arrive_and_none_leaks),
        cmocka_unit_test(a_full_table_is_told),
        cmocka_unit_test(the_sender_is_known_where_asked_for),
        cmocka_unit_test(ends_and_sizes),
    };
    return cmocka_run_group_tests_name("env.descriptors", tests, NULL, NULL);
}
