/* SPDX-License-Identifier: MIT-0 */
#include "tensorflow/lite/micro/micro_interpreter.h"

extern "C" {
#include "arm_nnfunctions.h"
}

TfLiteStatus tflite::MicroInterpreter::AllocateTensors() {
  return model_->head[4] == 'T' ? kTfLiteOk : kTfLiteError; /* TFL3 */
}

TfLiteStatus tflite::MicroInterpreter::Invoke() {
  Profiler *profiler = &profiler_;
  profiler->Begin();
  arm_stand_in_copy(tensors_[0].data.int8, tensors_[1].data.int8, tensors_[0].bytes);
  return kTfLiteOk;
}
