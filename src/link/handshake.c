/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/handshake.h"
#include "base/log.h"
#include "wire/frame.h"

#define MAGIC      (0x51540000u + QUOIT_WIRE_VERSION)
#define PAGE_SHIFT 12
#define KIND_BITS  2
#define HOST_BITS  16
#define SIDE_SHIFT 24

/* What each host writes into the scratchpads of its neighbour. */
enum scratchpad {
    PAD_HOST,         /* host id + 1: zero is "not written"; above it its service's doorbell bit + 1, 0: none; above
                         that the side of its port, + 1 */
    PAD_DIGEST,       /* of the client that has the windows, and the wire version */
    PAD_SLOTS_PAGES,  /* size of the window SLOTS it offers */
    PAD_MEMORY_PAGES, /* size of the window MEMORY it offers */
    PAD_LINK,         /* struct quoit_handshake_word */
    PAD_BITS_LOW,     /* doorbell bits of its client */
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
    quoit_port_scratchpad_peer_write(port, PAD_HOST,
                                     ((uint32_t)side + 1) << SIDE_SHIFT | control << HOST_BITS | (host + 1));
    quoit_port_scratchpad_peer_write(port, PAD_DIGEST, digest_of(client));
    quoit_port_scratchpad_peer_write(port, PAD_SLOTS_PAGES, pages_of(client, side, QUOIT_WINDOW_SLOTS));
    quoit_port_scratchpad_peer_write(port, PAD_MEMORY_PAGES, pages_of(client, side, QUOIT_WINDOW_MEMORY));
    quoit_port_scratchpad_peer_write(port, PAD_BITS_LOW, (uint32_t)bits.client);
    quoit_port_scratchpad_peer_write(port, PAD_BITS_HIGH, (uint32_t)(bits.client >> 32));
}

static struct quoit_handshake_bits bits_of(struct quoit_port *port)
{
    uint32_t control = quoit_port_scratchpad_read(port, PAD_HOST) >> HOST_BITS & 0xff;
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

struct quoit_handshake_neighbour quoit_handshake_neighbour(struct quoit_port *port)
{
    uint32_t word = quoit_port_scratchpad_read(port, PAD_HOST);
    return (struct quoit_handshake_neighbour){.host = word & ((1u << HOST_BITS) - 1), .side = word >> SIDE_SHIFT};
}

static const char *side_name(uint32_t side)
{
    return side == QUOIT_LEFT ? "left" : "right";
}

/* Why the end that the scratchpads introduce does not belong here. */
static void say_wrong(struct quoit_handshake_neighbour found, uint32_t neighbour, enum quoit_side side)
{
    uint32_t host = found.host - 1;
    if (found.host == 0)
        quoit_log(QUOIT_LOG_ERROR, "the %s neighbour, which should be host %u, does not say who it is", side_name(side),
                  neighbour);
    else if (found.side == (uint32_t)side + 1)
        quoit_log(
            QUOIT_LOG_ERROR,
            "wrong cabling: the %s port leads to the %s port of host %u, but a cable joins a right port to a left "
            "one",
            side_name(side), side_name(side), host);
    else if (host != neighbour)
        quoit_log(
            QUOIT_LOG_ERROR,
            "the %s neighbour should be host %u, but is host %u: a cable is in the wrong place, or a host has the "
            "wrong number",
            side_name(side), neighbour, host);
    else
        quoit_log(QUOIT_LOG_ERROR, "the %s neighbour, host %u, is of another job or ring, or of another build",
                  side_name(side), host);
}

/* Both sides: what the neighbour asks for, and what this port has, or the neighbour had before. */
static void say_bad_bits(const struct quoit_port *port, uint32_t neighbour, const struct quoit_client *client,
                         enum quoit_side side, struct quoit_handshake_bits bits, uint64_t before)
{
    struct quoit_port_limits limits;
    quoit_port_limits(port, &limits);
    unsigned long long wanted = bits.client, control = bits.control, here = limits.doorbell_bits;
    if (((bits.client | bits.control) & ~limits.doorbell_bits) != 0)
        quoit_log(QUOIT_LOG_ERROR,
                  "the %s neighbour, host %u, wants to be rung by doorbell bits 0x%llx, and 0x%llx for its links, but "
                  "the port here has only 0x%llx",
                  side_name(side), neighbour, wanted, control, here);
    else if (before != 0 && before != bits.client)
        quoit_log(
            QUOIT_LOG_ERROR,
            "the %s neighbour, host %u, wants to be rung by doorbell bits 0x%llx, and before the link was lost by "
            "0x%llx",
            side_name(side), neighbour, wanted, (unsigned long long)before);
    else
        quoit_log(QUOIT_LOG_ERROR,
                  "the %s neighbour, host %u, wants to be rung by doorbell bits 0x%llx, but %s needs %u of them at "
                  "least; the port here has 0x%llx",
                  side_name(side), neighbour, wanted, client->name, client->doorbell_least, here);
}

enum quoit_status quoit_handshake_check(struct quoit_port *port, uint32_t neighbour, const struct quoit_client *client,
                                        enum quoit_side side, uint32_t port_epoch,
                                        struct quoit_handshake_bits *bits_inout)
{
    const struct quoit_handshake_neighbour found = quoit_handshake_neighbour(port);
    const struct quoit_handshake_bits bits = bits_of(port);
    uint32_t slots_pages = quoit_port_scratchpad_read(port, PAD_SLOTS_PAGES);
    bool is_ours = found.host == neighbour + 1 && found.side != (uint32_t)side + 1 &&
                   quoit_port_scratchpad_read(port, PAD_DIGEST) == digest_of(client) &&
                   slots_pages == pages_of(client, side, QUOIT_WINDOW_SLOTS);
    if (is_ours && are_good_bits(port, client, bits, bits_inout->client)) {
        *bits_inout = bits;
        return QUOIT_OK;
    }
    if (!quoit_port_link_is_up(port) || quoit_port_link_epoch(port) != port_epoch)
        return QUOIT_LINK_DOWN;
    if (is_ours)
        say_bad_bits(port, neighbour, client, side, bits, bits_inout->client);
    else
        say_wrong(found, neighbour, side);
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
