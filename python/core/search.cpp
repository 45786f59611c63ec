#include "python/core/search.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "property_tests/generators/cases.h"

namespace ringlab::python {
namespace {

using verify::Case;
using verify::Outcome;
using Clock = std::chrono::steady_clock;

// The same limits as in property_tests/verify.cpp: verdicts must not depend on who searches.
constexpr int kMostShrinkTries = 600;
constexpr std::chrono::seconds kLongestShrink{20};
constexpr int kDiscardsPerCase = 10;

/// Every law sees cases of its own.
std::uint64_t seed_of(std::uint64_t seed, const std::string& id) {
  std::uint64_t hash = 0xcbf29ce484222325ull ^ seed;  // FNV-1a
  for (const char letter : id)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3ull;
  return hash;
}

class CaseSearch {
 public:
  CaseSearch(const verify::Subject& subject, const verify::Law& law,
             const std::function<bool()>& is_over)
      : subject_(subject), law_(law), is_over_(is_over) {
    verdict_.id = law.id;
    verdict_.name = law.name;
    verdict_.statement = law.statement;
    verdict_.skipped = verify::why_not_applicable(law, subject);
  }

  verify::LawVerdict run(const verify::VerifyOptions& options) {
    if (!verdict_.skipped.empty()) return verdict_;
    const std::int64_t most_discards = std::int64_t{kDiscardsPerCase} * options.cases_per_law;
    for (std::int64_t i = 0; verdict_.cases < options.cases_per_law && !is_over_(); ++i) {
      verify::Draws draws(seed_of(options.seed, law_.id), {i});
      const Case c = shaped(verify::random_case(draws));
      const verify::LawResult result = verify::run_law(subject_, law_, c);
      if (result.outcome == Outcome::broken) {
        shrink(c, result.message);
        return verdict_;
      }
      count(c, result);
      if (verdict_.discarded > most_discards) break;
    }
    if (verdict_.cases == 0) verdict_.skipped = why_without_cases();
    return verdict_;
  }

 private:
  Case shaped(Case c) const {
    c = verify::limited_to(std::move(c), subject_.can);
    if (!law_.keeps_modifiers) c.modifiers = {};
    return law_.shape_case ? verify::fitted(law_.shape_case(std::move(c))) : c;
  }

  void count(const Case& c, const verify::LawResult& result) {
    if (result.outcome == Outcome::discarded) {
      ++verdict_.discarded;
      last_discard_ = result.message;
      return;
    }
    ++verdict_.cases;
    verdict_.worst_ratio = std::max(verdict_.worst_ratio, result.ratio);
    for (const std::string& name : verify::classes_of(c)) ++verdict_.classes[name];
  }

  std::string why_without_cases() const {
    if (is_over_()) return "no time was left";
    return "every case was discarded: " + last_discard_;
  }

  void remember(const Case& c, const std::string& message, int shrinks) {
    verdict_.failure = {c, verify::replay_token(subject_, law_, c), message, shrinks};
  }

  /// Takes the first simpler case that is broken too, as long as there is one.
  void shrink(const Case& first, const std::string& message) {
    remember(first, message, 0);
    const Clock::time_point until = Clock::now() + kLongestShrink;
    int tries = 0;
    const auto is_enough = [&] {
      return ++tries > kMostShrinkTries || Clock::now() > until || is_over_();
    };
    while (take_simpler(is_enough)) {
    }
  }

  /// True when there is a simpler broken case; then it is the one remembered.
  bool take_simpler(const std::function<bool()>& is_enough) {
    const verify::LawFailure last = *verdict_.failure;
    for (Case& candidate : verify::simpler_cases(last.shrunk)) {
      const Case simpler = shaped(std::move(candidate));
      // The law may have undone the step.
      if (verify::complexity(simpler) >= verify::complexity(last.shrunk)) continue;
      if (is_enough()) return false;
      const verify::LawResult result = verify::run_law(subject_, law_, simpler);
      if (result.outcome != Outcome::broken) continue;
      remember(simpler, result.message, last.shrinks + 1);
      return true;
    }
    return false;
  }

  const verify::Subject& subject_;
  const verify::Law& law_;
  const std::function<bool()>& is_over_;
  verify::LawVerdict verdict_;
  std::string last_discard_;
};

}  // namespace

verify::LawVerdict search_law(const verify::Subject& subject, const verify::Law& law,
                              const verify::VerifyOptions& options,
                              const std::function<bool()>& is_over) {
  return CaseSearch(subject, law, is_over).run(options);
}

}  // namespace ringlab::python
