// The matrix product of cuBLASLt, which is looked for at run time: the library is large, and the
// program is to run where there is none.
#include <cublasLt.h>
#include <dlfcn.h>

#include <array>
#include <utility>

#include "optimized/bench/gpu/gpu_works.h"
#include "reference/core/error.h"
#include "reference/core/machine/shared_library.h"

namespace ringlab::bench {
namespace {

using Element = BFloat16;

[[noreturn]] void fail(const std::string& expected, const std::string& actual) {
  throw_environment_error({.where = "cuBLASLt", .expected = expected, .actual = actual});
}

void check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    fail(std::string("success of ") + call, "status " + std::to_string(static_cast<int>(status)));
  }
}

void* open_library() {
  const std::string name = "libcublasLt.so." + std::to_string(CUBLAS_VER_MAJOR);
  for (const std::string& file : {name, "/usr/local/cuda/lib64/" + name}) {
    if (void* const library = open_shared_library(file, RTLD_NOW | RTLD_LOCAL)) return library;
  }
  fail(name + " where libraries are looked for, in Python's packages, or in /usr/local/cuda/lib64",
       "none");
}

/// A function of the library, which is never closed.
template <class Function>
Function* find(const char* name) {
  static void* const library = open_library();
  void* const found = dlsym(library, name);
  if (!found) fail(name, "a library without it");
  return reinterpret_cast<Function*>(found);
}

#define RINGLAB_CUBLAS(name) find<decltype(name)>(#name)

/// Row-major (n, n) matrices are the transposed of column-major ones: the product of squares takes
/// the same time either way.
class Product {
 public:
  Product(int device, std::int64_t n) : n_(n) {
    make_matrices(device);
    check(RINGLAB_CUBLAS(cublasLtCreate)(&handle_), "cublasLtCreate");
    check(RINGLAB_CUBLAS(cublasLtMatmulDescCreate)(&product_, CUBLAS_COMPUTE_32F, CUDA_R_32F),
          "cublasLtMatmulDescCreate");
    const cublasOperation_t transposed = CUBLAS_OP_T;
    check(RINGLAB_CUBLAS(cublasLtMatmulDescSetAttribute)(product_, CUBLASLT_MATMUL_DESC_TRANSA,
                                                         &transposed, sizeof transposed),
          "cublasLtMatmulDescSetAttribute");
    const auto side = static_cast<std::uint64_t>(n);
    check(RINGLAB_CUBLAS(cublasLtMatrixLayoutCreate)(&layout_, CUDA_R_16BF, side, side, n),
          "cublasLtMatrixLayoutCreate");
    choose();
  }
  ~Product() {
    if (layout_) RINGLAB_CUBLAS(cublasLtMatrixLayoutDestroy)(layout_);
    if (product_) RINGLAB_CUBLAS(cublasLtMatmulDescDestroy)(product_);
    if (handle_) RINGLAB_CUBLAS(cublasLtDestroy)(handle_);
  }
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;

  void issue(cuda::Stream stream) const {
    const float one = 1, zero = 0;
    check(RINGLAB_CUBLAS(cublasLtMatmul)(handle_, product_, &one, a_.data(), layout_, b_.data(),
                                         layout_, &zero, c_.data(), layout_, c_.data(), layout_,
                                         &chosen_.algo, workspace_.data(),
                                         static_cast<std::size_t>(workspace_.bytes()), stream),
          "cublasLtMatmul");
  }

 private:
  void make_matrices(int device) {
    const std::int64_t count = n_ * n_;
    a_ = {device, count};
    b_ = {device, count};
    c_ = {device, count};
    workspace_ = {device, std::int64_t{64} << 20};
    fill_normal(a_.data(), count, 1, nullptr);
    fill_normal(b_.data(), count, 2, nullptr);
    cuda::wait_for_device(device);
  }
  /// Chooses the algorithm that the library's heuristic ranks first.
  void choose() {
    cublasLtMatmulPreference_t preference = nullptr;
    check(RINGLAB_CUBLAS(cublasLtMatmulPreferenceCreate)(&preference),
          "cublasLtMatmulPreferenceCreate");
    const auto bytes = static_cast<std::uint64_t>(workspace_.bytes());
    check(RINGLAB_CUBLAS(cublasLtMatmulPreferenceSetAttribute)(
              preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes, sizeof bytes),
          "cublasLtMatmulPreferenceSetAttribute");
    int found = 0;
    const cublasStatus_t status = RINGLAB_CUBLAS(cublasLtMatmulAlgoGetHeuristic)(
        handle_, product_, layout_, layout_, layout_, layout_, preference, 1, &chosen_, &found);
    RINGLAB_CUBLAS(cublasLtMatmulPreferenceDestroy)(preference);
    check(status, "cublasLtMatmulAlgoGetHeuristic");
    if (found == 0) fail("a way to multiply", "none");
  }

  const std::int64_t n_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t product_ = nullptr;
  cublasLtMatrixLayout_t layout_ = nullptr;
  cublasLtMatmulHeuristicResult_t chosen_ = {};
  cuda::DeviceTensor<Element> a_, b_, c_;
  cuda::DeviceTensor<std::byte> workspace_;
};

#undef RINGLAB_CUBLAS

}  // namespace

GpuWork make_matrix_product(const GpuTimer& timer, std::int64_t n) {
  const auto product = std::make_shared<Product>(timer.device(), n);
  return {"cuBLASLt", [&timer, product] {
            return timer.seconds_of([&](cuda::Stream stream) { product->issue(stream); });
          }};
}

}  // namespace ringlab::bench
