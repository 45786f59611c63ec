#include "cli/inputs/file_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "reference/core/checks.h"
#include "reference/core/error.h"
#include "reference/io/tensor_file.h"
#include "reference/io/tensor_rows.h"

namespace ringlab::cli {
namespace {

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("({})", fmt::join(shape, ", "));
}

std::string address(const std::vector<std::int64_t>& shape, std::size_t flat) {
  std::vector<std::size_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % static_cast<std::size_t>(shape[d]);
    flat /= static_cast<std::size_t>(shape[d]);
  }
  return fmt::format("[{}]", fmt::join(index, ", "));
}

// Rounds in place; returns a note when any value changed, else an empty string.
std::string round_tensor(const std::string& name, io::FileTensor& tensor, DType dtype) {
  std::int64_t changed = 0;
  double largest = 0;
  for (std::size_t i = 0; i < tensor.values.size(); ++i) {
    const double given = tensor.values[i];
    if (!std::isfinite(given)) {
      throw_input_error({fmt::format("tensor {} at {}", name, address(tensor.shape, i)),
                         "a finite number", fmt::format("{}", given), ""});
    }
    const double rounded = round_to(dtype, given);
    if (!std::isfinite(rounded)) {
      throw_input_error({fmt::format("tensor {} at {}", name, address(tensor.shape, i)),
                         fmt::format("at most {} in magnitude, the largest {}",
                                     dtype_info(dtype).max_finite, dtype_info(dtype).name),
                         fmt::format("{}", given), "Choose a wider --dtype."});
    }
    changed += rounded != given;
    largest = std::max(largest, std::abs(rounded - given));
    tensor.values[i] = rounded;
  }
  if (changed == 0) return "";
  return fmt::format("{} rounded from {} to {}: {} of {} values changed, by at most {:.3g}", name,
                     dtype_info(tensor.dtype).name, dtype_info(dtype).name, changed,
                     tensor.values.size(), largest);
}

Tensor<double> checked_dout(const io::NamedTensors& named, const Extents& out) {
  Tensor<double> dout = io::to_tensor(named.at("do"), "do");
  if (dout.extents() == out) return dout;
  throw_input_error(
      {"tensor do", text(out) + ", the shape of the output", shape_text(named.at("do").shape), ""});
}

// Runs before any tensor is read. Archives, which have to be unpacked, are bounded by their size.
void check_file_fits_memory(const std::string& path) {
  if (io::container_of(path) == io::Container::npz) return;
  const auto sources = io::open_rows(path, {"q", "k", "v"});
  if (sources.size() < 3) return;  // the reader says which is missing
  const auto named = [&](const char* name) {
    const io::RowSource& source = sources.at(name);
    return NamedShape{source.extents, source.stored.shape};
  };
  check_fits_memory(shape_of(named("q"), named("k"), named("v")));
}

}  // namespace

Shape shape_of(const NamedShape& q, const NamedShape& k, const NamedShape& v) {
  const auto check_same = [&](const char* what, std::int64_t expected, std::int64_t actual) {
    if (expected == actual) return;
    throw_input_error({"q, k, v", fmt::format("equal {}", what),
                       fmt::format("q {}, k {}, v {}", shape_text(q.shape), shape_text(k.shape),
                                   shape_text(v.shape)),
                       "Shapes are (batch, heads, tokens, channels)."});
  };
  const Extents &qe = q.extents, &ke = k.extents, &ve = v.extents;
  check_same("batch of q and k", qe.batch, ke.batch);
  check_same("batch of k and v", ke.batch, ve.batch);
  check_same("heads of k and v", ke.heads, ve.heads);
  check_same("tokens of k and v", ke.tokens, ve.tokens);
  check_same("head_dim of q and k", qe.channels, ke.channels);
  return {qe.batch, qe.heads, ke.heads, qe.tokens, ke.tokens, qe.channels, ve.channels};
}

DType common_dtype(const std::vector<DType>& dtypes) {
  // f16 and bf16 hold each other only within f32; the fp8 formats are subsets of f16.
  bool f64 = false, f32 = false, f16 = false, bf16 = false;
  for (const DType dtype : dtypes) {
    f64 |= dtype == DType::f64;
    f32 |= dtype == DType::f32;
    bf16 |= dtype == DType::bf16;
    f16 |= dtype == DType::f16 || dtype == DType::fp8_e4m3 || dtype == DType::fp8_e5m2;
  }
  if (f64) return DType::f64;
  if (f32 || (f16 && bf16)) return DType::f32;
  return bf16 ? DType::bf16 : DType::f16;
}

LoadedInput file_input(const std::string& path, std::optional<DType> dtype, Gradients gradients) {
  std::vector<std::string> names = {"q", "k", "v"};
  std::vector<std::string> optional;
  if (gradients == Gradients::of_input) {
    names.emplace_back("do");
  } else if (gradients != Gradients::none) {
    optional.emplace_back("do");
  }
  check_file_fits_memory(path);
  io::NamedTensors named = io::read_tensors(path, names, optional);
  const bool has_dout = gradients != Gradients::none && named.contains("do");
  if (has_dout && !optional.empty()) names.emplace_back("do");
  LoadedInput loaded;
  for (const std::string& name : names) {
    if (named.at(name).is_byte) {
      throw_input_error(
          {fmt::format("tensor {}", name), "floating-point numbers", "bytes or booleans", ""});
    }
  }
  loaded.problem.dtype =
      dtype.value_or(common_dtype({named.at("q").dtype, named.at("k").dtype, named.at("v").dtype}));
  for (const std::string& name : names) {
    const std::string note = round_tensor(name, named.at(name), loaded.problem.dtype);
    if (!note.empty()) loaded.notes.push_back(note);
  }
  loaded.tensors = {io::to_tensor(named.at("q"), "q"), io::to_tensor(named.at("k"), "k"),
                    io::to_tensor(named.at("v"), "v")};
  loaded.problem.shape = shape_of({loaded.tensors.q.extents(), named.at("q").shape},
                                  {loaded.tensors.k.extents(), named.at("k").shape},
                                  {loaded.tensors.v.extents(), named.at("v").shape});
  if (has_dout) loaded.dout = checked_dout(named, loaded.problem.shape.out());
  loaded.problem.scale = default_scale(loaded.problem.shape.head_dim);
  loaded.dimensions = named.at("q").shape.size();
  loaded.origin = path;
  return loaded;
}

BitMask read_bit_mask(const std::string& path) {
  const io::FileTensor matrix = io::read_npy(path);
  if (matrix.shape.size() != 2) {
    throw_input_error({path, "2 dimensions, (q_tokens, kv_tokens)", shape_text(matrix.shape), ""});
  }
  std::vector<std::uint8_t> bits(matrix.values.size());
  for (std::size_t i = 0; i < bits.size(); ++i) {
    if (std::isnan(matrix.values[i])) {
      throw_input_error(
          {path + " at " + address(matrix.shape, i), "a number, 0 = masked", "nan", ""});
    }
    bits[i] = matrix.values[i] != 0;
  }
  return {matrix.shape[0], matrix.shape[1], std::move(bits), path};
}

}  // namespace ringlab::cli
