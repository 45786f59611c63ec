// The ring engine as a subject.
#include "property_tests/engine_subject.h"

#include "optimized/cpu/vectors.h"
#include "optimized/ring/closed_forms.h"
#include "optimized/ring/device_engine.h"
#include "optimized/ring/engine.h"

namespace ringlab::verify {
namespace {

Capabilities abilities() {
  Capabilities can;
  can.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  can.backward = true;
  can.schedules = true;
  can.traces = true;
  can.threads = true;
  can.skips_empty_blocks = true;
  can.modifiers = kAllModifiers;
  can.cuda = true;
  can.graphs = true;
  can.gradient_order = true;
  return can;
}

Capabilities abilities_on_devices() {
  Capabilities can = abilities();
  can.dtypes = {DType::f16, DType::bf16};
  can.threads = false;
  can.tiles = false;     // its kernels have tiles of their own
  can.messages = false;  // copies
  can.modifiers = {};
  can.bit_masks = false;
  can.counts_traffic = false;  // copies, not messages: closed forms of messages do not apply
  can.powers_next_to_0_are_1 = can.same_bits_beside_nan = false;
  return can;
}

RunFacts describe_on_devices(const Problem& problem, const RunOptions& options) {
  const ring::DeviceChoice choice = ring::describe_device_run(problem, options);
  RunFacts facts = {{"devices", choice.devices}, {"kernels", choice.kernels}};
  if (!choice.copies.empty()) facts.emplace_back("copies", choice.copies);
  return facts;
}

}  // namespace

Subject engine_subject() {
  return {.name = "optimized",
          .title = "optimized: the ring engine with its block kernels",
          .can = abilities(),
          .run =
              [](const AttentionInput& input, const RunOptions& options) {
                return options.device == DeviceKind::cuda
                           ? ring::Engine().run(input, options, ring::OnDevices())
                           : ring::Engine().run(input, options);
              },
          .profile =
              [](const Problem& problem, const RunOptions& options) {
                return options.device == DeviceKind::cuda
                           ? ring::device_engine_profile(problem, options)
                           : ring::engine_profile(problem, options);
              },
          .tile_queries = cpu::kTileQueries,
          .tile_keys = cpu::kTileKeys,
          .can_on_devices = abilities_on_devices(),
          .check_on_devices = [](const Problem& problem, const RunOptions& options,
                                 Pass) { ring::check_device_run(problem, options); },
          .describe_on_devices = describe_on_devices,
          .carriers = {TransportKind::mpi, TransportKind::nccl},
          .attention = ring::AttentionOf::ringlab,
          .makes_rows = true};
}

}  // namespace ringlab::verify
