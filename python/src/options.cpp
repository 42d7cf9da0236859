#include "options.hpp"

#include <algorithm>

#include "errors.hpp"
#include "running.hpp"
#include "texts.hpp"

namespace attn::python {
namespace {

template <MaskKind kKind>
GivenMask make_mask(const ArrayLike& given) {
  if constexpr (kKind == MaskKind::additive) {
    auto numbers = std::make_shared<const Floats>(given, "Mask", "mask");
    MaskView view(kKind, numbers->data, numbers->shape);
    view.strides = numbers->strides;
    return {kKind, given, numbers, view};
  } else {
    const auto flags = std::make_shared<const Array<std::uint8_t>>(flags_of(given, "Mask", "mask"));
    return {kKind, flags->to_numpy(), flags, MaskView(kKind, flags->data(), to_shape(flags->shape()))};
  }
}

}  // namespace

std::size_t place_of(std::string_view word, std::span<const std::string_view> words, std::string_view op, std::string_view option) {
  const auto found = std::find(words.begin(), words.end(), word);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string all;
  for (const std::string_view each : words) all.append(all.empty() ? "" : ", ").append(each);
  detail::fail(ErrorCode::config, op, option, {"one of ", all}, {word});
}

void define_masks(nb::module_& module) {
  nb::class_<GivenMask>(module, "Mask", nb::type_slots(calling_init()), R"(Selects the keys that a query may attend to.

Create it with attend(), block() or additive(): torch's functions and layers give the same numbers opposite meanings, so the kind is explicit.

Dimensions: (S), (L,S), (B,L,S) or (B,H,L,S); any of B, H, L may be 1. A key_padding_mask has (B,S).

Raises DtypeError unless the mask holds real numbers, ShapeError for a rank above 8. The call that uses it
raises MaskError if dimensions or values do not fit.

>>> x = np.eye(3, dtype=np.float32)
>>> causal = attn.Mask.attend(np.tril(np.ones((3, 3))))
>>> attn.scaled_dot_product_attention(x, x, x, mask=causal).output[0]
array([1., 0., 0.], dtype=float32))")
      .def_static(
          "attend", &make_mask<MaskKind::attend>, nb::arg("mask"),
          R"(Creates a mask that allows keys whose number is not 0 (torch's scaled_dot_product_attention, ONNX, Hugging Face's attention_mask).

mask: bools or numbers of the dimensions above; copied.

>>> x = np.eye(3, dtype=np.float32)
>>> attn.scaled_dot_product_attention(x, x, x, mask=attn.Mask.attend([0, 1, 0])).output[0]
array([0., 1., 0.], dtype=float32))")
      .def_static("block", &make_mask<MaskKind::block>, nb::arg("mask"),
                  R"(Creates a mask that blocks keys whose number is not 0 (torch's nn.MultiheadAttention).

mask: bools or numbers of the dimensions above; copied.

>>> x = np.eye(3, dtype=np.float32)
>>> attn.scaled_dot_product_attention(x, x, x, mask=attn.Mask.block([1, 0, 1])).output[0]
array([0., 1., 0.], dtype=float32))")
      .def_static("additive", &make_mask<MaskKind::additive>, nb::arg("mask"),
                  R"(Creates a mask of numbers that are added to the scaled scores; -infinity blocks a key.

mask: numbers of the dimensions above. Float32 memory is read in place if its rows have no gaps; other numbers are copied.

>>> x = np.zeros((3, 1), np.float32)
>>> attn.scaled_dot_product_attention(x, x, x, mask=attn.Mask.additive(attn.alibi_bias(1, 3)), need_weights=True).weights[0].round(3)
array([0.335, 0.333, 0.332], dtype=float32))")
      .def_prop_ro("_kind", [](const GivenMask& self) { return std::string(kMaskKindNames[static_cast<std::size_t>(self.kind)]); })
      .def_prop_ro("_array", [](const GivenMask& self) -> FloatArray { return nb::module_::import_("numpy").attr("asarray")(self.array); });
}

std::optional<Mask> mask_of(const MaybeMask& given, std::string_view op, std::string_view argument) {
  if (given.is_none()) return std::nullopt;
  const GivenMask* mask = nullptr;
  if (!nb::try_cast(given, mask)) {
    const std::string type = name_of_type(given);
    detail::fail(ErrorCode::argument, op, argument, {"a Mask"}, {type}, "Use Mask.attend(m), Mask.block(m) or Mask.additive(m)");
  }
  return mask->mask;
}

Trace trace_of(const TraceNames& given, std::string_view op) {
  if (given.is(Py_True)) return Trace::all();
  if (given.is(Py_False)) return {};
  std::uint32_t bits = 0;
  const auto add = [&](const std::string& name) { bits |= 1U << place_of(name, kTraceNames, op, "trace"); };
  if (std::string name; nb::try_cast(given, name))
    add(name);
  else
    for (const nb::handle each : given) add(nb::try_cast(each, name) ? name : name_of_type(each));
  return Trace::from_bits(bits);
}

std::optional<EncoderTraceOptions> trace_of(const TraceNames& given, const std::optional<std::vector<std::int64_t>>& layers, std::string_view op) {
  const Trace names = trace_of(given, op);
  if (!names.any()) return std::nullopt;
  return EncoderTraceOptions{layers, names};
}

std::vector<LayerPatch> patches_of(const Patches& given, const char* op) {
  if (given.is_none()) return {};
  if (nb::isinstance<LayerPatch>(given)) return {nb::cast<LayerPatch>(given)};
  check_list(given, op, "patch", "a LayerPatch, or a list of LayerPatch");
  std::vector<LayerPatch> patches;
  for (const nb::handle each : given) {
    if (!nb::isinstance<LayerPatch>(each))
      detail::fail(ErrorCode::argument, op, detail::text({"patch[", patches.size(), "]"}), {"a LayerPatch"}, {kind_of(each)});
    patches.push_back(nb::cast<LayerPatch>(each));
  }
  return patches;
}

std::function<void(std::int64_t, std::int64_t)> progress_of(const Done& on_progress) {
  if (on_progress.is_none()) return [signals = Signals()](std::int64_t, std::int64_t) mutable { signals.check(); };
  // Borrowed: std::function is copied without the GIL, and the caller's argument outlives the call.
  return [f = nb::handle(on_progress), signals = Signals()](std::int64_t done, std::int64_t total) mutable {
    {
      const Locked locked;
      f(done, total);
    }
    signals.check();
  };
}

}  // namespace attn::python
