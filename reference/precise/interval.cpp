#include "reference/precise/interval.h"

#include <utility>

namespace ringlab::precise {
namespace {

thread_local long current_bits = 128;

}  // namespace

PrecisionScope::PrecisionScope(long bits) : before_(std::exchange(current_bits, bits)) {}
PrecisionScope::~PrecisionScope() { current_bits = before_; }
long PrecisionScope::bits() { return current_bits; }

Interval::Interval() : Interval(0.0) {}
Interval::Interval(double x) {
  mpfi_init2(value_, current_bits);
  mpfi_set_d(value_, x);
}
Interval::Interval(const Dyadic& x) {
  mpfi_init2(value_, current_bits);
  mpfi_set_z(value_, x.significand().get_mpz_t());
  mpfi_mul_2si(value_, value_, x.exponent());
}
Interval::Interval(const Interval& other) {
  mpfi_init2(value_, current_bits);
  mpfi_set(value_, other.value_);
}
Interval::Interval(Interval&& other) noexcept : Interval() { mpfi_swap(value_, other.value_); }
Interval& Interval::operator=(Interval other) noexcept {
  mpfi_swap(value_, other.value_);
  return *this;
}
Interval::~Interval() { mpfi_clear(value_); }

Interval Interval::product(double a, double b) {
  Interval result(a);
  mpfi_mul_d(result.value_, result.value_, b);
  return result;
}

Interval Interval::around_zero(double radius) {
  Interval result;
  mpfi_interv_d(result.value_, -radius, radius);
  return result;
}

int Interval::sign() const {
  if (mpfi_is_strictly_pos(value_)) return 1;
  return mpfi_is_strictly_neg(value_) ? -1 : 0;
}
bool Interval::is_zero() const { return mpfi_is_zero(value_) != 0; }
double Interval::high() const { return mpfr_get_d(lower(), MPFR_RNDN); }

Interval operator+(const Interval& a, const Interval& b) {
  Interval result;
  mpfi_add(result.value_, a.value_, b.value_);
  return result;
}
Interval operator-(const Interval& a, const Interval& b) {
  Interval result;
  mpfi_sub(result.value_, a.value_, b.value_);
  return result;
}
Interval operator*(const Interval& a, const Interval& b) {
  Interval result;
  mpfi_mul(result.value_, a.value_, b.value_);
  return result;
}
Interval operator/(const Interval& a, const Interval& b) {
  Interval result;
  mpfi_div(result.value_, a.value_, b.value_);
  return result;
}
Interval operator-(const Interval& a) {
  Interval result;
  mpfi_neg(result.value_, a.value_);
  return result;
}

void Interval::add_product(const Interval& a, double b) {
  if (b == 0) return;
  const bool up = b > 0;
  mpfr_t part;
  mpfr_init2(part, current_bits);
  mpfr_mul_d(part, up ? a.lower() : a.upper(), b, MPFR_RNDD);
  mpfr_add(&value_->left, &value_->left, part, MPFR_RNDD);
  mpfr_mul_d(part, up ? a.upper() : a.lower(), b, MPFR_RNDU);
  mpfr_add(&value_->right, &value_->right, part, MPFR_RNDU);
  mpfr_clear(part);
}

Interval exp(const Interval& x) {
  Interval result;
  mpfi_exp(result.value_, x.value_);
  return result;
}
Interval log(const Interval& x) {
  Interval result;
  mpfi_log(result.value_, x.value_);
  return result;
}
Interval tanh(const Interval& x) {
  Interval result;
  mpfi_tanh(result.value_, x.value_);
  return result;
}
Interval sech_squared(const Interval& x) {
  Interval result;
  mpfi_cosh(result.value_, x.value_);
  mpfi_sqr(result.value_, result.value_);
  mpfi_inv(result.value_, result.value_);
  return result;
}

ThreadCaches::~ThreadCaches() { mpfr_free_cache(); }

}  // namespace ringlab::precise
