/* SPDX-License-Identifier: BSD-3-Clause */
/* head.h - the header of every message to and from the processes of a ring that stays. Its layout never changes.
 *
 * A ring outlives the programs that use it, so the peer may be of another build. The header tells a receiver whether it
 * can read the rest of the message, and lets it name the versions of both builds.
 */
#ifndef QUOIT_SHARE_HEAD_H
#define QUOIT_SHARE_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUOIT_SHARE_PROTOCOL      2u /* raise it when a message changes its meaning but not its size */
#define QUOIT_SHARE_VERSION_BYTES 20
#define QUOIT_SHARE_BUILD_BYTES   48

struct quoit_share_head {
    uint32_t magic; /* of the socket's protocol */
    uint32_t protocol;
    uint32_t bytes;  /* of the whole message */
    uint32_t kind;   /* of the request; a reply repeats it */
    uint32_t status; /* of a reply */
    char version[QUOIT_SHARE_VERSION_BYTES];
};

struct quoit_share_head quoit_share_head_make(uint32_t magic, size_t bytes, uint32_t kind);
/* The received bytes begin with a header of this protocol, from any build. */
bool quoit_share_head_is_present(const struct quoit_share_head *head, size_t received_bytes, uint32_t magic);
/* The message is complete, and of a build with the same messages. */
bool quoit_share_head_matches(const struct quoit_share_head *head, size_t received_bytes, uint32_t magic,
                              size_t message_bytes);
/* Version, protocol and message size, for users. NULL: a build from before this header. */
const char *quoit_share_build_text(const struct quoit_share_head *head, char text_out[QUOIT_SHARE_BUILD_BYTES]);

#endif
