/* SPDX-License-Identifier: BSD-3-Clause */
#include "prefix.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void own_prefix(char prefix[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", prefix, PATH_MAX - 1);
    prefix[length > 0 ? length : 0] = '\0';
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(prefix, '/');
        if (slash)
            *slash = '\0';
    }
}

bool prefix_has(const char *name, char path_out[PATH_MAX])
{
    char prefix[PATH_MAX];
    own_prefix(prefix);
    return snprintf(path_out, PATH_MAX, "%s/%s", prefix, name) < PATH_MAX && access(path_out, R_OK) == 0;
}

bool prefix_find(const char *name, char path_out[PATH_MAX])
{
    char prefix[PATH_MAX];
    if (prefix_has(name, path_out))
        return true;
    own_prefix(prefix);
    fprintf(stderr, "quoit: %s is not where it was installed, in %s\n", name, prefix);
    return false;
}

bool prefix_has_program(const char *name, char path_out[PATH_MAX])
{
    char below[64];
    snprintf(below, sizeof below, "bin/%s.quoit", name);
    if (prefix_has(below, path_out))
        return true;
    snprintf(below, sizeof below, "bin/%s", name);
    return prefix_has(below, path_out);
}

bool prefix_search(const char *name, char path_out[PATH_MAX])
{
    struct stat facts;
    for (const char *at = getenv("PATH"); at && *at; at += strcspn(at, ":"), at += *at == ':')
        if (snprintf(path_out, PATH_MAX, "%.*s/%s", (int)strcspn(at, ":"), at, name) < PATH_MAX &&
            access(path_out, X_OK) == 0 && stat(path_out, &facts) == 0 && S_ISREG(facts.st_mode))
            return true;
    return false;
}

int prefix_run(char *const *words, FILE *input, FILE *output)
{
    int status;
    fflush(NULL);
    pid_t own = getpid(), pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* what this process was to do ends with it */
        if (getppid() != own)
            _exit(128 + SIGTERM);
        if ((!input || dup2(fileno(input), STDIN_FILENO) >= 0) && (!output || dup2(fileno(output), STDOUT_FILENO) >= 0))
            execvp(words[0], words);
        fprintf(stderr, "quoit: cannot run %s: %s\n", words[0], strerror(errno));
        _exit(127);
    }
    if (pid < 0) {
        perror("quoit: cannot run anything");
        return 127;
    }
    while (waitpid(pid, &status, 0) != pid)
        if (errno != EINTR)
            return 127;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int prefix_run_python(const char *name, char *const *arguments, FILE *input, FILE *output)
{
    char path[PATH_MAX], below[NAME_MAX + sizeof QUOIT_DATA_FOLDER];
    char *words[PREFIX_ARGUMENTS_MAX + 4] = {"python3", "-B", path};
    int count = 0;
    snprintf(below, sizeof below, "%s/quoit/%s", QUOIT_DATA_FOLDER, name);
    if (!prefix_find(below, path))
        return 127;
    for (; arguments[count]; count++) {
        if (count == PREFIX_ARGUMENTS_MAX) {
            fprintf(stderr, "quoit: more than %d arguments\n", PREFIX_ARGUMENTS_MAX);
            return 2;
        }
        words[count + 3] = arguments[count];
    }
    return prefix_run(words, input, output);
}

bool prefix_make_page(FILE *data, const char *path)
{
    rewind(data);
    return prefix_run_python("figures", (char *[]){"report", "quoit", "-", "--html", (char *)path, NULL}, data, NULL) ==
           0;
}
