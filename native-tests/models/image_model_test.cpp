#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>

#include "models/edit.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"
#include "support/refused.hpp"

using namespace attn;
using namespace attn::test;

namespace models_image_model_test {

using nlohmann::json;

constexpr const char* kNames[] = {"tiny-vit",        "tiny-vit-model", "tiny-deit",         "tiny-deit-teacher",
                                  "tiny-deit-model", "tiny-dinov2",    "tiny-dinov2-gated", "tiny-dinov2-registers"};

std::unique_ptr<EncoderModel> load_int8(const Checkpoint& checkpoint) {
  detail::ModelLoader loader(checkpoint.files(), true);
  loader.write(checkpoint.weights);
  return loader.finish();
}
Checkpoint folder(const std::string& name) { return read_checkpoint(testdata("vision/" + name)); }

ModelOutput forward(const EncoderModel& model, const Array& pixels, bool everything = true) {
  const TensorView view{pixels.data.data(), pixels.dims};
  return test::forward(model, model.image_inputs("forward", view), everything);
}

Array embed(const EncoderModel& model, const Array& pixels, ImagePooling pooling) {
  const TensorView view{pixels.data.data(), pixels.dims};
  const detail::ModelInputs inputs = model.image_inputs("embed", view);
  Array result(model.check_image_embed("embed", inputs, pooling));
  model.embed_images(inputs, pooling, false, result.data.data());
  return result;
}

}  // namespace models_image_model_test
using namespace models_image_model_test;

TEST_CASE("image models agree with transformers", "[models]") {
  const std::string name = GENERATE(from_range(std::begin(kNames), std::end(kNames)));
  CAPTURE(name);
  const GoldenFile file = read_golden(testdata("vision/" + name + ".safetensors"));
  const std::unique_ptr<EncoderModel> model = load(folder(name));
  std::size_t count = 0;
  for (const auto& entry : cases_of(file)) {
    const GoldenCase golden(file, entry);
    const Array pixels = golden.tensor("pixel_values");
    const ModelOutput output = forward(*model, pixels);
    for (const auto& [what, error] : entry.at("expected").items()) {
      CAPTURE(golden.name(), what);
      ++count;
      Array got = result_of(output, what);
      if (what == "probabilities") {
        got = Array(output.logits.dims);
        const TensorView view{pixels.data.data(), pixels.dims};
        model->classify(model->image_inputs("classify", view), got.data.data());
      }
      if (what == "cls") got = embed(*model, pixels, ImagePooling::cls);
      if (what == "mean") got = embed(*model, pixels, ImagePooling::mean);
      if (what == "pooler") got = embed(*model, pixels, ImagePooling::pooler);
      CHECK(difference(golden, what, got) == "");
    }
  }
  CHECK(count >= 14);
}

TEST_CASE("an image has the same bits in a batch", "[models][threads]") {
  const std::string name = GENERATE("tiny-vit", "tiny-dinov2");
  const GoldenFile file = read_golden(testdata("vision/" + name + ".safetensors"));
  const auto entries = cases_of(file);
  const Array pixels = GoldenCase(file, entries.at(0)).tensor("pixel_values");
  const std::unique_ptr<EncoderModel> model = load(folder(name));
  const ModelOutput together = forward(*model, pixels, false);
  for (std::int64_t i = 0; i < pixels.dims[0]; ++i) {
    Array alone = slice(pixels, i);
    alone.dims = {1, pixels.dims[1], pixels.dims[2], pixels.dims[3]};
    const ModelOutput got = forward(*model, alone, false);
    CHECK_THAT(slice(got.last_hidden_state, 0), HasBitsOf(slice(together.last_hidden_state, i)));
    CHECK_THAT(slice(got.logits, 0), HasBitsOf(slice(together.logits, i)));
  }
}

TEST_CASE("int8 image models are close to float32, and keep the patch embedding", "[models][int8]") {
  const std::string name = GENERATE("tiny-vit", "tiny-deit-teacher", "tiny-dinov2");
  const GoldenFile file = read_golden(testdata("vision/" + name + ".safetensors"));
  const auto entries = cases_of(file);
  const GoldenCase golden(file, entries.at(0));
  const std::unique_ptr<EncoderModel> model = load_int8(folder(name));
  REQUIRE(model->is_quantized());
  const detail::StateTensors tensors = model->tensors();
  for (const auto& [key, tensor] : tensors)
    if (key.ends_with("projection.weight")) CHECK_FALSE(tensor.is_quantized());
  const Array pixels = golden.tensor("pixel_values"), expected = golden.tensor("expected.logits");
  const Array got = forward(*model, pixels, false).logits;
  REQUIRE(got.dims == expected.dims);
  float largest = 0, error = 0;
  for (std::size_t i = 0; i < got.data.size(); ++i) {
    largest = std::max(largest, std::abs(expected.data[i]));
    error = std::max(error, std::abs(got.data[i] - expected.data[i]));
  }
  CHECK(error < 0.05F * largest);
}

TEST_CASE("image models refuse bad inputs", "[models]") {
  const std::unique_ptr<EncoderModel> model = load(folder("tiny-vit"));
  const auto check = [&](const Shape& shape) {
    const std::vector<float> values(1);
    const TensorView view{values.data(), shape};
    model->plan("forward", model->image_inputs("forward", view), {});
  };
  refused(ErrorCode::shape, "forward: pixel_values has shape (3,32,32), expected (B,3,height,width)", [&] { check({3, 32, 32}); });
  refused(ErrorCode::shape, "pixel_values", [&] { check({1, 4, 32, 32}); });
  refused(ErrorCode::shape, "at least a patch, 8 x 8", [&] { check({1, 3, 32, 7}); });
  refused(ErrorCode::out_of_range, "patches", [&] { check({1, 3, 8 << 20, 16 << 20}); });
  refused(ErrorCode::memory, "forward", [&] {
    Context context({.memory_limit = 1 << 28});
    const Context::Scope scope(context);
    check({1 << 20, 3, 32, 32});
  });
  CHECK(model->image_inputs("forward", TensorView{nullptr, {0, 3, 32, 32}}).shape == Shape{0, 17});
}

TEST_CASE("hostile configurations of images are refused", "[models]") {
  const Checkpoint vit = folder("tiny-vit");
  const auto config = [&](ErrorCode code, const std::string& words, const json& change) {
    refused(code, words, [&] { load(with_config(vit, [&](json& members) { members.update(change); })); });
  };
  config(ErrorCode::config, "patch_size", {{"patch_size", 0}});
  config(ErrorCode::config, "patch_size", {{"patch_size", 64}});
  config(ErrorCode::config, "patch_size", {{"patch_size", {8, 8, 8}}});
  config(ErrorCode::config, "num_channels", {{"num_channels", -3}});
  config(ErrorCode::mismatch, "patch_embeddings.projection.weight has shape (32,3,8,8), expected (32,1,8,8)", {{"num_channels", 1}});
  config(ErrorCode::mismatch, "position_embeddings", {{"image_size", 40}});
  config(ErrorCode::unsupported, "ViTForImageClassification", {{"architectures", {"ViTForMaskedImageModeling"}}});
  refused(ErrorCode::unsupported, "an image model", [] { TextModel::load(testdata("vision/tiny-vit").string()); });
}
