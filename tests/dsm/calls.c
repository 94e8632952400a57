/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls whose buffers are shared memory.
 *
 * PE 0 fills a block with a pattern, the last PE makes a call with a part of it, after it has touched none of it, read
 * it, or written another byte of each page. The model is an array in private memory: every byte of the block is
 * compared with it, by the PE that made the call and, after a barrier, by PE 0, which also sees by that whether bytes
 * were sent that the call did not move. What comes out of a block is read back into private memory.
 *
 * calls [all|refused|off|edge]: refused: a call that is not helped, whose message the test looks for. off:
 * DSM_CALLS=off, where a page that was not touched is EFAULT. edge: a buffer that ends behind shared memory
 * (DSM_SPACE=16M). */
#include <dsm.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define BLOCK_BYTES (320u << 10) /* two chunks */
#define PAGE        4096u
#define ROUNDS      200 /* of threads */

static _Noreturn __attribute__((format(printf, 1, 2))) void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "calls: PE %d: ", dsm_my_pe());
    vfprintf(stderr, format, args);
    fprintf(stderr, " (errno: %s)\n", strerror(errno));
    va_end(args);
    _exit(1);
}

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            fail("line %d: not so: %s", __LINE__, #condition);                                                         \
    } while (0)

static char pattern(unsigned seed, size_t at)
{
    uint32_t x = (uint32_t)at * 40503u + seed * 2654435761u;
    x = (x ^ x >> 13) * 0x5bd1e995u;
    return (char)(x >> 24);
}

static void fill(char *to, unsigned seed, size_t from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = pattern(seed, from + i);
}

/* Ends of pipes and sockets, whose other side a thread serves */

struct other_side {
    pthread_t thread;
    int fd;
    char *data;
    size_t bytes;
    bool is_reader;
};

static void *serve(void *context)
{
    struct other_side *side = context;
    for (size_t at = 0; at < side->bytes;) {
        ssize_t now = side->is_reader ? read(side->fd, side->data + at, side->bytes - at)
                                      : write(side->fd, side->data + at, side->bytes - at);
        if (now <= 0)
            break;
        at += (size_t)now;
    }
    if (!side->is_reader)
        shutdown(side->fd, SHUT_WR);
    return NULL;
}

static void begin(struct other_side *side, int fd, char *data, size_t bytes, bool is_reader)
{
    *side = (struct other_side){.fd = fd, .data = data, .bytes = bytes, .is_reader = is_reader};
    CHECK(pthread_create(&side->thread, NULL, serve, side) == 0);
}

static void end(struct other_side *side, int own)
{
    pthread_join(side->thread, NULL);
    close(side->fd);
    close(own);
}

static int file_with(const char *data, size_t bytes)
{
    int fd = memfd_create("calls", 0);
    CHECK(fd >= 0);
    CHECK(write(fd, data, bytes) == (ssize_t)bytes);
    CHECK(lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

/* Calls that fill a part of a block from `data`: each returns how many bytes */

typedef size_t fill_call(char *part, char *data, size_t bytes);

static size_t by_read(char *part, char *data, size_t bytes)
{
    int fd = file_with(data, bytes);
    ssize_t got = read(fd, part, bytes);
    close(fd);
    return (size_t)got;
}

/* The file is shorter than the buffer; then its end. */
static size_t by_short_read(char *part, char *data, size_t bytes)
{
    int fd = file_with(data, bytes / 2);
    ssize_t got = read(fd, part, bytes);
    CHECK(read(fd, part + bytes / 2, bytes - bytes / 2) == 0);
    close(fd);
    return (size_t)got;
}

static size_t by_pread(char *part, char *data, size_t bytes)
{
    int fd = file_with(data, bytes);
    ssize_t got = pread(fd, part, bytes, 0);
    close(fd);
    return (size_t)got;
}

static size_t by_pipe(char *part, char *data, size_t bytes)
{
    struct other_side side;
    int ends[2];
    size_t at = 0;
    CHECK(pipe(ends) == 0);
    begin(&side, ends[1], data, bytes, false);
    while (at < bytes) {
        ssize_t got = read(ends[0], part + at, bytes - at);
        CHECK(got > 0);
        at += (size_t)got;
    }
    end(&side, ends[0]);
    return at;
}

static void connect_pair(int ends[2], int type)
{
    CHECK(socketpair(AF_UNIX, type, 0, ends) == 0);
}

static size_t by_recv(char *part, char *data, size_t bytes)
{
    struct other_side side;
    int ends[2];
    connect_pair(ends, SOCK_STREAM);
    begin(&side, ends[1], data, bytes, false);
    ssize_t got = recv(ends[0], part, bytes, MSG_WAITALL);
    CHECK(recv(ends[0], part + (bytes > 1), 1, 0) == 0);
    end(&side, ends[0]);
    return (size_t)got;
}

/* Parts at both ends are shared, the middle is private. */
static size_t split(struct iovec parts[3], char *part, char *middle, size_t bytes)
{
    size_t first = bytes / 3, second = (bytes - first) / 2;
    parts[0] = (struct iovec){part, first};
    parts[1] = (struct iovec){middle, second};
    parts[2] = (struct iovec){part + first + second, bytes - first - second};
    return first;
}

static size_t join(const struct iovec parts[3], char *part, ssize_t got)
{
    for (size_t i = 0; i < parts[1].iov_len; i++)
        part[parts[0].iov_len + i] = ((char *)parts[1].iov_base)[i];
    free(parts[1].iov_base);
    return (size_t)got;
}

static size_t by_readv(char *part, char *data, size_t bytes)
{
    int fd = file_with(data, bytes);
    struct iovec parts[3];
    split(parts, part, malloc(bytes), bytes);
    ssize_t got = readv(fd, parts, 3);
    close(fd);
    return join(parts, part, got);
}

static size_t by_short_readv(char *part, char *data, size_t bytes)
{
    int fd = file_with(data, bytes / 2);
    struct iovec parts[2] = {{part, bytes / 4}, {part + bytes / 4, bytes - bytes / 4}};
    ssize_t got = readv(fd, parts, 2);
    close(fd);
    return (size_t)got;
}

static size_t by_preadv(char *part, char *data, size_t bytes)
{
    int fd = file_with(data, bytes);
    struct iovec parts[3];
    split(parts, part, malloc(bytes), bytes);
    ssize_t got = preadv(fd, parts, 3, 0);
    close(fd);
    return join(parts, part, got);
}

static size_t by_recvmsg(char *part, char *data, size_t bytes)
{
    struct other_side side;
    int ends[2];
    struct iovec parts[3];
    connect_pair(ends, SOCK_STREAM);
    begin(&side, ends[1], data, bytes, false);
    split(parts, part, malloc(bytes), bytes);
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};
    ssize_t got = recvmsg(ends[0], &message, MSG_WAITALL);
    end(&side, ends[0]);
    return join(parts, part, got);
}

static size_t by_fread(char *part, char *data, size_t bytes)
{
    FILE *file = fdopen(file_with(data, bytes), "r");
    size_t got = fread(part, 1, bytes, file);
    fclose(file);
    return got;
}

/* Without a buffer of its own, so that each byte, or all, comes by a call. */
static size_t by_unbuffered_fread(char *part, char *data, size_t bytes)
{
    FILE *file = fdopen(file_with(data, bytes), "r");
    setvbuf(file, NULL, _IONBF, 0);
    size_t got = fread(part, 1, bytes, file);
    fclose(file);
    return got;
}

static const struct {
    const char *name;
    fill_call *call;
} fill_calls[] = {{"read", by_read},
                  {"short read", by_short_read},
                  {"pread", by_pread},
                  {"read of a pipe", by_pipe},
                  {"recv", by_recv},
                  {"readv", by_readv},
                  {"short readv", by_short_readv},
                  {"preadv", by_preadv},
                  {"recvmsg", by_recvmsg},
                  {"fread", by_fread},
                  {"fread without buffer", by_unbuffered_fread}};

/* Calls that take a part of a block to `data` */

static size_t taken_from(int fd, char *data, size_t bytes)
{
    ssize_t got = pread(fd, data, bytes, 0);
    close(fd);
    return (size_t)got;
}

static size_t by_write(char *part, char *data, size_t bytes)
{
    int fd = file_with("", 0);
    CHECK(write(fd, part, bytes) == (ssize_t)bytes);
    return taken_from(fd, data, bytes);
}

static size_t by_pwrite(char *part, char *data, size_t bytes)
{
    int fd = file_with("", 0);
    CHECK(pwrite(fd, part, bytes, 0) == (ssize_t)bytes);
    return taken_from(fd, data, bytes);
}

static size_t by_writev(char *part, char *data, size_t bytes)
{
    int fd = file_with("", 0);
    char *middle = malloc(bytes);
    struct iovec parts[3];
    size_t first = split(parts, part, middle, bytes);
    memcpy(middle, part + first, parts[1].iov_len);
    CHECK(writev(fd, parts, 3) == (ssize_t)bytes);
    free(middle);
    return taken_from(fd, data, bytes);
}

static size_t by_pwritev(char *part, char *data, size_t bytes)
{
    int fd = file_with("", 0);
    struct iovec parts[2] = {{part, bytes / 2}, {part + bytes / 2, bytes - bytes / 2}};
    CHECK(pwritev(fd, parts, 2, 0) == (ssize_t)bytes);
    return taken_from(fd, data, bytes);
}

static size_t by_send(char *part, char *data, size_t bytes)
{
    struct other_side side;
    int ends[2];
    connect_pair(ends, SOCK_STREAM);
    begin(&side, ends[1], data, bytes, true);
    CHECK(send(ends[0], part, bytes, 0) == (ssize_t)bytes);
    end(&side, ends[0]);
    return bytes;
}

/* A stream that takes less than there is. */
static size_t by_nonblocking_write(char *part, char *data, size_t bytes)
{
    struct other_side side;
    int ends[2];
    CHECK(pipe(ends) == 0 && fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
    begin(&side, ends[0], data, bytes, true);
    for (size_t at = 0; at < bytes;) {
        struct pollfd room = {ends[1], POLLOUT, 0};
        CHECK(poll(&room, 1, -1) == 1);
        ssize_t now = write(ends[1], part + at, bytes - at);
        CHECK(now > 0 || errno == EAGAIN);
        at += now > 0 ? (size_t)now : 0;
    }
    end(&side, ends[1]);
    return bytes;
}

static size_t by_sendmsg(char *part, char *data, size_t bytes)
{
    struct other_side side;
    int ends[2];
    struct iovec parts[2] = {{part, bytes / 2}, {part + bytes / 2, bytes - bytes / 2}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    connect_pair(ends, SOCK_STREAM);
    begin(&side, ends[1], data, bytes, true);
    CHECK(sendmsg(ends[0], &message, 0) == (ssize_t)bytes);
    end(&side, ends[0]);
    return bytes;
}

static size_t by_fwrite(char *part, char *data, size_t bytes)
{
    int fd = file_with("", 0);
    FILE *file = fdopen(dup(fd), "w");
    CHECK(fwrite(part, 1, bytes, file) == bytes);
    CHECK(fclose(file) == 0);
    return taken_from(fd, data, bytes);
}

static const struct {
    const char *name;
    fill_call *call;
} take_calls[] = {{"write", by_write},     {"pwrite", by_pwrite}, {"writev", by_writev},
                  {"pwritev", by_pwritev}, {"send", by_send},     {"write that does not block", by_nonblocking_write},
                  {"sendmsg", by_sendmsg}, {"fwrite", by_fwrite}};

/* What a PE has done with a block before the call */
enum { UNTOUCHED, READ, WRITTEN, STATE_COUNT };
static const char *const states[] = {"untouched", "read before", "written before"};

/* Beginning and length: a byte, over a page's end, over a chunk's end, whole pages, most of a chunk and more. */
static const struct {
    size_t at, bytes;
} places[] = {{100, 1}, {4000, 200}, {(256u << 10) - 5, 10}, {8192, 16384}, {777, 300001}};

static char model[BLOCK_BYTES], payload[BLOCK_BYTES];

static void compare(const char *block, const char *what, const char *state, size_t place)
{
    size_t i = 0;
    if (memcmp(block, model, BLOCK_BYTES) == 0)
        return;
    while (block[i] == model[i])
        i++;
    fail("%s, %s, place %zu: byte %zu is %d, but the model has %d", what, state, place, i, block[i], model[i]);
}

/* Every byte of a new block is PE 0's; the last PE comes into the state, as the model of all does. */
static char *new_block(unsigned seed, int state)
{
    char *block = dsm_all_malloc(BLOCK_BYTES);
    CHECK(block != NULL);
    fill(model, seed, 0, BLOCK_BYTES);
    if (dsm_my_pe() == 0)
        memcpy(block, model, BLOCK_BYTES);
    dsm_barrier_all();
    bool is_caller = dsm_my_pe() == dsm_n_pes() - 1;
    if (is_caller && state != UNTOUCHED)
        compare(block, "before a call", states[state], 0);
    for (size_t page = 0; page < BLOCK_BYTES && state == WRITTEN; page += PAGE) {
        model[page + 9] = (char)(seed + 1);
        if (is_caller)
            block[page + 9] = (char)(seed + 1);
    }
    return block;
}

static void check_everywhere(char *block, const char *what, int state, size_t place)
{
    if (dsm_my_pe() == dsm_n_pes() - 1)
        compare(block, what, states[state], place);
    dsm_barrier_all();
    compare(block, what, states[state], place);
    dsm_barrier_all();
    dsm_all_free(block);
}

static void test_fills(size_t call, int state, size_t place)
{
    size_t at = places[place].at, bytes = places[place].bytes;
    bool is_short = fill_calls[call].call == by_short_read || fill_calls[call].call == by_short_readv;
    size_t right = is_short ? bytes / 2 : bytes;
    unsigned seed = (unsigned)(call * 64 + (size_t)state * 16 + place);
    char *block = new_block(seed, state);
    fill(payload, seed + 1000, 0, bytes);
    if (dsm_my_pe() == dsm_n_pes() - 1) {
        size_t got = fill_calls[call].call(block + at, payload, bytes);
        if (got != right)
            fail("%s, %s, place %zu: %zd bytes of %zu", fill_calls[call].name, states[state], place, (ssize_t)got,
                 right);
    }
    memcpy(model + at, payload, right);
    check_everywhere(block, fill_calls[call].name, state, place);
}

static void test_takes(size_t call, int state, size_t place)
{
    size_t at = places[place].at, bytes = places[place].bytes;
    char *block = new_block((unsigned)(call * 64 + (size_t)state * 16 + place) + 7, state);
    memset(payload, 0, bytes);
    if (dsm_my_pe() == dsm_n_pes() - 1) {
        size_t got = take_calls[call].call(block + at, payload, bytes);
        if (got != bytes || memcmp(payload, model + at, bytes) != 0)
            fail("%s, %s, place %zu: %zd bytes of %zu, or others than the model's", take_calls[call].name,
                 states[state], place, (ssize_t)got, bytes);
    }
    check_everywhere(block, take_calls[call].name, state, place);
}

/* Calls of other kinds, each with a block that this PE has not touched. Only the last PE makes them. */

/* A part of a new page for each use. */
static char *fresh(char **block)
{
    *block += PAGE;
    return *block - PAGE + 40;
}

static void test_text(char *block)
{
    char *line = fresh(&block), *words = fresh(&block), *long_line = fresh(&block),
         lines[] = "first line\nsecond 17 words\n";
    FILE *file = fdopen(file_with(lines, strlen(lines)), "r+");
    int number = 0;
    CHECK(fgets(line, 64, file) == line && strcmp(line, "first line\n") == 0);
    CHECK(fscanf(file, "%63s %d", words, &number) == 2 && number == 17 && strcmp(words, "second") == 0);
    fclose(file);
    memset(long_line, 'l', 100000);
    long_line[100000] = '\0';
    dsm_acquire(long_line, 100001); /* gives the copy up, where this PE is not its home */
    int fd = file_with("", 0);
    file = fdopen(dup(fd), "w");
    CHECK(fputs(long_line, file) >= 0 && fprintf(file, "%s", long_line) == 100000 && fclose(file) == 0);
    char *there = malloc(200001);
    CHECK(taken_from(fd, there, 200001) == 200000);
    for (size_t i = 0; i < 200000; i++)
        CHECK(there[i] == 'l');
    free(there);
}

static void test_small(char *block)
{
    char path[64], *shared_path = fresh(&block), *link = fresh(&block), *folder = fresh(&block), own_folder[4096];
    struct stat *status = (struct stat *)(void *)fresh(&block), right;
    int *ends = (int *)(void *)fresh(&block), fd = file_with("abc", 3);
    struct pollfd *room = (struct pollfd *)(void *)fresh(&block);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    CHECK(fstat(fd, &right) == 0 && fstat(fd, status) == 0 && status->st_ino == right.st_ino && status->st_size == 3);
    strcpy(shared_path, path);
    dsm_acquire(shared_path, sizeof path);
    int again = open(shared_path, O_RDONLY);
    CHECK(again >= 0);
    close(again);
    char target[128] = {0};
    CHECK(readlink(path, target, sizeof target - 1) > 0 && readlink(path, link, 128) == (ssize_t)strlen(target));
    CHECK(memcmp(link, target, strlen(target)) == 0);
    CHECK(getcwd(own_folder, sizeof own_folder) && getcwd(folder, 4000) && strcmp(folder, own_folder) == 0);
    CHECK(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
    *room = (struct pollfd){ends[0], POLLIN, 0};
    dsm_acquire(room, sizeof *room);
    CHECK(poll(room, 1, 0) == 1 && room->revents == POLLIN);
    close(ends[0]);
    close(ends[1]);
    close(fd);
    char *chance = fresh(&block);
    size_t zeros = 0;
    CHECK(getrandom(chance, 256, 0) == 256);
    for (int i = 0; i < 256; i++)
        zeros += chance[i] == 0;
    CHECK(zeros < 32 && chance[256] == 0 && chance[-1] == 0);
}

/* A datagram, whose sender's address is shared too, and a message whose struct is. */
static void test_datagrams(char *block)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in *from = (struct sockaddr_in *)(void *)fresh(&block);
    socklen_t own_bytes = sizeof own, *bytes = (socklen_t *)(void *)fresh(&block);
    char *text = fresh(&block);
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&own, own_bytes) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&own, &own_bytes) == 0);
    strcpy(text, "datagram");
    dsm_acquire(text, 9);
    CHECK(sendto(fd, text, 9, 0, (struct sockaddr *)&own, own_bytes) == 9);
    *bytes = sizeof *from;
    dsm_acquire(bytes, sizeof *bytes);
    char *there = fresh(&block);
    CHECK(recvfrom(fd, there, 4000, 0, (struct sockaddr *)from, bytes) == 9 && strcmp(there, "datagram") == 0);
    CHECK(from->sin_port == own.sin_port && *bytes == sizeof own);
    struct msghdr *message = (struct msghdr *)(void *)fresh(&block);
    struct iovec *part = (struct iovec *)(void *)fresh(&block);
    *part = (struct iovec){there, 9};
    *message = (struct msghdr){&own, own_bytes, part, 1, NULL, 0, 0};
    dsm_acquire(there, 9 * PAGE);
    CHECK(sendmsg(fd, message, 0) == 9);
    memset(there, 0, 9);
    part->iov_len = 8;
    *message = (struct msghdr){from, 200, part, 1, NULL, 0, 0};
    dsm_acquire(there, 9 * PAGE);
    CHECK(recvmsg(fd, message, 0) == 8 && strcmp(there, "datagram") == 0);
    CHECK(message->msg_namelen == sizeof *from && message->msg_flags == MSG_TRUNC);
    close(fd);
}

/* What is wrong stays wrong, and is not more than that. */
static void test_errors(char *block)
{
    char *part = fresh(&block), *volatile nothing = NULL;
    int fd = file_with("abc", 3);
    struct iovec parts[2] = {{part, 10}, {part, SIZE_MAX / 2 + 1}}, one = {nothing, 10};
    CHECK(read(-1, part, 10) == -1 && errno == EBADF);
    CHECK(write(-1, part, 10) == -1 && errno == EBADF);
    CHECK(readv(fd, parts, 2) == -1 && errno == EINVAL);
    CHECK(readv(fd, (struct iovec *)(void *)nothing, 1) == -1 && errno == EFAULT);
    CHECK(readv(fd, &one, 1) == -1 && errno == EFAULT);
    CHECK(readv(fd, parts, 0) == 0 && read(fd, part, 0) == 0);
    CHECK(sendmsg(fd, (struct msghdr *)(void *)nothing, 0) == -1);
    CHECK(part[0] == 0);
    close(fd);
}

/* A forked child, and a program, may use their own memory. */
static void test_children(void)
{
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct iovec part = {payload, 1};
        int fd = file_with("z", 1);
        _exit(readv(fd, &part, 1) == 1 && payload[0] == 'z' ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(system("echo abc | cat > /dev/null") == 0);
}

static void on_alarm(int number)
{
    (void)number;
}

/* A thread that waits in a call */

struct waiter {
    int ends[2];
    char *part;
    bool is_vector;
    _Atomic pid_t thread;
};

static void *wait_for_ever(void *context)
{
    struct waiter *waiter = context;
    struct iovec part = {waiter->part, 100};
    waiter->thread = gettid();
    return (waiter->is_vector ? readv(waiter->ends[0], &part, 1) : read(waiter->ends[0], waiter->part, 100)) == 0
               ? context
               : NULL;
}

static bool sleeps(pid_t thread)
{
    char path[64], state = 'R';
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
    FILE *file = fopen(path, "r");
    CHECK(file != NULL && fscanf(file, "%*d (%*[^)]) %c", &state) == 1);
    fclose(file);
    return state == 'S';
}

/* Cancelled while it waits; what then comes is another's. */
static void cancel(char *part, bool is_vector)
{
    struct waiter waiter = {.part = part, .is_vector = is_vector};
    pthread_t thread;
    void *result = NULL;
    CHECK(pipe(waiter.ends) == 0 && pthread_create(&thread, NULL, wait_for_ever, &waiter) == 0);
    while (waiter.thread == 0 || !sleeps(waiter.thread))
        sched_yield();
    CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(write(waiter.ends[1], "after", 6) == 6 && read(waiter.ends[0], waiter.part, 100) == 6);
    CHECK(strcmp(waiter.part, "after") == 0);
    close(waiter.ends[0]);
    close(waiter.ends[1]);
}

static void test_interruptions(char *block)
{
    struct sigaction action = {.sa_handler = on_alarm}, before;
    struct itimerval soon = {{0, 20000}, {0, 20000}}, never = {{0, 0}, {0, 0}};
    int ends[2];
    CHECK(pipe(ends) == 0);
    sigaction(SIGALRM, &action, &before);
    setitimer(ITIMER_REAL, &soon, NULL);
    CHECK(read(ends[0], fresh(&block), 100) == -1 && errno == EINTR);
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    close(ends[0]);
    close(ends[1]);
    cancel(fresh(&block), true);
    if (!__GLIBC_PREREQ(2, 41)) /* see dsm/calls.h */
        cancel(fresh(&block), false);
}

static void test_others(void)
{
    char *block = dsm_all_malloc(BLOCK_BYTES);
    void (*const tests[])(char *) = {test_text, test_small, test_datagrams, test_errors, test_interruptions};
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        if (dsm_my_pe() == 0)
            memset(block, 0, BLOCK_BYTES);
        dsm_barrier_all();
        if (dsm_my_pe() == dsm_n_pes() - 1)
            tests[i](block);
        dsm_barrier_all();
    }
    if (dsm_my_pe() == dsm_n_pes() - 1)
        test_children();
    dsm_barrier_all();
    dsm_all_free(block);
}

/* Threads whose acquires drop the pages that another thread's calls use: each PE writes its own bytes of every page,
 * those of the last one by calls. */

struct shared {
    dsm_lock_t lock;
    char bytes[8 * PAGE];
};

static void *acquire_again(void *context)
{
    struct shared *shared = context;
    int me = dsm_my_pe();
    for (int round = 0; round < ROUNDS; round++) {
        dsm_lock(&shared->lock);
        for (size_t page = 0; page < 8 && me == 0; page++)
            shared->bytes[page * PAGE]++;
        dsm_unlock(&shared->lock);
    }
    return NULL;
}

static void test_threads(void)
{
    struct shared *shared = dsm_calloc(1, sizeof *shared);
    static struct shared *everywhere;
    char *words = dsm_all_malloc(sizeof(struct shared *));
    if (dsm_my_pe() == 0)
        memcpy(words, &shared, sizeof shared);
    dsm_barrier_all();
    memcpy(&everywhere, words, sizeof everywhere);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, acquire_again, everywhere) == 0);
    for (int round = 0; round < ROUNDS && dsm_my_pe() == dsm_n_pes() - 1; round++) {
        fill(payload, (unsigned)round, 0, 8 * PAGE);
        int fd = file_with(payload, 8 * PAGE);
        struct iovec parts[8];
        for (size_t page = 0; page < 8; page++)
            parts[page] = (struct iovec){everywhere->bytes + page * PAGE + 1, PAGE - 1};
        CHECK(readv(fd, parts, 8) == 8 * (PAGE - 1) && pwritev(fd, parts, 8, 0) == 8 * (PAGE - 1));
        CHECK(pread(fd, model, 8 * (PAGE - 1), 0) == 8 * (PAGE - 1));
        CHECK(memcmp(model, payload, 8 * (PAGE - 1)) == 0);
        close(fd);
    }
    pthread_join(thread, NULL);
    fill(payload, ROUNDS - 1, 0, 8 * PAGE);
    dsm_barrier_all();
    for (size_t i = 0; i < 8 * PAGE; i++)
        CHECK(everywhere->bytes[i] == (i % PAGE == 0 ? (char)ROUNDS : payload[i - i / PAGE - 1]));
    dsm_barrier_all();
}

/* The modes */

static void all(void)
{
    for (int state = 0; state < STATE_COUNT; state++) {
        for (size_t place = 0; place < sizeof places / sizeof places[0]; place++) {
            for (size_t call = 0; call < sizeof fill_calls / sizeof fill_calls[0]; call++)
                test_fills(call, state, place);
            for (size_t call = 0; call < sizeof take_calls / sizeof take_calls[0]; call++)
                test_takes(call, state, place);
        }
    }
    test_others();
    if (dsm_n_pes() > 1)
        test_threads();
}

static void refused(void)
{
    char *block = new_block(1, UNTOUCHED);
    int ends[2];
    CHECK(pipe(ends) == 0);
    struct iovec part = {block + 100000, 100};
    if (dsm_my_pe() == dsm_n_pes() - 1)
        CHECK(vmsplice(ends[1], &part, 1, 0) == -1 && errno == EFAULT && vmsplice(ends[1], &part, 1, 0) == -1);
    dsm_barrier_all();
}

static void off(void)
{
    char *block = new_block(1, UNTOUCHED);
    int fd = file_with("abc", 3);
    if (dsm_my_pe() == dsm_n_pes() - 1)
        CHECK(read(fd, block, 3) == -1 && errno == EFAULT && (block[0] = 1) == 1 && read(fd, block, 3) == 3);
    dsm_barrier_all();
}

/* Shared memory ends 16 MiB behind its start, which is a multiple of 4 GiB. */
static void edge(void)
{
    char *block = new_block(1, UNTOUCHED), *limit = (char *)(((uintptr_t)block >> 32 << 32) + (16u << 20));
    fill(payload, 3, 0, 5000);
    int fd = file_with(payload, 5000);
    struct iovec parts[2] = {{limit - 50, 70}, {payload + 5000, 30}};
    if (dsm_my_pe() == dsm_n_pes() - 1) {
        CHECK(read(fd, limit - 100, 5000) == 100 && lseek(fd, 0, SEEK_CUR) == 100);
        CHECK(memcmp(limit - 100, payload, 100) == 0);
        CHECK(readv(fd, parts, 2) == 50 && memcmp(limit - 50, payload + 100, 50) == 0);
        CHECK(pwrite(fd, limit - 50, 100, 0) == 50 && pread(fd, model, 50, 0) == 50);
        CHECK(memcmp(model, payload + 100, 50) == 0);
    }
    dsm_barrier_all();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {{"all", all}, {"refused", refused}, {"off", off}, {"edge", edge}};
    const char *mode = argc > 1 ? argv[1] : "all";
    dsm_init();
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(modes[i].name, mode) == 0)
            modes[i].run();
    }
    dsm_barrier_all();
    if (dsm_my_pe() == 0)
        printf("calls: ended\n");
    return 0;
}
