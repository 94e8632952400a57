/* SPDX-License-Identifier: BSD-3-Clause */
#include "link/handshake.h"
#include "base/log.h"
#include "wire/frame.h"

#define MAGIC      (0x51540000u + QUOIT_WIRE_VERSION)
#define PAGE_SHIFT 12
#define KIND_BITS  2

/* What each host writes into the scratchpads of its neighbour. */
enum scratchpad {
    PAD_MAGIC,        /* and wire version */
    PAD_HOST,         /* host id + 1: zero is "not written" */
    PAD_DIGEST,       /* of the client that has the windows */
    PAD_SLOTS_PAGES,  /* size of the window SLOTS it offers */
    PAD_MEMORY_PAGES, /* size of the window MEMORY it offers */
    PAD_LINK,         /* struct quoit_handshake_word */
};

static uint32_t pages_of(const struct quoit_client *client, enum quoit_side side, enum quoit_window window)
{
    return (uint32_t)(client->windows[side][window].bytes >> PAGE_SHIFT);
}

void quoit_handshake_introduce(struct quoit_port *port, uint32_t host, const struct quoit_client *client,
                               enum quoit_side side)
{
    quoit_port_scratchpad_peer_write(port, PAD_HOST, host + 1);
    quoit_port_scratchpad_peer_write(port, PAD_DIGEST, client->digest);
    quoit_port_scratchpad_peer_write(port, PAD_SLOTS_PAGES, pages_of(client, side, QUOIT_WINDOW_SLOTS));
    quoit_port_scratchpad_peer_write(port, PAD_MEMORY_PAGES, pages_of(client, side, QUOIT_WINDOW_MEMORY));
    quoit_port_scratchpad_peer_write(port, PAD_MAGIC, MAGIC);
}

enum quoit_status quoit_handshake_check(struct quoit_port *port, uint32_t neighbour, const struct quoit_client *client,
                                        enum quoit_side side, uint32_t port_epoch)
{
    uint32_t host = quoit_port_scratchpad_read(port, PAD_HOST);
    uint32_t slots_pages = quoit_port_scratchpad_read(port, PAD_SLOTS_PAGES);
    if (quoit_port_scratchpad_read(port, PAD_MAGIC) == MAGIC && host == neighbour + 1 &&
        quoit_port_scratchpad_read(port, PAD_DIGEST) == client->digest &&
        slots_pages == pages_of(client, side, QUOIT_WINDOW_SLOTS))
        return QUOIT_OK;
    if (!quoit_port_link_is_up(port) || quoit_port_link_epoch(port) != port_epoch)
        return QUOIT_LINK_DOWN;
    quoit_log(QUOIT_LOG_ERROR, "the %s neighbour should be host %u of this job, but is host %d of another job",
              side == QUOIT_LEFT ? "left" : "right", neighbour, (int)host - 1);
    return QUOIT_INVALID;
}

void quoit_handshake_tell(struct quoit_port *port, struct quoit_handshake_word word)
{
    quoit_port_scratchpad_peer_write(port, PAD_LINK, word.epoch << KIND_BITS | (uint32_t)word.kind);
}

struct quoit_handshake_word quoit_handshake_told(struct quoit_port *port)
{
    uint32_t word = quoit_port_scratchpad_read(port, PAD_LINK);
    return (struct quoit_handshake_word){.kind = (enum quoit_handshake_kind)(word & ((1u << KIND_BITS) - 1)),
                                         .epoch = word >> KIND_BITS};
}
