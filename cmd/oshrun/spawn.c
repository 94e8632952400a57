/* SPDX-License-Identifier: BSD-3-Clause */
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "attach.h"
#include "hosts.h"
#include "input.h"
#include "service.h"

#define SOCKET_BYTES (sizeof QUOIT_BOOT_SOCKET_VARIABLE + QUOIT_ABSTRACT_NAME_BYTES)
#define CLOCK_BYTES  (sizeof QUOIT_VIRTUAL_VARIABLE + sizeof((struct job *)0)->clock_path + 1)

/* The descriptors of one PE that its child process inherits. */
struct ends {
    int input;
    int output[2]; /* standard output and error */
    int socket;
};

/* Whether a PE must get the value although neither our environment nor the -x of its program may have it. */
static bool is_passed_on(const struct quoit_option *option, const struct quoit_option_value *value)
{
    return option->variable && ((option->reader == QUOIT_READER_PE && value->source == QUOIT_FROM_COMMAND_LINE) ||
                                (option->reader == QUOIT_READER_PES && value->source != QUOIT_FROM_DEFAULT));
}

/* The options read by the PEs, as variables: at `list`, with their texts at `texts`. Returns the bytes of the texts;
 * without a list it only counts them. */
static size_t pass_options(const struct job *job, char **list, char *texts)
{
    size_t used = 0;
    for (int id = 0; id < QUOIT_OPT_COUNT; id++) {
        const struct quoit_option *option = &quoit_options_table[id];
        const struct quoit_option_value *value = &job->plan->options.values[id];
        if (!is_passed_on(option, value))
            continue;
        size_t bytes = strlen(option->variable) + strlen(value->text) + 2;
        if (list) {
            snprintf(texts + used, bytes, "%s=%s", option->variable, value->text);
            *list++ = texts + used;
        }
        used += bytes;
    }
    return used;
}

/* Names what this job writes: a job that a PE starts would write it too. */
static bool is_written(const char *entry)
{
    static const enum quoit_option_id ids[] = {QUOIT_OPT_OUTPUT, QUOIT_OPT_STATS_JSON, QUOIT_OPT_TRACE,
                                               QUOIT_OPT_PROFILE};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        const char *variable = quoit_options_table[ids[i]].variable;
        size_t length = strlen(variable);
        if (strncmp(entry, variable, length) == 0 && entry[length] == '=')
            return true;
    }
    return false;
}

/* What differs between PEs has slots of its own after the others. */
static bool is_of_one_pe(const char *entry)
{
    return strncmp(entry, QUOIT_BOOT_FD_VARIABLE "=", sizeof QUOIT_BOOT_FD_VARIABLE) == 0 ||
           strncmp(entry, QUOIT_PE_VARIABLE "=", sizeof QUOIT_PE_VARIABLE) == 0;
}

/* The program's environment: ours, its -x, and the options that the PEs read. The last slots but one are for
 * is_of_one_pe(). */
static char **make_environment(const struct job *job, const struct plan_program *program)
{
    size_t count = 0, used = 0;
    while (job->environment[count])
        count++;
    count += program->export_count + QUOIT_OPT_COUNT + 6;
    size_t text_bytes = pass_options(job, NULL, NULL); /* the texts follow the list */
    char **made = calloc(1, count * sizeof *made + text_bytes + SOCKET_BYTES + CLOCK_BYTES);
    char *own[QUOIT_OPT_COUNT + 3] = {NULL};
    if (!made)
        return NULL;
    own[0] = (char *)(made + count) + text_bytes;
    snprintf(own[0], SOCKET_BYTES, QUOIT_BOOT_SOCKET_VARIABLE "=%s", attach_name(job));
    pass_options(job, own + 1, (char *)(made + count));
    size_t own_count = 0;
    while (own[own_count])
        own_count++;
    if (job->clock) {
        own[own_count] = own[0] + SOCKET_BYTES;
        snprintf(own[own_count], CLOCK_BYTES, "%s=%s", QUOIT_VIRTUAL_VARIABLE, job->clock_path);
    }
    char **const lists[] = {own, program->exports, job->environment};
    for (size_t list = 0; list < 3; list++) /* the first list wins */
        for (char **given = lists[list]; given && *given; given++) {
            bool is_kept = strncmp(*given, SPAWN_KEPT_PREFIX, strlen(SPAWN_KEPT_PREFIX)) == 0;
            char *entry = *given + (is_kept ? strlen(SPAWN_KEPT_PREFIX) : 0);
            size_t name_bytes = strcspn(entry, "=") + 1;
            bool is_there = is_of_one_pe(entry) || is_written(entry);
            for (size_t i = 0; i < used && !is_there && list > 0; i++)
                is_there = strncmp(made[i], entry, name_bytes) == 0;
            if (!is_there)
                made[used++] = entry;
        }
    return made;
}

char *spawn_tag(const struct job *job, const struct pe *pe)
{
    static const char *const colours[] = {"36", "33", "32", "35", "34", "31", "96", "93"};
    char *tag = NULL;
    if (!plan_number(job->plan, QUOIT_OPT_TAG))
        return strdup("");
    const char *no_colour = getenv("NO_COLOR");
    bool is_coloured = isatty(STDOUT_FILENO) && !(no_colour && no_colour[0]);
    const char *colour = colours[pe->index % 8];
    char name[HOSTS_NAME_BYTES];
    int n = asprintf(&tag, "%s%s%s[PE %u %s]%s ", is_coloured ? "\033[" : "", is_coloured ? colour : "",
                     is_coloured ? "m" : "", pe->index, hosts_name(job, pe->host, name), is_coloured ? "\033[0m" : "");
    return n < 0 ? NULL : tag;
}

void spawn_restore(const struct job *job)
{
    sigset_t none;
    setrlimit(RLIMIT_NOFILE, &job->old_files);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGXFSZ, SIG_DFL);
    signal(SIGTTIN, SIG_DFL);
    signal(SIGTTOU, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Between fork and exec. A failure is recorded in the table as an errno; as a negative one, if it is that of entering
 * the host. */
static int become_program(const struct job *job, const struct pe *pe, const struct plan_program *program,
                          char **environment, const struct ends *ends, pid_t parent)
{
    char boot_fd[48], number[32];
    uint32_t first = job->role == ROLE_ALONE ? 0 : quoit_job_config_first_pe(&job->config, pe->host);
    int core = plan_core_of(job->plan, pe->index - first);
    setpgid(0, 0);
    if (pe->index != job->terminal.pe)
        terminal_renounce(&job->terminal);
    const struct host *host = &job->hosts[pe->host];
    if (host->has_namespaces && quoit_share_enter_namespaces(&host->namespaces) != QUOIT_OK)
        return -errno;
    if (host->has_namespaces && quoit_share_mount_sysfs() != QUOIT_OK)
        quoit_log(QUOIT_LOG_INFO, "PE %u sees the devices of this machine in /sys: %s", pe->index, strerror(errno));
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* after the namespaces, which clear it */
    if (getppid() != parent)
        _exit(STATUS_CANNOT_START);
    if (dup2(ends->output[0], STDOUT_FILENO) < 0 || dup2(ends->output[1], STDERR_FILENO) < 0)
        return errno;
    if (ends->input != STDIN_FILENO && dup2(ends->input, STDIN_FILENO) < 0)
        return errno;
    if (fcntl(ends->socket, F_SETFD, 0) != 0)
        return errno;
    if (program->wdir && chdir(program->wdir) != 0)
        return errno;
    if (core >= 0) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(core, &set);
        sched_setaffinity(0, sizeof set, &set);
    }
    spawn_restore(job);
    snprintf(boot_fd, sizeof boot_fd, "%s=%d", QUOIT_BOOT_FD_VARIABLE, ends->socket);
    snprintf(number, sizeof number, "%s=%u", QUOIT_PE_VARIABLE, pe->index);
    size_t last = 0;
    while (environment[last])
        last++;
    environment[last] = boot_fd;
    environment[last + 1] = number;
    execve(program->path, program->argv, environment);
    return errno;
}

/* Whether the PE runs under the command of --debugger, which gets oshrun's own terminal. */
static bool has_debugger_here(const struct job *job, const struct pe *pe)
{
    return job->role == ROLE_ALONE && job->plan->debugged_count == 1 && plan_debugs(job->plan, pe->index);
}

/* The program after the words of --debugger, which a shell parses. */
static bool put_under_debugger(const struct job *job, const struct plan_program *program,
                               struct plan_program *debugged_out)
{
    char *script = NULL;
    char **argv = calloc((size_t)program->argc + 5, sizeof *argv);
    if (!argv || asprintf(&script, "exec %s \"$@\"", job->plan->debugger) < 0) {
        free(argv);
        return false;
    }
    argv[0] = "sh";
    argv[1] = "-c";
    argv[2] = script;
    argv[3] = "oshrun";
    argv[4] = program->path;
    memcpy(argv + 5, program->argv + 1, ((size_t)program->argc - 1) * sizeof *argv);
    *debugged_out = *program;
    debugged_out->argv = argv;
    debugged_out->path = "/bin/sh";
    return true;
}

/* --output DIR: one file for both outputs of a PE. A symbolic link in DIR, which may be another user's, is not
 * followed, and a file with several names or of another type is not overwritten. */
static int open_output_file(const struct job *job, const struct pe *pe)
{
    char name[32];
    struct stat facts;
    snprintf(name, sizeof name, "pe%u.out", pe->index);
    int fd =
        openat(job->output_folder, name, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    bool is_file = fd >= 0 && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_nlink == 1;
    if (is_file && ftruncate(fd, 0) == 0 && fcntl(fd, F_SETFL, O_APPEND) == 0)
        return fd;
    quoit_say("cannot write %s/%s: %s [Q0213]", plan_text(job->plan, QUOIT_OPT_OUTPUT), name,
              fd >= 0 && !is_file ? "it is no file, or has other names"
              : errno == ELOOP    ? "it is a symbolic link"
              : errno == ENXIO    ? "it is a pipe"
                                  : strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

/* Makes the PE's outputs: pipes that oshrun reads, or a file. The reading ends go to read_out (-1: none). */
static bool make_outputs(const struct job *job, const struct pe *pe, struct ends *ends, int read_out[2])
{
    read_out[0] = read_out[1] = -1;
    if (has_debugger_here(job, pe)) { /* a debugger edits lines itself */
        ends->output[0] = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
        ends->output[1] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        return ends->output[0] >= 0 && ends->output[1] >= 0;
    }
    if (plan_text(job->plan, QUOIT_OPT_OUTPUT)[0]) {
        ends->output[0] = ends->output[1] = open_output_file(job, pe);
        return ends->output[0] >= 0;
    }
    for (int i = 0; i < 2; i++) {
        int pair[2];
        if (pipe2(pair, O_CLOEXEC) != 0)
            return false;
        fcntl(pair[0], F_SETFL, O_NONBLOCK);
        read_out[i] = pair[0];
        ends->output[i] = pair[1];
    }
    return true;
}

static bool spawn_process(struct job *job, struct pe *pe, const struct plan_program *program, char **environment,
                          int input_fd)
{
    int sockets[2], read_ends[2];
    struct ends ends = {.input = input_fd};
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0 ||
        !make_outputs(job, pe, &ends, read_ends)) {
        if (!plan_text(job->plan, QUOIT_OPT_OUTPUT)[0]) /* else it was reported */
            quoit_say("cannot start PE %u: %s (%u PEs need %u descriptors: ulimit -n) [Q0213]", pe->index,
                      strerror(errno), job->plan->pe_count, 3 * job->plan->pe_count + 32);
        return false;
    }
    /* Before the PE can send: the kernel identifies the sender only of messages sent after this. */
    setsockopt(sockets[0], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int));
    ends.socket = sockets[1];
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        int error = become_program(job, pe, program, environment, &ends, parent);
        job->exec_errors[pe->index] = error;
        _exit(STATUS_NOT_FOUND);
    }
    close(ends.socket);
    close(ends.output[0]);
    if (ends.output[1] != ends.output[0])
        close(ends.output[1]);
    if (pid < 0) {
        quoit_say(
            "cannot start PE %u: %s (%u PEs need so many processes: ulimit -u, or a control group's pids) [Q0213]",
            pe->index, strerror(errno), job->plan->pe_count);
        close(sockets[0]);
        return false;
    }
    setpgid(pid, pid); /* here too: whichever process is first */
    if (has_debugger_here(job, pe))
        terminal_give(&job->terminal, pid);
    pe->pid = pid;
    job->alive_count++;
    for (int i = 0; i < 2; i++)
        if (read_ends[i] >= 0)
            output_add(&job->output, pe->index, i, read_ends[i], pe->tag);
    service_watch(pe, sockets[0]);
    return true;
}

static bool spawn_pe(struct job *job, struct pe *pe, const struct plan_program *program, char **environment,
                     int input_fd)
{
    struct plan_program debugged;
    if (!plan_debugs(job->plan, pe->index))
        return spawn_process(job, pe, program, environment, input_fd);
    if (!put_under_debugger(job, program, &debugged))
        return false;
    bool is_started = spawn_process(job, pe, &debugged, environment, input_fd);
    free(debugged.argv[2]); /* the script */
    free(debugged.argv);
    return is_started;
}

/* Standard input of a PE: oshrun's own, or a pipe from it, for one of them. */
static int input_of(struct job *job, const struct pe *pe, int nothing_fd)
{
    if (pe->index != job->terminal.pe)
        return nothing_fd;
    return job->role == ROLE_ALONE ? STDIN_FILENO : input_open_pe(job);
}

static bool spawn_program(struct job *job, const struct plan_program *program, uint32_t first, int nothing_fd)
{
    char **environment = make_environment(job, program);
    bool is_started = environment != NULL;
    for (uint32_t i = 0; i < program->pe_count && is_started; i++) {
        struct pe *pe = &job->pes[first + i];
        if (!job_is_here(job, pe->host))
            continue;
        pe->tag = spawn_tag(job, pe);
        int input_fd = input_of(job, pe, nothing_fd);
        is_started = pe->tag && input_fd >= 0 && spawn_pe(job, pe, program, environment, input_fd);
        if (input_fd != STDIN_FILENO && input_fd != nothing_fd && input_fd >= 0)
            close(input_fd);
    }
    free(environment);
    return is_started;
}

static int open_nothing(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        quoit_say("cannot open /dev/null, the standard input of all PEs but one: %s%s [Q0213]", strerror(errno),
                  errno == EMFILE ? " (ulimit -n)" : "");
    return fd;
}

static bool open_output_folder(struct job *job)
{
    const char *folder = plan_text(job->plan, QUOIT_OPT_OUTPUT);
    if (!folder[0])
        return true;
    if (mkdir(folder, 0777) == 0 || errno == EEXIST)
        job->output_folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    else
        job->output_folder = -1;
    if (job->output_folder < 0)
        quoit_say("cannot make directory %s: %s [Q0213]", folder, strerror(errno));
    return job->output_folder >= 0;
}

bool spawn_all(struct job *job)
{
    if (!open_output_folder(job) || !hosts_get_namespaces(job) || !hosts_prepare(job))
        return false;
    attach_open(job);
    int nothing_fd = open_nothing();
    bool is_started = nothing_fd >= 0;
    uint32_t first = 0;
    for (uint32_t i = 0; i < job->plan->program_count && is_started; i++) {
        is_started = spawn_program(job, &job->plan->programs[i], first, nothing_fd);
        first += job->plan->programs[i].pe_count;
    }
    if (nothing_fd >= 0)
        close(nothing_fd);
    return is_started;
}
