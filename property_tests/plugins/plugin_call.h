// One run as a call of a plugin: the message, the bytes of its arrays, and reading the answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "property_tests/plugins/arrays/arrays.h"
#include "property_tests/plugins/plugin_process.h"
#include "reference/core/run.h"

namespace ringlab::plugins {

class PluginCall : public ForeignCall {
 public:
  PluginCall(const AttentionInput& input, const RunOptions& options, const ringlab_abilities& can,
             std::uint64_t sequence);

  CallMessage& message() override { return message_; }
  const std::vector<std::uint8_t>& inputs() const override { return inputs_.bytes(); }
  const std::vector<std::uint8_t>& outputs() const override { return outputs_.bytes(); }

  /// Reads the outputs from the file that the plugin wrote to. Returns the fault in it: bytes
  /// beside an array, elements that were not written; empty when there is none.
  std::string read(const std::vector<std::uint8_t>& file, RunResult& result) const override;

 private:
  void add_inputs(const AttentionInput& input);
  void add_mask(const Mask& mask, std::uint32_t abilities);
  void add_modifiers(const Modifiers& modifiers);
  void add_outputs(bool gradients, const ringlab_abilities& can);
  void output(SegmentId id, const Extents& extents, DType dtype, ringlab_tensor& shape);

  Shape shape_;
  DType dtype_;
  DType lse_dtype_;
  Pages inputs_, outputs_;
  std::uint8_t filler_;
  CallMessage message_;
};

}  // namespace ringlab::plugins
