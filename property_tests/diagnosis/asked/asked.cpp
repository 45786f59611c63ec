#include "property_tests/diagnosis/asked/asked.h"

namespace ringlab::verify {

std::string question_about(const std::string& suspect, const std::string& stage) {
  std::string question;
  for (const AskedMistake& mistake : asked_mistakes()) {
    if (mistake.name != suspect) continue;
    if (mistake.stage == stage) return mistake.question;
    if (question.empty()) question = mistake.question;
  }
  return question;
}

}  // namespace ringlab::verify
