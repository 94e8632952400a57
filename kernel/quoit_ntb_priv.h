/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Inside of quoit_ntb: a port is an NTB device with its clients; a client is an open file.
 *
 * Locks, in the order in which they are taken:
 *   mmap_lock         of a process: page faults come with it, so nothing below is held while user memory is touched
 *   port->alive       read: the NTB device is bound while it is held. write: removal, and steps of the link
 *   port->lock        leases, windows, the list of clients, the wish for the link
 *   invalidate_lock   of a client's inode. read: a fault fills its mappings. write: it accepts an epoch
 *   client->dma_lock  the client's channel and its mapping of the source
 *   probing           while a channel is taken, or taken only to see that one is free
 *   port->event_lock  spinlock, interrupts off: link state, eventfds, completions
 *
 * A port that is divided (parts.c) has no clients; each part is a qn_port with clients and locks of its own. The
 * whole's alive and lock come before those of its parts, which take none of the whole's.
 */
#ifndef QUOIT_NTB_PRIV_H
#define QUOIT_NTB_PRIV_H

#include <linux/dma-mapping.h>
#include <linux/dmaengine.h>
#include <linux/eventfd.h>
#include <linux/fs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/ntb.h>
#include <linux/rwsem.h>
#include <linux/scatterlist.h>
#include <linux/spinlock.h>
#include <linux/version.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "quoit_ntb.h"

static_assert(BITS_PER_LONG == 64); /* a page offset holds the window's number */

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 16, 0)
/* There ports cannot be divided. */
struct dma_iova_state {
	dma_addr_t addr;
};

static inline bool dma_iova_try_alloc(struct device *dev, struct dma_iova_state *state, phys_addr_t phys, size_t size)
{
	return false;
}

static inline void dma_iova_free(struct device *dev, struct dma_iova_state *state)
{
}

static inline int dma_iova_link(struct device *dev, struct dma_iova_state *state, phys_addr_t phys, size_t offset,
				size_t size, enum dma_data_direction dir, unsigned long attrs)
{
	return -EOPNOTSUPP;
}

static inline int dma_iova_sync(struct device *dev, struct dma_iova_state *state, size_t offset, size_t size)
{
	return -EOPNOTSUPP;
}

static inline void dma_iova_unlink(struct device *dev, struct dma_iova_state *state, size_t offset, size_t size,
				   enum dma_data_direction dir, unsigned long attrs)
{
}
#endif

struct qn_memory;

/* Bus addresses of a window that is divided: one run, of which each part fills its own. */
struct qn_run {
	struct device *dev; /* NULL: none */
	struct dma_iova_state state;
};

/* A range of memory as one device sees it: one run of bus addresses. */
struct qn_mapping {
	struct device *dev; /* NULL: nothing is mapped */
	struct sg_table table;
	dma_addr_t address;
	struct qn_run *run; /* NULL: the run is its own; else the table is empty, and it is at: */
	u64 start;
	u64 bytes;
};

/* What the clients that joined each other hold in common. port->lock */
struct qn_holder {
	struct kref ref; /* of clients that may read it */
	u32 client_count;
	u64 bits;                /* leased; for writing event_lock too */
	struct list_head ranges; /* leased */
	bool wishes_link;
};

struct qn_inbound {
	struct qn_holder *holder; /* NULL: free */
	struct qn_memory *memory; /* NULL: no translation */
	struct qn_mapping mapping;
	u64 offset;
	u64 bytes;
	bool is_set;  /* in the chip */
	bool is_left; /* perhaps still in the chip, which could not be reached */
	bool is_lost; /* with the link: only the mapping is left, for when the holder sets the same again */
};

/* link.c; port->lock. Nonces are 0: none. */
struct qn_link {
	u32 own;
	u32 taken; /* of the peer */
	u8 beat;
	u32 told;
	u32 heard;
	unsigned long heard_at;
	unsigned long looked_at;
	unsigned long is_lost; /* bit 0: the chip has reported a loss, or shown one */
	unsigned long is_cut;  /* bit 0: the cable was lost, and the peer has not been seen to be down since */
	bool is_ending;        /* of a part: nobody wants it any more, but the peer may still write */
};

#define QN_PARTS_MAX 7
#define QN_PART_PADS 8

/* What the peer's module writes of a part: the link's word (link.c), and scratchpads. */
struct qn_words {
	__le32 link;
	__le32 pads[QN_PART_PADS];
	__le32 reserved[7];
};

/* The start of the first window of a port that is divided. */
struct qn_control {
	__le32 division; /* QN_DIVISION and how many parts; 0: not written */
	__le32 piece_order; /* of the bytes of a part of the first window */
	__le32 reserved[2];
	struct qn_words words[QN_PARTS_MAX];
};

struct qn_outbound {
	phys_addr_t address;
	resource_size_t bytes;
	bool is_combining;
};

struct qn_port {
	struct kref ref;
	struct ntb_dev *ntb;
	struct miscdevice misc;
	char name[16];
	int index;
	struct rw_semaphore alive;
	bool is_gone;
	struct mutex lock;
	struct list_head clients;
	u32 client_count;
	struct qn_inbound inbound[QUOIT_NTB_WINDOWS];
	struct qn_inbound left[QUOIT_NTB_WINDOWS]; /* taken back, but is_left: pinned until the chip is set or cleared */
	struct qn_outbound outbound[QUOIT_NTB_WINDOWS];
	u64 address_align[QUOIT_NTB_WINDOWS]; /* of inbound windows */
	u32 inbound_count;
	u32 outbound_count;
	u32 wish_count;
	u32 link_pad; /* the scratchpad and the doorbell bit that are not leased; a part has none */
	u64 link_bit;
	u32 pad_count;
	u64 valid_bits;        /* that may be leased */
	struct qn_port *whole; /* NULL: it is no part */
	u32 number;            /* of the part */
	struct qn_parts *parts; /* NULL: it is not divided */
	u64 unmasked_bits;   /* by their clients; event_lock */
	u64 armed_bits;      /* unmasked in the chip: the next ring interrupts; event_lock */
	void __iomem *flush; /* a read of the peer; NULL: there is no window */
	struct qn_link link;
	struct delayed_work link_work;
	struct quoit_ntb_state *state; /* a page that clients map */
	spinlock_t event_lock;
	bool is_up;
	u32 epoch;
};

struct qn_range {
	struct list_head node;
	u32 window;
	u64 offset;
	u64 bytes;
};

struct qn_eventfd {
	struct eventfd_ctx *context;
	u64 bits;
	bool on_link;
	bool on_dma;
};

/* A copy under way, or ended and not yet read. */
struct qn_copy {
	struct qn_client *client;
	u64 cookie;
	dma_addr_t destination;
	size_t bytes;
	s32 status;
	bool is_used;
	bool is_done;
};

struct qn_client {
	struct list_head node;
	struct qn_port *port;
	struct qn_holder *own;    /* until the client joins another one, and until its end */
	struct qn_holder *holder; /* changes once; port->lock */
	struct inode *inode;      /* its mapping is the file's, so that one call revokes all that the client maps */
	struct page *sink;        /* behind its windows while it is not current */
	u32 accepted_epoch;       /* event_lock; 0: any */
	struct qn_eventfd eventfds[QUOIT_NTB_EVENTFDS]; /* event_lock */
	wait_queue_head_t waiters;
	struct mutex dma_lock;
	struct dma_chan *channel; /* NULL: none is taken, and nothing is under way */
	struct device *engine;    /* of the channel, or of the last one */
	struct qn_memory *source; /* mapped for the engine */
	struct qn_mapping source_mapping;
	struct qn_copy copies[QUOIT_NTB_DMA_DEPTH]; /* event_lock */
	u32 done[QUOIT_NTB_DMA_DEPTH];              /* indices of copies that ended; event_lock */
	u32 done_head;
	u32 done_count;
};

/* port.c */
void qn_port_put(struct qn_port *port);
int qn_port_make(struct ntb_dev *ntb, struct qn_port *whole, struct qn_port **port_out);
int qn_port_register(struct qn_port *port);
/* The last calls and faults of clients, and steps of the link, are over afterwards. */
void qn_port_end(struct qn_port *port);
/* Whether the client works in the epoch of a link that is up. */
bool qn_client_is_current(struct qn_client *client);
void qn_signal(struct qn_port *port, u64 bits, bool on_link, struct qn_client *on_dma);
void qn_signal_locked(struct qn_port *port, u64 bits, bool on_link, struct qn_client *on_dma); /* event_lock */
/* The next ring of the peer's module interrupts. Its word is read after that. port->alive */
void qn_doorbell_arm_link(struct qn_port *port);
/* What it was, unless it is left in the chip, is for qn_inbound_drop(). */
void qn_inbound_take_out(struct qn_port *port, u32 window, struct qn_inbound *out);
/* port->alive is held, but not port->lock: it unmaps memory, which takes long. */
void qn_inbound_drop(struct qn_inbound *inbound);
void qn_inbound_lose(struct qn_port *port, u32 window);
/* What the holder of a part had stays until the peer's use of it has ended; only while the link is ending. */
void qn_inbound_leave(struct qn_port *port, u32 window);
/* Takes it out of the chip, if that can be reached. */
void qn_inbound_suspend(struct qn_port *port, u32 window);
/* The chip can be reached again: clears what may be left there, and puts back what the window had. */
void qn_inbound_resume(struct qn_port *port, u32 window);
struct inode *qn_inode_new(void); /* NULL: no memory */
/* port->alive is held, but not port->lock: it maps memory, which takes long. */
int qn_inbound_set(struct qn_client *client, const struct quoit_ntb_inbound *wanted);
extern const struct file_operations qn_port_file_operations;
extern struct workqueue_struct *qn_works;

/* link.c */
void qn_link_init(struct qn_port *port);
void qn_link_divide(struct qn_port *port); /* before its first step: the modules want it, not clients */
void qn_link_end(struct qn_port *port); /* tells the peer; the device is still there */
void qn_link_kick(struct qn_port *port); /* looks at the link soon */
void qn_link_lose(struct qn_port *port); /* takes it down, soon */
void qn_link_event(void *context);       /* of the chip */
bool qn_link_is_seen_up(struct qn_port *port); /* by clients: a part that is ending is up for them until it is down */
void qn_link_unwanted(struct qn_port *port); /* by the last one; port->lock */
void qn_link_part_lost(struct qn_port *part); /* with that of the whole, whose alive and lock are held */

/* parts.c */
int qn_parts_make(struct qn_port *whole, u32 count);
int qn_parts_register(struct qn_port *whole);
void qn_parts_end(struct qn_port *whole);
void qn_parts_free(struct qn_port *whole); /* the chip's windows lead nowhere any more */
void qn_parts_kick(struct qn_port *whole);
void qn_parts_lose(struct qn_port *whole);
void qn_parts_begin(struct qn_port *whole); /* before the peer's module may write */
void qn_parts_introduce(struct qn_port *whole); /* from then on it may be written to */
struct qn_port *qn_part(struct qn_port *whole, u32 number); /* NULL: there is none */
int qn_part_link(struct qn_port *part, u32 window, struct qn_inbound *inbound);
u32 qn_part_hear(struct qn_port *part); /* 0: nothing is heard */
bool qn_part_tell(struct qn_port *part, u32 word); /* false: nobody hears */
void qn_part_clear_pads(struct qn_port *part);
u32 qn_part_pad(struct qn_port *part, u32 index);
void qn_part_write_pad(struct qn_port *part, u32 index, u32 value);

/* client.c */
bool qn_client_leases(struct qn_client *client, u32 window, u64 offset, u64 bytes);
/* Empties its mappings of windows; port->alive, or the inode's invalidate_lock, is held for writing. */
void qn_revoke(struct qn_client *client);

/* memory.c */
int qn_memory_create(const struct quoit_ntb_memory *wanted); /* a descriptor */
struct qn_memory *qn_memory_get(int fd); /* ERR_PTR */
struct qn_memory *qn_memory_hold(struct qn_memory *memory);
void qn_memory_put(struct qn_memory *memory);
u64 qn_memory_bytes(const struct qn_memory *memory);
int qn_memory_map(struct qn_memory *memory, u64 offset, u64 bytes, u64 align, struct device *dev,
		  struct qn_mapping *mapping);
/* The same at `start` of a run. */
int qn_memory_link(struct qn_memory *memory, u64 offset, u64 bytes, struct qn_run *run, u64 start,
		   struct qn_mapping *mapping);
void qn_memory_unmap(struct qn_mapping *mapping);

/* copy.c */
int qn_copy_submit(struct qn_client *client, const struct quoit_ntb_copy *wanted);
/* The client has an engine, or one is free. */
bool qn_copy_is_offered(struct qn_client *client);
ssize_t qn_copy_read(struct qn_client *client, char __user *to, size_t bytes);
/* Nothing is under way afterwards: what was has failed. port->lock is held. */
void qn_copy_end(struct qn_client *client);
void qn_copy_release(struct qn_client *client);

#endif
