// Work on all rows of a rank before its first chunk and behind its last one, on a stream. It is not
// the lesson, so a library does it (docs/decisions/0030-thrust-on-devices.md).
#pragma once

#include <cstdint>

#include "optimized/cuda/stream.h"
#include "reference/core/dtype.h"
#include "reference/core/state.h"

namespace ringlab::stages {

/// The running state and the results of a rank's queries, on its device.
template <class Element>
struct DeviceRows {
  using Real = Accumulator<Element>;
  int rank = 0, device = 0;  ///< for error messages
  std::int64_t rows = 0;
  std::int64_t v_dim = 0;
  SoftmaxState<Real>* states = nullptr;  ///< (rows)
  Real* accs = nullptr;                  ///< (rows, v_dim)
  Element* out = nullptr;                ///< (rows, v_dim)
  Real* lse = nullptr;                   ///< (rows)
};

/// Nobody waits, and nothing is allocated. The current device is the stream's. Environment errors
/// name rank, device and call.
template <class Element>
struct StreamRows {
  /// States and accs become the identity: no key seen.
  void (*clear)(const DeviceRows<Element>& all, ringlab::cuda::Stream stream) = nullptr;
  /// out and lse from states and accs (finished_row.h).
  void (*finish)(const DeviceRows<Element>& all, ringlab::cuda::Stream stream) = nullptr;
};

/// Thrust's; defined where CUDA is compiled in (stages/cuda/stream_rows.cu).
template <class Element>
StreamRows<Element> rows_on_streams();

}  // namespace ringlab::stages
