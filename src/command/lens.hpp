#pragma once

#include "options.hpp"

namespace command {

/// web/lib/src/cli/lens.ts writes the same bytes.
void run_lens(const Call& call);

}  // namespace command
