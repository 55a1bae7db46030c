/* SPDX-License-Identifier: MIT-0 */
#include "arm_nnfunctions.h"

void arm_stand_in_copy(const int8_t *from, int8_t *to, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    to[i] = from[i];
  }
}
