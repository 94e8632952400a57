/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/awaited.h"

#include <stdio.h>

void quoit_awaited_add(struct quoit_awaited *awaited, uint32_t number, pid_t process, uint64_t *busy_ns)
{
    struct quoit_process facts = {0};
    if (process)
        quoit_process_look(process, &facts);
    quoit_await_add(&awaited->view, &facts, *busy_ns);
    *busy_ns = facts.busy_ns;
    if (awaited->count++ == 0 || (facts.state == 'T' && awaited->facts.state != 'T')) {
        awaited->number = number;
        awaited->process = process;
        awaited->facts = facts;
    }
}

void quoit_awaited_text(const struct quoit_awaited *awaited, const char *name, uint64_t waited_ns,
                        char text_out[QUOIT_AWAITED_TEXT_BYTES])
{
    char process[32] = "";
    if (awaited->process)
        snprintf(process, sizeof process, " (process %d)", (int)awaited->process);
    snprintf(text_out, QUOIT_AWAITED_TEXT_BYTES, "%.200s%s in shmem_init, after %llu s", name, process,
             (unsigned long long)(waited_ns / 1000000000u));
}
