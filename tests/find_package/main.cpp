// Real text → q, k, v → a ring of four ranks → compared with the exact answer → a file; and the same
// on devices, or what is missing for that.
#include <iostream>

#include "optimized/ring/device_engine.h"
#include "optimized/ring/engine.h"
#include "optimized/transport/in_process.h"
#include "reference/attention/exact.h"
#include "reference/core/error.h"
#include "reference/io/tensor_file.h"
#include "reference/io/text_input.h"
#include "stages/common/stage.h"
#ifdef HAS_DEVICES
#include "optimized/ring/streams/cuda_streams.h"
#include "optimized/ring/streams/device_kernels.h"
#endif

namespace {

const ringlab::stages::Stage& find_stage(const std::string& name) {
  for (const ringlab::stages::Stage& stage : ringlab::stages::all_stages()) {
    if (stage.name == name) return stage;
  }
  ringlab::throw_usage_error({.where = "stage", .expected = name, .actual = "none"});
}

bool ring_agrees(const std::string& file) {
  ringlab::io::TextInput text = ringlab::io::text_input_from_bytes(
      "To be, or not to be, that is the question.", {.head_dim = 8, .v_dim = 8});
  text.problem.mask = ringlab::parse_mask("causal").bind(text.tokens, text.tokens);
  const ringlab::AttentionInput input = text.tensors.input(text.problem);
  const ringlab::RunOptions options{.ranks = 4};

  const ringlab::stages::Stage& ring = find_stage("causal_ring");
  const ringlab::RunResult result = ring.run(input, options);
  const ringlab::ExactForward exact = ringlab::exact_forward(input);
  const ringlab::ForwardTolerance tolerance =
      ringlab::forward_tolerance(input, exact, ring.profile(text.problem, options));
  const ringlab::Report report = ringlab::compare_forward(result.output, exact, tolerance);
  std::cout << report.summary() << "\n";

  ringlab::io::write_tensors(
      file, {{"o", ringlab::io::from_tensor(result.output.out, text.problem.dtype)}});
  return report.passed() && ringlab::io::read_safetensors(file).contains("o");
}

bool device_ring_agrees() {
  ringlab::io::TextInput text = ringlab::io::text_input_from_bytes(
      "To be, or not to be, that is the question.",
      {.head_dim = 8, .v_dim = 8, .dtype = ringlab::DType::bf16});
  text.problem.mask = ringlab::parse_mask("causal").bind(text.tokens, text.tokens);
  const ringlab::AttentionInput input = text.tensors.input(text.problem);
  const ringlab::RunOptions options{.ranks = 4, .device = ringlab::DeviceKind::cuda};
  try {
    ringlab::ring::require_devices();
  } catch (const ringlab::Error& error) {
    std::cout << "on devices: " << error.what() << "\n";
    return error.kind() == ringlab::ErrorKind::environment;
  }
  const ringlab::RunResult result =
      ringlab::ring::Engine().run(input, options, ringlab::ring::OnDevices());
  const ringlab::ExactForward exact = ringlab::exact_forward(input);
  const ringlab::Report report = ringlab::compare_forward(
      result.output, exact,
      ringlab::forward_tolerance(input, exact,
                                 ringlab::ring::device_engine_profile(text.problem, options)));
  std::cout << "on devices: " << report.summary() << "\n";
  return report.passed();
}

#ifdef HAS_DEVICES
/// What device_engine is made of can be used by itself.
bool kernels_can_be_chosen() {
  const ringlab::Shape shape{.q_tokens = 4, .kv_tokens = 4, .head_dim = 64, .v_dim = 64};
  const auto kernels = ringlab::ring::device_kernels<ringlab::BFloat16>(
      ringlab::ring::ForwardKernel::portable, shape);
  return kernels.forward && kernels.why_not({.head_dim = 64, .v_dim = 64}).empty();
}
#else
bool kernels_can_be_chosen() { return true; }
#endif

bool ranks_can_talk() {
  const auto summary = ringlab::run_threads(2, {}, [](ringlab::Communicator& network) {
    int value = network.rank();
    if (network.rank() == 0) network.wait(network.post_send(1, 0, ringlab::bytes_of(&value, 1)));
    if (network.rank() == 1) {
      network.wait(network.post_receive(0, 0, ringlab::writable_bytes_of(&value, 1)));
    }
  });
  return summary.traffic[1].received_messages == 1 && summary.leftover_messages == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    return ring_agrees(argv[1]) && ranks_can_talk() && device_ring_agrees() &&
                   kernels_can_be_chosen()
               ? 0
               : 1;
  } catch (const ringlab::Error& error) {
    std::cerr << error.what() << "\n";
    return error.exit_code();
  }
}
