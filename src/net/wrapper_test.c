/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what net.c does for every driver: messages that it reports in any order are handed over in that of their sends,
 * once, and a host whose messages are lost or come twice breaks; a host that breaks while another one is lost is lost
 * too; one that has not spoken yet has the time of a start; an end that was held up accuses nobody for that, and one
 * that is held up again and again still finds a dead host. Of several networks the best one that opens and registers
 * the memory is taken, but never the loopback device in place of one that failed. A PE endpoint asks for nothing before
 * a host that must know it does, and one that comes again takes the place of the first. Method: ends on a driver of
 * this file, which keeps what is sent and reports what the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "env/clock.h"
#include "env/primitives.h"
#include "net/driver_rig.h"

#define HOST_COUNT    4u
#define MESSAGE_BYTES 512u
#define SENT_MAX      256u
#define LONG_NS       UINT64_C(3600000000000) /* no host is silent for so long */
#define SHORT_NS      UINT64_C(20000000)
#define HELD_UP_MAX   16u /* times until silent hosts are lost: each counts a heartbeat, of eight that the limit has */

struct sent {
    uint32_t host;
    uint32_t bytes;
    _Alignas(8) char message[MESSAGE_BYTES];
};

struct fake {
    struct quoit_net_end end; /* first */
    struct quoit_net_events events;
    uint32_t index; /* of its network */
    _Alignas(8) char buffer[MESSAGE_BYTES];
    struct sent sent[SENT_MAX];
    uint32_t sent_count;
    uint32_t transfer_count;
    uint32_t connected_mask;   /* and not abandoned since */
    uint32_t dead_mask;        /* hosts to which nothing can be sent */
    uint32_t break_mask;       /* hosts that the next progress reports as broken */
    const struct sent *coming; /* what it reports as having come; NULL: nothing */
};

/* An end, and what was called back. */
struct side {
    struct quoit_net *net;
    struct fake *fake;
    uint32_t lost_mask;
    uint32_t heard_count;              /* messages of host 0, which are numbered from 0 */
    char why[QUOIT_NET_PROBLEM_BYTES]; /* the last one was lost */
};

static struct fake *last_fake; /* quoit_net_open() returns no end of a driver */

#define NETWORK_COUNT 3u
/* Of the networks of the driver, best first; and how many ends there are. */
static struct {
    enum quoit_status open_statuses[NETWORK_COUNT], reg_statuses[NETWORK_COUNT];
    uint32_t loopback_mask;
    uint32_t live_count;
    bool knows_pe_endpoints;
} networks;

static uint32_t survey(const char *provider, const char *device, struct quoit_net_choice *choices_out,
                       uint32_t max_count)
{
    (void)provider, (void)device, (void)max_count;
    choices_out[0] = (struct quoit_net_choice){.is_usable = true, .is_loopback = (networks.loopback_mask & 1) != 0};
    return 1;
}

static enum quoit_status fake_open(const struct quoit_net_driver_config *config, struct quoit_net_end **end_out,
                                   char problem[QUOIT_NET_PROBLEM_BYTES])
{
    if (config->skip_count >= NETWORK_COUNT)
        return QUOIT_UNSUPPORTED;
    snprintf(problem, QUOIT_NET_PROBLEM_BYTES, "network %u does not open", config->skip_count);
    if (networks.open_statuses[config->skip_count] != QUOIT_OK)
        return networks.open_statuses[config->skip_count];
    networks.live_count++;
    last_fake = calloc(1, sizeof *last_fake);
    assert_non_null(last_fake);
    last_fake->events = config->events;
    last_fake->index = config->skip_count;
    snprintf(last_fake->end.choice.provider, sizeof last_fake->end.choice.provider, "number %u", config->skip_count);
    last_fake->end.choice.is_loopback = (networks.loopback_mask >> config->skip_count & 1) != 0;
    last_fake->end.limits = (struct quoit_net_limits){.message_bytes = MESSAGE_BYTES,
                                                      .alignment = 1,
                                                      .transfer_bytes = 1 << 20,
                                                      .takes_pe_endpoints = networks.knows_pe_endpoints,
                                                      .knows_pe_endpoints = networks.knows_pe_endpoints};
    *end_out = &last_fake->end;
    return QUOIT_OK;
}

static void fake_close(struct quoit_net_end *end)
{
    networks.live_count--;
    free(end);
}

static enum quoit_status note_connect(struct quoit_net_end *end, uint32_t host, const struct quoit_net_address *address)
{
    (void)address;
    ((struct fake *)end)->connected_mask |= 1u << host;
    return QUOIT_OK;
}

static enum quoit_status answer_reg(struct quoit_net_end *end, void *memory, uint64_t bytes,
                                    struct quoit_net_key *key_out, void **region_out)
{
    (void)bytes, (void)key_out;
    *region_out = memory;
    return networks.reg_statuses[((const struct fake *)end)->index];
}

static enum quoit_status refuse_transfer(struct quoit_net_end *end, const struct quoit_net_transfer *transfer)
{
    (void)transfer;
    ((struct fake *)end)->transfer_count++;
    return QUOIT_FULL;
}

static void *fake_send_buffer(struct quoit_net_end *end)
{
    return ((struct fake *)end)->buffer;
}

static enum quoit_status fake_send(struct quoit_net_end *end, uint32_t host, void *buffer, uint32_t bytes)
{
    struct fake *fake = (struct fake *)end;
    if (fake->dead_mask >> host & 1)
        return QUOIT_GONE;
    assert_in_range(fake->sent_count, 0, SENT_MAX - 1);
    struct sent *sent = &fake->sent[fake->sent_count++];
    sent->host = host;
    sent->bytes = bytes;
    memcpy(sent->message, buffer, bytes);
    return QUOIT_OK;
}

static uint32_t fake_progress(struct quoit_net_end *end)
{
    struct fake *fake = (struct fake *)end;
    const struct sent *coming = fake->coming;
    uint32_t break_mask = fake->break_mask;
    fake->coming = NULL;
    fake->break_mask = 0;
    if (coming)
        fake->events.message(fake->events.arg, coming->message, coming->bytes);
    for (uint32_t host = 0; break_mask >> host != 0; host++)
        if (break_mask >> host & 1)
            fake->events.broken(fake->events.arg, host);
    return coming || break_mask != 0;
}

static void note_abandon(struct quoit_net_end *end, uint32_t host)
{
    ((struct fake *)end)->connected_mask &= ~(1u << host);
}

static void on_done(void *arg, uint32_t host, uint64_t cookie, enum quoit_status status)
{
    (void)arg, (void)host, (void)cookie, (void)status;
}

static void on_message(void *arg, uint32_t host, const void *payload, uint32_t bytes)
{
    struct side *side = arg;
    assert_int_equal(host, 0);
    assert_int_equal(bytes, sizeof(uint64_t));
    assert_int_equal((uintptr_t)payload % 8, 0);
    assert_int_equal(*(const uint64_t *)payload, side->heard_count);
    side->heard_count++;
}

/* As the upper half may: it has something to send to another host. */
static void on_lost(void *arg, uint32_t host, enum quoit_status status)
{
    struct side *side = arg;
    (void)status;
    assert_int_equal(side->lost_mask >> host & 1, 0);
    side->lost_mask |= 1u << host;
    snprintf(side->why, sizeof side->why, "%s", quoit_net_why(side->net));
    if (quoit_net_is_connected(side->net, 1))
        (void)!quoit_net_send(side->net, 1, "lost", 4);
}

static void open_alone(struct side *side, uint32_t own, uint64_t lost_limit_ns, uint64_t start_limit_ns)
{
    char problem[QUOIT_NET_PROBLEM_BYTES];
    const struct quoit_net_config config = {.host = own,
                                            .host_count = HOST_COUNT,
                                            .lost_limit_ns = lost_limit_ns,
                                            .start_limit_ns = start_limit_ns,
                                            .on_done = on_done,
                                            .on_message = on_message,
                                            .on_lost = on_lost,
                                            .arg = side};
    *side = (struct side){0};
    assert_int_equal(quoit_net_open(&config, &side->net, problem), QUOIT_OK);
    side->fake = last_fake;
}

static void connect_all(struct side *side, uint32_t own)
{
    const struct quoit_net_address address = {.bytes = 1};
    for (uint32_t host = 0; host < HOST_COUNT; host++)
        if (host != own)
            assert_int_equal(quoit_net_connect(side->net, host, &address), QUOIT_OK);
}

static void open_side_with_limits(struct side *side, uint32_t own, uint64_t lost_limit_ns, uint64_t start_limit_ns)
{
    open_alone(side, own, lost_limit_ns, start_limit_ns);
    connect_all(side, own);
}

static void open_side(struct side *side, uint32_t own)
{
    open_side_with_limits(side, own, LONG_NS, 0);
}

static void test_which_network_is_taken(void **state)
{
    static const struct {
        enum quoit_status opens[NETWORK_COUNT], regs[NETWORK_COUNT], status;
        uint32_t loopback_mask;
        const char *provider; /* NULL: none is taken, */
        const char *problem;  /* for this reason */
    } cases[] = {
        {.provider = "number 0"},
        {.regs = {QUOIT_SYSTEM}, .provider = "number 1"},
        {.opens = {QUOIT_SYSTEM}, .regs = {[1] = QUOIT_SYSTEM}, .provider = "number 2"},
        {.regs = {QUOIT_SYSTEM, QUOIT_SYSTEM, QUOIT_SYSTEM},
         .status = QUOIT_SYSTEM,
         .problem = "number 0 on  does not register 1 MiB of memory (ulimit -l)"},
        {.opens = {QUOIT_SYSTEM, QUOIT_SYSTEM, QUOIT_UNSUPPORTED},
         .status = QUOIT_SYSTEM,
         .problem = "network 0 does not open"},
        {.opens = {QUOIT_SYSTEM, QUOIT_SYSTEM},
         .loopback_mask = 4,
         .status = QUOIT_SYSTEM,
         .problem = "network 0 does not open"},
        {.loopback_mask = 7, .provider = "number 0"},
        {.opens = {QUOIT_SYSTEM}, .loopback_mask = 7, .provider = "number 1"},
    };
    static char memory[1 << 20];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct quoit_net_config config = {.host_count = HOST_COUNT,
                                                .memory = memory,
                                                .memory_bytes = sizeof memory,
                                                .on_done = on_done,
                                                .on_message = on_message,
                                                .on_lost = on_lost};
        char problem[QUOIT_NET_PROBLEM_BYTES];
        struct quoit_net *net = NULL;
        memcpy(networks.open_statuses, cases[i].opens, sizeof cases[i].opens);
        memcpy(networks.reg_statuses, cases[i].regs, sizeof cases[i].regs);
        networks.loopback_mask = cases[i].loopback_mask;
        assert_int_equal(quoit_net_open(&config, &net, problem), cases[i].status);
        assert_int_equal(networks.live_count, cases[i].provider != NULL);
        if (cases[i].provider) {
            assert_string_equal(quoit_net_choice(net)->provider, cases[i].provider);
            assert_int_equal(quoit_net_region_key(quoit_net_region(net))->memory_bytes, sizeof memory);
        } else if (!strstr(problem, cases[i].problem)) {
            fail_msg("case %zu: %s", i, problem);
        }
        quoit_net_close(net);
        assert_int_equal(networks.live_count, 0);
    }
    memset(&networks, 0, sizeof networks);
}

#define PE_ENDPOINT 1u
#define NUMBER      (HOST_COUNT + PE_ENDPOINT) /* of the PE endpoint, for host 1 */

static void open_pe_endpoint_of_host_1(struct side *pe_endpoint)
{
    const struct quoit_net_address address = {.bytes = 1};
    char problem[QUOIT_NET_PROBLEM_BYTES];
    const struct quoit_net_config config = {.is_pe_endpoint = true,
                                            .pe_endpoint = PE_ENDPOINT,
                                            .host_count = HOST_COUNT,
                                            .on_done = on_done,
                                            .on_message = on_message,
                                            .on_lost = on_lost,
                                            .arg = pe_endpoint};
    *pe_endpoint = (struct side){0};
    assert_int_equal(quoit_net_open(&config, &pe_endpoint->net, problem), QUOIT_OK);
    pe_endpoint->fake = last_fake;
    pe_endpoint->fake->end.address.bytes = 1;
    assert_int_equal(quoit_net_connect(pe_endpoint->net, 1, &address), QUOIT_OK);
}

static void open_host_1(struct side *host)
{
    char problem[QUOIT_NET_PROBLEM_BYTES];
    const struct quoit_net_config config = {.host = 1,
                                            .host_count = HOST_COUNT,
                                            .pe_endpoint_count = PE_ENDPOINT + 1,
                                            .lost_limit_ns = LONG_NS,
                                            .on_done = on_done,
                                            .on_message = on_message,
                                            .on_lost = on_lost,
                                            .arg = host};
    *host = (struct side){0};
    assert_int_equal(quoit_net_open(&config, &host->net, problem), QUOIT_OK);
    host->fake = last_fake;
}

/* What host 1 has sent to the PE endpoint last. NULL: nothing. */
static const struct sent *answer_of(const struct side *host)
{
    const struct sent *answer = NULL;
    for (uint32_t i = 0; i < host->fake->sent_count; i++)
        if (host->fake->sent[i].host == NUMBER)
            answer = &host->fake->sent[i];
    return answer;
}

static void test_a_pe_endpoint_asks_when_it_is_known(void **state)
{
    struct side pe_endpoint, host;
    struct quoit_net_window *window;
    const struct quoit_net_key key = {.memory_bytes = 64};
    uint64_t word = 0;
    (void)state;
    networks.knows_pe_endpoints = true;
    open_pe_endpoint_of_host_1(&pe_endpoint);
    open_host_1(&host);
    assert_int_equal(quoit_net_attach(pe_endpoint.net, 1, &key, &window), QUOIT_OK);
    for (uint32_t times = 0; times < 3; times++) {
        assert_int_equal(quoit_net_get(pe_endpoint.net, window, 0, &word, NULL, sizeof word, 0), QUOIT_FULL);
        assert_int_equal(quoit_net_put(pe_endpoint.net, window, 0, &word, NULL, sizeof word, 0), QUOIT_FULL);
        quoit_net_progress(pe_endpoint.net);
    }
    assert_int_equal(pe_endpoint.fake->transfer_count, 0);
    assert_int_equal(pe_endpoint.fake->sent_count, 1); /* who it is */
    host.fake->coming = &pe_endpoint.fake->sent[0];
    quoit_net_progress(host.net);
    assert_non_null(answer_of(&host));
    pe_endpoint.fake->coming = answer_of(&host);
    quoit_net_progress(pe_endpoint.net);
    assert_int_equal(quoit_net_get(pe_endpoint.net, window, 0, &word, NULL, sizeof word, 0), QUOIT_FULL);
    assert_int_equal(pe_endpoint.fake->transfer_count, 1); /* the driver has none free */
    quoit_net_close(pe_endpoint.net);
    quoit_net_close(host.net);
    networks.knows_pe_endpoints = false;
}

/* What the first PE endpoint has said comes behind the second, who it is and more: the host drops it. */
static void hear_again(struct side *host, struct side *first)
{
    uint64_t word = 1;
    struct sent answer = *answer_of(host);
    host->lost_mask = 0;
    first->fake->coming = &answer;
    quoit_net_progress(first->net);
    assert_int_equal(quoit_net_send(first->net, 1, &word, sizeof word), QUOIT_OK);
    assert_int_equal(first->fake->sent_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        host->fake->coming = &first->fake->sent[i];
        quoit_net_progress(host->net);
    }
    quoit_net_progress(host->net);
    assert_int_equal(host->lost_mask, 0);
    assert_int_equal(host->fake->connected_mask, 1u << NUMBER);
}

static void test_a_pe_endpoint_that_comes_again(void **state)
{
    struct side pe_endpoints[2], host;
    uint64_t word = 0;
    (void)state;
    networks.knows_pe_endpoints = true;
    open_host_1(&host);
    for (uint32_t i = 0; i < 2; i++) {
        open_pe_endpoint_of_host_1(&pe_endpoints[i]);
        assert_int_equal(quoit_net_send(pe_endpoints[i].net, 1, &word, sizeof word), QUOIT_FULL);
        host.fake->coming = &pe_endpoints[i].fake->sent[0];
        quoit_net_progress(host.net);
        assert_int_equal(host.fake->connected_mask, 1u << NUMBER);
        assert_int_equal(host.lost_mask, i == 0 ? 0 : 1u << NUMBER);
    }
    hear_again(&host, &pe_endpoints[0]);
    assert_int_equal(quoit_net_send(host.net, NUMBER, &word, sizeof word), QUOIT_OK);
    host.fake->break_mask = 1u << NUMBER;
    host.lost_mask = 0;
    quoit_net_progress(host.net);
    assert_int_equal(host.lost_mask, 1u << NUMBER);
    assert_int_equal(host.fake->connected_mask, 0);
    assert_int_equal(quoit_net_send(host.net, NUMBER, &word, sizeof word), QUOIT_GONE);
    host.lost_mask = 0;
    host.fake->break_mask = 1u << NUMBER; /* what the driver finds of it later */
    quoit_net_progress(host.net);
    assert_int_equal(host.lost_mask, 0);
    quoit_net_close(host.net);
    quoit_net_close(pe_endpoints[0].net);
    quoit_net_close(pe_endpoints[1].net);
    networks.knows_pe_endpoints = false;
}

static void test_a_host_breaks_while_another_is_lost(void **state)
{
    struct side side;
    (void)state;
    open_side(&side, 0);
    quoit_net_progress(side.net); /* sends the first heartbeats */
    side.fake->dead_mask = 1u << 1;
    side.fake->break_mask = 1u << 3;
    quoit_net_progress(side.net);
    assert_int_equal(side.lost_mask & 1u << 3, 1u << 3);
    quoit_net_progress(side.net);
    assert_int_equal(side.lost_mask, 1u << 1 | 1u << 3);
    quoit_net_close(side.net);
}

/* All have been heard, so nothing else keeps host 0 awake. */
/* As long as the driver knows the host. */
static void explain(const struct quoit_net_end *end, uint32_t host, char text_out[QUOIT_NET_PROBLEM_BYTES])
{
    if (((const struct fake *)end)->connected_mask >> host & 1)
        snprintf(text_out, QUOIT_NET_PROBLEM_BYTES, "from here to host %u", host);
}

static enum quoit_status refuse_connect(struct quoit_net_end *end, uint32_t host,
                                        const struct quoit_net_address *address)
{
    (void)note_connect(end, host, address);
    return QUOIT_INVALID;
}

static int forget_why(void **state)
{
    (void)state;
    fake_driver.explain = NULL;
    fake_driver.connect = note_connect;
    return 0;
}

static void test_why_a_host_is_not_reached(void **state)
{
    const struct quoit_net_address address = {.bytes = 1};
    struct side side;
    (void)state;
    open_side(&side, 0);
    side.fake->break_mask = 1u << 2;
    quoit_net_progress(side.net);
    assert_string_equal(side.why, ""); /* this driver explains nothing */
    fake_driver.explain = explain;
    side.fake->break_mask = 1u << 3;
    quoit_net_progress(side.net);
    assert_int_equal(side.lost_mask, 1u << 2 | 1u << 3);
    assert_string_equal(side.why, "from here to host 3");
    quoit_net_close(side.net);

    open_alone(&side, 0, LONG_NS, 0);
    fake_driver.connect = refuse_connect;
    assert_int_equal(quoit_net_connect(side.net, 1, &address), QUOIT_INVALID);
    assert_string_equal(quoit_net_why(side.net), "from here to host 1");
    quoit_net_close(side.net);
}

static void test_what_the_user_may_not_write(void **state)
{
    static const struct {
        const char *device, *ports, *problem;
    } cases[] = {
        {"10.0.0.0/40", NULL, "--network-device: \"10.0.0.0/40\" is no subnet, such as 10.1.0.0/16 or fd00:1::/64"},
        {"eth0", "7-6", "--network-ports: \"7-6\" is no port, nor two with - between, such as 50000-50100"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char problem[QUOIT_NET_PROBLEM_BYTES];
        struct quoit_net *net;
        const struct quoit_net_config config = {
            .host_count = HOST_COUNT, .device = cases[i].device, .ports = cases[i].ports};
        assert_int_equal(quoit_net_open(&config, &net, problem), QUOIT_INVALID);
        assert_string_equal(problem, cases[i].problem);
        assert_int_equal(networks.live_count, 0);
    }
}

static void test_no_sleep_before_a_broken_host_is_lost(void **state)
{
    struct side side;
    uint64_t word = 0, until_ns;
    (void)state;
    open_side(&side, 0);
    for (uint32_t host = 1; host < HOST_COUNT; host++) {
        struct side other;
        open_side(&other, host);
        quoit_net_progress(other.net); /* sends heartbeats */
        assert_false(quoit_net_arm(side.net, &until_ns));
        side.fake->coming = &other.fake->sent[0];
        quoit_net_progress(side.net);
        quoit_net_close(other.net);
    }
    assert_true(quoit_net_arm(side.net, &until_ns));
    side.fake->dead_mask = 1u << 1;
    assert_int_equal(quoit_net_send(side.net, 1, &word, sizeof word), QUOIT_GONE);
    assert_false(quoit_net_arm(side.net, &until_ns));
    quoit_net_progress(side.net);
    assert_int_equal(side.lost_mask, 1u << 1);
    assert_true(quoit_net_arm(side.net, &until_ns));
    quoit_net_close(side.net);
}

/* Nobody gets what it sends. */
static void progress_alone(struct side *side)
{
    side->fake->sent_count = 0;
    quoit_net_progress(side->net);
}

/* Host 1 speaks once; hosts 2 and 3 never. */
static void test_a_host_that_has_not_spoken_yet(void **state)
{
    (void)state;
    for (uint32_t starts_late = 0; starts_late < 2; starts_late++) {
        struct side side, other;
        open_side_with_limits(&side, 0, SHORT_NS, starts_late ? LONG_NS : 3 * SHORT_NS);
        open_side(&other, 1);
        quoit_net_progress(other.net); /* sends heartbeats */
        side.fake->coming = &other.fake->sent[0];
        uint64_t begin_ns = quoit_clock_now_ns();
        while (side.lost_mask == 0)
            progress_alone(&side);
        assert_int_equal(side.lost_mask, 1u << 1);
        assert_true(quoit_clock_now_ns() - begin_ns > SHORT_NS);
        while (quoit_clock_now_ns() - begin_ns < 10 * SHORT_NS || (!starts_late && side.lost_mask == 1u << 1))
            progress_alone(&side);
        assert_int_equal(side.lost_mask, starts_late ? 1u << 1 : 7u << 1);
        quoit_net_close(side.net);
        quoit_net_close(other.net);
    }
}

static uint64_t now_of_test_ns;

static uint64_t read_clock(void)
{
    return now_of_test_ns;
}

/* Time between the opening and the connections, too short to be one in which the end was held up, is no silence. */
static void test_silence_begins_with_the_connection(void **state)
{
    static const struct quoit_primitives clock = {.now_ns = read_clock};
    struct side side;
    (void)state;
    now_of_test_ns = LONG_NS;
    quoit_primitives = &clock;
    open_alone(&side, 0, SHORT_NS, 0);
    now_of_test_ns += SHORT_NS / 8;
    connect_all(&side, 0);
    const uint64_t begin_ns = now_of_test_ns;
    for (; now_of_test_ns - begin_ns <= SHORT_NS; now_of_test_ns += SHORT_NS / 16) {
        progress_alone(&side);
        assert_int_equal(side.lost_mask, 0);
    }
    for (uint32_t i = 0; i < 2; i++, now_of_test_ns += SHORT_NS / 16)
        progress_alone(&side);
    assert_int_equal(side.lost_mask, 7u << 1);
    quoit_net_close(side.net);
}

/* While nobody answers: at least 1 ms, at most 20 ms and an eighth of the time since anything moved. */
static void test_who_does_not_answer_is_polled_seldom(void **state)
{
    static const struct quoit_primitives clock = {.now_ns = read_clock};
    const uint64_t ms = 1000000;
    struct side side;
    (void)state;
    now_of_test_ns = LONG_NS;
    quoit_primitives = &clock;
    open_alone(&side, 0, LONG_NS, 0);
    connect_all(&side, 0);
    progress_alone(&side); /* sends heartbeats */
    const uint64_t begin_ns = now_of_test_ns;
    uint64_t poll_count = 0;
    while (now_of_test_ns < begin_ns + 1000 * ms) {
        uint64_t until_ns, waited_ns = now_of_test_ns - begin_ns;
        assert_false(quoit_net_arm(side.net, &until_ns));
        assert_in_range(until_ns - now_of_test_ns, ms, 20 * ms);
        assert_in_range(until_ns - now_of_test_ns, 0, waited_ns / 8 > ms ? waited_ns / 8 : ms);
        now_of_test_ns = until_ns;
        progress_alone(&side);
        poll_count++;
    }
    assert_in_range(poll_count, 50, 100);
    quoit_net_close(side.net);
}

static int give_clock_back(void **state)
{
    (void)state;
    quoit_primitives = NULL;
    return 0;
}

/* The others speak once and never again. */
static void open_with_all_heard(struct side *side)
{
    open_side_with_limits(side, 0, SHORT_NS, 0);
    for (uint32_t host = 1; host < HOST_COUNT; host++) {
        struct side other;
        open_side(&other, host);
        quoit_net_progress(other.net); /* sends heartbeats */
        side->fake->coming = &other.fake->sent[0];
        progress_alone(side);
        quoit_net_close(other.net);
    }
}

static void test_an_end_that_was_held_up_once(void **state)
{
    struct side side;
    (void)state;
    open_with_all_heard(&side);
    quoit_clock_sleep_ns(3 * SHORT_NS);
    progress_alone(&side);
    assert_int_equal(side.lost_mask, 0);
    quoit_net_close(side.net);
}

/* It makes progress once between two times, each of which is shorter than the limit. */
static void test_an_end_that_is_held_up_again_and_again(void **state)
{
    struct side side;
    (void)state;
    open_with_all_heard(&side);
    for (uint32_t times = 0; times < HELD_UP_MAX && side.lost_mask != 7u << 1; times++) {
        quoit_clock_sleep_ns(SHORT_NS / 2);
        progress_alone(&side);
    }
    assert_int_equal(side.lost_mask, 7u << 1);
    quoit_net_close(side.net);
}

/* Host 0 has sent so many messages to host 1. */
static void open_both(struct side *from, struct side *to, uint32_t count)
{
    open_side(from, 0);
    open_side(to, 1);
    for (uint64_t i = 0; i < count; i++)
        assert_int_equal(quoit_net_send(from->net, 1, &i, sizeof i), QUOIT_OK);
}

static void close_both(struct side *from, struct side *to)
{
    quoit_net_close(from->net);
    quoit_net_close(to->net);
}

static void report(const struct side *from, struct side *to, uint32_t index)
{
    to->fake->coming = &from->fake->sent[index];
    quoit_net_progress(to->net);
}

/* What it sends to itself is reported, unlike to an end that is not, and nobody waits for a word of it: when the others
 * are lost it is not, even if it awaits itself. */
static void test_an_end_that_is_connected_to_itself(void **state)
{
    const struct quoit_net_address address = {.bytes = 1};
    struct side side, other;
    uint64_t word = 0;
    (void)state;
    open_side_with_limits(&side, 0, SHORT_NS, 0);
    open_side(&other, 0);
    assert_int_equal(quoit_net_connect(side.net, 0, &address), QUOIT_OK);
    assert_int_equal(quoit_net_send(side.net, 0, &word, sizeof word), QUOIT_OK);
    report(&side, &other, 0);
    assert_int_equal(other.heard_count, 0);
    report(&side, &side, 0);
    assert_int_equal(side.heard_count, 1);
    quoit_net_await(side.net, 0, true);
    uint64_t begin_ns = quoit_clock_now_ns();
    while ((side.lost_mask & 7u << 1) != 7u << 1 || quoit_clock_now_ns() - begin_ns < 10 * SHORT_NS)
        progress_alone(&side);
    assert_int_equal(side.lost_mask, 7u << 1);
    quoit_net_close(side.net);
    quoit_net_close(other.net);
}

/* Another end says that it has lost this one; a connection to itself that breaks is a loss. */
static void test_who_loses_an_end_that_is_connected_to_itself(void **state)
{
    const struct quoit_net_address address = {.bytes = 1};
    struct side side, other;
    (void)state;
    open_side(&side, 0);
    open_side(&other, 1);
    assert_int_equal(quoit_net_connect(side.net, 0, &address), QUOIT_OK);
    other.fake->dead_mask = ~(1u << 2); /* it speaks to host 2 alone, and host 0 hears what that hears */
    other.fake->break_mask = 1u << 0;
    quoit_net_progress(other.net); /* sends a heartbeat, */
    quoit_net_progress(other.net); /* and the loss of host 0 */
    assert_int_equal(other.lost_mask & 1, 1);
    assert_in_range(other.fake->sent_count, 2, SENT_MAX);
    report(&other, &side, 0);
    report(&other, &side, 1);
    assert_int_equal(side.lost_mask, 0);
    side.fake->break_mask = 1u << 0;
    quoit_net_progress(side.net);
    assert_int_equal(side.lost_mask, 1u << 0);
    quoit_net_close(side.net);
    quoit_net_close(other.net);
}

#define SHUFFLE_COUNT 200u

static void test_messages_in_any_order(void **state)
{
    struct quoit_prng chance = {.state = 1};
    (void)state;
    for (uint32_t round = 0; round < SHUFFLE_COUNT; round++) {
        struct side from, to;
        uint32_t count = 1 + (uint32_t)quoit_prng_choose(&chance, QUOIT_NET_HELD_MAX), expected = 0;
        uint32_t order[QUOIT_NET_HELD_MAX] = {0};
        bool was_reported[QUOIT_NET_HELD_MAX + 1] = {false};
        open_both(&from, &to, count);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t j = (uint32_t)quoit_prng_choose(&chance, i + 1);
            order[i] = order[j];
            order[j] = i;
        }
        for (uint32_t i = 0; i < count; i++) {
            report(&from, &to, order[i]);
            was_reported[order[i]] = true;
            while (was_reported[expected])
                expected++;
            assert_int_equal(to.heard_count, expected);
        }
        assert_int_equal(to.heard_count, count);
        assert_int_equal(to.lost_mask, 0);
        close_both(&from, &to);
    }
}

/* Message 0 does not come. */
static void test_a_message_that_is_missing(void **state)
{
    struct side from, to;
    (void)state;
    open_both(&from, &to, QUOIT_NET_HELD_MAX + 1);
    for (uint32_t i = 1; i < QUOIT_NET_HELD_MAX; i++)
        report(&from, &to, i);
    assert_int_equal(to.lost_mask, 0);
    report(&from, &to, QUOIT_NET_HELD_MAX);
    assert_int_equal(to.lost_mask, 1);
    assert_int_equal(to.heard_count, 0);
    close_both(&from, &to);
}

/* One that was handed over, and one that is held. */
static void test_a_message_that_comes_twice(void **state)
{
    (void)state;
    for (uint32_t index = 0; index < 2; index++) {
        struct side from, to;
        open_both(&from, &to, 3);
        report(&from, &to, index);
        assert_int_equal(to.lost_mask, 0);
        report(&from, &to, index);
        assert_int_equal(to.lost_mask, 1);
        close_both(&from, &to);
    }
}

int main(void)
{
    fake_driver.survey = survey;
    fake_driver.open = fake_open;
    fake_driver.close = fake_close;
    fake_driver.connect = note_connect;
    fake_driver.reg = answer_reg;
    fake_driver.put = fake_driver.get = refuse_transfer;
    fake_driver.send_buffer = fake_send_buffer;
    fake_driver.send = fake_send;
    fake_driver.progress = fake_progress;
    fake_driver.abandon = note_abandon;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_in_any_order),
        cmocka_unit_test(test_a_message_that_is_missing),
        cmocka_unit_test(test_a_message_that_comes_twice),
        cmocka_unit_test(test_which_network_is_taken),
        cmocka_unit_test(test_a_pe_endpoint_asks_when_it_is_known),
        cmocka_unit_test(test_a_pe_endpoint_that_comes_again),
        cmocka_unit_test(test_a_host_breaks_while_another_is_lost),
        cmocka_unit_test_teardown(test_why_a_host_is_not_reached, forget_why),
        cmocka_unit_test(test_what_the_user_may_not_write),
        cmocka_unit_test(test_no_sleep_before_a_broken_host_is_lost),
        cmocka_unit_test(test_a_host_that_has_not_spoken_yet),
        cmocka_unit_test_teardown(test_silence_begins_with_the_connection, give_clock_back),
        cmocka_unit_test_teardown(test_who_does_not_answer_is_polled_seldom, give_clock_back),
        cmocka_unit_test(test_an_end_that_was_held_up_once),
        cmocka_unit_test(test_an_end_that_is_held_up_again_and_again),
        cmocka_unit_test(test_an_end_that_is_connected_to_itself),
        cmocka_unit_test(test_who_loses_an_end_that_is_connected_to_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
