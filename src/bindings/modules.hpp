#pragma once

#include <vector>

#include "attn/train/optimizer.hpp"
#include "signature.hpp"

// Modules, and groups of their parameters, on their way in.
namespace attn::bindings {

/// JavaScript makes it for one call and adds the modules one by one.
class ModuleList {
 public:
  void add(ModuleRef module) { modules_.push_back(std::move(module)); }
  const std::vector<ModuleRef>& modules() const { return modules_; }
  Address address() const { return reinterpret_cast<Address>(this); }

 private:
  std::vector<ModuleRef> modules_;
};

/// The same for groups. Which names match was found out in JavaScript, by its regular expressions.
class ParameterGroups {
 public:
  /// The frame holds the options and the names, one a line.
  void add(Address frame);
  const std::vector<ParameterGroup>& groups() const { return groups_; }
  Address address() const { return reinterpret_cast<Address>(this); }

 private:
  std::vector<ParameterGroup> groups_;
};

/// The argument of that name; empty when a signature is written.
inline std::vector<ModuleRef> modules(Arguments& arguments, const char* name) {
  const auto* list = arguments.object<ModuleList>(name, "modules", true);
  return list != nullptr ? list->modules() : std::vector<ModuleRef>{};
}

}  // namespace attn::bindings
