#include "cli/model/modelled_job.h"

#include <algorithm>

#include "cli/inputs/problem_options.h"
#include "cli/inputs/run_options.h"
#include "cli/model/machine_options.h"
#include "cli/run/run_costs.h"
#include "optimized/ring/closed_forms.h"

namespace ringlab::cli {

std::vector<OptionSpec> modelled_job_options() {
  return {
      {"tokens", "N", "queries and keys (131072)"},
      {"heads", "H", "query heads (32)"},
      {"kv-heads", "H", "key/value heads (8; half of --heads where that is given)"},
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

}  // namespace ringlab::cli
