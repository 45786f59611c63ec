#include "property_tests/mutants/kill_matrix_run.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <mutex>
#include <thread>

#include "property_tests/mutants/legal_variants.h"
#include "property_tests/verify.h"

namespace ringlab::mutants {
namespace {

using verify::Law;

// Cases per law, round after round: most mutants fall in the first one.
constexpr int kRounds[] = {6, 30, 150};

/// Calls body(0) … body(count-1) on some threads.
void in_parallel(int threads, int count, const std::function<void(int)>& body) {
  std::atomic<int> next{0};
  std::vector<std::jthread> workers;
  for (int worker = 0; worker < std::max(threads, 1); ++worker) {
    workers.emplace_back([&] {
      for (int i = next++; i < count; i = next++) body(i);
    });
  }
}

class MatrixProgress {
 public:
  MatrixProgress(const MatrixOptions& options, std::string phase, int total)
      : options_(options), phase_(std::move(phase)), total_(total) {}
  void step() {
    const std::lock_guard lock(mutex_);
    ++done_;
    if (options_.progress) options_.progress(phase_, done_, total_);
  }

 private:
  const MatrixOptions& options_;
  std::string phase_;
  int total_;
  int done_ = 0;
  std::mutex mutex_;
};

verify::LawVerdict try_law(const Mutant& mutant, const Law& law, std::uint64_t seed, int cases,
                           bool shrink) {
  verify::VerifyOptions options;
  options.seed = seed;
  options.cases_per_law = cases;
  options.shrink = shrink;
  return verify::verify_law(mutant.subject, law, options);
}

/// True when the subject threw, rather than gave an answer that the law rejects.
bool threw(const verify::LawFailure& failure) { return failure.message.starts_with("it threw"); }

/// Tries these laws in rounds until one breaks.
void hunt_with(const std::vector<const Law*>& laws, const Mutant& mutant,
               const MatrixOptions& options, MutantRecord& record) {
  std::uint64_t seed = options.seed;
  for (const int cases : kRounds) {
    for (const Law* law : laws) {
      const verify::LawVerdict verdict = try_law(mutant, *law, seed, cases, options.shrink);
      record.cases += verdict.cases;
      if (!verdict.failure) continue;
      ++record.cases;
      record.kill = Kill{.law = law->id,
                         .cases = record.cases,
                         .shrunk = verdict.failure->shrunk,
                         .token = verdict.failure->token,
                         .message = verdict.failure->message,
                         .threw = threw(*verdict.failure),
                         .shrinks = verdict.failure->shrinks};
      return;
    }
    seed += 1000;
  }
}

MutantRecord hunt(const Mutant& mutant, const MatrixOptions& options) {
  MutantRecord record{.info = mutant.info, .kill = {}, .cases = 0, .killers = {}};
  const auto& first_laws = options.known.first_laws;
  if (const auto first = first_laws.find(mutant.info.id); first != first_laws.end()) {
    hunt_with({&verify::find_law(first->second)}, mutant, options, record);
  }
  std::vector<const Law*> laws;
  for (const Law& law : verify::all_laws()) laws.push_back(&law);
  if (!record.kill) hunt_with(laws, mutant, options, record);
  return record;
}

/// Hunts the mutants first, first + step, ….
std::vector<MutantRecord> hunt_every(const MatrixOptions& options, int first, int step) {
  const std::vector<Mutant>& mutants = all_mutants();
  const int count = (static_cast<int>(mutants.size()) - first + step - 1) / step;
  std::vector<MutantRecord> records(static_cast<std::size_t>(count));
  MatrixProgress progress(options, "mutants", count);
  in_parallel(options.threads, count, [&](int i) {
    records[static_cast<std::size_t>(i)] =
        hunt(mutants[static_cast<std::size_t>(first + i * step)], options);
    progress.step();
  });
  return records;
}

enum class LawFinding { nothing, thrown, broken };

/// The finding of the law on the mutant, in a round of few cases and one of more.
LawFinding finding(const Law& law, const Mutant& mutant, std::uint64_t seed) {
  for (const int cases : {6, 60}) {
    const verify::LawVerdict verdict = try_law(mutant, law, seed, cases, false);
    if (verdict.failure) return threw(*verdict.failure) ? LawFinding::thrown : LawFinding::broken;
    seed += 1000;
  }
  return LawFinding::nothing;
}

/// The order in which a law tries mutants: in full runs as they come; else the known example first,
/// then mutants that this law was the first to kill.
std::vector<const Mutant*> worth_trying(const Law& law, const MatrixOptions& options,
                                        const std::vector<MutantRecord>& hunted) {
  std::vector<const Mutant*> order;
  for (const Mutant& mutant : all_mutants()) order.push_back(&mutant);
  if (options.full) return order;
  const auto is_killed = [&](const Mutant* mutant) {
    const auto found = std::ranges::find(hunted, mutant->info.id,
                                         [](const MutantRecord& record) { return record.info.id; });
    return found != hunted.end() && found->kill && found->kill->law == law.id;
  };
  std::stable_partition(order.begin(), order.end(), is_killed);
  const auto example = options.known.examples.find(law.id);
  std::stable_partition(order.begin(), order.end(), [&](const Mutant* mutant) {
    return example != options.known.examples.end() && mutant->info.id == example->second;
  });
  return order;
}

/// Tries one law on the mutants until it breaks on one, or in full runs on all.
LawRecord try_law_on_mutants(const Law& law, const MatrixOptions& options,
                             const std::vector<MutantRecord>& hunted,
                             std::vector<std::string>& killed) {
  LawRecord record;
  record.id = law.id;
  record.name = law.name;
  record.exact = law.exact;
  for (const Mutant* mutant : worth_trying(law, options, hunted)) {
    if (!options.full && record.kills > 0) break;
    const LawFinding found = finding(law, *mutant, options.seed);
    record.thrown += found == LawFinding::thrown;
    if (found != LawFinding::broken) continue;
    if (record.kills++ == 0) record.example = mutant->info.id;
    killed.push_back(mutant->info.id);
  }
  return record;
}

/// Tries every law: each needs a mutant that it kills by what it says, be it the first to or not.
void try_laws(const MatrixOptions& options, KillMatrix& matrix) {
  const std::vector<Law>& laws = verify::all_laws();
  matrix.laws.resize(laws.size());
  std::vector<std::vector<std::string>> killed(laws.size());
  MatrixProgress progress(options, "laws", static_cast<int>(laws.size()));
  in_parallel(options.threads, static_cast<int>(laws.size()), [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    matrix.laws[at] = try_law_on_mutants(laws[at], options, matrix.mutants, killed[at]);
    progress.step();
  });
  for (MutantRecord& mutant : matrix.mutants) {
    for (std::size_t at = 0; at < laws.size(); ++at) {
      const bool first = mutant.kill && mutant.kill->law == laws[at].id;
      matrix.laws[at].first_kills += first;
      if (std::ranges::count(killed[at], mutant.info.id)) mutant.killers.push_back(laws[at].id);
    }
  }
}

/// True for subjects on which a law is tried: for a law whose cost exceeds the number of cases,
/// every few subjects only, in turn.
bool is_in_turn(const Law& law, std::size_t law_number, std::size_t subject_number, int cases) {
  constexpr int kFewSubjects = 6;
  const auto each = static_cast<std::size_t>(std::clamp(law.cost / cases, 1, kFewSubjects));
  return subject_number % each == law_number % each;
}

void try_correct_subjects(const MatrixOptions& options, KillMatrix& matrix) {
  std::vector<verify::Subject> subjects = verify::all_subjects();
  for (verify::Subject& variant : legal_variants()) subjects.push_back(std::move(variant));
  matrix.correct_subjects = static_cast<int>(subjects.size());
  const std::vector<Law>& laws = verify::all_laws();
  const int pairs = static_cast<int>(subjects.size() * laws.size());
  verify::VerifyOptions verify_options;
  verify_options.seed = options.seed + 77;
  verify_options.cases_per_law = (options.correct_cases + pairs - 1) / std::max(pairs, 1);
  std::mutex mutex;
  MatrixProgress progress(options, "correct subjects", pairs);
  in_parallel(options.threads, pairs, [&](int i) {
    const auto at = static_cast<std::size_t>(i);
    const verify::Subject& subject = subjects[at / laws.size()];
    const std::size_t law = at % laws.size();
    if (!is_in_turn(laws[law], law, at / laws.size(), verify_options.cases_per_law)) {
      progress.step();
      return;
    }
    const verify::LawVerdict verdict = verify::verify_law(subject, laws[law], verify_options);
    progress.step();
    const std::lock_guard lock(mutex);
    matrix.correct_cases += verdict.cases;
    matrix.worst_ratio = std::max(matrix.worst_ratio, verdict.worst_ratio);
    matrix.skipped_pairs += !verdict.skipped.empty();
    if (verdict.failure) {
      matrix.false_alarms.push_back(
          {subject.name, verdict.id, verdict.failure->token, verdict.failure->message});
    }
  });
}

}  // namespace

int KillMatrix::killed() const {
  return static_cast<int>(std::count_if(mutants.begin(), mutants.end(),
                                        [](const auto& m) { return m.kill.has_value(); }));
}

std::vector<std::string> KillMatrix::survivors() const {
  std::vector<std::string> ids;
  for (const MutantRecord& mutant : mutants) {
    if (!mutant.kill) ids.push_back(mutant.info.id);
  }
  return ids;
}

std::vector<std::string> KillMatrix::useless_laws() const {
  std::vector<std::string> ids;
  for (const LawRecord& law : laws) {
    if (law.example.empty()) ids.push_back(law.id);
  }
  return ids;
}

bool KillMatrix::passed() const {
  return !mutants.empty() && survivors().empty() && useless_laws().empty() && false_alarms.empty();
}

std::vector<MutantRecord> hunt_part(const MatrixOptions& options, int part, int parts) {
  return hunt_every(options, part - 1, parts);
}

KillMatrix measure_kill_matrix(const MatrixOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  KillMatrix matrix;
  matrix.mutants = hunt_every(options, 0, 1);
  try_laws(options, matrix);
  try_correct_subjects(options, matrix);
  matrix.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return matrix;
}

RateInterval wilson_interval(int successes, int trials) {
  if (trials == 0) return {};
  constexpr double kZ = 1.959963984540054;  // 97.5 % point of the normal distribution
  const double n = trials;
  const double rate = successes / n;
  const double centre = (rate + kZ * kZ / (2 * n)) / (1 + kZ * kZ / n);
  const double half =
      kZ / (1 + kZ * kZ / n) * std::sqrt(rate * (1 - rate) / n + kZ * kZ / (4 * n * n));
  return {std::max(0.0, centre - half), std::min(1.0, centre + half)};
}

}  // namespace ringlab::mutants
