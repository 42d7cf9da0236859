#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "array.hpp"
#include "options.hpp"
#include "running.hpp"

namespace attn::python {

void define_attention(nb::module_& module);
void define_multi_head_attention(nb::module_& module);
void define_functions(nb::module_& module);
void define_encoders(nb::module_& module);
void define_text_model(nb::module_& module);
/// Requires define_text_model().
void define_image_model(nb::module_& module);
void define_tokenizer(nb::module_& module);
void define_safetensors(nb::module_& module);

inline constexpr std::array<std::string_view, 2> kWeightsNames{"float32", "int8"};
inline constexpr std::array<std::string_view, 3> kFileWeightsNames{"float32", "float16", "int8"};

using Threads = std::optional<unsigned>;

template <class T>
void define_threads(nb::class_<Shared<T>>& of) {
  of.def_prop_rw(
      "threads", [](const Shared<T>& self) { return self.threads; }, [](Shared<T>& self, Threads threads) { self.threads = threads; },
      nb::arg("threads").none(), "Number of threads of the calls; 0 for one per core, None for that of set_num_threads().");
}

template <class T>
void define_state(nb::class_<Shared<T>>& of) {
  of.def(
        "state_dict",
        [](const Shared<T>& self) -> StateDict { return to_python(self.read("state_dict", [](const T& object) { return object.state_dict(); })); },
        R"(Returns copies of the parameters by name (torch.nn.Module.state_dict).

>>> sorted(attn.MultiHeadAttention(8, 2).state_dict())
['in_proj_bias', 'in_proj_weight', 'out_proj.bias', 'out_proj.weight'])")
      .def(
          "load_state_dict",
          [](Shared<T>& self, const StateLike& state_dict, bool strict) {
            const State state(state_dict, "load_state_dict");
            self.change("load_state_dict", [&](T& object) { object.template load_state_dict<T>(state.views(), strict); });
          },
          nb::arg("state_dict"), nb::arg("strict") = true, R"(Copies parameters into the object (torch.nn.Module.load_state_dict).

state_dict: arrays by name.
strict: the names must be exactly those of state_dict(); otherwise missing parameters keep their values.

Raises MismatchError with all missing, unexpected and mis-shaped names, and DtypeError for an array that does not hold real numbers; nothing has
changed then.

>>> one, other = attn.MultiHeadAttention(8, 2), attn.MultiHeadAttention(8, 2)
>>> other.load_state_dict(one.state_dict()))")
      .def(
          "get_parameter",
          [](const Shared<T>& self, const std::string& name) -> FloatArray {
            return to_python(self.read("get_parameter", [&](const T& object) {
              const auto shapes = object.parameter_shapes();
              const auto found = shapes.find(name);
              if (found == shapes.end()) detail::fail(ErrorCode::out_of_range, "get_parameter", "name", {"a name in parameter_shapes()"}, {name});
              Array<float> values(found->second);
              object.save_state({{name, values.data()}});
              return values;
            }));
          },
          nb::arg("name"), R"(Returns a copy of one parameter (torch.nn.Module.get_parameter).

name: a name of parameter_shapes().

Raises OutOfRangeError if there is no such parameter, OutOfMemoryError if the copy does not fit into memory.

>>> attn.MultiHeadAttention(8, 2).get_parameter("out_proj.weight").shape
(8, 8))")
      .def(
          "parameter_shapes",
          [](const Shared<T>& self) {
            nb::dict shapes;
            for (const auto& [name, shape] : self.read("parameter_shapes", [](const T& object) { return object.parameter_shapes(); }))
              shapes[nb::str(name.c_str())] = tuple_of(shape);
            return Typed<"dict[str, tuple[int, ...]]">(shapes);
          },
          R"(Returns the shapes of the parameters, by the names of state_dict().

>>> attn.MultiHeadAttention(8, 2).parameter_shapes()["in_proj_weight"]
(24, 8))");
}

/// Properties that text and image models share.
template <class T>
void define_facts(nb::class_<Shared<T>>& of) {
  // Files do not change after loading.
  of.def("_file",
         [](const Shared<T>& self, const std::string& name) {
           const auto* bytes = self.read("config", [&](const T& object) { return detail::find_small_file(object, name); });
           return bytes == nullptr ? nb::none() : nb::object(nb::bytes(bytes->data(), bytes->size()));
         })
      .def_prop_ro(
          "config",
          [](nb::handle_t<Shared<T>> self) -> Typed<"dict[str, typing.Any]"> { return nb::module_::import_("attn._sentences").attr("config")(self); },
          "The contents of config.json, as the model was loaded; a new dict each time.")
      .def_prop_ro(
          "task",
          [](const Shared<T>& self) -> Word<kTaskNames> {
            return nb::borrow<Word<kTaskNames>>(to_python(std::string(name_of(self.read("task", [](const T& object) { return object.task(); })))));
          },
          "The task of the checkpoint's head; 'embedding' without a head.")
      .def_prop_ro(
          "labels", [](const Shared<T>& self) { return self.read("labels", [](const T& object) { return object.labels(); }); },
          "The labels of a head that classifies, by index; empty for other heads.")
      .def_prop_ro(
          "notes", [](const Shared<T>& self) { return self.read("notes", [](const T& object) { return object.notes(); }); },
          "Parts of the files that the model does not use, for example tensors of another head; transformers warns about them.")
      .def_prop_ro(
          "weights",
          [](const Shared<T>& self) {
            return std::string(kWeightsNames[static_cast<std::size_t>(self.read("weights", [](const T& object) { return object.weights(); }))]);
          },
          "The arithmetic of linear maps: 'float32' or 'int8'.");
}

template <class T>
void define_save_pretrained(nb::class_<Shared<T>>& of, const char* text) {
  constexpr const char* kOp = "save_pretrained";
  of.def(
      kOp,
      [](const Shared<T>& self, const Path& path, const Word<kFileWeightsNames>& weights) {
        const SaveOptions options{.weights = maybe_word_of<FileWeights>(weights, kOp, "weights")};
        const auto folder = path_of(path, kOp);
        self.read(kOp, [&](const T& object) { object.save_pretrained(folder, options); });
      },
      nb::arg("path"), nb::kw_only(), nb::arg("weights") = nb::none(), text);
}

/// Layers of `patches` and `layers` are counted from the end if negative.
template <class T>
void count_from_start(const Shared<T>& self, std::vector<LayerPatch>& patches, std::optional<std::vector<std::int64_t>>& layers) {
  const std::int64_t count = self.read("num_layers", [](const T& object) { return object.num_layers(); });
  const auto from_start = [count](std::int64_t& layer) {
    if (layer < 0 && layer >= -count) layer += count;
  };
  for (LayerPatch& each : patches) from_start(each.layer);
  if (layers) std::for_each(layers->begin(), layers->end(), from_start);
}

template <class Layer>
void define_module(nb::class_<Shared<Layer>>& of) {
  define_threads(of);
  define_state(of);
  of.def_rw("_arguments", &Shared<Layer>::arguments);
  of.def(
        "initialize",
        [](Shared<Layer>& self, const Word<kInitSchemeNames>& scheme, std::uint64_t seed, double std) {
          const InitOptions options{.scheme = word_of<InitScheme>(scheme, "initialize", "scheme"), .seed = seed, .std = std};
          self.change("initialize", [&](Layer& layer) { layer.initialize(options); });
        },
        nb::arg("scheme") = "torch", nb::kw_only(), nb::arg("seed") = 0, nb::arg("std") = 0.02,
        R"(Draws new weights (torch.nn.init). A new layer is initialized already.

scheme: 'torch', 'xavier_uniform', 'xavier_normal', 'kaiming_uniform', 'kaiming_normal' or 'normal'.
seed: the weights follow from it alone, on every machine.
std: standard deviation for 'normal'.

Raises ConfigError for another scheme or unless std is from 0 to 1e37, OutOfMemoryError if an int8 layer's float32 weights do not fit into memory.

>>> words = attn.Embedding(1000, 64)
>>> words.initialize("normal", seed=1, std=0.5)
>>> round(float(words.get_parameter("weight").std()), 1)
0.5)")
      .def(
          "quantize", [](Shared<Layer>& self) { self.change("quantize", [](Layer& layer) { layer.quantize(); }); },
          R"(Converts the weights of linear maps to int8 with a scale per row, and frees their float32 copies.

load_state_dict() and initialize() make the layer float32 again.

Raises FormatError if a weight is NaN or infinite, UnsupportedError for rows longer than 65536; nothing has changed then.

>>> layer = attn.MultiHeadAttention(8, 2)
>>> layer.quantize()
>>> layer.is_quantized
True)")
      .def(
          "gradients",
          [](const Shared<Layer>& self) -> StateDict {
            return to_python(self.read("gradients", [](const Layer& layer) { return layer.gradients(); }));
          },
          R"(Returns copies of the gradients that backward() has added up since zero_grad(), by the names of state_dict().

Parameters without a gradient are left out. load_state_dict(), initialize() and quantize() discard all gradients.

>>> layer = attn.MultiHeadAttention(8, 2)
>>> output = layer(np.ones((1, 3, 8), np.float32), for_backward=True).output
>>> _ = layer.backward(np.ones_like(output))
>>> layer.gradients()["out_proj.bias"]
array([3., 3., 3., 3., 3., 3., 3., 3.], dtype=float32))")
      .def(
          "zero_grad", [](Shared<Layer>& self) { self.change("zero_grad", [](Layer& layer) { layer.zero_grad(); }); },
          R"(Discards all gradients (torch.nn.Module.zero_grad).

>>> layer = attn.MultiHeadAttention(8, 2)
>>> output = layer(np.ones((1, 3, 8), np.float32), for_backward=True).output
>>> _ = layer.backward(np.ones_like(output))
>>> layer.zero_grad()
>>> layer.gradients()
{})")
      .def_prop_ro(
          "is_quantized",
          [](const Shared<Layer>& self) { return self.read("is_quantized", [](const Layer& layer) { return layer.is_quantized(); }); },
          "Whether quantize() has converted the weights to int8.")
      .def_prop_ro(
          "parameter_count",
          [](const Shared<Layer>& self) { return self.read("parameter_count", [](const Layer& layer) { return layer.parameter_count(); }); },
          "Number of numbers in all parameters.");
}

}  // namespace attn::python
