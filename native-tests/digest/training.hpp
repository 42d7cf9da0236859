#pragma once

#include <cstdint>

namespace digest {

/// A training run: a classifier of two layers with dropout learns which of three features has the largest sum, in
/// padded sequences, in 200 steps of AdamW. Its WebAssembly counterpart makes the same draws and calls in this order
/// and must produce the same bytes.
struct Training {
  std::uint32_t hash = 0;  ///< of each step's loss, then of all weights in byte order of their names
  double first_loss = 0, last_loss = 0;
};

Training train_classifier();

}  // namespace digest
