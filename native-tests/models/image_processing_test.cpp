#include <unistd.h>
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#include <cfenv>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "attn/context.hpp"
#include "attn/models/image_model.hpp"
#include "attn/ops/softmax.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"
#include "support/refused.hpp"

using namespace attn;
using namespace attn::test;

namespace models_image_processing_test {

using nlohmann::json;

/// A copy of a folder in which files can be replaced.
class ModelFolder {
 public:
  explicit ModelFolder(const std::string& name) : path_(std::filesystem::temp_directory_path() / ("attn-" + name + "-" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::copy(testdata("vision/" + name), path_);
  }
  ~ModelFolder() { std::filesystem::remove_all(path_); }

  ImageModel with(const std::string& preprocessor_config) const {
    std::ofstream(path_ / "preprocessor_config.json") << preprocessor_config;
    return ImageModel::load(path_);
  }
  ImageModel without() const {
    std::filesystem::remove(path_ / "preprocessor_config.json");
    return ImageModel::load(path_);
  }

 private:
  std::filesystem::path path_;
};

ImageModel tiny(const std::string& name = "tiny-vit") { return ImageModel::load(testdata("vision/" + name).string()); }

struct Picture {
  std::vector<std::uint8_t> pixels;
  std::int64_t height, width, channels;

  Picture(std::int64_t h, std::int64_t w, int seed = 1, std::int64_t c = 4)
      : pixels(static_cast<std::size_t>(h * w * c)), height(h), width(w), channels(c) {
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * 7 * static_cast<std::size_t>(seed) + (i >> 5) * 13);
  }
  explicit Picture(const Array& image) : height(image.dims[0]), width(image.dims[1]), channels(image.dims[2]) {
    for (const float value : image.data) pixels.push_back(static_cast<std::uint8_t>(value));
  }
  ImageView view() const { return {pixels.data(), height, width, channels}; }
};

template <class Tensor>
std::vector<float> numbers(const Tensor& tensor) {
  return {tensor.begin(), tensor.end()};
}

}  // namespace models_image_processing_test
using namespace models_image_processing_test;

TEST_CASE("images are preprocessed as by transformers and PIL", "[models]") {
  const GoldenFile file = read_golden(testdata("vision/preprocessing.safetensors"));
  const ModelFolder folder("tiny-vit");
  const auto entries = cases_of(file);
  REQUIRE(entries.size() >= 10);
  for (const auto& entry : entries) {
    const GoldenCase golden(file, entry);
    CAPTURE(golden.name());
    const json& processor = entry.at("processor");
    const ImageModel model = folder.with(processor.dump());
    const Picture image(golden.tensor("image"));
    const Array expected = golden.tensor("expected.pixelValues");
    const auto inputs = model.preprocess({image.view()});
    REQUIRE(to_shape(inputs.pixel_values.shape()) == expected.dims);
    // One level of 255, after normalization.
    double level = processor.value("do_rescale", true) ? processor.value("rescale_factor", 1.0 / 255) : 1;
    if (processor.value("do_normalize", true)) {
      const std::vector<double> std = processor.at("image_std");
      level /= *std::min_element(std.begin(), std.end());
    }
    double most = 0;
    for (std::size_t i = 0; i < expected.data.size(); ++i)
      most = std::max(most, std::abs(static_cast<double>(inputs.pixel_values.data()[i]) - static_cast<double>(expected.data[i])));
    CHECK(most <= 1.001 * level);
    if (expected.dims[2] < 8 || expected.dims[3] < 8) continue;

    const auto output = model.forward(inputs.pixel_values);
    const auto E = output.last_hidden_state.shape(2), L = output.last_hidden_state.shape(1);
    CHECK(L == static_cast<std::size_t>(1 + inputs.rows * inputs.columns));
    const auto cls = model.embed({image.view()});
    const auto mean = model.embed({image.view()}, {.pooling = ImagePooling::mean});
    for (std::size_t e = 0; e < E; ++e) {
      CHECK(cls(0, e) == output.last_hidden_state(0, 0, e));
      double sum = 0;
      for (std::size_t i = 1; i < L; ++i) sum += static_cast<double>(output.last_hidden_state(0, i, e));
      CHECK(std::abs(static_cast<double>(mean(0, e)) - sum / static_cast<double>(L - 1)) < 1e-5);
    }
    const xt::xtensor<float, 2> logits = *output.logits;
    const auto probabilities = softmax(logits);
    const auto scores = model.classify({image.view()}).at(0);
    REQUIRE(scores.size() == 5);
    for (const LabelScore& each : scores) CHECK(std::abs(each.score - probabilities(0, static_cast<std::size_t>(each.index))) < 1e-6F);
    CHECK(std::is_sorted(scores.begin(), scores.end(), [](const LabelScore& a, const LabelScore& b) { return a.score > b.score; }));
  }
}

TEST_CASE("an image model has the facts of its checkpoint", "[models]") {
  ImageModel model = tiny();
  CHECK(model.task() == Task::image_classification);
  CHECK(model.labels() == std::vector<std::string>{"ant", "bee", "cat", "dog", "emu"});
  CHECK(model.weights() == Weights::float32);
  CHECK(model.num_layers() == 2);
  CHECK(model.num_heads() == 4);
  const auto state = model.state_dict();
  CHECK(to_shape(state.at("vit.embeddings.position_embeddings").shape()) == Shape{1, 17, 32});
  const Picture image(40, 50);
  const auto before = numbers(model.embed({image.view()}));
  model.load_state_dict(state);
  CHECK(numbers(model.embed({image.view()})) == before);
  const ImageModel int8 = ImageModel::load(testdata("vision/tiny-vit").string(), {.weights = Weights::int8});
  CHECK(int8.weights() == Weights::int8);
}

TEST_CASE("the other images of a call change no bit", "[models]") {
  const ImageModel model = tiny();
  const Picture one(40, 50), other(31, 20, 3, 3);
  const auto together = model.preprocess({one.view(), other.view()});
  CHECK(together.rows == 4);
  CHECK(together.columns == 4);
  std::vector<std::int64_t> reports;
  const auto vectors = model.embed({one.view(), other.view()}, {.on_progress = [&](std::int64_t done, std::int64_t total) {
                                     reports.push_back(done);
                                     reports.push_back(total);
                                   }});
  CHECK(reports == std::vector<std::int64_t>{1, 2, 2, 2});
  const std::vector<float> all = numbers(together.pixel_values), every = numbers(vectors);
  std::size_t pixel = 0, number = 0;
  for (const Picture* each : {&one, &other}) {
    for (const float value : numbers(model.preprocess({each->view()}).pixel_values)) CHECK(value == all[pixel++]);
    for (const float value : numbers(model.embed({each->view()}))) CHECK(value == every[number++]);
  }
  double square = 0;
  for (const float value : numbers(model.embed({one.view()}, {.normalize = true}))) square += static_cast<double>(value) * static_cast<double>(value);
  CHECK(std::abs(square - 1) < 1e-5);
}

TEST_CASE("heads of an image model can be removed, layers patched and traced", "[models]") {
  const ImageModel model = tiny();
  const Picture one(40, 50), other(9, 9, 5);
  const auto inputs = model.preprocess({one.view()});
  ImageForwardOptions options{.output_attentions = true, .output_hidden_states = true};
  options.trace = EncoderTraceOptions{.layers = std::vector<std::int64_t>{1}, .names = Trace{TraceName::merged}};
  const auto plain = model.forward(inputs.pixel_values, options);
  CHECK(plain.attentions->size() == 2);
  CHECK(to_shape(plain.trace->at(1).at(TraceName::merged).shape()) == Shape{1, 17, 32});
  ImageForwardOptions off{.output_logits = false};
  off.head_mask = TensorCopy(xt::xtensor<float, 2>(xt::zeros<float>({2, 4})));
  const auto none = model.forward(inputs.pixel_values, off);
  CHECK_FALSE(none.logits.has_value());
  CHECK(numbers(none.last_hidden_state) != numbers(plain.last_hidden_state));
  ImageForwardOptions patched;
  patched.patches = {{.layer = 0, .hidden_state = TensorCopy(plain.hidden_states->at(0))}};
  CHECK(numbers(*model.forward(model.preprocess({other.view()}).pixel_values, patched).logits) == numbers(*plain.logits));
}

TEST_CASE("images without pixels and models without a part are refused", "[models]") {
  const ImageModel model = tiny();
  const Picture good(8, 8);
  const std::uint8_t one[4] = {};
  refused(ErrorCode::argument, "images[0] is a null pointer", [&] { model.preprocess({ImageView{nullptr, 1, 1, 3}}); });
  for (const ImageView& bad :
       {ImageView{one, 0, 1, 3}, ImageView{one, 1, -1, 3}, ImageView{one, 1, 1, 2}, ImageView{one, 1, std::int64_t{1} << 40, 3}}) {
    refused(ErrorCode::shape, "preprocess: images[1]", [&] { model.preprocess({good.view(), bad}); });
    refused(ErrorCode::shape, "embed: images[0]", [&] { model.embed({bad}); });
    refused(ErrorCode::shape, "classify: images[0]", [&] { model.classify({bad}); });
  }
  refused(ErrorCode::argument, "at least one image", [&] { model.preprocess({}); });
  CHECK(model.embed({}).shape(0) == 0);
  CHECK(model.classify({}).empty());
  refused(ErrorCode::config, "top_k", [&] { model.classify({good.view()}, {.top_k = 0}); });
  refused(ErrorCode::unsupported, "cls or mean", [&] { model.embed({good.view()}, {.pooling = ImagePooling::pooler}); });
  refused(ErrorCode::shape, "pixel_values", [&] { model.forward(xt::xtensor<float, 4>(xt::zeros<float>({1, 1, 32, 32}))); });
  refused(ErrorCode::shape, "pixel_values", [&] { model.forward(xt::xtensor<float, 3>(xt::zeros<float>({3, 32, 32}))); });
  refused(ErrorCode::unsupported, "TextModel has text models", [] { ImageModel::load(testdata("models/sentiment").string()); });
  refused(ErrorCode::unsupported, "image-classification", [&] { tiny("tiny-vit-model").classify({good.view()}); });
  CHECK(tiny("tiny-vit-model").embed({good.view()}, {.pooling = ImagePooling::pooler}).shape(1) == 24);

  const ModelFolder folder("tiny-vit");
  const ImageModel without = folder.without();
  refused(ErrorCode::format, "preprocessor_config.json", [&] { without.preprocess({good.view()}); });
  CHECK(without.forward(xt::xtensor<float, 4>(xt::zeros<float>({1, 3, 32, 32}))).logits->shape(1) == 5);

  refused(ErrorCode::shape, "as images[0]", [&] {
    const Picture wide(8, 9);
    folder.with(R"({"do_resize": false, "do_center_crop": false})").preprocess({good.view(), wide.view()});
  });
  const std::vector<std::uint8_t> line(1 << 20);
  // The longer side would have 2^34 pixels.
  const ImageModel large = folder.with(R"({"size": {"shortest_edge": 16384}})");
  Context context({.memory_limit = 1 << 28});
  const Context::Scope scope(context);
  refused(ErrorCode::memory, "preprocess", [&] { large.preprocess({{line.data(), 1, std::ssize(line), 1}}); });
  refused(ErrorCode::memory, "embed", [&] { large.embed({{line.data(), 1, std::ssize(line), 1}}); });
}

TEST_CASE("crops are the part of the image that the model sees", "[models]") {
  const ModelFolder folder("tiny-vit");
  const auto crops_of = [&](const std::string& config, const Picture& photo) {
    const ImageCrop crop = folder.with(config).preprocess({photo.view()}).crops.at(0);
    return std::vector<double>{crop.left, crop.top, crop.width, crop.height};
  };
  // Resized to 16 x 32; the crop of 8 x 8 begins in row 4 and column 12.
  const std::string shortest = R"({"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 16}, "crop_size": 8, "do_rescale": false,
                                   "do_normalize": false})";
  CHECK(crops_of(shortest, Picture(20, 40)) == std::vector<double>{15, 5, 10, 10});
  // 3 x 3 patches of 8 pixels.
  CHECK(crops_of(R"({"size": 30})", Picture(20, 40)) == std::vector<double>{0, 0, 32, 16});
  CHECK(crops_of(R"({"do_resize": false, "do_center_crop": true, "crop_size": 8})", Picture(4, 6)) == std::vector<double>{-1, -2, 8, 8});
  const Picture one(4, 6), other(8, 16);
  CHECK(folder.with(shortest).preprocess({one.view(), other.view()}).crops.at(1).left == 6);
  // Only the crop is white. Bicubic weights reach two pixels of 1.25 beyond it.
  Picture photo(20, 40, 0, 1);
  for (std::int64_t row = 5; row < 15; ++row)
    for (std::int64_t column = 15; column < 25; ++column) photo.pixels[static_cast<std::size_t>(40 * row + column)] = 255;
  const auto pixels = folder.with(shortest).preprocess({photo.view()}).pixel_values;
  for (std::size_t row = 0; row < 8; ++row)
    for (std::size_t column = 0; column < 8; ++column) CHECK(pixels(0, 1, row, column) > 200);
}

TEST_CASE("a crop of a long image needs little memory", "[models]") {
  const ModelFolder folder("tiny-vit");
  const ImageModel model = folder.with(R"({"image_processor_type": "BitImageProcessor", "crop_size": 32, "do_normalize": false})");
  std::vector<std::uint8_t> line(1 << 16);
  for (std::size_t i = 0; i < line.size(); ++i) line[i] = static_cast<std::uint8_t>(i >> 8);
  Context context({.memory_limit = 80'000'000});
  const Context::Scope scope(context);
  // Resized whole, it would have 224 x 14 680 064 pixels.
  const auto pixels = model.preprocess({{line.data(), 1, std::ssize(line), 1}}).pixel_values;
  REQUIRE(to_shape(pixels.shape()) == Shape{1, 3, 32, 32});
  for (const float value : numbers(pixels)) CHECK(std::abs(value * 255 - 127.5F) < 0.51F);
  // Two results of 36 MB, and the bytes of one image in both steps.
  const ImageModel large = folder.with(R"({"do_resize": false})");
  const Picture photo(1500, 2000, 1, 3);
  large.preprocess({photo.view()});
  refused(ErrorCode::memory, "preprocess", [&] { large.preprocess({photo.view(), photo.view()}); });
}

TEST_CASE("results of a processor do not depend on the rounding mode", "[models]") {
  const ModelFolder folder("tiny-vit");
  const std::string config = R"({"image_mean": [0.1, 0.2, 0.3], "image_std": 0.7, "size": 31})";
  const Picture photo(57, 43);
  const auto expected = numbers(folder.with(config).preprocess({photo.view()}).pixel_values);
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO}) {
    std::fesetround(mode);
    const auto got = numbers(folder.with(config).preprocess({photo.view()}).pixel_values);
    std::fesetround(FE_TONEAREST);
    CHECK(got == expected);
  }
}

TEST_CASE("hostile preprocessor configurations are refused when a model is loaded", "[models]") {
  const ModelFolder folder("tiny-vit");
  const auto check = [&](const std::string& config, ErrorCode code, const std::string& words) {
    CAPTURE(config);
    refused(code, words, [&] { folder.with(config); });
  };
  check("{", ErrorCode::format, "preprocessor_config.json");
  check("[]", ErrorCode::format, "an object");
  check(R"({"size": {"height": 0, "width": 1}})", ErrorCode::config, "height");
  check(R"({"size": {"height": 3}})", ErrorCode::config, "width");
  check(R"({"size": 1e300})", ErrorCode::config, "size");
  check(R"({"size": [1, 2, 3]})", ErrorCode::config, "size");
  check(R"({"size": [1, "2"]})", ErrorCode::config, "size");
  check(R"({"size": {"shortest_edge": -1}})", ErrorCode::config, "shortest_edge");
  check(R"({"size": {"shortest_edge": 5, "longest_edge": 9}})", ErrorCode::unsupported, "longest_edge");
  check(R"({"crop_size": {"shortest_edge": 5}, "do_center_crop": true})", ErrorCode::config, "height");
  check(R"({"image_std": [0, 0, 0]})", ErrorCode::config, "other than 0");
  check(R"({"image_mean": [1, 2]})", ErrorCode::config, "image_mean");
  check(R"({"image_mean": [1, 2, NaN]})", ErrorCode::config, "image_mean");
  check(R"({"rescale_factor": 0})", ErrorCode::config, "rescale_factor");
  check(R"({"image_processor_type": ""})", ErrorCode::unsupported, "image_processor_type");
  check(R"({"resample": 6})", ErrorCode::unsupported, "2 (bilinear) or 3 (bicubic)");
  check(R"({"resample": 5})", ErrorCode::unsupported, "2 (bilinear) or 3 (bicubic)");
  check(R"({"resample": "bicubic"})", ErrorCode::config, "resample");
  check(R"({"do_resize": "yes"})", ErrorCode::config, "do_resize");
  check(R"({"do_pad": true})", ErrorCode::unsupported, "do_pad");
  folder.with(R"({"do_normalize": false, "image_std": [0, 0, 0], "do_center_crop": false, "crop_size": {"shortest_edge": 5}})");
  check(R"({"image_processor_type": "Other"})", ErrorCode::unsupported, "image_processor_type");
}
