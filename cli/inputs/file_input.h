// q, k, v from files, checked and rounded to the dtype of the problem.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/inputs/problem_options.h"

namespace ringlab::cli {

/// A .safetensors file or a folder of q.npy, k.npy, v.npy, and, as `gradients` says, do (or
/// do.npy); other tensors in them are left alone. Without `dtype` the widest one in the files is
/// used. The mask is left full and unbound, the scale 1/sqrt(head_dim).
LoadedInput file_input(const std::string& path, std::optional<DType> dtype, Gradients gradients);

/// A tensor of a file: as (batch, heads, tokens, channels), and as the file has it.
struct NamedShape {
  Extents extents;
  std::vector<std::int64_t> shape;
};
/// The shape that q, k and v have together. Input error that shows all three where they do not fit.
Shape shape_of(const NamedShape& q, const NamedShape& k, const NamedShape& v);

/// The narrowest dtype that holds the values of all `dtypes`.
DType common_dtype(const std::vector<DType>& dtypes);

/// A mask from `file:PATH`: a 2-dimensional .npy, non-zero = visible.
BitMask read_bit_mask(const std::string& path);

}  // namespace ringlab::cli
