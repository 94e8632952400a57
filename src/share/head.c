/* SPDX-License-Identifier: BSD-3-Clause */
#include "share/head.h"

#include <stdio.h>
#include <string.h>

struct quoit_share_head quoit_share_head_make(uint32_t magic, size_t bytes, uint32_t kind)
{
    return (struct quoit_share_head){.magic = magic,
                                     .protocol = QUOIT_SHARE_PROTOCOL,
                                     .bytes = (uint32_t)bytes,
                                     .kind = kind,
                                     .version = QUOIT_VERSION};
}

bool quoit_share_head_is(const struct quoit_share_head *head, size_t came, uint32_t magic)
{
    return came >= sizeof *head && head->magic == magic;
}

bool quoit_share_head_fits(const struct quoit_share_head *head, size_t came, uint32_t magic, size_t bytes)
{
    return quoit_share_head_is(head, came, magic) && head->protocol == QUOIT_SHARE_PROTOCOL && head->bytes == bytes &&
           came == bytes;
}

const char *quoit_share_build(const struct quoit_share_head *head, char text_out[QUOIT_SHARE_BUILD_BYTES])
{
    char version[QUOIT_SHARE_VERSION_BYTES];
    if (!head) {
        snprintf(text_out, QUOIT_SHARE_BUILD_BYTES, "an older one");
        return text_out;
    }
    memcpy(version, head->version, sizeof version);
    version[sizeof version - 1] = '\0';
    for (char *at = version; *at != '\0'; at++) /* it may go to a terminal */
        *at = *at > ' ' && *at <= '~' ? *at : '?';
    snprintf(text_out, QUOIT_SHARE_BUILD_BYTES, "%s (messages %u.%u)", version, head->protocol, head->bytes);
    return text_out;
}
