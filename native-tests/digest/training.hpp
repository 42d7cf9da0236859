#pragma once

#include <cstdint>

namespace digest {

/// A run of training: a classifier of two layers with dropout learns which of three features has the largest sum in sequences with padding, 200
/// steps of AdamW. A twin makes the same draws and calls, in this order, and has to end in the same bytes.
struct Training {
  std::uint32_t hash = 0;                ///< of each step's loss, and then of all weights in the order of their names' bytes
  double first_loss = 0, last_loss = 0;  ///< means over the first and last 20 steps
};

Training train_classifier();

}  // namespace digest
