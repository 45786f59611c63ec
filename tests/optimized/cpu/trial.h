// Random blocks for tests of the kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "optimized/cpu/block_kernel.h"
#include "reference/core/layout.h"
#include "reference/core/tensor.h"

namespace ringlab::cpu {

/// A block of some rank.
template <class Element>
struct Trial {
  using Real = Accumulator<Element>;

  Mask mask;
  Positions queries, keys;
  Extents q_extents = {}, k_extents = {}, v_extents = {};
  std::vector<Element> q = {}, k = {}, v = {};
  TileSizes tiles = {};
  int threads = 1;
  Modifiers modifiers = {};

  Block<Element> block() const {
    return {.mask = mask,
            .queries = queries,
            .keys = keys,
            .scale = 0.3,
            .tiles = tiles,
            .q = dense_view(q.data(), q_extents),
            .k = dense_view(k.data(), k_extents),
            .v = dense_view(v.data(), v_extents),
            .threads = threads,
            .modifiers = &modifiers};
  }
  std::int64_t rows() const { return q_extents.batch * q_extents.heads * q_extents.tokens; }
};

/// Normal, times 2.
template <class Element>
std::vector<Element> normal_values(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  std::vector<Element> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<Element>(2 * normal(random)));
  return values;
}

inline constexpr const char* kMasks[] = {
    "full", "causal", "window:3,2", "causal+window:20,0", "documents:9,0,40,51", "prefix:30"};
inline constexpr std::int64_t kTokens = 100;

template <class Element>
Trial<Element> random_trial(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  const LayoutKind kinds[] = {LayoutKind::contiguous, LayoutKind::striped, LayoutKind::zigzag};
  const int ranks = static_cast<int>(1 + below(4));
  const auto part = [&] {
    const std::int64_t kind = below(4);
    if (kind == 3) {  // in no order at all
      std::vector<std::int64_t> all = Positions::all(kTokens).to_list();
      std::shuffle(all.begin(), all.end(), random);
      all.resize(static_cast<std::size_t>(below(kTokens)));
      return Positions::from_list(all);
    }
    const Layout layout(kinds[kind], kTokens, ranks);
    return layout.positions(static_cast<int>(below(ranks)));
  };
  Trial<Element> trial{.mask = parse_mask(kMasks[below(6)]).bind(kTokens, kTokens),
                       .queries = part(),
                       .keys = part()};
  const std::int64_t kv_heads = 1 + below(2), group = 1 + below(3), batch = 1 + below(2);
  const std::int64_t head_dim = 1 + below(20), v_dim = 1 + below(20);
  trial.q_extents = {batch, kv_heads * group, trial.queries.size(), head_dim};
  trial.k_extents = {batch, kv_heads, trial.keys.size(), head_dim};
  trial.v_extents = {batch, kv_heads, trial.keys.size(), v_dim};
  std::normal_distribution<double> normal;
  const auto fill = [&](std::vector<Element>& values, const Extents& extents) {
    for (std::int64_t i = 0; i < extents.size(); ++i) {
      values.push_back(static_cast<Element>(2 * normal(random)));
    }
  };
  fill(trial.q, trial.q_extents);
  fill(trial.k, trial.k_extents);
  fill(trial.v, trial.v_extents);
  trial.tiles = {.queries = 1 + below(120), .keys = 1 + below(50)};
  return trial;
}

/// random_trial, with some of the modifiers that kernels know where the seed is odd.
template <class Element>
Trial<Element> any_trial(unsigned seed) {
  Trial<Element> trial = random_trial<Element>(seed);
  if (seed % 2 == 0) return trial;
  const unsigned some = seed / 2 % 7 + 1;  // each set of the three but the empty one
  if (some & 1) trial.modifiers.softcap = 1 + seed % 20;
  for (std::int64_t head = 0; (some & 2) && head < trial.q_extents.heads; ++head) {
    trial.modifiers.alibi_slopes.push_back(0.5 / static_cast<double>(head + 1));
  }
  if (some & 4) trial.modifiers.dropout = 0.4;
  trial.modifiers.dropout_seed = seed;
  return trial;
}

/// Rows of `channels` numbers as rows of more, ended by zeros.
template <class Number>
std::vector<Number> wider(const std::vector<Number>& rows, std::int64_t channels,
                          std::int64_t more) {
  std::vector<Number> wide;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    wide.push_back(rows[i]);
    const bool is_last = (static_cast<std::int64_t>(i) + 1) % channels == 0;
    if (is_last) wide.resize(wide.size() + static_cast<std::size_t>(more - channels));
  }
  return wide;
}

/// The trial with rows of so many channels, the new ones zero: nothing else changes.
template <class Element>
Trial<Element> wider(Trial<Element> trial, std::int64_t channels) {
  trial.q = wider(trial.q, trial.q_extents.channels, channels);
  trial.k = wider(trial.k, trial.k_extents.channels, channels);
  trial.v = wider(trial.v, trial.v_extents.channels, channels);
  trial.q_extents.channels = trial.k_extents.channels = trial.v_extents.channels = channels;
  return trial;
}

/// Positions where 16, 31, 32 and more bits end: runs of keys lie across the first of them.
inline constexpr std::int64_t kFarPositions[] = {(1 << 16) - 50, (std::int64_t{1} << 31) - 50,
                                                 (std::int64_t{1} << 32) - 50,
                                                 std::int64_t{1} << 40};

/// The same block so many tokens later in a longer sequence, where its rows see the same of each
/// other. Without dropout, which goes by the positions themselves.
template <class Element>
Trial<Element> later_in_the_sequence(Trial<Element> trial, std::int64_t tokens) {
  const auto moved = [tokens](const Positions& positions) {
    std::vector<PositionRun> runs = positions.runs();
    for (PositionRun& run : runs) run.first += tokens;
    return Positions(runs);
  };
  trial.queries = moved(trial.queries);
  trial.keys = moved(trial.keys);
  std::vector<MaskTerm> terms = trial.mask.terms();
  for (MaskTerm& term : terms) {
    if (auto* prefix = std::get_if<PrefixMask>(&term)) prefix->tokens += tokens;
    if (auto* documents = std::get_if<DocumentsMask>(&term)) {
      documents->lengths.insert(documents->lengths.begin(), tokens);
    }
  }
  trial.mask = Mask(std::move(terms)).bind(kTokens + tokens, kTokens + tokens);
  trial.modifiers.dropout = 0;
  return trial;
}

/// Whether query row i of the trial sees key row j.
template <class Element>
bool sees(const Trial<Element>& trial, std::int64_t i, std::int64_t j) {
  return trial.mask.allows(trial.queries[i], trial.keys[j]);
}

}  // namespace ringlab::cpu
