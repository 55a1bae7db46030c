/* SPDX-License-Identifier: MIT-0 */
/* Building blocks of the kernels for CPUs with the DSP extension and an FPU (Cortex-M4, M7, M33), with exact C twins.
 *
 * Activations are expanded from int8 to int16, zero point taken off, in the order in which SXTB16 yields them: of four
 * inputs first 0 and 2, then 1 and 3. Requantisation is float32 product, VCVTR (half to even), zero point, saturation:
 * exact by construction.
 */
#ifndef GLOW_DSP_H
#define GLOW_DSP_H

#include "glow_numeric.h"
#include "glow_runtime.h"

/* GLOW_DSP_SIMD: single instructions of the DSP extension; GLOW_DSP_ASM: and loops that also use the FPU's registers. */
#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FEATURE_DSP) && !defined(GLOW_NO_ASM)
#define GLOW_DSP_SIMD 1
#else
#define GLOW_DSP_SIMD 0
#endif
#if GLOW_DSP_SIMD && defined(__ARM_FP)
#define GLOW_DSP_ASM 1
#else
#define GLOW_DSP_ASM 0
#endif

#if defined(__GNUC__)
#define GLOW_DSP_UNUSED __attribute__((unused))
#else
#define GLOW_DSP_UNUSED
#endif

#if GLOW_DSP_ASM
#define GLOW_DSP_INLINE static inline __attribute__((always_inline))
#define GLOW_DSP_FUNCTION GLOW_DSP_UNUSED __attribute__((naked, noinline)) static void
/* The code from label `from` up to here has so many bytes, by which computed jumps count. */
#ifdef __clang__ /* cannot tell while it reads the text */
#define GLOW_DSP_CODE_BYTES(from, bytes) ""
#else
#define GLOW_DSP_CODE_BYTES(from, bytes) \
  "7:\n.if 7b - " from "b - (" bytes ")\n.error \"jumps count on other sizes of instructions\"\n.endif\n"
#endif
/* 256 times the sum of an even channel to float, exactly. */
#define GLOW_DSP_EVEN_DUAL ", #8\n"
#define GLOW_DSP_EVEN_WIDE "\n"
#define GLOW_DSP_EVEN_BYTES "\n"
/* Four sums in s0-s3 times s4-s7, rounded, in r4-r7; `even`: how 0 and 2 are converted. */
#define GLOW_DSP_SCALE4(even) \
  "vcvt.f32.s32 s0, s0" even "vcvt.f32.s32 s1, s1\n" "vcvt.f32.s32 s2, s2" even "vcvt.f32.s32 s3, s3\n" \
  "vmul.f32 s0, s0, s4\n" "vmul.f32 s1, s1, s5\n" "vmul.f32 s2, s2, s6\n" "vmul.f32 s3, s3, s7\n" \
  "vcvtr.s32.f32 s0, s0\n" "vcvtr.s32.f32 s1, s1\n" "vcvtr.s32.f32 s2, s2\n" "vcvtr.s32.f32 s3, s3\n" \
  "vmov r4, r5, s0, s1\n" "vmov r6, r7, s2, s3\n"
/* r4-r7 with a zero point to bytes of r4. */
#define GLOW_DSP_BYTES4(zp) \
  "qadd r4, r4, " zp "\n" "qadd r5, r5, " zp "\n" "qadd r6, r6, " zp "\n" "qadd r7, r7, " zp "\n" \
  "ssat r4, #8, r4\n" "ssat r5, #8, r5\n" "ssat r6, #8, r6\n" "ssat r7, #8, r7\n" \
  "bfi r4, r5, #8, #8\n" "bfi r4, r6, #16, #8\n" "bfi r4, r7, #24, #8\n"
#endif

static inline uint32_t glow_four8(int32_t x) { return ((uint32_t)x & 0xFFu) * 0x01010101u; }

static inline uint32_t glow_load4(const int8_t *p) {
  uint32_t word;
  memcpy(&word, p, sizeof word);
  return word;
}

static inline uint32_t glow_twice16(int32_t x) { return ((uint32_t)x & 0xFFFFu) | ((uint32_t)x << 16); }

static inline int32_t glow_low16(uint32_t x) { return (int32_t)((x & 0xFFFFu) ^ 0x8000u) - 0x8000; }

/* name(a, b): one instruction (or two, whose result may not share a register: "=&r"), or the same in C. */
#if GLOW_DSP_SIMD
#define GLOW_DSP_OF_TWO(type, name, text, result, plain) \
  static inline type name(uint32_t a, uint32_t b) { \
    type value; \
    __asm__(text : result(value) : "r"(a), "r"(b)); \
    return value; \
  }
#else
#define GLOW_DSP_OF_TWO(type, name, text, result, plain) \
  static inline type name(uint32_t a, uint32_t b) { return plain; }

static inline uint32_t glow_plain_sxtab16(uint32_t base, uint32_t x) {
  const uint32_t low = base + ((x & 0xFFu) ^ 0x80u) - 0x80u;
  const uint32_t high = (base >> 16) + (((x >> 16) & 0xFFu) ^ 0x80u) - 0x80u;
  return (low & 0xFFFFu) | (high << 16);
}
#endif

/* To the halfwords of a, bytes 0 and 2 of b are added, or 1 and 3. */
GLOW_DSP_OF_TWO(uint32_t, glow_sxtab16, "sxtab16 %0, %1, %2", "=r", glow_plain_sxtab16(a, b))
GLOW_DSP_OF_TWO(uint32_t, glow_sxtab16_odd, "sxtab16 %0, %1, %2, ror #8", "=r", glow_plain_sxtab16(a, b >> 8))

/* The low halfwords of a and b, a below; and the high ones. */
static inline uint32_t glow_pack_low(uint32_t a, uint32_t b) { return (a & 0xFFFFu) | (b << 16); }
static inline uint32_t glow_pack_high(uint32_t a, uint32_t b) { return (a >> 16) | (b & 0xFFFF0000u); }

/* n (1 to 3) bytes as a word. */
static inline uint32_t glow_load_tail(const int8_t *p, int32_t n) {
  uint32_t word = 0u;
  for (int32_t i = 0; i < n; i++) {
    word |= (uint32_t)(uint8_t)p[i] << (8 * i);
  }
  return word;
}

/* Expands groups of four inputs of two pixels to int16, zero point taken off: (0 and 2) of each, (1 and 3) of
 * each. */
static inline void glow_expand_group(uint32_t *to, uint32_t a, uint32_t b, uint32_t neg_zp) {
  to[0] = glow_sxtab16(neg_zp, a);
  to[1] = glow_sxtab16(neg_zp, b);
  to[2] = glow_sxtab16_odd(neg_zp, a);
  to[3] = glow_sxtab16_odd(neg_zp, b);
}

#if GLOW_DSP_ASM
__attribute__((naked, noinline)) GLOW_DSP_UNUSED static void glow_expand_pair(
    GLOW_DSP_UNUSED uint32_t *to, GLOW_DSP_UNUSED const int8_t *a, GLOW_DSP_UNUSED const int8_t *b,
    GLOW_DSP_UNUSED int32_t groups, GLOW_DSP_UNUSED uint32_t neg_zp) {
#define GLOW_DSP_EXPAND \
  "ldr r8, [r1], #4\n" "ldr r9, [r2], #4\n" \
  "sxtab16 r4, r12, r8\n" "sxtab16 r5, r12, r9\n" "sxtab16 r6, r12, r8, ror #8\n" "sxtab16 r7, r12, r9, ror #8\n" \
  "stmia.w r0!, {r4-r7}\n"
  __asm__ volatile(
      ".syntax unified\n"
      "ldr r12, [sp]\n"
      "push {r4-r9}\n"
      "tst r3, #1\n"
      "beq.w 1f\n"
      GLOW_DSP_EXPAND
      "1:\n"
      "tst r3, #2\n"
      "beq.w 2f\n"
      GLOW_DSP_EXPAND GLOW_DSP_EXPAND
      "2:\n"
      "lsrs r3, r3, #2\n"
      "beq.w 4f\n"
      "3:\n"
      GLOW_DSP_EXPAND GLOW_DSP_EXPAND GLOW_DSP_EXPAND GLOW_DSP_EXPAND
      "subs r3, r3, #1\n"
      "bne.w 3b\n"
      "4:\n"
      "pop {r4-r9}\n"
      "bx lr\n");
}
#else
static inline void glow_expand_pair(uint32_t *to, const int8_t *a, const int8_t *b, int32_t groups, uint32_t neg_zp) {
  for (; groups > 0; groups--, to += 4, a += 4, b += 4) {
    glow_expand_group(to, glow_load4(a), glow_load4(b), neg_zp);
  }
}
#endif

/* One pixel of a pair: only every second word. */
GLOW_DSP_UNUSED static uint32_t *glow_expand_one(uint32_t *to, const int8_t *a, int32_t groups, uint32_t neg_zp) {
  for (; groups > 0; groups--, to += 4, a += 4) {
    const uint32_t word = glow_load4(a);
    to[0] = glow_sxtab16(neg_zp, word);
    to[2] = glow_sxtab16_odd(neg_zp, word);
  }
  return to;
}

GLOW_DSP_UNUSED static uint32_t *glow_zero_one(uint32_t *to, int32_t groups) {
  for (; groups > 0; groups--, to += 4) {
    to[0] = 0u;
    to[2] = 0u;
  }
  return to;
}

/* A row of `count` inputs of which [begin, end) exist; the others count as zero. */
GLOW_DSP_UNUSED static uint32_t *glow_expand_edge(uint32_t *to, const int8_t *row, int32_t first, int32_t begin,
                                                  int32_t end, int32_t count, int32_t zp) {
  const uint32_t neg_zp = glow_twice16(-zp);
  for (int32_t j = 0; j < count; j += 4, to += 4) {
    const int32_t low = begin - j > 0 ? begin - j : 0;
    const int32_t high = end - j < 4 ? end - j : 4;
    uint32_t word = (uint32_t)(uint8_t)zp * 0x01010101u;
    if (high - low == 4) {
      word = glow_load4(row + first + j);
    } else {
      for (int32_t i = low; i < high; i++) {
        word ^= (uint32_t)(uint8_t)(row[first + j + i] ^ zp) << (8 * i);
      }
    }
    to[0] = glow_sxtab16(neg_zp, word);
    to[2] = glow_sxtab16_odd(neg_zp, word);
  }
  return to;
}

GLOW_DSP_UNUSED static void glow_clamp_bytes(int8_t *p, int32_t n, int32_t lo, int32_t hi) {
  for (int32_t i = 0; i < n; i++) {
    p[i] = (int8_t)glow_clamp(p[i], lo, hi);
  }
}

/* clamp(rne(v) + zp, lo, hi); NaN gives zp. */
static inline int32_t glow_round_fpu(float v, int32_t zp, int32_t lo, int32_t hi) {
#if GLOW_DSP_ASM
  int32_t sum;
  __asm__("vcvtr.s32.f32 %1, %1\n\tvmov %0, %1\n\tqadd %0, %0, %2" : "=&r"(sum), "+t"(v) : "r"(zp));
  return glow_clamp(sum, lo, hi);
#else
  return glow_round_clamp(v != v ? 0.0f : v, zp, lo, hi);
#endif
}

/* clamp(rne(float32(acc) * scale) + zp, lo, hi) by the FPU. */
static inline int32_t glow_requant_fpu(int32_t acc, float scale, int32_t zp, int32_t lo, int32_t hi) {
#if GLOW_DSP_ASM
  return glow_round_fpu((float)acc * scale, zp, lo, hi);
#else
  return glow_requant(acc, scale, zp, lo, hi);
#endif
}

#if !GLOW_DSP_ASM
static inline int32_t glow_first8(uint32_t x) { return (int32_t)((x & 0xFFu) ^ 0x80u) - 128; }

static inline int32_t glow_dsp_smlad(uint32_t a, uint32_t b, int32_t sum) {
  const int32_t low = (int32_t)(int16_t)(a & 0xFFFFu) * (int32_t)(int16_t)(b & 0xFFFFu);
  const int32_t high = (int32_t)(int16_t)(a >> 16) * (int32_t)(int16_t)(b >> 16);
  return (int32_t)((uint32_t)sum + (uint32_t)low + (uint32_t)high);
}
#endif

#endif
