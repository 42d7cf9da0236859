#include "texts.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>
#include <stdexcept>
#include <system_error>

#include <sys/stat.h>
#include <unistd.h>

#include "attn/core.hpp"
#include "attn/io/json.hpp"
#include "attn/io/json_text.hpp"
#include "output.hpp"
#include "printed.hpp"
#include "written.hpp"

namespace command {
namespace {

namespace fs = std::filesystem;
using attn::TextModel;
using attn::detail::Json;

struct Query {
  std::string text, context;
  std::vector<std::string> documents;
};

/// Byte to character offsets. Increasing offsets take one pass over the text.
class Places {
 public:
  explicit Places(std::string_view text) : text_(text) {}

  std::string members(std::int64_t start, std::int64_t end) {
    const std::string first = characters_to(start);
    return R"(,"start":)" + first + R"(,"end":)" + characters_to(end) + "}";
  }

 private:
  std::string characters_to(std::int64_t end) {
    if (end < at_) at_ = characters_ = 0;
    characters_ += std::count_if(text_.begin() + at_, text_.begin() + end, [](char each) { return (each & 0xC0) != 0x80; });
    at_ = end;
    return std::to_string(characters_);
  }

  std::string_view text_;
  std::int64_t at_ = 0, characters_ = 0;
};

std::optional<std::int64_t> whole(const Call& call, std::string_view name) {
  return call.has(name) ? std::optional<std::int64_t>(std::stoll(std::string(call.text(name)))) : std::nullopt;
}

std::vector<std::string> texts_of(const std::vector<Query>& queries) {
  std::vector<std::string> texts;
  for (const Query& query : queries) texts.push_back(query.text);
  return texts;
}

template <class Options>
Options batched(const Call& call) {
  Options options;
  options.max_length = whole(call, "max-length");
  options.batch_size = whole(call, "batch-size").value_or(options.batch_size);
  return options;
}

bool is_text(const Call& call) { return call.text("output") == "text"; }

std::vector<Result> embed(const TextModel& model, const std::vector<Query>& queries, const Call& call) {
  const auto options = batched<attn::EmbedOptions>(call);
  const auto width = static_cast<std::size_t>(model.check_embed(static_cast<std::int64_t>(queries.size()), options)[1]);
  std::vector<float> all(queries.size() * width);
  model.embed(texts_of(queries), options, all.data());
  std::vector<Result> results;
  for (std::size_t i = 0; i < queries.size(); ++i) {
    std::vector<float> row(all.begin() + static_cast<std::ptrdiff_t>(i * width), all.begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
    if (call.text("output") == "npy")
      results.push_back({"", std::move(row)});
    else
      results.push_back({is_text(call) ? joined(row, "\t", number) : array(row, number), {}});
  }
  return results;
}

std::vector<Result> classify(const TextModel& model, const std::vector<Query>& queries, const Call& call) {
  std::vector<Result> results;
  for (auto& labels : model.classify(texts_of(queries), batched<attn::ClassifyOptions>(call))) {
    if (const auto most = whole(call, "top-k"); most && *most < static_cast<std::int64_t>(labels.size()))
      labels.resize(static_cast<std::size_t>(*most));
    const auto words = [](const attn::LabelScore& each) { return column(each.label) + "\t" + number(each.score); };
    const auto json = [](const attn::LabelScore& each) {
      return R"({"label":)" + json_string(each.label) + R"(,"score":)" + number(each.score) + "}";
    };
    results.push_back({is_text(call) ? joined(labels, "\t", words) : array(labels, json), {}});
  }
  return results;
}

std::vector<Result> tag(const TextModel& model, const std::vector<Query>& queries, const Call& call) {
  auto options = batched<attn::ClassifyTokensOptions>(call);
  options.stride = whole(call, "stride");
  const auto* const kind = std::find(attn::kAggregationNames.begin(), attn::kAggregationNames.end(), call.text("aggregation", "simple"));
  options.aggregation = static_cast<attn::Aggregation>(kind - attn::kAggregationNames.begin());
  std::vector<Result> results;
  for (const auto& entities : model.classify_tokens(texts_of(queries), options)) {
    Places places(queries[results.size()].text);
    const auto words = [](const attn::Entity& each) { return column(each.label) + "\t" + column(each.text); };
    const auto json = [&](const attn::Entity& each) {
      return R"({"label":)" + json_string(each.label) + R"(,"score":)" + number(each.score) + R"(,"text":)" + json_string(each.text) +
             places.members(each.start, each.end);
    };
    results.push_back({is_text(call) ? joined(entities, "\t", words) : array(entities, json), {}});
  }
  return results;
}

std::vector<Result> fill(const TextModel& model, const std::vector<Query>& queries, const Call& call) {
  attn::FillMaskOptions options;
  options.top_k = whole(call, "top-k").value_or(options.top_k);
  const auto masks = model.fill_mask(queries.front().text, options);
  const auto json = [](const attn::FilledMask& each) {
    return R"({"token":)" + json_string(each.token) + R"(,"id":)" + std::to_string(each.id) + R"(,"score":)" + number(each.score) + R"(,"text":)" +
           json_string(each.text) + "}";
  };
  const auto words = [](const auto& tokens) { return joined(tokens, "\t", [](const attn::FilledMask& each) { return column(each.token); }); };
  return {{is_text(call) ? joined(masks, "\t", words) : array(masks, [&](const auto& tokens) { return array(tokens, json); }), {}}};
}

std::vector<Result> answer(const TextModel& model, const std::vector<Query>& queries, const Call& call) {
  attn::AnswerOptions options;
  options.top_k = whole(call, "top-k").value_or(options.top_k);
  options.stride = whole(call, "stride");
  const auto& [question, context, documents] = queries.front();
  const auto answers = model.answer(question, context, options);
  const auto json = [places = Places(context)](const attn::Answer& each) mutable {
    return R"({"text":)" + json_string(each.text) + R"(,"score":)" + number(each.score) + places.members(each.start, each.end);
  };
  return {{is_text(call) ? joined(answers, "\t", [](const attn::Answer& each) { return column(each.text); }) : array(answers, json), {}}};
}

std::vector<Result> rank(const TextModel& model, const std::vector<Query>& queries, const Call& call) {
  auto options = batched<attn::RankOptions>(call);
  options.top_k = whole(call, "top-k");
  const auto documents = model.rank(queries.front().text, queries.front().documents, options);
  const auto words = [](const attn::RankedDocument& each) { return std::to_string(each.index); };
  const auto json = [](const attn::RankedDocument& each) {
    return R"({"index":)" + std::to_string(each.index) + R"(,"score":)" + number(each.score) + "}";
  };
  return {{is_text(call) ? joined(documents, "\t", words) : array(documents, json), {}}};
}

struct Kind {
  std::string_view name;
  std::vector<Result> (*run)(const TextModel&, const std::vector<Query>&, const Call&);
  std::optional<attn::Task> task;
  bool batched;
};
constexpr Kind kKinds[] = {
    {"embed", embed, std::nullopt, true},
    {"classify", classify, attn::Task::text_classification, true},
    {"tag", tag, attn::Task::token_classification, true},
    {"fill", fill, attn::Task::fill_mask, false},
    {"answer", answer, attn::Task::question_answering, false},
    {"rank", rank, attn::Task::text_classification, false},
};

struct BadLine {
  std::string what;
};

std::string string_of(const Json& object, std::string_view name) {
  const Json* const value = object.find(name);
  if (value == nullptr || value->string() == nullptr) throw BadLine{std::string(name) + " is " + (value == nullptr ? "missing" : "not a string")};
  return *value->string();
}

std::string with_whole_pairs(std::string json) {
  const auto code_at = [&](std::size_t at) {
    unsigned code = 0;
    if (json.size() < at + 6 || json[at] != '\\' || json[at + 1] != 'u') return code;
    const char* const end = json.data() + at + 6;
    return std::from_chars(end - 4, end, code, 16).ptr == end ? code : 0;
  };
  for (std::size_t at = json.find('\\'); at != std::string::npos; at = json.find('\\', at)) {
    const unsigned code = code_at(at), kind = code >> 10;
    if (kind == 0x36 && code_at(at + 6) >> 10 == 0x37) {
      at += 12;
      continue;
    }
    if (kind == 0x36 || kind == 0x37) json.replace(at + 2, 4, "fffd");
    at += code != 0 ? 6 : 2;
  }
  return json;
}

Json json_of(const std::string& line) {
  const auto parse = [](const std::string& text) {
    return attn::detail::parse_json("line", {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()},
                                    std::numeric_limits<std::size_t>::max());
  };
  try {
    return parse(line);
  } catch (const attn::Error&) {
  }
  try {
    parse(with_whole_pairs(line));
  } catch (const attn::Error&) {
    throw BadLine{"is not JSON"};
  }
  throw BadLine{"has half a surrogate pair, expected whole characters"};
}

Query query_of(std::string_view command, std::string line, bool is_first, bool is_json) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  std::string none;
  if (!attn::detail::append_json_string(none, line)) throw BadLine{"is not UTF-8"};
  if (is_first && line.starts_with(kMark)) line.erase(0, kMark.size());
  if (line.ends_with('\r')) line.pop_back();
  if (!is_json) return {std::move(line), "", {}};
  const Json value = json_of(line);
  if (value.object() == nullptr) throw BadLine{"is not a JSON object"};
  if (command == "answer") {
    std::string question = string_of(value, "question");
    return {std::move(question), string_of(value, "context"), {}};
  }
  if (command != "rank") return {string_of(value, "text"), "", {}};
  Query query{string_of(value, "query"), "", {}};
  const Json* const documents = value.find("documents");
  if (documents == nullptr || documents->array() == nullptr) throw BadLine{"documents is not a list of strings"};
  for (const Json& each : *documents->array()) {
    if (each.string() == nullptr) throw BadLine{"documents is not a list of strings"};
    query.documents.push_back(*each.string());
  }
  return query;
}

class Progress {
 public:
  Progress(std::optional<std::uintmax_t> size, bool shown) : size_(size), shown_(shown) {}

  void report(std::size_t lines, std::size_t bytes) {
    const auto now = std::chrono::steady_clock::now();
    if (!shown_ || now < next_) return;
    next_ = now + std::chrono::milliseconds(100);
    std::string bar;
    if (size_.value_or(0) > 0) {
      const double share = std::min(static_cast<double>(bytes) / static_cast<double>(*size_), 1.0);
      std::string filled(static_cast<std::size_t>(share * 30), '#');
      filled.resize(30, '-');
      bar = "[" + filled + "] " + std::to_string(static_cast<int>(share * 100)) + " %, ";
    }
    std::cerr << '\r' << bar << lines << " lines" << std::flush;
  }
  ~Progress() {
    if (shown_) std::cerr << "\r\x1b[K";
  }

 private:
  std::optional<std::uintmax_t> size_;
  bool shown_;
  std::chrono::steady_clock::time_point next_;
};

/// Batches sorted by length together; fewer if texts are long.
constexpr std::int64_t kBatchesAtATime = 16;
constexpr std::size_t kMostBytes = 4 << 20;

bool reads_json(const Call& call, const Kind& kind) {
  std::string name = call.paths.size() > 1 ? call.paths[1] : "";
  for (char& letter : name) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return kind.name == "answer" || kind.name == "rank" || call.has("jsonl") || name.ends_with(".jsonl") || name.ends_with(".ndjson");
}

void run_lines(const TextModel& model, const Call& call, const Kind& kind, std::istream& input, Output& output, Progress& progress) {
  const bool is_json = reads_json(call, kind);
  const auto at_once = static_cast<std::size_t>(kind.batched ? kBatchesAtATime * whole(call, "batch-size").value_or(32) : 1);
  std::vector<Query> waiting;
  std::size_t count = 0, first = 0, last = 0, bytes = 0, waiting_bytes = 0;
  const auto flush = [&] {
    if (waiting.empty()) return;
    std::vector<Result> results;
    try {
      results = kind.run(model, waiting, call);
    } catch (const attn::Error& error) {
      const std::string where = (first == last ? "line " : "lines " + std::to_string(first) + " to ") + std::to_string(last);
      throw std::runtime_error(where + ": " + std::string(to_string(error.code())) + ": " + error.what());
    }
    output.add(results);
    waiting.clear();
    waiting_bytes = 0;
    progress.report(count, bytes);
  };
  for (std::string line; std::getline(input, line);) {
    const std::size_t size = line.size();
    bytes += size + 1;
    ++count;
    if (is_json && line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      waiting.push_back(query_of(kind.name, std::move(line), count == 1, is_json));
    } catch (const BadLine& bad) {
      flush();
      throw std::runtime_error("line " + std::to_string(count) + ": " + bad.what);
    }
    first = waiting.size() == 1 ? count : first;
    last = count;
    waiting_bytes += size;
    if (waiting.size() >= at_once || waiting_bytes >= kMostBytes) flush();
  }
  if (input.bad()) fail_by_errno("reading");
  flush();
}

void check_task(const TextModel& model, const Kind& kind) {
  const auto name = [](attn::Task task) { return std::string(attn::kTaskNames[static_cast<std::size_t>(task)]); };
  if (kind.task && model.task() != *kind.task)
    throw std::runtime_error("MODEL is for " + name(model.task()) + ", expected one for " + name(*kind.task));
  if (const std::size_t labels = model.labels().size(); kind.name == "rank" && labels != 1)
    throw std::runtime_error("MODEL has " + std::to_string(labels) + " labels, expected one, as a cross-encoder has");
}

/// Whether both paths lead to one file; null is standard input.
bool is_same_file(const std::string& path, const std::string* other) {
  struct stat one{}, two{};
  if (stat(path.c_str(), &one) != 0 || (other != nullptr ? stat(other->c_str(), &two) : fstat(STDIN_FILENO, &two)) != 0) return false;
  return S_ISREG(one.st_mode) && one.st_dev == two.st_dev && one.st_ino == two.st_ino;
}

}  // namespace

void run_texts(const Call& call) {
  const auto* const kind = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const Kind& each) { return each.name == call.command; });
  const bool npy = call.text("output") == "npy";
  const std::optional<std::string> out = call.has("out") ? std::optional<std::string>(call.text("out")) : std::nullopt;
  if (npy && !out && isatty(STDOUT_FILENO) != 0) throw Misuse{"standard output is a terminal, expected a file for --output npy. Use --out PATH."};
  if (out && is_same_file(*out, call.paths.size() > 1 ? &call.paths[1] : nullptr))
    throw Misuse{"--out is " + *out + ", which is the input, expected another file"};
  std::ifstream file;
  std::optional<std::uintmax_t> size;
  if (call.paths.size() > 1) {
    if (fs::is_directory(call.paths[1])) throw std::system_error(EISDIR, std::generic_category(), call.paths[1]);
    file.open(call.paths[1], std::ios::binary);
    if (!file) fail_by_errno(call.paths[1]);
    std::error_code none;
    if (const std::uintmax_t bytes = fs::file_size(call.paths[1], none); !none) size = bytes;
  }
  attn::TextModelOptions options;
  if (call.has("weights")) options.weights = call.text("weights") == "int8" ? attn::Weights::int8 : attn::Weights::float32;
  const TextModel model = TextModel::load(call.paths[0], options);
  check_task(model, *kind);
  Output output(out, npy ? std::optional<std::int64_t>(model.check_embed(0, {})[1]) : std::nullopt);
  Progress progress(size, isatty(STDERR_FILENO) != 0 && (out || isatty(STDOUT_FILENO) == 0));
  try {
    run_lines(model, call, *kind, file.is_open() ? file : std::cin, output, progress);
  } catch (...) {
    if (output.good()) output.end();
    throw;
  }
  output.end();
}

}  // namespace command
