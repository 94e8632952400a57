/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/boot.h"
#include "boot/detect.h"
#include "boot/exit.h"
#include "boot/launcher.h"
#include "boot/place.h"
#include "base/log.h"
#include "base/step.h"
#include "env/clock.h"
#include "env/calls.h"
#include "env/map.h"
#include "env/park.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PLACE_NS 2000000000u

static const struct quoit_boot_ops *const rows[] = {&quoit_boot_oshrun, &quoit_boot_member, &quoit_boot_alone};

enum quoit_status quoit_boot_map(struct quoit_boot *boot)
{
    boot->memory = quoit_map_file(boot->memory_fd, boot->layout.total_bytes, PROT_READ | PROT_WRITE);
    return boot->memory ? QUOIT_OK : QUOIT_NO_MEMORY;
}

enum quoit_status quoit_boot_report_unmapped(const struct quoit_boot *boot, int error)
{
    quoit_say("cannot map %llu MiB of address space for the symmetric segments: %s (ulimit -v; a smaller "
              "SHMEM_SYMMETRIC_SIZE needs less) [Q0302]",
              (unsigned long long)(boot->layout.total_bytes >> 20), strerror(error));
    return QUOIT_NO_MEMORY;
}

bool quoit_boot_has_oshrun(void)
{
    return quoit_boot_oshrun.is_here(NULL);
}

static enum quoit_status check_launcher(const char *launcher)
{
    static const char *const values[] = {"auto", "none", "pmi", "pmi2", "pmix"};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (strcmp(launcher, values[i]) == 0)
            return QUOIT_OK;
    if (!quoit_detect_is_silent())
        quoit_say("QUOIT_LAUNCHER is \"%.32s\", but auto, none, pmi, pmi2 and pmix are allowed [Q0301]", launcher);
    return QUOIT_INVALID;
}

enum quoit_status quoit_boot_start(uint64_t data_bytes, struct quoit_boot *boot_out)
{
    size_t row = 0;
    const char *launcher = boot_out->launcher = boot_out->launcher ? boot_out->launcher : "auto";
    boot_out->socket_fd = -1;
    boot_out->memory_fd = -1;
    quoit_park_setup();
    enum quoit_status status = check_launcher(launcher);
    if (status != QUOIT_OK)
        return status;
    if (!quoit_calls_check(QUOIT_CALLS_PE))
        return QUOIT_SYSTEM;
    while (!rows[row]->is_here(launcher))
        row++;
    boot_out->ops = rows[row];
    if (rows[row] == &quoit_boot_alone && strcmp(launcher, "none") != 0)
        status = quoit_detect_refuse_unsupported();
    if (rows[row] == &quoit_boot_alone && strcmp(launcher, "none") != 0 && status == QUOIT_OK)
        status = quoit_boot_refuse_stripped();
    quoit_step("pe", QUOIT_STEP_ANY, "hello");
    if (status == QUOIT_OK)
        status = rows[row]->join(boot_out, data_bytes);
    quoit_step("pe", boot_out->pe, "layout");
    if (status == QUOIT_OK)
        quoit_boot_warn_of_mpi(boot_out);
    return status;
}

enum quoit_status quoit_boot_ready(struct quoit_boot *boot)
{
    quoit_step("pe", boot->pe, "ready");
    enum quoit_status status = boot->ops->barrier(boot);
    quoit_step("pe", boot->pe, "go");
    return status;
}

void quoit_boot_leaving(struct quoit_boot *boot, uint64_t meeting_count, bool is_exit)
{
    quoit_step("pe", boot->pe, "leaving");
    if (boot->ops->leaving)
        boot->ops->leaving(boot, meeting_count, is_exit);
}

void quoit_boot_finalized(struct quoit_boot *boot)
{
    quoit_step("pe", boot->pe, "finalized");
    if (boot->ops->finalized)
        boot->ops->finalized(boot);
    quoit_step("pe", boot->pe, "end");
}

void quoit_boot_exiting(struct quoit_boot *boot, int status)
{
    if (boot->ops->exiting)
        boot->ops->exiting(boot, status);
}

void quoit_boot_crashed(void *boot_arg)
{
    struct quoit_boot *boot = boot_arg;
    if (boot->ops->crashed)
        boot->ops->crashed(boot);
}

static void report_place(uint64_t from)
{
    char program[32];
    struct quoit_place place;
    uint64_t before = from - 1; /* the call precedes its return address */
    snprintf(program, sizeof program, "/proc/%d/exe", (int)getpid());
    quoit_place_find(program, &before, 1, quoit_clock_now_ns() + PLACE_NS, &place);
    if (place.line[0])
        fprintf(stderr, "  at %s%s%s\n", place.function, place.function[0] ? "() " : "", place.line);
}

void quoit_boot_warn(const char *text, uint64_t from)
{
    quoit_say("%s", text);
    if (from)
        report_place(from);
}

void quoit_boot_abort(struct quoit_boot *boot, int status, const char *text)
{
    quoit_boot_abort_from(boot, status, text, 0);
}

void quoit_boot_abort_from(struct quoit_boot *boot, int status, const char *text, uint64_t from)
{
    bool is_exiting = quoit_exit_has_begun(boot); /* then the launcher has its reason */
    if (is_exiting)
        status = boot->exit_status;
    else if (boot->ops && boot->ops->abort(boot, status, text, from))
        _exit(status);
    if (text[0])
        quoit_boot_warn(text, from); /* no launcher does */
    _exit(status);
}
