/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: fabric, proxy, ring and port together move every byte correctly under all kinds of concurrent operations.
 * Method: rings of hosts in one process: each host has memory, links and a proxy thread; each PE is a thread with a
 * fabric of its own. Every (source, destination) pair owns a piece of the destination's segment that only the source
 * writes; the source models it and compares after quiet, by gets, and the destination's memory is compared with all
 * models at the end. Counters updated by atomics of all PEs have known sums. In some worlds a thread meanwhile cuts and
 * mends links at random instants, one and sometimes two at once. In others the PEs do nothing but meet in the papers'
 * barrier. QUOIT_SEED replays a failure. */
#include "fabric/fabric.h"
#include "base/prng.h"
#include "env/clock.h"
#include "fabric/proxies_rig.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#define PES_MAX           16
#define PIECE_BYTES       20000u
#define STEP_COUNT        150
#define FAULTY_STEP_COUNT 500
#define CUT_NS_MAX        4000000
#define BARRIER_COUNT     40u
#define LATE_NS           2000000u

struct world {
    struct proxies_rig rig; /* first */
    uint64_t seed;
    unsigned char *models;  /* [source][destination][PIECE_BYTES] */
    _Atomic uint64_t added; /* sum of what all PEs added to the counters */
    _Atomic uint32_t error_count;
    bool has_faults;
    _Atomic bool is_over;        /* the PEs are done: no more faults */
    _Atomic bool is_stopping;    /* the proxies are stopped one after another */
    _Atomic uint32_t step_count; /* of all PEs */
    uint32_t cut_count;
    _Atomic uint32_t entered_count; /* barriers, by all PEs */
};

struct pe {
    struct world *world;
    uint32_t index;
    pthread_t thread;
};

/* Only a neighbour that stopped earlier may look like a link that is down for good. */
static void note_cut_off(void *arg, uint32_t first_link, uint32_t second_link)
{
    struct world *world = arg;
    if (!world->is_stopping) {
        fprintf(stderr, "links %u and %u are told to be dead (QUOIT_SEED=%llu)\n", first_link, second_link,
                (unsigned long long)world->seed);
        atomic_fetch_add(&world->error_count, 1);
    }
}

static unsigned char *model_of(struct world *world, uint32_t source, uint32_t destination)
{
    return world->models + ((size_t)source * world->rig.job.pe_count + destination) * PIECE_BYTES;
}

/* Where the pair's piece lies in the destination's segment; counters stand before the pieces. */
static uint64_t piece_of(const struct quoit_fabric *fabric, uint32_t source)
{
    return fabric->self.layout.segment_heap + 4096 + (uint64_t)source * PIECE_BYTES;
}

static void note_error(struct world *world, const struct quoit_fabric *fabric, const char *what, uint32_t pe)
{
    if (atomic_fetch_add(&world->error_count, 1) < 5)
        fprintf(stderr, "PE %u -> %u: %s (QUOIT_SEED=%llu)\n", fabric->self.pe, pe, what,
                (unsigned long long)world->seed);
}

static void fill(struct quoit_prng *prng, unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)quoit_prng_next(prng);
}

static void step_put(struct world *world, struct quoit_fabric *fabric, struct quoit_prng *prng, uint32_t pe,
                     unsigned char *buffer)
{
    struct quoit_context *context = &fabric->default_context;
    size_t bytes = quoit_prng_choose(prng, quoit_prng_choose(prng, 2) ? 64 : PIECE_BYTES / 2);
    size_t at = quoit_prng_choose(prng, PIECE_BYTES - bytes - 8);
    fill(prng, buffer, bytes);
    quoit_fabric_fence(fabric, context); /* pieces of one pair overlap between steps */
    memcpy(model_of(world, fabric->self.pe, pe) + at, buffer, bytes);
    uint64_t offset = piece_of(fabric, fabric->self.pe) + at;
    if (quoit_prng_choose(prng, 2)) {
        quoit_fabric_put(fabric, context, offset, buffer, bytes, pe);
    } else {
        quoit_fabric_put_nbi(fabric, context, offset, buffer, bytes, pe);
        quoit_fabric_quiet(fabric, context);
    }
}

static void step_get(struct world *world, struct quoit_fabric *fabric, struct quoit_prng *prng, uint32_t pe,
                     unsigned char *buffer)
{
    struct quoit_context *context = &fabric->default_context;
    size_t bytes = quoit_prng_choose(prng, PIECE_BYTES);
    size_t at = quoit_prng_choose(prng, PIECE_BYTES - bytes);
    quoit_fabric_quiet(fabric, context);
    memset(buffer, 0xee, bytes);
    if (quoit_prng_choose(prng, 2)) {
        quoit_fabric_get(fabric, context, buffer, piece_of(fabric, fabric->self.pe) + at, bytes, pe);
    } else {
        quoit_fabric_get_nbi(fabric, context, buffer, piece_of(fabric, fabric->self.pe) + at, bytes, pe);
        quoit_fabric_quiet(fabric, context);
    }
    if (memcmp(buffer, model_of(world, fabric->self.pe, pe) + at, bytes) != 0)
        note_error(world, fabric, "a get differs from what was put", pe);
}

static void step_strided(struct world *world, struct quoit_fabric *fabric, struct quoit_prng *prng, uint32_t pe,
                         unsigned char *buffer)
{
    struct quoit_context *context = &fabric->default_context;
    unsigned char *model = model_of(world, fabric->self.pe, pe);
    uint32_t element_bytes = 1u << quoit_prng_choose(prng, 5);
    ptrdiff_t remote = (ptrdiff_t)(element_bytes * (1 + quoit_prng_choose(prng, 3)));
    ptrdiff_t own = (ptrdiff_t)(element_bytes * (1 + quoit_prng_choose(prng, 2)));
    struct quoit_strided strided = {.offset = piece_of(fabric, fabric->self.pe),
                                    .remote_stride = remote,
                                    .private_stride = own,
                                    .count = quoit_prng_choose(prng, 300),
                                    .element_bytes = element_bytes};
    fill(prng, buffer, strided.count * (size_t)own);
    quoit_fabric_fence(fabric, context);
    quoit_fabric_iput(fabric, context, &strided, buffer, pe);
    for (size_t i = 0; i < strided.count; i++)
        memcpy(model + (ptrdiff_t)i * remote, buffer + (ptrdiff_t)i * own, element_bytes);
    quoit_fabric_quiet(fabric, context);
    unsigned char *back = calloc(1, PIECE_BYTES);
    quoit_fabric_iget(fabric, context, &strided, back, pe);
    for (size_t i = 0; i < strided.count; i++)
        if (memcmp(back + (ptrdiff_t)i * own, buffer + (ptrdiff_t)i * own, element_bytes) != 0)
            note_error(world, fabric, "an iget differs from the iput", pe);
    free(back);
}

static void step_atomic(struct world *world, struct quoit_fabric *fabric, struct quoit_prng *prng, uint32_t pe)
{
    struct quoit_context *context = &fabric->default_context;
    uint64_t more = quoit_prng_choose(prng, 1000);
    uint64_t counter = fabric->self.layout.segment_heap + 8 * quoit_prng_choose(prng, 4);
    atomic_fetch_add(&world->added, more);
    if (quoit_prng_choose(prng, 2))
        quoit_fabric_amo(fabric, context, QUOIT_AMO_ADD, 8, counter, more, pe);
    else
        quoit_fabric_amo_fetch(fabric, context, QUOIT_AMO_ADD, 8, counter, more, 0, pe);
}

/* Data, then a signal: the own word at the other PE counts up, so a later get of both must agree. */
static void step_signal(struct world *world, struct quoit_fabric *fabric, struct quoit_prng *prng, uint32_t pe,
                        unsigned char *buffer)
{
    struct quoit_context *context = &fabric->default_context;
    size_t bytes = quoit_prng_choose(prng, PIECE_BYTES - 8);
    struct quoit_signal signal = {
        .offset = fabric->self.layout.segment_heap + 1024 + 8 * fabric->self.pe, .value = 1, .op = QUOIT_AMO_ADD};
    fill(prng, buffer, bytes);
    quoit_fabric_fence(fabric, context);
    memcpy(model_of(world, fabric->self.pe, pe), buffer, bytes);
    uint64_t before = quoit_fabric_amo_fetch(fabric, context, QUOIT_AMO_FETCH, 8, signal.offset, 0, 0, pe);
    if (quoit_prng_choose(prng, 2)) { /* a set may use another transport than an add */
        signal.op = QUOIT_AMO_SET;
        signal.value = before + 1;
    }
    quoit_fabric_put_signal(fabric, context, piece_of(fabric, fabric->self.pe), buffer, bytes, &signal, pe, false);
    while (quoit_fabric_amo_fetch(fabric, context, QUOIT_AMO_FETCH, 8, signal.offset, 0, 0, pe) != before + 1)
        ;
    unsigned char *back = malloc(PIECE_BYTES);
    quoit_fabric_get(fabric, context, back, piece_of(fabric, fabric->self.pe), bytes, pe);
    if (memcmp(back, buffer, bytes) != 0)
        note_error(world, fabric, "a signal came before its data", pe);
    free(back);
}

static void *run_pe(void *arg)
{
    struct pe *pe = arg;
    struct world *world = pe->world;
    struct quoit_fabric *fabric = rig_open_fabric(&world->rig, pe->index);
    struct quoit_prng prng = {.state = world->seed * 1000 + pe->index};
    unsigned char *buffer = malloc(2 * PIECE_BYTES);
    int step_count = world->has_faults ? FAULTY_STEP_COUNT : STEP_COUNT;
    for (int i = 0; i < step_count; i++) {
        uint32_t other = (uint32_t)quoit_prng_choose(&prng, world->rig.job.pe_count);
        switch (quoit_prng_choose(&prng, 6)) {
        case 0:
        case 1:
            step_put(world, fabric, &prng, other, buffer);
            break;
        case 2:
            step_get(world, fabric, &prng, other, buffer);
            break;
        case 3:
            step_strided(world, fabric, &prng, other, buffer);
            break;
        case 4:
            step_atomic(world, fabric, &prng, other);
            break;
        default:
            step_signal(world, fabric, &prng, other, buffer);
        }
        atomic_fetch_add(&world->step_count, 1);
    }
    quoit_fabric_quiet(fabric, &fabric->default_context);
    free(buffer);
    rig_close_fabric(&world->rig, fabric);
    return NULL;
}

/* Nobody leaves a barrier before all have entered it; another PE each time comes late. */
static void *run_barriers(void *arg)
{
    struct pe *pe = arg;
    struct world *world = pe->world;
    struct quoit_fabric *fabric = rig_open_fabric(&world->rig, pe->index);
    for (uint32_t round = 1; round <= BARRIER_COUNT; round++) {
        if (round % world->rig.job.pe_count == pe->index)
            quoit_clock_sleep_ns(LATE_NS);
        atomic_fetch_add(&world->entered_count, 1);
        quoit_fabric_host_barrier(fabric, "barrier");
        if (atomic_load(&world->entered_count) < round * world->rig.job.pe_count)
            note_error(world, fabric, "a host left a barrier early", pe->index);
    }
    rig_close_fabric(&world->rig, fabric);
    return NULL;
}

/* Cuts and mends one link, and occasionally two at once. Between cuts the PEs complete some steps, however slow the
 * machine is. */
static void *run_faults(void *arg)
{
    struct world *world = arg;
    struct quoit_prng prng = {.state = world->seed + 77};
    struct quoit_port *ports[RIG_HOSTS_MAX];
    uint32_t host_count = world->rig.job.host_count;
    for (uint32_t i = 0; i < host_count; i++) {
        struct quoit_port_config configs[QUOIT_SIDE_COUNT];
        rig_ports(&world->rig.ring, &world->rig.ring.hosts[i], configs);
        if (quoit_port_open(&configs[QUOIT_RIGHT], &ports[i]) != QUOIT_OK)
            abort();
    }
    while (!world->is_over) {
        uint32_t steps_wanted = world->step_count + 2 * world->rig.job.pe_count;
        uint32_t first = (uint32_t)quoit_prng_choose(&prng, host_count);
        uint32_t second = quoit_prng_choose(&prng, 4) ? first : (uint32_t)quoit_prng_choose(&prng, host_count);
        if (quoit_port_cut(ports[first]) != QUOIT_OK || quoit_port_cut(ports[second]) != QUOIT_OK)
            abort();
        if (quoit_prng_choose(&prng, 3)) /* else it is back before anyone may have noticed */
            quoit_clock_sleep_ns(quoit_prng_choose(&prng, CUT_NS_MAX));
        if (quoit_port_mend(ports[second]) != QUOIT_OK || quoit_port_mend(ports[first]) != QUOIT_OK)
            abort();
        world->cut_count++;
        do
            quoit_clock_sleep_ns(quoit_prng_choose(&prng, 3 * CUT_NS_MAX));
        while (world->step_count < steps_wanted && !world->is_over);
    }
    for (uint32_t i = 0; i < host_count; i++)
        quoit_port_close(ports[i]);
    return NULL;
}

/* The faults took effect: proxies saw links go down and retransmitted frames. */
static void check_faults(struct world *world)
{
    uint64_t down_count = 0, resend_count = 0;
    for (uint32_t i = 0; i < world->rig.job.host_count; i++) {
        const struct rig_host *host = &world->rig.ring.hosts[i];
        const struct quoit_host_header *header = host->memory;
        for (int side = 0; side < QUOIT_SIDE_COUNT; side++) {
            down_count += header->links[side].outage_count;
            for (uint32_t lane = 0; lane < world->rig.job.lane_count; lane++)
                resend_count += quoit_memory_lane(&host->layout, host->memory, lane)->out[side].resend_count;
        }
    }
    print_message("%u cuts, seen %llu times, %llu frames sent again\n", world->cut_count,
                  (unsigned long long)down_count, (unsigned long long)resend_count);
    assert_true(world->cut_count > 0);
    assert_true(down_count > 0);
}

static void check_memory(struct world *world)
{
    uint64_t sum = 0;
    for (uint32_t to = 0; to < world->rig.job.pe_count; to++) {
        const struct rig_host *host = rig_host_of(&world->rig, to);
        char *segment = (char *)host->memory + quoit_layout_segment(&host->layout, to - host->layout.first_pe);
        for (int i = 0; i < 4; i++)
            sum += ((uint64_t *)(segment + host->layout.segment_heap))[i];
        for (uint32_t from = 0; from < world->rig.job.pe_count; from++)
            assert_memory_equal(segment + host->layout.segment_heap + 4096 + (uint64_t)from * PIECE_BYTES,
                                model_of(world, from, to), PIECE_BYTES);
    }
    assert_int_equal(sum, world->added);
}

static void run_world_with(struct quoit_job_config job, struct quoit_port_knobs knobs, bool has_faults,
                           void *(*run)(void *pe))
{
    pthread_t faults;
    struct world *world = calloc(1, sizeof *world);
    struct pe pes[PES_MAX];
    const char *seed = getenv("QUOIT_SEED");
    job.data_bytes = 4096;
    job.heap_bytes = job.heap_bytes ? job.heap_bytes : 1 << 20;
    world->rig.job = job;
    world->rig.knobs = knobs;
    world->rig.policy = quoit_wait_policy_for(100, 2);
    world->rig.link_limit_ns = 100000000000u;
    world->rig.dma_bytes = knobs.dma_failures ? 1 : QUOIT_DMA_NEVER;
    world->rig.on_cut_off = note_cut_off;
    world->seed = seed ? strtoull(seed, NULL, 10) : 1;
    world->models = calloc((size_t)job.pe_count * job.pe_count, PIECE_BYTES);
    world->has_faults = has_faults;
    rig_start(&world->rig);
    if (has_faults)
        assert_int_equal(pthread_create(&faults, NULL, run_faults, world), 0);
    for (uint32_t i = 0; i < job.pe_count; i++) {
        pes[i] = (struct pe){.world = world, .index = i};
        assert_int_equal(pthread_create(&pes[i].thread, NULL, run, &pes[i]), 0);
    }
    for (uint32_t i = 0; i < job.pe_count; i++)
        pthread_join(pes[i].thread, NULL);
    world->is_over = true;
    if (has_faults)
        pthread_join(faults, NULL);
    assert_int_equal(world->error_count, 0);
    world->is_stopping = true;
    rig_stop(&world->rig);
    assert_int_equal(world->error_count, 0);
    if (has_faults)
        check_faults(world);
    check_memory(world);
    rig_end(&world->rig);
    free(world->models);
    free(world);
}

static void run_world(struct quoit_job_config job, struct quoit_port_knobs knobs)
{
    run_world_with(job, knobs, false, run_pe);
}

static void test_two_hosts(void **state)
{
    (void)state;
    run_world(
        (struct quoit_job_config){
            .host_count = 2, .pe_count = 2, .lane_count = 1, .slot_count = 8, .chunk_bytes = 4096},
        (struct quoit_port_knobs){0});
}

static void test_five_hosts(void **state)
{
    (void)state;
    run_world(
        (struct quoit_job_config){
            .host_count = 5, .pe_count = 5, .lane_count = 1, .slot_count = 8, .chunk_bytes = 4096},
        (struct quoit_port_knobs){0});
}

static void test_eight_hosts_fewest_slots(void **state)
{
    (void)state;
    run_world(
        (struct quoit_job_config){
            .host_count = 8, .pe_count = 8, .lane_count = 1, .slot_count = 2, .chunk_bytes = 1024},
        (struct quoit_port_knobs){0});
}

static void test_blocks_of_pes_and_lanes(void **state)
{
    (void)state;
    run_world(
        (struct quoit_job_config){
            .host_count = 3, .pe_count = 7, .lane_count = 4, .slot_count = 4, .chunk_bytes = 2048},
        (struct quoit_port_knobs){0});
}

/* A window of 16 MiB over two segments of 10 MiB: the pieces in the second lie behind its end, and go by requests.
 */
static void test_small_memory_window(void **state)
{
    (void)state;
    const struct quoit_job_config job = {
        .host_count = 3, .pe_count = 6, .lane_count = 2, .slot_count = 4, .chunk_bytes = 4096, .heap_bytes = 3u << 20};
    struct quoit_job_config whole = job;
    struct quoit_layout layout;
    whole.data_bytes = 4096;
    assert_int_equal(quoit_layout_make(&whole, 0, &layout), QUOIT_OK);
    assert_int_equal(layout.segment_stride, 10u << 20);
    run_world(job, (struct quoit_port_knobs){.window_bytes = {0, 16u << 20}});
}

static void test_window_within_heap(void **state)
{
    (void)state;
    run_world(
        (struct quoit_job_config){
            .host_count = 4, .pe_count = 4, .lane_count = 1, .slot_count = 3, .chunk_bytes = 4096},
        (struct quoit_port_knobs){.window_bytes = {0, 1u << 21}});
}

static void run_faulty(uint32_t host_count, uint32_t pe_count, uint32_t lane_count, uint32_t slot_count)
{
    run_world_with((struct quoit_job_config){.host_count = host_count,
                                             .pe_count = pe_count,
                                             .lane_count = lane_count,
                                             .slot_count = slot_count,
                                             .chunk_bytes = 2048},
                   (struct quoit_port_knobs){0}, true, run_pe);
}

static void test_faults_two_hosts(void **state)
{
    (void)state;
    run_faulty(2, 4, 1, 4);
}

static void test_faults_three_hosts_two_lanes(void **state)
{
    (void)state;
    run_faulty(3, 6, 2, 4);
}

static void test_faults_five_hosts(void **state)
{
    (void)state;
    run_faulty(5, 5, 1, 2);
}

static void test_faults_eight_hosts(void **state)
{
    (void)state;
    run_faulty(8, 8, 2, 3);
}

/* Everything that can goes by DMA, which sometimes fails; lanes share channels, and large transfers use all of them. */
static void test_dma(void **state)
{
    (void)state;
    run_world(
        (struct quoit_job_config){
            .host_count = 5, .pe_count = 5, .lane_count = 4, .slot_count = 3, .chunk_bytes = 1024},
        (struct quoit_port_knobs){.dma_failures = 50});
}

static void test_dma_with_faults(void **state)
{
    (void)state;
    run_world_with(
        (struct quoit_job_config){
            .host_count = 3, .pe_count = 6, .lane_count = 2, .slot_count = 4, .chunk_bytes = 1024},
        (struct quoit_port_knobs){.dma_failures = 50}, true, run_pe);
}

/* The same operations on the papers' protocol, which has another engine in the proxy. */
static struct quoit_job_config papers(uint32_t host_count, uint32_t pe_count, uint32_t lane_count, uint32_t chunk_bytes)
{
    return (struct quoit_job_config){.host_count = host_count,
                                     .pe_count = pe_count,
                                     .lane_count = lane_count,
                                     .slot_count = 2,
                                     .chunk_bytes = chunk_bytes,
                                     .protocol = QUOIT_PROTOCOL_SCRATCHPAD};
}

static void test_papers_two_hosts(void **state)
{
    (void)state;
    run_world(papers(2, 2, 1, 4096), (struct quoit_port_knobs){0});
}

static void test_papers_five_hosts_two_threads(void **state)
{
    (void)state;
    run_world(papers(5, 5, 2, 4096), (struct quoit_port_knobs){0});
}

static void test_papers_eight_hosts(void **state)
{
    (void)state;
    run_world(papers(8, 8, 1, 1024), (struct quoit_port_knobs){0});
}

static void test_papers_blocks_and_four_threads(void **state)
{
    (void)state;
    run_world(papers(3, 7, 4, 2048), (struct quoit_port_knobs){.dma_channel_count = 1});
}

static void test_papers_eight_threads(void **state)
{
    (void)state;
    run_world(papers(4, 4, 8, 2048), (struct quoit_port_knobs){0});
}

static void test_papers_copied_payload(void **state)
{
    (void)state;
    struct quoit_job_config job = papers(5, 6, 2, 4096);
    job.payload = QUOIT_PAYLOAD_COPY;
    run_world(job, (struct quoit_port_knobs){0});
}

/* Every second descriptor fails after a part of it was written: what the papers' lane then copies is whole. */
static void test_papers_dma_failures(void **state)
{
    (void)state;
    run_world(papers(3, 5, 2, 4096), (struct quoit_port_knobs){.dma_failures = 500});
}

/* A window that ends in the first segment: beyond it payload goes through the bypass buffers. */
static void test_papers_small_memory_window(void **state)
{
    (void)state;
    run_world(papers(3, 6, 2, 4096), (struct quoit_port_knobs){.window_bytes = {0, 8u << 20}});
}

/* Their barrier, with either protocol. */
static void test_papers_barrier(void **state)
{
    (void)state;
    for (uint8_t protocol = QUOIT_PROTOCOL_QUEUE; protocol <= QUOIT_PROTOCOL_SCRATCHPAD; protocol++) {
        struct quoit_job_config job = papers(4, 4, 1, 1024);
        job.protocol = protocol;
        job.barrier = QUOIT_BARRIER_PAPERS;
        run_world_with(job, (struct quoit_port_knobs){0}, false, run_barriers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_hosts),
        cmocka_unit_test(test_five_hosts),
        cmocka_unit_test(test_eight_hosts_fewest_slots),
        cmocka_unit_test(test_blocks_of_pes_and_lanes),
        cmocka_unit_test(test_small_memory_window),
        cmocka_unit_test(test_window_within_heap),
        cmocka_unit_test(test_dma),
        cmocka_unit_test(test_dma_with_faults),
        cmocka_unit_test(test_faults_two_hosts),
        cmocka_unit_test(test_faults_three_hosts_two_lanes),
        cmocka_unit_test(test_faults_five_hosts),
        cmocka_unit_test(test_faults_eight_hosts),
        cmocka_unit_test(test_papers_two_hosts),
        cmocka_unit_test(test_papers_five_hosts_two_threads),
        cmocka_unit_test(test_papers_eight_hosts),
        cmocka_unit_test(test_papers_blocks_and_four_threads),
        cmocka_unit_test(test_papers_eight_threads),
        cmocka_unit_test(test_papers_copied_payload),
        cmocka_unit_test(test_papers_dma_failures),
        cmocka_unit_test(test_papers_small_memory_window),
        cmocka_unit_test(test_papers_barrier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
