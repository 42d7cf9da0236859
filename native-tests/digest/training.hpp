#pragma once

#include <cstdint>

namespace digest {

/// 200 steps of AdamW: which of three features has the largest sum in a padded sequence, by two layers with dropout.
/// The WebAssembly counterpart makes the same draws and calls in this order.
struct Training {
  std::uint32_t hash = 0;  ///< each step's loss, then weights in byte order of their names
  double first_loss = 0, last_loss = 0;
};

Training train_classifier();

}  // namespace digest
