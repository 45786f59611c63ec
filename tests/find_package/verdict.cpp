// Attention of somebody's own, judged by the laws; and the same with a mistake.
#include <algorithm>
#include <cmath>
#include <iostream>
#include <limits>
#include <vector>

#include "property_tests/library/ringlab.h"

namespace {

/// As one would write it first; or with one key more than the mask allows.
ringlab::AttentionOutput plain_attention(const ringlab::AttentionInput& input, bool looks_ahead) {
  const ringlab::Shape& s = input.problem.shape;
  ringlab::AttentionOutput output{ringlab::Tensor<double>(s.out()),
                                  ringlab::Tensor<double>(s.lse())};
  std::vector<float> scores(static_cast<std::size_t>(s.kv_tokens));
  ringlab::for_each_index(output.lse.extents(), [&](auto b, auto h, auto i, auto) {
    const std::int64_t g = h / (s.q_heads / s.kv_heads);
    float largest = -std::numeric_limits<float>::infinity(), sum = 0;
    for (std::int64_t j = 0; j < s.kv_tokens; ++j) {
      const bool sees = input.problem.mask.allows(i, j) ||
                        (looks_ahead && j > 0 && input.problem.mask.allows(i, j - 1));
      float score = 0;
      for (std::int64_t c = 0; c < s.head_dim && sees; ++c) {
        score += static_cast<float>(input.q(b, h, i, c)) * static_cast<float>(input.k(b, g, j, c));
      }
      score = sees ? score * static_cast<float>(input.problem.scale)
                   : -std::numeric_limits<float>::infinity();
      scores[static_cast<std::size_t>(j)] = score;
      largest = std::max(largest, score);
    }
    std::vector<float> row(static_cast<std::size_t>(s.v_dim));
    for (std::int64_t j = 0; j < s.kv_tokens; ++j) {
      const float score = scores[static_cast<std::size_t>(j)];
      if (std::isinf(score)) continue;
      const float weight = std::exp(score - largest);
      sum += weight;
      for (std::int64_t c = 0; c < s.v_dim; ++c) {
        row[static_cast<std::size_t>(c)] += weight * static_cast<float>(input.v(b, g, j, c));
      }
    }
    output.lse(b, h, i, 0) = sum > 0 ? largest + std::log(sum) : largest;
    for (std::int64_t c = 0; c < s.v_dim && sum > 0; ++c) {
      output.out(b, h, i, c) = row[static_cast<std::size_t>(c)] / sum;
    }
  });
  return output;
}

ringlab::AttentionVerdict verdict_of(bool looks_ahead) {
  return ringlab::verify_attention({.name = "plain",
                                    .forward =
                                        [=](const ringlab::AttentionInput& input) {
                                          return plain_attention(input, looks_ahead);
                                        }},
                                   10);
}

}  // namespace

int main() {
  const ringlab::AttentionVerdict right = verdict_of(false), wrong = verdict_of(true);
  std::cout << right.text << "\n" << wrong.text << "\n";
  const bool is_named = wrong.mistakes == std::vector<std::string>{"mask.causal_one_ahead"};
  return right.passed && right.laws_held > 30 && !wrong.passed && is_named ? 0 : 1;
}
