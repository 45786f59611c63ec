#include "reference/model/machine.h"

#include <cmath>

#include "reference/core/error.h"
#include "reference/model/machine_file.h"
#include "reference/model/named.h"

namespace ringlab::model {
namespace {

void check_figure(const Machine& machine, const std::string& figure, double value, bool holds) {
  if (holds) return;
  throw_input_error(
      {.where = "machine " + machine.name, .expected = figure, .actual = std::to_string(value)});
}

// Refuses also NaN, but not infinity: a speed without end is a limit that may be asked for.
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
  check_time(machine, "number of operations per second, of products", machine.product_flops);
  check_positive(machine, "number of bytes of memory", machine.memory_bytes);
  check_positive(machine, "speed of memory", machine.memory_bytes_per_s);
  check_positive(machine, "speed of links", machine.inside.bytes_per_s);
  check_positive(machine, "speed of links between nodes", machine.outside.bytes_per_s);
  check_time(machine, "latency", machine.inside.latency_s);
  check_time(machine, "latency between nodes", machine.outside.latency_s);
  check_time(machine, "time before each block", machine.block_s);
  check_figure(machine, "at least 1 rank in a node", machine.node_ranks, machine.node_ranks >= 1);
  check_time(machine, "number of bytes of a merge", machine.merge_bytes);
  check_figure(machine, "a share of computing that transfers take, 0 to 1", machine.transfer_share,
               machine.transfer_share >= 0 && machine.transfer_share <= 1);
}

Machine suited_to(const Machine& machine, const Problem& problem) {
  if (machine.attention.empty()) return machine;
  const auto speeds = speeds_at(machine.attention, problem.dtype, problem.shape.head_dim);
  if (speeds.empty()) {
    throw_usage_error({.where = "machine " + machine.name,
                       .expected = "a type that its speed of attention is known for",
                       .actual = std::string(dtype_info(problem.dtype).name),
                       .hint = "Give --tflops and --backward-tflops, or another --dtype."});
  }
  Machine suited = machine;
  suited.forward_flops = speeds.front().forward_flops;
  suited.backward_flops = speeds.front().backward_flops;
  return suited;
}

void scale_links(Machine& machine, double times) {
  machine.inside.bytes_per_s *= times;
  machine.outside.bytes_per_s *= times;
}

std::optional<Machine> as_expected(const Machine& suited, const Problem& problem) {
  if (!suited.expected) return std::nullopt;
  Machine machine = suited;
  const Expected& expected = *suited.expected;
  machine.blocks = block_speeds(
      speeds_at(expected.attention, problem.dtype, problem.shape.head_dim), problem.shape.head_dim);
  machine.merge_bytes = expected.merge_bytes;
  machine.transfer_share = expected.transfer_share;
  scale_links(machine, expected.link_share);
  machine.product_flops *= expected.product_share;
  return machine;
}

const std::vector<Machine>& known_machines() {
  static const std::vector<Machine> machines = [] {
    std::vector<Machine> all;
    for (const MachineText& file : machine_texts()) {
      all.push_back(machine_of_json(file.text, "machine " + std::string(file.name)));
    }
    return all;
  }();
  return machines;
}

const Machine& find_machine(std::string_view name) {
  return find_named(known_machines(), name, "machine",
                    "A file of another one has a name that ends in .json.");
}

}  // namespace ringlab::model
