#pragma once

#include <cstdint>

namespace attn {

struct LinearScheduleOptions {
  double learning_rate = 0;  ///< the highest, above 0
  std::int64_t warmup = 0;   ///< steps until it is reached, 0 to `steps`
  std::int64_t steps = 0;    ///< of the whole run, warm-up included
};

struct CosineScheduleOptions {
  double learning_rate = 0;
  std::int64_t warmup = 0;
  std::int64_t steps = 0;
  double minimum = 0;  ///< where it ends, from 0 to learning_rate
};

/// The learning rate of a step, counted from 0: learning_rate · step / warmup, then learning_rate · (steps - step) / (steps - warmup)
/// (transformers' get_linear_schedule_with_warmup). 0 from `steps` on. Throws CONFIG, ARGUMENT for a step below 0.
double linear_schedule(std::int64_t step, const LinearScheduleOptions& options);

/// learning_rate · step / warmup, then minimum + (learning_rate - minimum) (1 + cos(π (step - warmup) / (steps - warmup))) / 2
/// (Loshchilov & Hutter 2017; transformers' get_cosine_schedule_with_warmup with half a cycle). `minimum` from `steps` on, where
/// transformers' begins to rise again. The cosine is attn's own: the same bits on every machine. Throws as linear_schedule.
double cosine_schedule(std::int64_t step, const CosineScheduleOptions& options);

}  // namespace attn
