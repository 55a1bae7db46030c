/* SPDX-License-Identifier: MIT-0 */
#ifndef STAND_IN_SCHEMA_H
#define STAND_IN_SCHEMA_H

#include <stdint.h>

namespace tflite {

struct Model {
  uint8_t head[8];
};

inline const Model *GetModel(const void *bytes) {
  return static_cast<const Model *>(bytes);
}

}  // namespace tflite

#endif
