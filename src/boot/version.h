/* SPDX-License-Identifier: BSD-3-Clause */
/* version.h - the versions of Quoit that meet on a boot socket. HELLO and LAYOUT, the first message in each direction,
 * begin with the sender's version: a receiver that does not understand the rest can name both sides. Threads: any.
 */
#ifndef QUOIT_BOOT_VERSION_H
#define QUOIT_BOOT_VERSION_H

#include <stddef.h>

#include "boot/protocol.h"

#define QUOIT_VERSION_TEXT_BYTES (QUOIT_VERSION_BYTES + 24)

/* Whether a HELLO or LAYOUT of which `byte_count` bytes came is whole, and of a version that this one understands. */
bool quoit_boot_fits(const struct quoit_boot_message *message, size_t byte_count);
/* The sender's version in the first `byte_count` bytes of a HELLO or LAYOUT of any version of Quoit: "version 0.9.0",
 * or "an unknown version" where the bytes hold none. */
void quoit_version_get(const struct quoit_boot_message *message, size_t byte_count,
                       char text_out[QUOIT_VERSION_TEXT_BYTES]);

#endif
