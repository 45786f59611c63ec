#include "reference/core/schedule/schedule.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "reference/core/error.h"
#include "reference/core/layout.h"
#include "reference/core/mask.h"
#include "reference/core/options/near_word.h"

namespace ringlab {
namespace {

/// "broadcast, …, bidirectional or double:W (W >= 1)".
std::string grammar() {
  std::string text;
  for (const ScheduleKind kind : kScheduleKinds) {
    if (!text.empty()) text += kind == kScheduleKinds.back() ? " or " : ", ";
    text += schedule_word(kind);
    if (schedule_traits(kind).has_nodes) text += ":W (W >= 1)";
  }
  return text;
}

[[noreturn]] void refuse(std::string_view text) {
  std::vector<std::string> words;
  for (const ScheduleKind kind : kScheduleKinds) words.emplace_back(schedule_word(kind));
  const std::string_view word = text.substr(0, text.find(':'));
  const bool is_known = kind_named<ScheduleKind, schedule_word>(word).has_value();
  throw_usage_error({.where = "schedule",
                     .expected = grammar(),
                     .actual = "\"" + std::string(text) + "\"",
                     .hint = is_known ? "" : did_you_mean(word, words)});
}

}  // namespace

ScheduleSpec parse_schedule(std::string_view text) {
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto kind = kind_named<ScheduleKind, schedule_word>(text.substr(0, colon));
  if (!kind) refuse(text);
  ScheduleSpec spec{.kind = *kind};
  if (!schedule_traits(*kind).has_nodes) {
    if (colon != text.size()) refuse(text);
    return spec;
  }
  const char* end = text.data() + text.size();
  const char* begin = std::min(text.data() + colon + 1, end);
  const auto [stop, error] = std::from_chars(begin, end, spec.node_ranks);
  if (error != std::errc{} || stop != end || spec.node_ranks < 1) refuse(text);
  return spec;
}

std::string schedule_name(const ScheduleSpec& spec) {
  const std::string word(schedule_word(spec.kind));
  return schedule_traits(spec.kind).has_nodes ? word + ":" + std::to_string(spec.node_ranks) : word;
}

NeedMatrix need_matrix(const Mask& mask, const Layout& queries, const Layout& keys) {
  NeedMatrix need(queries.ranks());
  for (int rank = 0; rank < queries.ranks(); ++rank) {
    for (int owner = 0; owner < queries.ranks(); ++owner) {
      need.set(rank, owner, mask.count(queries.positions(rank), keys.positions(owner)));
    }
  }
  return need;
}

}  // namespace ringlab
