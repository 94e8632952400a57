/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/task.h"
#include "base/assert.h"
#include "sim/world.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define STACK_BYTES (256u << 10)
#define GUARD_BYTES 4096u

static void enter(void)
{
    struct sim_world *world = sim_world_current();
    struct sim_task *task = world->current;
    task->run(task->arg);
    task->state = SIM_TASK_ENDED;
    sim_task_leave(world);
}

static void enter_task(struct sim_task *task)
{
    sim_stack_switch(&task->world->main_stack, &task->stack);
}

void sim_task_leave(struct sim_world *world)
{
    sim_stack_switch(&world->current->stack, &world->main_stack);
}

static struct sim_task *take_ready(struct sim_cores *cores)
{
    struct sim_task *task = cores->ready_first;
    if (task) {
        cores->ready_first = task->next_ready;
        task->next_ready = NULL;
        if (!cores->ready_first)
            cores->ready_last = NULL;
    }
    return task;
}

/* The process of this task now runs there. Returns how many others have run there since it last did; of a process that
 * has not, or not lately, all that are known. */
static uint32_t note_process(struct sim_cores *cores, const struct sim_task *task)
{
    uint32_t others = 0, moved;
    while (others < cores->recent_count && cores->recent[others] != task->process)
        others++;
    if (others == cores->recent_count && cores->recent_count < SIM_PROCESSES_KNOWN)
        cores->recent_count++;
    moved = others < SIM_PROCESSES_KNOWN ? others : SIM_PROCESSES_KNOWN - 1;
    memmove(&cores->recent[1], &cores->recent[0], moved * sizeof cores->recent[0]);
    cores->recent[0] = task->process;
    return others;
}

/* On the line through two points, or the constant of the first where the second is 0. */
static uint64_t between(uint64_t at, uint64_t from, uint64_t from_ns, uint64_t to, uint64_t to_ns)
{
    if (to_ns == 0 || at <= from)
        return from_ns;
    at = at < to ? at : to;
    return (from_ns * (to - at) + to_ns * (at - from)) / (to - from);
}

/* What has to be fetched again when a task takes over a core grows with the processes that used it meanwhile. */
static uint64_t switch_to(struct sim_cores *cores, const struct sim_task *task)
{
    const struct sim_model *model = &task->world->model;
    uint64_t others = note_process(cores, task), of_4_ns = model->switch_of_4_ns;
    if (others == 0 && model->thread_switch_ns != 0)
        return model->thread_switch_ns;
    if (others <= 3 || of_4_ns == 0)
        return between(others, 1, model->switch_ns, 3, of_4_ns);
    return between(others, 3, of_4_ns, 7, model->switch_of_8_ns);
}

/* A core became free: the first waiting task gets it. */
static void release_core(const struct sim_task *task)
{
    struct sim_world *world = task->world;
    struct sim_task *next = take_ready(task->cores);
    if (!next) {
        task->cores->free_count++;
        return;
    }
    next->state = SIM_TASK_BUSY;
    sim_schedule(world, &next->event, world->now_ns + switch_to(next->cores, next));
}

/* As Linux wakes: where it ran before, or else on another processor that is free. */
static struct sim_cores *cores_for_woken(const struct sim_task *task)
{
    struct sim_world *world = task->world;
    for (uint64_t i = 0; task->cores->free_count == 0 && world->shared_cores && i < world->model.shared_core_count; i++)
        if (world->shared_cores[i].free_count > 0)
            return &world->shared_cores[i];
    return task->cores;
}

static void wait_for_core(struct sim_task *task)
{
    struct sim_world *world = task->world;
    struct sim_cores *cores = task->cores;
    task->state = SIM_TASK_READY;
    if (cores->ready_last)
        cores->ready_last->next_ready = task;
    else
        cores->ready_first = task;
    cores->ready_last = task;
    for (uint32_t i = 0; i < world->config.job.host_count; i++)
        if (world->shared_cores || &world->hosts[i] == task->host)
            sim_host_changed(&world->hosts[i]); /* an idling task may have to give up its core */
}

static void resume(struct sim_task *task)
{
    struct sim_world *world = task->world;
    world->current = task;
    enter_task(task);
    world->current = NULL;
    if (!task->is_fruitless)
        sim_host_changed(task->host);
    if (task->state == SIM_TASK_BLOCKED || task->state == SIM_TASK_ENDED)
        release_core(task);
    if (task->lane && !task->is_fruitless && world->config.checks_each_step)
        quoit_lane_check_invariants(task->lane);
}

void sim_task_fire(struct sim_event *event)
{
    struct sim_task *task = (struct sim_task *)event; /* its first member */
    struct sim_world *world = task->world;
    if (task->host->is_dead)
        return;
    if (world->now_ns < task->frozen_until_ns) {
        sim_schedule(world, event, task->frozen_until_ns);
        return;
    }
    if (task->state == SIM_TASK_BLOCKED) {
        task->sleeps_on = NULL;
        task->cores = cores_for_woken(task);
        if (task->cores->free_count == 0) {
            wait_for_core(task);
            return;
        }
        task->cores->free_count--;
        note_process(task->cores, task); /* thread_wake_ns has the rest */
        task->on_core_since_ns = world->now_ns;
    } else if (task->state == SIM_TASK_IDLE) {
        task->host->idle_count--;
    }
    task->state = SIM_TASK_BUSY;
    resume(task);
}

static void append(struct sim_task ***list, uint32_t *count, uint32_t *capacity, struct sim_task *task)
{
    if (*count == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 8;
        *list = realloc(*list, *capacity * sizeof(struct sim_task *));
        quoit_assert(*list != NULL);
    }
    (*list)[(*count)++] = task;
}

struct sim_task *sim_task_start(struct sim_host *host, const char *name, void (*run)(void *arg), void *arg)
{
    struct sim_world *world = host->world;
    struct sim_task *task = calloc(1, sizeof *task);
    quoit_assert(task != NULL);
    task->stack_memory =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    quoit_assert(task->stack_memory != MAP_FAILED);
    quoit_assert(mprotect(task->stack_memory, GUARD_BYTES, PROT_NONE) == 0);
    task->event = (struct sim_event){.fire = sim_task_fire, .kind = "run", .who = world->task_count};
    task->world = world;
    task->host = host;
    task->index = world->task_count;
    task->process = world->config.job.host_count + task->index;
    task->run = run;
    task->arg = arg;
    task->state = SIM_TASK_BLOCKED;
    task->cores = world->shared_cores ? &world->shared_cores[world->task_count % world->model.shared_core_count]
                                      : &host->own_cores;
    strncpy(task->name, name, sizeof task->name - 1);
    sim_stack_init(&task->stack, task->stack_memory + GUARD_BYTES, STACK_BYTES - GUARD_BYTES, enter);
    append(&world->tasks, &world->task_count, &world->task_capacity, task);
    append(&host->tasks, &host->task_count, &host->task_capacity, task);
    sim_schedule(world, &task->event, world->now_ns);
    return task;
}

void sim_task_free(struct sim_task *task)
{
    munmap(task->stack_memory, STACK_BYTES);
    free(task);
}

static void leave(struct sim_task *task)
{
    task->leave_count++;
    sim_task_leave(task->world);
}

/* A thread on whose core others wait is preempted when its time slice ends. */
static void give_way(struct sim_world *world)
{
    struct sim_task *task = world->current;
    release_core(task);
    wait_for_core(task);
    leave(task);
    task->on_core_since_ns = world->now_ns;
}

void sim_spend(struct sim_world *world, uint64_t duration_ns)
{
    struct sim_task *task = world->current;
    uint64_t noise_ns = world->noise_ns > world->model.noise_ns ? world->noise_ns : world->model.noise_ns;
    uint64_t jitter_ns = duration_ns * world->model.jitter_percent / 100;
    if (noise_ns)
        duration_ns += sim_choose(world, noise_ns);
    if (jitter_ns)
        duration_ns += sim_choose(world, 2 * jitter_ns + 1) - jitter_ns;
    if (duration_ns == 0)
        return;
    sim_schedule(world, &task->event, world->now_ns + duration_ns);
    leave(task);
    if (task->cores->ready_first && world->now_ns - task->on_core_since_ns >= world->model.slice_ns)
        give_way(world);
}

void sim_spend_until(struct sim_world *world, uint64_t at_ns)
{
    while (world->now_ns < at_ns)
        sim_spend(world, at_ns - world->now_ns);
}

void sim_block(struct sim_world *world, uint64_t until_ns)
{
    struct sim_task *task = world->current;
    task->state = SIM_TASK_BLOCKED;
    if (until_ns != UINT64_MAX)
        sim_schedule(world, &task->event, until_ns);
    leave(task);
    task->on_core_since_ns = world->now_ns;
}

uint32_t sim_idle(struct sim_world *world, uint64_t step_ns, uint32_t count, bool is_fruitless)
{
    struct sim_task *task = world->current;
    task->state = SIM_TASK_IDLE;
    task->idle_since_ns = world->now_ns;
    task->idle_step_ns = step_ns;
    task->host->idle_count++;
    task->is_fruitless = is_fruitless;
    sim_schedule(world, &task->event, world->now_ns + step_ns * count);
    leave(task);
    task->is_fruitless = false;
    uint64_t passed = (world->now_ns - task->idle_since_ns + step_ns - 1) / step_ns;
    if (task->cores->ready_first && world->now_ns - task->on_core_since_ns >= world->model.slice_ns)
        give_way(world);
    return passed < 1 ? 1 : passed > count ? count : (uint32_t)passed;
}

void sim_yield(struct sim_world *world, bool is_fruitless)
{
    struct sim_task *task = world->current;
    if (!task->cores->ready_first)
        return;
    task->is_fruitless = is_fruitless;
    give_way(world);
    task->is_fruitless = false;
}

void sim_task_go(struct sim_world *world, uint32_t processor)
{
    struct sim_task *task = world->current;
    struct sim_cores *to = &world->shared_cores[processor];
    if (to == task->cores)
        return;
    release_core(task);
    task->cores = to;
    if (to->free_count == 0) {
        wait_for_core(task);
    } else {
        to->free_count--;
        sim_schedule(world, &task->event, world->now_ns + switch_to(to, task));
    }
    leave(task);
    task->on_core_since_ns = world->now_ns;
}

void sim_task_wake(struct sim_task *task, uint64_t delay_ns)
{
    uint64_t at_ns = task->world->now_ns + delay_ns;
    quoit_assert(task->state == SIM_TASK_BLOCKED);
    if (sim_event_is_scheduled(&task->event)) {
        if (task->event.at_ns <= at_ns)
            return;
        sim_queue_remove(&task->world->queue, &task->event);
    }
    sim_schedule(task->world, &task->event, at_ns);
}

/* Idling tasks resume at the first of their checks that is not past. */
void sim_host_changed(struct sim_host *host)
{
    struct sim_world *world = host->world;
    if (host->idle_count == 0 || host->is_dead)
        return;
    for (uint32_t i = 0; i < host->task_count; i++) {
        struct sim_task *task = host->tasks[i];
        if (task->state != SIM_TASK_IDLE || task == world->current)
            continue;
        uint64_t passed = (world->now_ns - task->idle_since_ns + task->idle_step_ns - 1) / task->idle_step_ns;
        uint64_t at_ns = task->idle_since_ns + (passed ? passed : 1) * task->idle_step_ns;
        if (at_ns >= task->event.at_ns)
            continue;
        sim_queue_remove(&world->queue, &task->event);
        sim_schedule(world, &task->event, at_ns);
    }
}
