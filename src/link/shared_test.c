/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: ring services of several clients on the shares of one ring: each has its own records and epochs; one that comes,
 * goes, or stops following a link moves no record of another; a link that is cut comes back for all.
 * Method: two hosts; each client has a service a host on its share, the managers in threads of their own, and follows
 * at once unless told not to. QUOIT_SEED replays the order of events. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/prng.h"
#include "env/clock.h"
#include "link/service.h"
#include "ring/route.h"
#include "share/share.h"

#define HOST_COUNT   2
#define CLIENTS_MAX  8
#define EVENT_COUNT  60
#define MEMORY_BYTES ((uint64_t)1 << 20)
#define SLOTS_AT     0x10000
#define BYTES        0x4000
#define PARK_AT      0xf0000
#define BELLS_AT     0xf1000
#define LIMIT_NS     60000000000u
/* However many clients there are, and whatever one of them does, the others are UP again so soon after a link is. */
#define OTHERS_NS 8000000000u

struct client;
struct host {
    struct client *client;
    struct quoit_service *service;
    struct quoit_link_record records[QUOIT_SIDE_COUNT];
    void *memory;
    enum quoit_status status;
    pthread_t thread;
};

struct client {
    const struct quoit_share *share; /* NULL: it is not attached */
    _Atomic uint32_t is_stopping;
    _Atomic bool is_stuck; /* it does not follow */
    struct host hosts[HOST_COUNT];
};

struct world {
    struct quoit_shared_ring *ring;
    struct client clients[CLIENTS_MAX];
};

static void changed(void *arg, enum quoit_side side)
{
    (void)arg, (void)side;
}

static bool has_followed(void *arg, enum quoit_side side)
{
    const struct host *host = arg;
    (void)side;
    return !atomic_load(&host->client->is_stuck);
}

static void vectors_of(void *arg, uint64_t bits, struct quoit_port_vector vectors_out[QUOIT_DOORBELL_COUNT])
{
    (void)arg;
    for (; bits != 0; bits &= bits - 1)
        vectors_out[__builtin_ctzll(bits)] = (struct quoit_port_vector){.park_offset = BELLS_AT, .park_count = 1};
}

static void open_service(struct client *client, uint32_t index)
{
    struct host *host = &client->hosts[index];
    struct quoit_port_endpoint ends[QUOIT_SIDE_COUNT];
    host->client = client;
    host->memory = mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, client->share->memory_fds[index], 0);
    assert_ptr_not_equal(host->memory, MAP_FAILED);
    struct quoit_service_config config = {
        .host = index,
        .host_count = HOST_COUNT,
        .records = host->records,
        .park = (struct quoit_park *)(void *)((char *)host->memory + PARK_AT),
        .park_offset = PARK_AT,
    };
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        assert_int_equal(quoit_share_describe(client->share, index, side == QUOIT_RIGHT ? 0 : 1, &ends[side]),
                         QUOIT_OK);
        config.ports[side] = (struct quoit_port_config){
            .driver = quoit_port_driver_at(0), .memory = {host->memory, MEMORY_BYTES}, .endpoint = &ends[side]};
    }
    assert_int_equal(quoit_service_open(&config, &host->service), QUOIT_OK);
    struct quoit_client as_client = {
        .name = "the test",
        .digest = client->share->id,
        .doorbell_least = 2,
        .doorbell_most = 3,
        .vectors = vectors_of,
        .has_failover = true,
        .cut_off_limit_ns = LIMIT_NS,
        .changed = changed,
        .has_followed = has_followed,
        .clean = changed,
        .arg = host,
    };
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        as_client.windows[side][QUOIT_WINDOW_SLOTS] =
            (struct quoit_window_range){.offset = SLOTS_AT + side * BYTES, .bytes = BYTES};
    assert_int_equal(quoit_service_attach(host->service, &as_client), QUOIT_OK);
}

static void *run_manager(void *arg)
{
    struct host *host = arg;
    host->status = quoit_service_manage(host->service, &host->client->is_stopping);
    return NULL;
}

static void come(struct world *world, struct client *client)
{
    struct quoit_share_request request = {.label = "the test"};
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        request.memory_bytes[i] = MEMORY_BYTES;
    memset(client, 0, sizeof *client);
    assert_int_equal(quoit_share_take(world->ring, &request, &client->share), QUOIT_OK);
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        open_service(client, i);
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        assert_int_equal(pthread_create(&client->hosts[i].thread, NULL, run_manager, &client->hosts[i]), 0);
}

/* Its share ends first, as when its connection breaks, or last, as when it leaves in order. */
static void go(struct world *world, struct client *client, bool is_sudden)
{
    if (is_sudden)
        quoit_share_end(world->ring, client->share);
    atomic_store(&client->is_stopping, 1);
    for (uint32_t i = 0; i < HOST_COUNT; i++) {
        struct host *host = &client->hosts[i];
        quoit_service_wake(host->service);
        pthread_join(host->thread, NULL);
        assert_int_equal(host->status, QUOIT_OK);
        quoit_service_detach(host->service);
        quoit_service_close(host->service);
        munmap(host->memory, MEMORY_BYTES);
    }
    if (!is_sudden)
        quoit_share_end(world->ring, client->share);
    client->share = NULL;
}

static void await_up(struct client *client, uint64_t limit_ns)
{
    uint64_t deadline_ns = quoit_clock_now_ns() + limit_ns;
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
            const struct quoit_link_record *own = &client->hosts[i].records[side];
            const struct quoit_link_record *peer = &client->hosts[1 - i].records[quoit_ring_opposite(side)];
            while (quoit_link_port_epoch(own) == 0 || atomic_load(&own->target) != atomic_load(&peer->target)) {
                assert_true(quoit_clock_now_ns() < deadline_ns);
                quoit_clock_sleep_ns(100000);
            }
            assert_int_equal(quoit_link_state_of(own), QUOIT_LINK_STATE_UP);
        }
}

static void assert_outages(const struct client *client, uint32_t link, uint32_t count)
{
    const struct host *left_host = &client->hosts[link], *right_host = &client->hosts[1 - link];
    assert_int_equal(left_host->records[QUOIT_RIGHT].outage_count, count);
    assert_int_equal(right_host->records[QUOIT_LEFT].outage_count, count);
}

static void await_outage(const struct client *client, uint32_t link, uint32_t count)
{
    uint64_t deadline_ns = quoit_clock_now_ns() + OTHERS_NS;
    while (atomic_load(&client->hosts[link].records[QUOIT_RIGHT].outage_count) < count ||
           atomic_load(&client->hosts[1 - link].records[QUOIT_LEFT].outage_count) < count) {
        assert_true(quoit_clock_now_ns() < deadline_ns);
        quoit_clock_sleep_ns(100000);
    }
}

static void cut(struct world *world, uint32_t link)
{
    assert_int_equal(quoit_shared_ring_cut(world->ring, link, true), QUOIT_OK);
    assert_int_equal(quoit_shared_ring_cut(world->ring, link, false), QUOIT_OK);
}

static void open_world(struct world *world)
{
    const struct quoit_share_config config = {.driver = "emulated", .host_count = HOST_COUNT};
    memset(world, 0, sizeof *world);
    assert_int_equal(quoit_shared_ring_open(&config, &world->ring), QUOIT_OK);
}

static void close_world(struct world *world)
{
    for (uint32_t i = 0; i < CLIENTS_MAX; i++)
        if (world->clients[i].share)
            go(world, &world->clients[i], false);
    quoit_shared_ring_close(world->ring);
}

static void test_two_clients(void **state)
{
    (void)state;
    struct world world;
    struct client *first = &world.clients[0], *second = &world.clients[1];
    open_world(&world);
    come(&world, first);
    await_up(first, LIMIT_NS);
    come(&world, second);
    await_up(second, LIMIT_NS);
    cut(&world, 0);
    await_outage(first, 0, 1);
    await_outage(second, 0, 1);
    await_up(first, OTHERS_NS);
    await_up(second, OTHERS_NS);
    go(&world, second, true);
    come(&world, second); /* at its first epoch again, while the other's goes on */
    await_up(second, LIMIT_NS);
    assert_outages(first, 0, 1);
    assert_outages(first, 1, 0);
    assert_outages(second, 0, 0);
    assert_int_not_equal(first->hosts[0].records[QUOIT_RIGHT].target, second->hosts[0].records[QUOIT_RIGHT].target);
    close_world(&world);
}

/* One does not confirm that it has stopped: its record stays DRAINING, and the others do not wait for it. */
static void test_a_client_that_does_not_follow(void **state)
{
    (void)state;
    struct world world;
    open_world(&world);
    for (uint32_t i = 0; i < 3; i++)
        come(&world, &world.clients[i]);
    for (uint32_t i = 0; i < 3; i++)
        await_up(&world.clients[i], LIMIT_NS);
    struct client *stuck = &world.clients[1];
    atomic_store(&stuck->is_stuck, true);
    cut(&world, 1);
    for (uint32_t i = 0; i < 3; i++)
        await_outage(&world.clients[i], 1, 1);
    await_up(&world.clients[0], OTHERS_NS);
    await_up(&world.clients[2], OTHERS_NS);
    assert_int_equal(quoit_link_state_of(&stuck->hosts[1].records[QUOIT_RIGHT]), QUOIT_LINK_STATE_DRAINING);
    atomic_store(&stuck->is_stuck, false);
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        quoit_service_wake(stuck->hosts[i].service);
    await_up(stuck, OTHERS_NS);
    close_world(&world);
}

/* Eight clients come and go at random, in order and suddenly, and links are cut; each client counts the cuts of its
 * time as outages and nothing else. */
static void test_eight_clients_in_any_order(void **state)
{
    (void)state;
    struct world world;
    uint32_t outages[CLIENTS_MAX][HOST_COUNT] = {0};
    const char *text = getenv("QUOIT_SEED");
    struct quoit_prng chance = {.state = text ? strtoull(text, NULL, 0) : quoit_clock_now_ns()};
    printf("replay with QUOIT_SEED=%llu\n", (unsigned long long)chance.state);
    open_world(&world);
    for (uint32_t event = 0; event < EVENT_COUNT; event++) {
        uint32_t index = (uint32_t)quoit_prng_choose(&chance, CLIENTS_MAX);
        struct client *client = &world.clients[index];
        if (quoit_prng_choose(&chance, 6) == 0) {
            uint32_t link = (uint32_t)quoit_prng_choose(&chance, HOST_COUNT);
            cut(&world, link);
            for (uint32_t i = 0; i < CLIENTS_MAX; i++)
                if (world.clients[i].share)
                    await_outage(&world.clients[i], link, ++outages[i][link]);
        } else if (client->share) {
            go(&world, client, quoit_prng_choose(&chance, 2) != 0);
        } else {
            memset(outages[index], 0, sizeof outages[index]);
            come(&world, client);
        }
        for (uint32_t i = 0; i < CLIENTS_MAX; i++)
            if (world.clients[i].share)
                await_up(&world.clients[i], LIMIT_NS);
        for (uint32_t i = 0; i < CLIENTS_MAX * HOST_COUNT; i++)
            if (world.clients[i / HOST_COUNT].share)
                assert_outages(&world.clients[i / HOST_COUNT], i % HOST_COUNT, outages[i / HOST_COUNT][i % HOST_COUNT]);
    }
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_clients),
        cmocka_unit_test(test_a_client_that_does_not_follow),
        cmocka_unit_test(test_eight_clients_in_any_order),
    };
    return cmocka_run_group_tests_name("link.shared", tests, NULL, NULL);
}
