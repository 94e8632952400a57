/* SPDX-License-Identifier: BSD-3-Clause */
/* head.h - how each message to and from the processes of a ring that stays begins, in every build.
 *
 * A ring outlives the programs that use it, so the other end may be of another build. The head never changes: a process
 * that receives one can tell whether it understands what follows, and say which versions of Quoit the two are.
 */
#ifndef QUOIT_SHARE_HEAD_H
#define QUOIT_SHARE_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUOIT_SHARE_PROTOCOL      1u /* raised when a message changes its meaning and not its size */
#define QUOIT_SHARE_VERSION_BYTES 20
#define QUOIT_SHARE_BUILD_BYTES   48

struct quoit_share_head {
    uint32_t magic; /* of the conversation */
    uint32_t protocol;
    uint32_t bytes;  /* of the whole message */
    uint32_t kind;   /* of the request; in a reply that of its request */
    uint32_t status; /* of a reply */
    char version[QUOIT_SHARE_VERSION_BYTES];
};

struct quoit_share_head quoit_share_head_make(uint32_t magic, size_t bytes, uint32_t kind);
/* `came` bytes begin with a head of that conversation, of whichever build. */
bool quoit_share_head_is(const struct quoit_share_head *head, size_t came, uint32_t magic);
/* It is of a build with the same messages, and the message is whole. */
bool quoit_share_head_fits(const struct quoit_share_head *head, size_t came, uint32_t magic, size_t bytes);
/* For people: version, protocol, size of the message; for NULL that the build does not say it. */
const char *quoit_share_build(const struct quoit_share_head *head, char text_out[QUOIT_SHARE_BUILD_BYTES]);

#endif
