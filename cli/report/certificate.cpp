#include "cli/report/certificate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "cli/report/verdict.h"
#include "cli/viewer/viewer.h"
#include "property_tests/law.h"
#include "property_tests/sha256.h"
#include "reference/core/error.h"
#include "reference/core/kinds.h"
#include "reference/io/outside_json.h"

namespace ringlab::report {
namespace {

using Json = CertificateJson;

// Far more than certificates of all subjects have; members are found one after the other.
constexpr io::JsonLimits kCertificateLimits{
    .what = "certificate", .depth = 16, .keys = 1024, .values = std::int64_t{1} << 20};
constexpr std::string_view kEmbedBegin = "<script type=\"application/json\" id=\"data\">";
constexpr std::string_view kOldEmbedBegin = "<script type=\"application/json\" id=\"certificate\">";
constexpr std::string_view kEmbedEnd = "</script>";
std::string gravest_word(const Json& subjects) {
  Word worst = subjects.empty() ? Word::inconclusive : Word::pass;
  for (const Json& subject : subjects) {
    const auto verdict = subject.at("verdict").get<std::string>();
    worst = std::max(worst, *kind_named<Word, word_text>(verdict));
  }
  return std::string(word_text(worst));
}

Json oracle_record(const verify::OracleCheck& oracle) {
  return {{"problems", oracle.problems},   {"numbers", oracle.numbers},
          {"undecided", oracle.undecided}, {"fingerprint", oracle.fingerprint},
          {"expected", oracle.expected},   {"agrees", oracle.agrees()}};
}

/// Laws of this build that the planted mistakes were not tried with.
Json laws_since(const Json& measured) {
  std::set<std::string> known;
  for (const Json& id : measured.value("laws", Json::array())) known.insert(id.get<std::string>());
  Json newer = Json::array();
  for (const verify::Law& law : verify::all_laws()) {
    if (known.count(law.id) == 0) newer.push_back(law.id);
  }
  return newer;
}

Json strength_record(const CertificateFacts& facts) {
  const Json measured = Json::parse(facts.strength, nullptr, false);
  if (!measured.is_object() || !measured.contains("mutants")) {
    return {{"known", false}, {"why", "this build was made without docs/mutants.json"}};
  }
  Json json = {
      {"known", true}, {"file", "docs/mutants.json"}, {"file_sha256", facts.strength_sha256}};
  for (const char* name :
       {"mutants", "killed", "kill_rate_interval", "full", "catalogue_sha256", "correct_subjects",
        "correct_cases", "false_alarms", "false_alarm_rate_below", "worst_ratio"}) {
    if (measured.contains(name)) json[name] = measured[name];
  }
  json["laws_added_since"] = laws_since(measured);
  json["hold_out"] = measured.value("hold_out", Json("not measured in this build"));
  return json;
}

Json not_checked_record(const CertificateFacts& facts) {
  Json list = Json::array();
  for (const auto& [what, why] : facts.not_checked) list.push_back({{"what", what}, {"why", why}});
  return list;
}

Json configuration_record(const VerifyRun& run) {
  Json json = Json::object();
  for (const auto& [name, value] : run.configuration) json[name] = value;
  return json;
}

Json cases_record(const VerifyRun& run, const CertificateFacts& facts) {
  Json json = {{"seed", facts.seed}, {"cases_per_law", facts.cases_per_law}};
  if (facts.seconds) json["time_s"] = *facts.seconds;
  if (!run.ended.empty()) json["ended"] = run.ended;
  json["all_laws"] = facts.all_laws;
  verify::Sha256 digest;
  for (const SubjectResult& subject : run.subjects) {
    for (const verify::LawVerdict& law : subject.laws.laws) digest.add(law.case_digest + "\n");
  }
  json["sha256"] = digest.finish();
  return json;
}

[[noreturn]] void refuse_certificate(const std::string& file, const std::string& found) {
  throw_input_error({.where = file,
                     .expected = fmt::format("a certificate of format {}", kCertificateFormat),
                     .actual = found,
                     .hint = "`ringlab verify --certificate FILE` writes one."});
}

/// The first field of a certificate that is missing or of another type, in words; "" for none.
std::string shape_problem(const Json& document) {
  if (!document.is_object()) return "no JSON object";
  if (document.value("ringlab_certificate", Json()) != Json(kCertificateFormat)) {
    return "another format, or none";
  }
  for (const char* name : {"verdict", "digest", "written"}) {
    if (!document.value(name, Json()).is_string()) return fmt::format("no text \"{}\"", name);
  }
  for (const char* name : {"command", "subjects"}) {
    if (!document.value(name, Json()).is_array()) return fmt::format("no list \"{}\"", name);
  }
  for (const Json& word : document["command"]) {
    if (!word.is_string()) return "a command that is not made of words";
  }
  for (const Json& subject : document["subjects"]) {
    for (const char* name : {"subject", "verdict", "sentence", "cases_sha256"}) {
      const bool fits = subject.is_object() && subject.value(name, Json()).is_string();
      if (!fits) return fmt::format("a subject without text \"{}\"", name);
    }
  }
  return "";
}

}  // namespace

Json make_certificate(const VerifyRun& run, const CertificateFacts& facts) {
  Json subjects = Json::array();
  for (const SubjectResult& subject : run.subjects) {
    subjects.push_back(certified_subject(subject, facts.all_laws));
    // A reference that fails its own checks judges nobody.
    if (!facts.oracle.agrees()) {
      subjects.back()["verdict"] = word_text(Word::inconclusive);
      subjects.back()["sentence"] = "the exact reference does not give the answers it is known for";
    }
  }
  Json document = {{"ringlab_certificate", kCertificateFormat},
                   {"verdict", gravest_word(subjects)},
                   {"written", facts.written},
                   {"command", facts.command},
                   {"ringlab",
                    {{"version", run.version},
                     {"compiler", run.compiler},
                     {"build_type", facts.build_type},
                     {"flags", run.flags}}},
                   {"machine",
                    {{"processor", facts.processor},
                     {"threads", facts.threads},
                     {"vectors", facts.vectors},
                     {"device", facts.device}}},
                   {"oracle", oracle_record(facts.oracle)},
                   {"strength", strength_record(facts)},
                   {"configuration", configuration_record(run)},
                   {"cases", cases_record(run, facts)},
                   {"seconds", run.seconds},
                   {"notes", run.notes},
                   {"not_checked", not_checked_record(facts)},
                   {"subjects", subjects}};
  document["digest"] = certificate_digest(document);
  return document;
}

namespace {

/// Writes fractions with 17 digits, the same in every program; the shortest digits are not.
void fix_digits(nlohmann::json& value) {
  if (value.is_number_float()) {
    value = fmt::format("{:.17g}", value.get<double>());
  } else if (value.is_structured()) {
    for (nlohmann::json& part : value) fix_digits(part);
  }
}

}  // namespace

std::string certificate_digest(const Json& certificate) {
  // The type whose objects keep their keys in order.
  nlohmann::json sorted =
      nlohmann::json::parse(certificate.dump(-1, ' ', false, Json::error_handler_t::replace));
  sorted.erase("digest");
  fix_digits(sorted);
  return "sha256:" + verify::sha256(sorted.dump());
}

Json parse_certificate(const std::string& text, const std::string& file) {
  std::string document = text;
  for (const std::string_view mark : {kEmbedBegin, kOldEmbedBegin}) {
    const std::size_t begin = text.find(mark);
    if (begin == std::string::npos) continue;
    const std::size_t first = begin + mark.size(), end = text.find(kEmbedEnd, first);
    document = text.substr(first, end == std::string::npos ? end : end - first);
  }
  io::check_json(document, kCertificateLimits, file);
  Json parsed = Json::parse(document);
  const std::string problem = shape_problem(parsed);
  if (!problem.empty()) refuse_certificate(file, problem);
  return parsed;
}

std::string certificate_page(const Json& certificate) {
  return viewer::page(certificate.dump(-1, ' ', false, Json::error_handler_t::replace),
                      certificate_words(certificate));
}

std::string certificate_words(const Json& certificate) {
  std::string text;
  for (const Json& subject : certificate.at("subjects")) {
    text += (text.empty() ? "" : ", ") + subject.at("verdict").get<std::string>() + " " +
            subject.at("subject").get<std::string>();
  }
  return text;
}

}  // namespace ringlab::report
