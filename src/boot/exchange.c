/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/exchange.h"
#include "base/assert.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A block as text: two digits for each byte; for a run of zero bytes a point and their number. Values hold pieces of
 * it, and the first begins with the number of values. */
#define PIECE_CHARS 240u
#define RUN_MAX     255u
#define TEXT_CHARS  (3 * QUOIT_EXCHANGE_BLOCK_MAX)

static const struct quoit_exchange_ops *const rows[] = {&quoit_exchange_pmi, &quoit_exchange_pmi2,
                                                        &quoit_exchange_pmix};

const struct quoit_exchange_ops *quoit_exchange_find(const char *launcher)
{
    bool is_auto = strcmp(launcher, "auto") == 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if ((is_auto || strcmp(launcher, rows[i]->name) == 0) && rows[i]->is_here())
            return rows[i];
    return NULL;
}

static uint32_t zeros_at(const unsigned char *bytes, uint32_t count)
{
    uint32_t run = 0;
    while (run < count && run < RUN_MAX && bytes[run] == 0)
        run++;
    return run;
}

static uint32_t encode(const unsigned char *bytes, uint32_t count, char text_out[TEXT_CHARS + 1])
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < count;) {
        uint32_t run = zeros_at(bytes + i, count - i);
        if (run > 0)
            used += (uint32_t)snprintf(text_out + used, TEXT_CHARS + 1 - used, ".%02x", run);
        else
            used += (uint32_t)snprintf(text_out + used, TEXT_CHARS + 1 - used, "%02x", bytes[i]);
        i += run > 0 ? run : 1;
    }
    return used;
}

/* Two digits; -1: they are none. */
static int number_at(const char *text)
{
    int number = 0;
    for (int i = 0; i < 2; i++) {
        const char *digits = "0123456789abcdef", *digit = text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit)
            return -1;
        number = 16 * number + (int)(digit - digits);
    }
    return number;
}

static bool decode(const char *text, unsigned char *bytes_out, uint32_t count)
{
    uint32_t used = 0;
    while (*text) {
        bool is_run = *text == '.';
        int number = number_at(text + is_run);
        uint32_t more = is_run ? (uint32_t)number : 1;
        if (number < 0 || more > count - used)
            return false;
        memset(bytes_out + used, is_run ? 0 : number, more);
        used += more;
        text += is_run ? 3 : 2;
    }
    return used == count;
}

enum quoit_status quoit_exchange_put_block(struct quoit_exchange *exchange, uint32_t first_part, const void *bytes,
                                           uint32_t count)
{
    char text[TEXT_CHARS + 1], value[QUOIT_EXCHANGE_BYTES];
    quoit_assert(count > 0);
    quoit_assert(count <= QUOIT_EXCHANGE_BLOCK_MAX);
    uint32_t length = encode(bytes, count, text), part_count = (length + PIECE_CHARS - 1) / PIECE_CHARS;
    enum quoit_status status = QUOIT_OK;
    for (uint32_t part = 0; part < part_count && status == QUOIT_OK; part++) {
        snprintf(value, sizeof value, "%02x%.*s", part_count, (int)PIECE_CHARS, text + (size_t)part * PIECE_CHARS);
        status = exchange->ops->put(exchange, first_part + part, value);
    }
    return status;
}

enum quoit_status quoit_exchange_get_block(struct quoit_exchange *exchange, uint32_t rank, uint32_t first_part,
                                           void *bytes_out, uint32_t count)
{
    char text[TEXT_CHARS + QUOIT_EXCHANGE_BYTES + 1] = "", value[QUOIT_EXCHANGE_BYTES];
    uint32_t length = 0;
    int part_count = 1;
    for (int part = 0; part < part_count; part++) {
        enum quoit_status status = exchange->ops->get(exchange, rank, first_part + (uint32_t)part, value);
        if (status != QUOIT_OK)
            return status;
        part_count = number_at(value);
        if (part_count > 0 && length < TEXT_CHARS)
            length += (uint32_t)snprintf(text + length, sizeof text - length, "%s", value + 2);
    }
    if (decode(text, bytes_out, count))
        return QUOIT_OK;
    quoit_say("PE %u is not of this version of Quoit: build all programs of a job with one oshcc [Q0311]", rank);
    return QUOIT_INVALID;
}
