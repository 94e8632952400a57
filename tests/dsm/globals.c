/* SPDX-License-Identifier: BSD-3-Clause */
/* globals - variables marked DSM_SHARED: initial values of PE 0, plain loads and stores, synchronisation objects among
 * them, private variables beside them, and their values after finalize. Prints PASSED on PE 0. */
#include <dsm.h>
#include <stdio.h>
#include <unistd.h>

#define COUNT 100000 /* three chunks and a fraction */

static long before = 1;
DSM_SHARED long counter = 5;
DSM_SHARED dsm_lock_t lock;
DSM_SHARED double field[COUNT];
DSM_SHARED struct {
    dsm_flag_t flag;
    long message;
} post = {{0}, 3};
static long after = 2;
static long zero;

static void check(int is_right, const char *what)
{
    if (is_right)
        return;
    fprintf(stderr, "globals: PE %d: %s\n", dsm_my_pe(), what);
    _exit(1);
}

int main(void)
{
    counter = 6; /* still private; PE 0's value becomes the initial one */
    dsm_init();
    int me = dsm_my_pe(), pes = dsm_n_pes();
    check(counter == 6 && post.message == 3, "an initial value is wrong");
    before += me;
    after += me;
    zero += me;
    dsm_barrier_all();
    for (int i = 0; i < 50; i++) {
        dsm_lock(&lock);
        counter++;
        dsm_unlock(&lock);
    }
    for (int i = me; i < COUNT; i += pes)
        field[i] = i;
    if (me == pes - 1) {
        post.message = 17;
        dsm_flag_set(&post.flag, 1);
    }
    dsm_flag_wait(&post.flag, 1);
    check(post.message == 17, "the message is wrong");
    dsm_barrier_all();
    check(counter == 6 + 50 * pes, "the counter is wrong");
    for (int i = 0; i < COUNT; i++)
        check(field[i] == i, "a number of the field is wrong");
    check(before == 1 + me && after == 2 + me && zero == me, "a private variable was shared");
    check(dsm_home(&counter) >= 0 && dsm_home(&counter) < pes, "the home is no PE");
    dsm_prefetch(field, sizeof field);
    dsm_barrier_all();
    dsm_finalize();
    check(counter == 6 + 50 * pes && field[COUNT - 1] == COUNT - 1, "a value is gone after the end");
    counter++;
    if (me == 0)
        printf("PASSED\n");
    return 0;
}
