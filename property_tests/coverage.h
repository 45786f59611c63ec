// Classes of cases that a verification tried, and those that it should have tried more often.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/verify.h"

namespace ringlab::verify {

/// The fewest cases for which classes are required: shares of fewer say too little.
inline constexpr std::int64_t kCasesForCoverage = 500;
/// A required class has at least this share of all cases.
inline constexpr double kLeastShare = 0.02;

struct ClassShare {
  std::string name;        ///< as classes_of() names it: "mask causal", "more ranks than tokens"
  std::int64_t cases = 0;  ///< cases of the class that held; a case has several classes
  bool required = false;
};

/// A product of sizes of models, and its calls.
struct SizesAsUsed {
  Meetings::Cell cell;
  std::int64_t calls = 0;  ///< in cases that held
  std::int64_t open = 0;   ///< in cases whose bounds were as wide as the answer
  /// True where the subject was asked, and no bound could tell its answers from zeros.
  bool is_open() const { return calls == 0 && open > 0; }
};

struct Coverage {
  std::int64_t cases = 0;    ///< cases that held, over all laws
  std::int64_t refused = 0;  ///< cases that the subject claims to take and refused
  /// Required classes first, the rarest of them foremost.
  std::vector<ClassShare> classes;
  bool is_judged =
      false;  ///< all laws ran to their ends; kCasesForCoverage cases held or were refused
  Envelope tried = {};  ///< the problems that reached the subject in cases that held
  /// Claims of the subject that no case that held has tried.
  std::vector<std::string> not_tried = {};
  /// Pairs of claims, of all that there are, that no case that held has brought together:
  /// "head_dim 128 × mask causal", "gradients: dtype f16 × keys 8192 …".
  std::vector<std::string> pairs_not_met = {};
  std::vector<std::string> pairs_claimed = {};  ///< those and all others
  /// Products of sizes of models that the subject claims, and the calls of each.
  std::vector<SizesAsUsed> as_used = {};
  bool has_whole_plan = false;  ///< each planned case was tried

  double share(const ClassShare& one) const;
  /// Required classes below kLeastShare, and sizes as used that no case had although they were
  /// planned; empty where shares are not judged.
  std::vector<std::string> missing() const;
  /// Sizes as used whose bounds are as wide as the answer in each case.
  std::vector<std::string> open_sizes() const;
  /// True when the subject answered less than a third of its claims: cases that held say little
  /// then. A causal-only kernel, which cannot claim just that, refuses about half.
  bool refuses_most() const { return refused > 2 * cases; }
};

/// The coverage of the laws that were not skipped; `options` says whether those are all laws. A
/// subject that broke a law is not judged: its cases end there.
Coverage coverage_of(const Subject& subject, const SubjectVerdict& verdict,
                     const VerifyOptions& options);

/// The classes that the cases of a subject with these abilities have to reach: classes that follow
/// from its claims, and that random cases within them reach often enough.
std::vector<std::string> required_classes(const Capabilities& can);
/// The classes that some subject has to reach.
std::vector<std::string> all_classes();
/// A pair of classes as Coverage::pairs_claimed has it; empty where the word is none. "x" may stand
/// for "×", and either class may come first.
std::string known_pair(const std::string& word);

}  // namespace ringlab::verify
