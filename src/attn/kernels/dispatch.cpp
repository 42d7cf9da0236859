#if defined(ATTN_HAVE_WASM)

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

#if defined(ATTN_HAVE_NEON_DOTPROD)
#if defined(__linux__)
#include <sys/auxv.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#endif
#endif

#include "attn/tensor/error.hpp"

namespace attn::kernels {

const KernelTable& table_sse4_2();
const KernelTable& table_avx2_fma();
const KernelTable& table_avx512f();
const KernelTable& table_default_arch();
const KernelTable& table_emulated();
Int8Kernels int8_avx_vnni();
Int8Kernels int8_avx512_vnni();
Int8Kernels int8_neon_dotprod();

namespace {

constinit std::atomic<const KernelTable*> in_use = nullptr;

struct Compiled {
  const KernelTable* table;
  bool runs;  ///< on this machine
};

#if defined(ATTN_HAVE_AVX_VNNI) || defined(ATTN_HAVE_AVX512_VNNI) || defined(ATTN_HAVE_NEON_DOTPROD)
/// The same but for the products of int8.
struct WithInt8 {
  KernelTable table, everywhere;

  WithInt8(const KernelTable& other, const char* architecture, const Int8Kernels& int8) : table(other), everywhere(*other.everywhere) {
    table.everywhere = &everywhere;
    for (KernelTable* const each : {&table, &everywhere}) each->architecture = architecture, each->int8 = int8;
  }
};
#endif

#if defined(ATTN_HAVE_NEON_DOTPROD)
/// Whether the machine has sdot, of which xsimd knows nothing.
bool has_dotprod() {
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
#if defined(ATTN_HAVE_EMULATED)
  all.push_back({&table_emulated(), true});
#endif
#if defined(ATTN_HAVE_SSE4_2)  // the others of x86 as far as cmake/library.cmake takes them
  [[maybe_unused]] const auto machine = xsimd::available_architectures();
  all.push_back({&table_sse4_2(), true});
#if defined(ATTN_HAVE_AVX2_FMA)
  const bool avx2 = machine.has(xsimd::fma3<xsimd::avx2>{});
  all.push_back({&table_avx2_fma(), avx2});
#endif
#if defined(ATTN_HAVE_AVX_VNNI)
  static const WithInt8 avx_vnni(table_avx2_fma(), "avx_vnni", int8_avx_vnni());
  all.push_back({&avx_vnni.table, avx2 && machine.has(xsimd::avxvnni{})});
#endif
#if defined(ATTN_HAVE_AVX512F)
  const bool avx512 = machine.has(xsimd::avx512f{}) && machine.has(xsimd::avx512bw{});
  all.push_back({&table_avx512f(), avx512});
#endif
#if defined(ATTN_HAVE_AVX512_VNNI)
  static const WithInt8 avx512_vnni(table_avx512f(), "avx512_vnni", int8_avx512_vnni());
  all.push_back({&avx512_vnni.table, avx512 && machine.has(xsimd::avx512vnni<xsimd::avx512bw>{})});
#endif
#else
  all.push_back({&table_default_arch(), true});
#if defined(ATTN_HAVE_NEON_DOTPROD)
  static const WithInt8 neon_dotprod(table_default_arch(), "neon_dotprod", int8_neon_dotprod());
  all.push_back({&neon_dotprod.table, has_dotprod()});
#endif
#endif
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
  // For tests and for comparing. An empty value is none, as for other programs.
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
  // Another thread may have been faster, or have pinned one.
  return in_use.compare_exchange_strong(table, widest) ? *widest : *table;
}

}  // namespace attn::kernels

#endif
