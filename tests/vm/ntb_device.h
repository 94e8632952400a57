/* SPDX-License-Identifier: BSD-3-Clause */
/* ntb_device.h - a link of two ends, and what a family of chips is to it.
 *
 * What it is: ntb_device.c has what all chips share, the windows and the cable; a chip has the registers, and says by
 * them what its outbound windows are translated to and how a driver learns that the link came or went.
 *
 * Threads: one.
 */
#ifndef TESTS_VM_NTB_DEVICE_H
#define TESTS_VM_NTB_DEVICE_H

#include "dma_engine.h"
#include "vfio_user.h"
#include "window_map.h"

#define WINDOWS        2       /* BAR 2 and 4 */
#define REGISTER_BYTES 0x5000u /* of any chip; what it has beyond is not modelled */

struct link;

struct end {
    struct function function;
    struct link *link;
    uint32_t registers[REGISTER_BYTES / 4];
    uint64_t bell, bell_mask;
    bool is_loss_pending; /* its driver has not taken note of the loss of the cable */
    const char *map_path; /* of window_map; NULL: each access is a message */
    int map_connection;   /* -1: none */
    char window_names[WINDOWS][WINDOW_NAME_BYTES];
};

/* What an outbound window leads to in the memory of the peer's machine. base 0: nothing. */
struct translation {
    uint64_t base, bytes;
};

struct chip {
    const char *name;
    uint32_t id; /* vendor and device */
    uint32_t vector_count;
    uint64_t register_bytes; /* of BAR 0 */
    void (*reset)(struct end *end);
    void (*come)(struct end *end);  /* a machine has it; the cable carries */
    void (*leave)(struct end *end); /* its machine is gone; reset comes next */
    /* The cable is out, or in again; both ends are there. lose: whether the driver has to take note of it. */
    bool (*lose)(struct end *end);
    void (*restore)(struct end *end);
    /* Whole words of BAR 0; `mask` is which bits are written, the others of `value` are 0. */
    uint32_t (*read)(struct end *end, uint32_t at);
    void (*write)(struct end *end, uint32_t at, uint32_t value, uint32_t mask);
    void (*config_read)(struct end *end, uint64_t at, uint32_t bytes); /* its machine has read that. NULL: no matter */
    struct translation (*translation)(const struct end *end, uint32_t window); /* while the cable carries */
    bool has_sender_lengths; /* the length of a translation stands at the end that writes through it, not that which
                                sets it */
};

struct link {
    const struct chip *chip;
    struct end ends[2];
    struct dma_engine engines[2];
    bool has_engines;
    uint32_t scratchpads[16]; /* of chips whose ends share them */
    uint64_t window_bytes;
    uint32_t lose_every; /* that many rings; 0: none is lost */
    uint64_t ring_count, lost_count;
    bool
        is_length_of_sender[2 * WINDOWS]; /* a driver has set it at its own end, which leaves that to the other one's */
    uint64_t moved_count;                 /* how often an open window was led elsewhere, */
    uint64_t moved_of_sender_count;       /* and with such a length */
    bool is_pulled;
    bool is_cut; /* carries nothing: pulled, or put back while the loss is pending */
};

extern const struct chip chip_amd, chip_intel;

static inline struct end *peer_of(const struct end *end)
{
    return &end->link->ends[end == &end->link->ends[0]];
}

static inline bool has_both_ends(const struct link *link)
{
    return link->ends[0].function.connection >= 0 && link->ends[1].function.connection >= 0;
}

static inline uint32_t *word(struct end *end, uint32_t at)
{
    return &end->registers[at / 4];
}

static inline uint64_t wide(const struct end *end, uint32_t at)
{
    return end->registers[at / 4] | (uint64_t)end->registers[at / 4 + 1] << 32;
}

static inline void write_plain(struct end *end, uint32_t at, uint32_t value, uint32_t mask)
{
    *word(end, at) = (*word(end, at) & ~mask) | value;
}

/* The translation of an outbound window may have changed. */
void device_map_window(struct end *end, uint32_t window);
void device_map_windows(struct end *end);
/* A ring of a doorbell is on its way: whether it arrives. */
bool device_carries_ring(struct link *link);
/* A driver has taken note of the loss: the cable carries again, if it is in and the other driver has too. */
void device_carry_again(struct link *link);

#endif
