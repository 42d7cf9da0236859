#pragma once

#include "options.hpp"

namespace command {

/// web/lib/src/cli/texts.ts writes the same bytes.
void run_texts(const Call& call);

}  // namespace command
