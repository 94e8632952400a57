// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* quoit_ntb: /dev/ntbN, one port of an NTB link for user space. The contract is uapi/quoit_ntb.h. */
#include <linux/idr.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pci.h>
#include <linux/pseudo_fs.h>
#include <linux/slab.h>

#include "quoit_ntb_priv.h"

MODULE_DESCRIPTION("NTB ports for user space");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("0.1");

#define QN_FS_MAGIC 0x716e7462 /* "qntb" */
#define QN_PEER     0          /* ports with one peer only */

#define QN_SCRATCHPADS_LEAST 2

static unsigned int parts;
module_param(parts, uint, 0444);
MODULE_PARM_DESC(parts, "into which each port is divided, the same at both ends of a link; 0: not divided");

static DEFINE_IDA(port_numbers);
struct workqueue_struct *qn_works;
static struct vfsmount *inodes; /* the pseudo file system of the clients' inodes */

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#define qn_eventfd_signal(context) eventfd_signal(context)
#else
#define qn_eventfd_signal(context) eventfd_signal(context, 1)
#endif

static void port_release(struct kref *ref)
{
	struct qn_port *port = container_of(ref, struct qn_port, ref);

	if (!port->whole)
		ida_free(&port_numbers, port->index);
	free_page((unsigned long)port->state);
	kfree(port);
}

void qn_port_put(struct qn_port *port)
{
	kref_put(&port->ref, port_release);
}

struct inode *qn_inode_new(void)
{
	struct inode *inode = alloc_anon_inode(inodes->mnt_sb);

	return IS_ERR(inode) ? NULL : inode;
}

bool qn_client_is_current(struct qn_client *client)
{
	struct qn_port *port = client->port;
	unsigned long flags;
	bool is_current;

	spin_lock_irqsave(&port->event_lock, flags);
	is_current = port->is_up && (!client->accepted_epoch || client->accepted_epoch == port->epoch);
	spin_unlock_irqrestore(&port->event_lock, flags);
	return is_current;
}

/* Wakes the clients that wait for one of the bits, for the link, or for their completions. event_lock is held. */
void qn_signal_locked(struct qn_port *port, u64 bits, bool on_link, struct qn_client *on_dma)
{
	struct qn_client *client;
	int i;

	list_for_each_entry(client, &port->clients, node) {
		for (i = 0; i < QUOIT_NTB_EVENTFDS; i++) {
			struct qn_eventfd *eventfd = &client->eventfds[i];

			if (eventfd->context &&
			    ((eventfd->bits & bits & client->holder->bits) || (on_link && eventfd->on_link) ||
			     (client == on_dma && eventfd->on_dma)))
				qn_eventfd_signal(eventfd->context);
		}
		if (on_link || client == on_dma)
			wake_up_all(&client->waiters);
	}
}

void qn_signal(struct qn_port *port, u64 bits, bool on_link, struct qn_client *on_dma)
{
	unsigned long flags;

	spin_lock_irqsave(&port->event_lock, flags);
	qn_signal_locked(port, bits, on_link, on_dma);
	spin_unlock_irqrestore(&port->event_lock, flags);
}

/*
 * Inbound windows. port->lock is held, but not while a client's memory is mapped or unmapped: an IOMMU takes long. Only
 * memory that was left in the chip is unmapped with it.
 */

struct chip_call {
	struct work_struct work;
	struct ntb_dev *ntb;
	u32 window;
	dma_addr_t address;
	u64 bytes; /* 0: clear what leads to the address */
	int error;
};

/*
 * A chip's driver without an operation to clear a window sets address 0 and then length 0, so that what the peer writes
 * between the two lands at the start of this machine's memory. The length goes first here, while the address stays.
 */
static int clear_chip(struct ntb_dev *ntb, u32 window, dma_addr_t address)
{
	int error = 0;

	if (address && !ntb->ops->mw_clear_trans)
		error = ntb_mw_set_trans(ntb, QN_PEER, window, address, 0);
	return error ?: ntb_mw_clear_trans(ntb, QN_PEER, window);
}

static void run_chip_call(struct work_struct *work)
{
	struct chip_call *call = container_of(work, struct chip_call, work);

	if (call->bytes)
		call->error = ntb_mw_set_trans(call->ntb, QN_PEER, call->window, call->address, call->bytes);
	else
		call->error = clear_chip(call->ntb, call->window, call->address);
}

/* By a worker: the chip's driver may wait until a signal comes (switchtec), and then has done nothing, or a part. */
static int set_chip(struct qn_port *port, u32 window, dma_addr_t address, u64 bytes)
{
	struct chip_call call = { .ntb = port->ntb, .window = window, .address = address, .bytes = bytes };
	struct qn_inbound *inbound = &port->inbound[window];

	if (port->whole) { /* of its part of the window; the chip's translation is the whole's */
		qn_inbound_drop(&port->left[window]);
		qn_memory_unmap(&inbound->mapping);
		return bytes ? qn_part_link(port, window, inbound) : 0;
	}
	INIT_WORK_ONSTACK(&call.work, run_chip_call);
	if (current->flags & PF_WQ_WORKER) {
		run_chip_call(&call.work);
	} else {
		queue_work(qn_works, &call.work);
		flush_work(&call.work);
	}
	destroy_work_on_stack(&call.work);
	if (!call.error) {
		port->inbound[window].is_left = false;
		qn_inbound_drop(&port->left[window]);
	}
	return call.error;
}

/*
 * Not when the cable was lost: it may come back in the middle, while the peer's clients still have their mappings, and
 * a driver that meets it so may lead the window elsewhere (ntb_hw_amd: to address 0, with the length that it had). It is
 * cleared when the peer has been down, before the next epoch.
 */
void qn_inbound_suspend(struct qn_port *port, u32 window)
{
	struct qn_inbound *inbound = &port->inbound[window];
	bool is_kept = test_bit(0, &port->link.is_cut);

	if (inbound->is_set && (is_kept || set_chip(port, window, inbound->mapping.address, 0)))
		inbound->is_left = true;
	inbound->is_set = false;
}

void qn_inbound_leave(struct qn_port *port, u32 window)
{
	port->left[window] = port->inbound[window];
	port->left[window].holder = NULL;
	port->inbound[window] = (struct qn_inbound){ 0 };
}

/*
 * The peer may still write by a translation that could not be cleared, so its memory is not given back before the chip
 * has another one, or none. A second one before that, by a chip that fails twice, stays pinned for good. With the link
 * seen to be down it is tried again: not every chip needs the cable for it, and the peer may never come back.
 */
static void keep_left(struct qn_port *port, u32 window, struct qn_inbound *old)
{
	if (!old->is_left || (!port->link.taken && !set_chip(port, window, old->mapping.address, 0)))
		return;
	if (!port->left[window].memory)
		port->left[window] = *old;
	*old = (struct qn_inbound){ 0 };
	if (port->link.taken)
		qn_link_lose(port); /* it is cleared before the next epoch */
}

void qn_inbound_take_out(struct qn_port *port, u32 window, struct qn_inbound *out)
{
	qn_inbound_suspend(port, window);
	*out = port->inbound[window];
	port->inbound[window] = (struct qn_inbound){ 0 };
	keep_left(port, window, out);
}

void qn_inbound_drop(struct qn_inbound *inbound)
{
	qn_memory_unmap(&inbound->mapping);
	qn_memory_put(inbound->memory);
	*inbound = (struct qn_inbound){ 0 };
}

void qn_inbound_lose(struct qn_port *port, u32 window)
{
	qn_inbound_suspend(port, window);
	port->inbound[window].is_lost = true;
}

/* What the chip asks for; some tell it only while the link is up. */
static int check(struct qn_port *port, u32 window)
{
	struct qn_inbound *inbound = &port->inbound[window];
	resource_size_t address_align, bytes_align, bytes_max;
	int error;

	if (port->whole)
		return inbound->bytes <= port->outbound[window].bytes ? 0 : -EINVAL;
	error = ntb_mw_get_align(port->ntb, QN_PEER, window, &address_align, &bytes_align, &bytes_max);
	if (error)
		return error;
	if (inbound->bytes > bytes_max || !IS_ALIGNED(inbound->bytes, bytes_align))
		return -EINVAL;
	return IS_ALIGNED(inbound->mapping.address, address_align) ? 0 : -EADDRNOTAVAIL;
}

/* By what the chip asks for. Other errors are of the moment. */
static bool is_refused(int error)
{
	return error == -EINVAL || error == -EADDRNOTAVAIL;
}

static int translate(struct qn_port *port, u32 window)
{
	struct qn_inbound *inbound = &port->inbound[window];
	int error;

	error = check(port, window);
	if (error)
		return error;
	error = set_chip(port, window, inbound->mapping.address, inbound->bytes);
	if (error && !port->whole && (inbound->is_set || !is_refused(error)))
		inbound->is_left = true;
	inbound->is_set = !error;
	return error;
}

/*
 * Some chips keep the translation at the peer, whose registers are out of reach when the link is lost, or is about to be
 * seen lost. It is taken down, and the translation is set when it comes up again.
 */
static void lose_link(struct qn_port *port, u32 window, int error)
{
	dev_notice_ratelimited(&port->ntb->dev, "window %u: error %d of the bridge; link taken down\n", window, error);
	qn_link_lose(port);
}

/*
 * What the chip holds when the link comes up is not known: a translation that could not be cleared, or a length that
 * the peer's driver has set. ntb_hw_amd, when it cannot reach the registers of the other machine, writes one into its
 * own, where it opens that machine's window at address 0. So each window is cleared, before the peer may write again
 * and before another address is set.
 */
void qn_inbound_resume(struct qn_port *port, u32 window)
{
	struct qn_inbound *inbound = &port->inbound[window];
	struct qn_inbound *left = &port->left[window];
	bool is_translated = inbound->bytes && !inbound->is_lost;
	int error;

	if (!left->memory && inbound->is_left)
		left = inbound;
	error = set_chip(port, window, left->mapping.address, 0);
	if (is_translated && (!error || is_refused(error)))
		error = translate(port, window);
	if (error && !is_refused(error))
		lose_link(port, window, error);
	else if (error && is_translated)
		dev_warn_ratelimited(&port->ntb->dev, "window %u cannot be translated\n", window);
}

static int find_memory(const struct quoit_ntb_inbound *wanted, struct qn_inbound *inbound)
{
	struct qn_memory *memory = qn_memory_get(wanted->memory_fd);

	if (IS_ERR(memory))
		return PTR_ERR(memory);
	if (wanted->offset > qn_memory_bytes(memory) || wanted->bytes > qn_memory_bytes(memory) - wanted->offset) {
		qn_memory_put(memory);
		return -EINVAL;
	}
	*inbound = (struct qn_inbound){ .memory = memory, .offset = wanted->offset, .bytes = wanted->bytes };
	return 0;
}

static bool is_same(const struct qn_inbound *a, const struct qn_inbound *b)
{
	return a->memory == b->memory && a->offset == b->offset && a->bytes == b->bytes;
}

/*
 * `other` takes the window, and is what had it before; a translation that the chip refuses is taken out again. What is
 * there already stays, with its mapping.
 */
static int exchange(struct qn_client *client, u32 window, struct qn_inbound *other, struct qn_inbound *refused)
{
	struct qn_port *port = client->port;
	struct qn_inbound *inbound = &port->inbound[window];
	bool is_open;
	int error;

	if (inbound->holder && inbound->holder != client->holder)
		return -EBUSY;
	if (!is_same(inbound, other)) {
		if (port->link.is_ending && inbound->is_set)
			qn_inbound_leave(port, window);
		qn_inbound_suspend(port, window);
		swap(*inbound, *other);
		keep_left(port, window, other);
	}
	if (!inbound->memory || inbound->is_set)
		return 0;
	inbound->holder = client->holder;
	inbound->is_lost = false;
	/*
	 * While the peer may still write by the translation of an epoch before, the chip gets no new one; nor when it
	 * has just failed to clear one, or has lost the link, which is then seen to be down first.
	 */
	is_open = port->link.taken && !port->link.is_ending && !test_bit(0, &port->link.is_lost);
	error = is_open ? translate(port, window) : check(port, window);
	if (is_refused(error))
		qn_inbound_take_out(port, window, refused);
	else if (error && is_open)
		lose_link(port, window, error);
	return is_refused(error) ? error : 0;
}

/* The chip tells its alignment while its link is up; before the first time it is taken to be the window's. */
static int map_inbound(struct qn_port *port, u32 window, struct qn_inbound *inbound)
{
	resource_size_t align;

	if (port->whole) /* it is put into the run when it is set there */
		return 0;
	if (!ntb_mw_get_align(port->ntb, QN_PEER, window, &align, NULL, NULL))
		WRITE_ONCE(port->address_align[window], align);
	return qn_memory_map(inbound->memory, inbound->offset, inbound->bytes, READ_ONCE(port->address_align[window]),
			     &port->ntb->pdev->dev, &inbound->mapping);
}

int qn_inbound_set(struct qn_client *client, const struct quoit_ntb_inbound *wanted)
{
	struct qn_port *port = client->port;
	struct qn_inbound inbound = { 0 }, refused = { 0 };
	bool is_mapped;
	int error = 0;

	if (wanted->window >= port->inbound_count || !PAGE_ALIGNED(wanted->offset) || !PAGE_ALIGNED(wanted->bytes))
		return -EINVAL;
	if (wanted->bytes)
		error = find_memory(wanted, &inbound);
	if (error)
		return error;
	mutex_lock(&port->lock);
	is_mapped = !wanted->bytes || is_same(&port->inbound[wanted->window], &inbound);
	if (is_mapped)
		error = exchange(client, wanted->window, &inbound, &refused);
	mutex_unlock(&port->lock);
	if (!is_mapped) {
		error = map_inbound(port, wanted->window, &inbound);
		mutex_lock(&port->lock);
		error = error ?: exchange(client, wanted->window, &inbound, &refused);
		mutex_unlock(&port->lock);
	}
	qn_inbound_drop(&inbound);
	qn_inbound_drop(&refused);
	return error;
}

/*
 * A bit that fired stays masked until it is cleared, the link's until the link is looked at: a level interrupt ends
 * with that, and a peer that rings without end costs one interrupt for each time. Where bits share a vector, one that
 * is set between the read and the mask raises no edge of its own, so what is left is read again.
 *
 * A client's mask is not written to the chip before the bit fires: clients mask and unmask far more often than a bit
 * fires meanwhile, and each access to a register is a round trip to the device.
 */
static u64 take_fired(struct qn_port *port, u64 vector_bits)
{
	u64 bits = 0, fresh;
	unsigned long flags;

	spin_lock_irqsave(&port->event_lock, flags);
	do {
		fresh = ntb_db_read(port->ntb) & vector_bits & port->armed_bits;
		if (fresh)
			ntb_db_set_mask(port->ntb, fresh);
		port->armed_bits &= ~fresh;
		bits |= fresh;
	} while (fresh && hweight64(vector_bits) > 1);
	qn_signal_locked(port, bits & port->unmasked_bits, false, NULL);
	spin_unlock_irqrestore(&port->event_lock, flags);
	return bits;
}

/* A bit of one part that is set while another one's are looked at raises no edge either. */
static u64 take_fired_of_parts(struct qn_port *whole, u64 vector_bits)
{
	u64 bits = 0, fresh, set;
	struct qn_port *part;
	u32 i;

	do {
		set = ntb_db_read(whole->ntb) & vector_bits;
		fresh = set & whole->armed_bits ? take_fired(whole, vector_bits) : 0;
		for (i = 0; (part = qn_part(whole, i)); i++)
			if (set & READ_ONCE(part->armed_bits)) /* of one armed just now its client looks itself */
				fresh |= take_fired(part, vector_bits);
		bits |= fresh;
	} while (fresh);
	return bits;
}

static void on_doorbell(void *context, int vector)
{
	struct qn_port *port = context;
	u64 vector_bits = ntb_db_vector_mask(port->ntb, vector);
	u64 bits = port->parts ? take_fired_of_parts(port, vector_bits) : take_fired(port, vector_bits);

	if (bits & port->link_bit)
		qn_link_kick(port);
}

void qn_doorbell_arm_link(struct qn_port *port)
{
	unsigned long flags;

	spin_lock_irqsave(&port->event_lock, flags);
	if (!(port->armed_bits & port->link_bit)) {
		ntb_db_clear(port->ntb, port->link_bit);
		ntb_db_clear_mask(port->ntb, port->link_bit);
		ntb_db_clear(port->ntb, port->link_bit); /* one that was set meanwhile may raise no edge */
		port->armed_bits |= port->link_bit;
	}
	spin_unlock_irqrestore(&port->event_lock, flags);
}

static const struct ntb_ctx_ops context_operations = {
	.link_event = qn_link_event,
	.db_event = on_doorbell,
};

/* Adding and removing ports */

static void find_windows(struct qn_port *port)
{
	struct ntb_dev *ntb = port->ntb;
	u32 i;

	port->inbound_count = clamp(ntb_mw_count(ntb, QN_PEER), 0, QUOIT_NTB_WINDOWS);
	port->outbound_count = clamp(ntb_peer_mw_count(ntb), 0, QUOIT_NTB_WINDOWS);
	for (i = 0; i < port->outbound_count; i++) {
		struct qn_outbound *outbound = &port->outbound[i];

		/* What is not on a page would be mapped with what is beside it (ntb_hw_epf: doorbells). */
		if (ntb_peer_mw_get_addr(ntb, i, &outbound->address, &outbound->bytes) ||
		    !PAGE_ALIGNED(outbound->address))
			*outbound = (struct qn_outbound){ 0 };
		port->address_align[i] = outbound->bytes;
		/* Else mappings by clients would be uncached, not write-combined. Without it they are only slower. */
		if (outbound->bytes && !arch_io_reserve_memtype_wc(outbound->address, outbound->bytes))
			outbound->is_combining = true;
	}
	for (i = 0; i < port->outbound_count && !port->flush; i++)
		if (port->outbound[i].bytes >= sizeof(u32))
			port->flush = ioremap_wc(port->outbound[i].address, sizeof(u32));
}

static void leave_windows(struct qn_port *port)
{
	u32 i;

	if (port->flush)
		iounmap(port->flush);
	for (i = 0; i < port->outbound_count; i++)
		if (port->outbound[i].is_combining)
			arch_io_free_memtype_wc(port->outbound[i].address, port->outbound[i].bytes);
}

int qn_port_make(struct ntb_dev *ntb, struct qn_port *whole, struct qn_port **port_out)
{
	struct qn_port *port = kzalloc(sizeof(*port), GFP_KERNEL);
	int error = -ENOMEM;

	if (!port)
		return -ENOMEM;
	kref_init(&port->ref);
	port->ntb = ntb;
	port->whole = whole;
	init_rwsem(&port->alive);
	mutex_init(&port->lock);
	spin_lock_init(&port->event_lock);
	INIT_LIST_HEAD(&port->clients);
	port->state = (void *)get_zeroed_page(GFP_KERNEL);
	if (!port->state)
		goto free_port;
	qn_link_init(port);
	*port_out = port;
	if (whole)
		return 0;
	port->link_pad = ntb_spad_count(ntb) - 1;
	port->pad_count = port->link_pad;
	port->link_bit = 1ull << (fls64(ntb_db_valid_mask(ntb)) - 1);
	port->valid_bits = ntb_db_valid_mask(ntb) & ~port->link_bit;
	port->index = ida_alloc(&port_numbers, GFP_KERNEL);
	if (port->index < 0) {
		error = port->index;
		goto free_state;
	}
	snprintf(port->name, sizeof(port->name), "ntb%d", port->index);
	return 0;

free_state:
	free_page((unsigned long)port->state);
free_port:
	kfree(port);
	return error;
}

int qn_port_register(struct qn_port *port)
{
	port->misc = (struct miscdevice){ .minor = MISC_DYNAMIC_MINOR,
					  .name = port->name,
					  .fops = &qn_port_file_operations,
					  .parent = &port->ntb->dev,
					  .mode = 0600 };
	return misc_register(&port->misc);
}

void qn_port_end(struct qn_port *port)
{
	struct qn_inbound old[QUOIT_NTB_WINDOWS];
	u32 window;

	down_write(&port->alive); /* from here on no call and no fault of a client touches the device */
	mutex_lock(&port->lock);
	if (!port->whole)
		qn_link_end(port);
	for (window = 0; window < port->inbound_count; window++) {
		qn_inbound_take_out(port, window, &old[window]);
		if (port->left[window].memory)
			set_chip(port, window, port->left[window].mapping.address, 0);
	}
	port->is_gone = true;
	mutex_unlock(&port->lock);
	up_write(&port->alive);
	if (port->parts)
		qn_parts_end(port);
	if (!port->whole) {
		/* Nothing unmasks a bit any more; without a context, no one would mask it again when it fires. */
		ntb_db_set_mask(port->ntb, ntb_db_valid_mask(port->ntb));
		ntb_clear_ctx(port->ntb);
	}
	cancel_delayed_work_sync(&port->link_work);
	for (window = 0; window < port->inbound_count; window++)
		qn_inbound_drop(&old[window]);
}

static int port_probe(struct ntb_client *client, struct ntb_dev *ntb)
{
	struct qn_port *port;
	int error;

	if (ntb_peer_port_count(ntb) != 1)
		return -ENODEV;
	if (ntb_spad_count(ntb) < QN_SCRATCHPADS_LEAST || hweight64(ntb_db_valid_mask(ntb)) < 2) {
		dev_info(&ntb->dev, "too few scratchpads (%d) or doorbell bits (%#llx)\n", ntb_spad_count(ntb),
			 ntb_db_valid_mask(ntb));
		return -ENODEV;
	}
	error = qn_port_make(ntb, NULL, &port);
	if (error)
		return error;
	find_windows(port);
	dma_set_max_seg_size(&ntb->pdev->dev, UINT_MAX);
	dma_set_seg_boundary(&ntb->pdev->dev, ULONG_MAX); /* else an IOMMU's mapping has gaps at each 4 GiB */
	if (parts) {
		error = qn_parts_make(port, parts);
		if (error)
			goto leave;
	}
	ntb_db_set_mask(ntb, ntb_db_valid_mask(ntb));
	error = ntb_set_ctx(ntb, port, &context_operations);
	if (error)
		goto leave;
	error = parts ? qn_parts_register(port) : qn_port_register(port);
	if (error)
		goto clear_context;
	ntb_link_enable(ntb, NTB_SPEED_AUTO, NTB_WIDTH_AUTO);
	qn_link_kick(port);
	return 0;

clear_context:
	ntb_clear_ctx(ntb);
	cancel_delayed_work_sync(&port->link_work);
	ntb_db_set_mask(ntb, ntb_db_valid_mask(ntb));
leave:
	if (port->parts)
		qn_parts_free(port);
	leave_windows(port);
	qn_port_put(port);
	return error;
}

static void port_remove(struct ntb_client *ntb_client, struct ntb_dev *ntb)
{
	struct qn_port *port = ntb->ctx;
	u32 window;

	if (!port->parts)
		misc_deregister(&port->misc);
	qn_port_end(port);
	leave_windows(port);
	ntb_link_disable(ntb);
	for (window = 0; window < port->inbound_count; window++)
		qn_inbound_drop(&port->left[window]); /* the end of bus mastering is near */
	if (port->parts)
		qn_parts_free(port);
	port->ntb = NULL;
	qn_signal(port, 0, true, NULL);
	qn_port_put(port);
}

static struct ntb_client ntb_client = {
	.ops = { .probe = port_probe, .remove = port_remove },
};

static int init_filesystem(struct fs_context *context)
{
	return init_pseudo(context, QN_FS_MAGIC) ? 0 : -ENOMEM;
}

/* No owner: the module's own mount must not pin the module. */
static struct file_system_type filesystem = {
	.name = "quoit_ntb",
	.init_fs_context = init_filesystem,
	.kill_sb = kill_anon_super,
};

static int __init quoit_ntb_init(void)
{
	int error;

	qn_works = alloc_workqueue("quoit_ntb", WQ_UNBOUND, 0);
	if (!qn_works)
		return -ENOMEM;
	inodes = kern_mount(&filesystem);
	if (IS_ERR(inodes)) {
		error = PTR_ERR(inodes);
		goto destroy_works;
	}
	error = ntb_register_client(&ntb_client);
	if (error)
		goto unmount;
	return 0;

unmount:
	kern_unmount(inodes);
destroy_works:
	destroy_workqueue(qn_works);
	return error;
}
module_init(quoit_ntb_init);

static void __exit quoit_ntb_exit(void)
{
	ntb_unregister_client(&ntb_client);
	kern_unmount(inodes);
	destroy_workqueue(qn_works);
	ida_destroy(&port_numbers);
}
module_exit(quoit_ntb_exit);
