/* SPDX-License-Identifier: BSD-3-Clause */
/* PMIx by its library, opened at run time: under mpirun of Open MPI, prterun, and srun --mpi=pmix. The types below are
 * those of its binary interface, which versions 3 to 5 share. */
#include "boot/detect.h"
#include "boot/exchange.h"
#include "boot/launcher.h"
#include "base/log.h"
#include "env/library.h"
#include "env/process.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY         "libpmix.so.2"
#define NAMESPACE_BYTES 256
#define KEY_BYTES       512
#define RANK_WILDCARD   (UINT32_MAX - 1) /* for values of the whole job */
#define SCOPE_GLOBAL    3

enum { TYPE_BOOL = 1, TYPE_STRING = 3, TYPE_UINT32 = 14 };

struct process {
    char name[NAMESPACE_BYTES];
    uint32_t rank;
};

struct value {
    uint16_t type;
    union {
        bool flag;
        char *string;
        uint32_t uint32;
        void *widest[3];
    } data;
};

struct info {
    char key[KEY_BYTES];
    uint32_t flags;
    struct value value;
};
_Static_assert(sizeof(struct process) == 260, "pmix_proc_t");
_Static_assert(sizeof(struct value) == 32 && offsetof(struct value, data) == 8, "pmix_value_t");
_Static_assert(sizeof(struct info) == 552 && offsetof(struct info, value) == 520, "pmix_info_t");

struct quoit_pmix {
    struct process self;
    int (*init)(struct process *self_out, struct info *info, size_t info_count);
    int (*finalize)(const struct info *info, size_t info_count);
    int (*put)(uint8_t scope, const char *key, struct value *value);
    int (*commit)(void);
    int (*fence)(const struct process *processes, size_t count, const struct info *info, size_t info_count);
    int (*get)(const struct process *process, const char *key, const struct info *info, size_t info_count,
               struct value **value_out);
    int (*abort)(int status, const char *text, struct process *processes, size_t count);
    const char *(*error_text)(int status);
};

static bool is_here(void)
{
    return getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK") && !quoit_detect_is_inherited();
}

static enum quoit_status report_failed(const struct quoit_pmix *pmix, const char *what, int status)
{
    quoit_say("the launcher's PMIx refused %s: %s [Q0309]", what, pmix->error_text(status));
    return QUOIT_SYSTEM;
}

static bool find_function(void *library, const char *name, void *function_out)
{
    void *address = dlsym(library, name);
    memcpy(function_out, &address, sizeof address);
    if (!address)
        quoit_say("%s has no %s [Q0310]", LIBRARY, name);
    return address != NULL;
}

/* If MPI has opened the library this is the same instance. */
static enum quoit_status load(struct quoit_pmix *pmix)
{
    void *library = quoit_library_open(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        if (!quoit_detect_is_silent())
            quoit_say(
                "started with PMIx, whose library cannot be opened: %s [Q0310]\n  %s; on one host also: oshrun -n N "
                "PROGRAM",
                quoit_library_problem(),
                quoit_library_can_open() ? "install it (libpmix2), or add its folder to LD_LIBRARY_PATH"
                                         : "link without -static, or start with PMI: srun --mpi=pmi2, mpiexec.hydra");
        return QUOIT_UNSUPPORTED;
    }
    bool is_whole =
        find_function(library, "PMIx_Init", &pmix->init) && find_function(library, "PMIx_Finalize", &pmix->finalize) &&
        find_function(library, "PMIx_Put", &pmix->put) && find_function(library, "PMIx_Commit", &pmix->commit) &&
        find_function(library, "PMIx_Fence", &pmix->fence) && find_function(library, "PMIx_Get", &pmix->get) &&
        find_function(library, "PMIx_Abort", &pmix->abort) &&
        find_function(library, "PMIx_Error_string", &pmix->error_text);
    return is_whole ? QUOIT_OK : QUOIT_UNSUPPORTED; /* never closed: it has threads */
}

static void release(struct value *value)
{
    if (value && value->type == TYPE_STRING)
        free(value->data.string);
    free(value);
}

/* Slurm's process on this host is the parent of each task, which may be a wrapper of this process. PMIx names no
 * process, and Open MPI's mpirun reports itself that its own on a host has ended. */
static pid_t launcher_here(void)
{
    const char *task = getenv("SLURM_TASK_PID");
    struct quoit_process process;
    bool is_known =
        task && quoit_process_descends(getpid(), (pid_t)atoi(task)) && quoit_process_look((pid_t)atoi(task), &process);
    return is_known ? process.parent : 0;
}

static enum quoit_status open_it(struct quoit_exchange *exchange)
{
    struct quoit_pmix *pmix = exchange->pmix = calloc(1, sizeof *pmix);
    struct value *size = NULL;
    if (!pmix)
        return QUOIT_NO_MEMORY;
    exchange->fd = -1;
    exchange->launcher = launcher_here();
    enum quoit_status loaded = load(pmix);
    if (loaded != QUOIT_OK)
        return loaded;
    int status = pmix->init(&pmix->self, NULL, 0);
    if (status != 0)
        return report_failed(pmix, "the connection", status);
    struct process job = pmix->self;
    job.rank = RANK_WILDCARD;
    status = pmix->get(&job, "pmix.job.size", NULL, 0, &size);
    if (status != 0 || size->type != TYPE_UINT32)
        return report_failed(pmix, "the size of the job", status);
    exchange->rank = pmix->self.rank;
    exchange->size = size->data.uint32;
    release(size);
    snprintf(exchange->job, sizeof exchange->job, "%.*s", NAMESPACE_BYTES - 1, pmix->self.name);
    if (exchange->size < 1 || exchange->size > QUOIT_EXCHANGE_RANKS_MAX || exchange->rank >= exchange->size) {
        quoit_say("the launcher's PMIx gave rank %u of %u [Q0309]", exchange->rank, exchange->size);
        return QUOIT_INVALID;
    }
    return QUOIT_OK;
}

static const char *key_of(uint32_t part, char key[KEY_BYTES])
{
    if (part == 0)
        snprintf(key, KEY_BYTES, "quoit");
    else
        snprintf(key, KEY_BYTES, "quoit-%u", part);
    return key;
}

static enum quoit_status put(struct quoit_exchange *exchange, uint32_t part, const char *text)
{
    const struct quoit_pmix *pmix = exchange->pmix;
    char key[KEY_BYTES];
    struct value value = {.type = TYPE_STRING, .data.string = (char *)(uintptr_t)text}; /* it is copied */
    int status = pmix->put(SCOPE_GLOBAL, key_of(part, key), &value);
    if (status == 0)
        status = pmix->commit();
    return status == 0 ? QUOIT_OK : report_failed(pmix, "a value", status);
}

static enum quoit_status fence(struct quoit_exchange *exchange)
{
    const struct quoit_pmix *pmix = exchange->pmix;
    struct process job = pmix->self;
    struct info collect = {.key = "pmix.collect", .value = {.type = TYPE_BOOL, .data.flag = true}};
    job.rank = RANK_WILDCARD;
    int status = pmix->fence(&job, 1, &collect, 1);
    return status == 0 ? QUOIT_OK : report_failed(pmix, "a fence", status);
}

static enum quoit_status get(struct quoit_exchange *exchange, uint32_t rank, uint32_t part,
                             char value_out[QUOIT_EXCHANGE_BYTES])
{
    const struct quoit_pmix *pmix = exchange->pmix;
    char key[KEY_BYTES];
    struct process other = pmix->self;
    struct value *value = NULL;
    other.rank = rank;
    int status = pmix->get(&other, key_of(part, key), NULL, 0, &value);
    if (status != 0 || !value || value->type != TYPE_STRING)
        return report_failed(pmix, "the value of a PE", status);
    snprintf(value_out, QUOIT_EXCHANGE_BYTES, "%s", value->data.string);
    release(value);
    return QUOIT_OK;
}

/* PMIx counts init and finalize, so MPI in the same process can go on. */
static void close_it(struct quoit_exchange *exchange)
{
    if (!exchange->is_closed)
        exchange->pmix->finalize(NULL, 0);
    exchange->is_closed = true;
}

static void abort_it(struct quoit_exchange *exchange, int status, const char *text)
{
    exchange->pmix->abort(status, text, NULL, 0);
}

const struct quoit_exchange_ops quoit_exchange_pmix = {
    .name = "pmix",
    .is_here = is_here,
    .open = open_it,
    .put = put,
    .fence = fence,
    .get = get,
    .close = close_it,
    .abort = abort_it,
};
