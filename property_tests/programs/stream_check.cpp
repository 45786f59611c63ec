#include "property_tests/programs/stream_check.h"

#include "property_tests/programs/stream_laws.h"

namespace ringlab::ring {

using namespace stream_laws;

std::vector<std::string> check_stream_program(const StreamProgram& program,
                                              const Schedule& schedule) {
  Findings findings;
  if (!check_numbers(program, schedule, findings)) return findings;
  const Clocks clocks = check_events(program, findings);
  check_races(program, clocks, findings);
  check_contents(program, schedule, findings);
  check_work(program, schedule, findings);
  check_overlap(program, clocks, findings);
  return findings;
}

}  // namespace ringlab::ring
