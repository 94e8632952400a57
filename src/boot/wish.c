/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/wish.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "env/symbols.h"

#define NAME_BYTES QUOIT_SYMBOL_TEXT_BYTES

/* A word of a PE's segment, read from the memory's file; untouched pages are 0. */
static uint64_t read_word(const struct quoit_wish_job *job, uint32_t pe, uint64_t offset, uint8_t bytes)
{
    const struct quoit_wish_host host = job->host_of(job->arg, pe);
    uint64_t word = 0, at = quoit_layout_segment(host.layout, pe - host.layout->first_pe) + offset;
    if (bytes > sizeof word || pread(host.memory_fd, &word, bytes, (off_t)at) != (ssize_t)bytes)
        return 0;
    return word;
}

/* Names a variable, or an offset in the heap. */
static void name_object(const struct quoit_wish_reading *reading, const char *executable, char name_out[NAME_BYTES])
{
    if (reading->is_in_heap)
        snprintf(name_out, NAME_BYTES, "heap + 0x%llx", (unsigned long long)reading->offset);
    else if (!executable || reading->wish.address == 0 ||
             !quoit_symbols_name(executable, reading->wish.address, name_out))
        snprintf(name_out, NAME_BYTES, "globals + 0x%llx", (unsigned long long)reading->offset);
}

static void format_value(uint64_t value, const struct quoit_wish *wish, char text_out[24])
{
    unsigned shift = 64 - 8u * wish->bytes;
    if (wish->is_signed)
        snprintf(text_out, 24, "%lld", (long long)(int64_t)(value << shift) >> shift);
    else
        snprintf(text_out, 24, "%llu", (unsigned long long)value);
}

static bool is_sound(const struct quoit_wish *wish)
{
    bool is_value = wish->bytes == 2 || wish->bytes == 4 || wish->bytes == 8;
    return wish->count > 0 && is_value && wish->cmp <= 5;
}

bool quoit_wish_holds(const struct quoit_wish_job *job, uint32_t pe, const struct quoit_wish *lock)
{
    return (read_word(job, pe, lock->offset, lock->bytes) & lock->wanted) != 0;
}

static uint32_t find_holder(const struct quoit_wish_job *job, uint32_t pe, const struct quoit_wish *wish)
{
    const struct quoit_layout *layout = job->host_of(job->arg, pe).layout;
    uint32_t first = job->is_partial ? layout->first_pe : 0;
    uint32_t end = job->is_partial ? layout->first_pe + layout->local_count : job->pe_count;
    for (uint32_t other = first; other < end; other++)
        if (quoit_wish_holds(job, other, wish))
            return other;
    return QUOIT_WISH_NO_HOLDER;
}

void quoit_wish_read(const struct quoit_wish_job *job, uint32_t pe, const struct quoit_wish *wish,
                     const struct quoit_wish_reading *earlier, struct quoit_wish_reading *reading_out)
{
    const struct quoit_wish_host host = job->host_of(job->arg, pe);
    *reading_out = (struct quoit_wish_reading){.holder = QUOIT_WISH_NO_HOLDER, .is_partial = job->is_partial};
    if (!host.front || !is_sound(wish))
        return;
    const struct quoit_layout *layout = host.layout;
    uint64_t offset = wish->is_lock ? wish->offset - sizeof(uint32_t) : wish->offset;
    reading_out->wish = *wish;
    reading_out->value = read_word(job, pe, wish->offset, wish->bytes);
    reading_out->is_in_heap = offset >= layout->segment_heap;
    reading_out->offset = offset - (reading_out->is_in_heap ? layout->segment_heap : layout->segment_data);
    bool is_known = earlier && earlier->wish.is_lock && earlier->wish.count > 0 &&
                    earlier->wish.offset == wish->offset && earlier->wish.bytes == wish->bytes &&
                    earlier->wish.wanted == wish->wanted;
    if (wish->is_lock)
        reading_out->holder = is_known ? earlier->holder : find_holder(job, pe, wish);
}

static void describe_lock(const struct quoit_wish_reading *reading, const char *name,
                          char text_out[QUOIT_WISH_TEXT_BYTES])
{
    if (reading->holder != QUOIT_WISH_NO_HOLDER)
        snprintf(text_out, QUOIT_WISH_TEXT_BYTES, " for lock %s, which PE %u holds", name, reading->holder);
    else
        snprintf(text_out, QUOIT_WISH_TEXT_BYTES,
                 reading->is_partial ? " for lock %s" : " for lock %s, which no PE holds", name);
}

void quoit_wish_describe(const struct quoit_wish_reading *reading, const char *executable,
                         char text_out[QUOIT_WISH_TEXT_BYTES])
{
    static const char *const comparisons[] = {"==", "!=", ">", ">=", "<", "<="};
    const struct quoit_wish *wish = &reading->wish;
    char name[NAME_BYTES], now[24], wanted[24];
    text_out[0] = '\0';
    if (!is_sound(wish))
        return;
    name_object(reading, executable, name);
    format_value(reading->value, wish, now);
    format_value(wish->wanted, wish, wanted);
    if (wish->is_lock)
        describe_lock(reading, name, text_out);
    else if (wish->count == 1)
        snprintf(text_out, QUOIT_WISH_TEXT_BYTES, " for %s %s %s, which is %s", name, comparisons[wish->cmp], wanted,
                 now);
    else
        snprintf(text_out, QUOIT_WISH_TEXT_BYTES, " for %u objects, of which %s is %s (wanted: %s %s)", wish->count,
                 name, now, comparisons[wish->cmp], wanted);
}
