/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: whole rings of hosts keep the promises of ring.h in any order of events: nothing is stuck, lost, executed twice
 * or out of order, and everything is returned at the end. Links stay up here; ring_fault_test.c cuts them.
 * Method: the model of ring_mesh.h. Seeds: QUOIT_SEED is the first (default 1), QUOIT_SEEDS their count (default 300).
 */
#include "ring/ring_mesh.h"

static void make_no_faults(struct mesh *mesh)
{
    (void)mesh;
}

static void random_schedules_keep_every_promise(void **state)
{
    (void)state;
    run_seeds(300, make_no_faults);
}

/* The canary: a host that reads no credits stops the ring, and this is detected; when it reads them again all ends
 * well. */
static void a_stuck_ring_is_noticed(void **state)
{
    (void)state;
    struct mesh *mesh = make_mesh(5, 5);
    for (uint32_t i = 0; i < mesh->pe_count; i++)
        mesh->pes[i].left_count = 10;
    mesh->is_deaf = true;
    for (uint32_t idle_count = 0; idle_count < STEPS_IDLE_MAX;)
        idle_count = step(mesh) ? 0 : idle_count + 1;
    while (sweep(mesh))
        ;
    assert_false(is_all_done(mesh));
    assert_false(can_move(mesh));
    mesh->is_deaf = false;
    assert_true(can_move(mesh));
    run_until_done(mesh);
    check_end(mesh);
    free_mesh(mesh);
}

/* ---- one adversarial schedule ---- */

/* Handles what arrived at `h` from the left; 1 if it was forwarded. */
static uint32_t relay_one(struct mesh *mesh, uint32_t h)
{
    struct host *host = &mesh->hosts[h];
    uint64_t expected = quoit_ring_expected(host->ring, QUOIT_LEFT, QUOIT_CLASS_REQUEST);
    struct slot *slot = &host->inbound[QUOIT_LEFT][QUOIT_CLASS_REQUEST][(expected - 1) % mesh->config.slot_count];
    struct quoit_verdict verdict;
    if (slot->frame.sequence != expected)
        return 0;
    assert_int_equal(
        quoit_ring_receive(host->ring, QUOIT_LEFT, QUOIT_CLASS_REQUEST, &slot->frame, mesh->now_ns, &verdict),
        QUOIT_OK);
    if (verdict.kind == QUOIT_VERDICT_NO_RESOURCE && verdict.retry_at_ns > 0)
        assert_in_range(verdict.retry_at_ns, mesh->now_ns + 1, mesh->now_ns + mesh->config.transit_pause_ns);
    if (verdict.kind != QUOIT_VERDICT_SEND)
        return 0;
    write_slot(mesh, h, &verdict, slot->payload);
    return 1;
}

static bool pour_one(struct mesh *mesh, uint32_t h)
{
    static const uint8_t nothing[CHUNK_BYTES];
    struct quoit_frame frame = {.kind = QUOIT_FRAME_AMO, .op = QUOIT_AMO_ADD, .size = 8, .dest_host = 2};
    struct quoit_verdict verdict;
    quoit_ring_submit(mesh->hosts[h].ring, &frame, 0, 1, mesh->now_ns, &verdict);
    if (verdict.kind == QUOIT_VERDICT_SEND)
        write_slot(mesh, h, &verdict, nothing);
    return verdict.kind == QUOIT_VERDICT_SEND;
}

/* Host 0 sends continuously to host 2 through host 1, which wants to inject. Host 1 handles transit first after each
 * credit, so two slots are never free at once unless transit pauses. */
static void transit_does_not_starve_injection(void **state)
{
    (void)state;
    struct mesh *mesh = make_mesh(1, 5);
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        mesh->pe_counts[h] = 1;
        free(mesh->hosts[h].ring);
    }
    mesh->config.slot_count = 2;
    mesh->config.outstanding_max = 2000;
    mesh->config.transit_pause_after_ns = 40;
    mesh->config.transit_pause_ns = 10;
    start_rings(mesh, 0);
    uint32_t relayed_count = 0;
    uint32_t spoken_count = 0;
    for (mesh->now_ns = 0; mesh->now_ns < 1000; mesh->now_ns++) {
        for (uint32_t h = 2; h >= 1; h--) {
            relayed_count += relay_one(mesh, h);
            advertise_credit(mesh, h, QUOIT_LEFT, QUOIT_CLASS_REQUEST, true);
            read_credit(mesh, h - 1, QUOIT_RIGHT, QUOIT_CLASS_REQUEST);
        }
        if (relayed_count > 10)
            spoken_count += pour_one(mesh, 1);
        pour_one(mesh, 0);
    }
    assert_true(relayed_count > 300);
    assert_in_range(spoken_count, 1000 / 50 - 4, 1000 / 40);
    free_mesh(mesh);
}

int main(void)
{
    signal(SIGABRT, on_abort);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_schedules_keep_every_promise),
        cmocka_unit_test(a_stuck_ring_is_noticed),
        cmocka_unit_test(transit_does_not_starve_injection),
    };
    return cmocka_run_group_tests_name("ring.mesh", tests, NULL, NULL);
}
