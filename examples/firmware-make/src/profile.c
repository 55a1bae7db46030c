/* The two hooks that generated code calls around each layer, here with SysTick, which every Cortex-M has. On
 * silicon DWT->CYCCNT does the same with 32 bits. A layer may take up to 2^24 ticks. */
#include "profile.h"

#include "semihost.h"

#define SYST_CSR (*(volatile uint32_t *)0xE000E010u)
#define SYST_RVR (*(volatile uint32_t *)0xE000E014u)
#define SYST_CVR (*(volatile uint32_t *)0xE000E018u)
#define SYST_MAX 0xFFFFFFu
#define MAX_LAYERS 32u

void glow_profile_begin(uint32_t layer);
void glow_profile_end(uint32_t layer);

static uint32_t begin_ticks;
static uint32_t layer_ticks[MAX_LAYERS];

void glow_profile_begin(uint32_t layer) {
  (void)layer;
  begin_ticks = SYST_CVR;
}

void glow_profile_end(uint32_t layer) {
  const uint32_t ticks = (begin_ticks - SYST_CVR) & SYST_MAX; /* it counts down */
  if (layer < MAX_LAYERS) {
    layer_ticks[layer] += ticks;
  }
}

void profile_start(void) {
  for (uint32_t i = 0u; i < MAX_LAYERS; i++) {
    layer_ticks[i] = 0u;
  }
  SYST_RVR = SYST_MAX;
  SYST_CVR = 0u;
  SYST_CSR = 5u; /* processor clock, no interrupt */
}

void profile_print(const char *model, const char *(*layer_name)(uint32_t), uint32_t layers, uint32_t runs) {
  for (uint32_t i = 0u; i < layers && i < MAX_LAYERS; i++) {
    semihost_puts(model);
    semihost_puts(" layer ");
    semihost_put_u32(i);
    semihost_puts(" ");
    semihost_puts(layer_name(i));
    semihost_puts(": ");
    semihost_put_u32(layer_ticks[i] / runs);
    semihost_puts(" ticks\n");
  }
}
