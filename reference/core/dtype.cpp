#include "reference/core/dtype.h"

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "reference/core/error.h"
#include "reference/core/options/near_word.h"

namespace ringlab {
namespace {

constexpr std::array<DTypeInfo, 6> kInfos = {{
    {"f64", 8, 53, 0x1p-53, 0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023},
    {"f32", 4, 24, 0x1p-24, 0x1p-149, 0x1p-126, 0x1.fffffep127},
    {"f16", 2, 11, 0x1p-11, 0x1p-24, 0x1p-14, 65504.0},
    {"bf16", 2, 8, 0x1p-8, 0x1p-133, 0x1p-126, 0x1.fep127},
    {"fp8_e4m3", 1, 4, 0x1p-4, 0x1p-9, 0x1p-6, 448.0},
    {"fp8_e5m2", 1, 3, 0x1p-3, 0x1p-16, 0x1p-14, 57344.0},
}};

constexpr std::array kInputDTypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
const char* const kInputTypes = "an attention input type (f64, f32, f16, bf16)";
const char* const kAboutFp8 = "fp8 is a storage and wire format here";

}  // namespace

const DTypeInfo& dtype_info(DType dtype) { return kInfos[static_cast<std::size_t>(dtype)]; }

DType parse_dtype(std::string_view name) {
  std::vector<std::string> names;
  for (const DType dtype : kInputDTypes) {
    if (dtype_info(dtype).name == name) return dtype;
    names.emplace_back(dtype_info(dtype).name);
  }
  throw_usage_error({.where = "dtype",
                     .expected = kInputTypes,
                     .actual = "\"" + std::string(name) + "\"",
                     .hint = name.starts_with("fp8") ? kAboutFp8 : did_you_mean(name, names)});
}

double round_to(DType dtype, double x) {
  switch (dtype) {
    case DType::f64:
      return x;
    case DType::f32:
      return static_cast<double>(static_cast<float>(x));
    case DType::f16:
      return static_cast<double>(Half(x));
    case DType::bf16:
      return static_cast<double>(BFloat16(x));
    case DType::fp8_e4m3:
      return static_cast<double>(Fp8E4M3(x));
    case DType::fp8_e5m2:
      return static_cast<double>(Fp8E5M2(x));
  }
  return x;
}

void throw_not_an_input_dtype(DType dtype) {
  throw_usage_error({.where = "dtype",
                     .expected = kInputTypes,
                     .actual = std::string(dtype_info(dtype).name),
                     .hint = kAboutFp8});
}

}  // namespace ringlab
