/* SPDX-License-Identifier: BSD-3-Clause */
/* stack.h - switches one thread of the process between stacks. Private to task.c.
 *
 * Not longjmp(), which _FORTIFY_SOURCE stops between stacks, and not swapcontext() where avoidable: it sets the
 * kernel's signal mask at each switch, which took half of the run time. The address sanitizer supports only the latter.
 */
#ifndef SIM_STACK_H
#define SIM_STACK_H

#include <stddef.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_STACK_UCONTEXT
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || !(defined(__x86_64__) || defined(__aarch64__))
#define SIM_STACK_UCONTEXT
#endif

#ifdef SIM_STACK_UCONTEXT
#include <ucontext.h>
struct sim_stack {
    ucontext_t context;
};
#else
/* A suspended stack: its callee-saved registers and the resume address are on it. */
struct sim_stack {
    void *pointer;
};
#endif

/* A stack in [memory, memory + bytes), 16-byte aligned, that begins with entry(), which never returns. */
void sim_stack_init(struct sim_stack *stack, char *memory, size_t bytes, void (*entry)(void));
/* Resumes `to`; returns when another switch resumes `from`. */
void sim_stack_switch(struct sim_stack *from, struct sim_stack *to);

#endif
