/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/version.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define VERSION_OFFSET offsetof(struct quoit_boot_message, body)

/* Every later version keeps these places. */
static_assert(offsetof(struct quoit_boot_message, magic) == 0 && offsetof(struct quoit_boot_message, kind) == 4, "");
static_assert(offsetof(struct quoit_boot_message, body.hello.version) == VERSION_OFFSET && VERSION_OFFSET == 8, "");
static_assert(offsetof(struct quoit_boot_message, body.layout.version) == VERSION_OFFSET, "");
static_assert(sizeof QUOIT_VERSION <= QUOIT_BOOT_VERSION_BYTES, "");

const char *quoit_version(void)
{
    return QUOIT_VERSION;
}

void quoit_version_put(char version_out[QUOIT_BOOT_VERSION_BYTES])
{
    memset(version_out, 0, QUOIT_BOOT_VERSION_BYTES);
    memcpy(version_out, QUOIT_VERSION, sizeof QUOIT_VERSION);
}

/* Versions before this field have other data in its place. */
static bool is_version(const char *text)
{
    static const char allowed[] = "0123456789.+-~abcdefghijklmnopqrstuvwxyz";
    size_t length = strnlen(text, QUOIT_BOOT_VERSION_BYTES);
    return length < QUOIT_BOOT_VERSION_BYTES && text[0] >= '0' && text[0] <= '9' && strspn(text, allowed) == length;
}

void quoit_version_get(const struct quoit_boot_message *message, size_t byte_count,
                       char text_out[QUOIT_VERSION_TEXT_BYTES])
{
    const char *version = message->body.hello.version; /* where LAYOUT has it too */
    bool has_version = byte_count >= VERSION_OFFSET + QUOIT_BOOT_VERSION_BYTES && message->magic == QUOIT_BOOT_MAGIC &&
                       (message->kind == QUOIT_BOOT_HELLO || message->kind == QUOIT_BOOT_LAYOUT) && is_version(version);
    snprintf(text_out, QUOIT_VERSION_TEXT_BYTES, "%s%s", has_version ? "version " : "an unknown version",
             has_version ? version : "");
}
