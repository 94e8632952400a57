/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what veth.h promises: frames reach the host of their address whole, once and in order, broadcasts reach
 * everybody once, also with a dead link; traffic in all directions at once never stops; garbage from a neighbour is
 * refused. Method: whole rings in this process, with the emulated driver; the devices are socket pairs. Each frame's
 * bytes follow from its source and number, so the receiver checks all of them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include "base/prng.h"
#include "env/clock.h"
#include "proxy/ring_rig.h"
#include "veth/device.h"
#include "veth/queue.h"
#include "veth/veth.h"

#define RING          0x123456u
#define HEADER        (QUOIT_VNET_BYTES + QUOIT_ETHERNET_BYTES)
#define FRAME_BYTES   (QUOIT_VETH_SLOT_BYTES - 16)
#define START_NS      60000000000u
#define WAIT_MS       60000
#define COUNT_MS      5000
#define SILENT_MS     500  /* after a link was cut, since a frame may be counted as lost that will come, */
#define SILENT_MS_MAX 3000 /* and after which frames that vanished are not waited for */
#define CHANNELS      2    /* at most */

struct host {
    uint32_t index;
    struct quoit_service *service;
    struct quoit_link_record records[QUOIT_SIDE_COUNT];
    struct quoit_veth *veth;
    uint32_t channel_count;
    int device[CHANNELS], far[CHANNELS]; /* the two ends of a socket pair each */
    _Atomic uint32_t is_stopping;
    pthread_t manager, carrier;
};

struct world {
    uint64_t dma_bytes;
    struct ring_rig rig;
    struct host hosts[RIG_HOSTS_MAX];
};

/* Of a test's frame, behind the Ethernet header. */
struct body {
    uint32_t source, number, bytes;
};

static void fill(uint8_t *frame, uint32_t source, const uint8_t dest_mac[QUOIT_MAC_BYTES], uint32_t number,
                 uint32_t bytes)
{
    const struct body body = {.source = source, .number = number, .bytes = bytes};
    struct quoit_prng prng;
    prng.state = (uint64_t)source << 32 | number;
    memset(frame, 0, HEADER);
    memcpy(frame + QUOIT_VNET_BYTES, dest_mac, QUOIT_MAC_BYTES);
    quoit_veth_mac(RING, source, frame + QUOIT_VNET_BYTES + QUOIT_MAC_BYTES);
    memcpy(frame + HEADER, &body, sizeof body);
    for (uint32_t i = HEADER + sizeof body; i < bytes; i++)
        frame[i] = (uint8_t)quoit_prng_choose(&prng, 256);
}

/* By the channel of its number. */
static void send_frame(struct host *host, const uint8_t dest_mac[QUOIT_MAC_BYTES], uint32_t number, uint32_t bytes)
{
    uint8_t *frame = malloc(bytes);
    fill(frame, host->index, dest_mac, number, bytes);
    assert_int_equal(send(host->far[number % host->channel_count], frame, bytes, 0), bytes);
    free(frame);
}

static void send_to(struct host *host, uint32_t dest, uint32_t number, uint32_t bytes)
{
    uint8_t mac[QUOIT_MAC_BYTES];
    quoit_veth_mac(RING, dest, mac);
    send_frame(host, mac, number, bytes);
}

/* The next frame within wait_ms, every byte checked; false: none came. */
static bool receive_frame(struct host *host, int wait_ms, struct body *body_out)
{
    static _Thread_local uint8_t frame[FRAME_BYTES], expected[FRAME_BYTES];
    struct pollfd polled[CHANNELS];
    for (uint32_t i = 0; i < host->channel_count; i++)
        polled[i] = (struct pollfd){.fd = host->far[i], .events = POLLIN};
    if (poll(polled, host->channel_count, wait_ms) <= 0)
        return false;
    uint32_t channel = polled[0].revents ? 0 : 1;
    ssize_t bytes = recv(host->far[channel], frame, sizeof frame, 0);
    assert_true(bytes >= (ssize_t)(HEADER + sizeof *body_out));
    memcpy(body_out, frame + HEADER, sizeof *body_out);
    assert_int_equal(body_out->bytes, bytes);
    assert_int_equal(channel, body_out->number % host->channel_count);
    fill(expected, body_out->source, frame + QUOIT_VNET_BYTES, body_out->number, (uint32_t)bytes);
    assert_memory_equal(frame, expected, (size_t)bytes);
    return true;
}

static void *manage(void *arg)
{
    struct host *host = arg;
    assert_int_equal(quoit_service_manage(host->service, &host->is_stopping), QUOIT_OK);
    return NULL;
}

static void *carry(void *arg)
{
    struct host *host = arg;
    int slack_ns = prctl(PR_GET_TIMERSLACK);
    assert_int_equal(quoit_veth_run(host->veth), QUOIT_OK);
    assert_int_equal(prctl(PR_GET_TIMERSLACK), slack_ns);
    return NULL;
}

static void *start(void *arg)
{
    struct host *host = arg;
    assert_int_equal(quoit_service_start(host->service, START_NS), QUOIT_OK);
    return NULL;
}

static void open_host(struct world *world, uint32_t index, uint32_t channel_count)
{
    struct host *host = &world->hosts[index];
    struct rig_host *rig = &world->rig.hosts[index];
    uint64_t park_offset = (quoit_veth_bytes(channel_count) + 4095) / 4096 * 4096;
    assert_in_range(park_offset + sizeof(struct quoit_park), 0, rig->layout.total_bytes);
    struct quoit_service_config service = {.host = index,
                                           .host_count = world->rig.host_count,
                                           .records = host->records,
                                           .park = (struct quoit_park *)(void *)((char *)rig->memory + park_offset),
                                           .park_offset = park_offset};
    rig_ports(&world->rig, rig, service.ports);
    host->index = index;
    host->channel_count = channel_count;
    assert_int_equal(quoit_service_open(&service, &host->service), QUOIT_OK);
    struct quoit_veth_config config = {.service = host->service,
                                       .records = host->records,
                                       .memory = rig->memory,
                                       .host = index,
                                       .host_count = world->rig.host_count,
                                       .ring = RING,
                                       .channel_count = channel_count,
                                       .dma_bytes = world->dma_bytes,
                                       .policy = quoit_wait_policy_for(4, 1)};
    for (uint32_t i = 0; i < channel_count; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
        host->device[i] = config.device_fds[i] = pair[0];
        host->far[i] = pair[1];
        assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
    }
    assert_int_equal(quoit_veth_open(&config, &host->veth), QUOIT_OK);
}

static struct world *open_on(const struct quoit_port_knobs *knobs, uint32_t host_count, uint32_t channel_count,
                             uint64_t dma_bytes)
{
    const struct quoit_job_config job = {.pe_count = host_count,
                                         .host_count = host_count,
                                         .lane_count = 1,
                                         .slot_count = 4,
                                         .chunk_bytes = 4096,
                                         .heap_bytes = 8u << 20};
    struct world *world = calloc(1, sizeof *world);
    world->dma_bytes = dma_bytes;
    rig_make(&world->rig, &job, knobs);
    for (uint32_t i = 0; i < host_count; i++)
        open_host(world, i, channel_count);
    for (uint32_t i = 0; i < host_count; i++)
        assert_int_equal(pthread_create(&world->hosts[i].manager, NULL, start, &world->hosts[i]), 0);
    for (uint32_t i = 0; i < host_count; i++)
        pthread_join(world->hosts[i].manager, NULL);
    for (uint32_t i = 0; i < host_count; i++) {
        assert_int_equal(pthread_create(&world->hosts[i].manager, NULL, manage, &world->hosts[i]), 0);
        assert_int_equal(pthread_create(&world->hosts[i].carrier, NULL, carry, &world->hosts[i]), 0);
    }
    return world;
}

static struct world *open_channels(uint32_t host_count, uint32_t channel_count, uint64_t dma_bytes,
                                   uint32_t dma_failures)
{
    return open_on(&(struct quoit_port_knobs){.dma_failures = dma_failures}, host_count, channel_count, dma_bytes);
}

static struct world *open_world(uint32_t host_count)
{
    return open_channels(host_count, 1, QUOIT_VETH_DMA_NEVER, 0);
}

static void close_world(struct world *world)
{
    for (uint32_t i = 0; i < world->rig.host_count; i++) {
        struct host *host = &world->hosts[i];
        quoit_veth_stop(host->veth);
        pthread_join(host->carrier, NULL);
        atomic_store(&host->is_stopping, 1);
        quoit_service_wake(host->service);
        pthread_join(host->manager, NULL);
    }
    for (uint32_t i = 0; i < world->rig.host_count; i++) {
        quoit_veth_close(world->hosts[i].veth);
        quoit_service_close(world->hosts[i].service);
        for (uint32_t channel = 0; channel < world->hosts[i].channel_count; channel++) {
            close(world->hosts[i].device[channel]);
            close(world->hosts[i].far[channel]);
        }
    }
    rig_free(&world->rig);
    free(world);
}

static struct quoit_veth_stats stats_of(struct world *world, uint32_t host)
{
    struct quoit_veth_stats stats;
    quoit_veth_stats(world->rig.hosts[host].memory, 0, &stats);
    return stats;
}

static bool are_counted(const struct quoit_veth_stats *stats)
{
    uint64_t passed_on = stats->forwarded_frames + stats->turned_frames;
    return stats->link_in_frames == stats->received_frames + passed_on &&
           stats->link_out_frames == stats->sent_frames + passed_on;
}

/* Of frames that were not lost. Tables of links are no frames of the device. Some counts come a moment later. */
static void expect_counted(struct world *world, uint32_t host)
{
    struct quoit_veth_stats stats = stats_of(world, host);
    for (uint32_t ms = 0; ms < COUNT_MS && !are_counted(&stats); ms++) {
        quoit_clock_sleep_ns(1000000);
        stats = stats_of(world, host);
    }
    assert_true(are_counted(&stats));
}

static void every_pair(void **state)
{
    const uint32_t sizes[] = {HEADER + 12, 64, 1514, 9000, FRAME_BYTES};
    struct body body;
    (void)state;
    for (uint32_t host_count = 2; host_count <= 5; host_count++) {
        struct world *world = open_world(host_count);
        for (uint32_t from = 0; from < host_count; from++)
            for (uint32_t to = 0; to < host_count; to++)
                for (uint32_t i = 0; i < sizeof sizes / sizeof sizes[0] && to != from; i++) {
                    send_to(&world->hosts[from], to, i, sizes[i]);
                    assert_true(receive_frame(&world->hosts[to], WAIT_MS, &body));
                    assert_int_equal(body.source, from);
                    assert_int_equal(body.number, i);
                    assert_int_equal(body.bytes, sizes[i]);
                }
        for (uint32_t host = 0; host < host_count; host++)
            assert_false(receive_frame(&world->hosts[host], 0, &body));
        for (uint32_t host = 0; host < host_count; host++)
            expect_counted(world, host);
        close_world(world);
    }
}

static void expect_broadcast(struct world *world, uint32_t from, uint32_t number)
{
    static const uint8_t everybody[QUOIT_MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    struct body body;
    send_frame(&world->hosts[from], everybody, number, 200 + number);
    for (uint32_t host = 0; host < world->rig.host_count; host++) {
        assert_int_equal(receive_frame(&world->hosts[host], host == from ? 0 : WAIT_MS, &body), host != from);
        if (host != from)
            assert_int_equal(body.number, number);
    }
    for (uint32_t host = 0; host < world->rig.host_count; host++)
        assert_false(receive_frame(&world->hosts[host], 2, &body));
}

static void cut(struct world *world, uint32_t link, bool is_cut)
{
    struct quoit_port *port = quoit_service_port(world->hosts[link].service, QUOIT_RIGHT);
    assert_int_equal(is_cut ? quoit_port_cut(port) : quoit_port_mend(port), QUOIT_OK);
}

static bool has_link(const struct world *world, uint32_t host, uint32_t link)
{
    const struct quoit_veth *veth = world->hosts[host].veth;
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
        bool is_own = quoit_veth_link(&veth->topology, side) == link;
        if ((is_own && !atomic_load(&veth->channels[0].queues[side].is_up)) ||
            quoit_veth_reach(&veth->topology, side) != world->rig.host_count - 1)
            return false;
    }
    return true;
}

/* Until every host knows that no link is cut: what is sent before both ends of a link have seen it up may be lost. */
static void mend(struct world *world, uint32_t link)
{
    cut(world, link, false);
    for (uint32_t host = 0, ms = 0; host < world->rig.host_count; ms++) {
        assert_in_range(ms, 0, WAIT_MS);
        if (has_link(world, host, link))
            host++;
        else
            quoit_clock_sleep_ns(1000000);
    }
}

/* Until a broadcast from every host reaches all others, as it does when the hosts know what is up. */
static void settle(struct world *world)
{
    static const uint8_t everybody[QUOIT_MAC_BYTES] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static uint32_t number = 1000;
    uint32_t host_count = world->rig.host_count, most = 200;
    struct body body;
    for (bool is_settled = false; !is_settled; most--) {
        assert_int_not_equal(most, 0);
        is_settled = true;
        for (uint32_t from = 0; from < host_count; from++, number++) {
            send_frame(&world->hosts[from], everybody, number, 100);
            for (uint32_t host = 0; host < host_count; host++) {
                bool has_come = false;
                while (receive_frame(&world->hosts[host], host == from || has_come ? 0 : 50, &body))
                    has_come |= body.number == number;
                is_settled &= has_come || host == from;
            }
        }
    }
}

static void broadcast(void **state)
{
    (void)state;
    for (uint32_t host_count = 2; host_count <= 5; host_count++) {
        struct world *world = open_world(host_count);
        for (uint32_t from = 0; from < host_count; from++)
            expect_broadcast(world, from, from);
        cut(world, 1, true);
        settle(world);
        for (uint32_t from = 0; from < host_count; from++)
            expect_broadcast(world, from, 10 + from);
        mend(world, 1);
        settle(world);
        for (uint32_t from = 0; from < host_count; from++)
            expect_broadcast(world, from, 20 + from);
        close_world(world);
    }
}

static void foreign_addresses(void **state)
{
    const uint8_t pe_endpoint[QUOIT_MAC_BYTES] = {0x52, 0x54, 0, 1, 2, 3};
    struct world *world = open_world(4);
    struct body body;
    uint8_t frame[100], mac[QUOIT_MAC_BYTES];
    (void)state;
    send_frame(&world->hosts[0], pe_endpoint, 1, 100); /* not known: everybody gets it */
    for (uint32_t host = 1; host < 4; host++)
        assert_true(receive_frame(&world->hosts[host], WAIT_MS, &body));
    quoit_veth_mac(RING, 0, mac); /* a frame of the PE endpoint, behind host 2, to host 0 */
    fill(frame, 2, mac, 2, sizeof frame);
    memcpy(frame + QUOIT_VNET_BYTES + QUOIT_MAC_BYTES, pe_endpoint, sizeof pe_endpoint);
    assert_int_equal(send(world->hosts[2].far[0], frame, sizeof frame, 0), sizeof frame);
    assert_int_equal(recv(world->hosts[0].far[0], frame, sizeof frame, 0), sizeof frame);
    send_frame(&world->hosts[0], pe_endpoint, 3, 100); /* now it is */
    assert_true(receive_frame(&world->hosts[2], WAIT_MS, &body));
    assert_int_equal(body.number, 3);
    assert_false(receive_frame(&world->hosts[1], 5, &body));
    assert_false(receive_frame(&world->hosts[3], 5, &body));
    send_to(&world->hosts[0], 77, 4, 100); /* an address of the ring that no host has */
    for (uint32_t host = 1; host < 4; host++)
        assert_false(receive_frame(&world->hosts[host], 5, &body));
    close_world(world);
}

/* All hosts send to all others at once, through links that are cut meanwhile or not. */
struct flow {
    struct world *world;
    uint32_t host;
    uint32_t count; /* frames to send */
    uint32_t received;
    uint32_t next[RIG_HOSTS_MAX][CHANNELS]; /* by source and channel: the least number that may come next */
    _Atomic uint32_t *running;
    _Atomic uint32_t *arrived; /* at all hosts */
    pthread_t sender, receiver;
    bool must_be_in_order;
};

static void *send_all(void *arg)
{
    struct flow *flow = arg;
    struct quoit_prng prng;
    prng.state = flow->host;
    for (uint32_t i = 0; i < flow->count; i++) {
        uint32_t hosts = flow->world->rig.host_count;
        uint32_t dest = (flow->host + 1 + (uint32_t)quoit_prng_choose(&prng, hosts - 1)) % hosts;
        uint32_t bytes = quoit_prng_choose(&prng, 4) ? 100 + (uint32_t)quoit_prng_choose(&prng, 1400)
                                                     : 30000 + (uint32_t)quoit_prng_choose(&prng, 30000);
        send_to(&flow->world->hosts[flow->host], dest, i, bytes);
    }
    atomic_fetch_sub(flow->running, 1);
    return NULL;
}

/* Every frame has arrived, or was refused or lost. Those that vanish with a link are not counted. */
static bool is_accounted(const struct flow *flow)
{
    uint32_t hosts = flow->world->rig.host_count, count = atomic_load(flow->arrived);
    for (uint32_t i = 0; i < hosts; i++) {
        struct quoit_veth_stats stats = stats_of(flow->world, i);
        count += (uint32_t)(stats.refused_frames + stats.lost_frames);
    }
    return count >= hosts * flow->count;
}

static void *receive_all(void *arg)
{
    struct flow *flow = arg;
    struct body body;
    for (uint32_t silent_ms = 0; silent_ms < SILENT_MS_MAX;) {
        bool is_over = atomic_load(flow->running) == 0;
        if (!receive_frame(&flow->world->hosts[flow->host], 50, &body)) {
            silent_ms += is_over ? 50 : 0;
            if (is_over && is_accounted(flow) && (flow->must_be_in_order || silent_ms >= SILENT_MS))
                return NULL;
            continue;
        }
        silent_ms = 0;
        uint32_t *next = &flow->next[body.source][body.number % flow->world->hosts[0].channel_count];
        if (flow->must_be_in_order)
            assert_true(body.number >= *next);
        *next = body.number + 1;
        flow->received++;
        atomic_fetch_add(flow->arrived, 1);
    }
    return NULL;
}

static struct quoit_veth_stats sum_of(struct world *world)
{
    struct quoit_veth_stats sum = {0};
    for (uint32_t i = 0; i < world->rig.host_count; i++) {
        struct quoit_veth_stats stats = stats_of(world, i);
        sum.sent_frames += stats.sent_frames;
        sum.received_frames += stats.received_frames;
        sum.refused_frames += stats.refused_frames;
        sum.malformed_frames += stats.malformed_frames;
        sum.lost_frames += stats.lost_frames;
    }
    return sum;
}

static void run_flows(struct world *world, uint32_t count, uint32_t cut_count)
{
    struct flow flows[RIG_HOSTS_MAX] = {0};
    uint32_t hosts = world->rig.host_count, received = 0;
    _Atomic uint32_t running = hosts, arrived = 0;
    for (uint32_t i = 0; i < hosts; i++) {
        flows[i] = (struct flow){.world = world,
                                 .host = i,
                                 .count = count,
                                 .running = &running,
                                 .arrived = &arrived,
                                 .must_be_in_order = cut_count == 0};
        pthread_create(&flows[i].receiver, NULL, receive_all, &flows[i]);
        pthread_create(&flows[i].sender, NULL, send_all, &flows[i]);
    }
    for (uint32_t i = 0; i < cut_count; i++) {
        cut(world, i % hosts, true);
        quoit_clock_sleep_ns(20000000);
        cut(world, i % hosts, false);
        quoit_clock_sleep_ns(20000000);
    }
    for (uint32_t i = 0; i < hosts; i++) {
        pthread_join(flows[i].sender, NULL);
        pthread_join(flows[i].receiver, NULL);
        received += flows[i].received;
    }
    struct quoit_veth_stats sum = sum_of(world);
    uint32_t sent = cut_count == 0 ? hosts * count : 0; /* at least */
    for (uint32_t ms = 0; ms < COUNT_MS && (sum.received_frames < received || sum.sent_frames < sent); ms++) {
        quoit_clock_sleep_ns(1000000); /* some counts come a moment later than their frames */
        sum = sum_of(world);
    }
    assert_int_equal(received, sum.received_frames);
    assert_int_equal(sum.malformed_frames, 0);
    if (cut_count == 0) { /* nothing is lost but what the device refuses */
        assert_int_equal(sum.sent_frames, hosts * count);
        assert_int_equal(received + sum.refused_frames, hosts * count);
    }
    assert_in_range(received, hosts * count / 4, hosts * count);
}

static void everybody_to_everybody(void **state)
{
    (void)state;
    for (uint32_t host_count = 2; host_count <= 5; host_count++) {
        struct world *world = open_world(host_count);
        run_flows(world, 400, 0);
        close_world(world);
    }
}

/* Links with a rate: frames are read into what is posted, and read back where they go another way. */
static void over_a_slow_wire(void **state)
{
    (void)state;
    for (uint32_t cut_count = 0; cut_count <= 4; cut_count += 4) {
        struct world *world =
            open_on(&(struct quoit_port_knobs){.rate_bytes_per_s = 300000000}, 4, 1, QUOIT_VETH_DMA_NEVER);
        run_flows(world, 300, cut_count);
        settle(world);
        close_world(world);
    }
}

static void several_channels(void **state)
{
    (void)state;
    for (uint32_t cut_count = 0; cut_count <= 4; cut_count += 4) {
        struct world *world = open_channels(4, 2, QUOIT_VETH_DMA_NEVER, 0);
        run_flows(world, 400, cut_count);
        settle(world);
        for (uint32_t from = 0; from < 4; from++)
            expect_broadcast(world, from, from);
        close_world(world);
    }
}

/* All frames by DMA, or the large ones, with an engine that fails at times, and links that are cut. */
static void by_dma(void **state)
{
    (void)state;
    for (uint32_t turn = 0; turn < 4; turn++) {
        struct world *world = open_channels(4, 1 + turn % 2, turn < 2 ? 0 : 20000, 100);
        struct quoit_veth_stats stats;
        run_flows(world, 400, turn == 3 ? 4 : 0);
        stats = stats_of(world, 0);
        assert_in_range(stats.dma_frames, turn < 2 ? stats.sent_frames : stats.sent_frames / 8,
                        turn < 2 ? stats.sent_frames : stats.sent_frames / 2);
        settle(world);
        close_world(world);
    }
}

static void links_are_cut_meanwhile(void **state)
{
    struct world *world = open_world(5);
    struct body body;
    (void)state;
    run_flows(world, 400, 10);
    settle(world);
    for (uint32_t from = 0; from < 5; from++) /* and then all is as before */
        for (uint32_t to = 0; to < 5; to++) {
            if (from == to)
                continue;
            send_to(&world->hosts[from], to, 5000, 500);
            assert_true(receive_frame(&world->hosts[to], WAIT_MS, &body));
            assert_int_equal(body.number, 5000);
        }
    close_world(world);
}

static void headers_are_checked(void **state)
{
    const struct quoit_veth_header good = {.kind = QUOIT_VETH_ETHERNET, .hops = 1, .source = 1, .dest = 2, .bytes = 64};
    struct quoit_veth_header bad[] = {good, good, good, good, good, good, good, good};
    (void)state;
    assert_true(quoit_veth_header_is_valid(&good, 3));
    bad[0].kind = QUOIT_VETH_KIND_COUNT;
    bad[1].hops = 0;
    bad[2].hops = 3;
    bad[3].source = 3;
    bad[4].dest = 3;
    bad[5].bytes = HEADER - 1;
    bad[6].bytes = FRAME_BYTES + 1;
    bad[7].is_turned = 2;
    for (uint32_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(quoit_veth_header_is_valid(&bad[i], 3));
}

static void limits_are_named(void **state)
{
    struct quoit_veth_config config = {.host_count = QUOIT_VETH_HOSTS_MAX + 1, .channel_count = 1};
    struct quoit_veth *veth;
    uint8_t mac[QUOIT_MAC_BYTES];
    (void)state;
    assert_int_equal(quoit_veth_open(&config, &veth), QUOIT_OUT_OF_RANGE);
    config.host_count = 1;
    assert_int_equal(quoit_veth_open(&config, &veth), QUOIT_OUT_OF_RANGE);
    config.host_count = 2;
    config.channel_count = QUOIT_VETH_CHANNELS_MAX + 1;
    assert_int_equal(quoit_veth_open(&config, &veth), QUOIT_OUT_OF_RANGE);
    quoit_veth_mac(RING, QUOIT_VETH_HOSTS_MAX - 1, mac); /* each host has an address, also the last */
    struct quoit_veth_macs macs = {.ring = RING, .host_count = QUOIT_VETH_HOSTS_MAX};
    assert_int_equal(quoit_veth_host_of(&macs, mac), QUOIT_VETH_HOSTS_MAX - 1);
    /* The largest frame, with a VLAN tag, fits into a slot. */
    assert_in_range(HEADER + QUOIT_VETH_MTU_MAX + 4, 1, FRAME_BYTES);
}

static uint64_t offset_of_slot(uint64_t ordinal)
{
    return offsetof(struct quoit_veth_range, slots) + ordinal % QUOIT_VETH_SLOT_COUNT * QUOIT_VETH_SLOT_BYTES;
}

/* In the host's memory: what its left neighbour writes. */
static const struct quoit_veth_range *left_range(const struct world *world, uint32_t host)
{
    uint64_t offset = quoit_veth_bytes(1) - QUOIT_SIDE_COUNT * sizeof(struct quoit_veth_range);
    return (const void *)((const char *)world->rig.hosts[host].memory + offset);
}

#define GARBAGE 30u /* frames, of which no slot is written twice */

/* A neighbour writes random bytes as headers and counts; the host goes on. */
static void garbage(void **state)
{
    struct world *world = open_world(3);
    struct quoit_port *port = quoit_service_port(world->hosts[0].service, QUOIT_RIGHT);
    struct quoit_prng prng;
    struct body body;
    (void)state;
    prng.state = 7;
    settle(world); /* host 0 sends nothing by itself any more */
    const uint64_t first = atomic_load(&left_range(world, 1)->sent);
    for (uint64_t ordinal = first; ordinal < first + GARBAGE; ordinal++) {
        uint8_t bytes[sizeof(struct quoit_veth_header)];
        for (uint32_t i = 0; i < sizeof bytes; i++)
            bytes[i] = (uint8_t)quoit_prng_choose(&prng, 256);
        assert_int_equal(quoit_port_write(port, QUOIT_WINDOW_SLOTS, offset_of_slot(ordinal), bytes, sizeof bytes),
                         QUOIT_OK);
        assert_int_equal(
            quoit_port_write64(port, QUOIT_WINDOW_SLOTS, offsetof(struct quoit_veth_range, sent), ordinal + 1),
            QUOIT_OK);
        quoit_port_ring(port, atomic_load(&world->hosts[0].records[QUOIT_RIGHT].peer_doorbells));
    }
    for (uint32_t wait = 0; stats_of(world, 1).malformed_frames < GARBAGE && wait < WAIT_MS; wait++)
        quoit_clock_sleep_ns(1000000);
    assert_int_equal(stats_of(world, 1).malformed_frames, GARBAGE);
    /* Counts that cannot be. */
    assert_int_equal(
        quoit_port_write64(port, QUOIT_WINDOW_SLOTS, offsetof(struct quoit_veth_range, consumed), 1u << 30), QUOIT_OK);
    assert_int_equal(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, offsetof(struct quoit_veth_range, sent), 1u << 30),
                     QUOIT_OK);
    quoit_port_ring(port, atomic_load(&world->hosts[0].records[QUOIT_RIGHT].peer_doorbells));
    send_to(&world->hosts[2], 1, 9, 300);
    assert_true(receive_frame(&world->hosts[1], WAIT_MS, &body));
    close_world(world);
}

/* All slots, from the left neighbour. */
static void fill_slots(struct world *world, uint32_t host, uint8_t value)
{
    static uint8_t bytes[QUOIT_VETH_SLOT_BYTES];
    memset(bytes, value, sizeof bytes);
    for (uint32_t slot = 0; slot < QUOIT_VETH_SLOT_COUNT; slot++)
        assert_int_equal(quoit_port_write(quoit_service_port(world->hosts[host - 1].service, QUOIT_RIGHT),
                                          QUOIT_WINDOW_SLOTS, offset_of_slot(slot), bytes, sizeof bytes),
                         QUOIT_OK);
}

#define TRUE_BYTES  100u
#define FALSE_BYTES 100000u /* no header with so many is valid */
#define CHANGES     3000u

/* Host 0 writes a frame, and changes the length in its header while host 1 takes it. */
static void send_changing(struct world *world, uint64_t ordinal, uint16_t dest)
{
    struct quoit_port *port = quoit_service_port(world->hosts[0].service, QUOIT_RIGHT);
    const struct quoit_veth_header header = {.hops = dest, .source = 0, .dest = dest, .bytes = TRUE_BYTES};
    const uint64_t length_at = offset_of_slot(ordinal) + offsetof(struct quoit_veth_header, bytes);
    const uint64_t taken = stats_of(world, 1).link_in_frames;
    assert_int_equal(quoit_port_write_marked(port, QUOIT_WINDOW_SLOTS, offset_of_slot(ordinal), &header, sizeof header,
                                             offsetof(struct quoit_veth_range, sent), ordinal + 1),
                     QUOIT_OK);
    quoit_port_ring(port, atomic_load(&world->hosts[0].records[QUOIT_RIGHT].peer_doorbells));
    const uint64_t end_ns = quoit_clock_now_ns() + WAIT_MS * UINT64_C(1000000);
    for (uint32_t i = 0; stats_of(world, 1).link_in_frames == taken; i++) {
        assert_true(quoit_clock_now_ns() < end_ns);
        assert_int_equal(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, length_at, i % 2 ? TRUE_BYTES : FALSE_BYTES),
                         QUOIT_OK);
    }
}

/* The length that was checked is the one that is used: neither a device nor a slot of the next host gets more. */
static void headers_that_change(void **state)
{
    static const uint8_t nothing[QUOIT_VETH_SLOT_BYTES];
    static uint8_t got[FALSE_BYTES];
    const size_t frame_bytes = sizeof(struct quoit_veth_header) + TRUE_BYTES;
    uint32_t count = 0;
    ssize_t bytes;
    (void)state;
#if defined(__SANITIZE_THREAD__)
    skip(); /* a neighbour that writes what is being read is the race that it would report */
#endif
    struct world *world = open_world(3);
    settle(world); /* host 0 sends nothing by itself any more */
    fill_slots(world, 1, 0xee);
    fill_slots(world, 2, 0);
    const uint64_t first = atomic_load(&left_range(world, 1)->sent);
    for (uint64_t i = 0; i < CHANGES; i++) {
        send_changing(world, first + i, 1 + i % 2);
        for (uint32_t host = 1; host < 3; host++)
            while ((bytes = recv(world->hosts[host].far[0], got, sizeof got, MSG_DONTWAIT)) > 0) {
                assert_int_equal(bytes, TRUE_BYTES);
                count++;
            }
    }
    assert_in_range(count, 1, CHANGES);
    for (uint32_t slot = 0; slot < QUOIT_VETH_SLOT_COUNT; slot++)
        assert_memory_equal(left_range(world, 2)->slots[slot] + frame_bytes, nothing, sizeof nothing - frame_bytes);
    close_world(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(headers_are_checked),
        cmocka_unit_test(limits_are_named),
        cmocka_unit_test(every_pair),
        cmocka_unit_test(broadcast),
        cmocka_unit_test(foreign_addresses),
        cmocka_unit_test(everybody_to_everybody),
        cmocka_unit_test(over_a_slow_wire),
        cmocka_unit_test(several_channels),
        cmocka_unit_test(by_dma),
        cmocka_unit_test(links_are_cut_meanwhile),
        cmocka_unit_test(garbage),
        cmocka_unit_test(headers_that_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
