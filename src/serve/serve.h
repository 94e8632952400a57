/* SPDX-License-Identifier: BSD-3-Clause */
/* serve.h - how a program becomes one of those that serve a job beside its PEs (boot/program.h): oshrun in main(), a
 * program that is linked with libshmem.a before main() and all constructors of its own (carried.c).
 */
#ifndef QUOIT_SERVE_SERVE_H
#define QUOIT_SERVE_SERVE_H

/* Serves, and does not return, if the arguments ask for the agent or the proxy of a host. Standard descriptors are open
 * and the log is set up. From the main thread, while there is no other. */
void quoit_serve_if_asked(int argc, char **argv);

#endif
