/* SPDX-License-Identifier: BSD-3-Clause */
/* Port drivers for tests: the emulated one with other doorbell bits than the lowest sixteen, or with fewer
 * scratchpads. */
#include "port/emulated/emulated.h"

#define MASK_DRIVER(tag, label, mask, pads, text)                                                                      \
    static void adjust_##tag(struct quoit_port *port)                                                                  \
    {                                                                                                                  \
        port->limits.doorbell_bits = (mask);                                                                           \
        port->limits.scratchpad_count = (pads);                                                                        \
    }                                                                                                                  \
    const struct quoit_port_driver quoit_driver_mask_##tag = {.name = label,                                           \
                                                              .sentence = "for tests: doorbell bits " text,            \
                                                              .base = &quoit_driver_emulated,                          \
                                                              .adjust = adjust_##tag};

MASK_DRIVER(fff0, "mask-fff0", 0xfff0, 8, "4 to 15")
MASK_DRIVER(12, "mask-12", 0x0fff, 8, "0 to 11")
MASK_DRIVER(holes, "mask-holes", 0x5d92, QUOIT_SCRATCHPAD_LEAST, "1, 4, 7, 8, 10, 11, 12 and 14")
MASK_DRIVER(one, "mask-one", 0x0010, 8, "4 alone, too few for any job")
