#pragma once

#include <cstdint>

namespace attn {

/// Options for linear_schedule().
struct LinearScheduleOptions {
  double learning_rate = 0;  ///< highest learning rate, above 0
  std::int64_t warmup = 0;   ///< steps until the highest rate, 0 to `steps`
  std::int64_t steps = 0;    ///< steps of the whole run, including warm-up
};

/// Options for cosine_schedule(); the first three as in LinearScheduleOptions.
struct CosineScheduleOptions {
  double learning_rate = 0;
  std::int64_t warmup = 0;
  std::int64_t steps = 0;
  double minimum = 0;  ///< final learning rate, from 0 to learning_rate
};

/// Returns the learning rate of a step: learning_rate · step / warmup, then learning_rate · (steps - step) / (steps -
/// warmup), and 0 from `steps` on.
///
/// @param step     from 0
/// @param options  highest rate, warm-up steps, steps of the run
/// @throws ARGUMENT if step is negative
/// @throws CONFIG if an option is outside its range
/// @see transformers' get_linear_schedule_with_warmup
///
/// @code
/// std::cout << attn::linear_schedule(5, {.learning_rate = 1, .warmup = 10, .steps = 100});  // 0.5
/// @endcode
double linear_schedule(std::int64_t step, const LinearScheduleOptions& options);

/// Returns the learning rate of a step: learning_rate · step / warmup, then minimum + (learning_rate - minimum) (1 +
/// cos(π (step - warmup) / (steps - warmup))) / 2, and `minimum` from `steps` on (in transformers the rate rises again
/// there). The cosine has the same bits on every machine.
///
/// @param step     from 0
/// @param options  highest rate, warm-up steps, steps of the run, minimum
/// @throws ARGUMENT if step is negative
/// @throws CONFIG if an option is outside its range
/// @see Loshchilov & Hutter 2017; transformers' get_cosine_schedule_with_warmup with half a cycle
///
/// @code
/// std::cout << attn::cosine_schedule(100, {.learning_rate = 1, .steps = 100, .minimum = 0.1});  // 0.1
/// @endcode
double cosine_schedule(std::int64_t step, const CosineScheduleOptions& options);

}  // namespace attn
