#include "reference/core/mask.h"

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "reference/core/error.h"
#include "reference/core/tensor.h"

namespace ringlab {
namespace {

/// a + b, held at the ends of the range instead of overflowing.
std::int64_t saturating_add(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? INT64_MAX : INT64_MIN;
}

/// Positions of `run` below `end`.
std::int64_t count_below(const PositionRun& run, std::int64_t end) {
  if (end <= run.first) return 0;
  return std::min(run.count, (end - run.first - 1) / run.stride + 1);
}

std::int64_t count_inside(const Positions& keys, const KeyInterval& interval) {
  if (interval.size() == 0) return 0;
  std::int64_t count = 0;
  for (const PositionRun& run : keys.runs()) {
    count += count_below(run, interval.end) - count_below(run, interval.begin);
  }
  return count;
}

/// True when two intervals, neither empty, begin at the same of `keys`, and end at the same.
bool see_the_same(const KeyInterval& first, const KeyInterval& last, const Positions& keys) {
  if (first.size() == 0 || last.size() == 0) return false;
  return std::all_of(keys.runs().begin(), keys.runs().end(), [&](const PositionRun& run) {
    return count_below(run, first.begin) == count_below(run, last.begin) &&
           count_below(run, first.end) == count_below(run, last.end);
  });
}

/// The document that holds p; zero-length documents hold nothing.
KeyInterval document_at(const std::vector<std::int64_t>& starts, std::int64_t p) {
  const auto end = std::upper_bound(starts.begin(), starts.end(), p);
  if (end == starts.begin() || end == starts.end()) return {};
  return {*(end - 1), *end};
}

/// Σ ⌊(a·i + b) / m⌋ over i = 0 … n - 1, for a and b that are not negative: Euclid's algorithm, as
/// for lattice points below a line (Knuth, TAOCP 2, 3.3.3).
std::int64_t floor_sum(std::int64_t n, std::int64_t m, std::int64_t a, std::int64_t b) {
  using Wide = __int128;
  Wide sum = 0;
  for (;;) {
    sum += Wide{n} * (n - 1) / 2 * (a / m) + Wide{n} * (b / m);
    a %= m;
    b %= m;
    const Wide top = Wide{a} * n + b;
    if (top < m) return static_cast<std::int64_t>(sum);
    n = static_cast<std::int64_t>(top / m);
    b = static_cast<std::int64_t>(top % m);
    std::swap(a, m);
  }
}

/// Σ count_below(keys, end + i·slope) over i = 0 … rows - 1, for a slope that is not negative.
std::int64_t sum_below(const PositionRun& keys, std::int64_t end, std::int64_t slope,
                       std::int64_t rows) {
  if (slope == 0) return rows * count_below(keys, end);
  const auto first_above = [&](std::int64_t position) {  // the first row whose end is beyond it
    if (end > position) return std::int64_t{0};
    return std::min(rows, (position - end) / slope + 1);
  };
  const std::int64_t some = first_above(keys.first);
  const std::int64_t all = first_above(keys.first + (keys.count - 1) * keys.stride);
  if (keys.count == 0 || some == rows) return 0;
  const std::int64_t above = end + some * slope - keys.first - 1;  // of the first that sees some
  return floor_sum(all - some, keys.stride, slope, above) + (all - some) +
         (rows - all) * keys.count;
}

/// A mask of intervals, and where its documents begin.
struct IntervalMask {
  const Mask& mask;
  const std::vector<std::vector<std::int64_t>>& document_starts;
};

/// Steps of both ends of the intervals from each row of a run to the next, where they are constant
/// from `first` to `last`: nothing, or the step of the queries. These are the least and the most
/// that any term but a border between documents moves an end by.
struct Slopes {
  std::int64_t begin = 0, end = 0;
};
std::optional<Slopes> slopes_between(const IntervalMask& of, const PositionRun& run,
                                     std::int64_t first, std::int64_t last) {
  const std::int64_t p = run.first + first * run.stride, q = run.first + last * run.stride;
  const KeyInterval top = of.mask.interval(p), bottom = of.mask.interval(q);
  if (top.size() == 0 || bottom.size() == 0) return {};
  const std::int64_t shift = of.mask.kv_tokens() - of.mask.q_tokens();  // of queries to keys
  for (const std::vector<std::int64_t>& starts : of.document_starts) {
    if (document_at(starts, p + shift).begin != document_at(starts, q + shift).begin) return {};
  }
  const auto slope = [&](std::int64_t moved) -> std::optional<std::int64_t> {
    if (moved == 0) return 0;
    return moved == q - p ? std::optional(run.stride) : std::nullopt;
  };
  const auto begin = slope(bottom.begin - top.begin), end = slope(bottom.end - top.end);
  return begin && end ? std::optional(Slopes{*begin, *end}) : std::nullopt;
}

/// Counts the keys of rows first … last of a run. Ends of an interval only move on from a query to
/// the next, in all masks of intervals, so that all rows between two that see the same do, too; and
/// where they move on evenly, sums have closed forms. Rows are halved until one of these is so.
std::int64_t count_between(const IntervalMask& of, const PositionRun& run, std::int64_t first,
                           std::int64_t last, const Positions& keys) {
  constexpr std::int64_t kFewRows = 8;
  const auto row = [&](std::int64_t i) { return of.mask.interval(run.first + i * run.stride); };
  const std::int64_t rows = last - first + 1;
  const KeyInterval top = row(first);
  if (see_the_same(top, row(last), keys)) return rows * count_inside(keys, top);
  std::int64_t count = 0;
  if (rows <= kFewRows) {
    for (std::int64_t i = first; i <= last; ++i) count += count_inside(keys, row(i));
    return count;
  }
  if (const auto slopes = slopes_between(of, run, first, last)) {
    for (const PositionRun& some : keys.runs()) {
      count += sum_below(some, top.end, slopes->end, rows) -
               sum_below(some, top.begin, slopes->begin, rows);
    }
    return count;
  }
  const std::int64_t middle = first + rows / 2;
  return count_between(of, run, first, middle - 1, keys) +
         count_between(of, run, middle, last, keys);
}

// Overloads for every kind of term, so that a kind left out does not compile: interval_of() is the
// largest interval that a term allows a query at key position p.
constexpr std::int64_t kMin = INT64_MIN;
constexpr std::int64_t kMax = INT64_MAX;

KeyInterval interval_of(const CausalMask&, std::int64_t p) { return {kMin, saturating_add(p, 1)}; }
KeyInterval interval_of(const PrefixMask& prefix, std::int64_t p) {
  return {kMin, std::max(prefix.tokens, saturating_add(p, 1))};
}
KeyInterval interval_of(const WindowMask& window, std::int64_t p) {
  const bool left_open = window.left == WindowMask::kUnlimited;
  const bool right_open = window.right == WindowMask::kUnlimited;
  return {left_open ? kMin : saturating_add(p, -window.left),
          right_open ? kMax : saturating_add(saturating_add(p, window.right), 1)};
}
KeyInterval interval_of(const DocumentsMask&, std::int64_t) {
  return {kMin, kMax};  // document_at(), by binary search
}
KeyInterval interval_of(const BitMask&, std::int64_t) { return {kMin, kMax}; }

std::vector<std::int64_t> document_starts(const DocumentsMask& documents, std::int64_t kv_tokens) {
  std::vector<std::int64_t> starts = {0};
  for (const std::int64_t length : documents.lengths) {
    if (length < 0) {
      throw_input_error({.where = "mask documents",
                         .expected = "document lengths >= 0",
                         .actual = std::to_string(length)});
    }
    starts.push_back(saturating_add(starts.back(), length));
  }
  if (starts.back() != kv_tokens) {
    throw_input_error(
        {.where = "mask documents",
         .expected = "lengths that sum to the " + std::to_string(kv_tokens) + " key tokens",
         .actual = "a sum of " + std::to_string(starts.back()),
         .hint = "Give one length per document, in order"});
  }
  return starts;
}

void check_bits(const BitMask& bits, std::int64_t q_tokens, std::int64_t kv_tokens) {
  const auto shape = [](std::int64_t rows, std::int64_t columns) {
    return "(" + std::to_string(rows) + ", " + std::to_string(columns) + ")";
  };
  if (bits.q_tokens != q_tokens || bits.kv_tokens != kv_tokens) {
    throw_input_error({.where = "mask file:" + bits.source,
                       .expected = "a matrix " + shape(q_tokens, kv_tokens),
                       .actual = shape(bits.q_tokens, bits.kv_tokens),
                       .hint = "Rows are queries, columns are keys"});
  }
  const auto held = bits.bits ? bits.bits->size() : 0;
  const std::int64_t needed = checked_size({1, 1, q_tokens, kv_tokens});
  if (held != static_cast<std::size_t>(needed)) {
    throw_input_error({.where = "mask file:" + bits.source,
                       .expected = std::to_string(needed) + " elements",
                       .actual = std::to_string(held)});
  }
}

void check_sign(std::string_view name, std::int64_t value) {
  if (value < 0) {
    throw_input_error({.where = "mask " + std::string(name),
                       .expected = "a number >= 0",
                       .actual = std::to_string(value)});
  }
}

// check_term(): an input error where a term does not fit the lengths of the mask.
void check_term(const CausalMask&, const Mask&) {}
void check_term(const WindowMask& window, const Mask&) {
  check_sign("window", std::min(window.left, window.right));
}
void check_term(const DocumentsMask&, const Mask&) {}  // document_starts() does
void check_term(const PrefixMask& prefix, const Mask&) { check_sign("prefix", prefix.tokens); }
void check_term(const BitMask& bits, const Mask& mask) {
  check_bits(bits, mask.q_tokens(), mask.kv_tokens());
}

// shows(): the verdict on one pair of a term that is no interval.
bool shows(const BitMask& mask, std::int64_t query, std::int64_t key) {
  return (*mask.bits)[static_cast<std::size_t>(query * mask.kv_tokens + key)] != 0;
}

}  // namespace

Mask::Mask(std::vector<MaskTerm> terms) : terms_(std::move(terms)) {
  for (const MaskTerm& term : terms_) {
    if (!std::visit([](const auto& known) { return known.kIsInterval; }, term)) {
      bit_terms_.push_back(term);
    }
  }
}

Mask Mask::bind(std::int64_t q_tokens, std::int64_t kv_tokens) const {
  check_sign("q_tokens", q_tokens);
  check_sign("kv_tokens", kv_tokens);
  Mask bound(terms_);
  bound.q_tokens_ = q_tokens;
  bound.kv_tokens_ = kv_tokens;
  for (const MaskTerm& term : terms_) {
    std::visit([&](const auto& known) { check_term(known, bound); }, term);
    if (const auto* documents = std::get_if<DocumentsMask>(&term)) {
      bound.document_starts_.push_back(document_starts(*documents, kv_tokens));
    }
  }
  return bound;
}

KeyInterval Mask::interval(std::int64_t query) const {
  if (query < 0 || query >= q_tokens_) return {};
  const std::int64_t p = query + (kv_tokens_ - q_tokens_);
  KeyInterval visible = {0, kv_tokens_};
  const auto intersect = [&visible](const KeyInterval& other) {
    visible = {std::max(visible.begin, other.begin), std::min(visible.end, other.end)};
  };
  for (const MaskTerm& term : terms_) {
    intersect(std::visit([p](const auto& known) { return interval_of(known, p); }, term));
  }
  for (const auto& starts : document_starts_) intersect(document_at(starts, p));
  return visible.size() > 0 ? visible : KeyInterval{};
}

bool Mask::bits_allow(std::int64_t query, std::int64_t key) const {
  if (query < 0 || query >= q_tokens_ || key < 0 || key >= kv_tokens_) return false;
  const auto allowed = [&](const auto& term) {
    if constexpr (std::remove_cvref_t<decltype(term)>::kIsInterval) {
      return true;
    } else {
      return shows(term, query, key);
    }
  };
  return std::all_of(bit_terms_.begin(), bit_terms_.end(),
                     [&](const MaskTerm& term) { return std::visit(allowed, term); });
}

bool Mask::allows(std::int64_t query, std::int64_t key) const {
  const KeyInterval visible = interval(query);
  return key >= visible.begin && key < visible.end && bits_allow(query, key);
}

std::int64_t Mask::count_row(std::int64_t query, const Positions& keys) const {
  const KeyInterval visible = interval(query);
  if (!has_bits()) return count_inside(keys, visible);
  std::int64_t count = 0;
  for (const PositionRun& run : keys.runs()) {
    const std::int64_t end = count_below(run, visible.end);
    for (std::int64_t i = count_below(run, visible.begin); i < end; ++i) {
      if (bits_allow(query, run.first + i * run.stride)) ++count;
    }
  }
  return count;
}

std::int64_t Mask::count(const Positions& queries, const Positions& keys) const {
  std::int64_t count = 0;
  for (const PositionRun& run : queries.runs()) {
    if (!has_bits()) {
      count += count_between({*this, document_starts_}, run, 0, run.count - 1, keys);
      continue;
    }
    for (std::int64_t i = 0; i < run.count; ++i) {
      count += count_row(run.first + i * run.stride, keys);
    }
  }
  return count;
}

Coverage Mask::classify(const Positions& queries, const Positions& keys) const {
  if (queries.empty() || keys.empty()) return Coverage::empty;
  const std::int64_t first = count_row(queries[0], keys);
  if (first != 0 && first != keys.size()) return Coverage::partial;
  for (const PositionRun& run : queries.runs()) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      if (count_row(run.first + i * run.stride, keys) != first) return Coverage::partial;
    }
  }
  return first == 0 ? Coverage::empty : Coverage::full;
}

std::int64_t Mask::count_all() const {
  return count(Positions::all(q_tokens_), Positions::all(kv_tokens_));
}

}  // namespace ringlab
