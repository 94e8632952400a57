/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: an accepted --fault names an existing link or host; any other is rejected with a sentence. Input: the text. */
#include "oshrun/fault.h"
#include "ring/route.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = fuzz_text(data, bytes);
    for (uint32_t host_count = 1; host_count <= 6; host_count++) {
        struct fault fault;
        char problem[FAULT_PROBLEM_BYTES] = "";
        const struct quoit_job_config job = {.host_count = host_count};
        bool is_taken = fault_parse(text, &fault, problem) && fault_fit(&fault, &job, problem);
        must(is_taken || (problem[0] != '\0' && memchr(problem, '\0', sizeof problem)));
        if (is_taken && fault.kind == FAULT_HOST)
            must(fault.first < host_count);
        if (is_taken && fault.kind == FAULT_LINK)
            must(fault.first < host_count &&
                 fault.second == quoit_ring_neighbour(host_count, QUOIT_RIGHT, fault.first));
        if (is_taken && fault.kind == FAULT_RANDOM)
            must(host_count > 1 && fault.at_ns != 0);
    }
    free(text);
    return 0;
}
