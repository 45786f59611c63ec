// The pairs of a small case as rows of characters.
#include <fmt/format.h>

#include <algorithm>

#include "cli/report/hop_map.h"
#include "cli/report/wrong_answer.h"

namespace ringlab::report {
namespace {

constexpr std::int64_t kMostKeys = 30;  // two characters each, and the line stays below 100

char digit(int number) { return number < 10 ? static_cast<char>('0' + number) : '+'; }

std::string head_row(const verify::Case& c, const HopMap& hops,
                     const std::optional<verify::Element>& marked) {
  const bool of_ranks = c.ranks > 1;
  std::string row = fmt::format("{:<17}", of_ranks ? "keys of rank" : "keys");
  for (std::int64_t key = 0; key < c.shape.kv_tokens; ++key) {
    row += fmt::format(" {}",
                       of_ranks ? digit(hops.key_rank(key)) : static_cast<char>('0' + key % 10));
  }
  if (of_ranks) row += "   each pair: the step that brings it";
  if (marks_a_key(marked)) row += fmt::format("   key {} is wrong", marked->token);
  return row;
}

std::string query_row(const verify::Case& c, const HopMap& hops, std::int64_t query, bool wrong) {
  const std::string title = c.ranks > 1
                                ? fmt::format("query {} (rank {})", query, hops.query_rank(query))
                                : fmt::format("query {}", query);
  std::string row = fmt::format("{:<17}", title);
  for (std::int64_t key = 0; key < c.shape.kv_tokens; ++key) {
    const int hop = hops.hop(query, key);
    row += fmt::format(" {}", hop < 0 ? '.' : c.ranks > 1 ? digit(hop) : '#');
  }
  return row + (wrong ? "   <- wrong" : "");
}

std::string scale_words(const verify::Case& c) {
  return fmt::format("{:.6g}", verify::make_problem(c).scale);
}

}  // namespace

bool marks_a_key(const std::optional<verify::Element>& marked) {
  return marked && (marked->tensor.starts_with("dk") || marked->tensor.starts_with("dv"));
}

std::string case_words(const verify::Case& c) {
  const Shape& s = c.shape;
  std::string text =
      s.q_tokens == s.kv_tokens
          ? fmt::format("N={} token{}", s.q_tokens, s.q_tokens == 1 ? "" : "s")
          : fmt::format("{} quer{}, {} key{}", s.q_tokens, s.q_tokens == 1 ? "y" : "ies",
                        s.kv_tokens, s.kv_tokens == 1 ? "" : "s");
  if (c.ranks > 1) text += fmt::format(", P={} ranks", c.ranks);
  text += ", " + verify::make_problem(c).mask.text();
  if (c.ranks > 1) text += fmt::format(", {}", layout_name(c.layout));
  if (s.batch != 1) text += fmt::format(", batch {}", s.batch);
  if (s.q_heads > 1) text += fmt::format(", {} heads on {}", s.q_heads, s.kv_heads);
  text += fmt::format(", head_dim {}", s.head_dim);
  if (s.v_dim != s.head_dim) text += fmt::format(", v_dim {}", s.v_dim);
  text += fmt::format(", {}, {} values", dtype_info(c.dtype).name, family_name(c.family));
  if (c.scale != verify::ScaleKind::rsqrt) text += fmt::format(", scale {}", scale_words(c));
  for (const ModifierKind kind : kModifierKinds) {
    const double level = c.modifiers.level(kind);
    if (level == 0) continue;
    text += ", " + fmt::format(fmt::runtime(verify::words_of(kind).phrase), level);
  }
  if (c.schedule != ScheduleKind::ring)
    text += fmt::format(", {}", schedule_name({c.schedule, c.node_ranks}));
  if (c.threads > 1) text += fmt::format(", {} threads", c.threads);
  return text;
}

std::vector<std::string> pair_rows(const verify::Case& shown,
                                   const std::optional<verify::Element>& marked,
                                   std::size_t most_rows) {
  const Shape& shape = shown.shape;
  if (shape.q_tokens == 0 || shape.kv_tokens == 0 || shape.kv_tokens > kMostKeys) return {};
  if (most_rows < 2) return {};
  const HopMap hops(shown);
  std::vector<std::string> rows = {head_row(shown, hops, marked)};
  const std::int64_t wrong =
      marked && !marks_a_key(marked) && marked->token < shape.q_tokens ? marked->token : -1;
  const auto most =
      std::min<std::int64_t>(static_cast<std::int64_t>(most_rows) - 1, shape.q_tokens);
  const std::int64_t first = std::clamp<std::int64_t>(wrong - most / 2, 0, shape.q_tokens - most);
  for (std::int64_t query = first; query < first + most; ++query) {
    rows.push_back(query_row(shown, hops, query, query == wrong));
  }
  return rows;
}

}  // namespace ringlab::report
