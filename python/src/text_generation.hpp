#pragma once

#include <nanobind/nanobind.h>

#include "attn/core.hpp"
#include "running.hpp"

namespace attn::python {

using Cache = Shared<KeyValueCache>;

/// Call before functions that take or return a cache are defined.
void define_cache(nb::module_& module);
void define_text_generation(nb::class_<Shared<TextModel>>& model);
void define_sentence_model(nb::class_<Shared<TextModel>>& model);

}  // namespace attn::python
