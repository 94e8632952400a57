/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: messages between hosts arrive exactly once, in order, with their bytes, over several hops and through links that
 * are cut meanwhile; what cannot be sent is refused. The same over a network, where hosts are lost and leave. Method:
 * the proxies of a small ring in threads of this process, on the emulated driver, or on the network driver of
 * tests/drivers; each host sends every other one numbered messages of random sizes, and counts what it receives.
 * QUOIT_SEED replays the sizes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "env/clock.h"
#include "lane/network.h"
#include "lane/outbox.h"
#include "net/net.h"
#include "proxy/network.h"
#include "proxy/proxy.h"
#include "proxy/ring_rig.h"

#define HOSTS_MAX     5
#define CHUNK_BYTES   1024
#define MESSAGE_COUNT 400 /* from each host to each other one */
#define LIMIT_NS      60000000000u
#define LOST_NS       UINT64_C(3000000000)

struct world;
struct host {
    struct world *world;
    struct rig_host *rig;
    struct quoit_proxy *proxy;
    enum quoit_status status;
    uint32_t received_counts[HOSTS_MAX]; /* lane 0's */
    _Atomic uint32_t received_total;
    _Atomic uint32_t error_count;
    _Atomic uint32_t lost_mask; /* of hosts */
    bool has_ended;             /* its lane */
    pthread_t opener, lane, manager;
    struct quoit_lane_network network;
};
struct world {
    bool has_died; /* its share ended under it: what it received last may be cut short */
    uint32_t host_count;
    uint64_t lost_limit_ns;
    uint64_t seed;
    struct ring_rig rig;
    pthread_barrier_t meeting; /* of hosts that join a network */
    char contacts[HOSTS_MAX][QUOIT_NETWORK_CONTACT_BYTES];
    struct host hosts[HOSTS_MAX];
};

/* Message number `number` from `from` to `to`: its number, then bytes that follow from all three. */
static uint32_t make_message(uint64_t seed, uint32_t from, uint32_t to, uint32_t number, unsigned char *message_out)
{
    struct quoit_prng prng = {seed + ((uint64_t)from << 40) + ((uint64_t)to << 20) + number};
    uint32_t bytes = sizeof number + (uint32_t)quoit_prng_choose(&prng, CHUNK_BYTES - sizeof number + 1);
    memcpy(message_out, &number, sizeof number);
    for (uint32_t i = sizeof number; i < bytes; i++)
        message_out[i] = (unsigned char)quoit_prng_next(&prng);
    return bytes;
}

static void receive(void *arg, uint32_t source_host, uint32_t port, const void *payload, uint32_t bytes)
{
    struct host *host = arg;
    unsigned char expected[CHUNK_BYTES];
    uint32_t number = host->received_counts[source_host]++;
    uint32_t expected_bytes = make_message(host->world->seed, source_host, host->rig->layout.host, number, expected);
    if (bytes != expected_bytes || memcmp(payload, expected, bytes) != 0 || port != number % QUOIT_MESSAGE_PORTS)
        atomic_fetch_add(&host->error_count, 1);
    atomic_fetch_add(&host->received_total, 1);
}

static void note_ready(void *arg)
{
    (void)arg;
}

static void note_cut_off(void *arg, uint32_t first_link, uint32_t second_link)
{
    (void)arg, (void)first_link, (void)second_link;
}

static bool exchange(void *arg, const void *own, uint32_t bytes, void *all_out)
{
    struct host *host = arg;
    struct world *world = host->world;
    memcpy(world->contacts[host->rig->layout.host], own, bytes);
    pthread_barrier_wait(&world->meeting);
    for (uint32_t i = 0; i < world->host_count; i++)
        memcpy((char *)all_out + (size_t)i * bytes, world->contacts[i], bytes);
    return true;
}

static void note_lost(void *arg, uint32_t lost_host, bool is_silent)
{
    (void)is_silent;
    struct host *host = arg;
    uint32_t before = atomic_fetch_or(&host->lost_mask, 1u << lost_host);
    if (before >> lost_host & 1)
        atomic_fetch_add(&host->error_count, 1);
}

static void *open_proxy(void *arg)
{
    struct host *host = arg;
    struct quoit_proxy_config config = {
        .layout = &host->rig->layout,
        .memory = host->rig->memory,
        .machine.policy = quoit_wait_policy_for(100, 2),
        .link_timeout_ns = LIMIT_NS,
        .link_limit_ns = LIMIT_NS,
        .dma_bytes = QUOIT_DMA_NEVER,
        .on_ready = note_ready,
        .on_cut_off = note_cut_off,
        .on_message = receive,
        .on_message_arg = host,
    };
    rig_ports(&host->world->rig, host->rig, config.ports);
    host->network = (struct quoit_lane_network){.driver = "shuffle",
                                                .tag = 1,
                                                .lost_limit_ns = host->world->lost_limit_ns,
                                                .exchange = exchange,
                                                .on_lost = note_lost,
                                                .arg = host};
    if (host->rig->layout.job.protocol == QUOIT_PROTOCOL_NETWORK)
        config.network = &host->network;
    host->status = quoit_proxy_open(&config, &host->proxy);
    return NULL;
}

static void *serve(void *arg)
{
    struct host *host = arg;
    host->status = quoit_proxy_serve(host->proxy, 0);
    return NULL;
}

static void *manage(void *arg)
{
    struct host *host = arg;
    (void)!quoit_proxy_manage(host->proxy);
    return NULL;
}

/* `shared`: the ring on which the job has a share; NULL: one of its own. `lost_limit_ns` is of a network. */
static void open_world_on(struct world *world, uint32_t host_count, uint8_t protocol, struct quoit_shared_ring *shared,
                          uint64_t lost_limit_ns)
{
    const char *text = getenv("QUOIT_SEED");
    bool is_network = protocol == QUOIT_PROTOCOL_NETWORK;
    const struct quoit_job_config job = {.host_count = host_count,
                                         .pe_count = host_count,
                                         .lane_count = 1,
                                         .slot_count = 2,
                                         .chunk_bytes = is_network ? 2 * QUOIT_NETWORK_FRAMED_BYTES : CHUNK_BYTES,
                                         .protocol = protocol};
    memset(world, 0, sizeof *world);
    world->host_count = host_count;
    world->lost_limit_ns = lost_limit_ns;
    pthread_barrier_init(&world->meeting, NULL, host_count);
    world->seed = text ? strtoull(text, NULL, 0) : quoit_clock_now_ns();
    printf("replay with QUOIT_SEED=%llu\n", (unsigned long long)world->seed);
    if (shared)
        rig_make_shared(&world->rig, &job, shared);
    else
        rig_make(&world->rig, &job, &(struct quoit_port_knobs){0});
    for (uint32_t i = 0; i < host_count; i++) {
        world->hosts[i].world = world;
        world->hosts[i].rig = &world->rig.hosts[i];
        assert_int_equal(pthread_create(&world->hosts[i].opener, NULL, open_proxy, &world->hosts[i]), 0);
    }
    for (uint32_t i = 0; i < host_count; i++) {
        struct host *host = &world->hosts[i];
        pthread_join(host->opener, NULL);
        assert_int_equal(host->status, QUOIT_OK);
    }
    for (uint32_t i = 0; i < host_count; i++) {
        assert_int_equal(pthread_create(&world->hosts[i].lane, NULL, serve, &world->hosts[i]), 0);
        assert_int_equal(pthread_create(&world->hosts[i].manager, NULL, manage, &world->hosts[i]), 0);
    }
}

static void open_world(struct world *world, uint32_t host_count, uint8_t protocol)
{
    open_world_on(world, host_count, protocol, NULL, 0);
}

static void end_host(struct host *host)
{
    if (host->has_ended)
        return;
    host->has_ended = true;
    quoit_proxy_stop(&host->rig->layout, host->rig->memory);
    pthread_join(host->lane, NULL);
    pthread_join(host->manager, NULL);
    assert_int_equal(host->status, QUOIT_OK);
    assert_true(host->error_count == 0 || host->world->has_died);
}

static void close_world(struct world *world)
{
    for (uint32_t i = 0; i < world->host_count; i++)
        end_host(&world->hosts[i]);
    for (uint32_t i = 0; i < world->host_count; i++)
        quoit_proxy_close(world->hosts[i].proxy);
    pthread_barrier_destroy(&world->meeting);
    rig_free(&world->rig);
}

static void cut(struct world *world, uint32_t link)
{
    const struct host *host = &world->hosts[link];
    struct quoit_port_config ports[QUOIT_SIDE_COUNT];
    struct quoit_port *port;
    rig_ports(&world->rig, host->rig, ports);
    assert_int_equal(quoit_port_open(&ports[QUOIT_RIGHT], &port), QUOIT_OK);
    assert_int_equal(quoit_port_cut(port), QUOIT_OK);
    assert_int_equal(quoit_port_mend(port), QUOIT_OK);
    quoit_port_close(port);
}

/* Every host sends all messages to all others; with_cuts: links are cut in turn meanwhile. */
static void send_everything(struct world *world, bool with_cuts)
{
    uint64_t deadline_ns = quoit_clock_now_ns() + LIMIT_NS;
    for (uint32_t number = 0; number < MESSAGE_COUNT; number++) {
        for (uint32_t from = 0; from < world->host_count; from++)
            for (uint32_t step = 1; step < world->host_count; step++) {
                unsigned char message[CHUNK_BYTES];
                uint32_t to = (from + step) % world->host_count;
                uint32_t bytes = make_message(world->seed, from, to, number, message);
                enum quoit_status status;
                while ((status = quoit_proxy_send(world->hosts[from].proxy, to, number % QUOIT_MESSAGE_PORTS, message,
                                                  bytes)) == QUOIT_FULL) {
                    assert_true(quoit_clock_now_ns() < deadline_ns);
                    quoit_wait_yield();
                }
                assert_int_equal(status, QUOIT_OK);
            }
        if (with_cuts && number % 40 == 20)
            cut(world, number / 40 % world->host_count);
    }
    for (uint32_t i = 0; i < world->host_count; i++)
        while (atomic_load(&world->hosts[i].received_total) < MESSAGE_COUNT * (world->host_count - 1)) {
            assert_true(quoit_clock_now_ns() < deadline_ns);
            quoit_clock_sleep_ns(100000);
        }
}

static void test_as_many_outstanding_as_there_may_be(void **state)
{
    (void)state;
    struct quoit_layout layout;
    struct quoit_outbox outbox;
    uint32_t entry;
    const struct quoit_job_config job = {.host_count = 2,
                                         .pe_count = 2,
                                         .lane_count = 1,
                                         .slot_count = 4,
                                         .chunk_bytes = CHUNK_BYTES,
                                         .data_bytes = 4096,
                                         .heap_bytes = 2u << 20};
    assert_int_equal(quoit_layout_make(&job, 0, &layout), QUOIT_OK);
    char *memory = calloc(1, layout.total_bytes);
    assert_non_null(memory);
    quoit_outbox_open(&outbox, &layout, memory);
    for (uint32_t i = 0; i < QUOIT_MESSAGES_MAX; i++)
        assert_int_equal(quoit_outbox_send(&outbox, 1, 0, "word", 4), QUOIT_OK);
    assert_int_equal(quoit_outbox_send(&outbox, 1, 0, "word", 4), QUOIT_FULL);
    assert_non_null(quoit_outbox_next(&outbox, &entry));
    quoit_outbox_taken(&outbox);
    assert_int_equal(quoit_outbox_send(&outbox, 1, 0, "word", 4), QUOIT_FULL); /* it is on its way still */
    quoit_outbox_complete(&outbox, entry);
    assert_int_equal(quoit_outbox_send(&outbox, 1, 0, "word", 4), QUOIT_OK);
    quoit_outbox_close(&outbox);
    free(memory);
}

static void test_each_comes_once_and_in_order(void **state)
{
    (void)state;
    for (uint32_t host_count = 2; host_count <= HOSTS_MAX; host_count += 3) {
        struct world world;
        open_world(&world, host_count, QUOIT_PROTOCOL_QUEUE);
        send_everything(&world, false);
        close_world(&world);
    }
}

static void test_through_links_that_are_cut(void **state)
{
    (void)state;
    struct world world;
    uint32_t outage_count = 0;
    open_world(&world, HOSTS_MAX, QUOIT_PROTOCOL_QUEUE);
    send_everything(&world, true);
    for (uint32_t i = 0; i < HOSTS_MAX; i++)
        outage_count += ((struct quoit_host_header *)world.hosts[i].rig->memory)->links[QUOIT_RIGHT].outage_count;
    assert_true(outage_count > 0);
    close_world(&world);
}

static void test_what_cannot_be_sent_is_refused(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, 2, QUOIT_PROTOCOL_QUEUE);
    struct quoit_proxy *proxy = world.hosts[0].proxy;
    static const unsigned char bytes[CHUNK_BYTES + 1];
    assert_int_equal(quoit_proxy_send(proxy, 0, 0, bytes, 1), QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_proxy_send(proxy, 2, 0, bytes, 1), QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_proxy_send(proxy, 1, QUOIT_MESSAGE_PORTS, bytes, 1), QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_proxy_send(proxy, 1, 0, bytes, CHUNK_BYTES + 1), QUOIT_OUT_OF_RANGE);
    close_world(&world);
    open_world(&world, 2, QUOIT_PROTOCOL_SCRATCHPAD);
    assert_int_equal(quoit_proxy_send(world.hosts[0].proxy, 1, 0, bytes, 1), QUOIT_UNSUPPORTED);
    close_world(&world);
}

static void test_none_is_closed(void **state)
{
    (void)state;
    quoit_proxy_close(NULL);
}

static void *tell_with_cuts(void *arg)
{
    struct world *world = arg;
    for (uint32_t link = 0; link < world->host_count; link++) {
        quoit_clock_sleep_ns(5000000);
        assert_int_equal(quoit_shared_ring_cut(world->rig.shared, link, true), QUOIT_OK);
        quoit_clock_sleep_ns(1000000);
        assert_int_equal(quoit_shared_ring_cut(world->rig.shared, link, false), QUOIT_OK);
    }
    return NULL;
}

static void *tell_one(void *arg)
{
    send_everything(arg, false);
    return NULL;
}

/* Two jobs of one ring send at once, while its links are cut; then one dies in the middle and the other goes on. */
static void test_two_jobs_on_one_ring(void **state)
{
    (void)state;
    const struct quoit_share_config config = {.driver = "emulated", .host_count = 3};
    struct quoit_shared_ring *ring;
    struct world *jobs = calloc(3, sizeof *jobs);
    pthread_t cutter, teller;
    assert_non_null(jobs);
    assert_int_equal(quoit_shared_ring_open(&config, &ring), QUOIT_OK);
    open_world_on(&jobs[0], config.host_count, QUOIT_PROTOCOL_QUEUE, ring, 0);
    open_world_on(&jobs[1], config.host_count, QUOIT_PROTOCOL_QUEUE, ring, 0);
    assert_int_equal(pthread_create(&cutter, NULL, tell_with_cuts, &jobs[0]), 0);
    assert_int_equal(pthread_create(&teller, NULL, tell_one, &jobs[1]), 0);
    send_everything(&jobs[0], false);
    pthread_join(teller, NULL);
    pthread_join(cutter, NULL);
    open_world_on(&jobs[2], config.host_count, QUOIT_PROTOCOL_QUEUE, ring, 0);
    for (uint32_t from = 0; from < config.host_count; from++) /* under way when the job ends */
        (void)!quoit_proxy_send(jobs[1].hosts[from].proxy, (from + 1) % config.host_count, 0, "bytes", 5);
    quoit_share_end(ring, jobs[1].rig.share);
    jobs[1].rig.share = NULL;
    send_everything(&jobs[2], false);
    for (uint32_t i = 0; i < config.host_count; i++)
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
            assert_int_equal(((struct quoit_host_header *)jobs[2].hosts[i].rig->memory)->links[side].outage_count, 0);
    jobs[1].has_died = true;
    for (uint32_t i = 0; i < 3; i++)
        close_world(&jobs[i]);
    quoit_shared_ring_close(ring);
    free(jobs);
}

static void skip_without_driver(void)
{
    struct quoit_net_choice choice;
    const struct quoit_net_config config = {.driver = "shuffle"};
    if (quoit_net_survey(&config, &choice, 1) == 0 || !choice.is_usable)
        skip();
}

static void until(bool (*condition)(const struct world *world), const struct world *world)
{
    uint64_t deadline_ns = quoit_clock_now_ns() + LIMIT_NS;
    while (!condition(world)) {
        assert_true(quoit_clock_now_ns() < deadline_ns);
        quoit_clock_sleep_ns(1000000);
    }
}

static bool have_arrived(const struct world *world)
{
    for (uint32_t i = 0; i < world->host_count; i++)
        if (!world->hosts[i].has_ended && !quoit_proxy_has_sent(world->hosts[i].proxy))
            return false;
    return true;
}

static void test_over_a_network(void **state)
{
    (void)state;
    struct world world;
    static const unsigned char bytes[QUOIT_NETWORK_FRAMED_BYTES + 1];
    skip_without_driver();
    open_world_on(&world, 3, QUOIT_PROTOCOL_NETWORK, NULL, LIMIT_NS);
    struct quoit_proxy *proxy = world.hosts[0].proxy;
    assert_int_equal(quoit_proxy_send(proxy, 1, 0, bytes, sizeof bytes), QUOIT_OUT_OF_RANGE);
    assert_int_equal(quoit_proxy_send(proxy, 3, 0, bytes, 1), QUOIT_OUT_OF_RANGE);
    send_everything(&world, false);
    until(have_arrived, &world);
    for (uint32_t i = 0; i < world.host_count; i++)
        assert_int_equal(world.hosts[i].lost_mask, 0);
    close_world(&world);
}

static bool is_third_lost(const struct world *world)
{
    return world->hosts[0].lost_mask == 1u << 2 && world->hosts[1].lost_mask == 1u << 2;
}

static bool is_second_lost(const struct world *world)
{
    return (world->hosts[0].lost_mask & 1u << 1) != 0;
}

/* What is said to a host that hangs holds nobody up for longer than the limit, and no later message. One that has left
 * is told when something is said to it. */
static void test_to_hosts_that_are_gone(void **state)
{
    (void)state;
    struct world world;
    uint32_t sent_count = 0;
    skip_without_driver();
    open_world_on(&world, 3, QUOIT_PROTOCOL_NETWORK, NULL, LOST_NS);
    struct quoit_proxy *proxy = world.hosts[0].proxy;
    world.has_died = true; /* what it is told is not numbered */
    end_host(&world.hosts[2]);
    while (quoit_proxy_send(proxy, 2, 0, "word", 4) == QUOIT_OK)
        sent_count++;
    assert_in_range(sent_count, QUOIT_MESSAGES_MAX, 2 * QUOIT_MESSAGES_MAX);
    until(is_third_lost, &world);
    until(have_arrived, &world);
    assert_int_equal(quoit_proxy_send(proxy, 2, 0, "word", 4), QUOIT_OK);
    assert_int_equal(quoit_proxy_send(proxy, 1, 0, "word", 4), QUOIT_OK);
    until(have_arrived, &world);
    assert_int_equal(world.hosts[1].received_total, 1);
    end_host(&world.hosts[1]);
    quoit_proxy_close(world.hosts[1].proxy);
    world.hosts[1].proxy = NULL;
    assert_int_equal(world.hosts[0].lost_mask, 1u << 2);
    assert_int_equal(quoit_proxy_send(proxy, 1, 0, "word", 4), QUOIT_OK);
    until(is_second_lost, &world);
    until(have_arrived, &world);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_comes_once_and_in_order),
        cmocka_unit_test(test_through_links_that_are_cut),
        cmocka_unit_test(test_what_cannot_be_sent_is_refused),
        cmocka_unit_test(test_none_is_closed),
        cmocka_unit_test(test_two_jobs_on_one_ring),
        cmocka_unit_test(test_as_many_outstanding_as_there_may_be),
        cmocka_unit_test(test_over_a_network),
        cmocka_unit_test(test_to_hosts_that_are_gone),
    };
    return cmocka_run_group_tests_name("proxy.message", tests, NULL, NULL);
}
