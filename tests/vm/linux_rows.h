/* SPDX-License-Identifier: BSD-3-Clause */
/* linux_rows.h - the driver of real bridges as a row of the suites of ports (with QUOIT_PORT_ROWS), in a machine that
 * has both ends of a link. */
#ifndef TESTS_VM_LINUX_ROWS_H
#define TESTS_VM_LINUX_ROWS_H

static const struct rig_driver rig_drivers[] = {
    {"linux", "linux", {.window_bytes = {0}}, NULL, {"/dev/ntb0", "/dev/ntb1"}, 100000000, 20},
};

#endif
