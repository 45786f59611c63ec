#include "cli/line/result_file.h"

#include "reference/io/tensor_file.h"

namespace ringlab::cli {
namespace {

// o with as many dimensions as q had in its file, lse with one less.
io::FileTensor shaped(const Tensor<double>& tensor, DType dtype, std::size_t dimensions,
                      bool drop_channels) {
  io::FileTensor file = io::from_tensor(tensor, dtype);
  auto& shape = file.shape;
  shape.erase(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(4 - dimensions));
  if (drop_channels) shape.pop_back();
  return file;
}

}  // namespace

void write_results(const std::string& path, const LoadedInput& loaded, const Results& results) {
  const DType dtype = loaded.problem.dtype;
  const DType lse_dtype = dtype == DType::f64 ? DType::f64 : DType::f32;
  io::NamedTensors tensors = {
      {"o", shaped(results.output.out, dtype, loaded.dimensions, false)},
      {"lse", shaped(results.output.lse, lse_dtype, loaded.dimensions, true)}};
  if (results.gradients) {
    tensors["dq"] = shaped(results.gradients->dq, dtype, loaded.dimensions, false);
    tensors["dk"] = shaped(results.gradients->dk, dtype, loaded.dimensions, false);
    tensors["dv"] = shaped(results.gradients->dv, dtype, loaded.dimensions, false);
  }
  io::write_tensors(path, tensors);
}

}  // namespace ringlab::cli
