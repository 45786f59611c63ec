#include "property_tests/diagnosis/fingerprint.h"

#include <fmt/format.h>

#include <cmath>
#include <exception>

#include "property_tests/generators/cases.h"
#include "property_tests/laws/trial.h"

namespace ringlab::verify {
namespace {

/// A rounding that a profile may declare, and the tightest value that it can have.
struct DeclaredRounding {
  const char* name;
  double NumericsProfile::*unit;
  double tightest;
};

std::vector<DeclaredRounding> roundings(const NumericsProfile& declared) {
  const double work = declared.u_work;
  return {{"weights rounded to", &NumericsProfile::u_probability, 0},
          {"a row sum of weights rounded to", &NumericsProfile::u_row_sum, 0},
          {"partial answers rounded to", &NumericsProfile::u_partial, 0},
          {"q scaled in", &NumericsProfile::u_query, 0},
          {"factors of products rounded to", &NumericsProfile::u_product, 0},
          {"K and V sent in", &NumericsProfile::u_wire, 0},
          {"sums in", &NumericsProfile::u_accumulate, work}};
}

Case measured_case(const Subject& subject, DType dtype, std::uint64_t seed) {
  Case c;
  c.seed = seed;
  c.shape = {1, 2, 1, 96, 96, 8, 8};
  c.dtype = dtype;
  c.ranks = 3;
  c.mask = "causal";
  c.transport = TransportKind::simulated;
  c.tile_queries = c.tile_keys = 16;
  return fitted(limited_to(std::move(c), subject.can));
}

bool passes(const Trial& trial, const AttentionOutput& got, const NumericsProfile& profile) {
  const AttentionInput input = trial.input();
  const ExactForward exact = exact_forward(input);
  return compare_forward(got, exact, forward_tolerance(input, exact, profile)).passed();
}

/// Tightens one rounding after the other: where the results still pass, it cannot be seen in them.
std::string sentence(const Subject& subject, DType dtype, std::uint64_t seed) {
  const Trial trial = make_trial(measured_case(subject, dtype, seed));
  const NumericsProfile declared = subject.profile(trial.problem, trial.options);
  const AttentionOutput got = attend(subject, trial);
  if (!passes(trial, got, declared)) return "";  // that is for the laws to say
  std::string text;
  for (const DeclaredRounding& rounding : roundings(declared)) {
    NumericsProfile tighter = declared;
    tighter.*rounding.unit = rounding.tightest;
    if (!(declared.*rounding.unit > rounding.tightest) || !passes(trial, got, tighter)) continue;
    text += fmt::format("{} {} 2^{:.0f}", text.empty() ? "" : ",", rounding.name,
                        std::log2(declared.*rounding.unit));
  }
  if (text.empty()) return "";
  return fmt::format("{}: declares{} and stays within the bounds without", dtype_info(dtype).name,
                     text);
}

}  // namespace

std::vector<std::string> wider_than_needed(const Subject& subject, std::uint64_t seed) {
  std::vector<std::string> sentences;
  for (const DType dtype : subject.can.dtypes) {
    try {
      std::string text = sentence(subject, dtype, seed);
      if (!text.empty()) sentences.push_back(std::move(text));
    } catch (const std::exception&) {
      continue;  // it cannot take the problem, or fails: the laws say so
    }
  }
  return sentences;
}

}  // namespace ringlab::verify
