/* SPDX-License-Identifier: BSD-3-Clause */
/* ring_mesh.h - for tests: whole rings of hosts in one process, real rings over modelled queues, links and memory.
 *
 * Each step picks a random host and a random action: deliver a frame, advertise a credit, read a credit, submit,
 * retransmit, send a reply, take completions, attend to a link. Hosts differ in speed, some hosts have no PE, half of
 * the seeds start their flows just before the numbers wrap. The model knows each operation by its trace number: what it
 * must carry, where it must land, what it must return. Each source PE owns a region of each PE, so the order of a pair
 * decides its content; bytes only count up, so a get can be judged while puts are outstanding. A put that overlaps no
 * earlier outstanding one may land, as the proxy would do it. At the end all memory must equal the reference.
 * Links: what is written to a cut link vanishes. The two ends notice at different times, or one of them only through
 * the other; they go down, zero their memory, and come up again, each at its own time.
 */
#ifndef QUOIT_RING_RING_MESH_H
#define QUOIT_RING_RING_MESH_H

#include "ring/ring_mesh_model.h"

/* ---- links ---- */

static struct link *link_of(struct mesh *mesh, uint32_t host, enum quoit_side side)
{
    return &mesh->links[side == QUOIT_RIGHT ? host : quoit_ring_neighbour(mesh->host_count, QUOIT_LEFT, host)];
}

static bool is_end_up(const struct mesh *mesh, uint32_t host, enum quoit_side side)
{
    return quoit_ring_link_is_up(mesh->hosts[host].ring, side);
}

/* True when the link is as if no fault had ever happened: it loses nothing and both ends consider it up. */
static bool is_link_sound(const struct mesh *mesh, uint32_t link)
{
    uint32_t next = quoit_ring_neighbour(mesh->host_count, QUOIT_RIGHT, link);
    return !mesh->links[link].is_cut && is_end_up(mesh, link, QUOIT_RIGHT) && is_end_up(mesh, next, QUOIT_LEFT) &&
           !mesh->hosts[link].must_notice[QUOIT_RIGHT] && !mesh->hosts[next].must_notice[QUOIT_LEFT];
}

static void cut_link(struct mesh *mesh, uint32_t link)
{
    uint32_t next = quoit_ring_neighbour(mesh->host_count, QUOIT_RIGHT, link);
    mesh->links[link].is_cut = true;
    mesh->faults.cut_count--;
    bool is_left_up = is_end_up(mesh, link, QUOIT_RIGHT);
    bool is_right_up = is_end_up(mesh, next, QUOIT_LEFT);
    uint32_t blind = mesh->faults.is_one_end_blind && is_left_up && is_right_up ? choose(mesh, 3) : 2;
    if (is_left_up && blind != 0)
        mesh->hosts[link].must_notice[QUOIT_RIGHT] = true;
    if (is_right_up && blind != 1)
        mesh->hosts[next].must_notice[QUOIT_LEFT] = true;
}

/* An end goes down. Whatever the ends had prepared for coming up is void. */
static void take_down(struct mesh *mesh, uint32_t h, enum quoit_side side)
{
    uint32_t neighbour = quoit_ring_neighbour(mesh->host_count, side, h);
    enum quoit_side there = quoit_ring_opposite(side);
    quoit_ring_link_down(mesh->hosts[h].ring, side);
    mesh->hosts[h].must_notice[side] = false;
    mesh->hosts[h].is_clean[side] = false;
    mesh->hosts[neighbour].is_clean[there] = false;
    if (!mesh->faults.is_one_end_blind && is_end_up(mesh, neighbour, there))
        mesh->hosts[neighbour].must_notice[there] = true;
}

/* What a proxy does about the link of one side. */
static bool attend(struct mesh *mesh, uint32_t h, enum quoit_side side)
{
    struct host *host = &mesh->hosts[h];
    struct host *neighbour = &mesh->hosts[quoit_ring_neighbour(mesh->host_count, side, h)];
    enum quoit_side there = quoit_ring_opposite(side);
    struct link *link = link_of(mesh, h, side);
    if (quoit_ring_link_is_up(host->ring, side)) {
        if (!host->must_notice[side])
            return false;
        take_down(mesh, h, side);
        return true;
    }
    if (!host->is_clean[side]) {
        if (quoit_ring_link_is_up(neighbour->ring, there)) {
            neighbour->must_notice[there] |= choose(mesh, 4) == 0; /* eventually its port reports it */
            return true;
        }
        memset(host->inbound[side], 0, sizeof host->inbound[side]);
        memset(host->credit_word[side], 0, sizeof host->credit_word[side]);
        host->is_clean[side] = true;
        link->epoch += neighbour->is_clean[there];
        return true;
    }
    if (link->is_cut || !neighbour->is_clean[there])
        return false;
    quoit_ring_link_up(host->ring, side, link->epoch);
    return true;
}

static uint32_t count_trouble(const struct mesh *mesh)
{
    uint32_t count = 0;
    for (uint32_t link = 0; link < mesh->host_count; link++)
        count += !is_link_sound(mesh, link);
    return count;
}

/* Cuts a link, or restores one. */
static void strike(struct mesh *mesh)
{
    uint32_t link = choose(mesh, mesh->host_count);
    if (mesh->links[link].is_cut)
        mesh->links[link].is_cut = mesh->faults.is_last_cut_forever && mesh->faults.cut_count == 0;
    else if (mesh->faults.cut_count > 0 && (!is_link_sound(mesh, link) || count_trouble(mesh) < mesh->faults.dead_max))
        cut_link(mesh, link);
}

/* Restores cut links, all but one if the last cut is for ever. True if it did. */
static bool restore(struct mesh *mesh)
{
    bool has_any = false;
    bool is_one_left = !mesh->faults.is_last_cut_forever;
    for (uint32_t link = 0; link < mesh->host_count; link++) {
        if (!mesh->links[link].is_cut)
            continue;
        if (is_one_left) {
            mesh->links[link].is_cut = false;
            has_any = true;
        }
        is_one_left = true;
    }
    return has_any;
}

/* ---- actions: each returns whether anything moved ---- */

/* The deadlock argument rests on this: somewhere in each cycle of queues a slot is free, or will be at once because it
 * holds a link-state update. Where a link is not sound there is no cycle. */
static void check_bubble(const struct mesh *mesh, enum quoit_side side, enum quoit_class class)
{
    uint32_t free_count = 0;
    for (uint32_t h = 0; h < mesh->host_count; h++)
        if (!is_link_sound(mesh, h))
            return;
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        uint32_t next = quoit_ring_neighbour(mesh->host_count, side, h);
        enum quoit_side there = quoit_ring_opposite(side);
        uint64_t sent = mesh->hosts[h].ring->outbound[side][class].sent_total;
        uint64_t consumed = mesh->hosts[next].ring->inbound[there][class].consumed_total;
        require(sent - consumed <= mesh->config.slot_count, "host %u wrote a slot that was not free", h);
        free_count += mesh->config.slot_count - (uint32_t)(sent - consumed);
        for (uint64_t at = consumed; at < sent; at++)
            free_count += mesh->hosts[next].inbound[there][class][at % mesh->config.slot_count].frame.kind ==
                          QUOIT_FRAME_TOPOLOGY;
    }
    require(free_count >= 1, "no bubble left: side %d class %d", side, class);
}

/* Writes the payload of a put directly to its destination, as the proxy does for large ones. */
static void land(struct mesh *mesh, struct link *link, struct quoit_frame *frame, const uint8_t *payload)
{
    if (!is_put(frame) || (!mesh->faults.is_eager_to_land && choose(mesh, 2) == 0))
        return;
    /* What is executed may be complete, and overwritten by later operations of its source. */
    require(op_of(mesh, frame)->execute_count == 0, "operation %u lands after it was executed", frame->trace);
    if (!link->is_cut)
        store_payload(mesh->pes[global_pe(mesh, frame->dest_host, frame->dest_pe)].segment, frame, payload);
    frame->flags |= QUOIT_FRAME_LANDED;
    mesh->landing_count++;
    if (mesh->faults.is_tearing && mesh->faults.cut_count > 0 && !link->is_cut && choose(mesh, 20) == 0 &&
        count_trouble(mesh) < mesh->faults.dead_max)
        cut_link(mesh, (uint32_t)(link - mesh->links));
}

static void write_slot(struct mesh *mesh, uint32_t host, const struct quoit_verdict *verdict, const uint8_t *payload)
{
    uint32_t next = quoit_ring_neighbour(mesh->host_count, verdict->side, host);
    enum quoit_side there = quoit_ring_opposite(verdict->side);
    struct slot *slot = &mesh->hosts[next].inbound[there][verdict->class][verdict->slot_index];
    struct link *link = link_of(mesh, host, verdict->side);
    struct quoit_frame frame = verdict->frame;
    require(is_end_up(mesh, host, verdict->side), "host %u sends through a link that is down", host);
    require(!verdict->may_land || frame.dest_host == next, "host %u lands at another than its neighbour", host);
    require(quoit_frame_class(frame.kind) == verdict->class, "class of kind %u", frame.kind);
    if (verdict->may_land)
        land(mesh, link, &frame, payload);
    if (link->is_cut) {
        mesh->lost_count++;
        return;
    }
    slot->frame = frame;
    memcpy(slot->payload, payload, quoit_frame_payload_bytes(&frame));
    check_bubble(mesh, verdict->side, verdict->class);
}

static void execute_request(struct mesh *mesh, struct quoit_ring *ring, const struct quoit_frame *frame,
                            const uint8_t *payload)
{
    struct op *op = op_of(mesh, frame);
    struct quoit_frame expected = op->frame;
    expected.sequence = frame->sequence;
    expected.token = frame->token;
    expected.flow_sequence = frame->flow_sequence;
    expected.topology_version = frame->topology_version;
    /* what the ring and the last sender add */
    expected.flags |= frame->flags & (QUOIT_FRAME_RIGHT | QUOIT_FRAME_LANDED | QUOIT_FRAME_ORDERED);
    require(memcmp(&expected, frame, sizeof expected) == 0, "operation %llu arrived changed",
            (unsigned long long)frame->trace);
    require(memcmp(op->payload, payload, quoit_frame_payload_bytes(frame)) == 0, "payload of %llu",
            (unsigned long long)frame->trace);
    require(op->execute_count++ == 0, "operation %llu executed again", (unsigned long long)frame->trace);
    uint32_t *last = &mesh->executed_last[op->source_pe][op->dest_pe];
    require(*last < frame->trace, "order: %llu after %u", (unsigned long long)frame->trace, *last);
    *last = (uint32_t)frame->trace;
    op->value = execute(mesh->pes[op->dest_pe].segment, frame, payload);
    if (quoit_frame_needs_response(frame->kind))
        quoit_ring_reply(ring, frame, op->value);
}

static void take_response(struct mesh *mesh, const struct quoit_verdict *verdict, const uint8_t *payload)
{
    const struct quoit_frame *frame = &verdict->frame;
    struct op *op = op_of(mesh, frame);
    require(verdict->cookie == frame->trace, "cookie %llu", (unsigned long long)verdict->cookie);
    require(!op->has_response, "operation %llu responded again", (unsigned long long)frame->trace);
    require(op->execute_count == 1, "response before execution of %llu", (unsigned long long)frame->trace);
    require(frame->dest_pe == op->frame.source_pe, "response for PE %u", frame->dest_pe);
    op->has_response = true;
    if (frame->kind == QUOIT_FRAME_VALUE) {
        op->returned = frame->operand;
        require(frame->operand == op->value, "value of %llu", (unsigned long long)frame->trace);
        require(!op->is_value_known || op->value == op->value_expected, "fetched %llx instead of %llx",
                (unsigned long long)op->value, (unsigned long long)op->value_expected);
        return;
    }
    uint8_t now[CHUNK_BYTES];
    gather(mesh->pes[op->dest_pe].reference, &op->frame, op->frame.kind == QUOIT_FRAME_GET_STRIDED, now);
    require(frame->bytes == op->frame.bytes, "bytes of %llu", (unsigned long long)frame->trace);
    require(memcmp(payload, op->snapshot, frame->bytes) == 0, "data of %llu", (unsigned long long)frame->trace);
    for (uint32_t i = 0; i < frame->bytes; i++)
        require((uint8_t)(payload[i] - op->before[i]) <= (uint8_t)(now[i] - op->before[i]),
                "get %llu byte %u is %u: not between %u and %u", (unsigned long long)frame->trace, i, payload[i],
                op->before[i], now[i]);
}

static bool deliver(struct mesh *mesh, uint32_t h, enum quoit_side side, enum quoit_class class)
{
    struct host *host = &mesh->hosts[h];
    uint64_t expected = quoit_ring_expected(host->ring, side, class);
    const struct slot *slot = &host->inbound[side][class][(expected - 1) % mesh->config.slot_count];
    if (!is_end_up(mesh, h, side) || slot->frame.sequence != expected)
        return false;
    struct quoit_verdict verdict;
    enum quoit_status status = quoit_ring_receive(host->ring, side, class, &slot->frame, mesh->now_ns, &verdict);
    require(status == QUOIT_OK, "host %u refused a frame of kind %u", h, slot->frame.kind);
    if (verdict.kind == QUOIT_VERDICT_NO_RESOURCE)
        return false;
    if (verdict.kind == QUOIT_VERDICT_SEND)
        write_slot(mesh, h, &verdict, slot->payload);
    else if (verdict.kind == QUOIT_VERDICT_DELIVER && class == QUOIT_CLASS_REQUEST)
        execute_request(mesh, host->ring, &verdict.frame, slot->payload);
    else if (verdict.kind == QUOIT_VERDICT_DELIVER)
        take_response(mesh, &verdict, slot->payload);
    return true;
}

static bool advertise_credit(struct mesh *mesh, uint32_t h, enum quoit_side side, enum quoit_class class, bool is_idle)
{
    struct quoit_ring *ring = mesh->hosts[h].ring;
    if (!quoit_ring_credit_due(ring, side, class, is_idle))
        return false;
    uint32_t neighbour = quoit_ring_neighbour(mesh->host_count, side, h);
    require(is_end_up(mesh, h, side), "host %u advertises a credit through a link that is down", h);
    if (!link_of(mesh, h, side)->is_cut)
        mesh->hosts[neighbour].credit_word[quoit_ring_opposite(side)][class] =
            quoit_ring_consumed_total(ring, side, class);
    quoit_ring_credit_advertised(ring, side, class);
    return true;
}

static bool read_credit(struct mesh *mesh, uint32_t h, enum quoit_side side, enum quoit_class class)
{
    struct host *host = &mesh->hosts[h];
    uint64_t total = host->credit_word[side][class];
    if ((mesh->is_deaf && h == 0) || !is_end_up(mesh, h, side))
        return false;
    bool is_new = total != host->ring->outbound[side][class].credited_total;
    require(quoit_ring_credit(host->ring, side, class, total) == QUOIT_OK, "host %u refused a credit", h);
    return is_new;
}

static bool submit(struct mesh *mesh, uint32_t source)
{
    struct pe *pe = &mesh->pes[source];
    if (pe->offered == NO_OP) {
        if (pe->left_count == 0 || pe->under_way_count >= pe->under_way_max)
            return false;
        pe->offered = make_op(mesh, source);
    }
    struct op *op = &mesh->ops[pe->offered];
    struct quoit_verdict verdict;
    quoit_ring_submit(mesh->hosts[pe->host].ring, &op->frame, op->source_pe + op->dest_pe, op->frame.trace,
                      mesh->now_ns, &verdict);
    if (verdict.kind == QUOIT_VERDICT_NO_RESOURCE)
        return false;
    require(verdict.kind == QUOIT_VERDICT_SEND, "verdict %d", verdict.kind);
    write_slot(mesh, pe->host, &verdict, op->payload);
    pe->offered = NO_OP;
    pe->under_way_count++;
    return true;
}

static bool send_again(struct mesh *mesh, uint32_t h)
{
    struct quoit_verdict verdict;
    quoit_ring_next_resend(mesh->hosts[h].ring, mesh->now_ns, &verdict);
    if (verdict.kind == QUOIT_VERDICT_NO_RESOURCE)
        return false;
    require(verdict.cookie == verdict.frame.trace, "cookie %llu", (unsigned long long)verdict.cookie);
    write_slot(mesh, h, &verdict, op_of(mesh, &verdict.frame)->payload);
    mesh->resend_count++;
    return true;
}

static bool send_next_reply(struct mesh *mesh, uint32_t h)
{
    struct quoit_verdict verdict;
    uint8_t payload[CHUNK_BYTES] = {0};
    quoit_ring_next_reply(mesh->hosts[h].ring, mesh->now_ns, &verdict);
    if (verdict.kind == QUOIT_VERDICT_NO_RESOURCE)
        return false;
    if (verdict.frame.kind == QUOIT_FRAME_DATA) {
        struct op *op = op_of(mesh, &verdict.frame);
        uint32_t request_due = global_pe(mesh, h, verdict.frame.source_pe);
        require(request_due == op->dest_pe, "data of %llu is read from PE %u", (unsigned long long)verdict.frame.trace,
                request_due);
        gather(mesh->pes[request_due].segment, &verdict.frame, verdict.frame.size != 0, payload);
        memcpy(op->snapshot, payload, sizeof payload);
    }
    write_slot(mesh, h, &verdict, payload);
    return true;
}

static bool complete(struct mesh *mesh, uint32_t h)
{
    uint64_t cookie;
    bool has_any = false;
    while (quoit_ring_next_completion(mesh->hosts[h].ring, &cookie)) {
        require(cookie >= 1 && cookie <= mesh->op_count, "cookie %llu", (unsigned long long)cookie);
        struct op *op = &mesh->ops[cookie - 1];
        bool needs_response = quoit_frame_needs_response(op->frame.kind);
        require(op->source_pe >= mesh->hosts[h].pe_first && mesh->pes[op->source_pe].host == h, "host of %llu",
                (unsigned long long)cookie);
        require(!op->is_complete, "operation %llu complete again", (unsigned long long)cookie);
        require(op->execute_count == 1, "operation %llu complete before execution", (unsigned long long)cookie);
        require(op->has_response == needs_response, "operation %llu complete without its response",
                (unsigned long long)cookie);
        uint32_t *last = &mesh->completed_last[needs_response][op->source_pe][op->dest_pe];
        require(*last < cookie, "completion: %llu after %u", (unsigned long long)cookie, *last);
        *last = (uint32_t)cookie;
        op->is_complete = true;
        mesh->pes[op->source_pe].under_way_count--;
        mesh->complete_count++;
        has_any = true;
    }
    return has_any;
}

/* ---- running ---- */

static bool act(struct mesh *mesh, uint32_t h, enum action action)
{
    enum quoit_side side = (enum quoit_side)choose(mesh, QUOIT_SIDE_COUNT);
    enum quoit_class class = (enum quoit_class)choose(mesh, QUOIT_CLASS_COUNT);
    switch (action) {
    case DELIVER:
        return deliver(mesh, h, side, class);
    case ADVERTISE_CREDIT:
        return advertise_credit(mesh, h, side, class, choose(mesh, mesh->lazy) == 0);
    case READ_CREDIT:
        return read_credit(mesh, h, side, class);
    case SUBMIT:
        if (mesh->pe_counts[h] == 0)
            return false;
        return submit(mesh, global_pe(mesh, h, choose(mesh, mesh->pe_counts[h])));
    case RETRANSMIT:
        return send_again(mesh, h);
    case SEND_REPLY:
        return send_next_reply(mesh, h);
    case ATTEND:
        return attend(mesh, h, side);
    default:
        return complete(mesh, h);
    }
}

static uint32_t pick_weighted(struct mesh *mesh, const uint32_t *weights, uint32_t sum)
{
    uint32_t at = choose(mesh, sum);
    uint32_t i = 0;
    while (at >= weights[i])
        at -= weights[i++];
    return i;
}

static bool step(struct mesh *mesh)
{
    uint32_t weights[HOSTS_MAX];
    uint32_t action_sum = 0;
    for (uint32_t h = 0; h < mesh->host_count; h++)
        weights[h] = mesh->hosts[h].weight;
    for (int i = 0; i < ACTION_COUNT; i++)
        action_sum += mesh->action_weights[i];
    uint32_t h = pick_weighted(mesh, weights, mesh->weight_sum);
    enum action action = (enum action)pick_weighted(mesh, mesh->action_weights, action_sum);
    mesh->now_ns += choose(mesh, 8);
    mesh->step_count++;
    if (mesh->faults.period > 0 && choose(mesh, mesh->faults.period) == 0)
        strike(mesh);
    bool has_moved = act(mesh, h, action);
    if (has_moved)
        quoit_ring_check_invariants(mesh->hosts[h].ring);
    return has_moved;
}

/* Every action of every host once, with all credits advertised. Pauses of transit are over by then. */
static bool sweep(struct mesh *mesh)
{
    bool has_moved = false;
    mesh->now_ns += mesh->config.transit_pause_after_ns + mesh->config.transit_pause_ns;
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        for (int queue = 0; queue < QUOIT_SIDE_COUNT * QUOIT_CLASS_COUNT; queue++) {
            enum quoit_side side = (enum quoit_side)(queue & 1);
            enum quoit_class class = (enum quoit_class)(queue >> 1);
            has_moved |= deliver(mesh, h, side, class);
            has_moved |= advertise_credit(mesh, h, side, class, true);
            has_moved |= read_credit(mesh, h, side, class);
        }
        has_moved |= attend(mesh, h, QUOIT_LEFT);
        has_moved |= attend(mesh, h, QUOIT_RIGHT);
        has_moved |= send_again(mesh, h);
        for (uint32_t i = 0; i < mesh->pe_counts[h]; i++)
            has_moved |= submit(mesh, global_pe(mesh, h, i));
        has_moved |= send_next_reply(mesh, h);
        has_moved |= complete(mesh, h);
        quoit_ring_check_invariants(mesh->hosts[h].ring);
    }
    return has_moved;
}

static bool is_all_done(const struct mesh *mesh)
{
    for (uint32_t i = 0; i < mesh->pe_count; i++)
        if (mesh->pes[i].left_count > 0 || mesh->pes[i].offered != NO_OP || mesh->pes[i].under_way_count > 0)
            return false;
    return true;
}

/* A pause may have just begun in one sweep, so only several sweeps in a row without a move are a deadlock. */
static bool can_move(struct mesh *mesh)
{
    for (int i = 0; i < 4; i++)
        if (sweep(mesh))
            return true;
    return false;
}

static void run_until_done(struct mesh *mesh)
{
    uint32_t idle_count = 0;
    while (!is_all_done(mesh)) {
        idle_count = step(mesh) ? 0 : idle_count + 1;
        if (idle_count == STEPS_IDLE_MAX) {
            require(can_move(mesh) || restore(mesh),
                    "deadlock after %llu steps: %u hosts, %u slots, %u of %u operations complete",
                    (unsigned long long)mesh->step_count, mesh->host_count, mesh->config.slot_count,
                    mesh->complete_count, mesh->op_count);
            idle_count = 0;
        }
        require(mesh->step_count < STEPS_MAX, "livelock: %u of %u operations complete", mesh->complete_count,
                mesh->op_count);
    }
}

/* All hosts agree on the state of all links, and it is correct. */
static void check_topology(const struct mesh *mesh)
{
    struct quoit_ring_topology first, topology;
    uint32_t cut_count = 0;
    quoit_ring_topology(mesh->hosts[0].ring, &first);
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        cut_count += mesh->links[h].is_cut;
        quoit_ring_topology(mesh->hosts[h].ring, &topology);
        topology.cut_count = first.cut_count; /* how often it seemed so depends on the order of updates */
        require(memcmp(&topology, &first, sizeof first) == 0, "host %u: version %u, %u dead; host 0: %u, %u", h,
                topology.topology_version, topology.dead_count, first.topology_version, first.dead_count);
    }
    require(first.dead_count == cut_count, "%u links are cut, %u known", cut_count, first.dead_count);
    require(cut_count == 0 || mesh->links[first.dead_links[0]].is_cut, "link %u is not cut", first.dead_links[0]);
}

/* Additions are positive, so no two fetches of a counter may return the same. */
static void check_fetched(const struct mesh *mesh)
{
    for (uint32_t i = 0; i < mesh->op_count; i++)
        for (uint32_t j = 0; j < i; j++) {
            const struct op *a = &mesh->ops[i], *b = &mesh->ops[j];
            bool is_same = a->frame.kind == QUOIT_FRAME_AMO_FETCH && b->frame.kind == QUOIT_FRAME_AMO_FETCH &&
                           a->dest_pe == b->dest_pe && a->frame.offset == b->frame.offset &&
                           a->frame.offset < COUNTER_COUNT * 8;
            require(!is_same || a->returned != b->returned, "operations %u and %u fetched the same", i + 1, j + 1);
        }
}

static void check_end(struct mesh *mesh)
{
    mesh->faults.cut_count = 0;
    restore(mesh);
    while (can_move(mesh))
        ;
    require(mesh->complete_count == mesh->op_count, "%u of %u complete", mesh->complete_count, mesh->op_count);
    for (uint32_t i = 0; i < mesh->op_count; i++)
        require(mesh->ops[i].execute_count == 1 && mesh->ops[i].is_complete, "operation %u", i + 1);
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        const struct quoit_ring *ring = mesh->hosts[h].ring;
        require(quoit_ring_is_quiescent(ring), "host %u is not quiescent", h);
        for (int side = 0; side < QUOIT_SIDE_COUNT; side++)
            for (int c = 0; c < QUOIT_CLASS_COUNT; c++)
                require(quoit_ring_free_slots(&ring->outbound[side][c], mesh->config.slot_count) ==
                            mesh->config.slot_count,
                        "host %u side %d class %d lost a credit", h, side, c);
    }
    check_topology(mesh);
    check_fetched(mesh);
    for (uint32_t i = 0; i < mesh->pe_count; i++)
        require(memcmp(mesh->pes[i].segment, mesh->pes[i].reference, SEGMENT_BYTES) == 0, "memory of PE %u", i);
}

/* ---- making a mesh ---- */

static void place_pes(struct mesh *mesh, bool with_empty_hosts)
{
    uint32_t inhabited_count = 0;
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        mesh->pe_counts[h] = with_empty_hosts ? choose(mesh, PES_A_HOST_MAX + 1) : 1 + choose(mesh, PES_A_HOST_MAX);
        inhabited_count += mesh->pe_counts[h] > 0;
    }
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        if (inhabited_count < 2)
            mesh->pe_counts[h] = 1;
        mesh->hosts[h].pe_first = mesh->pe_count;
        for (uint32_t i = 0; i < mesh->pe_counts[h]; i++, mesh->pe_count++) {
            struct pe *pe = &mesh->pes[mesh->pe_count];
            pe->host = h;
            pe->offered = NO_OP;
            pe->under_way_max = choose(mesh, 3) ? 100 : 1;
            for (uint32_t b = 0; b < SEGMENT_BYTES; b++)
                pe->segment[b] = (uint8_t)choose(mesh, 256);
            memcpy(pe->reference, pe->segment, SEGMENT_BYTES);
        }
    }
}

static void start_rings(struct mesh *mesh, uint32_t flow_start)
{
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        struct quoit_ring_config config = mesh->config;
        config.host_self = h;
        config.outstanding_max = mesh->pe_counts[h] > 0 ? config.outstanding_max : 0;
        size_t bytes = quoit_ring_bytes(&config);
        void *memory = aligned_alloc(64, bytes);
        assert_non_null(memory);
        memset(memory, 0, bytes);
        struct quoit_ring *ring = quoit_ring_init(memory, &config);
        mesh->hosts[h].ring = ring;
        for (uint32_t i = 0; i < QUOIT_SIDE_COUNT * mesh->host_count; i++) {
            ring->flows_out[i].sent = ring->flows_out[i].acknowledged = flow_start;
            ring->flows_in[i].executed = ring->flows_in[i].acknowledged = flow_start;
        }
        quoit_ring_check_invariants(ring);
        assert_true(quoit_ring_is_quiescent(ring));
    }
}

static struct mesh *make_mesh(uint64_t seed, uint32_t host_count)
{
    struct mesh *mesh = calloc(1, sizeof *mesh);
    assert_non_null(mesh);
    seed_now = mesh->seed = mesh->prng.state = seed;
    mesh->host_count = host_count > 0 ? host_count : 2 + choose(mesh, HOSTS_MAX - 1);
    mesh->workload = (enum workload)(seed % WORKLOAD_COUNT);
    mesh->lazy = 1 + choose(mesh, 20);
    place_pes(mesh, choose(mesh, 3) == 0);
    mesh->config = (struct quoit_ring_config){
        .slot_count = 2 + choose(mesh, SLOTS_MAX - 1),
        .outstanding_max = 1 + choose(mesh, 12),
        .pending_reply_max = 1 + choose(mesh, 4),
        .fetch_max = 1 + choose(mesh, 6),
        .transit_pause_after_ns = 100 + choose(mesh, 2000),
        .transit_pause_ns = 100 + choose(mesh, 1000),
        .limits = {.host_count = mesh->host_count,
                   .chunk_bytes = CHUNK_BYTES,
                   .segment_bytes = SEGMENT_BYTES,
                   .pe_counts = mesh->pe_counts},
    };
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        mesh->hosts[h].weight = choose(mesh, 4) ? 8 : 1;
        mesh->weight_sum += mesh->hosts[h].weight;
    }
    for (int i = 0; i < ACTION_COUNT; i++)
        mesh->action_weights[i] = 1 + choose(mesh, 4);
    mesh->action_weights[DELIVER] += 2;
    start_rings(mesh, choose(mesh, 2) ? 0 : UINT32_MAX - choose(mesh, 6));
    return mesh;
}

static void free_mesh(struct mesh *mesh)
{
    for (uint32_t h = 0; h < mesh->host_count; h++)
        free(mesh->hosts[h].ring);
    free(mesh);
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

/* Runs seeds from QUOIT_SEED (default 1) on, QUOIT_SEEDS (default seed_count) of them, with the faults that prepare()
 * makes. */
static void run_seeds(uint64_t seed_count, void (*prepare)(struct mesh *mesh))
{
    uint64_t first = number_from("QUOIT_SEED", 1);
    uint64_t step_count = 0, op_count = 0, lost_count = 0, resend_count = 0, landing_count = 0;
    seed_count = number_from("QUOIT_SEEDS", seed_count);
    for (uint64_t seed = first; seed < first + seed_count; seed++) {
        struct mesh *mesh = make_mesh(seed, 0);
        uint32_t each = (60 + choose(mesh, 60)) / mesh->pe_count + 1;
        for (uint32_t i = 0; i < mesh->pe_count; i++)
            mesh->pes[i].left_count = each;
        prepare(mesh);
        run_until_done(mesh);
        check_end(mesh);
        step_count += mesh->step_count;
        op_count += mesh->op_count;
        lost_count += mesh->lost_count;
        resend_count += mesh->resend_count;
        landing_count += mesh->landing_count;
        free_mesh(mesh);
    }
    print_message("%llu seeds, %llu operations, %llu steps, %llu landed, %llu writes lost, %llu sent again\n",
                  (unsigned long long)seed_count, (unsigned long long)op_count, (unsigned long long)step_count,
                  (unsigned long long)landing_count, (unsigned long long)lost_count, (unsigned long long)resend_count);
}

#endif
