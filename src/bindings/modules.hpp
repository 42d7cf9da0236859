#pragma once

#include <vector>

#include "attn/train/optimizer.hpp"
#include "signature.hpp"

namespace attn::bindings {

class ModuleList {
 public:
  void add(ModuleRef module) { modules_.push_back(std::move(module)); }
  const std::vector<ModuleRef>& modules() const { return modules_; }
  Address address() const { return reinterpret_cast<Address>(this); }

 private:
  std::vector<ModuleRef> modules_;
};

/// JavaScript has matched the names, because patterns are its regular expressions.
class ParameterGroups {
 public:
  void add(Address frame);
  const std::vector<ParameterGroup>& groups() const { return groups_; }
  Address address() const { return reinterpret_cast<Address>(this); }

 private:
  std::vector<ParameterGroup> groups_;
};

inline std::vector<ModuleRef> modules(Arguments& arguments, const char* name) {
  const auto* list = arguments.object<ModuleList>(name, "modules", true);
  return list != nullptr ? list->modules() : std::vector<ModuleRef>{};
}

}  // namespace attn::bindings
