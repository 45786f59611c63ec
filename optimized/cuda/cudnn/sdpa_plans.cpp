// The graphs of sdpa_graph.h, built with cuDNN's frontend and run by cuDNN.
#include "optimized/cuda/cudnn/sdpa_plans.h"

#include <cudnn_frontend.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "optimized/cuda/cudnn/check_cudnn.h"
#include "optimized/cuda/cudnn/cudnn_library.h"
#include "optimized/cuda/device.h"

namespace cudnn_frontend {
/// What the frontend takes cuDNN's functions from.
void* cudnn_dlhandle = nullptr;
}  // namespace cudnn_frontend

namespace ringlab::cudnn {
namespace {

namespace fe = cudnn_frontend;

enum Uid : std::int64_t { kQ = 1, kK, kV, kOut, kLse };

const Library& library() {
  static const Library found = [] {
    Library opened = open_library(library_name());
    fe::cudnn_dlhandle = opened.handle;
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

fe::graph::SDPA_attributes options_of(const SdpaGraph& wanted) {
  auto options = fe::graph::SDPA_attributes()
                     .set_name("attention")
                     .set_generate_stats(true)
                     .set_attn_scale(wanted.scale);
  const SdpaDiagonals& diagonals = wanted.diagonals;
  if (diagonals.left_bound || diagonals.right_bound) {
    options.set_diagonal_alignment(diagonals.corner == Corner::bottom_right
                                       ? fe::DiagonalAlignment_t::BOTTOM_RIGHT
                                       : fe::DiagonalAlignment_t::TOP_LEFT);
  }
  if (diagonals.left_bound) options.set_diagonal_band_left_bound(*diagonals.left_bound);
  if (diagonals.right_bound) options.set_diagonal_band_right_bound(*diagonals.right_bound);
  return options;
}

void describe(fe::graph::Graph& graph, const SdpaGraph& wanted) {
  graph
      .set_io_data_type(wanted.dtype == DType::f16 ? fe::DataType_t::HALF
                                                   : fe::DataType_t::BFLOAT16)
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
  const auto [out, lse] = graph.sdpa(graph.tensor(input_of("q", kQ, wanted.q)),
                                     graph.tensor(input_of("k", kK, wanted.k)),
                                     graph.tensor(input_of("v", kV, wanted.v)), options_of(wanted));
  describe_output(*out, kOut, wanted.out);
  describe_output(*lse, kLse, wanted.lse);
  lse->set_data_type(fe::DataType_t::FLOAT);
}

/// "cuDNN attention, q (1, 8, 512, 128), k (1, 2, 512, 128)".
std::string name_of(const SdpaGraph& graph) {
  return fmt::format("cuDNN attention, q ({}), k ({})", fmt::join(graph.q.sizes, ", "),
                     fmt::join(graph.k.sizes, ", "));
}

void describe_and_check(fe::graph::Graph& graph, const SdpaGraph& wanted, int capability) {
  graph.set_sm_version(capability);
  describe(graph, wanted);
  check_cudnn(graph.validate(), "validate", name_of(wanted));
}

struct Plan {
  fe::graph::Graph graph;
  std::int64_t workspace_bytes = 0;
};

/// What one device has been asked for so far. The handle lives as long as the program: cuDNN is not
/// to be asked for anything while a program ends.
class PlansOfDevice {
 public:
  explicit PlansOfDevice(int device) : capability_(cuda::device_facts(device).compute_capability) {
    check_cudnn(fe::detail::create_handle(&handle_), "cudnnCreate", "cuDNN");
  }

  const Plan& of(const SdpaGraph& wanted) {
    const auto found = plans_.find(wanted);
    if (found != plans_.end()) return *found->second;
    return *plans_.emplace(wanted, make(wanted)).first->second;
  }
  void run(const SdpaGraph& wanted, const SdpaPointers& pointers, cuda::Stream stream) {
    const Plan& plan = of(wanted);
    const auto writable = [](const void* data) { return const_cast<void*>(data); };
    std::unordered_map<std::int64_t, void*> tensors = {{kQ, writable(pointers.q)},
                                                       {kK, writable(pointers.k)},
                                                       {kV, writable(pointers.v)},
                                                       {kOut, pointers.out},
                                                       {kLse, pointers.lse}};
    check_cudnn(fe::detail::set_stream(handle_, stream), "cudnnSetStream", "cuDNN");
    check_cudnn(plan.graph.execute(handle_, tensors, pointers.workspace), "execute",
                name_of(wanted));
  }

 private:
  std::unique_ptr<Plan> make(const SdpaGraph& wanted) const {
    const std::string name = name_of(wanted);
    auto plan = std::make_unique<Plan>();
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
  std::map<SdpaGraph, std::unique_ptr<Plan>> plans_;
};

/// Those of all devices; one thread at a time, since handles are not to be shared.
class Plans {
 public:
  std::int64_t workspace_bytes(const SdpaGraph& graph) {
    const std::scoped_lock lock(one_at_a_time_);
    return on_current_device().of(graph).workspace_bytes;
  }
  void run(const SdpaGraph& graph, const SdpaPointers& pointers, cuda::Stream stream) {
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

/// The frontend throws what the loader says, when it wants a part of CUDA that is not there.
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

}  // namespace

bool compiled_in() { return true; }

std::string require_cudnn() {
  return "cuDNN " + version_text(library().version) + " (" + library().file + ")";
}

void check_graph(const SdpaGraph& graph, int compute_capability) {
  as_errors([&] {
    fe::graph::Graph built;
    describe_and_check(built, graph, compute_capability);
  });
}

SdpaRunner cudnn_runner() {
  require_cudnn();
  return {
      .workspace_bytes =
          [](const SdpaGraph& graph) {
            return as_errors([&] { return plans().workspace_bytes(graph); });
          },
      .run = [](const SdpaGraph& graph, const SdpaPointers& pointers,
                cuda::Stream stream) { as_errors([&] { plans().run(graph, pointers, stream); }); }};
}

}  // namespace ringlab::cudnn
