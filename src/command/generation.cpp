#include "generation.hpp"

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <stdexcept>

#include "attn/core.hpp"
#include "attn/io/json_text.hpp"
#include "printed.hpp"
#include "written.hpp"

namespace command {

std::string text_of(const Call& call) {
  std::string text = call.paths[1], ignored;
  if (text == "-") {
    text.clear();
    // An istreambuf_iterator would throw with the C++ library's message.
    errno = 0;
    for (char piece[4096]; std::cin.read(piece, sizeof piece), std::cin.gcount() > 0;)
      text.append(piece, static_cast<std::size_t>(std::cin.gcount()));
    if (std::cin.bad()) fail_by_errno("reading standard input");
    if (text.ends_with('\n')) text.pop_back();
    if (text.ends_with('\r')) text.pop_back();
  }
  if (text.empty()) throw Misuse{"TEXT is empty"};
  if (!attn::detail::append_json_string(ignored, text)) throw std::runtime_error("TEXT is not UTF-8");
  return text;
}

attn::TextModel load_model(const Call& call) {
  attn::TextModelOptions options;
  if (call.has("weights")) options.weights = call.text("weights") == "int8" ? attn::Weights::int8 : attn::Weights::float32;
  return attn::TextModel::load(call.paths[0], options);
}

namespace {

double real(const Call& call, std::string_view name, double otherwise) {
  return call.has(name) ? std::stod(std::string(call.text(name))) : otherwise;
}

std::int64_t whole(const Call& call, std::string_view name, std::int64_t otherwise) {
  return call.has(name) ? std::stoll(std::string(call.text(name))) : otherwise;
}

attn::GenerateOptions options_of(const Call& call) {
  attn::GenerateOptions options;
  options.max_new_tokens = whole(call, "max-new-tokens", options.max_new_tokens);
  options.stop = call.stops;
  attn::SamplingOptions& sampling = options.sampling;
  for (const std::string_view name : {"do-sample", "temperature", "top-k", "top-p", "min-p", "seed"}) sampling.do_sample |= call.has(name);
  sampling.temperature = real(call, "temperature", sampling.temperature);
  sampling.top_k = whole(call, "top-k", sampling.top_k);
  sampling.top_p = real(call, "top-p", sampling.top_p);
  sampling.min_p = real(call, "min-p", sampling.min_p);
  sampling.repetition_penalty = real(call, "repetition-penalty", sampling.repetition_penalty);
  sampling.seed = static_cast<std::uint64_t>(whole(call, "seed", 0));
  return options;
}

/// Holds back an end that may start a stop string.
class Stream {
 public:
  explicit Stream(const std::vector<std::string>& stops) : stops_(stops) {}

  void add(const std::string& text) {
    text_ += text;
    std::size_t end = text_.size();
    for (const std::string& stop : stops_) {
      end = std::min(end, text_.find(stop));
      for (std::size_t size = std::min(stop.size(), text_.size()); size > 0; --size)
        if (text_.ends_with(std::string_view(stop).substr(0, size))) end = std::min(end, text_.size() - size);
    }
    write(text_, end);
  }
  void end(const std::string& text) {
    write(text, text.size());
    std::cout << '\n';
  }

 private:
  void write(const std::string& text, std::size_t end) {
    if (end <= written_) return;
    for (std::size_t at = written_, next; at < end; at = next + 1) {
      next = std::min(text.find('\n', at), end);
      std::cout << printable(std::string_view(text).substr(at, next - at)) << (next < end ? "\n" : "");
    }
    written_ = end;
    end_output();
  }

  const std::vector<std::string>& stops_;
  std::string text_;
  std::size_t written_ = 0;
};

void generate(const attn::TextModel& model, const std::string& text, const Call& call) {
  attn::GenerateOptions options = options_of(call);
  Stream stream(call.stops);
  const bool is_json = call.has("json");
  if (!is_json)
    options.on_token = [&](const attn::GeneratedToken& token) {
      stream.add(token.text);
      return true;
    };
  const attn::GeneratedText made = model.generate(text, options);
  if (!is_json) return stream.end(made.text);
  print_line(R"({"text":)" + json_string(made.text) + R"(,"ids":)" + array(made.ids, [](std::int64_t id) { return std::to_string(id); }) +
             R"(,"tokens":)" + array(made.tokens, json_string) + R"(,"finish_reason":)" +
             json_string(attn::kFinishReasonNames[static_cast<std::size_t>(made.finish_reason)]) + "}");
}

void score(const attn::TextModel& model, const std::string& text, const Call& call) {
  const attn::ScoredText scored = model.score_tokens(text);
  double total = 0;
  for (const attn::ScoredToken& each : scored.tokens) total += each.log_probability.value_or(0);
  const auto single = [](double value) { return number(static_cast<float>(value)); };
  if (!call.has("json")) {
    for (const attn::ScoredToken& each : scored.tokens)
      print_line((each.log_probability ? single(*each.log_probability) : "-") + "\t" + column(each.token));
    print_line(single(total) + "\ttotal");
    return print_line(single(scored.perplexity) + "\tperplexity");
  }
  const auto json = [&](const attn::ScoredToken& each) {
    const auto or_null = [&](const std::optional<double>& value) { return value ? single(*value) : "null"; };
    return R"({"id":)" + std::to_string(each.id) + R"(,"token":)" + json_string(each.token) + R"(,"log_probability":)" +
           or_null(each.log_probability) + R"(,"rank":)" + (each.rank ? std::to_string(*each.rank) : "null") + R"(,"entropy":)" +
           or_null(each.entropy) + "}";
  };
  print_line(R"({"tokens":)" + array(scored.tokens, json) + R"(,"log_probability":)" + single(total) + R"(,"perplexity":)" +
             single(scored.perplexity) + "}");
}

}  // namespace

void run_generation(const Call& call) {
  const std::string text = text_of(call);
  const attn::TextModel model = load_model(call);
  if (model.task() != attn::Task::text_generation)
    throw std::runtime_error("MODEL is for " + std::string(attn::name_of(model.task())) + ", expected one for text-generation");
  (call.command == "generate" ? generate : score)(model, text, call);
}

}  // namespace command
