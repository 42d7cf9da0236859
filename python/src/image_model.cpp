#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "encodings.hpp"
#include "errors.hpp"
#include "layers.hpp"
#include "options.hpp"
#include "running.hpp"
#include "texts.hpp"

namespace attn::python {
namespace {

using Model = Shared<ImageModel>;
using Images = Typed<"typing.Any">;
using Pixels = Typed<"attn.ImageInputs | numpy.typing.ArrayLike">;
using Bytes = nb::ndarray<const std::uint8_t, nb::c_contig, nb::device::cpu>;

constexpr const char* kExpected = "an image of PIL, an array of uint8 (height,width) or (height,width,channels), or a list of them";

/// One image or several: Pillow's, or arrays.
class GivenImages {
 public:
  GivenImages(const Images& given, const char* op) : op_(op) {
    const bool is_list = !is_pillow(given) && (PyList_Check(given.ptr()) || PyTuple_Check(given.ptr()) || has_rank_4(given));
    if (!is_list) add(given, "images");
    for (std::size_t i = 0; is_list && i < nb::len(given); ++i) {
      check_signals(i);
      add(given[i], detail::text({"images[", i, "]"}));
    }
  }
  GivenImages(const GivenImages&) = delete;
  GivenImages& operator=(const GivenImages&) = delete;

  const std::vector<ImageView>& views() const { return views_; }

 private:
  static bool is_pillow(nb::handle given) {
    return nb::hasattr(given, "getbands") && nb::hasattr(given, "convert") && nb::hasattr(given, "__array_interface__");
  }

  static std::string written(const nb::object& value) { return nb::cast<std::string>(nb::str(value)); }

  static bool has_rank_4(nb::handle given) {
    const nb::object rank = nb::getattr(given, "ndim", nb::none());
    return nb::isinstance<nb::int_>(rank) && nb::cast<int>(rank) == 4;
  }

  void add(nb::handle given, const std::string& name) {
    const nb::module_ numpy = nb::module_::import_("numpy");
    nb::object array;
    if (is_pillow(given)) {
      // convert() would cut them to 8 bits.
      const auto mode = nb::cast<std::string>(nb::str(nb::object(given.attr("mode"))));
      if (mode.starts_with('I') || mode == "F")
        fail_dtype(op_, name.c_str(), "an image with 8 bits per channel", "of mode " + mode, "Scale its numbers to uint8 first");
      array = numpy.attr("asarray")(given.attr("convert")("RGB"));
    } else {
      if (!nb::hasattr(given, "dtype")) detail::fail(ErrorCode::argument, op_, name, {kExpected}, {kind_of(given)});
      array = numpy.attr("ascontiguousarray")(as_array(given, op_, name.c_str()));
      const std::string dtype = written(array.attr("dtype"));
      const std::string_view help =
          nb::cast<std::string>(nb::object(array.attr("dtype").attr("kind"))) == "f" ? "If 1 is white, write (255 * x).astype(numpy.uint8)" : "";
      if (dtype != "uint8") fail_dtype(op_, name.c_str(), "uint8 from 0 to 255", dtype, help);
    }
    const Bytes& bytes = arrays_.emplace_back(nb::cast<Bytes>(array));
    if (bytes.ndim() != 2 && bytes.ndim() != 3)
      detail::fail(ErrorCode::shape, op_, name, {"(height,width) or (height,width,channels)"}, {written(array.attr("shape"))});
    const auto side = [&](std::size_t axis) { return static_cast<std::int64_t>(bytes.shape(axis)); };
    views_.push_back({bytes.data(), side(0), side(1), bytes.ndim() == 3 ? side(2) : 1});
  }

  const char* op_;
  std::vector<Bytes> arrays_;
  std::vector<ImageView> views_;
};

Typed<"attn.ImageInputs"> preprocess(const Model& self, const Images& given) {
  constexpr const char* kOp = "preprocess";
  const GivenImages images(given, kOp);
  const auto inputs = self.read(kOp, [&](const ImageModel& model) { return model.preprocess(images.views()); });
  nb::list crops;
  for (const auto& [left, top, width, height] : inputs.crops) crops.append(make_result("ImageCrop", left, top, width, height));
  return make_result("ImageInputs", to_python(inputs.pixel_values), nb::make_tuple(inputs.rows, inputs.columns), crops);
}

Typed<"attn.TextModelOutput"> forward(const Model& self, const Pixels& pixel_values, bool output_attentions, bool output_hidden_states,
                                      const MaybeArrayLike& head_mask, const Patches& patch, const TraceNames& trace,
                                      const std::optional<std::vector<std::int64_t>>& trace_layers, bool output_logits) {
  constexpr const char* kOp = "ImageModel";
  const nb::object given = nb::getattr(pixel_values, "pixel_values", pixel_values);
  const Floats pixels(given, kOp, "pixel_values");
  ImageForwardOptions options{.output_attentions = output_attentions,
                              .output_hidden_states = output_hidden_states,
                              .output_logits = output_logits,
                              .patches = patches_of(patch, kOp)};
  std::optional<std::vector<std::int64_t>> layers = trace_layers;
  count_from_start(self, options.patches, layers);
  options.trace = trace_of(trace, layers, kOp);
  if (!head_mask.is_none()) options.head_mask = TensorCopy(Floats(head_mask, kOp, "head_mask"));
  const auto output = self.read(kOp, [&](const ImageModel& model) { return model.forward(static_cast<const TensorView&>(pixels), options); });
  return make_result("TextModelOutput", to_python(output.last_hidden_state), to_python(output.logits), to_python(output.attentions),
                     to_python(output.hidden_states), to_python(output.trace));
}

FloatArray embed(const Model& self, const Images& given, const Word<detail::kImagePoolingNames>& pooling, bool normalize, const Done& on_progress) {
  constexpr const char* kOp = "embed";
  const GivenImages images(given, kOp);
  const ImageEmbedOptions options{
      .pooling = word_of<ImagePooling>(pooling, kOp, "pooling"), .normalize = normalize, .on_progress = progress_of(on_progress)};
  return to_python(self.read(kOp, [&](const ImageModel& model) { return model.embed(images.views(), options); }));
}

Typed<"list[list[attn.LabelScore]]"> classify(const Model& self, const Images& given, std::optional<std::int64_t> top_k, const Done& on_progress) {
  constexpr const char* kOp = "classify";
  const GivenImages images(given, kOp);
  const ImageClassifyOptions options{.top_k = top_k, .on_progress = progress_of(on_progress)};
  nb::list all;
  for (const auto& of_image : self.read(kOp, [&](const ImageModel& model) { return model.classify(images.views(), options); })) {
    nb::list list;
    for (const LabelScore& each : of_image) list.append(make_result("LabelScore", each.label, each.score));
    all.append(list);
  }
  return all;
}

}  // namespace

void define_image_model(nb::module_& module) {
  nb::class_<Model> model(module, "ImageModel", nb::type_slots(calling_init()),
                          R"(Runs an image model from a Hugging Face folder: ViT, DeiT or DINOv2, with or without a head for image-classification
(transformers' AutoModel, AutoModelForImageClassification).

Images are those of Pillow, which are converted to RGB, or arrays of uint8: (height,width) is grey, (height,width,channels) has 1, 3 (RGB) or 4
channels (RGBA, where A has no effect).

>>> model = attn.ImageModel.load("testdata/vision/tiny-vit")  # untrained weights
>>> model.classify(np.full((40, 50, 3), 128, np.uint8), top_k=1)[0][0].label in model.labels
True)");
  model.def_static(
      "load",
      [](const Path& path, const Word<kWeightsNames>& weights, Threads threads) {
        const ImageModelOptions options{.weights = maybe_word_of<Weights>(weights, "ImageModel.load", "weights")};
        const std::string folder = model_path_of(path, "ImageModel.load");
        return new Model{.object = run(threads, [&] { return ImageModel::load(folder, options); }), .threads = threads};
      },
      nb::arg("path"), nb::kw_only(), nb::arg("weights") = nb::none(), nb::arg("threads") = nb::none(),
      R"(Loads a folder with config.json, preprocessor_config.json, and model.safetensors or the files that model.safetensors.index.json names.

path, weights, threads: as in TextModel.load().

Returns an ImageModel. Without preprocessor_config.json it takes only pixel values. Raises MissingFileError if the folder or one of its required files
does not exist, FormatError if a file is damaged, ConfigError if a configuration contradicts itself or for other weights, MismatchError with all
missing and mis-shaped tensors, UnsupportedError for other models, OutOfMemoryError if the model does not fit into memory.

>>> model = attn.ImageModel.load("testdata/vision/tiny-vit")
>>> model.task, model.labels, model.weights
('image-classification', ['ant', 'bee', 'cat', 'dog', 'emu'], 'float32'))");
  define_threads(model);
  model.def("preprocess", &preprocess, nb::arg("images").none(),
            R"(Resizes, crops and normalizes images as preprocessor_config.json specifies, like transformers' image processors.

images: an image, a list of images, or an array (B,height,width,channels) of uint8.

Returns an ImageInputs: pixel_values (B,3,height,width), the grid of patches, and the part of each image that was kept. Raises ArgumentError for
another thing than images, DtypeError for an array of other numbers, ShapeError for an image without pixels or images that become different sizes,
FormatError for a checkpoint without preprocessor_config.json, UnsupportedError for a model of images without 3 channels, OutOfMemoryError if the
results do not fit into memory.

>>> model = attn.ImageModel.load("testdata/vision/tiny-vit")
>>> inputs = model.preprocess([np.zeros((40, 50, 3), np.uint8), np.zeros((9, 9), np.uint8)])
>>> inputs.pixel_values.shape, inputs.grid
((2, 3, 32, 32), (4, 4)))");
  for (const char* name : {"forward", "__call__"})
    model.def(name, &forward, nb::arg("pixel_values"), nb::kw_only(), nb::arg("output_attentions") = false, nb::arg("output_hidden_states") = false,
              nb::arg("head_mask") = nb::none(), nb::arg("patch") = nb::none(), nb::arg("trace") = false, nb::arg("trace_layers") = nb::none(),
              nb::arg("output_logits") = true,
              R"(Computes the model on normalized images; calling the model does the same.

Images of another size than the checkpoint's get interpolated positions, as in transformers with interpolate_pos_encoding=True. Tokens are [CLS], for
DeiT a distillation token, registers if there are any, and the patches row by row.

pixel_values: an ImageInputs, or (B,3,height,width).
output_attentions: return the attention weights of every layer.
output_hidden_states: return the input of every layer, and the output.
head_mask: (layers,H), a factor for each head's result before W_O.
patch: a LayerPatch, or a list of them: of different layers, or of different values of one layer. All are replaced in the same forward.
trace: True or names of intermediate results. trace_layers: the traced layers, counted from 0, or from the end if negative; default all.
output_logits: False for no logits.

Returns a TextModelOutput: last_hidden_state (B,L,E), and with a head logits (B,C).

Raises ShapeError if shapes disagree, OutOfRangeError for too many patches or a layer that does not exist, DtypeError for an array that does not hold
real numbers, OutOfMemoryError if the results do not fit into memory.

The weights from [CLS] to each patch, as a map over the image:

>>> model = attn.ImageModel.load("testdata/vision/tiny-vit")
>>> inputs = model.preprocess(np.zeros((40, 50, 3), np.uint8))
>>> attentions = model(inputs, output_attentions=True).attentions
>>> attentions[-1][0, :, 0, 1:].reshape(-1, *inputs.grid).shape
(4, 4, 4))");
  model.def("embed", &embed, nb::arg("images").none(), nb::kw_only(), nb::arg("pooling") = "cls", nb::arg("normalize") = false,
            nb::arg("on_progress") = nb::none(),
            R"(Computes one vector per image.

images: an image, a list of images of any sizes, or an array (B,height,width,channels) of uint8. All are in memory at once:
pass many large ones in several calls.
pooling: 'cls', the first token of the last hidden state; 'mean', the mean of its patches; 'pooler', the pooler's output, which only ViT and DeiT
without a head have.
normalize: scale vectors to length 1.
on_progress: function of (done, total), called after each image; if it raises, the call ends.

Returns (N,E), also (1,E) for one image and (0,E) for an empty list. Raises ConfigError for another pooling, UnsupportedError for the pooler of a
checkpoint without one, OutOfRangeError for too many patches, and the errors of preprocess() for each image.

>>> model = attn.ImageModel.load("testdata/vision/tiny-vit")
>>> model.embed(np.zeros((40, 50, 3), np.uint8), normalize=True).shape
(1, 32))");
  model.def("classify", &classify, nb::arg("images").none(), nb::kw_only(), nb::arg("top_k") = nb::none(), nb::arg("on_progress") = nb::none(),
            R"(Scores the labels of each image, like transformers' ImageClassificationPipeline.

images, on_progress: as in embed().
top_k: number of labels per image; default all.

Returns a list of LabelScore per image, by descending score; one image also gives a list of one. Scores are the softmax of the logits, or the sigmoid
of each if the checkpoint is for several labels at once. Raises UnsupportedError for a checkpoint without a head, ConfigError for top_k below 1,
OutOfRangeError for too many patches, and the errors of preprocess() for each image.

>>> model = attn.ImageModel.load("testdata/vision/tiny-vit")
>>> len(model.classify([np.zeros((40, 50, 3), np.uint8)], top_k=2)[0])
2)");
  define_save_pretrained(model, R"(Writes the model as a folder that transformers reads, all files or none.

path: the folder.
weights: 'float32', 'float16' or 'int8'; default the model's.

Files of these names are replaced.

Raises OutOfRangeError for a number that float16 cannot represent, FormatError for NaN or infinity with int8, ConfigError for other weights,
UnwritableError if the folder cannot be written.

>>> import tempfile
>>> model = attn.ImageModel.load("testdata/vision/tiny-vit")
>>> with tempfile.TemporaryDirectory() as folder:
...     model.save_pretrained(folder, weights="int8")
...     attn.ImageModel.load(folder).weights
'int8')");
  define_state(model);
  define_facts(model);
  model
      .def_prop_ro(
          "num_layers", [](const Model& self) { return self.read("num_layers", [](const ImageModel& of) { return of.num_layers(); }); },
          "Number of layers.")
      .def_prop_ro(
          "num_heads", [](const Model& self) { return self.read("num_heads", [](const ImageModel& of) { return of.num_heads(); }); },
          "Number of heads of a layer.");
}

}  // namespace attn::python
