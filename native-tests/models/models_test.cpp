#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>

#include "attn/ops/softmax.hpp"
#include "attn/parallel/thread_pool.hpp"
#include "models/edit.hpp"
#include "models/goldens.hpp"
#include "support/matchers.hpp"

using namespace attn;
using namespace attn::test;

namespace models_models_test {

Array trace_of(const EncoderModel& model, const Batch& batch, std::int64_t layer, const std::string& name) {
  const auto at = static_cast<std::size_t>(std::find(kTraceNames.begin(), kTraceNames.end(), name) - kTraceNames.begin());
  const Trace names = Trace::from_bits(1U << at);
  const detail::ModelInputs inputs = batch.inputs();
  const detail::ModelPlan plan = model.plan("forward", inputs, {.trace = model.trace_of("forward", layer, names), .logits = false});
  Array output(plan.encoder.output), trace(plan.encoder.trace_shapes[at]);
  detail::EncoderBuffers buffers{output.data.data(), {}, {}};
  buffers.layers.resize(static_cast<std::size_t>(plan.encoder.layers));
  buffers.layers[static_cast<std::size_t>(layer)].trace[at] = trace.data.data();
  model.run(plan, inputs, buffers, nullptr);
  return trace;
}

}  // namespace models_models_test
using namespace models_models_test;

TEST_CASE("checkpoints agree with transformers", "[models]") {
  const std::string name = GENERATE(from_range(checkpoints()));
  CAPTURE(name);
  const GoldenFile file = read_golden(testdata("models/" + name + ".safetensors"));
  const std::unique_ptr<EncoderModel> model = load(read_checkpoint(testdata("models/" + name)));
  std::size_t count = 0;
  for (const auto& entry : cases_of(file)) {
    const GoldenCase golden(file, entry);
    const Batch batch = batch_of(golden);
    const TextForwardOptions given = forward_options(entry);
    detail::ModelForwardOptions options{.is_causal = given.is_causal};
    if (given.head_mask) options.head_mask = *given.head_mask;
    const ModelOutput output = forward(*model, batch, true, options);
    for (const auto& [what, error] : entry.at("expected").items()) {
      CAPTURE(golden.name(), what);
      ++count;
      const auto [start, rest] = split_name(what);
      Array got = result_of(output, what);
      if (start == "traces") got = trace_of(*model, batch, std::stol(rest), rest.substr(rest.find('.') + 1));
      if (what == "probabilities") {
        got = Array(model->check_classify("classify", batch.inputs()));
        model->classify(batch.inputs(), got.data.data());
      }
      if (start == "pooled" || what == "embedding") {
        const auto found = std::find(kPoolingNames.begin(), kPoolingNames.end(), rest);
        detail::ModelEmbedOptions how{.poolings = model->config().poolings, .normalize = what == "embedding" && model->config().normalize};
        if (found != kPoolingNames.end()) how.poolings = {static_cast<Pooling>(found - kPoolingNames.begin())};
        got = Array(model->check_embed("embed", batch.inputs(), how));
        model->embed(batch.inputs(), how, got.data.data());
      }
      CHECK(difference(golden, what, got) == "");
    }
  }
  CHECK(count >= 10);
}

TEST_CASE("padding does not change any bit of other positions", "[models]") {
  const std::string name = GENERATE(from_range(checkpoints()));
  CAPTURE(name);
  const GoldenFile file = read_golden(testdata("models/" + name + ".safetensors"));
  const std::unique_ptr<EncoderModel> model = load(read_checkpoint(testdata("models/" + name)));
  const auto entries = cases_of(file);
  const GoldenCase golden(file, entries.at(0));
  const Batch all = batch_of(golden);
  const Array mask = golden.tensor("attention_mask");
  const ModelOutput together = forward(*model, all, false);
  std::size_t padded = 0;
  for (std::int64_t row = 0; row < all.shape[0]; ++row) {
    CAPTURE(row);
    const Array flags = slice(mask, row);
    const auto first = all.ids.begin() + row * all.shape[1];
    const std::int64_t length = std::count(flags.data.begin(), flags.data.end(), 1.0F);
    padded += length < all.shape[1];
    Batch alone;
    alone.shape = {1, length};
    alone.ids.assign(first, first + length);
    const ModelOutput got = forward(*model, alone, false);
    Array expected = slice(together.last_hidden_state, row);
    expected.dims[0] = length;
    expected.data.resize(size_of(expected.dims));
    CHECK_THAT(slice(got.last_hidden_state, 0), HasBitsOf(expected));
    if (together.logits.dims.rank() == 0) continue;
    Array logits = slice(together.logits, row);
    if (model->config().of_tokens()) {
      logits.dims[0] = length;
      logits.data.resize(size_of(logits.dims));
    }
    CHECK_THAT(slice(got.logits, 0), HasBitsOf(logits));
  }
  CHECK(padded >= 2);
}

TEST_CASE("embeddings and classifications of packed texts have the bits of a forward that also computes padding", "[models][threads]") {
  const std::string name = GENERATE(from_range(checkpoints()));
  const unsigned threads = GENERATE(1U, 2U);
  CAPTURE(name, threads);
  const std::unique_ptr<EncoderModel> model = load(read_checkpoint(testdata("models/" + name)));
  const std::vector<std::int64_t> lengths = GENERATE(std::vector<std::int64_t>{20, 7, 7, 0, 13, 1}, std::vector<std::int64_t>{0, 0});
  const std::int64_t B = std::ssize(lengths), L = 20, E = model->config().hidden_size;
  Batch batch = some_ids(B, L, model->config().vocab_size);
  std::vector<std::uint8_t> flags;
  detail::PackedSequences texts;
  for (std::int64_t b = 0; b < B; ++b) {
    const std::int64_t length = lengths[static_cast<std::size_t>(b)];
    for (std::int64_t i = 0; i < L; ++i) flags.push_back(i < length ? 1 : 0);
    const auto first = batch.ids.begin() + b * L;
    texts.ids.insert(texts.ids.end(), first, first + length);
    texts.add_length(length);
  }
  batch.mask = MaskView(MaskKind::attend, flags.data(), batch.shape);

  set_num_threads(threads);
  const ModelOutput output = forward(*model, batch, false);
  const float* const states = output.last_hidden_state.data.data();
  for (const Pooling pooling : {Pooling::mean, Pooling::cls, Pooling::max, Pooling::lasttoken, Pooling::weightedmean, Pooling::mean_sqrt_len}) {
    Array expected({B, E}), got({B, E});
    detail::pool(states, B, L, E, pooling, &*batch.mask, FullyMasked::zero, expected.data.data(), E);
    detail::clear_empty(&*batch.mask, B, L, E, expected.data.data(), E);
    model->embed(texts.inputs(), {.poolings = {pooling}}, got.data.data());
    CHECK_THAT(got, HasBitsOf(expected));
  }
  if (model->config().task == Task::text_classification && model->config().classification_function == detail::ClassificationFunction::softmax) {
    Array expected(output.logits.dims), got(output.logits.dims);
    detail::softmax({output.logits.data.data(), output.logits.dims}, 1, expected.data.data());
    model->classify(texts.inputs(), got.data.data());
    CHECK_THAT(got, HasBitsOf(expected));
  }
  set_num_threads(1);
}
