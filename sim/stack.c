/* SPDX-License-Identifier: BSD-3-Clause */
#include "sim/stack.h"

#include <stdint.h>
#include <string.h>

#if defined(SIM_STACK_UCONTEXT)

void sim_stack_init(struct sim_stack *stack, char *memory, size_t bytes, void (*entry)(void))
{
    getcontext(&stack->context);
    stack->context.uc_stack.ss_sp = memory;
    stack->context.uc_stack.ss_size = bytes;
    stack->context.uc_link = NULL;
    makecontext(&stack->context, entry, 0);
}

void sim_stack_switch(struct sim_stack *from, struct sim_stack *to)
{
    swapcontext(&from->context, &to->context);
}

#else

/* Saves the callee-saved registers on the old stack, and that stack's pointer in *from. */
void sim_stack_swap(void **from, void *to);

#if defined(__x86_64__)
#define SAVED_WORDS 6
__asm__(".text\n"
        ".globl sim_stack_swap\n"
        ".hidden sim_stack_swap\n"
        ".type sim_stack_swap, @function\n"
        "sim_stack_swap:\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size sim_stack_swap, . - sim_stack_swap\n");
#else
#define SAVED_WORDS 20 /* x19 to x30, d8 to d15; x30 is the return address */
#define LINK_WORD   11
__asm__(".text\n"
        ".globl sim_stack_swap\n"
        ".hidden sim_stack_swap\n"
        ".type sim_stack_swap, %function\n"
        "sim_stack_swap:\n"
        "    sub sp, sp, #160\n"
        "    stp x19, x20, [sp]\n"
        "    stp x21, x22, [sp, #16]\n"
        "    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n"
        "    stp x27, x28, [sp, #64]\n"
        "    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n"
        "    stp d10, d11, [sp, #112]\n"
        "    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n"
        "    str x9, [x0]\n"
        "    mov sp, x1\n"
        "    ldp x19, x20, [sp]\n"
        "    ldp x21, x22, [sp, #16]\n"
        "    ldp x23, x24, [sp, #32]\n"
        "    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n"
        "    ldp x29, x30, [sp, #80]\n"
        "    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n"
        "    ldp d12, d13, [sp, #128]\n"
        "    ldp d14, d15, [sp, #144]\n"
        "    add sp, sp, #160\n"
        "    ret\n"
        ".size sim_stack_swap, . - sim_stack_swap\n");
#endif

void sim_stack_init(struct sim_stack *stack, char *memory, size_t bytes, void (*entry)(void))
{
    uint64_t *top = (uint64_t *)(void *)(memory + bytes);
#if defined(__x86_64__)
    uint64_t *pointer = top - 2 - SAVED_WORDS; /* at entry() the stack is 8 bytes off an alignment of 16 */
    memset(pointer, 0, (2 + SAVED_WORDS) * sizeof *pointer);
    pointer[SAVED_WORDS] = (uint64_t)(uintptr_t)entry; /* the return address; a debugger finds no caller of entry() */
#else
    uint64_t *pointer = top - SAVED_WORDS;
    memset(pointer, 0, SAVED_WORDS * sizeof *pointer);
    pointer[LINK_WORD] = (uint64_t)(uintptr_t)entry;
#endif
    stack->pointer = pointer;
}

void sim_stack_switch(struct sim_stack *from, struct sim_stack *to)
{
    sim_stack_swap(&from->pointer, to->pointer);
}

#endif
