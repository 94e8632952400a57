/* SPDX-License-Identifier: BSD-3-Clause */
/* message.h - requests and replies between the owner of a shared ring and its clients. Private to share.
 *
 * A client sends one request and receives one reply, each one SOCK_SEQPACKET packet. A reply to ATTACH carries the
 * descriptors of the share's wires, links and memory, a reply to NAMESPACES those of the namespaces. The owner sends a
 * header alone to a client of another build, and, with kind REFUSED and before any request, to a user who may not
 * connect. Both ends run on one machine.
 */
#ifndef QUOIT_SHARE_MESSAGE_H
#define QUOIT_SHARE_MESSAGE_H

#include <sys/socket.h>
#include <sys/un.h>

#include "env/descriptors.h"
#include "share/head.h"
#include "share/share.h"

#define QUOIT_SHARE_MAGIC   0x51530002u
#define QUOIT_SHARE_FDS_MAX (3 * QUOIT_SHARE_HOSTS_MAX)
_Static_assert(QUOIT_SHARE_FDS_MAX <= QUOIT_DESCRIPTORS_MAX, "one message carries them");

enum quoit_share_kind {
    QUOIT_SHARE_REFUSED, /* never requested */
    QUOIT_SHARE_QUERY,
    QUOIT_SHARE_ATTACH,
    QUOIT_SHARE_CUT,
    QUOIT_SHARE_MEND,
    QUOIT_SHARE_NAMESPACES
};

/* In a reply, descriptors that came with the message are 0 here, in the order of the members; others are -1. */
struct quoit_share_message {
    struct quoit_share_head head; /* kind: enum quoit_share_kind; status: enum quoit_status */
    union {
        uint32_t link; /* of CUT and MEND */
        uint32_t host; /* of NAMESPACES */
        struct quoit_share_request request;
        struct quoit_share share;
        struct quoit_share_list list;
        struct quoit_share_namespaces namespaces;
    } body;
};

/* 0 with errno: the path is too long. */
socklen_t quoit_share_address(const char *path, struct sockaddr_un *address_out);
/* Terminates it and replaces what is not printable: a label comes from another user and may go to a terminal. */
void quoit_share_clean_label(char label[QUOIT_SHARE_LABEL_BYTES]);

#endif
