#include "property_tests/mutants/kill_matrix_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "property_tests/law.h"
#include "property_tests/sha256.h"

namespace ringlab::mutants {
namespace {

std::string size_of(const verify::Case& c) {
  const Shape& s = c.shape;
  return fmt::format("{} x {} tokens, d {}, {} rank{}", s.q_tokens, s.kv_tokens, s.head_dim,
                     c.ranks, c.ranks == 1 ? "" : "s");
}

std::string killer_of(const MutantRecord& mutant, const std::string& none) {
  if (!mutant.kill) return none;
  return mutant.kill->law + (mutant.kill->threw ? " (threw)" : "");
}

nlohmann::json json_of(const MutantRecord& mutant) {
  nlohmann::json json = {{"id", mutant.info.id},
                         {"stage", mutant.info.stage},
                         {"breaks", mutant.info.breaks},
                         {"question", mutant.info.question},
                         {"ancestor", mutant.info.ancestor},
                         {"killed", mutant.kill.has_value()},
                         {"cases_run", mutant.cases},
                         {"killers", mutant.killers}};
  if (mutant.kill) {
    json["first_killer"] = mutant.kill->law;
    json["cases_to_kill"] = mutant.kill->cases;
    json["threw"] = mutant.kill->threw;
    json["shrinks"] = mutant.kill->shrinks;
    json["token"] = mutant.kill->token;
    json["message"] = mutant.kill->message;
  }
  return json;
}

std::string summary(const KillMatrix& matrix) {
  const int total = static_cast<int>(matrix.mutants.size());
  const RateInterval rate = wilson_interval(matrix.killed(), total);
  const int alarms = static_cast<int>(matrix.false_alarms.size());
  const RateInterval alarm_rate = wilson_interval(alarms, matrix.correct_cases + alarms);
  std::string text = fmt::format(
      "{} of {} mutants killed (95 % interval of the rate: {:.1f} to {:.1f} %).\n"
      "{} false alarms in {} cases on {} correct stages and legal variants (rate below {:.3f} %; "
      "worst error {:.2f} of its bound).\n"
      "{} laws, {} of them without a kill.\n",
      matrix.killed(), total, 100 * rate.low, 100 * rate.high, alarms, matrix.correct_cases,
      matrix.correct_subjects, 100 * alarm_rate.high, matrix.worst_ratio, matrix.laws.size(),
      matrix.useless_laws().size());
  for (const std::string& id : matrix.survivors()) text += "SURVIVED: " + id + "\n";
  for (const std::string& id : matrix.useless_laws()) text += "KILLS NOTHING: law " + id + "\n";
  for (const FalseAlarm& alarm : matrix.false_alarms) {
    text += fmt::format("FALSE ALARM: {}\n  {}\n", alarm.token, alarm.message);
  }
  return text;
}

/// A table cell may hold no bar.
std::string cell(std::string text) {
  for (std::size_t at = text.find('|'); at != std::string::npos; at = text.find('|', at + 2)) {
    text.replace(at, 1, "\\|");
  }
  return text;
}

}  // namespace

nlohmann::json to_json(const KillMatrix& matrix) {
  const RateInterval rate =
      wilson_interval(matrix.killed(), static_cast<int>(matrix.mutants.size()));
  nlohmann::json json = {{"passed", matrix.passed()},
                         {"killed", matrix.killed()},
                         {"total", matrix.mutants.size()},
                         {"kill_rate_interval", {rate.low, rate.high}},
                         {"correct_subjects", matrix.correct_subjects},
                         {"correct_cases", matrix.correct_cases},
                         {"worst_ratio", matrix.worst_ratio},
                         {"skipped_pairs", matrix.skipped_pairs},
                         {"survivors", matrix.survivors()},
                         {"useless_laws", matrix.useless_laws()},
                         {"seconds", matrix.seconds},
                         {"false_alarms", nlohmann::json::array()},
                         {"laws", nlohmann::json::array()},
                         {"mutants", nlohmann::json::array()}};
  for (const FalseAlarm& alarm : matrix.false_alarms) {
    json["false_alarms"].push_back({{"subject", alarm.subject},
                                    {"law", alarm.law},
                                    {"token", alarm.token},
                                    {"message", alarm.message}});
  }
  for (const LawRecord& law : matrix.laws) {
    json["laws"].push_back({{"id", law.id},
                            {"name", law.name},
                            {"exact", law.exact},
                            {"first_kills", law.first_kills},
                            {"kills", law.kills},
                            {"thrown", law.thrown},
                            {"example", law.example}});
  }
  for (const MutantRecord& mutant : matrix.mutants) json["mutants"].push_back(json_of(mutant));
  return json;
}

nlohmann::json to_summary(const KillMatrix& matrix, const MatrixOptions& options) {
  const RateInterval rate =
      wilson_interval(matrix.killed(), static_cast<int>(matrix.mutants.size()));
  const int alarms = static_cast<int>(matrix.false_alarms.size());
  verify::Sha256 catalogue;
  for (const MutantRecord& mutant : matrix.mutants) {
    catalogue.add(mutant.info.id + "\t" + mutant.info.breaks + "\n");
  }
  nlohmann::json laws = nlohmann::json::array();
  for (const LawRecord& law : matrix.laws) laws.push_back(law.id);
  return {{"mutants", matrix.mutants.size()},
          {"killed", matrix.killed()},
          {"survivors", matrix.survivors()},
          {"kill_rate_interval", {rate.low, rate.high}},
          {"full", options.full},
          {"seed", options.seed},
          {"catalogue_sha256", catalogue.finish()},
          {"laws", laws},
          {"useless_laws", matrix.useless_laws()},
          {"correct_subjects", matrix.correct_subjects},
          {"correct_cases", matrix.correct_cases},
          {"false_alarms", alarms},
          {"false_alarm_rate_below", wilson_interval(alarms, matrix.correct_cases + alarms).high},
          {"worst_ratio", matrix.worst_ratio}};
}

std::string to_text(const KillMatrix& matrix) {
  std::size_t widest = 6;
  for (const MutantRecord& mutant : matrix.mutants) {
    widest = std::max(widest, mutant.info.id.size());
  }
  std::string text = fmt::format("{:<{}}  {:<24}{:>6}  {}\n", "mutant", widest, "first killer",
                                 "cases", "shrunk to");
  for (const MutantRecord& mutant : matrix.mutants) {
    text += fmt::format("{:<{}}  {:<24}{:>6}  {}\n", mutant.info.id, widest,
                        killer_of(mutant, "SURVIVED"), mutant.cases,
                        mutant.kill ? size_of(mutant.kill->shrunk) : "");
  }
  return text + "\n" + summary(matrix) + fmt::format("{:.1f} s\n", matrix.seconds);
}

std::string to_markdown(const KillMatrix& matrix) {
  std::string text =
      "# Planted mistakes, and the laws that find them\n\n"
      "Generated by `kill_matrix --markdown docs/mutants.md --summary docs/mutants.json`; not to "
      "edit. With `--full` every law is tried on every mutant, else until one kills it: `full` in "
      "mutants.json, the figures of which certificates quote.\n\n"
      "Each mutant is a correct stage with one mistake in it, drawn from a real bug where it names "
      "one. *First killer* is the law that broke first, *cases* how many random cases had been run "
      "by then, *shrunk to* the size of the counterexample after shrinking, *killers* how many of "
      "the laws find it by what they say (a mutant that throws is noticed by any). A mutant that "
      "survives fails the build, and so do a law that kills "
      "nothing "
      "and a law that blames a correct stage.\n\n```text\n" +
      summary(matrix) +
      "```\n\n## Mutants\n\n"
      "| mutant | what comes out wrong | drawn from | first killer | cases | shrunk to | killers "
      "|\n"
      "|---|---|---|---|---:|---|---:|\n";
  for (const MutantRecord& mutant : matrix.mutants) {
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", mutant.info.id,
                        cell(mutant.info.breaks), cell(mutant.info.ancestor),
                        killer_of(mutant, "**survived**"), mutant.cases,
                        mutant.kill ? size_of(mutant.kill->shrunk) : "", mutant.killers.size());
  }
  text +=
      "\n## Laws\n\n| law | statement's name | bitwise | first to kill | kills | for example |\n"
      "|---|---|---|---:|---:|---|\n";
  for (const LawRecord& law : matrix.laws) {
    text += fmt::format("| {} | {} | {} | {} | {} | {} |\n", law.id, law.name,
                        law.exact ? "yes" : "", law.first_kills, law.kills,
                        law.example.empty() ? "**none**" : "`" + law.example + "`");
  }
  return text;
}

KnownKills known_kills(const std::string& page) {
  static const std::regex mutant_row(
      R"(\| `(\w+)` \|.* \| (\S+)(?: \(threw\))? \| \d+ \| [^|]* \| \d+ \|)");
  static const std::regex law_row(R"(\| (\S+) \| \w+ \| (?:yes)? \| \d+ \| \d+ \| `(\w+)` \|)");
  const auto is_law = [](const std::string& id) {
    const auto& all = verify::all_laws();
    return std::ranges::find(all, id, &verify::Law::id) != all.end();
  };
  KnownKills known;
  std::istringstream lines(page);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, mutant_row) && is_law(found[2])) {
      known.first_laws[found[1]] = found[2];
    } else if (std::regex_match(line, found, law_row)) {
      known.examples[found[1]] = found[2];
    }
  }
  return known;
}

}  // namespace ringlab::mutants
