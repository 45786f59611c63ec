#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cli/line/text_table.h"
#include "cli/report/hop_map.h"
#include "cli/report/human.h"
#include "cli/report/profile_json.h"
#include "cli/report/tried.h"
#include "cli/report/verdict.h"
#include "cli/report/wrong_answer.h"
#include "cli/verify/report_json.h"
#include "cli/verify/verify.h"

namespace ringlab::cli {
namespace {

using report::SubjectResult;

std::string summary_table(const report::VerifyRun& run) {
  TextTable table({{"subject"},
                   {"verdict"},
                   {"error/bound: input", Align::right},
                   {"laws", Align::right},
                   {"laws held", Align::right},
                   {"skipped", Align::right},
                   {"moved", Align::right},
                   {"peak/rank", Align::right},
                   {"time", Align::right},
                   {"laws took", Align::right}});
  for (const SubjectResult& subject : run.subjects) {
    table.add({subject.subject.name, subject.wrong() ? "WRONG" : subject.verdict(),
               subject.input_text(), subject.laws_text(),
               fmt::format("{}/{}", subject.laws_held(), subject.laws.laws.size()),
               fmt::format("{}", subject.laws.laws_skipped()),
               report::human_bytes(subject.sent_bytes()), report::human_bytes(subject.peak_bytes()),
               report::human_seconds(subject.on_input.run.seconds),
               report::human_seconds(subject.laws.seconds)});
  }
  return table.text();
}

// "REASON: laws P1, P2 (ring, merge)", every reason once per group of subjects.
std::string skip_lines(const report::VerifyRun& run) {
  std::map<std::string, std::map<std::string, std::string>> reasons;  // reason → law → subjects
  for (const SubjectResult& subject : run.subjects) {
    if (!subject.input_skipped.empty()) {
      reasons[subject.input_skipped]["the input"] += " " + subject.subject.name;
    }
    for (const verify::LawVerdict& law : subject.laws.laws) {
      const bool no_case = law.skipped.empty() && !law.failure && law.cases == 0;
      const std::string reason = no_case ? "no case applied; this says nothing" : law.skipped;
      if (!reason.empty()) reasons[reason][law.id] += " " + subject.subject.name;
    }
  }
  std::string text;
  for (const auto& [reason, laws] : reasons) {
    std::map<std::string, std::string> by_subjects;
    for (const auto& [id, names] : laws) by_subjects[names] += " " + id;
    for (const auto& [names, ids] : by_subjects) {
      text += fmt::format("skipped{} for{}: {}\n", ids, names, reason);
    }
  }
  return text;
}

// The rarest required classes of all subjects that are judged, each with its least share.
std::string coverage_lines(const report::VerifyRun& run) {
  constexpr std::size_t kMostNamed = 4;
  std::map<std::string, double> least;  // class → share
  std::int64_t cases = 0;
  for (const SubjectResult& subject : run.subjects) {
    cases += subject.coverage.cases;
    if (!subject.coverage.is_judged) continue;
    for (const verify::ClassShare& one : subject.coverage.classes) {
      if (!one.required) continue;
      const double share = subject.coverage.share(one);
      const auto [known, is_new] = least.try_emplace(one.name, share);
      if (!is_new) known->second = std::min(known->second, share);
    }
  }
  if (least.empty()) return "";
  std::vector<std::pair<double, std::string>> rarest;
  for (const auto& [name, share] : least) rarest.emplace_back(share, name);
  std::sort(rarest.begin(), rarest.end());
  std::string text =
      fmt::format("{} cases held, of {} required classes; the rarest:", report::human_count(cases),
                  least.size());
  for (std::size_t i = 0; i < std::min(kMostNamed, rarest.size()); ++i) {
    text +=
        fmt::format("{} {} {:.1f} %", i == 0 ? "" : ",", rarest[i].second, 100 * rarest[i].first);
  }
  return text + "\n";
}

// The subject with the largest share of numbers whose bounds are as wide as the answer.
std::string unbounded_line(const report::VerifyRun& run) {
  const auto share = [](const SubjectResult& subject) {
    return subject.bounds().unbounded_share();
  };
  const auto most = std::ranges::max_element(run.subjects, {}, share);
  if (most == run.subjects.end() || share(*most) == 0) return "";
  return fmt::format("bounds as wide as the answer: {}{} ({})\n",
                     run.subjects.size() > 1 ? "at most " : "", report::share_text(most->bounds()),
                     most->subject.name);
}

// The least and the greatest sizes that reached each subject in the cases that held.
std::string tried_table(const report::VerifyRun& run) {
  constexpr std::array kSizes = {"batch",     "q_heads",  "kv_heads", "group", "q_tokens",
                                 "kv_tokens", "head_dim", "v_dim",    "ranks", "threads"};
  std::vector<Column> columns = {{"tried"}, {"calls", Align::right}};
  for (const char* size : kSizes) columns.push_back({size, Align::right});
  TextTable table(columns);
  bool some = false;
  for (const SubjectResult& subject : run.subjects) {
    const verify::Envelope& tried = subject.coverage.tried;
    for (const verify::PassEnvelope* pass : {&tried.forward, &tried.gradients}) {
      if (pass->calls == 0) continue;
      some = true;
      std::vector<std::string> cells = {
          subject.subject.name + (pass == &tried.forward ? "" : ", gradients"),
          report::human_count(pass->calls)};
      for (const char* size : kSizes) cells.push_back(report::range_text(*pass, size));
      table.add(std::move(cells));
    }
  }
  return some ? "\n" + table.text() : "";
}

// Masks, strides and other kinds; for many subjects only the JSON has them.
std::string tried_kinds(const report::VerifyRun& run) {
  constexpr std::size_t kMostShown = 3;
  std::string text;
  if (run.subjects.size() > kMostShown) return text;
  for (const SubjectResult& subject : run.subjects) {
    const verify::Envelope& tried = subject.coverage.tried;
    if (tried.forward.calls > 0) {
      text +=
          fmt::format("tried of {}: {}\n", subject.subject.name, report::kinds_text(tried.forward));
    }
    if (tried.gradients.calls > 0) {
      text += fmt::format("tried of {}, gradients: {}\n", subject.subject.name,
                          report::kinds_text(tried.gradients));
    }
  }
  return text;
}

// Lines of claims that no case tried, and of gaps that keep subjects from passing, each list once.
std::string gap_lines(const report::VerifyRun& run) {
  std::map<std::string, std::string> claims, gaps;  // what → subjects
  for (const SubjectResult& subject : run.subjects) {
    const bool was_tried = subject.coverage.cases > 0 && !subject.wrong();
    if (was_tried && !subject.coverage.not_tried.empty()) {
      claims[fmt::format("{}", fmt::join(subject.coverage.not_tried, ", "))] +=
          " " + subject.subject.name;
    }
    for (const std::string& gap : subject.gaps) gaps[gap] += " " + subject.subject.name;
  }
  std::string text;
  for (const SubjectResult& subject : run.subjects) {
    const verify::Coverage& coverage = subject.coverage;
    if (coverage.refused == 0 || coverage.refuses_most()) continue;
    text += fmt::format("claimed, but refused by {}: {} of {} cases\n", subject.subject.name,
                        coverage.refused, coverage.refused + coverage.cases);
  }
  for (const auto& [what, names] : claims) {
    text += fmt::format("claimed, not tried of{}: {}\n", names, what);
  }
  for (const auto& [what, names] : gaps) text += fmt::format("no pass for{}: {}\n", names, what);
  return text;
}

std::string replay_words(const SubjectResult& subject, const verify::LawFailure& failure,
                         DeviceKind device) {
  return report::replay_line(subject.subject, failure.token) +
         (device == DeviceKind::cuda ? " --device cuda" : "");
}

std::string failure_text(const SubjectResult& subject, DeviceKind device) {
  std::string text;
  if (subject.input_wrong()) {
    const verify::InputVerdict& verdict = subject.on_input;
    text += fmt::format("\n{} is WRONG on the input\n  {}\n", subject.subject.name,
                        verdict.error.empty() ? verdict.report.summary() : verdict.error);
  }
  std::map<std::string, std::string> again;  // message → laws that found nothing new
  for (const verify::LawVerdict& law : subject.laws.laws) {
    if (!law.failure) continue;
    const verify::LawFailure& failure = *law.failure;
    const auto [others, is_new] = again.try_emplace(failure.message);
    if (!is_new) {
      others->second += " " + law.id;
      continue;
    }
    text +=
        fmt::format("\n{} breaks {} {}\n  law     {}\n  case    {} ({} shrinks)\n  found   {}\n",
                    subject.subject.name, law.id, law.name, law.statement,
                    verify::describe(failure.shrunk), failure.shrinks, failure.message);
    if (!failure.doubt().empty()) text += fmt::format("  again   {}\n", failure.doubt());
    text += fmt::format("  replay  {}\n", replay_words(subject, failure, device));
  }
  for (const auto& [message, laws] : again) {
    if (!laws.empty()) text += fmt::format("\nthe same with{}: {}\n", laws, message);
  }
  return text;
}

std::string rounds_text(const report::VerifyRun& run) {
  std::int64_t cases = 0;
  std::int64_t least = run.subjects.empty() ? 0 : run.subjects.front().rounds;
  std::int64_t most = 0;
  for (const SubjectResult& subject : run.subjects) {
    least = std::min(least, subject.rounds);
    most = std::max(most, subject.rounds);
    for (const verify::LawVerdict& law : subject.laws.laws) cases += law.cases + law.discarded;
  }
  const std::string rounds =
      least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
  return fmt::format("{} whole round{}, {} cases tried", rounds, most == 1 ? "" : "s",
                     report::human_count(cases));
}

Json answer_json(const report::WrongAnswer& answer) {
  Json json = {
      {"name", answer.name},         {"law", answer.law},      {"other_laws", answer.other_laws},
      {"found", answer.found},       {"again", answer.again},  {"seen", answer.at},
      {"question", answer.question}, {"replay", answer.replay}};
  if (answer.smallest) {
    json["case"] = report::case_words(*answer.smallest);
    json["map"] = report::HopMap(*answer.smallest).json();
  }
  if (answer.marked) json["at"] = report::element_json(*answer.marked);
  return json;
}

Json subject_json(const SubjectResult& subject, DeviceKind device) {
  Json laws = Json::array();
  for (const verify::LawVerdict& law : subject.laws.laws) {
    Json& json = laws.emplace_back(law_json(law));
    if (law.failure) json["failure"]["replay"] = replay_words(subject, *law.failure, device);
  }
  Json input = {{"passed", subject.input_passed()}};
  if (!subject.input_skipped.empty()) {
    input["skipped"] = subject.input_skipped;
  } else if (!subject.on_input.error.empty()) {
    input["error"] = subject.on_input.error;
  } else {
    input["rows_checked"] = subject.on_input.rows_checked;
    input["report"] = report_json(subject.on_input.report);
    if (!subject.input_passed()) input["summary"] = subject.on_input.report.summary();
    input["seconds"] = subject.on_input.run.seconds;
    input["sent_bytes"] = subject.sent_bytes();
    input["peak_bytes_per_rank"] = subject.peak_bytes();
    input["peak_kv_bytes_per_rank"] = subject.peak_kv_bytes();
    input["ranks"] = Json::array();
    for (const RankStats& rank : subject.on_input.run.ranks) {
      input["ranks"].push_back(rank_json(rank));
    }
  }
  const std::optional<report::WrongAnswer> answer = report::wrong_answer(subject, device);
  return {{"subject", subject.subject.name},
          {"passed", subject.passed()},
          {"verdict", subject.verdict()},
          {"worst_ratio", json_number(subject.worst_ratio())},
          {"profile", report::profile_json(subject.profile)},
          {"input", input},
          {"laws_held", subject.laws_held()},
          {"laws_skipped", subject.laws.laws_skipped()},
          {"laws_without_cases", subject.laws_without_cases()},
          {"compared", subject.bounds().measured},
          {"unbounded", subject.bounds().unbounded},
          {"laws_seconds", subject.laws.seconds},
          {"rounds", subject.rounds},
          {"gaps", subject.gaps},
          {"coverage", coverage_json(subject.coverage)},
          {"insight", insight_json(subject.subject.stage_or_name(), subject.insight)},
          {"answer", answer ? answer_json(*answer) : Json()},
          {"laws", laws}};
}

void print_whole(const report::VerifyRun& run, Output& output) {
  output.write("\n" + summary_table(run) + joint_coverage_text(run) + tried_table(run) + "\n" +
               tried_kinds(run) + skip_lines(run) + unbounded_line(run) + coverage_lines(run) +
               gap_lines(run));
  for (const SubjectResult& subject : run.subjects) {
    output.write(failure_text(subject, run.options.device));
    output.write(insight_text(subject.subject.name, subject.insight));
  }
}

}  // namespace

void print_verification(const report::VerifyRun& run, Detail detail, Output& output) {
  std::size_t right = 0, wrong = 0;
  for (const SubjectResult& subject : run.subjects) {
    right += subject.passed();
    const std::optional<report::WrongAnswer> answer =
        report::wrong_answer(subject, run.options.device);
    if (!answer) continue;
    ++wrong;
    output.write(report::wrong_answer_text(*answer));
  }
  if (wrong == 0 || detail == Detail::whole) {
    print_whole(run, output);
  } else if (run.subjects.size() > 1) {
    output.write("\n" + summary_table(run));
  }
  if (!run.ended.empty()) output.print("\n{}: {}\n", run.ended, rounds_text(run));
  output.print("\n{} of {} subjects pass, in {}{}\n", right, run.subjects.size(),
               report::human_seconds(run.seconds),
               wrong > 0 && detail == Detail::brief ? "; --all shows it law by law" : "");
}

Json subjects_json(const report::VerifyRun& run) {
  Json subjects = Json::array();
  for (const SubjectResult& subject : run.subjects) {
    subjects.push_back(subject_json(subject, run.options.device));
  }
  return subjects;
}

}  // namespace ringlab::cli
