#include "options.hpp"

#include <algorithm>
#include <cctype>
#include <optional>

namespace command {
namespace {

using Words = std::vector<std::string_view>;

struct Command {
  std::string_view name, takes, about;
  Words options;
  std::string_view needs = {};  ///< required option
  bool only_npm = false;
};

const std::vector<Command>& commands() {
  static const std::vector<Command> all = [] {
    const Words rest = {"out PATH", "weights float32|int8"}, batches = {"max-length N", "batch-size N"};
    const auto with = [&](std::string_view output, bool batched, Words own) {
      Words options = {"jsonl", output};
      options.insert(options.end(), rest.begin(), rest.end());
      if (batched) options.insert(options.end(), batches.begin(), batches.end());
      options.insert(options.end(), own.begin(), own.end());
      return options;
    };
    constexpr std::string_view kTakes = "MODEL [FILE]", kOutput = "output jsonl|text";
    return std::vector<Command>{
        {"convert",
         "FOLDER OUT",
         "Saves the model in FOLDER with other weights in OUT, a new or empty folder.",
         {"weights float32|float16|int8"},
         "weights"},
        {"inspect", "FOLDER", "Describes the model in FOLDER, and whether attn supports it.", {"tensors"}},
        {"embed", kTakes, "Computes the vector of each text.", with("output jsonl|text|npy", true, {})},
        {"classify", kTakes, "Lists the labels of each text by decreasing score.", with(kOutput, true, {"top-k N"})},
        {"tag", kTakes, "Finds named entities in each text, with their labels and offsets.",
         with(kOutput, true, {"stride N>=0", "aggregation none|simple|first|average|max"})},
        {"fill", kTakes, "Lists the most likely tokens for each mask in a text.", with(kOutput, false, {"top-k N"})},
        {"answer", kTakes, "Finds the answers to a question in a context.", with(kOutput, false, {"top-k N", "stride N>=0"})},
        {"rank", kTakes, "Ranks documents by their relevance to a query.", with(kOutput, true, {"top-k N"})},
        {"generate",
         "MODEL TEXT",
         "Continues a text with a language model, token by token.",
         {"json", "weights float32|int8", "max-new-tokens N", "do-sample", "temperature NUMBER>0", "top-k N>=0", "top-p 0<NUMBER<=1",
          "min-p 0<=NUMBER<=1", "repetition-penalty NUMBER>0", "seed N>=0", "stop TEXT"}},
        {"score",
         "MODEL TEXT",
         "Prints how likely a language model finds each token of a text, and its perplexity.",
         {"json", "weights float32|int8"}},
        {"lens",
         "MODEL [TEXT]",
         "Shows what the layers of a language model would predict, and which of its parts make a prediction.",
         {"json", "weights float32|int8", "method logit-lens|logit-attribution|patch-activations|attribution-patching|head-scores", "top-k N",
          "target TOKEN", "contrast TOKEN", "corrupted TEXT", "site residual|head|attention|mlp", "position N>=0",
          "kind previous-token|duplicate-token|induction|first-token"}},
        {"index",
         "FOLDER",
         "Makes a search index of the Markdown, HTML and text files below FOLDER. Only in the npm package.",
         {"model MODEL", "out PATH", "weights float32|int8", "batch-size N", "max-tokens N", "overlap N>=0", "by sentence|paragraph|token",
          "vectors int8|float32"},
         "model",
         true},
        {"search",
         "INDEX QUERY",
         "Finds the passages of an index that are most similar to a query. Only in the npm package.",
         {"model MODEL", "weights float32|int8", "top-k N", "hybrid", "json"},
         "model",
         true},
    };
  }();
  return all;
}

struct About {
  std::string_view name, text;
};
constexpr About kAbouts[] = {
    {"jsonl", "each line is JSON, which is the default if the name of FILE ends in .jsonl or .ndjson"},
    {"output", "format of the results: JSON per line (the default), or columns separated by tabs; for embed also npy, one array of all vectors"},
    {"out", "file for the results, instead of standard output"},
    {"weights", "type of the weights, by default that of the files"},
    {"max-length", "maximum number of tokens of a text; longer texts are truncated"},
    {"batch-size", "number of texts computed at a time, by default 32; it does not affect the results"},
    {"stride", "number of tokens that consecutive windows of an overlong text share"},
    {"aggregation", "how tokens are merged into entities, by default simple"},
    {"top-k", "maximum number of results, for search by default 5; for generate, number of likeliest tokens to draw from, 0 for all"},
    {"json", "prints the result as one JSON object"},
    {"max-new-tokens", "maximum number of new tokens, by default 64"},
    {"do-sample",
     "draws each token by its probability instead of taking the likeliest; --temperature, --top-k, --top-p, --min-p and --seed imply it"},
    {"temperature", "divisor of the logits: less than 1 favours likely tokens"},
    {"top-p", "draws only from the likeliest tokens that together have this probability"},
    {"min-p", "draws only from tokens with at least this share of the largest probability"},
    {"repetition-penalty", "more than 1 makes tokens that occur before less likely, also without --do-sample"},
    {"seed", "the same seed gives the same tokens, by default 0"},
    {"method", "analysis: the prediction of each layer (the default), the parts of a logit, the effect of each activation, or kinds of heads"},
    {"target", "token whose logit is explained, as in the vocabulary, or as a text that is a single token"},
    {"contrast", "token whose logit is subtracted"},
    {"corrupted", "text with as many tokens as TEXT; activations of TEXT replace its own"},
    {"site", "activation that is replaced, by default residual, the input of a layer"},
    {"position", "position of the prediction, counted from 0, by default the last; logit-lens with --json: all"},
    {"kind", "kind of heads, by default all"},
    {"model", "model for embeddings, the same for index and search"},
    {"max-tokens", "maximum number of tokens of a passage, by default 256, or as many as the model reads"},
    {"overlap", "maximum number of tokens that a passage repeats from the end of the passage before it, by default 0"},
    {"by", "where passages end: at sentences (the default) or paragraphs, or after as many words as fit"},
    {"vectors", "type of the vectors in the index, by default int8, a quarter of the size"},
    {"hybrid", "also ranks by the words that a passage shares with the query"},
    {"tensors", "also lists the tensors of the weights: name, type and shape, separated by tabs"},
    {"stop", "text before which the new text ends; may be given more than once"},
};

constexpr std::string_view kFooter =
    "MODEL, and FOLDER of convert and inspect, have config.json, tokenizer.json and model.safetensors, as saved by transformers and "
    "sentence-transformers.\n"
    "MODEL, and FOLDER of inspect, may also be one .gguf file.\n"
    "Exit code: 0 for success, 1 if the model or a line is refused or a file cannot be read or written, 2 for an incorrect call.\n";

std::string_view lines_of(std::string_view command, std::string_view takes) {
  if (command == "answer") return "Each line is a JSON object with the members question and context.";
  if (command == "rank")
    return "Each line is a JSON object with the members query and documents; the results refer to documents by index, counted from 0.";
  if (command == "generate" || command == "score") return "TEXT is one argument, so quote it; - reads it from standard input.";
  if (command == "lens") return "TEXT is one argument; - reads it from standard input. Only head-scores needs none: it then repeats random tokens.";
  if (command == "index")
    return "Reads .md, .markdown, .html, .htm and .txt files in UTF-8. Skips hidden files, links and node_modules. The text below each\n"
           "    heading is a document with the members path, anchor, title and heading.";
  if (command == "search") return "Prints score, place and text of each passage. QUERY is one argument, so quote it; - reads it from standard input.";
  if (takes.starts_with("MODEL")) return "Each line of FILE, or of standard input, is a text, or a JSON object with the member text.";
  return {};
}

const Command* find(std::string_view name) {
  for (const Command& each : commands())
    if (each.name == name) return &each;
  return nullptr;
}

Words split(std::string_view text, char at) {
  Words parts;
  for (std::size_t end; (end = text.find(at)) != std::string_view::npos; text.remove_prefix(end + 1)) parts.push_back(text.substr(0, end));
  parts.push_back(text);
  return parts;
}

std::string join(std::span<const std::string_view> words) {
  std::string all;
  for (const std::string_view each : words) all += (all.empty() ? "" : ", ") + std::string(each);
  return all;
}

std::string head_of(const Command& command) {
  std::string text = "attn " + std::string(command.name) + " " + std::string(command.takes);
  for (const std::string_view option : command.options)
    if (split(option, ' ')[0] == command.needs) text += " --" + std::string(option);
  return text + "\n    " + std::string(command.about) + "\n";
}

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t before = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t here = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, before + (a[i - 1] == b[j - 1] ? 0 : 1)});
      before = here;
    }
  }
  return row[b.size()];
}

std::string plain(std::string_view text) {
  std::string letters;
  for (const char each : text)
    if (each != '-' && each != '_') letters += static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  return letters;
}

std::string lower(std::string_view text) {
  std::string letters(text);
  for (char& each : letters) each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
  return letters;
}

struct Numbers {
  std::string_view wanted, expected;
  bool whole;
  double least, most;
  bool above;  ///< refuses `least` itself
};
constexpr Numbers kNumbers[] = {
    {"N", "a whole number from 1 to 999999", true, 1, 999'999, false},
    {"N>=0", "a whole number from 0 to 999999", true, 0, 999'999, false},
    {"NUMBER>0", "a number above 0", false, 0, 1e9, true},
    {"0<NUMBER<=1", "a number above 0 and at most 1", false, 0, 1, true},
    {"0<=NUMBER<=1", "a number from 0 to 1", false, 0, 1, false},
};

bool are_digits(std::string_view text, std::size_t most) {
  return !text.empty() && text.size() <= most && text.find_first_not_of("0123456789") == std::string::npos;
}

bool is_decimal(std::string_view text) {
  const std::size_t point = text.find('.');
  if (point == std::string::npos) return are_digits(text, 9);
  return (point == 0 || are_digits(text.substr(0, point), 9)) && are_digits(text.substr(point + 1), 9);
}

std::string checked(const std::string& name, std::string_view wanted, const std::string& value) {
  const std::string option = "--" + name;
  const Words choices = split(wanted, '|');
  const auto* const numbers = std::find_if(std::begin(kNumbers), std::end(kNumbers), [&](const Numbers& each) { return each.wanted == wanted; });
  const bool is_number = numbers != std::end(kNumbers);
  const std::string expected = ", expected " + (is_number ? std::string(numbers->expected) : "a " + lower(wanted));
  if (value.empty()) throw Misuse{option + " is missing" + (choices.size() > 1 ? ", expected one of " + join(choices) : expected)};
  if (choices.size() > 1 && std::find(choices.begin(), choices.end(), value) == choices.end())
    throw Misuse{option + " is " + value + expected_one_of(value, choices)};
  if (!is_number) return value;
  const bool is_read = numbers->whole ? are_digits(value, 6) : is_decimal(value);
  const double number = is_read ? std::stod(value) : -1;
  if (number < numbers->least || number > numbers->most || (numbers->above && number == numbers->least))
    throw Misuse{option + " is " + value + expected};
  return value;
}

bool takes_no_value(std::string_view name) {
  return std::any_of(commands().begin(), commands().end(),
                     [&](const Command& each) { return std::find(each.options.begin(), each.options.end(), name) != each.options.end(); });
}

struct Given {
  std::string name, value;
};

}  // namespace

std::string expected_one_of(std::string_view name, std::span<const std::string_view> known) {
  const std::string wanted = plain(name).substr(0, 64);
  std::size_t least = std::max<std::size_t>(2, wanted.size() / 3) + 1;
  std::string_view best;
  for (const std::string_view each : known)
    if (const std::size_t edits = distance(wanted, plain(each)); edits < least) {
      least = edits;
      best = each;
    }
  // Parts of the name are also near.
  for (const std::string_view each : known)
    if (best.empty() && wanted.find(plain(each)) != std::string::npos) best = each;
  return ", expected one of " + join(known) + (best.empty() ? "" : ". Did you mean " + std::string(best) + "?");
}

std::string_view Call::text(std::string_view name, std::string_view otherwise) const {
  const auto at = options.find(name);
  return at == options.end() ? otherwise : at->second;
}

Help help_of(std::string_view name) {
  std::string text;
  const Command* const command = find(name);
  if (command == nullptr) {
    for (const Command& each : commands()) text += head_of(each);
    return {text + "attn COMMAND --help\n    Describes the arguments of a command.\n\n" + std::string(kFooter)};
  }
  text = head_of(*command);
  if (const std::string_view lines = lines_of(name, command->takes); !lines.empty()) text += "    " + std::string(lines) + "\n";
  text += "\n";
  for (const std::string_view option : command->options) {
    const auto* const about =
        std::find_if(std::begin(kAbouts), std::end(kAbouts), [&](const About& each) { return each.name == split(option, ' ')[0]; });
    text += "  --" + std::string(option) + "\n        " + std::string(about->text) + "\n";
  }
  return {text + (command->options.empty() ? "" : "\n") + std::string(kFooter)};
}

std::variant<Call, Help, Version> read_call(std::span<char* const> arguments) {
  Words known = {"help", "version"};
  for (const About& each : kAbouts) known.push_back(each.name);
  Call call;
  std::vector<std::string> words;
  std::vector<Given> given;
  bool help = false, version = false, ended = false;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string argument = arguments[i];
    if (argument == "--" && !ended) {
      ended = true;
      continue;
    }
    if (ended || !argument.starts_with('-') || argument == "-") {
      words.push_back(argument);
      continue;
    }
    const std::size_t equals = std::min(argument.find('='), argument.size());
    const std::size_t first = std::min(argument.find_first_not_of('-'), equals);
    const std::string name = argument == "-h" ? "help" : argument.substr(first, equals - first);
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw Misuse{"option " + argument.substr(0, equals) + " is unknown" + expected_one_of(name, known)};
    if (name == "help")
      help = true;
    else if (name == "version")
      version = true;
    else if (equals < argument.size())
      given.push_back({name, argument.substr(equals + 1)});
    else
      given.push_back({name, !takes_no_value(name) && i + 1 < arguments.size() ? arguments[++i] : ""});
  }
  if (version) return Version{};
  if (words.empty() || (help && find(words.front()) != nullptr)) {
    Help text = help_of(words.empty() ? "" : words.front());
    text.wrong = !help;
    return text;
  }
  call.command = words.front();
  const Command* const command = find(call.command);
  if (command == nullptr) {
    Words names;
    for (const Command& each : commands()) names.push_back(each.name);
    throw Misuse{"command is " + call.command + expected_one_of(call.command, names)};
  }
  call.paths.assign(words.begin() + 1, words.end());
  const Words names = split(command->takes, ' ');
  const auto least =
      static_cast<std::size_t>(std::count_if(names.begin(), names.end(), [](std::string_view each) { return !each.starts_with('['); }));
  if (call.paths.size() < least || call.paths.size() > names.size())
    throw Misuse{call.command + " has " + std::to_string(call.paths.size()) + " arguments, expected " + std::string(command->takes)};
  for (std::size_t i = 0; i < call.paths.size(); ++i)
    if (call.paths[i].empty())
      throw Misuse{(names[i].starts_with('[') ? std::string(names[i].substr(1, names[i].size() - 2)) : std::string(names[i])) + " is empty"};
  const auto own = [&](std::string_view name) -> std::optional<Words> {
    for (const std::string_view option : command->options)
      if (Words parts = split(option, ' '); parts[0] == name) return parts;
    return std::nullopt;
  };
  for (const auto& [name, value] : given) {
    const std::optional<Words> parts = own(name);
    if (!parts) throw Misuse{call.command + " takes no --" + name};
    call.options[name] = parts->size() > 1 ? checked(name, (*parts)[1], value) : "";
    if (name == "stop") call.stops.push_back(value);
  }
  if (const std::string needed(command->needs); !needed.empty() && !call.has(needed)) checked(needed, (*own(needed))[1], "");
  if (command->only_npm) throw Misuse{call.command + " is only in the npm package. Use npx attn " + call.command + "."};
  // "-" is the default: standard input or output.
  if (names.back() == "[FILE]" && call.paths.size() == names.size() && call.paths.back() == "-") call.paths.pop_back();
  if (call.text("out") == "-") call.options.erase("out");
  return call;
}

}  // namespace command
