#include "training.hpp"

#include "draw.hpp"

namespace digest {
namespace training_calls {

constexpr std::size_t kSteps = 200, kBatch = 8, kLength = 10, kWidth = 16, kClasses = 3, kShown = 20;

struct Batch {
  xt::xtensor<float, 3> x = xt::empty<float>({kBatch, kLength, kWidth});
  xt::xtensor<bool, 2> attend = xt::empty<bool>({kBatch, kLength});
  std::vector<std::int64_t> labels;
};

Batch draw_batch(Generator& g) {
  Batch batch;
  for (std::size_t b = 0; b < kBatch; ++b) {
    const std::size_t length = kLength / 2 + g.below(kLength / 2 + 1);
    std::array<double, kClasses> sums{};  // exact: multiples of 2^-23
    for (std::size_t i = 0; i < kLength; ++i) {
      batch.attend(b, i) = i < length;
      for (std::size_t e = 0; e < kWidth; ++e) {
        batch.x(b, i, e) = g.unit();
        if (i < length && e < kClasses) sums[e] += static_cast<double>(batch.x(b, i, e));
      }
    }
    batch.labels.push_back(std::max_element(sums.begin(), sums.end()) - sums.begin());
  }
  return batch;
}

}  // namespace training_calls
using namespace training_calls;

Training train_classifier() {
  Generator g(0x7ea10000U);
  attn::TransformerClassifier model(
      {.encoder = {.layer = {.d_model = kWidth, .nhead = 2, .dim_feedforward = 32, .dropout = 0.1F, .activation = attn::Activation::gelu},
                   .num_layers = 2},
       .num_classes = kClasses,
       .pooling = attn::Pooling::mean});
  model.initialize({.seed = 1});
  model.train({.seed = 2});
  attn::AdamW optimizer({model}, {.learning_rate = 3e-3});
  Training training;
  Hash hash;
  for (std::size_t step = 0; step < kSteps; ++step) {
    const Batch batch = draw_batch(g);
    const auto result = model.forward(batch.x, {.key_padding_mask = attn::Mask::attend(batch.attend)});
    const xt::xtensor<float, 2> logits = result.logits;
    const auto loss = attn::cross_entropy(logits, batch.labels, {.label_smoothing = 0.05});
    model.backward(loss.gradient);
    attn::clip_grad_norm({model}, 1.0);
    optimizer.step();
    optimizer.zero_grad();
    hash.add(Values{{1}, {static_cast<float>(loss.loss)}});
    if (step < kShown) training.first_loss += loss.loss / kShown;
    if (step >= kSteps - kShown) training.last_loss += loss.loss / kShown;
  }
  for (const auto& [name, tensor] : model.state_dict()) hash.add(Values{{tensor.size()}, {tensor.begin(), tensor.end()}});
  training.hash = hash.value();
  return training;
}

}  // namespace digest
