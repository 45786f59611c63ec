#include "property_tests/diagnosis/experiments.h"

#include <algorithm>
#include <exception>
#include <limits>

#include "property_tests/diagnosis/law_suspects.h"
#include "property_tests/diagnosis/work_limit.h"
#include "property_tests/laws/two_runs.h"
#include "property_tests/verify.h"

namespace ringlab::verify {
namespace {

constexpr std::size_t kMostTried = 12;
constexpr std::uint64_t kOtherValues = 3;

std::optional<AttentionOutput> answer(const Subject& subject, const Trial& trial) {
  try {
    return attend(subject, trial);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

bool differs(const Subject& subject, const Trial& trial, const AttentionOutput& before) {
  const std::optional<AttentionOutput> now = answer(subject, trial);
  return now && !same_answer(*now, before);
}

/// True when one number of the options changes the answer. Ranks are simulated: on threads an
/// answer may change by itself.
bool depends_on(const Subject& subject, const Evidence& evidence,
                std::uint64_t RunOptions::*number) {
  Trial trial = evidence.scene.trial;
  trial.options.transport = TransportKind::simulated;
  const std::optional<AttentionOutput> first = answer(subject, trial);
  if (!first) return false;
  for (std::uint64_t other = 1; other <= kOtherValues; ++other) {
    ++(trial.options.*number);
    if (!differs(subject, trial, *first)) continue;
    trial.options.*number -= other;  // one that differs by itself depends on nothing that was set
    return !differs(subject, trial, *first);
  }
  return false;
}

bool depends_on_threads(const Subject& subject, const Evidence& evidence) {
  return depends_on(subject, evidence, &RunOptions::thread_order_seed);
}

bool depends_on_delays(const Subject& subject, const Evidence& evidence) {
  if (!subject.can.has(Ability::many_ranks) || evidence.source.ranks == 1) return false;
  return depends_on(subject, evidence, &RunOptions::delay_seed);
}

/// The tensor in which NaN is written: keys or values.
using Hidden = Tensor<double> AttentionTensors::*;

/// The last key that some query does not see, which a causal mask hides from most; -1 without one.
std::int64_t hidden_key(const Pairs& sees) {
  for (std::int64_t key = sees.keys - 1; key >= 0; --key) {
    for (std::int64_t row = 0; row < sees.queries; ++row) {
      if (!sees(row, key)) return key;
    }
  }
  return -1;
}

/// True when NaN in that key shows in rows that do not see it, and a finite number does not. Tried
/// twice, for answers of some subjects change by themselves.
bool nan_shows(const Subject& subject, const Trial& trial, Hidden tensor) {
  const Pairs sees = visible_pairs(trial.problem);
  const std::int64_t key = hidden_key(sees);
  const std::optional<AttentionOutput> before = answer(subject, trial);
  const auto shows = [&](double poison) {
    Trial changed = trial;
    fill_tokens(changed.data.*tensor, key, key + 1, poison);
    const std::optional<AttentionOutput> now = answer(subject, changed);
    const auto is_hidden = [&](std::int64_t row) { return !sees(row, key); };
    if (!now) return false;
    const auto allowed = allowed_beside(subject, trial, poison);
    return same_rows("", *now, *before, is_hidden, allowed).outcome == Outcome::broken;
  };
  const auto tells = [&] {
    return !shows(1024.0) && shows(std::numeric_limits<double>::quiet_NaN());
  };
  return before && tells() && tells();
}

}  // namespace

bool same_answer(const AttentionOutput& a, const AttentionOutput& b) {
  const auto same = [](const Tensor<double>& x, const Tensor<double>& y) {
    for (std::size_t n = 0; n < x.values().size(); ++n) {
      if (!within(x.values()[n], y.values()[n], 0)) return false;
    }
    return true;
  };
  return same(a.out, b.out) && same(a.lse, b.lse);
}

Discovery discovery_of(const Law& law, const Subject& subject) {
  return {suspect_of_law(law, subject), seen_in_law(law)};
}

Discovery found_by_running_again(const Subject& subject, const std::vector<Evidence>& wrong) {
  if (subject.can.has(Ability::foreign)) return {};  // neither order nor delays reach it
  WorkLimit limit(kWorkOfSearch);
  for (std::size_t at = 0; at < std::min(wrong.size(), kMostTried); ++at) {
    const Evidence& evidence = wrong[at];
    if (!evidence.wrong || !limit.admits(evidence.source)) break;
    if (differs(subject, evidence.scene.trial, evidence.got)) return {};
    if (depends_on_threads(subject, evidence)) return discovery_of(find_law("P70"), subject);
    if (depends_on_delays(subject, evidence)) return discovery_of(find_law("P65"), subject);
  }
  return {};
}

bool breaks_each_time(const Subject& subject, const Law& law, const Case& c) {
  constexpr int kTimes = 3;
  for (int n = 0; n < kTimes; ++n) {
    const LawResult result = run_law(subject, law, c);
    if (result.outcome != Outcome::broken || result.message.starts_with("it threw")) return false;
  }
  return true;
}

Discovery found_by_laws(const Subject& subject, const std::vector<Case>& cases) {
  WorkLimit limit(kWorkOfSearch);
  for (const char* id :
       {"P39", "P38", "P57", "P67", "P68", "P72", "P70", "P70-gradients", "P65", "P65-gradients"}) {
    const Law& law = find_law(id);
    if (!why_not_applicable(law, subject).empty()) continue;
    for (std::size_t at = 0; at < std::min(cases.size(), kMostTried); ++at) {
      if (!limit.admits(cases[at])) return {};
      Case c = cases[at];
      c.transport = TransportKind::simulated;
      if (!law.keeps_modifiers) c.modifiers = {};
      if (law.shape_case) c = fitted(law.shape_case(c));
      if (breaks_each_time(subject, law, c)) return discovery_of(law, subject);
    }
  }
  return {};
}

std::optional<Suspect> found_by_masked_nan(const Subject& subject, const std::vector<Case>& cases) {
  if (!subject.can.has(Ability::masked_may_be_nan)) return std::nullopt;
  WorkLimit limit(kWorkOfSearch);
  std::size_t tried = 0;
  for (const Case& c : cases) {
    if (tried == kMostTried || !limit.admits(c)) break;
    Trial trial = make_trial(c);
    if (hidden_key(visible_pairs(trial.problem)) < 0) continue;
    ++tried;
    trial.options.transport = TransportKind::simulated;
    if (nan_shows(subject, trial, &AttentionTensors::v)) return masked_nan_suspects().front();
    if (nan_shows(subject, trial, &AttentionTensors::k)) return masked_nan_suspects().back();
  }
  return std::nullopt;
}

// With unbuffered sends (MPI's rendezvous) a ring of sends before receives waits forever; buffered
// ones hide that until messages grow.
std::optional<Suspect> found_by_rendezvous(const Subject& subject, const std::vector<Case>& cases) {
  if (!subject.can.has(Ability::many_ranks)) return std::nullopt;
  WorkLimit limit(kWorkOfSearch);
  for (std::size_t at = 0; at < std::min(cases.size(), kMostTried); ++at) {
    if (!limit.admits(cases[at])) break;
    if (cases[at].ranks == 1) continue;
    Trial trial = make_trial(cases[at]);
    trial.options.transport = TransportKind::simulated;
    trial.options.rendezvous = false;
    if (!answer(subject, trial)) return std::nullopt;
    trial.options.rendezvous = true;
    if (answer(subject, trial)) continue;
    return send_before_receive();
  }
  return std::nullopt;
}

}  // namespace ringlab::verify
