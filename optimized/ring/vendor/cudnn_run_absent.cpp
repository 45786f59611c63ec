#include "optimized/ring/vendor/cudnn_run.h"
#include "reference/core/error.h"

namespace ringlab::ring {

bool is_cudnn_compiled_in() { return false; }

void require_cudnn_and_devices() {
  throw_environment_error({.where = "cuDNN",
                           .expected = "a build with CUDA and cuDNN",
                           .actual = "a build without CUDA: not compiled in",
                           .hint = "Build with -DRINGLAB_CUDA=ON -DRINGLAB_CUDNN=ON"});
}

std::string cudnn_text() {
  require_cudnn_and_devices();
  return {};
}

void check_cudnn_on(int, const Problem&) { require_cudnn_and_devices(); }

template <class Element>
NativeSummary run_native_on_cudnn(const Problem&, const RunOptions&, const NativeEnds<Element>&) {
  require_cudnn_and_devices();
  return {};
}
template NativeSummary run_native_on_cudnn(const Problem&, const RunOptions&,
                                           const NativeEnds<Half>&);
template NativeSummary run_native_on_cudnn(const Problem&, const RunOptions&,
                                           const NativeEnds<BFloat16>&);

}  // namespace ringlab::ring
