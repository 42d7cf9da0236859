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

/// PyTorch's float64 results in float32, and its float32 errors.
struct GoldenFile {
  std::map<std::string, Array> tensors;
  nlohmann::json header;  ///< the library discards metadata
  nlohmann::json metadata;
};

GoldenFile read_golden(const std::filesystem::path& path);

class GoldenCase {
 public:
  GoldenCase(const GoldenFile& file, const nlohmann::json& entry) : file_(&file), entry_(&entry) {}

  std::string name() const { return entry_->at("name"); }
  std::string op() const { return entry_->at("op"); }
  const nlohmann::json& entry() const { return *entry_; }
  Array tensor(const std::string& what) const;
  bool lists(const char* list, const std::string& what) const;
  /// Throws for any other name, so that none is ignored.
  void check_names(const std::set<std::string>& entries, const std::set<std::string>& options, const std::set<std::string>& module = {}) const;
  std::map<std::string, Array> state() const;
  template <class T>
  T option(const char* key, T otherwise) const {
    return entry_->at("options").value(key, otherwise);
  }

  AttentionCase call() const;
  AttentionCase inputs() const;
  MultiHeadAttentionOptions module() const;
  TransformerClassifierOptions encoder() const;
  EncoderForwardOptions encoder_call() const;
  EmbeddingOptions embedding(const nlohmann::json& given) const;

  std::string difference(const std::string& what, Array got) const;

 private:
  std::optional<MaskInput> mask(const char* key) const;

  const GoldenFile* file_;
  const nlohmann::json* entry_;
};

TraceName trace_name(const std::string& name);

/// 2 · torch's float32 error + 1e-6, times the largest value if above 1.
double golden_tolerance(double torch_error, const Array& expected);

}  // namespace attn::test
