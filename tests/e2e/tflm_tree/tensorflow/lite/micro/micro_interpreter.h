/* SPDX-License-Identifier: MIT-0 */
#ifndef STAND_IN_INTERPRETER_H
#define STAND_IN_INTERPRETER_H

#include <stddef.h>
#include <stdint.h>

#include "tensorflow/lite/micro/micro_mutable_op_resolver.h"
#include "tensorflow/lite/schema/schema_generated.h"

struct TfLiteTensor {
  union {
    char *raw;
    int8_t *int8;
  } data;
  size_t bytes;
};

namespace tflite {

class Profiler {
 public:
  virtual ~Profiler() {}
  virtual void Begin() = 0;
};

class NoProfiler : public Profiler {
 public:
  void Begin() override {}
};

class MicroInterpreter {
 public:
  template <class Resolver>
  MicroInterpreter(const Model *model, const Resolver &, uint8_t *arena, size_t) : model_(model) {
    for (size_t i = 0; i < 2; i++) {
      tensors_[i].data.raw = reinterpret_cast<char *>(arena) + 16 * i;
      tensors_[i].bytes = 16;
    }
  }
  TfLiteStatus AllocateTensors();
  TfLiteStatus Invoke();
  size_t inputs_size() const { return 1; }
  size_t outputs_size() const { return 1; }
  TfLiteTensor *input(size_t) { return &tensors_[0]; }
  TfLiteTensor *output(size_t) { return &tensors_[1]; }
  size_t arena_used_bytes() const { return 32; }

 private:
  const Model *model_;
  TfLiteTensor tensors_[2];
  NoProfiler profiler_;
};

}  // namespace tflite

#endif
