/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/awaited.h"

static bool is_stopped(const struct quoit_process *facts)
{
    return facts->state == 'T' || facts->state == 't';
}

void quoit_awaited_add(struct quoit_awaited *awaited, uint32_t number, pid_t process, const struct quoit_process *facts,
                       uint64_t before_ns)
{
    quoit_await_add(&awaited->view, facts, before_ns);
    if (awaited->count++ > 0 && (!is_stopped(facts) || is_stopped(&awaited->facts)))
        return;
    awaited->number = number;
    awaited->process = process;
    awaited->facts = *facts;
}

void quoit_awaited_look(struct quoit_awaited *awaited, uint32_t number, pid_t process, uint64_t *busy_ns)
{
    struct quoit_process facts = {0};
    if (process)
        quoit_process_look(process, &facts);
    quoit_awaited_add(awaited, number, process, &facts, *busy_ns);
    *busy_ns = facts.busy_ns;
}
