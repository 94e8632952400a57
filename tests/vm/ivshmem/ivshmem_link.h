/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0 */
/* ivshmem_link.h - what the two ends of a link and its server share: the first bytes of BAR 2 of each end, behind which
 * its windows follow, window w at (w + 1) times their size.
 *
 * Each end is a peer of QEMU's ivshmem with its number, 0 or 1; the server is peer 2. All fields are 0 at first, but
 * window_bytes and magic, which the server writes, magic last.
 *
 * The link is up while both drivers want it and the cable carries. A loss begins a new epoch; the link stays down until
 * both drivers have seen that epoch.
 */
#ifndef TESTS_VM_IVSHMEM_LINK_H
#define TESTS_VM_IVSHMEM_LINK_H

#include <linux/types.h>

#define IVSHMEM_MAGIC       0x6b6e696c2d62746eull
#define IVSHMEM_SERVER      2u
#define IVSHMEM_WINDOWS     2u
#define IVSHMEM_SCRATCHPADS 16u
#define IVSHMEM_BITS        16u
#define IVSHMEM_PAGE_BYTES  4096u
#define IVSHMEM_PAGES_MAX   8192u /* of the memory behind a window */

enum { IVSHMEM_VECTOR_DOORBELL, IVSHMEM_VECTOR_LINK, IVSHMEM_VECTORS };

/* The memory behind a window of the other end. */
struct ivshmem_translation {
    __u64 page_count;               /* writer: the end's driver; 0: nothing */
    __u64 pages[IVSHMEM_PAGES_MAX]; /* writer: the same; physical addresses */
};

struct ivshmem_end {
    __u32 is_wanted;  /* writer: its driver */
    __u32 seen_epoch; /* writer: its driver */
    __u32 asked;      /* writer: its driver, which counts changes of translations */
    __u32 answered;   /* writer: the server; what it has followed */
    __u32 doorbell;   /* bits set by the other end and cleared by its own driver, both atomically */
    __u32 mask;       /* writer: its driver; bits that do not interrupt */
    __u32 scratchpads[IVSHMEM_SCRATCHPADS]; /* writer: the other end */
    struct ivshmem_translation translations[IVSHMEM_WINDOWS];
};

struct ivshmem_link {
    __u64 magic;
    __u64 window_bytes;
    __u32 epoch; /* writer: the server, as of is_up */
    __u32 is_up;
    struct ivshmem_end ends[2];
};

#endif
