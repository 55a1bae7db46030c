/* A control loop of 1 kHz and a network in steps beside it: control is never later than a step is long. */
#include <stdint.h>
#include <string.h>

#include "digits_golden.h"
#include "semihost.h"

static _Alignas(DIGITS_ARENA_ALIGN) uint8_t arena[DIGITS_ARENA_BYTES] ARENA_ATTR;

#define SYST_CSR (*(volatile uint32_t *)0xE000E010u)
#define SYST_RVR (*(volatile uint32_t *)0xE000E014u)
#define SYST_CVR (*(volatile uint32_t *)0xE000E018u)
#define PERIOD 25000u /* of SysTick, which counts at 25 MHz: 1 ms */
#define STEP 6250u    /* --slice 0.25ms */

static volatile uint32_t periods;

void systick(void);
void systick(void) { periods++; }

/* What cannot wait: here a drive that follows its target. */
static int32_t control(int32_t position, int32_t target) { return position + (target - position) / 8; }

int main(void) {
  uint32_t seen = 0u, done = 0u, wrong = 0u, latest = 0u;
  int32_t position = 0;
  SYST_RVR = PERIOD - 1u;
  SYST_CVR = 0u;
  SYST_CSR = 7u; /* the core's clock, interrupt, on */
  int status = digits_begin_in(arena, sizeof arena, digits_golden_input[0]);
  while (done < DIGITS_GOLDEN_COUNT && (status == GLOW_OK || status == GLOW_BUSY)) {
    const uint32_t now = periods;
    if (now != seen) {
      const uint32_t late = (now - seen - 1u) * PERIOD + PERIOD - 1u - SYST_CVR;
      latest = late > latest ? late : latest;
      seen = now;
      position = control(position, 1000);
    }
    status = digits_step_in(arena, sizeof arena);
    if (status == GLOW_OK) {
      wrong += memcmp(arena + DIGITS_OUTPUT_OFFSET_BYTES, digits_golden_output[done], DIGITS_OUTPUT_BYTES) != 0;
      done++;
      if (done < DIGITS_GOLDEN_COUNT) {
        status = digits_begin_in(arena, sizeof arena, digits_golden_input[done]);
      }
    }
  }
  semihost_put_u32(done - wrong);
  semihost_puts(" digits right in ");
  semihost_put_u32(seen);
  semihost_puts(" periods; control began at most ");
  semihost_put_u32(latest / 25u);
  semihost_puts(" us late\n");
  return done == DIGITS_GOLDEN_COUNT && wrong == 0u && seen > 0u && latest <= STEP && position > 0 ? 0 : 1;
}
