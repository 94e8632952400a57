/* SPDX-License-Identifier: BSD-3-Clause */
/* Where drivers are: that for TCP in the program or library itself, others in lib/quoit beside it, so that an
 * installation can be moved. */
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/version.h"
#include "env/elf_file.h"
#include "env/library.h"
#include "env/own_file.h"
#include "net/driver.h"

/* Adapters of InfiniBand, RoCE, EFA, Omni-Path and what psm drives are all in the first; Slingshot's are not. */
static const char *const fabric_classes[] = {"infiniband", "cxi", "cxi_user"};
#define CLASS_COUNT (sizeof fabric_classes / sizeof fabric_classes[0])

bool quoit_net_find_adapter(const char *classes, char path_out[QUOIT_NET_PROBLEM_BYTES])
{
    bool is_found = false;
    for (size_t i = 0; i < CLASS_COUNT && !is_found; i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", classes, fabric_classes[i]);
        DIR *folder = opendir(path);
        for (struct dirent *entry; folder && !is_found && (entry = readdir(folder)) != NULL;) {
            if (entry->d_name[0] == '.')
                continue;
            snprintf(path_out, QUOIT_NET_PROBLEM_BYTES, "%.96s/%s/%.96s", classes, fabric_classes[i], entry->d_name);
            is_found = true;
        }
        if (folder)
            closedir(folder);
    }
    return is_found;
}

/* Where there is TCP alone the kernel's sockets are faster than what a library makes of them, and there is nothing to
 * load; to load libfabric only to see what it has takes a tenth of a second. The kernel's devices are there for a look
 * at three folders. */
const char *quoit_net_driver_name(uint32_t index)
{
    static const char *const names[2][3] = {{"tcp", "ucx", "ofi"}, {"ofi", "ucx", "tcp"}};
    char path[QUOIT_NET_PROBLEM_BYTES];
    return index < 3 ? names[quoit_net_find_adapter(QUOIT_NET_CLASSES, path)][index] : NULL;
}

void quoit_net_explain_auto(char text_out[QUOIT_NET_PROBLEM_BYTES])
{
    char path[QUOIT_NET_PROBLEM_BYTES];
    if (quoit_net_find_adapter(QUOIT_NET_CLASSES, path))
        snprintf(text_out, QUOIT_NET_PROBLEM_BYTES, "ofi before ucx and tcp, since there is an adapter: %.190s", path);
    else
        snprintf(text_out, QUOIT_NET_PROBLEM_BYTES,
                 "tcp before ucx and ofi, since " QUOIT_NET_CLASSES " has no adapter of a fabric");
}

/* The folder of the file that this code is linked into. */
static bool find_own_folder(char folder_out[PATH_MAX])
{
    if (!quoit_own_file(folder_out))
        return false;
    *strrchr(folder_out, '/') = '\0';
    return true;
}

/* The driver's file; false: there is none. */
static bool find_file(const char *name, char path_out[PATH_MAX])
{
    static const char *const places[] = {"quoit", "../lib/quoit", "../" QUOIT_LIBRARY_FOLDER "/quoit",
                                         "../../lib/quoit"};
    char folder[PATH_MAX];
    if (!find_own_folder(folder))
        return false;
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        int bytes = snprintf(path_out, PATH_MAX, "%s/%s/libquoit-net-%s.so", folder, places[i], name);
        if (bytes < PATH_MAX && access(path_out, R_OK) == 0)
            return true;
    }
    return false;
}

/* Libraries of networks take signals when they are loaded or begin to look (psm writes a file at each abort): they are
 * the program's, and our own crash report's. */
static const int own_signals[QUOIT_NET_SIGNAL_COUNT] = {SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGFPE, SIGINT, SIGTERM};

void quoit_net_keep_signals(struct quoit_net_signals *signals_out)
{
    for (int i = 0; i < QUOIT_NET_SIGNAL_COUNT; i++)
        sigaction(own_signals[i], NULL, &signals_out->actions[i]);
}

void quoit_net_restore_signals(const struct quoit_net_signals *signals)
{
    for (int i = 0; i < QUOIT_NET_SIGNAL_COUNT; i++)
        sigaction(own_signals[i], &signals->actions[i], NULL);
}

/* What a library reads from the environment when it is loaded, unless the user has set it. */
static const struct {
    const char *driver, *name, *value;
} settings[] = {
    {"ucx", "UCX_MEM_EVENTS", "no"},      /* it would patch mmap() and the like in the program's libc */
    {"ucx", "UCX_HANDLE_ERRORS", "none"}, /* crash reports are ours */
    {"ucx", "UCX_LOG_LEVEL", "fatal"},    /* who opened the network says what went wrong */
    /* MESSAGE_BYTES of ofi.c and room for a header. It clears thousands of buffers of that size as it starts; its own
       size is 16 KiB. */
    {"ofi", "FI_OFI_RXM_BUFFER_SIZE", "8448"},
    {"ofi", "FI_OFI_RXM_MSG_RX_SIZE", "128"}, /* as over verbs; over tcp it would fill 4096 of them */
};

static void apply_settings(const char *driver)
{
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
        if (strcmp(settings[i].driver, driver) == 0)
            setenv(settings[i].name, settings[i].value, 0);
}

/* A driver that stands between its library and libc (ofi.c) is found before libc, by that library alone. Sanitizers,
 * which stand there too, refuse it. */
static int flags_of(const char *driver)
{
    int flags = RTLD_NOW | RTLD_LOCAL;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    if (strcmp(driver, "ofi") == 0)
        flags |= RTLD_DEEPBIND;
#else
    (void)driver;
#endif
    return flags;
}

const struct quoit_net_driver *quoit_net_driver_open(const char *name, char problem[QUOIT_NET_PROBLEM_BYTES])
{
    char path[PATH_MAX], symbol[64];
    if (strcmp(name, quoit_net_driver_tcp.name) == 0)
        return &quoit_net_driver_tcp;
    if (!quoit_library_can_open()) {
        snprintf(problem, QUOIT_NET_PROBLEM_BYTES,
                 "the program is linked statically, and can use the network tcp alone: %.32s needs one without -static",
                 name);
        return NULL;
    }
    if (strchr(name, '/') || !find_file(name, path)) {
        snprintf(problem, QUOIT_NET_PROBLEM_BYTES, "this installation of Quoit has no network driver %.32s", name);
        return NULL;
    }
    struct quoit_net_signals signals;
    apply_settings(name);
    quoit_net_keep_signals(&signals);
    void *object = quoit_library_open(path, flags_of(name));
    quoit_net_restore_signals(&signals);
    if (!object) {
        snprintf(problem, QUOIT_NET_PROBLEM_BYTES, "%s", quoit_library_problem());
        return NULL;
    }
    snprintf(symbol, sizeof symbol, "quoit_net_driver_%.32s", name);
    const struct quoit_net_driver *driver = dlsym(object, symbol);
    if (!driver || driver->version != QUOIT_NET_DRIVER_VERSION) {
        struct quoit_version version = {.text = "unknown"};
        (void)quoit_elf_version_of(path, &version);
        snprintf(problem, QUOIT_NET_PROBLEM_BYTES, "%.160s is of version %s of Quoit, and this of version %s", path,
                 version.text, quoit_version()->text);
        return NULL;
    }
    return driver;
}
