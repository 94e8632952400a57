/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/protocol.h"
#include "base/assert.h"
#include "wire/frame.h"

#include <string.h>

static const struct quoit_protocol_traits protocols[QUOIT_PROTOCOL_COUNT] = {
    [QUOIT_PROTOCOL_QUEUE] = {.name = "queue",
                              .has_links = true,
                              .has_failover = true,
                              .has_messages = true,
                              .shares_lane_doorbells = true,
                              .has_direct_puts = true,
                              .numbers_flows = true,
                              .orders_requests = true,
                              .line_count = QUOIT_CLASS_COUNT},
    [QUOIT_PROTOCOL_SCRATCHPAD] = {.name = "scratchpad",
                                   .has_links = true,
                                   .spreads_pes = true,
                                   .calls_driver = true,
                                   .has_put_steps = true,
                                   .line_count = 1,
                                   .slot_count = QUOIT_SCRATCHPAD_SLOTS},
    [QUOIT_PROTOCOL_NETWORK] = {.name = "network", .has_messages = true, .has_contacts = true},
};

const struct quoit_protocol_traits *quoit_protocol_traits(enum quoit_protocol protocol)
{
    quoit_assert(protocol < QUOIT_PROTOCOL_COUNT);
    return &protocols[protocol];
}

enum quoit_protocol quoit_protocol_named(const char *name)
{
    enum quoit_protocol protocol = 0;
    while (protocol < QUOIT_PROTOCOL_COUNT && strcmp(protocols[protocol].name, name) != 0)
        protocol++;
    return protocol;
}
