/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: whole rings of hosts keep the promises of ring.h while links go down and come back at any instant.
 * Method: the model of ring_mesh.h with faults as part of the random schedule: one link at a time, or as many as there
 * are; noticed by both ends or by one; briefly, unnoticed at first, or for ever. Seeds: QUOIT_SEED is the first
 * (default 1), QUOIT_SEEDS their count (default 150 of each kind, 80 of the last).
 */
#include "ring/ring_mesh.h"

static void make_one_link_fail(struct mesh *mesh)
{
    mesh->faults = (struct faults){
        .cut_count = 1 + choose(mesh, 8u << choose(mesh, 4)),
        .period = 20u << choose(mesh, 7),
        .dead_max = 1,
        .is_one_end_blind = choose(mesh, 2) != 0,
        .is_tearing = choose(mesh, 2) != 0,
        .is_last_cut_forever = choose(mesh, 2) != 0,
    };
}

static void make_many_links_fail(struct mesh *mesh)
{
    make_one_link_fail(mesh);
    mesh->faults.dead_max = mesh->host_count;
    mesh->faults.is_one_end_blind = false;
}

/* Some hosts are so slow that the frames they hold are long outdated when they forward them; one PE per host puts the
 * same bytes repeatedly, each time after the last put completed, and everything that may land does. */
static void make_hosts_lag(struct mesh *mesh)
{
    make_one_link_fail(mesh);
    mesh->faults.is_eager_to_land = true;
    mesh->workload = HOT_SPOT;
    mesh->weight_sum = 0;
    for (uint32_t h = 0; h < mesh->host_count; h++) {
        mesh->hosts[h].weight = choose(mesh, 3) ? 20 : 1;
        mesh->weight_sum += mesh->hosts[h].weight;
    }
    for (uint32_t i = 0; i < mesh->pe_count; i++) {
        bool is_first = mesh->pes[i].host > 0 && mesh->hosts[mesh->pes[i].host].pe_first == i;
        mesh->pes[i].left_count = is_first ? 8 : 0;
        mesh->pes[i].under_way_max = 1;
    }
}

static void one_link_at_a_time(void **state)
{
    (void)state;
    run_seeds(150, make_one_link_fail);
}

static void any_links_for_a_while(void **state)
{
    (void)state;
    run_seeds(150, make_many_links_fail);
}

static void late_landings(void **state)
{
    (void)state;
    run_seeds(80, make_hosts_lag);
}

int main(void)
{
    signal(SIGABRT, on_abort);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_link_at_a_time),
        cmocka_unit_test(any_links_for_a_while),
        cmocka_unit_test(late_landings),
    };
    return cmocka_run_group_tests_name("ring.fault", tests, NULL, NULL);
}
