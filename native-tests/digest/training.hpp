#pragma once

#include <cstdint>

namespace digest {

/// A classifier learns which feature has the largest sum. WebAssembly makes the same draws and calls in this order.
struct Training {
  std::uint32_t hash = 0;  ///< losses, then weights in byte order of their names
  double first_loss = 0, last_loss = 0;
};

Training train_classifier();

}  // namespace digest
