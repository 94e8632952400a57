/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: an owner of another user can neither reach past an array of its client nor change the state of a terminal.
 * Method: the test is the owner, and replies to one query with a list of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "share/message.h"

struct owner {
    int listen_fd;
    struct quoit_share_list list;
};

static void *reply_once(void *arg)
{
    const struct owner *owner = arg;
    struct quoit_share_message message;
    int fd = accept(owner->listen_fd, NULL, NULL);
    if (fd < 0)
        return NULL;
    if (recv(fd, &message, sizeof message, 0) == (ssize_t)sizeof message) {
        message.head = quoit_share_head_make(QUOIT_SHARE_MAGIC, sizeof message, QUOIT_SHARE_QUERY);
        message.head.status = QUOIT_OK;
        message.body.list = owner->list;
        (void)!send(fd, &message, sizeof message, MSG_NOSIGNAL);
    }
    close(fd);
    return NULL;
}

/* The status of a query that is answered with `list`. */
static enum quoit_status query(const struct quoit_share_list *list, struct quoit_share_list *list_out)
{
    char path[64];
    struct sockaddr_un address;
    pthread_t thread;
    snprintf(path, sizeof path, "@quoit-attach-test.%d", (int)getpid());
    socklen_t bytes = quoit_share_address(path, &address);
    struct owner owner = {.listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), .list = *list};
    assert_int_equal(bind(owner.listen_fd, (struct sockaddr *)&address, bytes), 0);
    assert_int_equal(listen(owner.listen_fd, 1), 0);
    assert_int_equal(pthread_create(&thread, NULL, reply_once, &owner), 0);
    enum quoit_status status = quoit_share_query(path, list_out);
    pthread_join(thread, NULL);
    close(owner.listen_fd);
    return status;
}

static struct quoit_share_list valid_list(void)
{
    return (struct quoit_share_list){.ring = {.driver = "emulated", .host_count = 2}, .client_count = 2};
}

static void test_labels_are_cleaned(void **state)
{
    struct quoit_share_list list = valid_list(), got;
    (void)state;
    memset(list.clients[0].label, 'x', sizeof list.clients[0].label);
    snprintf(list.clients[1].label, sizeof list.clients[1].label, "\x1b[31mred\x7f\n");
    assert_int_equal(query(&list, &got), QUOIT_OK);
    assert_int_equal(got.client_count, 2);
    assert_int_equal(strnlen(got.clients[0].label, sizeof got.clients[0].label), sizeof got.clients[0].label - 1);
    assert_string_equal(got.clients[1].label, "?[31mred??");
}

static void test_lists_are_checked(void **state)
{
    struct quoit_share_list list = valid_list(), got;
    (void)state;
    list.client_count = QUOIT_SHARES_MAX;
    assert_int_equal(query(&list, &got), QUOIT_OK);
    list.client_count = QUOIT_SHARES_MAX + 1;
    assert_int_equal(query(&list, &got), QUOIT_INVALID);

    list = valid_list();
    list.ring.host_count = 1;
    assert_int_equal(query(&list, &got), QUOIT_INVALID);
    list.ring.host_count = QUOIT_SHARE_HOSTS_MAX;
    assert_int_equal(query(&list, &got), QUOIT_OK);
    list.ring.host_count = QUOIT_SHARE_HOSTS_MAX + 1;
    assert_int_equal(query(&list, &got), QUOIT_INVALID);

    list = valid_list();
    list.ring.machines.host = 1;
    assert_int_equal(query(&list, &got), QUOIT_OK);
    list.ring.machines.host = 2;
    assert_int_equal(query(&list, &got), QUOIT_INVALID);

    list = valid_list();
    memset(list.ring.driver, 'x', sizeof list.ring.driver);
    assert_int_equal(query(&list, &got), QUOIT_INVALID);
}

/* A path is printed, and is one of a list with commas. */
static void test_paths_are_checked(void **state)
{
    const char *const wrong[] = {"/dev/a b", "/dev/a,b", "/dev/\x1b", "/dev/\x7f"};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof wrong / sizeof wrong[0]; i++) {
        struct quoit_share_list list = valid_list(), got;
        char *side = i % 2 ? list.ring.machines.right : list.ring.machines.left;
        snprintf(side, QUOIT_SHARE_DEVICE_BYTES, "/dev/!~");
        assert_int_equal(query(&list, &got), QUOIT_OK);
        snprintf(side, QUOIT_SHARE_DEVICE_BYTES, "%s", wrong[i / 2]);
        assert_int_equal(query(&list, &got), QUOIT_INVALID);
        memset(side, 'x', QUOIT_SHARE_DEVICE_BYTES);
        assert_int_equal(query(&list, &got), QUOIT_INVALID);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels_are_cleaned),
        cmocka_unit_test(test_lists_are_checked),
        cmocka_unit_test(test_paths_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
