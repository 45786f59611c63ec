// The parts of `ringlab verify`: its plan, the work, results, certificates.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cli/inputs/problem_options.h"
#include "cli/line/arguments.h"
#include "cli/line/output.h"
#include "cli/report/certificate.h"
#include "cli/report/results.h"
#include "property_tests/diagnosis/insight.h"

namespace ringlab::cli {

struct VerifyPlan {
  std::vector<verify::Subject> subjects;
  verify::VerifyOptions laws;
  std::int64_t sampled_rows = 256;
  std::int64_t rounds = 1;        ///< under the laws, at most
  bool is_named = false;          ///< subjects were named: they have to take what is asked of them
  bool is_given_problem = false;  ///< rather than the built-in one
  bool wants_gradients = false;   ///< on the input, where subjects give any
  bool is_strict = false;         ///< what is claimed has to have been tried
  std::vector<std::string> required = {};  ///< ids of laws, and classes: they have to have held
  /// Seconds after which no new case begins; without a limit all rounds are done.
  std::optional<double> seconds = {};
};

struct VerifyOutcome {
  std::vector<report::SubjectResult> subjects;
  double laws_seconds = 0;   ///< on the clock
  bool interrupted = false;  ///< by Ctrl-C, which a plan with `seconds` takes as a wish
};

/// On the input one subject after the other, so that times mean something; under the laws as of
/// verify_in_rounds(), with a thread per processor thread. Shows its progress.
VerifyOutcome verify_subjects(const VerifyPlan& plan, const LoadedInput& loaded,
                              const RunOptions& options);

/// `count` query rows of `tokens`, ascending: the first, the last, and one drawn from each of
/// count - 2 equal parts between. Empty, which means all, when there are no more than `count`.
std::vector<std::int64_t> sample_rows(std::int64_t tokens, std::int64_t count, std::uint64_t seed);

/// Subjects, laws, rounds and rows. Usage errors for what is unknown or given twice.
VerifyPlan take_plan(Arguments& arguments, bool quick);

/// --require. Usage error for what is neither a law nor a class.
std::vector<std::string> take_required(Arguments& arguments);
/// Reasons why the subject does not pass without being wrong; `subject` has its coverage already.
std::vector<std::string> gaps_of(const VerifyPlan& plan, const report::SubjectResult& subject);

/// The sizes that the rounds of the plan come to, as a table; empty where there is one round.
std::string reach_text(const VerifyPlan& plan);
Json reach_json(const VerifyPlan& plan);

/// Leaves out subjects without kernels for devices, or refuses them where they were asked for.
void keep_those_on_devices(std::vector<verify::Subject>& subjects, const Arguments& arguments);

/// The configuration that is echoed: flat, one value per name.
Json configuration_of(const VerifyPlan& plan, const LoadedInput& loaded, const RunOptions& options);
/// Names in configuration_of() that the command line leaves to their defaults.
std::set<std::string> verify_defaults(const Arguments& arguments);

/// brief: of a run with wrong subjects only what comes first. whole: law by law.
enum class Detail { brief, whole };
void print_verification(const report::VerifyRun& run, Detail detail, Output& output);
Json subjects_json(const report::VerifyRun& run);

/// Pairs of claims that no case brought together, and the calls at sizes of models. Empty for several
/// subjects, of which the JSON has them.
std::string joint_coverage_text(const report::VerifyRun& run);

/// The work of each rank under each layout: "layout", "chosen"; "query_tokens" and "key_tokens" by
/// rank; by rank and owner "pairs" of queries and keys that are visible, and in "cells" their shares
/// in percent, where a block is visible in part. With "direction", the way of a ring. No layouts for
/// more ranks than a map can show.
Json layouts_json(const report::VerifyRun& run);

/// Lines for the terminal, empty when there is nothing to say.
std::string insight_text(const std::string& subject, const verify::Insight& insight);
Json insight_json(const std::string& stage, const verify::Insight& insight);

/// Runs the one case of the token again and prints its outcome. Exit code 1 when its law is broken.
int replay_token(Arguments& arguments, Output& output);

/// Returns the exit code: 1 when some weight is wrong by more than rounding.
int run_tomography(Arguments& arguments, Output& output);

/// The text of docs/mutants.json, which `kill_matrix --summary` writes; empty where there was none.
std::string strength_summary();
/// The SHA-256 of strength_summary()'s file.
std::string strength_digest();

/// The file that --certificate names: .json or .html, in a folder that can be written. Usage and
/// environment errors otherwise.
std::optional<std::string> take_certificate_file(Arguments& arguments);

/// The words that give the same run again: those given, without destinations of results. A limit in
/// time becomes as many rounds as every subject had.
std::vector<std::string> command_words(const Command& command, const Arguments& arguments,
                                       const std::vector<report::SubjectResult>& subjects);

/// The facts of this machine, this build and this plan. Tries the exact reference.
report::CertificateFacts certificate_facts(const VerifyPlan& plan, const report::VerifyRun& run);

/// A certificate as JSON or as a page, by the ending of its name.
std::string certificate_text(const std::string& path, const report::CertificateJson& certificate);

/// Runs the words after `ringlab verify` and gives the certificate of that.
using RunAgain = std::function<report::CertificateJson(const std::vector<std::string>& words)>;

/// Reads a certificate back, compares its digest, says what it says, and with --again runs its
/// command and compares verdicts and cases: exit code 1 where they differ. Input error for what is
/// no certificate, or not as it was written.
int check_certificate(Arguments& arguments, Output& output, const RunAgain& run_again);

}  // namespace ringlab::cli
