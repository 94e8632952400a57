/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/wait_desc.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "env/symbols.h"

#define NAME_BYTES QUOIT_SYMBOL_TEXT_BYTES

/* A word of a PE's segment, read from the memory's file; untouched pages are 0. */
static uint64_t read_word(const struct quoit_wait_desc_job *job, uint32_t pe, uint64_t offset, uint8_t bytes)
{
    const struct quoit_wait_desc_host host = job->host_of(job->arg, pe);
    uint64_t word = 0, at = quoit_layout_segment(host.layout, pe - host.layout->first_pe) + offset;
    if (bytes > sizeof word || pread(host.memory_fd, &word, bytes, (off_t)at) != (ssize_t)bytes)
        return 0;
    return word;
}

/* Names a variable, or an offset in the heap. */
static void name_object(const struct quoit_wait_desc_reading *reading, const char *executable,
                        char name_out[NAME_BYTES])
{
    if (reading->is_in_heap)
        snprintf(name_out, NAME_BYTES, "heap + 0x%llx", (unsigned long long)reading->offset);
    else if (!executable || reading->wait_desc.address == 0 ||
             !quoit_symbols_name(executable, reading->wait_desc.address, name_out))
        snprintf(name_out, NAME_BYTES, "globals + 0x%llx", (unsigned long long)reading->offset);
}

static void format_value(uint64_t value, const struct quoit_wait_desc *wait_desc, char text_out[24])
{
    unsigned shift = 64 - 8u * wait_desc->bytes;
    if (wait_desc->is_signed)
        snprintf(text_out, 24, "%lld", (long long)(int64_t)(value << shift) >> shift);
    else
        snprintf(text_out, 24, "%llu", (unsigned long long)value);
}

static bool is_sound(const struct quoit_wait_desc *wait_desc)
{
    bool is_value = wait_desc->bytes == 2 || wait_desc->bytes == 4 || wait_desc->bytes == 8;
    return wait_desc->count > 0 && is_value && wait_desc->cmp <= 5;
}

bool quoit_wait_desc_holds(const struct quoit_wait_desc_job *job, uint32_t pe, const struct quoit_wait_desc *lock)
{
    return (read_word(job, pe, lock->offset, lock->bytes) & lock->wanted) != 0;
}

static uint32_t find_holder(const struct quoit_wait_desc_job *job, uint32_t pe, const struct quoit_wait_desc *wait_desc)
{
    const struct quoit_layout *layout = job->host_of(job->arg, pe).layout;
    uint32_t first = job->is_partial ? layout->first_pe : 0;
    uint32_t end = job->is_partial ? layout->first_pe + layout->local_count : job->pe_count;
    for (uint32_t other = first; other < end; other++)
        if (quoit_wait_desc_holds(job, other, wait_desc))
            return other;
    return QUOIT_WAIT_DESC_NO_HOLDER;
}

void quoit_wait_desc_read(const struct quoit_wait_desc_job *job, uint32_t pe, const struct quoit_wait_desc *wait_desc,
                          const struct quoit_wait_desc_reading *earlier, struct quoit_wait_desc_reading *reading_out)
{
    const struct quoit_wait_desc_host host = job->host_of(job->arg, pe);
    *reading_out = (struct quoit_wait_desc_reading){.holder = QUOIT_WAIT_DESC_NO_HOLDER, .is_partial = job->is_partial};
    if (!host.front || !is_sound(wait_desc))
        return;
    const struct quoit_layout *layout = host.layout;
    uint64_t offset = wait_desc->is_lock ? wait_desc->offset - sizeof(uint32_t) : wait_desc->offset;
    reading_out->wait_desc = *wait_desc;
    reading_out->value = read_word(job, pe, wait_desc->offset, wait_desc->bytes);
    reading_out->is_in_heap = offset >= layout->segment_heap;
    reading_out->offset = offset - (reading_out->is_in_heap ? layout->segment_heap : layout->segment_data);
    bool is_known = earlier && earlier->wait_desc.is_lock && earlier->wait_desc.count > 0 &&
                    earlier->wait_desc.offset == wait_desc->offset && earlier->wait_desc.bytes == wait_desc->bytes &&
                    earlier->wait_desc.wanted == wait_desc->wanted;
    if (wait_desc->is_lock)
        reading_out->holder = is_known ? earlier->holder : find_holder(job, pe, wait_desc);
}

static void describe_lock(const struct quoit_wait_desc_reading *reading, const char *name,
                          char text_out[QUOIT_WAIT_DESC_TEXT_BYTES])
{
    if (reading->holder != QUOIT_WAIT_DESC_NO_HOLDER)
        snprintf(text_out, QUOIT_WAIT_DESC_TEXT_BYTES, " for lock %s, which PE %u holds", name, reading->holder);
    else
        snprintf(text_out, QUOIT_WAIT_DESC_TEXT_BYTES,
                 reading->is_partial ? " for lock %s" : " for lock %s, which no PE holds", name);
}

void quoit_wait_desc_describe(const struct quoit_wait_desc_reading *reading, const char *executable,
                              char text_out[QUOIT_WAIT_DESC_TEXT_BYTES])
{
    static const char *const comparisons[] = {"==", "!=", ">", ">=", "<", "<="};
    const struct quoit_wait_desc *wait_desc = &reading->wait_desc;
    char name[NAME_BYTES], now[24], wanted[24];
    text_out[0] = '\0';
    if (!is_sound(wait_desc))
        return;
    name_object(reading, executable, name);
    format_value(reading->value, wait_desc, now);
    format_value(wait_desc->wanted, wait_desc, wanted);
    if (wait_desc->is_lock)
        describe_lock(reading, name, text_out);
    else if (wait_desc->count == 1)
        snprintf(text_out, QUOIT_WAIT_DESC_TEXT_BYTES, " for %s %s %s, which is %s", name, comparisons[wait_desc->cmp],
                 wanted, now);
    else
        snprintf(text_out, QUOIT_WAIT_DESC_TEXT_BYTES, " for %u objects, of which %s is %s (wanted: %s %s)",
                 wait_desc->count, name, now, comparisons[wait_desc->cmp], wanted);
}
