/* Kernels' building blocks for CPUs with the DSP extension and an FPU (Cortex-M4, M7, M33), with exact C twins.
 *
 * Matrix products read weights as a stream of blocks of four output channels. With `groups` = inputs / 4:
 *   dual: 256 * bias 0 + bias 1, 256 * bias 2 + bias 3, bias 1, bias 3; per group four words, (inputs 0 and 2,
 *         inputs 1 and 3) x (channels 0 and 1, 2 and 3), whose halfwords are 256 * weight of the even channel +
 *         weight of the odd one; 4 scales. One SMLAD sums 256 * even + odd; the odd sum alone, from one SXTB16,
 *         splits them at the end. The compiler proved that |even sum with bias| < 2^23.
 *   wide: bias 0, 2, 1, 3; per group eight words, (inputs 0 and 2, inputs 1 and 3) x channels 0 .. 3; 4 scales.
 * Requantisation is float32 product, VCVTR (half to even), zero point, saturation: exact by construction.
 */
#ifndef GLOW_DSP_H
#define GLOW_DSP_H

#include "glow_numeric.h"

#if defined(__GNUC__) && defined(__thumb2__) && defined(__ARM_FEATURE_DSP) && defined(__ARM_FP)
#define GLOW_DSP_ASM 1
#else
#define GLOW_DSP_ASM 0
#endif

#if defined(__GNUC__)
#define GLOW_DSP_UNUSED __attribute__((unused))
#else
#define GLOW_DSP_UNUSED
#endif

/* One call: two pixels (one row of a fully connected layer: `acts` int8) x `blocks` of four channels. */
typedef struct {
  const void *acts;
  const void *stream;
  int8_t *out0;
  int8_t *out1;
  int32_t blocks;
  int32_t groups;
  int32_t out_zp;
  uint32_t neg_zp; /* fully connected: -in_zp in both halfwords */
  uint32_t tail;   /* fully connected: the last one to three inputs */
  uint32_t has_tail;
  uint32_t low; /* limits of the output, in all four bytes; a fully connected layer is not clamped */
  uint32_t high;
} glow_dsp_gemm_t;

static inline uint32_t glow_four8(int32_t x) { return ((uint32_t)x & 0xFFu) * 0x01010101u; }

#define GLOW_DSP_MAX_ROWS 10

/* Depthwise: one row of a kernel window. A row outside of the input has a word of zero points and step 0. */
typedef struct {
  const int8_t *in;
  int32_t step;      /* bytes from column to column */
  int32_t next_quad; /* bytes to the next four channels */
  int32_t next_tile; /* bytes from behind the last channel to the next tile */
} glow_dsp_row_t;

/* Depthwise: `tiles` alike tiles of a row, all channels of the stream. */
typedef struct {
  const int8_t *stream;
  const int8_t *stream_end;
  int8_t *out;
  int32_t out_step;
  int32_t out_adv; /* bytes from behind the last channel to the next tile */
  uint32_t neg_zp;
  int32_t out_zp;
  int32_t tiles;
  uint32_t low; /* limits of the output, in all four bytes */
  uint32_t high;
  int32_t unused[2];
  glow_dsp_row_t rows[GLOW_DSP_MAX_ROWS];
} glow_dsp_dw_t;

static inline uint32_t glow_load4(const int8_t *p) {
  uint32_t word;
  memcpy(&word, p, sizeof word);
  return word;
}

static inline uint32_t glow_twice16(int32_t x) { return ((uint32_t)x & 0xFFFFu) | ((uint32_t)x << 16); }

static inline int32_t glow_low16(uint32_t x) { return (int32_t)((x & 0xFFFFu) ^ 0x8000u) - 0x8000; }

static inline uint32_t glow_sxtab16(uint32_t base, uint32_t x) {
#if GLOW_DSP_ASM
  uint32_t sum;
  __asm__("sxtab16 %0, %1, %2" : "=r"(sum) : "r"(base), "r"(x));
  return sum;
#else
  const uint32_t low = base + ((x & 0xFFu) ^ 0x80u) - 0x80u;
  const uint32_t high = (base >> 16) + (((x >> 16) & 0xFFu) ^ 0x80u) - 0x80u;
  return (low & 0xFFFFu) | (high << 16);
#endif
}

/* As glow_sxtab16, of bytes 1 and 3. */
static inline uint32_t glow_sxtab16_odd(uint32_t base, uint32_t x) {
#if GLOW_DSP_ASM
  uint32_t sum;
  __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(sum) : "r"(base), "r"(x));
  return sum;
#else
  return glow_sxtab16(base, x >> 8);
#endif
}

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
/* clang-format off */
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
/* clang-format on */
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

#if GLOW_DSP_ASM
#define GLOW_DSP_FUNCTION GLOW_DSP_UNUSED __attribute__((naked, noinline)) static void

/* clang-format off */
#define GLOW_DSP_PAIR_DUAL \
  "ldrd r2, r3, [r0], #8\n" "ldrd r12, lr, [r1], #8\n" \
  "smlad r4, r2, r12, r4\n" "smlad r5, r3, r12, r5\n" "smlad r6, r2, lr, r6\n" "smlad r7, r3, lr, r7\n" \
  "sxtb16 r12, r12\n" "sxtb16 lr, lr\n" \
  "smlad r8, r2, r12, r8\n" "smlad r9, r3, r12, r9\n" "smlad r10, r2, lr, r10\n" "smlad r11, r3, lr, r11\n"
#define GLOW_DSP_PAIR_WIDE \
  "ldrd r2, r3, [r0], #8\n" "ldrd r12, lr, [r1], #8\n" \
  "smlad r4, r2, r12, r4\n" "smlad r5, r3, r12, r5\n" "smlad r8, r2, lr, r8\n" "smlad r9, r3, lr, r9\n" \
  "ldrd r12, lr, [r1], #8\n" \
  "smlad r6, r2, r12, r6\n" "smlad r7, r3, r12, r7\n" "smlad r10, r2, lr, r10\n" "smlad r11, r3, lr, r11\n"
#define GLOW_DSP_BEGIN \
  "ldmia.w r1!, {r4, r6, r8, r10}\n" "mov r5, r4\n" "mov r7, r6\n" "mov r9, r8\n" "mov r11, r10\n"
#define GLOW_DSP_SPLIT_DUAL "sub r4, r4, r8\n" "sub r5, r5, r9\n" "sub r6, r6, r10\n" "sub r7, r7, r11\n"
#define GLOW_DSP_SPLIT_WIDE
/* 256 times the sum of an even channel to float, exactly. */
#define GLOW_DSP_EVEN_DUAL ", #8\n"
#define GLOW_DSP_EVEN_WIDE "\n"
/* Saturates four rounded values in a, b, c, d and packs them into a; the zero point is r12. */
#define GLOW_DSP_PACK_S8(a, b, c, d) \
  "qadd " a ", " a ", r12\n" "qadd " b ", " b ", r12\n" "qadd " c ", " c ", r12\n" "qadd " d ", " d ", r12\n" \
  "ssat " a ", #8, " a "\n" "ssat " b ", #8, " b "\n" "ssat " c ", #8, " c "\n" "ssat " d ", #8, " d "\n" \
  "bfi " a ", " b ", #8, #8\n" "bfi " a ", " c ", #16, #8\n" "bfi " a ", " d ", #24, #8\n"
/* The same for zero point -128. */
#define GLOW_DSP_PACK_U8(a, b, c, d) \
  "usat " a ", #8, " a "\n" "usat " b ", #8, " b "\n" "usat " c ", #8, " c "\n" "usat " d ", #8, " d "\n" \
  "orr " a ", " a ", " b ", lsl #8\n" "orr " a ", " a ", " c ", lsl #16\n" "orr " a ", " a ", " d ", lsl #24\n" \
  "eor " a ", " a ", #0x80808080\n"
#define GLOW_DSP_PACK_V8(a, b, c, d) GLOW_DSP_PACK_U8(a, b, c, d)
#define GLOW_DSP_ZP_S8 "ldr r12, [sp, #4]\n"
#define GLOW_DSP_ZP_U8
#define GLOW_DSP_ZP_V8
/* The limits, bytewise: U8 none, V8 the upper one, S8 both. */
#define GLOW_DSP_CLAMP_U8
#define GLOW_DSP_CLAMP_V8 \
  "ldr r12, [sp, #16]\n" \
  "ssub8 r2, r12, r4\n" "sel r4, r4, r12\n" "ssub8 r2, r12, r8\n" "sel r8, r8, r12\n"
#define GLOW_DSP_CLAMP_S8 \
  "ldrd r3, r12, [sp, #12]\n" \
  "ssub8 r2, r4, r3\n" "sel r4, r4, r3\n" "ssub8 r2, r12, r4\n" "sel r4, r4, r12\n" \
  "ssub8 r2, r8, r3\n" "sel r8, r8, r3\n" "ssub8 r2, r12, r8\n" "sel r8, r8, r12\n"

#define GLOW_DSP_GEMM(form, sign, group_bytes) \
  __asm__ volatile( \
      ".syntax unified\n" \
      "push {r4-r11, lr}\n" \
      "sub sp, sp, #20\n" \
      "ldrd r9, r10, [r0, #40]\n" \
      "strd r9, r10, [sp, #12]\n" \
      "ldm r0, {r2-r8}\n" \
      "vmov s12, s13, r4, r5\n" \
      "add r6, r4, r6, lsl #2\n" \
      "str r6, [sp]\n" \
      "str r8, [sp, #4]\n" \
      "add r6, r2, r7, lsl #4\n" \
      "str r6, [sp, #8]\n" \
      "mov r1, r3\n" \
      "rsb r7, r7, #0\n" \
      "and r7, r7, #7\n" \
      "mov r6, #" group_bytes "\n" \
      "mul r7, r7, r6\n" \
      "adr.w r6, 2f\n" \
      "add r6, r6, r7\n" \
      "orr r6, r6, #1\n" \
      "vmov s14, s15, r2, r6\n" \
      "1:\n" \
      GLOW_DSP_BEGIN \
      "vmov r0, r2, s14, s15\n" \
      "bx r2\n" \
      ".balign 4\n" \
      "2:\n" \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      GLOW_DSP_PAIR_##form GLOW_DSP_PAIR_##form \
      "ldr r2, [sp, #8]\n" \
      "cmp r0, r2\n" \
      "bne.w 2b\n" \
      GLOW_DSP_SPLIT_##form \
      "vldmia r1!, {s8-s11}\n" \
      "vmov s0, s1, r4, r8\n" "vmov s2, s3, r6, r10\n" "vmov s4, s5, r5, r9\n" "vmov s6, s7, r7, r11\n" \
      "vcvt.f32.s32 s0, s0" GLOW_DSP_EVEN_##form "vcvt.f32.s32 s1, s1\n" \
      "vcvt.f32.s32 s2, s2" GLOW_DSP_EVEN_##form "vcvt.f32.s32 s3, s3\n" \
      "vcvt.f32.s32 s4, s4" GLOW_DSP_EVEN_##form "vcvt.f32.s32 s5, s5\n" \
      "vcvt.f32.s32 s6, s6" GLOW_DSP_EVEN_##form "vcvt.f32.s32 s7, s7\n" \
      "vmul.f32 s0, s0, s8\n" "vmul.f32 s1, s1, s9\n" "vmul.f32 s2, s2, s10\n" "vmul.f32 s3, s3, s11\n" \
      "vmul.f32 s4, s4, s8\n" "vmul.f32 s5, s5, s9\n" "vmul.f32 s6, s6, s10\n" "vmul.f32 s7, s7, s11\n" \
      "vcvtr.s32.f32 s0, s0\n" "vcvtr.s32.f32 s1, s1\n" "vcvtr.s32.f32 s2, s2\n" "vcvtr.s32.f32 s3, s3\n" \
      "vcvtr.s32.f32 s4, s4\n" "vcvtr.s32.f32 s5, s5\n" "vcvtr.s32.f32 s6, s6\n" "vcvtr.s32.f32 s7, s7\n" \
      "vmov r4, r5, s0, s1\n" "vmov r6, r7, s2, s3\n" "vmov r8, r9, s4, s5\n" "vmov r10, r11, s6, s7\n" \
      GLOW_DSP_ZP_##sign \
      GLOW_DSP_PACK_##sign("r4", "r5", "r6", "r7") \
      GLOW_DSP_PACK_##sign("r8", "r9", "r10", "r11") \
      GLOW_DSP_CLAMP_##sign \
      "vmov r2, r3, s12, s13\n" \
      "str r8, [r3], #4\n" \
      "str r4, [r2], #4\n" \
      "vmov s12, s13, r2, r3\n" \
      "ldr r12, [sp]\n" \
      "cmp r2, r12\n" \
      "bne.w 1b\n" \
      "add sp, sp, #20\n" \
      "pop {r4-r11, pc}\n")

#define GLOW_DSP_FC_DUAL \
  "ldmia r1!, {r8-r11}\n" "sxtab16 r3, r12, r2\n" "sxtab16 r2, r12, r2, ror #8\n" \
  "smlad r4, r3, r8, r4\n" "smlad r5, r3, r9, r5\n" "sxtb16 r8, r8\n" "sxtb16 r9, r9\n" \
  "smlad r6, r3, r8, r6\n" "smlad r7, r3, r9, r7\n" \
  "smlad r4, r2, r10, r4\n" "smlad r5, r2, r11, r5\n" "sxtb16 r10, r10\n" "sxtb16 r11, r11\n" \
  "smlad r6, r2, r10, r6\n" "smlad r7, r2, r11, r7\n"
#define GLOW_DSP_FC_WIDE \
  "ldmia r1!, {r8-r11}\n" "sxtab16 r3, r12, r2\n" "sxtab16 r2, r12, r2, ror #8\n" \
  "smlad r4, r3, r8, r4\n" "smlad r6, r3, r9, r6\n" "smlad r5, r3, r10, r5\n" "smlad r7, r3, r11, r7\n" \
  "ldmia r1!, {r8-r11}\n" \
  "smlad r4, r2, r8, r4\n" "smlad r6, r2, r9, r6\n" "smlad r5, r2, r10, r5\n" "smlad r7, r2, r11, r7\n"
#define GLOW_DSP_FC_SPLIT_DUAL "sub r4, r4, r6\n" "sub r5, r5, r7\n"
#define GLOW_DSP_FC_SPLIT_WIDE
#define GLOW_DSP_FC_LOAD "ldr.w r2, [r0], #4\n"

#define GLOW_DSP_FC(form, group_bytes) \
  __asm__ volatile( \
      ".syntax unified\n" \
      "push {r4-r11, lr}\n" \
      "sub sp, sp, #16\n" \
      "ldmia r0!, {r2-r8}\n" \
      "ldm r0, {r9-r11}\n" \
      "mov r12, r9\n" \
      "vmov s8, r4\n" \
      "add r6, r4, r6, lsl #2\n" \
      "str r6, [sp]\n" \
      "str r8, [sp, #4]\n" \
      "strd r10, r11, [sp, #8]\n" \
      "mov r1, r3\n" \
      "add lr, r2, r7, lsl #2\n" \
      "rsb r6, r7, #0\n" \
      "and r6, r6, #3\n" \
      "mov r8, #" group_bytes "\n" \
      "mul r6, r6, r8\n" \
      "adr.w r8, 2f\n" \
      "add r6, r6, r8\n" \
      "cmp r7, #0\n" \
      "it eq\n" \
      "addeq r6, r6, #4*" group_bytes "+8\n" \
      "orr r6, r6, #1\n" \
      "vmov s10, s11, r2, r6\n" \
      "1:\n" \
      "ldmia r1!, {r4-r7}\n" \
      "vmov r0, r2, s10, s11\n" \
      "bx r2\n" \
      ".balign 4\n" \
      "2:\n" \
      GLOW_DSP_FC_LOAD GLOW_DSP_FC_##form \
      GLOW_DSP_FC_LOAD GLOW_DSP_FC_##form \
      GLOW_DSP_FC_LOAD GLOW_DSP_FC_##form \
      GLOW_DSP_FC_LOAD GLOW_DSP_FC_##form \
      "cmp.w r0, lr\n" \
      "bne.w 2b\n" /* the entry of a layer without whole groups is behind this */ \
      "ldrd r2, r3, [sp, #8]\n" \
      "cmp r3, #0\n" \
      "beq.w 3f\n" \
      GLOW_DSP_FC_##form \
      "3:\n" \
      GLOW_DSP_FC_SPLIT_##form \
      "vldmia r1!, {s4-s7}\n" \
      "vmov s0, s1, r4, r6\n" "vmov s2, s3, r5, r7\n" \
      "vcvt.f32.s32 s0, s0" GLOW_DSP_EVEN_##form "vcvt.f32.s32 s1, s1\n" \
      "vcvt.f32.s32 s2, s2" GLOW_DSP_EVEN_##form "vcvt.f32.s32 s3, s3\n" \
      "vmul.f32 s0, s0, s4\n" "vmul.f32 s1, s1, s5\n" "vmul.f32 s2, s2, s6\n" "vmul.f32 s3, s3, s7\n" \
      "vcvtr.s32.f32 s0, s0\n" "vcvtr.s32.f32 s1, s1\n" "vcvtr.s32.f32 s2, s2\n" "vcvtr.s32.f32 s3, s3\n" \
      "vmov r4, r5, s0, s1\n" "vmov r6, r7, s2, s3\n" \
      "ldr r3, [sp, #4]\n" \
      "qadd r4, r4, r3\n" "qadd r5, r5, r3\n" "qadd r6, r6, r3\n" "qadd r7, r7, r3\n" \
      "ssat r4, #8, r4\n" "ssat r5, #8, r5\n" "ssat r6, #8, r6\n" "ssat r7, #8, r7\n" \
      "bfi r4, r5, #8, #8\n" "bfi r4, r6, #16, #8\n" "bfi r4, r7, #24, #8\n" \
      "vmov r2, s8\n" \
      "str r4, [r2], #4\n" \
      "vmov s8, r2\n" \
      "ldr r3, [sp]\n" \
      "cmp r2, r3\n" \
      "bne.w 1b\n" \
      "add sp, sp, #16\n" \
      "pop {r4-r11, pc}\n")
/* clang-format on */

GLOW_DSP_FUNCTION glow_dsp_gemm_dual_s8(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { GLOW_DSP_GEMM(DUAL, S8, "96"); }
GLOW_DSP_FUNCTION glow_dsp_gemm_dual_u8(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { GLOW_DSP_GEMM(DUAL, U8, "96"); }
GLOW_DSP_FUNCTION glow_dsp_gemm_dual_v8(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { GLOW_DSP_GEMM(DUAL, V8, "96"); }
GLOW_DSP_FUNCTION glow_dsp_gemm_wide_s8(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { GLOW_DSP_GEMM(WIDE, S8, "88"); }
GLOW_DSP_FUNCTION glow_dsp_fc_dual(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { GLOW_DSP_FC(DUAL, "64"); }
GLOW_DSP_FUNCTION glow_dsp_fc_wide(GLOW_DSP_UNUSED const glow_dsp_gemm_t *g) { GLOW_DSP_FC(WIDE, "52"); }

#else /* the same in C */

static inline int32_t glow_first8(uint32_t x) { return (int32_t)((x & 0xFFu) ^ 0x80u) - 128; }

static inline int32_t glow_dsp_smlad(uint32_t a, uint32_t b, int32_t sum) {
  const int32_t low = (int32_t)(int16_t)(a & 0xFFFFu) * (int32_t)(int16_t)(b & 0xFFFFu);
  const int32_t high = (int32_t)(int16_t)(a >> 16) * (int32_t)(int16_t)(b >> 16);
  return (int32_t)((uint32_t)sum + (uint32_t)low + (uint32_t)high);
}

/* Inputs (0 and 2) or, with half 1, (1 and 3) of a group; pixel -1 is a row of a fully connected layer. */
static inline uint32_t glow_dsp_acts(const glow_dsp_gemm_t *g, int32_t pixel, int32_t group, int32_t half) {
  if (pixel >= 0) {
    return ((const uint32_t *)g->acts)[4 * group + 2 * half + pixel];
  }
  const uint32_t word = group < g->groups ? glow_load4((const int8_t *)g->acts + 4 * group) : g->tail;
  return half != 0 ? glow_sxtab16_odd(g->neg_zp, word) : glow_sxtab16(g->neg_zp, word);
}

/* Four channels of one pixel; returns the next block of the stream. */
static inline const uint32_t *glow_dsp_block(const glow_dsp_gemm_t *g, const uint32_t *w, int wide, int32_t pixel,
                                             int8_t *out) {
  const int32_t groups = g->groups + (pixel < 0 && g->has_tail != 0u ? 1 : 0);
  int32_t sum[4];
  for (int32_t c = 0; c < 4; c++) {
    sum[c] = (int32_t)w[2 * (c & 1) + (c >> 1)];
  }
  w += 4;
  for (int32_t i = 0; i < 2 * groups; i++) {
    const uint32_t acts = glow_dsp_acts(g, pixel, i >> 1, i & 1);
    for (int32_t c = 0; c < 4; c++) {
      const uint32_t word = wide ? w[c] : w[c >> 1];
      sum[c] = glow_dsp_smlad(acts, !wide && (c & 1) != 0 ? glow_sxtab16(0u, word) : word, sum[c]);
    }
    w += wide ? 4 : 2;
  }
  if (!wide) {
    for (int32_t c = 0; c < 4; c += 2) {
      sum[c] = (int32_t)((uint32_t)sum[c] - (uint32_t)sum[c + 1]) / 256; /* without remainder */
    }
  }
  for (int32_t c = 0; c < 4; c++) {
    float scale;
    memcpy(&scale, &w[c], sizeof scale);
    out[c] = (int8_t)glow_requant(sum[c], scale, g->out_zp, glow_first8(g->low), glow_first8(g->high));
  }
  return w + 4;
}

static inline void glow_dsp_twin(const glow_dsp_gemm_t *g, int wide, int fc) {
  const uint32_t *w = (const uint32_t *)g->stream;
  for (int32_t b = 0; b < g->blocks; b++) {
    if (!fc) {
      (void)glow_dsp_block(g, w, wide, 1, g->out1 + 4 * b);
    }
    w = glow_dsp_block(g, w, wide, fc ? -1 : 0, g->out0 + 4 * b);
  }
}

/* What a depthwise tile is printed for: columns [first, end) exist. */
typedef struct {
  int32_t k_h;
  int32_t k_w;
  int32_t outputs;
  int32_t stride;
  int32_t dilation;
  int32_t first;
  int32_t end;
} glow_dsp_tile_t;

static inline int32_t glow_dsp_dw_sum(const glow_dsp_dw_t *d, const glow_dsp_tile_t *s, const int8_t *weights,
                                      const int8_t *const *in, int32_t output, int32_t channel, int32_t sum) {
  for (int32_t ky = 0; ky < s->k_h; ky++) {
    for (int32_t kx = 0; kx < s->k_w; kx++) {
      const int32_t column = output * s->stride + kx * s->dilation;
      if (column >= s->first && column < s->end) {
        const int32_t x = in[ky][(column - s->first) * d->rows[ky].step + channel];
        sum += (x + (int32_t)(int16_t)(d->neg_zp & 0xFFFFu)) * weights[(ky * s->k_w + kx) * 4 + channel];
      }
    }
  }
  return sum;
}

static inline void glow_dsp_dw_twin(const glow_dsp_dw_t *d, const glow_dsp_tile_t *s) {
  const int8_t *in[GLOW_DSP_MAX_ROWS];
  int8_t *out = d->out;
  for (int32_t ky = 0; ky < s->k_h; ky++) {
    in[ky] = d->rows[ky].in;
  }
  for (int32_t tile = 0; tile < d->tiles; tile++) {
    for (const int8_t *w = d->stream; w < d->stream_end; w += 4 * s->k_h * s->k_w + 32, out += 4) {
      for (int32_t i = 0; i < 4 * s->outputs; i++) {
        const int32_t c = i % 4;
        const int8_t *own = w + (c % 2) * (4 * s->k_h * s->k_w + 16) + 2 * (c & 2);
        int32_t sum;
        float scale;
        memcpy(&sum, own, sizeof sum);
        memcpy(&scale, own + 8 + (c % 2 == 0 ? 4 * s->k_h * s->k_w : 0), sizeof scale);
        sum = glow_dsp_dw_sum(d, s, w + 8, in, i / 4, c, sum);
        sum = glow_requant(sum, scale, d->out_zp, glow_first8(d->low), glow_first8(d->high));
        out[(i / 4) * d->out_step + c] = (int8_t)sum;
      }
      for (int32_t ky = 0; ky < s->k_h; ky++) {
        in[ky] += d->rows[ky].next_quad;
      }
    }
    out += d->out_adv;
    for (int32_t ky = 0; ky < s->k_h && tile + 1 < d->tiles; ky++) {
      in[ky] += d->rows[ky].next_tile;
    }
  }
}

GLOW_DSP_UNUSED static void glow_dsp_gemm_dual_s8(const glow_dsp_gemm_t *g) { glow_dsp_twin(g, 0, 0); }
GLOW_DSP_UNUSED static void glow_dsp_gemm_dual_u8(const glow_dsp_gemm_t *g) { glow_dsp_twin(g, 0, 0); }
GLOW_DSP_UNUSED static void glow_dsp_gemm_dual_v8(const glow_dsp_gemm_t *g) { glow_dsp_twin(g, 0, 0); }
GLOW_DSP_UNUSED static void glow_dsp_gemm_wide_s8(const glow_dsp_gemm_t *g) { glow_dsp_twin(g, 1, 0); }
GLOW_DSP_UNUSED static void glow_dsp_fc_dual(const glow_dsp_gemm_t *g) { glow_dsp_twin(g, 0, 1); }
GLOW_DSP_UNUSED static void glow_dsp_fc_wide(const glow_dsp_gemm_t *g) { glow_dsp_twin(g, 1, 1); }
#endif

/* clamp(rne(float32(acc) * scale) + zp, lo, hi) by the FPU. */
static inline int32_t glow_requant_fpu(int32_t acc, float scale, int32_t zp, int32_t lo, int32_t hi) {
#if GLOW_DSP_ASM
  float real = (float)acc * scale;
  int32_t sum;
  __asm__("vcvtr.s32.f32 %1, %1\n\tvmov %0, %1\n\tqadd %0, %0, %2" : "=&r"(sum), "+t"(real) : "r"(zp));
  return glow_clamp(sum, lo, hi);
#else
  return glow_requant(acc, scale, zp, lo, hi);
#endif
}

/* Sum or difference of codes, four at a time; the operations of add_s8__ref in the same order. */
typedef struct {
  const int8_t *a;
  const int8_t *b;
  int8_t *out;
  int32_t n;
  int32_t a_zp;
  int32_t b_zp;
  int32_t out_zp;
  int32_t out_min;
  int32_t out_max;
  float a_scale;
  float b_scale;
  float out_scale;
} glow_dsp_add_t;

static inline int8_t glow_dsp_add_one(const glow_dsp_add_t *s, int32_t qa, int32_t qb, int minus) {
  const float ra = glow_rounded((float)(qa - s->a_zp) * s->a_scale);
  const float rb = glow_rounded((float)(qb - s->b_zp) * s->b_scale);
  const float real = glow_rounded(minus != 0 ? ra - rb : ra + rb) / s->out_scale;
  return (int8_t)glow_round_clamp(real, s->out_zp, s->out_min, s->out_max);
}

static inline void glow_dsp_add(const glow_dsp_add_t *s, int minus) {
  int32_t i = 0;
#if GLOW_DSP_ASM
  const int8_t *a = s->a;
  const int8_t *b = s->b;
  int8_t *out = s->out;
  const uint32_t na = glow_twice16(-s->a_zp);
  const uint32_t nb = glow_twice16(-s->b_zp);
  const uint32_t low = glow_four8(s->out_min);
  const uint32_t high = glow_four8(s->out_max);
  const float sign = minus != 0 ? -s->b_scale : s->b_scale; /* a - b is a + -b, bit for bit */
  for (; i + 4 <= s->n; i += 4) {
    uint32_t t0 = glow_load4(a + i);
    uint32_t t2 = glow_load4(b + i);
    uint32_t t1;
    uint32_t t3;
    __asm__(
        "sxtab16 %1, %4, %0, ror #8\n\tsxtab16 %0, %4, %0\n\t"
        "sxtab16 %3, %5, %2, ror #8\n\tsxtab16 %2, %5, %2\n\t"
        "vmov s0, s1, %0, %1\n\tvmov s4, s5, %2, %3\n\t"
        "asr %0, %0, #16\n\tasr %1, %1, #16\n\tasr %2, %2, #16\n\tasr %3, %3, #16\n\t"
        "vmov s2, s3, %0, %1\n\tvmov s6, s7, %2, %3\n\t"
        "vcvt.f32.s16 s0, s0, #0\n\tvcvt.f32.s16 s1, s1, #0\n\tvcvt.f32.s16 s4, s4, #0\n\tvcvt.f32.s16 s5, s5, #0\n\t"
        "vcvt.f32.s32 s2, s2\n\tvcvt.f32.s32 s3, s3\n\tvcvt.f32.s32 s6, s6\n\tvcvt.f32.s32 s7, s7\n\t"
        "vmul.f32 s0, s0, %9\n\tvmul.f32 s1, s1, %9\n\tvmul.f32 s2, s2, %9\n\tvmul.f32 s3, s3, %9\n\t"
        "vmul.f32 s4, s4, %10\n\tvmul.f32 s5, s5, %10\n\tvmul.f32 s6, s6, %10\n\tvmul.f32 s7, s7, %10\n\t"
        "vadd.f32 s0, s0, s4\n\tvadd.f32 s1, s1, s5\n\tvadd.f32 s2, s2, s6\n\tvadd.f32 s3, s3, s7\n\t"
        "vdiv.f32 s0, s0, %11\n\tvdiv.f32 s1, s1, %11\n\tvdiv.f32 s2, s2, %11\n\tvdiv.f32 s3, s3, %11\n\t"
        "vcvtr.s32.f32 s0, s0\n\tvcvtr.s32.f32 s1, s1\n\tvcvtr.s32.f32 s2, s2\n\tvcvtr.s32.f32 s3, s3\n\t"
        "vmov %0, %1, s0, s1\n\tvmov %2, %3, s2, s3\n\t"
        "qadd %0, %0, %6\n\tqadd %1, %1, %6\n\tqadd %2, %2, %6\n\tqadd %3, %3, %6\n\t"
        "ssat %0, #8, %0\n\tssat %1, #8, %1\n\tssat %2, #8, %2\n\tssat %3, #8, %3\n\t"
        "bfi %0, %1, #8, #8\n\tbfi %0, %2, #16, #8\n\tbfi %0, %3, #24, #8\n\t"
        "ssub8 %1, %0, %7\n\tsel %0, %0, %7\n\tssub8 %1, %8, %0\n\tsel %0, %0, %8"
        : "+&r"(t0), "=&r"(t1), "+&r"(t2), "=&r"(t3)
        : "r"(na), "r"(nb), "r"(s->out_zp), "r"(low), "r"(high), "t"(s->a_scale), "t"(sign), "t"(s->out_scale)
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "cc");
    memcpy(out + i, &t0, sizeof t0);
  }
#endif
  for (; i < s->n; i++) {
    s->out[i] = glow_dsp_add_one(s, s->a[i], s->b[i], minus);
  }
}

/* Sum of codes by two fused multiply-adds, four at a time; the operations of add_s8f__ref in the same order. */
typedef struct {
  const int8_t *a;
  const int8_t *b;
  int8_t *out;
  int32_t n;
  int32_t half;
  int32_t out_min;
  int32_t out_max;
  float a_ratio;
  float b_ratio;
  float fixed;
} glow_dsp_add_fused_t;

static inline void glow_dsp_add_fused(const glow_dsp_add_fused_t *s) {
  int32_t i = 0;
#if GLOW_DSP_ASM
  const uint32_t half = glow_twice16(s->half);
  const uint32_t low = glow_four8(s->out_min);
  const uint32_t high = glow_four8(s->out_max);
  for (; i + 4 <= s->n; i += 4) {
    uint32_t t0 = glow_load4(s->a + i);
    uint32_t t2 = glow_load4(s->b + i);
    uint32_t t1;
    uint32_t t3;
    __asm__(
        "sxtab16 %1, %4, %0, ror #8\n\tsxtab16 %0, %4, %0\n\t"
        "sxtab16 %3, %4, %2, ror #8\n\tsxtab16 %2, %4, %2\n\t"
        "vmov s0, s1, %0, %1\n\tvmov s4, s5, %2, %3\n\t"
        "asr %0, %0, #16\n\tasr %1, %1, #16\n\tasr %2, %2, #16\n\tasr %3, %3, #16\n\t"
        "vmov s2, s3, %0, %1\n\tvmov s6, s7, %2, %3\n\t"
        "vcvt.f32.s16 s0, s0, #0\n\tvcvt.f32.s16 s1, s1, #0\n\tvcvt.f32.s16 s4, s4, #0\n\tvcvt.f32.s16 s5, s5, #0\n\t"
        "vcvt.f32.s32 s2, s2\n\tvcvt.f32.s32 s3, s3\n\tvcvt.f32.s32 s6, s6\n\tvcvt.f32.s32 s7, s7\n\t"
        "vmov.f32 s8, %10\n\tvmov.f32 s9, %10\n\tvmov.f32 s10, %10\n\tvmov.f32 s11, %10\n\t"
        "vfma.f32 s8, s4, %9\n\tvfma.f32 s9, s5, %9\n\tvfma.f32 s10, s6, %9\n\tvfma.f32 s11, s7, %9\n\t"
        "vfma.f32 s8, s0, %8\n\tvfma.f32 s9, s1, %8\n\tvfma.f32 s10, s2, %8\n\tvfma.f32 s11, s3, %8\n\t"
        "vcvtr.s32.f32 s8, s8\n\tvcvtr.s32.f32 s9, s9\n\tvcvtr.s32.f32 s10, s10\n\tvcvtr.s32.f32 s11, s11\n\t"
        "vmov %0, %1, s8, s9\n\tvmov %2, %3, s10, s11\n\t"
        "qsub %0, %0, %5\n\tqsub %1, %1, %5\n\tqsub %2, %2, %5\n\tqsub %3, %3, %5\n\t"
        "ssat %0, #8, %0\n\tssat %1, #8, %1\n\tssat %2, #8, %2\n\tssat %3, #8, %3\n\t"
        "bfi %0, %1, #8, #8\n\tbfi %0, %2, #16, #8\n\tbfi %0, %3, #24, #8\n\t"
        "ssub8 %1, %0, %6\n\tsel %0, %0, %6\n\tssub8 %1, %7, %0\n\tsel %0, %0, %7"
        : "+&r"(t0), "=&r"(t1), "+&r"(t2), "=&r"(t3)
        : "r"(half), "r"(s->half), "r"(low), "r"(high), "t"(s->a_ratio), "t"(s->b_ratio), "t"(s->fixed)
        : "s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "cc");
    memcpy(s->out + i, &t0, sizeof t0);
  }
#endif
  for (; i < s->n; i++) {
    const float inner = glow_fma((float)(s->b[i] + s->half), s->b_ratio, s->fixed);
    const float code = glow_fma((float)(s->a[i] + s->half), s->a_ratio, inner);
    s->out[i] = (int8_t)(glow_round_clamp(code, 0, s->out_min + s->half, s->out_max + s->half) - s->half);
  }
}

/* The product for dual weights; the limits and the zero point choose the instructions that end it. */
typedef void (*glow_dsp_gemm_fn)(const glow_dsp_gemm_t *g);

static inline glow_dsp_gemm_fn glow_dsp_gemm_dual(int32_t out_zp, int32_t lo, int32_t hi) {
  if (out_zp != -128 || lo > -128) {
    return glow_dsp_gemm_dual_s8;
  }
  return hi < 127 ? glow_dsp_gemm_dual_v8 : glow_dsp_gemm_dual_u8;
}

#endif
