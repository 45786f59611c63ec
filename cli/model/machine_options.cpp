#include "cli/model/machine_options.h"

#include <fmt/format.h>

namespace ringlab::cli {
namespace {

constexpr double kTera = 1e12, kGiga = 1e9, kMicro = 1e-6;
constexpr double kMostAmount = 1e9, kMostMicroseconds = 1e9;  // in the units of the options
constexpr double kLeastAmount = 1e-9;
constexpr std::int64_t kMostRanks = 1024;

void take_amount(Arguments& arguments, const std::string& option, double unit, double& amount) {
  amount = unit * arguments.take_real(option, amount / unit, kLeastAmount, kMostAmount);
}

void take_time(Arguments& arguments, const std::string& option, double& seconds) {
  seconds = kMicro * arguments.take_real(option, seconds / kMicro, 0, kMostMicroseconds);
}

std::string link_text(const model::LinkSpeed& link) {
  return fmt::format("{:.4g} GB/s each way, {:.4g} us", link.bytes_per_s / kGiga,
                     link.latency_s / kMicro);
}

}  // namespace

std::vector<OptionSpec> machine_options() {
  std::string names;
  for (const model::Machine& machine : model::known_machines()) {
    names += (names.empty() ? "" : ", ") + machine.name;
  }
  return {
      {"machine", "NAME", names + ": where figures that are not given come from (h200)"},
      {"tflops", "X", "10^12 operations a second of attention on one device, forward"},
      {"backward-tflops", "X", "the same of the backward pass"},
      {"bandwidth", "X", "GB/s of a link between ranks of a node, each way"},
      {"latency", "X", "microseconds until a message is there that has no bytes"},
      {"node-ranks", "W", "ranks of a node"},
      {"node-bandwidth", "X", "GB/s of a rank's way to other nodes"},
      {"node-latency", "X", "microseconds between nodes"},
      {"memory", "X", "GB that a rank has for attention"},
      {"memory-bandwidth", "X", "GB/s of a device's memory: sums of gradients"},
      {"block-overhead", "X", "microseconds before each block, for launches"},
      {"wiring", "KIND",
       "in a node: switched (one way out of each rank and one in), direct (links of its own for "
       "each pair and direction) or shared (one for both directions)"},
  };
}

model::Machine take_machine(Arguments& arguments) {
  model::Machine machine = model::find_machine(arguments.take_text("machine").value_or("h200"));
  take_amount(arguments, "tflops", kTera, machine.forward_flops);
  take_amount(arguments, "backward-tflops", kTera, machine.backward_flops);
  take_amount(arguments, "bandwidth", kGiga, machine.inside.bytes_per_s);
  take_amount(arguments, "node-bandwidth", kGiga, machine.outside.bytes_per_s);
  take_amount(arguments, "memory", kGiga, machine.memory_bytes);
  take_amount(arguments, "memory-bandwidth", kGiga, machine.memory_bytes_per_s);
  take_time(arguments, "latency", machine.inside.latency_s);
  take_time(arguments, "node-latency", machine.outside.latency_s);
  take_time(arguments, "block-overhead", machine.block_s);
  machine.node_ranks =
      static_cast<int>(arguments.take_integer("node-ranks", machine.node_ranks, 1, kMostRanks));
  machine.wiring = arguments.take_choice<model::Wiring>("wiring", machine.wiring,
                                                        {{"switched", model::Wiring::switched},
                                                         {"direct", model::Wiring::direct},
                                                         {"shared", model::Wiring::shared}});
  return machine;
}

Json machine_figures(const model::Machine& machine) {
  return {{"machine", machine.name},
          {"source", machine.source},
          {"attention", fmt::format("{:.4g} TFLOP/s forward, {:.4g} backward",
                                    machine.forward_flops / kTera, machine.backward_flops / kTera)},
          {"links", link_text(machine.inside)},
          {"wiring", std::string(model::wiring_name(machine.wiring))},
          {"node_ranks", machine.node_ranks},
          {"between_nodes", link_text(machine.outside)},
          {"memory", fmt::format("{:.4g} GB, {:.4g} GB/s", machine.memory_bytes / kGiga,
                                 machine.memory_bytes_per_s / kGiga)},
          {"block_overhead", fmt::format("{:.4g} us", machine.block_s / kMicro)}};
}

}  // namespace ringlab::cli
