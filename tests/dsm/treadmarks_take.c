/* SPDX-License-Identifier: BSD-3-Clause */
#include "treadmarks.h"

void take_all(void)
{
    for (int item = 0; item >= 0;) {
        Tmk_lock_acquire(QUEUE_LOCK);
        while (queue->count == 0)
            Tmk_lock_cond_wait(QUEUE_LOCK, NOT_EMPTY);
        item = queue->items[queue->head++ % ROOM];
        queue->head %= ROOM;
        queue->count--;
        queue->sum += item > 0 ? item : 0;
        Tmk_lock_cond_broadcast(QUEUE_LOCK, NOT_FULL);
        Tmk_lock_release(QUEUE_LOCK);
    }
}
