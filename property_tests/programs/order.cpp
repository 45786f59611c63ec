#include "property_tests/programs/order.h"

namespace ringlab::programs {

std::size_t Order::add() {
  next_.emplace_back();
  missing_.push_back(0);
  return next_.size() - 1;
}

std::size_t Order::add(std::size_t lane) {
  const std::size_t point = add();
  if (last_[lane]) add_after(point, *last_[lane]);
  last_[lane] = point;
  return point;
}

void Order::add_after(std::size_t later, std::size_t earlier) {
  next_[earlier].push_back(later);
  ++missing_[later];
}

std::vector<ring::StreamClock> clocks_of(const std::vector<StreamStep>& steps, int streams,
                                         int events, const ReportAt& report) {
  using ring::StreamClock;
  std::vector<StreamClock> now(static_cast<std::size_t>(streams), StreamClock(streams)), clocks;
  std::vector<std::optional<StreamClock>> recorded(static_cast<std::size_t>(events));
  for (const StreamStep& step : steps) {
    StreamClock& clock = now[static_cast<std::size_t>(step.stream)];
    if (step.waits_for) {
      const auto& event = recorded[static_cast<std::size_t>(*step.waits_for)];
      if (event) clock.merge(*event);
      if (!event) report(clocks.size(), "it was not recorded before");
    }
    clock.tick(step.stream);
    if (step.records) {
      auto& event = recorded[static_cast<std::size_t>(*step.records)];
      if (event) report(clocks.size(), "it was recorded before");
      event = clock;
    }
    clocks.push_back(clock);
  }
  return clocks;
}

}  // namespace ringlab::programs
