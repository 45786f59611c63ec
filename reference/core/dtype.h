// Element types: names, sizes, unit roundoffs, and the storage types of the small floats.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "reference/core/small_float.h"

namespace ringlab {

enum class DType : std::uint8_t { f64, f32, f16, bf16, fp8_e4m3, fp8_e5m2 };

/// Constants of a format with p significand bits (the hidden one included).
struct DTypeInfo {
  std::string_view name;
  int bytes;
  int significand_bits;  ///< p
  double unit_roundoff;  ///< u = 2^-p
  double min_subnormal;  ///< smallest positive value
  double min_normal;     ///< smallest positive value with p full bits
  double max_finite;     ///< largest finite value
};

const DTypeInfo& dtype_info(DType dtype);

/// A type that attention takes as input: "f64", "f32", "f16", "bf16". Usage error for others.
DType parse_dtype(std::string_view name);

/// The value of `dtype` nearest to x (round to nearest, ties to even), as a double.
/// Overflow gives ±inf, or NaN for fp8_e4m3, which has no infinity. NaN stays NaN.
double round_to(DType dtype, double x);

/// DType of a storage type: `dtype_of<BFloat16> == DType::bf16`.
template <class Element>
inline constexpr DType dtype_of = std::is_same_v<Element, double>     ? DType::f64
                                  : std::is_same_v<Element, float>    ? DType::f32
                                  : std::is_same_v<Element, Half>     ? DType::f16
                                  : std::is_same_v<Element, BFloat16> ? DType::bf16
                                  : std::is_same_v<Element, Fp8E4M3>  ? DType::fp8_e4m3
                                                                      : DType::fp8_e5m2;

/// The type kernels compute in for a storage type: double for double, float for the rest.
template <class Element>
using Accumulator = std::conditional_t<std::is_same_v<Element, double>, double, float>;

/// Bytes of a number of that type: 8 for f64, else 4.
constexpr int accumulator_bytes(DType dtype) { return dtype == DType::f64 ? 8 : 4; }

/// Calls `visit(Element{})` with the storage type of `dtype`; the four types that attention takes
/// as input (f64, f32, f16, bf16). Others are a usage error.
template <class Visitor>
decltype(auto) with_element_type(DType dtype, Visitor&& visit);

[[noreturn]] void throw_not_an_input_dtype(DType dtype);

template <class Visitor>
decltype(auto) with_element_type(DType dtype, Visitor&& visit) {
  switch (dtype) {
    case DType::f64:
      return visit(double{});
    case DType::f32:
      return visit(float{});
    case DType::f16:
      return visit(Half{});
    case DType::bf16:
      return visit(BFloat16{});
    case DType::fp8_e4m3:
    case DType::fp8_e5m2:
      break;
  }
  throw_not_an_input_dtype(dtype);
}

}  // namespace ringlab
