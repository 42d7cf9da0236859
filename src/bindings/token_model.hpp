#pragma once

#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "attn/memory/key_value_cache.hpp"
#include "attn/models/encoder_model.hpp"
#include "attn/models/fine_tuning.hpp"
#include "attn/models/model_loader.hpp"
#include "define.hpp"

// TextModel in web/lib, except the tokenizer.
namespace attn::bindings {

struct Source {
  detail::ModelFiles files;
  std::optional<bool> quantized;
};

class TokenModel {
 public:
  explicit TokenModel(const Source& source) : loader_(std::make_unique<detail::ModelLoader>(source.files, source.quantized)) {}

  void write(std::span<const std::uint8_t> bytes) { loader_->write(bytes); }
  void finish() {
    model_ = loader_->finish();
    loader_.reset();
  }
  const EncoderModel& model() const { return *model_; }
  EncoderModel& model() { return *model_; }
  Embedding* word_embeddings() { return &model_->word_embeddings(); }
  std::map<std::string, Shape> parameter_shapes() const { return model_->parameter_shapes(); }
  void load_state(const StateView& state, bool strict) { model_->load_state(state, strict); }
  const detail::ModelConfig& config() const { return model_ ? model_->config() : loader_->config(); }

  std::shared_ptr<detail::FineTuning> tuning;

  void add_cache(std::int64_t number, KeyValueCache cache) {
    caches_.push_back(std::make_unique<std::pair<std::int64_t, KeyValueCache>>(number, std::move(cache)));
  }
  void free_cache(std::int64_t number) {
    std::erase_if(caches_, [=](const auto& cache) { return cache->first == number; });
  }
  KeyValueCache& cache(std::string_view op, std::int64_t number) {
    for (const auto& cache : caches_)
      if (cache->first == number) return cache->second;
    detail::fail(ErrorCode::argument, op, "cache", {"one that createCache() of this model made"}, {"one of another model"});
  }

 private:
  std::unique_ptr<detail::ModelLoader> loader_;
  std::unique_ptr<EncoderModel> model_;
  std::vector<std::unique_ptr<std::pair<std::int64_t, KeyValueCache>>> caches_;
};

Source source(Arguments& arguments);

struct Batch {
  Arguments::Ids ids;
  std::optional<Mask> mask;
  std::optional<Arguments::Ids> types;

  explicit Batch(Arguments& arguments) : ids(arguments.ids("inputIds")) {
    arguments.option("attentionMask", mask);
    types = arguments.optional_ids("tokenTypeIds");
  }
  detail::ModelInputs inputs() const {
    detail::ModelInputs inputs{.shape = ids.shape, .input_ids = ids.values, .attention_mask = mask ? &*mask : nullptr};
    if (types) inputs.token_type_ids = types->values;
    return inputs;
  }
};

using TokenModelClass = Class<TokenModel, source>;
void define_gradients(TokenModelClass& model);
void define_generation(TokenModelClass& model);
void define_fine_tuning(TokenModelClass& model);
void define_images(TokenModelClass& model);

/// Options of forward for texts and images.
void common_options(Arguments& arguments, detail::ModelForwardOptions& options);
void run(const EncoderModel& model, const detail::ModelInputs& inputs, const detail::ModelPlan& plan, Result& result);

}  // namespace attn::bindings
