/* SPDX-License-Identifier: BSD-3-Clause */
#include "share/head.h"

#include "base/version.h"

#include <stdio.h>
#include <string.h>

struct quoit_share_head quoit_share_head_make(uint32_t magic, size_t bytes, uint32_t kind)
{
    struct quoit_share_head head = {
        .magic = magic, .protocol = QUOIT_SHARE_PROTOCOL, .bytes = (uint32_t)bytes, .kind = kind};
    snprintf(head.version, sizeof head.version, "%.*s", QUOIT_SHARE_VERSION_BYTES - 1, quoit_version()->text);
    return head;
}

bool quoit_share_head_is_present(const struct quoit_share_head *head, size_t received_bytes, uint32_t magic)
{
    return received_bytes >= sizeof *head && head->magic == magic;
}

bool quoit_share_head_matches(const struct quoit_share_head *head, size_t received_bytes, uint32_t magic,
                              size_t message_bytes)
{
    return quoit_share_head_is_present(head, received_bytes, magic) && head->protocol == QUOIT_SHARE_PROTOCOL &&
           head->bytes == message_bytes && received_bytes == message_bytes;
}

const char *quoit_share_build_text(const struct quoit_share_head *head, char text_out[QUOIT_SHARE_BUILD_BYTES])
{
    char version[QUOIT_SHARE_VERSION_BYTES];
    if (!head) {
        snprintf(text_out, QUOIT_SHARE_BUILD_BYTES, "an older one");
        return text_out;
    }
    memcpy(version, head->version, sizeof version);
    version[sizeof version - 1] = '\0';
    for (char *c = version; *c != '\0'; c++) /* it may go to a terminal */
        *c = *c > ' ' && *c <= '~' ? *c : '?';
    snprintf(text_out, QUOIT_SHARE_BUILD_BYTES, "%s (messages %u.%u)", version, head->protocol, head->bytes);
    return text_out;
}
