#include "reference/core/schedule/schedule.h"

#include <array>
#include <charconv>
#include <utility>

#include "reference/core/error.h"
#include "reference/core/layout.h"
#include "reference/core/mask.h"

namespace ringlab {
namespace {

constexpr std::string_view kDouble = "double:";

constexpr std::array<std::pair<std::string_view, ScheduleKind>, 4> kScheduleNames = {{
    {"broadcast", ScheduleKind::broadcast},
    {"allgather", ScheduleKind::allgather},
    {"ring", ScheduleKind::ring},
    {"bidirectional", ScheduleKind::bidirectional},
}};

[[noreturn]] void refuse(std::string_view text) {
  throw_usage_error({.where = "schedule",
                     .expected = "broadcast, allgather, ring, bidirectional or double:W (W >= 1)",
                     .actual = "\"" + std::string(text) + "\"",
                     .hint = ""});
}

}  // namespace

ScheduleSpec parse_schedule(std::string_view text) {
  ScheduleSpec spec;
  for (const auto& [name, kind] : kScheduleNames) {
    spec.kind = kind;
    if (name == text) return spec;
  }
  if (!text.starts_with(kDouble)) refuse(text);
  spec.kind = ScheduleKind::double_ring;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + kDouble.size(), end, spec.node_ranks);
  if (error != std::errc{} || stop != end || spec.node_ranks < 1) refuse(text);
  return spec;
}

std::string schedule_name(const ScheduleSpec& spec) {
  for (const auto& [name, kind] : kScheduleNames) {
    if (kind == spec.kind) return std::string(name);
  }
  return std::string(kDouble) + std::to_string(spec.node_ranks);
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
