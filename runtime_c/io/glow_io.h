/* SPDX-License-Identifier: MIT-0 */
/* What a test program needs from the machine it runs on: files, text, an exit status, the stack's
 * high-water mark and a marker for the instruction counter. One implementation per machine:
 * glow_io_stdio.c (Linux), glow_io_semihost.c (Cortex-M and bare-metal A64 under QEMU or a debugger).
 * Generated models never include this file. */
#ifndef GLOW_IO_H
#define GLOW_IO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Open a file; returns a handle >= 0, or -1. Relative paths start at the working folder of the host
 * process (QEMU's under semihosting). Writing truncates. */
int glow_io_open_read(const char *path);
int glow_io_open_write(const char *path);

/* Return the bytes moved: fewer than n only at the end of the file; -1 on an error. */
long glow_io_read(int h, void *dst, size_t n);
long glow_io_write(int h, const void *src, size_t n);
void glow_io_close(int h);

/* Standard output; complete when the call returns, so that it survives a crash right after. */
void glow_io_puts(const char *s);
void glow_io_put_u32(uint32_t v); /* decimal, no newline */

/* End the program; status (0..255) becomes the exit status of the process or of QEMU. */
#if defined(__GNUC__)
__attribute__((noreturn))
#endif
void glow_io_exit(int status);

/* Fill the unused stack below the caller with a pattern; glow_stack_used_bytes then returns how far
 * calls made since have reached below that point, to within 64 bytes (bare metal: never less than
 * 64; Linux: the deepest 256 KB are watched). Reserved stack that is never written is not seen. */
void glow_stack_paint(void);
uint32_t glow_stack_used_bytes(void);

/* Does nothing; the counting plugin notes the executed instructions at each call. */
void glow_mark(void);

#ifdef __cplusplus
}
#endif

#endif
