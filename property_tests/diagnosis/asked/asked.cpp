#include "property_tests/diagnosis/asked/asked.h"

namespace ringlab::verify {

std::string question_about(const std::string& suspect, const std::string& stage) {
  std::string question;
  bool is_past = false;  // at the stage or past it: later mistakes are about what it has not
  bool is_one = true;    // all earlier stages ask the same
  for (const AskedMistake& mistake : asked_mistakes()) {
    is_past = is_past || mistake.stage == stage;
    if (mistake.name != suspect) continue;
    if (mistake.stage == stage) return mistake.question;
    if (is_past) continue;
    is_one = is_one && (question.empty() || question == mistake.question);
    if (question.empty()) question = mistake.question;
  }
  return is_past && !is_one ? "" : question;
}

}  // namespace ringlab::verify
