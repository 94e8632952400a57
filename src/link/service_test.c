/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what service.h promises: one client at a time, consecutive jobs on the same ports, doorbell bits of any mask,
 * neighbours that disagree, a link that is cut and comes back, one that flaps and is held down, a ring that is cut, and
 * managers that sleep meanwhile.
 * Method: two hosts and the two links between them, emulated; the managers in threads of their own, a client that
 * follows at once and counts its notifications. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/log.h"
#include "env/clock.h"
#include "env/membarrier.h"
#include "link/handshake.h"
#include "link/holddown.h"
#include "link/service.h"
#include "port/port_rig.h"

#define HOST_COUNT 2
#define PARK_AT    0xf0000
#define BELLS_AT   0xf1000 /* a park for each doorbell bit of a client, in their order */
#define BELL_COUNT 8
#define SLOTS_AT   0x10000
#define BYTES      0x4000
#define MS         1000000u
#define IDLE_MS    500u /* of service.c */
#define LIMIT_NS   60000000000u

struct host {
    struct quoit_service *service;
    struct quoit_link_record records[QUOIT_SIDE_COUNT];
    struct quoit_client client;
    _Atomic uint32_t change_count;
    _Atomic uint32_t early_count; /* of changes of which the client is told before it could follow */
    _Atomic uint32_t clean_count[QUOIT_SIDE_COUNT];
    _Atomic uint32_t is_stopping;
    _Atomic uint64_t dead_links;
    _Atomic uint32_t look_count; /* of the manager, which asks for dead links each time */
    uint32_t cut_links[2];
    _Atomic uint64_t cut_off_ns; /* when the service told of them; 0: not yet */
    enum quoit_status status;
    pthread_t thread;
};

/* Link 0 joins host 0 at its right and host 1 at its left; link 1 the other two ends. The rigs share the hosts. */
struct world {
    struct rig_driver driver;
    struct rig links[HOST_COUNT];
    struct host hosts[HOST_COUNT];
    bool is_crossed; /* host 1 has its cables at the wrong sides */
};

static void changed(void *arg, enum quoit_side side)
{
    struct host *host = arg;
    const struct quoit_link_record *record = &host->records[side];
    bool is_up = quoit_link_state_of(record) == QUOIT_LINK_STATE_UP;
    atomic_fetch_add(&host->early_count, QUOIT_LINK_TARGET_IS_UP(atomic_load(&record->target)) != is_up);
    atomic_fetch_add(&host->change_count, 1);
}

static bool has_followed(void *arg, enum quoit_side side)
{
    (void)arg, (void)side;
    return true;
}

static void clean(void *arg, enum quoit_side side)
{
    struct host *host = arg;
    atomic_fetch_add(&host->clean_count[side], 1);
}

static uint64_t dead_links(void *arg)
{
    struct host *host = arg;
    atomic_fetch_add(&host->look_count, 1);
    return atomic_load(&host->dead_links);
}

static void cut_off(void *arg, uint32_t first_link, uint32_t second_link)
{
    struct host *host = arg;
    host->cut_links[0] = first_link;
    host->cut_links[1] = second_link;
    atomic_store(&host->cut_off_ns, quoit_clock_now_ns());
}

static void vectors_of(void *arg, uint64_t bits, struct quoit_port_vector vectors_out[QUOIT_DOORBELL_COUNT])
{
    (void)arg;
    for (uint32_t i = 0; bits != 0; i++, bits &= bits - 1)
        vectors_out[__builtin_ctzll(bits)] = (struct quoit_port_vector){
            .park_offset = BELLS_AT + i * sizeof(struct quoit_park),
            .park_stride = sizeof(struct quoit_park),
            .park_count = 1,
        };
}

static struct quoit_port_endpoint describe(struct world *world, uint32_t link, uint32_t peer, uint32_t side)
{
    const struct rig *rig = &world->links[link];
    const struct quoit_port_site site = {
        .link_fd = rig->link_fd, .peer_memory_fd = world->links[0].memory_fd[peer], .side = side, .knobs = rig->knobs};
    struct quoit_port_endpoint endpoint;
    assert_int_equal(quoit_port_driver_describe(rig_table(rig), &site, &endpoint), QUOIT_OK);
    return endpoint;
}

static void open_host(struct world *world, uint32_t index)
{
    struct host *host = &world->hosts[index];
    const struct quoit_port_endpoint right_end = describe(world, index, 1 - index, 0);
    const struct quoit_port_endpoint left_end = describe(world, 1 - index, 1 - index, 1);
    bool is_crossed = world->is_crossed && index == 1;
    const struct quoit_port_driver *driver = rig_table(&world->links[0]);
    uint8_t *memory = world->links[0].memory[index];
    struct quoit_service_config config = {
        .host = index,
        .host_count = HOST_COUNT,
        .records = host->records,
        .park = (struct quoit_park *)(void *)(memory + PARK_AT),
        .park_offset = PARK_AT,
    };
    config.ports[is_crossed ? QUOIT_RIGHT : QUOIT_LEFT] =
        (struct quoit_port_config){.driver = driver, .memory = {memory, RIG_MEMORY_BYTES}, .endpoint = &left_end};
    config.ports[is_crossed ? QUOIT_LEFT : QUOIT_RIGHT] =
        (struct quoit_port_config){.driver = driver, .memory = {memory, RIG_MEMORY_BYTES}, .endpoint = &right_end};
    assert_int_equal(quoit_service_open(&config, &host->service), QUOIT_OK);
    host->client = (struct quoit_client){
        .name = "the test",
        .digest = 1,
        .doorbell_least = 2,
        .doorbell_most = 3,
        .vectors = vectors_of,
        .has_failover = true,
        .cut_off_limit_ns = LIMIT_NS,
        .changed = changed,
        .has_followed = has_followed,
        .clean = clean,
        .dead_links = dead_links,
        .cut_off = cut_off,
        .arg = host,
    };
    for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++)
        host->client.windows[side][QUOIT_WINDOW_SLOTS] =
            (struct quoit_window_range){.offset = SLOTS_AT + side * BYTES, .bytes = BYTES};
}

static void open_world(struct world *world, const char *driver)
{
    memset(world, 0, sizeof *world);
    world->driver = (struct rig_driver){.name = driver, .driver = driver};
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        rig_make(&world->links[i], &world->driver);
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        open_host(world, i);
}

static void close_world(struct world *world)
{
    for (uint32_t i = 0; i < HOST_COUNT; i++) {
        quoit_service_close(world->hosts[i].service);
        assert_int_equal(world->hosts[i].early_count, 0);
    }
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        rig_destroy(&world->links[i]);
}

static void *run_start(void *arg)
{
    struct host *host = arg;
    host->status = quoit_service_start(host->service, LIMIT_NS);
    return NULL;
}

static void *run_manager(void *arg)
{
    struct host *host = arg;
    host->status = quoit_service_manage(host->service, &host->is_stopping);
    return NULL;
}

static void each_host(struct world *world, void *(*run)(void *))
{
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        assert_int_equal(pthread_create(&world->hosts[i].thread, NULL, run, &world->hosts[i]), 0);
}

static void join(struct world *world)
{
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        pthread_join(world->hosts[i].thread, NULL);
}

static void attach_and_start(struct world *world)
{
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        assert_int_equal(quoit_service_attach(world->hosts[i].service, &world->hosts[i].client), QUOIT_OK);
    each_host(world, run_start);
    join(world);
}

static void assert_all_up(struct world *world)
{
    for (uint32_t i = 0; i < HOST_COUNT; i++) {
        assert_int_equal(world->hosts[i].status, QUOIT_OK);
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
            const struct quoit_link_record *record = &world->hosts[i].records[side];
            assert_int_equal(quoit_link_state_of(record), QUOIT_LINK_STATE_UP);
            assert_true(QUOIT_LINK_TARGET_IS_UP(record->target));
            assert_int_not_equal(quoit_link_port_epoch(record), 0);
        }
    }
}

static void stop_manager(struct host *host)
{
    atomic_store(&host->is_stopping, 1);
    quoit_service_wake(host->service);
    pthread_join(host->thread, NULL);
    assert_int_equal(host->status, QUOIT_OK);
}

static void stop_managers(struct world *world)
{
    for (uint32_t i = 0; i < HOST_COUNT; i++) {
        atomic_store(&world->hosts[i].is_stopping, 1);
        quoit_service_wake(world->hosts[i].service);
    }
    join(world);
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        assert_int_equal(world->hosts[i].status, QUOIT_OK);
}

/* Until both ends of a link are up again after so many outages. */
static void await_link(struct world *world, uint32_t link, uint32_t outage_count)
{
    const struct quoit_link_record *ends[] = {&world->hosts[link].records[QUOIT_RIGHT],
                                              &world->hosts[1 - link].records[QUOIT_LEFT]};
    uint64_t deadline_ns = quoit_clock_now_ns() + LIMIT_NS;
    for (int i = 0; i < 2; i++) {
        while (atomic_load(&ends[i]->outage_count) < outage_count ||
               quoit_link_state_of(ends[i]) != QUOIT_LINK_STATE_UP) {
            assert_true(quoit_clock_now_ns() < deadline_ns);
            quoit_clock_sleep_ns(100000);
        }
    }
}

/* Until these doorbell bits of a port are all set, or all clear. */
static void await_bits(struct quoit_port *port, uint64_t bits, bool are_set)
{
    const uint64_t deadline_ns = quoit_clock_now_ns() + LIMIT_NS;
    while ((quoit_port_doorbell_read(port) & bits) != (are_set ? bits : 0)) {
        assert_true(quoit_clock_now_ns() < deadline_ns);
        quoit_clock_sleep_ns(100000);
    }
}

static void cut(struct world *world, uint32_t link)
{
    struct quoit_port *port = quoit_service_port(world->hosts[link].service, QUOIT_RIGHT);
    quoit_port_link_disable(port);
    quoit_port_link_enable(port);
}

static void test_a_job_after_a_job(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "emulated");
    for (uint32_t job = 0; job < 4; job++) {
        uint64_t word = 100 + job;
        for (uint32_t i = 0; i < HOST_COUNT; i++) {
            world.hosts[i].client.digest = job + 7;
            world.hosts[i].client.doorbell_most = 2 + job % 2;
        }
        attach_and_start(&world);
        assert_all_up(&world);
        struct quoit_port *port = quoit_service_port(world.hosts[0].service, QUOIT_RIGHT);
        assert_int_equal(quoit_port_write64(port, QUOIT_WINDOW_SLOTS, 8 * job, word), QUOIT_OK);
        uint64_t back;
        assert_int_equal(quoit_port_read(port, QUOIT_WINDOW_SLOTS, 8 * job, &back, sizeof back), QUOIT_OK);
        assert_int_equal(back, word);
        for (uint32_t i = 0; i < HOST_COUNT; i++) {
            quoit_service_detach(world.hosts[i].service);
            for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
                assert_int_equal(quoit_link_state_of(&world.hosts[i].records[side]), QUOIT_LINK_STATE_IDLE);
                assert_int_equal(quoit_link_port_epoch(&world.hosts[i].records[side]), 0);
            }
        }
        /* Writes still arriving for the finished job reach nothing: no client offers the window. */
        uint64_t before = *(uint64_t *)(void *)(world.links[0].memory[1] + SLOTS_AT + 8 * job);
        enum quoit_status status = quoit_port_write64(port, QUOIT_WINDOW_SLOTS, 8 * job, 1);
        assert_true(status == QUOIT_OK || status == QUOIT_LINK_DOWN);
        quoit_clock_sleep_ns(MS);
        assert_int_equal(*(uint64_t *)(void *)(world.links[0].memory[1] + SLOTS_AT + 8 * job), before);
    }
    close_world(&world);
}

/* A second client is refused, and the first does not notice; nor is anything taken by one that asks for too much. */
static void test_one_client_at_a_time(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "emulated");
    attach_and_start(&world);
    struct quoit_service *service = world.hosts[0].service;
    struct quoit_client second = world.hosts[0].client;
    second.doorbell_most = 14;
    assert_int_equal(quoit_service_attach(service, &second), QUOIT_FULL);
    assert_all_up(&world);
    assert_int_equal(quoit_service_doorbells(service, QUOIT_LEFT), 0x0007);
    quoit_service_detach(service);
    assert_int_equal(quoit_service_doorbells(service, QUOIT_LEFT), 0);
    const struct quoit_window_range fitting = second.windows[0][0];
    second.windows[0][0].bytes = UINT64_C(1) << 40;
    quoit_log_setup((enum quoit_log_level) - 1, "the message about the window");
    assert_int_equal(quoit_service_attach(service, &second), QUOIT_OUT_OF_RANGE);
    quoit_log_setup(QUOIT_LOG_WARN, "");
    assert_int_equal(quoit_service_doorbells(service, QUOIT_LEFT), 0);
    second.windows[0][0] = fitting;
    assert_int_equal(quoit_service_attach(service, &second), QUOIT_OK);
    assert_int_equal(quoit_service_doorbells(service, QUOIT_LEFT), 0x3fff);
    close_world(&world);
}

/* Whether a ring of the `index`-th bit of host 1's client wakes its park there, and no other. */
static void assert_ring_wakes(struct world *world, uint32_t index)
{
    struct quoit_port *port = quoit_service_port(world->hosts[0].service, QUOIT_RIGHT);
    struct quoit_park *parks = (struct quoit_park *)(void *)(world->links[0].memory[1] + BELLS_AT);
    uint64_t bits = atomic_load(&world->hosts[0].records[QUOIT_RIGHT].peer_doorbells);
    uint32_t keys[BELL_COUNT];
    assert_int_equal(bits, quoit_service_doorbells(world->hosts[1].service, QUOIT_LEFT));
    assert_int_equal(bits, atomic_load(&world->hosts[1].records[QUOIT_LEFT].own_doorbells));
    for (uint32_t i = 0; i < index; i++)
        bits &= bits - 1;
    for (uint32_t i = 0; i < BELL_COUNT; i++)
        keys[i] = quoit_park_prepare(&parks[i]);
    assert_true(quoit_port_ring(port, bits & -bits));
    for (uint32_t i = 0; i < BELL_COUNT; i++) {
        assert_int_equal(atomic_load(&parks[i].epoch) != keys[i], i == index);
        quoit_park_cancel(&parks[i]);
    }
}

static void skip_without_test_drivers(void)
{
    if (quoit_port_driver_find("mask-one") == NULL) /* the build has QUOIT_TEST_DRIVERS off */
        skip();
}

/* Odd masks, also with more bits at one end than at the other: a ring wakes what the other end assigned to the bit. */
static void test_doorbells_of_odd_masks(void **state)
{
    (void)state;
    static const struct {
        const char *driver;
        uint64_t mask;
        uint32_t least; /* of both clients; that of host 0 takes no more */
        uint32_t most;  /* of the client of host 1, */
        uint64_t taken; /* by it */
    } rows[] = {
        {"mask-fff0", 0xfff0, 2, 3, 0x0070},
        {"mask-12", 0x0fff, 2, 8, 0x00ff},
        {"mask-holes", 0x5d92, 2, 8, 0x1d92}, /* not the highest, which is the service's own */
        {"mask-holes", 0x5d92, 8, 8, 0x5d92}, /* unless the client cannot do without */
    };
    skip_without_test_drivers();
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world world;
        open_world(&world, rows[i].driver);
        for (uint32_t host = 0; host < HOST_COUNT; host++)
            world.hosts[host].client.doorbell_least = world.hosts[host].client.doorbell_most = rows[i].least;
        world.hosts[1].client.doorbell_most = rows[i].most;
        attach_and_start(&world);
        assert_all_up(&world);
        uint64_t bits = quoit_service_doorbells(world.hosts[1].service, QUOIT_LEFT);
        assert_int_equal(bits, rows[i].taken);
        assert_int_equal(bits & ~rows[i].mask, 0);
        for (uint32_t j = 0; j < (uint32_t)__builtin_popcountll(bits); j++)
            assert_ring_wakes(&world, j);
        close_world(&world);
    }
}

static void test_too_few_doorbells(void **state)
{
    (void)state;
    struct world world;
    skip_without_test_drivers();
    open_world(&world, "mask-one");
    struct host *host = &world.hosts[0];
    quoit_log_setup((enum quoit_log_level) - 1, "the message about the mask");
    assert_int_equal(quoit_service_attach(host->service, &host->client), QUOIT_OUT_OF_RANGE);
    quoit_log_setup(QUOIT_LOG_WARN, "");
    host->client.doorbell_least = host->client.doorbell_most = 1;
    assert_int_equal(quoit_service_attach(host->service, &host->client), QUOIT_OK);
    assert_int_equal(quoit_service_doorbells(host->service, QUOIT_RIGHT), 0x0010);
    close_world(&world);
}

/* A chip that translates whole megabytes only. */
static void test_alignment_is_refused_at_once(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "emulated");
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        quoit_service_close(world.hosts[i].service);
    for (uint32_t i = 0; i < HOST_COUNT; i++) {
        world.links[0].knobs.translation_align = world.links[1].knobs.translation_align = 1 << 20;
        open_host(&world, i);
    }
    struct host *host = &world.hosts[0];
    quoit_log_setup((enum quoit_log_level) - 1, "the message about the alignment");
    assert_int_equal(quoit_service_attach(host->service, &host->client), QUOIT_OUT_OF_RANGE);
    quoit_log_setup(QUOIT_LOG_WARN, "");
    close_world(&world);
}

static void test_neighbours_of_different_jobs_refuse_each_other(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "emulated");
    world.hosts[1].client.digest = 2;
    quoit_log_setup((enum quoit_log_level) - 1, "the message about the job");
    attach_and_start(&world);
    quoit_log_setup(QUOIT_LOG_WARN, "");
    assert_true(world.hosts[0].status == QUOIT_INVALID || world.hosts[1].status == QUOIT_INVALID);
    close_world(&world);
}

/* Standard error, into a file, from catch_log() to read_log(). Both hosts write to it: without O_APPEND a line of one
 * may take the place of the other's. */
struct caught_log {
    int file_fd;
    int stderr_fd;
};

static struct caught_log catch_log(void)
{
    struct caught_log log = {.file_fd = memfd_create("log", MFD_CLOEXEC), .stderr_fd = dup(STDERR_FILENO)};
    assert_true(log.file_fd >= 0);
    assert_true(log.stderr_fd >= 0);
    assert_int_equal(fcntl(log.file_fd, F_SETFL, O_APPEND), 0);
    assert_int_equal(dup2(log.file_fd, STDERR_FILENO), STDERR_FILENO);
    return log;
}

static void read_log(const struct caught_log *log, char *text_out, size_t bytes)
{
    assert_int_equal(dup2(log->stderr_fd, STDERR_FILENO), STDERR_FILENO);
    ssize_t length = pread(log->file_fd, text_out, bytes - 1, 0);
    assert_true(length >= 0);
    text_out[length] = '\0';
    close(log->file_fd);
    close(log->stderr_fd);
}

/* Each end that found the mistake names both of its ends. */
static void assert_names_wrong_cables(const struct world *world, const char *text)
{
    char line[160];
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        for (enum quoit_side side = 0; side < QUOIT_SIDE_COUNT; side++) {
            const char *name = side == QUOIT_LEFT ? "left" : "right";
            if (world->hosts[i].records[side].peer_side != side + 1)
                continue;
            snprintf(line, sizeof line, "wrong cabling: the %s port leads to the %s port of host %u,", name, name,
                     1 - i);
            assert_non_null(strstr(text, line));
        }
}

/* With two hosts the neighbour is the right one at either side, so only the sides tell. */
static void test_a_cable_between_two_right_ports_is_refused(void **state)
{
    (void)state;
    struct world world;
    char text[2048];
    open_world(&world, "emulated");
    quoit_service_close(world.hosts[1].service);
    world.is_crossed = true;
    open_host(&world, 1);
    struct caught_log log = catch_log();
    attach_and_start(&world);
    read_log(&log, text, sizeof text);
    assert_names_wrong_cables(&world, text);
    struct quoit_link_record *records =
        world.hosts[0].status == QUOIT_INVALID ? world.hosts[0].records : world.hosts[1].records;
    assert_true(world.hosts[0].status == QUOIT_INVALID || world.hosts[1].status == QUOIT_INVALID);
    assert_true(records[QUOIT_LEFT].peer_side == QUOIT_LEFT + 1 || records[QUOIT_RIGHT].peer_side == QUOIT_RIGHT + 1);
    close_world(&world);
}

static void test_a_cut_link_comes_back_in_a_later_epoch(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "emulated");
    attach_and_start(&world);
    each_host(&world, run_manager);
    struct quoit_port *right = quoit_service_port(world.hosts[0].service, QUOIT_RIGHT);
    const uint64_t bits = quoit_service_doorbells(world.hosts[0].service, QUOIT_RIGHT);
    for (uint32_t i = 1; i <= QUOIT_FLAP_FREE; i++) {
        uint32_t before = world.hosts[0].records[QUOIT_RIGHT].target;
        assert_true(quoit_port_ring(quoit_service_port(world.hosts[1].service, QUOIT_LEFT), bits));
        await_bits(right, bits, true);
        cut(&world, 0);
        await_link(&world, 0, i);
        assert_int_equal(quoit_port_doorbell_read(right) & bits, 0); /* no ring of an earlier epoch is left */
        assert_true(world.hosts[0].records[QUOIT_RIGHT].target > before);
        assert_int_equal(world.hosts[0].records[QUOIT_RIGHT].target, world.hosts[1].records[QUOIT_LEFT].target);
    }
    stop_managers(&world);
    assert_all_up(&world);
    assert_int_equal(world.hosts[0].records[QUOIT_RIGHT].hold_count, 0);
    assert_int_equal(world.hosts[0].records[QUOIT_LEFT].outage_count, 0);
    assert_int_equal(world.hosts[0].clean_count[QUOIT_RIGHT], 1 + QUOIT_FLAP_FREE);
    assert_int_equal(world.hosts[0].clean_count[QUOIT_LEFT], 1);
    close_world(&world);
}

/* Nobody waits for it at start, and when it is mended it comes up in the epoch behind the one that it missed. */
static void test_a_link_that_is_down_at_start(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "emulated");
    struct quoit_port *port = quoit_service_port(world.hosts[0].service, QUOIT_RIGHT);
    assert_int_equal(quoit_port_cut(port), QUOIT_OK);
    for (uint32_t i = 0; i < HOST_COUNT; i++) {
        assert_int_equal(quoit_service_attach(world.hosts[i].service, &world.hosts[i].client), QUOIT_OK);
        quoit_service_expect_down(world.hosts[i].service, i == 0 ? QUOIT_RIGHT : QUOIT_LEFT);
    }
    each_host(&world, run_start);
    join(&world);
    const struct quoit_link_record *ends[] = {&world.hosts[0].records[QUOIT_RIGHT],
                                              &world.hosts[1].records[QUOIT_LEFT]};
    for (uint32_t i = 0; i < HOST_COUNT; i++) {
        assert_int_equal(world.hosts[i].status, QUOIT_OK);
        assert_int_equal(ends[i]->target, QUOIT_LINK_TARGET(1, false));
        assert_int_equal(ends[i]->peer_doorbells, ends[1 - i]->own_doorbells);
    }
    assert_int_equal(world.hosts[0].records[QUOIT_LEFT].target, QUOIT_LINK_TARGET(0, true));
    each_host(&world, run_manager);
    assert_int_equal(quoit_port_mend(port), QUOIT_OK);
    await_link(&world, 0, 0);
    stop_managers(&world);
    assert_all_up(&world);
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        assert_int_equal(ends[i]->target, QUOIT_LINK_TARGET(1, true));
    close_world(&world);
}

/* Host 1 as played by a test: introduces itself on link 0, and says what it is told to. */
static struct quoit_port *introduce_host_1(struct world *world, struct quoit_handshake_bits bits)
{
    struct quoit_port *port = quoit_service_port(world->hosts[1].service, QUOIT_LEFT);
    const uint64_t deadline_ns = quoit_clock_now_ns() + LIMIT_NS;
    while (!quoit_port_link_is_up(port) || quoit_port_bind(port, quoit_port_link_epoch(port)) != QUOIT_OK ||
           quoit_handshake_read(port).kind != QUOIT_HANDSHAKE_PROPOSED) {
        assert_true(quoit_clock_now_ns() < deadline_ns);
        quoit_clock_sleep_ns(100000);
    }
    quoit_handshake_introduce(port, 1, &world->hosts[1].client, QUOIT_LEFT, bits);
    return port;
}

static void say(struct quoit_port *port, enum quoit_handshake_kind kind, uint32_t epoch)
{
    quoit_handshake_write(port, (struct quoit_handshake_word){.kind = kind, .epoch = epoch});
}

static void await_state(const struct quoit_link_record *record, enum quoit_link_state state)
{
    const uint64_t deadline_ns = quoit_clock_now_ns() + LIMIT_NS;
    while (quoit_link_state_of(record) != state) {
        assert_true(quoit_clock_now_ns() < deadline_ns);
        quoit_clock_sleep_ns(100000);
    }
}

/* Long enough for the manager to look several times. */
static void assert_stays(const struct quoit_link_record *record, enum quoit_link_state state)
{
    quoit_clock_sleep_ns(20 * MS);
    assert_int_equal(quoit_link_state_of(record), state);
}

/* A neighbour that is CLEAN in another epoch than this end, or in an earlier one than this end proposes, has not agreed
 * on anything. */
static void test_a_link_comes_up_only_in_the_epoch_of_both_ends(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "emulated");
    struct host *host = &world.hosts[0];
    const struct quoit_link_record *record = &host->records[QUOIT_RIGHT];
    const struct quoit_handshake_bits bits = {.client = 0x3};
    assert_int_equal(quoit_service_attach(host->service, &host->client), QUOIT_OK);
    assert_int_equal(pthread_create(&host->thread, NULL, run_manager, host), 0);

    struct quoit_port *port = introduce_host_1(&world, bits);
    say(port, QUOIT_HANDSHAKE_PROPOSED, 5);
    await_state(record, QUOIT_LINK_STATE_CLEAN);
    assert_int_equal(quoit_handshake_read(port).epoch, 5);
    for (uint32_t epoch = 4; epoch <= 6; epoch += 2) {
        say(port, QUOIT_HANDSHAKE_CLEAN, epoch);
        assert_stays(record, QUOIT_LINK_STATE_CLEAN);
    }
    say(port, QUOIT_HANDSHAKE_CLEAN, 5);
    await_state(record, QUOIT_LINK_STATE_UP);
    assert_int_equal(record->target, QUOIT_LINK_TARGET(5, true));

    quoit_port_link_disable(port);
    quoit_port_link_enable(port);
    port = introduce_host_1(&world, bits);
    assert_int_equal(quoit_handshake_read(port).epoch, 6);
    say(port, QUOIT_HANDSHAKE_CLEAN, 5);
    assert_stays(record, QUOIT_LINK_STATE_PROPOSED);
    say(port, QUOIT_HANDSHAKE_CLEAN, 7);
    await_state(record, QUOIT_LINK_STATE_UP);
    assert_int_equal(record->target, QUOIT_LINK_TARGET(7, true));

    stop_manager(host);
    close_world(&world);
}

/* Too few bits, bits that the port does not have, which this end could not ring, or others than before the link was
 * lost. The message has what the neighbour wants, and what there is here or was before. */
static void test_a_neighbour_with_wrong_bits_is_refused(void **state)
{
    static const struct {
        struct quoit_handshake_bits bits;
        const char *text; /* then those of before, or else the bits of the port */
        uint64_t before;
    } rows[] = {
        {.bits = {.client = 0x1},
         .text = "by doorbell bits 0x1, but the test needs 2 of them at least; the port here has 0x"},
        {.bits = {.client = 0x3 | UINT64_C(1) << 63},
         .text = "by doorbell bits 0x8000000000000003, and 0x0 for its links, but the port here has only 0x"},
        {.bits = {.client = 0x3, .control = UINT64_C(1) << 63},
         .text = "by doorbell bits 0x3, and 0x8000000000000000 for its links, but the port here has only 0x"},
        {.bits = {.client = 0x3}, .text = "by doorbell bits 0x3, and before the link was lost by 0x", .before = 0x6},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct world world;
        struct quoit_port_limits limits;
        char text[1024], line[256];
        open_world(&world, "emulated");
        struct host *host = &world.hosts[0];
        quoit_port_limits(quoit_service_port(host->service, QUOIT_RIGHT), &limits);
        assert_int_equal(quoit_service_attach(host->service, &host->client), QUOIT_OK);
        atomic_store(&host->records[QUOIT_RIGHT].peer_doorbells, rows[i].before);
        const struct caught_log log = catch_log();
        assert_int_equal(pthread_create(&host->thread, NULL, run_start, host), 0);
        say(introduce_host_1(&world, rows[i].bits), QUOIT_HANDSHAKE_PROPOSED, 5);
        pthread_join(host->thread, NULL);
        read_log(&log, text, sizeof text);
        assert_int_equal(host->status, QUOIT_INVALID);
        snprintf(line, sizeof line, "%s%llx\n", rows[i].text,
                 (unsigned long long)(rows[i].before ? rows[i].before : limits.doorbell_bits));
        assert_non_null(strstr(text, line));
        close_world(&world);
    }
}

/* The service's own bit, too, wakes only when it was clear before. */
static void test_the_manager_clears_its_own_bit(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "emulated");
    struct host *host = &world.hosts[0];
    struct quoit_port *own = quoit_service_port(host->service, QUOIT_RIGHT);
    struct quoit_port *peer = quoit_service_port(world.hosts[1].service, QUOIT_LEFT);
    struct quoit_port_limits limits;
    quoit_port_limits(own, &limits);
    const uint64_t highest = UINT64_C(1) << (QUOIT_DOORBELL_COUNT - 1 - __builtin_clzll(limits.doorbell_bits));
    rig_await_link(peer, true);
    assert_true(quoit_port_ring(peer, highest));
    await_bits(own, highest, true);
    assert_int_equal(quoit_service_attach(host->service, &host->client), QUOIT_OK);
    assert_int_equal(pthread_create(&host->thread, NULL, run_manager, host), 0);
    await_bits(own, highest, false);
    stop_manager(host);
    close_world(&world);
}

/* Nothing happens, so it looks once after each IDLE_MS at most. */
static void test_a_manager_sleeps_while_both_links_are_up(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "emulated");
    if (!quoit_membarrier_exists()) { /* every sleep is cut short; see park.h */
        close_world(&world);
        skip();
    }
    attach_and_start(&world);
    each_host(&world, run_manager);
    quoit_clock_sleep_ns(20 * MS);
    uint32_t before = atomic_load(&world.hosts[0].look_count);
    uint64_t begin_ns = quoit_clock_now_ns();
    quoit_clock_sleep_ns(200 * MS);
    uint32_t look_count = atomic_load(&world.hosts[0].look_count) - before;
    assert_in_range(look_count, 0, 3 + (quoit_clock_now_ns() - begin_ns) / (IDLE_MS * MS));
    stop_managers(&world);
    close_world(&world);
}

/* But never while another link is known to be down. */
static void test_a_link_that_flaps_is_held_down(void **state)
{
    (void)state;
    struct world world;
    uint32_t outage_count = 0;
    open_world(&world, "emulated");
    attach_and_start(&world);
    each_host(&world, run_manager);
    quoit_log_setup(QUOIT_LOG_ERROR, "");
    const struct quoit_link_record *record = &world.hosts[0].records[QUOIT_RIGHT];
    while (atomic_load(&record->hold_count) < 5) {
        cut(&world, 0);
        await_link(&world, 0, ++outage_count);
        assert_true(outage_count < 100);
    }
    assert_true(record->outage_ns >= 5 * (uint64_t)QUOIT_HOLD_FIRST_NS);
    for (uint32_t i = 0; i < HOST_COUNT; i++)
        atomic_store(&world.hosts[i].dead_links, QUOIT_DEAD_LINKS(1, 0, 1));
    cut(&world, 0);
    await_link(&world, 0, ++outage_count);
    assert_int_equal(record->hold_count, 5);
    quoit_log_setup(QUOIT_LOG_WARN, "");
    stop_managers(&world);
    close_world(&world);
}

#define CUT_LIMIT_NS (100u * MS)

static void tell_dead(struct host *host, uint64_t dead)
{
    atomic_store(&host->dead_links, dead);
    quoit_service_wake(host->service);
}

/* With managers; returns the host whose client tells of dead links. */
static struct host *open_world_to_cut(struct world *world)
{
    open_world(world, "emulated");
    world->hosts[0].client.cut_off_limit_ns = CUT_LIMIT_NS;
    attach_and_start(world);
    each_host(world, run_manager);
    return &world->hosts[0];
}

static void await_cut_off(struct host *host)
{
    const uint64_t deadline_ns = quoit_clock_now_ns() + LIMIT_NS;
    while (atomic_load(&host->cut_off_ns) == 0) {
        assert_true(quoit_clock_now_ns() < deadline_ns);
        quoit_clock_sleep_ns(MS);
    }
}

/* Once, and so is the client after it. */
static void test_each_client_is_told_that_it_is_cut_off(void **state)
{
    (void)state;
    struct world world;
    open_world(&world, "emulated");
    struct host *host = &world.hosts[0];
    host->client.cut_off_limit_ns = CUT_LIMIT_NS;
    for (uint32_t job = 0; job < 2; job++) {
        attach_and_start(&world);
        each_host(&world, run_manager);
        tell_dead(host, QUOIT_DEAD_LINKS(1, 3, 5));
        await_cut_off(host);
        const uint64_t told_ns = host->cut_off_ns;
        tell_dead(host, QUOIT_DEAD_LINKS(1, 1, 3));
        quoit_clock_sleep_ns(20 * MS);
        stop_managers(&world);
        assert_int_equal(host->cut_off_ns, told_ns);
        atomic_store(&host->dead_links, 0);
        atomic_store(&host->cut_off_ns, 0);
        for (uint32_t i = 0; i < HOST_COUNT; i++) {
            quoit_service_detach(world.hosts[i].service);
            atomic_store(&world.hosts[i].is_stopping, 0);
        }
    }
    close_world(&world);
}

/* A third link that goes down and comes back does not postpone the end: links 3 and 5 are dead all the time. */
static void test_hosts_are_cut_off_while_a_third_link_flaps(void **state)
{
    (void)state;
    struct world world;
    struct host *host = open_world_to_cut(&world);
    uint64_t begin_ns = quoit_clock_now_ns(), now_ns = begin_ns;
    for (uint32_t i = 0; atomic_load(&host->cut_off_ns) == 0; i++, now_ns = quoit_clock_now_ns()) {
        assert_true(now_ns - begin_ns < LIMIT_NS);
        tell_dead(host, i % 2 ? QUOIT_DEAD_LINKS(1, 1, 3) : QUOIT_DEAD_LINKS(1, 3, 5));
        quoit_clock_sleep_ns(5 * MS);
    }
    assert_true(host->cut_off_ns - begin_ns >= CUT_LIMIT_NS);
    assert_true((host->cut_links[0] == 1 && host->cut_links[1] == 3) ||
                (host->cut_links[0] == 3 && host->cut_links[1] == 5));
    stop_managers(&world);
    close_world(&world);
}

/* Outages that only follow each other closely are not one: between them the ring was a line, though not when the
 * manager looked. */
static void test_different_cuts_are_not_one(void **state)
{
    (void)state;
    struct world world;
    struct host *host = open_world_to_cut(&world);
    const uint64_t begin_ns = quoit_clock_now_ns();
    uint64_t last_ns = begin_ns, longest_ns = 0;
    for (uint32_t i = 0; quoit_clock_now_ns() - begin_ns < 4 * CUT_LIMIT_NS; i++) {
        const uint64_t before_ns = quoit_clock_now_ns();
        tell_dead(host, i % 2 ? QUOIT_DEAD_LINKS(i, 1, 3) : QUOIT_DEAD_LINKS(i, 3, 5));
        const uint64_t stood_ns = quoit_clock_now_ns() - last_ns; /* the cut before */
        longest_ns = stood_ns > longest_ns ? stood_ns : longest_ns;
        last_ns = before_ns;
        quoit_clock_sleep_ns(5 * MS);
    }
    await_cut_off(host);
    const bool was_late = longest_ns >= CUT_LIMIT_NS;                    /* this thread: one of the cuts did persist */
    assert_true(was_late || host->cut_off_ns >= last_ns + CUT_LIMIT_NS); /* only when the last one persists */
    stop_managers(&world);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_job_after_a_job),
        cmocka_unit_test(test_one_client_at_a_time),
        cmocka_unit_test(test_doorbells_of_odd_masks),
        cmocka_unit_test(test_too_few_doorbells),
        cmocka_unit_test(test_alignment_is_refused_at_once),
        cmocka_unit_test(test_neighbours_of_different_jobs_refuse_each_other),
        cmocka_unit_test(test_a_cable_between_two_right_ports_is_refused),
        cmocka_unit_test(test_a_cut_link_comes_back_in_a_later_epoch),
        cmocka_unit_test(test_a_link_that_is_down_at_start),
        cmocka_unit_test(test_a_link_comes_up_only_in_the_epoch_of_both_ends),
        cmocka_unit_test(test_a_neighbour_with_wrong_bits_is_refused),
        cmocka_unit_test(test_the_manager_clears_its_own_bit),
        cmocka_unit_test(test_a_manager_sleeps_while_both_links_are_up),
        cmocka_unit_test(test_a_link_that_flaps_is_held_down),
        cmocka_unit_test(test_each_client_is_told_that_it_is_cut_off),
        cmocka_unit_test(test_hosts_are_cut_off_while_a_third_link_flaps),
        cmocka_unit_test(test_different_cuts_are_not_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
