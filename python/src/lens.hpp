#pragma once

#include <nanobind/nanobind.h>

namespace attn::python {

namespace nb = nanobind;

/// Must follow define_text_model().
void define_lens(nb::module_& module);

}  // namespace attn::python
