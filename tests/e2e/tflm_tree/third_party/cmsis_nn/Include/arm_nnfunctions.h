/* SPDX-License-Identifier: MIT-0 */
#include <stddef.h>
#include <stdint.h>

void arm_stand_in_copy(const int8_t *from, int8_t *to, size_t bytes);
