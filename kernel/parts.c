// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A port that is divided: each part is a device and a port of its own, for clients that share the link and nothing
 * else. Part k of one end leads to part k of the other.
 *
 * Each window is cut into pieces of one size, as many as the least power of two above the number of parts. Piece k + 1
 * is part k's at both ends, so neither has to tell the other where its part starts; the first one has struct
 * qn_control. The chip leads the whole of a window to one run of bus addresses, set once for each epoch of the whole, and
 * an IOMMU leads each part's piece of the run to that part's memory, or nowhere.
 */
#include <linux/io.h>
#include <linux/log2.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "quoit_ntb_priv.h"

#define QN_DIVISION 0x716e7000u /* and how many parts */

struct qn_parts {
	u32 count;
	struct qn_port *ports[QN_PARTS_MAX];
	struct qn_run runs[QUOIT_NTB_WINDOWS];
	u64 piece_bytes[QUOIT_NTB_WINDOWS];
	struct qn_control *own; /* a page, which the peer writes; NULL: not in the run yet */
	struct qn_control __iomem *peer;
	bool is_told; /* that the other end is divided otherwise */
};

static_assert(sizeof(struct qn_control) <= PAGE_SIZE);

struct qn_port *qn_part(struct qn_port *whole, u32 number)
{
	return number < whole->parts->count ? whole->parts->ports[number] : NULL;
}

/* What the modules tell each other */

/* After all that was sent before, and before all that is sent, or rung, next. */
static void write_peer(u32 value, __le32 __iomem *to)
{
	wmb(); /* combined writes leave */
	writel(value, to);
	wmb(); /* and this one */
}

void qn_parts_begin(struct qn_port *whole)
{
	memset(whole->parts->own, 0, sizeof(*whole->parts->own));
}

void qn_parts_introduce(struct qn_port *whole)
{
	struct qn_parts *parts = whole->parts;

	write_peer(ilog2(parts->piece_bytes[0]), &parts->peer->piece_order);
	write_peer(QN_DIVISION + parts->count, &parts->peer->division);
}

/* Whether the other end is divided as this one is; it may not have said so yet. */
static bool is_alike(struct qn_port *whole)
{
	struct qn_parts *parts = whole->parts;
	u32 division = le32_to_cpu(READ_ONCE(parts->own->division));

	dma_rmb(); /* the rest came before it */
	if (division == QN_DIVISION + parts->count &&
	    le32_to_cpu(READ_ONCE(parts->own->piece_order)) == ilog2(parts->piece_bytes[0]))
		return true;
	if (division && !parts->is_told) {
		parts->is_told = true;
		dev_warn(&whole->ntb->dev, "the port at the other end is divided otherwise: no part has a link\n");
	}
	return false;
}

u32 qn_part_hear(struct qn_port *part)
{
	u32 word;

	if (!READ_ONCE(part->whole->is_up) || !is_alike(part->whole))
		return 0;
	word = le32_to_cpu(READ_ONCE(part->whole->parts->own->words[part->number].link));
	dma_rmb(); /* what it follows is read after it */
	return word ?: 1; /* the other end is there: only nobody wants the link */
}

bool qn_part_tell(struct qn_port *part, u32 word)
{
	struct qn_port *whole = part->whole;

	if (!READ_ONCE(whole->is_up))
		return false;
	write_peer(word, &whole->parts->peer->words[part->number].link);
	ntb_peer_db_set(whole->ntb, whole->link_bit);
	return true;
}

void qn_part_clear_pads(struct qn_port *part)
{
	struct qn_words *words = &part->whole->parts->own->words[part->number];

	memset(words->pads, 0, sizeof(words->pads));
}

u32 qn_part_pad(struct qn_port *part, u32 index)
{
	return le32_to_cpu(READ_ONCE(part->whole->parts->own->words[part->number].pads[index]));
}

void qn_part_write_pad(struct qn_port *part, u32 index, u32 value)
{
	write_peer(value, &part->whole->parts->peer->words[part->number].pads[index]);
}

/* With the link of the whole */

void qn_parts_kick(struct qn_port *whole)
{
	u32 i;

	for (i = 0; i < whole->parts->count; i++)
		qn_link_kick(whole->parts->ports[i]);
}

void qn_parts_lose(struct qn_port *whole)
{
	u32 i;

	for (i = 0; i < whole->parts->count; i++)
		qn_link_part_lost(whole->parts->ports[i]);
}

/* Windows */

int qn_part_link(struct qn_port *part, u32 window, struct qn_inbound *inbound)
{
	struct qn_parts *parts = part->whole->parts;

	return qn_memory_link(inbound->memory, inbound->offset, inbound->bytes, &parts->runs[window],
			      (part->number + 1) * parts->piece_bytes[window], &inbound->mapping);
}

static int make_runs(struct qn_port *whole)
{
	struct qn_parts *parts = whole->parts;
	struct device *dev = &whole->ntb->pdev->dev;
	u32 pieces = roundup_pow_of_two(parts->count + 1), window, count = 0;

	while (count < min(whole->inbound_count, whole->outbound_count) &&
	       whole->outbound[count].bytes >= pieces * PAGE_SIZE)
		count++;
	whole->inbound_count = count; /* others are left out */
	if (!count)
		return -EINVAL;
	for (window = 0; window < count; window++) {
		struct qn_run *run = &parts->runs[window];
		u64 bytes = rounddown_pow_of_two(whole->outbound[window].bytes);

		parts->piece_bytes[window] = bytes / pieces;
		if (!dma_iova_try_alloc(dev, &run->state, 0, bytes))
			return -EOPNOTSUPP;
		run->dev = dev;
		whole->inbound[window] = (struct qn_inbound){ .mapping.address = run->state.addr, .bytes = bytes };
	}
	return 0;
}

static int make_control(struct qn_port *whole)
{
	struct qn_parts *parts = whole->parts;
	struct qn_run *run = &parts->runs[0];
	struct qn_control *own = (void *)get_zeroed_page(GFP_KERNEL);
	int error;

	if (!own)
		return -ENOMEM;
	error = dma_iova_link(run->dev, &run->state, virt_to_phys(own), 0, PAGE_SIZE, DMA_BIDIRECTIONAL, 0);
	if (error) {
		free_page((unsigned long)own);
		return error;
	}
	parts->own = own;
	error = dma_iova_sync(run->dev, &run->state, 0, PAGE_SIZE);
	if (error)
		return error;
	parts->peer = ioremap_wc(whole->outbound[0].address, PAGE_SIZE);
	return parts->peer ? 0 : -ENOMEM;
}

static int make_part(struct qn_port *whole, u32 number)
{
	struct qn_parts *parts = whole->parts;
	u32 bit_count = hweight64(whole->valid_bits) / parts->count, skip = number * bit_count, window, i;
	u64 bits = whole->valid_bits;
	struct qn_port *part;
	int error;

	error = qn_port_make(whole->ntb, whole, &part);
	if (error)
		return error;
	parts->ports[number] = part;
	part->number = number;
	part->pad_count = QN_PART_PADS;
	for (i = 0; i < skip + bit_count; i++, bits &= bits - 1)
		if (i >= skip)
			part->valid_bits |= bits & -bits;
	part->inbound_count = whole->inbound_count;
	part->outbound_count = whole->inbound_count;
	for (window = 0; window < whole->inbound_count; window++) {
		part->outbound[window].bytes = parts->piece_bytes[window];
		part->outbound[window].address =
			whole->outbound[window].address + (number + 1) * parts->piece_bytes[window];
	}
	part->flush = &parts->peer->division;
	if (number)
		snprintf(part->name, sizeof(part->name), "%s.%u", whole->name, number);
	else
		strscpy(part->name, whole->name, sizeof(part->name));
	return 0;
}

int qn_parts_make(struct qn_port *whole, u32 count)
{
	struct qn_parts *parts;
	int error = -EINVAL;
	u32 i;

	if (count > QN_PARTS_MAX || count > hweight64(whole->valid_bits))
		goto say;
	parts = kzalloc(sizeof(*parts), GFP_KERNEL);
	if (!parts)
		return -ENOMEM;
	parts->count = count;
	whole->parts = parts;
	error = make_runs(whole);
	if (!error)
		error = make_control(whole);
	for (i = 0; i < count && !error; i++)
		error = make_part(whole, i);
	if (!error) {
		qn_link_divide(whole);
		return 0;
	}
say:
	dev_err(&whole->ntb->dev, "error %d: not divided into %u parts%s\n", error, count,
		error == -EOPNOTSUPP ? ", which needs an IOMMU and Linux 6.16" : "");
	return error;
}

static void end_part(struct qn_port *part)
{
	misc_deregister(&part->misc);
	qn_port_end(part);
	part->ntb = NULL;
	qn_signal(part, 0, true, NULL);
}

int qn_parts_register(struct qn_port *whole)
{
	struct qn_parts *parts = whole->parts;
	int error = 0;
	u32 i;

	for (i = 0; i < parts->count && !error; i++)
		error = qn_port_register(parts->ports[i]);
	if (!error)
		return 0;
	for (i--; i > 0; i--)
		end_part(parts->ports[i - 1]);
	return error;
}

/* The whole has no link any more, and kicks no part. */
void qn_parts_end(struct qn_port *whole)
{
	struct qn_parts *parts = whole->parts;
	u32 i;

	for (i = 0; i < parts->count; i++)
		end_part(parts->ports[i]);
}

void qn_parts_free(struct qn_port *whole)
{
	struct qn_parts *parts = whole->parts;
	u32 i;

	for (i = 0; i < parts->count && parts->ports[i]; i++) {
		cancel_delayed_work_sync(&parts->ports[i]->link_work);
		qn_port_put(parts->ports[i]);
	}
	if (parts->peer)
		iounmap(parts->peer);
	if (parts->own) {
		dma_iova_unlink(parts->runs[0].dev, &parts->runs[0].state, 0, PAGE_SIZE, DMA_BIDIRECTIONAL, 0);
		free_page((unsigned long)parts->own);
	}
	for (i = 0; i < QUOIT_NTB_WINDOWS; i++)
		if (parts->runs[i].dev)
			dma_iova_free(parts->runs[i].dev, &parts->runs[i].state);
	whole->parts = NULL;
	kfree(parts);
}
