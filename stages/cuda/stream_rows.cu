#include <thrust/execution_policy.h>
#include <thrust/fill.h>
#include <thrust/system_error.h>
#include <thrust/tabulate.h>
#include <thrust/transform.h>

#include <cstdint>
#include <string>

#include "optimized/cuda/check_cuda.h"
#include "stages/common/finished_row.h"
#include "stages/common/stream_rows.h"

namespace ringlab::stages {
namespace {

/// Thrust's algorithms wait for nothing but the stream's earlier work; those used here allocate
/// nothing.
auto on(ringlab::cuda::Stream stream) { return thrust::cuda::par_nosync.on(stream); }

/// Does `work`; Thrust's exceptions become the errors that failed CUDA calls would be.
template <class Element, class Work>
void call_thrust(const char* call, const DeviceRows<Element>& all, Work work) {
  try {
    work();
  } catch (const thrust::system_error& error) {
    const std::string where =
        "rank " + std::to_string(all.rank) + ", device " + std::to_string(all.device);
    ringlab::cuda::check_cuda(static_cast<cudaError_t>(error.code().value()), call, where);
    throw MachineError(
        {.where = where + ", " + call, .expected = "success", .actual = error.what()});
  }
}

template <class Element>
struct ValueAt {
  DeviceRows<Element> all;
  RINGLAB_HD Element operator()(std::int64_t at) const {
    return finished_value<Element>(all.states[at / all.v_dim], all.accs[at]);
  }
};

template <class Real>
struct LseOf {
  RINGLAB_HD Real operator()(const SoftmaxState<Real>& state) const { return finished_lse(state); }
};

template <class Element>
void clear_rows(const DeviceRows<Element>& all, ringlab::cuda::Stream stream) {
  using Real = Accumulator<Element>;
  call_thrust("thrust::fill_n", all, [&] {
    thrust::fill_n(on(stream), all.states, all.rows, SoftmaxState<Real>{});
    thrust::fill_n(on(stream), all.accs, all.rows * all.v_dim, Real(0));
  });
}

template <class Element>
void finish_rows_of(const DeviceRows<Element>& all, ringlab::cuda::Stream stream) {
  using Real = Accumulator<Element>;
  call_thrust("thrust::transform", all, [&] {
    thrust::transform(on(stream), all.states, all.states + all.rows, all.lse, LseOf<Real>{});
  });
  call_thrust("thrust::tabulate", all, [&] {
    thrust::tabulate(on(stream), all.out, all.out + all.rows * all.v_dim, ValueAt<Element>{all});
  });
}

}  // namespace

template <class Element>
StreamRows<Element> rows_on_streams() {
  return {.clear = clear_rows<Element>, .finish = finish_rows_of<Element>};
}
template StreamRows<double> rows_on_streams();
template StreamRows<float> rows_on_streams();
template StreamRows<Half> rows_on_streams();
template StreamRows<BFloat16> rows_on_streams();

}  // namespace ringlab::stages
