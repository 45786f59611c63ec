#include "reference/model/machine.h"

#include <cmath>

#include "reference/core/error.h"

namespace ringlab::model {
namespace {

constexpr double kTera = 1e12, kGiga = 1e9, kMicro = 1e-6;

void check_figure(const Machine& machine, const std::string& figure, double value, bool holds) {
  if (holds) return;
  throw_input_error({.where = "machine " + machine.name,
                     .expected = figure,
                     .actual = std::to_string(value),
                     .hint = ""});
}

// Also refuses NaN, but not infinity: a speed without end is a limit that may be asked for.
void check_positive(const Machine& machine, const std::string& name, double value) {
  check_figure(machine, "a positive " + name, value, value > 0);
}

void check_time(const Machine& machine, const std::string& name, double value) {
  check_figure(machine, "a " + name + " of 0 or more", value, std::isfinite(value) && value >= 0);
}

}  // namespace

std::string_view wiring_name(Wiring wiring) {
  switch (wiring) {
    case Wiring::switched:
      return "switched";
    case Wiring::direct:
      return "direct";
    case Wiring::shared:
      return "shared";
  }
  return "";
}

void check_machine(const Machine& machine) {
  check_positive(machine, "number of operations per second, forward", machine.forward_flops);
  check_positive(machine, "number of operations per second, backward", machine.backward_flops);
  check_positive(machine, "number of bytes of memory", machine.memory_bytes);
  check_positive(machine, "speed of memory", machine.memory_bytes_per_s);
  check_positive(machine, "speed of links", machine.inside.bytes_per_s);
  check_positive(machine, "speed of links between nodes", machine.outside.bytes_per_s);
  check_time(machine, "latency", machine.inside.latency_s);
  check_time(machine, "latency between nodes", machine.outside.latency_s);
  check_time(machine, "time before each block", machine.block_s);
  check_figure(machine, "at least 1 rank in a node", machine.node_ranks, machine.node_ranks >= 1);
}

const std::vector<Machine>& known_machines() {
  static const std::vector<Machine> machines = {
      {.name = "h200",
       .source = "8 H200 of 141 GB a node: NVLink 4 through NVSwitch, 400 Gb/s of network each; "
                 "attention as "
                 "published for cuDNN 9.19; latencies and launches are assumed",
       .forward_flops = 690 * kTera,
       .backward_flops = 590 * kTera,
       .memory_bytes = 141 * kGiga,
       .memory_bytes_per_s = 4800 * kGiga,
       .block_s = 5 * kMicro,
       .inside = {450 * kGiga, 5 * kMicro},
       .outside = {50 * kGiga, 10 * kMicro}},
      {.name = "h100",
       .source = "8 H100 of 80 GB a node: NVLink 4 through NVSwitch, 400 Gb/s of network each; "
                 "attention as "
                 "published for FlashAttention-3; latencies and launches are assumed",
       .forward_flops = 648 * kTera,
       .backward_flops = 561 * kTera,
       .memory_bytes = 80 * kGiga,
       .memory_bytes_per_s = 3350 * kGiga,
       .block_s = 5 * kMicro,
       .inside = {450 * kGiga, 5 * kMicro},
       .outside = {50 * kGiga, 10 * kMicro}},
      {.name = "a100",
       .source = "8 A100 of 80 GB a node: NVLink 3 through NVSwitch, 200 Gb/s of network each; "
                 "attention as "
                 "published for FlashAttention-2; latencies and launches are assumed",
       .forward_flops = 225 * kTera,
       .backward_flops = 195 * kTera,
       .memory_bytes = 80 * kGiga,
       .memory_bytes_per_s = 2000 * kGiga,
       .block_s = 5 * kMicro,
       .inside = {300 * kGiga, 5 * kMicro},
       .outside = {25 * kGiga, 10 * kMicro}},
      {.name = "ethernet",
       .source =
           "a rank of two CPU cores and 8 GB a node, 10 Gb/s Ethernet; attention in f32 as in "
           "docs/performance.md; latencies are assumed",
       .forward_flops = 0.5 * kTera,
       .backward_flops = 0.46 * kTera,
       .memory_bytes = 8 * kGiga,
       .memory_bytes_per_s = 20 * kGiga,
       .block_s = 0,
       .inside = {1.25 * kGiga, 30 * kMicro},
       .outside = {1.25 * kGiga, 30 * kMicro},
       .node_ranks = 1}};
  return machines;
}

const Machine& find_machine(std::string_view name) {
  std::string names;
  for (const Machine& machine : known_machines()) {
    if (machine.name == name) return machine;
    names += (names.empty() ? "" : ", ") + machine.name;
  }
  throw_usage_error({.where = "machine",
                     .expected = "one of " + names,
                     .actual = "\"" + std::string(name) + "\"",
                     .hint = "Figures of other machines can be given one by one."});
}

}  // namespace ringlab::model
