/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause */
/*
 * quoit_ntb.h - one port of an NTB link for user space: /dev/ntbN.
 *
 * An open file is a client of the port; more than 1024 it does not take (EUSERS). Clients share the port by leases: a
 * client uses only the doorbell bits and the outbound windows' ranges that it leased, and no two clients hold the
 * same bit or byte. A client may join another one (QUOIT_NTB_JOIN): then both have the same leases, inbound
 * translations and wish for the link, for example the processes of a job; eventfds, DMA and the accepted epoch stay
 * each client's own. What a client holds (eventfds, pinned memory, DMA under way) is released when its last
 * descriptor is closed, however its process ended; what it has in common with others, with the last of them.
 *
 * Link and epoch: the link is up while clients at both ends want it, the cable carries and the peer's kernel is alive;
 * the modules of both ends find that out, for which they keep one scratchpad and one doorbell bit. The epoch counts the
 * times it came up at this end. When it goes down translations and scratchpads are lost, and nothing that this end has
 * sent arrives any more once it is seen to be down; when this end sees a new epoch, nothing of an earlier one arrives
 * here. A translation that is set while the link is down holds when it comes up. The memory of one that was lost stays
 * pinned and its window the client's until the window is set again, which is quick for the same memory, or taken back.
 *   A client may accept an epoch (QUOIT_NTB_ACCEPT). From then on its outbound mappings, doorbells, scratchpads and
 * DMA work only while the link is up in that epoch; without, in any. At other times a page of the client's own stands
 * behind its mappings: stores vanish there, loads return anything. No signal is raised.
 *
 * Parts: loaded with parts=N, the module gives N devices for each port, /dev/ntbK, /dev/ntbK.1 and so on. Each is a port as
 * described here, with windows, bits and scratchpads of its own, whose peer is the same part of the port at the other
 * end, divided alike; INFO tells what it has. Its link is up while clients of that part want it. What was exposed when
 * nobody wants it any more stays so until the link is seen to be down.
 *
 * Writes through an outbound mapping are posted and write-combined: they return before they arrive, they may be merged
 * until a store fence, and a doorbell rung by QUOIT_NTB_RING arrives after the writes that a store fence put before it.
 * Reads through it are round trips; of a dead peer they give all ones.
 *
 * Errors of all calls: ENODEV the port was removed; EINVAL an argument outside its stated range, or a non-zero reserved
 * field; EPERM a bit or range that this client does not lease; ENOLINK the link is down or in an epoch that the client
 * did not accept.
 */
#ifndef QUOIT_NTB_H
#define QUOIT_NTB_H

#include <linux/ioctl.h>
#include <linux/types.h>

#define QUOIT_NTB_VERSION    2
#define QUOIT_NTB_WINDOWS    8  /* windows that this interface can name, of each direction */
#define QUOIT_NTB_EVENTFDS   32 /* a client can register */
#define QUOIT_NTB_DMA_DEPTH  64 /* copies under way of one client */

/* What a chip offers in one window. Alignments and sizes are 0, on chips that tell only then, until the link is up. */
struct quoit_ntb_window {
	__u64 address_align; /* of the bus address behind an inbound window */
	__u64 bytes_align;   /* of its length */
	__u64 bytes_max;     /* of an inbound translation */
	__u64 peer_bytes;    /* length of the outbound aperture; 0: there is none */
};

struct quoit_ntb_info {
	__u32 version; /* QUOIT_NTB_VERSION */
	__u32 port;    /* of this end and of the peer, as the chip numbers them */
	__u32 peer_port;
	__u32 inbound_count;
	__u32 outbound_count;
	__u32 scratchpad_count;
	__u32 vector_count; /* interrupts that doorbells are spread over */
	__u32 has_dma; /* an engine that copies is this client's, or was free just now */
	__u64 doorbell_bits; /* that may be leased */
	char driver[32];     /* of the chip */
	struct quoit_ntb_window windows[QUOIT_NTB_WINDOWS];
};

#define QUOIT_NTB_LINK_ENABLE  1 /* this client and those that joined it want the link */
#define QUOIT_NTB_LINK_RELEASE 2
#define QUOIT_NTB_LINK_LOOK    0

struct quoit_ntb_link {
	__u32 wish;  /* in: QUOIT_NTB_LINK_* */
	__u32 is_up; /* out, and all that follows */
	__u32 epoch;
	__u32 accepted_epoch;
	__u32 speed; /* PCIe generation, 0: not known */
	__u32 width; /* lanes */
};

/* A page that a client may map, at QUOIT_NTB_STATE, to see the link without a call. */
struct quoit_ntb_state {
	__u64 link; /* epoch << 1 | is_up */
};

/* What the client holds already is granted again. */
struct quoit_ntb_lease {
	__u32 bit_count; /* in: doorbell bits wanted in addition, any; the caller exchanges the numbers with its peer */
	__u32 window;    /* in: outbound window of the range */
	__u64 bits_want; /* in: these bits, exactly; 0: any bit_count. EBUSY: another client holds one */
	__u64 offset;    /* in: range of the outbound window, page aligned; bytes 0: none. EBUSY likewise */
	__u64 bytes;
	__u64 bits;      /* out: all bits that this client holds now */
};

/*
 * Memory that windows of any of the host's ports can expose, as a descriptor: pass it to other processes, close it.
 * `bytes` of this process from `address` on, page aligned, shared or private, are pinned (RLIMIT_MEMLOCK) until nothing
 * uses them any more. EADDRNOTAVAIL by QUOIT_NTB_WINDOW: the device sees it in pieces, or by way of copies of the kernel,
 * which needs an IOMMU.
 */
struct quoit_ntb_memory {
	__u64 address;
	__u64 bytes;
	__u32 flags;    /* 0 */
	__u32 reserved; /* 0 */
};

/*
 * Lets the peer write `bytes` of memory from `offset` on through inbound window `window`; bytes 0 takes it back. EBUSY:
 * another client uses the window.
 */
struct quoit_ntb_inbound {
	__s32 memory_fd;
	__u32 window;
	__u64 offset;
	__u64 bytes;
};

struct quoit_ntb_bits {
	__u64 bits;
};

struct quoit_ntb_scratchpad {
	__u32 index;
	__u32 value;
};

/*
 * Signalled when one of `bits` arrives unmasked, or with `on_link` at each change of the link, or with `on_dma` at each
 * completion of this client. fd -1: forget all of this client's.
 */
struct quoit_ntb_eventfd {
	__s32 fd;
	__u32 on_link;
	__u32 on_dma;
	__u32 reserved; /* 0 */
	__u64 bits;
};

/*
 * Copies from memory to a leased outbound range, later; at most 64 MiB, aligned as the engine asks. EAGAIN:
 * QUOIT_NTB_DMA_DEPTH are under way or ended and not read, or some from another memory are under way; it is possible
 * again after a completion. EOPNOTSUPP: no engine is free; a client keeps the one of its first copy, of the bridge's own
 * switch if one is free there. EADDRNOTAVAIL: the engine sees the memory in pieces.
 */
struct quoit_ntb_copy {
	__s32 memory_fd;
	__u32 window;
	__u64 source; /* offset in the memory */
	__u64 offset; /* in the outbound window */
	__u64 bytes;
	__u64 cookie;
};

/*
 * A completion: of every copy one, in the order of their ends. status 0; or -EIO, the engine failed; or -ENOLINK, the
 * link went down before: then a part may have arrived. Later copies of one client arrive later. A store or a doorbell
 * may overtake a copy that has not completed, and, where the engine does not wait for the bridge, one that has.
 */
struct quoit_ntb_done {
	__u64 cookie;
	__s32 status;
	__u32 reserved;
};

/*
 * ACCEPT: the epoch to work in, 0: any; ENOLINK: the link is not up in it. MEMORY returns a descriptor. RING sets bits
 * at the peer. DOORBELL: the own bits that are set, of those leased. All bits start masked; a bit that fired does so
 * again when it has been cleared. UNMASK signals at once what is set already. SCRATCHPAD reads this side's word,
 * SCRATCHPAD_PEER writes the peer's. JOIN: a client of the same port, by its descriptor; EBUSY: this client has leases,
 * a translation or a wish for the link.
 */
#define QUOIT_NTB_INFO             _IOR('N', 0x60, struct quoit_ntb_info)
#define QUOIT_NTB_LINK             _IOWR('N', 0x61, struct quoit_ntb_link)
#define QUOIT_NTB_ACCEPT           _IOW('N', 0x62, __u32)
#define QUOIT_NTB_LEASE            _IOWR('N', 0x63, struct quoit_ntb_lease)
#define QUOIT_NTB_MEMORY           _IOW('N', 0x64, struct quoit_ntb_memory)
#define QUOIT_NTB_WINDOW           _IOW('N', 0x65, struct quoit_ntb_inbound)
#define QUOIT_NTB_RING             _IOW('N', 0x66, struct quoit_ntb_bits)
#define QUOIT_NTB_DOORBELL         _IOR('N', 0x67, struct quoit_ntb_bits)
#define QUOIT_NTB_CLEAR            _IOW('N', 0x68, struct quoit_ntb_bits)
#define QUOIT_NTB_MASK             _IOW('N', 0x69, struct quoit_ntb_bits)
#define QUOIT_NTB_UNMASK           _IOW('N', 0x6a, struct quoit_ntb_bits)
#define QUOIT_NTB_SCRATCHPAD       _IOWR('N', 0x6b, struct quoit_ntb_scratchpad)
#define QUOIT_NTB_SCRATCHPAD_PEER  _IOW('N', 0x6c, struct quoit_ntb_scratchpad)
#define QUOIT_NTB_EVENTFD          _IOW('N', 0x6d, struct quoit_ntb_eventfd)
#define QUOIT_NTB_COPY             _IOW('N', 0x6e, struct quoit_ntb_copy)
#define QUOIT_NTB_JOIN             _IOW('N', 0x6f, __s32)
/*
 * read() takes completions, struct quoit_ntb_done each; 0 bytes: none. poll(): POLLIN there are some, POLLHUP the port
 * was removed. mmap() of /dev/ntbN at QUOIT_NTB_OUTBOUND(window) + offset maps a leased outbound range.
 */
#define QUOIT_NTB_OUTBOUND(window) ((__u64)(window) << 44)
#define QUOIT_NTB_STATE            QUOIT_NTB_OUTBOUND(QUOIT_NTB_WINDOWS)

#endif
