/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a table of copy methods is read completely or rejected with a reason. Method: an accepted table names only
 * methods that this processor has. Input: the file. */
#include "local/paths.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct quoit_paths_machine machine = {.name = "m", .processor = "p"};
    struct quoit_paths paths;
    char problem[QUOIT_TUNED_PROBLEM_BYTES] = "", *text = strndup((const char *)data, bytes);
    must(text != NULL);
    quoit_paths_default(&paths);
    if (!quoit_paths_parse(&paths, text, &machine, problem)) {
        must(problem[0] != '\0' && memchr(problem, '\0', sizeof problem) != NULL);
        must(paths.source == QUOIT_PATHS_BUILT_IN);
    }
    for (enum quoit_buffer_kind kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++)
        for (uint32_t i = 0; i < QUOIT_PATHS_SIZE_COUNT; i++)
            must(quoit_copy_is_built((enum quoit_copy_method)paths.method[kind][i]));
    free(text);
    return 0;
}
