/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a table of paths is read whole or refused with a reason. Method: what was read is printed and read again. Input:
 * the file. */
#include "local/paths.h"
#include "fuzz.h"

/* What is printed is read again, the same. */
static void check_again(const struct quoit_paths *paths, const struct quoit_paths_machine *machine)
{
    char problem[QUOIT_PATHS_PROBLEM_BYTES], *printed = NULL;
    size_t printed_bytes = 0;
    struct quoit_paths again;
    FILE *out = open_memstream(&printed, &printed_bytes);
    FUZZ_HOLDS(out != NULL);
    quoit_paths_print(paths, machine, out);
    fclose(out);
    quoit_paths_default(&again);
    FUZZ_HOLDS(quoit_paths_parse(&again, printed, printed_bytes, machine, problem));
    FUZZ_HOLDS(memcmp(paths->way, again.way, sizeof paths->way) == 0);
    free(printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct quoit_paths_machine machine = {.name = "m", .processor = "p"};
    struct quoit_paths paths;
    char problem[QUOIT_PATHS_PROBLEM_BYTES] = "";
    quoit_paths_default(&paths);
    if (!quoit_paths_parse(&paths, (const char *)data, bytes, &machine, problem)) {
        FUZZ_HOLDS(problem[0] != '\0');
        FUZZ_HOLDS(memchr(problem, '\0', sizeof problem) != NULL);
    }
    check_again(&paths, &machine); /* of the input, or as built in */
    return 0;
}
