#include "reference/precise/seen.h"

#include <Random123/philox.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <string>
#include <variant>

#include "reference/core/checks.h"
#include "reference/core/error.h"

namespace ringlab::precise {
namespace {

/// A query and the tokens that stand behind it, as far as its end of the sequence is concerned.
struct Standing {
  std::int64_t query = 0;
  std::int64_t queries_after = 0;
  std::int64_t kv_tokens = 0;

  /// The number of keys that `key` lies further back than the query; negative: further on.
  std::int64_t behind(std::int64_t key) const { return (kv_tokens - 1 - key) - queries_after; }
};

bool shows(const CausalMask&, const Standing& standing, std::int64_t key) {
  return standing.behind(key) >= 0;
}
bool shows(const PrefixMask& prefix, const Standing& standing, std::int64_t key) {
  return standing.behind(key) >= 0 || key < prefix.tokens;
}
bool shows(const WindowMask& window, const Standing& standing, std::int64_t key) {
  const std::int64_t behind = standing.behind(key);
  return behind >= 0 ? behind <= window.left : -behind <= window.right;
}
bool shows(const DocumentsMask& documents, const Standing& standing, std::int64_t key) {
  const std::int64_t own = key + standing.behind(key);  // where the query stands
  if (own < 0) return false;
  std::int64_t end = 0;  // of the first document that ends behind one of them: it must hold both
  for (const std::int64_t length : documents.lengths) {
    end += length;
    if (key < end || own < end) return key < end && own < end;
  }
  return false;
}
bool shows(const BitMask& matrix, const Standing& standing, std::int64_t key) {
  return matrix.bits->at(static_cast<std::size_t>(standing.query * matrix.kv_tokens + key)) != 0;
}

}  // namespace

void check_input(const AttentionInput& input) {
  check_problem(input.problem);
  const Shape& shape = input.problem.shape;
  check_extents("q", input.q.extents, shape.q());
  check_extents("k", input.k.extents, shape.k());
  check_extents("v", input.v.extents, shape.v());
}

void check_gradient_input(const AttentionInput& input, const TensorView<const double>& dout,
                          const std::vector<std::int64_t>& rows) {
  check_input(input);
  check_extents("do", dout.extents, input.problem.shape.out());
  if (rows.empty()) return;
  throw_usage_error({.where = "rows",
                     .expected = "none: gradients are sums over all rows",
                     .actual = std::to_string(rows.size()) + " rows"});
}

std::vector<std::int64_t> wanted_rows(const std::vector<std::int64_t>& rows, const Shape& shape) {
  if (rows.empty()) {
    std::vector<std::int64_t> all(static_cast<std::size_t>(shape.q_tokens));
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const std::int64_t least = n == 0 ? 0 : rows[n - 1] + 1;
    if (rows[n] >= least && rows[n] < shape.q_tokens) continue;
    throw_usage_error({.where = "rows",
                       .expected = "ascending query rows below " + std::to_string(shape.q_tokens),
                       .actual = std::to_string(rows[n]) + " at place " + std::to_string(n)});
  }
  return rows;
}

RowPlace place_of(const Shape& shape, const std::vector<std::int64_t>& rows, std::int64_t number) {
  const auto per_head = static_cast<std::int64_t>(rows.size());
  const std::int64_t head = number / per_head;
  RowPlace place;
  place.slot = number - head * per_head;
  place.query = rows[static_cast<std::size_t>(place.slot)];
  place.batch = head / shape.q_heads;
  place.q_head = head - place.batch * shape.q_heads;
  const std::int64_t group = shape.q_heads / shape.kv_heads;
  while ((place.kv_head + 1) * group <= place.q_head) ++place.kv_head;
  return place;
}

std::vector<std::int64_t> seen_keys(const Problem& problem, std::int64_t query) {
  const Shape& shape = problem.shape;
  const Standing standing{query, shape.q_tokens - 1 - query, shape.kv_tokens};
  std::vector<std::int64_t> keys(static_cast<std::size_t>(shape.kv_tokens));
  std::iota(keys.begin(), keys.end(), 0);
  for (const MaskTerm& term : problem.mask.terms()) {
    std::erase_if(keys, [&](std::int64_t key) {
      return !std::visit([&](const auto& t) { return shows(t, standing, key); }, term);
    });
  }
  return keys;
}

bool is_kept(const Problem& problem, const RowPlace& row, std::int64_t key) {
  if (problem.modifiers.dropout == 0) return true;
  const auto word = [](std::int64_t x) { return static_cast<std::uint32_t>(x & 0xffffffff); };
  const auto seed = static_cast<std::int64_t>(problem.modifiers.dropout_seed);
  const r123::Philox4x32::ctr_type random =
      r123::Philox4x32()({{word(key >> 2), word(row.query), word(row.q_head), word(row.batch)}},
                         {{word(seed), word(seed >> 32)}});
  return random.v[key & 3] >= dropout_threshold(problem.modifiers.dropout);
}

std::int64_t distance_of(const Shape& shape, std::int64_t query, std::int64_t key) {
  return std::abs(Standing{query, shape.q_tokens - 1 - query, shape.kv_tokens}.behind(key));
}

void read_channels(const TensorView<const double>& tensor, const TokenAddress& at, const char* name,
                   std::vector<double>& values) {
  values.resize(static_cast<std::size_t>(tensor.extents.channels));
  for (std::size_t c = 0; c < values.size(); ++c) {
    values[c] = tensor(at.batch, at.head, at.token, static_cast<std::int64_t>(c));
    if (std::isfinite(values[c])) continue;
    throw_input_error(
        {.where = name,
         .expected = "finite numbers where the mask lets them be seen",
         .actual = std::to_string(values[c]) + " at token " + std::to_string(at.token),
         .hint = "Softmax of infinities is not defined as a real number."});
  }
}

}  // namespace ringlab::precise
