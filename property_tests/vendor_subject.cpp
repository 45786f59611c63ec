#include "property_tests/vendor_subject.h"

#include "optimized/cuda/cudnn/sdpa_runner.h"
#include "optimized/ring/device_engine.h"
#include "optimized/ring/engine.h"
#include "optimized/ring/vendor/cudnn_engine.h"

namespace ringlab::verify {
namespace {

/// Abilities of cuDNN: promises that NVIDIA does not make of its kernels are not expected.
Capabilities cudnn_abilities() {
  Capabilities can;
  can.dtypes = {DType::f16, DType::bf16};
  can.counts_traffic = false;  // copies, not messages: closed forms of messages do not apply
  can.backward = true;
  can.masked_may_be_nan = false;  // a zero weight times a NaN is NaN
  can.schedules = true;
  can.skips_empty_blocks = true;
  can.cuda = true;
  can.cpu = false;
  can.messages = can.tiles = false;
  can.gradient_order = true;
  can.bit_masks = false;
  can.sums_keys_in_order = false;
  can.same_bits_per_row = false;
  can.divides_last = false;  // outputs are divided piece by piece
  can.powers_next_to_0_are_1 = can.same_bits_beside_nan = false;
  can.max_head_dim = 256;
  return can;
}

RunFacts describe_on_devices(const Problem&, const RunOptions& options) {
  const std::string copies = ring::device_copies(options);
  return copies.empty() ? RunFacts{} : RunFacts{{"copies", copies}};
}

}  // namespace

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
      .require = ring::require_cudnn,
      .can_on_devices = cudnn_abilities(),
      .check_on_devices = ring::check_on_cudnn,
      .describe_on_devices = describe_on_devices,
      .carriers = {TransportKind::nccl},
      .attention = ring::AttentionOf::cudnn};
}

}  // namespace ringlab::verify
