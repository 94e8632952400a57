// SPDX-License-Identifier: BSD-3-Clause
/* Parameters of a quoit_ntb whose calls fail: how often, how often they did, and what of each kind the module holds. */
#include <linux/module.h>

static unsigned int fail_every;
module_param(fail_every, uint, 0644);
MODULE_PARM_DESC(fail_every, "one call in so many fails; 0: none");

static atomic_long_t failed_count;
atomic_long_t qn_held[QN_KINDS];

bool qn_fails(void)
{
    unsigned int every = READ_ONCE(fail_every);

    if (!every || get_random_u32_below(every))
        return false;
    atomic_long_inc(&failed_count);
    return true;
}

static int tell_failed(char *text, const struct kernel_param *unused)
{
    return sysfs_emit(text, "%ld\n", atomic_long_read(&failed_count));
}

static int tell_held(char *text, const struct kernel_param *unused)
{
    int kind, at = 0;

    for (kind = 0; kind < QN_KINDS; kind++)
        at += sysfs_emit_at(text, at, "%ld ", atomic_long_read(&qn_held[kind]));
    return at;
}

static const struct kernel_param_ops failed_operations = {.get = tell_failed};
module_param_cb(failed, &failed_operations, NULL, 0444);
MODULE_PARM_DESC(failed, "how many calls failed");

static const struct kernel_param_ops held_operations = {.get = tell_held};
module_param_cb(held, &held_operations, NULL, 0444);
MODULE_PARM_DESC(held, "what is held, by enum qn_kind");
