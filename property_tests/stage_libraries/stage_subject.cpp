#include "property_tests/stage_libraries/stage_subject.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "property_tests/plugins/plugin_subject.h"
#include "property_tests/plugins/reply_text.h"
#include "property_tests/stage_libraries/run_bytes.h"
#include "property_tests/subject_list.h"

namespace ringlab::verify {
namespace {

/// The deadline of a wait: far longer than a run at the laws' sizes, and short enough to wait for.
constexpr double kTimeout = 2.0;

class StageCall : public plugins::ForeignCall {
 public:
  StageCall(const AttentionInput& input, const RunOptions& options, std::uint64_t sequence)
      : input_(input), ranks_(options.ranks), calls_(RecordedRun::begin(options.ranks)) {
    RunOptions limited = options;
    limited.timeout_s = std::min(options.timeout_s, kTimeout);
    inputs_ = bytes_of_run(input, limited, calls_ == nullptr ? Recorded::no : Recorded::yes);
    outputs_.resize(static_cast<std::size_t>(most_result_bytes(input, ranks_)));
    message_.sequence = sequence;
    message_.call.threads = std::max(options.threads, 1);
    message_.call.ranks = ranks_;
  }

  plugins::CallMessage& message() override { return message_; }
  const std::vector<std::uint8_t>& inputs() const override { return inputs_; }
  const std::vector<std::uint8_t>& outputs() const override { return outputs_; }
  std::string read(const std::vector<std::uint8_t>& file, RunResult& result) const override {
    result = result_of_bytes(file, input_, ranks_, calls_);
    return "";
  }

 private:
  const AttentionInput& input_;
  int ranks_;
  Calls* calls_;  ///< takes the ranks' calls to their network; null where unwanted
  std::vector<std::uint8_t> inputs_, outputs_;
  plugins::CallMessage message_;
};

std::unique_ptr<plugins::ForeignCall> make_stage_call(const AttentionInput& input,
                                                      const RunOptions& options,
                                                      const ringlab_abilities& /*can*/,
                                                      std::uint64_t sequence) {
  return std::make_unique<StageCall>(input, options, sequence);
}

constexpr plugins::ForeignKind kStageKind{
    .host = "ringlab-stage-host",
    .symbol = "ringlab_stage_v1",
    .advice = "Put RINGLAB_STAGE_LIBRARY(NAME) below the stage's header.",
    .make_call = make_stage_call,
    .most_memory_bytes = std::int64_t{1} << 30};

}  // namespace

bool names_a_stage_library(const std::string& path) {
  std::error_code unreadable;  // a name that is too long, say: opening it tells
  if (!std::filesystem::is_regular_file(path, unreadable)) return false;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return bytes.find(kStageKind.symbol) != std::string::npos;
}

Subject stage_library_subject(const std::string& path, const plugins::PluginOptions& options) {
  const auto process = std::make_shared<plugins::PluginProcess>(path, options, kStageKind);
  Subject subject = find_subject(plugins::shown_text(process->introduction().name));
  subject.stage = subject.name;
  subject.name = path;
  subject.id = content_name(path);
  subject.can.dtypes = {DType::f32};
  subject.can.drop({Ability::cuda});
  subject.on_devices.reset();
  subject.run = [process](const AttentionInput& input, const RunOptions& run) {
    return process->run(input, run);
  };
  subject.printed = [process] { return process->printed(); };
  return subject;
}

}  // namespace ringlab::verify
