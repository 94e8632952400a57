/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: what a PE puts and gets over its own end of a network, and what not: nothing that could change an order, leave a
 * waiting PE asleep, or be lost. Method: one PE of a job over a network; the test is the network and the proxy, records
 * what it is given, and finishes operations when it likes. */
#include "engine/ring/pe_endpoint.h"
#include "engine/ring/pe_rig.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define OPERATION_MAX  64u
#define TAG            0x1234u
#define OPENING_NS     40000000u
#define MANY           40u                       /* more than may be under way at once */
#define SEGMENTS(host) (UINT64_C(4096) * (host)) /* where those of a host begin, as its proxy says */

struct operation {
    uint32_t host;
    uint64_t offset, bytes, cookie;
    void *local;
    bool is_put;
};

struct quoit_net_window {
    uint32_t host;
};

static struct pe_rig rig;

static struct {
    /* The network. */
    struct quoit_net_config config;
    struct quoit_net_window windows[HOST_COUNT];
    uint32_t open_count, connect_count, progress_count;
    enum quoit_status open_status, connect_status, begin_status, done_status;
    struct operation operations[OPERATION_MAX];
    uint32_t operation_count, done_count;
    uint32_t idle_count; /* so many calls of progress finish nothing */
    uint64_t found;      /* what a get finds */
    struct quoit_frame sent[OPERATION_MAX];
    char payload[OPERATION_MAX][64]; /* of them */
    uint32_t sent_count, responded_count;
    enum quoit_status send_status;
    bool is_closed;
} test;

enum quoit_status quoit_net_open(const struct quoit_net_config *config, struct quoit_net **net_out,
                                 char problem[QUOIT_NET_PROBLEM_BYTES])
{
    problem[0] = '\0';
    test.open_count++;
    test.config = *config;
    if (test.open_status == QUOIT_OK)
        *net_out = (struct quoit_net *)(void *)&test;
    return test.open_status;
}

void quoit_net_close(struct quoit_net *net)
{
    test.is_closed = net != NULL;
}

enum quoit_status quoit_net_connect(struct quoit_net *net, uint32_t host, const struct quoit_net_address *address)
{
    (void)net;
    assert_int_equal(address->bytes, host + 1);
    test.connect_count++;
    return test.connect_status;
}

enum quoit_status quoit_net_attach(struct quoit_net *net, uint32_t host, const struct quoit_net_key *key,
                                   struct quoit_net_window **window_out)
{
    (void)net;
    assert_int_equal(key->bytes, host + 10);
    test.windows[host].host = host;
    *window_out = &test.windows[host];
    return QUOIT_OK;
}

const struct quoit_net_region *quoit_net_region(const struct quoit_net *net)
{
    return (const struct quoit_net_region *)(const void *)net;
}

static enum quoit_status begin(const struct quoit_net_window *window, struct operation operation)
{
    if (test.begin_status != QUOIT_OK)
        return test.begin_status;
    assert_in_range(test.operation_count, 0, OPERATION_MAX - 1);
    operation.host = window->host;
    test.operations[test.operation_count++] = operation;
    return QUOIT_OK;
}

enum quoit_status quoit_net_put(struct quoit_net *net, const struct quoit_net_window *window, uint64_t offset,
                                const void *source, const struct quoit_net_region *region, uint64_t bytes,
                                uint64_t cookie)
{
    assert_ptr_equal(net, region);
    return begin(
        window,
        (struct operation){
            .offset = offset, .bytes = bytes, .cookie = cookie, .local = (void *)(uintptr_t)source, .is_put = true});
}

enum quoit_status quoit_net_get(struct quoit_net *net, const struct quoit_net_window *window, uint64_t offset,
                                void *destination, const struct quoit_net_region *region, uint64_t bytes,
                                uint64_t cookie)
{
    assert_ptr_equal(net, region);
    return begin(window, (struct operation){.offset = offset, .bytes = bytes, .cookie = cookie, .local = destination});
}

enum quoit_status quoit_net_send(struct quoit_net *net, uint32_t host, const void *payload, uint32_t bytes)
{
    (void)net;
    if (test.send_status != QUOIT_OK)
        return test.send_status;
    assert_in_range(test.sent_count, 0, OPERATION_MAX - 1);
    struct quoit_frame *frame = &test.sent[test.sent_count];
    memcpy(frame, payload, sizeof *frame);
    assert_int_equal(frame->dest_host, host);
    assert_int_equal(frame->source_host, 0);
    assert_int_equal(frame->source_pe, 0);
    assert_int_equal(bytes, QUOIT_FRAME_BYTES + ((quoit_frame_payload_bytes(frame) + 7) & ~7u));
    if (bytes - QUOIT_FRAME_BYTES <= sizeof test.payload[0])
        memcpy(test.payload[test.sent_count], (const char *)payload + QUOIT_FRAME_BYTES, bytes - QUOIT_FRAME_BYTES);
    test.sent_count++;
    return QUOIT_OK;
}

/* As the proxy of the other host responds to frame `number`. */
static void respond(uint32_t number)
{
    const struct quoit_frame *frame = &test.sent[number];
    struct quoit_frame reply = {.kind = QUOIT_FRAME_ACK, .flow_sequence = frame->flow_sequence};
    if (frame->kind == QUOIT_FRAME_AMO_FETCH)
        reply = (struct quoit_frame){.kind = QUOIT_FRAME_VALUE, .token = frame->token, .operand = test.found};
    test.config.on_message(test.config.arg, frame->dest_host, &reply, sizeof reply);
}

/* Finishes all that is under way. */
uint32_t quoit_net_progress(struct quoit_net *net)
{
    uint32_t count = 0;
    (void)net;
    test.progress_count++;
    if (test.idle_count > 0) {
        test.idle_count--;
        return 0;
    }
    for (; test.done_count < test.operation_count; count++) {
        const struct operation *operation = &test.operations[test.done_count++];
        if (!operation->is_put)
            memcpy(operation->local, &test.found, operation->bytes);
        test.config.on_done(test.config.arg, operation->host, operation->cookie, test.done_status);
    }
    for (; test.responded_count < test.sent_count; count++)
        respond(test.responded_count++);
    return count;
}

/* The job */

static void tell_contacts(bool is_rdma, bool takes_pe_endpoints)
{
    struct quoit_contacts *contacts = quoit_memory_contacts(&rig.layout, rig.memory);
    *contacts = (struct quoit_contacts){.tag = TAG,
                                        .notice_ns = 1,
                                        .opening_ns = OPENING_NS,
                                        .is_rdma = is_rdma,
                                        .takes_pe_endpoints = takes_pe_endpoints,
                                        .is_told = true};
    for (uint32_t host = 0; host < HOST_COUNT; host++)
        contacts->hosts[host] = (struct quoit_contact){
            .address = {.bytes = host + 1}, .key = {.bytes = host + 10}, .segments = SEGMENTS(host)};
}

static void open_with(enum quoit_pe_endpoint_use use, bool is_rdma, bool takes_pe_endpoints)
{
    memset(&test, 0, sizeof test);
    pe_rig_map(&rig, 2 * QUOIT_MANY_BYTES_MAX, true);
    tell_contacts(is_rdma, takes_pe_endpoints);
    pe_rig_open(&rig, use);
}

/* Over RDMA, and proxies take no frames. */
static int open_test(void **state)
{
    (void)state;
    open_with(QUOIT_PE_ENDPOINT_YES, true, false);
    return 0;
}

/* As over TCP. */
static int open_frames(void **state)
{
    (void)state;
    open_with(QUOIT_PE_ENDPOINT_YES, false, true);
    return 0;
}

static int close_test(void **state)
{
    (void)state;
    pe_rig_close(&rig);
    assert_int_equal(test.is_closed, test.open_count != 0 && test.open_status == QUOIT_OK);
    return 0;
}

static uint32_t request_count(void)
{
    return atomic_load(&pe_rig_channel(&rig)->submit_tail);
}

static const struct quoit_frame *request(uint32_t number)
{
    assert_in_range(number, 0, request_count() - 1);
    struct quoit_channel *channel = pe_rig_channel(&rig);
    return &channel->requests[channel->submit[number % QUOIT_REQUESTS_A_CHANNEL]].frame;
}

/* As the proxy says that all requests are executed. */
static void execute_requests(void)
{
    struct quoit_channel *shared = pe_rig_channel(&rig);
    for (uint32_t tail = atomic_load(&shared->complete_tail); tail != request_count(); tail++) {
        shared->complete[tail % QUOIT_REQUESTS_A_CHANNEL] = shared->submit[tail % QUOIT_REQUESTS_A_CHANNEL];
        atomic_store(&shared->complete_tail, tail + 1);
    }
}

static void put_at(struct quoit_context *context, uint32_t pe, uint64_t offset, const void *source, size_t bytes)
{
    rig.engine->ops->put(context, &rig.peers[pe], offset, source, bytes, false);
}

static void put(uint32_t pe)
{
    const uint64_t word = 7;
    put_at(&rig.context, pe, rig.heap, &word, sizeof word);
}

static void a_lone_put_goes_by_itself(void **state)
{
    (void)state;
    uint64_t word = 0x0123456789abcdef;
    put_at(&rig.context, 5, rig.heap + 24, &word, sizeof word);
    word = 0;
    assert_int_equal(test.operation_count, 1);
    assert_int_equal(request_count(), 0);
    const struct operation *operation = &test.operations[0];
    const uint64_t sent = 0x0123456789abcdef;
    assert_true(operation->is_put);
    assert_int_equal(operation->host, 2);
    assert_int_equal(operation->offset, SEGMENTS(2) + rig.layout.segment_stride + rig.heap + 24);
    assert_int_equal(operation->bytes, sizeof word);
    assert_memory_equal(operation->local, &sent, sizeof sent);
    assert_true((char *)operation->local >= (char *)test.config.memory);
    assert_true((char *)operation->local < (char *)test.config.memory + test.config.memory_bytes);
    assert_true(test.config.is_pe_endpoint);
}

/* An adapter may write to pages of the parent at any time; of a page that a child shares, one of the two has a copy. */
static void a_forked_child_has_no_slots(void **state)
{
    (void)state;
    unsigned char is_resident;
    int status;
    put(5);
    assert_int_equal(mincore(test.config.memory, 1, &is_resident), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(mincore(test.config.memory, 1, &is_resident) == 0 || errno != ENOMEM);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void of_a_row_the_others_share_requests(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++)
        put(2);
    assert_int_equal(test.operation_count, 1);
    assert_int_equal(request_count(), 1);
    assert_int_equal(request(0)->kind, QUOIT_FRAME_PUT_MANY);
    const uint64_t word = 1;
    put_at(&rig.other_context, 3, rig.heap, &word, sizeof word);
    assert_int_equal(test.operation_count, 2);
    assert_int_equal(test.connect_count, 1);
}

static void the_ends_open_and_connect_with_their_first_operation(void **state)
{
    (void)state;
    assert_int_equal(test.open_count, 0);
    put(2);
    rig.engine->ops->quiet(rig.engine, &rig.context);
    put(3);
    rig.engine->ops->quiet(rig.engine, &rig.context);
    assert_int_equal(test.open_count, 1);
    assert_int_equal(test.connect_count, 1);
    put(4);
    assert_int_equal(test.open_count, 1);
    assert_int_equal(test.connect_count, 2);
    assert_int_equal(test.operation_count, 3);
}

static void quiet_and_fence_wait_until_it_has_arrived(void **state)
{
    (void)state;
    put(2);
    test.idle_count = 3;
    rig.engine->ops->fence(rig.engine, &rig.context);
    assert_int_equal(test.done_count, 1);
    put(2);
    test.idle_count = 3;
    rig.engine->ops->quiet(rig.engine, &rig.context);
    assert_int_equal(test.done_count, 2);
    assert_int_equal(test.operation_count, 2);
    assert_int_equal(test.idle_count, 0);
}

/* Collectives put, then signal, without a fence. */
static void a_signal_waits(void **state)
{
    const struct quoit_signal signal = {.offset = rig.layout.segment_heap, .value = 1, .op = QUOIT_AMO_SET};
    (void)state;
    put(2);
    test.idle_count = 3;
    rig.engine->ops->put_signal(&rig.context, &rig.peers[2], 0, NULL, 0, &signal, false);
    assert_int_equal(test.idle_count, 0);
    assert_int_equal(test.done_count, 1);
}

static void none_passes_requests_before_a_fence(void **state)
{
    (void)state;
    put(2);
    put(2);
    assert_int_equal(request_count(), 1);
    rig.engine->ops->fence(rig.engine, &rig.context);
    uint32_t count = request_count();
    put(2);
    assert_int_equal(test.operation_count, 1);
    assert_int_equal(request_count(), count + 1);
    execute_requests();
    rig.engine->ops->quiet(rig.engine, &rig.context);
    put(2);
    assert_int_equal(test.operation_count, 2);
}

static void workspaces_and_large_puts_go_through_the_proxy(void **state)
{
    (void)state;
    static const char bytes[8192];
    const uint64_t word = 1;
    put_at(&rig.context, 2, rig.layout.segment_data - 8, &word, sizeof word);
    put_at(&rig.context, 2, rig.heap, bytes, sizeof bytes);
    assert_int_equal(test.operation_count, 0);
    assert_in_range(request_count(), 2, QUOIT_REQUESTS_A_CHANNEL);
    execute_requests();
    put_at(&rig.context, 2, rig.layout.segment_data, &word, sizeof word);
    assert_int_equal(test.operation_count, 1);
}

/* The first put in a while wakes its PE at once; of those that follow soon the last wake comes later. */
static void a_wake_names_what_was_put(void **state)
{
    (void)state;
    put(3);
    assert_int_equal(request_count(), 0);
    rig.engine->ops->quiet(rig.engine, &rig.context);
    assert_int_equal(request_count(), 1);
    assert_int_equal(request(0)->kind, QUOIT_FRAME_PUT);
    assert_int_equal(request(0)->flags, QUOIT_FRAME_LANDED);
    assert_int_equal(request(0)->dest_host, 1);
    assert_int_equal(request(0)->dest_pe, 1);
    assert_int_equal(request(0)->offset, rig.heap);
    assert_int_equal(request(0)->bytes, 8);
    execute_requests();
    const char three[3] = {0};
    put_at(&rig.context, 3, rig.heap + 100, three, sizeof three);
    test.idle_count = 1;
    rig.engine->ops->quiet(rig.engine, &rig.context);
    execute_requests();
    if (request_count() == 1) { /* it waits, unless this machine was held up */
        struct quoit_ring_engine *ring = (struct quoit_ring_engine *)rig.engine;
        while (request_count() == 1)
            quoit_pe_endpoint_progress(ring);
    }
    assert_int_equal(request_count(), 2);
    assert_int_equal(request(1)->offset, rig.heap + 100);
    assert_int_equal(request(1)->bytes, 3);
    execute_requests();
    rig.engine->ops->quiet(rig.engine, NULL);
}

static void what_it_cannot_do_the_proxy_does(void **state)
{
    (void)state;
    test.begin_status = QUOIT_FULL;
    put(2);
    assert_int_equal(request_count(), 1);
    assert_int_equal(test.progress_count, 1); /* so that it connects */
    execute_requests();
    test.begin_status = QUOIT_GONE;
    put(4);
    assert_int_equal(request_count(), 2);
    test.begin_status = QUOIT_OK;
    execute_requests();
    rig.engine->ops->quiet(rig.engine, &rig.context);
    test.config.on_lost(test.config.arg, 1, QUOIT_GONE);
    put(2);
    assert_int_equal(test.operation_count, 0);
    assert_int_equal(request_count(), 3);
    execute_requests();
    uint64_t word;
    assert_false(quoit_pe_endpoint_get(&rig.context, &rig.peers[2], &word, rig.heap, sizeof word));
    put(4);
    assert_int_equal(test.operation_count, 1);
}

static void a_host_that_refuses_is_asked_once(void **state)
{
    (void)state;
    test.connect_status = QUOIT_INVALID;
    put(2);
    put(2);
    assert_int_equal(test.connect_count, 1);
    assert_int_equal(test.operation_count, 0);
    assert_int_equal(request_count(), 1);
}

static void a_network_that_does_not_open_is_tried_once(void **state)
{
    (void)state;
    test.open_status = QUOIT_UNSUPPORTED;
    put(2);
    put(4);
    assert_int_equal(test.open_count, 1);
    assert_int_equal(test.operation_count, 0);
    assert_int_equal(request_count(), 2);
}

static void a_get_returns_with_the_data(void **state)
{
    (void)state;
    uint64_t word = 0;
    put(2); /* opens the end */
    test.found = 0xfedcba9876543210;
    test.idle_count = 3;
    rig.engine->ops->get(&rig.context, &rig.peers[4], &word, rig.heap + 8, sizeof word, false);
    assert_int_equal(word, 0xfedcba9876543210);
    assert_false(test.operations[1].is_put);
    assert_int_equal(test.operations[1].offset, SEGMENTS(2) + rig.heap + 8);
    test.done_status = QUOIT_GONE;
    for (uint32_t i = 0; i < MANY; i++) { /* none keeps its place */
        assert_false(quoit_pe_endpoint_get(&rig.context, &rig.peers[4], &word, rig.heap, sizeof word));
        assert_int_equal(test.operation_count, 3 + i);
    }
    assert_int_equal(word, 0xfedcba9876543210);
}

static void amo(uint32_t pe, enum quoit_amo op, uint64_t operand, uint64_t *result_out, bool is_nbi)
{
    const struct quoit_atomic atomic = {.op = op, .size = 8, .offset = rig.heap + 16, .operand = operand};
    rig.engine->ops->amo(&rig.context, &rig.peers[pe], &atomic, result_out, is_nbi);
}

static void put_signal(uint32_t pe, const void *source, size_t bytes)
{
    const struct quoit_signal signal = {.offset = rig.heap + 8, .value = 3, .op = QUOIT_AMO_ADD};
    rig.engine->ops->put_signal(&rig.context, &rig.peers[pe], rig.heap + 64, source, bytes, &signal, false);
}

static void frames_carry_what_the_proxy_executes(void **state)
{
    (void)state;
    const uint64_t word = 0x1122334455667788;
    put_at(&rig.context, 5, rig.heap + 24, &word, 5);
    rig.engine->ops->quiet(rig.engine, &rig.context);
    put_signal(4, &word, sizeof word);
    put_signal(5, NULL, 0);
    assert_int_equal(test.sent[2].bytes, 0);
    amo(2, QUOIT_AMO_XOR, 9, NULL, false);
    assert_int_equal(test.config.tag, TAG);
    assert_int_equal(test.config.pe_endpoint, 0);
    assert_int_equal(test.operation_count + request_count(), 0);
    assert_int_equal(test.sent_count, 4);
    const struct quoit_frame *frame = test.sent;
    assert_int_equal(frame[0].kind, QUOIT_FRAME_PUT);
    assert_int_equal(frame[0].dest_host, 2);
    assert_int_equal(frame[0].dest_pe, 1);
    assert_int_equal(frame[0].offset, rig.heap + 24);
    assert_int_equal(frame[0].bytes, 5);
    assert_memory_equal(test.payload[0], "\x88\x77\x66\x55\x44\0\0\0", 8);
    assert_int_equal(frame[1].kind, QUOIT_FRAME_PUT_SIGNAL);
    assert_int_equal(frame[1].op, QUOIT_AMO_ADD);
    assert_int_equal(frame[1].dest_pe, 0);
    assert_int_equal(frame[1].offset, rig.heap + 64);
    assert_int_equal(frame[1].operand, 3);
    assert_int_equal(frame[1].operand2, rig.heap + 8);
    assert_memory_equal(test.payload[1], &word, 8);
    assert_int_equal(frame[2].kind, QUOIT_FRAME_PUT_SIGNAL);
    assert_int_equal(frame[2].operand2, rig.heap + 8);
    assert_int_equal(frame[2].operand, 3);
    assert_int_equal(frame[3].kind, QUOIT_FRAME_AMO);
    assert_int_equal(frame[3].op, QUOIT_AMO_XOR);
    assert_int_equal(frame[3].size, 8);
    assert_int_equal(frame[3].operand, 9);
    assert_int_equal(frame[2].flow_sequence, frame[1].flow_sequence + 1);
    assert_int_equal(frame[3].flow_sequence, 1); /* to another host */
}

static void an_atomic_returns_with_the_old_value(void **state)
{
    (void)state;
    uint64_t old = 0;
    test.found = 77;
    test.idle_count = 3;
    amo(4, QUOIT_AMO_COMPARE_SWAP, 5, &old, false);
    assert_int_equal(old, 77);
    assert_int_equal(test.sent[0].kind, QUOIT_FRAME_AMO_FETCH);
    for (uint32_t i = 0; i < MANY; i++)
        amo(4, QUOIT_AMO_FETCH, 0, &old, false);
    assert_int_equal(test.sent_count, 1 + MANY);
    assert_int_equal(request_count(), 0);
    amo(4, QUOIT_AMO_FETCH, 0, &old, true);
    assert_int_equal(request_count(), 1);
    execute_requests();
    amo(4, QUOIT_AMO_ADD, 1, NULL, false);
    assert_int_equal(test.sent[1 + MANY].flow_sequence, 1); /* values need no acknowledgement */
}

static void quiet_waits_for_frames_and_fence_does_not(void **state)
{
    (void)state;
    amo(4, QUOIT_AMO_ADD, 1, NULL, false);
    test.idle_count = 100;
    rig.engine->ops->fence(rig.engine, &rig.context);
    assert_in_range(test.idle_count, 1, 100);
    amo(4, QUOIT_AMO_ADD, 1, NULL, false);
    assert_int_equal(test.sent_count, 2); /* in order behind the first */
    test.idle_count = 3;
    rig.engine->ops->quiet(rig.engine, &rig.context);
    assert_int_equal(test.responded_count, 2);
}

/* The acknowledgement of a signal may wait for other messages. */
static void who_waits_for_signals_asks(void **state)
{
    (void)state;
    const uint64_t word = 1;
    put_signal(4, &word, sizeof word);
    put_signal(5, &word, sizeof word);
    put_signal(2, NULL, 0);
    assert_int_equal(test.sent[1].flags, QUOIT_FRAME_PATIENT);
    assert_int_equal(test.sent_count, 3);
    test.idle_count = 3;
    rig.engine->ops->quiet(rig.engine, &rig.context);
    assert_int_equal(test.sent_count, 5); /* each host once */
    for (uint32_t i = 3; i < 5; i++) {
        assert_int_equal(test.sent[i].kind, QUOIT_FRAME_PUT);
        assert_int_equal(test.sent[i].flags + test.sent[i].bytes, 0);
    }
    assert_int_equal(test.sent[3].dest_host + test.sent[4].dest_host, 1 + 2);
    put_signal(4, &word, sizeof word);
    amo(4, QUOIT_AMO_ADD, 1, NULL, false); /* asks itself */
    rig.engine->ops->quiet(rig.engine, &rig.context);
    assert_int_equal(test.sent_count, 7);
    assert_int_equal(test.responded_count, 7);
}

/* A request goes another way than frames. */
static void requests_wait_for_frames_that_they_must_not_pass(void **state)
{
    (void)state;
    static const char bytes[8192];
    put(4);
    test.idle_count = 3;
    put(4); /* in no order */
    assert_int_equal(request_count(), 1);
    assert_int_equal(test.responded_count, 0);
    execute_requests();
    rig.engine->ops->quiet(rig.engine, &rig.context);
    put(4);
    test.idle_count = 4; /* fence looks once */
    rig.engine->ops->fence(rig.engine, &rig.context);
    put(4);
    assert_int_equal(request_count(), 2);
    assert_int_equal(test.responded_count, 2);
    execute_requests();
    rig.engine->ops->quiet(rig.engine, &rig.context);
    amo(4, QUOIT_AMO_ADD, 1, NULL, false);
    test.idle_count = 3;
    put_signal(4, bytes, sizeof bytes);
    assert_int_equal(test.responded_count, 3);
    execute_requests();
    quoit_channel_reap((struct quoit_ring_engine *)rig.engine); /* or quiet asks for it */
    rig.engine->ops->quiet(rig.engine, &rig.context);
    uint32_t count = request_count();
    for (uint32_t i = 0; i < MANY; i++)
        amo(4, QUOIT_AMO_ADD, 1, NULL, false);
    assert_in_range(test.sent_count, 5, 3 + MANY - 1);
    assert_int_equal(test.sent_count - 3 + request_count() - count, MANY);
    assert_int_equal(test.responded_count, test.sent_count);
    execute_requests();
}

static void frames_do_not_pass_requests(void **state)
{
    (void)state;
    static const char bytes[8192];
    uint64_t old;
    put_at(&rig.context, 4, rig.heap, bytes, sizeof bytes);
    uint32_t count = request_count();
    put(4);
    amo(4, QUOIT_AMO_ADD, 1, NULL, false);
    assert_false(quoit_pe_endpoint_amo(&rig.context, &rig.peers[4], &(struct quoit_atomic){.size = 8}, &old));
    put_signal(4, bytes, 8);
    assert_int_equal(test.sent_count, 0);
    assert_int_equal(request_count(), count + 3);
    execute_requests();
    amo(4, QUOIT_AMO_ADD, 1, NULL, false); /* it notices that they are executed */
    assert_int_equal(test.sent_count, 1);
}

/* Waits of collectives are woken by requests, and with several processes a processor the proxies are as fast. */
static void workspaces_are_left_to_the_proxy(void **state)
{
    (void)state;
    const uint64_t word = 1, offset = rig.layout.segment_data - 8;
    const struct quoit_signal signal = {.offset = offset, .value = 3, .op = QUOIT_AMO_SET};
    put_at(&rig.context, 4, offset, &word, sizeof word);
    execute_requests();
    rig.engine->ops->put_signal(&rig.context, &rig.peers[4], 0, NULL, 0, &signal, false);
    execute_requests();
    assert_int_equal(test.sent_count, 0);
    assert_int_equal(request_count(), 2);
}

/* Even where puts of the program need no proxy. */
static void over_rdma_too(void **state)
{
    (void)state;
    open_with(QUOIT_PE_ENDPOINT_YES, true, true);
    amo(4, QUOIT_AMO_ADD, 1, NULL, false);
    put_signal(4, NULL, 0);
    rig.engine->ops->quiet(rig.engine, &rig.context);
    assert_int_equal(test.sent_count, 3); /* the last asks for the signal's acknowledgement */
    put(4);
    assert_int_equal(test.operation_count, 1);
    test.idle_count = 3;
    put_signal(4, NULL, 0); /* behind the put */
    assert_int_equal(test.done_count, 1);
    assert_int_equal(test.sent_count, 3);
    execute_requests();
    quoit_channel_reap((struct quoit_ring_engine *)rig.engine);
    rig.engine->ops->quiet(rig.engine, NULL);
    close_test(NULL);
}

/* In a child, which ends; it has no slots of its parent's. */
static void a_frame_that_is_lost_ends_the_job(void **state)
{
    (void)state;
    int status, fds[2];
    char said[512] = "";
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        uint64_t old;
        dup2(fds[1], STDERR_FILENO);
        open_frames(NULL);
        amo(4, QUOIT_AMO_ADD, 1, NULL, false);
        test.responded_count = test.sent_count;
        test.config.on_lost(test.config.arg, 2, QUOIT_GONE);
        test.idle_count = UINT32_MAX;
        amo(2, QUOIT_AMO_FETCH, 0, &old, false);
        _exit(2);
    }
    close(fds[1]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(read(fds[0], said, sizeof said - 1) > 0);
    close(fds[0]);
    assert_non_null(strstr(said, "PE 4"));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
}

static void what_no_frame_asked_for_ends_the_connection(void **state)
{
    (void)state;
    const struct quoit_frame wrong[] = {{.kind = QUOIT_FRAME_ACK, .flow_sequence = 1},
                                        {.kind = QUOIT_FRAME_VALUE, .token = 0},
                                        {.kind = QUOIT_FRAME_VALUE, .token = 1u << 20},
                                        {.kind = QUOIT_FRAME_PUT}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        put(4);
        rig.engine->ops->quiet(rig.engine, &rig.context);
        assert_int_equal(test.sent_count, 1);
        put(2);
        rig.engine->ops->quiet(rig.engine, &rig.context);
        assert_int_equal(test.sent_count, 2);
        struct quoit_frame frame = wrong[i];
        frame.flow_sequence += frame.flow_sequence; /* one more than was sent */
        test.config.on_message(test.config.arg, 2, &frame, sizeof frame);
        put(4);
        assert_int_equal(test.sent_count, 2);
        assert_int_equal(request_count(), 1);
        execute_requests();
        close_test(NULL);
        open_frames(NULL);
    }
}

static void while_it_connects_the_proxy_does_it(void **state)
{
    (void)state;
    test.send_status = QUOIT_FULL;
    amo(4, QUOIT_AMO_ADD, 1, NULL, false);
    put(4);
    assert_int_equal(request_count(), 2);
    assert_in_range(test.progress_count, 1, 2);
    execute_requests();
    rig.engine->ops->quiet(rig.engine, &rig.context);
    test.send_status = QUOIT_OK;
    put(4);
    assert_int_equal(test.sent_count, 1);
    assert_int_equal(test.sent[0].flow_sequence, 1);
}

static void by_itself_only_where_it_may_and_for_a_program_that_gains(void **state)
{
    (void)state;
    open_with(QUOIT_PE_ENDPOINT_AUTO, false, false);
    assert_ptr_equal(((struct quoit_ring_engine *)rig.engine)->pe_endpoint, NULL);
    close_test(NULL);
    open_with(QUOIT_PE_ENDPOINT_NO, true, true);
    assert_ptr_equal(((struct quoit_ring_engine *)rig.engine)->pe_endpoint, NULL);
    close_test(NULL);
    open_with(QUOIT_PE_ENDPOINT_AUTO, false, true);
    assert_ptr_not_equal(((struct quoit_ring_engine *)rig.engine)->pe_endpoint, NULL);
    close_test(NULL);
    open_with(QUOIT_PE_ENDPOINT_AUTO, true, false);
    uint32_t count = 0;
    for (; test.open_count == 0 && count < 100000; count++) {
        put(2);
        execute_requests();
        rig.engine->ops->quiet(rig.engine, &rig.context);
    }
    assert_in_range(count, OPENING_NS / 10000, OPENING_NS / 5000); /* as many as have lost that long */
    assert_int_equal(test.operation_count, 1);
    execute_requests();
    close_test(NULL);
}

/* Fence waits for requests to it, and not for what the PE sends by itself. */
static void the_own_host_is_left_to_the_proxy(void **state)
{
    const struct quoit_signal signal = {.offset = rig.heap, .value = 1, .op = QUOIT_AMO_SET};
    const uint64_t word = 7;
    (void)state;
    put(1);
    rig.engine->ops->put_signal(&rig.context, &rig.peers[1], rig.heap + 8, &word, sizeof word, &signal, false);
    assert_int_equal(request_count(), 2);
    assert_int_equal(request(0)->dest_host, 0);
    assert_int_equal(request(1)->dest_host, 0);
    assert_int_equal(test.open_count, 0);
    execute_requests();
}

#define TEST(name)       cmocka_unit_test_setup_teardown(name, open_test, close_test)
#define FRAME_TEST(name) cmocka_unit_test_setup_teardown(name, open_frames, close_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_lone_put_goes_by_itself),
        TEST(a_forked_child_has_no_slots),
        TEST(of_a_row_the_others_share_requests),
        TEST(the_ends_open_and_connect_with_their_first_operation),
        TEST(quiet_and_fence_wait_until_it_has_arrived),
        TEST(a_signal_waits),
        TEST(none_passes_requests_before_a_fence),
        TEST(workspaces_and_large_puts_go_through_the_proxy),
        TEST(a_wake_names_what_was_put),
        TEST(what_it_cannot_do_the_proxy_does),
        TEST(a_host_that_refuses_is_asked_once),
        TEST(a_network_that_does_not_open_is_tried_once),
        TEST(a_get_returns_with_the_data),
        TEST(the_own_host_is_left_to_the_proxy),
        FRAME_TEST(the_own_host_is_left_to_the_proxy),
        FRAME_TEST(frames_carry_what_the_proxy_executes),
        FRAME_TEST(an_atomic_returns_with_the_old_value),
        FRAME_TEST(quiet_waits_for_frames_and_fence_does_not),
        FRAME_TEST(who_waits_for_signals_asks),
        FRAME_TEST(requests_wait_for_frames_that_they_must_not_pass),
        FRAME_TEST(frames_do_not_pass_requests),
        FRAME_TEST(workspaces_are_left_to_the_proxy),
        cmocka_unit_test(over_rdma_too),
        FRAME_TEST(a_frame_that_is_lost_ends_the_job),
        FRAME_TEST(what_no_frame_asked_for_ends_the_connection),
        FRAME_TEST(while_it_connects_the_proxy_does_it),
        cmocka_unit_test(by_itself_only_where_it_may_and_for_a_program_that_gains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
