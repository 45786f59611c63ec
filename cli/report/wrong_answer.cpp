#include "cli/report/wrong_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "cli/report/human.h"
#include "cli/report/verdict.h"
#include "property_tests/diagnosis/asked/asked.h"

namespace ringlab::report {
namespace {

constexpr std::size_t kMostNames = 2;

const char* nameless(verify::Ending ending) {
  switch (ending) {
    case verify::Ending::answered:
      return "no known mistake matches";
    case verify::Ending::threw:
      return "it fails instead of answering";
    case verify::Ending::crashed:
      return "it crashes";
    case verify::Ending::timed_out:
      return "it gives no answer in time";
  }
  return "";
}

/// The name of a mistake: a cause, never a symptom.
std::string name_of(const verify::Diagnosis& diagnosis, verify::Ending ending) {
  const auto& causes = diagnosis.explains;
  if (causes.empty()) return nameless(ending);
  if (causes.size() == 1) return causes.front().what;
  std::string text = "consistent with: " + causes[0].what + "; or " + causes[1].what;
  if (causes.size() > kMostNames) text += fmt::format("; or {} more", causes.size() - kMostNames);
  return text;
}

std::string with_nan_as_a_word(const std::string& found) {
  static const std::regex both(
      "(got|became) -?nan, (other run|was) -?nan, (allowed [^,]*|and must be .*)");
  static const std::regex one("got -?nan\\b");
  return std::regex_replace(std::regex_replace(found, both, "NaN in both runs"), one, "NaN");
}

/// The failure that was diagnosed, else the first; one that shows by itself that an answer is wrong
/// before those of two runs that differ.
const verify::LawVerdict* shown_law(const SubjectResult& subject) {
  const verify::LawVerdict* shown = nullptr;
  const auto rank = [&](const verify::LawVerdict& law) {
    return 2 * law.failure->is_absolute() + (law.id == subject.insight.of_law);
  };
  for (const verify::LawVerdict& law : subject.laws.laws) {
    if (law.failure && (!shown || rank(law) > rank(*shown))) shown = &law;
  }
  return shown;
}

void show_law(const verify::LawVerdict& law, const SubjectResult& subject, DeviceKind device,
              WrongAnswer& answer) {
  const verify::LawFailure& failure = *law.failure;
  answer.law = law.id + ": " + law.statement;
  answer.other_laws = subject.laws_broken() - 1;
  answer.found = with_nan_as_a_word(human_finding(failure.message));
  answer.again = failure.doubt();
  answer.smallest = failure.shrunk;
  answer.marked = failure.at;
  answer.answer = failure.answer;
  answer.replay = replay_line(subject.subject, failure.token) +
                  (device == DeviceKind::cuda ? " --device cuda" : "");
}

}  // namespace

std::optional<WrongAnswer> wrong_answer(const SubjectResult& subject, DeviceKind device) {
  if (!subject.wrong()) return std::nullopt;
  const verify::Diagnosis& diagnosis = subject.insight.diagnosis;
  WrongAnswer answer;
  answer.subject = subject.subject.name;
  if (const verify::LawVerdict* law = shown_law(subject)) {
    answer.name = name_of(diagnosis, law->failure->ending);
    show_law(*law, subject, device, answer);
  } else {
    const verify::InputVerdict& input = subject.on_input;
    answer.name = name_of(diagnosis, input.ending);
    answer.law = "the given input: results lie within their bounds";
    answer.found = input.error.empty() ? input.report.summary() : input.error;
  }
  answer.at = diagnosis.findings;
  if (diagnosis.explains.empty() && !subject.insight.passes_if.empty()) {
    answer.at.push_back(subject.insight.passes_if);
  }
  if (diagnosis.explains.size() == 1) {
    answer.question =
        verify::question_about(diagnosis.explains.front().id, subject.subject.stage_or_name());
  }
  return answer;
}

}  // namespace ringlab::report
