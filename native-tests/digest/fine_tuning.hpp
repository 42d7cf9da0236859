#pragma once

#include <string>
#include <vector>

namespace digest {

/// Runs of fine_tune() of checkpoints of testdata/models, as "hash checkpoint": of each step's loss, the accuracy of what was held out, and all
/// weights at the end, in the order of their names' bytes. Everything, the last layer or the head alone is trained, each of heads of its own.
std::vector<std::string> fine_tuning_lines();

}  // namespace digest
