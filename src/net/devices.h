/* SPDX-License-Identifier: BSD-3-Clause */
/* devices.h - which devices a user names, as in --network-device 10.1.0.0/16,^docker0,ib0.
 *
 * A list has entries between commas: a device by its name, an address, or a subnet ADDRESS/BITS, of IPv4 or IPv6. What
 * an entry with ^ before it names is not taken. What no such entry names is taken where another entry names it, or
 * where there is none without ^.
 *
 * Threads: any.
 */
#ifndef QUOIT_NET_DEVICES_H
#define QUOIT_NET_DEVICES_H

#include <stdbool.h>

#include "net/address.h"

/* The longest list, with its zero. */
#define QUOIT_DEVICES_BYTES         256
#define QUOIT_DEVICES_PROBLEM_BYTES 160

/* False: `problem` names the entry that is wrong. */
bool quoit_devices_check(const char *list, char problem_out[QUOIT_DEVICES_PROBLEM_BYTES]);
/* Whether a list that is right takes a device. NULL, "": it takes all. address: NULL, or of no family: it has none. */
bool quoit_devices_take(const char *list, const char *name, const struct quoit_wire_address *address);

#endif
