// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The link as clients see it: up when clients of both ends want it.
 *
 * A chip tells that the cable carries, at best; that the peer's clients have gone, or its kernel stands still, it does
 * not tell. So the two modules tell each other, in the last scratchpad of each side, one word:
 *
 *   31..20 nonce  of this end: another one for each attempt to come up, 0: no client wants the link. Its highest bit
 *                 says that the port is divided: then it has no link with one that is not
 *   19..8  echo   the nonce of the other end that this end has taken; 0: none
 *   7..0   beat   another one each time the word is written, at least every QN_BEAT_MS
 *
 * An end is up when the other one echoes its nonce. It goes down when the other's nonce changes, or the echo of its own
 * one ends, or the beat stops, or the chip says so; then it takes another nonce and echoes nothing. It takes the nonce
 * of an other end that echoes nothing or its own nonce, never of one that lives in an epoch before: so either end goes
 * down once whenever the other does, and neither comes up before the other has been down. Before it echoes it clears
 * its scratchpads and sets its translations: what the other writes when it sees the echo finds them.
 *
 * The word follows the writes and doorbells of the epoch that it ends, so an end that reads it has received all that
 * was sent in it.
 *
 * A port that is divided has this link between the modules, which both always want, and each part another one, whose
 * word is in the memory that the modules have in common (parts.c) and needs no beat. There an end that no client wants
 * any more, or whose clients have died, ends it in order: it stops sending and tells nonce 0 beside the echo, and goes
 * down when the other end has answered by going down, or by another nonce if it had not come up. Until then the memory
 * behind its windows stays: what the other end still sends must not meet bus addresses that lead nowhere, and nobody
 * else gets them.
 */
#include <linux/io.h>
#include <linux/moduleparam.h>
#include <linux/random.h>

#include "quoit_ntb_priv.h"

#define QN_PEER        0
#define QN_BEAT_MS     100
#define QN_NONCE_SHIFT 20
#define QN_ECHO_SHIFT  8
#define QN_NONCE_MASK  0xfffu
#define QN_DIVIDED     0x800u /* of a nonce: by a port that is divided */

static unsigned int patience_ms = 1000;
module_param(patience_ms, uint, 0644);
MODULE_PARM_DESC(patience_ms, "a peer that is silent for longer is dead");

static u32 nonce_of(u32 word)
{
	return word >> QN_NONCE_SHIFT;
}

static u32 echo_of(u32 word)
{
	return word >> QN_ECHO_SHIFT & QN_NONCE_MASK;
}

static void take_nonce(struct qn_link *link)
{
	u32 least = link->own & QN_DIVIDED;

	link->own = least | ((link->own - least) % (QN_DIVIDED - 2) + 1); /* never all ones: nobody answers */
}

void qn_link_kick(struct qn_port *port)
{
	mod_delayed_work(qn_works, &port->link_work, 0);
}

void qn_link_lose(struct qn_port *port)
{
	set_bit(0, &port->link.is_lost);
	qn_link_kick(port);
}

/*
 * The peer's word; 0: the cable carries nothing, or the peer is silent. Time in which this end itself did not look is no
 * silence: the whole machine may have stood still, and the peer with it.
 */
static u32 hear(struct qn_port *port)
{
	struct qn_link *link = &port->link;
	unsigned long now = jiffies, gap = now - link->looked_at;
	u32 word;

	if (port->whole)
		return qn_part_hear(port);
	word = ntb_link_is_up(port->ntb, NULL, NULL) ? ntb_spad_read(port->ntb, port->link_pad) : U32_MAX;
	link->looked_at = now;
	if (word == U32_MAX) { /* nobody answers */
		set_bit(0, &link->is_cut);
		return 0;
	}
	if (nonce_of(word) && (nonce_of(word) ^ link->own) & QN_DIVIDED) {
		dev_warn_once(&port->ntb->dev, "of this port and its peer only one is divided: they have no link\n");
		return 0;
	}
	if (word != link->heard) {
		link->heard = word;
		link->heard_at = now;
	} else if (link->taken && gap > msecs_to_jiffies(QN_BEAT_MS)) {
		link->heard_at += gap - msecs_to_jiffies(QN_BEAT_MS);
	}
	return time_after(now, link->heard_at + msecs_to_jiffies(READ_ONCE(patience_ms))) ? 0 : word;
}

static void tell(struct qn_port *port)
{
	struct qn_link *link = &port->link;
	u32 own = port->wish_count && !link->is_ending ? link->own : 0;
	u32 word = own << QN_NONCE_SHIFT | link->taken << QN_ECHO_SHIFT | ++link->beat;
	bool is_news = (word ^ link->told) >> QN_ECHO_SHIFT;

	if (port->whole) { /* the whole's beat is its own */
		if (is_news && qn_part_tell(port, word))
			link->told = word;
		return;
	}
	link->told = word;
	ntb_peer_spad_write(port->ntb, QN_PEER, port->link_pad, word);
	if (is_news)
		ntb_peer_db_set(port->ntb, port->link_bit);
}

/* Clients see it in the page, and then by their eventfds. event_lock is held. */
static void publish(struct qn_port *port)
{
	/* what was done before is seen with it; pairs with the acquire of whoever reads the page */
	smp_store_release(&port->state->link, (u64)port->epoch << 1 | port->is_up);
}

/* No call and no fault of a client runs meanwhile. Mappings are filled again by faults, according to the new state. */
static void set_up(struct qn_port *port, bool is_up)
{
	struct qn_client *client;
	unsigned long flags;

	spin_lock_irqsave(&port->event_lock, flags);
	port->is_up = is_up;
	if (is_up)
		port->epoch++;
	spin_unlock_irqrestore(&port->event_lock, flags);
	list_for_each_entry(client, &port->clients, node)
		qn_revoke(client);
}

static void tell_clients(struct qn_port *port)
{
	unsigned long flags;

	spin_lock_irqsave(&port->event_lock, flags);
	publish(port);
	spin_unlock_irqrestore(&port->event_lock, flags);
}

static void come_up(struct qn_port *port)
{
	set_up(port, true);
	tell_clients(port);
	if (port->parts)
		qn_parts_introduce(port);
}

/* Nothing that this end has sent arrives afterwards. */
static void stop(struct qn_port *port)
{
	struct qn_client *client;

	set_up(port, false);
	list_for_each_entry(client, &port->clients, node)
		qn_copy_end(client);
	if (port->flush)
		readl(port->flush); /* behind all that was posted */
}

bool qn_link_is_seen_up(struct qn_port *port)
{
	return READ_ONCE(port->state->link) & 1;
}

static void go_down(struct qn_port *port)
{
	struct qn_link *link = &port->link;
	u32 window;

	clear_bit(0, &link->is_lost);
	for (window = 0; window < port->inbound_count; window++) {
		if (qn_link_is_seen_up(port) && !port->parts)
			qn_inbound_lose(port, window);
		else
			qn_inbound_suspend(port, window);
		if (port->whole)
			qn_inbound_drop(&port->left[window]);
	}
	if (port->parts)
		qn_parts_lose(port);
	if (port->is_up)
		stop(port);
	tell_clients(port);
	link->is_ending = false;
	link->taken = 0;
	take_nonce(link);
}

void qn_link_part_lost(struct qn_port *part)
{
	bool was_up;

	down_write_nested(&part->alive, SINGLE_DEPTH_NESTING);
	mutex_lock_nested(&part->lock, SINGLE_DEPTH_NESTING);
	was_up = qn_link_is_seen_up(part);
	go_down(part);
	part->link.told = 0; /* the peer's module clears its words */
	mutex_unlock(&part->lock);
	up_write(&part->alive);
	if (was_up)
		qn_signal(part, 0, true, NULL);
}

void qn_link_unwanted(struct qn_port *port)
{
	if (!port->link.taken)
		return;
	if (port->whole)
		port->link.is_ending = true;
	else
		set_bit(0, &port->link.is_lost); /* even if the next client wants it again at once */
}

/*
 * False: the bridge has failed, and nothing is echoed, since a translation of an epoch before may be there. It is tried
 * again with the next beat.
 */
static bool take(struct qn_port *port, u32 nonce)
{
	u32 i;

	clear_bit(0, &port->link.is_cut);
	if (port->parts)
		qn_parts_begin(port);
	if (port->whole)
		qn_part_clear_pads(port);
	for (i = 0; !port->whole && i < port->pad_count; i++)
		ntb_spad_write(port->ntb, i, 0);
	for (i = 0; i < port->inbound_count; i++)
		qn_inbound_resume(port, i);
	if (test_bit(0, &port->link.is_lost))
		return false;
	port->link.taken = nonce;
	return true;
}

/* What this end has to do, by the peer's word. port->lock is held. */
static enum qn_step { QN_STAY, QN_END, QN_DOWN, QN_TAKE, QN_UP } next_step(struct qn_port *port, u32 word)
{
	struct qn_link *link = &port->link;
	bool is_lost = !word || (!port->wish_count && !link->is_ending);
	bool is_own = echo_of(word) == link->own;

	if (link->taken) {
		if (is_lost || test_bit(0, &link->is_lost) || nonce_of(word) != link->taken ||
		    (!is_own && (port->is_up || echo_of(word))))
			return QN_DOWN;
		if (link->is_ending)
			return nonce_of(link->told) ? QN_END : QN_STAY;
		return is_own && !port->is_up ? QN_UP : QN_STAY;
	}
	if (word && is_own && !nonce_of(word))
		return QN_DOWN; /* the other end waits for another nonce */
	is_lost |= test_and_clear_bit(0, &link->is_lost);
	return !is_lost && nonce_of(word) && (is_own || !echo_of(word)) ? QN_TAKE : QN_STAY;
}

static void beat(struct qn_port *port)
{
	tell(port);
	if (port->parts)
		qn_parts_kick(port);
	if (port->wish_count && !port->whole)
		queue_delayed_work(qn_works, &port->link_work, msecs_to_jiffies(QN_BEAT_MS));
}

/*
 * Beats, and returns true, unless a step is due. So a client that maps memory through a slow IOMMU, for which it holds
 * alive for reading, does not keep the peer waiting for longer than its patience.
 */
static bool stay(struct qn_port *port)
{
	bool stays = true;

	down_read(&port->alive);
	if (port->is_gone)
		goto release;
	if (port->link_bit)
		qn_doorbell_arm_link(port);
	mutex_lock(&port->lock);
	stays = next_step(port, hear(port)) == QN_STAY;
	if (stays)
		beat(port);
	mutex_unlock(&port->lock);
release:
	up_read(&port->alive);
	return stays;
}

static bool step(struct qn_port *port)
{
	bool has_changed = false;
	u32 word;

	down_write(&port->alive);
	if (port->is_gone)
		goto release;
	mutex_lock(&port->lock);
	word = hear(port);
	switch (next_step(port, word)) {
	case QN_END:
		stop(port);
		break;
	case QN_DOWN:
		has_changed = qn_link_is_seen_up(port);
		go_down(port);
		break;
	case QN_TAKE:
		if (!take(port, nonce_of(word)) || echo_of(word) != port->link.own)
			break;
		fallthrough;
	case QN_UP:
		come_up(port);
		has_changed = true;
		break;
	case QN_STAY:
		break;
	}
	beat(port);
	mutex_unlock(&port->lock);
release:
	up_write(&port->alive);
	return has_changed;
}

static void link_work(struct work_struct *work)
{
	struct qn_port *port = container_of(to_delayed_work(work), struct qn_port, link_work);

	if (!stay(port) && step(port))
		qn_signal(port, 0, true, NULL);
}

void qn_link_event(void *context)
{
	struct qn_port *port = context;

	if (ntb_link_is_up(port->ntb, NULL, NULL)) {
		qn_link_kick(port);
		return;
	}
	set_bit(0, &port->link.is_cut);
	qn_link_lose(port);
}

void qn_link_init(struct qn_port *port)
{
	INIT_DELAYED_WORK(&port->link_work, link_work);
	port->link.own = get_random_u32() % QN_DIVIDED;
	take_nonce(&port->link);
	publish(port);
}

void qn_link_divide(struct qn_port *port)
{
	port->link.own |= QN_DIVIDED;
	port->wish_count = 1;
}

void qn_link_end(struct qn_port *port)
{
	port->wish_count = 0;
	go_down(port);
	tell(port);
}
