#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "cli/inputs/subjects.h"
#include "cli/line/endings.h"
#include "cli/line/progress.h"
#include "cli/report/human.h"
#include "cli/verify/verify.h"
#include "property_tests/coverage.h"
#include "property_tests/diagnosis/telling_case.h"
#include "property_tests/rounds.h"

namespace ringlab::cli {
namespace {

using report::SubjectResult;

// Compared rows from which on, with all laws, insight is into everything; --quick has fewer rows.
constexpr std::int64_t kRowsOfWholeLooks = 256;

SubjectResult on_input(const verify::Subject& subject, const LoadedInput& loaded,
                       RunOptions options, const std::vector<std::int64_t>& rows) {
  SubjectResult result;
  // The implementations of others are compared on as many ranks as they know.
  if (subject.can.has(verify::Ability::foreign) && !subject.can.has(verify::Ability::many_ranks))
    options.ranks = 1;
  result.subject = subject;
  if (options.ranks > 1 && !subject.can.has(verify::Ability::many_ranks)) {
    result.input_skipped = "runs on one rank only";
    return result;
  }
  result.input_skipped = verify::obstacle(subject.can, loaded.problem);
  result.refuses_input = !result.input_skipped.empty();
  if (result.refuses_input) return result;
  result.profile = subject.profile(loaded.problem, options);
  try {
    result.on_input = verify::verify_input(subject, loaded.input(), options, rows);
  } catch (const verify::Unsupported& reason) {
    result.input_skipped = reason.what();
    result.refuses_input = true;
  }
  return result;
}

// The progress of the laws, on one line.
class LawsLine {
 public:
  LawsLine(const VerifyPlan& plan, const verify::RoundsProgress& progress)
      : plan_(plan), progress_(progress) {
    for (const verify::Subject& subject : plan.subjects) {
      laws_ += std::ssize(verify::laws_for(subject, plan.laws));
    }
  }

  std::string operator()(double seconds) const {
    const double share = share_done(seconds);
    const double left = plan_.seconds ? std::max(0.0, *plan_.seconds - seconds)
                                      : seconds * (1 - share) / std::max(share, 1e-9);
    const std::int64_t cases = progress_.cases;
    std::string text = fmt::format("{}  {}", progress_bar(share), progress_time(seconds));
    if (share > 0) text += fmt::format(", {} left", progress_time(left));
    text += fmt::format("  {} cases, {:.0f}/s", report::human_count(cases),
                        static_cast<double>(cases) / std::max(seconds, 1e-9));
    const std::int64_t broken = progress_.broken;
    text += fmt::format(", {} law{} broken", broken, broken == 1 ? "" : "s");
    return text + "  " + progress_.at_work().substr(0, 40);
  }

 private:
  double share_done(double seconds) const {
    const double all =
        static_cast<double>(std::max<std::int64_t>(1, laws_)) * static_cast<double>(plan_.rounds);
    // Turns are long where laws are few; laws that are skipped have no cases.
    const double turns = std::max(static_cast<double>(progress_.turns),
                                  static_cast<double>(progress_.cases) / plan_.laws.cases_per_law) /
                         all;
    return std::min(1.0, plan_.seconds ? std::max(turns, seconds / *plan_.seconds) : turns);
  }

  const VerifyPlan& plan_;
  const verify::RoundsProgress& progress_;
  std::int64_t laws_ = 0;
};

verify::RoundsOptions rounds_options(const VerifyPlan& plan) {
  verify::RoundsOptions options;
  options.laws = plan.laws;
  options.rounds = plan.rounds;
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (plan.seconds) {
    options.seconds = *plan.seconds;
    options.interrupted = Interruption::is_wanted;
  }
  return options;
}

void verify_laws(const VerifyPlan& plan, VerifyOutcome& outcome) {
  std::vector<verify::Subject> subjects;
  for (const SubjectResult& result : outcome.subjects) subjects.push_back(result.subject);
  verify::RoundsProgress done;
  const auto start = std::chrono::steady_clock::now();
  std::vector<verify::SubjectRounds> rounds;
  {
    const Progress progress(LawsLine(plan, done));
    rounds = verify::verify_in_rounds(subjects, rounds_options(plan), done);
  }
  outcome.laws_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    SubjectResult& result = outcome.subjects[i];
    result.laws = std::move(rounds[i].verdict);
    result.rounds = rounds[i].whole_rounds;
    result.coverage = verify::coverage_of(result.subject, result.laws, plan.laws);
    const bool whole = plan.laws.laws.empty() && plan.sampled_rows >= kRowsOfWholeLooks;
    result.insight = verify::look_into(result.subject, result.laws, plan.laws,
                                       whole ? verify::Depth::everything : verify::Depth::failures);
    verify::keep_what_tells(result.subject, result.insight, result.laws);
    result.gaps = gaps_of(plan, result);
  }
}

}  // namespace

VerifyOutcome verify_subjects(const VerifyPlan& plan, const LoadedInput& loaded,
                              const RunOptions& options) {
  const std::vector<std::int64_t> rows =
      sample_rows(loaded.problem.shape.q_tokens, plan.sampled_rows, plan.laws.seed);
  VerifyOutcome outcome;
  {
    Progress progress("on the input");
    for (const verify::Subject& given : plan.subjects) {
      progress.update(static_cast<int>(outcome.subjects.size()),
                      static_cast<int>(plan.subjects.size()), given.name + " on the input");
      outcome.subjects.push_back(on_input(as_asked(given, options), loaded, options, rows));
    }
  }
  std::optional<Interruption> interruption;
  if (plan.seconds) interruption.emplace();
  verify_laws(plan, outcome);
  outcome.interrupted = plan.seconds && Interruption::is_wanted();
  return outcome;
}

std::vector<std::int64_t> sample_rows(std::int64_t tokens, std::int64_t count, std::uint64_t seed) {
  if (tokens <= count) return {};
  std::vector<std::int64_t> rows = {0};
  std::mt19937_64 random(seed);
  for (std::int64_t part = 0; part < count - 2; ++part) {
    const std::int64_t inner = tokens - 2;
    const std::int64_t begin = 1 + inner * part / (count - 2);
    const std::int64_t size = 1 + inner * (part + 1) / (count - 2) - begin;
    rows.push_back(begin + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size)));
  }
  if (count > 1) rows.push_back(tokens - 1);
  return rows;
}

}  // namespace ringlab::cli
