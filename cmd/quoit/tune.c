/* SPDX-License-Identifier: BSD-3-Clause */
/* quoit tune - measures the ways of copying between PEs of this machine, and stores which one each size is to take. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/options.h"
#include "command.h"
#include "env/clock.h"
#include "env/limits.h"
#include "tune_measure.h"

#define DEFAULT_NS        12000000000ull
#define PROGRESS_AFTER_NS 2000000000ull
/* A way must be better than memcpy by this on the whole, to be worth leaving what everybody uses ... */
#define GAIN_WANTED 1.05
/* ... and must not be worse than this anywhere. */
#define LOSS_ALLOWED 0.97
/* Beyond these what was measured is the load of the machine: the share of time that others took, and how many times as
 * long as in its quickest pass memcpy took in its slowest, for the middle one of all cells. */
#define LOST_ALLOWED   0.05
#define SPREAD_ALLOWED 1.20

struct tune {
    bool is_dry;
    bool is_forced;
    uint64_t cache_bytes; /* of the last cache; 0: not known */
    uint64_t time_ns;
    uint64_t memory_bytes; /* of both buffers; 0: as large as the last cache each */
    struct tune_place places[TUNE_PLACES_MAX];
    uint32_t place_count;
    struct tune_result results[TUNE_PLACES_MAX][QUOIT_BUFFER_KIND_COUNT];
    uint64_t begin_ns;
    uint32_t step_count;
    uint32_t steps_done;
};

static void print_help(void)
{
    printf("usage: quoit tune [--dry-run] [--time TIME] [--memory SIZE]\n\n"
           "Measures each way of copying between PEs of this machine, prints how each does beside memcpy, and stores\n"
           "which one a size is to take in $XDG_CONFIG_HOME/quoit or ~/.config/quoit, where every job looks at start\n"
           "(quoit info paths). Best on a machine that does nothing else.\n\n"
           "  --dry-run                measure and print, but store nothing\n"
           "  --force                  store also what was measured while others computed\n"
           "  --time TIME              measure about so long (default 12s)\n"
           "  --memory SIZE            of the buffers, at least 128M; default: twice the last cache, at most an\n"
           "                           eighth of the free memory\n"
           "  --help                   print this\n");
}

static int refuse(const char *text, const char *value)
{
    fprintf(stderr, "quoit tune: %s%s (see --help)\n", text, value);
    return 2;
}

/* Takes the value of an option that is "--name VALUE" or "--name=VALUE"; NULL: this argument is another one. */
static const char *take_value(const char *name, char **argv, int *at)
{
    size_t length = strlen(name);
    if (strncmp(argv[*at], name, length) != 0 || (argv[*at][length] != '=' && argv[*at][length] != '\0'))
        return NULL;
    if (argv[*at][length] == '=')
        return argv[*at] + length + 1;
    return argv[*at + 1] ? argv[++*at] : "";
}

/* Tells on a terminal how far it is, once it has lasted. */
static void step(void *arg)
{
    struct tune *tune = arg;
    tune->steps_done++;
    if (!isatty(STDERR_FILENO) || quoit_clock_now_ns() - tune->begin_ns < PROGRESS_AFTER_NS)
        return;
    if (tune->steps_done < tune->step_count)
        fprintf(stderr, "\rmeasuring: %u %%", tune->steps_done * 100 / tune->step_count);
    else
        fprintf(stderr, "\r%20s\r", "");
}

static uint64_t buffer_bytes(const struct tune *tune)
{
    uint64_t least = quoit_paths_size(QUOIT_PATHS_SIZE_COUNT - 1);
    uint64_t free_bytes = quoit_limits_free_bytes();
    uint64_t bytes = tune->cache_bytes;
    if (bytes > free_bytes / 16)
        bytes = free_bytes / 16;
    if (tune->memory_bytes)
        bytes = tune->memory_bytes / 2;
    bytes = bytes > least ? bytes : least;
    return bytes / least * least;
}

static bool measure(struct tune *tune)
{
    tune->step_count =
        tune->place_count * QUOIT_BUFFER_KIND_COUNT * TUNE_PASS_COUNT * TUNE_USE_COUNT * QUOIT_PATHS_SIZE_COUNT;
    tune->begin_ns = quoit_clock_now_ns();
    uint64_t bytes = buffer_bytes(tune);
    if (2 * bytes < tune->cache_bytes)
        printf("two buffers of %llu MiB fit the last cache of %llu MiB: \"cold\" is not quite cold\n",
               (unsigned long long)(bytes >> 20), (unsigned long long)(tune->cache_bytes >> 20));
    for (uint32_t place = 0; place < tune->place_count; place++)
        for (enum quoit_buffer_kind kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++) {
            struct tune_config config = {.place = &tune->places[place],
                                         .kind = kind,
                                         .buffer_bytes = bytes,
                                         .cell_ns = tune->time_ns / tune->step_count};
            if (!tune_measure(&config, &tune->results[place][kind], step, tune))
                return false;
        }
    return true;
}

/* How many times as fast as memcpy a way is: over all places, passes and uses in *mean_out, and where it is worst. */
static double worst_ratio(const struct tune *tune, enum quoit_buffer_kind kind, uint32_t size,
                          enum quoit_copy_method way, double *mean_out)
{
    double worst = INFINITY, product = 1;
    uint32_t count = 0;
    for (uint32_t place = 0; place < tune->place_count; place++)
        for (uint32_t pass = 0; pass < TUNE_PASS_COUNT; pass++)
            for (enum tune_use use = 0; use < TUNE_USE_COUNT; use++) {
                const double *ns = tune->results[place][kind].ns[pass][use][size];
                double ratio = ns[way] > 0 ? ns[QUOIT_COPY_MEMCPY] / ns[way] : 0;
                worst = ratio < worst ? ratio : worst;
                product *= ratio;
                count++;
            }
    *mean_out = pow(product, 1.0 / count);
    return worst;
}

static enum quoit_copy_method choose(const struct tune *tune, enum quoit_buffer_kind kind, uint32_t size)
{
    enum quoit_copy_method best = QUOIT_COPY_MEMCPY;
    double best_mean = GAIN_WANTED, mean;
    for (enum quoit_copy_method way = 1; way < QUOIT_COPY_METHOD_COUNT; way++)
        if (worst_ratio(tune, kind, size, way, &mean) >= LOSS_ALLOWED && mean > best_mean) {
            best = way;
            best_mean = mean;
        }
    return best;
}

/* A way that wins at one size alone has won by chance: it needs a neighbour. */
static void fill(const struct tune *tune, struct quoit_paths *paths)
{
    for (enum quoit_buffer_kind kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++) {
        enum quoit_copy_method best[QUOIT_PATHS_SIZE_COUNT];
        for (uint32_t size = 0; size < QUOIT_PATHS_SIZE_COUNT; size++)
            best[size] = choose(tune, kind, size);
        for (uint32_t size = 0; size < QUOIT_PATHS_SIZE_COUNT; size++) {
            bool has_neighbour = (size > 0 && best[size - 1] == best[size]) ||
                                 (size + 1 < QUOIT_PATHS_SIZE_COUNT && best[size + 1] == best[size]);
            paths->way[kind][size] = (uint8_t)(has_neighbour ? best[size] : QUOIT_COPY_MEMCPY);
        }
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The slowest pass of a copy over its quickest. */
static double spread_of(const struct tune_result *result, enum tune_use use, uint32_t size, enum quoit_copy_method way)
{
    double least = INFINITY, most = 0;
    for (uint32_t pass = 0; pass < TUNE_PASS_COUNT; pass++) {
        double ns = result->ns[pass][use][size][way];
        least = ns < least ? ns : least;
        most = ns > most ? ns : most;
    }
    return most / least;
}

/* Tells how steady the machine was. False: not enough to believe the table. */
static bool was_steady(const struct tune *tune)
{
    double spreads[TUNE_PLACES_MAX * QUOIT_BUFFER_KIND_COUNT * TUNE_USE_COUNT * QUOIT_PATHS_SIZE_COUNT], lost = 0;
    uint32_t count = 0;
    for (uint32_t place = 0; place < tune->place_count; place++)
        for (enum quoit_buffer_kind kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++) {
            const struct tune_result *result = &tune->results[place][kind];
            lost = result->lost > lost ? result->lost : lost;
            for (enum tune_use use = 0; use < TUNE_USE_COUNT; use++)
                for (uint32_t size = 0; size < QUOIT_PATHS_SIZE_COUNT; size++)
                    spreads[count++] = spread_of(result, use, size, QUOIT_COPY_MEMCPY);
        }
    qsort(spreads, count, sizeof spreads[0], compare);
    double spread = spreads[count / 2];
    printf(
        "\nother programs took %.0f %% of the time; memcpy took %.2f times as long in its slowest of %d passes as in "
        "its quickest (the middle one of all rows)\n",
        100 * lost, spread, TUNE_PASS_COUNT);
    return lost <= LOST_ALLOWED && spread <= SPREAD_ALLOWED;
}

/* The quickest of all passes. */
static double quickest(const struct tune_result *result, enum tune_use use, uint32_t size, enum quoit_copy_method way)
{
    double least = INFINITY;
    for (uint32_t pass = 0; pass < TUNE_PASS_COUNT; pass++)
        least = result->ns[pass][use][size][way] < least ? result->ns[pass][use][size][way] : least;
    return least;
}

static void print_row(const struct tune *tune, const struct quoit_paths *paths, enum quoit_buffer_kind kind,
                      uint32_t place, enum tune_use use, uint32_t size)
{
    const struct tune_result *result = &tune->results[place][kind];
    double memcpy_ns = quickest(result, use, size, QUOIT_COPY_MEMCPY);
    char text[32];
    quoit_paths_format_size(quoit_paths_size(size), text);
    printf("%-8s %-13s %-5s %5s %8.1f", quoit_buffer_kind_name(kind), tune->places[place].name,
           use == TUNE_HOT ? "hot" : "cold", text, (double)quoit_paths_size(size) / memcpy_ns);
    for (enum quoit_copy_method way = 1; way < QUOIT_COPY_METHOD_COUNT; way++)
        if (quickest(result, use, size, way) > 0)
            printf(" %7.2f", memcpy_ns / quickest(result, use, size, way));
        else
            printf(" %7s", "-");
    printf("  %s\n", quoit_copy_method_name((enum quoit_copy_method)paths->way[kind][size]));
}

static void print_table(const struct tune *tune, const struct quoit_paths *paths)
{
    printf("%-8s %-13s %-5s %5s %8s", "buffer", "other PE", "cache", "size", "memcpy");
    for (enum quoit_copy_method way = 1; way < QUOIT_COPY_METHOD_COUNT; way++)
        printf(" %7s", quoit_copy_method_name(way));
    printf("  path\n%43s", "GB/s");
    for (enum quoit_copy_method way = 1; way < QUOIT_COPY_METHOD_COUNT; way++)
        printf(" %7s", "x");
    printf("\n");
    for (enum quoit_buffer_kind kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++)
        for (uint32_t place = 0; place < tune->place_count; place++)
            for (enum tune_use use = 0; use < TUNE_USE_COUNT; use++)
                for (uint32_t size = 0; size < QUOIT_PATHS_SIZE_COUNT; size++)
                    print_row(tune, paths, kind, place, use, size);
}

/* Makes the folders above a file. */
static bool make_folders(const char *name)
{
    char folder[QUOIT_PATHS_NAME_BYTES];
    snprintf(folder, sizeof folder, "%s", name);
    for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(folder, 0777) != 0 && errno != EEXIST)
            return false;
        *slash = '/';
    }
    return true;
}

/* The table that is being made: a file beside its place, put there when it is whole, since jobs may start meanwhile. */
struct store {
    FILE *file;
    struct quoit_paths_machine machine;
    char name[QUOIT_PATHS_NAME_BYTES];
    char next[QUOIT_PATHS_NAME_BYTES + 32];
};

static bool store_fail(const struct store *store)
{
    fprintf(stderr, "quoit tune: %s: %s\n", store->name, strerror(errno));
    unlink(store->next);
    return false;
}

/* Before the measurement, so that nobody waits for what cannot be stored. */
static bool store_open(struct store *store)
{
    quoit_paths_machine(&store->machine);
    if (!quoit_paths_file(&store->machine, store->name)) {
        fprintf(stderr, "quoit tune: neither XDG_CONFIG_HOME nor HOME says where the table belongs\n");
        return false;
    }
    snprintf(store->next, sizeof store->next, "%s.%d", store->name, (int)getpid());
    store->file = make_folders(store->name) ? fopen(store->next, "we") : NULL;
    return store->file || store_fail(store);
}

static bool store_finish(struct store *store, const struct quoit_paths *paths)
{
    quoit_paths_print(paths, &store->machine, store->file);
    bool is_written = !ferror(store->file);
    is_written = fclose(store->file) == 0 && is_written;
    if (!is_written || rename(store->next, store->name) != 0)
        return store_fail(store);
    printf("\nstored in %s\n", store->name);
    return true;
}

static int take_options(struct tune *tune, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value;
        if (strcmp(argv[i], "--dry-run") == 0) {
            tune->is_dry = true;
        } else if (strcmp(argv[i], "--force") == 0) {
            tune->is_forced = true;
        } else if ((value = take_value("--time", argv, &i)) != NULL) {
            if (!quoit_parse_duration(value, &tune->time_ns) || tune->time_ns == 0)
                return refuse("--time wants a time such as 12s, not ", value);
        } else if ((value = take_value("--memory", argv, &i)) != NULL) {
            if (!quoit_parse_bytes(value, &tune->memory_bytes) ||
                tune->memory_bytes < 2 * quoit_paths_size(QUOIT_PATHS_SIZE_COUNT - 1))
                return refuse("--memory wants a size of at least 128M, not ", value);
        } else {
            return refuse("there is no option ", argv[i]);
        }
    }
    return 0;
}

static void look_at_machine(struct tune *tune)
{
    const struct tune_topology *topology = &tune_topology_sys;
    void *state = NULL;
#ifdef QUOIT_HWLOC
    state = tune_topology_hwloc.open();
    if (state)
        topology = &tune_topology_hwloc;
#endif
    if (!state)
        state = topology->open();
    tune->place_count = tune_find_places(topology, state, tune->places);
    tune->cache_bytes = topology->cache_bytes(state, tune->places[0].own_core);
    topology->close(state);
    printf("processors as %s tells them\n", topology->name);
}

int command_tune(int argc, char **argv)
{
    struct tune tune = {.time_ns = DEFAULT_NS};
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return 0;
        }
    int status = take_options(&tune, argc, argv);
    if (status != 0)
        return status;
    struct store store;
    if (!tune.is_dry && !store_open(&store))
        return 1;
    struct quoit_paths paths;
    quoit_paths_default(&paths);
    look_at_machine(&tune);
    if (!measure(&tune)) {
        if (!tune.is_dry)
            unlink(store.next);
        return 1;
    }
    fill(&tune, &paths);
    print_table(&tune, &paths);
    bool is_steady = was_steady(&tune);
    if (tune.is_dry)
        return 0;
    if (is_steady || tune.is_forced)
        return store_finish(&store, &paths) ? 0 : 1;
    unlink(store.next);
    fprintf(stderr,
            "quoit tune: the machine was too busy to tell ways apart, so nothing is stored; run it when nothing "
            "else computes, or with --force\n");
    return 1;
}
