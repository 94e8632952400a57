/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target without clang's libFuzzer: every file of the corpus, then random mutations of them.
 *
 * Use: fuzz_TARGET [--seconds S] [--seed N] FILE_OR_FOLDER...
 * An input on which the target dies or runs for 10 s is written to fuzz-TARGET.input; the same program given that file
 * repeats it. Prints its seed. Standard error of the target is silenced, since many inputs are rejected with a message.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#define INPUT_BYTES_MAX 16384u
#define INPUTS_MAX      512u
#define HANG_S          10u

struct input {
    uint8_t *data;
    size_t bytes;
};

static struct input corpus[INPUTS_MAX];
static size_t corpus_count;
static uint8_t now[INPUT_BYTES_MAX];
static size_t now_bytes;
static const char *program;
static int told_fd = STDERR_FILENO;

static uint64_t chance;

static uint64_t choose(uint64_t n)
{
    chance += 0x9e3779b97f4a7c15u; /* splitmix64 */
    uint64_t z = chance;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (z ^ (z >> 31)) % n;
}

static void on_death(int signal_number)
{
    const char *name = strrchr(program, '/') ? strrchr(program, '/') + 1 : program;
    char file[128], text[512];
    signal(signal_number, SIG_DFL);
    snprintf(file, sizeof file, "%s.input", name);
    int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    ssize_t written = fd >= 0 ? write(fd, now, now_bytes) : 0;
    int n = snprintf(text, sizeof text, "%s: %s at an input of %zu bytes; repeat with: %s %s\n", name,
                     signal_number == SIGALRM ? "hangs" : "died", (size_t)written, program, file);
    if (write(told_fd, text, (size_t)n) < 0)
        _exit(2);
    raise(signal_number == SIGALRM ? SIGABRT : signal_number);
}

static void run(const uint8_t *data, size_t bytes)
{
    now_bytes = bytes < sizeof now ? bytes : sizeof now;
    memmove(now, data, now_bytes);
    /* A copy of its own size, so that a sanitizer sees a read past the end. */
    uint8_t *copy = malloc(now_bytes ? now_bytes : 1);
    if (!copy)
        exit(2);
    memcpy(copy, now, now_bytes);
    alarm(HANG_S);
    LLVMFuzzerTestOneInput(copy, now_bytes);
    free(copy);
}

static void add_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(INPUT_BYTES_MAX);
    if (!file || !data || corpus_count == INPUTS_MAX) {
        fprintf(stderr, "%s: cannot read %s\n", program, path);
        exit(2);
    }
    corpus[corpus_count++] = (struct input){data, fread(data, 1, INPUT_BYTES_MAX, file)};
    fclose(file);
}

static void add(const char *path)
{
    DIR *folder = opendir(path);
    if (!folder) {
        add_file(path);
        return;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            add_file(name);
    }
    closedir(folder);
}

static void overwrite(void)
{
    static const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff, '0', '9', ' ', '-', '=', '\n'};
    size_t at = choose(now_bytes), most = now_bytes - at < 8 ? now_bytes - at : 8;
    uint8_t value = choose(2) ? values[choose(sizeof values)] : (uint8_t)choose(256);
    memset(now + at, value, 1 + choose(most));
}

/* One change of `now`. */
static void change(void)
{
    uint64_t kind = now_bytes ? choose(6) : 4;
    if (kind == 0) {
        now[choose(now_bytes)] ^= (uint8_t)(1u << choose(8));
    } else if (kind == 1) {
        overwrite();
    } else if (kind == 2) {
        size_t at = choose(now_bytes), count = 1 + choose(now_bytes - at);
        memmove(now + at, now + at + count, now_bytes - at - count);
        now_bytes -= count;
    } else if (kind == 3) {
        size_t from = choose(now_bytes), count = 1 + choose(now_bytes - from), at = choose(now_bytes);
        count = at + count > sizeof now ? sizeof now - at : count;
        memmove(now + at, now + from, count);
        now_bytes = at + count > now_bytes ? at + count : now_bytes;
    } else if (kind == 4) {
        size_t count = 1 + choose(16), at = now_bytes ? choose(now_bytes) : 0;
        if (now_bytes + count > sizeof now)
            return;
        memmove(now + at + count, now + at, now_bytes - at);
        for (size_t i = 0; i < count; i++)
            now[at + i] = (uint8_t)choose(256);
        now_bytes += count;
    } else {
        const struct input *other = &corpus[choose(corpus_count)];
        size_t at = choose(now_bytes), room = sizeof now - at;
        size_t count = other->bytes < room ? other->bytes : room;
        memcpy(now + at, other->data, count);
        now_bytes = at + count > now_bytes ? at + count : now_bytes;
    }
}

static double now_s(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void silence(void)
{
    int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
    told_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
    if (nothing < 0 || told_fd < 0 || dup2(nothing, STDERR_FILENO) < 0)
        exit(2);
}

int main(int argc, char **argv)
{
    static const int deaths[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGALRM};
    double seconds = 0;
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    uint64_t seed = (uint64_t)time.tv_nsec ^ (uint64_t)time.tv_sec << 20, count = 0;
    program = argv[0];
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc)
            seconds = atof(argv[++i]);
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 0);
        else
            add(argv[i]);
    }
    if (corpus_count == 0) {
        fprintf(stderr, "use: %s [--seconds S] [--seed N] FILE_OR_FOLDER...\n", program);
        return 2;
    }
    printf("seed %llu\n", (unsigned long long)seed);
    fflush(stdout);
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++)
        signal(deaths[i], on_death);
    if (seconds > 0)
        silence();
    for (size_t i = 0; i < corpus_count; i++)
        run(corpus[i].data, corpus[i].bytes);
    chance = seed;
    for (double end = now_s() + seconds; now_s() < end;) {
        const struct input *start = &corpus[choose(corpus_count)];
        now_bytes = start->bytes;
        memcpy(now, start->data, start->bytes);
        for (uint64_t changes = 1 + choose(8); changes > 0; changes--)
            change();
        run(now, now_bytes);
        count++;
    }
    printf("%zu inputs of the corpus, %llu changed ones\n", corpus_count, (unsigned long long)count);
    return 0;
}
