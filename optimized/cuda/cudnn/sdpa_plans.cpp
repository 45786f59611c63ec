// The graphs of sdpa_graph.h, built with cuDNN's frontend and run by cuDNN.
#include "optimized/cuda/cudnn/sdpa_plans.h"

#include <cudnn_frontend.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "optimized/cuda/cudnn/check_cudnn.h"
#include "optimized/cuda/cudnn/cudnn_library.h"
#include "optimized/cuda/device.h"
#include "reference/core/machine/shared_library.h"

namespace cudnn_frontend {
/// The table that the frontend takes cuDNN's functions from.
void* cudnn_dlhandle = nullptr;
}  // namespace cudnn_frontend

namespace ringlab::cudnn {
namespace {

namespace fe = cudnn_frontend;

enum Uid : std::int64_t { kQ = 1, kK, kV, kOut, kLse, kDout, kDq, kDk, kDv };

const CudnnLibrary& library() {
  static const CudnnLibrary found = [] {
    CudnnLibrary opened = open_library(library_name());
    fe::cudnn_dlhandle = opened.handle;
    // Loads CUDA's runtime: the frontend asks the loader for it, which finds the loaded one.
    open_shared_library("libcudart.so." + std::to_string(CUDART_VERSION / 1000),
                        RTLD_NOW | RTLD_GLOBAL);
    return opened;
  }();
  return found;
}

fe::graph::Tensor_attributes input_of(const char* name, Uid uid, const SdpaTensor& tensor) {
  return fe::graph::Tensor_attributes()
      .set_name(name)
      .set_uid(uid)
      .set_dim({tensor.sizes.begin(), tensor.sizes.end()})
      .set_stride({tensor.strides.begin(), tensor.strides.end()});
}
void describe_output(fe::graph::Tensor_attributes& attributes, Uid uid, const SdpaTensor& tensor) {
  attributes.set_output(true)
      .set_uid(uid)
      .set_dim({tensor.sizes.begin(), tensor.sizes.end()})
      .set_stride({tensor.strides.begin(), tensor.strides.end()});
}

/// Sets the diagonals in the options of either pass.
template <class Options>
void take_in(const SdpaDiagonals& diagonals, Options& options) {
  if (diagonals.left_bound || diagonals.right_bound) {
    options.set_diagonal_alignment(diagonals.corner == Corner::bottom_right
                                       ? fe::DiagonalAlignment_t::BOTTOM_RIGHT
                                       : fe::DiagonalAlignment_t::TOP_LEFT);
  }
  if (diagonals.left_bound) options.set_diagonal_band_left_bound(*diagonals.left_bound);
  if (diagonals.right_bound) options.set_diagonal_band_right_bound(*diagonals.right_bound);
}

fe::graph::SDPA_attributes options_of(const SdpaGraph& wanted) {
  auto options = fe::graph::SDPA_attributes()
                     .set_name("attention")
                     .set_generate_stats(true)
                     .set_attn_scale(wanted.scale);
  take_in(wanted.diagonals, options);
  return options;
}
fe::graph::SDPA_backward_attributes options_of(const SdpaBackwardGraph& wanted) {
  auto options = fe::graph::SDPA_backward_attributes()
                     .set_name("gradients")
                     .set_attn_scale(wanted.scale)
                     .set_deterministic_algorithm(wanted.deterministic);
  take_in(wanted.diagonals, options);
  return options;
}

void set_types(fe::graph::Graph& graph, DType dtype) {
  graph.set_io_data_type(dtype == DType::f16 ? fe::DataType_t::HALF : fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
}

void describe(fe::graph::Graph& graph, const SdpaGraph& wanted) {
  const auto [out, lse] = graph.sdpa(graph.tensor(input_of("q", kQ, wanted.q)),
                                     graph.tensor(input_of("k", kK, wanted.k)),
                                     graph.tensor(input_of("v", kV, wanted.v)), options_of(wanted));
  describe_output(*out, kOut, wanted.out);
  describe_output(*lse, kLse, wanted.lse);
  lse->set_data_type(fe::DataType_t::FLOAT);
}

void describe(fe::graph::Graph& graph, const SdpaBackwardGraph& wanted) {
  const auto given = [&](const char* name, Uid uid, const SdpaTensor& tensor) {
    return graph.tensor(input_of(name, uid, tensor));
  };
  const auto q = given("q", kQ, wanted.q), k = given("k", kK, wanted.k),
             v = given("v", kV, wanted.v), out = given("o", kOut, wanted.out),
             dout = given("do", kDout, wanted.dout),
             lse = graph.tensor(
                 input_of("lse", kLse, wanted.lse).set_data_type(fe::DataType_t::FLOAT));
  const auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, out, dout, lse, options_of(wanted));
  describe_output(*dq, kDq, wanted.dq);
  describe_output(*dk, kDk, wanted.dk);
  describe_output(*dv, kDv, wanted.dv);
}

std::string name_of(const char* what, const SdpaTensor& q, const SdpaTensor& k) {
  return fmt::format("cuDNN {}, q ({}), k ({})", what, fmt::join(q.sizes, ", "),
                     fmt::join(k.sizes, ", "));
}
/// "cuDNN attention, q (1, 8, 512, 128), k (1, 2, 512, 128)".
std::string name_of(const SdpaGraph& graph) { return name_of("attention", graph.q, graph.k); }
/// "cuDNN gradients, q (1, 8, 512, 128), k (1, 2, 512, 128)".
std::string name_of(const SdpaBackwardGraph& graph) {
  return name_of("gradients", graph.q, graph.k);
}

using Tensors = std::unordered_map<std::int64_t, void*>;
/// A pointer as the frontend wants it, also to inputs: writable.
void* writable(const void* data) { return const_cast<void*>(data); }
Tensors tensors_of(const SdpaPointers& p) {
  return {
      {kQ, writable(p.q)}, {kK, writable(p.k)}, {kV, writable(p.v)}, {kOut, p.out}, {kLse, p.lse}};
}
Tensors tensors_of(const SdpaBackwardPointers& p) {
  return {{kQ, writable(p.q)},
          {kK, writable(p.k)},
          {kV, writable(p.v)},
          {kOut, writable(p.out)},
          {kDout, writable(p.dout)},
          {kLse, writable(p.lse)},
          {kDq, p.dq},
          {kDk, p.dk},
          {kDv, p.dv}};
}

template <class Wanted>
void describe_and_check(fe::graph::Graph& graph, const Wanted& wanted, int capability) {
  graph.set_sm_version(capability);
  set_types(graph, wanted.dtype);
  describe(graph, wanted);
  check_cudnn(graph.validate(), "validate", name_of(wanted));
}

struct SdpaPlan {
  fe::graph::Graph graph;
  std::int64_t workspace_bytes = 0;
};

/// The plans that one device has been asked for so far. The handle lives as long as the program:
/// cuDNN must not be called while a program ends.
class PlansOfDevice {
 public:
  explicit PlansOfDevice(int device) : capability_(cuda::device_facts(device).compute_capability) {
    check_cudnn(fe::detail::create_handle(&handle_), "cudnnCreate", "cuDNN");
  }

  template <class Wanted>
  const SdpaPlan& of(const Wanted& wanted) {
    auto& plans = std::get<std::map<Wanted, std::unique_ptr<SdpaPlan>>>(plans_);
    const auto found = plans.find(wanted);
    if (found != plans.end()) return *found->second;
    return *plans.emplace(wanted, make(wanted)).first->second;
  }
  template <class Wanted, class Pointers>
  void run(const Wanted& wanted, const Pointers& pointers, cuda::Stream stream) {
    const SdpaPlan& plan = of(wanted);
    Tensors tensors = tensors_of(pointers);
    check_cudnn(fe::detail::set_stream(handle_, stream), "cudnnSetStream", "cuDNN");
    check_cudnn(plan.graph.execute(handle_, tensors, pointers.workspace), "execute",
                name_of(wanted));
  }

 private:
  template <class Wanted>
  std::unique_ptr<SdpaPlan> make(const Wanted& wanted) const {
    const std::string name = name_of(wanted);
    auto plan = std::make_unique<SdpaPlan>();
    fe::graph::Graph& graph = plan->graph;
    describe_and_check(graph, wanted, capability_);
    check_cudnn(graph.build_operation_graph(handle_), "build the graph", name);
    check_cudnn(graph.create_execution_plans({fe::HeurMode_t::A}), "find plans", name);
    check_cudnn(graph.check_support(), "check support", name);
    check_cudnn(graph.build_plans(), "build a plan", name);
    check_cudnn(graph.get_workspace_size(plan->workspace_bytes), "size of the workspace", name);
    return plan;
  }

  int capability_;
  cudnnHandle_t handle_ = nullptr;
  std::tuple<std::map<SdpaGraph, std::unique_ptr<SdpaPlan>>,
             std::map<SdpaBackwardGraph, std::unique_ptr<SdpaPlan>>>
      plans_;
};

/// The plans of all devices; one thread at a time, since handles are not to be shared.
class Plans {
 public:
  template <class Wanted>
  std::int64_t workspace_bytes(const Wanted& graph) {
    const std::scoped_lock lock(one_at_a_time_);
    return on_current_device().of(graph).workspace_bytes;
  }
  template <class Wanted, class Pointers>
  void run(const Wanted& graph, const Pointers& pointers, cuda::Stream stream) {
    const std::scoped_lock lock(one_at_a_time_);
    on_current_device().run(graph, pointers, stream);
  }

 private:
  PlansOfDevice& on_current_device() {
    const int device = cuda::current_device();
    const auto found = devices_.find(device);
    return found != devices_.end() ? found->second
                                   : devices_.try_emplace(device, device).first->second;
  }

  std::mutex one_at_a_time_;
  std::map<int, PlansOfDevice> devices_;
};

Plans& plans() {
  static Plans& kept = *new Plans;
  return kept;
}

/// Calls `body`; the frontend throws the loader's message when a part of CUDA is missing.
template <class Body>
auto as_errors(Body body) {
  try {
    library();
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& problem) {
    throw_environment_error({.where = "cuDNN's frontend",
                             .expected = "all of CUDA that it calls",
                             .actual = problem.what(),
                             .hint = "Install CUDA's runtime library (libcudart.so)"});
  }
}

template <class Wanted>
void check_any(const Wanted& graph, int compute_capability) {
  as_errors([&] {
    fe::graph::Graph built;
    describe_and_check(built, graph, compute_capability);
  });
}

}  // namespace

bool compiled_in() { return true; }

std::string require_cudnn() {
  return "cuDNN " + version_text(library().version) + " (" + library().file + ")";
}

void check_graph(const SdpaGraph& graph, int compute_capability) {
  check_any(graph, compute_capability);
}
void check_graph(const SdpaBackwardGraph& graph, int compute_capability) {
  check_any(graph, compute_capability);
}

SdpaRunner cudnn_runner() {
  require_cudnn();
  constexpr auto workspace_bytes = [](const auto& graph) {
    return as_errors([&] { return plans().workspace_bytes(graph); });
  };
  constexpr auto run = [](const auto& graph, const auto& pointers, cuda::Stream stream) {
    as_errors([&] { plans().run(graph, pointers, stream); });
  };
  return {.workspace_bytes = workspace_bytes,
          .run = run,
          .backward_workspace_bytes = workspace_bytes,
          .run_backward = run};
}

}  // namespace ringlab::cudnn
