/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: a table of schedules, or the text of --schedules, is read completely or rejected with a reason. Method: what is
 * accepted names only schedules that its collective has. Input: the file, or the text. */
#include "local/schedules_file.h"
#include "fuzz.h"

static void check(uint64_t schedules, enum quoit_schedules_source source)
{
    must(quoit_schedules_source(schedules) == source);
    for (enum quoit_collective i = 0; i < QUOIT_COLLECTIVE_COUNT; i++)
        for (uint32_t j = 0; j < QUOIT_SCHEDULE_SIZES; j++)
            must(quoit_schedule_name(i, quoit_schedules_choose(schedules, i, quoit_schedule_size(j))) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const struct quoit_schedules_key key = {.host_count = 3, .digest = 0x1234, .network = "ofi"};
    char problem[QUOIT_TUNED_PROBLEM_BYTES] = "", *text = strndup((const char *)data, bytes);
    uint64_t schedules = 0;
    must(text != NULL);
    if (quoit_schedules_parse(&schedules, text, &key, problem))
        check(schedules, QUOIT_SCHEDULES_TUNED);
    else
        must(problem[0] != '\0' && schedules == 0);
    problem[0] = '\0';
    schedules = 0;
    if (quoit_schedules_force(text, &schedules, problem))
        check(schedules, QUOIT_SCHEDULES_FORCED);
    else
        must(problem[0] != '\0' && memchr(problem, '\0', sizeof problem) != NULL && schedules == 0);
    free(text);
    return 0;
}
