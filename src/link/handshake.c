/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/handshake.h"
#include "base/log.h"
#include "wire/frame.h"

#define MAGIC      (0x51540000u + QUOIT_WIRE_VERSION)
#define PAGE_SHIFT 12
#define KIND_BITS  2
#define HOST_BITS  16

/* What each host writes into the scratchpads of its neighbour. */
enum scratchpad {
    PAD_HOST,         /* host id + 1: zero is "not written"; above it its service's doorbell bit + 1, 0: none */
    PAD_DIGEST,       /* of the client that has the windows, and the wire version */
    PAD_SLOTS_PAGES,  /* size of the window SLOTS it offers */
    PAD_MEMORY_PAGES, /* size of the window MEMORY it offers */
    PAD_LINK,         /* struct quoit_handshake_word */
    PAD_BITS_LOW,     /* doorbell bits of its client of the windows */
    PAD_BITS_HIGH,
    PAD_COUNT
};
_Static_assert(PAD_COUNT <= QUOIT_SCRATCHPAD_LEAST, "there are as many");

static uint32_t digest_of(const struct quoit_client *client)
{
    return client->digest ^ MAGIC;
}

static uint32_t pages_of(const struct quoit_client *client, enum quoit_side side, enum quoit_window window)
{
    return (uint32_t)(client->windows[side][window].bytes >> PAGE_SHIFT);
}

void quoit_handshake_introduce(struct quoit_port *port, uint32_t host, const struct quoit_client *client,
                               enum quoit_side side, struct quoit_handshake_bits bits)
{
    uint32_t control = bits.control ? (uint32_t)__builtin_ctzll(bits.control) + 1 : 0;
    quoit_port_scratchpad_peer_write(port, PAD_HOST, control << HOST_BITS | (host + 1));
    quoit_port_scratchpad_peer_write(port, PAD_DIGEST, digest_of(client));
    quoit_port_scratchpad_peer_write(port, PAD_SLOTS_PAGES, pages_of(client, side, QUOIT_WINDOW_SLOTS));
    quoit_port_scratchpad_peer_write(port, PAD_MEMORY_PAGES, pages_of(client, side, QUOIT_WINDOW_MEMORY));
    quoit_port_scratchpad_peer_write(port, PAD_BITS_LOW, (uint32_t)bits.client);
    quoit_port_scratchpad_peer_write(port, PAD_BITS_HIGH, (uint32_t)(bits.client >> 32));
}

static struct quoit_handshake_bits bits_of(struct quoit_port *port)
{
    uint32_t control = quoit_port_scratchpad_read(port, PAD_HOST) >> HOST_BITS;
    return (struct quoit_handshake_bits){
        .client = quoit_port_scratchpad_read(port, PAD_BITS_LOW) |
                  (uint64_t)quoit_port_scratchpad_read(port, PAD_BITS_HIGH) << 32,
        .control = control != 0 && control <= QUOIT_DOORBELL_COUNT ? UINT64_C(1) << (control - 1) : 0};
}

static bool are_good_bits(const struct quoit_port *port, const struct quoit_client *client,
                          struct quoit_handshake_bits bits, uint64_t before)
{
    struct quoit_port_limits limits;
    quoit_port_limits(port, &limits);
    return ((bits.client | bits.control) & ~limits.doorbell_bits) == 0 &&
           (uint32_t)__builtin_popcountll(bits.client) >= client->doorbell_least &&
           (before == 0 || before == bits.client);
}

enum quoit_status quoit_handshake_check(struct quoit_port *port, uint32_t neighbour, const struct quoit_client *client,
                                        enum quoit_side side, uint32_t port_epoch,
                                        struct quoit_handshake_bits *bits_inout)
{
    uint32_t host = quoit_port_scratchpad_read(port, PAD_HOST) & ((1u << HOST_BITS) - 1);
    const struct quoit_handshake_bits bits = bits_of(port);
    uint32_t slots_pages = quoit_port_scratchpad_read(port, PAD_SLOTS_PAGES);
    bool is_ours = host == neighbour + 1 && quoit_port_scratchpad_read(port, PAD_DIGEST) == digest_of(client) &&
                   slots_pages == pages_of(client, side, QUOIT_WINDOW_SLOTS);
    if (is_ours && are_good_bits(port, client, bits, bits_inout->client)) {
        *bits_inout = bits;
        return QUOIT_OK;
    }
    if (!quoit_port_link_is_up(port) || quoit_port_link_epoch(port) != port_epoch)
        return QUOIT_LINK_DOWN;
    if (is_ours)
        quoit_log(QUOIT_LOG_ERROR,
                  "the %s neighbour, host %u, wants to be rung by doorbell bits 0x%llx, which it cannot",
                  side == QUOIT_LEFT ? "left" : "right", neighbour, (unsigned long long)bits.client);
    else
        quoit_log(QUOIT_LOG_ERROR, "the %s neighbour should be host %u of this job, but is host %d of another job",
                  side == QUOIT_LEFT ? "left" : "right", neighbour, (int)host - 1);
    return QUOIT_INVALID;
}

void quoit_handshake_write(struct quoit_port *port, struct quoit_handshake_word word)
{
    quoit_port_scratchpad_peer_write(port, PAD_LINK, word.epoch << KIND_BITS | (uint32_t)word.kind);
}

struct quoit_handshake_word quoit_handshake_read(struct quoit_port *port)
{
    uint32_t word = quoit_port_scratchpad_read(port, PAD_LINK);
    return (struct quoit_handshake_word){.kind = (enum quoit_handshake_kind)(word & ((1u << KIND_BITS) - 1)),
                                         .epoch = word >> KIND_BITS};
}
