/* SPDX-License-Identifier: BSD-3-Clause */
#include "plan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/text.h"
#include "bridges.h"
#include "habits.h"
#include "port/driver.h"
#include "host/layout.h"
#include "local/paths.h"

_Static_assert(QUOIT_OPTION_CHUNK_BYTES_MAX == QUOIT_CHUNK_BYTES_MAX, "the table's limit is the protocol's");

struct parser {
    struct plan *plan;
    struct plan_program *program; /* the one being described */
    int argc;
    char **argv;
    int at; /* next argument */
};

static int bad_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
static int bad_usage(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    quoit_say("%s [Q0210]", text);
    return STATUS_BAD_USAGE;
}

static void *must(void *memory)
{
    if (!memory) {
        quoit_say("out of memory");
        exit(STATUS_CANNOT_START);
    }
    return memory;
}

static int add_export(struct plan_program *program, const char *text)
{
    const char *value = NULL;
    char *whole = NULL;
    if (strchr(text, '=') == text || !text[0])
        return bad_usage("-x wants VAR or VAR=value, not \"%s\"", text);
    if (!strchr(text, '=')) {
        value = getenv(text);
        if (!value)
            return bad_usage("-x %s: the variable is not set here; give it a value: -x %s=value", text, text);
        if (asprintf(&whole, "%s=%s", text, value) < 0)
            whole = NULL;
    } else {
        whole = strdup(text);
    }
    must(whole);
    size_t name_bytes = strcspn(whole, "=") + 1;
    for (uint32_t i = 0; i < program->export_count; i++)
        if (strncmp(program->exports[i], whole, name_bytes) == 0) { /* the last one counts */
            free(program->exports[i]);
            program->exports[i] = whole;
            return PLAN_GO_ON;
        }
    program->exports = must(realloc(program->exports, (program->export_count + 2) * sizeof *program->exports));
    program->exports[program->export_count++] = whole;
    program->exports[program->export_count] = NULL;
    return PLAN_GO_ON;
}

static int add_fault(struct plan *plan, const char *text)
{
    char problem[FAULT_PROBLEM_BYTES];
    plan->faults = must(realloc(plan->faults, (plan->fault_count + 1) * sizeof *plan->faults));
    if (!fault_parse(text, &plan->faults[plan->fault_count++], problem))
        return bad_usage("%s", problem);
    return PLAN_GO_ON;
}

/* Options whose values the table cannot express. */
static int take_special_option(struct parser *parser, enum quoit_option_id id, const char *text)
{
    if (id == QUOIT_OPT_PES)
        parser->program->pe_count = (uint32_t)plan_number(parser->plan, QUOIT_OPT_PES);
    else if (id == QUOIT_OPT_WDIR)
        parser->program->wdir = text;
    else if (id == QUOIT_OPT_EXPORT)
        return add_export(parser->program, text);
    else if (id == QUOIT_OPT_FAULT)
        return add_fault(parser->plan, text);
    return PLAN_GO_ON;
}

static int take_value(struct parser *parser, enum quoit_option_id id, const char *shown_as, const char *text)
{
    char problem[QUOIT_OPTION_PROBLEM_BYTES];
    if (!quoit_options_set(&parser->plan->options, id, text, QUOIT_FROM_COMMAND_LINE, shown_as, problem))
        return bad_usage("%s", problem);
    return take_special_option(parser, id, text);
}

/* Whether what a job would write over is a program: then the name of the file was left out. */
static bool is_program(const char *path)
{
    char begin[4] = "";
    struct stat status;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is_read = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (status.st_mode & 0111) &&
                   read(fd, begin, sizeof begin) == sizeof begin;
    if (fd >= 0)
        close(fd);
    return is_read && (memcmp(begin, "\177ELF", 4) == 0 || memcmp(begin, "#!", 2) == 0);
}

/* The value of an option that names a file, which stands in a word of its own. */
static int check_file(enum quoit_option_id id, const char *shown_as, const char *value)
{
    const char *placeholder = quoit_options_table[id].placeholder;
    bool is_path = strcmp(placeholder, "FILE") == 0 || strcmp(placeholder, "DIR") == 0;
    bool is_written = id == QUOIT_OPT_PROFILE || id == QUOIT_OPT_TRACE || id == QUOIT_OPT_STATS_JSON;
    if (is_path && value[0] == '-' && value[1])
        return bad_usage("%s needs a value: %s %s, but %s follows", shown_as, shown_as, placeholder, value);
    if (is_written && is_program(value))
        return bad_usage("%s needs a value: %s %s, but %s is a program", shown_as, shown_as, placeholder, value);
    return PLAN_GO_ON;
}

/* One argument that begins with a dash, and its value. */
static int take_option(struct parser *parser)
{
    const char *argument = parser->argv[parser->at++];
    const char *start = argument + (argument[1] == '-' ? 2 : 1);
    char name[64], shown_as[72];
    size_t length = strcspn(start, "=");
    snprintf(name, sizeof name, "%.*s", (int)(length < sizeof name ? length : sizeof name - 1), start);
    snprintf(shown_as, sizeof shown_as, "%.*s%s", (int)(start - argument), argument, name);
    const char *value = start[length] == '=' ? start + length + 1 : NULL;
    const char *nearest = NULL;
    enum quoit_option_id id = habits_find(name, &nearest);
    if (id == QUOIT_OPT_COUNT && argument[1] == 'n' && argument[2] >= '0' && argument[2] <= '9')
        return take_value(parser, QUOIT_OPT_PES, "-n", argument + 2);
    if (id == QUOIT_OPT_COUNT && habits_other(name))
        return bad_usage("unknown option %s of other launchers; here: %s", shown_as, habits_other(name));
    if (id == QUOIT_OPT_COUNT && nearest)
        return bad_usage("unknown option %s: did you mean --%s?", shown_as, nearest);
    if (id == QUOIT_OPT_COUNT)
        return bad_usage("unknown option %s (oshrun --help lists them)", shown_as);
    enum quoit_option_type type = quoit_options_table[id].type;
    if (type == QUOIT_OPTION_FLAG || (type == QUOIT_OPTION_BOOL && !value)) {
        if (value)
            return bad_usage("%s takes no value", shown_as);
        return take_value(parser, id, shown_as, "1");
    }
    if (!value) {
        if (parser->at == parser->argc)
            return bad_usage("%s needs a value: %s %s", shown_as, shown_as, quoit_options_table[id].placeholder);
        value = parser->argv[parser->at++];
        int status = check_file(id, shown_as, value);
        if (status != PLAN_GO_ON)
            return status;
    }
    return take_value(parser, id, shown_as, value);
}

/* [options] program args, up to ":" or the end. */
static int take_program(struct parser *parser)
{
    struct plan *plan = parser->plan;
    plan->programs = must(realloc(plan->programs, (plan->program_count + 1) * sizeof *plan->programs));
    parser->program = &plan->programs[plan->program_count++];
    *parser->program = (struct plan_program){0};
    while (parser->at < parser->argc && parser->argv[parser->at][0] == '-' && parser->argv[parser->at][1]) {
        if (strcmp(parser->argv[parser->at], "--") == 0) {
            parser->at++;
            break;
        }
        int status = take_option(parser);
        if (status != PLAN_GO_ON)
            return status;
    }
    parser->program->argv = &parser->argv[parser->at];
    while (parser->at < parser->argc && strcmp(parser->argv[parser->at], ":") != 0) {
        parser->at++;
        parser->program->argc++;
    }
    return PLAN_GO_ON;
}

static int take_command_line(struct plan *plan, int argc, char **argv)
{
    struct parser parser = {.plan = plan, .argc = argc, .argv = argv, .at = 1};
    for (;;) {
        int status = take_program(&parser);
        if (status != PLAN_GO_ON)
            return status;
        if (parser.at == argc)
            return PLAN_GO_ON;
        argv[parser.at++] = NULL; /* the ":" ends the argv of the program before it */
    }
}

static bool is_given(const struct plan *plan, enum quoit_option_id id)
{
    return plan->options.values[id].source != QUOIT_FROM_DEFAULT;
}

/* In an allocation its machines, unless the hosts are to be of this one. False: reported. */
static bool find_allocation(struct plan *plan)
{
    static const enum quoit_option_id others[] = {QUOIT_OPT_HOSTS, QUOIT_OPT_RING, QUOIT_OPT_DEBUGGER};
    char problem[MACHINES_PROBLEM_BYTES];
    struct allocation allocation = {.rsh = ""};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (is_given(plan, others[i]) && plan_text(plan, others[i])[0])
            return true;
    if (!allocation_find(&plan->machines, &allocation, problem)) {
        bad_usage("%s; --host names the machines", problem);
        return false;
    }
    if (plan->machines.count == 1 && allocation_is_here(plan->machines.list[0].name)) {
        plan->own_slot_count = machines_slots(&plan->machines);
        plan->machines = (struct machines){0};
    }
    if (!plan->launch.rsh[0])
        plan->launch = allocation;
    return true;
}

/* Whether the links of the driver are cables between machines. */
static bool joins_machines(const char *driver_name)
{
    const struct quoit_port_driver *driver = quoit_port_driver_find(driver_name);
    return driver && !quoit_port_driver_is_one_machine(driver);
}

bool plan_has_bridges(const struct plan *plan)
{
    bool is_network_named =
        is_given(plan, QUOIT_OPT_NETWORK) && strcmp(plan_text(plan, QUOIT_OPT_NETWORK), "ring") != 0;
    bool has_rings = plan_text(plan, QUOIT_OPT_RINGS)[0] != '\0'; /* of which it names the network between them */
    return plan->machines.count > 1 && joins_machines(plan_text(plan, QUOIT_OPT_DRIVER)) &&
           (!is_network_named || has_rings);
}

/* What cannot be over several machines, and `why` there are some. */
static int check_beside_machines(const struct plan *plan, const char *why)
{
    static const enum quoit_option_id others[] = {QUOIT_OPT_HOSTS, QUOIT_OPT_ON};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (is_given(plan, others[i]) && plan_text(plan, others[i])[0])
            return bad_usage("--%s is for the hosts of one machine, and %s", quoit_options_table[others[i]].name, why);
    return PLAN_GO_ON;
}

/* With --host and --hostfile: who takes PEs, and what cannot be over several machines. */
static int find_machines(struct plan *plan)
{
    char problem[MACHINES_PROBLEM_BYTES];
    const char *list = plan_text(plan, QUOIT_OPT_HOST), *file = plan_text(plan, QUOIT_OPT_HOSTFILE);
    if (!plan->is_agent) {
        plan->launch.rsh = plan_text(plan, QUOIT_OPT_RSH);
        plan->launch.own = plan->launch.rsh[0] ? ALLOCATION_OWN_AS_OTHERS : ALLOCATION_OWN_BY_NAME;
    }
    if (!plan->is_agent && !list[0] && !file[0] && !find_allocation(plan))
        return STATUS_BAD_USAGE;
    if (!plan->is_agent && list[0] && !machines_add_list(&plan->machines, list, problem))
        return bad_usage("--host %.200s: %s", list, problem);
    if (!plan->is_agent && file[0] && !machines_add_file(&plan->machines, file, problem))
        return bad_usage("--hostfile: %s", problem);
    int status = PLAN_GO_ON;
    if (plan->machines.count && !plan->is_agent)
        status = plan_text(plan, QUOIT_OPT_RING)[0] ? bad_usage("--ring names the hosts, as --host and --hostfile do")
                                                    : check_beside_machines(plan, "--host or --hostfile names others");
    if (status != PLAN_GO_ON)
        return status;
    if (plan->machines.count && is_given(plan, QUOIT_OPT_NETWORK) && !plan_has_bridges(plan) &&
        strcmp(plan_text(plan, QUOIT_OPT_NETWORK), "ring") == 0)
        return bad_usage("--network ring joins the hosts of one machine, or with --driver linux those of --host by "
                         "bridges");
    if (plan_has_bridges(plan) && !strchr(plan_text(plan, QUOIT_OPT_BRIDGES), ','))
        return bad_usage("--bridges %s: two ports, such as /dev/ntb0,/dev/ntb1", plan_text(plan, QUOIT_OPT_BRIDGES));
    return PLAN_GO_ON;
}

/* Sets an option for this process and, by its variable, for the agents. */
static void set_for_all(struct plan *plan, enum quoit_option_id id, const char *text)
{
    const char *variable = quoit_options_table[id].variable;
    bool is_set = setenv(variable, text, 1) == 0;
    plan->options.values[id] =
        (struct quoit_option_value){.text = must(is_set ? getenv(variable) : NULL), .source = QUOIT_FROM_ENVIRONMENT};
}

/* With --ring NAME of a ring of bridges: its hosts are machines, and the job takes a part of their ports. */
static int take_bridges(struct plan *plan, const struct quoit_share_config *ring)
{
    char list[QUOIT_SHARE_HOSTS_MAX * INET_ADDRSTRLEN], problem[MACHINES_PROBLEM_BYTES], address[INET_ADDRSTRLEN];
    char bridges[BRIDGES_TEXT_BYTES], missing[BRIDGES_PROBLEM_BYTES];
    const char *name = plan_text(plan, QUOIT_OPT_RING);
    size_t used = 0;
    int status = check_beside_machines(plan, "the hosts of --ring are machines");
    if (status != PLAN_GO_ON)
        return status;
    if (is_given(plan, QUOIT_OPT_WEIGHT))
        return bad_usage("--weight: the ring %s is of bridges, whose rate nobody divides", name);
    for (uint32_t host = 0; host < ring->host_count; host++) {
        struct in_addr number = {.s_addr = htonl(ring->machines.address + host + 1)};
        inet_ntop(AF_INET, &number, address, sizeof address);
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", host ? "," : "",
                                 host == ring->machines.host ? "localhost" : address);
    }
    if (!machines_add_list(&plan->machines, list, problem))
        return bad_usage("--ring %s: %s", name, problem);
    if (!is_given(plan, QUOIT_OPT_BRIDGES) && !bridges_find(ring, bridges, missing))
        return bad_usage("--ring %s: %s", name, missing);
    if (!is_given(plan, QUOIT_OPT_BRIDGES))
        set_for_all(plan, QUOIT_OPT_BRIDGES, bridges);
    set_for_all(plan, QUOIT_OPT_DRIVER, ring->driver);
    return PLAN_GO_ON;
}

/* With --ring: the ring's config, which no option can change. */
static int find_ring(struct plan *plan)
{
    const char *name = plan_text(plan, QUOIT_OPT_RING);
    struct quoit_share_list list;
    if (name[0] == '\0' && plan->options.values[QUOIT_OPT_WEIGHT].source == QUOIT_FROM_COMMAND_LINE)
        return bad_usage("--weight is for jobs that share a ring: with --ring");
    if (name[0] == '\0' || plan->is_agent)
        return PLAN_GO_ON;
    for (uint32_t id = 0; id < QUOIT_OPT_COUNT; id++)
        if (plan->options.values[id].source == QUOIT_FROM_COMMAND_LINE &&
            (id == QUOIT_OPT_HOSTS || id == QUOIT_OPT_DRIVER || quoit_options_table[id].reader == QUOIT_READER_LINKS))
            return bad_usage("--%s belongs to the ring: quoit ring up --ring %s ...", quoit_options_table[id].name,
                             name);
    const char *ring;
    uint32_t uid = quoit_share_user(name, &ring);
    if (uid == UINT32_MAX)
        return bad_usage("--ring %s: there is no user of that name", name);
    quoit_share_path(uid, ring, plan->ring_path);
    enum quoit_status status = quoit_share_query(plan->ring_path, &list);
    if (status == QUOIT_GONE)
        return bad_usage("--ring: there is no ring %s; its user makes it with: quoit ring up --ring %s", name, ring);
    if (status == QUOIT_UNSUPPORTED)
        return bad_usage("--ring: only its user and root run jobs on the ring %s; its user allows others with: quoit "
                         "ring up --jobs all",
                         name);
    if (status == QUOIT_INVALID)
        return bad_usage("--ring: the ring %s is of another build", name);
    if (status != QUOIT_OK)
        return bad_usage("--ring: the ring %s does not answer: %s", name, quoit_status_text(status));
    if (joins_machines(list.ring.driver))
        return take_bridges(plan, &list.ring);
    plan->ring = list.ring;
    plan->cut_links = list.cut_links;
    plan->has_ring = true;
    return PLAN_GO_ON;
}

static uint32_t hosts_with_pes(const struct plan *plan)
{
    return plan->host_count - (uint32_t)__builtin_popcountll(plan->bare_hosts);
}

/* PEs of one program without -n. */
static uint32_t usual_pe_count(const struct plan *plan)
{
    if (plan->own_slot_count)
        return plan->own_slot_count;
    return plan->machines.count ? machines_slots(&plan->machines) : hosts_with_pes(plan);
}

static bool is_own(void *launch, const char *name)
{
    return allocation_is_own(launch, name);
}

static int place_on_machines(struct plan *plan)
{
    uint32_t machine_count = plan->machines.count;
    if (!plan->is_agent && plan_has_bridges(plan) && plan->pe_count < machine_count)
        return bad_usage("a job of %u PE%s on the %u machines of a ring of bridges: each takes at least one",
                         plan->pe_count, plan->pe_count == 1 ? "" : "s", machine_count);
    if (!plan->is_agent) {
        machines_place(&plan->machines, plan->pe_count);
        machines_arrange(&plan->machines, plan->launch.is_for_head ? 0 : (uint32_t)plan_number(plan, QUOIT_OPT_FAN_OUT),
                         is_own, &plan->launch);
    }
    plan->host_count = plan->machines.count;
    for (uint32_t i = 0; i < plan->host_count; i++)
        if (plan->machines.list[i].pe_count > QUOIT_LOCAL_PES_MAX)
            return bad_usage("%u PEs on %s: a host takes %u at most", plan->machines.list[i].pe_count,
                             plan->machines.list[i].name, QUOIT_LOCAL_PES_MAX);
    struct quoit_job_config config = {0};
    if (!plan_place(plan, &config))
        return bad_usage("hosts may have different numbers of PEs in %d rows of equal ones at most, in their order",
                         QUOIT_HOST_ROWS_MAX);
    return PLAN_GO_ON;
}

/* --on: all hosts are bare but those in the list. */
static int read_hosts_with_pes(struct plan *plan)
{
    const char *text = plan_text(plan, QUOIT_OPT_ON);
    uint64_t chosen = 0, host;
    if (text[0] == '\0' || plan->machines.count)
        return PLAN_GO_ON;
    if (plan->host_count == 1 || plan->host_count > 64)
        return bad_usage("--on wants a ring of 2 to 64 hosts; this one has %u", plan->host_count);
    for (const char *at = text; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
        char word[16];
        size_t length = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), at);
        if (!quoit_parse_uint(word, &host) || host >= plan->host_count)
            return bad_usage("--on %s: \"%s\" is no host of the ring (0..%u)", text, word, plan->host_count - 1);
        if (chosen >> host & 1)
            return bad_usage("--on %s: host %s is there twice", text, word);
        chosen |= UINT64_C(1) << host;
    }
    plan->bare_hosts = ~chosen & (UINT64_MAX >> (64 - plan->host_count));
    return PLAN_GO_ON;
}

/* The sizes of --rings, as in 3+2. False: they are not numbers, or do not add up to the hosts. */
static bool read_ring_sizes(struct plan *plan, const char *text)
{
    uint64_t size, sum = 0;
    for (const char *at = text; at; at = strchr(at, '+') ? strchr(at, '+') + 1 : NULL) {
        char word[16];
        size_t length = strcspn(at, "+");
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), at);
        if (sum >= plan->host_count || !quoit_parse_uint(word, &size) || size == 0 || size > plan->host_count - sum)
            return false;
        plan->ring_starts |= UINT64_C(1) << sum;
        sum += size;
    }
    return sum == plan->host_count;
}

/* --rings: which host begins each ring. */
static int read_rings(struct plan *plan)
{
    const char *text = plan_text(plan, QUOIT_OPT_RINGS);
    uint64_t count;
    if (text[0] == '\0')
        return PLAN_GO_ON;
    bool has_ring = plan_text(plan, QUOIT_OPT_RING)[0] != '\0';
    if (has_ring || plan->bare_hosts != 0)
        return bad_usage("--rings is for hosts that oshrun joins, and --%s names those of a ring",
                         has_ring ? "ring" : "on");
    if (plan->host_count > 64)
        return bad_usage("--rings takes 64 hosts at most; the job has %u", plan->host_count);
    if (strchr(text, '+') && !read_ring_sizes(plan, text))
        return bad_usage("--rings %s: the sizes of rings that add up to the %u host%s of the job, as in 3+2", text,
                         plan->host_count, plan->host_count == 1 ? "" : "s");
    if (strchr(text, '+'))
        return PLAN_GO_ON;
    if (!quoit_parse_uint(text, &count) || count < 2 || count > plan->host_count / 2)
        return bad_usage("--rings %s: a number of rings, from 2, with two hosts or more in each of the %u; or their "
                         "sizes, as in 3+2",
                         text, plan->host_count);
    for (uint32_t ring = 0, first = 0; ring < count; ring++) {
        plan->ring_starts |= UINT64_C(1) << first;
        first += plan->host_count / (uint32_t)count + (ring < plan->host_count % count);
    }
    return PLAN_GO_ON;
}

static int count_pes(struct plan *plan)
{
    plan->host_count = plan->has_ring ? plan->ring.host_count : (uint32_t)plan_number(plan, QUOIT_OPT_HOSTS);
    int status = read_hosts_with_pes(plan);
    if (status != PLAN_GO_ON)
        return status;
    uint32_t count = hosts_with_pes(plan);
    uint64_t total = 0;
    for (uint32_t i = 0; i < plan->program_count; i++) {
        struct plan_program *program = &plan->programs[i];
        if (program->argc == 0)
            return bad_usage(plan->program_count > 1 ? "a program is missing beside \":\""
                                                     : "no program given: oshrun -n 4 ./a.out (or oshrun --help)");
        if (program->pe_count == 0)
            program->pe_count = plan->program_count == 1 ? usual_pe_count(plan) : 1;
        total += program->pe_count;
    }
    if (total > PLAN_PE_COUNT_MAX)
        return bad_usage("%llu PEs are more than a job can have (%u)", (unsigned long long)total, PLAN_PE_COUNT_MAX);
    plan->pe_count = (uint32_t)total;
    if (plan->machines.count)
        return place_on_machines(plan);
    if (plan->pe_count < count && plan->bare_hosts != 0)
        return bad_usage("--on %s wants a PE on each of these hosts, but the job has %u PE%s",
                         plan_text(plan, QUOIT_OPT_ON), plan->pe_count, plan->pe_count == 1 ? "" : "s");
    if (plan->pe_count < count)
        return bad_usage("%s %u%s wants a PE on each host, but the job has %u PE%s",
                         plan->has_ring ? "a ring of" : "--hosts", plan->host_count, plan->has_ring ? " hosts" : "",
                         plan->pe_count, plan->pe_count == 1 ? "" : "s");
    if ((plan->pe_count + count - 1) / count > QUOIT_LOCAL_PES_MAX)
        return bad_usage("%u PEs on %u host%s: a host takes %u at most", plan->pe_count, count, count == 1 ? "" : "s",
                         QUOIT_LOCAL_PES_MAX);
    return PLAN_GO_ON;
}

/* Adds "3", or "5-7" from `word`, to the PEs under the debugger. */
static int add_debugged(struct plan *plan, char *word)
{
    char *dash = strchr(word, '-');
    uint64_t first, last;
    if (dash)
        *dash = '\0';
    if (!quoit_parse_uint(word, &first) || !quoit_parse_uint(dash ? dash + 1 : word, &last) || first > last)
        return bad_usage("--debugger %s: PEs as in 0,2,5-7 or all before \":\"", plan_text(plan, QUOIT_OPT_DEBUGGER));
    if (last >= plan->pe_count)
        return bad_usage("--debugger %s: there is no PE %llu in the job (0..%u)", plan_text(plan, QUOIT_OPT_DEBUGGER),
                         (unsigned long long)last, plan->pe_count - 1);
    for (uint64_t pe = first; pe <= last; pe++) {
        plan->debugged_count += !plan->debugs[pe];
        plan->debugs[pe] = true;
    }
    return PLAN_GO_ON;
}

/* "gdb --args", "3:gdb --args", "0,2,5-7:COMMAND", "all:COMMAND". A command that has a colon itself does not begin as a
 * list of PEs does. */
static int read_debugger(struct plan *plan)
{
    const char *text = plan_text(plan, QUOIT_OPT_DEBUGGER), *colon = strchr(text, ':');
    bool is_all = strncmp(text, "all:", 4) == 0;
    bool has_list = colon && (is_all || strspn(text, "0123456789,-") > 0);
    char every[32];
    int status = PLAN_GO_ON;
    if (!text[0])
        return PLAN_GO_ON;
    plan->debugger = has_list ? colon + 1 : text;
    plan->debugs = must(calloc(plan->pe_count, sizeof *plan->debugs));
    if (plan->debugger[strspn(plan->debugger, " ")] == '\0')
        return bad_usage("--debugger \"%s\": a command is missing, such as gdb --args", text);
    snprintf(every, sizeof every, "0-%u", plan->pe_count - 1);
    char *list = must(is_all ? strdup(every) : has_list ? strndup(text, (size_t)(colon - text)) : strdup("0"));
    char *rest = list, *word;
    while (status == PLAN_GO_ON && (word = strsep(&rest, ",")))
        status = add_debugged(plan, word);
    for (uint32_t pe = 0; pe < plan->pe_count && plan->debugged_count == 1; pe++)
        if (plan->debugs[pe])
            plan->terminal_pe = pe;
    free(list);
    return status;
}

static void report_unknown(void *arg, const char *text)
{
    (void)arg;
    quoit_say("%s", text);
}

static int check_driver(const struct plan *plan)
{
    const char *name = plan->options.values[QUOIT_OPT_DRIVER].text;
    char names[256] = "";
    if (quoit_port_driver_find(name))
        return PLAN_GO_ON;
    for (uint32_t i = 0; quoit_port_driver_at(i); i++)
        snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                 quoit_port_driver_at(i)->name);
    return bad_usage("--driver: there is no port driver %s; there is: %s", name, names);
}

bool plan_has_loopback(const struct plan *plan)
{
    return strcmp(plan_text(plan, QUOIT_OPT_PATH), QUOIT_PATHS_NETWORK) == 0;
}

bool plan_has_network(const struct plan *plan)
{
    if (plan->ring_starts != 0)
        return true;
    bool is_network =
        plan->machines.count > 0 ? !plan_has_bridges(plan) : strcmp(plan_text(plan, QUOIT_OPT_NETWORK), "ring") != 0;
    return is_network && (plan->host_count > 1 || plan_has_loopback(plan));
}

/* --path network wants one: where none is named, --network auto. */
static int imply_network(struct plan *plan)
{
    struct quoit_option_value *network = &plan->options.values[QUOIT_OPT_NETWORK];
    char problem[QUOIT_OPTION_PROBLEM_BYTES];
    if (!plan_has_loopback(plan))
        return PLAN_GO_ON;
    if (network->source != QUOIT_FROM_DEFAULT && strcmp(network->text, "ring") == 0)
        return bad_usage("--path network wants a network, and --network ring is none: --network auto");
    if (network->source == QUOIT_FROM_DEFAULT &&
        !quoit_options_set(&plan->options, QUOIT_OPT_NETWORK, "auto", plan->options.values[QUOIT_OPT_PATH].source,
                           "--network", problem))
        return bad_usage("%s", problem);
    return PLAN_GO_ON;
}

/* What joins the hosts, for messages: "--network auto". */
static const char *joint(const struct plan *plan, char text[64])
{
    enum quoit_option_id id = plan->ring_starts ? QUOIT_OPT_RINGS : QUOIT_OPT_NETWORK;
    snprintf(text, 64, "--%s %.40s", quoit_options_table[id].name, plan_text(plan, id));
    return text;
}

static int check_rings(const struct plan *plan)
{
    if (plan->ring_starts == 0)
        return PLAN_GO_ON;
    if (plan->machines.count > 0 && !plan_has_bridges(plan))
        return bad_usage("--rings wants links between machines of --host: --driver linux");
    if (is_given(plan, QUOIT_OPT_NETWORK) && strcmp(plan_text(plan, QUOIT_OPT_NETWORK), "ring") == 0)
        return bad_usage("--rings %s wants a network between the rings, and --network ring is none: --network auto",
                         plan_text(plan, QUOIT_OPT_RINGS));
    return PLAN_GO_ON;
}

static int check_texts(const struct plan *plan)
{
    const char *text = plan_text(plan, QUOIT_OPT_SCHEDULES), *devices = plan_text(plan, QUOIT_OPT_NETWORK_DEVICE);
    char problem[QUOIT_SCHEDULES_PROBLEM_BYTES], network_problem[QUOIT_NET_PROBLEM_BYTES];
    uint64_t schedules;
    if (strcmp(text, "auto") != 0 && !quoit_schedules_force(text, &schedules, problem))
        return bad_usage("--schedules: %s", problem);
    bool is_good = quoit_net_check(devices, plan_text(plan, QUOIT_OPT_NETWORK_PORTS), network_problem);
    return is_good ? PLAN_GO_ON : bad_usage("%s", network_problem);
}

/* What needs links. */
static int check_network(const struct plan *plan)
{
    const char *name = plan_text(plan, QUOIT_OPT_NETWORK);
    char text[64];
    if (plan->bare_hosts != 0 && strcmp(plan_text(plan, QUOIT_OPT_BARRIER), "papers") == 0)
        return bad_usage("--barrier papers goes through a PE on each host, and --on %s leaves some without",
                         plan_text(plan, QUOIT_OPT_ON));
    if (!plan_has_network(plan))
        return PLAN_GO_ON;
    if (plan->bare_hosts != 0)
        return bad_usage("--on %s leaves hosts that only relay, and --network %s has no use for them",
                         plan_text(plan, QUOIT_OPT_ON), name);
    if (plan_text(plan, QUOIT_OPT_RING)[0])
        return bad_usage("--ring %s is a ring of links, and --network %s has none", plan_text(plan, QUOIT_OPT_RING),
                         plan_text(plan, QUOIT_OPT_NETWORK));
    if (strcmp(plan_text(plan, QUOIT_OPT_PROTOCOL), "queue") != 0)
        return bad_usage("--protocol %s needs a ring of links of all hosts, and %s has none",
                         plan_text(plan, QUOIT_OPT_PROTOCOL), joint(plan, text));
    if (strcmp(plan_text(plan, QUOIT_OPT_BARRIER), "auto") != 0)
        return bad_usage("--barrier %s needs a ring of links of all hosts, and %s has none",
                         plan_text(plan, QUOIT_OPT_BARRIER), joint(plan, text));
    for (uint32_t i = 0; i < plan->fault_count && plan->ring_starts == 0; i++)
        if (plan->faults[i].kind != FAULT_HOST)
            return bad_usage("--fault: a link needs a ring, and --network %s has none; a host may die", name);
    return PLAN_GO_ON;
}

/* The value that -x gives a variable in one program; NULL: none. */
static const char *exported(const struct plan_program *program, const char *variable)
{
    size_t length = strlen(variable);
    for (uint32_t i = program->export_count; i-- > 0;)
        if (strncmp(program->exports[i], variable, length) == 0 && program->exports[i][length] == '=')
            return program->exports[i] + length + 1;
    return NULL;
}

static int refuse_differences(const struct plan *plan)
{
    for (int id = 0; id < QUOIT_OPT_COUNT; id++) {
        const char *variable = quoit_options_table[id].variable, *first = NULL;
        bool is_of_job = variable && quoit_options_table[id].reader != QUOIT_READER_PE;
        for (uint32_t i = 0; i < plan->program_count && is_of_job; i++) {
            const char *value = exported(&plan->programs[i], variable);
            if (first && value && strcmp(first, value) != 0)
                return bad_usage("-x %s is \"%s\" for one program and \"%s\" for another, but is of the whole job",
                                 variable, first, value);
            first = value ? value : first;
        }
    }
    return PLAN_GO_ON;
}

/* The environment after the values of -x, since the first entry of a name counts. */
static char **with_exports(const struct plan *plan, char **environment)
{
    size_t count = 1, used = 0;
    for (char **entry = environment; *entry; entry++)
        count++;
    for (uint32_t i = 0; i < plan->program_count; i++)
        count += plan->programs[i].export_count;
    char **merged = must(calloc(count, sizeof *merged));
    for (uint32_t i = 0; i < plan->program_count; i++)
        for (uint32_t k = plan->programs[i].export_count; k-- > 0;)
            merged[used++] = plan->programs[i].exports[k];
    while (*environment)
        merged[used++] = *environment++;
    return merged;
}

/* Quoit's variables, from -x or the environment, unless the command line sets the option. */
static int take_variables(struct plan *plan, char **environment)
{
    char problem[QUOIT_OPTION_PROBLEM_BYTES];
    struct quoit_options options;
    int status = refuse_differences(plan);
    if (status != PLAN_GO_ON)
        return status;
    char **merged = with_exports(plan, environment);
    quoit_options_default(&options);
    if (!quoit_options_from_environment(&options, merged, problem))
        status = bad_usage("%s", problem);
    for (int id = 0; id < QUOIT_OPT_COUNT; id++)
        if (plan->options.values[id].source != QUOIT_FROM_COMMAND_LINE)
            plan->options.values[id] = options.values[id];
    if (status == PLAN_GO_ON && !plan_is_question(plan) && !plan->is_agent)
        quoit_options_unknown(merged, report_unknown, NULL);
    free(merged); /* the entries stay */
    return status;
}

int plan_read(struct plan *plan, int argc, char **argv, char **environment)
{
    quoit_options_default(&plan->options);
    int status = take_command_line(plan, argc, argv);
    return status == PLAN_GO_ON ? take_variables(plan, environment) : status;
}

bool plan_is_question(const struct plan *plan)
{
    return plan_number(plan, QUOIT_OPT_HELP) || plan_number(plan, QUOIT_OPT_VERSION) ||
           plan_number(plan, QUOIT_OPT_OPTIONS) || plan_number(plan, QUOIT_OPT_MAN_OPTIONS);
}

int plan_check(struct plan *plan)
{
    int status = imply_network(plan);
    if (status == PLAN_GO_ON)
        status = find_machines(plan);
    if (status == PLAN_GO_ON)
        status = find_ring(plan);
    if (status == PLAN_GO_ON)
        status = count_pes(plan);
    if (status == PLAN_GO_ON)
        status = read_rings(plan);
    if (status == PLAN_GO_ON)
        status = check_rings(plan);
    if (status == PLAN_GO_ON)
        status = read_debugger(plan);
    if (status == PLAN_GO_ON)
        status = check_driver(plan);
    if (status == PLAN_GO_ON)
        status = check_network(plan);
    if (status == PLAN_GO_ON)
        status = check_texts(plan);
    struct quoit_job_config config = {0};
    if (status == PLAN_GO_ON)
        plan_place(plan, &config);
    for (uint32_t i = 0; i < plan->fault_count && status == PLAN_GO_ON; i++) {
        char text[FAULT_PROBLEM_BYTES];
        if (!fault_fit(&plan->faults[i], &config, text))
            status = bad_usage("%s", text);
    }
    for (uint32_t i = 0; i < plan->program_count && status == PLAN_GO_ON; i++)
        status = program_check(&plan->programs[i], plan->machines.count > 0 && !plan->is_agent);
    return status;
}

const struct plan_program *plan_program_of(const struct plan *plan, uint32_t pe)
{
    uint32_t first = 0;
    for (uint32_t i = 0; i < plan->program_count; i++) {
        if (pe - first < plan->programs[i].pe_count)
            return &plan->programs[i];
        first += plan->programs[i].pe_count;
    }
    quoit_assert(false);
    return NULL;
}

int plan_core_of(const struct plan *plan, uint32_t index)
{
    cpu_set_t set;
    if (strcmp(plan_text(plan, QUOIT_OPT_BIND_TO), "core") != 0 || sched_getaffinity(0, sizeof set, &set) != 0)
        return -1;
    int nth = (int)(index % (uint32_t)CPU_COUNT(&set));
    for (int core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &set) && nth-- == 0)
            return core;
    return -1;
}

void plan_schedules_key(const struct plan *plan, struct quoit_schedules_key *key_out)
{
    quoit_schedules_key_begin(key_out, &plan->options);
    for (uint32_t i = 0; i < plan->machines.count; i++)
        quoit_schedules_key_add(key_out, plan->machines.list[i].name);
    if (plan->machines.count == 0)
        quoit_schedules_key_add_own(key_out, plan->host_count);
}

bool plan_place(const struct plan *plan, struct quoit_job_config *config)
{
    const uint32_t count = hosts_with_pes(plan);
    bool is_placed = true;
    for (uint32_t host = 0, rank = 0; host < plan->host_count && plan->bare_hosts != 0; host++) {
        bool is_bare = plan->bare_hosts >> host & 1;
        is_placed &=
            quoit_job_config_add_host(config, is_bare ? 0 : plan->pe_count / count + (rank++ < plan->pe_count % count));
    }
    for (uint32_t i = 0; i < plan->machines.count; i++)
        is_placed &= quoit_job_config_add_host(config, plan->machines.list[i].pe_count);
    config->host_count = plan->host_count;
    config->pe_count = plan->pe_count;
    config->ring_starts = plan->ring_starts;
    return is_placed;
}

void plan_print(const struct plan *plan)
{
    struct quoit_job_config config = {0};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out)
        return;
    (void)plan_place(plan, &config); /* was tried */
    for (uint32_t pe = 0; pe < plan->pe_count; pe++) {
        const struct plan_program *program = plan_program_of(plan, pe);
        uint32_t host = quoit_job_config_host_of_pe(&config, pe);
        bool is_elsewhere = plan->machines.count > 0; /* whose cores are not known here */
        int core = is_elsewhere ? -1 : plan_core_of(plan, pe);
        if (is_elsewhere)
            fprintf(out, "PE %u  %s  ", pe, plan->machines.list[host].name);
        else
            fprintf(out, "PE %u  host%u  ", pe, host);
        if (core >= 0)
            fprintf(out, "core %d  ", core);
        for (uint32_t i = 0; i < program->export_count; i++)
            fprintf(out, "%s ", program->exports[i]);
        fprintf(out, "%s", program->path);
        for (int i = 1; i < program->argc; i++)
            fprintf(out, " %s", program->argv[i]);
        fprintf(out, "%s%s\n", program->wdir ? "  in " : "", program->wdir ? program->wdir : "");
    }
    fclose(out);
    quoit_text_clean(text, bytes);
    fputs(text, stdout);
    free(text);
}
