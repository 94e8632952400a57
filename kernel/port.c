// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* quoit_ntb: /dev/ntbN, one port of an NTB link for user space. The contract is uapi/quoit_ntb.h. */
#include <linux/idr.h>
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

static DEFINE_IDA(port_numbers);
static struct vfsmount *inodes; /* the pseudo file system of the ports' inodes */

#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
#define qn_eventfd_signal(context) eventfd_signal(context)
#else
#define qn_eventfd_signal(context) eventfd_signal(context, 1)
#endif

static void port_release(struct kref *ref)
{
	struct qn_port *port = container_of(ref, struct qn_port, ref);

	iput(port->inode);
	ida_free(&port_numbers, port->index);
	kfree(port);
}

void qn_port_put(struct qn_port *port)
{
	kref_put(&port->ref, port_release);
}

bool qn_client_is_current(struct qn_client *client)
{
	struct qn_port *port = client->port;
	unsigned long flags;
	bool is_current;

	spin_lock_irqsave(&port->event_lock, flags);
	is_current = port->is_up && client->accepted_epoch == port->epoch;
	spin_unlock_irqrestore(&port->event_lock, flags);
	return is_current;
}

/* Wakes the clients that wait for one of the bits, for the link, or for their completions. event_lock is held. */
static void signal_locked(struct qn_port *port, u64 bits, bool on_link, struct qn_client *on_dma)
{
	struct qn_client *client;
	int i;

	list_for_each_entry(client, &port->clients, node) {
		for (i = 0; i < QUOIT_NTB_EVENTFDS; i++) {
			struct qn_eventfd *eventfd = &client->eventfds[i];

			if (eventfd->context && ((eventfd->bits & bits & client->bits) || (on_link && eventfd->on_link) ||
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
	signal_locked(port, bits, on_link, on_dma);
	spin_unlock_irqrestore(&port->event_lock, flags);
}

/* Inbound windows. port->lock is held. */

void qn_inbound_clear(struct qn_port *port, u32 window)
{
	struct qn_inbound *inbound = &port->inbound[window];

	if (inbound->memory) {
		ntb_mw_clear_trans(port->ntb, QN_PEER, window);
		qn_memory_unmap(&inbound->mapping);
		qn_memory_put(inbound->memory);
	}
	*inbound = (struct qn_inbound){ 0 };
}

static int translate(struct qn_port *port, u32 window)
{
	struct qn_inbound *inbound = &port->inbound[window];
	resource_size_t address_align, bytes_align, bytes_max;
	int error;

	error = ntb_mw_get_align(port->ntb, QN_PEER, window, &address_align, &bytes_align, &bytes_max);
	if (error)
		return error; /* for chips that report their limits once the link is up: link_work() comes back */
	if (inbound->bytes > bytes_max || !IS_ALIGNED(inbound->bytes, bytes_align))
		return -EINVAL;
	if (!IS_ALIGNED(inbound->mapping.address, address_align))
		return -EADDRNOTAVAIL;
	return ntb_mw_set_trans(port->ntb, QN_PEER, window, inbound->mapping.address, inbound->bytes);
}

static bool port_is_up(struct qn_port *port)
{
	unsigned long flags;
	bool is_up;

	spin_lock_irqsave(&port->event_lock, flags);
	is_up = port->is_up;
	spin_unlock_irqrestore(&port->event_lock, flags);
	return is_up;
}

int qn_inbound_set(struct qn_client *client, const struct quoit_ntb_inbound *wanted)
{
	struct qn_port *port = client->port;
	struct qn_inbound *inbound;
	struct qn_memory *memory;
	int error;

	if (wanted->window >= port->inbound_count || !PAGE_ALIGNED(wanted->offset) || !PAGE_ALIGNED(wanted->bytes))
		return -EINVAL;
	inbound = &port->inbound[wanted->window];
	if (inbound->client && inbound->client != client)
		return -EBUSY;
	qn_inbound_clear(port, wanted->window);
	if (!wanted->bytes)
		return 0;
	memory = qn_memory_get(wanted->memory_fd);
	if (IS_ERR(memory))
		return PTR_ERR(memory);
	if (wanted->offset > qn_memory_bytes(memory) || wanted->bytes > qn_memory_bytes(memory) - wanted->offset) {
		error = -EINVAL;
		goto put_memory;
	}
	error = qn_memory_map(memory, wanted->offset, wanted->bytes, &port->ntb->pdev->dev, &inbound->mapping);
	if (error)
		goto put_memory;
	inbound->client = client;
	inbound->memory = memory;
	inbound->bytes = wanted->bytes;
	error = translate(port, wanted->window);
	if (error && (port_is_up(port) || error == -EINVAL || error == -EADDRNOTAVAIL)) {
		qn_inbound_clear(port, wanted->window);
		return error;
	}
	return 0;

put_memory:
	qn_memory_put(memory);
	return error;
}

/* The link */

/* The part of a change that may sleep: mappings of the previous epoch are revoked, translations set again. */
static void link_work(struct work_struct *work)
{
	struct qn_port *port = container_of(work, struct qn_port, link_work);
	u32 window;

	down_write(&port->alive);
	unmap_mapping_range(port->inode->i_mapping, 0, 0, 1);
	up_write(&port->alive);

	down_read(&port->alive);
	if (!port->is_gone && port_is_up(port)) {
		mutex_lock(&port->lock);
		for (window = 0; window < port->inbound_count; window++)
			if (port->inbound[window].memory && translate(port, window))
				dev_warn(&port->ntb->dev, "window %u cannot be translated again\n", window);
		mutex_unlock(&port->lock);
	}
	up_read(&port->alive);
	qn_signal(port, 0, true, NULL);
}

/* An event while the link is up starts a new epoch, even if no loss was seen: an outage between two events looks the
 * same, and accepting the epoch again costs little. */
static void on_link_event(void *context)
{
	struct qn_port *port = context;
	bool is_up = ntb_link_is_up(port->ntb, NULL, NULL) != 0;
	unsigned long flags;

	spin_lock_irqsave(&port->event_lock, flags);
	port->is_up = is_up;
	if (is_up)
		port->epoch++;
	spin_unlock_irqrestore(&port->event_lock, flags);
	schedule_work(&port->link_work);
}

/* A level interrupt ends when its bits are masked or cleared. Bits that no client leases are cleared too. */
static void on_doorbell(void *context, int vector)
{
	struct qn_port *port = context;
	u64 bits = ntb_db_read(port->ntb) & ntb_db_vector_mask(port->ntb, vector);

	ntb_db_set_mask(port->ntb, bits);
	qn_signal(port, bits, false, NULL);
}

static const struct ntb_ctx_ops context_operations = {
	.link_event = on_link_event,
	.db_event = on_doorbell,
};

/* Adding and removing ports */

static int port_probe(struct ntb_client *client, struct ntb_dev *ntb)
{
	struct qn_port *port;
	u32 i;
	int error;

	if (ntb_peer_port_count(ntb) != 1)
		return -ENODEV;
	port = kzalloc(sizeof(*port), GFP_KERNEL);
	if (!port)
		return -ENOMEM;
	kref_init(&port->ref);
	port->ntb = ntb;
	init_rwsem(&port->alive);
	mutex_init(&port->lock);
	spin_lock_init(&port->event_lock);
	INIT_LIST_HEAD(&port->clients);
	INIT_WORK(&port->link_work, link_work);
	port->inbound_count = clamp(ntb_mw_count(ntb, QN_PEER), 0, QUOIT_NTB_WINDOWS);
	port->outbound_count = clamp(ntb_peer_mw_count(ntb), 0, QUOIT_NTB_WINDOWS);
	for (i = 0; i < port->outbound_count; i++) {
		struct qn_outbound *outbound = &port->outbound[i];

		if (ntb_peer_mw_get_addr(ntb, i, &outbound->address, &outbound->bytes))
			*outbound = (struct qn_outbound){ 0 };
	}
	port->index = ida_alloc(&port_numbers, GFP_KERNEL);
	if (port->index < 0) {
		error = port->index;
		goto free_port;
	}
	port->inode = alloc_anon_inode(inodes->mnt_sb);
	if (IS_ERR(port->inode)) {
		error = PTR_ERR(port->inode);
		goto free_index;
	}
	dma_set_max_seg_size(&ntb->pdev->dev, UINT_MAX);
	ntb_db_set_mask(ntb, ntb_db_valid_mask(ntb));
	error = ntb_set_ctx(ntb, port, &context_operations);
	if (error)
		goto put_inode;
	snprintf(port->name, sizeof(port->name), "ntb%d", port->index);
	port->misc = (struct miscdevice){ .minor = MISC_DYNAMIC_MINOR,
					  .name = port->name,
					  .fops = &qn_port_file_operations,
					  .parent = &ntb->dev,
					  .mode = 0600 };
	error = misc_register(&port->misc);
	if (error)
		goto clear_context;
	return 0;

clear_context:
	ntb_clear_ctx(ntb);
	cancel_work_sync(&port->link_work);
put_inode:
	iput(port->inode);
free_index:
	ida_free(&port_numbers, port->index);
free_port:
	kfree(port);
	return error;
}

static void port_remove(struct ntb_client *ntb_client, struct ntb_dev *ntb)
{
	struct qn_port *port = ntb->ctx;
	unsigned long flags;
	u32 window;

	misc_deregister(&port->misc);
	ntb_link_disable(ntb);
	ntb_clear_ctx(ntb);
	cancel_work_sync(&port->link_work);
	spin_lock_irqsave(&port->event_lock, flags);
	port->is_up = false;
	spin_unlock_irqrestore(&port->event_lock, flags);

	down_write(&port->alive); /* from here on no call and no fault of a client accesses the device */
	port->is_gone = true;
	for (window = 0; window < port->inbound_count; window++)
		qn_inbound_clear(port, window);
	unmap_mapping_range(port->inode->i_mapping, 0, 0, 1);
	port->ntb = NULL;
	up_write(&port->alive);
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

	inodes = kern_mount(&filesystem);
	if (IS_ERR(inodes))
		return PTR_ERR(inodes);
	error = ntb_register_client(&ntb_client);
	if (error)
		kern_unmount(inodes);
	return error;
}
module_init(quoit_ntb_init);

static void __exit quoit_ntb_exit(void)
{
	ntb_unregister_client(&ntb_client);
	kern_unmount(inodes);
	ida_destroy(&port_numbers);
}
module_exit(quoit_ntb_exit);
