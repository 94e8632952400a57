/* SPDX-License-Identifier: BSD-3-Clause */
/* The PMI wire protocol, over the socket PMI_FD, which Hydra, srun --mpi=pmi2 and Flux leave open, or over TCP to
 * PMI_PORT. Version 1, or version 2 if the launcher has no other.
 *
 * MPI in the same process may use the same socket before and after: no request is sent while a response is outstanding,
 * and no byte is read beyond a response. */
#include "boot/detect.h"
#include "boot/exchange.h"
#include "boot/launcher.h"
#include "boot/pmi_wire.h"
#include "base/log.h"
#include "env/process.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_socket(int fd, uint64_t *inode_out)
{
    struct stat stat;
    if (fd < 0 || fstat(fd, &stat) != 0 || !S_ISSOCK(stat.st_mode))
        return false;
    *inode_out = stat.st_ino;
    return true;
}

static int number_of(const char *variable)
{
    const char *text = getenv(variable);
    char *end = NULL;
    long number = text ? strtol(text, &end, 10) : -1;
    return text && end != text && !*end && number >= 0 && number <= INT32_MAX ? (int)number : -1;
}

/* The launcher's process on this host has made the socket. */
static pid_t launcher_of(int fd)
{
    struct ucred peer = {0}; /* of TCP: no process */
    socklen_t bytes = sizeof peer;
    bool is_known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.pid > 0;
    return is_known && quoit_process_descends(getpid(), peer.pid) ? peer.pid : 0;
}

/* A program that a PE starts inherits the variables. The descriptor was closed by exec: if there is one, it is that of
 * a launcher that the PE has started, whose other variables may have the same values. */
static bool is_here(void)
{
    uint64_t inode;
    if (is_socket(number_of("PMI_FD"), &inode))
        return true;
    return getenv("PMI_PORT") && getenv("PMI_ID") && !quoit_detect_is_inherited();
}

/* Reports `what`, followed by the printable part of the answer. */
static enum quoit_status report_broken(const struct quoit_exchange *exchange, const char *what, const char *answer)
{
    char text[81];
    size_t length = 0;
    for (; answer && answer[length] && length < sizeof text - 1; length++)
        text[length] = answer[length] >= ' ' && answer[length] <= '~' ? answer[length] : '?';
    text[length] = '\0';
    quoit_say("the launcher's PMI connection %s%s%s%s; program and launcher must speak PMI version %d [Q0309]", what,
              answer ? ": \"" : "", text, answer ? "\"" : "", exchange->version);
    return QUOIT_INVALID;
}

static enum quoit_status report_closed(const struct quoit_exchange *exchange)
{
    (void)exchange;
    quoit_say("the launcher has closed the PMI connection: it ended, or this is the second OpenSHMEM or MPI program of "
              "one process [Q0309]\n  give each program a launch of its own");
    return QUOIT_INVALID;
}

/* The program may have closed the connection and opened another file under its number. */
static bool is_connected(const struct quoit_exchange *exchange)
{
    uint64_t inode;
    return !exchange->is_closed && is_socket(exchange->fd, &inode) && inode == exchange->fd_inode;
}

static bool send_all(const struct quoit_exchange *exchange, const char *bytes, size_t length)
{
    while (length) {
        ssize_t n = send(exchange->fd, bytes, length, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        length -= (size_t)n;
    }
    return true;
}

static bool send_message(const struct quoit_exchange *exchange, const char *format, va_list args)
{
    char message[QUOIT_PMI_MESSAGE_BYTES + QUOIT_PMI_LENGTH_BYTES];
    size_t before = exchange->version == 2 ? QUOIT_PMI_LENGTH_BYTES : 0;
    int length = vsnprintf(message + before, sizeof message - before, format, args);
    if (length < 0 || (size_t)length >= sizeof message - before)
        return false;
    if (before) {
        char digits[16];
        snprintf(digits, sizeof digits, "%6d", length);
        memcpy(message, digits, before);
    }
    return send_all(exchange, message, before + (size_t)length);
}

/* Reads exactly `bytes`. False: end of file, or an error. */
static bool read_bytes(const struct quoit_exchange *exchange, char *to, size_t bytes)
{
    while (bytes) {
        ssize_t n = recv(exchange->fd, to, bytes, MSG_WAITALL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        to += n;
        bytes -= (size_t)n;
    }
    return true;
}

static const char was_closed[] = "was closed";

/* Takes a line, and no byte beyond it. NULL, or what is wrong. */
static const char *take_line(const struct quoit_exchange *exchange, char line_out[QUOIT_PMI_MESSAGE_BYTES])
{
    size_t length = 0;
    for (;;) {
        ssize_t n = recv(exchange->fd, line_out + length, QUOIT_PMI_MESSAGE_BYTES - 1 - length, MSG_PEEK);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return was_closed;
        char *end = memchr(line_out + length, '\n', (size_t)n);
        size_t taken = end ? (size_t)(end - line_out) - length + 1 : (size_t)n;
        if (!read_bytes(exchange, line_out + length, taken))
            return was_closed;
        length += taken;
        line_out[end ? length - 1 : length] = '\0';
        if (end)
            return NULL;
        if (length == QUOIT_PMI_MESSAGE_BYTES - 1)
            return "sent a line without end";
    }
}

/* As take_line(), for a message with its length before it. */
static const char *take_counted(const struct quoit_exchange *exchange, char message_out[QUOIT_PMI_MESSAGE_BYTES])
{
    char digits[QUOIT_PMI_LENGTH_BYTES + 1] = "";
    if (!read_bytes(exchange, digits, QUOIT_PMI_LENGTH_BYTES))
        return was_closed;
    memcpy(message_out, digits, sizeof digits);
    size_t length = quoit_pmi_length(digits);
    if (length == 0)
        return "sent no message";
    if (!read_bytes(exchange, message_out, length))
        return was_closed;
    message_out[length] = '\0';
    return NULL;
}

static enum quoit_status report(const struct quoit_exchange *exchange, const char *wrong, const char *answer)
{
    if (!wrong)
        return QUOIT_OK;
    return wrong == was_closed ? report_closed(exchange) : report_broken(exchange, wrong, answer);
}

static enum quoit_status read_line(const struct quoit_exchange *exchange, char line_out[QUOIT_PMI_MESSAGE_BYTES])
{
    return report(exchange, take_line(exchange, line_out), line_out);
}

static const char *take_message(const struct quoit_exchange *exchange, char message_out[QUOIT_PMI_MESSAGE_BYTES])
{
    return exchange->version == 1 ? take_line(exchange, message_out) : take_counted(exchange, message_out);
}

/* Sends a request and receives the response, which must have the name `name` and the result 0. */
static enum quoit_status ask(const struct quoit_exchange *exchange, const char *name,
                             char answer_out[QUOIT_PMI_MESSAGE_BYTES], const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static enum quoit_status ask(const struct quoit_exchange *exchange, const char *name,
                             char answer_out[QUOIT_PMI_MESSAGE_BYTES], const char *format, ...)
{
    va_list args;
    if (!is_connected(exchange))
        return report_closed(exchange);
    va_start(args, format);
    bool is_sent = send_message(exchange, format, args);
    va_end(args);
    if (!is_sent)
        return report_closed(exchange);
    enum quoit_status status = report(exchange, take_message(exchange, answer_out), answer_out);
    if (status != QUOIT_OK)
        return status;
    if (!quoit_pmi_is(answer_out, exchange->version, name))
        return report_broken(exchange, "sent another answer than it was asked for", answer_out);
    if (quoit_pmi_number(answer_out, exchange->version, "rc", 0) != 0)
        return report_broken(exchange, "refused what it was asked for", answer_out);
    return QUOIT_OK;
}

/* getaddrinfo() is looked up by name, since a direct call makes the linker warn in programs that are linked statically.
 * There it is not found, and only numeric addresses work. */
static int find_address(const char *host, const char *port, struct sockaddr_storage *address_out)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
    struct sockaddr_in *internet = (struct sockaddr_in *)address_out;
    __typeof__(&getaddrinfo) find = (__typeof__(&getaddrinfo))dlsym(RTLD_DEFAULT, "getaddrinfo");
    __typeof__(&freeaddrinfo) release = (__typeof__(&freeaddrinfo))dlsym(RTLD_DEFAULT, "freeaddrinfo");
    memset(address_out, 0, sizeof *address_out);
    internet->sin_family = AF_INET;
    internet->sin_port = htons((uint16_t)atoi(port));
    if (inet_pton(AF_INET, host, &internet->sin_addr) == 1)
        return 0;
    if (!find || !release || find(host, port, &hints, &found) != 0)
        return -1;
    memcpy(address_out, found->ai_addr, found->ai_addrlen);
    release(found);
    return 0;
}

static enum quoit_status connect_to(struct quoit_exchange *exchange, const char *port_text)
{
    char host[256], port[8];
    struct sockaddr_storage address;
    if (!quoit_pmi_port(port_text, host, sizeof host, port, sizeof port) || find_address(host, port, &address) != 0)
        return report_broken(exchange, "cannot be found at PMI_PORT", port_text);
    exchange->fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (exchange->fd >= 0 && connect(exchange->fd, (struct sockaddr *)&address, sizeof address) != 0) {
        close(exchange->fd);
        exchange->fd = -1;
    }
    if (!is_socket(exchange->fd, &exchange->fd_inode))
        return report_broken(exchange, "cannot be made to PMI_PORT", port_text);
    return QUOIT_OK;
}

/* A process that connects to PMI_PORT sends its id, and receives rank and size in lines of their own. */
static enum quoit_status introduce(struct quoit_exchange *exchange)
{
    char line[QUOIT_PMI_MESSAGE_BYTES];
    long rank = -1, size = -1;
    enum quoit_status status = ask(exchange, "initack", line, "cmd=initack pmiid=%d\n", number_of("PMI_ID"));
    for (int i = 0; status == QUOIT_OK && i < 3; i++) { /* size, rank and debug, in this order or another */
        status = read_line(exchange, line);
        if (status == QUOIT_OK && !quoit_pmi_is(line, 1, "set"))
            return report_broken(exchange, "sent another answer than it was asked for", line);
        rank = quoit_pmi_number(line, 1, "rank", rank);
        size = quoit_pmi_number(line, 1, "size", size);
    }
    exchange->rank = (uint32_t)rank;
    exchange->size = (uint32_t)size;
    return status;
}

static enum quoit_status open_1(struct quoit_exchange *exchange)
{
    char answer[QUOIT_PMI_MESSAGE_BYTES];
    enum quoit_status status = ask(exchange, "my_kvsname", answer, "cmd=get_my_kvsname\n");
    if (status == QUOIT_OK && !quoit_pmi_value(answer, 1, "kvsname", exchange->job, sizeof exchange->job))
        return report_broken(exchange, "named no job", answer);
    return status;
}

static enum quoit_status open_2(struct quoit_exchange *exchange)
{
    char answer[QUOIT_PMI_MESSAGE_BYTES];
    exchange->version = 2;
    const char *job = getenv("PMI_JOBID");
    snprintf(exchange->job, sizeof exchange->job, "%s", job ? job : "");
    enum quoit_status status =
        ask(exchange, "fullinit-response", answer, "cmd=fullinit;pmijobid=%.200s;pmirank=%u;threaded=FALSE;",
            exchange->job, exchange->rank);
    if (status != QUOIT_OK)
        return status;
    exchange->rank = (uint32_t)quoit_pmi_number(answer, 2, "rank", exchange->rank);
    exchange->size = (uint32_t)quoit_pmi_number(answer, 2, "size", exchange->size);
    quoit_pmi_value(answer, 2, "pmijobid", exchange->job, sizeof exchange->job);
    return QUOIT_OK;
}

/* The first request is in the format of version 1. A launcher that only has version 2 refuses it with that number. */
static enum quoit_status choose_version(struct quoit_exchange *exchange, bool is_second)
{
    char answer[QUOIT_PMI_MESSAGE_BYTES];
    if (!is_connected(exchange))
        return report_closed(exchange);
    char request[64];
    int length = snprintf(request, sizeof request, "cmd=init pmi_version=%d pmi_subversion=%d\n", is_second ? 2 : 1,
                          is_second ? 0 : 1);
    if (!send_all(exchange, request, (size_t)length))
        return report_closed(exchange);
    enum quoit_status status = read_line(exchange, answer);
    if (status != QUOIT_OK)
        return status;
    if (!quoit_pmi_is(answer, 1, "response_to_init"))
        return report_broken(exchange, "sent another answer than it was asked for", answer);
    bool is_refused = quoit_pmi_number(answer, 1, "rc", 0) != 0;
    if (is_refused && !is_second && quoit_pmi_number(answer, 1, "pmi_version", 1) == 2)
        return choose_version(exchange, true);
    if (is_refused)
        return report_broken(exchange, "refused what it was asked for", answer);
    return is_second ? open_2(exchange) : open_1(exchange);
}

static enum quoit_status open_any(struct quoit_exchange *exchange, bool is_second)
{
    enum quoit_status status = QUOIT_OK;
    bool is_begun = !is_second && quoit_boot_mpi_was_used();
    exchange->version = 1;
    exchange->fd = number_of("PMI_FD");
    exchange->rank = (uint32_t)number_of("PMI_RANK");
    exchange->size = (uint32_t)number_of("PMI_SIZE");
    if (!is_socket(exchange->fd, &exchange->fd_inode)) {
        is_begun = false;
        status = connect_to(exchange, getenv("PMI_PORT"));
        if (status == QUOIT_OK)
            status = introduce(exchange);
    }
    exchange->launcher = launcher_of(exchange->fd);
    if (status == QUOIT_OK) /* MPI has begun the connection, and Slurm does not answer a second "init" */
        status = is_begun ? open_1(exchange) : choose_version(exchange, is_second);
    if (status == QUOIT_OK &&
        (exchange->size < 1 || exchange->size > QUOIT_EXCHANGE_RANKS_MAX || exchange->rank >= exchange->size))
        return report_broken(exchange, "gave no rank below the size (PMI_RANK, PMI_SIZE)", NULL);
    if (status == QUOIT_OK)
        fcntl(exchange->fd, F_SETFD, FD_CLOEXEC); /* programs that this one starts are not part of the job */
    return status;
}

static enum quoit_status open_first(struct quoit_exchange *exchange)
{
    return open_any(exchange, false);
}

static enum quoit_status open_second(struct quoit_exchange *exchange)
{
    return open_any(exchange, true);
}

#define KEY_BYTES 32

static const char *key_of(uint32_t rank, uint32_t part, char key[KEY_BYTES])
{
    if (part == 0)
        snprintf(key, KEY_BYTES, "quoit-%u", rank);
    else
        snprintf(key, KEY_BYTES, "quoit-%u-%u", rank, part);
    return key;
}

static enum quoit_status put(struct quoit_exchange *exchange, uint32_t part, const char *value)
{
    char answer[QUOIT_PMI_MESSAGE_BYTES], key[KEY_BYTES];
    key_of(exchange->rank, part, key);
    if (exchange->version == 2)
        return ask(exchange, "kvs-put-response", answer, "cmd=kvs-put;key=%s;value=%s;", key, value);
    return ask(exchange, "put_result", answer, "cmd=put kvsname=%s key=%s value=%s\n", exchange->job, key, value);
}

static enum quoit_status fence(struct quoit_exchange *exchange)
{
    char answer[QUOIT_PMI_MESSAGE_BYTES];
    if (exchange->version == 2)
        return ask(exchange, "kvs-fence-response", answer, "cmd=kvs-fence;");
    return ask(exchange, "barrier_out", answer, "cmd=barrier_in\n");
}

static enum quoit_status get(struct quoit_exchange *exchange, uint32_t rank, uint32_t part,
                             char value_out[QUOIT_EXCHANGE_BYTES])
{
    char answer[QUOIT_PMI_MESSAGE_BYTES], key[KEY_BYTES];
    enum quoit_status status;
    key_of(rank, part, key);
    if (exchange->version == 2)
        status = ask(exchange, "kvs-get-response", answer, "cmd=kvs-get;jobid=%s;srcid=-1;key=%s;", exchange->job, key);
    else
        status = ask(exchange, "get_result", answer, "cmd=get kvsname=%s key=%s\n", exchange->job, key);
    if (status == QUOIT_OK && !quoit_pmi_value(answer, exchange->version, "value", value_out, QUOIT_EXCHANGE_BYTES))
        return report_broken(exchange, "has no value of a PE", answer);
    return status;
}

/* Sends a request without reading a response: the process is about to end, or MPI is the next reader. */
static void notify(struct quoit_exchange *exchange, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void notify(struct quoit_exchange *exchange, const char *format, ...)
{
    va_list args;
    if (!is_connected(exchange))
        return;
    va_start(args, format);
    if (!send_message(exchange, format, args))
        exchange->is_closed = true;
    va_end(args);
}

static void close_it(struct quoit_exchange *exchange)
{
    char answer[QUOIT_PMI_MESSAGE_BYTES];
    if (exchange->is_closed || quoit_boot_mpi_was_used()) /* MPI_Finalize closes, which launchers accept once */
        return;
    notify(exchange, "%s", exchange->version == 2 ? "cmd=finalize;" : "cmd=finalize\n");
    /* The acknowledgement is awaited whole, whatever it says: Hydra sends it in two pieces, and kills the job where the
     * second finds the connection closed. */
    if (is_connected(exchange))
        take_message(exchange, answer);
    exchange->is_closed = true;
}

static void abort_it(struct quoit_exchange *exchange, int status, const char *text)
{
    if (exchange->version == 2)
        notify(exchange, "cmd=abort;isworld=TRUE;msg=%.80s;", text);
    else
        notify(exchange, "cmd=abort exitcode=%d\n", status);
}

const struct quoit_exchange_ops quoit_exchange_pmi = {
    .name = "pmi",
    .is_here = is_here,
    .open = open_first,
    .put = put,
    .fence = fence,
    .get = get,
    .close = close_it,
    .abort = abort_it,
};

const struct quoit_exchange_ops quoit_exchange_pmi2 = {
    .name = "pmi2",
    .is_here = is_here,
    .open = open_second,
    .put = put,
    .fence = fence,
    .get = get,
    .close = close_it,
    .abort = abort_it,
};
