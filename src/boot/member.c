/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs of other launchers: PEs find each other through the launcher's key-value exchange (exchange.h), and the lowest
 * PE of each host starts the agent, which stands in for oshrun (agent.h). The hosts of a job find each other through
 * the exchange too. */
#include "boot/agent.h"
#include "boot/leader.h"
#include "boot/client.h"
#include "boot/detect.h"
#include "boot/ended.h"
#include "boot/heap_default.h"
#include "boot/hosts.h"
#include "boot/late.h"
#include "boot/launcher.h"
#include "boot/watch.h"
#include "base/digest.h"
#include "base/log.h"
#include "env/clock.h"
#include "env/limits.h"
#include "env/own_file.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FIELD_BYTES     QUOIT_HOSTS_TEXT_BYTES
#define PART_CONTACT    0u /* of a PE, in the exchange */
#define PART_NETWORK    1u /* and the next: of its host's proxy, from the lowest PE */
#define LOOK_NS         50000u
#define REASON_NS       1000000000u
#define CRASH_LOOK_NS   1000000
#define CRASH_LOOKS_MAX 1500

/* The value of a PE in the exchange: "quoit,VERSION,MACHINE,HOSTNAME,PROCESS,AGENT,NEEDS". */
struct contact {
    char version[FIELD_BYTES]; /* a word of base/version.h */
    char machine[FIELD_BYTES]; /* PEs with the same value can connect to each other */
    char hostname[FIELD_BYTES];
    char process[FIELD_BYTES]; /* pid and pid namespace */
    char agent[FIELD_BYTES];   /* the socket on which it will listen if it is the lowest of its host */
    char needs[FIELD_BYTES];   /* numbers of struct quoit_hosts_entry, "DATA.HEAP.SHARE.TAG" */
};

static void copy_plain(char *to, const char *from)
{
    size_t i = 0;
    for (; from[i] && from[i] != '\n' && i < FIELD_BYTES - 1; i++)
        to[i] = (from[i] >= 'a' && from[i] <= 'z') || (from[i] >= 'A' && from[i] <= 'Z') ||
                        (from[i] >= '0' && from[i] <= '9') || from[i] == '-' || from[i] == '.'
                    ? from[i]
                    : '_';
    to[i] = '\0';
}

static void fill_machine(char machine_out[FIELD_BYTES])
{
    char boot_id[40] = "", machine[FIELD_BYTES];
    struct stat net = {0};
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, boot_id, 36) < 0)
        boot_id[0] = '\0';
    if (fd >= 0)
        close(fd);
    if (stat("/proc/self/ns/net", &net) != 0)
        net.st_ino = 0; /* without /proc: assume one network namespace */
    snprintf(machine, sizeof machine, "%s.%llu", boot_id, (unsigned long long)net.st_ino);
    copy_plain(machine_out, machine);
}

/* Abstract sockets belong to a network namespace of a running kernel. */
static void fill_contact(const struct quoit_boot *boot, uint64_t data_bytes, const char *agent, struct contact *contact)
{
    char name[FIELD_BYTES] = "";
    struct stat pids = {0};
    if (gethostname(name, sizeof name - 1) != 0)
        snprintf(name, sizeof name, "unknown");
    quoit_version_write(quoit_version(), contact->version);
    fill_machine(contact->machine);
    copy_plain(contact->hostname, name);
    if (stat("/proc/self/ns/pid", &pids) != 0)
        pids.st_ino = (ino_t)getpid(); /* without /proc: no pid of another PE is used */
    snprintf(contact->process, sizeof contact->process, "%d.%llu", (int)getpid(), (unsigned long long)pids.st_ino);
    snprintf(contact->agent, sizeof contact->agent, "%s", agent);
    uint64_t tag = 0, heap_bytes = quoit_heap_default_bytes(1, 1, 1, data_bytes, quoit_heap_most_bytes());
    if (getrandom(&tag, sizeof tag, 0) != (ssize_t)sizeof tag)
        tag = (uint64_t)getpid();
    snprintf(contact->needs, sizeof contact->needs, "%llx.%llx.%llx.%llx", (unsigned long long)data_bytes,
             (unsigned long long)boot->heap_bytes_asked, (unsigned long long)heap_bytes, (unsigned long long)tag);
}

static bool read_contact(const char *text, struct contact *contact_out)
{
    char copy[QUOIT_EXCHANGE_BYTES], *rest = copy;
    snprintf(copy, sizeof copy, "%s", text);
    const char *word = strsep(&rest, ",");
    char *fields[] = {contact_out->version, contact_out->machine, contact_out->hostname,
                      contact_out->process, contact_out->agent,   contact_out->needs};
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        const char *field = rest ? strsep(&rest, ",") : NULL;
        if (!field || strlen(field) >= FIELD_BYTES)
            return false;
        strcpy(fields[i], field);
    }
    return strcmp(word, "quoit") == 0 && !rest;
}

static bool read_needs(const char *text, struct quoit_hosts_entry *entry_out)
{
    uint64_t numbers[4];
    char *end = NULL;
    for (int i = 0; i < 4; i++) {
        numbers[i] = strtoull(text, &end, 16);
        if (end == text || *end != (i < 3 ? '.' : '\0'))
            return false;
        text = end + 1;
    }
    entry_out->data_bytes = numbers[0];
    entry_out->heap_bytes = numbers[1];
    entry_out->heap_share = numbers[2];
    entry_out->tag = numbers[3];
    return true;
}

static enum quoit_status put_contact(struct quoit_exchange *exchange, const struct contact *contact)
{
    char text[QUOIT_EXCHANGE_BYTES + 3 * FIELD_BYTES];
    snprintf(text, sizeof text, "quoit,%s,%s,%s,%s,%s,%s", contact->version, contact->machine, contact->hostname,
             contact->process, contact->agent, contact->needs);
    if (strlen(text) >= QUOIT_EXCHANGE_BYTES) /* all else is short */
        snprintf(text, sizeof text, "quoit,%s,%s,%.32s,%s,%s,%s", contact->version, contact->machine, contact->hostname,
                 contact->process, contact->agent, contact->needs);
    return exchange->ops->put(exchange, PART_CONTACT, text);
}

/* Without a limit: programs may do other things before they call shmem_init. */
static enum quoit_status wait_for_all(struct quoit_boot *boot)
{
    struct quoit_exchange *exchange = &boot->exchange;
    struct quoit_late late;
    if (exchange->rank != 0)
        return exchange->ops->fence(exchange);
    quoit_late_begin(&late, boot->network.link_timeout_ns);
    enum quoit_status status = exchange->ops->fence(exchange);
    quoit_late_end(&late);
    return status;
}

static enum quoit_status get_contact(struct quoit_exchange *exchange, uint32_t rank, struct contact *contact_out)
{
    char text[QUOIT_EXCHANGE_BYTES];
    enum quoit_status status = exchange->ops->get(exchange, rank, PART_CONTACT, text);
    if (status == QUOIT_OK && !read_contact(text, contact_out)) {
        quoit_say("PE %u is not of this version of Quoit, or not of Quoit: build all programs of a job with one oshcc "
                  "[Q0311]",
                  rank);
        return QUOIT_INVALID;
    }
    return status;
}

/* PE 0 has reported why; the others end without a message. */
static enum quoit_status refuse(struct quoit_exchange *exchange)
{
    exchange->ops->close(exchange); /* all PEs come here, so the launcher need not end them */
    return exchange->rank == 0 ? QUOIT_UNSUPPORTED : QUOIT_GONE;
}

/* 0: the PE is in another pid namespace, or on another host. */
static pid_t process_of(const struct contact *own, const struct contact *other)
{
    const char *ours = strchr(own->process, '.'), *theirs = strchr(other->process, '.');
    bool is_visible = ours && theirs && strcmp(ours, theirs) == 0 && strcmp(own->machine, other->machine) == 0;
    return is_visible ? atoi(other->process) : 0;
}

static bool is_understood(const struct contact *other, struct quoit_version *version_out)
{
    return quoit_version_read(other->version, version_out) && quoit_versions_fit(quoit_version(), version_out);
}

static bool is_of_version(const struct quoit_exchange *exchange, uint32_t rank, const struct contact *other)
{
    struct quoit_version version;
    char library[PATH_MAX];
    if (is_understood(other, &version))
        return true;
    (void)quoit_own_file(library);
    if (exchange->rank == 0)
        quoit_say(
            "PE %u on %s has Quoit of version %s, which version %s of PE 0 (%s) does not understand: start all PEs "
            "with libraries of one version [Q0311]",
            rank, other->hostname, version.text[0] ? version.text : "unknown", quoit_version()->text, library);
    return false;
}

/* The lowest PE of a host reads the contacts of all. */
static enum quoit_status read_all(struct quoit_exchange *exchange, const struct contact *own, struct quoit_hosts *hosts,
                                  pid_t *processes_out)
{
    struct contact other;
    for (uint32_t rank = 0; rank < exchange->size; rank++) {
        enum quoit_status status = get_contact(exchange, rank, &other);
        if (status != QUOIT_OK)
            return status;
        struct quoit_hosts_entry entry = {.machine = other.machine, .name = other.hostname};
        if (!is_of_version(exchange, rank, &other) || !read_needs(other.needs, &entry))
            return refuse(exchange);
        if (quoit_hosts_add(hosts, &entry) != QUOIT_OK) {
            if (exchange->rank == 0)
                quoit_say("a job has %d hosts at most, with %d PEs each at most: PE %u is on one more [Q0308]",
                          QUOIT_JOB_HOSTS_MAX, QUOIT_LOCAL_PES_MAX, rank);
            return refuse(exchange);
        }
        processes_out[rank] = process_of(own, &other);
    }
    struct quoit_job_config job;
    if (hosts->count == 1 || quoit_hosts_configure(hosts, &job))
        return QUOIT_OK;
    if (exchange->rank == 0)
        quoit_say(
            "hosts may have different numbers of PEs in %d rows of equal ones at most, in the order of ranks [Q0308]",
            QUOIT_HOST_ROWS_MAX);
    return refuse(exchange);
}

/* The lowest PE of a host: starts the agent, which then owns the socket. */
static enum quoit_status become_lowest(struct quoit_boot *boot, const struct contact *own, int listen_fd)
{
    struct quoit_exchange *exchange = &boot->exchange;
    struct quoit_hosts *hosts = NULL;
    pid_t *processes = calloc(exchange->size, sizeof *processes);
    enum quoit_status status = processes ? quoit_hosts_open(exchange->size, &hosts) : QUOIT_NO_MEMORY;
    if (status == QUOIT_OK)
        status = read_all(exchange, own, hosts, processes);
    if (status == QUOIT_OK) {
        int fd;
        pid_t agent;
        boot->hosts = hosts;
        status = quoit_agent_start(boot, hosts, processes, listen_fd, &fd, &agent);
        if (status == QUOIT_OK)
            status = quoit_watch_start(boot, fd, agent);
    } else {
        close(listen_fd);
        quoit_hosts_close(hosts);
    }
    free(processes);
    return status;
}

/* What one PE of a machine publishes for the others: the lowest rank on it, and what that publishes of itself. */
struct lowest {
    uint32_t rank;
    struct contact contact;
};

/* The ranks from 1 on; rank 0 is on another machine. Stops at the lowest, unless it is to count all ranks of the
 * machine. */
static enum quoit_status search(struct quoit_exchange *exchange, const struct contact *own, struct lowest *lowest_out,
                                uint32_t *count_out)
{
    uint32_t count = 0, end = count_out ? exchange->size : exchange->rank;
    *lowest_out = (struct lowest){.rank = exchange->rank, .contact = *own};
    for (uint32_t rank = 1; rank < end && (count == 0 || count_out); rank++) {
        struct contact other = *own;
        enum quoit_status status = rank == exchange->rank ? QUOIT_OK : get_contact(exchange, rank, &other);
        if (status != QUOIT_OK)
            return status;
        if (strcmp(other.machine, own->machine) != 0)
            continue;
        if (count++ == 0)
            *lowest_out = (struct lowest){.rank = rank, .contact = other};
    }
    if (count_out)
        *count_out = count;
    return QUOIT_OK;
}

/* So that not every PE of a job asks the launcher for all others, those of a machine ask once. They meet at a name that
 * only the job knows: rank 0's, and the machine. */
static enum quoit_status ask_or_receive(struct quoit_exchange *exchange, const struct contact *own,
                                        const char *agent_of_0, struct lowest *lowest_out)
{
    char name[QUOIT_AGENT_NAME_BYTES + 16];
    uint32_t count = 0;
    int fd;
    snprintf(name, sizeof name, "%.*s-%08x", QUOIT_AGENT_NAME_BYTES - 1, agent_of_0,
             quoit_digest(own->machine, strlen(own->machine)));
    enum quoit_leader_role role = quoit_leader_meet(name, &fd);
    if (role == QUOIT_LEADER_OTHER && quoit_leader_receive(fd, lowest_out, sizeof *lowest_out) &&
        lowest_out->rank <= exchange->rank && strncmp(lowest_out->contact.machine, own->machine, FIELD_BYTES) == 0)
        return QUOIT_OK;
    enum quoit_status status = search(exchange, own, lowest_out, role == QUOIT_LEADER_SELF ? &count : NULL);
    if (role == QUOIT_LEADER_SELF)
        quoit_leader_publish(fd, lowest_out, sizeof *lowest_out, status == QUOIT_OK ? count - 1 : 0);
    return status;
}

/* The lowest rank on this machine, and what it publishes. */
static enum quoit_status find_lowest(struct quoit_exchange *exchange, const struct contact *own,
                                     struct lowest *lowest_out)
{
    struct contact first = *own;
    enum quoit_status status = exchange->rank == 0 ? QUOIT_OK : get_contact(exchange, 0, &first);
    if (status != QUOIT_OK)
        return status;
    if (strcmp(first.machine, own->machine) != 0)
        return ask_or_receive(exchange, own, first.agent, lowest_out);
    *lowest_out = (struct lowest){.contact = first};
    return QUOIT_OK;
}

/* None knows before the fence which is the lowest of its host, so each has a socket. name_out: of the lowest's. */
static enum quoit_status find_agent(struct quoit_boot *boot, uint64_t data_bytes, char name_out[QUOIT_AGENT_NAME_BYTES])
{
    struct quoit_exchange *exchange = &boot->exchange;
    struct contact own = {0};
    struct lowest lowest;
    struct quoit_version version;
    int listen_fd = -1;
    enum quoit_status status = quoit_agent_listen(name_out, &listen_fd);
    if (status != QUOIT_OK)
        return status;
    fill_contact(boot, data_bytes, name_out, &own);
    status = put_contact(exchange, &own);
    if (status == QUOIT_OK)
        status = wait_for_all(boot);
    if (status == QUOIT_OK)
        status = find_lowest(exchange, &own, &lowest);
    if (status == QUOIT_OK && lowest.rank == exchange->rank)
        return become_lowest(boot, &own, listen_fd);
    close(listen_fd);
    if (status != QUOIT_OK)
        return status;
    if (!is_understood(&lowest.contact, &version))
        return refuse(exchange);
    snprintf(name_out, QUOIT_AGENT_NAME_BYTES, "%.*s", QUOIT_AGENT_NAME_BYTES - 1, lowest.contact.agent);
    return quoit_watch_connect(boot, name_out);
}

/* Hosts find each other: the lowest PE of each passes on the contact of its proxy, and receives those of all; all pass
 * the fence. */
static enum quoit_status join_hosts(struct quoit_boot *boot)
{
    struct quoit_exchange *exchange = &boot->exchange;
    struct quoit_boot_message message;
    bool is_lowest = boot->pe == boot->layout.first_pe;
    enum quoit_status status = is_lowest ? quoit_client_receive_contact(boot, &message) : QUOIT_OK;
    if (status == QUOIT_OK && is_lowest)
        status = quoit_exchange_put_block(exchange, PART_NETWORK, message.body.contact.bytes,
                                          sizeof message.body.contact.bytes);
    if (status == QUOIT_OK)
        status = exchange->ops->fence(exchange);
    for (uint32_t host = 0; host < boot->layout.job.host_count && is_lowest && status == QUOIT_OK; host++) {
        message.body.contact.host = host;
        status = quoit_exchange_get_block(exchange, boot->hosts->list[host].lowest_rank, PART_NETWORK,
                                          message.body.contact.bytes, sizeof message.body.contact.bytes);
        if (status == QUOIT_OK)
            status = quoit_client_send(boot, &message);
    }
    return status;
}

static enum quoit_status meet(struct quoit_boot *boot, uint64_t data_bytes, const char *name)
{
    struct quoit_boot_message hello = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_HELLO};
    int fd = -1;
    enum quoit_status status = quoit_agent_connect(name, &fd);
    if (status == QUOIT_OK)
        status = quoit_client_open(boot, fd);
    if (status != QUOIT_OK)
        return status;
    hello.body.hello.version = *quoit_version();
    hello.body.hello.data_bytes = data_bytes;
    hello.body.hello.heap_most_bytes = quoit_heap_most_bytes();
    hello.body.hello.pe = boot->exchange.rank;
    hello.body.hello.core_count = quoit_limits_core_count();
    cpu_set_t cores;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        for (uint32_t core = 0; core < QUOIT_BOOT_CORES_MAX; core++)
            if (CPU_ISSET(core, &cores))
                hello.body.hello.cores[core / 64] |= 1ull << core % 64;
    return quoit_client_join(boot, &hello);
}

/* The agent has ended the job, or has ended itself. The thread that watches it sees that as well: it reports it, and
 * ends this process with the job's status. */
static void wait_for_reason(const struct quoit_boot *boot, enum quoit_status status)
{
    uint64_t until_ns = quoit_clock_now_ns() + REASON_NS;
    while (status == QUOIT_GONE && atomic_load(&boot->needs_agent) && quoit_clock_now_ns() < until_ns)
        quoit_clock_sleep_ns(LOOK_NS);
}

/* There is no agent that could have those of other hosts end. */
static void ask_for_end(struct quoit_exchange *exchange)
{
    quoit_ended_pause();
    exchange->ops->abort(exchange, 1, "the job could not start");
}

static bool is_here(const char *launcher)
{
    return quoit_exchange_find(launcher) != NULL;
}

static enum quoit_status join(struct quoit_boot *boot, uint64_t data_bytes)
{
    struct quoit_exchange *exchange = &boot->exchange;
    char name[QUOIT_AGENT_NAME_BYTES] = "";
    exchange->ops = quoit_exchange_find(boot->launcher);
    enum quoit_status status = exchange->ops->open(exchange);
    if (status != QUOIT_OK)
        return status;
    quoit_detect_mark_joined();
    if (exchange->size == 1)
        return quoit_boot_alone.join(boot, data_bytes);
    status = find_agent(boot, data_bytes, name);
    if (status == QUOIT_OK)
        status = meet(boot, data_bytes, name);
    if (status == QUOIT_OK && boot->layout.job.host_count > 1)
        status = join_hosts(boot);
    wait_for_reason(boot, status);
    if (status == QUOIT_GONE && !exchange->is_closed)
        ask_for_end(exchange);
    return status;
}

static struct quoit_pe_shared *record_of(const struct quoit_boot *boot, uint32_t pe)
{
    return quoit_memory_pe(&boot->layout, boot->memory, pe - boot->layout.first_pe);
}

/* Not if the process fails: the launcher must see that. */
static void close_at_exit(int status, void *arg)
{
    struct quoit_boot *boot = arg;
    if (status == 0 && quoit_detect_has_joined()) /* no forked child */
        boot->exchange.ops->close(&boot->exchange);
}

static enum quoit_status barrier(struct quoit_boot *boot)
{
    struct quoit_pe_shared *own = record_of(boot, boot->pe);
    bool is_again = atomic_load(&own->unsent_kind) == QUOIT_BOOT_FINALIZED; /* another shmem_init */
    if (is_again)
        atomic_store_explicit(&own->unsent_kind, QUOIT_BOOT_READY, memory_order_release);
    atomic_store(&boot->has_records, true);
    atomic_store(&boot->needs_agent, boot->layout.job.pe_count > 1);
    enum quoit_status status = boot->layout.job.pe_count == 1 ? QUOIT_OK : quoit_client_barrier(boot);
    wait_for_reason(boot, status);
    if (status == QUOIT_OK && !quoit_boot_has_mpi())
        boot->exchange.ops->close(&boot->exchange); /* from here on the agent ends the job */
    else if (status == QUOIT_OK && !is_again)
        on_exit(close_at_exit, boot); /* MPI may need the launcher at any time */
    atomic_store_explicit(&own->unsent_kind, 0, memory_order_release);
    return status;
}

static void leaving(struct quoit_boot *boot, uint64_t meeting_count, bool is_exit)
{
    quoit_client_leave_word(boot, QUOIT_BOOT_LEAVING, is_exit, meeting_count);
}

/* Of several hosts: the proxy still carries the last barrier of other hosts' PEs. Of one: an agent that is stopped
 * would be left when the PEs have ended, with nobody to report it. */
static void wait_for_agent(const struct quoit_boot *boot)
{
    const struct quoit_host_header *header = boot->memory;
    const struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_FINALIZED};
    if (quoit_client_send(boot, &message) != QUOIT_OK) /* the program has closed the socket */
        return;
    while (atomic_load(&header->finalized_count) < boot->finalized_count)
        quoit_clock_sleep_ns(LOOK_NS);
}

static void wait_for_own_host(const struct quoit_boot *boot)
{
    for (uint32_t local = 0; local < boot->layout.local_count;) {
        uint32_t kind =
            atomic_load_explicit(&record_of(boot, boot->layout.first_pe + local)->unsent_kind, memory_order_acquire);
        if (kind == QUOIT_BOOT_FINALIZED || kind == QUOIT_BOOT_READY)
            local++;
        else
            quoit_clock_sleep_ns(LOOK_NS);
    }
}

/* The lowest PE of a host leaves shmem_finalize last. Launchers end what is left of a host when all its PEs have ended,
 * and the agents of several hosts need each other until all have finalized. And it leads the teams of its host: it
 * gives them up only when the agent, which looks for PEs that left while others were elsewhere, can find none any more.
 */
static void finalized(struct quoit_boot *boot)
{
    boot->finalized_count++;
    quoit_client_leave_word(boot, QUOIT_BOOT_FINALIZED, 0, 0);
    if (boot->pe == boot->layout.first_pe && boot->layout.job.pe_count > 1) {
        wait_for_own_host(boot);
        wait_for_agent(boot);
    }
    atomic_store(&boot->needs_agent, false);
}

static void exiting(struct quoit_boot *boot, int status)
{
    quoit_client_leave_word(boot, QUOIT_BOOT_EXITED, (uint32_t)status, 0);
}

/* Once this process has ended, the agent ends the others. */
static bool end_job(struct quoit_boot *boot, int status, const char *text, uint64_t from)
{
    (void)text;
    (void)from;
    if (!boot->memory)
        return false;
    quoit_client_leave_word(boot, QUOIT_BOOT_ABORT, (uint32_t)status, 0);
    return !quoit_ended_claim(boot->memory, status); /* only the first PE that aborts prints its text */
}

/* Some launchers kill all processes once one was killed, so this one waits until the agent has reported why.
 * Async-signal-safe. */
static void crashed(struct quoit_boot *boot)
{
    const struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = QUOIT_BOOT_CRASHED};
    const struct quoit_host_header *header = boot->memory;
    if (boot->layout.job.pe_count == 1 || quoit_client_send(boot, &message) != QUOIT_OK)
        return;
    for (uint32_t looks = 0; looks < CRASH_LOOKS_MAX && !atomic_load(&header->is_reported); looks++)
        nanosleep(&(struct timespec){.tv_nsec = CRASH_LOOK_NS}, NULL);
}

const struct quoit_boot_ops quoit_boot_member = {
    .name = "another launcher",
    .is_here = is_here,
    .join = join,
    .barrier = barrier,
    .leaving = leaving,
    .finalized = finalized,
    .exiting = exiting,
    .crashed = crashed,
    .abort = end_job,
};
