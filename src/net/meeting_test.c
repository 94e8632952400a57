/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: hosts that meet get the bytes of all, also when others call, and one that does not come is named. Method: hosts
 * are threads of this process, over the loopback device; others send garbage or the tag of another job to host 0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/interfaces.h"
#include "net/meeting.h"

#define HOST_COUNT  5u
#define HOST_BYTES  100000u /* more than a socket takes at once, for all */
#define TAG         77u
#define LONG_NS     UINT64_C(60000000000)
#define SHORT_NS    UINT64_C(300000000)
#define OTHER_COUNT 3u

struct host {
    pthread_t thread;
    struct quoit_meeting meeting;
    struct quoit_meeting_config config;
    unsigned char *own, *all;
    char why[QUOIT_MEETING_WHY_BYTES];
    bool is_good;
};

static unsigned char byte_of(uint32_t host, uint32_t at)
{
    return (unsigned char)((at + 1) * 2654435761u >> 9 ^ host * 37);
}

static void *run(void *arg)
{
    struct host *host = arg;
    host->is_good = quoit_meeting_exchange(&host->meeting, &host->config, host->own, HOST_BYTES, host->all, host->why);
    return NULL;
}

static bool has_all(const struct host *host)
{
    for (uint32_t from = 0; from < HOST_COUNT; from++)
        for (uint32_t at = 0; at < HOST_BYTES; at++)
            if (host->all[(size_t)from * HOST_BYTES + at] != byte_of(from, at))
                return false;
    return true;
}

static void make_hosts(struct host *hosts, const struct quoit_net_place *host_0, uint64_t limit_ns)
{
    for (uint32_t i = 0; i < HOST_COUNT; i++) {
        hosts[i] = (struct host){.own = malloc(HOST_BYTES),
                                 .all = calloc(HOST_COUNT, HOST_BYTES),
                                 .config = {.tag = TAG,
                                            .host = i,
                                            .host_count = HOST_COUNT,
                                            .host_0 = host_0,
                                            .device = "lo",
                                            .limit_ns = limit_ns}};
        assert_non_null(hosts[i].own);
        assert_non_null(hosts[i].all);
        for (uint32_t at = 0; at < HOST_BYTES; at++)
            hosts[i].own[at] = byte_of(i, at);
    }
}

static void free_hosts(struct host *hosts)
{
    for (uint32_t i = 0; i < HOST_COUNT; i++) {
        quoit_meeting_close(&hosts[i].meeting);
        free(hosts[i].own);
        free(hosts[i].all);
    }
}

/* Host 0 listens. Skips the test where there is no loopback device. */
static void open_meeting(struct host *host_0, struct quoit_net_places *places)
{
    const struct quoit_ports any = {0};
    quoit_interfaces_places("lo", "lo", places);
    if (places->list[0].address.family == 0)
        skip();
    quoit_meeting_open(&host_0->meeting, places, any);
    assert_int_not_equal(places->list[0].address.port, 0);
}

/* Sends bytes to host 0; the socket. */
static int call(const struct quoit_net_place *place, const void *bytes, size_t count)
{
    struct sockaddr_storage there;
    assert_true(quoit_address_read(&place->address, if_nametoindex("lo"), &there));
    int fd = socket(there.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&there, quoit_address_bytes(&there)), 0);
    assert_int_equal(send(fd, bytes, count, MSG_NOSIGNAL), (ssize_t)count);
    return fd;
}

static void test_all_get_all(void **state)
{
    static const struct {
        uint64_t tag;
        uint32_t host, bytes;
    } others[OTHER_COUNT] = {{TAG + 1, 1, HOST_BYTES}, {TAG, HOST_COUNT, HOST_BYTES}, {TAG, 2, HOST_BYTES + 1}};
    struct host hosts[HOST_COUNT];
    struct quoit_net_places places = {0};
    int fds[OTHER_COUNT + 1];
    (void)state;
    make_hosts(hosts, &places.list[0], LONG_NS);
    open_meeting(&hosts[0], &places);
    for (uint32_t i = 0; i < OTHER_COUNT; i++)
        fds[i] = call(&places.list[0], &others[i], sizeof others[i]);
    fds[OTHER_COUNT] = call(&places.list[0], "few", 3); /* and no more */
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        assert_int_equal(pthread_create(&hosts[i].thread, NULL, run, &hosts[i]), 0);
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        assert_int_equal(pthread_join(hosts[i].thread, NULL), 0);
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        if (!hosts[i].is_good || !has_all(&hosts[i]))
            fail_msg("host %u has not all: %s", i, hosts[i].why);
    for (uint32_t i = 0; i <= OTHER_COUNT; i++)
        close(fds[i]);
    free_hosts(hosts);
}

/* Host 3 does not come: host 0 names it, and the others learn that host 0 has given up. */
static void test_one_is_missing(void **state)
{
    struct host hosts[HOST_COUNT];
    struct quoit_net_places places = {0};
    (void)state;
    make_hosts(hosts, &places.list[0], LONG_NS);
    hosts[0].config.limit_ns = SHORT_NS;
    open_meeting(&hosts[0], &places);
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        if (i != 3)
            assert_int_equal(pthread_create(&hosts[i].thread, NULL, run, &hosts[i]), 0);
    assert_int_equal(pthread_join(hosts[0].thread, NULL), 0);
    quoit_meeting_close(&hosts[0].meeting); /* as the end of its process does: some may call only now */
    for (uint32_t i = 1; i < HOST_COUNT; i++)
        if (i != 3)
            assert_int_equal(pthread_join(hosts[i].thread, NULL), 0);
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        assert_false(hosts[i].is_good);
    assert_non_null(strstr(hosts[0].why, "has not called"));
    assert_non_null(strstr(hosts[1].why, "from lo to host 0 at lo "));
    free_hosts(hosts);
}

/* Nobody listens at host 0's place. */
static void test_no_hub(void **state)
{
    struct host hosts[HOST_COUNT];
    struct quoit_net_places places = {0};
    (void)state;
    make_hosts(hosts, &places.list[0], LONG_NS);
    open_meeting(&hosts[0], &places);
    quoit_meeting_close(&hosts[0].meeting);
    run(&hosts[1]);
    assert_false(hosts[1].is_good);
    assert_non_null(strstr(hosts[1].why, ": Connection refused"));
    free_hosts(hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_get_all),
        cmocka_unit_test(test_one_is_missing),
        cmocka_unit_test(test_no_hub),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
