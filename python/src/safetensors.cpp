#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "layers.hpp"

namespace attn::python {

void define_safetensors(nb::module_& module) {
  module.def(
      "read_safetensors",
      [](const Path& path) -> StateDict {
        const auto file = path_of(path);
        return to_python(run(std::nullopt, [&] { return attn::read_safetensors(file); }));
      },
      nb::arg("path"), R"(Tensors of a safetensors file as float32.

F16, BF16 and F64 are converted; integer and bool tensors are checked and left out.
Raises FormatError for anything that the format does not allow and where the file cannot be read, UnsupportedError for other
types, OutOfMemoryError.)");
  module.def(
      "write_safetensors",
      [](const StateLike& tensors, const std::map<std::string, std::string>& metadata) {
        const State state(tensors, "write_safetensors");
        const std::vector<std::uint8_t> bytes = run(std::nullopt, [&] { return attn::write_safetensors(state.views(), metadata); });
        return nb::bytes(bytes.data(), bytes.size());
      },
      nb::arg("tensors"), nb::arg("metadata") = nb::dict(), R"(The bytes of a safetensors file, which read_safetensors reads back bit for bit.

F32, names sorted by their bytes. Raises ArgumentError for a name or metadata that is not UTF-8, ShapeError for a rank above 8.)");
}

}  // namespace attn::python
