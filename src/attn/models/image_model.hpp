#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "attn/io/file_path.hpp"
#include "attn/models/image_pooling.hpp"
#include "attn/models/image_view.hpp"
#include "attn/models/task.hpp"
#include "attn/models/text_model.hpp"

namespace attn {

class ImageModel;

/// Options for ImageModel::load().
struct ImageModelOptions {
  std::optional<Weights> weights = std::nullopt;  ///< default: int8 if the checkpoint is int8, else float32
};

/// Options for ImageModel::forward(), with the meaning that they have for TextModel::forward().
struct ImageForwardOptions {
  bool output_attentions = false;                      ///< return the attention weights of every layer
  bool output_hidden_states = false;                   ///< return the input of every layer, and the output
  bool output_logits = true;                           ///< if there is a head
  std::optional<TensorCopy> head_mask = std::nullopt;  ///< (layers,H), factors for the result of each head
  std::vector<LayerPatch> patches = {};
  std::optional<EncoderTraceOptions> trace = std::nullopt;
};

/// Options for ImageModel::embed().
struct ImageEmbedOptions {
  ImagePooling pooling = ImagePooling::cls;
  bool normalize = false;  ///< scale each vector to length 1
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;
};

/// Options for ImageModel::classify().
struct ImageClassifyOptions {
  std::optional<std::int64_t> top_k = std::nullopt;  ///< number of labels for each image; default all
  std::function<void(std::int64_t done, std::int64_t total)> on_progress = nullptr;
};

/// Result of ImageModel::preprocess(). N is the rank of pixel_values, 4.
template <std::size_t N>
struct ImageTensors {
  TensorOf<N> pixel_values;            ///< (B,3,height,width), normalized
  std::int64_t rows = 0, columns = 0;  ///< of patches
  std::vector<ImageCrop> crops;        ///< the part of each image that the patches cover; black beyond the image
};
using ImageInputs = ImageTensors<4>;

namespace detail {

/// config.json or preprocessor_config.json; null if there is none.
const std::vector<std::uint8_t>* find_small_file(const ImageModel& model, const std::string& name);

}  // namespace detail

/// An image model loaded from a Hugging Face checkpoint: ViT, DeiT or DINOv2, also with registers, with or without a head for image-classification
/// (transformers' AutoModel and AutoModelForImageClassification).
/// @code
/// auto model = attn::ImageModel::load("testdata/vision/tiny-vit");  // untrained weights
/// const std::vector<std::uint8_t> pixels(40 * 50 * 3, 128);
/// std::cout << model.classify({{pixels.data(), 40, 50, 3}}, {.top_k = 2}).at(0).size();  // 2
/// @endcode
class ImageModel {
 public:
  /// Loads a folder with config.json and model.safetensors, or the files that model.safetensors.index.json names, and preprocessor_config.json.
  /// Without the last file the model takes only pixel values.
  ///
  /// @param folder   a string or std::filesystem::path
  /// @param options  int8 or float32 weights
  /// @throws FORMAT if a file is damaged, empty, or not a regular file
  /// @throws CONFIG if a configuration contradicts itself
  /// @throws MISMATCH with all missing and mis-shaped tensors
  /// @throws UNSUPPORTED for other models, quantisations and image processors
  /// @throws MEMORY if the model exceeds the memory limit
  ///
  /// @code
  /// auto model = attn::ImageModel::load("testdata/vision/tiny-vit", {.weights = attn::Weights::int8});
  /// std::cout << name_of(model.task()) << ' ' << model.num_layers();  // image-classification 2
  /// @endcode
  static ImageModel load(const FilePath& folder, const ImageModelOptions& options = {});

  /// Writes the model as a folder that load() and transformers read, all files or none. Files of these names are replaced.
  ///
  /// @param folder   a string or std::filesystem::path
  /// @param options  float32, float16 or int8; default the type of the loaded model
  /// @throws OUT_OF_RANGE with the tensor's name if a weight is outside the range of float16
  /// @throws FORMAT with the tensor's name if NaN or infinity would become int8
  /// @throws ARGUMENT if the folder cannot be written; after an error no file has changed
  ///
  /// @code
  /// auto model = attn::ImageModel::load("testdata/vision/tiny-vit");
  /// const auto folder = std::filesystem::temp_directory_path() / "attn-example-image-model";
  /// model.save_pretrained(folder, {.weights = attn::FileWeights::int8});
  /// std::cout << (attn::ImageModel::load(folder).weights() == attn::Weights::int8);  // 1
  /// std::filesystem::remove_all(folder);
  /// @endcode
  void save_pretrained(const FilePath& folder, const SaveOptions& options = {}) const;

  /// Takes over a model, which must not be used afterwards.
  ImageModel(ImageModel&&) noexcept;
  ImageModel& operator=(ImageModel&&) noexcept;
  ~ImageModel();

  /// Resizes, crops and normalizes images as preprocessor_config.json specifies, like transformers' image processors with PIL's filters.
  ///
  /// @param images  at least one; without a resize or crop to fixed sides all of one size
  /// @return pixel_values (B,3,height,width), the grid of patches, and the part of each image that was kept
  /// @throws ARGUMENT if there is no image, or one is a null pointer
  /// @throws SHAPE if an image has no pixels or other channels, or the results would have different sizes
  /// @throws FORMAT for a checkpoint without preprocessor_config.json
  /// @throws UNSUPPORTED unless the model is for images with 3 channels
  /// @throws MEMORY if the call would exceed the memory limit
  ///
  /// @code
  /// auto model = attn::ImageModel::load("testdata/vision/tiny-vit");
  /// const std::vector<std::uint8_t> pixels(40 * 50 * 3, 128);
  /// auto inputs = model.preprocess({{pixels.data(), 40, 50, 3}});
  /// std::cout << to_string(attn::to_shape(inputs.pixel_values.shape())) << ' ' << inputs.rows << 'x' << inputs.columns;  // (1,3,32,32) 4x4
  /// @endcode
  template <std::size_t N = 4>
  ImageTensors<N> preprocess(const std::vector<ImageView>& images) const {
    const Shape shape = check_preprocess(images);
    ImageTensors<N> inputs{detail::empty<N>(shape), 0, 0, crops(images)};
    std::tie(inputs.rows, inputs.columns) = grid(shape);
    preprocess(images, inputs.pixel_values.data());
    return inputs;
  }

  /// Runs the model on normalized images. Other sizes than the checkpoint's get interpolated positions, as in transformers with
  /// interpolate_pos_encoding.
  ///
  /// @param pixel_values  (B,channels,height,width), at least one patch
  /// @param options       head mask, patches, and which intermediates to return
  /// @return last_hidden_state (B,L,E), L = 1 + patches, with a distillation token 2 + patches, with registers more; logits (B,C) if there is a
  /// head; attentions, hidden_states, trace on request
  /// @throws SHAPE if shapes disagree
  /// @throws OUT_OF_RANGE for too many patches, or a layer that does not exist
  /// @throws MEMORY if the call would exceed the memory limit
  ///
  /// @code
  /// auto model = attn::ImageModel::load("testdata/vision/tiny-vit");
  /// const xt::xtensor<float, 4> pixels = xt::zeros<float>({1, 3, 32, 32});
  /// auto output = model.forward(pixels, {.output_attentions = true});
  /// std::cout << to_string(attn::to_shape(output.attentions->at(0).shape()));  // (1,4,17,17)
  /// @endcode
  template <TensorLike X>
  auto forward(const X& pixel_values, const ImageForwardOptions& options = {}) const {
    const detail::Input view(pixel_values, "forward", "pixel_values");
    return forward < kRankOf<X> == kAnyRank ? 2 : kRankOf<X> - 2 > (static_cast<const TensorView&>(view), options);
  }
  /// Runs the model on a view of pixel values.
  /// @code
  /// auto model = attn::ImageModel::load("testdata/vision/tiny-vit");
  /// const std::vector<float> pixels(3 * 32 * 32);
  /// auto output = model.forward(attn::TensorView(pixels.data(), {1, 3, 32, 32}));
  /// std::cout << to_string(attn::to_shape(output.logits->shape()));  // (1,5)
  /// @endcode
  template <std::size_t N = 2>
  TextModelTensors<N> forward(const TensorView& pixel_values, const ImageForwardOptions& options = {}) const {
    return detail::output_of<N>(forward_of(pixel_values, options));
  }

  /// Returns one vector per image.
  ///
  /// @param images   of any sizes, preprocessed one by one
  /// @param options  pooling, normalize
  /// @return (N,E), for no image (0,E)
  /// @throws UNSUPPORTED for the pooler of a checkpoint without one, or unless the model is for images with 3 channels
  /// @throws ARGUMENT, SHAPE, FORMAT, MEMORY as preprocess(); images may become different sizes
  /// @throws OUT_OF_RANGE for too many patches
  ///
  /// @code
  /// auto model = attn::ImageModel::load("testdata/vision/tiny-vit");
  /// const std::vector<std::uint8_t> pixels(40 * 50 * 3, 128);
  /// std::cout << model.embed({{pixels.data(), 40, 50, 3}}).shape(1);  // 32
  /// @endcode
  template <std::size_t N = 2>
  TensorOf<N> embed(const std::vector<ImageView>& images, const ImageEmbedOptions& options = {}) const {
    auto all = detail::empty<N>(check_embed(images, options));
    embed(images, options, all.data());
    return all;
  }
  /// Scores the labels of each image, like transformers' ImageClassificationPipeline.
  ///
  /// @param images   of any sizes
  /// @param options  top_k
  /// @return per image the labels with their scores, in descending order: the softmax of the logits, or the sigmoid of each if the checkpoint is
  /// for several labels at once
  /// @throws UNSUPPORTED for a checkpoint without a head, or unless the model is for images with 3 channels
  /// @throws CONFIG if top_k is below 1
  /// @throws ARGUMENT, SHAPE, FORMAT, MEMORY as preprocess(); images may become different sizes
  /// @throws OUT_OF_RANGE for too many patches
  ///
  /// @code
  /// auto model = attn::ImageModel::load("testdata/vision/tiny-vit");
  /// const std::vector<std::uint8_t> pixels(40 * 50 * 3, 128);
  /// const auto scores = model.classify({{pixels.data(), 40, 50, 3}}).at(0);
  /// std::cout << (scores.at(0).score >= scores.at(1).score);  // 1
  /// @endcode
  std::vector<std::vector<LabelScore>> classify(const std::vector<ImageView>& images, const ImageClassifyOptions& options = {}) const;

  /// Returns the shapes of the parameters, by the checkpoint's names.
  /// @code
  /// auto model = attn::ImageModel::load("testdata/vision/tiny-vit");
  /// std::cout << to_string(model.parameter_shapes().at("vit.embeddings.patch_embeddings.projection.weight"));  // (32,3,8,8)
  /// @endcode
  std::map<std::string, Shape> parameter_shapes() const;
  /// Returns copies of the parameters, by the checkpoint's names.
  /// @code
  /// auto model = attn::ImageModel::load("testdata/vision/tiny-vit");
  /// std::cout << (model.state_dict().size() == model.parameter_shapes().size());  // 1
  /// @endcode
  template <class Of = ImageModel>
  typename StateDictType<Of>::type state_dict() const {
    typename StateDictType<Of>::type state;
    StateTarget target;
    for (const auto& [name, shape] : parameter_shapes())
      target.emplace(name, state.emplace(name, detail::empty<kAnyBeside<sizeof(Of)>>(shape)).first->second.data());
    save_state(target);
    return state;
  }
  /// Replaces parameters, by the checkpoint's names. With `strict` the names must be those of state_dict(). Throws MISMATCH with all missing,
  /// unexpected and mis-shaped names; nothing has changed then.
  /// @code
  /// auto model = attn::ImageModel::load("testdata/vision/tiny-vit");
  /// model.load_state_dict(model.state_dict());
  /// std::cout << model.num_layers();  // 2
  /// @endcode
  template <class Of = ImageModel, class State = typename StateDictType<Of>::type>
  void load_state_dict(const State& state, bool strict = true) {
    load_state(detail::StateInput(state, "load_state_dict").views, strict);
  }
  /// Copies parameters to the caller's memory, by their names.
  void save_state(const StateTarget& target) const;
  /// Does the same as load_state_dict(), with views.
  void load_state(const StateView& state, bool strict = true);

  /// embedding or image-classification.
  Task task() const;
  /// Labels of the head, by index; empty without a head.
  const std::vector<std::string>& labels() const;
  /// Parts of the files that the model does not use.
  const std::vector<std::string>& notes() const;
  std::int64_t num_layers() const;
  std::int64_t num_heads() const;
  Weights weights() const;

 private:
  friend const std::vector<std::uint8_t>* detail::find_small_file(const ImageModel& model, const std::string& name);
  struct Parts;
  explicit ImageModel(std::unique_ptr<Parts> parts);

  /// Returns (B,3,height,width).
  Shape check_preprocess(const std::vector<ImageView>& images) const;
  void preprocess(const std::vector<ImageView>& images, float* pixel_values) const;
  std::vector<ImageCrop> crops(const std::vector<ImageView>& images) const;
  /// Rows and columns of patches in pixel values of this shape.
  std::pair<std::int64_t, std::int64_t> grid(const Shape& shape) const;
  detail::TextForward forward_of(const TensorView& pixel_values, const ImageForwardOptions& options) const;
  Shape check_embed(const std::vector<ImageView>& images, const ImageEmbedOptions& options) const;
  void embed(const std::vector<ImageView>& images, const ImageEmbedOptions& options, float* y) const;
  /// Calls run(pixel values (1,3,height,width), i) for each image.
  template <class Run>
  void each(std::string_view op, const std::vector<ImageView>& images, const std::function<void(std::int64_t, std::int64_t)>& on_progress,
            Run run) const;

  std::unique_ptr<Parts> parts_;
};

}  // namespace attn
