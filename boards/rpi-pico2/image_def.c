/* SPDX-License-Identifier: MIT-0 */
/* The smallest IMAGE_DEF block that the RP2350 ROM starts: Arm, Secure, executable, a loop of one block
 * (RP2350 datasheet, section 5.9.5.1). It must lie in the first 4 KB, right after the vector table. */
#include <stdint.h>

__attribute__((section(".after_vectors"), used)) static const uint32_t glow_image_def[5] = {
    0xffffded3u, 0x10210142u, 0x000001ffu, 0x00000000u, 0xab123579u,
};
