/* SPDX-License-Identifier: BSD-3-Clause */
/* Aim: whatever PEs send on their boot sockets, the launcher's state stays consistent, and it signals no process.
 * Method: the launcher's side of a job of two PEs on one host, whose processes are this one's: each message is a valid
 * one, mutated by the input, and handled as the loop does. Input: for each message the PE, the kind, the length, the
 * number of mutations and then these. */
#include "oshrun/end.h"
#include "oshrun/hosts.h"
#include "oshrun/job.h"
#include "oshrun/service.h"
#include "fuzz.h"

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define PE_COUNT 2u

struct rig {
    struct plan_program program;
    struct plan plan;
    struct job job;
    struct pe pes[PE_COUNT];
    struct host host;
    int peers[PE_COUNT];
};

static void open_rig(struct rig *rig)
{
    char problem[QUOIT_OPTION_PROBLEM_BYTES];
    memset(rig, 0, sizeof *rig);
    quoit_options_default(&rig->plan.options);
    must(quoit_options_set(&rig->plan.options, QUOIT_OPT_SYMMETRIC_SIZE, "2M", QUOIT_FROM_COMMAND_LINE, "", problem));
    rig->program = (struct plan_program){.pe_count = PE_COUNT, .path = "/bin/program"};
    rig->plan.programs = &rig->program;
    rig->plan.program_count = 1;
    rig->plan.pe_count = PE_COUNT;
    rig->plan.host_count = 1;
    rig->host = (struct host){.job = &rig->job, .memory_fd = -1, .link_fd = -1, .proxy.fd = -1};
    rig->job = (struct job){
        .plan = &rig->plan, .pes = rig->pes, .hosts = &rig->host, .alive_count = PE_COUNT, .terminal.fd = -1};
    rig->job.config = (struct quoit_job_config){
        .host_count = 1, .pe_count = PE_COUNT, .lane_count = 1, .slot_count = 4, .chunk_bytes = 256};
    rig->job.driver = quoit_port_driver_at(0);
    must(loop_open(&rig->job.loop));
    for (uint32_t i = 0; i < PE_COUNT; i++) {
        int ends[2];
        must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
        must(setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) == 0);
        rig->pes[i] = (struct pe){.job = &rig->job, .index = i, .program.fd = -1};
        rig->peers[i] = ends[1];
        service_watch(&rig->pes[i], ends[0]);
    }
}

static void close_rig(struct rig *rig)
{
    for (uint32_t i = 0; i < PE_COUNT; i++) {
        loop_close(&rig->job.loop, &rig->pes[i].socket);
        close(rig->peers[i]);
        free(rig->pes[i].executable);
        free(rig->pes[i].abort_text);
        if (rig->pes[i].program.fd >= 0)
            close(rig->pes[i].program.fd);
    }
    if (rig->host.front)
        munmap(rig->host.front, rig->host.layout.channels);
    if (rig->host.memory_fd >= 0)
        close(rig->host.memory_fd);
    close(rig->job.loop.epoll_fd);
    free(rig->job.notes);
}

static void check(const struct rig *rig)
{
    const struct job *job = &rig->job;
    uint32_t hello_count = 0, leaving_count = 0;
    for (uint32_t i = 0; i < PE_COUNT; i++) {
        const struct pe *pe = &rig->pes[i];
        hello_count += pe->phase != QUOIT_PHASE_STARTED;
        leaving_count += pe->is_leaving;
        must(pe->pid == 0 && pe->program_pid == 0 && pe->program.fd < 0); /* no process could be signalled */
        must(!pe->abort_text || strlen(pe->abort_text) < QUOIT_BOOT_TEXT_BYTES);
        must(pe->phase < QUOIT_PHASE_RUNNING || job->is_going || pe->phase == QUOIT_PHASE_READY);
    }
    must(job->hello_count == hello_count && job->ready_count <= PE_COUNT);
    must(job->leaving_count == leaving_count);
    must(!job->is_going || (job->has_layout && hello_count == PE_COUNT));
    must(!job->has_layout || job->config.data_bytes <= rig->host.layout.total_bytes);
    must(job->end.phase == ENDING_NOT || (job->end.status >= 0 && job->end.status <= 255));
    must(job->end.culprit < PE_COUNT);
}

static void send_changed(struct rig *rig, const struct fuzz_step *step)
{
    const uint8_t *head = step->head;
    struct quoit_boot_message message = {.magic = QUOIT_BOOT_MAGIC, .kind = head[1] % (QUOIT_BOOT_ABORT + 2)};
    if (message.kind == QUOIT_BOOT_HELLO) {
        message.body.hello.version = *quoit_version();
        message.body.hello.data_bytes = 4096;
    }
    fuzz_change(&message, sizeof message, step->changes, step->change_bytes);
    size_t bytes = head[2] ? sizeof message * head[2] / 256 : sizeof message;
    (void)!send(rig->peers[head[0] % PE_COUNT], &message, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct rig rig;
    struct fuzz_step step;
    open_rig(&rig);
    while (fuzz_next(&data, &bytes, &step)) {
        send_changed(&rig, &step);
        service_drain(&rig.pes[step.head[0] % PE_COUNT]);
        service_step(&rig.job);
        check(&rig);
    }
    close_rig(&rig);
    return 0;
}
