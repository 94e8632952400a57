/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the first process is the leader and the others receive what it publishes; one that receives nothing, or
 * something else, knows that, and nothing waits for a process that does not come. Method: the test is the leader;
 * forked children meet it, and their status says what they received. */
#include "boot/leader.h"
#include "boot/abstract.h"
#include "env/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define CHILDREN_MAX 5
#define SHORT_NS     200000000u  /* less than the leader waits for one who is missing */
#define LIMIT_NS     5000000000u /* more than it does, on a busy machine */
#define LATE_MAX     20          /* times that a child is held up for longer, and is a leader itself: all begin again */

enum outcome { RECEIVED = 10, RECEIVED_NOTHING, WAS_NONE, WAS_SELF };

static const char word[] = "the lowest is 17";

static const char *name_of_test(void)
{
    static _Thread_local char name[QUOIT_ABSTRACT_NAME_BYTES];
    snprintf(name, sizeof name, "quoit-leader-test-%d", (int)getpid());
    return name;
}

/* A process that meets the leader and expects `bytes`. */
static pid_t start_child(const char *name, int leader_fd, size_t bytes)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child > 0)
        return child;
    close(leader_fd);
    char received[64] = "";
    int fd;
    enum quoit_leader_role role = quoit_leader_meet(name, &fd);
    if (role != QUOIT_LEADER_OTHER)
        _exit(role == QUOIT_LEADER_SELF ? WAS_SELF : WAS_NONE);
    _exit(quoit_leader_receive(fd, received, bytes) && memcmp(received, word, bytes) == 0 ? RECEIVED
                                                                                          : RECEIVED_NOTHING);
}

static int status_of(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int become_leader(const char *name)
{
    int fd = -1;
    assert_int_equal(quoit_leader_meet(name, &fd), QUOIT_LEADER_SELF);
    assert_true(fd >= 0);
    return fd;
}

static void test_all_receive(void **state)
{
    (void)state;
    const char *name = name_of_test();
    for (int count = 0, late_count = 0; count <= CHILDREN_MAX;) {
        pid_t children[CHILDREN_MAX];
        int received_count = 0;
        bool is_late = false;
        int fd = become_leader(name); /* again each time: the name is free */
        for (int i = 0; i < count; i++)
            children[i] = start_child(name, fd, sizeof word);
        quoit_leader_publish(fd, word, sizeof word, (uint32_t)count);
        for (int i = 0; i < count; i++) {
            int status = status_of(children[i]);
            received_count += status == RECEIVED;
            is_late |= status == WAS_SELF;
        }
        assert_true(received_count == count || is_late);
        late_count += is_late;
        assert_in_range(late_count, 0, LATE_MAX);
        count += !is_late;
    }
}

static void test_a_leader_that_publishes_nothing(void **state)
{
    (void)state;
    const char *name = name_of_test();
    int fd = become_leader(name);
    pid_t child = start_child(name, fd, sizeof word);
    quoit_clock_sleep_ns(SHORT_NS / 4); /* usually it has connected; else it becomes a leader itself */
    quoit_leader_publish(fd, NULL, 0, 0);
    int status = status_of(child);
    assert_true(status == RECEIVED_NOTHING || status == WAS_SELF);
}

/* Of another version: more bytes than this one expects, or fewer. */
static void test_a_word_of_another_length(void **state)
{
    (void)state;
    const char *name = name_of_test();
    for (int i = -1, late_count = 0; i <= 1;) {
        int fd = become_leader(name);
        pid_t child = start_child(name, fd, sizeof word + (size_t)i);
        quoit_leader_publish(fd, word, sizeof word, 1);
        int status = status_of(child);
        late_count += status == WAS_SELF;
        assert_in_range(late_count, 0, LATE_MAX);
        assert_true(status == RECEIVED_NOTHING || status == WAS_SELF);
        i += status == WAS_SELF ? 0 : 2;
    }
}

static void test_one_that_does_not_come(void **state)
{
    (void)state;
    const char *name = name_of_test();
    int status = WAS_SELF;
    for (int late_count = 0; status == WAS_SELF; late_count++) {
        assert_in_range(late_count, 0, LATE_MAX);
        int fd = become_leader(name);
        pid_t child = start_child(name, fd, sizeof word);
        uint64_t begin_ns = quoit_clock_now_ns();
        quoit_leader_publish(fd, word, sizeof word, 2);
        uint64_t waited_ns = quoit_clock_now_ns() - begin_ns;
        assert_true(waited_ns >= SHORT_NS);
        assert_true(waited_ns < LIMIT_NS);
        status = status_of(child);
    }
    assert_int_equal(status, RECEIVED);
}

/* The name is there, and nobody listens: as between the two calls of a leader that has just come, but for ever. */
static void test_a_name_without_a_listener(void **state)
{
    (void)state;
    const char *name = name_of_test();
    int fd = become_leader(name);
    int own = -1;
    assert_int_equal(shutdown(fd, SHUT_RDWR), 0);
    assert_int_equal(quoit_leader_meet(name, &own), QUOIT_LEADER_NONE);
    assert_int_equal(own, -1);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_receive),
        cmocka_unit_test(test_a_leader_that_publishes_nothing),
        cmocka_unit_test(test_a_word_of_another_length),
        cmocka_unit_test(test_one_that_does_not_come),
        cmocka_unit_test(test_a_name_without_a_listener),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
