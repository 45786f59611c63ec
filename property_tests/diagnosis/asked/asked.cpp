#include "property_tests/diagnosis/asked/asked.h"

namespace ringlab::verify {

std::string question_about(const std::string& suspect, const std::string& stage) {
  std::string question;
  bool is_past = false;  // the stage's own mistakes: those of later ones are about what it has not
  for (const AskedMistake& mistake : asked_mistakes()) {
    if (mistake.stage == stage) {
      is_past = true;
      if (mistake.name == suspect) return mistake.question;
    } else if (mistake.name == suspect && question.empty() && !is_past) {
      question = mistake.question;
    }
  }
  return question;
}

}  // namespace ringlab::verify
