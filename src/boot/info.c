/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/info.h"
#include "base/json.h"
#include "coll/coll.h"
#include "env/limits.h"
#include "ring/ring.h"

#include <stdarg.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define TEXT_BYTES   512
#define CACHES_MAX   16
#define NAME_COLUMNS 27

/* The output position: section, row, separators. */
struct writer {
    FILE *out;
    bool is_json;
    struct quoit_json json;
    bool has_section;
};

static void begin_section(struct writer *writer, const char *name)
{
    if (writer->is_json)
        quoit_json_open_object(&writer->json, name);
    else
        fprintf(writer->out, "%s%s\n", writer->has_section ? "\n" : "", name);
    writer->has_section = true;
}

static void end_section(struct writer *writer)
{
    if (writer->is_json)
        quoit_json_close(&writer->json);
}

__attribute__((format(printf, 3, 4))) static void put_row(struct writer *writer, const char *name, const char *format,
                                                          ...)
{
    char text[TEXT_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    if (writer->is_json)
        quoit_json_text(&writer->json, name, text);
    else
        fprintf(writer->out, "  %-*s %s\n", NAME_COLUMNS, name, text);
}

static void put_number(struct writer *writer, const char *name, uint64_t value)
{
    if (writer->is_json)
        quoit_json_count(&writer->json, name, value);
    else
        put_row(writer, name, "%llu", (unsigned long long)value);
}

static void put_version(struct writer *writer, const struct quoit_info *info)
{
    begin_section(writer, "version");
    put_row(writer, "quoit", "%s", info->version);
    put_row(writer, "openshmem", "1.6");
    if (info->python)
        put_row(writer, "python package", "%s", info->python);
    if (info->examples)
        put_row(writer, "examples", "%s", info->examples);
    end_section(writer);
    begin_section(writer, "parts");
    for (uint32_t i = 0; i < info->part_count; i++)
        put_row(writer, info->parts[i].name, "%s, %s", info->parts[i].version.text, info->parts[i].path);
    end_section(writer);
    begin_section(writer, "build");
    put_row(writer, "compiler", "%s", __VERSION__);
#ifdef __OPTIMIZE__
    put_row(writer, "optimized", "yes");
#else
    put_row(writer, "optimized", "no");
#endif
#if defined(__SANITIZE_ADDRESS__)
    put_row(writer, "sanitizer", "address");
#elif defined(__SANITIZE_THREAD__)
    put_row(writer, "sanitizer", "thread");
#else
    put_row(writer, "sanitizer", "none");
#endif
    put_number(writer, "pointer bits", sizeof(void *) * 8);
    end_section(writer);
}

/* The first line of one cache's file without its newline; false if there is none. */
static bool read_cache(uint32_t index, const char *what, char text_out[64])
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%u/%s", index, what);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool is_read = fgets(text_out, 64, file) != NULL;
    fclose(file);
    if (is_read)
        text_out[strcspn(text_out, "\n")] = '\0';
    return is_read;
}

static void put_machine(struct writer *writer)
{
    struct utsname names;
    begin_section(writer, "machine");
    if (uname(&names) == 0)
        put_row(writer, "system", "%s %s %s", names.sysname, names.release, names.machine);
    put_number(writer, "processors", (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
    put_number(writer, "processors allowed", quoit_limits_core_count());
    put_number(writer, "page bytes", (uint64_t)sysconf(_SC_PAGESIZE));
    put_number(writer, "memory bytes", quoit_limits_memory_bytes());
    for (uint32_t i = 0; i < CACHES_MAX; i++) {
        char level[64], type[64], size[64], shared[64], name[160];
        if (!read_cache(i, "level", level) || !read_cache(i, "type", type) || !read_cache(i, "size", size))
            break;
        if (!read_cache(i, "shared_cpu_list", shared))
            shared[0] = '\0';
        snprintf(name, sizeof name, "cache L%s %s", level, type);
        put_row(writer, name, "%s, of processors %s", size, shared);
    }
    end_section(writer);
}

static void put_options(struct writer *writer, const struct quoit_options *options)
{
    static const char *const sources[] = {"default", "environment", "command line"};
    begin_section(writer, "options");
    for (int id = 0; id < QUOIT_OPT_COUNT; id++) {
        const struct quoit_option *option = &quoit_options_table[id];
        char value[128], name[64];
        if (option->type == QUOIT_OPTION_FLAG || (!option->variable && id != QUOIT_OPT_PES))
            continue; /* an option of one command, not of a job */
        quoit_option_format(options, (enum quoit_option_id)id, value, sizeof value);
        snprintf(name, sizeof name, "%s%s", option->variable ? "" : "-",
                 option->variable ? option->variable : option->name);
        if (!writer->is_json) {
            put_row(writer, name, "%-12s %-13s %s", value[0] ? value : "-", sources[options->values[id].source],
                    option->sentence);
            continue;
        }
        quoit_json_open_object(&writer->json, name);
        quoit_json_text(&writer->json, "value", value);
        quoit_json_text(&writer->json, "source", sources[options->values[id].source]);
        quoit_json_text(&writer->json, "default", option->fallback);
        quoit_json_text(&writer->json, "meaning", option->sentence);
        quoit_json_close(&writer->json);
    }
    end_section(writer);
}

/* Describes the transport to a PE; equal texts of consecutive PEs are merged into one row. */
static void describe_transport(const struct quoit_info *info, const struct quoit_job_config *job, uint32_t pe,
                               char *text_out, size_t bytes)
{
    uint32_t own = quoit_job_config_host_of_pe(job, info->pe), host = quoit_job_config_host_of_pe(job, pe);
    const struct quoit_host_range ring = quoit_job_config_ring_of(job, own);
    uint32_t forward = (host + ring.count - own) % ring.count;
    uint32_t hops = forward < ring.count - forward ? forward : ring.count - forward;
    bool is_direct = info->peers ? info->peers[pe].is_direct : hops == 1;
    if (host - ring.first >= ring.count)
        snprintf(text_out, bytes, "network: by the proxies to host %u", host);
    else if (hops == 0)
        snprintf(text_out, bytes, "local: mapped memory of host %u%s", host,
                 info->paths->is_network ? "; puts and gets by the network's loopback" : "");
    else if (is_direct)
        snprintf(text_out, bytes, "direct: puts through the window into host %u", host);
    else
        snprintf(text_out, bytes, "relayed: by the proxies to host %u, %u hop%s", host, hops, hops == 1 ? "" : "s");
}

/* What the hosts of a job have chosen. */
static void put_network(struct writer *writer, const struct quoit_contacts *contacts)
{
    char place[QUOIT_NET_PLACE_TEXT_BYTES];
    const struct quoit_net_choice *network = &contacts->network;
    put_row(writer, "network", "%s %s, this host is called at %s", network->driver, network->provider,
            contacts->place.address.family ? quoit_net_place_print(&contacts->place, place) : network->device);
}

static void put_transports(struct writer *writer, const struct quoit_info *info)
{
    char name[48], text[96], next[96];
    begin_section(writer, "transports");
    put_number(writer, "hosts", info->job.host_count);
    put_number(writer, "PEs", info->job.pe_count);
    put_number(writer, "from PE", info->pe);
    for (uint32_t pe = 0, first = 0; pe < info->job.pe_count; pe++) {
        describe_transport(info, &info->job, pe, text, sizeof text);
        if (pe + 1 < info->job.pe_count)
            describe_transport(info, &info->job, pe + 1, next, sizeof next);
        if (pe + 1 < info->job.pe_count && strcmp(text, next) == 0)
            continue;
        snprintf(name, sizeof name, first == pe ? "to PE %u" : "to PE %u..%u", first, pe);
        put_row(writer, name, "%s", text);
        first = pe + 1;
    }
    if (info->contacts && info->contacts->is_told)
        put_network(writer, info->contacts);
    end_section(writer);
}

static void format_size(uint64_t bytes, char text_out[32])
{
    bool is_small = bytes < 1u << 20;
    snprintf(text_out, 32, is_small ? "%lluK" : "%lluM", (unsigned long long)bytes >> (is_small ? 10 : 20));
}

/* One row per run of sizes with the same method; the last is open-ended. */
static void put_paths_of(struct writer *writer, const struct quoit_paths *paths, enum quoit_buffer_kind kind)
{
    char name[64], size[32];
    const char *last = " all sizes";
    const size_t most = quoit_paths_size(QUOIT_PATHS_SIZE_COUNT - 1);
    for (size_t bytes = QUOIT_PATHS_PLAIN_BYTES; bytes <= most; bytes *= 2) {
        enum quoit_copy_method method = quoit_paths_choose(paths, kind, bytes);
        if (bytes < most && quoit_paths_choose(paths, kind, 2 * bytes) == method)
            continue;
        format_size(bytes, size);
        if (bytes < most)
            snprintf(name, sizeof name, "%s up to %s", quoit_buffer_kind_name(kind), size);
        else
            snprintf(name, sizeof name, "%s%s", quoit_buffer_kind_name(kind), last);
        put_row(writer, name, "%s", paths->is_network ? QUOIT_PATHS_NETWORK : quoit_copy_method_name(method));
        last = " all larger";
    }
}

static void put_paths(struct writer *writer, const struct quoit_info *info)
{
    struct quoit_paths_machine machine;
    char file[QUOIT_TUNED_NAME_BYTES];
    quoit_paths_machine(&machine);
    begin_section(writer, "paths");
    put_row(writer, "machine", "%s", machine.name);
    put_row(writer, "processor", "%s", machine.processor);
    if (quoit_paths_file(&machine, file))
        put_row(writer, "file", "%s", file);
    if (info->paths->source == QUOIT_PATHS_FORCED)
        put_row(writer, "why", "forced: --path, QUOIT_PATH");
    else
        put_row(writer, "why", "%s", info->paths->source == QUOIT_PATHS_TUNED ? "tuned, in file" : "built in");
    if (info->cma)
        put_row(writer, "cma", "%s", info->cma);
    for (enum quoit_buffer_kind kind = 0; kind < QUOIT_BUFFER_KIND_COUNT; kind++)
        put_paths_of(writer, info->paths, kind);
    end_section(writer);
}

/* As put_paths_of(). */
static void put_schedules_of(struct writer *writer, uint64_t schedules, enum quoit_collective collective)
{
    char name[64], size[32];
    const char *last = "all sizes";
    for (uint32_t i = 0; i < QUOIT_SCHEDULE_SIZES; i++) {
        enum quoit_schedule schedule = quoit_schedules_choose(schedules, collective, quoit_schedule_size(i));
        bool is_last = i + 1 == QUOIT_SCHEDULE_SIZES;
        if (!is_last && quoit_schedules_choose(schedules, collective, quoit_schedule_size(i + 1)) == schedule)
            continue;
        format_size(quoit_schedule_size(i), size);
        snprintf(name, sizeof name, is_last ? "%s %s" : "%s up to %s", quoit_collective_name(collective),
                 is_last ? last : size);
        put_row(writer, name, "%s", quoit_schedule_name(collective, schedule));
        last = "all larger";
    }
}

static const char *why_of(const struct quoit_info *info)
{
    static const char *const sources[] = {"built-in rules", "tuned, in file", "forced: --schedules, QUOIT_SCHEDULES"};
    if (info->job.host_count == 1)
        return "one host has none";
    if (!quoit_job_config_has_network(&info->job))
        return "built-in rules of links";
    return sources[quoit_schedules_source(info->job.schedules)];
}

static void put_schedules(struct writer *writer, const struct quoit_info *info)
{
    const struct quoit_schedules_key *key = info->schedules;
    char file[QUOIT_TUNED_NAME_BYTES];
    begin_section(writer, "schedules");
    put_number(writer, "hosts", info->job.host_count);
    put_row(writer, "why", "%s", why_of(info));
    if (quoit_job_config_has_network(&info->job)) {
        if (key) {
            put_row(writer, "network", "%s", key->network);
            put_row(writer, "digest", "%08x", key->digest);
        }
        if (key && quoit_schedules_file(key, file))
            put_row(writer, "file", "%s", file);
        for (enum quoit_collective i = 0; i < QUOIT_COLLECTIVE_COUNT; i++)
            put_schedules_of(writer, info->job.schedules, i);
    }
    end_section(writer);
}

_Static_assert(QUOIT_OPTION_CHUNK_BYTES_MAX == QUOIT_CHUNK_BYTES_MAX, "the table of options stands below the frames");

static void put_limits(struct writer *writer)
{
    begin_section(writer, "limits");
    put_number(writer, "hosts", QUOIT_RING_HOSTS_MAX);
    put_number(writer, "PEs of a host", QUOIT_LOCAL_PES_MAX);
    put_number(writer, "lanes of a link", QUOIT_LANES_MAX);
    put_number(writer, "requests of a PE on a lane", QUOIT_REQUESTS_A_CHANNEL);
    put_number(writer, "bytes of a chunk", QUOIT_OPTION_CHUNK_BYTES_MAX);
    put_number(writer, "teams beside the world", QUOIT_TEAM_PIECES - 1);
    end_section(writer);
}

void quoit_info_print(const struct quoit_info *info, bool is_json, FILE *out)
{
    struct writer writer = {.out = out, .is_json = is_json};
    quoit_json_start(&writer.json, out);
    if (is_json)
        quoit_json_open_object(&writer.json, NULL);
    put_version(&writer, info);
    put_machine(&writer);
    put_options(&writer, info->options);
    put_transports(&writer, info);
    put_paths(&writer, info);
    put_schedules(&writer, info);
    put_limits(&writer);
    if (is_json)
        quoit_json_close(&writer.json);
}

static void print_section(void (*put)(struct writer *writer, const struct quoit_info *info),
                          const struct quoit_info *info, bool is_json, FILE *out)
{
    struct writer writer = {.out = out, .is_json = is_json};
    quoit_json_start(&writer.json, out);
    if (is_json)
        quoit_json_open_object(&writer.json, NULL);
    put(&writer, info);
    if (is_json)
        quoit_json_close(&writer.json);
}

void quoit_info_print_paths(const struct quoit_info *info, bool is_json, FILE *out)
{
    print_section(put_paths, info, is_json, out);
}

void quoit_info_print_schedules(const struct quoit_info *info, bool is_json, FILE *out)
{
    print_section(put_schedules, info, is_json, out);
}
