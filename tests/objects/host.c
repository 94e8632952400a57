/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that knows OpenSHMEM by a plugin alone: `host PLUGIN local|global [close] [fork] [threads]`. */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int asks(int argc, char **argv, const char *word)
{
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], word) == 0)
            return 1;
    return 0;
}

static void *wait_for_ever(void *arg)
{
    (void)arg;
    for (;;)
        pause();
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    int status = 0;
    if (argc < 3)
        return 2;
    void *plugin = dlopen(argv[1], RTLD_NOW | (asks(argc, argv, "global") ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!plugin) {
        fprintf(stderr, "%s\n", dlerror());
        return 4;
    }
    void (*init)(void) = (void (*)(void))dlsym(plugin, "plugin_init");
    void (*finalize)(void) = (void (*)(void))dlsym(plugin, "plugin_finalize");
    int (*run)(void) = (int (*)(void))dlsym(plugin, "plugin_run");
    init();
    if (asks(argc, argv, "threads") && pthread_create(&thread, NULL, wait_for_ever, NULL) != 0)
        return 4;
    int is_right = run();
    finalize();
    if (asks(argc, argv, "close"))
        dlclose(plugin);
    if (asks(argc, argv, "fork")) {
        pid_t child = fork();
        if (child == 0)
            exit(7); /* with handlers */
        if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 7)
            return 5;
    }
    raise(SIGURG); /* ignored by default; not a handler that is no longer there */
    printf("%s\n", is_right ? "right" : "wrong");
    return is_right ? 0 : 3;
}
