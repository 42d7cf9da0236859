#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attn/io/tokenizer.hpp"
#include "attn/layers/embedding.hpp"
#include "attn/layers/encoder_forward.hpp"
#include "attn/ops/attention.hpp"
#include "attn/ops/pooling.hpp"
#include "attn/tensor/tensor.hpp"

namespace attn {

/// What one layer shall work with instead of what it would have computed, to see what follows from it (activation patching: Vig et al. 2020).
/// Any numbers will do.
struct LayerPatch {
  std::int64_t layer = 0;                                ///< counted from 0
  std::optional<Tensor<3>> hidden_state = std::nullopt;  ///< (B,L,E), its input
  std::optional<Tensor<3>> merged = std::nullopt;        ///< (B,L,E), the heads' results side by side, before W_O
};

struct TextForwardOptions {
  bool output_attentions = false;     ///< return the weights of every layer
  bool output_hidden_states = false;  ///< return the input of every layer, and the output
  /// Of every layer, as AttentionOptions, beside what the padding and the model itself mask. A query that they leave nothing attends to
  /// every key alike, as in transformers.
  std::optional<MaskView> mask = std::nullopt;
  bool is_causal = false;  ///< no token attends to later ones, in every layer
  /// (layers,H), what each head's result is multiplied by before W_O, after a patch; 0 switches it off (Michel et al. 2019). Attentions and
  /// the trace `context` are those of before, `merged` is what goes into W_O.
  std::optional<Tensor<2>> head_mask = std::nullopt;
  std::optional<LayerPatch> patch = std::nullopt;
  std::optional<EncoderTraceOptions> trace = std::nullopt;
};

struct TextModelOutput {
  Tensor<3> last_hidden_state;                                  ///< (B,L,E)
  std::optional<Tensor<2>> logits;                              ///< (B,C), where the checkpoint has a head
  std::optional<std::vector<Tensor<4>>> attentions;             ///< by layer (B,H,L,L), when asked for
  std::optional<std::vector<Tensor<3>>> hidden_states;          ///< layers + 1 of (B,L,E), the last equals last_hidden_state; when asked for
  std::optional<std::map<std::int64_t, AttentionTrace>> trace;  ///< by layer, when asked for
};

struct EmbedOptions {
  std::optional<std::int64_t> max_length = std::nullopt;  ///< as TokenizeOptions
  bool truncation = true;
  std::optional<Pooling> pooling = std::nullopt;  ///< any but none; default what 1_Pooling/config.json says (one or several), else mean
  std::optional<bool> normalize = std::nullopt;   ///< to length 1; default what modules.json says, else false
  std::int64_t batch_size = 32;                   ///< any gives the same bits
  /// Put before each text; default that of prompt_name, else the one that config_sentence_transformers.json has as default_prompt_name, else none.
  std::optional<std::string> prompt = std::nullopt;
  std::optional<std::string> prompt_name = std::nullopt;  ///< one of config_sentence_transformers.json
};

struct ClassifyOptions {
  std::optional<std::int64_t> max_length = std::nullopt;
  bool truncation = true;
  std::int64_t batch_size = 32;
};

struct LabelScore {
  std::string label;
  float score = 0;
};

/// A BERT-family text model from the files that its authors publish: BERT, DistilBERT, RoBERTa, XLM-RoBERTa, MPNet and ModernBERT, with
/// or without a head for sequence classification (transformers' AutoModel; sentence-transformers' SentenceTransformer).
class TextModel {
 public:
  /// A folder with config.json and model.safetensors; where they are there tokenizer.json, tokenizer_config.json, modules.json and what that
  /// names: 1_Pooling/config.json, 2_Dense, and beside config.json sentence_bert_config.json; and then config_sentence_transformers.json. A file
  /// that is there and empty is FORMAT. Weights are float32 in memory whatever they are in the file.
  /// Throws FORMAT, CONFIG, MISMATCH (all missing, unexpected and mis-shaped tensors at once), MEMORY; UNSUPPORTED for other models. A
  /// tokenizer other than WordPiece, or none, is UNSUPPORTED only when texts are to be tokenized: forward() takes token ids.
  static TextModel load(const std::filesystem::path& folder);

  TextModel(TextModel&&) noexcept;
  TextModel& operator=(TextModel&&) noexcept;
  ~TextModel();

  /// max_length defaults to that of sentence_bert_config.json, else of tokenizer_config.json, else to the model's positions, which it
  /// must not exceed: OUT_OF_RANGE. Throws as Tokenizer too.
  Encoding tokenize(const std::vector<std::string>& texts, const TokenizeOptions& options = {}) const;
  Encoding tokenize_pairs(const std::vector<std::pair<std::string, std::string>>& pairs, const TokenizeOptions& options = {}) const;

  /// Of an Encoding only input_ids have to be there: without attention_mask everything is attended to, without token_type_ids they are 0.
  /// Throws SHAPE, MASK, OUT_OF_RANGE for an id without a row, more ids than positions or a layer that is not there, MEMORY.
  TextModelOutput forward(const Encoding& inputs, const TextForwardOptions& options = {}) const;
  /// Everything inside one layer, counted from 0.
  AttentionTrace trace_layer(const Encoding& inputs, std::int64_t layer, Trace names = Trace::all()) const;

  /// (N,E): hidden states pooled over what is no padding, through the checkpoint's Dense where it has one, and scaled to length 1 where the
  /// checkpoint says so (Reimers & Gurevych 2019); E is what comes out of that. Texts are sorted into batches by length. Throws as tokenize and
  /// forward, CONFIG.
  Tensor<2> embed(const std::vector<std::string>& texts, const EmbedOptions& options = {}) const;
  /// Per text all labels by falling score, as transformers' TextClassificationPipeline: softmax of the logits; sigmoid of each where
  /// config.json's problem_type is multi_label_classification or there is one label; the logits themselves where it is regression. A
  /// cross-encoder's activation_fn goes before that.
  /// Throws UNSUPPORTED without a head.
  std::vector<std::vector<LabelScore>> classify(const std::vector<std::string>& texts, const ClassifyOptions& options = {}) const;
  std::vector<std::vector<LabelScore>> classify_pairs(const std::vector<std::pair<std::string, std::string>>& pairs,
                                                      const ClassifyOptions& options = {}) const;

  /// The weights that the model works with, float32, by the names that the file has for them; what it has beside them (position_ids, a
  /// pooler without a head) is not among them. state_dict copies out, load_state_dict copies in, and word_embeddings() sees it at once.
  std::map<std::string, Shape> parameter_shapes() const;
  StateDict state_dict() const;
  /// One of them. Throws OUT_OF_RANGE for a name that is not there.
  AnyTensor get_parameter(const std::string& name) const;
  /// strict: every one must be there and nothing else; otherwise those that are left out keep their numbers. Throws one MISMATCH that
  /// lists all missing, unexpected and mis-shaped names; nothing is changed then.
  void load_state_dict(const StateDict& state, bool strict = true);

  /// The word table: nearest, similarity, analogy. It goes with the model.
  const Embedding& word_embeddings() const;
  std::optional<std::int64_t> token_to_id(const std::string& token) const;
  std::optional<std::string> id_to_token(std::int64_t id) const;

  /// Empty without a head.
  const std::vector<std::string>& labels() const;
  /// Ids that a text is cut to unless the call says otherwise.
  std::int64_t max_length() const;

 private:
  struct Parts;
  explicit TextModel(std::unique_ptr<Parts> parts);

  template <class Text>
  Encoding encode(const std::vector<Text>& texts, std::size_t begin, std::size_t end, const TokenizeOptions& options) const;
  template <class Text, class Run>
  void in_batches(const std::vector<Text>& texts, const TokenizeOptions& options, std::int64_t batch_size, Run run) const;
  template <class Text>
  std::vector<std::vector<LabelScore>> classify_all(const std::vector<Text>& texts, const ClassifyOptions& options) const;

  std::unique_ptr<Parts> parts_;
};

}  // namespace attn
