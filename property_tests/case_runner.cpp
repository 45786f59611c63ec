#include "property_tests/case_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "property_tests/generators/cases.h"

namespace ringlab::verify {
namespace {

using Clock = std::chrono::steady_clock;

// A failure that comes back in each of the first kSureRepeats runs is taken to come back always.
constexpr int kSureRepeats = 3;
constexpr int kRepeats = 50;
constexpr RunTime kLongestRepeating{.answered = std::chrono::seconds(60),
                                    .silent = std::chrono::seconds(10)};
constexpr RunTime kLongestShrink{.answered = std::chrono::seconds(60),
                                 .silent = std::chrono::seconds(20)};

/// Runs the law and adds what that took.
LawResult timed_run(const Subject& subject, const Law& law, const Case& c, RunTime& time) {
  const Clock::time_point begin = Clock::now();
  LawResult result = run_law(subject, law, c);
  (result.ending == Ending::answered ? time.answered : time.silent) += Clock::now() - begin;
  return result;
}

LawFailure failure_of(const Subject& subject, const Law& law, const Case& c,
                      const LawResult& result) {
  return {.shrunk = c,
          .token = replay_token(subject, law, c),
          .message = result.message,
          .shrinks = 0,
          .at = result.worst,
          .ending = result.ending,
          .rank = result.rank,
          .step = result.step};
}

/// Gives the case one of four shapes and seeds, for laws may make a shape from the seed. For
/// subjects that compile a kernel per shape, which would take most of the time.
Case in_few_shapes(Case c) {
  constexpr std::array<Shape, 4> kShapes = {{{.batch = 1,
                                              .q_heads = 1,
                                              .kv_heads = 1,
                                              .q_tokens = 5,
                                              .kv_tokens = 5,
                                              .head_dim = 4,
                                              .v_dim = 4},
                                             {.batch = 2,
                                              .q_heads = 4,
                                              .kv_heads = 2,
                                              .q_tokens = 7,
                                              .kv_tokens = 9,
                                              .head_dim = 8,
                                              .v_dim = 5},
                                             {.batch = 1,
                                              .q_heads = 2,
                                              .kv_heads = 1,
                                              .q_tokens = 33,
                                              .kv_tokens = 33,
                                              .head_dim = 16,
                                              .v_dim = 16},
                                             {.batch = 1,
                                              .q_heads = 3,
                                              .kv_heads = 3,
                                              .q_tokens = 1,
                                              .kv_tokens = 70,
                                              .head_dim = 8,
                                              .v_dim = 8}}};
  const std::size_t which = c.seed % kShapes.size();
  c.shape = kShapes[which];
  c.seed = which;
  // Fitted again: masks and ranks of the case were drawn for another shape.
  return fitted(std::move(c));
}

}  // namespace

LawVerdict unheard(const Law& law) {
  LawVerdict verdict;
  verdict.id = law.id;
  verdict.name = law.name;
  verdict.statement = law.statement;
  verdict.topic = law.topic;
  verdict.skipped = kNoTime;
  return verdict;
}

Case shaped_case(const Law& law, const Capabilities& can, Case c, CaseOrigin origin) {
  const bool is_planned = origin == CaseOrigin::planned;
  if (can.has(Ability::few_shapes) && !is_planned) c = in_few_shapes(std::move(c));
  // The abilities of the subject limit the case first; then the law shapes it.
  c = limited_to(std::move(c), can);
  if (!law.keeps_modifiers) c.modifiers = {};
  const bool is_simpler = origin == CaseOrigin::simpler && law.shape_simpler_case;
  const auto& shape = is_simpler ? law.shape_simpler_case : law.shape_case;
  return shape ? with_whole_tokens(shape(std::move(c)), can) : c;
}

std::string LawFailure::doubt() const {
  if (repeated == repeats) return "";  // broken in every run
  return fmt::format(
      "it broke in {} of {} more runs of this very case: it does not do the same "
      "every time",
      repeated, repeats);
}

LawFailure repeated_failure(const Subject& subject, const Law& law, LawFailure failure,
                            const CaseRunner::IsOver& is_over) {
  failure.repeats = failure.repeated = 0;
  RunTime passed;
  // Three times the same is taken for certain; a single difference asks for many more runs.
  int wanted = kSureRepeats;
  while (failure.repeats < wanted && !passed.is_beyond(kLongestRepeating) &&
         !(is_over && is_over())) {
    const LawResult result = timed_run(subject, law, failure.shrunk, passed);
    if (result.outcome == Outcome::discarded && failure.ending == Ending::timed_out) break;
    ++failure.repeats;
    if (result.outcome == Outcome::broken) {
      ++failure.repeated;
      if (failure.message.empty()) failure.message = result.message;
    } else {
      wanted = kRepeats;
    }
  }
  return failure;
}

CaseRunner::CaseRunner(const Subject& subject, const Law& law, LawVerdict& verdict)
    : recorder_(subject), law_(law), verdict_(verdict) {}

LawResult CaseRunner::run(const Case& c) {
  // The digest has the cases up to the first failure: later ones are attempts at a simpler case.
  if (!verdict_.failure) tried_.add(to_token(c) + "\n");
  LawResult result = timed_run(recorder_.subject(), law_, c, shrinking_);
  const Envelope asked = recorder_.take();
  if (result.outcome == Outcome::broken) remember(c, result);
  // Simpler cases of a failure are not counted: they are no random cases.
  if (verdict_.failure) return result;
  if (result.outcome != Outcome::held)
    result.bounds.telling = 0;  // of a part that said enough alone
  verdict_.bounds.add(result.bounds);
  if (result.outcome == Outcome::held) {
    verdict_.tried.add(asked);
    count_held(c, result);
  } else {
    ++verdict_.discarded;
    verdict_.refused += result.refused;
    last_discard_ = result.message;
    if (!result.bounds.are_open()) return result;
    verdict_.open.add(asked.forward.meetings);
    verdict_.open.add(asked.gradients.meetings);
  }
  return result;
}

void CaseRunner::count_held(const Case& c, const LawResult& result) {
  ++verdict_.cases;
  if (result.ratio > verdict_.worst_ratio) {
    verdict_.worst_ratio = result.ratio;
    verdict_.worst_at = result.worst;
  }
  for (const std::string& name : classes_of(c)) ++verdict_.classes[name];
  if (law_.topic == kGradientsClass) ++verdict_.classes[kGradientsClass];
}

void CaseRunner::remember(const Case& c, const LawResult& result) {
  const auto& last = verdict_.failure;
  const int shrinks = last ? last->shrinks + (last->shrunk == c ? 0 : 1) : 0;
  verdict_.failure = failure_of(recorder_.subject(), law_, c, result);
  verdict_.failure->shrinks = shrinks;
  if (first_failure_) return;
  first_failure_ = verdict_.failure;
  shrinking_ = {};  // from here on
}

bool CaseRunner::shrunk_enough() {
  const int most = std::max(kMostShrinkTries / law_.cost, kFewShrinkTries);
  return ++shrink_tries_ > most || shrinking_.is_beyond(kLongestShrink);
}

// A shrunk case that broke the law only by chance says less than the case found first.
void CaseRunner::run_again(const IsOver& is_over) {
  LawFailure& failure = *verdict_.failure;
  failure = repeated_failure(recorder_.subject(), law_, std::move(failure), is_over);
  if (failure.repeated > 0 || failure.repeats == 0 || failure.shrinks == 0) return;
  LawFailure first = repeated_failure(recorder_.subject(), law_, *first_failure_, is_over);
  if (first.repeated > 0) failure = std::move(first);
}

// A deadline says as much of the machine as of the subject.
void CaseRunner::excuse_lateness() {
  const LawFailure& failure = *verdict_.failure;
  if (failure.ending != Ending::timed_out || failure.repeated > 0) return;
  if (failure.repeats < kSureRepeats) return;
  verdict_.late = failure.message;
  verdict_.failure.reset();
}

void CaseRunner::conclude(const IsOver& is_over) {
  if (verdict_.failure) {
    run_again(is_over);
    excuse_lateness();
  }
  const bool says_something = verdict_.failure || !verdict_.late.empty() || verdict_.cases > 0;
  if (says_something || verdict_.discarded > 0) verdict_.case_digest = tried_.finish();
  if (verdict_.is_unbounded()) verdict_.skipped = kUnbounded;
  if (says_something || !verdict_.skipped.empty()) return;
  const bool had_time = verdict_.discarded > 0 && !(is_over && is_over());
  verdict_.skipped = had_time ? "every case was discarded: " + last_discard_ : kNoTime;
}

ReplayRuns look_harder(Replay& again) {
  ReplayRuns runs{.all = 1, .broken = again.result.outcome == Outcome::broken};
  if (again.result.outcome != Outcome::held) return runs;
  LawFailure failure{.shrunk = again.replayed, .token = {}, .message = {}};
  failure = repeated_failure(again.subject, again.law, std::move(failure));
  runs.all += failure.repeats;
  runs.broken += failure.repeated;
  if (runs.broken == 0) return runs;
  again.result.outcome = Outcome::broken;
  again.result.message = failure.message;
  return runs;
}

}  // namespace ringlab::verify
