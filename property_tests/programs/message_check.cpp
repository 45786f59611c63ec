#include "property_tests/programs/message_check.h"

#include "property_tests/programs/message_laws.h"

namespace ringlab::ring {

using namespace message_laws;

std::vector<std::string> check_message_programs(const std::vector<MessageProgram>& programs,
                                                const Schedule& schedule) {
  Findings findings;
  if (!check_programs(programs, findings)) return findings;
  for (const MessageProgram& program : programs) check_slots(program, findings);
  const StreamProgram met = meet(programs, findings);
  if (!stream_laws::check_numbers(met, schedule, findings)) return findings;
  stream_laws::check_contents(met, schedule, findings);
  stream_laws::check_work(met, schedule, findings);
  return findings;
}

}  // namespace ringlab::ring
