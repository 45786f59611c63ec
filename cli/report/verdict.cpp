#include "cli/report/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "cli/report/hop_map.h"
#include "cli/report/human.h"

namespace ringlab::report {
namespace {

/// True where the tokens of a tensor are keys, false where queries; nothing for other names.
std::optional<bool> tokens_are_keys(const std::string& tensor) {
  for (const char* name : {"dk", "dv"}) {
    if (tensor.starts_with(name)) return true;
  }
  for (const char* name : {"o", "lse", "dq"}) {
    if (tensor.starts_with(name)) return false;
  }
  return std::nullopt;
}

/// The hop at which a query meets its visible keys, if all at the same one; else -1.
int only_hop(const verify::Case& c, std::int64_t query) {
  const HopMap hops(c);
  int only = -1;
  for (std::int64_t key = 0; key < c.shape.kv_tokens; ++key) {
    const int hop = hops.hop(query, key);
    if (hop < 0 || hop == only) continue;
    if (only >= 0) return -1;
    only = hop;
  }
  return only;
}

void locate(Fault& fault, const verify::LawFailure& failure) {
  fault.rank = failure.rank;
  fault.step = failure.step;
  if (!failure.at) return;
  fault.element = element_text(*failure.at);
  const std::optional<bool> of_keys = tokens_are_keys(failure.at->tensor);
  const Shape& shape = failure.shrunk.shape;
  const std::int64_t token = failure.at->token;
  if (!of_keys || fault.rank >= 0 || token >= (*of_keys ? shape.kv_tokens : shape.q_tokens)) return;
  const HopMap hops(failure.shrunk);
  fault.rank = *of_keys ? hops.key_rank(token) : hops.query_rank(token);
  if (!*of_keys && failure.shrunk.ranks > 1) fault.step = only_hop(failure.shrunk, token);
}

Fault fault_of(const verify::LawVerdict& law) {
  const verify::LawFailure& failure = *law.failure;
  Fault fault{.law = law.id,
              .topic = law.topic,
              .statement = law.statement,
              .message = failure.message,
              .shrunk = verify::describe(failure.shrunk),
              .token = failure.token,
              .ending = failure.ending};
  fault.doubt = failure.doubt();
  locate(fault, failure);
  return fault;
}

std::vector<Fault> faults_of(const SubjectResult& subject) {
  std::vector<Fault> faults;
  if (subject.input_wrong()) {
    const verify::InputVerdict& input = subject.on_input;
    faults.push_back({.law = "input",
                      .topic = "values",
                      .statement = "results for the given input lie within their bounds",
                      .message = input.error.empty() ? input.report.summary() : input.error,
                      .shrunk = "",
                      .token = "",
                      .ending = input.ending});
  }
  for (const verify::LawVerdict& law : subject.laws.laws) {
    if (!law.failure) continue;
    faults.push_back(fault_of(law));
    if (law.id == subject.insight.of_law) {
      faults.back().cause = subject.insight.diagnosis.sentence();
    }
  }
  return faults;
}

Word word_of(const std::vector<Fault>& faults) {
  const auto any = [&](verify::Ending ending) {
    return std::any_of(faults.begin(), faults.end(),
                       [&](const Fault& fault) { return fault.ending == ending; });
  };
  if (any(verify::Ending::crashed)) return Word::crash;
  return any(verify::Ending::timed_out) ? Word::timeout : Word::fail;
}

std::string fault_sentence(const SubjectResult& subject, const Verdict& verdict) {
  const Fault& first = verdict.faults.front();
  std::string text = fmt::format("{} of {} laws broken; first: {} ({})", subject.laws_broken(),
                                 subject.laws.laws.size(), first.law, first.topic);
  if (first.rank >= 0) text += fmt::format(", rank {}", first.rank);
  if (first.step >= 0) text += fmt::format(", step {}", first.step);
  const std::string cause = subject.insight.diagnosis.sentence();
  return cause.empty() ? text : text + "; " + cause;
}

std::string pass_sentence(const SubjectResult& subject, std::int64_t total_laws) {
  std::int64_t cases = 0;
  for (const verify::LawVerdict& law : subject.laws.laws) cases += law.cases;
  std::string text =
      fmt::format("{} of {} laws held in {} cases, every number inside its a-priori bound",
                  subject.laws_held(), total_laws, human_count(cases));
  const verify::Capabilities& can = subject.subject.can;
  if (!can.has(verify::Ability::deterministic)) {
    text += "; its bits differ from run to run";
  } else if (!can.has(verify::Ability::deterministic_gradients)) {
    text += "; the bits of its gradients differ from run to run";
  }
  if (!can.has(verify::Ability::lse)) text += "; it gives no lse";
  const verify::BoundCounts bounds = subject.bounds();
  if (bounds.unbounded > 0) text += fmt::format("; {} is unbounded", share_text(bounds));
  if (const auto open = subject.coverage.open_sizes(); !open.empty()) {
    text += fmt::format("; its bounds are as wide as the answer at {} of {} sizes of models",
                        open.size(), subject.coverage.as_used.size());
  }
  const std::size_t warnings = subject.insight.warnings.size();
  if (warnings > 0) text += fmt::format("; {} warning{}", warnings, warnings == 1 ? "" : "s");
  return text;
}

}  // namespace

std::string share_text(const verify::BoundCounts& bounds) {
  return human_percent(bounds.unbounded_share()) + " of what was compared";
}

Verdict verdict_of(const SubjectResult& subject, std::int64_t total_laws) {
  Verdict verdict{.word = Word::inconclusive, .sentence = "", .faults = faults_of(subject)};
  const std::vector<std::string> missing = subject.coverage.missing();
  if (!verdict.faults.empty()) {
    verdict.word = word_of(verdict.faults);
    verdict.sentence = fault_sentence(subject, verdict);
  } else if (!subject.checked()) {
    verdict.sentence = "nothing could be compared: every law was skipped or had no case";
  } else if (!subject.gaps.empty()) {
    verdict.sentence =
        "what was tried held, but not all was that was wanted: " + subject.gaps.front();
  } else if (!missing.empty()) {
    verdict.sentence = "what was tried held, but too few cases were: " + missing.front();
  } else {
    const verify::Capabilities& can = subject.subject.can;
    const bool same_bits = can.has(verify::Ability::deterministic) &&
                           can.has(verify::Ability::deterministic_gradients);
    verdict.word = same_bits ? Word::pass : Word::pass_statistical;
    verdict.sentence = pass_sentence(subject, total_laws);
  }
  return verdict;
}

// A token that names content needs the file beside it.
std::string replay_line(const verify::Subject& subject, const std::string& token) {
  return subject.id.empty() ? fmt::format("ringlab verify --replay {}", token)
                            : fmt::format("ringlab verify {} --replay {}", subject.name, token);
}

std::string element_text(const verify::Element& element) {
  return fmt::format("{}[{}, {}, {}, {}]", element.tensor, element.batch, element.head,
                     element.token, element.channel);
}

}  // namespace ringlab::report
