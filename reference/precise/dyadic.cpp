#include "reference/precise/dyadic.h"

#include <cmath>
#include <cstdint>

namespace ringlab::precise {
namespace {

/// x = significand · 2^exponent.
struct Parts {
  long significand = 0;
  int exponent = 0;
};
static_assert(sizeof(long) == 8, "GMP takes integers as long");

Parts parts_of(double x) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return {static_cast<long>(std::ldexp(fraction, 53)), exponent - 53};
}

}  // namespace

Dyadic::Dyadic(double x) {
  if (x == 0) return;
  const Parts parts = parts_of(x);
  const int zeros = __builtin_ctzl(static_cast<unsigned long>(parts.significand));
  significand_ = parts.significand / (1L << zeros);
  exponent_ = parts.exponent + zeros;
}

Dyadic& Dyadic::operator+=(const Dyadic& other) {
  if (other.is_zero()) return *this;
  if (is_zero()) return *this = other;
  if (other.exponent_ < exponent_) {
    significand_ <<= static_cast<mp_bitcnt_t>(exponent_ - other.exponent_);
    exponent_ = other.exponent_;
    significand_ += other.significand_;
  } else if (other.exponent_ == exponent_) {
    significand_ += other.significand_;
  } else {
    significand_ += other.significand_ << static_cast<mp_bitcnt_t>(other.exponent_ - exponent_);
  }
  return *this;
}

void Dyadic::add_product(double a, double b) {
  if (a == 0 || b == 0) return;
  *this += Dyadic(a) * Dyadic(b);
}

}  // namespace ringlab::precise
