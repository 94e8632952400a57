/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/pmi_wire.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool copy(const char *from, size_t length, char *to, size_t bytes)
{
    if (length >= bytes)
        return false;
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

bool quoit_pmi_value(const char *message, int version, const char *key, char *value_out, size_t value_bytes)
{
    const char *separators = version == 2 ? ";" : " \t";
    size_t key_length = strlen(key);
    for (const char *at = message; *at;) {
        at += strspn(at, separators);
        size_t length = strcspn(at, separators);
        if (length > key_length && at[key_length] == '=' && memcmp(at, key, key_length) == 0)
            return copy(at + key_length + 1, length - key_length - 1, value_out, value_bytes);
        at += length;
    }
    return false;
}

long quoit_pmi_number(const char *message, int version, const char *key, long fallback)
{
    char text[24], *end = NULL;
    if (!quoit_pmi_value(message, version, key, text, sizeof text))
        return fallback;
    errno = 0;
    long number = strtol(text, &end, 10);
    return end == text || *end || errno ? fallback : number;
}

bool quoit_pmi_is(const char *message, int version, const char *name)
{
    char text[64];
    return quoit_pmi_value(message, version, "cmd", text, sizeof text) && strcmp(text, name) == 0;
}

size_t quoit_pmi_length(const char text[QUOIT_PMI_LENGTH_BYTES])
{
    size_t length = 0, at = 0;
    while (at < QUOIT_PMI_LENGTH_BYTES && text[at] == ' ')
        at++;
    for (; at < QUOIT_PMI_LENGTH_BYTES && text[at] >= '0' && text[at] <= '9'; at++)
        length = length * 10 + (size_t)(text[at] - '0');
    while (at < QUOIT_PMI_LENGTH_BYTES && text[at] == ' ')
        at++;
    return at == QUOIT_PMI_LENGTH_BYTES && length < QUOIT_PMI_MESSAGE_BYTES - QUOIT_PMI_LENGTH_BYTES ? length : 0;
}

bool quoit_pmi_port(const char *text, char *host_out, size_t host_bytes, char *port_out, size_t port_bytes)
{
    const char *colon = strrchr(text, ':');
    return colon && colon > text && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1) &&
           copy(text, (size_t)(colon - text), host_out, host_bytes) &&
           copy(colon + 1, strlen(colon + 1), port_out, port_bytes);
}
