// The part of a certificate about one subject.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cli/report/certificate.h"
#include "cli/report/profile_json.h"
#include "cli/report/tried.h"
#include "cli/report/verdict.h"
#include "property_tests/sha256.h"

namespace ringlab::report {
namespace {

using Json = CertificateJson;

/// Laws that run the same thing twice and want the same bits.
constexpr std::array kRepeatingLaws = {"P57",           "P64",           "P65",      "P70",
                                       "P65-gradients", "P70-gradients", "same_call"};

Json finite_or_text(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

const char* law_word(const verify::LawVerdict& law) {
  if (law.failure) return "broken";
  return law.skipped.empty() && law.cases > 0 ? "held" : "skipped";
}

Json law_record(const verify::LawVerdict& law) {
  Json json = {{"id", law.id},
               {"name", law.name},
               {"topic", law.topic},
               {"verdict", law_word(law)},
               {"cases", law.cases},
               {"discarded", law.discarded},
               {"compared", law.bounds.measured},
               {"unbounded", law.bounds.unbounded},
               {"worst_ratio", finite_or_text(law.worst_ratio)}};
  if (law.worst_at) json["worst_element"] = element_text(*law.worst_at);
  if (!law.skipped.empty()) json["skipped"] = law.skipped;
  if (!law.case_digest.empty()) json["cases_sha256"] = law.case_digest;
  return json;
}

Json input_record(const SubjectResult& subject) {
  if (!subject.input_skipped.empty())
    return {{"verdict", "skipped"}, {"why", subject.input_skipped}};
  Json json = {{"verdict", subject.input_wrong()    ? "broken"
                           : subject.input_passed() ? "held"
                                                    : "unbounded"},
               {"rows_compared", subject.on_input.rows_checked}};
  Json tensors = Json::array();
  for (const TensorReport& tensor : subject.on_input.report.tensors) {
    const WorstElement& at = tensor.worst;
    tensors.push_back({{"tensor", tensor.tensor},
                       {"compared", tensor.compared},
                       {"unbounded", tensor.unbounded},
                       {"worst_ratio", finite_or_text(at.ratio)},
                       {"worst_element",
                        element_text({tensor.tensor, at.batch, at.head, at.token, at.channel})}});
  }
  json["tensors"] = tensors;
  return json;
}

/// Laws, cases, and how many of the laws held, of those that `picked` takes.
template <class Picked>
Json tally(const SubjectResult& subject, const Picked& picked) {
  std::int64_t tried = 0, held = 0, cases = 0;
  Json ids = Json::array();
  for (const verify::LawVerdict& law : subject.laws.laws) {
    const bool was_tried = law.failure || (law.skipped.empty() && law.cases > 0);
    if (!picked(law) || !was_tried) continue;
    ++tried;
    held += !law.failure;
    cases += law.cases;
    ids.push_back(law.id);
  }
  return {{"laws", ids}, {"tried", tried}, {"held", held}, {"cases", cases}};
}

Json fault_record(const Fault& fault) {
  Json json = {{"class", fault.topic}, {"law", fault.law}, {"statement", fault.statement}};
  if (fault.rank >= 0) json["rank"] = fault.rank;
  if (fault.step >= 0) json["step"] = fault.step;
  if (!fault.element.empty()) json["element"] = fault.element;
  json["smallest_case"] = fault.shrunk;
  json["found"] = fault.message;
  json["suspected_cause"] = fault.cause;
  if (!fault.doubt.empty()) json["doubt"] = fault.doubt;
  json["replay"] = fault.token;
  return json;
}

Json coverage_record(const verify::Coverage& coverage) {
  Json classes = Json::object();
  for (const verify::ClassShare& one : coverage.classes) {
    if (one.required) classes[one.name] = one.cases;
  }
  return {{"judged", coverage.is_judged},
          {"cases", coverage.cases},
          {"missing", coverage.missing()},
          {"required_classes", classes},
          {"tried", tried_json(coverage)}};
}

std::string case_list_digest(const verify::SubjectVerdict& verdict) {
  verify::Sha256 digest;
  for (const verify::LawVerdict& law : verdict.laws) {
    digest.add(law.id + " " + law.case_digest + "\n");
  }
  return digest.finish();
}

}  // namespace

Json certified_subject(const SubjectResult& subject, bool all_laws) {
  const std::int64_t asked = std::ssize(subject.laws.laws);
  const std::int64_t all = std::ssize(verify::laws_for(subject.subject, {}));
  const Verdict verdict = verdict_of(subject, all_laws ? asked : all);
  Json json = {{"subject", subject.subject.name},
               {"title", subject.subject.title},
               {"content", subject.subject.id},
               {"verdict", word_text(verdict.word)},
               {"sentence", verdict.sentence},
               {"declared_numerics", profile_json(subject.profile)},
               {"input", input_record(subject)},
               {"rounds", subject.rounds},
               {"cases_sha256", case_list_digest(subject.laws)}};
  json["exact_probes"] =
      tally(subject, [](const verify::LawVerdict& law) { return law.topic == "exact probes"; });
  json["determinism"] = tally(subject, [](const verify::LawVerdict& law) {
    return std::find(kRepeatingLaws.begin(), kRepeatingLaws.end(), law.id) != kRepeatingLaws.end();
  });
  const verify::Capabilities& can = subject.subject.can;
  json["determinism"]["promised"] =
      can.has(verify::Ability::deterministic) && can.has(verify::Ability::deterministic_gradients);
  json["coverage"] = coverage_record(subject.coverage);
  json["gaps"] = subject.gaps;
  json["warnings"] = subject.insight.warnings;
  json["remarks"] = subject.insight.remarks;
  json["findings"] = subject.insight.diagnosis.findings;
  json["passes_if"] = subject.insight.passes_if;
  json["faults"] = Json::array();
  for (const Fault& fault : verdict.faults) json["faults"].push_back(fault_record(fault));
  json["laws"] = Json::array();
  for (const verify::LawVerdict& law : subject.laws.laws) json["laws"].push_back(law_record(law));
  return json;
}

}  // namespace ringlab::report
