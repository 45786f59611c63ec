#include "reference/io/rotary.h"

#include <mpfr.h>

#include <bit>

namespace ringlab::io {
namespace {

constexpr mpfr_prec_t kAngleBits = 192;  // 128 that count, after up to 63 doublings

}  // namespace

Rotary::Rotary(std::int64_t channels, std::int64_t tokens)
    : bits_(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(tokens)))) {
  powers_.reserve(static_cast<std::size_t>(channels / 2 * bits_));
  mpfr_t angle, cosine, sine;
  mpfr_inits2(kAngleBits, angle, cosine, sine, nullptr);
  for (std::int64_t i = 0; i < channels / 2; ++i) {
    mpfr_set_si(angle, -2 * i, MPFR_RNDN);
    mpfr_div_si(angle, angle, channels, MPFR_RNDN);
    mpfr_ui_pow(angle, 10000, angle, MPFR_RNDN);
    for (int bit = 0; bit < bits_; ++bit) {
      mpfr_sin_cos(sine, cosine, angle, MPFR_RNDN);
      powers_.push_back({mpfr_get_d(cosine, MPFR_RNDN), mpfr_get_d(sine, MPFR_RNDN)});
      mpfr_mul_2ui(angle, angle, 1, MPFR_RNDN);
    }
  }
  mpfr_clears(angle, cosine, sine, nullptr);
}

std::vector<Rotation> Rotary::at(std::int64_t position) const {
  std::vector<Rotation> turns;
  for (std::size_t first = 0; first < powers_.size(); first += static_cast<std::size_t>(bits_)) {
    Rotation turn;
    for (int bit = 0; bit < bits_; ++bit) {
      if (position >> bit & 1) turn = turn * powers_[first + static_cast<std::size_t>(bit)];
    }
    turns.push_back(turn);
  }
  return turns;
}

}  // namespace ringlab::io
