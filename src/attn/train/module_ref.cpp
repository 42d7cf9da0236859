#include "attn/train/module_ref.hpp"

namespace attn::detail {

void check_modules(std::string_view op, const std::vector<ModuleRef>& modules) {
  if (modules.empty()) fail(ErrorCode::argument, op, "modules", {"at least one module"}, {"empty"});
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const std::string name = text({"modules[", i, "]"});
    if (!modules[i].is_there()) fail(ErrorCode::argument, op, name, {"a module that is still in its place"}, {"destroyed or moved elsewhere"});
    for (std::size_t before = 0; before < i; ++before)
      if (modules[i].is_same(modules[before])) fail(ErrorCode::argument, op, name, {"another module"}, {"modules[", before, "] again"});
    check_float32(op, name, modules[i].is_quantized());
  }
}

}  // namespace attn::detail
