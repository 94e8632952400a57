/* SPDX-License-Identifier: BSD-3-Clause */
/* treadmarks.h - the two files of a program in the style of TreadMarks. */
#ifndef QUOIT_TESTS_DSM_TREADMARKS_H
#define QUOIT_TESTS_DSM_TREADMARKS_H

#include <Tmk.h>

#define ITEM_COUNT 300
#define ROOM       4
#define QUEUE_LOCK 7
#define NOT_FULL   0
#define NOT_EMPTY  1

struct queue {
    int items[ROOM], head, count, put_count;
    long sum;
};

extern struct queue *queue;
extern int item_count;

void take_all(void);

#endif
