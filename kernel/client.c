// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* A client: an open /dev/ntbN, with its leases, mappings and events. */
#include <linux/file.h>
#include <linux/module.h>
#include <linux/overflow.h>
#include <linux/pci.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "quoit_ntb_priv.h"

#define QN_PEER          0
#define QN_WINDOW_SHIFT  44
#define QN_RANGES_MAX    64 /* leases of ranges of one client */
#define QN_CLIENTS_MAX   1024 /* each interrupt of a port looks at all */
#define QN_FAULT_BYTES   (2u << 20) /* mapped by one fault */

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 3, 0)
#define vm_flags_set(vma, flags)   ((vma)->vm_flags |= (flags))
#define vm_flags_clear(vma, flags) ((vma)->vm_flags &= ~(flags))
#endif

/* The arguments of one call. Copied in before all locks, and out after them. */
union qn_argument {
	struct quoit_ntb_info info;
	struct quoit_ntb_link link;
	struct quoit_ntb_lease lease;
	struct quoit_ntb_memory memory;
	struct quoit_ntb_inbound inbound;
	struct quoit_ntb_bits bits;
	struct quoit_ntb_scratchpad scratchpad;
	struct quoit_ntb_eventfd eventfd;
	struct quoit_ntb_copy copy;
	u32 epoch;
	s32 fd;
};

/* Leases. port->lock is held. */

bool qn_client_leases(struct qn_client *client, u32 window, u64 offset, u64 bytes)
{
	struct qn_range *range;
	u64 end;

	if (check_add_overflow(offset, bytes, &end))
		return false;
	list_for_each_entry(range, &client->holder->ranges, node)
		if (range->window == window && offset >= range->offset && end <= range->offset + range->bytes)
			return true;
	return false;
}

static bool range_is_free(struct qn_port *port, u32 window, u64 offset, u64 bytes)
{
	struct qn_client *client;
	struct qn_range *range;

	list_for_each_entry(client, &port->clients, node)
		list_for_each_entry(range, &client->holder->ranges, node)
			if (range->window == window && offset < range->offset + range->bytes &&
			    range->offset < offset + bytes)
				return false;
	return true;
}

static u64 bits_free(struct qn_port *port)
{
	u64 bits = port->valid_bits;
	struct qn_client *client;

	list_for_each_entry(client, &port->clients, node)
		bits &= ~client->holder->bits;
	return bits;
}

static int lease_range(struct qn_client *client, const struct quoit_ntb_lease *lease)
{
	struct qn_port *port = client->port;
	struct qn_range *range;
	u32 count = 0;
	u64 end;

	if (lease->window >= port->outbound_count || !PAGE_ALIGNED(lease->offset) || !PAGE_ALIGNED(lease->bytes) ||
	    check_add_overflow(lease->offset, lease->bytes, &end) || end > port->outbound[lease->window].bytes)
		return -EINVAL;
	if (qn_client_leases(client, lease->window, lease->offset, lease->bytes))
		return 0;
	list_for_each_entry(range, &client->holder->ranges, node)
		count++;
	if (count >= QN_RANGES_MAX)
		return -ENOSPC;
	if (!range_is_free(port, lease->window, lease->offset, lease->bytes))
		return -EBUSY;
	range = kmalloc(sizeof(*range), GFP_KERNEL);
	if (!range)
		return -ENOMEM;
	*range = (struct qn_range){ .window = lease->window, .offset = lease->offset, .bytes = lease->bytes };
	list_add(&range->node, &client->holder->ranges);
	return 0;
}

static int lease(struct qn_client *client, struct quoit_ntb_lease *lease)
{
	struct qn_port *port = client->port;
	u64 available = bits_free(port), granted = lease->bits_want;
	unsigned long flags;
	u32 i;
	int error;

	if (granted & ~port->valid_bits)
		return -EINVAL;
	if (granted & ~(available | client->holder->bits))
		return -EBUSY;
	for (i = 0; !lease->bits_want && i < lease->bit_count; i++) {
		u64 left = available & ~granted;

		if (!left)
			return -EBUSY;
		granted |= left & -left;
	}
	if (lease->bytes) {
		error = lease_range(client, lease);
		if (error)
			return error;
	}
	spin_lock_irqsave(&port->event_lock, flags);
	client->holder->bits |= granted;
	spin_unlock_irqrestore(&port->event_lock, flags);
	lease->bits = client->holder->bits;
	return 0;
}

/* The link */

static void wish(struct qn_port *port, struct qn_holder *holder, bool wishes)
{
	if (wishes == holder->wishes_link)
		return;
	holder->wishes_link = wishes;
	port->wish_count += wishes ? 1 : -1;
	if (!port->wish_count)
		qn_link_unwanted(port);
	qn_link_kick(port);
}

/* The clients that joined each other. port->lock is held. */

static struct qn_holder *holder_new(void)
{
	struct qn_holder *holder = kzalloc(sizeof(*holder), GFP_KERNEL_ACCOUNT);

	if (holder) {
		kref_init(&holder->ref);
		holder->client_count = 1;
		INIT_LIST_HEAD(&holder->ranges);
	}
	return holder;
}

static void release_at_port(struct qn_port *port, struct qn_holder *holder, struct qn_inbound *old)
{
	unsigned long flags;
	u32 window;

	if (port->is_gone)
		return;
	spin_lock_irqsave(&port->event_lock, flags);
	port->unmasked_bits &= ~holder->bits;
	port->armed_bits &= ~holder->bits;
	ntb_db_set_mask(port->ntb, holder->bits);
	spin_unlock_irqrestore(&port->event_lock, flags);
	ntb_db_clear(port->ntb, holder->bits);
	wish(port, holder, false);
	for (window = 0; window < port->inbound_count; window++) {
		if (port->inbound[window].holder != holder)
			continue;
		if (port->link.is_ending && port->inbound[window].is_set)
			qn_inbound_leave(port, window);
		else
			qn_inbound_take_out(port, window, &old[window]);
	}
}

/* The last client gives back what was leased. `old` is what its windows were. */
static void holder_leave(struct qn_port *port, struct qn_holder *holder, struct qn_inbound *old)
{
	struct qn_range *range, *next;
	unsigned long flags;

	if (--holder->client_count)
		return;
	release_at_port(port, holder, old);
	list_for_each_entry_safe(range, next, &holder->ranges, node)
		kfree(range);
	INIT_LIST_HEAD(&holder->ranges);
	spin_lock_irqsave(&port->event_lock, flags);
	holder->bits = 0;
	spin_unlock_irqrestore(&port->event_lock, flags);
}

static void holder_free(struct kref *ref)
{
	kfree(container_of(ref, struct qn_holder, ref));
}

static bool has_window(struct qn_port *port, const struct qn_holder *holder)
{
	u32 window;

	for (window = 0; window < port->inbound_count; window++)
		if (port->inbound[window].holder == holder)
			return true;
	return false;
}

/* The client keeps its own holder too: other threads of it may be reading there. */
static int join(struct qn_client *client, struct qn_client *other)
{
	struct qn_port *port = client->port;
	struct qn_holder *holder = client->holder;
	unsigned long flags;

	if (other->port != port)
		return -EXDEV;
	if (other->holder == holder)
		return 0;
	if (holder != client->own || holder->client_count > 1 || holder->bits || !list_empty(&holder->ranges) ||
	    holder->wishes_link || has_window(port, holder))
		return -EBUSY;
	spin_lock_irqsave(&port->event_lock, flags);
	kref_get(&other->holder->ref);
	other->holder->client_count++;
	WRITE_ONCE(client->holder, other->holder);
	spin_unlock_irqrestore(&port->event_lock, flags);
	return 0;
}

static int look_at_link(struct qn_client *client, struct quoit_ntb_link *link)
{
	struct qn_port *port = client->port;
	enum ntb_speed speed = NTB_SPEED_NONE;
	enum ntb_width width = NTB_WIDTH_NONE;
	unsigned long flags;

	if (link->wish > QUOIT_NTB_LINK_RELEASE)
		return -EINVAL;
	if (link->wish != QUOIT_NTB_LINK_LOOK) {
		mutex_lock(&port->lock);
		wish(port, client->holder, link->wish == QUOIT_NTB_LINK_ENABLE);
		mutex_unlock(&port->lock);
	}
	ntb_link_is_up(port->ntb, &speed, &width);
	spin_lock_irqsave(&port->event_lock, flags);
	*link = (struct quoit_ntb_link){ .wish = link->wish,
					 .is_up = qn_link_is_seen_up(port),
					 .epoch = port->epoch,
					 .accepted_epoch = client->accepted_epoch,
					 .speed = speed > 0 ? speed : 0,
					 .width = width > 0 ? width : 0 };
	spin_unlock_irqrestore(&port->event_lock, flags);
	return 0;
}

/* The client's own mappings change with it: no fault fills them meanwhile. */
static int accept_epoch(struct qn_client *client, u32 epoch)
{
	struct qn_port *port = client->port;
	unsigned long flags;
	int error = -ENOLINK;

	filemap_invalidate_lock(client->inode->i_mapping);
	spin_lock_irqsave(&port->event_lock, flags);
	if (!epoch || (port->is_up && port->epoch == epoch)) {
		client->accepted_epoch = epoch;
		error = 0;
	}
	spin_unlock_irqrestore(&port->event_lock, flags);
	if (!error)
		qn_revoke(client);
	filemap_invalidate_unlock(client->inode->i_mapping);
	return error;
}

/* Events */

static void forget_eventfds(struct qn_client *client)
{
	struct eventfd_ctx *old[QUOIT_NTB_EVENTFDS];
	unsigned long flags;
	int i;

	spin_lock_irqsave(&client->port->event_lock, flags);
	for (i = 0; i < QUOIT_NTB_EVENTFDS; i++) {
		old[i] = client->eventfds[i].context;
		client->eventfds[i] = (struct qn_eventfd){ 0 };
	}
	spin_unlock_irqrestore(&client->port->event_lock, flags);
	for (i = 0; i < QUOIT_NTB_EVENTFDS; i++)
		if (old[i])
			eventfd_ctx_put(old[i]);
}

static int add_eventfd(struct qn_client *client, const struct quoit_ntb_eventfd *wanted)
{
	struct eventfd_ctx *context;
	unsigned long flags;
	int i;

	if (wanted->reserved || wanted->on_link > 1 || wanted->on_dma > 1)
		return -EINVAL;
	if (wanted->fd == -1) {
		forget_eventfds(client);
		return 0;
	}
	context = eventfd_ctx_fdget(wanted->fd);
	if (IS_ERR(context))
		return PTR_ERR(context);
	spin_lock_irqsave(&client->port->event_lock, flags);
	for (i = 0; i < QUOIT_NTB_EVENTFDS && client->eventfds[i].context; i++)
		;
	if (i < QUOIT_NTB_EVENTFDS)
		client->eventfds[i] = (struct qn_eventfd){ .context = context,
							   .bits = wanted->bits,
							   .on_link = wanted->on_link,
							   .on_dma = wanted->on_dma };
	spin_unlock_irqrestore(&client->port->event_lock, flags);
	if (i < QUOIT_NTB_EVENTFDS)
		return 0;
	eventfd_ctx_put(context);
	return -ENOSPC;
}

/*
 * What fired, or is not armed yet, interrupts again. Bits that arrived meanwhile signal at once, and mask themselves
 * again, as an interrupt would. A bit that is armed needs nothing: its ring interrupts, or is about to.
 */
static void arm(struct qn_port *port, u64 bits)
{
	unsigned long flags;

	spin_lock_irqsave(&port->event_lock, flags);
	bits &= port->unmasked_bits & ~port->armed_bits;
	if (bits) {
		ntb_db_clear_mask(port->ntb, bits);
		port->armed_bits |= bits;
		bits &= ntb_db_read(port->ntb);
	}
	if (bits) {
		ntb_db_set_mask(port->ntb, bits);
		port->armed_bits &= ~bits;
		qn_signal_locked(port, bits, false, NULL);
	}
	spin_unlock_irqrestore(&port->event_lock, flags);
}

static void set_mask(struct qn_port *port, u64 bits, bool is_masked)
{
	unsigned long flags;

	spin_lock_irqsave(&port->event_lock, flags);
	port->unmasked_bits = is_masked ? port->unmasked_bits & ~bits : port->unmasked_bits | bits;
	spin_unlock_irqrestore(&port->event_lock, flags);
	if (!is_masked)
		arm(port, bits);
}

static int doorbell(struct qn_client *client, unsigned int command, struct quoit_ntb_bits *bits)
{
	struct ntb_dev *ntb = client->port->ntb;
	u64 leased = READ_ONCE(READ_ONCE(client->holder)->bits);

	if (command == QUOIT_NTB_DOORBELL) {
		bits->bits = ntb_db_read(ntb) & leased;
		return 0;
	}
	if (bits->bits & ~leased)
		return -EPERM;
	switch (command) {
	case QUOIT_NTB_RING:
		return qn_client_is_current(client) ? ntb_peer_db_set(ntb, bits->bits) : -ENOLINK;
	case QUOIT_NTB_CLEAR:
		ntb_db_clear(ntb, bits->bits);
		arm(client->port, bits->bits);
		return 0;
	default:
		set_mask(client->port, bits->bits, command == QUOIT_NTB_MASK);
		return 0;
	}
}

static int scratchpad(struct qn_client *client, unsigned int command, struct quoit_ntb_scratchpad *scratchpad)
{
	struct qn_port *port = client->port;
	struct ntb_dev *ntb = port->ntb;

	if (scratchpad->index >= port->pad_count)
		return -EINVAL;
	if (!qn_client_is_current(client))
		return -ENOLINK;
	if (port->whole) {
		if (command == QUOIT_NTB_SCRATCHPAD_PEER)
			qn_part_write_pad(port, scratchpad->index, scratchpad->value);
		else
			scratchpad->value = qn_part_pad(port, scratchpad->index);
		return 0;
	}
	if (command == QUOIT_NTB_SCRATCHPAD_PEER)
		return ntb_peer_spad_write(ntb, QN_PEER, scratchpad->index, scratchpad->value);
	scratchpad->value = ntb_spad_read(ntb, scratchpad->index);
	return 0;
}

static void tell_info(struct qn_client *client, struct quoit_ntb_info *info)
{
	struct qn_port *port = client->port;
	struct ntb_dev *ntb = port->ntb;
	u32 i;

	*info = (struct quoit_ntb_info){ .version = QUOIT_NTB_VERSION,
					 .port = ntb_port_number(ntb),
					 .peer_port = ntb_peer_port_number(ntb, QN_PEER),
					 .inbound_count = port->inbound_count,
					 .outbound_count = port->outbound_count,
					 .scratchpad_count = port->pad_count,
					 .vector_count = ntb_db_vector_count(ntb),
					 .has_dma = qn_copy_is_offered(client),
					 .doorbell_bits = port->valid_bits };
	strscpy(info->driver, dev_driver_string(&ntb->pdev->dev), sizeof(info->driver));
	for (i = 0; i < QUOIT_NTB_WINDOWS; i++) {
		resource_size_t address_align = 0, bytes_align = 0, bytes_max = 0;

		if (i < port->inbound_count && port->whole) {
			address_align = PAGE_SIZE;
			bytes_align = PAGE_SIZE;
			bytes_max = port->outbound[i].bytes;
		} else if (i < port->inbound_count) {
			ntb_mw_get_align(ntb, QN_PEER, i, &address_align, &bytes_align, &bytes_max);
		}
		info->windows[i] = (struct quoit_ntb_window){ .address_align = address_align,
							      .bytes_align = bytes_align,
							      .bytes_max = bytes_max,
							      .peer_bytes = port->outbound[i].bytes };
	}
}

/* port->alive is held, and the port is not gone. */
static long call(struct qn_client *client, unsigned int command, union qn_argument *argument)
{
	struct qn_port *port = client->port;
	long result;

	switch (command) {
	case QUOIT_NTB_INFO:
		tell_info(client, &argument->info);
		return 0;
	case QUOIT_NTB_LINK:
		return look_at_link(client, &argument->link);
	case QUOIT_NTB_ACCEPT:
		return accept_epoch(client, argument->epoch);
	case QUOIT_NTB_LEASE:
		mutex_lock(&port->lock);
		result = lease(client, &argument->lease);
		mutex_unlock(&port->lock);
		return result;
	case QUOIT_NTB_WINDOW:
		return qn_inbound_set(client, &argument->inbound);
	case QUOIT_NTB_RING:
	case QUOIT_NTB_DOORBELL:
	case QUOIT_NTB_CLEAR:
	case QUOIT_NTB_MASK:
	case QUOIT_NTB_UNMASK:
		return doorbell(client, command, &argument->bits);
	case QUOIT_NTB_SCRATCHPAD:
	case QUOIT_NTB_SCRATCHPAD_PEER:
		return scratchpad(client, command, &argument->scratchpad);
	case QUOIT_NTB_EVENTFD:
		return add_eventfd(client, &argument->eventfd);
	case QUOIT_NTB_COPY:
		return qn_copy_submit(client, &argument->copy);
	default:
		return -ENOTTY;
	}
}

static long join_file(struct qn_client *client, s32 fd)
{
	struct file *file = fget(fd);
	long result = -EINVAL;

	if (!file)
		return -EBADF;
	if (file->f_op == &qn_port_file_operations) {
		mutex_lock(&client->port->lock);
		result = client->port->is_gone ? -ENODEV : join(client, file->private_data);
		mutex_unlock(&client->port->lock);
	}
	fput(file);
	return result;
}

static long client_ioctl(struct file *file, unsigned int command, unsigned long address)
{
	struct qn_client *client = file->private_data;
	struct qn_port *port = client->port;
	void __user *user = (void __user *)address;
	size_t bytes = _IOC_SIZE(command);
	union qn_argument argument = { 0 };
	long result = -ENODEV;

	if (_IOC_TYPE(command) != 'N' || bytes > sizeof(argument))
		return -ENOTTY;
	if ((_IOC_DIR(command) & _IOC_WRITE) && copy_from_user(&argument, user, bytes))
		return -EFAULT;
	if (command == QUOIT_NTB_MEMORY) /* takes mmap_lock, so alive is not held */
		return READ_ONCE(port->is_gone) ? -ENODEV : qn_memory_create(&argument.memory);
	if (command == QUOIT_NTB_JOIN)
		return join_file(client, argument.fd);
	down_read(&port->alive);
	if (!port->is_gone)
		result = call(client, command, &argument);
	up_read(&port->alive);
	if (result >= 0 && (_IOC_DIR(command) & _IOC_READ) && copy_to_user(user, &argument, bytes))
		return -EFAULT;
	return result;
}

/* Mappings of outbound windows: populated by faults, so that they can be revoked and restored. */

static vm_fault_t outbound_fault(struct vm_fault *fault)
{
	struct vm_area_struct *vma = fault->vma;
	struct qn_client *client = vma->vm_file->private_data;
	struct qn_port *port = client->port;
	u32 window = vma->vm_pgoff >> (QN_WINDOW_SHIFT - PAGE_SHIFT);
	unsigned long first = max(vma->vm_start, ALIGN_DOWN(fault->address, QN_FAULT_BYTES));
	unsigned long last = min(vma->vm_end, ALIGN_DOWN(fault->address, QN_FAULT_BYTES) + QN_FAULT_BYTES);
	unsigned long pfn, at;
	vm_fault_t result = VM_FAULT_SIGBUS;

	down_read(&port->alive);
	filemap_invalidate_lock_shared(client->inode->i_mapping);
	if (port->is_gone || !qn_client_is_current(client)) {
		/* As memory, not as the aperture: past the caches other contents may stand there than its zeroes. */
		result = vmf_insert_pfn_prot(vma, fault->address & PAGE_MASK, page_to_pfn(client->sink),
					     vm_get_page_prot(vma->vm_flags));
		goto release;
	}
	pfn = (port->outbound[window].address >> PAGE_SHIFT) +
	      (vma->vm_pgoff & ((1ul << (QN_WINDOW_SHIFT - PAGE_SHIFT)) - 1));
	result = vmf_insert_pfn(vma, fault->address & PAGE_MASK,
				pfn + ((fault->address - vma->vm_start) >> PAGE_SHIFT));
	for (at = first; result == VM_FAULT_NOPAGE && at < last; at += PAGE_SIZE)
		if (vmf_insert_pfn(vma, at, pfn + ((at - vma->vm_start) >> PAGE_SHIFT)) != VM_FAULT_NOPAGE)
			break; /* the page that faulted is mapped */
release:
	filemap_invalidate_unlock_shared(client->inode->i_mapping);
	up_read(&port->alive);
	return result;
}

void qn_revoke(struct qn_client *client)
{
	unmap_mapping_range(client->inode->i_mapping, 0, QUOIT_NTB_STATE, 1);
}

static const struct vm_operations_struct outbound_operations = {
	.fault = outbound_fault,
};

static int state_mmap(struct qn_port *port, struct vm_area_struct *vma)
{
	if (vma->vm_pgoff != QUOIT_NTB_STATE >> PAGE_SHIFT || vma->vm_end - vma->vm_start != PAGE_SIZE ||
	    vma->vm_flags & VM_WRITE)
		return -EINVAL;
	vm_flags_clear(vma, VM_MAYWRITE);
	return vm_insert_page(vma, vma->vm_start, virt_to_page(port->state));
}

static int client_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct qn_client *client = file->private_data;
	struct qn_port *port = client->port;
	u64 window = vma->vm_pgoff >> (QN_WINDOW_SHIFT - PAGE_SHIFT);
	u64 offset = ((u64)vma->vm_pgoff << PAGE_SHIFT) & ((1ull << QN_WINDOW_SHIFT) - 1);
	bool is_leased;

	if (window == QUOIT_NTB_WINDOWS)
		return state_mmap(port, vma);
	if (window > QUOIT_NTB_WINDOWS || !(vma->vm_flags & VM_SHARED))
		return -EINVAL;
	mutex_lock(&port->lock);
	is_leased = qn_client_leases(client, window, offset, vma->vm_end - vma->vm_start);
	mutex_unlock(&port->lock);
	if (!is_leased)
		return -EPERM;
	vm_flags_set(vma, VM_IO | VM_PFNMAP | VM_DONTEXPAND | VM_DONTDUMP | VM_DONTCOPY);
	vma->vm_page_prot = pgprot_decrypted(pgprot_writecombine(vma->vm_page_prot));
	vma->vm_ops = &outbound_operations;
	return 0;
}

/* Files */

static void client_free(struct qn_client *client)
{
	iput(client->inode);
	if (client->sink)
		__free_page(client->sink);
	if (client->holder != client->own)
		kref_put(&client->holder->ref, holder_free);
	if (client->own)
		kref_put(&client->own->ref, holder_free);
	kfree(client);
}

static int client_open(struct inode *inode, struct file *file)
{
	struct qn_port *port = container_of(file->private_data, struct qn_port, misc);
	struct qn_client *client = kzalloc(sizeof(*client), GFP_KERNEL_ACCOUNT);
	unsigned long flags;

	if (!client)
		return -ENOMEM;
	client->own = holder_new();
	client->holder = client->own;
	client->sink = alloc_page(GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	client->inode = qn_inode_new();
	if (!client->own || !client->sink || !client->inode) {
		client_free(client);
		return -ENOMEM;
	}
	client->port = port;
	init_waitqueue_head(&client->waiters);
	mutex_init(&client->dma_lock);
	mutex_lock(&port->lock);
	if (port->client_count >= QN_CLIENTS_MAX) {
		mutex_unlock(&port->lock);
		client_free(client);
		return -EUSERS;
	}
	port->client_count++;
	kref_get(&port->ref); /* misc_open() excludes misc_deregister() */
	spin_lock_irqsave(&port->event_lock, flags);
	list_add(&client->node, &port->clients);
	spin_unlock_irqrestore(&port->event_lock, flags);
	mutex_unlock(&port->lock);
	file->private_data = client;
	file->f_mapping = client->inode->i_mapping;
	return 0;
}

static int client_release(struct inode *inode, struct file *file)
{
	struct qn_client *client = file->private_data;
	struct qn_port *port = client->port;
	struct qn_inbound old[QUOIT_NTB_WINDOWS] = { 0 };
	unsigned long flags;
	u32 window;

	qn_copy_release(client);
	down_read(&port->alive);
	mutex_lock(&port->lock);
	holder_leave(port, client->holder, old);
	port->client_count--;
	spin_lock_irqsave(&port->event_lock, flags);
	list_del(&client->node);
	spin_unlock_irqrestore(&port->event_lock, flags);
	mutex_unlock(&port->lock);
	for (window = 0; window < QUOIT_NTB_WINDOWS; window++)
		qn_inbound_drop(&old[window]);
	up_read(&port->alive);
	forget_eventfds(client);
	client_free(client);
	qn_port_put(port);
	return 0;
}

static ssize_t client_read(struct file *file, char __user *to, size_t bytes, loff_t *offset)
{
	return qn_copy_read(file->private_data, to, bytes);
}

static __poll_t client_poll(struct file *file, struct poll_table_struct *table)
{
	struct qn_client *client = file->private_data;
	__poll_t events = 0;

	poll_wait(file, &client->waiters, table);
	if (READ_ONCE(client->done_count))
		events |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(client->port->is_gone))
		events |= EPOLLHUP;
	return events;
}

const struct file_operations qn_port_file_operations = {
	.owner = THIS_MODULE,
	.open = client_open,
	.release = client_release,
	.unlocked_ioctl = client_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = client_mmap,
	.read = client_read,
	.poll = client_poll,
};
