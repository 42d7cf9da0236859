#if defined(__wasm__)

#include "attn/kernels/kernels.hpp"

namespace attn::kernels {

const KernelTable& table_wasm();

const KernelTable& best() { return table_wasm(); }

}  // namespace attn::kernels

#else

#include "attn/kernels/dispatch.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>
#include <xsimd/xsimd.hpp>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#elif defined(__aarch64__) && defined(__APPLE__)
#include <sys/sysctl.h>
#endif

#include "attn/tensor/error.hpp"

namespace attn::kernels {

#define ATTN_KERNELS(name, ...) const KernelTable& table_##name();
#define ATTN_INT8(name, ...) Int8Kernels int8_##name();
#include "architectures.inc"

namespace {

constinit std::atomic<const KernelTable*> in_use = nullptr;

struct Compiled {
  const KernelTable* table;
  bool runs;  ///< on this machine
};

struct WithInt8 {
  KernelTable table, reproducible;

  WithInt8(const KernelTable& other, const char* architecture, const Int8Kernels& int8) : table(other), reproducible(*other.reproducible) {
    table.reproducible = &reproducible;
    for (KernelTable* const each : {&table, &reproducible}) each->architecture = architecture, each->int8 = int8;
  }
};

#if defined(__aarch64__)
/// Whether the machine has sdot, which xsimd does not detect.
[[maybe_unused]] bool has_dotprod() {
#if defined(__linux__)
  return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
#elif defined(__APPLE__)
  int has = 0;
  std::size_t size = sizeof has;
  return sysctlbyname("hw.optional.arm.FEAT_DotProd", &has, &size, nullptr, 0) == 0 && has != 0;
#elif defined(__ARM_FEATURE_DOTPROD)
  return true;
#else
  return false;
#endif
}
#endif

/// Narrowest first.
std::vector<Compiled> compiled() {
  std::vector<Compiled> all;
  [[maybe_unused]] const auto has = [machine = xsimd::available_architectures()](auto arch) { return machine.has(arch); };
  [[maybe_unused]] const auto runs = [&](const KernelTable& base) {
    return std::find_if(all.begin(), all.end(), [&](const Compiled& each) { return each.table == &base; })->runs;
  };
#define ATTN_KERNELS(name, processor, flags, condition) all.push_back({&table_##name(), condition});
#define ATTN_INT8(name, processor, flags, condition, base)                   \
  static const WithInt8 name##_tables(table_##base(), #name, int8_##name()); \
  all.push_back({&name##_tables.table, runs(table_##base()) && (condition)});
#include "architectures.inc"
  return all;
}

template <class Tables>
std::string names_of(const Tables& tables) {
  std::string names;
  for (const KernelTable* const table : tables) names.append(names.empty() ? "" : ", ").append(table->architecture);
  return names;
}

}  // namespace

std::vector<const KernelTable*> available(std::string_view op) {
  const std::vector<Compiled> all = compiled();
  // An empty value counts as unset, as in other programs.
  const char* const limit = std::getenv("ATTN_MAX_ARCH");
  const bool limited = limit != nullptr && *limit != '\0';
  std::vector<const KernelTable*> tables, every;
  bool known = false;
  for (const auto& [table, runs] : all) {
    every.push_back(table);
    if (runs && !known) tables.push_back(table);
    known = known || (limited && std::string_view(limit) == table->architecture);
  }
  if (limited && !known) detail::fail(ErrorCode::config, op, "ATTN_MAX_ARCH", {"one of ", names_of(every)}, {limit});
  return tables;
}

const KernelTable& chosen(std::string_view op) {
  const KernelTable* const table = in_use.load(std::memory_order_acquire);
  return table != nullptr ? *table : *available(op).back();
}

void pin(std::string_view op, std::string_view architecture) {
  const std::vector<const KernelTable*> tables = available(op);
  const auto named = std::find_if(tables.begin(), tables.end(), [&](const KernelTable* table) { return table->architecture == architecture; });
  if (named == tables.end()) detail::fail(ErrorCode::config, op, "arch", {"one of ", names_of(tables)}, {architecture});
  const KernelTable* before = nullptr;
  if (!in_use.compare_exchange_strong(before, *named) && before != *named)
    detail::fail(ErrorCode::config, op, "arch", {before->architecture}, {architecture}, "The process has chosen it already");
}

const KernelTable& best() {
  const KernelTable* table = in_use.load(std::memory_order_acquire);
  if (table != nullptr) return *table;
  const KernelTable* const widest = available("attn").back();
  // Another thread may have chosen meanwhile.
  return in_use.compare_exchange_strong(table, widest) ? *widest : *table;
}

}  // namespace attn::kernels

#endif
