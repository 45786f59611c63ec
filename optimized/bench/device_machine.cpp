#include "optimized/bench/device_machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>

#include "cli/machine/machine_json.h"
#include "reference/core/error.h"
#include "reference/model/machine_file.h"

namespace ringlab::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMeasured = "measured: ringlab_goals gpu --machine";

/// The words of a device's name, in small letters.
std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words(1);
  for (const char letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter))) {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    } else if (!words.back().empty()) {
      words.emplace_back();
    }
  }
  return words;
}

/// The file of the known machine that is named after the device; without one, a file of assumed
/// links and memory.
Json machine_with(const GpuFacts& facts, const DeviceFigures& figures) {
  const std::vector<std::string> words = words_of(facts.name);
  for (const model::MachineText& known : model::machine_texts()) {
    const bool is_device = std::ranges::any_of(known.name, [](unsigned char letter) {
      return std::isdigit(letter) != 0;  // laptops are no devices
    });
    if (is_device && std::ranges::count(words, known.name) > 0) return Json::parse(known.text);
  }
  const double host = figures.host_bytes_per_s / model::kGiga;
  return {
      {"schema", 1},
      {"attention", Json::array()},
      {"node",
       {{"ranks", 1},
        {"wiring", "shared"},
        {"gb_per_s", host > 0 ? cli::figure(host, kMeasured) : cli::figure(25, "assumed: PCIe 4")},
        {"latency_us", cli::figure(10, "assumed")}}},
      {"between_nodes", cli::assumed_network()},
      {"memory_gb_per_s", cli::figure(500, "assumed")},
      {"block_us", cli::figure(5, "assumed")},
      {"expected", Json::object()}};
}

model::KernelSpeed speed_of(const PassSpeeds& speeds) {
  return {.dtype = DType::bf16,
          .head_dim = speeds.attention.head_dim,
          .causal = speeds.attention.mask == "causal",
          .tokens = speeds.attention.tokens,
          .forward_flops = speeds.forward,
          .backward_flops = speeds.backward,
          .source = kMeasured};
}

/// Ideal speeds: those of a head_dim are its fastest case's; other types are as in `known`.
Json ideal(const std::vector<model::KernelSpeed>& speeds, const Json& known) {
  Json all = Json::array();
  for (const std::int64_t head_dim : {64, 128}) {
    model::KernelSpeed best{.dtype = DType::bf16, .head_dim = head_dim, .source = kMeasured};
    for (const model::KernelSpeed& speed : speeds) {
      if (speed.head_dim != head_dim) continue;
      best.forward_flops = std::max(best.forward_flops, speed.forward_flops);
      best.backward_flops = std::max(best.backward_flops, speed.backward_flops);
    }
    if (best.forward_flops > 0) all.push_back(cli::speed_json(best, false));
  }
  for (const Json& line : known) {
    if (line.at("dtype") != "bf16") all.push_back(line);
  }
  return all;
}

}  // namespace

std::string device_machine(const std::string& name, const GpuFacts& facts,
                           const std::vector<PassSpeeds>& speeds, const DeviceFigures& figures) {
  std::vector<model::KernelSpeed> known;
  for (const PassSpeeds& one : speeds) {
    if (one.failure.empty()) known.push_back(speed_of(one));
  }
  if (known.empty()) {
    throw_environment_error({"--machine", "a kernel that runs on this device",
                             speeds.empty() ? "none" : speeds.front().failure, ""});
  }
  Json json = machine_with(facts, figures);
  json["name"] = name;
  json["title"] = fmt::format("{}, attention of ringlab's kernels", facts.name);
  json["attention"] = ideal(known, json.at("attention"));
  json["memory_gb"] =
      cli::figure(static_cast<double>(facts.memory_bytes) / model::kGiga, "what the driver says");
  const auto replace = [&](const char* key, double value) {
    if (value > 0) json[key] = cli::figure(value, kMeasured);
  };
  replace("memory_gb_per_s", figures.memory_bytes_per_s / model::kGiga);
  replace("block_us", figures.block_s / model::kMicro);
  replace("product_tflops", figures.product_flops / model::kTera);
  Json& expected = json["expected"];
  if (figures.product_flops > 0) expected.erase("product_share");
  expected["attention"] = Json::array();
  for (const model::KernelSpeed& speed : known) {
    expected["attention"].push_back(cli::speed_json(speed, true));
  }
  expected["transfer_share"] = cli::figure(figures.transfer_share, kMeasured);
  return cli::machine_text(json);
}

}  // namespace ringlab::bench
