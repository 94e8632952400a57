/* SPDX-License-Identifier: BSD-3-Clause */
#include "local/schedules_file.h"
#include "base/digest.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#define FIRST_LINE "quoit schedules 1"
#define HEAD_LINES 4

/* Sums do not depend on the order of the machines. */
static void add(struct quoit_schedules_key *key, const char *text)
{
    key->digest += quoit_digest(text, strlen(text));
}

void quoit_schedules_key_begin(struct quoit_schedules_key *key, const struct quoit_options *options)
{
    const char *network = options->values[QUOIT_OPT_NETWORK].text;
    char text[256];
    *key = (struct quoit_schedules_key){.host_count = 0};
    snprintf(key->network, sizeof key->network, "%s", strcmp(network, "ring") == 0 ? "auto" : network);
    snprintf(text, sizeof text, "provider %.100s device %.100s", options->values[QUOIT_OPT_NETWORK_PROVIDER].text,
             options->values[QUOIT_OPT_NETWORK_DEVICE].text);
    add(key, text);
}

void quoit_schedules_key_add(struct quoit_schedules_key *key, const char *machine)
{
    const char *at = strrchr(machine, '@');
    add(key, at ? at + 1 : machine);
    key->host_count++;
}

void quoit_schedules_key_add_own(struct quoit_schedules_key *key, uint32_t count)
{
    struct utsname names;
    bool is_named = uname(&names) == 0;
    for (uint32_t i = 0; i < count; i++)
        quoit_schedules_key_add(key, is_named ? names.nodename : "");
}

bool quoit_schedules_file(const struct quoit_schedules_key *key, char path_out[QUOIT_TUNED_NAME_BYTES])
{
    char name[QUOIT_SCHEDULES_NETWORK_BYTES + 48];
    snprintf(name, sizeof name, "schedules.%u.%s.%08x", key->host_count, key->network, key->digest);
    return quoit_tuned_file(name, path_out);
}

/* Takes the schedules of one collective. NULL: the line is something else. */
static const char *take_schedules(const char *text, enum quoit_collective collective, uint64_t *schedules)
{
    for (uint32_t i = 0; i < QUOIT_SCHEDULE_SIZES; i++) {
        size_t length = strcspn(text, " \n");
        enum quoit_schedule schedule = quoit_schedule_named(collective, text, length);
        if (schedule == QUOIT_SCHEDULE_COUNT || text[length] != (i + 1 < QUOIT_SCHEDULE_SIZES ? ' ' : '\n'))
            return NULL;
        *schedules = quoit_schedules_with(*schedules, collective, i, schedule);
        text += length + 1;
    }
    return text;
}

bool quoit_schedules_parse(uint64_t *schedules_out, const char *text, const struct quoit_schedules_key *key,
                           char problem_out[QUOIT_TUNED_PROBLEM_BYTES])
{
    char head[QUOIT_SCHEDULES_NETWORK_BYTES + 96];
    uint64_t made = 0;
    int length = snprintf(head, sizeof head, FIRST_LINE "\nhosts %u\nnetwork %s\ndigest %08x\n", key->host_count,
                          key->network, key->digest);
    if (strncmp(text, FIRST_LINE "\n", sizeof FIRST_LINE) != 0) {
        snprintf(problem_out, QUOIT_TUNED_PROBLEM_BYTES, "does not begin with \"" FIRST_LINE "\"");
        return false;
    }
    if (strncmp(text, head, (size_t)length) != 0) {
        snprintf(problem_out, QUOIT_TUNED_PROBLEM_BYTES, "was not measured on these hosts");
        return false;
    }
    const char *at = text + length;
    for (enum quoit_collective i = 0; i < QUOIT_COLLECTIVE_COUNT && at; i++) {
        const char *schedules = quoit_tuned_word(at, quoit_collective_name(i), ' ');
        at = schedules ? take_schedules(schedules, i, &made) : NULL;
        if (!at)
            snprintf(problem_out, QUOIT_TUNED_PROBLEM_BYTES, "line %d is not \"%s\" and %u schedules",
                     HEAD_LINES + 1 + (int)i, quoit_collective_name(i), QUOIT_SCHEDULE_SIZES);
    }
    if (at && *at)
        snprintf(problem_out, QUOIT_TUNED_PROBLEM_BYTES, "goes on after its last line");
    if (!at || *at)
        return false;
    *schedules_out = quoit_schedules_from(made, QUOIT_SCHEDULES_TUNED);
    return true;
}

bool quoit_schedules_load(uint64_t *schedules_out, const char *choice, const struct quoit_schedules_key *key,
                          char problem_out[QUOIT_TUNED_PROBLEM_BYTES])
{
    char path[QUOIT_TUNED_NAME_BYTES], text[QUOIT_TUNED_FILE_BYTES + 2], problem[QUOIT_TUNED_PROBLEM_BYTES];
    *schedules_out = 0;
    if (strcmp(choice, "auto") != 0) {
        if (quoit_schedules_force(choice, schedules_out, problem))
            return true;
        snprintf(problem_out, QUOIT_TUNED_PROBLEM_BYTES, "--schedules: %.200s", problem);
        return false;
    }
    if (!quoit_schedules_file(key, path))
        return true;
    enum quoit_tuned_found found = quoit_tuned_read(path, text, problem);
    if (found == QUOIT_TUNED_MISSING ||
        (found == QUOIT_TUNED_READ && quoit_schedules_parse(schedules_out, text, key, problem)))
        return true;
    snprintf(problem_out, QUOIT_TUNED_PROBLEM_BYTES,
             "%.400s %.200s; the built-in rules are used (quoit tune --hosts makes it anew) [Q0306]", path, problem);
    return false;
}
