#include "cli/model/model_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "cli/inputs/problem_options.h"
#include "cli/inputs/run_options.h"
#include "cli/run/run_costs.h"
#include "optimized/ring/closed_forms.h"
#include "reference/core/error.h"
#include "reference/model/machine_file.h"
#include "reference/model/named.h"

namespace ringlab::cli {
namespace {

constexpr double kMostAmount = 1e9, kMostMicroseconds = 1e9;  // in the units of the options
constexpr double kLeastAmount = 1e-9;
constexpr std::int64_t kMostRanks = 1024;

void take_amount(Arguments& arguments, const std::string& option, double unit, double& amount) {
  amount = unit * arguments.take_real(option, amount / unit, kLeastAmount, kMostAmount);
}

void take_time(Arguments& arguments, const std::string& option, double& seconds) {
  seconds =
      model::kMicro * arguments.take_real(option, seconds / model::kMicro, 0, kMostMicroseconds);
}

std::string link_text(const model::LinkSpeed& link) {
  return fmt::format("{:.4g} GB/s each way, {:.4g} us", link.bytes_per_s / model::kGiga,
                     link.latency_s / model::kMicro);
}

/// A word quoted so that a shell reads it back.
std::string quoted(const std::string& word) {
  const auto plain = [](char c) {
    return (std::isalnum(static_cast<unsigned char>(c)) != 0) ||
           std::string_view("-_./,:+=@%").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
  return text + "'";
}

}  // namespace

std::vector<OptionSpec> modelled_job_options() {
  return {
      {"tokens", "N", "queries and keys (131072)"},
      {"heads", "H", "query heads (32)"},
      {"kv-heads", "H",
       "key/value heads (8; where --heads is given half of it if even, else as many)"},
      {"head-dim", "D", "channels per head (128)"},
      option_spec("dtype", "bf16"),
      option_spec("mask", "causal"),
      {"backward", "", "the backward pass too, after the forward pass"},
  };
}

std::vector<OptionSpec> model_options(const std::vector<OptionSpec>& run,
                                      const std::vector<OptionSpec>& own) {
  std::vector<OptionSpec> all;
  for (const auto& part : {modelled_job_options(), run, machine_options(), own}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  all.push_back(json_option());
  return all;
}

std::string given_words(const Arguments& arguments, const std::vector<OptionSpec>& specs) {
  std::string words;
  for (const auto& [name, value] : arguments.given_options(specs)) {
    words += " --" + name + (value.empty() ? "" : " " + quoted(value));
  }
  return words;
}

model::Job take_modelled_job(Arguments& arguments) {
  model::Job job{.problem = take_problem(arguments, {.tokens = 131072,
                                                     .heads = 32,
                                                     .kv_heads = 8,
                                                     .head_dim = 128,
                                                     .dtype = DType::bf16,
                                                     .mask = "causal"})};
  if (arguments.take_switch("backward")) job.passes.push_back(Pass::backward);
  return job;
}

Json modelled_job_figures(const model::Job& job) {
  const Shape& shape = job.problem.shape;
  return {{"tokens", shape.q_tokens},
          {"heads", shape.q_heads},
          {"kv_heads", shape.kv_heads},
          {"head_dim", shape.head_dim},
          {"dtype", std::string(dtype_info(job.problem.dtype).name)},
          {"mask", job.problem.mask.text()},
          {"passes", job.passes.size() == 1 ? "forward" : "forward, backward"}};
}

std::int64_t largest_memory(const model::Job& job, const model::JobNeeds& needs) {
  const RunAccount account{job.problem, job.options, job.passes.back(), {}};
  const auto costs = ring::engine_costs(job.problem, job.options, needs.need, job.passes.back());
  std::int64_t most = 0;
  for (std::size_t rank = 0; rank < costs.size(); ++rank) {
    const Given given = given_bytes(account, static_cast<int>(rank));
    most = std::max(most, given.inputs + given.outputs + costs[rank].peak_bytes);
  }
  return most;
}

std::optional<std::string> take_machine_file(Arguments& arguments, const std::string& option) {
  std::optional<std::string> path = take_file(arguments, option);
  if (path && std::filesystem::path(*path).extension() != ".json") {
    throw_usage_error({"--" + option, "a file whose name ends in .json", *path,
                       "`simulate --machine` knows files by that."});
  }
  return path;
}

std::vector<OptionSpec> machine_options() {
  return {
      {"machine", "NAME",
       model::names_of(model::known_machines()) +
           ", or a file NAME.json (docs/formats.md): where figures that are not given come from "
           "(h200)"},
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

model::Machine take_machine(Arguments& arguments, const Problem& problem) {
  model::Machine machine = model::machine_named(arguments.take_text("machine").value_or("h200"));
  if (arguments.given("tflops") || arguments.given("backward-tflops")) {
    machine.attention.clear();  // what is given holds for every type, channels and length
    if (machine.expected) machine.expected->attention.clear();
  }
  machine = model::suited_to(machine, problem);
  take_amount(arguments, "tflops", model::kTera, machine.forward_flops);
  take_amount(arguments, "backward-tflops", model::kTera, machine.backward_flops);
  take_amount(arguments, "bandwidth", model::kGiga, machine.inside.bytes_per_s);
  take_amount(arguments, "node-bandwidth", model::kGiga, machine.outside.bytes_per_s);
  take_amount(arguments, "memory", model::kGiga, machine.memory_bytes);
  take_amount(arguments, "memory-bandwidth", model::kGiga, machine.memory_bytes_per_s);
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
                                    machine.forward_flops / model::kTera,
                                    machine.backward_flops / model::kTera)},
          {"links", link_text(machine.inside)},
          {"wiring", std::string(model::wiring_name(machine.wiring))},
          {"node_ranks", machine.node_ranks},
          {"between_nodes", link_text(machine.outside)},
          {"memory", fmt::format("{:.4g} GB, {:.4g} GB/s", machine.memory_bytes / model::kGiga,
                                 machine.memory_bytes_per_s / model::kGiga)},
          {"block_overhead", fmt::format("{:.4g} us", machine.block_s / model::kMicro)}};
}

Json machine_json(const model::Machine& machine) {
  return {{"machine", machine.name},
          {"source", machine.source},
          {"forward_flops_per_s", machine.forward_flops},
          {"backward_flops_per_s", machine.backward_flops},
          {"product_flops_per_s", machine.product_flops},
          {"link_bytes_per_s", machine.inside.bytes_per_s},
          {"link_latency_s", machine.inside.latency_s},
          {"wiring", std::string(model::wiring_name(machine.wiring))},
          {"node_ranks", machine.node_ranks},
          {"node_link_bytes_per_s", machine.outside.bytes_per_s},
          {"node_link_latency_s", machine.outside.latency_s},
          {"memory_bytes", machine.memory_bytes},
          {"memory_bytes_per_s", machine.memory_bytes_per_s},
          {"block_overhead_s", machine.block_s}};
}

}  // namespace ringlab::cli
