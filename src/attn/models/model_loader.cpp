#include "attn/models/model_loader.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "attn/io/safetensors.hpp"
#include "attn/kernels/kernels.hpp"
#include "attn/models/family.hpp"
#include "attn/tensor/float_environment.hpp"

namespace attn::detail {
namespace {

constexpr std::string_view kLoaderOp = "model.safetensors";

struct Kinds {
  bool linear = false, words = false;
};

/// Builds only one layer: a file may specify very many.
void check_memory(const ModelConfig& config, const Kinds& quantized) {
  constexpr std::string_view kWhat = "the model";
  ModelConfig one = config;
  one.num_hidden_layers = 1;
  one.hidden_groups = 0;
  one.distances.clear();
  EncoderModel probe(std::move(one));
  if (quantized.linear) probe.quantize(quantized.words);
  MemoryEstimate memory(kLoaderOp);
  // In units of four bytes. Rows are padded to panels; an int8 row has a scale and a sum.
  const auto weight = [](std::int64_t copies, std::int64_t rows, std::int64_t width, bool is_quantized) {
    return Shape{copies, rows + 64, is_quantized ? (width + 3) / 4 + 2 : width + 1};
  };
  for (const auto& [name, parameter] : probe.parameters()) {
    const Shape shape = parameter.shape();
    const std::int64_t copies = name.starts_with("encoder.layers.") ? config.stored_layers() : 1;
    memory.add(kWhat, shape.rank() == 2 ? weight(copies, shape[0], shape[1], parameter.is_quantized())
                                        : Shape{copies, static_cast<std::int64_t>(parameter.size())});
  }
  if (!config.distances.empty()) memory.add(kWhat, {2, config.max_position_embeddings, config.head_width()});
  for (const DenseConfig& dense : config.denses) memory.add(kWhat, weight(1, dense.out_features, dense.in_features, quantized.linear));
  memory.check(kWhat);
}

/// Sums of products must fit in 32 bits.
void check_widths(const ModelConfig& config) {
  constexpr std::int64_t kMost = kernels::kMostInt8Terms;
  const auto check = [&](const char* name, std::int64_t width) {
    if (width > kMost)
      fail(ErrorCode::unsupported, kLoaderOp, name, {"a number of at most ", kMost, " for int8 weights"}, {width},
           "Weights as float32 have no such limit");
  };
  check("the hidden size", config.hidden_size);
  check("the width of all heads", config.num_attention_heads * config.head_width());
  check("the width between a layer's two maps", config.intermediate_size);
  for (const DenseConfig& dense : config.denses) check("the width of Dense's input", dense.in_features);
}

Linear read_dense(std::span<const std::uint8_t> file, const DenseConfig& config, bool quantized) {
  Linear dense(config.in_features, config.out_features, config.bias);
  struct Sink final : TensorSink {
    float* place(const std::string& name, const Shape& shape) override {
      AlignedFloats& values = data.emplace_back(static_cast<std::size_t>(checked_size(shape, "safetensors", name)));
      state.emplace(name, TensorView(values.data(), shape));
      return values.data();
    }
    StateView state;
    std::vector<AlignedFloats> data;
  } sink;
  parse_safetensors(file, sink);
  const std::string name = text({config.folder, "/model.safetensors"});
  constexpr std::string_view kWeight = "linear.weight";
  ParameterVisitor visitor;
  visitor.part("linear.", dense);
  const StateTensors tensors = visitor.take();
  check_state_dict(name, shapes_of(tensors), sink.state, true);
  if (quantized) {
    check_finite(name, kWeight, {find_data(sink.state, std::string(kWeight)), tensors.at(std::string(kWeight)).size()});
    convert(name, tensors, true);
  }
  for (const auto& [parameter, tensor] : tensors) tensor.pieces.front().allocate();
  set_state(tensors, sink.state);
  return dense;
}

}  // namespace

ModelLoader::ModelLoader(const ModelFiles& files, std::optional<bool> quantized) : is_asked_(quantized.has_value()) {
  const FloatEnvironment environment;
  ModelConfig config = read_model_config(files);
  const Kinds kinds{quantized.value_or(config.quantized), quantized.value_or(config.quantized_words)};
  if (kinds.linear) check_widths(config);
  check_memory(config, kinds);
  model_ = std::make_unique<EncoderModel>(std::move(config));
  if (kinds.linear) model_->quantize(kinds.words);
  const std::vector<DenseConfig>& denses = model_->config().denses;
  for (std::size_t i = 0; i < denses.size(); ++i) model_->add_embedding_dense(read_dense(*files.denses[i].weights, denses[i], kinds.linear));
  parameters_ = model_->parameters();
}

class ModelLoader::TargetList {
 public:
  TargetList(const StateTensors& parameters, bool transposed) : parameters_(parameters), transposed_(transposed) {}

  void begin(std::string theirs, std::string ours, bool in_base = true) {
    theirs_ = std::move(theirs);
    ours_ = std::move(ours);
    in_base_ = in_base;
  }
  void add(std::string name, std::initializer_list<const char*> ours, const char* kind, std::string legacy = {}) {
    ExpectedTensor& target = all_.emplace_back(ExpectedTensor{.name = std::move(name), .in_base = in_base_, .legacy = std::move(legacy)});
    for (const char* const parameter : ours) target.tensor.pieces.push_back(parameters_.at(text({ours_, parameter, kind})).pieces.front());
    target.tensor.block = block;
    target.tensor.is_transposed = transposed_ && !theirs_.empty() && target.tensor.pieces.front().shape.rank() == 2;
  }
  void add_weight(std::string_view name, std::initializer_list<const char*> ours) { add(text({theirs_, name, ".weight"}), ours, ".weight"); }
  void add_linear(std::string_view name, std::initializer_list<const char*> ours, bool bias) {
    add_weight(name, ours);
    if (bias) add(text({theirs_, name, ".bias"}), ours, ".bias");
  }
  void add_norm(std::string_view name, const char* ours, bool bias) {
    add(text({theirs_, name, ".weight"}), {ours}, ".weight", text({theirs_, name, ".gamma"}));
    if (bias) add(text({theirs_, name, ".bias"}), {ours}, ".bias", text({theirs_, name, ".beta"}));
  }
  void add_image_embeddings(const ModelConfig& config) {
    const ImageConfig& image = config.image;
    add_linear("embeddings.patch_embeddings.projection", {"patch_embeddings"}, true);
    std::prev(all_.end(), 2)->tensor.own_shape = {config.hidden_size, image.channels, image.patch_height, image.patch_width};
    add("embeddings.position_embeddings", {"position_embeddings"}, "");
    add("embeddings.cls_token", {"cls_token"}, "");
    if (image.distillation) add("embeddings.distillation_token", {"distillation_token"}, "");
    if (image.registers > 0) add("embeddings.register_tokens", {"register_tokens"}, "");
  }
  void add_image_head(const ModelConfig& config) {
    if (config.image.pooler_size > 0) add_linear("pooler.dense", {"pooler"}, true);
    if (!config.has_head()) return;
    begin("", "", false);
    add_linear(config.image.two_heads ? "cls_classifier" : config.head_names().classifier, {"classifier"}, true);
    if (config.image.two_heads) add_linear("distillation_classifier", {"distillation_classifier"}, true);
  }
  std::vector<ExpectedTensor> take() { return std::move(all_); }

  std::size_t block = 0;  ///< of the next tensors, see StateTensor

 private:
  const StateTensors& parameters_;
  bool transposed_;
  std::string theirs_, ours_;
  bool in_base_ = true;
  std::vector<ExpectedTensor> all_;
};

std::vector<ModelLoader::ExpectedTensor> ModelLoader::targets(const StateTensors& parameters) const {
  const ModelConfig& config = model_->config();
  const TensorNames& names = config.family->names;
  TargetList list(parameters, config.family->transposed);
  if (config.image)
    list.add_image_embeddings(config);
  else
    list.add_weight(names.word_embeddings, {"word_embeddings"});
  if (config.positions != PositionRows::none) list.add_weight(names.position_embeddings, {"position_embeddings"});
  if (config.type_vocab_size > 0) list.add_weight(names.token_type_embeddings, {"token_type_embeddings"});
  if (config.position_buckets > 0) list.add_weight(names.position_bias, {"position_bias"});
  if (config.relative.span > 0) list.add_weight(names.relative_embeddings, {"relative_embeddings"});
  if (config.relative.has_norm) list.add_norm(names.relative_norm, "relative_norm", true);
  if (config.task_type_vocab_size > 0) list.add_weight(names.task_type_embeddings, {"task_type_embeddings"});
  if (!names.embedding_norm.empty()) list.add_norm(names.embedding_norm, "embedding_norm", config.norm_bias);
  if (config.embedding_projection) list.add_linear(names.embedding_projection, {"embedding_projection"}, true);
  for (std::int64_t i = 0; i < config.stored_layers(); ++i) {
    std::string layer = text({names.layers, i / config.inner_layers});
    if (!names.inner_layers.empty()) layer = text({layer, names.inner_layers, i % config.inner_layers});
    list.begin(layer + ".", text({"encoder.layers.", i, "."}));
    constexpr const char *kQuery = "self_attn.q_proj", *kKey = "self_attn.k_proj", *kValue = "self_attn.v_proj";
    if (!names.query_key_value.empty()) {
      if (config.family->by_heads) list.block = static_cast<std::size_t>(config.head_width());
      list.add_linear(names.query_key_value, {kQuery, kKey, kValue}, config.attention_bias);
      list.block = 0;
    } else {
      list.add_linear(names.query, {kQuery}, config.attention_bias);
      list.add_linear(names.key, {kKey}, config.attention_bias);
      list.add_linear(names.value, {kValue}, config.attention_bias);
    }
    if (config.relative.c2p && !config.relative.shares_projections) list.add_linear(names.position_key, {"self_attn.position_key"}, true);
    if (config.relative.p2c && !config.relative.shares_projections) list.add_linear(names.position_query, {"self_attn.position_query"}, true);
    if (config.layer.head_norms) {
      list.add_norm(names.query_norm, "self_attn.q_norm", false);
      list.add_norm(names.key_norm, "self_attn.k_norm", false);
    }
    list.add_linear(names.attention_output, {"self_attn.out_proj"}, config.attention_output_bias);
    if (i > 0 || !config.normed_input) list.add_norm(names.norm1, "norm1", config.norm_bias);
    if (!names.gate_linear1.empty())
      list.add_linear(names.gate_linear1, {"linear_gate", "linear1"}, config.mlp_bias);
    else if (!names.linear1_gate.empty())
      list.add_linear(names.linear1_gate, {"linear1", "linear_gate"}, config.mlp_bias);
    else
      list.add_linear(names.linear1, {"linear1"}, config.mlp_bias);
    if (!names.gate.empty()) list.add_linear(names.gate, {"linear_gate"}, config.mlp_bias);
    list.add_linear(names.linear2, {"linear2"}, config.mlp_output_bias);
    list.add_norm(names.norm2, "norm2", config.norm_bias);
    if (config.layer.layer_scale) {
      list.add(text({names.layers, i, ".", names.post_norm1}), {"post_norm1"}, ".weight");
      list.add(text({names.layers, i, ".", names.post_norm2}), {"post_norm2"}, ".weight");
    }
    if (config.layer.post_norms) {
      list.add_norm(names.post_norm1, "post_norm1", config.norm_bias);
      list.add_norm(names.post_norm2, "post_norm2", config.norm_bias);
    }
  }
  list.begin("", "");
  if (!names.final_norm.empty()) list.add_norm(names.final_norm, "encoder.norm", config.norm_bias);
  if (config.image) list.add_image_head(config);
  if (config.image || !config.has_head()) return list.take();
  for_each_part_of_head(config, [&](HeadPart part, std::string_view name, const char* ours, bool bias) {
    list.begin("", "", part == HeadPart::pooler);
    if (part == HeadPart::norm) {
      list.add_norm(name, ours, bias);
    } else if (part == HeadPart::classifier && config.predicts_tokens()) {
      // If tied, the head's own bias name comes first, then the decoder's; otherwise the reverse.
      const std::string_view given = config.head_names().classifier_bias;
      std::string of_decoder = text({name, ".bias"}), own = given.empty() ? of_decoder : std::string(given);
      if (!config.is_tied()) {
        list.add_weight(name, {ours});
        std::swap(own, of_decoder);
      }
      if (bias) list.add(std::move(own), {ours}, ".bias", std::move(of_decoder));
    } else {
      list.add_linear(name, {ours}, bias);
    }
  });
  return list.take();
}

/// Many config.json name a fill-mask head that the checkpoint does not have.
bool ModelLoader::has_head() const {
  const HeadNames& names = model_->config().head_names();
  const std::string start(names.dense.empty() ? names.classifier : names.dense);
  return std::any_of(stream_.entries().begin(), stream_.entries().end(),
                     [&](const SafetensorsEntry& entry) { return entry.name.starts_with(start); });
}

bool ModelLoader::has_tensor(std::string_view name) const {
  return std::any_of(stream_.entries().begin(), stream_.entries().end(), [&](const SafetensorsEntry& entry) { return entry.name == name; });
}

/// A tied head in the file must equal the embedding matrix.
void ModelLoader::find_copy_of_words(const std::map<std::string_view, std::size_t>& by_name) {
  const ModelConfig& config = model_->config();
  if (!config.is_tied()) return;
  const auto head = by_name.find(text({config.head_names().classifier, ".weight"}));
  const auto words = by_name.find(targets_.front().name);
  if (head == by_name.end() || words == by_name.end()) return;
  if (stream_.entries()[head->second].type->is_float != stream_.entries()[words->second].type->is_float) return;
  words_copy_ = WordsCopy{.words = words->second, .head = head->second};
}

void ModelLoader::WordsCopy::add(const SafetensorsStream::Run& run) {
  if (run.entry != words && run.entry != head) return;
  std::uint64_t& hash = hashes[run.entry == head ? 1 : 0];
  const auto mix = [&](std::uint32_t value) { hash = (hash ^ value) * 0x100000001b3; };  // FNV-1a by 32 bits
  for (const float value : run.values) mix(std::bit_cast<std::uint32_t>(value == 0 ? 0.0F : value));
  for (const std::int8_t value : run.bytes) mix(static_cast<std::uint32_t>(value));
}

void ModelLoader::check_copy_of_words() const {
  if (!words_copy_ || words_copy_->hashes[0] == words_copy_->hashes[1]) return;
  const std::vector<SafetensorsEntry>& entries = stream_.entries();
  fail(ErrorCode::mismatch, kLoaderOp, entries[words_copy_->head].name, {"the numbers of ", entries[words_copy_->words].name}, {"other numbers"},
       "The head is tied to it: set tie_word_embeddings to false in config.json");
}

void ModelLoader::match(std::vector<ExpectedTensor> targets) {
  const Family& family = *model_->config().family;
  const std::vector<SafetensorsEntry>& entries = stream_.entries();
  std::map<std::string_view, std::size_t> by_name;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (entries[i].type->is_float || (entries[i].type->is_int8() && model_->config().quantized)) by_name.emplace(entries[i].name, i);

  // Otherwise all tensors would be reported as missing.
  if (!model_->config().quantized)
    for (const SafetensorsEntry& entry : entries)
      if (entry.type->is_int8() && by_name.contains(entry.name + "_scale"))
        fail(ErrorCode::unsupported, kLoaderOp, entry.name, {"F32, F16, BF16 or F64"}, {entry.type->name},
             "config.json has no quantization_config, which int8 files need");

  const std::string prefix(family.prefix);
  const bool prefixed = by_name.contains(prefix + targets.front().name);
  targets_ = std::move(targets);
  of_entry_.assign(entries.size(), {});
  Mismatch mismatch;
  for (ExpectedTensor& target : targets_) {
    const std::string start = prefixed && target.in_base ? prefix : "";
    std::string name = start + target.name;
    if (!target.legacy.empty() && !by_name.contains(name) && by_name.contains(start + target.legacy)) name = start + target.legacy;
    const auto found = by_name.find(name);
    if (found == by_name.end()) {
      mismatch.missing.push_back(name);
      continue;
    }
    target.name = std::move(name);
    place(target, found->second, by_name, mismatch);
  }
  find_copy_of_words(by_name);
  for (const auto& [name, index] : by_name) {
    const auto any = [](std::span<const std::string_view> list, auto fits) { return std::any_of(list.begin(), list.end(), fits); };
    const bool ignored = any(family.ignored, [&, &key = name](std::string_view start) { return key.starts_with(start); }) ||
                         any(family.buffers, [&, &key = name](std::string_view end) { return key.ends_with(end); });
    if (of_entry_[index].target == nullptr && !ignored) mismatch.unexpected.push_back(std::string(name));
  }
  // Unused tensors are no error, as in transformers, except in int8 files, where they may be zero points.
  if (!model_->config().quantized && mismatch.missing.empty() && mismatch.mis_shaped.empty()) note_unused(std::exchange(mismatch.unexpected, {}));
  mismatch.check(kLoaderOp, "the file");
  if (is_asked_) return;
  for (std::size_t i = 0; i < entries.size(); ++i)
    if (const auto& [target, is_scale] = of_entry_[i]; target != nullptr && !is_scale && target->tensor.is_quantized() && entries[i].type->is_float)
      fail(ErrorCode::unsupported, kLoaderOp, entries[i].name, {"I8, as config.json claims"}, {entries[i].type->name},
           "Load it with weights int8 or float32");
}

void ModelLoader::note_unused(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 8;
  if (names.empty()) return;
  std::string list;
  for (std::size_t i = 0; i < std::min(kMost, names.size()); ++i) list += (i > 0 ? ", " : "") + names[i];
  model_->add_note(text(
      {kLoaderOp, ": ", names.size(), " tensors are not used by the model that config.json describes: ", list, names.size() > kMost ? ", ..." : ""}));
}

void ModelLoader::place(ExpectedTensor& target, std::size_t entry, const std::map<std::string_view, std::size_t>& by_name, Mismatch& mismatch) {
  const std::vector<SafetensorsEntry>& entries = stream_.entries();
  const StateTensor& tensor = target.tensor;
  const Shape expected = entries[entry].type->is_float ? tensor.shape() : tensor.by_rows().shape();
  const Shape& got = entries[entry].shape;
  if (got != expected) mismatch.mis_shaped.push_back(text({target.name, " has shape ", got, ", expected ", expected}));
  of_entry_[entry] = {&target};
  if (entries[entry].type->is_float) return;
  if (!tensor.can_be_int8()) mismatch.mis_shaped.push_back(text({target.name, " is I8, expected F32, F16, BF16 or F64"}));
  const std::string name = target.name + "_scale";
  const auto scale = by_name.find(name);
  if (scale == by_name.end()) return mismatch.missing.push_back(name);
  const SafetensorsEntry& found = entries[scale->second];
  const Shape column{expected[0], 1}, row{expected[0]};
  if (found.shape != column && found.shape != row) mismatch.mis_shaped.push_back(text({name, " has shape ", found.shape, ", expected ", column}));
  if (!found.type->is_float) mismatch.mis_shaped.push_back(text({name, " is I8, expected F32, F16, BF16 or F64"}));
  of_entry_[scale->second] = {&target, true};
}

const Family& ModelLoader::named_family() const {
  const Family& first = *model_->config().family;
  const auto has = [&](const Family& family, bool prefixed) {
    std::string name = prefixed ? std::string(family.prefix) : "";
    (name += family.names.layers) += "0.";
    name += family.names.norm1;
    name += ".weight";
    return std::any_of(stream_.entries().begin(), stream_.entries().end(), [&](const SafetensorsEntry& entry) { return entry.name == name; });
  };
  for (const Family* family = &first; family != nullptr; family = family->alternative)
    if (has(*family, true) || has(*family, false)) return *family;
  return first;
}

void ModelLoader::prepare() {
  if (model_->config().family->alternative != nullptr) model_->set_family(named_family());
  if (model_->config().task == Task::fill_mask && !has_head()) {
    model_->leave_out_head();
    parameters_ = model_->parameters();
  }
  if (model_->config().image.pooler_size > 0 && !has_tensor("pooler.dense.weight")) {
    model_->leave_out_pooler();
    parameters_ = model_->parameters();
  }
  match(targets(parameters_));
  model_->allocate();
  prepared_ = true;
}

void ModelLoader::write(std::span<const std::uint8_t> bytes) {
  const FloatEnvironment environment;
  stream_.give(bytes);
  if (stream_.has_header() && !prepared_) prepare();
  SafetensorsStream::Run run;
  while (stream_.next(run)) {
    if (words_copy_) words_copy_->add(run);
    if (of_entry_[run.entry].target != nullptr) set(run);
  }
}

void ModelLoader::set(const SafetensorsStream::Run& run) {
  const auto& [target, is_scale] = of_entry_[run.entry];
  const StateTensor& tensor = target->tensor;
  const auto first = static_cast<std::size_t>(run.first);
  if (is_scale) return add_scales(*target, first, run.values);
  by_row(tensor.row_size(), first, run.values, row_, [&](std::size_t row, std::span<const float> rows) {
    if (tensor.is_quantized()) check_finite(kLoaderOp, target->name, rows);
    tensor.set_rows(row, rows);
  });
  by_row(tensor.pieces.front().row_size(), first, run.bytes, quantized_row_,
         [&](std::size_t row, std::span<const std::int8_t> rows) { tensor.set_quantized_rows(row, rows); });
}

template <class Number, class Set>
void ModelLoader::by_row(std::size_t width, std::size_t first, std::span<const Number> values, std::vector<Number>& begun, Set set) {
  while (!values.empty()) {
    const bool in_row = !begun.empty() || values.size() < width;
    const std::size_t count = in_row ? std::min(width - begun.size(), values.size()) : values.size() / width * width;
    const std::span<const Number> next = values.first(count);
    if (in_row) begun.insert(begun.end(), next.begin(), next.end());
    first += count;
    values = values.subspan(count);
    if (!in_row) {
      set((first - count) / width, next);
    } else if (begun.size() == width) {
      set(first / width - 1, begun);
      begun.clear();
    }
  }
}

void ModelLoader::add_scales(ExpectedTensor& target, std::size_t first, std::span<const float> scales) {
  for (std::size_t i = 0; i < scales.size(); ++i)
    if (!std::isfinite(scales[i]) || scales[i] < 0)
      fail(ErrorCode::format, kLoaderOp, text({target.name, "_scale[", first + i, "]"}), {"a finite number of at least 0"}, {scales[i]});
  target.scales.insert(target.scales.end(), scales.begin(), scales.end());
}

std::unique_ptr<EncoderModel> ModelLoader::finish() {
  stream_.finish();
  if (!prepared_) prepare();
  check_copy_of_words();
  StateTensors tensors;
  for (ExpectedTensor& target : targets_) {
    if (!target.scales.empty()) target.tensor.set_scales(target.scales);
    tensors.emplace(std::move(target.name), std::move(target.tensor));
  }
  model_->set_tensors(std::move(tensors));
  return std::move(model_);
}

}  // namespace attn::detail
