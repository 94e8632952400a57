/* SPDX-License-Identifier: BSD-3-Clause */
/* dma_engine.h - the DMA engine of a PLX switch (10b5:87d0), as Linux's plx_dma expects it.
 *
 * What it is: a ring of descriptors in memory of the machine, of which the engine copies one after the other, from
 * memory to memory or to a window. It writes a descriptor back after its data, then interrupts. A window is what the
 * caller's `window` says of a bus address, or what QEMU finds there: behind an IOMMU, and those of other links.
 *
 * Faults: each descriptor can take `late_ns`, at the end of which its source is read and its data arrive, behind all
 * that processors have sent meanwhile; and each `fail_every`-th moves half of its bytes and is written back as failed.
 *
 * Threads: one, that of its function. dma_engine_step() is called when dma_engine_due_ns() has come.
 */
#ifndef TESTS_VM_DMA_ENGINE_H
#define TESTS_VM_DMA_ENGINE_H

#include "vfio_user.h"

#define DMA_REGISTERS_BYTES 0x1000u

/* A run of bytes behind a bus address. */
struct dma_run {
    char *to; /* NULL: nothing is there: writes vanish, reads give all ones */
    uint64_t bytes;
};

/* What is left of the descriptor that is being copied. */
struct dma_move {
    uint64_t to, from, bytes;
    uint32_t written_back; /* then */
};

struct dma_engine {
    struct function function;
    uint8_t registers[DMA_REGISTERS_BYTES];
    uint16_t status; /* of the control register */
    bool is_pausing;
    int64_t due_ns;    /* of the descriptor under way; -1: none is */
    uint64_t position; /* in the ring, of that one or the next */
    struct dma_move move;
    bool is_writing;   /* a part of it is on its way through QEMU */
    bool is_forgotten; /* and the descriptor was aborted meanwhile */
    uint64_t late_ns;
    uint32_t fail_every; /* 0: none */
    uint64_t done_count, done_bytes, failed_count;
    /* True: `address` is in a window of the engine's machine. */
    bool (*window)(void *context, struct dma_engine *engine, uint64_t address, struct dma_run *run_out);
    void *context;
};

void dma_engine_open(struct dma_engine *engine, const char *path);
int64_t dma_engine_due_ns(const struct dma_engine *engine);
void dma_engine_step(struct dma_engine *engine, int64_t now_ns);

#endif
