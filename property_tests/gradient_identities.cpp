#include "property_tests/gradient_identities.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "reference/core/small_float.h"

namespace ringlab::verify {
namespace {

double square(double x) { return x * x; }

/// The ratio of |off| to `likely`, for sums that are off by nothing, too.
double compared(double off, double likely) {
  if (off == 0) return 0;  // 0 over 0 is no error
  // Sums that are not finite are wrong whatever error is likely; so are all where `likely` is NaN.
  const double ratio = std::abs(off) / likely;
  return std::isfinite(off) && !std::isnan(ratio) ? ratio : std::numeric_limits<double>::infinity();
}

/// Keeps a sum that is `off`, of terms of this norm, if it is the worst.
void keep_worst(Identity& identity, double off, double likely, double norm,
                const std::string& where) {
  identity.measured += norm > 0;
  identity.telling += norm > Identity::kMost * likely;
  const double ratio = compared(off, likely);
  if (ratio <= identity.worst) return;
  identity.worst = ratio;
  identity.where = where;
}

/// Σ_c a_c b_c of one token, its terms' squares added to `squares`.
template <class Element>
double product(const TensorView<const Element>& a, const TensorView<const Element>& b,
               const std::array<std::int64_t, 3>& at, double& squares) {
  double sum = 0;
  for (std::int64_t c = 0; c < a.extents.channels; ++c) {
    const double term = static_cast<double>(a(at[0], at[1], at[2], c)) *
                        static_cast<double>(b(at[0], at[1], at[2], c));
    sum += term;
    squares += square(term);
  }
  return sum;
}

template <class Element>
double squared_norm(const TensorView<const Element>& a, const std::array<std::int64_t, 3>& at) {
  double unused = 0;
  return product(a, a, at, unused);
}

double sum_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace

GradientIdentities::GradientIdentities(const Problem& problem, const NumericsProfile& profile)
    : problem_(problem), profile_(profile) {
  const Shape& shape = problem.shape;
  const std::vector<double> none(static_cast<std::size_t>(shape.v_dim));
  sums_.assign(static_cast<std::size_t>(shape.batch * shape.kv_heads),
               {.dv = none, .dv_squares = none, .dout = none, .dout_squares = none});
}

// The numbers that ranks add up, in one order on all ranks; maxima are kept apart.
std::vector<double*> GradientIdentities::Sums::added() {
  std::vector<double*> all = {&q_dq,        &q_dq_squares, &k_dk,      &k_dk_squares,
                              &v_dv,        &v_dv_squares, &o_dout,    &o_dout_squares,
                              &row_squares, &q_squares,    &k_squares, &v_squares};
  for (std::vector<double>* channels : {&dv, &dv_squares, &dout, &dout_squares}) {
    for (double& channel : *channels) all.push_back(&channel);
  }
  return all;
}

std::vector<double*> GradientIdentities::Sums::largest() { return {&largest_q, &largest_k}; }

std::vector<double> GradientIdentities::gathered() const {
  std::vector<double> numbers;
  for (Sums sums : sums_) {
    for (const double* number : sums.added()) numbers.push_back(*number);
    for (const double* number : sums.largest()) numbers.push_back(*number);
  }
  return numbers;
}

void GradientIdentities::add_gathered(const std::vector<double>& others) {
  auto next = others.begin();
  for (Sums& sums : sums_) {
    for (double* number : sums.added()) *number += *next++;
    for (double* number : sums.largest()) *number = std::max(*number, *next++);
  }
}

GradientIdentities::Sums& GradientIdentities::sums_of(std::int64_t batch, std::int64_t kv_head) {
  return sums_[static_cast<std::size_t>(batch * problem_.shape.kv_heads + kv_head)];
}

bool GradientIdentities::sees_something(std::int64_t query) const {
  if (problem_.mask.has_bits()) {
    return problem_.mask.count(Positions::from_list({query}),
                               Positions::all(problem_.shape.kv_tokens)) > 0;
  }
  const KeyInterval keys = problem_.mask.interval(query);
  return keys.begin < keys.end;
}

template <class Element>
void GradientIdentities::add_queries(const GradientRows<Element>& rows, std::int64_t batch,
                                     std::int64_t kv_head) {
  const std::int64_t group = problem_.shape.q_heads / problem_.shape.kv_heads;
  const std::vector<std::int64_t> tokens = rows.queries.to_list();
  // Query heads that read this K/V head: their sums stand against dk and dv of it.
  Sums& sums = sums_of(batch, kv_head);
  for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
    for (std::int64_t i = 0; i < std::ssize(tokens); ++i) {
      // A row that sees nothing has no weights to sum to one, and its dout goes nowhere.
      if (!sees_something(tokens[static_cast<std::size_t>(i)])) continue;
      const double norm = squared_norm(rows.q, {batch, h, i});
      sums.q_squares += norm;
      sums.largest_q = std::max(sums.largest_q, norm);
      sums.q_dq += product(rows.q, rows.dq, {batch, h, i}, sums.q_dq_squares);
      const double row = product(rows.out, rows.dout, {batch, h, i}, sums.o_dout_squares);
      sums.o_dout += row;
      sums.row_squares += square(row);
      for (std::int64_t c = 0; c < problem_.shape.v_dim; ++c) {
        const auto upstream = static_cast<double>(rows.dout(batch, h, i, c));
        sums.dout[static_cast<std::size_t>(c)] += upstream;
        sums.dout_squares[static_cast<std::size_t>(c)] += square(upstream);
      }
    }
  }
}

template <class Element>
void GradientIdentities::add_keys(const GradientRows<Element>& rows, std::int64_t batch,
                                  std::int64_t kv_head) {
  Sums& sums = sums_of(batch, kv_head);
  for (std::int64_t j = 0; j < rows.k.extents.tokens; ++j) {
    const double norm = squared_norm(rows.k, {batch, kv_head, j});
    sums.k_squares += norm;
    sums.largest_k = std::max(sums.largest_k, norm);
    sums.v_squares += squared_norm(rows.v, {batch, kv_head, j});
    sums.k_dk += product(rows.k, rows.dk, {batch, kv_head, j}, sums.k_dk_squares);
    sums.v_dv += product(rows.v, rows.dv, {batch, kv_head, j}, sums.v_dv_squares);
    for (std::int64_t c = 0; c < problem_.shape.v_dim; ++c) {
      const auto gradient = static_cast<double>(rows.dv(batch, kv_head, j, c));
      sums.dv[static_cast<std::size_t>(c)] += gradient;
      sums.dv_squares[static_cast<std::size_t>(c)] += square(gradient);
    }
  }
}

template <class Element>
void GradientIdentities::add(const GradientRows<Element>& rows) {
  for (std::int64_t b = 0; b < problem_.shape.batch; ++b) {
    for (std::int64_t g = 0; g < problem_.shape.kv_heads; ++g) {
      add_queries(rows, b, g);
      add_keys(rows, b, g);
    }
  }
}

/// The rounding of a gradient, relative to it: its own, that of the weights that meet dO and of dS,
/// and those of a long sum, which grow like its root.
double GradientIdentities::rounding() const {
  const Shape& shape = problem_.shape;
  const auto terms = static_cast<double>(std::max(shape.q_tokens, shape.kv_tokens));
  return dtype_info(profile_.out_dtype).unit_roundoff + profile_.u_probability +
         2 * profile_.u_product +
         // Roundings that are independent add up like the root of their
         // number (Higham & Mary 2019).
         4 * profile_.u_work + 2 * std::sqrt(terms) * profile_.u_accumulate + profile_.u_wire +
         profile_.wire_floor;
}

/// The most that a gradient below the normal numbers of its type may lose.
double GradientIdentities::least() const { return half_ulp(profile_.out_dtype, 0); }

std::string GradientIdentities::place(std::size_t n) const {
  const auto heads = static_cast<std::size_t>(problem_.shape.kv_heads);
  return fmt::format("batch {}, K/V head {}", n / heads, n % heads);
}

/// The likely error of the sum of a row's weights, which should be one: of each weight, of
/// rescaling, and of rounded scores, which grows with their size.
double GradientIdentities::row_error(const Sums& sums) const {
  const auto keys = static_cast<double>(problem_.shape.kv_tokens);
  const double largest_score =
      std::abs(problem_.scale) * std::sqrt(sums.largest_q * sums.largest_k) + std::log(keys + 1);
  const double rescales = std::sqrt(static_cast<double>(profile_.max_rescales) + 1);
  return profile_.u_probability + profile_.u_row_sum + 2 * profile_.u_product +
         rescales * (profile_.exp_error + 4 * profile_.u_work) +
         2 * std::sqrt(keys) * profile_.u_accumulate +
         (8 * (profile_.u_work + profile_.u_lse + profile_.u_accumulate + profile_.u_query +
               profile_.u_product) +
          profile_.u_wire + profile_.wire_floor) *
             largest_score;
}

Identity GradientIdentities::sum_of_dv() const {
  Identity identity{"P40", "sum of dv = sum of dout"};
  for (std::size_t n = 0; n < sums_.size(); ++n) {
    const Sums& sums = sums_[n];
    // Half a least subnormal per key, with random signs.
    const double lost = least() * std::sqrt(static_cast<double>(problem_.shape.kv_tokens));
    for (std::size_t c = 0; c < sums.dv.size(); ++c) {
      const double likely = row_error(sums) * std::sqrt(sums.dout_squares[c]) +
                            rounding() * std::sqrt(sums.dv_squares[c]) + lost;
      keep_worst(identity, sums.dv[c] - sums.dout[c], likely, std::sqrt(sums.dout_squares[c]),
                 fmt::format("{}, channel {}", place(n), c));
    }
  }
  return identity;
}

Identity GradientIdentities::scores_are_bilinear() const {
  Identity identity{"P42", "<q, dq> = <k, dk>"};
  for (std::size_t n = 0; n < sums_.size(); ++n) {
    const Sums& sums = sums_[n];
    const double norm = std::sqrt(sums.q_dq_squares) + std::sqrt(sums.k_dk_squares);
    const double likely =
        rounding() * norm + least() * (std::sqrt(sums.q_squares) + std::sqrt(sums.k_squares));
    keep_worst(identity, sums.q_dq - sums.k_dk, likely, norm, place(n));
  }
  return identity;
}

Identity GradientIdentities::output_is_linear() const {
  Identity identity{"P43", "<v, dv> = <o, dout>"};
  for (std::size_t n = 0; n < sums_.size(); ++n) {
    const Sums& sums = sums_[n];
    const double norm = std::sqrt(sums.v_dv_squares) + std::sqrt(sums.o_dout_squares);
    const double likely =
        row_error(sums) * std::sqrt(sums.row_squares) + rounding() * norm +
        least() * (std::sqrt(sums.v_squares) + std::sqrt(sum_of(sums.dout_squares)));
    keep_worst(identity, sums.v_dv - sums.o_dout, likely, norm, place(n));
  }
  return identity;
}

std::vector<Identity> GradientIdentities::results() const {
  const Modifiers& modifiers = problem_.modifiers;
  std::vector<Identity> found = {scores_are_bilinear(), output_is_linear()};
  // P40 needs weights that sum to one: a sink takes its share, and dropout changes the rest.
  if (modifiers.sinks.empty() && modifiers.dropout == 0) found.insert(found.begin(), sum_of_dv());
  return found;
}

bool GradientIdentities::hold() const {
  const std::vector<Identity> found = results();
  const bool are_measured =
      std::ranges::any_of(found, [](const Identity& one) { return one.measured > 0; });
  return std::ranges::all_of(found, &Identity::holds) &&
         !(are_measured &&
           std::ranges::none_of(found, [](const Identity& one) { return one.telling > 0; }));
}

template void GradientIdentities::add(const GradientRows<double>&);
template void GradientIdentities::add(const GradientRows<float>&);
template void GradientIdentities::add(const GradientRows<Half>&);
template void GradientIdentities::add(const GradientRows<BFloat16>&);

}  // namespace ringlab::verify
