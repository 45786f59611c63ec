#include "property_tests/programs/random_order.h"

#include <algorithm>
#include <random>

#include "property_tests/programs/message_order.h"
#include "reference/core/error.h"

namespace ringlab::ring {
namespace {

constexpr std::int64_t kTurnNs = 1000;  // of a delay
constexpr std::int64_t kMostTurns = 64;

void tell(StreamMachine& machine, const Happening& happening) {
  switch (happening.told) {
    case Told::begin_copy:
      return machine.begin_copy(*happening.operation);
    case Told::end_copy:
      return machine.end_copy(*happening.operation);
    case Told::attend:
      return machine.attend(*happening.operation);
    case Told::add_gradient:
      return machine.add_gradient(*happening.operation);
    case Told::nothing:
      break;
  }
}

/// Tells the machine all that can ever happen; true when that is everything.
bool tell_in_random_order(const Happenings& happenings, std::size_t streams, std::uint64_t seed,
                          StreamMachine& machine) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> weights(streams);
  for (std::uint64_t& weight : weights) weight = std::uint64_t{1} << (random() % 9);
  const auto weight_of = [&](std::size_t point) { return weights[happenings.at[point].stream]; };
  const auto draw = [&](const std::vector<std::size_t>& ready) {
    std::uint64_t total = 0;
    for (const std::size_t point : ready) total += weight_of(point);
    std::uint64_t drawn = random() % total;
    std::size_t i = 0;
    for (; drawn >= weight_of(ready[i]); ++i) drawn -= weight_of(ready[i]);
    return i;
  };
  const std::vector<std::size_t> reached = happenings.order.reached(draw);
  for (const std::size_t point : reached) tell(machine, happenings.at[point]);
  return reached.size() == happenings.at.size();
}

void add_operation(Happenings& happenings, const StreamOperation& operation) {
  const auto stream = static_cast<std::size_t>(stream_number(operation));
  const auto add = [&](Told told) { happenings.add(stream, {told, &operation, stream}); };
  switch (operation.action) {
    case StreamAction::copy:
      add(Told::begin_copy);
      return add(Told::end_copy);
    case StreamAction::attend:
      return add(Told::attend);
    case StreamAction::add_gradient:
      return add(Told::add_gradient);
    case StreamAction::delay:
      for (std::int64_t i = std::min(operation.delay_ns / kTurnNs, kMostTurns); i > 0; --i) {
        add(Told::nothing);
      }
      [[fallthrough]];
    case StreamAction::record:
    case StreamAction::wait:
      return add(Told::nothing);
  }
}

}  // namespace

void execute_in_random_order(const StreamProgram& program, std::uint64_t seed,
                             StreamMachine& machine) {
  const std::size_t streams = program.ranks.size() * kStreamsPerRank;
  Happenings happenings{.order = programs::Order(streams)};
  programs::Events events(happenings.order, program.events);
  for (const StreamOperation& operation : program.operations) {
    add_operation(happenings, operation);
    const std::size_t here = happenings.at.size() - 1;
    if (operation.action == StreamAction::record) events.record(operation.event, here);
    if (operation.action == StreamAction::wait) events.wait(operation.event, here);
  }
  tell_in_random_order(happenings, streams, seed, machine);
}

void execute_in_random_order(const std::vector<MessageProgram>& programs, std::uint64_t seed,
                             StreamMachine& machine) {
  const MessageOrder messages(programs, Lanes::streams);
  const std::size_t streams = programs.size() * kStreamsPerRank;
  if (tell_in_random_order(messages.happenings(), streams, seed, machine)) return;
  throw_usage_error({.where = "message programs",
                     .expected = "programs that obey check_message_programs()",
                     .actual = "ranks that wait for ever"});
}

}  // namespace ringlab::ring
