// Runs one law on one case, and a subject on one given input.
#include <algorithm>
#include <exception>
#include <numeric>
#include <thread>

#include "property_tests/laws/trial.h"
#include "property_tests/verify.h"
#include "reference/core/machine/machine_failure.h"

namespace ringlab::verify {
namespace {

/// The rows of x that the oracle computed.
Tensor<double> sampled_rows(const Tensor<double>& x, const std::vector<std::int64_t>& rows) {
  return rows.empty() ? x : pick_tokens(x, rows);
}

void check_rows(const std::vector<std::int64_t>& rows, std::int64_t q_tokens) {
  const bool ascending = std::is_sorted(rows.begin(), rows.end(), std::less_equal<>());
  if (rows.empty() || (ascending && rows.front() >= 0 && rows.back() < q_tokens)) return;
  throw_usage_error({.where = "rows to compare",
                     .expected = "ascending rows below " + std::to_string(q_tokens),
                     .actual = std::to_string(rows.front()) + " … " + std::to_string(rows.back())});
}

/// The subject, with Unsupported thrown for bit masks that it does not take.
Subject within_abilities(Subject subject) {
  if (subject.can.has(Ability::bit_masks) || subject.can.has(Ability::foreign)) return subject;
  subject.run = [run = std::move(subject.run)](const AttentionInput& input,
                                               const RunOptions& options) {
    if (input.problem.mask.has_bits()) throw Unsupported("takes no mask of bits");
    return run(input, options);
  };
  return subject;
}

/// Compares all rows of dq, dk and dv: for any row of them the reference needs all others.
void compare_gradients(const Subject& subject, const AttentionInput& input,
                       const RunOptions& options, InputVerdict& verdict) {
  const Shape& s = input.problem.shape;
  const auto& given = verdict.run.gradients;
  const bool fits = given && given->dq.extents() == s.q() && given->dk.extents() == s.k() &&
                    given->dv.extents() == s.v();
  if (!fits) {
    verdict.error =
        given ? "its gradients have other extents than q, k and v" : "it gave no gradients";
    return;
  }
  const int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 8u));
  const NumericsProfile profile = subject.profile(input.problem, options);
  const ExactBackward exact = exact_backward(input, *input.dout, threads);
  const BackwardTolerance allowed = backward_tolerance(input, *input.dout, exact, profile, threads);
  const AttentionGradients& got = *given;
  const auto add = [&](const char* name, const Tensor<double>& mine, const Tensor<double>& right,
                       const Tensor<double>& bound, double size = 0) {
    verdict.report.tensors.push_back(compare(name, mine.view(), right.view(), bound.view(), size));
  };
  const GradientSizes sizes = gradient_sizes(input, *input.dout);
  add("dq", got.dq, exact.dq, allowed.dq, sizes.dq);
  add("dk", got.dk, exact.dk, allowed.dk, sizes.dk);
  add("dv", got.dv, exact.dv, allowed.dv);
}

/// Throws a MachineError where a resource ran out, which says nothing about the subject.
void pass_on_machine_failure(const std::exception& error) {
  if (const std::optional<MachineError> failure = machine_failure(error)) throw *failure;
}

LawResult thrown(const std::string& what, Ending ending = Ending::threw) {
  LawResult result{Outcome::broken, 0, "it threw: " + what};
  result.ending = ending;
  return result;
}

}  // namespace

LawResult run_law(const Subject& subject, const Law& law, const Case& c) {
  try {
    return law.check(within_abilities(subject), c);
  } catch (const Refused& reason) {
    LawResult result{Outcome::discarded, 0, std::string("it ") + reason.what()};
    result.refused = true;
    return result;
  } catch (const Unsupported& reason) {
    return {Outcome::discarded, 0, std::string("it ") + reason.what()};
  } catch (const MachineError&) {
    throw;
  } catch (const SubjectLost& error) {
    return thrown(error.what(), error.ending());
  } catch (const RankError& error) {
    LawResult result = thrown(error.what());
    result.rank = error.failure().suspect >= 0 ? error.failure().suspect : error.failure().rank;
    result.step = error.failure().step;
    return result;
  } catch (const std::exception& error) {
    pass_on_machine_failure(error);
    return thrown(error.what());
  } catch (...) {
    return thrown("something that is not a std::exception");
  }
}

std::string replay_token(const Subject& subject, const Law& law, const Case& c) {
  return (subject.id.empty() ? subject.name : subject.id) + "/" + law.id + "/" + to_token(c);
}

Replay replay(const std::string& token, const std::function<Subject(const std::string&)>& find) {
  // The token is split from the right, for a subject's name may be a path.
  const std::size_t second = token.rfind('/');
  const std::size_t first =
      second == std::string::npos || second == 0 ? std::string::npos : token.rfind('/', second - 1);
  if (first == std::string::npos) {
    throw_usage_error({.where = "replay token",
                       .expected = "SUBJECT/LAW/CASE",
                       .actual = "\"" + token + "\"",
                       .hint = "Paste the whole token of the failure"});
  }
  // The subject comes last, for it may have to be loaded.
  const Law& law = find_law(token.substr(first + 1, second - first - 1));
  const Case replayed = from_token(token.substr(second + 1));
  Replay again{
      .subject = find(token.substr(0, first)), .law = law, .replayed = replayed, .result = {}};
  const std::string why = why_not_applicable(law, again.subject);
  again.result = why.empty() ? run_law(again.subject, again.law, again.replayed)
                             : LawResult{Outcome::discarded, 0, why};
  return again;
}

InputVerdict verify_input(const Subject& subject, const AttentionInput& input,
                          const RunOptions& options, const std::vector<std::int64_t>& rows) {
  const Shape& shape = input.problem.shape;
  check_problem(input.problem);
  check_rows(rows, shape.q_tokens);
  InputVerdict verdict;
  verdict.rows_checked = rows.empty() ? shape.q_tokens : static_cast<std::int64_t>(rows.size());
  AttentionInput asked = input;
  if (!subject.can.has(Ability::backward)) asked.dout = {};
  try {
    verdict.run = run_checked(subject, asked, options);
  } catch (const Unsupported&) {
    throw;
  } catch (const MachineError&) {
    throw;
  } catch (const SubjectLost& error) {
    verdict.error = error.what();
    verdict.ending = error.ending();
    return verdict;
  } catch (const std::exception& error) {
    pass_on_machine_failure(error);
    verdict.error = error.what();
    verdict.ending = Ending::threw;
    return verdict;
  }
  const int threads = static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 8u));
  const ExactOptions oracle{.rows = rows, .threads = threads};
  const ExactForward exact = exact_forward(input, oracle);
  const ForwardTolerance allowed =
      forward_tolerance(input, exact, subject.profile(input.problem, options), oracle);
  verdict.report = compare_forward(
      {sampled_rows(verdict.run.output.out, rows), sampled_rows(verdict.run.output.lse, rows)},
      exact, allowed);
  if (asked.dout) compare_gradients(subject, asked, options, verdict);
  return verdict;
}

}  // namespace ringlab::verify
