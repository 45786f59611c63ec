// The verification engine: laws × random cases against a subject, shrunk and replayable.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "property_tests/envelope/envelope.h"
#include "property_tests/law.h"
#include "property_tests/subject_list.h"
#include "reference/core/report.h"

namespace ringlab::verify {

/// The haste of a verification, by the time left. With no_new_cases a failing case is still made
/// simpler; at_once ends that, too.
enum class Haste { none, no_new_cases, at_once };

struct VerifyOptions {
  std::uint64_t seed = 1;
  /// Cases of different rounds are never equal.
  std::uint64_t round = 0;
  int cases_per_law = 40;
  /// Every n-th planned case is tried alone, for subjects that are verified together with others.
  int planned_apart = 1;
  std::vector<std::string> laws = {};  ///< ids or names; empty means all
  bool shrink = true;
  /// Called often with (laws done, laws in all, id of the law at work).
  std::function<void(int, int, const std::string&)> progress = {};
  /// Asked before every case; empty means that there is time.
  std::function<Haste()> haste = {};
};

/// The answer to a small case, and its numbers that lie outside their bounds: 1 there, 0 elsewhere.
struct ShownAnswer {
  AttentionOutput got, off;
};

struct LawFailure {
  Case shrunk;
  std::string token;    ///< "SUBJECT/LAW/CASE" for `ringlab verify --replay`
  std::string message;  ///< of the shrunk case
  int shrinks = 0;
  std::optional<Element> at = {};  ///< the element that shows it, where the law compared elements
  Ending ending = Ending::answered;
  int rank = -1;  ///< the rank that failed, and its step of the schedule, where the subject says so
  int step = -1;
  /// Further runs of the very same case, and those of them that broke the law.
  int repeats = 0, repeated = 0;
  std::optional<ShownAnswer> answer = {};  ///< of a case that people work out by hand
  /// True where an answer misses the truth, or there is none; not where two runs differ.
  bool is_absolute() const;
  /// "it broke in 7 of 50 more runs of this very case", where that was not all of them.
  std::string doubt() const;
};

/// The reason given for a law none of whose bounds told the answer from zeros.
inline constexpr const char* kUnbounded =
    "every bound that it compared with is so wide that zeros would pass";

struct LawVerdict {
  std::string id, name, statement;
  std::string topic = {};
  int cases = 0;  ///< held
  int discarded = 0;
  int refused = 0;  ///< discarded ones that the subject refused, though it claims to take them
  double worst_ratio = 0;
  std::optional<Element> worst_at = {};  ///< the element of worst_ratio, where that is known
  /// Numbers compared within bounds in cases that did not break; telling ones where the case held.
  BoundCounts bounds = {};
  /// The reason, empty when it ran; also when every case was discarded, or no bound told anything.
  std::string skipped;
  std::optional<LawFailure> failure;
  /// The message of a call that took too long once and was answered each time after.
  std::string late = {};
  std::map<std::string, int>
      classes;  ///< how many cases fell in each class (mask, layout, family…)
  /// SHA-256 of the tokens of all cases that were tried, in order, without those of shrinking; of
  /// several rounds that of the digests one after the other. Empty when none was tried.
  std::string case_digest = {};
  Envelope tried = {};  ///< the problems that reached the subject in cases that held
  Meetings open = {};   ///< of calls in cases whose bounds were as wide as the answer

  /// True when it broke nowhere and compared numbers, all with bounds as wide as the answer.
  bool is_unbounded() const { return !failure && bounds.are_open(); }
};

struct SubjectVerdict {
  std::string subject;
  std::vector<LawVerdict> laws;
  double seconds = 0;
  bool passed() const;
  int laws_passed() const;
  int laws_skipped() const;
  BoundCounts bounds() const;  ///< of all laws
};

/// The laws of the options, or all that concern this subject.
std::vector<const Law*> laws_for(const Subject& subject, const VerifyOptions& options);

/// The verdict of each law once, in order.
SubjectVerdict verify_subject(const Subject& subject, const VerifyOptions& options);

/// Tries one law on random cases: equal ones for equal seeds, rounds and numbers of cases.
LawVerdict verify_law(const Subject& subject, const Law& law, const VerifyOptions& options);
/// A search for a case that breaks a law, as verify_law() is.
using SearchLaw = std::function<LawVerdict(const Subject&, const Law&, const VerifyOptions&)>;
/// The reason why the law does not apply to this subject, empty when it does: the law's own reason,
/// or that it is about bits which the subject does not promise.
std::string why_not_applicable(const Law& law, const Subject& subject);
/// The verdict of a law before anything is tried.
LawVerdict unheard(const Law& law);

/// The one case of a token, run again.
struct Replay {
  Subject subject;
  Law law;
  Case replayed;
  LawResult result;
};
/// `find` turns the token's subject name into a subject; the default knows all_subjects().
Replay replay(const std::string& token,
              const std::function<Subject(const std::string&)>& find = find_subject);

/// Origin of a case; shaped_case() is `c` as the law can use it and the subject can run it.
enum class CaseOrigin { drawn, planned, simpler };
Case shaped_case(const Law& law, const Capabilities& can, Case c, CaseOrigin origin);

/// Runs one law on one case; anything thrown is a broken result with its message, but for a
/// MachineError, which goes on to the caller of this and of all that runs laws: no verdict.
LawResult run_law(const Subject& subject, const Law& law, const Case& c);
/// The replay token of a law on a case: "SUBJECT/LAW/CASE".
std::string replay_token(const Subject& subject, const Law& law, const Case& c);

/// The verdict on a subject's answer to one given input, compared with the oracle's.
struct InputVerdict {
  Report report;
  RunResult run;  ///< outputs and per-rank statistics
  std::int64_t rows_checked = 0;
  std::string error;  ///< the error that the subject threw, empty when it returned
  Ending ending = Ending::answered;
};
/// Compares query rows `rows` of o and lse, all when empty; gradients, where the input has dout and
/// the subject gives them, are compared in all rows. Unsupported where the subject says so.
InputVerdict verify_input(const Subject& subject, const AttentionInput& input,
                          const RunOptions& options, const std::vector<std::int64_t>& rows);

}  // namespace ringlab::verify
