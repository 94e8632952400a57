/* SPDX-License-Identifier: BSD-3-Clause */
/* treadmarks - a program in the style of TreadMarks: process 0 allocates and distributes pointers, and puts numbers
 * into a short queue that the others take from; then all add to a vector under locks. Wrong sums end it with status 1.
 *
 * Use: oshrun -n 3 treadmarks [lock | stack]: what Tmk.h says of a lock that is none, and of a variable on the stack.
 */
#include "treadmarks.h"

#define VECTOR_LENGTH 5000
#define END           (-1)

struct queue *queue;
int item_count;
static long *vector;

static void put_item(int item)
{
    Tmk_lock_acquire(QUEUE_LOCK);
    while (queue->count == ROOM)
        Tmk_lock_cond_wait(QUEUE_LOCK, NOT_FULL);
    queue->items[(queue->head + queue->count++) % ROOM] = item;
    queue->put_count++;
    Tmk_lock_cond_signal(QUEUE_LOCK, NOT_EMPTY);
    Tmk_lock_release(QUEUE_LOCK);
}

static void share(void)
{
    if (Tmk_proc_id == 0) {
        queue = Tmk_malloc(sizeof *queue);
        memset(queue, 0, sizeof *queue);
        vector = Tmk_sbrk(VECTOR_LENGTH * sizeof *vector);
        memset(vector, 0, VECTOR_LENGTH * sizeof *vector);
        item_count = ITEM_COUNT;
        Tmk_distribute(&queue, sizeof queue);
        Tmk_distribute(&vector, sizeof vector);
        Tmk_distribute(&item_count, sizeof item_count);
    }
    Tmk_barrier(0);
    if (item_count != ITEM_COUNT)
        Tmk_errexit("treadmarks: process %u has %d, but %d were distributed\n", Tmk_proc_id, item_count, ITEM_COUNT);
    Tmk_barrier(0);
    if (Tmk_proc_id == Tmk_nprocs - 1) { /* another one, and what the others make of it */
        item_count = 17;
        Tmk_distribute(&item_count, sizeof item_count);
        item_count = ITEM_COUNT; /* the own value stays */
    }
    Tmk_barrier(1);
    if (item_count != (Tmk_proc_id == Tmk_nprocs - 1 ? ITEM_COUNT : 17))
        Tmk_errexit("treadmarks: process %u has %d after the second distribution\n", Tmk_proc_id, item_count);
    item_count = ITEM_COUNT;
}

static void add_all(void)
{
    for (unsigned i = 0; i < VECTOR_LENGTH; i++) {
        unsigned at = (i + Tmk_proc_id * 997) % VECTOR_LENGTH, lock = at / 512;
        if (i == 0 || at % 512 == 0)
            Tmk_lock_acquire(lock);
        vector[at] += at;
        if (i == VECTOR_LENGTH - 1 || (at + 1) % 512 == 0 || at == VECTOR_LENGTH - 1)
            Tmk_lock_release(lock);
    }
    Tmk_barrier(NBARRIERS - 1);
    for (unsigned i = 0; i < VECTOR_LENGTH; i++) {
        if (vector[i] != (long)(i * Tmk_nprocs))
            Tmk_errexit("treadmarks: element %u is %ld, but %u is required\n", i, vector[i], i * Tmk_nprocs);
    }
}

int main(int count, char **words)
{
    int on_stack = 1;
    Tmk_startup(count, words);
    if (count > 1 && strcmp(words[1], "lock") == 0)
        Tmk_lock_acquire(NLOCKS);
    if (count > 1 && strcmp(words[1], "stack") == 0)
        Tmk_distribute(&on_stack, sizeof on_stack);
    share();
    if (Tmk_proc_id == 0 && Tmk_nprocs > 1) {
        for (int i = 1; i <= item_count; i++)
            put_item(i);
        for (unsigned i = 1; i < Tmk_nprocs; i++)
            put_item(END);
    } else if (Tmk_nprocs > 1) {
        take_all();
    }
    Tmk_barrier(2);
    if (Tmk_nprocs > 1 && queue->sum != (long)ITEM_COUNT * (ITEM_COUNT + 1) / 2)
        Tmk_errexit("treadmarks: the sum of the items is %ld\n", queue->sum);
    add_all();
    if (Tmk_proc_id == 0)
        printf("treadmarks: ended\n");
    Tmk_exit(0);
}
