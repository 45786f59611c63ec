#include "reference/core/run.h"

#include <string>

#include "reference/core/error.h"

namespace ringlab {

ScheduleSpec schedule_spec(const RunOptions& options) {
  return {.kind = options.schedule,
          .node_ranks = options.node_ranks,
          .direction = options.direction,
          .slots = options.slots};
}

Layout make_layout(const RunOptions& options, std::int64_t tokens,
                   const std::optional<Layout>& override_layout) {
  if (!override_layout) return Layout(options.layout, tokens, options.ranks);
  const auto describe = [](std::int64_t held, int ranks) {
    return std::to_string(held) + " tokens over " + std::to_string(ranks) + " ranks";
  };
  if (override_layout->tokens() != tokens || override_layout->ranks() != options.ranks) {
    throw_input_error({.where = "layout",
                       .expected = describe(tokens, options.ranks),
                       .actual = describe(override_layout->tokens(), override_layout->ranks())});
  }
  return *override_layout;
}

}  // namespace ringlab
