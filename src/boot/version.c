/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/version.h"

#include <assert.h>
#include <stdio.h>

#define VERSION_OFFSET offsetof(struct quoit_boot_message, body)

/* Every later version keeps these places. */
static_assert(offsetof(struct quoit_boot_message, magic) == 0 && offsetof(struct quoit_boot_message, kind) == 4, "");
static_assert(offsetof(struct quoit_boot_message, body.hello.version) == VERSION_OFFSET && VERSION_OFFSET == 8, "");
static_assert(offsetof(struct quoit_boot_message, body.layout.version) == VERSION_OFFSET, "");

static bool is_first(const struct quoit_boot_message *message, size_t byte_count)
{
    return byte_count >= VERSION_OFFSET + sizeof(struct quoit_version) && message->magic == QUOIT_BOOT_MAGIC &&
           (message->kind == QUOIT_BOOT_HELLO || message->kind == QUOIT_BOOT_LAYOUT);
}

bool quoit_boot_fits(const struct quoit_boot_message *message, size_t byte_count)
{
    return byte_count == sizeof *message && is_first(message, byte_count) &&
           quoit_versions_fit(quoit_version(), &message->body.hello.version); /* where LAYOUT has it too */
}

/* Versions before this field have other data in its place. */
void quoit_version_get(const struct quoit_boot_message *message, size_t byte_count,
                       char text_out[QUOIT_VERSION_TEXT_BYTES])
{
    const struct quoit_version *version = &message->body.hello.version;
    bool has_version = is_first(message, byte_count) && quoit_version_is_valid(version);
    snprintf(text_out, QUOIT_VERSION_TEXT_BYTES, "%s%s", has_version ? "version " : "an unknown version",
             has_version ? version->text : "");
}
