/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: every network driver serves PE endpoints as net.h promises: what they put, get and say arrives, others of the
 * same number take their place, and their deaths harm no host. Method: for each driver that is found, two hosts are
 * processes of this machine over its loopback device (net_rig.h), and PE endpoints visit the second; every byte is
 * checked. A driver whose library is missing is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/net_rig.h"

#define PE_ENDPOINT          3u
#define PE_ENDPOINT_COUNT    4u
#define PE_ENDPOINT_BYTES    100000u
#define PE_ENDPOINT_LIMIT_NS 50000000u

static const char *driver_now; /* of the tests that run */

/* Skips the test when the driver, or its library, is not here. The second host takes PE endpoints. */
static struct rig make_rig(void)
{
    struct rig rig;
    if (!rig_find(&rig, driver_now, 2))
        skip();
    rig.pe_endpoint_count = PE_ENDPOINT_COUNT;
    return rig;
}

static void hear(struct rig *pe_endpoint, uint32_t host, const void *payload, uint32_t bytes)
{
    uint64_t number;
    must(host == 1 && bytes == sizeof number);
    memcpy(&number, payload, sizeof number);
    must(number == 2 * pe_endpoint->message_count);
}

/* Beside the end of host 0, of which `rig` is. memory NULL: none. */
static void open_pe_endpoint(struct rig *pe_endpoint, const struct rig *rig, char *memory, uint64_t bytes)
{
    char problem[QUOIT_NET_PROBLEM_BYTES];
    *pe_endpoint = (struct rig){.driver = rig->driver, .host_count = 2, .on_message = hear};
    const struct quoit_net_config config = {.driver = rig->driver,
                                            .device = rig->device,
                                            .is_pe_endpoint = true,
                                            .pe_endpoint = PE_ENDPOINT,
                                            .host_count = 2,
                                            .tag = RIG_TAG,
                                            .lost_limit_ns = PE_ENDPOINT_LIMIT_NS,
                                            .memory = memory,
                                            .memory_bytes = bytes,
                                            .on_done = rig_done,
                                            .on_message = rig_message,
                                            .on_lost = rig_lost,
                                            .arg = pe_endpoint};
    must(quoit_net_open(&config, &pe_endpoint->net, problem) == QUOIT_OK);
    must(quoit_net_limits(pe_endpoint->net)->takes_pe_endpoints);
    pe_endpoint->region = quoit_net_region(pe_endpoint->net);
    must(quoit_net_connect(pe_endpoint->net, 1, &rig->board->addresses[1]) == QUOIT_OK);
    must(quoit_net_attach(pe_endpoint->net, 1, &rig->board->keys[1], &pe_endpoint->windows[1]) == QUOIT_OK);
}

/* Puts to host 1 and gets it back, and is silent for longer than a host may be. */
static void visit(struct rig *rig)
{
    struct rig pe_endpoint;
    char *local = calloc(2, PE_ENDPOINT_BYTES);
    must(local);
    open_pe_endpoint(&pe_endpoint, rig, local, UINT64_C(2) * PE_ENDPOINT_BYTES);
    rig_fill(local, 0, 0, PE_ENDPOINT_BYTES, 1);
    rig_put(&pe_endpoint, 1, 0, local, PE_ENDPOINT_BYTES, 1);
    rig_flush(&pe_endpoint);
    rig_get(&pe_endpoint, 1, 0, local + PE_ENDPOINT_BYTES, PE_ENDPOINT_BYTES, 2);
    rig_flush(&pe_endpoint);
    must(rig_is_filled(local + PE_ENDPOINT_BYTES, 0, 0, PE_ENDPOINT_BYTES, 1));
    uint64_t end_ns = quoit_clock_now_ns() + 3 * PE_ENDPOINT_LIMIT_NS;
    rig_until(&pe_endpoint, quoit_clock_now_ns() > end_ns);
    must(pe_endpoint.lost_mask == 0);
    must(pe_endpoint.done_count == 2);
    quoit_net_close(pe_endpoint.net);
    free(local);
}

static void run_pe_endpoint(struct rig *rig)
{
    if (rig->host == 0) {
        visit(rig);
        atomic_store(&rig->board->word[0], 1);
        return;
    }
    rig_until(rig, atomic_load(&rig->board->word[0]) != 0);
    must(rig_is_filled(rig->memory, 0, 0, PE_ENDPOINT_BYTES, 1));
    must(rig->message_count == 0);
}

static void test_pe_endpoint(void **state)
{
    (void)state;
    struct rig rig = make_rig();
    assert_int_equal(rig_run(&rig, run_pe_endpoint), 0);
}

#define SAID_COUNT 100u

/* A PE endpoint says numbers to host 1, and hears the double of each, in order; then another one of the same number
 * does. */
static void say(struct rig *rig)
{
    struct rig pe_endpoint;
    open_pe_endpoint(&pe_endpoint, rig, NULL, 0);
    for (uint64_t number = 1; number <= SAID_COUNT; number++)
        rig_send(&pe_endpoint, 1, &number, sizeof number);
    rig_until(&pe_endpoint, pe_endpoint.message_count == SAID_COUNT);
    must(pe_endpoint.lost_mask == 0);
    quoit_net_close(pe_endpoint.net);
}

static void repeat(struct rig *rig, uint32_t host, const void *payload, uint32_t bytes)
{
    uint64_t *numbers = rig->arg, number;
    must(host == 2 + PE_ENDPOINT && bytes == sizeof number);
    memcpy(&number, payload, sizeof number);
    numbers[rig->message_count - 1] = number;
}

static void run_said(struct rig *rig)
{
    uint64_t numbers[2 * SAID_COUNT], done_count = 0;
    if (rig->host == 0) {
        say(rig);
        say(rig);
        atomic_store(&rig->board->word[0], 1);
        return;
    }
    rig->arg = numbers;
    rig->on_message = repeat;
    while (atomic_load(&rig->board->word[0]) == 0) {
        rig_until(rig, done_count < rig->message_count || atomic_load(&rig->board->word[0]) != 0);
        for (; done_count < rig->message_count; done_count++) {
            uint64_t twice = 2 * numbers[done_count];
            must(numbers[done_count] == done_count % SAID_COUNT + 1);
            rig_send(rig, 2 + PE_ENDPOINT, &twice, sizeof twice);
        }
    }
    must(done_count == 2 * SAID_COUNT);
    must(rig->pe_endpoint_lost_count == 1 ||
         rig->pe_endpoint_lost_count == 2); /* the first, at the latest when the second came */
}

static void test_pe_endpoint_messages(void **state)
{
    (void)state;
    struct rig rig = make_rig();
    assert_int_equal(rig_run(&rig, run_said), 0);
}

/* PE endpoints of one number, each a process that asks host 1 for all that it can until it is killed, every other one
 * perhaps while it connects: host 1 goes on, and the last one is served. */
#define VICTIM_COUNT         6u
#define KILL_EARLY_NS        UINT64_C(60000000) /* about what it takes to open an end */
#define KILL_NS              UINT64_C(10000000)
#define HEARD_MAX            (2 * SAID_COUNT)
#define PE_ENDPOINT_COMES_NS UINT64_C(200000000) /* to open an end, and to say who it is */

enum { WORD_END, WORD_SERVED, WORD_TURN };

struct deaths {
    uint64_t seed;
    uint32_t victim_count;
    pid_t pids[VICTIM_COUNT];
};

struct heard {
    uint32_t count, answered_count;
    struct {
        uint64_t number;
        uint32_t lost_count; /* of the PE endpoints before the one that said it */
    } words[HEARD_MAX];
};

static void keep_heard(struct rig *rig, uint32_t host, const void *payload, uint32_t bytes)
{
    struct heard *heard = rig->arg;
    uint32_t place = heard->count % HEARD_MAX;
    must(host == 2 + PE_ENDPOINT && bytes == sizeof heard->words[place].number);
    must(heard->count - heard->answered_count < HEARD_MAX);
    memcpy(&heard->words[place].number, payload, bytes);
    heard->words[place].lost_count = rig->pe_endpoint_lost_count;
    heard->count++;
}

/* Unless the PE endpoint that said it has gone. */
static void answer_next(struct rig *rig, struct heard *heard)
{
    uint32_t place = heard->answered_count % HEARD_MAX;
    uint64_t twice = 2 * heard->words[place].number;
    enum quoit_status status = QUOIT_FULL;
    while (status == QUOIT_FULL && heard->words[place].lost_count == rig->pe_endpoint_lost_count) {
        status = quoit_net_send(rig->net, 2 + PE_ENDPOINT, &twice, sizeof twice);
        if (status == QUOIT_FULL)
            quoit_net_progress(rig->net);
    }
    must(status == QUOIT_OK || status == QUOIT_FULL || status == QUOIT_GONE);
    heard->answered_count++;
}

static void answer_all(struct rig *rig)
{
    struct heard heard = {0};
    rig->arg = &heard;
    rig->on_message = keep_heard;
    while (atomic_load(&rig->board->word[WORD_END]) == 0) {
        rig_until(rig, heard.answered_count < heard.count || atomic_load(&rig->board->word[WORD_END]) != 0);
        while (heard.answered_count < heard.count)
            answer_next(rig, &heard);
    }
}

/* Until it is killed. */
static void be_victim(struct rig *rig, uint32_t turn)
{
    struct rig pe_endpoint;
    char *local = malloc(PE_ENDPOINT_BYTES);
    must(local);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (atomic_load(&rig->board->word[WORD_TURN]) != turn)
        quoit_clock_sleep_ns(1000000);
    open_pe_endpoint(&pe_endpoint, rig, local, PE_ENDPOINT_BYTES);
    for (uint64_t number = 1;; number++) {
        memset(local, 0, PE_ENDPOINT_BYTES);
        rig_send(&pe_endpoint, 1, &number, sizeof number);
        rig_get(&pe_endpoint, 1, 0, local, PE_ENDPOINT_BYTES, number);
        rig_until(&pe_endpoint, pe_endpoint.message_count == number && pe_endpoint.done_count == number);
        must(rig_is_filled(local, 1, 0, PE_ENDPOINT_BYTES, 0));
        if (number == 1)
            atomic_store(&rig->board->word[WORD_SERVED], turn);
    }
}

/* Before host 0 has loaded the library. */
static void make_victims(struct rig *rig)
{
    struct deaths *deaths = rig->arg;
    for (uint32_t i = 0; rig->host == 0 && i < deaths->victim_count; i++) {
        deaths->pids[i] = fork();
        must(deaths->pids[i] >= 0);
        if (deaths->pids[i] == 0)
            be_victim(rig, i + 1);
    }
}

static void run_pe_endpoint_deaths(struct rig *rig)
{
    const struct deaths *deaths = rig->arg;
    struct quoit_prng chance = {.state = deaths->seed};
    if (rig->host == 1)
        rig_fill(rig->memory, 1, 0, PE_ENDPOINT_BYTES, 0);
    rig_barrier(rig);
    if (rig->host == 1) {
        answer_all(rig);
        must(rig->pe_endpoint_lost_count >= VICTIM_COUNT / 2);
        return;
    }
    for (uint32_t i = 0; i < VICTIM_COUNT; i++) {
        bool is_early = i % 2 != 0;
        atomic_store(&rig->board->word[WORD_TURN], i + 1);
        rig_until(rig, is_early || atomic_load(&rig->board->word[WORD_SERVED]) == i + 1);
        uint64_t end_ns = quoit_clock_now_ns() + quoit_prng_choose(&chance, is_early ? KILL_EARLY_NS : KILL_NS);
        rig_until(rig, quoit_clock_now_ns() >= end_ns);
        must(kill(deaths->pids[i], SIGKILL) == 0);
        must(waitpid(deaths->pids[i], NULL, 0) == deaths->pids[i]);
    }
    say(rig);
    atomic_store(&rig->board->word[WORD_END], 1);
}

static void test_pe_endpoint_deaths(void **state)
{
    (void)state;
    const char *text = getenv("QUOIT_TEST_SEED");
    struct deaths deaths = {.seed = text ? strtoull(text, NULL, 0) : quoit_clock_now_ns(),
                            .victim_count = VICTIM_COUNT};
    struct rig rig = make_rig();
    print_message("seed %llu: QUOIT_TEST_SEED=%llu replays the times\n", (unsigned long long)deaths.seed,
                  (unsigned long long)deaths.seed);
    rig.enter = make_victims;
    rig.arg = &deaths;
    assert_int_equal(rig_run(&rig, run_pe_endpoint_deaths), 0);
}

/* A host that does nothing for a while has two PE endpoints of one number at once then, the first of which has died. */
static void run_late(struct rig *rig)
{
    struct rig pe_endpoint;
    rig_barrier(rig);
    if (rig->host == 1) {
        while (atomic_load(&rig->board->word[WORD_SERVED]) == 0)
            quoit_clock_sleep_ns(1000000);
        answer_all(rig);
        return;
    }
    const struct deaths *deaths = rig->arg;
    atomic_store(&rig->board->word[WORD_TURN], 1);
    quoit_clock_sleep_ns(PE_ENDPOINT_COMES_NS);
    must(kill(deaths->pids[0], SIGKILL) == 0);
    must(waitpid(deaths->pids[0], NULL, 0) == deaths->pids[0]);
    open_pe_endpoint(&pe_endpoint, rig, NULL, 0);
    uint64_t number = 1, end_ns = quoit_clock_now_ns() + PE_ENDPOINT_COMES_NS;
    must(quoit_net_send(pe_endpoint.net, 1, &number, sizeof number) == QUOIT_FULL); /* but who it is */
    rig_until(&pe_endpoint, quoit_clock_now_ns() >= end_ns);
    atomic_store(&rig->board->word[WORD_SERVED], 1);
    rig_send(&pe_endpoint, 1, &number, sizeof number);
    rig_until(&pe_endpoint, pe_endpoint.message_count == 1);
    must(pe_endpoint.lost_mask == 0);
    quoit_net_close(pe_endpoint.net);
    atomic_store(&rig->board->word[WORD_END], 1);
}

static void test_a_late_host(void **state)
{
    (void)state;
    struct deaths deaths = {.victim_count = 1};
    struct rig rig = make_rig();
    rig.enter = make_victims;
    rig.arg = &deaths;
    assert_int_equal(rig_run(&rig, run_late), 0);
}

int main(void)
{
    static const char *const drivers[] = {"tcp", "ofi", "ucx", "shuffle"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pe_endpoint),
        cmocka_unit_test(test_pe_endpoint_messages),
        cmocka_unit_test(test_pe_endpoint_deaths),
        cmocka_unit_test(test_a_late_host),
    };
    int failed_count = 0;
    cmocka_set_test_filter(getenv("QUOIT_TEST_ONLY")); /* NULL: all */
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++) {
        driver_now = drivers[i];
        failed_count += cmocka_run_group_tests_name(drivers[i], tests, NULL, NULL);
    }
    return failed_count;
}
