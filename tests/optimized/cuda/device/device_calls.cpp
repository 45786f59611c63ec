#include "tests/optimized/cuda/device/device_calls.h"

#include <span>

#include "optimized/cuda/kernels.h"
#include "optimized/cuda/portable/portable.h"
#include "tests/optimized/cuda/device/guarded.h"

namespace ringlab::cuda {
namespace {

/// Numbers of elements of what a call points to.
struct Counts {
  std::size_t rows, keys;  // times batch and heads
  std::size_t q, k, v, out;
  std::size_t queries, tiles;

  Counts(const BlockShape& s, std::int32_t tile_queries)
      : rows(size(s.batch) * size(s.q_heads) * size(s.queries)),
        keys(size(s.batch) * size(s.kv_heads) * size(s.keys)),
        q(rows * size(s.head_dim)),
        k(keys * size(s.head_dim)),
        v(keys * size(s.v_dim)),
        out(rows * size(s.v_dim)),
        queries(size(s.queries)),
        tiles(size((s.queries + tile_queries - 1) / tile_queries)) {}

 private:
  static std::size_t size(std::int32_t n) { return static_cast<std::size_t>(n); }
};

template <class T>
Guarded<T> put(const T* data, std::size_t count) {
  return Guarded<T>(std::span<const T>(data, count));
}

/// What both passes read.
template <class Element>
class Inputs {
 public:
  template <class Call>
  Inputs(const Call& call, const Counts& n)
      : n_(n),
        given_{call.q, call.k, call.v},
        q_(put(call.q, n.q)),
        k_(put(call.k, n.k)),
        v_(put(call.v, n.v)),
        rows_(put(call.mask.rows, n.queries)),
        tiles_(put(call.mask.tiles, n.tiles)) {}

  template <class Call>
  void point(Call& call) const {
    call.q = q_.data();
    call.k = k_.data();
    call.v = v_.data();
    call.mask.rows = rows_.data();
    call.mask.tiles = tiles_.data();
  }
  void check() const {
    q_.expect_unchanged({given_.q, n_.q}, "q");
    k_.expect_unchanged({given_.k, n_.k}, "k");
    v_.expect_unchanged({given_.v, n_.v}, "v");
  }

 private:
  struct Given {
    const Element *q, *k, *v;
  };
  Counts n_;
  Given given_;
  Guarded<Element> q_, k_, v_;
  Guarded<KeyRange> rows_;
  Guarded<TileKeys> tiles_;
};

template <class Element, class Launch>
void forward(const ForwardCall<Element>& call, std::int32_t tile_queries, Launch launch) {
  const Counts n(call.shape, tile_queries);
  const Inputs<Element> inputs(call, n);
  const auto states = put(call.running.states, n.rows);
  const auto accs = put(call.running.accs, n.out);
  const auto out = put(call.out, n.out);
  const auto lse = put(call.lse, n.rows);
  ForwardCall<Element> on_device = call;
  inputs.point(on_device);
  on_device.running = {states.data(), accs.data()};
  on_device.out = out.data();
  on_device.lse = lse.data();
  launch(on_device, nullptr);
  wait_for_device(0);
  inputs.check();
  states.copy_to(call.running.states, "states");
  accs.copy_to(call.running.accs, "accs");
  out.copy_to(call.out, "out");
  lse.copy_to(call.lse, "lse");
}

template <class Element>
void portable_forward(const ForwardCall<Element>& call, std::uint64_t) {
  forward(call, forward_portable_tile_queries(), forward_portable<Element>);
}

/// Both kernels have the same tiles of the mask.
template <class Element, class Launch>
void backward(const BackwardCall<Element>& call, Launch launch) {
  const BlockShape& s = call.shape;
  const Counts n(s, backward_portable_tile_queries(s.head_dim, s.v_dim));
  const Inputs<Element> inputs(call, n);
  const auto dout = put(call.dout, n.out);
  const auto lse = put(call.lse, n.rows);
  const auto delta = put(call.delta, n.rows);
  const auto dq = put(call.dq, n.q);
  const auto dk = put(call.dk, n.k);
  const auto dv = put(call.dv, n.v);
  BackwardCall<Element> on_device = call;
  inputs.point(on_device);
  on_device.dout = dout.data();
  on_device.lse = lse.data();
  on_device.delta = delta.data();
  on_device.dq = dq.data();
  on_device.dk = dk.data();
  on_device.dv = dv.data();
  launch(on_device, nullptr);
  wait_for_device(0);
  inputs.check();
  dout.expect_unchanged({call.dout, n.out}, "dout");
  lse.expect_unchanged({call.lse, n.rows}, "lse");
  delta.expect_unchanged({call.delta, n.rows}, "delta");
  dq.copy_to(call.dq, "dq");
  dk.copy_to(call.dk, "dk");
  dv.copy_to(call.dv, "dv");
}

template <class Element>
void portable_backward(const BackwardCall<Element>& call, std::uint64_t) {
  backward(call, backward_portable<Element>);
}

}  // namespace

template <class Element>
void device_forward_hopper(const ForwardCall<Element>& call, const EmulatedGrid&) {
  forward(call, forward_hopper_tile_queries(call.shape.head_dim, call.shape.v_dim),
          [](const ForwardCall<Element>& on_device, Stream stream) {
            forward_hopper(on_device, stream);
          });
}
template void device_forward_hopper(const ForwardCall<Half>&, const EmulatedGrid&);
template void device_forward_hopper(const ForwardCall<BFloat16>&, const EmulatedGrid&);

void device_forward_hopper_version(const HopperVersion& version,
                                   const ForwardCall<BFloat16>& call) {
  forward(call, version.tile_queries, [&](const ForwardCall<BFloat16>& on_device, Stream stream) {
    forward_hopper_version(version, on_device, stream);
  });
}

void device_backward_hopper_version(const HopperBackwardVersion& version,
                                    const BackwardCall<BFloat16>& call) {
  backward(call, [&](const BackwardCall<BFloat16>& on_device, Stream stream) {
    backward_hopper_version(version, on_device, stream);
  });
}

template <class Element>
void device_backward_hopper(const BackwardCall<Element>& call, std::uint64_t) {
  backward(call, backward_hopper<Element>);
}
template void device_backward_hopper(const BackwardCall<Half>&, std::uint64_t);
template void device_backward_hopper(const BackwardCall<BFloat16>&, std::uint64_t);

template <class Element>
PortableKernels<Element> device_portable_kernels() {
  return {&portable_forward<Element>, &portable_backward<Element>};
}
template PortableKernels<Half> device_portable_kernels();
template PortableKernels<BFloat16> device_portable_kernels();

}  // namespace ringlab::cuda
