// The numbers of a case: q, k and v of every family.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "property_tests/case.h"
#include "property_tests/generators/draws.h"

namespace ringlab::verify {
namespace {

/// Makes one K/V head with the query heads that read it. The problem is asked for a heavy key alone.
class HeadMaker {
 public:
  HeadMaker(const Case& c, std::int64_t batch, std::int64_t kv_head, const Problem& problem)
      : case_(c),
        problem_(problem),
        batch_(batch),
        kv_head_(kv_head),
        draws_(c.seed, {batch, kv_head}) {
    const auto d = c.shape.head_dim;
    // Scores of the sizes that a family is about need a scale that is not 0.
    scale_ = scale_of(c.scale == ScaleKind::zero ? ScaleKind::rsqrt : c.scale, d);
    for (std::int64_t i = 0; i < d; ++i) axis_.push_back(draws_.sign());
    if (c.family == Family::heavy_key) heavy_key_ = place_of_heavy_key();
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
  /// `element` gives a number for a token and a channel.
  template <class Element>
  void fill_head(Tensor<double>& x, std::int64_t head, const Element& element) {
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

  /// A key that the last query sees, if some tries find one: the last, beside a tile of 16 … 512 or
  /// a power of two, or any; or a key on either side of a border of the keys that it sees.
  std::int64_t place_of_heavy_key() {
    constexpr int kTries = 30;
    constexpr std::int64_t kTiles = 6, kPowers = 17;
    const std::int64_t keys = case_.shape.kv_tokens;
    Draws draws(case_.seed, {batch_, kv_head_, 6});
    std::int64_t place = keys - 1;
    if (const KeyInterval seen = problem_.mask.interval(case_.shape.q_tokens - 1);
        seen.size() < keys && draws.chance(30)) {
      const std::int64_t border = draws.chance(50) ? seen.begin : seen.end;
      return std::clamp<std::int64_t>(border - draws.below(2), 0,
                                      std::max<std::int64_t>(0, keys - 1));
    }
    for (int i = 0; i < kTries; ++i) {
      place = draws.below(keys);
      const std::int64_t kind = draws.below(10);
      if (kind < 2) place = keys - 1 - draws.below(2);
      if (kind >= 2 && kind < 5) {
        const std::int64_t tile = std::int64_t{16} << draws.below(kTiles);
        place = place / tile * tile + draws.between(-1, 1);
      }
      if (kind == 5) place = (std::int64_t{1} << draws.below(kPowers)) + draws.between(-1, 1);
      place = std::clamp<std::int64_t>(place, 0, std::max<std::int64_t>(0, keys - 1));
      if (problem_.mask.allows(case_.shape.q_tokens - 1, place)) break;
    }
    return place;
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
      case Family::heavy_key:
        return j == heavy_key_ ? axis(channel) : 0.17 * draws_.symmetric();
      case Family::one_channel:
        return 1.7 * draws_.symmetric();
      case Family::cancelling:  // 2x - x - x, of another size and sign for each key
        if (channel == 0) large_ = draws_.sign() * static_cast<double>(draws_.between(65, 80));
        if (cancels(channel)) return channel == 0 ? 2 * large_ : -large_;
        return draws_.normal();
      default:
        return draws_.normal();
    }
  }

  /// Channels whose products add up to 0, in a head that has others besides.
  bool cancels(std::int64_t channel) const { return case_.shape.head_dim > 3 && channel < 3; }

  /// A channel of a value; families of scores leave values normal.
  double value(std::int64_t j, std::int64_t channel) {
    switch (case_.family) {
      case Family::one_channel: {
        if (channel == 0) own_channel_ = draws_.below(case_.shape.v_dim);
        if (channel != own_channel_) return 0;
        const double size = 1 + draws_.unit();
        return j % 2 == 0 ? size : -size;
      }
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
      case Family::heavy_key:  // clear of the bounds of a result that is nearly this value
        return j == heavy_key_ ? draws_.sign() * (1 + draws_.unit()) : 0.5 * draws_.normal();
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
        strength = row_strength(head, i);
        target = draws_.below(case_.shape.kv_tokens);
      }
      if (case_.family == Family::peaked && case_.shape.kv_tokens > 0) {
        return strength * data.k(batch_, kv_head_, target, channel);
      }
      return query(strength, channel);
    });
  }

  /// A number that all channels of one query row share.
  double row_strength(std::int64_t head, std::int64_t i) {
    const auto d = static_cast<double>(case_.shape.head_dim);
    switch (case_.family) {
      case Family::peaked:
        return (30.0 + 60.0 * draws_.unit()) / scale_;
      case Family::late_maximum:
      case Family::early_maximum:
        return (10.0 + 25.0 * draws_.unit()) / (scale_ * d);
      case Family::heavy_key:  // as likely as all others, or 20 times as likely
        return (0.7 * bits_of_keys() + 3.0 * draws_.unit() + bias_of_heavy_key(head, i)) /
               (scale_ * d);
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
      case Family::heavy_key:
        return axis(channel) * strength + 0.1 * draws_.normal();
      case Family::cancelling:
        return cancels(channel) ? 512 : 4 * draws_.normal();
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

  /// The bias that ALiBi takes off the score of the heavy key, or the greatest that leaves bounds of
  /// coarse kernels narrow.
  double bias_of_heavy_key(std::int64_t head, std::int64_t i) const {
    constexpr double kMostBias = 100;
    const std::vector<double>& slopes = problem_.modifiers.alibi_slopes;
    if (slopes.empty()) return 0;
    const std::int64_t position = i + case_.shape.kv_tokens - case_.shape.q_tokens;
    return std::min(kMostBias, slopes[static_cast<std::size_t>(head)] *
                                   static_cast<double>(std::abs(position - heavy_key_)));
  }

  /// The logarithm of the keys to base 2, rounded up.
  int bits_of_keys() const {
    return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(case_.shape.kv_tokens)));
  }

  const Case& case_;
  const Problem& problem_;
  std::int64_t batch_;
  std::int64_t kv_head_;
  Draws draws_;
  double scale_ = 1;
  std::vector<double> axis_;  // ±1 per channel: the direction along which scores are built
  std::int64_t heavy_key_ = -1;
  std::int64_t own_channel_ = -1;  // of the value being made
  double large_ = 0;               // of the key being made
};

}  // namespace

AttentionTensors make_tensors(const Case& c) {
  AttentionTensors data{Tensor<double>(c.shape.q()), Tensor<double>(c.shape.k()),
                        Tensor<double>(c.shape.v())};
  const Problem problem = c.family == Family::heavy_key ? make_problem(c) : Problem();
  for (std::int64_t b = 0; b < c.shape.batch; ++b) {
    for (std::int64_t g = 0; g < c.shape.kv_heads; ++g) HeadMaker(c, b, g, problem).fill(data);
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
