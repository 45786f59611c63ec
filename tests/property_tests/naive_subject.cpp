#include "tests/property_tests/naive_subject.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include "property_tests/verify.h"

namespace ringlab::verify {
namespace {

/// One (batch, query head) of the problem. Real is the accumulator: float, or double for f64.
template <class Real>
class NaiveHead {
 public:
  NaiveHead(const AttentionInput& input, Mistake mistake, std::int64_t b, std::int64_t h)
      : in_(input), shape_(input.problem.shape), mistake_(mistake), b_(b), h_(h) {
    const std::int64_t group = shape_.q_heads / shape_.kv_heads;
    kv_ = mistake == Mistake::kv_head_modulo ? h % shape_.kv_heads : h / group;
    q_head_ = has(Mistake::heads_counted_to_8) && h % group >= 8 ? h - 8 : h;
    value_batch_ = has(Mistake::batches_counted_to_4) ? b % 4 : b;
    mask_ = input.problem.mask;
    std::vector<MaskTerm> terms = mask_.terms();
    if (has(Mistake::third_mask_ignored) && terms.size() > 2) {
      terms.resize(2);
      mask_ = Mask(terms).bind(shape_.q_tokens, shape_.kv_tokens);
    }
    if (has(Mistake::window_lost_in_last_document) || has(Mistake::document_borders_in_15_bits)) {
      mask_ = tampered_mask();
    }
  }

  void attend(AttentionOutput& result) {
    for (std::int64_t i = 0; i < shape_.q_tokens; ++i) row(i, result);
  }

 private:
  bool has(Mistake mistake) const { return mistake_ == mistake; }

  static void join_far_documents(std::vector<std::int64_t>& lengths) {
    std::int64_t begin = 0;
    for (std::size_t i = 0; i + 1 < lengths.size(); ++i) {
      begin += lengths[i];
      if (begin < 0x8000) continue;
      for (std::size_t j = i + 1; j < lengths.size(); ++j) lengths[i] += lengths[j];
      lengths.resize(i + 1);
    }
  }

  Mask tampered_mask() const {
    std::vector<MaskTerm> terms = in_.problem.mask.terms();
    bool is_long = false;
    for (MaskTerm& term : terms) {
      if (auto* documents = std::get_if<DocumentsMask>(&term)) {
        is_long |= !documents->lengths.empty() && documents->lengths.back() >= 64;
        if (has(Mistake::document_borders_in_15_bits)) join_far_documents(documents->lengths);
      }
    }
    if (is_long && has(Mistake::window_lost_in_last_document)) {
      std::erase_if(terms,
                    [](const auto& term) { return std::holds_alternative<WindowMask>(term); });
    }
    return Mask(terms).bind(shape_.q_tokens, shape_.kv_tokens);
  }

  void row(std::int64_t i, AttentionOutput& result) {
    if (!has(Mistake::row_maximum_carried)) top_ = -std::numeric_limits<Real>::infinity();
    const bool guarded = has(Mistake::maximum_starts_at_zero_guarded);
    if (has(Mistake::maximum_starts_at_zero) || guarded) top_ = 0;
    sum_ = 0;
    acc_.assign(static_cast<std::size_t>(shape_.v_dim), Real(0));
    bool seen = false;
    const std::int64_t n = shape_.kv_tokens;
    const bool backwards = has(Mistake::order_by_batch) && shape_.batch > 1;
    for (std::int64_t step = 0; step < n; ++step) {
      const std::int64_t j = backwards ? n - 1 - step : step;
      if (!visible(i, j)) {
        read_hidden(i, j);
        continue;
      }
      seen = true;
      add(i, j);
      if (has(Mistake::first_key_twice) && j == 0) add(i, j);
    }
    finish(i, guarded ? sum_ != 0 : seen, result);
  }

  bool visible(std::int64_t i, std::int64_t j) const {
    const std::int64_t p = i + shape_.kv_tokens - shape_.q_tokens;
    if (has(Mistake::causal_one_off) && j == p && !in_.problem.mask.allows(i, j + 1)) return false;
    if (has(Mistake::last_key_dropped) && j > 0 && j + 1 == shape_.kv_tokens) return false;
    if (has(Mistake::last_of_thousands_dropped) && shape_.kv_tokens >= 8192 &&
        shape_.head_dim >= 64 && j + 1 == shape_.kv_tokens) {
      return false;
    }
    if (has(Mistake::third_tile_of_keys_skipped) && i >= 256 && j >= 256 && j < 384) return false;
    return mask_.allows(i, j);
  }

  Real score(std::int64_t i, std::int64_t j) const {
    Real dot = 0;
    std::int64_t used = shape_.head_dim - (has(Mistake::last_channel_ignored) ? 1 : 0);
    if (has(Mistake::channels_cut_at_128)) used = std::min<std::int64_t>(used, 128);
    if (has(Mistake::keys_counted_in_16_bits)) j &= 0xffff;
    for (std::int64_t c = 0; c < used; ++c) {
      double q = in_.q(b_, q_head_, i, c);
      if (has(Mistake::queries_in_f16)) q = round_to(DType::f16, q);
      const Real weak = has(Mistake::odd_channels_weakened) && c % 2 == 1 ? Real(0.99) : Real(1);
      Real product = weak * static_cast<Real>(q) * static_cast<Real>(in_.k(b_, kv_, j, c));
      if (has(Mistake::products_saturate) && used >= 16)
        product = std::clamp(product, Real(-65504), Real(65504));
      dot += product;
    }
    if (has(Mistake::scale_forgotten)) return dot;
    const Real sign = has(Mistake::scale_sign_flipped) ? Real(-1) : Real(1);
    return sign * dot * static_cast<Real>(scale());
  }

  double scale() const {
    const double given = in_.problem.scale;
    if (has(Mistake::mean_in_wide_groups) && in_.problem.dtype == DType::bf16 &&
        shape_.head_dim >= 128 && shape_.kv_tokens >= 128 &&
        shape_.q_heads >= 8 * shape_.kv_heads) {
      return 0;
    }
    if (has(Mistake::scale_made_positive)) return std::abs(given);
    const bool is_missing = has(Mistake::zero_scale_taken_for_none) && given == 0;
    return is_missing ? default_scale(shape_.head_dim) : given;
  }

  void add(std::int64_t i, std::int64_t j) {
    const Real s = score(i, j);
    const Real top = std::max(top_, s);
    const Real old = std::isinf(top_) ? Real(0) : std::exp(top_ - top);
    Real weight = std::exp(s - top);
    if (has(Mistake::floor_under_weights)) weight = std::max(weight, Real(2e-9));
    if (has(Mistake::negative_weights)) weight -= Real(0.01);
    if (has(Mistake::odd_keys_favoured) && j % 2 == 1) weight *= Real(1.01);
    top_ = top;
    sum_ = (has(Mistake::sum_not_rescaled) ? sum_ : sum_ * old) + weight;
    if (has(Mistake::sum_in_bf16)) sum_ = static_cast<Real>(round_to(DType::bf16, sum_));
    for (std::int64_t c = 0; c < shape_.v_dim; ++c) {
      Real& acc = acc_[static_cast<std::size_t>(c)];
      acc = (has(Mistake::acc_not_rescaled) ? acc : acc * old) + weight * value(j, c);
    }
  }

  void read_hidden(std::int64_t i, std::int64_t j) {
    if (has(Mistake::masked_key_read)) sum_ += 0 * score(i, j);
    if (!has(Mistake::masked_value_read)) return;
    for (std::int64_t c = 0; c < shape_.v_dim; ++c) {
      acc_[static_cast<std::size_t>(c)] += 0 * value(j, c);
    }
  }

  Real value(std::int64_t j, std::int64_t c) const {
    if (has(Mistake::first_v_channel_twice) && c == 1) c = 0;
    double v = in_.v(value_batch_, kv_, j, c);
    if (has(Mistake::values_in_f16)) v = round_to(DType::f16, v);
    if (has(Mistake::neighbour_leaks)) v += 0.0 * in_.v(b_, (kv_ + 1) % shape_.kv_heads, j, c);
    return static_cast<Real>(v);
  }

  bool is_dropped(std::int64_t i) const {
    const bool is_square = shape_.q_tokens == shape_.kv_tokens;
    return (has(Mistake::row_2047_dropped) && i == 2047) ||
           (has(Mistake::row_700_of_squares_dropped) && i == 700 && is_square);
  }

  void finish(std::int64_t i, bool seen, AttentionOutput& result) {
    if (is_dropped(i)) return;
    double lse = top_ + std::log(sum_);
    if (has(Mistake::lse_in_base_two)) lse = top_ + std::log2(sum_);
    if (has(Mistake::lse_without_maximum)) lse = std::log(sum_);
    if (has(Mistake::lse_in_f16)) lse = round_to(DType::f16, lse);
    result.lse(b_, h_, i, 0) = seen ? static_cast<double>(static_cast<Real>(lse))
                                    : -std::numeric_limits<double>::infinity();
    for (std::int64_t c = 0; c < shape_.v_dim; ++c) {
      const Real o = seen ? acc_[static_cast<std::size_t>(c)] / sum_ : Real(0);
      result.out(b_, h_, i, c) = round_to(in_.problem.dtype, o);
    }
  }

  const AttentionInput& in_;
  const Shape& shape_;
  Mistake mistake_;
  std::int64_t b_, h_, kv_ = 0, q_head_ = 0, value_batch_ = 0;
  Mask mask_;
  Real top_ = -std::numeric_limits<Real>::infinity();
  Real sum_ = 0;
  std::vector<Real> acc_;
};

template <class Real>
void attend(const AttentionInput& input, Mistake mistake, AttentionOutput& output) {
  for (std::int64_t b = 0; b < input.problem.shape.batch; ++b) {
    for (std::int64_t h = 0; h < input.problem.shape.q_heads; ++h) {
      NaiveHead<Real>(input, mistake, b, h).attend(output);
    }
  }
}

RunResult run_naive(const AttentionInput& input, Mistake mistake) {
  const Shape& shape = input.problem.shape;
  RunResult result;
  result.output = {Tensor<double>(shape.out()), Tensor<double>(shape.lse())};
  if (input.problem.dtype == DType::f64) {
    attend<double>(input, mistake, result.output);
  } else {
    attend<float>(input, mistake, result.output);
  }
  return result;
}

}  // namespace

Subject naive_subject(Mistake mistake) {
  Capabilities can;
  can.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  can.drop({Ability::many_ranks, Ability::counts_traffic});
  return {.name = "naive",
          .title = "one online softmax per row",
          .can = std::move(can),
          .run = [mistake](const AttentionInput& input,
                           const RunOptions&) { return run_naive(input, mistake); },
          .profile =
              [](const Problem& problem, const RunOptions&) {
                return carried_profile(problem.dtype, problem.shape.kv_tokens + 1);
              }};
}

Subject with_results(Subject subject, const EditResult& edit) {
  subject.run = [run = subject.run, edit](const AttentionInput& input, const RunOptions& options) {
    RunResult result = run(input, options);
    edit(result, input, options);
    return result;
  };
  return subject;
}

Subject with_bits_that_differ(Subject subject) {
  subject.can.dtypes = {DType::f32};
  const auto calls = std::make_shared<int>(0);
  return with_results(std::move(subject), [calls](RunResult& result, const auto&, const auto&) {
    if (++*calls % 3 != 0) return;
    for (Tensor<double>* tensor : {&result.output.out, &result.output.lse}) {
      for (double& x : tensor->values()) {
        if (x != 0 && std::isfinite(x)) x = static_cast<float>(x * (1 + 0x1p-23));
      }
    }
  });
}

Subject with_profile(Subject subject, const std::function<void(NumericsProfile&)>& edit) {
  subject.profile = [declared = subject.profile, edit](const Problem& problem,
                                                       const RunOptions& options) {
    NumericsProfile profile = declared(problem, options);
    edit(profile);
    return profile;
  };
  return subject;
}

bool finds(const char* law, Mistake mistake) {
  const LawVerdict verdict = verify_law(naive_subject(mistake), find_law(law), {.shrink = false});
  if (!verdict.skipped.empty()) throw std::logic_error(verdict.skipped);
  return verdict.failure.has_value();
}

}  // namespace ringlab::verify
