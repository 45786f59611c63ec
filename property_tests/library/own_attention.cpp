#include "property_tests/library/own_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "property_tests/diagnosis/insight.h"
#include "property_tests/foreign_subject.h"
#include "property_tests/verify.h"
#include "reference/core/error.h"

namespace ringlab {
namespace {

void check_claims(const OwnAttention& own, int cases) {
  const auto refuse = [](const char* what, const char* expected, const std::string& actual) {
    throw_usage_error({.where = what, .expected = expected, .actual = actual});
  };
  if (!own.forward) refuse("OwnAttention::forward", "a function", "none");
  if (own.dtypes.empty()) refuse("OwnAttention::dtypes", "one at least", "none");
  if (cases < 1) refuse("cases", "1 at least", std::to_string(cases));
}

verify::Capabilities abilities(const OwnAttention& own) {
  using enum verify::Ability;
  verify::Capabilities can;
  can.dtypes = own.dtypes;
  can.drop({many_ranks, counts_traffic, messages, tiles, strided_inputs});
  can.set(lse, own.gives_lse);
  can.set(backward, static_cast<bool>(own.backward));
  can.set(grouped_heads, own.grouped_heads);
  can.set(any_scale, own.any_scale);
  if (!own.same_bits) can.drop({deterministic, deterministic_gradients, same_bits_per_row});
  if (!own.any_shape) can.drop({rectangular, other_v_dim, no_tokens, empty_rows});
  for (const ModifierKind kind : own.modifiers) can.modifiers.set(kind, true);
  if (own.any_mask) return can;
  can.drop({bit_masks});
  can.masks.intersections = false;
  can.masks.kinds = {};
  can.masks.of<CausalMask>() = true;
  return can;
}

verify::Subject subject_of(const OwnAttention& own) {
  verify::Subject raw;
  raw.name = own.name;
  raw.title = own.name + ": a function of C++";
  raw.can = abilities(own);
  raw.run = [own](const AttentionInput& input, const RunOptions&) {
    RunResult result;
    result.output = own.forward(input);
    if (input.dout && own.backward) result.gradients = own.backward(input);
    return result;
  };
  raw.profile = [own](const Problem& problem, const RunOptions&) {
    if (own.arithmetic) return own.arithmetic(problem);
    return carried_profile(problem.dtype, std::max<std::int64_t>(problem.shape.kv_tokens, 1));
  };
  return verify::foreign_subject(std::move(raw));
}

std::string words_of(const verify::LawVerdict& law, const verify::Insight& insight) {
  const std::vector<verify::Suspect>& causes = insight.diagnosis.explains;
  std::string text = causes.empty() ? "no known mistake matches" : "";
  for (const verify::Suspect& cause : causes) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "\n  or   ", cause.id, cause.what);
  }
  return text + fmt::format("\n  law  {}: {}\n  case {}\n  {}", law.id, law.statement,
                            law.failure->token, law.failure->message);
}

}  // namespace

AttentionVerdict verify_attention(const OwnAttention& own, int cases, std::uint64_t seed) {
  check_claims(own, cases);
  const verify::Subject subject = subject_of(own);
  const verify::VerifyOptions options{.seed = seed, .cases_per_law = cases};
  const verify::SubjectVerdict laws = verify::verify_subject(subject, options);
  AttentionVerdict verdict{.passed = laws.passed(),
                           .laws_held = laws.laws_passed(),
                           .laws_skipped = laws.laws_skipped()};
  const verify::LawVerdict* first = nullptr;
  for (const verify::LawVerdict& law : laws.laws) {
    verdict.worst_ratio = std::max(verdict.worst_ratio, law.worst_ratio);
    if (!law.failure) continue;
    ++verdict.laws_broken;
    if (first == nullptr) first = &law;
  }
  if (first == nullptr) {
    verdict.text = fmt::format(
        "{} {}: {} laws hold, {} cases each, worst error {:.3g} of its bound", own.name,
        verdict.passed ? "passes" : "does not pass", verdict.laws_held, cases, verdict.worst_ratio);
    return verdict;
  }
  const verify::Insight insight =
      verify::look_into(subject, laws, options, verify::Depth::failures);
  for (const verify::LawVerdict& law : laws.laws) {
    if (law.failure && law.id == insight.of_law) first = &law;
  }
  for (const verify::Suspect& cause : insight.diagnosis.explains) {
    verdict.mistakes.push_back(cause.id);
  }
  verdict.text = fmt::format("{} is wrong: {}", own.name, words_of(*first, insight));
  return verdict;
}

}  // namespace ringlab
