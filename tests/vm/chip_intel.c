/* SPDX-License-Identifier: BSD-3-Clause */
/* chip_intel: the bridge of a Skylake Xeon, 8086:201c, back to back with its like, as Linux's ntb_hw_intel (gen3)
 * drives it. What is not as in AMD's:
 *
 * - A translation stands in the registers of the end whose memory it leads to, and survives the link; its address is a
 *   multiple of the window. Its length is told by two limits, the end's own and that of its external side; the lesser
 *   holds.
 * - 16 scratchpads of each end, and 32 doorbells, one register to ring each, of which the driver leaves 31.
 * - An interrupt goes to the vector that INTVEC names, and is raised when an unmasked bit is set: none comes with an
 *   unmask, so a driver that does not look after it would sleep.
 * - The link carries when the drivers of both ends have enabled it; either one that disables it takes it down for both.
 *   It is told by the 33rd bit and by the status in the configuration space. A loss is taken note of when that is read:
 *   the driver compares it with what it read before.
 */
#include "ntb_device.h"

#define CONTROL          0x000u
#define CONTROL_DISABLED 2u
#define CONTROL_RESET    3u
#define BASE(window)     (0x010u + (window)*16)
#define LIMIT(window)    (0x018u + (window)*16)
#define STATUS           0x040u
#define DISABLE          0x048u
#define SCRATCHPADS      0x080u
#define SCRATCHPADS_TO   0x0c0u
#define VECTOR_OF        0x0d0u /* a byte for each bit */
#define RING             0x100u
#define RING_TO          0x180u
#define PEER_SCRATCHPADS 0x180u
#define PEER_TO          0x1c0u
#define OUTER_LIMIT(w)   (0x4018u + (w)*16)
#define OUTER_BAR(w)     (0x4518u + (w)*8)
#define BELLS            32u
#define LINK_BIT         BELLS
#define VECTORS          (BELLS + 1)
#define BAR_BYTES        0x8000u

#define CONFIG_TOPOLOGY 0x0d4u
#define BACK_TO_BACK    1u
#define DOWNSTREAM      0x10u
#define CONFIG_LINK     0x1a2u
#define LINK_SPEED      0x83u /* generation 3, 8 lanes */
#define LINK_ACTIVE     0x2000u

/* What the firmware gives the external side; the driver reads it. */
static uint64_t outer_base(uint32_t window)
{
    return (uint64_t)(window + 1) << 40;
}

static void ring(struct end *end, uint32_t bit)
{
    uint64_t mask = UINT64_C(1) << bit;
    bool is_fresh = (mask & ~end->bell & ~end->bell_mask) != 0;
    end->bell |= mask;
    uint32_t vector = *word(end, VECTOR_OF + bit) >> bit % 4 * 8 & 0xff;
    if (is_fresh && vector < VECTORS)
        function_fire(&end->function, vector);
}

/* The link */

static bool is_enabled(const struct end *end)
{
    return (end->registers[CONTROL / 4] & CONTROL_DISABLED) == 0;
}

static bool is_up(const struct link *link)
{
    return !link->is_cut && has_both_ends(link) && is_enabled(&link->ends[0]) && is_enabled(&link->ends[1]);
}

static bool tells_link(const struct end *end)
{
    return (get(end->function.config + CONFIG_LINK, 2) & LINK_ACTIVE) != 0;
}

static void tell_link(struct end *end)
{
    bool is_active = is_up(end->link);
    if (is_active == tells_link(end))
        return;
    put(end->function.config + CONFIG_LINK, LINK_SPEED | (is_active ? LINK_ACTIVE : 0), 2);
    ring(end, LINK_BIT);
}

static bool intel_lose(struct end *end)
{
    bool has_to_look = tells_link(end) || end->is_loss_pending;
    tell_link(end);
    return has_to_look;
}

static void intel_come(struct end *end)
{
    (void)end; /* its driver has to enable the link */
}

static void intel_leave(struct end *end)
{
    tell_link(peer_of(end));
}

static void intel_config_read(struct end *end, uint64_t at, uint32_t bytes)
{
    if (at + bytes <= CONFIG_LINK || at >= CONFIG_LINK + 2)
        return;
    end->is_loss_pending = false;
    device_carry_again(end->link);
}

/* Registers */

static void intel_reset(struct end *end)
{
    bool is_second = end == &end->link->ends[1];
    put(end->function.config + CONFIG_TOPOLOGY, BACK_TO_BACK | (is_second ? DOWNSTREAM : 0), 1);
    put(end->function.config + CONFIG_LINK, LINK_SPEED, 2);
    *word(end, CONTROL) = CONTROL_RESET;
    for (uint32_t bit = 0; bit < VECTORS; bit++) /* that of the link first */
        write_plain(end, VECTOR_OF + bit, (bit + 1) % VECTORS << bit % 4 * 8, 0xffu << bit % 4 * 8);
    for (uint32_t window = 0; window < WINDOWS; window++) {
        put(word(end, OUTER_BAR(window)), outer_base(window) | 0xc, 8);
        put(word(end, OUTER_LIMIT(window)), outer_base(window), 8);
    }
}

static uint32_t intel_read(struct end *end, uint32_t at)
{
    if (at >= REGISTER_BYTES || (at >= RING && at < RING_TO))
        return 0;
    if (at >= PEER_SCRATCHPADS && at < PEER_TO)
        return is_up(end->link) ? *word(peer_of(end), at - PEER_SCRATCHPADS + SCRATCHPADS) : UINT32_MAX;
    switch (at) {
    case STATUS:
        return (uint32_t)end->bell;
    case STATUS + 4:
        return (uint32_t)(end->bell >> 32);
    case DISABLE:
        return (uint32_t)end->bell_mask;
    case DISABLE + 4:
        return (uint32_t)(end->bell_mask >> 32);
    default:
        return *word(end, at);
    }
}

static void control_write(struct end *end, uint32_t value, uint32_t mask)
{
    write_plain(end, CONTROL, value, mask);
    for (int i = 0; i < 2; i++) {
        device_map_windows(&end->link->ends[i]);
        tell_link(&end->link->ends[i]);
    }
}

/* What goes to the peer. */
static void link_write(struct end *end, uint32_t at, uint32_t value, uint32_t mask)
{
    if (!is_up(end->link))
        return;
    if (at >= PEER_SCRATCHPADS)
        write_plain(peer_of(end), at - PEER_SCRATCHPADS + SCRATCHPADS, value, mask);
    else if (value & 1 && device_carries_ring(end->link))
        ring(peer_of(end), (at - RING) / 4);
}

static void plain_write(struct end *end, uint32_t at, uint32_t value, uint32_t mask)
{
    write_plain(end, at, value, mask);
    for (uint32_t window = 0; window < WINDOWS; window++)
        if (at / 8 == BASE(window) / 8 || at / 8 == LIMIT(window) / 8 || at / 8 == OUTER_LIMIT(window) / 8)
            device_map_window(peer_of(end), window); /* and not the other one, which may be in use */
}

static void intel_write(struct end *end, uint32_t at, uint32_t value, uint32_t mask)
{
    uint32_t shift = at % 8 * 8;
    if (at >= RING && at < PEER_TO) {
        link_write(end, at, value, mask);
        return;
    }
    switch (at) {
    case CONTROL:
        control_write(end, value, mask);
        break;
    case STATUS:
    case STATUS + 4:
        end->bell &= ~((uint64_t)value << shift);
        break;
    case DISABLE:
    case DISABLE + 4:
        end->bell_mask = (end->bell_mask & ~((uint64_t)mask << shift)) | (uint64_t)value << shift;
        break;
    default:
        if (at < REGISTER_BYTES)
            plain_write(end, at, value, mask);
    }
}

static struct translation intel_translation(const struct end *end, uint32_t window)
{
    const struct end *peer = peer_of(end);
    uint64_t start = function_bar(&peer->function, 2 + 2 * window), limit = wide(peer, LIMIT(window));
    uint64_t outer_limit = wide(peer, OUTER_LIMIT(window));
    uint64_t inner_bytes = limit > start ? limit - start : 0;
    uint64_t outer_bytes = outer_limit > outer_base(window) ? outer_limit - outer_base(window) : 0;
    if (!is_up(end->link))
        return (struct translation){0};
    return (struct translation){wide(peer, BASE(window)), inner_bytes < outer_bytes ? inner_bytes : outer_bytes};
}

const struct chip chip_intel = {
    .name = "intel",
    .id = 0x201c8086,
    .vector_count = VECTORS,
    .register_bytes = BAR_BYTES,
    .reset = intel_reset,
    .come = intel_come,
    .leave = intel_leave,
    .lose = intel_lose,
    .restore = tell_link,
    .read = intel_read,
    .write = intel_write,
    .config_read = intel_config_read,
    .translation = intel_translation,
};
