/* SPDX-License-Identifier: MIT-0 */
/* Reset and exceptions for a bare-metal A64 core that starts in EL1 (qemu-system-aarch64 -M virt).
 *
 * The MMU is switched on with an identity map of normal memory, because with the MMU off all data
 * accesses are Device memory, where an unaligned load faults; -mstrict-align would avoid that only
 * by making the compiler split loads, and would then measure other code than Linux or an RTOS runs.
 * The first GB (devices, address 0) stays unmapped: a null pointer faults. Attribute 1 is device memory, for
 * drivers that map what they need. */

    .section .text.glow_reset, "ax"
    .global _start
_start:
    ldr     x0, =__stack_top
    mov     sp, x0
    mov     x0, #(3 << 20)          /* CPACR_EL1.FPEN: no trap on FP and Advanced SIMD */
    msr     cpacr_el1, x0
    ldr     x0, =glow_a64_vectors
    msr     vbar_el1, x0

    mov     x0, #0xff               /* MAIR attribute 0: normal, write-back, allocating */
    msr     mair_el1, x0
    ldr     x0, =0x00803519         /* T0SZ 25 (39 bits: one table of 1 GB blocks), 4 KB granule, */
    msr     tcr_el1, x0             /* walks write-back inner shareable, TTBR1 off, 32-bit physical */
    ldr     x0, =glow_a64_table
    msr     ttbr0_el1, x0
    tlbi    vmalle1
    isb
    mrs     x0, sctlr_el1
    mov     x1, #0x1005             /* M, C, I */
    orr     x0, x0, x1
    bic     x0, x0, #2              /* A: unaligned access to normal memory is allowed */
    msr     sctlr_el1, x0
    isb

    ldr     x0, =__tls_block        /* errno of the C library's math functions lives here */
    msr     tpidr_el0, x0
    b       glow_start

/* Identity map: block descriptor = address | AF | inner shareable | attribute 0 | block. */
    .section .rodata.glow_a64_table, "a"
    .balign 4096
    .global glow_a64_table
glow_a64_table:
    .quad   0
    .quad   0x40000000 + 0x701
    .quad   0x80000000 + 0x701
    .quad   0xc0000000 + 0x701
    .fill   508, 8, 0

    .section .text.glow_a64_vectors, "ax"
    .balign 2048
glow_a64_vectors:
    .rept   16
    .balign 128
    b       glow_a64_exception
    .endr

/* A fresh stack, as an overflow would leave no room to report it. */
glow_a64_exception:
    ldr     x2, =__stack_top
    mov     sp, x2
    mrs     x0, elr_el1
    mrs     x1, esr_el1
    b       glow_a64_fault
    .ltorg
    .section .note.GNU-stack, "", %progbits
