// Two mistakes in one program: pairs of edits, of which neither explains the answers alone.
#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "property_tests/diagnosis/diagnosis.h"
#include "property_tests/diagnosis/model/model.h"
#include "property_tests/diagnosis/work_limit.h"

namespace ringlab::verify {

/// "two mistakes: A; and B".
inline Suspect both(const Suspect& first, const Suspect& second) {
  return {first.id + " + " + second.id, "two mistakes: " + first.what + "; and " + second.what,
          first.terms + second.terms};
}

/// Makes one edit after the other; either may be empty.
template <class... Edited>
std::function<void(Edited...)> in_turn(std::function<void(Edited...)> first,
                                       std::function<void(Edited...)> second) {
  if (!first) return second;
  if (!second) return first;
  return [=](Edited... edited) {
    first(edited...);
    second(edited...);
  };
}

/// The questions of a search: whether a prediction agrees with all numbers of a run, and those wrong
/// numbers of the run that it foretells.
template <class Hypothesis, class Evidence>
struct HeldAgainst {
  std::function<bool(const Hypothesis&, const Evidence&)> agrees;
  std::function<Foretold(const Hypothesis&, const Evidence&)> foretold;

  /// True when the hypothesis agrees with all evidence and foretells a number that is wrong. A
  /// prediction that only agrees is worth nothing: tolerances may be wide.
  bool holds(const Hypothesis& hypothesis, const std::vector<Evidence>& all) const {
    Foretold told;
    for (const Evidence& one : all) {
      if (!agrees(hypothesis, one)) return false;
      told += foretold(hypothesis, one);
    }
    return told.foretold > 0;
  }
};

/// Pairs that agree with all evidence. A pair begins with one of the edits that foretell the most
/// wrong numbers by themselves: where two mistakes meet, some rows or tensors still show one alone.
template <class Hypothesis, class Evidence>
class PairSearch {
 public:
  using Held = HeldAgainst<Hypothesis, Evidence>;

  /// `evidence` holds wrong answers, small ones first; right ones may follow.
  PairSearch(const std::vector<Hypothesis>& single, const std::vector<Evidence>& evidence,
             Held held)
      : evidence_(evidence), held_(std::move(held)) {
    for (const Hypothesis& one : single) {
      // Narrow numbers have many causes, and wide bounds let a second one join any first.
      if (one.edits.any() && !one.suspect.id.starts_with("precision.")) single_.push_back(&one);
    }
  }

  /// The simplest pairs, if it is one or two.
  std::vector<Hypothesis> found() {
    constexpr std::ptrdiff_t kMostNamed = 2;
    std::vector<Hypothesis> pairs;
    for (const std::size_t lead : leading()) add_pairs_of(lead, pairs);
    if (limit_.is_over()) return {};  // others may explain it, too
    std::vector<Suspect> suspects;
    for (const Hypothesis& pair : pairs) {
      if (std::ranges::find(suspects, pair.suspect) == suspects.end()) {
        suspects.push_back(pair.suspect);
      }
    }
    keep_simplest(suspects);
    if (std::ssize(suspects) > kMostNamed) return {};
    std::erase_if(pairs, [&](const Hypothesis& pair) {
      return std::ranges::find(suspects, pair.suspect) == suspects.end();
    });
    return pairs;
  }

 private:
  static constexpr std::size_t kMostLeading = 16, kMostLookedAt = 6;
  static constexpr std::ptrdiff_t kMostWays = 2;  // of one suspect, to be made

  /// The edits that foretell the most by themselves.
  std::vector<std::size_t> leading() {
    std::vector<std::pair<std::size_t, std::size_t>> by_count;  // foretold, index
    for (std::size_t n = 0; n < single_.size(); ++n) {
      std::size_t foretold = 0;
      for (std::size_t at = 0; at < std::min(kMostLookedAt, evidence_.size()); ++at) {
        if (!limit_.admits(evidence_[at].scene.trial.shape())) break;
        foretold += held_.foretold(*single_[n], evidence_[at]).foretold;
      }
      if (foretold > 0) by_count.emplace_back(foretold, n);
    }
    std::ranges::stable_sort(by_count, std::greater<>{}, [](const auto& one) { return one.first; });
    std::vector<std::size_t> first;
    for (const auto& [foretold, n] : by_count) {
      const auto ways = std::ranges::count_if(first, [&, n = n](std::size_t other) {
        return single_[other]->suspect == single_[n]->suspect;
      });
      if (first.size() < kMostLeading && ways < kMostWays) first.push_back(n);
    }
    return first;
  }

  /// The other edit is asked first about what this one cannot explain.
  void add_pairs_of(std::size_t lead, std::vector<Hypothesis>& pairs) {
    const auto unexplained = std::ranges::find_if(evidence_, [&](const Evidence& one) {
      return limit_.admits(one.scene.trial.shape()) && !held_.agrees(*single_[lead], one);
    });
    if (unexplained == evidence_.end()) return;
    for (std::size_t other = 0; other < single_.size(); ++other) {
      if (single_[lead]->suspect == single_[other]->suspect) continue;
      Hypothesis pair = joined(*single_[std::min(lead, other)], *single_[std::max(lead, other)]);
      if (agrees_with(pair, *unexplained) && agrees_with_all(pair)) {
        pairs.push_back(std::move(pair));
      }
    }
  }

  bool agrees_with(const Hypothesis& pair, const Evidence& one) {
    return limit_.admits(one.scene.trial.shape()) && held_.agrees(pair, one);
  }

  /// Wrong numbers of few cases, and pairs that say nothing of those of many, would make names of
  /// chance.
  bool agrees_with_all(const Hypothesis& pair) {
    constexpr int kPartUnknown = 5, kPartWrong = 4;
    int wrong = 0, unknown = 0;
    std::size_t foretold = 0;
    for (const Evidence& one : evidence_) {
      if (!limit_.admits(one.scene.trial.shape())) return false;
      if (!held_.agrees(pair, one)) return false;
      const Foretold numbers = held_.foretold(pair, one);
      wrong += numbers.wrong > 0;
      unknown += 2 * numbers.unknown > numbers.wrong;
      foretold += numbers.foretold;
    }
    return foretold > 0 && kPartUnknown * unknown <= wrong &&
           kPartWrong * wrong >= std::ssize(evidence_);
  }

  std::vector<const Hypothesis*> single_;
  const std::vector<Evidence>& evidence_;
  Held held_;
  WorkLimit limit_{2 * kWorkOfSearch};
};

}  // namespace ringlab::verify
