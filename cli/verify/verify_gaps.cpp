// Reasons why a subject does not pass without being wrong: checks wanted and not made.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/verify/verify.h"
#include "property_tests/coverage.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

using report::SubjectResult;

bool is_law(const std::string& word) {
  for (const auto* laws : {&verify::all_laws(), &verify::laws_about_others()}) {
    for (const verify::Law& law : *laws) {
      if (word == law.id || word == law.name) return true;
    }
  }
  return false;
}

std::string why_law_is_missing(const SubjectResult& subject, const std::string& id) {
  const auto& laws = subject.laws.laws;
  const auto law = std::ranges::find(laws, id, &verify::LawVerdict::id);
  if (law == laws.end()) return "it was not tried";
  if (!law->skipped.empty()) return law->skipped;
  return law->cases == 0 ? "no case of it held" : "";
}

std::string why_class_is_missing(const verify::Coverage& coverage, const std::string& name) {
  const auto found = std::ranges::find(coverage.classes, name, &verify::ClassShare::name);
  if (found == coverage.classes.end() || found->cases == 0) return "no case held";
  if (!coverage.is_judged || coverage.share(*found) >= verify::kLeastShare) return "";
  return fmt::format("{} of {} cases are too few", found->cases, coverage.cases);
}

std::string why_pair_is_missing(const verify::Coverage& coverage, const std::string& pair) {
  const auto is_among = [&](const std::vector<std::string>& pairs) {
    return std::ranges::find(pairs, pair) != pairs.end();
  };
  if (!is_among(coverage.pairs_claimed)) return "the subject does not claim both";
  return is_among(coverage.pairs_not_met) ? "no case that held had both" : "";
}

std::string why_missing(const SubjectResult& subject, const std::string& word) {
  if (is_law(word)) return why_law_is_missing(subject, word);
  const bool is_pair = word.find(" × ") != std::string::npos;
  return is_pair ? why_pair_is_missing(subject.coverage, word)
                 : why_class_is_missing(subject.coverage, word);
}

void add_required(const VerifyPlan& plan, const SubjectResult& subject,
                  std::vector<std::string>& gaps) {
  for (const std::string& word : plan.required) {
    const std::string why = why_missing(subject, word);
    if (!why.empty()) gaps.push_back(fmt::format("--require {}: {}", word, why));
  }
}

void add_late_answers(const SubjectResult& subject, std::vector<std::string>& gaps) {
  for (const verify::LawVerdict& law : subject.laws.laws) {
    if (law.late.empty()) continue;
    gaps.push_back(fmt::format(
        "{}: {}; the same call was answered each time after. Run it again where nothing else runs, "
        "or with a longer --timeout",
        law.id, law.late));
  }
}

/// Adds the input, and with --laws or --strict the laws, where bounds are too wide to say anything.
void add_unbounded(const VerifyPlan& plan, const SubjectResult& subject,
                   std::vector<std::string>& gaps) {
  if (subject.input_is_unbounded()) {
    gaps.emplace_back("the input: some bounds are so wide that zeros would pass");
  }
  if (!plan.is_strict && plan.laws.laws.empty()) return;
  for (const verify::LawVerdict& law : subject.laws.laws) {
    if (law.is_unbounded()) gaps.push_back(fmt::format("{}: {}", law.id, law.skipped));
  }
}

}  // namespace

std::vector<std::string> take_required(Arguments& arguments) {
  const std::vector<std::string> classes = verify::all_classes();
  std::vector<std::string> required;
  for (const std::string& word : arguments.take_words("require")) {
    if (is_law(word)) {
      required.push_back(verify::find_law(word).id);
    } else if (std::ranges::find(classes, word) != classes.end()) {
      required.push_back(word);
    } else if (const std::string pair = verify::known_pair(word); !pair.empty()) {
      required.push_back(pair);
    } else {
      throw_usage_error({"--require",
                         "ids of laws, pairs as \"dtype bf16 x mask causal\", or of these: " +
                             fmt::format("{}", fmt::join(classes, ", ")),
                         word, ""});
    }
  }
  return required;
}

std::vector<std::string> gaps_of(const VerifyPlan& plan, const SubjectResult& subject) {
  std::vector<std::string> gaps;
  if (plan.is_named && plan.is_given_problem && subject.refuses_input) {
    gaps.push_back("the problem that was given: it " + subject.input_skipped);
  }
  if (plan.wants_gradients && plan.is_named &&
      !subject.subject.can.has(verify::Ability::backward)) {
    gaps.emplace_back("--backward: it gives no gradients");
  }
  add_late_answers(subject, gaps);
  add_unbounded(plan, subject, gaps);
  const verify::Coverage& coverage = subject.coverage;
  if (coverage.refuses_most()) {
    gaps.push_back(fmt::format("it refused {} of {} cases that it claims to take", coverage.refused,
                               coverage.refused + coverage.cases));
  }
  add_required(plan, subject, gaps);
  if (!plan.is_strict) return gaps;
  if (!coverage.not_tried.empty()) {
    gaps.push_back(fmt::format("claimed, but not tried: {}", fmt::join(coverage.not_tried, ", ")));
  }
  if (!coverage.pairs_not_met.empty()) {
    gaps.push_back(fmt::format("{} of {} pairs of claims did not meet: {}",
                               coverage.pairs_not_met.size(), coverage.pairs_claimed.size(),
                               coverage.pairs_not_met.front()));
  }
  if (const auto open = coverage.open_sizes(); !open.empty()) {
    gaps.push_back(fmt::format("bounds as wide as the answer at {} of {} sizes of models: {}",
                               open.size(), coverage.as_used.size(), open.front()));
  }
  if (coverage.refused > 0 && !coverage.refuses_most()) {
    gaps.push_back(fmt::format("it refused {} cases that it claims to take", coverage.refused));
  }
  return gaps;
}

}  // namespace ringlab::cli
