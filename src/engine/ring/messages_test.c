/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: the promises of messages.h: whom a PE invites and when, that a context's messages keep their order as they leave
 * the proxy, and that what comes is received. Method: PE 0 of a job over a network that is TCP; the test is its proxy,
 * which executes requests when it likes, and PE 3 on another host, by an end of its own. */
#include "engine/ring/messages.h"
#include "engine/ring/pe_rig.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "env/clock.h"
#include "host/rendezvous_slot.h"
#include "net/interfaces.h"

#define OTHER       3u /* the test's own PE */
#define FLAG        64u
#define DATA        4096u
#define DEADLINE_NS 20000000000u

static struct pe_rig rig;

static struct {
    char *other_memory;
    struct quoit_sockets *other;
    pthread_t proxy;
    _Atomic bool is_over, is_paused;
    _Atomic uint32_t kinds[256]; /* requests executed, by kind */
    uint32_t taken_count;        /* of the other's mails, as the proxies count them */
    _Atomic uint64_t early;
    bool is_direct;
} test;

static void tell_contacts(const char *provider)
{
    struct quoit_contacts *contacts = quoit_memory_contacts(&rig.layout, rig.memory);
    *contacts = (struct quoit_contacts){.notice_ns = 1, .is_told = true};
    strcpy(contacts->network.provider, provider);
    struct quoit_interface lo;
    assert_true(quoit_interface_find("lo", &lo));
    contacts->place = lo.place;
}

static void open_with(const char *provider, enum quoit_pe_endpoint_use use)
{
    memset(&test, 0, sizeof test);
    pe_rig_map(&rig, 2 * QUOIT_MANY_BYTES_MAX, false);
    tell_contacts(provider);
    pe_rig_open(&rig, use);
    test.other_memory = calloc(1, rig.layout.segment_stride);
    assert_non_null(test.other_memory);
    const struct quoit_sockets_config other = {.place = quoit_memory_contacts(&rig.layout, rig.memory)->place,
                                               .self = OTHER,
                                               .count = PE_COUNT,
                                               .memory = test.other_memory,
                                               .memory_bytes = rig.layout.segment_stride};
    assert_int_equal(quoit_sockets_open(&other, &test.other), QUOIT_OK);
}

static int open_tcp(void **state)
{
    (void)state;
    open_with("tcp;ofi_rxm", QUOIT_PE_ENDPOINT_YES);
    return 0;
}

static int open_auto(void **state)
{
    (void)state;
    open_with("tcp", QUOIT_PE_ENDPOINT_AUTO);
    return 0;
}

static int close_test(void **state)
{
    (void)state;
    pe_rig_close(&rig);
    quoit_sockets_close(test.other);
    free(test.other_memory);
    return 0;
}

/* A request to PE OTHER, as its proxy does it in its memory. */
static void execute(struct quoit_request *one)
{
    const struct quoit_frame *frame = &one->frame;
    atomic_fetch_add(&test.kinds[frame->kind], 1);
    if (frame->kind == QUOIT_FRAME_AMO_FETCH)
        one->result = test.taken_count++;
    if (frame->kind != QUOIT_FRAME_PUT_SIGNAL)
        return;
    memcpy(test.other_memory + frame->offset, rig.memory + one->data_offset, frame->bytes);
    atomic_store((_Atomic uint64_t *)(void *)(test.other_memory + frame->operand2), frame->operand);
}

/* The proxies, and what PE OTHER does while PE 0 waits. */
static void *run_proxy(void *arg)
{
    struct quoit_channel *shared = pe_rig_channel(&rig);
    (void)arg;
    while (!atomic_load(&test.is_over)) {
        uint32_t tail = atomic_load(&shared->complete_tail);
        quoit_wait_yield();
        if (atomic_load(&test.is_paused) || tail == atomic_load(&shared->submit_tail))
            continue;
        uint16_t index = shared->submit[tail % QUOIT_REQUESTS_A_CHANNEL];
        execute(&shared->requests[index]);
        shared->complete[tail % QUOIT_REQUESTS_A_CHANNEL] = index;
        atomic_store(&shared->complete_tail, tail + 1);
    }
    return NULL;
}

static void start_proxy(void)
{
    atomic_store(&test.is_over, false);
    assert_int_equal(pthread_create(&test.proxy, NULL, run_proxy, NULL), 0);
}

static void stop_proxy(void)
{
    atomic_store(&test.is_over, true);
    assert_int_equal(pthread_join(test.proxy, NULL), 0);
}

static uint64_t flag_of(const char *memory)
{
    return atomic_load((const _Atomic uint64_t *)(const void *)(memory + FLAG));
}

/* One with `value` as its flag, and as each byte of its data. */
static void send_message(uint64_t value)
{
    char data[40];
    memset(data, (int)value, sizeof data);
    const struct quoit_message message = {
        .offset = DATA, .source = data, .bytes = sizeof data, .has_flag = true, .flag = FLAG, .value = value};
    const struct quoit_signal signal = {.offset = FLAG, .value = value, .op = QUOIT_AMO_SET};
    const struct quoit_engine_ops *ops = rig.engine->ops;
    if (!ops->message(&rig.context, &rig.peers[OTHER], &message, &test.is_direct))
        ops->put_signal(&rig.context, &rig.peers[OTHER], DATA, data, sizeof data, &signal, false);
}

static void await_flag(const char *memory, uint64_t value)
{
    uint64_t until_ns = quoit_clock_now_ns() + DEADLINE_NS;
    char data[40];
    memset(data, (int)value, sizeof data);
    while (flag_of(memory) != value) {
        quoit_sockets_look(test.other);
        rig.engine->ops->receive(rig.engine);
        assert_true(quoit_clock_now_ns() < until_ns);
    }
    assert_memory_equal(memory + DATA, data, sizeof data);
}

static const struct quoit_mail *mail_of_other(uint32_t number)
{
    return &((const struct quoit_rendezvous_slot *)(const void *)(test.other_memory + quoit_layout_rendezvous_slot()))
                ->mails[number];
}

static void await_open(void)
{
    uint64_t until_ns = quoit_clock_now_ns() + DEADLINE_NS;
    while (quoit_sockets_state(test.other, 0) != QUOIT_SOCKET_OPEN) {
        quoit_sockets_look(test.other);
        rig.engine->ops->receive(rig.engine);
        assert_true(quoit_clock_now_ns() < until_ns);
    }
    for (int i = 0; i < 1000; i++) { /* the PE sees the token a moment later */
        rig.engine->ops->receive(rig.engine);
        quoit_wait_yield();
    }
}

/* PE OTHER takes the connection request. */
static void be_joined(void)
{
    assert_int_equal(mail_of_other(0)->is_there, 1);
    assert_int_equal(quoit_sockets_join(test.other, &mail_of_other(0)->connection_request), QUOIT_OK);
    await_open();
}

static void test_the_first_message_invites(void **state)
{
    (void)state;
    start_proxy();
    send_message(1);
    await_flag(test.other_memory, 1);
    assert_false(test.is_direct);
    assert_int_equal(test.kinds[QUOIT_FRAME_AMO_FETCH], 1);
    assert_int_equal(test.kinds[QUOIT_FRAME_PUT_SIGNAL], 2);
    be_joined();
    send_message(2);
    assert_true(test.is_direct);
    await_flag(test.other_memory, 2);
    send_message(3);
    await_flag(test.other_memory, 3);
    assert_int_equal(test.kinds[QUOIT_FRAME_PUT_SIGNAL], 2); /* no other went by the proxy */
    stop_proxy();
}

static void test_few_messages_invite_nobody(void **state)
{
    (void)state;
    start_proxy();
    for (uint64_t value = 1; value <= 32; value++)
        send_message(value);
    await_flag(test.other_memory, 32);
    assert_int_equal(test.kinds[QUOIT_FRAME_AMO_FETCH], 0);
    send_message(33);
    await_flag(test.other_memory, 33);
    assert_int_equal(test.kinds[QUOIT_FRAME_AMO_FETCH], 1);
    be_joined();
    send_message(34);
    await_flag(test.other_memory, 34);
    assert_int_equal(test.kinds[QUOIT_FRAME_PUT_SIGNAL], 34);
    stop_proxy();
}

/* The proxy executes the message before it late; in the meantime PE OTHER sees nothing of the one that is direct. */
static void *execute_late(void *arg)
{
    uint64_t until_ns = quoit_clock_now_ns() + 50000000u;
    (void)arg;
    while (quoit_clock_now_ns() < until_ns) {
        quoit_sockets_look(test.other);
        atomic_store(&test.early, flag_of(test.other_memory));
        quoit_wait_yield();
    }
    atomic_store(&test.is_paused, false);
    return NULL;
}

static void test_a_message_waits_for_those_by_the_proxy(void **state)
{
    pthread_t late;
    (void)state;
    start_proxy();
    send_message(1);
    await_flag(test.other_memory, 1);
    be_joined();
    atomic_store(&test.is_paused, true);
    const uint64_t value = 2;
    const struct quoit_signal signal = {.offset = FLAG, .value = value, .op = QUOIT_AMO_SET};
    rig.engine->ops->put_signal(&rig.context, &rig.peers[OTHER], DATA, &value, 0, &signal, false);
    assert_int_equal(pthread_create(&late, NULL, execute_late, NULL), 0);
    send_message(3);
    assert_int_equal(pthread_join(late, NULL), 0);
    assert_int_equal(test.early, 1);
    await_flag(test.other_memory, 3);
    stop_proxy();
}

static void test_a_connection_request_is_taken(void **state)
{
    struct quoit_rendezvous_slot *rendezvous_slot =
        (struct quoit_rendezvous_slot *)(void *)(rig.self.segment + quoit_layout_rendezvous_slot());
    char data[40];
    (void)state;
    memset(data, 7, sizeof data);
    assert_int_equal(quoit_sockets_invite(test.other, 0, &rendezvous_slot->mails[0].connection_request), QUOIT_OK);
    atomic_store(&rendezvous_slot->mails[0].is_there, 1);
    await_open();
    struct quoit_socket_message message = {
        .offset = DATA, .source = data, .bytes = sizeof data, .flag = FLAG, .value = 7};
    assert_int_equal(quoit_sockets_send(test.other, 0, &message), QUOIT_OK);
    await_flag(rig.self.segment, 7);
    send_message(8); /* and the PE sends by it */
    assert_true(test.is_direct);
    await_flag(test.other_memory, 8);
}

/* It sleeps for as long as it may, unless something comes. */
static void test_what_comes_ends_a_sleep(void **state)
{
    const uint64_t limit_ns = 100000000000u;
    struct quoit_socket_message message = {.flag = FLAG, .value = 5};
    (void)state;
    start_proxy();
    send_message(1);
    await_flag(test.other_memory, 1);
    assert_false(rig.engine->ops->await(&rig.peers[OTHER], limit_ns));
    be_joined();
    assert_false(rig.engine->ops->await(&rig.peers[OTHER + 1], limit_ns));
    uint64_t begin_ns = quoit_clock_now_ns();
    assert_true(rig.engine->ops->await(&rig.peers[OTHER], 30000000));
    assert_true(quoit_clock_now_ns() - begin_ns >= 29000000);
    assert_int_equal(quoit_sockets_send(test.other, 0, &message), QUOIT_OK);
    assert_true(rig.engine->ops->await(&rig.peers[OTHER], limit_ns));
    assert_true(quoit_clock_now_ns() - begin_ns < limit_ns / 2);
    rig.engine->ops->receive(rig.engine);
    assert_int_equal(flag_of(rig.self.segment), 5);
    stop_proxy();
}

/* PE OTHER receives late; the message that waits for it arrives whole. */
static void *receive_late(void *arg)
{
    uint64_t until_ns = quoit_clock_now_ns() + 50000000u;
    (void)arg;
    while (quoit_clock_now_ns() < until_ns)
        quoit_wait_yield();
    while (flag_of(test.other_memory) != 9)
        quoit_sockets_look(test.other);
    return NULL;
}

static void test_a_message_waits_for_room(void **state)
{
    const uint64_t bytes = rig.layout.segment_stride - DATA, limit_ns = 100000000000u;
    char *source = malloc(bytes);
    pthread_t late;
    (void)state;
    assert_non_null(source);
    for (uint64_t i = 0; i < bytes; i++)
        source[i] = (char)(i * 7 + i / 256);
    start_proxy();
    send_message(1);
    await_flag(test.other_memory, 1);
    be_joined();
    const struct quoit_message message = {.offset = DATA, .source = source, .bytes = bytes};
    const struct quoit_message last = {.has_flag = true, .flag = FLAG, .value = 9};
    assert_int_equal(pthread_create(&late, NULL, receive_late, NULL), 0);
    uint64_t begin_ns = quoit_clock_now_ns();
    for (int i = 0; i < 4; i++) /* more than the kernel holds */
        assert_true(rig.engine->ops->message(&rig.context, &rig.peers[OTHER], &message, &test.is_direct));
    assert_true(quoit_clock_now_ns() - begin_ns > 40000000u);
    assert_true(quoit_clock_now_ns() - begin_ns < limit_ns);
    assert_true(rig.engine->ops->message(&rig.context, &rig.peers[OTHER], &last, &test.is_direct));
    assert_int_equal(pthread_join(late, NULL), 0);
    assert_memory_equal(test.other_memory + DATA, source, bytes);
    free(source);
    stop_proxy();
}

static void test_a_full_rendezvous_slot(void **state)
{
    (void)state;
    test.taken_count = QUOIT_MAILS;
    start_proxy();
    send_message(1);
    send_message(2);
    await_flag(test.other_memory, 2);
    assert_int_equal(test.kinds[QUOIT_FRAME_PUT_SIGNAL], 2);
    assert_int_equal(test.kinds[QUOIT_FRAME_AMO_FETCH], 1);
    stop_proxy();
}

static void test_where_there_are_none(void **state)
{
    (void)state;
    open_with("verbs", QUOIT_PE_ENDPOINT_YES);
    assert_false(rig.engine->has_messages);
    close_test(state);
    open_with("tcp", QUOIT_PE_ENDPOINT_NO);
    assert_false(rig.engine->has_messages);
    close_test(state);
}

#define ON(open, test) cmocka_unit_test_setup_teardown(test, open, close_test)

int main(void)
{
    const struct CMUnitTest tests[] = {ON(open_tcp, test_the_first_message_invites),
                                       ON(open_auto, test_few_messages_invite_nobody),
                                       ON(open_tcp, test_a_message_waits_for_those_by_the_proxy),
                                       ON(open_tcp, test_a_connection_request_is_taken),
                                       ON(open_tcp, test_what_comes_ends_a_sleep),
                                       ON(open_tcp, test_a_message_waits_for_room),
                                       ON(open_tcp, test_a_full_rendezvous_slot),
                                       cmocka_unit_test(test_where_there_are_none)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
