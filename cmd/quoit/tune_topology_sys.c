/* SPDX-License-Identifier: BSD-3-Clause */
#include "tune_topology.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"

#define CACHES_MAX 10u
#define TEXT_BYTES 256

static void *open_nothing(void)
{
    return (void *)(uintptr_t)&tune_topology_sys; /* something that is not NULL */
}

static void close_nothing(void *state)
{
    (void)state;
}

static bool read_text(int core, const char *what, char text_out[TEXT_BYTES])
{
    char name[128];
    snprintf(name, sizeof name, "/sys/devices/system/cpu/cpu%d/%s", core, what);
    FILE *file = fopen(name, "re");
    if (!file)
        return false;
    bool is_read = fgets(text_out, TEXT_BYTES, file) != NULL;
    fclose(file);
    if (is_read)
        text_out[strcspn(text_out, "\n")] = '\0';
    return is_read;
}

/* A file of the last cache of a processor. */
static bool read_last_cache(int core, const char *what, char text_out[TEXT_BYTES])
{
    long best = 0;
    uint32_t best_index = 0;
    for (uint32_t i = 0; i < CACHES_MAX; i++) {
        char name[64];
        snprintf(name, sizeof name, "cache/index%u/level", i);
        if (read_text(core, name, text_out) && atol(text_out) > best) {
            best = atol(text_out);
            best_index = i;
        }
    }
    char name[64];
    snprintf(name, sizeof name, "cache/index%u/%s", best_index, what);
    return best > 0 && read_text(core, name, text_out);
}

static uint64_t cache_bytes(void *state, int core)
{
    char text[TEXT_BYTES];
    uint64_t bytes = 0;
    (void)state;
    return read_last_cache(core, "size", text) && quoit_parse_bytes(text, &bytes) ? bytes : 0;
}

static enum tune_distance distance(void *state, int a, int b)
{
    char text_a[TEXT_BYTES], text_b[TEXT_BYTES];
    (void)state;
    if (read_text(a, "topology/physical_package_id", text_a) && read_text(b, "topology/physical_package_id", text_b) &&
        strcmp(text_a, text_b) != 0)
        return TUNE_OTHER_SOCKET;
    return read_last_cache(a, "shared_cpu_list", text_a) && read_last_cache(b, "shared_cpu_list", text_b) &&
                   strcmp(text_a, text_b) != 0
               ? TUNE_OTHER_CACHE
               : TUNE_SAME_CACHE;
}

const struct tune_topology tune_topology_sys = {
    .name = "/sys",
    .open = open_nothing,
    .close = close_nothing,
    .cache_bytes = cache_bytes,
    .distance = distance,
};
