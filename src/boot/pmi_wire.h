/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi_wire.h - messages of the process management interface of MPICH, as text. Pure.
 *
 * Version 1: a line "cmd=NAME key=value key=value\n". Version 2: six characters with the length of the rest in decimal,
 * then "cmd=NAME;key=value;key=value;". Any key but cmd may be missing.
 */
#ifndef QUOIT_BOOT_PMI_WIRE_H
#define QUOIT_BOOT_PMI_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUOIT_PMI_MESSAGE_BYTES 4096 /* the longest, with its length or newline */
#define QUOIT_PMI_LENGTH_BYTES  6    /* in front of a message of version 2 */

/* Copies the value of `key` of a message without its length or newline. False: it has none, or it is longer. */
bool quoit_pmi_value(const char *message, int version, const char *key, char *value_out, size_t value_bytes);
/* The same for a number; the fallback if there is none or it is not one. */
long quoit_pmi_number(const char *message, int version, const char *key, long fallback);
/* Whether the message is called `name`. */
bool quoit_pmi_is(const char *message, int version, const char *name);
/* The length of the rest of a message of version 2. 0: malformed, or longer than the limit. */
size_t quoit_pmi_length(const char text[QUOIT_PMI_LENGTH_BYTES]);
/* "host:port" of PMI_PORT. False: malformed. */
bool quoit_pmi_port(const char *text, char *host_out, size_t host_bytes, char *port_out, size_t port_bytes);

#endif
