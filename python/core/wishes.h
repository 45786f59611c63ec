// The caller's wishes besides tensors, by name, as the Python side hands them on.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reference/core/error.h"
#include "reference/core/problem.h"
#include "reference/core/run.h"

namespace ringlab::python {

/// The words for a value of this type in messages.
template <class Value>
inline constexpr const char* kTypeName = "a list";
template <>
inline constexpr const char* kTypeName<std::string> = "a text";
template <>
inline constexpr const char* kTypeName<double> = "a number";
template <>
inline constexpr const char* kTypeName<std::int64_t> = "a whole number below 2^63";
template <>
inline constexpr const char* kTypeName<std::uint64_t> = "a whole number from 0 to 2^64 - 1";
template <>
inline constexpr const char* kTypeName<std::vector<double>> = "a list of numbers";

/// Names to values; what is None was not asked for. Usage error for a value of another type.
class Wishes {
 public:
  explicit Wishes(nanobind::dict values) : values_(std::move(values)) {}

  bool given(const char* name) const {
    return values_.contains(name) && !nanobind::handle(values_[name]).is_none();
  }
  nanobind::object object(const char* name) const { return nanobind::object(values_[name]); }

  template <class Value>
  std::optional<Value> take(const char* name) const {
    if (!given(name)) return std::nullopt;
    Value value{};
    if (nanobind::try_cast(object(name), value)) return value;
    throw_usage_error({.where = name,
                       .expected = kTypeName<Value>,
                       .actual = nanobind::cast<std::string>(nanobind::repr(object(name)))});
  }

 private:
  nanobind::dict values_;
};

/// "mask", a text, and "matrices", the (q_tokens, kv_tokens) bytes of its terms file:matrixI. Bound
/// to the lengths of `shape`.
Mask mask_from(const Wishes& wishes, const Shape& shape);

/// "mask", "scale", "softcap", "alibi" (slopes, or "default"), "sinks", "dropout", "dropout_seed".
/// One slope or sink is that of all heads. Checked.
Problem problem_from(const Wishes& wishes, const Shape& shape, DType dtype);

/// "ranks", "layout", "schedule", "slots", "wire", "threads", "timeout_s". Usage error for numbers
/// out of range. Without "threads" the cores are shared out among the ranks.
RunOptions options_from(const Wishes& wishes);

}  // namespace ringlab::python
