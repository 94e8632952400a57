/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/version.h"

#include <assert.h>
#include <elf.h>
#include <inttypes.h>
#include <shmem/version.h>
#include <stdio.h>
#include <string.h>

static_assert(sizeof QUOIT_VERSION <= QUOIT_VERSION_BYTES, "");

struct note {
    Elf64_Nhdr header;
    char owner[8]; /* a multiple of four bytes, as notes have it */
    struct quoit_version version;
};
static_assert(sizeof(Elf64_Nhdr) == sizeof(Elf32_Nhdr) && sizeof QUOIT_VERSION_NOTE_OWNER <= 8, "");

/* Not static, since the linker is asked for it by name. */
const struct note quoit_version_note __attribute__((section(".note.quoit"), used, aligned(4))) = {
    .header = {.n_namesz = sizeof QUOIT_VERSION_NOTE_OWNER,
               .n_descsz = sizeof(struct quoit_version),
               .n_type = QUOIT_VERSION_NOTE_TYPE},
    .owner = QUOIT_VERSION_NOTE_OWNER,
    .version = {.text = QUOIT_VERSION,
                .protocol_oldest = QUOIT_PROTOCOL_OLDEST,
                .protocol_newest = QUOIT_PROTOCOL_NEWEST},
};

/* What is sent is what the file holds, so a file whose note was changed is of another version in every respect
 * (tests/installed/versions.py): the compiler must not take the value from here. */
const struct quoit_version *quoit_version(void)
{
    const struct quoit_version *version = &quoit_version_note.version;
    __asm__("" : "+r"(version));
    return version;
}

bool quoit_version_is_valid(const struct quoit_version *version)
{
    static const char allowed[] = "0123456789.+-~abcdefghijklmnopqrstuvwxyz";
    const char *text = version->text;
    size_t length = strnlen(text, QUOIT_VERSION_BYTES);
    return length < QUOIT_VERSION_BYTES && text[0] >= '0' && text[0] <= '9' && strspn(text, allowed) == length;
}

bool quoit_versions_fit(const struct quoit_version *one, const struct quoit_version *other)
{
    return one->protocol_oldest <= other->protocol_newest && other->protocol_oldest <= one->protocol_newest;
}

void quoit_version_write(const struct quoit_version *version, char word_out[QUOIT_VERSION_FIELD_BYTES])
{
    snprintf(word_out, QUOIT_VERSION_FIELD_BYTES, "%.*s:%" PRIu32 "-%" PRIu32, QUOIT_VERSION_BYTES, version->text,
             version->protocol_oldest, version->protocol_newest);
}

bool quoit_version_read(const char *word, struct quoit_version *version_out)
{
    char own[QUOIT_VERSION_FIELD_BYTES];
    *version_out = (struct quoit_version){.protocol_oldest = UINT32_MAX};
    size_t length = strcspn(word, ":");
    if (length >= sizeof version_out->text)
        return false;
    memcpy(version_out->text, word, length);
    if (!quoit_version_is_valid(version_out)) {
        version_out->text[0] = '\0';
        return false;
    }
    struct quoit_version read = *version_out;
    if (sscanf(word + length, ":%" SCNu32 "-%" SCNu32, &read.protocol_oldest, &read.protocol_newest) != 2)
        return false;
    quoit_version_write(&read, own);
    if (strcmp(own, word) != 0) /* something is behind it, or a number overflowed */
        return false;
    *version_out = read;
    return true;
}
