// Stream programs as a graph: streams are lanes, and a wait for an event comes after its record.
//
// Waits bind to records issued before them, so the order of issue is one of the orders in which
// everything may happen. Operations that it orders by chance only are found by comparing clocks.
#include "property_tests/programs/stream_check.h"

#include "property_tests/programs/stream_laws.h"

namespace ringlab::ring {
namespace {

using namespace programs;

std::vector<StreamClock> stream_clocks(const StreamProgram& program, const ReportAt& report) {
  std::vector<StreamStep> steps;
  for (const StreamOperation& operation : program.operations) {
    StreamStep step{.stream = stream_number(operation)};
    if (operation.action == StreamAction::record) step.records = operation.event;
    if (operation.action == StreamAction::wait) step.waits_for = operation.event;
    steps.push_back(step);
  }
  return clocks_of(steps, static_cast<int>(program.ranks.size()) * kStreamsPerRank, program.events,
                   report);
}

std::vector<Race> races_by(const StreamProgram& program, const std::vector<StreamClock>& clocks) {
  std::vector<Accesses> accesses;
  for (const StreamOperation& operation : program.operations) {
    accesses.push_back(accesses_of(operation, program.pass));
  }
  return races_among(accesses, [&](std::size_t earlier, std::size_t later) {
    const int stream = stream_number(program.operations[earlier]);
    return clocks[later].of(stream) >= clocks[earlier].of(stream);
  });
}

}  // namespace

std::vector<programs::Race> races_of(const StreamProgram& program) {
  return races_by(program, stream_clocks(program, [](std::size_t, const std::string&) {}));
}

std::vector<std::string> check_stream_program(const StreamProgram& program,
                                              const Schedule& schedule) {
  Findings findings;
  if (!check_numbers(program, schedule, findings)) return findings;
  const auto clocks = stream_clocks(program, [&](std::size_t number, const std::string& what) {
    findings.push_back(place(program.operations[number]) + ": " + what);
  });
  for (const Race& race : races_by(program, clocks)) {
    findings.push_back(place(program.operations[race.later]) + ": nothing makes it come after " +
                       place(program.operations[race.earlier]));
  }
  check_contents(program, schedule, findings);
  check_work(program, schedule, findings);
  check_overlap(program, clocks, findings);
  return findings;
}

}  // namespace ringlab::ring
