/* SPDX-License-Identifier: BSD-3-Clause */
/* chip_amd: 1022:148b as Linux's ntb_hw_amd drives it: 16 scratchpads that both ends share, 16 sticky doorbells with a
 * vector each that interrupts also when it is unmasked, XLAT and LMT of an end for its outbound windows, which the peer
 * writes, and the events of link-up and link-down.
 *
 * The ready bit of an end (SIDEINFO) is written by its own machine alone. ntb_hw_amd of the primary side clears that of
 * the secondary whenever it is asked for the link between the return and the event of it, and nobody sets it again.
 */
#include "ntb_device.h"

#define BELLS         16u
#define VECTORS       24u
#define VECTOR_EVENTS BELLS  /* behind those of the doorbells */
#define FILE_FROM     0x200u /* the register file of an end; that of the peer stands 0x400 above it */
#define FILE_TO       0x600u
#define SCRATCHPADS   0x210u
#define SIDEINFO      0x408u
#define LIMIT(window) (0x418u + (window)*8)
#define XLAT(window)  (0x438u + (window)*8)
#define DBREQ         0x454u
#define DBMASK        0x45cu
#define DBSTAT        0x460u
#define INTMASK       0x470u
#define INTSTAT       0x474u
#define SMUACK        0x4a0u
#define EVENT_UP      0x20u
#define EVENT_DOWN    0x40u

static void fire(struct end *end, uint64_t bits)
{
    for (uint32_t i = 0; i < BELLS; i++)
        if (bits >> i & 1)
            function_fire(&end->function, i);
}

static void ring(struct end *end, uint32_t bits)
{
    uint64_t fresh = bits & ~end->bell & ~end->bell_mask;
    end->bell |= bits;
    fire(end, fresh);
}

static void unmask(struct end *end, uint32_t mask)
{
    uint64_t due = end->bell & end->bell_mask & ~mask;
    end->bell_mask = mask;
    fire(end, due);
}

static void announce(struct end *end, uint32_t event)
{
    *word(end, INTSTAT) = (*word(end, INTSTAT) & ~(EVENT_UP | EVENT_DOWN)) | event;
    if ((*word(end, INTMASK) & event) == 0)
        function_fire(&end->function, VECTOR_EVENTS);
}

static void amd_reset(struct end *end)
{
    *word(end, SIDEINFO) = end == &end->link->ends[1];
    end->bell_mask = (1u << BELLS) - 1;
    *word(end, INTMASK) = 0x7f;
}

static void amd_come(struct end *end)
{
    announce(peer_of(end), EVENT_UP);
}

static void amd_leave(struct end *end)
{
    struct end *peer = peer_of(end);
    for (uint32_t at = LIMIT(0); at < XLAT(WINDOWS); at += 4)
        *word(peer, at) = 0;
    announce(peer, EVENT_DOWN);
}

static bool amd_lose(struct end *end)
{
    announce(end, EVENT_DOWN);
    return (*word(end, INTMASK) & EVENT_DOWN) == 0;
}

static void amd_restore(struct end *end)
{
    announce(end, EVENT_UP);
}

/* Whose register file `at` of BAR 0 is in; NULL: none that answers. */
static struct end *file_at(struct end *end, uint32_t *at, bool is_write)
{
    if (*at >= FILE_FROM && *at < FILE_TO)
        return end;
    if (*at < FILE_TO || *at >= FILE_TO + FILE_TO - FILE_FROM)
        return NULL;
    *at -= FILE_TO - FILE_FROM;
    bool is_protected = is_write && *at == SIDEINFO;
    return end->link->is_cut || is_protected ? NULL : peer_of(end);
}

static uint32_t *scratchpad(struct link *link, uint32_t at)
{
    bool is_one = at >= SCRATCHPADS && at < SCRATCHPADS + sizeof link->scratchpads;
    return is_one ? &link->scratchpads[(at - SCRATCHPADS) / 4] : NULL;
}

static uint32_t amd_read(struct end *end, uint32_t at)
{
    struct end *owner = file_at(end, &at, false);
    if (!owner)
        return UINT32_MAX;
    if (scratchpad(end->link, at))
        return *scratchpad(end->link, at);
    switch (at) {
    case DBSTAT:
        return (uint32_t)owner->bell;
    case DBMASK:
        return (uint32_t)owner->bell_mask;
    default:
        return *word(owner, at);
    }
}

static void plain_write(struct end *owner, uint32_t at, uint32_t value, uint32_t mask)
{
    write_plain(owner, at, value, mask);
    for (uint32_t window = 0; window < WINDOWS; window++)
        if (at / 8 == XLAT(window) / 8 || at / 8 == LIMIT(window) / 8)
            device_map_window(owner, window); /* and not the other one, which may be in use */
}

static void amd_write(struct end *end, uint32_t at, uint32_t value, uint32_t mask)
{
    struct end *owner = file_at(end, &at, true);
    if (!owner)
        return;
    if (scratchpad(end->link, at)) {
        if (!end->link->is_cut)
            *scratchpad(end->link, at) = (*scratchpad(end->link, at) & ~mask) | value;
        return;
    }
    switch (at) {
    case DBREQ:
        if (!end->link->is_cut && device_carries_ring(end->link))
            ring(peer_of(owner), value & 0xffff);
        break;
    case DBSTAT:
        owner->bell &= ~(uint64_t)value;
        break;
    case DBMASK:
        unmask(owner, (((uint32_t)owner->bell_mask & ~mask) | value) & 0xffff);
        break;
    case INTSTAT:
        *word(owner, INTSTAT) &= ~value;
        break;
    case SMUACK:
        if (value & EVENT_DOWN)
            owner->is_loss_pending = false;
        device_carry_again(end->link);
        break;
    default:
        plain_write(owner, at, value, mask);
    }
}

static struct translation amd_translation(const struct end *end, uint32_t window)
{
    return (struct translation){wide(end, XLAT(window)), wide(end, LIMIT(window))};
}

const struct chip chip_amd = {
    .name = "amd",
    .id = 0x148b1022,
    .vector_count = VECTORS,
    .register_bytes = REGISTERS_BYTES,
    .reset = amd_reset,
    .come = amd_come,
    .leave = amd_leave,
    .lose = amd_lose,
    .restore = amd_restore,
    .read = amd_read,
    .write = amd_write,
    .translation = amd_translation,
    .has_sender_lengths = true,
};
