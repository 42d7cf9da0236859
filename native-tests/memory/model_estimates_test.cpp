// The memory that a call of a model is checked for is the memory that it takes.
#include <catch2/catch_test_macros.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "attn/attn.hpp"
#include "attn/layers/gradients.hpp"
#include "attn/models/kept_model.hpp"
#include "memory/estimate.hpp"
#include "models/checkpoint.hpp"
#include "support/golden.hpp"
#include "support/tensors.hpp"

namespace attn::test {
namespace memory_model_estimates_test {

/// Buffers for the results of a plan, in ordinary memory.
struct ModelResults {
  std::vector<std::vector<float>> numbers;
  detail::EncoderBuffers buffers;
  float* logits = nullptr;

  explicit ModelResults(const detail::ModelPlan& plan) {
    const detail::EncoderPlan& encoder = plan.encoder;
    buffers.output = add(encoder.output);
    if (encoder.has_attentions || encoder.has_trace) buffers.layers.resize(static_cast<std::size_t>(encoder.layers));
    if (encoder.has_attentions)
      for (detail::LayerBuffers& layer : buffers.layers) layer.attentions = add(encoder.attention.weights);
    for (std::int64_t i = 0; i <= encoder.layers && encoder.has_hidden_states; ++i) buffers.hidden_states.push_back(add(encoder.output));
    detail::for_each_trace(encoder, [&](std::size_t layer, std::size_t i) { buffers.layers[layer].trace[i] = add(encoder.trace_shapes[i]); });
    if (plan.logits.rank() > 0) logits = add(plan.logits);
  }
  float* add(const Shape& shape) { return numbers.emplace_back(static_cast<std::size_t>(checked_size(shape, "test", "x"))).data(); }
  std::int64_t floats() const {
    std::int64_t sum = 0;
    for (const std::vector<float>& each : numbers) sum += std::ssize(each);
    return sum;
  }
};

void check_forward(const EncoderModel& model, const std::string& name, const detail::ModelInputs& inputs,
                   const detail::ModelForwardOptions& options) {
  check_estimate(name, [&] {
    const detail::ModelPlan plan = model.plan("forward", inputs, options);
    const ModelResults results(plan);
    model.run(plan, inputs, results.buffers, results.logits);
    return results.floats();
  });
}

void check_tasks(const EncoderModel& model, const std::string& name, const detail::ModelInputs& inputs) {
  const detail::ModelConfig& config = model.config();
  std::vector<float> results(1 << 16);
  if (!config.poolings.empty())
    for (const std::vector<Pooling>& poolings : {config.poolings, std::vector{config.poolings.front()}})
      if (config.denses.empty() || poolings == config.poolings)
        check_estimate(name + " embed", [&] {
          const detail::ModelEmbedOptions options{.poolings = poolings, .normalize = true};
          const Shape shape = model.check_embed("embed", inputs, options);
          model.embed(inputs, options, results.data());
          return shape[0] * shape[1];
        });
  if (config.task == Task::text_classification)
    check_estimate(name + " classify", [&] {
      const Shape shape = model.check_classify("classify", inputs);
      model.classify(inputs, results.data());
      return shape[0] * shape[1];
    });
  if (config.has_head() && config.of_tokens()) {
    const std::vector<std::int64_t> places{0, 3, 9};
    check_estimate(name + " classify_tokens", [&] {
      const Shape shape = model.check_tokens("classify_tokens", config.task, inputs, places);
      model.classify_tokens(inputs, places, detail::TokenSoftmax::tokens, results.data());
      return shape[0] * shape[1];
    });
  }
  if (config.task == Task::text_generation)
    check_estimate(name + " unembed", [&] {
      const Shape shape = model.check_unembed("unembed", {5, config.hidden_size});
      model.run_head(results.data() + (1 << 15), 5, results.data());
      return shape[0] * shape[1];
    });
}

void check_gradients(EncoderModel& model, const std::string& name, const detail::ModelInputs& inputs) {
  const std::vector<std::int64_t> tokens{1, 9};
  for (const bool of_head : {false, true}) {
    if (of_head ? !model.has_head() : model.config().poolings.empty()) continue;
    const detail::ModelKeepOptions keep{.of_head = of_head,
                                        .tokens = of_head && model.config().of_tokens() ? tokens : std::span<const std::int64_t>{}};
    const auto forward = [&](std::int64_t& floats) {
      const detail::ModelPlan plan = model.plan("forward", inputs, {.for_backward = true, .keep = keep, .logits = false});
      const ModelResults results(plan);
      floats = results.floats();
      return model.run_and_keep(plan, inputs, results.buffers, keep);
    };
    std::int64_t floats = 0;
    check_estimate(name + " forward for backward" + (of_head ? " of the head" : ""), [&] {
      forward(floats);
      return floats;
    });
    const auto kept = forward(floats);
    const std::vector<float> grad(static_cast<std::size_t>(kept->results * model.result_size(of_head)), 1.0F);
    std::vector<float> of_words(static_cast<std::size_t>(inputs.shape[0] * inputs.shape[1] * model.config().word_width()));
    for (const bool wants_parameters : {false, true}) {
      detail::Gradients gradients;
      if (wants_parameters) gradients.reserve(model.state_shapes());
      check_estimate(name + " backward" + (of_head ? " of the head" : "") + (wants_parameters ? " with parameters" : ""), [&] {
        model.backward(*kept, grad.data(), {.embeddings = of_words.data(), .parameters = wants_parameters ? &gradients : nullptr});
        return std::int64_t{0};
      });
    }
  }
}

TEST_CASE("the memory check of every model counts exactly what its calls take", "[memory][estimate][models]") {
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testdata("models"))) {
    if (!std::filesystem::exists(entry.path() / "model.safetensors") || !entry.path().filename().string().starts_with("tiny-")) continue;
    const Checkpoint checkpoint = read_checkpoint(entry.path());
    for (const bool is_int8 : {false, true}) {
      detail::ModelLoader loader(checkpoint.files(), is_int8);
      loader.write(checkpoint.weights);
      const std::unique_ptr<EncoderModel> model = loader.finish();
      const std::string name = entry.path().filename().string() + (is_int8 ? " int8" : "");
      ++models;
      set_num_threads(models % 2 == 0 ? 1 : 3);
      std::vector<std::int64_t> ids;
      for (std::int64_t i = 0; i < 22; ++i) ids.push_back(5 + i * 31 % (model->config().vocab_size - 5));
      Generator random(3);
      const Mask padding = mask_of(random_padding(random, MaskKind::block, 2, 11));
      const detail::ModelInputs plain{.shape = {2, 11}, .input_ids = ids}, padded{.shape = {2, 11}, .input_ids = ids, .attention_mask = &padding};
      const std::array<detail::SequenceGroup, 2> lengths{{{2, 6}, {1, 10}}};
      const detail::ModelInputs packed{.shape = {1, 22}, .input_ids = ids, .runs = lengths};
      const detail::ModelForwardOptions everything{.output_attentions = true, .output_hidden_states = true, .trace = EncoderTraceOptions{}};
      check_forward(*model, name, plain, {});
      check_forward(*model, name + " padded, with everything", padded, everything);
      check_forward(*model, name + " packed", packed, {.logits = model->config().of_tokens() ? OutputLogits(false) : OutputLogits(true)});
      check_tasks(*model, name, plain);
      check_tasks(*model, name + " packed", packed);
      if (model->config().is_causal) {
        KeyValueCache cache = model->make_cache(2, 44);
        check_forward(*model, name + " with a cache", plain, {.logits = OutputLogits::last, .cache = &cache});
      }
      if (!is_int8) check_gradients(*model, name, plain);
      if (!is_int8 && !model->config().is_causal) check_gradients(*model, name + " padded", padded);
    }
  }
  CHECK(models > 100);
  set_num_threads(1);
}

void check_images(const EncoderModel& model, const std::string& name) {
  const detail::ImageConfig& config = model.config().image;
  // Positions are interpolated for the second one; the third one is not contiguous.
  std::vector<float> pixels(2 * 3 * 64 * 64, 0.5F), results(1 << 12);
  TensorView own{pixels.data(), {2, 3, config.height, config.width}}, other{pixels.data(), {1, 3, config.height + 9, config.width + 24}}, gaps = own;
  gaps.strides[3] = 2;
  gaps.strides[2] = 2 * config.width;
  for (const TensorView* const view : {&own, &other, &gaps}) {
    const detail::ModelInputs inputs = model.image_inputs("forward", *view);
    check_forward(model, name, inputs, {});
    check_forward(model, name + " with everything", inputs,
                  {.output_attentions = true, .output_hidden_states = true, .trace = EncoderTraceOptions{}});
    for (const ImagePooling pooling : {ImagePooling::cls, ImagePooling::mean, ImagePooling::pooler}) {
      if (pooling == ImagePooling::pooler && config.pooler_size == 0) continue;
      check_estimate(name + " embed", [&] {
        const Shape shape = model.check_image_embed("embed", inputs, pooling);
        model.embed_images(inputs, pooling, true, results.data());
        return shape[0] * shape[1];
      });
    }
    if (!model.has_head()) continue;
    check_estimate(name + " classify", [&] {
      const Shape shape = model.check_classify("classify", inputs);
      model.classify(inputs, results.data());
      return shape[0] * shape[1];
    });
  }
}

TEST_CASE("the memory check of image models counts exactly what their calls take", "[memory][estimate][models]") {
  int models = 0;
  for (const auto& entry : std::filesystem::directory_iterator(testdata("vision"))) {
    if (!entry.is_directory()) continue;
    const Checkpoint checkpoint = read_checkpoint(entry.path());
    for (const bool is_int8 : {false, true}) {
      detail::ModelLoader loader(checkpoint.files(), is_int8);
      loader.write(checkpoint.weights);
      set_num_threads(++models % 2 == 0 ? 1 : 3);
      check_images(*loader.finish(), entry.path().filename().string() + (is_int8 ? " int8" : ""));
    }
  }
  CHECK(models == 18);
  set_num_threads(1);
}

}  // namespace memory_model_estimates_test
}  // namespace attn::test
