/* SPDX-License-Identifier: BSD-3-Clause */
/* races - programs with a data race, and race-free ones that look similar: races NAME. The tests check the reports. */
#include <dsm.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WORDS 2048

struct shared {
    dsm_lock_t lock, other;
    dsm_flag_t flag;
    dsm_sem_t sem;
    long words[WORDS];
};

static struct shared *shared;
DSM_SHARED long counter;

__attribute__((noinline)) static void store_first(long value)
{
    shared->words[700] = value;
}

__attribute__((noinline)) static void store_second(long value)
{
    shared->words[700] = value;
}

/* The bytes of one word differ; both PEs change one of them. */
static void same_word(int me)
{
    if (me == 0)
        store_first(0x11);
    else if (me == 1)
        store_second(0x22);
}

static void adjacent_bytes(int me)
{
    for (char value = 1; value < 4; value++) { /* again: the first time the page may be in exclusive mode */
        ((volatile char *)&shared->words[700])[me] = value;
        dsm_barrier_all();
    }
}

/* Each holds a lock, but not the same one. */
static void wrong_lock(int me)
{
    dsm_lock_t *lock = me == 0 ? &shared->lock : &shared->other;
    for (int i = 0; i < 3; i++) {
        dsm_lock(lock);
        shared->words[100] += me + 1;
        dsm_unlock(lock);
    }
}

static void right_lock(int me)
{
    for (int i = 0; i < 20; i++) {
        dsm_lock(&shared->lock);
        shared->words[100] += me + 1;
        dsm_unlock(&shared->lock);
    }
}

/* PE 0 to 1 by a flag, 1 to 2 by a semaphore. */
static void handed_on(int me)
{
    if (me == 0) {
        shared->words[5] = 1;
        dsm_flag_set(&shared->flag, 1);
    } else if (me == 1) {
        dsm_flag_wait(&shared->flag, 1);
        dsm_sem_post(&shared->sem);
    } else if (me == 2) {
        dsm_sem_wait(&shared->sem);
        shared->words[5] = 2;
    }
}

/* The same, but PE 2 does not wait. */
static void not_handed_on(int me)
{
    if (me == 0) {
        shared->words[5] = 1;
        dsm_flag_set(&shared->flag, 2);
    } else if (me == 1) {
        dsm_flag_wait(&shared->flag, 2);
    } else if (me == 2) {
        shared->words[5] = 2;
    }
}

/* One PE changes a word that another reads: the last byte of it, and a whole vector that a copy reads. */
__attribute__((noinline)) static long load_it(const volatile long *word)
{
    return *word;
}

static void read_while_written(int me)
{
    if (me == 0)
        store_first(0x4400000000000000);
    else if (me == 1)
        load_it(&shared->words[700]);
}

static void copy_while_written(int me)
{
    long copy[16];
    if (me == 0)
        store_first(0x55);
    else if (me == 1)
        memcpy(copy, (const void *)&shared->words[690], sizeof copy);
    __asm__ volatile("" : : "r"(copy) : "memory");
}

/* Read under the lock that the writer holds; read before what orders it, by the one that goes first. */
static void read_in_order(int me)
{
    for (int i = 0; i < 10; i++) {
        dsm_lock(&shared->lock);
        if (me == 0)
            shared->words[200]++;
        else
            load_it(&shared->words[200]);
        dsm_unlock(&shared->lock);
    }
    if (me == 1) {
        load_it(&shared->words[300]);
        dsm_flag_set(&shared->flag, 3);
    } else if (me == 0) {
        dsm_flag_wait(&shared->flag, 3);
        shared->words[300] = 1;
    }
}

/* The reader says that it is done before it reads, and reads when the writer has heard of it. */
static void read_too_late(int me)
{
    if (me == 1) {
        dsm_flag_set(&shared->flag, 4);
        nanosleep(&(struct timespec){0, 300000000}, NULL);
        load_it(&shared->words[300]);
    } else if (me == 0) {
        dsm_flag_wait(&shared->flag, 4);
        shared->words[300] = 2;
    }
}

/* All read the same; a neighbour of what is read is changed. */
static void read_beside(int me)
{
    load_it(&shared->words[400]);
    if (me == 0)
        shared->words[401] = 1;
}

static void variable(int me)
{
    counter = me + 1;
}

static const struct {
    const char *name;
    void (*run)(int me);
} programs[] = {{"same-word", same_word},         {"adjacent-bytes", adjacent_bytes}, {"wrong-lock", wrong_lock},
                {"right-lock", right_lock},       {"handed-on", handed_on},           {"not-handed-on", not_handed_on},
                {"variable", variable},           {"read", read_while_written},       {"copy", copy_while_written},
                {"read-in-order", read_in_order}, {"read-too-late", read_too_late},   {"read-beside", read_beside}};

int main(int count, char **words)
{
    shared = dsm_all_malloc(sizeof *shared);
    for (size_t i = 0; i < sizeof programs / sizeof programs[0]; i++) {
        if (count < 2 || strcmp(words[1], programs[i].name) == 0)
            programs[i].run(dsm_my_pe());
        dsm_barrier_all();
    }
    if (dsm_my_pe() == 0)
        printf("ended\n");
    dsm_finalize();
    return 0;
}
