// The ring engine as a subject, with its own block kernels and with cuDNN's.
#include "optimized/cpu/vectors.h"
#include "optimized/cuda/cudnn/sdpa_runner.h"
#include "optimized/ring/closed_forms.h"
#include "optimized/ring/device_engine.h"
#include "optimized/ring/engine.h"
#include "optimized/ring/vendor/cudnn_engine.h"
#include "property_tests/endings.h"
#include "property_tests/subject_list.h"

namespace ringlab::verify {
namespace {

Capabilities abilities() {
  using enum Ability;
  Capabilities can;
  can.dtypes = {DType::f64, DType::f32, DType::f16, DType::bf16};
  can.add({backward, schedules, traces, threads, skips_empty_blocks, cuda, graphs, gradient_order});
  can.modifiers = kAllModifiers;
  return can;
}

Capabilities abilities_on_devices() {
  using enum Ability;
  Capabilities can = abilities();
  can.dtypes = {DType::f16, DType::bf16};
  can.modifiers = {};
  // Kernels have tiles of their own, and copies take the place of messages and their closed forms.
  can.drop({threads, tiles, messages, counts_traffic, bit_masks, powers_next_to_0_are_1,
            same_bits_beside_nan});
  return can;
}

RunFacts describe_on_devices(const Problem& problem, const RunOptions& options) {
  const ring::DeviceChoice choice = ring::describe_device_run(problem, options);
  RunFacts facts = {{"devices", choice.devices}, {"kernels", choice.kernels}};
  if (!choice.copies.empty()) facts.emplace_back("copies", choice.copies);
  return facts;
}

/// Abilities of cuDNN: promises that NVIDIA does not make of its kernels are not expected.
Capabilities cudnn_abilities() {
  using enum Ability;
  Capabilities can;
  can.dtypes = {DType::f16, DType::bf16};
  can.add({backward, schedules, skips_empty_blocks, cuda, gradient_order});
  can.drop({cpu, tiles, bit_masks, sums_keys_in_order, same_bits_per_row, powers_next_to_0_are_1,
            same_bits_beside_nan});
  can.drop({messages, counts_traffic});  // it copies: closed forms of messages do not apply
  can.drop({masked_may_be_nan});         // a zero weight times a NaN is NaN
  can.drop({divides_last});              // outputs are divided piece by piece
  can.max_head_dim = 256;
  return can;
}

RunFacts copies_of(const Problem&, const RunOptions& options) {
  const std::string copies = ring::device_copies(options);
  return copies.empty() ? RunFacts{} : RunFacts{{"copies", copies}};
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
          .on_devices = DeviceRuns{.can = abilities_on_devices(),
                                   .check = [](const Problem& problem, const RunOptions& options,
                                               Pass) { ring::check_device_run(problem, options); },
                                   .describe = describe_on_devices},
          .carriers = {TransportKind::mpi, TransportKind::nccl},
          .attention = ring::AttentionOf::ringlab,
          .makes_rows = true};
}

Subject cudnn_subject() {
  return {
      .name = "cudnn",
      .title =
          "cudnn: NVIDIA's fused attention as the block kernel of the ring engine; on devices only",
      .can = cudnn_abilities(),
      .run =
          [](const AttentionInput& input, const RunOptions& options) {
            try {
              return ring::Engine().run(input, options, ring::OnDevices(ring::AttentionOf::cudnn));
            } catch (const ring::NotOnCudnn& no) {
              throw Unsupported(no.reason());
            } catch (const cudnn::Refusal& refusal) {
              throw Unsupported(std::string("is refused: ") + refusal.what());
            }
          },
      .profile = ring::cudnn_engine_profile,
      .on_devices = DeviceRuns{.can = cudnn_abilities(),
                               .require = ring::require_cudnn,
                               .check = ring::check_on_cudnn,
                               .describe = copies_of},
      .carriers = {TransportKind::nccl},
      .attention = ring::AttentionOf::cudnn};
}

}  // namespace ringlab::verify
