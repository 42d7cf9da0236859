#include "attn/layers/state_dict.hpp"

#include <vector>

namespace attn::detail {
namespace {

std::string join(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

void check_state_dict(std::string_view op, const std::map<std::string, Shape>& expected, const StateDict& state, bool strict) {
  std::vector<std::string> missing, unexpected, mis_shaped;
  for (const auto& [name, shape] : expected) {
    const auto found = state.find(name);
    if (found == state.end()) {
      if (strict) missing.push_back(name);
    } else if (const Shape got = to_shape(found->second.shape()); got != shape) {
      mis_shaped.push_back(text({name, " has shape ", got, ", expected ", shape}));
    }
  }
  if (strict)
    for (const auto& [name, tensor] : state)
      if (!expected.contains(name)) unexpected.push_back(name);
  if (missing.empty() && unexpected.empty() && mis_shaped.empty()) return;

  std::string message = text({op, ": state does not fit"});
  const auto list = [&](const char* title, const std::vector<std::string>& names) {
    if (!names.empty()) message += text({"; ", title, ": ", join(names)});
  };
  list("missing", missing);
  list("unexpected", unexpected);
  list("mis-shaped", mis_shaped);
  throw Error(
      ErrorCode::mismatch, message,
      {{"op", std::string(op)}, {"argument", std::string("state")}, {"missing", missing}, {"unexpected", unexpected}, {"misShaped", mis_shaped}});
}

const float* find_data(const StateDict& state, const std::string& name) {
  const auto found = state.find(name);
  return found == state.end() ? nullptr : found->second.data();
}

}  // namespace attn::detail
