#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>

#include "layers.hpp"

namespace attn::python {

void define_safetensors(nb::module_& module) {
  module.def(
      "read_safetensors",
      [](const Path& path) -> StateDict {
        const auto file = path_of(path, "read_safetensors");
        return to_python(run(std::nullopt, [&] { return attn::read_safetensors(file); }));
      },
      nb::arg("path"), R"(Reads the tensors of a safetensors file as float32 (safetensors.numpy.load_file).

F16, BF16 and F64 are converted; integer and bool tensors are checked and left out.

path: the file.

Returns a dict of arrays by name. Raises MissingFileError if there is no such file, FormatError if it cannot be read or breaks a rule of the
format, UnsupportedError for other types (F8, F4, C64), OutOfMemoryError if the tensors do not fit into memory.

>>> attn.read_safetensors("testdata/models/sentiment/model.safetensors")["classifier.weight"].shape
(2, 64))");
  module.def(
      "write_safetensors",
      [](const StateLike& tensors, const std::map<std::string, std::string>& metadata) {
        const State state(tensors, "write_safetensors");
        const std::vector<std::uint8_t> bytes = run(std::nullopt, [&] { return attn::write_safetensors(state.views(), metadata); });
        return nb::bytes(bytes.data(), bytes.size());
      },
      nb::arg("tensors"), nb::arg("metadata") = nb::dict(),
      R"(Writes tensors as the bytes of a safetensors file (safetensors.numpy.save). read_safetensors() reads them back bit for bit.

tensors: arrays by name; they are written as F32, sorted by the bytes of their names.
metadata: texts by name, for the file's header.

Returns the bytes. Raises ArgumentError for the name __metadata__ and for a name or metadata that is not UTF-8, ShapeError for a rank above 8,
DtypeError for an array that does not hold real numbers.

>>> len(attn.write_safetensors({"x": np.zeros((2, 3))}))
96)");
}

}  // namespace attn::python
