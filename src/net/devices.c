/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/devices.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ENTRY_BYTES 64

struct entry {
    char text[ENTRY_BYTES]; /* without ^ */
    bool is_excluded;
    struct quoit_wire_address address; /* of no family: the text is a name */
    uint32_t bits;                     /* of it that count */
};

/* Behind a slash; false: it is no number. */
static bool read_bits(const char *text, uint32_t *bits_out)
{
    *bits_out = 0;
    if (text[0] == '\0' || strlen(text) > 3 || text[strspn(text, "0123456789")] != '\0')
        return false;
    for (; *text; text++)
        *bits_out = 10 * *bits_out + (uint32_t)(*text - '0');
    return true;
}

/* The entry at `list`; returns what follows it, NULL behind the last. */
static const char *next_entry(const char *list, struct entry *entry_out, const char **wrong_out)
{
    size_t length = strcspn(list, ",");
    const char *next = list[length] ? list + length + 1 : NULL;
    *wrong_out = NULL;
    *entry_out = (struct entry){.is_excluded = list[0] == '^'};
    list += entry_out->is_excluded;
    length -= entry_out->is_excluded;
    if (length == 0 || length >= ENTRY_BYTES) {
        *wrong_out = length == 0 ? "an entry is empty" : "an entry is too long";
        return next;
    }
    memcpy(entry_out->text, list, length);
    char address[ENTRY_BYTES], *slash;
    memcpy(address, entry_out->text, sizeof address);
    slash = strchr(address, '/');
    if (slash)
        *slash = '\0';
    bool is_address = quoit_address_parse(address, &entry_out->address);
    entry_out->bits = quoit_address_bits(&entry_out->address);
    if (slash && (!is_address || !read_bits(slash + 1, &entry_out->bits) ||
                  entry_out->bits > quoit_address_bits(&entry_out->address)))
        *wrong_out = "is no subnet, such as 10.1.0.0/16 or fd00:1::/64";
    return next;
}

bool quoit_devices_check(const char *list, char problem_out[QUOIT_DEVICES_PROBLEM_BYTES])
{
    struct entry entry;
    const char *wrong = NULL;
    if (strlen(list) >= QUOIT_DEVICES_BYTES) {
        snprintf(problem_out, QUOIT_DEVICES_PROBLEM_BYTES, "--network-device: the list has more than %d characters",
                 QUOIT_DEVICES_BYTES - 1);
        return false;
    }
    for (const char *at = list[0] ? list : NULL; at && !wrong;)
        at = next_entry(at, &entry, &wrong);
    if (wrong && entry.text[0])
        snprintf(problem_out, QUOIT_DEVICES_PROBLEM_BYTES, "--network-device: \"%s\" %s", entry.text, wrong);
    else if (wrong)
        snprintf(problem_out, QUOIT_DEVICES_PROBLEM_BYTES, "--network-device: %s", wrong);
    return !wrong;
}

bool quoit_devices_take(const char *list, const char *name, const struct quoit_wire_address *address)
{
    bool is_named = false, names_any = false;
    for (const char *at = list && list[0] ? list : NULL; at;) {
        struct entry entry;
        const char *wrong;
        at = next_entry(at, &entry, &wrong);
        bool matches = strcmp(entry.text, name) == 0 || (entry.address.family != 0 && address &&
                                                         quoit_address_agrees(&entry.address, address, entry.bits));
        if (matches && entry.is_excluded)
            return false;
        names_any |= !entry.is_excluded;
        is_named |= matches;
    }
    return is_named || !names_any;
}
