#include "property_tests/diagnosis/profiles/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "property_tests/diagnosis/work_limit.h"

namespace ringlab::verify {
namespace {

/// The work of all declarations that are tried.
constexpr std::int64_t kWorkOfAdvice = std::int64_t{1} << 32;
constexpr std::uint64_t kFreshRounds = 1 << 20;  // beyond those of a verification

double unit_of(const Problem& problem) { return dtype_info(problem.dtype).unit_roundoff; }
bool is_small(const Problem& problem) {
  return problem.dtype == DType::f16 || problem.dtype == DType::bf16;
}

void round_weights(const Problem& problem, NumericsProfile& profile) {
  if (!is_small(problem)) return;
  profile.u_probability = std::max(profile.u_probability, unit_of(problem));
  profile.p_underflow = std::max(profile.p_underflow, dtype_info(problem.dtype).min_subnormal / 2);
}
void round_row_sum(const Problem& problem, NumericsProfile& profile) {
  round_weights(problem, profile);
  if (is_small(problem)) profile.u_row_sum = unit_of(problem);
}
void store_key_gradients(const Problem& problem, NumericsProfile& profile) {
  constexpr std::int64_t kQueries = 32;
  const Shape& s = problem.shape;
  profile.key_gradient_stores =
      stores_before_the_last(s.q_tokens, kQueries, s.q_heads / s.kv_heads);
}
void store_gradients(const Problem& problem, NumericsProfile& profile) {
  constexpr std::int64_t kKeys = 512;
  round_weights(problem, profile);
  store_key_gradients(problem, profile);
  const Shape& s = problem.shape;
  profile.query_gradient_stores = stores_before_the_last(s.kv_tokens, kKeys, 1);
}
void flush_products(const Problem& problem, NumericsProfile& profile) {
  store_gradients(problem, profile);
  if (is_small(problem)) profile.product_underflow = std::max(profile.product_underflow, 0x1p-123);
}
void round_scores(const Problem& problem, NumericsProfile& profile) {
  round_row_sum(problem, profile);
  // Scores are rounded once after q meets k, and once after the scale.
  if (is_small(problem)) profile.u_query = 2 * unit_of(problem);
}
void round_all(const Problem& problem, NumericsProfile& profile) {
  round_scores(problem, profile);
  if (!is_small(problem)) return;
  const double u = unit_of(problem);
  profile.u_work = u;
  profile.exp_error = 2 * u;
  profile.u_lse = u;
  profile.u_partial = u;
}
template <std::int64_t kMerges>
void merge_pairs(const Problem&, NumericsProfile& profile) {
  profile.lse_merges = std::max(profile.lse_merges, kMerges);
}
void scale_first(const Problem& problem, NumericsProfile& profile) {
  // q and k are rounded after the root of the scale.
  const double u = carried_profile(problem.dtype, 1).u_accumulate;
  profile.u_query = std::max(profile.u_query, 3 * u);
}
void flush_subnormal(const Problem& problem, NumericsProfile& profile) {
  if (problem.dtype == DType::f64) return;
  scale_first(problem,
              profile);  // an input that is taken for 0 is one that is off before its product
  profile.product_underflow = std::max(profile.product_underflow, 0x1p-123);
}
void multiply_in_tf32(const Problem& problem, NumericsProfile& profile) {
  // Processors cut factors to 11 bits, and sums of products too.
  if (problem.dtype != DType::f32) return;
  profile.u_product = 0x1p-10;
  profile.u_accumulate = std::max(profile.u_accumulate, 0x1p-23);
}

/// An arithmetic that kernels are known to have, and its declaration. {0} stands for the dtype of
/// q, {1} for its unit roundoff.
struct KnownArithmetic {
  const char* what;
  const char* in_python;
  const char* in_c;
  void (*apply)(const Problem&, NumericsProfile&);
  /// True where nothing is left to say of cases whose values are subnormal.
  bool opens_subnormal = false;
};
/// The known arithmetics, narrower ones first.
constexpr std::array<KnownArithmetic, 12> kKnown = {
    {{"q and k are scaled before they meet", "prescaled=True", ".u_query = 0x3p-24", scale_first},
     {"subnormal numbers are taken for 0", "prescaled=True, product_underflow=2**-123",
      ".u_query = 0x3p-24 and .product_underflow = 0x1p-123", flush_subnormal, true},
     {"dk and dv are added up in {0}, 32 queries at a time", "queries_per_store=32",
      ".queries_per_store = 32", store_key_gradients},
     {"weights are rounded to {0} before they meet v", "rounds_weights=True",
      ".u_probability and .p_underflow", round_weights},
     {"weights are rounded to {0}, and the row sum adds the rounded ones",
      "rounds_weights=True, u_row_sum={1}", ".u_probability, .p_underflow and .u_row_sum",
      round_row_sum},
     {"weights are rounded to {0}, and gradients are added up in it, 32 queries or 512 "
      "keys at a time",
      "rounds_weights=True, queries_per_store=32, keys_per_store=512",
      ".u_probability, .p_underflow, .queries_per_store = 32 and .keys_per_store = 512",
      store_gradients},
     {"weights are rounded to {0}, gradients are added up in it, and subnormal factors "
      "are taken for zero",
      "rounds_weights=True, queries_per_store=32, keys_per_store=512, product_underflow=2**-123",
      ".u_probability, .p_underflow, .queries_per_store = 32, .keys_per_store = 512 and "
      ".product_underflow",
      flush_products},
     {"scores and weights are rounded to {0}", "rounds_weights=True, u_row_sum={1}, u_query=2*{1}",
      ".u_probability, .p_underflow, .u_row_sum and .u_query", round_scores},
     {"every intermediate result is rounded to {0}",
      "rounds_weights=True, u_row_sum={1}, u_query=2*{1}, u_work={1}, exp_error=2*{1}, "
      "u_partial={1}, "
      "u_lse={1}",
      ".u_probability, .p_underflow, .u_row_sum, .u_query, .u_work, .exp_error, .u_partial and "
      ".u_lse",
      round_all},
     {"f32 is multiplied in TF32", "u_product=2**-10, u_accumulate=2**-23",
      ".u_product = 0x1p-10 and .u_accumulate = 0x1p-23", multiply_in_tf32},
     {"(o, lse) pairs of parts of the keys are merged, up to 32 times", "lse_merges=32",
      ".lse_merges = 32", merge_pairs<32>},
     {"(o, lse) pairs of parts of the keys are merged, up to 1024 times", "lse_merges=1024",
      ".lse_merges = 1024", merge_pairs<1024>}}};

Subject with_arithmetic(Subject subject, const KnownArithmetic& known) {
  subject.profile = [declared = std::move(subject.profile), apply = known.apply](
                        const Problem& problem, const RunOptions& options) {
    NumericsProfile profile = declared(problem, options);
    apply(problem, profile);
    return profile;
  };
  return subject;
}

struct BrokenLaw {
  const Law* law;
  Case shrunk;
};

/// The subject with every result off by more than its own size, which no bounds may forgive.
Subject far_off(Subject subject) {
  subject.run = [run = std::move(subject.run)](const AttentionInput& input,
                                               const RunOptions& options) {
    RunResult result = run(input, options);
    std::vector<Tensor<double>*> tensors = {&result.output.out, &result.output.lse};
    if (result.gradients) {
      AttentionGradients& gradients = *result.gradients;
      tensors.insert(tensors.end(), {&gradients.dq, &gradients.dk, &gradients.dv});
    }
    for (Tensor<double>* tensor : tensors) {
      for (double& x : tensor->values()) x += 1 + std::abs(x);
    }
    return result;
  };
  return subject;
}

/// True when bounds of this subject are narrow enough to tell its answer on a case from nonsense.
bool tells(const Subject& subject, Case c, const KnownArithmetic& known) {
  if (known.opens_subnormal) c.family = Family::uniform;
  return run_law(far_off(subject), find_law("equals_reference"), c).outcome == Outcome::broken;
}

/// True when the laws hold on the cases that broke them, on the verification's cases for them and on
/// as many fresh ones: on all for the first law, for the others as far as work goes. False where bounds
/// become so wide that none of the broken cases says anything.
bool keeps(const Subject& subject, const KnownArithmetic& known,
           const std::vector<BrokenLaw>& broken, const VerifyOptions& options,
           const SearchLaw& search, const WorkLimit& limit) {
  for (const BrokenLaw& one : broken) {
    const Outcome outcome = run_law(subject, *one.law, one.shrunk).outcome;
    const bool is_open = outcome == Outcome::discarded && known.opens_subnormal;
    if (outcome != Outcome::held && !is_open) return false;
  }
  const auto is_told = [&](const BrokenLaw& one) { return tells(subject, one.shrunk, known); };
  if (std::ranges::none_of(broken, is_told)) return false;
  VerifyOptions again{
      .seed = options.seed, .cases_per_law = options.cases_per_law, .shrink = false};
  again.haste = [&] { return limit.is_over() ? Haste::at_once : Haste::none; };
  bool is_first_whole = false;
  for (const BrokenLaw& one : broken) {
    for (const std::uint64_t round : {options.round, options.round + kFreshRounds}) {
      again.round = round;
      if (search(subject, *one.law, again).failure) return false;
    }
    is_first_whole = is_first_whole || !limit.is_over();
  }
  return is_first_whole;
}

/// The broken laws; none where any of them failed by a throw, a crash or a timeout, or does not fail
/// each time.
std::vector<BrokenLaw> broken_laws(const SubjectVerdict& verdict) {
  std::vector<BrokenLaw> broken;
  for (const LawVerdict& law : verdict.laws) {
    if (!law.failure) continue;
    if (law.failure->ending != Ending::answered || !law.failure->doubt().empty()) return {};
    broken.push_back({&find_law(law.id), law.failure->shrunk});
  }
  return broken;
}

/// The name of the subject's only dtype, or words for any of several.
std::string dtype_of(const Subject& subject) {
  const auto& dtypes = subject.can.dtypes;
  return dtypes.size() == 1 ? std::string(dtype_info(dtypes.front()).name) : "the dtype of q";
}
std::string unit_of(const Subject& subject) {
  const auto& dtypes = subject.can.dtypes;
  return dtypes.size() == 1 ? fmt::format("2**-{}", dtype_info(dtypes.front()).significand_bits)
                            : "its unit roundoff";
}

}  // namespace

std::string passes_if(const Subject& subject, const SubjectVerdict& verdict,
                      const VerifyOptions& options, const SearchLaw& search) {
  const std::vector<BrokenLaw> broken = broken_laws(verdict);
  if (broken.empty() || !subject.can.has(Ability::foreign)) return "";
  const WorkLimit limit(kWorkOfAdvice);
  for (const KnownArithmetic& known : kKnown) {
    if (limit.is_over()) break;
    const Subject declared = limit.counted(with_arithmetic(subject, known));
    if (!keeps(declared, known, broken, options, search, limit)) continue;
    const auto filled = [&](const char* text) {
      return fmt::format(fmt::runtime(text), dtype_of(subject), unit_of(subject));
    };
    return fmt::format("it passes if {}: declare {} in ringlab_numerics, or Profile({}) in Python",
                       filled(known.what), known.in_c, filled(known.in_python));
  }
  return "";
}

}  // namespace ringlab::verify
