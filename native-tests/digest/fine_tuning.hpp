#pragma once

#include <string>
#include <vector>

namespace digest {

/// "hash checkpoint": of each step's loss, the accuracy on held-out data and all weights in byte order of their names.
/// Runs train all layers, the last or only the head.
std::vector<std::string> fine_tuning_lines();

}  // namespace digest
