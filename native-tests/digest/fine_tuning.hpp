#pragma once

#include <string>
#include <vector>

namespace digest {

/// "hash checkpoint", of each step's loss, held-out accuracy and weights in byte order of their names.
std::vector<std::string> fine_tuning_lines();

}  // namespace digest
