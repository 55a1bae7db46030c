/* Where the networks lie: included ahead of every source by the Makefile (-include). link.ld has the sections. */
#ifndef PLACEMENT_H
#define PLACEMENT_H

/* Constants in external flash; the code stays in the fast memory. */
#define DIGITS_WEIGHTS_ATTR __attribute__((section(".xflash.digits")))
#define SINE_WEIGHTS_ATTR __attribute__((section(".xflash.sine")))

/* Both networks work in the one arena of main.c. */
#define DIGITS_NO_STATIC_ARENA
#define SINE_NO_STATIC_ARENA
#define ARENA_ATTR __attribute__((section(".bss.arena")))

#endif
