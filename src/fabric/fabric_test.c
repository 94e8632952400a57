/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: which engine serves a PE: the first that reaches it, and with --path network that of the other hosts for what is
 * put and got. Method: PE 0 of a job over a network whose loopback is open, and no proxy: nothing is carried. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "fabric/fabric.h"

#define HOST_COUNT 2u
#define PE_COUNT   4u

static void test_engines_are_chosen(void **state)
{
    const struct quoit_job_config job = {.host_count = HOST_COUNT,
                                         .pe_count = PE_COUNT,
                                         .lane_count = 1,
                                         .slot_count = 2,
                                         .chunk_bytes = 1024,
                                         .protocol = QUOIT_PROTOCOL_NETWORK,
                                         .has_loopback = true,
                                         .heap_bytes = 65536};
    struct quoit_layout layout;
    (void)state;
    assert_int_equal(quoit_layout_make(&job, 0, &layout), QUOIT_OK);
    void *memory =
        mmap(NULL, layout.total_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);
    for (int is_network = 0; is_network < 2; is_network++) {
        struct quoit_fabric_config config = {.layout = &layout,
                                             .memory = memory,
                                             .policy = quoit_wait_policy_for(1, 1),
                                             .pe_endpoint_use = QUOIT_PE_ENDPOINT_NO};
        struct quoit_fabric *fabric;
        quoit_paths_default(&config.paths);
        config.paths.is_network = is_network != 0;
        assert_int_equal(quoit_fabric_open(&config, &fabric), QUOIT_OK);
        struct quoit_engine *local = quoit_fabric_engine(fabric, "local"), *other = quoit_fabric_engine(fabric, "ring");
        assert_non_null(local);
        assert_non_null(other);
        assert_null(quoit_fabric_engine(fabric, "rin"));
        for (uint32_t pe = 0; pe < PE_COUNT; pe++) {
            bool is_own_host = pe < PE_COUNT / HOST_COUNT;
            assert_ptr_equal(fabric->peers[pe].engine, is_own_host ? local : other);
            assert_ptr_equal(fabric->carriers[pe].engine, is_own_host && !is_network ? local : other);
            assert_int_equal(fabric->peers[pe].segment != NULL, is_own_host);
        }
        assert_int_equal(fabric->carriers == fabric->peers, !is_network);
        quoit_fabric_close(fabric);
    }
    munmap(memory, layout.total_bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_engines_are_chosen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
