// The numbers of a case: q, k and v of every family.
#include <array>
#include <cmath>
#include <functional>

#include "property_tests/case.h"
#include "property_tests/generators/draws.h"

namespace ringlab::verify {
namespace {

using Row = std::function<double(std::int64_t token, std::int64_t channel)>;

/// Makes one K/V head with the query heads that read it.
class HeadMaker {
 public:
  HeadMaker(const Case& c, std::int64_t batch, std::int64_t kv_head)
      : case_(c), batch_(batch), kv_head_(kv_head), draws_(c.seed, {batch, kv_head}) {
    const auto d = c.shape.head_dim;
    // Scores of the sizes that a family is about need a scale that is not 0.
    scale_ = scale_of(c.scale == ScaleKind::zero ? ScaleKind::rsqrt : c.scale, d);
    for (std::int64_t i = 0; i < d; ++i) axis_.push_back(draws_.sign());
  }

  void fill(AttentionTensors& data) {
    fill_head(data.k, kv_head_, [&](auto j, auto ch) { return key(j, ch); });
    if (case_.family == Family::peaked) normalise_keys(data.k);
    draws_ = Draws(case_.seed, {batch_, kv_head_, 4});
    fill_head(data.v, kv_head_, [&](auto j, auto ch) { return value(j, ch); });
    const std::int64_t group = case_.shape.q_heads / case_.shape.kv_heads;
    for (std::int64_t h = kv_head_ * group; h < (kv_head_ + 1) * group; ++h) {
      draws_ = Draws(case_.seed, {batch_, kv_head_, h, 1});
      fill_queries(data, h);
    }
  }

 private:
  void fill_head(Tensor<double>& x, std::int64_t head, const Row& element) {
    for (std::int64_t t = 0; t < x.extents().tokens; ++t) {
      for (std::int64_t ch = 0; ch < x.extents().channels; ++ch) {
        x(batch_, head, t, ch) = round_to(case_.dtype, element(t, ch));
      }
    }
  }

  /// Makes keys of length one, so that the query that copies a key has its largest score there.
  void normalise_keys(Tensor<double>& k) {
    for (std::int64_t j = 0; j < case_.shape.kv_tokens; ++j) {
      double squares = 0;
      for (std::int64_t ch = 0; ch < case_.shape.head_dim; ++ch) {
        squares += k(batch_, kv_head_, j, ch) * k(batch_, kv_head_, j, ch);
      }
      if (squares == 0) continue;
      for (std::int64_t ch = 0; ch < case_.shape.head_dim; ++ch) {
        double& x = k(batch_, kv_head_, j, ch);
        x = round_to(case_.dtype, x / std::sqrt(squares));
      }
    }
  }

  double axis(std::int64_t channel) const { return axis_[static_cast<std::size_t>(channel)]; }

  /// A channel of key j. Families that build scores along the axis make maxima rise or fall with j.
  double key(std::int64_t j, std::int64_t channel) {
    const auto n = static_cast<double>(case_.shape.kv_tokens);
    switch (case_.family) {
      case Family::uniform:
        return draws_.symmetric();
      case Family::small_ints:
        return static_cast<double>(draws_.between(-4, 4));
      case Family::late_maximum:
        return axis(channel) * static_cast<double>(j + 1) / n + 0.03 * draws_.normal();
      case Family::early_maximum:
        return axis(channel) * (n - static_cast<double>(j)) / n + 0.03 * draws_.normal();
      case Family::huge_gaps:  // blocks of three keys share a level
        return axis(channel) *
               static_cast<double>(Draws(case_.seed, {batch_, kv_head_, j / 3, 2}).between(-3, 3));
      case Family::common_shift:
        if (channel > 0) return draws_.normal();
        return case_.shape.head_dim > 1 ? 64.0 : 64.0 + 0.5 * static_cast<double>(draws_.below(4));
      case Family::signed_zeros:
        return zero_or_normal();
      case Family::subnormal:
        return tiny_or_normal();
      default:
        return draws_.normal();
    }
  }

  /// A channel of a value; families of scores leave values normal.
  double value(std::int64_t, std::int64_t channel) {
    switch (case_.family) {
      case Family::uniform:
        return draws_.symmetric();
      case Family::small_ints:
        return static_cast<double>(draws_.between(-4, 4));
      case Family::signed_zeros:
        return zero_or_normal();
      case Family::subnormal:
        return tiny_or_normal();
      case Family::constant_v:
        return Draws(case_.seed, {batch_, kv_head_, channel, 3}).normal();
      default:
        return draws_.normal();
    }
  }

  /// Fills the queries of a head; a row draws its strength and its target once.
  void fill_queries(AttentionTensors& data, std::int64_t head) {
    std::int64_t current = -1;
    double strength = 0;
    std::int64_t target = 0;
    fill_head(data.q, head, [&](std::int64_t i, std::int64_t channel) {
      if (i != current) {
        current = i;
        strength = row_strength();
        target = draws_.below(case_.shape.kv_tokens);
      }
      if (case_.family == Family::peaked && case_.shape.kv_tokens > 0) {
        return strength * data.k(batch_, kv_head_, target, channel);
      }
      return query(strength, channel);
    });
  }

  /// Numbers that all channels of one query row share.
  double row_strength() {
    const auto d = static_cast<double>(case_.shape.head_dim);
    switch (case_.family) {
      case Family::peaked:
        return (30.0 + 60.0 * draws_.unit()) / scale_;
      case Family::late_maximum:
      case Family::early_maximum:
        return (10.0 + 25.0 * draws_.unit()) / (scale_ * d);
      case Family::huge_gaps:
        return 50.0 * static_cast<double>(draws_.between(-2, 3)) / (scale_ * d);
      case Family::common_shift: {
        constexpr std::array<double, 5> kShifts = {-400, -20480, 400, 3000, 20000};
        return kShifts[static_cast<std::size_t>(draws_.below(5))] / (64.0 * scale_);
      }
      default:
        return 0;
    }
  }

  /// A channel of a query: along the axis it sets the row's score scale, elsewhere it is noise.
  double query(double strength, std::int64_t channel) {
    switch (case_.family) {
      case Family::uniform:
        return draws_.symmetric();
      case Family::small_ints:
        return static_cast<double>(draws_.between(-4, 4));
      case Family::late_maximum:
      case Family::early_maximum:
        return axis(channel) * strength + 0.1 * draws_.normal();
      case Family::huge_gaps:
        return axis(channel) * strength;
      case Family::common_shift:
        return channel == 0 ? strength : draws_.normal();
      case Family::signed_zeros:
        return zero_or_normal();
      case Family::subnormal:
        return tiny_or_normal();
      default:
        return draws_.normal();
    }
  }

  /// Half of the numbers are zeros of either sign.
  double zero_or_normal() {
    const double x = draws_.normal();
    return draws_.chance(50) ? std::copysign(0.0, x) : x;
  }

  /// A quarter of the numbers are subnormal, and a quarter near the smallest normal one.
  double tiny_or_normal() {
    const DTypeInfo& info = dtype_info(case_.dtype);
    const double x = draws_.normal();
    switch (draws_.below(4)) {
      case 0:
        return static_cast<double>(draws_.between(-15, 15)) * info.min_subnormal;
      case 1:
        return x * info.min_normal;
      default:
        return x;
    }
  }

  const Case& case_;
  std::int64_t batch_;
  std::int64_t kv_head_;
  Draws draws_;
  double scale_ = 1;
  std::vector<double> axis_;  // ±1 per channel: the direction along which scores are built
};

}  // namespace

AttentionTensors make_tensors(const Case& c) {
  AttentionTensors data{Tensor<double>(c.shape.q()), Tensor<double>(c.shape.k()),
                        Tensor<double>(c.shape.v())};
  for (std::int64_t b = 0; b < c.shape.batch; ++b) {
    for (std::int64_t g = 0; g < c.shape.kv_heads; ++g) HeadMaker(c, b, g).fill(data);
  }
  return data;
}

namespace {

/// 1 mostly, else a power of two that leaves sums of gradients in the range of the type.
double size_of_dout(const Case& c) {
  constexpr std::int64_t kSizeStream = -7;
  Draws draws(c.seed, {kSizeStream});
  const std::int64_t kind = draws.below(10);
  const int powers = c.dtype == DType::f16 ? 5 : 12;
  return kind < 7 ? 1 : std::ldexp(1.0, kind < 9 ? powers : -powers);
}

}  // namespace

Tensor<double> make_dout(const Case& c) {
  Tensor<double> dout(c.shape.out());
  const bool integers = c.family == Family::small_ints;
  const double size = integers ? 1 : size_of_dout(c);
  for_each_index(dout.extents(), [&](auto b, auto h, auto i, auto channel) {
    Draws draws(c.seed, {b, h, i, channel, 5});
    const double x = integers ? static_cast<double>(draws.between(-4, 4)) : size * draws.normal();
    dout(b, h, i, channel) = round_to(c.dtype, x);
  });
  return dout;
}

}  // namespace ringlab::verify
