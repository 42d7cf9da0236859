#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "attn/attn.hpp"
#include "support/array.hpp"
#include "support/attention_case.hpp"
#include "support/testdata.hpp"

namespace attn::test {

std::vector<std::uint8_t> bytes_of(const std::filesystem::path& path);

/// A golden file: what PyTorch gave in float64, rounded to float32, and how far its float32 was from that.
struct GoldenFile {
  std::map<std::string, Array> tensors;  ///< read by the library
  nlohmann::json header;                 ///< read here: the library keeps no metadata
  nlohmann::json metadata;               ///< "__metadata__" of the header
};

GoldenFile read_golden(const std::filesystem::path& path);

/// One case of a golden file; entries as testdata/make/goldens describes them.
class GoldenCase {
 public:
  GoldenCase(const GoldenFile& file, const nlohmann::json& entry) : file_(&file), entry_(&entry) {}

  std::string name() const { return entry_->at("name"); }
  std::string op() const { return entry_->at("op"); }
  const nlohmann::json& entry() const { return *entry_; }
  /// A tensor of the case, e.g. "query" or "state.in_proj_weight": stored, or made from its seed.
  Array tensor(const std::string& what) const;
  /// Whether the list "inputs" or "state" has that name.
  bool lists(const char* list, const std::string& what) const;
  /// Throws where the case, its options or its module has a name that is not among these: nothing may be passed over.
  void check_names(const std::set<std::string>& entries, const std::set<std::string>& options, const std::set<std::string>& module = {}) const;
  /// The state by torch's names.
  std::map<std::string, Array> state() const;
  /// An option of the call by the contract's name.
  template <class T>
  T option(const char* key, T otherwise) const {
    return entry_->at("options").value(key, otherwise);
  }

  /// Masks and options that a call of attention takes, without its inputs.
  AttentionCase call() const;
  /// The same with query, key and value.
  AttentionCase inputs() const;
  MultiHeadAttentionOptions module() const;
  /// Options of an encoder's constructor: a layer and a stack take their part of a classifier's.
  TransformerClassifierOptions encoder() const;
  /// Options of an encoder's forward.
  EncoderForwardOptions encoder_call() const;
  EmbeddingOptions embedding(const nlohmann::json& given) const;

  /// What is wrong with a result, empty when it is as expected. `what` is output, weights or a trace.
  std::string difference(const std::string& what, Array got) const;

 private:
  std::optional<MaskInput> mask(const char* key) const;

  const GoldenFile* file_;
  const nlohmann::json* entry_;
};

/// Throws where there is none of that name.
TraceName trace_name(const std::string& name);

/// What a result may be away from a golden value: twice the error of torch's own float32 and 1e-6, both times the
/// largest value where that is above 1.
double golden_tolerance(double torch_error, const Array& expected);

}  // namespace attn::test
