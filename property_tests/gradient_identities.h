// Identities of sums over the gradients of all tokens, whatever the data: a check of gradients that
// needs no reference, for sequences that are too long for one.
//
// Bounds of such sums grow with every addition and are far above the effect of a lost part of a
// long sequence. The error of a sum is therefore compared with the error that independent roundings
// make likely (Higham & Mary 2019): right for random data, where terms are as often positive as
// negative; data whose terms cancel by design may exceed it.
#pragma once

#include <string>
#include <vector>

#include "reference/core/numerics.h"
#include "reference/core/positions.h"
#include "reference/core/problem.h"
#include "reference/core/tensor.h"

namespace ringlab::verify {

/// The rows of one rank in a run with gradients: (batch, heads, its tokens, channels) each.
template <class Element>
struct GradientRows {
  const Positions& queries;
  TensorView<const Element> q, dout, out, dq;
  TensorView<const Element> k, v, dk, dv;
};

/// The rows of `queries`: q, dout, k and v of `given`, which has dout, and the results of a run on it.
template <class Element, class Given, class Gradients>
GradientRows<Element> gradient_rows(const Positions& queries, const Given& given,
                                    const Tensor<Element>& out, const Gradients& gradients) {
  return {.queries = queries,
          .q = given.q,
          .dout = *given.dout,
          .out = out.view(),
          .dq = gradients.dq.view(),
          .k = given.k,
          .v = given.v,
          .dk = gradients.dk.view(),
          .dv = gradients.dv.view()};
}

/// One identity at the K/V head where it is off the most.
struct Identity {
  std::string law;   ///< the law of small problems that says the same: "P40"
  std::string name;  ///< "sum of dv = sum of dout"
  double worst = 0;  ///< its error over the error that rounding makes likely
  std::string where = {};
  int measured = 0;  ///< sums with terms
  int telling = 0;   ///< those whose bound is below the norm of their terms
  /// The bound: several times what correct kernels have been seen to reach (docs/numerics.md).
  static constexpr double kMost = 8;
  bool holds() const { return worst <= kMost; }  // NaN does not
  /// True when its bounds are so wide that terms of any sign would pass.
  bool is_unbounded() const { return measured > 0 && telling == 0; }
};

/// Gathers the sums of every K/V head, rank by rank. Sums are of doubles; memory O(heads · v_dim).
class GradientIdentities {
 public:
  GradientIdentities(const Problem& problem, const NumericsProfile& profile);

  /// Adds rows. Every token belongs to one call; calls are made one at a time.
  template <class Element>
  void add(const GradientRows<Element>& rows);

  /// The sums gathered so far, as numbers to send.
  std::vector<double> gathered() const;
  /// Adds the sums that another rank has gathered of the same problem.
  void add_gathered(const std::vector<double>& others);

  /// The identities that hold for the problem: with dropout and sinks weights do not sum to one.
  std::vector<Identity> results() const;
  bool hold() const;  ///< all hold, and not all are unbounded

 private:
  /// The sums of one batch entry and K/V head. Squares are of the terms of the sum before them.
  struct Sums {
    std::vector<double> dv, dv_squares, dout, dout_squares;  // per channel
    double q_dq = 0, q_dq_squares = 0, k_dk = 0, k_dk_squares = 0;
    double v_dv = 0, v_dv_squares = 0, o_dout = 0, o_dout_squares = 0, row_squares = 0;
    double q_squares = 0, k_squares = 0, v_squares = 0, largest_q = 0, largest_k = 0;  // of norms

    /// The numbers that ranks add up, and those of which the largest counts, in a fixed order.
    std::vector<double*> added();
    std::vector<double*> largest();
  };
  template <class Element>
  void add_queries(const GradientRows<Element>& rows, std::int64_t batch, std::int64_t kv_head);
  template <class Element>
  void add_keys(const GradientRows<Element>& rows, std::int64_t batch, std::int64_t kv_head);
  Sums& sums_of(std::int64_t batch, std::int64_t kv_head);
  bool sees_something(std::int64_t query) const;
  Identity sum_of_dv() const;
  Identity scores_are_bilinear() const;
  Identity output_is_linear() const;
  std::string place(std::size_t n) const;
  double least() const;
  double rounding() const;
  double row_error(const Sums& sums) const;

  Problem problem_;
  NumericsProfile profile_;
  std::vector<Sums> sums_;
};

}  // namespace ringlab::verify
