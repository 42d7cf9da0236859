#include "attn/models/image_model.hpp"

#include <string_view>

#include "attn/io/files.hpp"
#include "attn/models/encoder_model.hpp"
#include "attn/models/family.hpp"
#include "attn/models/image_processor.hpp"
#include "attn/models/model_folder.hpp"
#include "attn/models/model_loader.hpp"
#include "attn/models/model_writer.hpp"
#include "attn/models/text_model_parts.hpp"

namespace attn {
namespace {

constexpr std::string_view kLoad = "ImageModel::load";
constexpr const char* kProcessor = "preprocessor_config.json";
constexpr std::int64_t kMostSide = 1 << 20;

void check_image(std::string_view op, const ImageView& image, std::size_t index) {
  const auto& [data, height, width, channels] = image;
  const std::string name = detail::text({"images[", index, "]"});
  if (data == nullptr) detail::fail(ErrorCode::argument, op, name, {"pixels"}, {"a null pointer"});
  const bool has_channels = channels == 1 || channels == 3 || channels == 4;
  if (!has_channels || height < 1 || width < 1 || height > kMostSide || width > kMostSide)
    detail::fail(ErrorCode::shape, op, name, {"pixels (height,width,channels) with 1, 3 or 4 channels and sides from 1 to ", kMostSide},
                 {Shape{height, width, channels}});
}

}  // namespace

struct ImageModel::Parts {
  std::unique_ptr<EncoderModel> model;
  detail::SmallFiles files;  ///< written again by save_pretrained()
  std::optional<detail::ImageProcessor> processor;

  const detail::ImageProcessor& needed(std::string_view op) const {
    if (const std::int64_t channels = model->config().image.channels; channels != 3)
      detail::fail(ErrorCode::unsupported, op, "the checkpoint", {"a model of images with 3 channels"}, {channels, " channels"});
    if (!processor) detail::fail(ErrorCode::format, op, "the checkpoint", {"a folder with preprocessor_config.json"}, {"a folder without it"});
    return *processor;
  }
};

ImageModel::ImageModel(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ImageModel::ImageModel(ImageModel&&) noexcept = default;
ImageModel& ImageModel::operator=(ImageModel&&) noexcept = default;
ImageModel::~ImageModel() = default;

ImageModel ImageModel::load(const FilePath& path, const ImageModelOptions& options) {
  detail::SmallFilesReader read(kLoad, path);
  detail::SmallFile config = read("config.json", true), processor = read(kProcessor);
  detail::ModelLoader loader({.config = *config}, options.weights ? std::optional(*options.weights == Weights::int8) : std::nullopt);
  if (!loader.config().image)
    detail::fail(ErrorCode::unsupported, kLoad, "config.json", {"an image model"}, {"a text model"}, "TextModel has text models");
  auto parts = std::make_unique<Parts>();
  if (processor && loader.config().image.channels == 3) parts->processor.emplace(*processor, loader.config().family->architecture);
  detail::check_weights(kLoad, read.folder);
  detail::stream_weights(kLoad, read.folder, loader);
  parts->model = loader.finish();
  parts->files.emplace_back("config.json", std::move(*config));
  if (processor) parts->files.emplace_back(kProcessor, std::move(*processor));
  return ImageModel(std::move(parts));
}

void ImageModel::save_pretrained(const FilePath& path, const SaveOptions& options) const {
  detail::StagedFiles staged;
  detail::save_model(*parts_->model, parts_->files, "", path, options, staged);
}

Shape ImageModel::check_preprocess(const std::vector<ImageView>& images) const {
  constexpr std::string_view kOp = "preprocess";
  const detail::ImageProcessor& processor = parts_->needed(kOp);
  if (images.empty()) detail::fail(ErrorCode::argument, kOp, "images", {"at least one image"}, {"empty"});
  Shape first;
  for (std::size_t i = 0; i < images.size(); ++i) {
    check_image(kOp, images[i], i);
    const Shape shape = processor.check(kOp, images[i], std::ssize(images));
    if (i == 0) first = shape;
    if (shape != first)
      detail::fail(ErrorCode::shape, kOp, detail::text({"images[", i, "]"}), {"pixel values ", first, ", as images[0]"}, {shape},
                   "Preprocess images of other sizes separately");
  }
  return {std::ssize(images), first[0], first[1], first[2]};
}

void ImageModel::preprocess(const std::vector<ImageView>& images, float* pixel_values) const {
  const detail::ImageProcessor& processor = *parts_->processor;
  for (const ImageView& image : images) {
    const Shape shape = processor.check("preprocess", image);
    processor.run(image, pixel_values);
    pixel_values += shape[0] * shape[1] * shape[2];
  }
}

std::vector<ImageCrop> ImageModel::crops(const std::vector<ImageView>& images) const {
  const Shape shape = check_preprocess(images);
  const auto [rows, columns] = grid(shape);
  const detail::ImageConfig& config = parts_->model->config().image;
  // Patches leave out a rest of the pixels.
  const double down = static_cast<double>(rows * config.patch_height) / static_cast<double>(shape[2]);
  const double across = static_cast<double>(columns * config.patch_width) / static_cast<double>(shape[3]);
  std::vector<ImageCrop> all;
  for (const ImageView& image : images) {
    const ImageCrop crop = parts_->processor->crop(image);
    all.push_back({crop.left, crop.top, crop.width * across, crop.height * down});
  }
  return all;
}

std::pair<std::int64_t, std::int64_t> ImageModel::grid(const Shape& shape) const {
  const detail::ImageConfig& image = parts_->model->config().image;
  return {shape[2] / image.patch_height, shape[3] / image.patch_width};
}

detail::TextForward ImageModel::forward_of(const TensorView& pixel_values, const ImageForwardOptions& options) const {
  const TextForwardOptions given{.output_attentions = options.output_attentions,
                                 .output_hidden_states = options.output_hidden_states,
                                 .output_logits = options.output_logits,
                                 .head_mask = options.head_mask,
                                 .patches = options.patches,
                                 .trace = options.trace};
  return {"forward", *parts_->model, pixel_values, given};
}

template <class Run>
void ImageModel::each(std::string_view op, const std::vector<ImageView>& images, const std::function<void(std::int64_t, std::int64_t)>& on_progress,
                      Run run) const {
  const detail::ImageProcessor& processor = parts_->needed(op);
  for (std::size_t i = 0; i < images.size(); ++i) check_image(op, images[i], i);
  std::vector<float> values;
  for (std::size_t i = 0; i < images.size(); ++i) {
    const Shape shape = processor.check(op, images[i]);
    values.resize(static_cast<std::size_t>(shape[0] * shape[1] * shape[2]));
    processor.run(images[i], values.data());
    const TensorView pixels(values.data(), {1, shape[0], shape[1], shape[2]});
    run(parts_->model->image_inputs(op, pixels), i);
    if (on_progress) on_progress(static_cast<std::int64_t>(i + 1), std::ssize(images));
  }
}

Shape ImageModel::check_embed(const std::vector<ImageView>& images, const ImageEmbedOptions& options) const {
  constexpr std::string_view kOp = "embed";
  parts_->needed(kOp);
  const detail::ImageConfig& image = parts_->model->config().image;
  const std::vector<float> none;
  const TensorView pixels(none.data(), {0, image.channels, image.height, image.width});
  const std::int64_t width = parts_->model->check_image_embed(kOp, parts_->model->image_inputs(kOp, pixels), options.pooling)[1];
  const Shape shape{std::ssize(images), width};
  detail::check_memory(kOp, [&] { detail::counted(shape, "the result"); });
  return shape;
}

void ImageModel::embed(const std::vector<ImageView>& images, const ImageEmbedOptions& options, float* y) const {
  each("embed", images, options.on_progress, [&](const detail::ModelInputs& inputs, std::size_t i) {
    const std::int64_t width = parts_->model->check_image_embed("embed", inputs, options.pooling)[1];
    parts_->model->embed_images(inputs, options.pooling, options.normalize, y + static_cast<std::int64_t>(i) * width);
  });
}

std::vector<std::vector<LabelScore>> ImageModel::classify(const std::vector<ImageView>& images, const ImageClassifyOptions& options) const {
  constexpr std::string_view kOp = "classify";
  detail::check_top_k(kOp, options.top_k);
  parts_->model->check_task(kOp, Task::image_classification);
  std::vector<std::vector<LabelScore>> all(images.size());
  each(kOp, images, options.on_progress, [&](const detail::ModelInputs& inputs, std::size_t i) {
    std::vector<float> scores(static_cast<std::size_t>(parts_->model->check_classify(kOp, inputs)[1]));
    parts_->model->classify(inputs, scores.data());
    for (std::size_t c = 0; c < scores.size(); ++c) all[i].push_back({labels()[c], scores[c], static_cast<std::int64_t>(c)});
    detail::keep_best(all[i], options.top_k);
  });
  return all;
}

const std::vector<std::uint8_t>* detail::find_small_file(const ImageModel& model, const std::string& name) {
  for (const auto& [known, bytes] : model.parts_->files)
    if (known == name) return &bytes;
  return nullptr;
}

std::map<std::string, Shape> ImageModel::parameter_shapes() const { return parts_->model->parameter_shapes(); }
void ImageModel::save_state(const StateTarget& target) const { parts_->model->save_state(target); }
void ImageModel::load_state(const StateView& state, bool strict) { parts_->model->load_state(state, strict); }

Task ImageModel::task() const { return parts_->model->config().task; }
const std::vector<std::string>& ImageModel::labels() const { return parts_->model->config().labels; }
const std::vector<std::string>& ImageModel::notes() const { return parts_->model->config().notes; }
std::int64_t ImageModel::num_layers() const { return parts_->model->config().num_hidden_layers; }
std::int64_t ImageModel::num_heads() const { return parts_->model->config().num_attention_heads; }
Weights ImageModel::weights() const { return parts_->model->is_quantized() ? Weights::int8 : Weights::float32; }

}  // namespace attn
