/* SPDX-License-Identifier: BSD-3-Clause */
/* message.c - messages. Each PE has a buffer for every sender. The length and contents of message k of a pair follow
 * from the seed, so the receiver can verify it the instant the signal has the value k. The next message is sent when
 * the receiver has acknowledged the previous one. */
#include "mix.h"

#include <stdlib.h>
#include <string.h>

#include <shmem.h>

#define BOX_BYTES (128 << 10)

enum way { /* written here before the signal */
           SIGNAL_SET,
           SIGNAL_ADD,
           SIGNAL_SET_NBI,
           SIGNAL_ADD_NBI,
           FENCE_THEN_SET,
           NBI_FENCE_THEN_INC,
           QUIET_THEN_P,
           WAY_COUNT
};

struct messages {
    uint8_t *boxes;       /* symmetric: [sender][BOX_BYTES] */
    uint64_t *signals;    /* symmetric: [sender] messages that have arrived */
    uint64_t *read;       /* symmetric: [receiver] messages that it has read */
    uint64_t *promised;   /* symmetric: [sender] messages sent in all, put before a check */
    uint64_t *sent;       /* [receiver] */
    uint64_t *seen;       /* [sender] */
    uint8_t *letter;      /* the contents of the next message */
    uint64_t round_count; /* of the token */
};

static uint64_t key_of(const struct mix *mix, int from, int to, uint64_t k)
{
    return mix_hash(mix->seed, (uint64_t)from << 32 | (uint64_t)to, k + 7);
}

static size_t bytes_of(uint64_t key)
{
    return 1 + (key >> 8) % ((size_t)BOX_BYTES >> key % 17);
}

static void send(struct mix *mix, int pe, enum way way, size_t bytes, uint64_t k)
{
    struct messages *m = mix->messages;
    uint8_t *box = m->boxes + (size_t)mix->me * BOX_BYTES;
    uint64_t *signal = &m->signals[mix->me];
    switch (way) {
    case SIGNAL_SET:
        shmem_putmem_signal(box, m->letter, bytes, signal, k, SHMEM_SIGNAL_SET, pe);
        break;
    case SIGNAL_ADD:
        shmem_putmem_signal(box, m->letter, bytes, signal, 1, SHMEM_SIGNAL_ADD, pe);
        break;
    case SIGNAL_SET_NBI:
        shmem_putmem_signal_nbi(box, m->letter, bytes, signal, k, SHMEM_SIGNAL_SET, pe);
        break;
    case SIGNAL_ADD_NBI:
        shmem_putmem_signal_nbi(box, m->letter, bytes, signal, 1, SHMEM_SIGNAL_ADD, pe);
        break;
    case FENCE_THEN_SET:
        shmem_putmem(box, m->letter, bytes, pe);
        shmem_fence();
        shmem_uint64_atomic_set(signal, k, pe);
        break;
    case NBI_FENCE_THEN_INC:
        shmem_putmem_nbi(box, m->letter, bytes, pe);
        shmem_fence();
        shmem_uint64_atomic_inc(signal, pe);
        break;
    default:
        shmem_putmem(box, m->letter, bytes, pe);
        shmem_quiet();
        shmem_uint64_p(signal, k, pe);
    }
    if (way == SIGNAL_SET_NBI || way == SIGNAL_ADD_NBI || way == NBI_FENCE_THEN_INC)
        shmem_quiet(); /* before the buffer may be reused */
    memset(m->letter, 0xdd, bytes);
}

void messages_step(struct mix *mix, int pe)
{
    struct messages *m = mix->messages;
    uint64_t k = m->sent[pe] + 1;
    if (!shmem_uint64_test(&m->read[pe], SHMEM_CMP_GE, k - 1))
        return;
    uint64_t key = key_of(mix, mix->me, pe, k);
    size_t bytes = bytes_of(key);
    mix_fill(m->letter, bytes, key);
    m->sent[pe] = k;
    send(mix, pe, (enum way)((key >> 40) % WAY_COUNT), bytes, k);
    mix->byte_count += bytes;
}

static void read_letter(struct mix *mix, int from)
{
    struct messages *m = mix->messages;
    uint64_t signal = shmem_signal_fetch(&m->signals[from]), k = m->seen[from] + 1;
    if (signal < k)
        return;
    if (signal > k)
        mix_fail(mix, "signal from PE %d is %llu, but only %llu letters can be there", from, (unsigned long long)signal,
                 (unsigned long long)k);
    uint64_t key = key_of(mix, from, mix->me, k);
    size_t bytes = bytes_of(key), at = mix_differs(m->boxes + (size_t)from * BOX_BYTES, bytes, key);
    if (at < bytes)
        mix_fail(mix, "letter %llu from PE %d (way %d, %zu bytes): signalled, but byte %zu is not there",
                 (unsigned long long)k, from, (int)((key >> 40) % WAY_COUNT), bytes, at);
    m->seen[from] = k;
    shmem_uint64_atomic_set(&m->read[mix->me], k, from);
}

void messages_poll(struct mix *mix)
{
    for (int from = 0; from < mix->pe_count; from++)
        read_letter(mix, from);
}

/* Everything sent has arrived; then each PE signals its right neighbour, which waits for it by both routines. */
void messages_check(struct mix *mix)
{
    static uint64_t token, signalled, carried; /* symmetric */
    struct messages *m = mix->messages;
    for (int pe = 0; pe < mix->pe_count; pe++)
        shmem_uint64_p(&m->promised[mix->me], m->sent[pe], pe);
    shmem_barrier_all();
    messages_poll(mix);
    for (int pe = 0; pe < mix->pe_count; pe++)
        if (m->seen[pe] != m->promised[pe])
            mix_fail(mix, "PE %d sent %llu letters, but %llu came", pe, (unsigned long long)m->promised[pe],
                     (unsigned long long)m->seen[pe]);
    uint64_t before = m->round_count++;
    int right = (mix->me + 1) % mix->pe_count;
    shmem_uint64_atomic_inc(&token, right);
    shmem_putmem_signal(&carried, &before, sizeof(before), &signalled, 1, SHMEM_SIGNAL_ADD, right);
    shmem_signal_wait_until(&signalled, SHMEM_CMP_GT, before);
    shmem_uint64_wait_until(&token, SHMEM_CMP_EQ, before + 1);
}

void messages_open(struct mix *mix)
{
    size_t pe_count = (size_t)mix->pe_count;
    struct messages *m = mix->messages = mix_private(mix, 1, sizeof(*m));
    m->boxes = mix_symmetric(mix, pe_count, BOX_BYTES);
    m->signals = mix_symmetric(mix, pe_count, sizeof(uint64_t));
    m->read = mix_symmetric(mix, pe_count, sizeof(uint64_t));
    m->promised = mix_symmetric(mix, pe_count, sizeof(uint64_t));
    m->sent = mix_private(mix, pe_count, sizeof(uint64_t));
    m->seen = mix_private(mix, pe_count, sizeof(uint64_t));
    m->letter = mix_private(mix, BOX_BYTES, 1);
}

void messages_close(struct mix *mix)
{
    struct messages *m = mix->messages;
    free(m->letter);
    free(m->seen);
    free(m->sent);
    shmem_free(m->promised);
    shmem_free(m->read);
    shmem_free(m->signals);
    shmem_free(m->boxes);
    free(m);
}
