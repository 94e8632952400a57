// SPDX-License-Identifier: BSD-3-Clause
/* Aim: the guarantees of uapi/quoit_ntb.h, between two machines joined by one link. Method: the same program at both
 * ends (a: checks and times, b: answers); every byte that crossed is compared with a pattern of its offset.
 *
 * Use: port_pair DEVICE a|b
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "port_check.h"

#define BYTES    (1u << 20)
#define DATA_AT  4096u
#define WORDS_AT 65536u /* up to here bytes are stored one at a time, from here on words */
#define ROUNDS   500u
#define RINGS    100
#define NAPS     3000 /* machines.py knows it too */
#define BIT      2u

static unsigned char pattern(size_t at)
{
    return (unsigned char)(at * 7 + at / 251 + 3);
}

static uint64_t pattern_word(size_t at)
{
    uint64_t word = 0;
    for (size_t i = 0; i < sizeof word; i++)
        word |= (uint64_t)pattern(at + i) << 8 * i;
    return word;
}

/* Calls that a client may not make. */
static void check_refusals(int port, const struct quoit_ntb_info *info)
{
    struct quoit_ntb_bits bits = {.bits = info->doorbell_bits};
    CHECK(fails_with(ioctl(port, QUOIT_NTB_RING, &bits), EPERM));
    CHECK(mmap(NULL, 4096, PROT_WRITE, MAP_SHARED, port, QUOIT_NTB_OUTBOUND(0)) == MAP_FAILED && errno == EPERM);
    struct quoit_ntb_lease lease = {.offset = info->windows[0].peer_bytes, .bytes = 4096};
    CHECK(fails_with(ioctl(port, QUOIT_NTB_LEASE, &lease), EINVAL));
    lease = (struct quoit_ntb_lease){.offset = ~0ull << 12, .bytes = 8192};
    CHECK(fails_with(ioctl(port, QUOIT_NTB_LEASE, &lease), EINVAL));
    struct quoit_ntb_inbound inbound = {.memory_fd = port, .window = info->inbound_count, .bytes = 4096};
    CHECK(fails_with(ioctl(port, QUOIT_NTB_WINDOW, &inbound), EINVAL));
    inbound.window = 0;
    CHECK(fails_with(ioctl(port, QUOIT_NTB_WINDOW, &inbound), EINVAL));
    struct quoit_ntb_scratchpad pad = {.index = info->scratchpad_count};
    CHECK(fails_with(ioctl(port, QUOIT_NTB_SCRATCHPAD, &pad), EINVAL));
    struct quoit_ntb_memory memory = {.bytes = 4097};
    CHECK(fails_with(ioctl(port, QUOIT_NTB_MEMORY, &memory), EINVAL));
    memory.bytes = 4096; /* at address 0, where nothing is */
    CHECK(fails_with(ioctl(port, QUOIT_NTB_MEMORY, &memory), EFAULT));
    uint32_t epoch = 1u << 31;
    CHECK(fails_with(ioctl(port, QUOIT_NTB_ACCEPT, &epoch), ENOLINK));
    CHECK(fails_with(ioctl(port, _IO('N', 0x7f)), ENOTTY));
}

/* A second client cannot lease what the first one has, and gets it once that is gone. */
static void check_leases(const char *device, int port, uint64_t bit)
{
    int other = open(device, O_RDWR);
    CHECK(other >= 0);
    struct quoit_ntb_lease lease = {.bits_want = bit};
    CHECK(fails_with(ioctl(other, QUOIT_NTB_LEASE, &lease), EBUSY));
    lease = (struct quoit_ntb_lease){.offset = 4096, .bytes = 4096};
    CHECK(fails_with(ioctl(other, QUOIT_NTB_LEASE, &lease), EBUSY));
    lease = (struct quoit_ntb_lease){.bit_count = 1};
    CHECK(ioctl(other, QUOIT_NTB_LEASE, &lease) == 0 && lease.bits != 0 && (lease.bits & bit) == 0);
    uint64_t held = lease.bits;
    close(other);
    lease = (struct quoit_ntb_lease){.bits_want = held};
    CHECK(ioctl(port, QUOIT_NTB_LEASE, &lease) == 0);
}

/* One end of the pair: its port, its exposed memory, and the peer's windows. */
struct end {
    bool is_a;
    int port, on_link, on_bit, memory;
    uint32_t epoch; /* the first */
    volatile unsigned char *in, *out;
    volatile uint64_t *in_word, *out_word;
};

static void open_end(struct end *end, const char *device)
{
    end->port = open(device, O_RDWR);
    end->on_link = eventfd(0, 0);
    end->on_bit = eventfd(0, 0);
    CHECK(end->port >= 0 && end->on_link >= 0 && end->on_bit >= 0);
    struct quoit_ntb_info info;
    CHECK(ioctl(end->port, QUOIT_NTB_INFO, &info) == 0 && info.version == QUOIT_NTB_VERSION);
    printf("%s: driver %s, windows %u/%u, %u scratchpads, bits %#llx, aperture %llu KiB\n", device, info.driver,
           info.inbound_count, info.outbound_count, info.scratchpad_count, (unsigned long long)info.doorbell_bits,
           (unsigned long long)info.windows[0].peer_bytes >> 10);
    check_refusals(end->port, &info);
    struct quoit_ntb_eventfd event = {.fd = end->on_link, .on_link = 1};
    CHECK(ioctl(end->port, QUOIT_NTB_EVENTFD, &event) == 0);
    event = (struct quoit_ntb_eventfd){.fd = end->on_bit, .bits = BIT};
    CHECK(ioctl(end->port, QUOIT_NTB_EVENTFD, &event) == 0);
    struct quoit_ntb_lease lease = {.bits_want = BIT, .window = 0, .bytes = BYTES};
    CHECK(ioctl(end->port, QUOIT_NTB_LEASE, &lease) == 0 && lease.bits == BIT);
    check_leases(device, end->port, BIT);
    void *in = make_huge_page();
    end->memory = pin(end->port, in, BYTES);
    end->in = in;
    end->out = map(end->port, BYTES, QUOIT_NTB_OUTBOUND(0));
    end->in_word = (volatile uint64_t *)(uintptr_t)end->in;
    end->out_word = (volatile uint64_t *)(uintptr_t)end->out;
}

static void check_window(struct end *end)
{
    double begin_s = now_s();
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        if (end->is_a)
            end->out_word[0] = i;
        await_word(end->in_word, i);
        if (!end->is_a)
            end->out_word[0] = i;
    }
    if (end->is_a)
        printf("a word there and back: %.2f us\n", (now_s() - begin_s) * 1e6 / ROUNDS);
    for (size_t at = DATA_AT; at < WORDS_AT; at++)
        end->out[at] = pattern(at + end->is_a);
    for (size_t at = WORDS_AT; at < BYTES; at += sizeof(uint64_t))
        *(volatile uint64_t *)(uintptr_t)(end->out + at) = pattern_word(at + end->is_a);
    end->out_word[1] = 1; /* writes of one port stay in order */
    await_word(end->in_word + 1, 1);
    for (size_t at = DATA_AT; at < BYTES; at++)
        CHECK(end->in[at] == pattern(at + !end->is_a));
}

/* A bit that interrupted is masked until it is cleared and unmasked. */
static void check_doorbells(struct end *end)
{
    struct quoit_ntb_bits bit = {.bits = BIT};
    CHECK(ioctl(end->port, QUOIT_NTB_CLEAR, &bit) == 0 && ioctl(end->port, QUOIT_NTB_UNMASK, &bit) == 0);
    end->out_word[1] = 2;
    await_word(end->in_word + 1, 2);
    double begin_s = now_s();
    for (int i = 0; i < RINGS; i++) {
        uint64_t count;
        if (end->is_a)
            CHECK(ioctl(end->port, QUOIT_NTB_RING, &bit) == 0);
        CHECK(read(end->on_bit, &count, sizeof count) == sizeof count);
        CHECK(ioctl(end->port, QUOIT_NTB_CLEAR, &bit) == 0 && ioctl(end->port, QUOIT_NTB_UNMASK, &bit) == 0);
        if (!end->is_a)
            CHECK(ioctl(end->port, QUOIT_NTB_RING, &bit) == 0);
    }
    if (end->is_a)
        printf("a doorbell there and back: %.0f us\n", (now_s() - begin_s) * 1e6 / RINGS);
}

/* What a lane does around a sleep in which nobody rings. The device counts the accesses to its registers; machines.py
 * has the bound. */
static void check_naps(struct end *end)
{
    struct quoit_ntb_bits bit = {.bits = BIT};
    for (int i = 0; i < NAPS; i++) {
        CHECK(ioctl(end->port, QUOIT_NTB_CLEAR, &bit) == 0 && ioctl(end->port, QUOIT_NTB_UNMASK, &bit) == 0);
        CHECK(ioctl(end->port, QUOIT_NTB_MASK, &bit) == 0);
    }
    CHECK(ioctl(end->port, QUOIT_NTB_UNMASK, &bit) == 0);
}

/* A ring of a masked bit signals nobody, and is not lost: it signals with the unmask. */
static void check_mask(struct end *end, uint64_t phase)
{
    struct quoit_ntb_bits bit = {.bits = BIT};
    struct pollfd signalled = {.fd = end->on_bit, .events = POLLIN};
    uint64_t count;
    CHECK(ioctl(end->port, QUOIT_NTB_MASK, &bit) == 0 && ioctl(end->port, QUOIT_NTB_CLEAR, &bit) == 0);
    end->out_word[1] = phase;
    await_word(end->in_word + 1, phase);
    CHECK(ioctl(end->port, QUOIT_NTB_RING, &bit) == 0);
    double end_s = now_s() + PATIENCE_S;
    do
        CHECK(ioctl(end->port, QUOIT_NTB_DOORBELL, &bit) == 0 && now_s() < end_s);
    while ((bit.bits & BIT) == 0);
    CHECK(poll(&signalled, 1, 200) == 0);
    bit.bits = BIT;
    CHECK(ioctl(end->port, QUOIT_NTB_UNMASK, &bit) == 0);
    CHECK(poll(&signalled, 1, PATIENCE_S * 1000) == 1 && read(end->on_bit, &count, sizeof count) == sizeof count);
    CHECK(ioctl(end->port, QUOIT_NTB_CLEAR, &bit) == 0);
}

/* b lets the link go and takes it again. What a stores before it accepts the new epoch vanishes, without a signal. */
static void check_loss(struct end *end)
{
    uint32_t before = end->epoch, now;
    struct quoit_ntb_bits bit = {.bits = BIT};
    if (!end->is_a) {
        release(end->port);
        end->in_word[2] = 0;
        expose(end->port, end->memory, BYTES); /* holds when the link comes up */
        now = bring_up(end->port, end->on_link).epoch;
        CHECK(ioctl(end->port, QUOIT_NTB_ACCEPT, &now) == 0);
        await_word(end->in_word + 1, 5);
        CHECK(end->in_word[2] == 0);
    } else {
        now = await_epoch_after(end->port, before);
        end->out_word[2] = 99;
        CHECK(fails_with(ioctl(end->port, QUOIT_NTB_RING, &bit), ENOLINK));
        CHECK(ioctl(end->port, QUOIT_NTB_ACCEPT, &now) == 0);
        expose(end->port, end->memory, BYTES);
        end->out_word[1] = 5;
    }
    CHECK(now == before + 1);
    printf("lost and up again, epoch %u\n", now);
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    struct end end = {.is_a = argv[2][0] == 'a'};
    open_end(&end, argv[1]);
    end.epoch = meet(end.port, end.on_link, end.memory, BYTES);
    printf("link up, epoch %u\n", end.epoch);
    check_window(&end);
    check_doorbells(&end);
    check_naps(&end);
    check_mask(&end, 3);
    end.out_word[1] = 4;
    await_word(end.in_word + 1, 4);
    check_loss(&end);
    printf("port_pair: %s passed\n", argv[2]);
    for (double end_s = now_s() + PATIENCE_S; end.in_word[1] < 6; usleep(1000)) {
        end.out_word[1] = 6; /* a's window may not be there yet */
        CHECK(now_s() < end_s);
    }
    end.out_word[1] = 6;
    sleep(1); /* the last word is on its way */
    return 0;
}
