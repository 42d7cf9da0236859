#include "attn/ops/losses.hpp"

#include <utility>

#include "define.hpp"

namespace attn::bindings {
namespace {

void tensor_option(Arguments& arguments, const char* name, std::optional<TensorCopy>& value) {
  if (const std::optional<TensorView> given = arguments.optional_tensor(name)) static_cast<TensorView&>(value.emplace()) = *given;
}

void cross_entropy(Arguments& arguments, Work<> work) {
  const TensorView logits = arguments.tensor("logits");
  std::vector<std::int64_t> labels = arguments.labels("labels");
  CrossEntropyOptions options;
  arguments.group("options", [&] {
    arguments.option("labelSmoothing", options.label_smoothing);
    arguments.option("ignoreIndex", options.ignore_index);
    tensor_option(arguments, "weight", options.weight);
    arguments.option("reduction", options.reduction, kReductionNames);
  });
  work([&](Result& result) {
    detail::check_cross_entropy(logits, labels, options);
    result.set_number(static_cast<double>(detail::cross_entropy(logits, labels, options, result.add(logits.shape))));
  });
}

void mse_loss(Arguments& arguments, Work<> work) {
  const TensorView prediction = arguments.tensor("prediction"), target = arguments.tensor("target");
  MseLossOptions options;
  arguments.group("options", [&] { arguments.option("reduction", options.reduction, kReductionNames); });
  work([&](Result& result) {
    detail::check_mse_loss(prediction, target);
    result.set_number(static_cast<double>(detail::mse_loss(prediction, target, options, result.add(prediction.shape))));
  });
}

void binary_cross_entropy_with_logits(Arguments& arguments, Work<> work) {
  const TensorView logits = arguments.tensor("logits"), target = arguments.tensor("target");
  BinaryCrossEntropyOptions options;
  arguments.group("options", [&] {
    tensor_option(arguments, "weight", options.weight);
    tensor_option(arguments, "posWeight", options.pos_weight);
    arguments.option("reduction", options.reduction, kReductionNames);
  });
  work([&](Result& result) {
    detail::check_binary_cross_entropy(logits, target, options);
    result.set_number(static_cast<double>(detail::binary_cross_entropy(logits, target, options, result.add(logits.shape))));
  });
}

}  // namespace
}  // namespace attn::bindings

EMSCRIPTEN_BINDINGS(attn_losses) {
  using namespace attn::bindings;
  define_function<cross_entropy>("crossEntropy", "loss");
  define_function<mse_loss>("mseLoss", "loss");
  define_function<binary_cross_entropy_with_logits>("binaryCrossEntropyWithLogits", "loss");
}
