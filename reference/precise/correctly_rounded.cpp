#include "reference/precise/correctly_rounded.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <numeric>
#include <string>
#include <vector>

#include "reference/core/error.h"
#include "reference/core/rows/parallel_rows.h"
#include "reference/precise/ball.h"
#include "reference/precise/exact_row.h"
#include "reference/precise/exponential_sum.h"
#include "reference/precise/interval.h"
#include "reference/precise/rounding.h"
#include "reference/precise/soft_row.h"

namespace ringlab {

void RoundingEffort::add(const RoundingEffort& other) {
  elements += other.elements;
  by_double_double += other.by_double_double;
  by_sign += other.by_sign;
  ties += other.ties;
  most_bits = std::max(most_bits, other.most_bits);
  most_sign_bits = std::max(most_sign_bits, other.most_sign_bits);
}

namespace {

using precise::Ball;
using precise::Dyadic;
using precise::ExactRow;
using precise::Interval;
using precise::RowPlace;
using precise::ScoreGroup;

DType lse_type(DType dtype) { return dtype == DType::f64 ? DType::f64 : DType::f32; }

/// An element of a row on its way to its rounded value: a channel of out, or lse.
struct RowElement {
  std::size_t channel = 0;
  bool is_lse = false;
  DType dtype = DType::f32;
  double* value = nullptr;  ///< where the answer goes
};

Interval interval_of(const Ball& ball) {
  const Interval middle = Interval(ball.high()) + Interval(ball.low());
  return middle + Interval::around_zero(ball.radius());
}

/// Encloses the elements of one row at the precision of the moment.
class EnclosedRow {
 public:
  EnclosedRow(const AttentionInput& input, const ExactRow& row) : input_(&input), row_(&row) {
    for (const ScoreGroup& group : row.groups) {
      weights_.push_back(exp(Interval(group.score - row.groups.front().score)));
      sum_.add_product(weights_.back(), static_cast<double>(group.terms));
    }
    divisor_ = sum_;
    if (input.problem.modifiers.dropout != 0) {
      divisor_ = divisor_ * precise::kept_share<Interval>(input.problem);
    }
  }

  Interval lse() const { return Interval(row_->groups.front().score) + log(sum_); }

  Interval out(std::size_t channel) const {
    const auto c = static_cast<std::int64_t>(channel);
    Interval sum;
    for (std::size_t g = 0; g < weights_.size(); ++g) {
      const ScoreGroup& group = row_->groups[g];
      if (group.kept_keys.size() == 1) {
        const RowPlace& at = row_->place;
        sum.add_product(weights_[g], input_->v(at.batch, at.kv_head, group.kept_keys.front(), c));
      } else if (!group.kept_keys.empty()) {
        sum = sum + weights_[g] * Interval(kept_sum(*input_, row_->place, group, c));
      }
    }
    return sum / divisor_;
  }

 private:
  const AttentionInput* input_;
  const ExactRow* row_;
  std::vector<Interval> weights_;
  Interval sum_, divisor_;
};

/// The side of r on which the true value of an element lies.
class SideOf {
 public:
  SideOf(const AttentionInput& input, const ExactRow& row)
      : input_(&input),
        row_(&row),
        kept_share_(Dyadic(1.0) - Dyadic(input.problem.modifiers.dropout)) {}

  precise::SignOfSum operator()(const RowElement& element, const Dyadic& r) const {
    std::vector<precise::ExponentialTerm> terms;
    const Dyadic share = r * kept_share_;
    for (const ScoreGroup& group : row_->groups) {
      const Dyadic count(static_cast<double>(group.terms));
      terms.push_back(
          {element.is_lse ? count : sum_of(group, element) - share * count, group.score});
    }
    if (element.is_lse) terms.push_back({Dyadic(-1.0), r});
    return precise::sign_of_sum(std::move(terms));
  }

 private:
  Dyadic sum_of(const ScoreGroup& group, const RowElement& element) const {
    return kept_sum(*input_, row_->place, group, static_cast<std::int64_t>(element.channel));
  }

  const AttentionInput* input_;
  const ExactRow* row_;
  Dyadic kept_share_;
};

/// Rounds the elements of one row.
class RowRounder {
 public:
  RowRounder(const AttentionInput& input, const RowPlace& place, RoundingEffort& effort)
      : input_(&input), place_(&place), effort_(&effort) {}

  void round(std::vector<RowElement> elements, FirstTry first_try) {
    effort_->elements += static_cast<std::int64_t>(elements.size());
    if (first_try == FirstTry::double_double) try_double_double(elements);
    if (elements.empty()) return;
    const ExactRow row = precise::exact_row(*input_, *place_);
    for (long bits = 128; !elements.empty(); bits *= 2) {
      check_bits(bits);
      effort_->most_bits = std::max(effort_->most_bits, bits);
      const precise::PrecisionScope scope(bits);
      const EnclosedRow enclosed(*input_, row);
      std::erase_if(elements, [&](const RowElement& element) {
        const Interval inside = element.is_lse ? enclosed.lse() : enclosed.out(element.channel);
        return decide(element, inside, row);
      });
    }
  }

 private:
  static void check_bits(long bits) {
    if (bits <= kMostBits) return;
    throw_environment_error({.where = "correct rounding",
                             .expected = "a decision within " + std::to_string(kMostBits) + " bits",
                             .actual = "none",
                             .hint = "This cannot happen: please report the input."});
  }

  void try_double_double(std::vector<RowElement>& elements) {
    const precise::PrecisionScope scope(192);
    const precise::SoftRow<Ball> row = precise::soft_row<Ball>(*input_, *place_);
    const std::vector<Ball> out = precise::output_of(*input_, row);
    const Ball lse = precise::lse_of(row);
    effort_->by_double_double +=
        static_cast<std::int64_t>(std::erase_if(elements, [&](const RowElement& element) {
          const Ball& ball = element.is_lse ? lse : out[element.channel];
          if (!std::isfinite(ball.high()) || !std::isfinite(ball.radius())) return false;
          const auto value = precise::common_nearest(element.dtype, interval_of(ball));
          if (!value || *value == 0) return false;
          *element.value = *value;
          return true;
        }));
  }

  /// True when the interval, or the side of the one midpoint inside, decides.
  bool decide(const RowElement& element, const Interval& inside, const ExactRow& row) {
    const DType dtype = element.dtype;
    const auto common = precise::common_nearest(dtype, inside);
    if (common && *common != 0) {
      *element.value = *common;
      return true;
    }
    if (common) {  // a zero: of which sign?
      *element.value = side(element, Dyadic(), row) < 0 ? -0.0 : 0.0;
      return true;
    }
    const double lower = precise::nearest(dtype, inside.lower());
    const double upper = precise::nearest(dtype, inside.upper());
    if (!(precise::next_up(dtype, lower) == upper)) return false;
    const int sign = side(element, precise::midpoint_above(dtype, lower), row);
    if (sign == 0) ++effort_->ties;
    const double tie = precise::even_one(dtype, lower, upper);
    *element.value = sign == 0 ? tie : sign < 0 ? lower : upper;
    return true;
  }

  int side(const RowElement& element, const Dyadic& r, const ExactRow& row) {
    const precise::SignOfSum found = SideOf(*input_, row)(element, r);
    ++effort_->by_sign;
    effort_->most_sign_bits = std::max(effort_->most_sign_bits, found.bits);
    return found.sign;
  }

  const AttentionInput* input_;
  const RowPlace* place_;
  RoundingEffort* effort_;
};

double rounded_double(DType dtype, double x) {
  const Interval exact(x);
  return precise::nearest(dtype, exact.lower());
}

/// Fills the rows of one result.
class RoundedRows {
 public:
  RoundedRows(const AttentionInput& input, const RoundingOptions& options, CorrectlyRounded& result)
      : input_(&input), options_(&options), result_(&result) {}

  void operator()(const RowPlace& at) {
    RoundingEffort effort;
    if (precise::seen_keys(input_->problem, at.query).empty()) {
      const std::vector<double>& sinks = input_->problem.modifiers.sinks;
      result_->lse(at.batch, at.q_head, at.slot, 0) =
          sinks.empty() ? -std::numeric_limits<double>::infinity()
                        : rounded_double(lse_type(options_->dtype),
                                         sinks[static_cast<std::size_t>(at.q_head)]);
      effort.elements = input_->problem.shape.v_dim + 1;
    } else {
      RowRounder(*input_, at, effort).round(elements(at), options_->first_try);
    }
    const std::lock_guard lock(mutex_);
    result_->effort.add(effort);
  }

 private:
  std::vector<RowElement> elements(const RowPlace& at) const {
    const DType dtype = options_->dtype;
    std::vector<RowElement> all = {{.channel = 0,
                                    .is_lse = true,
                                    .dtype = lse_type(dtype),
                                    .value = &result_->lse(at.batch, at.q_head, at.slot, 0)}};
    for (std::int64_t c = 0; c < input_->problem.shape.v_dim; ++c) {
      all.push_back({.channel = static_cast<std::size_t>(c),
                     .is_lse = false,
                     .dtype = dtype,
                     .value = &result_->out(at.batch, at.q_head, at.slot, c)});
    }
    return all;
  }

  const AttentionInput* input_;
  const RoundingOptions* options_;
  CorrectlyRounded* result_;
  std::mutex mutex_;
};

}  // namespace

void check_roundable(const Problem& problem) { precise::refuse_softcap(problem); }

CorrectlyRounded correctly_rounded_forward(const AttentionInput& input,
                                           const RoundingOptions& options) {
  precise::check_input(input);
  check_roundable(input.problem);
  with_element_type(options.dtype, [](auto) {});
  const Shape& shape = input.problem.shape;
  const std::vector<std::int64_t> rows = precise::wanted_rows(options.work.rows, shape);
  const auto per_head = static_cast<std::int64_t>(rows.size());
  const std::int64_t all = shape.batch * shape.q_heads * per_head;
  CorrectlyRounded result{Tensor<double>({shape.batch, shape.q_heads, per_head, shape.v_dim}),
                          Tensor<double>({shape.batch, shape.q_heads, per_head, 1}),
                          {}};
  RoundedRows rounding(input, options, result);
  const RowCounter row_done(options.work.progress, all);
  parallel_rows(all, options.work.threads, [&] {
    return [&, caches = precise::ThreadCaches()](std::int64_t number) {
      rounding(precise::place_of(shape, rows, number));
      row_done();
    };
  });
  return result;
}

}  // namespace ringlab
