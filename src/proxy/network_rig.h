/* SPDX-License-Identifier: BSD-3-Clause */
/* network_rig.h - a lane over a network that holds what the lane sends and hands in what the test writes. Included by
 * tests only.
 *
 * What it is: the functions of net/net.h, over a network of two hosts, and the lane of host 0, which has two PEs.
 */
#ifndef QUOIT_PROXY_NETWORK_RIG_H
#define QUOIT_PROXY_NETWORK_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "env/clock.h"
#include "lane/lane.h"
#include "lane/network.h"
#include "net/net.h"
#include "proxy/network.h"

#define CHUNK_BYTES   8192u
#define MESSAGE_BYTES 8192u

/* The network. */
struct quoit_net {
    struct quoit_net_config config;
    struct quoit_net_limits limits;
    struct quoit_net_choice choice;
    struct quoit_net_address address;
    _Alignas(8) char sent[MESSAGE_BYTES]; /* the last message */
    uint32_t sent_bytes;
    uint32_t sent_count;
    uint64_t put_offset, put_bytes, put_cookie; /* of the last put of the network */
    uint32_t put_count;
    bool is_put_done; /* the next progress says so */
    bool is_awaited;
    bool has_left, is_closed;
    _Alignas(8) char coming[MESSAGE_BYTES]; /* for the next progress */
    uint32_t coming_bytes;                  /* 0: nothing */
    uint32_t coming_from; /* 0: host 1, or the own one if that is_looped, else that host or PE endpoint */
    bool is_looped;       /* all is of the own host, not of host 1 */
    uint32_t sent_to;     /* the last message */
};
struct quoit_net_region {
    struct quoit_net_key key;
};

struct world {
    struct quoit_net net;
    struct quoit_net_region region;
    struct quoit_layout layout;
    char *memory;
    struct quoit_lane_network network;
    struct quoit_lane_group group;
    struct quoit_lane lane;
    enum quoit_status open_status, connect_status, attach_status, put_status;
    uint32_t lost_count;               /* how often on_lost was called */
    uint64_t missing_bytes;            /* at the end of what is registered */
    bool is_apart;                     /* the other host takes another network */
    bool is_far;                       /* the other host has processors of its own */
    struct quoit_net_places places[2]; /* of both hosts; none: the network has addresses of its own */
    uint32_t taken_count, taken_place;
    struct quoit_wire_address called_at; /* the other host */
    int wait_fd;                         /* the network's; -1: it has none */
    bool can_arm;                        /* what quoit_net_arm() says */
    uint64_t until_ns;
};
#define POLL_NS 1000000u
static struct world *world_of_net; /* quoit_net_open() has no handle */

static inline uint32_t other_host(const struct quoit_net *net)
{
    return net->is_looped ? 0 : 1;
}

enum quoit_status quoit_net_open(const struct quoit_net_config *config, struct quoit_net **net_out,
                                 char problem[QUOIT_NET_PROBLEM_BYTES])
{
    snprintf(problem, QUOIT_NET_PROBLEM_BYTES, "the rig is broken");
    if (world_of_net->open_status != QUOIT_OK)
        return world_of_net->open_status;
    world_of_net->region.key.memory_bytes = config->memory_bytes - world_of_net->missing_bytes;
    world_of_net->net = (struct quoit_net){.config = *config,
                                           .choice = {.driver = "rig", .provider = "one"},
                                           .limits = {.message_bytes = MESSAGE_BYTES,
                                                      .alignment = 1,
                                                      .transfer_bytes = UINT64_C(1) << 20,
                                                      .takes_pe_endpoints = true}};
    *net_out = &world_of_net->net;
    return QUOIT_OK;
}

void quoit_net_close(struct quoit_net *net)
{
    if (net)
        net->is_closed = true;
}

const struct quoit_net_limits *quoit_net_limits(const struct quoit_net *net)
{
    return &net->limits;
}

const struct quoit_net_choice *quoit_net_choice(const struct quoit_net *net)
{
    return &net->choice;
}

const struct quoit_net_address *quoit_net_address(const struct quoit_net *net)
{
    return &net->address;
}

const struct quoit_net_places *quoit_net_places(const struct quoit_net *net)
{
    (void)net;
    return &world_of_net->places[0];
}

void quoit_net_take_place(struct quoit_net *net, uint32_t place)
{
    (void)net;
    world_of_net->taken_count++;
    world_of_net->taken_place = place;
}

const char *quoit_net_why(const struct quoit_net *net)
{
    (void)net;
    return "";
}

enum quoit_status quoit_net_connect(struct quoit_net *net, uint32_t host, const struct quoit_net_address *address)
{
    (void)net, (void)host;
    world_of_net->called_at = address->at;
    return world_of_net->connect_status;
}

const struct quoit_net_region *quoit_net_region(const struct quoit_net *net)
{
    (void)net;
    return &world_of_net->region;
}

const struct quoit_net_key *quoit_net_region_key(const struct quoit_net_region *region)
{
    return &region->key;
}

enum quoit_status quoit_net_attach(struct quoit_net *net, uint32_t host, const struct quoit_net_key *key,
                                   struct quoit_net_window **window_out)
{
    (void)net, (void)host, (void)key;
    *window_out = NULL;
    return world_of_net->attach_status;
}

enum quoit_status quoit_net_put(struct quoit_net *net, const struct quoit_net_window *window, uint64_t offset,
                                const void *source, const struct quoit_net_region *region, uint64_t bytes,
                                uint64_t cookie)
{
    (void)window, (void)source;
    assert_ptr_equal(region, &world_of_net->region);
    if (world_of_net->put_status != QUOIT_OK)
        return world_of_net->put_status;
    net->put_offset = offset;
    net->put_bytes = bytes;
    net->put_cookie = cookie;
    net->put_count++;
    return QUOIT_OK;
}

enum quoit_status quoit_net_get(struct quoit_net *net, const struct quoit_net_window *window, uint64_t offset,
                                void *destination, const struct quoit_net_region *region, uint64_t bytes,
                                uint64_t cookie)
{
    (void)net, (void)window, (void)offset, (void)destination, (void)region, (void)bytes, (void)cookie;
    fail_msg("no request here is a get of the network");
    return QUOIT_FULL;
}

enum quoit_status quoit_net_send(struct quoit_net *net, uint32_t host, const void *payload, uint32_t bytes)
{
    assert_in_range(host, !net->is_looped, 1 + net->config.pe_endpoint_count);
    assert_in_range(bytes, 1, MESSAGE_BYTES);
    net->sent_to = host;
    memcpy(net->sent, payload, bytes);
    net->sent_bytes = bytes;
    net->sent_count++;
    return QUOIT_OK;
}

void quoit_net_await(struct quoit_net *net, uint32_t host, bool is_awaited)
{
    assert_int_equal(host, other_host(net));
    assert_int_not_equal(net->is_awaited, is_awaited);
    net->is_awaited = is_awaited;
}

uint32_t quoit_net_progress(struct quoit_net *net)
{
    uint32_t bytes = net->coming_bytes;
    bool is_put_done = net->is_put_done;
    net->coming_bytes = 0;
    net->is_put_done = false;
    if (is_put_done)
        net->config.on_done(net->config.arg, other_host(net), net->put_cookie, QUOIT_OK);
    if (bytes)
        net->config.on_message(net->config.arg, net->coming_from ? net->coming_from : other_host(net), net->coming,
                               bytes);
    return bytes != 0 || is_put_done;
}

int quoit_net_wait_fd(const struct quoit_net *net)
{
    (void)net;
    return world_of_net->wait_fd;
}

bool quoit_net_arm(struct quoit_net *net, uint64_t *until_ns_out)
{
    (void)net;
    bool can_arm = world_of_net->can_arm && world_of_net->wait_fd >= 0;
    *until_ns_out = can_arm ? world_of_net->until_ns : quoit_clock_now_ns() + POLL_NS;
    return can_arm;
}

bool quoit_net_is_connected(const struct quoit_net *net, uint32_t host)
{
    (void)net, (void)host;
    return true;
}

enum quoit_status quoit_net_leave(struct quoit_net *net, uint64_t timeout_ns)
{
    (void)timeout_ns;
    assert_false(net->is_closed);
    net->has_left = true;
    return QUOIT_OK;
}

/* The lane of host 0 of two, with two PEs each. */

#define POOL_BYTES    8  /* of a contact: the name of its processors is last, */
#define NETWORK_BYTES 24 /* that of its network before it, and its places before that */

static inline bool exchange(void *arg, const void *own, uint32_t bytes, void *all_out)
{
    (void)arg;
    char *other = (char *)all_out + bytes;
    memcpy(all_out, own, bytes);
    memcpy(other, own, bytes);
    memcpy(other + bytes - POOL_BYTES - NETWORK_BYTES - sizeof world_of_net->places[1], &world_of_net->places[1],
           sizeof world_of_net->places[1]);
    other[bytes - 1] ^= (char)world_of_net->is_far;
    if (world_of_net->is_apart)
        memcpy(other + bytes - POOL_BYTES - NETWORK_BYTES, "rig two", sizeof "rig two");
    return true;
}

static inline void count_lost(void *arg, uint32_t host, bool is_silent)
{
    (void)arg;
    (void)is_silent;
    assert_int_equal(host, 1);
    world_of_net->lost_count++;
}

static inline void make_world_with(struct world *world, bool has_loopback)
{
    const struct quoit_job_config job = {.host_count = 2,
                                         .pe_count = 4,
                                         .lane_count = 1,
                                         .slot_count = 2,
                                         .chunk_bytes = CHUNK_BYTES,
                                         .protocol = QUOIT_PROTOCOL_NETWORK,
                                         .has_loopback = has_loopback,
                                         .heap_bytes = 4096};
    *world = (struct world){.wait_fd = -1};
    world_of_net = world;
    assert_int_equal(quoit_layout_make(&job, 0, &world->layout), QUOIT_OK);
    world->memory = mmap(NULL, world->layout.total_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(world->memory, MAP_FAILED);
    world->network = (struct quoit_lane_network){.exchange = exchange, .on_lost = count_lost};
    world->group = (struct quoit_lane_group){
        .layout = &world->layout, .memory = world->memory, .network = &world->network, .engine = &quoit_network_engine};
}

static inline void make_world(struct world *world)
{
    make_world_with(world, false);
}

static inline void free_world(struct world *world)
{
    munmap(world->memory, world->layout.total_bytes);
}

static inline char *buffer_of(const struct world *world)
{
    return world->memory + quoit_layout_staging(&world->layout, 0, 0, 0);
}

static inline struct quoit_channel *channel_of(const struct world *world)
{
    return quoit_memory_channel(&world->layout, world->memory, 0, 0);
}

static inline void open_world(struct world *world)
{
    make_world(world);
    assert_int_equal(quoit_lane_open(&world->lane, &world->group, 0), QUOIT_OK);
}

/* Local PE `local` hands over a request to the first PE of the other host. */
static inline void submit(struct world *world, uint32_t local, struct quoit_frame frame)
{
    struct quoit_channel *channel = quoit_memory_channel(&world->layout, world->memory, local, 0);
    uint32_t tail = atomic_load(&channel->submit_tail);
    assert_in_range(tail, 0, QUOIT_REQUESTS_A_CHANNEL - 1);
    frame.dest_host = (uint16_t)other_host(&world->net);
    frame.offset = world->layout.segment_heap;
    channel->requests[tail] =
        (struct quoit_request){.frame = frame, .data_offset = quoit_layout_staging(&world->layout, local, 0, tail)};
    channel->submit[tail] = (uint16_t)tail;
    atomic_store(&channel->submit_tail, tail + 1);
}

static inline void submit_put(struct world *world, uint32_t local, uint32_t bytes, uint8_t flags)
{
    submit(world, local, (struct quoit_frame){.kind = QUOIT_FRAME_PUT, .bytes = bytes, .flags = flags});
}

static inline void step(struct world *world)
{
    world->lane.engine->step(&world->lane);
}

/* A message of this frame and its payload, of which the network delivers `bytes`. */
static inline void hand_in(struct world *world, const struct quoit_frame *frame, uint32_t bytes)
{
    memset(world->net.coming, 'd', sizeof world->net.coming);
    memcpy(world->net.coming, frame, sizeof *frame);
    world->net.coming_bytes = bytes;
    step(world);
}

static inline uint64_t heap_word(const struct world *world, uint32_t local, uint32_t index)
{
    uint64_t word;
    memcpy(&word,
           world->memory + quoit_layout_segment(&world->layout, local) + world->layout.segment_heap +
               index * sizeof word,
           sizeof word);
    return word;
}

/* The frame that stands at `at` in the last message. */
static inline struct quoit_frame sent_frame(const struct world *world, uint32_t at)
{
    struct quoit_frame frame;
    assert_in_range(at + sizeof frame, sizeof frame, world->net.sent_bytes);
    memcpy(&frame, world->net.sent + at, sizeof frame);
    return frame;
}

/* A host that closed without a farewell would be taken for lost. */
static inline void close_world(struct world *world)
{
    quoit_lane_close(&world->lane);
    assert_true(world->net.has_left);
    assert_true(world->net.is_closed);
    free_world(world);
}

#endif
