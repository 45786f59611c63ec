#include "cli/machine/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "cli/line/progress.h"
#include "cli/machine/machine_json.h"
#include "optimized/transport/run_network.h"
#include "property_tests/case.h"
#include "property_tests/subject_list.h"
#include "reference/model/machine.h"
#include "reference/model/work.h"

namespace ringlab::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array kTypes = {DType::f32, DType::bf16, DType::f64};
constexpr std::array<std::int64_t, 2> kWidths = {64, 128};
constexpr std::array<std::int64_t, 3> kLengths = {256, 1024, 2048};
constexpr std::int64_t kHeads = 2;
constexpr int kTimes = 5;
constexpr std::size_t kLongMessage = std::size_t{1} << 22;  // bytes
constexpr int kMostBusy = 16;  // threads; more have their own memory and caches

double median_of(const std::function<double()>& measure) {
  std::array<double, kTimes> seconds;
  for (double& each : seconds) each = measure();
  std::ranges::sort(seconds);
  return seconds[kTimes / 2];
}

double seconds_of(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// One problem for one rank of one thread.
struct Setting {
  DType dtype = DType::f32;
  std::int64_t head_dim = 0, tokens = 0;
  bool causal = false;
};

verify::Case case_of(const Setting& setting) {
  verify::Case c;
  c.shape = {1, kHeads, kHeads, setting.tokens, setting.tokens, setting.head_dim, setting.head_dim};
  c.dtype = setting.dtype;
  if (setting.causal) c.mask = "causal";
  return c;
}

/// Median seconds of `engine` on `input`, with as many threads as ranks will have neighbours, each
/// with a run of its own at the same time: a processor alone is faster than one of many at work.
double busy_seconds(const verify::Subject& engine, const AttentionInput& input) {
  const int copies =
      std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostBusy);
  RunOptions options;
  options.threads = 1;
  options.tile_queries = engine.tile_queries;
  options.tile_keys = engine.tile_keys;
  std::barrier all(copies);
  std::vector<double> seconds(static_cast<std::size_t>(copies * kTimes));
  {
    std::vector<std::jthread> threads;
    for (int copy = 0; copy < copies; ++copy) {
      threads.emplace_back([&, copy] {
        engine.run(input, options);  // the first one touches memory
        for (int time = 0; time < kTimes; ++time) {
          all.arrive_and_wait();
          seconds[static_cast<std::size_t>(copy * kTimes + time)] =
              engine.run(input, options).seconds;
        }
      });
    }
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

struct PassSeconds {
  double forward = 0, backward = 0;
};
PassSeconds pass_seconds(const Setting& setting) {
  const verify::Subject engine = verify::engine_subject();
  const verify::Case c = case_of(setting);
  const AttentionTensors tensors = verify::make_tensors(c);
  const Tensor<double> dout = verify::make_dout(c);
  AttentionInput input = tensors.input(verify::make_problem(c));
  const double forward = busy_seconds(engine, input);
  input.dout = dout.view();
  return {forward, std::max(busy_seconds(engine, input) - forward, forward * 1e-3)};
}

model::KernelSpeed speed_of(const Setting& setting, const std::string& source) {
  const PassSeconds seconds = pass_seconds(setting);
  const Problem problem = verify::make_problem(case_of(setting));
  const auto flops = [&](Pass pass) {
    return static_cast<double>(problem.mask.count_all()) *
           static_cast<double>(model::work_of(problem, pass).flops_per_pair);
  };
  return {.dtype = setting.dtype,
          .head_dim = setting.head_dim,
          .causal = setting.causal,
          .tokens = setting.tokens,
          .forward_flops = flops(Pass::forward) / seconds.forward,
          .backward_flops = flops(Pass::backward) / seconds.backward,
          .source = source};
}

/// Bytes a second, read and written, of copying a buffer that no cache holds.
double copied_bytes_per_s() {
  std::vector<char> from(std::size_t{1} << 27, 1), to(from.size());
  const auto copy = [&] {
    return seconds_of([&] { std::memcpy(to.data(), from.data(), from.size()); });
  };
  copy();
  return 2 * static_cast<double>(from.size()) / median_of(copy);
}

/// The time of `count` exchanges of `bytes` between two threads, both ways at once, while both also
/// do `meanwhile`.
double exchange_seconds(std::size_t bytes, int count, const std::function<void()>& meanwhile = {}) {
  RunOptions options;
  options.ranks = 2;
  std::array<double, 2> seconds{};
  run_network(options, [&](Communicator& network) {
    const std::vector<std::byte> out(bytes);
    std::vector<std::byte> in(bytes);
    const int peer = 1 - network.rank();
    seconds[static_cast<std::size_t>(network.rank())] = seconds_of([&] {
      for (int i = 0; i < count; ++i) {
        const Request posted[] = {network.post_receive(peer, 0, in),
                                  network.post_send(peer, 0, out)};
        if (meanwhile) meanwhile();
        for (const Request request : posted) network.wait(request);
      }
    });
  });
  return std::ranges::max(seconds) / count;
}

/// The share of its computing that a rank loses while it sends and receives: messages beside a
/// block of as many seconds prolong it by this share of their time alone. Threads move their own
/// messages, with the processor that they compute on.
double taken_by_transfers() {
  const Setting setting{DType::f32, 64, 1024, false};
  const AttentionTensors tensors = verify::make_tensors(case_of(setting));
  const AttentionInput input = tensors.input(verify::make_problem(case_of(setting)));
  const verify::Subject engine = verify::engine_subject();
  RunOptions block;
  block.tile_queries = engine.tile_queries;
  block.tile_keys = engine.tile_keys;
  const auto seconds = [](std::size_t bytes, const std::function<void()>& meanwhile) {
    return median_of([&] { return exchange_seconds(bytes, kTimes, meanwhile); });
  };
  const auto compute = [&] { engine.run(input, block); };
  const double alone = seconds(1, compute);
  const auto bytes =
      static_cast<std::size_t>(kLongMessage * std::max(1.0, alone / seconds(kLongMessage, {})));
  return std::clamp((seconds(bytes, compute) - alone) / seconds(bytes, {}), 0.0, 1.0);
}

}  // namespace

std::string measured_machine(const ThisMachine& machine, const std::string& name) {
  const int threads = std::max(machine.processor.threads, 1);
  const std::string measured = "measured: ringlab doctor --measure";
  constexpr int kSteps =
      static_cast<int>(kTypes.size() * kWidths.size() * (2 * kLengths.size() + 1)) + 1;
  Progress progress("measuring");
  int done = 0;
  const auto next = [&](const std::string& what) {
    progress.update(done++, kSteps, "measuring " + what);
  };
  Json ideal = Json::array(), expected = Json::array();
  for (const DType dtype : kTypes) {
    for (const std::int64_t width : kWidths) {
      const std::string what = fmt::format("{}, {} channels", dtype_info(dtype).name, width);
      next(what);
      ideal.push_back(
          speed_json(speed_of({dtype, width, kLengths.back(), false}, measured), false));
      for (const bool causal : {false, true}) {
        for (const std::int64_t tokens : kLengths) {
          next(what);
          expected.push_back(speed_json(speed_of({dtype, width, tokens, causal}, measured), true));
        }
      }
    }
  }
  next("memory and messages");
  const double latency = exchange_seconds(1, 2000), way = exchange_seconds(kLongMessage, 40);
  const double block = pass_seconds({DType::f32, 64, 1, false}).forward;
  const double taken = taken_by_transfers();
  const Json json = {
      {"schema", 1},
      {"name", name},
      {"title", fmt::format("a rank is one of {} processors of this machine, {}", threads,
                            machine.processor.model)},
      {"attention", ideal},
      {"memory_gb", figure(static_cast<double>(machine.memory.total_bytes) / threads / model::kGiga,
                           "its share")},
      {"memory_gb_per_s", figure(copied_bytes_per_s() / model::kGiga, measured)},
      {"block_us", figure(block / model::kMicro, measured)},
      {"node",
       {{"ranks", threads},
        {"wiring", "direct"},
        {"gb_per_s",
         figure(static_cast<double>(kLongMessage) / (way - latency) / model::kGiga, measured)},
        {"latency_us", figure(latency / model::kMicro, measured)}}},
      {"between_nodes", assumed_network()},
      {"expected",
       {{"attention", expected},
        {"transfer_share",
         figure(taken, taken > 0 ? measured : measured + "; no cost above the noise of timing")}}}};
  return machine_text(json);
}

}  // namespace ringlab::cli
