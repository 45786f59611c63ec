#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "tests/optimized/kernels/block_kernel.h"

namespace ringlab {
namespace {

constexpr std::array<std::int64_t, 2> kWidths[] = {{8, 8},     {40, 40},   {64, 64},   {72, 72},
                                                   {128, 128}, {192, 192}, {256, 256}, {128, 64},
                                                   {8, 136},   {200, 16}};

KernelCase of_sizes(std::int64_t queries, std::int64_t keys, std::int64_t head_dim,
                    std::int64_t v_dim) {
  return {.shape = {.q_tokens = queries, .kv_tokens = keys, .head_dim = head_dim, .v_dim = v_dim},
          .seed = static_cast<unsigned>(1000 * queries + keys)};
}

void add_masks(std::vector<KernelCase>& cases, KernelCase c,
               const std::vector<std::string>& masks) {
  for (const std::string& mask : masks) {
    c.mask = mask;
    cases.push_back(c);
  }
}

std::vector<KernelCase> random_cases(const Edges& edges) {
  std::vector<KernelCase> cases;
  for (unsigned seed = 0; seed < edges.random; ++seed) {
    cases.push_back(random_case(seed, seed % 4 == 0 ? edges.widest : 64));
  }
  return cases;
}

/// Two query heads for a K/V head.
std::vector<KernelCase> widths(const Edges& edges) {
  std::vector<KernelCase> cases;
  for (const auto& [head_dim, v_dim] : kWidths) {
    if (std::max(head_dim, v_dim) > edges.most_channels) continue;
    KernelCase c = of_sizes(70, edges.keys_of_widths, head_dim, v_dim);
    c.shape.q_heads = 2;
    c.seed = static_cast<unsigned>(100 + cases.size());
    const bool is_wide = std::max(head_dim, v_dim) > 128;  // two for each width that is compiled
    if (head_dim == v_dim || !is_wide) add_masks(cases, c, {"causal"});
    if (head_dim != v_dim || !is_wide) add_masks(cases, c, {"full"});
  }
  return cases;
}

std::vector<KernelCase> lengths(const Edges& edges) {
  std::vector<KernelCase> cases;
  for (const std::int64_t queries : edges.queries) {
    for (const std::int64_t keys : edges.keys) {
      add_masks(cases, of_sizes(queries, keys, 16, 16), {queries % 2 ? "causal" : "full"});
    }
  }
  for (const std::int64_t queries : edges.wide_queries) {
    for (const std::int64_t keys : edges.wide_keys) {
      add_masks(cases, of_sizes(queries, keys, 128, 128), {"causal", "full"});
    }
  }
  return cases;
}

/// States and gradients are carried from chunk to chunk. Of seven ranks, some have no queries.
std::vector<KernelCase> chunks() {
  std::vector<KernelCase> cases;
  for (const LayoutKind layout : kLayoutKinds) {
    for (const int ranks : {1, 4, 7, 3}) {
      KernelCase c = ranks == 3 ? of_sizes(90, 90, 16, 16) : of_sizes(5, 90, 24, 40);
      if (ranks == 3) c.shape.batch = c.shape.q_heads = c.shape.kv_heads = 2;
      c.ranks = ranks, c.layout = layout, c.inputs = InputKind::late_maxima;
      add_masks(cases, c, {"causal"});
    }
  }
  return cases;
}

/// Every block exceeds the maximum of those before it, by more and by less than kernels wait for.
std::vector<KernelCase> rising_maxima(const Edges& edges) {
  std::vector<KernelCase> cases;
  for (const std::int64_t keys : edges.rising) {
    for (const int ranks : {1, 3}) {
      KernelCase c = of_sizes(70, keys, 16, 32);
      c.ranks = ranks, c.inputs = InputKind::early_maxima;
      cases.push_back(c);
    }
  }
  return cases;
}

/// Blocks of keys that whole tiles of queries see, in part and not at all: partial blocks on both
/// sides of full ones, tiles that see nothing.
std::vector<KernelCase> masks(const Edges& edges) {
  const std::int64_t n = edges.masked;
  KernelCase c = of_sizes(n, n, 32, 32);
  c.shape.q_heads = 2;
  c.inputs = InputKind::late_maxima;
  std::vector<KernelCase> cases;
  add_masks(cases, c,
            {"causal", fmt::format("window:{},{}", n / 2, n / 2 - 10),
             fmt::format("causal+window:{},inf", 2 * n / 3),
             fmt::format("documents:{},{},{}", n / 6, n / 2, n - n / 6 - n / 2),
             fmt::format("prefix:{}", n / 3), "window:2,0"});
  return cases;
}

/// More queries than keys: the first see nothing.
std::vector<KernelCase> empty_rows(const Edges& edges) {
  std::vector<KernelCase> cases;
  KernelCase c = of_sizes(edges.empty_rows, 30, 16, 16);
  c.shape.q_heads = 2;
  add_masks(cases, c, {"causal"});
  return cases;
}

}  // namespace

CaseGroup masked(const KernelCase& c, const std::vector<std::string>& masks) {
  CaseGroup group{.name = "masks", .cases = {}};
  add_masks(group.cases, c, masks);
  return group;
}

std::vector<CaseGroup> contract_cases(const Edges& edges) {
  KernelCase no_keys = of_sizes(70, 0, 8, 8);
  no_keys.shape.q_heads = 2;
  std::vector<CaseGroup> groups = {{"random", random_cases(edges)},   {"widths", widths(edges)},
                                   {"lengths", lengths(edges)},       {"chunks", chunks()},
                                   {"maxima", rising_maxima(edges)},  {"masks", masks(edges)},
                                   {"empty_rows", empty_rows(edges)}, {"no_keys", {no_keys}}};
  std::erase_if(groups, [](const CaseGroup& group) { return group.cases.empty(); });
  return groups;
}

}  // namespace ringlab
