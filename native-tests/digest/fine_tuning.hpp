#pragma once

#include <string>
#include <vector>

namespace digest {

/// Runs of fine_tune() on checkpoints of testdata/models, as "hash checkpoint". Hashed are the loss of each step, the
/// accuracy on held-out data and all final weights, in byte order of their names. The runs train all layers, the last
/// layer or only the head.
std::vector<std::string> fine_tuning_lines();

}  // namespace digest
