/* SPDX-License-Identifier: MIT-0 */
/* Matrix product of four pixels with pairs of output channels, for CPUs with the DSP extension and an FPU.
 *
 * The functions are printed (glowc/kernels/dsp/quad_tile.py); here is what they do in C, and what calls them. A step is
 * two inputs of every pixel: four words of activations (glow_expand_quad), and of the weights
 *   dual: one word, whose halfwords are 256 * weight of the even channel + weight of the odd one: SMLAD sums
 *         256 * even + odd, then, after SXTB16, odd alone. The compiler proved that |even sum with bias| < 2^23;
 *   bytes: one word, whose halfwords are the bytes of the odd and the even channel's weight: SXTB16 takes out each;
 *   wide: two words, one per channel.
 * Weights are loaded when they are needed. Where loop and ending must fit the GLOW_LOOP_BYTES that chips with this core
 * keep of their flash, they wait in the FPU's registers, loaded so many words at a time. A loop is entered where so many
 * steps are left that its rounds are whole. The stream has, per pair of channels: two scales, two biases (dual: 256 *
 * even + odd, odd), the words of the steps; before all of it glow_dsp_quad_before() words that are loaded with the first
 * ones and not used. A mixed stream begins with the number of its runs of pairs and a word for each: 2 * pairs, and 1
 * when in bytes.
 */
#ifndef GLOW_DSP_QUAD_H
#define GLOW_DSP_QUAD_H

#include "glow_dsp.h"

/* One call: four pixels x `blocks` pairs of channels. A pixel that does not exist repeats another one. */
typedef struct {
  const uint32_t *acts;
  const uint32_t *stream;
  int8_t *out[4];
  int32_t blocks;
  const uint32_t *acts_end;
  int32_t skip; /* the first words hold the steps after the first one, after this many others */
  int32_t out_zp;
  uint32_t low; /* limits of the output, in all four bytes */
  uint32_t high;
} glow_dsp_quad_t;
#if GLOW_DSP_ASM
GLOW_AT(glow_dsp_quad_t, acts, 0); GLOW_AT(glow_dsp_quad_t, stream, 4); GLOW_AT(glow_dsp_quad_t, out, 8);
GLOW_AT(glow_dsp_quad_t, blocks, 24); GLOW_AT(glow_dsp_quad_t, acts_end, 28); GLOW_AT(glow_dsp_quad_t, skip, 32);
GLOW_AT(glow_dsp_quad_t, out_zp, 36); GLOW_AT(glow_dsp_quad_t, low, 40); GLOW_AT(glow_dsp_quad_t, high, 44);
#endif

#define GLOW_DSP_STREAM_WORDS 24 /* as if so many were loaded at a time: what a stream has before its first pair */
#define GLOW_DSP_QUAD_WAITING_WORDS 12 /* loaded at a time where they wait */
#define GLOW_DSP_QUAD_STEPS 16         /* of a round where they do not */
#define GLOW_DSP_QUAD_WIDE_STEPS 12    /* of two words each */
#if defined(GLOW_LOOP_BYTES) && GLOW_LOOP_BYTES < 1536 && !(defined(__ARM_ARCH) && __ARM_ARCH >= 8)
#define GLOW_DSP_QUAD_WAITING 1
#else
#define GLOW_DSP_QUAD_WAITING 0
#endif

/* Steps for `inputs` inputs, at least two; of the last one to three inputs two are a step. */
GLOW_INLINE int32_t glow_dsp_quad_steps(int32_t inputs) {
  const int32_t steps = (inputs + 1) / 2;
  return steps < 2 ? 2 : steps;
}

/* Steps to skip for `steps` steps in rounds of `chunk`. */
GLOW_INLINE int32_t glow_dsp_quad_skipped(int32_t steps, int32_t chunk) { return chunk - 1 - (steps - 2) % chunk; }

GLOW_INLINE int32_t glow_dsp_quad_skip(int32_t steps, int32_t words) {
#if GLOW_DSP_QUAD_WAITING
  return glow_dsp_quad_skipped(steps, GLOW_DSP_QUAD_WAITING_WORDS / words);
#else
  return glow_dsp_quad_skipped(steps, words == 1 ? GLOW_DSP_QUAD_STEPS : GLOW_DSP_QUAD_WIDE_STEPS);
#endif
}

/* Words before the first pair: the most that is skipped beyond the scales, the biases and the first step. */
GLOW_INLINE int32_t glow_dsp_quad_before(int32_t steps, int32_t words) {
  const int32_t before = glow_dsp_quad_skipped(steps, GLOW_DSP_STREAM_WORDS / words) * words - 4 - words;
  return before < 0 ? 0 : before;
}

/* The last one to three inputs of a pixel: one or two are a step of their own, three a group. */
GLOW_INLINE void glow_dsp_quad_tail(uint32_t *to, const int8_t *from, int32_t n, uint32_t neg_zp) {
  uint32_t word = glow_load_tail(from, n);
  if (n < 3) {
    word = (word & 0xFFu) | (word & 0xFF00u) << 8;
  }
  to[0] = glow_sxtab16(neg_zp, word);
  to[4] = glow_sxtab16_odd(neg_zp, word);
}

#if GLOW_DSP_ASM
#define GLOW_DSP_QUAD_GROUP \
  "ldr r4, [r1], #4\n" "ldr r5, [r2], #4\n" "ldr r6, [r3], #4\n" "ldr r7, [r12], #4\n" \
  "sxtab16 r8, lr, r4, ror #8\n" "sxtab16 r9, lr, r5, ror #8\n" \
  "sxtab16 r10, lr, r6, ror #8\n" "sxtab16 r11, lr, r7, ror #8\n" \
  "sxtab16 r4, lr, r4\n" "sxtab16 r5, lr, r5\n" "sxtab16 r6, lr, r6\n" "sxtab16 r7, lr, r7\n" \
  "stmia.w r0!, {r4-r11}\n"

/* Copies words (at least one) of the stream; returns the place after them. */
GLOW_HOT __attribute__((naked, noinline)) GLOW_DSP_UNUSED static uint32_t *glow_dsp_keep(
    GLOW_DSP_UNUSED uint32_t *to, GLOW_DSP_UNUSED const uint32_t *from, GLOW_DSP_UNUSED int32_t words) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4-r10}\n"
      "b.w 2f\n"
      "1:\n"
      "ldmia.w r1!, {r3-r10}\n"
      "stmia.w r0!, {r3-r10}\n"
      "2:\n"
      "subs r2, r2, #8\n"
      "bge.w 1b\n"
      "adds r2, r2, #8\n"
      "beq.w 4f\n"
      "3:\n"
      "ldr.w r3, [r1], #4\n"
      "str.w r3, [r0], #4\n"
      "subs r2, r2, #1\n"
      "bne.w 3b\n"
      "4:\n"
      "pop {r4-r10}\n"
      "bx lr\n");
}

/* Expands groups (at least one) of four inputs of four pixels; returns the place after them. */
GLOW_HOT __attribute__((naked, noinline)) GLOW_DSP_UNUSED static uint32_t *glow_expand_quad(
    GLOW_DSP_UNUSED uint32_t *to, GLOW_DSP_UNUSED const int8_t *const *from, GLOW_DSP_UNUSED int32_t groups,
    GLOW_DSP_UNUSED uint32_t neg_zp) {
  __asm__ volatile(
      ".syntax unified\n"
      "push {r4-r11, lr}\n"
      "mov lr, r3\n"
      "ldm r1, {r4-r7}\n"
      "add r8, r4, r2, lsl #2\n"
      "vmov s0, r8\n"
      "rsb r2, r2, #0\n"
      "and r2, r2, #3\n"
      "mov r8, #52\n"
      "mul r8, r8, r2\n"
      "adr.w r9, 1f\n"
      "add r8, r8, r9\n"
      "orr r8, r8, #1\n"
      "mov r1, r4\n" "mov r2, r5\n" "mov r3, r6\n" "mov r12, r7\n"
      "bx r8\n"
      ".balign 4\n"
      "1:\n"
      GLOW_DSP_QUAD_GROUP GLOW_DSP_QUAD_GROUP GLOW_DSP_QUAD_GROUP GLOW_DSP_QUAD_GROUP
      GLOW_DSP_CODE_BYTES("1", "4 * 52")
      "vmov r4, s0\n"
      "cmp r1, r4\n"
      "bne.w 1b\n"
      "pop {r4-r11, pc}\n");
}

#else /* the same in C */
GLOW_HOT GLOW_DSP_UNUSED static uint32_t *glow_dsp_keep(uint32_t *to, const uint32_t *from, int32_t words) {
  memcpy(to, from, (size_t)(4 * words));
  return to + words;
}

GLOW_HOT GLOW_DSP_UNUSED static uint32_t *glow_expand_quad(uint32_t *to, const int8_t *const *from, int32_t groups,
                                                  uint32_t neg_zp) {
  for (int32_t g = 0; g < groups; g++, to += 8) {
    for (int32_t i = 0; i < 4; i++) {
      const uint32_t word = glow_load4(from[i] + 4 * g);
      to[i] = glow_sxtab16(neg_zp, word);
      to[i + 4] = glow_sxtab16_odd(neg_zp, word);
    }
  }
  return to;
}
#endif

#if !GLOW_DSP_ASM
typedef enum { GLOW_DSP_QUAD_AS_DUAL, GLOW_DSP_QUAD_AS_BYTES, GLOW_DSP_QUAD_AS_WIDE } glow_dsp_quad_form_t;

GLOW_INLINE int32_t glow_dsp_quad_words(glow_dsp_quad_form_t form) { return form == GLOW_DSP_QUAD_AS_WIDE ? 2 : 1; }

GLOW_INLINE int32_t glow_dsp_quad_sum(const glow_dsp_quad_t *q, const uint32_t *w, glow_dsp_quad_form_t form,
                                        int32_t pixel, int32_t channel) {
  const int32_t dual = form == GLOW_DSP_QUAD_AS_DUAL ? 1 : 0;
  int32_t odd = (int32_t)w[3];
  int32_t sum = (int32_t)w[2 + channel];
  w += 4;
  for (const uint32_t *acts = q->acts; acts != q->acts_end; acts += 4, w += glow_dsp_quad_words(form)) {
    const uint32_t low = glow_sxtab16(0u, w[0]);
    const uint32_t even = form == GLOW_DSP_QUAD_AS_BYTES ? glow_sxtab16_odd(0u, w[0]) : w[0];
    odd = glow_dsp_smlad(acts[pixel], form == GLOW_DSP_QUAD_AS_WIDE ? w[1] : low, odd);
    sum = glow_dsp_smlad(acts[pixel], even, sum);
  }
  if (channel != 0) {
    return odd;
  }
  return dual ? (int32_t)((uint32_t)sum - (uint32_t)odd) / 256 : sum; /* without remainder */
}

GLOW_INLINE void glow_dsp_quad_twin(const glow_dsp_quad_t *q, glow_dsp_quad_form_t form) {
  const uint32_t *w = q->stream;
  const int32_t steps = (int32_t)((q->acts_end - q->acts) / 4);
  for (int32_t b = 0; b < q->blocks; b++, w += 4 + steps * glow_dsp_quad_words(form)) {
    for (int32_t i = 0; i < 8; i++) {
      float scale;
      memcpy(&scale, &w[i % 2], sizeof scale);
      const int32_t sum = glow_dsp_quad_sum(q, w, form, i / 2, i % 2);
      q->out[i / 2][2 * b + i % 2] =
          (int8_t)glow_requant(sum, scale, q->out_zp, glow_first8(q->low), glow_first8(q->high));
    }
  }
}

GLOW_INLINE void glow_dsp_quad_sums_twin(const glow_dsp_quad_t *q, glow_dsp_quad_form_t form) {
  const int32_t words = glow_dsp_quad_words(form);
  const int32_t steps = (int32_t)((q->acts_end - q->acts) / 4);
  for (int32_t i = 0; i < 8 * q->blocks; i++) {
    const int32_t sum = glow_dsp_quad_sum(q, q->stream + i / 8 * (4 + steps * words), form, i % 4, i / 4 % 2);
    memcpy(q->out[1] + 4 * i, &sum, sizeof sum);
  }
}
#endif

typedef void (*glow_dsp_quad_fn)(const glow_dsp_quad_t *q);

/* The products of a stream whose first `kept` pairs, of `words` words each, are also at `copy`. */
GLOW_INLINE void glow_dsp_quad_kept(const glow_dsp_quad_t *q, const uint32_t *copy, int32_t kept, int32_t words,
                                      glow_dsp_quad_fn product) {
  glow_dsp_quad_t part = *q;
  part.stream = copy;
  part.blocks = kept;
  product(&part);
  part.stream = q->stream + kept * words;
  part.blocks = q->blocks - kept;
  if (part.blocks > 0) {
    for (int32_t i = 0; i < 4; i++) {
      part.out[i] += 2 * kept;
    }
    product(&part);
  }
}

/* The products of `held` quads whose activations follow each other from those of `q` on, pixels at `outs`: pairs of
 * channels of `part` words in all, `words` each, for all quads, then the next ones; an odd channel by itself. */
GLOW_HOT GLOW_DSP_UNUSED static void glow_dsp_quad_batch(const glow_dsp_quad_t *q, int8_t *(*outs)[4], int32_t held,
                                                         int32_t channels, int32_t part, int32_t words,
                                                         glow_dsp_quad_fn product) {
  const int32_t most = part / words * 2;
  glow_dsp_quad_t one = *q;
  int32_t count;
  for (int32_t c = 0; c < channels; c += count) {
    int8_t last[8];
    count = channels - c < most ? (channels - c) / 2 * 2 : most;
    one.blocks = count == 0 ? 1 : count / 2;
    one.acts = q->acts;
    for (int32_t n = 0; n < held; n++) {
      one.acts_end = one.acts + (q->acts_end - q->acts);
      for (int32_t i = 0; i < 4; i++) {
        one.out[i] = count == 0 ? last + 2 * i : outs[n][i] + c;
      }
      product(&one);
      one.acts = one.acts_end;
      for (int32_t i = 0; count == 0 && i < 4; i++) {
        outs[n][i][c] = last[2 * i];
      }
    }
    one.stream += one.blocks * words;
    count = count == 0 ? 1 : count;
  }
}

/* The products of a mixed stream, `q->stream` after its table `runs`, of `channels` channels; a pair has `head` words
 * before those of its steps. */
GLOW_INLINE void glow_dsp_quad_each_run(const glow_dsp_quad_t *q, const uint32_t *runs, int32_t channels, int32_t head,
                                        glow_dsp_quad_fn dual, glow_dsp_quad_fn bytes) {
  glow_dsp_quad_t part = *q;
  const int32_t words = head + (int32_t)((q->acts_end - q->acts) / 4);
  for (uint32_t r = 1u; r <= runs[0]; r++) {
    const glow_dsp_quad_fn product = (runs[r] & 1u) != 0u ? bytes : dual;
    part.blocks = (int32_t)(runs[r] >> 1);
    if (channels == 1) { /* half of the last pair */
      int8_t codes[8];
      for (int32_t i = 0; i < 4; i++) {
        part.out[i] = codes + 2 * i;
      }
      product(&part);
      for (int32_t i = 0; i < 4; i++) {
        q->out[i][2 * ((part.stream - q->stream) / words)] = codes[2 * i];
      }
      return;
    }
    product(&part);
    part.stream += part.blocks * words;
    for (int32_t i = 0; i < 4; i++) {
      part.out[i] += 2 * part.blocks;
    }
    channels -= 2 * part.blocks;
  }
}

/* The sums of a mixed stream. */
GLOW_INLINE void glow_dsp_quad_sums_runs(const glow_dsp_quad_t *q, const uint32_t *runs, glow_dsp_quad_fn dual,
                                         glow_dsp_quad_fn bytes) {
  glow_dsp_quad_t part = *q;
  const int32_t words = 4 + (int32_t)((q->acts_end - q->acts) / 4);
  for (uint32_t r = 1u; r <= runs[0]; r++) {
    part.blocks = (int32_t)(runs[r] >> 1);
    const glow_dsp_quad_fn product = (runs[r] & 1u) != 0u ? bytes : dual;
    product(&part);
    part.stream += part.blocks * words;
    for (int32_t i = 0; i < 4; i++) {
      part.out[i] += 32 * part.blocks;
    }
  }
}

#endif
