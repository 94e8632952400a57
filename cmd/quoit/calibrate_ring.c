/* SPDX-License-Identifier: BSD-3-Clause */
#include "calibrate.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "coll/team.h"
#include "engine/ring/channel.h"
#include "engine/ring/journal.h"
#include "env/clock.h"
#include "fabric/fabric.h"
#include "host/job_config.h"
#include "lane/lane.h"
#include "port/driver.h"
#include "proxy/proxy.h"

#define HOSTS        2
#define LIMIT_NS     5000000000u
#define HEAP_BYTES   (4u << 20) /* the largest transfer that is predicted */
#define FAR_LEAST    (2u << 20) /* and the least that the own cache of a processor may not hold */
#define IDLE_BYTES   (1u << 20) /* of a ring that does nothing */
#define ROUNDS       2001
#define CROSSINGS    501
#define FLAGS        100u /* of a batch */
#define FLAG_BATCHES 51
#define LINE_BYTES   64
#define CHUNK        32768u
#define COPY_LEAST   128u /* bytes; less is a line */
#define TRIES        5    /* of times that something else may have disturbed */
#define GET_STEPS    3    /* of lanes, with work: request out, data out, data in */

struct host {
    struct quoit_layout layout;
    int memory_fd;
    int link_fd; /* to the right */
    char *memory;
    struct quoit_port_endpoint links[QUOIT_SIDE_COUNT];
    struct quoit_proxy *proxy;
    struct quoit_lane *lane;
};

struct ring {
    struct host hosts[HOSTS];
    struct quoit_fabric *fabric;      /* of PE 0 */
    struct quoit_fabric *other;       /* of PE 1 */
    struct quoit_ring_engine *engine; /* of the fabric */
    struct quoit_regions regions;
    char line[LINE_BYTES];
};

static bool make_host(struct host *host, uint32_t index, uint64_t heap_bytes)
{
    const struct quoit_port_driver *driver = quoit_port_driver_find("emulated");
    const struct quoit_job_config job = {.host_count = HOSTS,
                                         .pe_count = HOSTS,
                                         .lane_count = 1,
                                         .slot_count = 16,
                                         .chunk_bytes = CHUNK,
                                         .heap_bytes = heap_bytes};
    host->memory_fd = host->link_fd = -1;
    host->memory = MAP_FAILED;
    if (!driver || quoit_layout_make(&job, index, &host->layout) != QUOIT_OK ||
        quoit_port_driver_memory(driver, "host", host->layout.total_bytes, &host->memory_fd) != QUOIT_OK ||
        quoit_port_driver_link(driver, &host->link_fd) != QUOIT_OK)
        return false;
    host->memory = mmap(NULL, host->layout.total_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, host->memory_fd, 0);
    return host->memory != MAP_FAILED;
}

static bool describe(const struct host *owner, const struct host *peer, uint32_t side,
                     struct quoit_port_endpoint *endpoint_out)
{
    const struct quoit_port_site site = {.link_fd = owner->link_fd, .peer_memory_fd = peer->memory_fd, .side = side};
    return quoit_port_driver_describe(quoit_port_driver_find("emulated"), &site, endpoint_out) == QUOIT_OK;
}

static void configure_ports(const struct host *host, struct quoit_port_config ports_out[QUOIT_SIDE_COUNT])
{
    for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
        ports_out[side] =
            (struct quoit_port_config){.driver = quoit_port_driver_find("emulated"),
                                       .memory = {.base = host->memory, .bytes = host->layout.total_bytes},
                                       .endpoint = &host->links[side]};
}

static void ignore(void *arg)
{
    (void)arg;
}

static void ignore_cut_off(void *arg, uint32_t first_link, uint32_t second_link)
{
    (void)arg, (void)first_link, (void)second_link;
}

static void *open_host(void *arg)
{
    struct host *host = arg;
    struct quoit_proxy_config config = {.layout = &host->layout,
                                        .memory = host->memory,
                                        .machine.policy = quoit_wait_policy_for(HOSTS, 1),
                                        .link_timeout_ns = LIMIT_NS,
                                        .link_limit_ns = LIMIT_NS,
                                        .dma_bytes = QUOIT_DMA_NEVER,
                                        .on_ready = ignore,
                                        .on_cut_off = ignore_cut_off};
    configure_ports(host, config.ports);
    if (quoit_proxy_open(&config, &host->proxy) != QUOIT_OK)
        host->proxy = NULL;
    else
        host->lane = (struct quoit_lane *)quoit_proxy_lane(host->proxy, 0); /* this thread serves it */
    return NULL;
}

/* Each proxy waits for the other one's links. */
static bool open_hosts(struct ring *ring, uint64_t heap_bytes)
{
    struct host *hosts = ring->hosts;
    pthread_t other;
    if (!make_host(&hosts[0], 0, heap_bytes) || !make_host(&hosts[1], 1, heap_bytes))
        return false;
    for (uint32_t i = 0; i < HOSTS; i++)
        if (!describe(&hosts[i], &hosts[1 - i], 0, &hosts[i].links[QUOIT_RIGHT]) ||
            !describe(&hosts[1 - i], &hosts[1 - i], 1, &hosts[i].links[QUOIT_LEFT]))
            return false;
    if (pthread_create(&other, NULL, open_host, &hosts[1]) != 0)
        return false;
    open_host(&hosts[0]);
    pthread_join(other, NULL);
    return hosts[0].proxy && hosts[1].proxy;
}

static bool open_fabric(struct ring *ring, uint32_t pe, struct quoit_fabric **fabric_out)
{
    struct host *host = &ring->hosts[pe];
    const struct quoit_host_header *header = (const struct quoit_host_header *)host->memory;
    struct quoit_fabric_config config = {
        .layout = &host->layout, .memory = host->memory, .pe_self = pe, .policy = header->machine.policy};
    configure_ports(host, config.ports);
    return quoit_fabric_open(&config, fabric_out) == QUOIT_OK;
}

static bool open_pes(struct ring *ring)
{
    if (!open_fabric(ring, 0, &ring->fabric) || !open_fabric(ring, 1, &ring->other))
        return false;
    ring->engine = (struct quoit_ring_engine *)quoit_fabric_engine(ring->fabric, "ring");
    ring->regions.heap =
        (struct quoit_region){.base = (uintptr_t)ring->fabric->self.segment + ring->hosts[0].layout.segment_heap,
                              .bytes = HEAP_BYTES,
                              .segment_offset = ring->hosts[0].layout.segment_heap};
    ring->fabric->self.regions = &ring->regions;
    return true;
}

static void close_ring(struct ring *ring)
{
    quoit_fabric_close(ring->fabric);
    quoit_fabric_close(ring->other);
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct host *host = &ring->hosts[i];
        quoit_proxy_close(host->proxy);
        if (host->memory && host->memory != MAP_FAILED)
            munmap(host->memory, host->layout.total_bytes);
        if (host->memory_fd > 0)
            close(host->memory_fd);
        if (host->link_fd > 0)
            close(host->link_fd);
    }
}

/* What is timed: the operations of a port, each on the window of the neighbour's segment, and a lane with no work. */

static struct quoit_port *port_of(const struct ring *ring)
{
    return ring->hosts[0].lane->ports[QUOIT_RIGHT];
}

static uint64_t at(const struct ring *ring)
{
    return ring->hosts[0].layout.segment_heap;
}

static void write_word(void *arg)
{
    struct ring *ring = arg;
    (void)!quoit_port_write64(port_of(ring), QUOIT_WINDOW_MEMORY, at(ring), 1);
}

static void write_line(void *arg)
{
    struct ring *ring = arg;
    (void)!quoit_port_write(port_of(ring), QUOIT_WINDOW_MEMORY, at(ring), ring->line, LINE_BYTES);
}

static void write_and_read(void *arg)
{
    struct ring *ring = arg;
    uint64_t word;
    write_word(arg);
    (void)!quoit_port_read(port_of(ring), QUOIT_WINDOW_MEMORY, at(ring), &word, sizeof word);
}

static void ring_doorbell(void *arg)
{
    struct ring *ring = arg;
    quoit_port_ring(port_of(ring), ring->hosts[0].lane->peer_lane_doorbell[QUOIT_RIGHT]);
}

static void clear_doorbell(void *arg)
{
    struct ring *ring = arg;
    quoit_port_doorbell_clear(port_of(ring), ring->hosts[0].lane->hint_bits[QUOIT_RIGHT]);
}

static void put_and_quiet(void *arg)
{
    struct ring *ring = arg;
    struct quoit_context *context = &ring->fabric->default_context;
    quoit_fabric_put_nbi(ring->fabric, context, at(ring), ring->line, sizeof(uint64_t), 1);
    quoit_fabric_quiet(ring->fabric, context);
}

/* A journal of puts that goes round: each copy goes to the place after the last. */
struct journal_copy {
    char from[QUOIT_JOURNAL_PUT_MAX];
    char to[QUOIT_JOURNAL_BYTES];
    size_t at;
};

static void copy_to_journal(void *arg)
{
    struct journal_copy *copy = arg;
    memcpy(copy->to + copy->at, copy->from, sizeof copy->from);
    __asm__ __volatile__("" : : "r"(copy->to) : "memory");
    copy->at = (copy->at + sizeof copy->from) % sizeof copy->to;
}

/* Writes of so many bytes through the window, one after another from the same place to the same, or further on, round
 * and round in `span` bytes. */
struct walk {
    struct ring *ring;
    size_t bytes;
    size_t span;
    size_t from_step, to_step;
    size_t from, to;
};

static void write_on(void *arg)
{
    struct walk *walk = arg;
    const char *own = walk->ring->fabric->self.segment + at(walk->ring);
    (void)!quoit_port_write(port_of(walk->ring), QUOIT_WINDOW_MEMORY, at(walk->ring) + walk->to, own + walk->from,
                            walk->bytes);
    walk->from = (walk->from + walk->from_step) % walk->span;
    walk->to = (walk->to + walk->to_step) % walk->span;
}

static void print_by_size(struct quoit_json *json, size_t bytes, double ns)
{
    char name[32];
    snprintf(name, sizeof name, "%zu", bytes);
    quoit_json_number(json, name, ns);
}

/* A chunk of transfers of these sizes, which displace their own bytes before they come round again. What lies behind
 * the own cache holds some of them, so the cost of a byte depends on the size. */
static void print_far(struct ring *ring, struct quoit_json *json, const char *name, size_t from_step, size_t to_step)
{
    quoit_json_open_object(json, name);
    for (size_t span = FAR_LEAST; span <= HEAP_BYTES; span *= 2) {
        struct walk far = {.ring = ring, .bytes = CHUNK, .span = span, .from_step = from_step, .to_step = to_step};
        print_by_size(json, span, calibrate_time_of(write_on, &far));
    }
    quoit_json_close(json);
}

static void print_walks(struct ring *ring, struct quoit_json *json)
{
    struct walk here = {.ring = ring, .span = HEAP_BYTES};
    struct walk whole = {.ring = ring, .bytes = CHUNK, .span = HEAP_BYTES, .to_step = CHUNK};
    memset(ring->fabric->self.segment + at(ring), 1, HEAP_BYTES);
    for (size_t written = 0; written < HEAP_BYTES; written += CHUNK) /* no page is missing when time is taken */
        write_on(&whole);
    quoit_json_open_object(json, "window_copy_ns");
    for (here.bytes = COPY_LEAST; here.bytes <= CHUNK; here.bytes *= 2)
        print_by_size(json, here.bytes, calibrate_time_of(write_on, &here));
    quoit_json_close(json);
    print_far(ring, json, "far_read_ns", CHUNK, 0);
    print_far(ring, json, "far_write_ns", 0, CHUNK);
    print_far(ring, json, "far_both_ns", CHUNK, CHUNK);
}

static uint32_t step(struct host *host)
{
    host->lane->retry_at_ns = 0;
    return host->lane->engine->step(host->lane);
}

static void look(void *arg)
{
    struct ring *ring = arg;
    step(&ring->hosts[0]);
}

/* A barrier whose messages have come before it begins. */
static void sync_alone(void *arg)
{
    quoit_coll_sync(arg, "sync");
}

/* The code of a collective for a flag: of the barrier of two hosts, which sends one and waits for one, beside the put
 * that is in it. */
static double time_flag(struct ring *ring)
{
    static const struct quoit_team_range all = {.start = 0, .stride = 1, .size = HOSTS};
    struct quoit_team_state *team = quoit_team_new(ring->fabric, &all, 0, 0);
    if (!team)
        return 0;
    for (int travel = 0; travel < QUOIT_TRAVEL_COUNT; travel++)
        atomic_store(&team->flags->rounds[travel].value, UINT64_MAX);
    double ns = calibrate_sum_of((const struct calibrate_term[]){{sync_alone, team, 1},
                                                                 {put_and_quiet, ring, -1},
                                                                 {write_and_read, ring, 1}, /* of the quiet */
                                                                 {write_word, ring, -1}},
                                 4);
    quoit_team_delete(team);
    return ns > 0 ? ns : 0;
}

static void read_clock(void *arg)
{
    (void)arg;
    quoit_clock_now_ns();
}

/* One get of 8 bytes from the neighbour. Returns the ns of the PE in *pe_ns_out, those of the lanes' steps that found
 * work in the result, and how many these were. */
static double get_once(struct ring *ring, double *pe_ns_out, uint32_t *step_count_out)
{
    char *to = ring->fabric->self.segment + at(ring) + LINE_BYTES;
    uint64_t start_ns = quoit_clock_now_ns(), lanes_ns = 0;
    *step_count_out = 0;
    quoit_fabric_get_nbi(ring->fabric, &ring->fabric->default_context, to, at(ring), 8, 1);
    uint64_t asked_ns = quoit_clock_now_ns();
    for (uint32_t host = 0, idle_count = 0; idle_count < HOSTS; host = (host + 1) % HOSTS) {
        uint64_t before_ns = quoit_clock_now_ns();
        bool has_worked = step(&ring->hosts[host]) > 0;
        lanes_ns += has_worked ? quoit_clock_now_ns() - before_ns : 0;
        *step_count_out += has_worked;
        idle_count = has_worked ? 0 : idle_count + 1;
    }
    uint64_t back_ns = quoit_clock_now_ns();
    quoit_fabric_quiet(ring->fabric, &ring->fabric->default_context);
    *pe_ns_out = (double)(asked_ns - start_ns + quoit_clock_now_ns() - back_ns);
    return (double)lanes_ns;
}

/* A processor for each host: the second one's lane is stepped by a thread that only does that. */
struct server {
    struct ring *ring; /* whose host 1 is served */
    int core;
    _Atomic bool is_over;
    double values[CROSSINGS];
};

static void *serve(void *arg)
{
    struct server *server = arg;
    calibrate_stay_on(server->core);
    while (!atomic_load_explicit(&server->is_over, memory_order_acquire))
        step(&server->ring->hosts[1]);
    return NULL;
}

static double get_across(struct ring *ring)
{
    struct quoit_context *context = &ring->fabric->default_context;
    char *to = ring->fabric->self.segment + at(ring) + LINE_BYTES;
    uint64_t start_ns = quoit_clock_now_ns();
    quoit_fabric_get_nbi(ring->fabric, context, to, at(ring), 8, 1);
    while (atomic_load_explicit(&context->ring.outstanding_count, memory_order_acquire) != 0) {
        step(&ring->hosts[0]);
        quoit_channel_reap(ring->engine);
    }
    return (double)(quoit_clock_now_ns() - start_ns);
}

static void get_from_server(void *arg)
{
    struct server *server = arg;
    for (int i = 0; i < CROSSINGS; i++)
        server->values[i] = get_across(server->ring);
    atomic_store(&server->is_over, true);
}

/* How much longer a frame takes because it goes from one processor to another: its lines travel. `alone_ns`: of the
 * same get by one thread. 0: there is one processor, or something else on the machine disturbed the times. */
static double time_crossing(struct ring *ring, const int cores[2], double alone_ns, double look_ns)
{
    struct server server = {.ring = ring, .core = cores[1]};
    if (cores[0] == cores[1] || !calibrate_beside(cores[0], get_from_server, serve, &server))
        return 0;
    double crossings_ns =
        calibrate_median(server.values, CROSSINGS) - alone_ns - look_ns; /* each side was amid a look, on average */
    return crossings_ns > 0 ? crossings_ns / 2 : 0;
}

/* Each PE on a processor of its own answers the other one's flag by its own. */
struct flags {
    struct ring *ring;
    int core; /* of PE 1 */
    double values[FLAG_BATCHES];
};

static void answer_flags(struct quoit_fabric *fabric, uint64_t at, uint64_t mine, double *values)
{
    const _Atomic uint64_t *flag = (const _Atomic uint64_t *)(const void *)(fabric->self.segment + at);
    for (uint64_t i = 0; i < FLAG_BATCHES * FLAGS; i++) {
        double start_ns = values && i % FLAGS == 0 ? (double)quoit_clock_now_ns() : 0;
        uint64_t value = 2 * i + mine;
        while (atomic_load_explicit(flag, memory_order_acquire) != value)
            ;
        value++;
        quoit_fabric_put_nbi(fabric, &fabric->default_context, at, &value, sizeof value, fabric->self.pe ^ 1);
        if (start_ns > 0)
            values[i / FLAGS] = -start_ns;
        if (values && i % FLAGS == FLAGS - 1)
            values[i / FLAGS] += (double)quoit_clock_now_ns();
    }
    quoit_fabric_quiet(fabric, &fabric->default_context);
}

static void *answer_as_other(void *arg)
{
    const struct flags *flags = arg;
    calibrate_stay_on(flags->core);
    answer_flags(flags->ring->other, at(flags->ring), 1, NULL);
    return NULL;
}

static void answer_other(void *arg)
{
    struct flags *flags = arg;
    answer_flags(flags->ring->fabric, at(flags->ring), 0, flags->values);
}

/* How much longer than a put it takes until the PE on another processor has seen the flag. 0: there is one processor.
 */
static double time_flag_crossing(struct ring *ring, const int cores[2], double put_ns)
{
    struct flags flags = {.ring = ring, .core = cores[1]};
    memset(ring->fabric->self.segment + at(ring), 0, sizeof(uint64_t));
    memset(ring->other->self.segment + at(ring), 0, sizeof(uint64_t));
    if (cores[0] == cores[1] || !calibrate_beside(cores[0], answer_other, answer_as_other, &flags))
        return 0;
    double ns = calibrate_median(flags.values, FLAG_BATCHES) / (2 * FLAGS) - put_ns;
    return ns > 0 ? ns : 0;
}

/* Medians: of the PE's part of a get, and of a lane's step with work beyond one without. */
static void time_get(struct ring *ring, double clock_ns, double look_ns, double *pe_ns_out, double *work_ns_out)
{
    double pe[ROUNDS], work[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t step_count;
        double lanes_ns = get_once(ring, &pe[i], &step_count);
        pe[i] -= 2 * clock_ns;
        work[i] = step_count ? lanes_ns / step_count - clock_ns - look_ns : 0;
    }
    *pe_ns_out = calibrate_median(pe, ROUNDS);
    *work_ns_out = calibrate_median(work, ROUNDS);
}

/* The lanes follow their links and tell each other. */
static void follow_links(struct ring *ring)
{
    for (uint32_t i = 0; i < 100; i++)
        step(&ring->hosts[i % HOSTS]);
}

/* The code of a direct put, and of the quiet after it, beside what they do at the port. */
static double time_posted(struct ring *ring)
{
    double ns = calibrate_sum_of(
        (const struct calibrate_term[]){
            {put_and_quiet, ring, 1}, {write_line, ring, -1}, {write_and_read, ring, -1}, {ring_doorbell, ring, -1}},
        4);
    return ns > 0 ? ns : 0;
}

static void print_put(struct ring *ring, const int cores[2], double read_ns, struct quoit_json *json)
{
    static const struct journal_copy nothing;
    struct journal_copy *copy = malloc(sizeof *copy);
    bool is_direct = quoit_channel_open_direct(ring->engine, QUOIT_RIGHT);
    double posted_ns = 0, crossing_ns = 0, flag_ns = 0;
    for (int i = 0; is_direct && i < TRIES && (posted_ns <= 0 || flag_ns <= 0); i++) {
        posted_ns = time_posted(ring);
        crossing_ns = time_flag_crossing(ring, cores, calibrate_time_of(put_and_quiet, ring) - read_ns);
        flag_ns = time_flag(ring);
    }
    quoit_json_number(json, "posted_ns", posted_ns);
    quoit_json_number(json, "flag_crossing_ns", crossing_ns);
    quoit_json_number(json, "flag_ns", flag_ns);
    if (copy)
        *copy = nothing;
    quoit_json_number(json, "journal_copy_ns", copy ? calibrate_time_of(copy_to_journal, copy) : 0);
    free(copy);
}

static void measure(struct ring *ring, const int cores[2], struct quoit_json *json)
{
    follow_links(ring);
    double clock_ns = calibrate_time_of(read_clock, NULL), word_ns = calibrate_time_of(write_word, ring);
    double look_ns = 0, pe_ns = 0, work_ns = 0, crossing_ns = 0;
    for (int i = 0; i < TRIES && (work_ns <= 0 || (cores[0] != cores[1] && crossing_ns == 0)); i++) {
        look_ns = calibrate_time_of(look, ring);
        time_get(ring, clock_ns, look_ns, &pe_ns, &work_ns);
        crossing_ns = time_crossing(ring, cores, pe_ns + GET_STEPS * (look_ns + work_ns), look_ns);
    }
    quoit_json_number(json, "clock_ns", clock_ns);
    quoit_json_number(json, "window_word_ns", word_ns);
    double read_ns =
        calibrate_sum_of((const struct calibrate_term[]){{write_and_read, ring, 1}, {write_word, ring, -1}}, 2);
    quoit_json_number(json, "window_line_ns", calibrate_time_of(write_line, ring));
    quoit_json_number(json, "window_read_ns", read_ns);
    quoit_json_number(json, "doorbell_ring_ns", calibrate_time_of(ring_doorbell, ring));
    print_put(ring, cores, read_ns, json);
    print_walks(ring, json);
    quoit_json_number(json, "doorbell_clear_ns", calibrate_time_of(clear_doorbell, ring));
    quoit_json_number(json, "look_ns", look_ns);
    quoit_json_number(json, "work_ns", work_ns);
    quoit_json_number(json, "crossing_ns", crossing_ns);
    quoit_json_number(json, "request_ns", pe_ns);
}

bool calibrate_ring(const int cores[2], struct quoit_json *json)
{
    struct ring ring;
    memset(&ring, 0, sizeof ring);
    bool is_open = open_hosts(&ring, HEAP_BYTES) && open_pes(&ring);
    if (is_open)
        measure(&ring, cores, json);
    close_ring(&ring);
    return is_open;
}

struct calibrate_lane {
    struct ring ring;
};

struct calibrate_lane *calibrate_lane_open(void)
{
    struct calibrate_lane *lane = calloc(1, sizeof *lane);
    if (!lane)
        return NULL;
    if (open_hosts(&lane->ring, IDLE_BYTES)) {
        follow_links(&lane->ring);
        return lane;
    }
    calibrate_lane_close(lane);
    return NULL;
}

void calibrate_lane_look(void *lane)
{
    look(&((struct calibrate_lane *)lane)->ring);
}

void calibrate_lane_close(struct calibrate_lane *lane)
{
    close_ring(&lane->ring);
    free(lane);
}
