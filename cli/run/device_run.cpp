#include "cli/run/device_run.h"

#include <fmt/format.h>

#include <string_view>

#include "cli/inputs/modifier_options.h"
#include "optimized/ring/device_engine.h"
#include "optimized/ring/vendor/cudnn_engine.h"
#include "property_tests/engine_subject.h"
#include "property_tests/vendor_subject.h"
#include "reference/core/error.h"
#include "stages/common/device_list.h"

namespace ringlab::cli {
namespace {

/// Of the engine: its kernels on devices have tiles of their own, and copies are no messages.
constexpr const char* kWithoutEffect[] = {"threads",   "tile-queries", "tile-keys", "transport",
                                          "integrity", "delay-seed",   "trace"};

[[noreturn]] void refuse(const std::string& option, const char* expected,
                         const std::string& actual) {
  throw_usage_error({"--" + option, expected, actual,
                     "Use --device cpu; `ringlab list` shows what each subject can."});
}

void erase_without_effect(Json& configuration) {
  for (const char* name :
       {"threads", "tile_queries", "tile_keys", "transport", "integrity", "delay_seed"}) {
    configuration.erase(name);
  }
}

void describe_copies(const std::string& copies, Json& configuration) {
  if (!copies.empty()) configuration["copies"] = copies;
}

}  // namespace

void check_device_wishes(const verify::Subject& subject, const Arguments& arguments) {
  if (arguments.text("device") != "cuda") return;
  if (!subject.can.cuda) refuse("device", "a subject that runs on devices", subject.name);
  if (!subject.can_on_devices) return;
  const bool processes = arguments.text("transport") == "nccl";
  for (const std::string_view option : kWithoutEffect) {
    if (option == (processes ? "transport" : "trace")) continue;
    if (arguments.given(std::string(option)))
      refuse(std::string(option), "to be left out with --device cuda", "it");
  }
  const verify::Capabilities& can = *subject.can_on_devices;
  const std::string unknown = unknown_modifier(arguments, can.modifiers);
  if (!unknown.empty()) refuse(unknown, "no score modifiers with --device cuda", "one");
}

std::vector<OptionSpec> device_options() {
  return {
      {"graph", "", "capture the run on devices as a CUDA graph, and launch that",
       "with --device cuda"},
      {"free-sms", "N", "multiprocessors that the forward kernel for Hopper leaves to others (0)",
       "with --device cuda"},
      deterministic_option()};
}

OptionSpec deterministic_option() {
  return {"deterministic", "on|off",
          "gradients of the same bits from run to run, which takes longer (on)",
          "with --device cuda"};
}

void take_deterministic(Arguments& arguments, RunOptions& options) {
  options.deterministic =
      arguments.take_choice<bool>("deterministic", true, {{"on", true}, {"off", false}});
}

void take_device_options(Arguments& arguments, const verify::Subject& subject,
                         RunOptions& options) {
  if (options.device != DeviceKind::cuda) return;
  const bool is_engine = subject.name == verify::engine_subject().name;
  if (!is_engine) {
    const bool is_cudnn = subject.name == verify::cudnn_subject().name;
    for (const OptionSpec& option : device_options()) {
      if (!arguments.given(option.name) || (is_cudnn && option.name == "deterministic")) continue;
      throw_usage_error({"--" + option.name, "the subject optimized, whose runs on devices take it",
                         subject.name, "Leave it out."});
    }
  }
  constexpr int kMost = 1024;
  if (arguments.given("deterministic") && !arguments.given("backward")) {
    throw_usage_error({"--deterministic", "--backward beside it", "a run without gradients",
                       "Outputs have the same bits from run to run in any case."});
  }
  take_deterministic(arguments, options);
  options.as_graph = arguments.take_switch("graph");
  if (options.as_graph && arguments.given("trace")) {
    throw_usage_error({"--trace", "no --graph beside it", "both",
                       "What is in a graph cannot be timed piece by piece: leave out one."});
  }
  options.free_multiprocessors = static_cast<int>(arguments.take_integer("free-sms", 0, 0, kMost));
}

void check_problem_on_devices(const verify::Subject& subject, const Problem& problem,
                              const RunOptions& options, Pass last_pass) {
  if (options.device != DeviceKind::cuda) return;
  if (subject.name == verify::engine_subject().name) ring::check_device_run(problem, options);
  if (subject.name == verify::cudnn_subject().name) {
    ring::check_on_cudnn(problem, options, last_pass);
  }
}

void require_device_of(const verify::Subject& subject, DeviceKind device) {
  if (device == DeviceKind::cpu && !subject.can.cpu) {
    throw_usage_error({"--device", fmt::format("cuda: {} runs on devices only", subject.name),
                       "cpu", "`ringlab list` shows what each subject can."});
  }
  stages::require_device(device);
  if (subject.require) subject.require();
}

void describe_cudnn_engine(const RunOptions& options, Json& configuration) {
  erase_without_effect(configuration);
  describe_copies(ring::device_copies(options), configuration);
  configuration["deterministic"] = options.deterministic;
}

void describe_device_engine(const Problem& problem, const RunOptions& options,
                            Json& configuration) {
  erase_without_effect(configuration);
  const ring::DeviceChoice choice = ring::describe_device_run(problem, options);
  configuration["devices"] = choice.devices;
  configuration["kernels"] = choice.kernels;
  describe_copies(choice.copies, configuration);
  configuration["deterministic"] = options.deterministic;
  configuration["graph"] = options.as_graph;
  configuration["free_sms"] = options.free_multiprocessors;
}

void describe_device_job(const DeviceJob& job, Json& configuration) {
  for (const char* name : {"threads", "tile_queries", "tile_keys", "integrity"}) {
    configuration.erase(name);
  }
  configuration["kernels"] = job.kernels;
  configuration["nccl"] = job.nccl;
  configuration["deterministic"] = job.options.deterministic;
  configuration["graph"] = job.options.as_graph;
  configuration["free_sms"] = job.options.free_multiprocessors;
}

}  // namespace ringlab::cli
