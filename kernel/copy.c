// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* DMA of a client: copies from memory into a leased outbound range, by any engine of the kernel. */
#include <linux/pci.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "quoit_ntb_priv.h"

#define QN_COPY_BYTES_MAX (64u << 20) /* engines take a length of 32 bits or fewer, and not all check it */
#define QN_DRAIN          HZ          /* each copy under way ends within it, or none does */

/* A client that only asks whether an engine is free has it for that instant. Below dma_lock. */
static DEFINE_MUTEX(probing);

/* Whether a copy that failed, or was aborted, is the engine's fault or the link's, the link says and not the engine. */
static void end_copy(struct qn_copy *copy, bool is_good)
{
	struct qn_client *client = copy->client;
	struct qn_port *port = client->port;
	unsigned long flags;
	u32 index = copy - client->copies;

	dma_unmap_resource(client->engine, copy->destination, copy->bytes, DMA_FROM_DEVICE, 0);
	spin_lock_irqsave(&port->event_lock, flags);
	if (!port->is_up)
		copy->status = -ENOLINK; /* what an engine writes to a lost link vanishes */
	else
		copy->status = is_good ? 0 : -EIO;
	copy->is_done = true;
	client->done[(client->done_head + client->done_count++) % QUOIT_NTB_DMA_DEPTH] = index;
	qn_signal_locked(port, 0, false, client); /* with the lock, after which client and port may end */
	spin_unlock_irqrestore(&port->event_lock, flags);
}

static void copy_ended(void *context, const struct dmaengine_result *result)
{
	end_copy(context, !result || result->result == DMA_TRANS_NOERROR);
}

static struct qn_copy *take_copy(struct qn_client *client)
{
	struct qn_copy *taken = NULL;
	unsigned long flags;
	int i;

	spin_lock_irqsave(&client->port->event_lock, flags);
	for (i = 0; i < QUOIT_NTB_DMA_DEPTH && !taken; i++)
		if (!client->copies[i].is_used)
			taken = &client->copies[i];
	if (taken)
		taken->is_used = true;
	spin_unlock_irqrestore(&client->port->event_lock, flags);
	return taken;
}

static void give_back(struct qn_copy *copy)
{
	unsigned long flags;

	spin_lock_irqsave(&copy->client->port->event_lock, flags);
	copy->is_used = false;
	spin_unlock_irqrestore(&copy->client->port->event_lock, flags);
}

static u32 count_outstanding(struct qn_client *client)
{
	unsigned long flags;
	u32 count = 0;
	int i;

	spin_lock_irqsave(&client->port->event_lock, flags);
	for (i = 0; i < QUOIT_NTB_DMA_DEPTH; i++)
		count += client->copies[i].is_used && !client->copies[i].is_done;
	spin_unlock_irqrestore(&client->port->event_lock, flags);
	return count;
}

/* Whether all copies have ended by themselves. */
static bool drain(struct qn_client *client)
{
	u32 before, now = count_outstanding(client);

	while (now) {
		before = now;
		if (!wait_event_timeout(client->waiters, count_outstanding(client) < before, QN_DRAIN))
			return false;
		now = count_outstanding(client);
	}
	return true;
}

/*
 * No copy is outstanding afterwards. dma_lock is held. Engines that copy memory can seldom be terminated (plx_dma and
 * ioatdma cannot), but those stop when their channel is released. Some then complete what they abort, the others forget
 * it; in neither case does a completion come later. An engine that says it can be terminated may copy on all the same
 * (ptdma, whose interrupt then uses what it has freed): there all copies end by themselves, unless it stands still.
 */
static void end_all(struct qn_client *client)
{
	int i;

	if (!count_outstanding(client))
		return;
	if (client->channel->device->device_terminate_all && drain(client))
		return;
	if (dmaengine_terminate_sync(client->channel)) {
		dma_release_channel(client->channel);
		client->channel = NULL;
	}
	for (i = 0; i < QUOIT_NTB_DMA_DEPTH; i++)
		if (client->copies[i].is_used && !client->copies[i].is_done)
			end_copy(&client->copies[i], false);
}

void qn_copy_end(struct qn_client *client)
{
	mutex_lock(&client->dma_lock);
	end_all(client);
	mutex_unlock(&client->dma_lock);
}

/* Engines that keep no order (idxd) do not stop when their channel is released: their completions come later. */
static bool keeps_order(struct dma_chan *channel, void *unused)
{
	return !dma_has_cap(DMA_COMPLETION_NO_ORDER, channel->device->cap_mask);
}

/* What it writes to the bridge need not cross the root complex, which may refuse it. */
static bool is_near(struct dma_chan *channel, void *bridge)
{
	struct device *engine = channel->device->dev;
	struct pci_dev *root = pcie_find_root_port(bridge);

	return keeps_order(channel, NULL) && root && dev_is_pci(engine) &&
	       pcie_find_root_port(to_pci_dev(engine)) == root;
}

/* Of the bridge's own switch, else any. NULL: none is free, or there is none. */
static struct dma_chan *request_channel(struct qn_client *client)
{
	struct dma_chan *channel;
	dma_cap_mask_t mask;

	dma_cap_zero(mask);
	dma_cap_set(DMA_MEMCPY, mask);
	channel = dma_request_channel(mask, is_near, client->port->ntb->pdev);
	return channel ?: dma_request_channel(mask, keeps_order, NULL);
}

bool qn_copy_is_offered(struct qn_client *client)
{
	struct dma_chan *channel;
	bool is_offered;

	mutex_lock(&client->dma_lock);
	is_offered = !!client->channel;
	if (!is_offered) {
		mutex_lock(&probing);
		channel = request_channel(client);
		is_offered = !!channel;
		if (is_offered)
			dma_release_channel(channel);
		mutex_unlock(&probing);
	}
	mutex_unlock(&client->dma_lock);
	return is_offered;
}

static void forget_source(struct qn_client *client)
{
	qn_memory_unmap(&client->source_mapping);
	qn_memory_put(client->source);
	client->source = NULL;
}

/* dma_lock is held. What of the source an engine sees is mapped for its device. */
static int take_channel(struct qn_client *client)
{
	struct device *engine;

	mutex_lock(&probing);
	client->channel = request_channel(client);
	mutex_unlock(&probing);
	if (!client->channel)
		return -EOPNOTSUPP;
	engine = client->channel->device->dev;
	if (client->engine != engine) {
		forget_source(client);
		put_device(client->engine);
		client->engine = get_device(engine);
	}
	return 0;
}

static int prepare(struct qn_client *client, struct qn_memory *memory)
{
	int error;

	if (client->source != memory && count_outstanding(client))
		return -EAGAIN;
	if (!client->channel) {
		error = take_channel(client);
		if (error)
			return error;
	}
	if (client->source == memory)
		return 0;
	forget_source(client);
	if (qn_memory_map(memory, 0, qn_memory_bytes(memory), PAGE_SIZE, client->engine, &client->source_mapping))
		return -EADDRNOTAVAIL;
	client->source = qn_memory_hold(memory);
	return 0;
}

static int submit(struct qn_client *client, const struct quoit_ntb_copy *wanted, struct qn_copy *copy)
{
	phys_addr_t to = client->port->outbound[wanted->window].address + wanted->offset;
	dma_addr_t from = client->source_mapping.address + wanted->source;
	struct dma_async_tx_descriptor *descriptor;

	*copy = (struct qn_copy){ .client = client, .cookie = wanted->cookie, .bytes = wanted->bytes, .is_used = true };
	if (!is_dma_copy_aligned(client->channel->device, from, to, wanted->bytes))
		return -EINVAL;
	copy->destination = dma_map_resource(client->engine, to, wanted->bytes, DMA_FROM_DEVICE, 0);
	if (dma_mapping_error(client->engine, copy->destination))
		return -EIO;
	descriptor = dmaengine_prep_dma_memcpy(client->channel, copy->destination, from, wanted->bytes,
					       DMA_PREP_INTERRUPT | DMA_CTRL_ACK);
	if (!descriptor)
		goto unmap;
	descriptor->callback_result = copy_ended;
	descriptor->callback_param = copy;
	if (dma_submit_error(dmaengine_submit(descriptor)))
		goto unmap;
	dma_async_issue_pending(client->channel);
	return 0;

unmap:
	dma_unmap_resource(client->engine, copy->destination, wanted->bytes, DMA_FROM_DEVICE, 0);
	return count_outstanding(client) > 1 ? -EAGAIN : -EIO; /* this one counts */
}

int qn_copy_submit(struct qn_client *client, const struct quoit_ntb_copy *wanted)
{
	struct qn_port *port = client->port;
	struct qn_memory *memory;
	struct qn_copy *copy;
	bool is_leased;
	int error;

	if (wanted->window >= port->outbound_count || !wanted->bytes || wanted->bytes > QN_COPY_BYTES_MAX)
		return -EINVAL;
	mutex_lock(&port->lock);
	is_leased = qn_client_leases(client, wanted->window, wanted->offset, wanted->bytes);
	mutex_unlock(&port->lock);
	if (!is_leased)
		return -EPERM;
	if (!qn_client_is_current(client))
		return -ENOLINK;
	memory = qn_memory_get(wanted->memory_fd);
	if (IS_ERR(memory))
		return PTR_ERR(memory);
	error = -EINVAL;
	if (wanted->source > qn_memory_bytes(memory) || wanted->bytes > qn_memory_bytes(memory) - wanted->source)
		goto put_memory;
	mutex_lock(&client->dma_lock);
	error = prepare(client, memory);
	if (error)
		goto unlock;
	error = -EAGAIN;
	copy = take_copy(client);
	if (!copy)
		goto unlock;
	error = submit(client, wanted, copy);
	if (error)
		give_back(copy);
unlock:
	mutex_unlock(&client->dma_lock);
put_memory:
	qn_memory_put(memory);
	return error;
}

/* NULL: there is none. Its place is taken until it is given back, or put back at the head. */
static struct qn_copy *take_done(struct qn_client *client)
{
	struct qn_copy *copy = NULL;
	unsigned long flags;

	spin_lock_irqsave(&client->port->event_lock, flags);
	if (client->done_count) {
		copy = &client->copies[client->done[client->done_head]];
		client->done_head = (client->done_head + 1) % QUOIT_NTB_DMA_DEPTH;
		client->done_count--;
	}
	spin_unlock_irqrestore(&client->port->event_lock, flags);
	return copy;
}

static void put_back(struct qn_copy *copy)
{
	struct qn_client *client = copy->client;
	unsigned long flags;

	spin_lock_irqsave(&client->port->event_lock, flags);
	client->done_head = (client->done_head + QUOIT_NTB_DMA_DEPTH - 1) % QUOIT_NTB_DMA_DEPTH;
	client->done[client->done_head] = copy - client->copies;
	client->done_count++;
	spin_unlock_irqrestore(&client->port->event_lock, flags);
}

ssize_t qn_copy_read(struct qn_client *client, char __user *to, size_t bytes)
{
	struct quoit_ntb_done done;
	struct qn_copy *copy;
	size_t count = 0;

	if (bytes < sizeof(done))
		return -EINVAL;
	while (count + sizeof(done) <= bytes && (copy = take_done(client))) {
		done = (struct quoit_ntb_done){ .cookie = copy->cookie, .status = copy->status };
		if (copy_to_user(to + count, &done, sizeof(done))) {
			put_back(copy);
			return count ?: -EFAULT;
		}
		give_back(copy);
		count += sizeof(done);
	}
	return count;
}

void qn_copy_release(struct qn_client *client)
{
	mutex_lock(&client->dma_lock);
	end_all(client);
	if (client->channel)
		dma_release_channel(client->channel);
	client->channel = NULL;
	forget_source(client);
	put_device(client->engine);
	client->engine = NULL;
	mutex_unlock(&client->dma_lock);
}
