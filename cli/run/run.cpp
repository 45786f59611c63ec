// `ringlab run SUBJECT`: one subject on given tensors, measured, checked if asked, written.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "cli/inputs/modifier_options.h"
#include "cli/inputs/plugin_subjects.h"
#include "cli/inputs/problem_options.h"
#include "cli/line/progress.h"
#include "cli/line/result_file.h"
#include "cli/line/text_table.h"
#include "cli/report/human.h"
#include "cli/report/totals.h"
#include "cli/run/device_run.h"
#include "cli/run/gradient_sums.h"
#include "cli/run/job_output.h"
#include "cli/run/run_check.h"
#include "cli/run/run_costs.h"
#include "cli/run/run_job.h"
#include "cli/run/run_memory.h"
#include "cli/run/run_options.h"
#include "cli/run/run_pace.h"
#include "cli/run/run_reference.h"
#include "cli/run/run_rows.h"
#include "cli/run/trace_file.h"
#include "cli/verify/report_json.h"
#include "optimized/ring/device_engine.h"
#include "property_tests/sampled_check.h"
#include "property_tests/subject.h"
#include "property_tests/vendor_subject.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

void print_ranks(const RunResult& result, Output& output) {
  TextTable table({{"rank", Align::right},
                   {"sent", Align::right},
                   {"messages", Align::right},
                   {"received", Align::right},
                   {"peak memory", Align::right},
                   {"of it K/V", Align::right},
                   {"pairs computed", Align::right}});
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    const RankStats& rank = result.ranks[r];
    std::int64_t pairs = 0;
    for (const Visit& visit : rank.visits) pairs += visit.pairs;
    table.add({fmt::format("{}", r), report::human_bytes(rank.sent_bytes),
               report::human_count(rank.sent_messages), report::human_bytes(rank.received_bytes),
               report::human_bytes(rank.peak_bytes), report::human_bytes(rank.peak_kv_bytes),
               report::human_count(pairs)});
  }
  output.print("\n{}", table.text());
}

[[noreturn]] void refuse_problem(const verify::Subject& subject, const std::string& reason) {
  throw_input_error({subject.name, "a problem that it can take", "that it " + reason,
                     "`ringlab list` shows what it claims."});
}

// What no machine can was refused before: then it is this one's device, driver or library.
[[noreturn]] void refuse_on_this_machine(const verify::Subject& subject,
                                         const std::string& reason) {
  throw_environment_error({subject.name, "a problem that it can take on this machine",
                           "that it " + reason, "`optimized` has kernels of its own."});
}

void check_capabilities(const verify::Subject& subject, const Problem& problem,
                        const RunOptions& options) {
  const auto& dtypes = subject.can_on(options.device).dtypes;
  if (std::find(dtypes.begin(), dtypes.end(), problem.dtype) == dtypes.end()) {
    std::vector<std::string_view> names;
    for (const DType dtype : dtypes) names.push_back(dtype_info(dtype).name);
    throw_usage_error({"--dtype",
                       fmt::format("one that {} computes in{}: {}", subject.name,
                                   options.device == DeviceKind::cuda ? " on devices" : "",
                                   fmt::join(names, ", ")),
                       std::string(dtype_info(problem.dtype).name),
                       fmt::format("Give --dtype {}.", names.back())});
  }
  if (options.ranks > 1 && !subject.can.many_ranks) {
    throw_usage_error({"--ranks", fmt::format("1, as {} runs on one rank", subject.name),
                       fmt::format("{}", options.ranks), ""});
  }
  const std::string reason = subject.can.foreign ? verify::obstacle(subject.can, problem) : "";
  if (!reason.empty()) refuse_problem(subject, reason);
}

// Options that this subject would ignore are refused: nothing on a command line is without effect.
void check_wishes(const verify::Subject& subject, const Arguments& arguments) {
  const auto refuse = [&](const char* option, const char* what) {
    throw_usage_error({option, fmt::format("a subject that {}", what), subject.name,
                       "Try optimized; `ringlab list` shows what each subject can."});
  };
  refuse_unknown_modifiers(arguments, subject);
  if (!subject.can.backward && arguments.given("backward")) refuse("--backward", "has gradients");
  if (!subject.can.threads && arguments.given("threads"))
    refuse("--threads", "shares out its work");
  if (subject.can.schedules) return;
  for (const char* option : {"schedule", "wire", "integrity"}) {
    if (!arguments.given(option)) continue;
    refuse(fmt::format("--{}", option).c_str(), "executes schedules");
  }
  if (!subject.can.prefetches && arguments.given("slots")) refuse("--slots", "has slots");
}

void print_check(const Report& report, Output& output) {
  for (const TensorReport& tensor : report.tensors) {
    const WorstElement& worst = tensor.worst;
    output.print(
        "check  {:<4} {}  worst error/bound {} at [{}, {}, {}, {}]: got {:.9g}, exact {:.9g}, "
        "allowed ±{:.3g}; {} of {} wrong\n",
        tensor.tensor, tensor.passed() ? "ok   " : "WRONG", report::human_ratio(worst.ratio),
        worst.batch, worst.head, worst.token, worst.channel, worst.got, worst.exact, worst.allowed,
        report::human_count(tensor.failed), report::human_count(tensor.compared));
  }
}

// What the command line asks for, checked before any work.
struct Plan {
  verify::Subject subject;
  RunOptions options;
  bool check = false;
  bool backward = false;
  std::int64_t check_rows = 0;
  std::optional<std::string> output_path;
  std::optional<std::string> trace_path;
  LoadedInput loaded;
  std::vector<std::int64_t> rows = {};  // those of --check-rows

  RunAccount account() const {
    return {.problem = loaded.problem,
            .options = options,
            .last_pass = backward ? Pass::backward : Pass::forward,
            .measured = {}};
  }
};

bool is_engine(const verify::Subject& subject) { return subject.name == "optimized"; }
bool is_engine_on_devices(const Plan& plan) {
  return is_engine(plan.subject) && plan.options.device == DeviceKind::cuda;
}

// What a check of some rows makes of random input: q, k and v of a group of heads, as doubles; for
// sums of gradients, before that, the inputs of a rank once more.
std::int64_t check_bytes(const Plan& plan) {
  if (plan.check_rows == 0) return 0;
  const Shape& s = plan.loaded.problem.shape;
  const std::int64_t rows = 8 * (s.q_tokens * s.head_dim * (s.q_heads / s.kv_heads) +
                                 s.kv_tokens * (s.head_dim + s.v_dim));
  if (!plan.backward) return rows;
  const std::int64_t inputs = s.q().size() + s.k().size() + s.v().size() + s.out().size();
  return std::max(rows, inputs / plan.options.ranks * dtype_info(plan.loaded.problem.dtype).bytes);
}

// Gradients of what is too long for a reference are checked by their sums.
std::optional<verify::GradientIdentities> wanted_identities(const Plan& plan) {
  if (!plan.loaded.by_rows || !plan.backward || plan.check_rows == 0) return std::nullopt;
  const Problem& problem = plan.loaded.problem;
  return verify::GradientIdentities(problem, plan.subject.profile(problem, plan.options));
}

void choose_rows(Plan& plan) {
  check_row_count(plan.check_rows, plan.loaded.problem);
  plan.rows = verify::sample_rows(
      make_layout(plan.options, plan.loaded.problem.shape.q_tokens, plan.options.q_layout),
      plan.check_rows);
}

Plan take_plan(Arguments& arguments) {
  Plan plan;
  plan.subject = subject_named(arguments.operands()[0], arguments);
  check_wishes(plan.subject, arguments);
  check_device_wishes(plan.subject, arguments);
  plan.options = take_run_options(arguments, {.tile_queries = plan.subject.tile_queries,
                                              .tile_keys = plan.subject.tile_keys,
                                              .many_threads = plan.subject.can.threads});
  take_device_options(arguments, plan.subject, plan.options);
  plan.check = arguments.take_switch("check");
  plan.check_rows = take_check_rows(arguments);
  plan.backward = arguments.take_switch("backward");
  plan.output_path = arguments.take_text("output");
  if (plan.output_path) check_writable("output", *plan.output_path);
  plan.trace_path = take_trace_path(arguments, plan.subject, plan.options);
  // What compares or writes everything needs everything.
  const bool by_rows = is_engine(plan.subject) && !plan.check && !plan.output_path;
  plan.loaded = load_input(arguments, {.gradients = plan.backward, .by_rows = by_rows});
  arguments.reject_unused();
  check_capabilities(plan.subject, plan.loaded.problem, plan.options);
  check_problem_on_devices(plan.subject, plan.loaded.problem, plan.options,
                           plan.account().last_pass);
  choose_rows(plan);
  require_device_of(plan.subject, plan.options.device);
  if (plan.loaded.by_rows) check_run_fits_memory(plan.account(), check_bytes(plan));
  return plan;
}

Json print_plan(const Plan& plan, Output& output) {
  Json configuration = {{"subject", plan.subject.name}};
  describe_input(plan.loaded, configuration);
  describe_run_options(plan.options, configuration);
  if (is_engine_on_devices(plan)) {
    describe_device_engine(plan.loaded.problem, plan.options, configuration);
  } else if (plan.subject.name == verify::cudnn_subject().name) {
    describe_cudnn_engine(plan.options, configuration);
  }
  output.print_configuration(configuration);
  for (const std::string& note : plan.loaded.notes) output.print("note: {}\n", note);
  return configuration;
}

Json print_result(const RunResult& result, Output& output) {
  const report::RunTotals totals = report::totals_of(result);
  print_ranks(result, output);
  output.print("\ntime {}  moved {} in {} messages  peak memory per rank {}\n",
               report::human_seconds(result.seconds), report::human_bytes(totals.sent_bytes),
               report::human_count(totals.sent_messages), report::human_bytes(totals.peak_bytes));
  return {{"seconds", result.seconds},
          {"sent_bytes", totals.sent_bytes},
          {"sent_messages", totals.sent_messages},
          {"peak_bytes_per_rank", totals.peak_bytes},
          {"leftover_messages", result.leftover_messages},
          {"ranks", ranks_json(result)}};
}

// Only what executes schedules has closed forms of its own.
void print_costs(const Plan& plan, const RunResult& result, Json& document, Output& output) {
  if (!plan.subject.can.schedules || plan.options.device == DeviceKind::cuda) return;
  RunAccount account = plan.account();
  for (const RankStats& rank : result.ranks) account.measured.push_back(&rank);
  report_costs(account, document, output);
  report_memory(account, document, output);
}

RunResult run_plan(const Plan& plan, verify::GradientIdentities* identities) {
  if (plan.loaded.by_rows) {
    return run_random_rows({.input = {plan.loaded.problem, plan.loaded.seed},
                            .options = plan.options,
                            .last_pass = plan.account().last_pass,
                            .kept_rows = plan.rows,
                            .identities = identities});
  }
  const AttentionInput input = plan.loaded.input();
  if (is_engine(plan.subject) && !is_engine_on_devices(plan)) {
    return run_engine_shown(input, plan.options);
  }
  const Progress progress("running " + plan.subject.name);
  try {
    return plan.subject.run(input, plan.options);
  } catch (const verify::Unsupported& reason) {
    if (!plan.subject.can.foreign) refuse_on_this_machine(plan.subject, reason.what());
    refuse_problem(plan.subject, reason.what());
  }
}

Report compare_rows(const Plan& plan, const RunResult& result) {
  const Progress progress("comparing rows with the fp64 reference");
  const Problem& problem = plan.loaded.problem;
  const verify::SampledCheck check{
      .problem = problem,
      .profile = plan.subject.profile(problem, plan.options),
      .rows = plan.rows,
      .threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))};
  if (plan.loaded.by_rows) {
    const RandomInput random{problem, plan.loaded.seed};
    return verify::check_sampled(check, random_groups(random, plan.rows), result.output);
  }
  return verify::check_sampled(check, verify::groups_of(plan.loaded.input()),
                               rows_of_output(result.output, plan.rows));
}

// Elements that the fp64 reference alone could not judge.
void print_settlement(const verify::Settlement& settled, Json& document, Output& output) {
  document["settled"] = {{"undecided", settled.undecided},
                         {"right", settled.right},
                         {"wrong", settled.wrong},
                         {"left", settled.left}};
  if (settled.undecided == 0) return;
  output.print(
      "check  {} elements undecided by the fp64 reference: in double-double {} right, {} WRONG, {} "
      "left\n",
      report::human_count(settled.undecided), report::human_count(settled.right),
      report::human_count(settled.wrong), report::human_count(settled.left));
}

GradientCheck gradients_checked(const Plan& plan, const verify::GradientIdentities* identities) {
  if (!plan.backward) return GradientCheck::no_gradients;
  return identities != nullptr ? GradientCheck::by_sums : GradientCheck::none;
}

// Whether the result is right, when that was asked.
bool check_plan(const Plan& plan, const RunResult& result,
                const verify::GradientIdentities* identities, Json& document, Output& output) {
  document["passed"] = nullptr;
  CheckedResult checked;
  if (plan.check) {
    const AttentionInput input = plan.loaded.input();
    checked = check_result(input, plan.subject.profile(input.problem, plan.options), result);
  } else if (plan.check_rows > 0) {
    checked.report = compare_rows(plan, result);
    document["checked_rows"] = plan.rows;
    output.print("checked {}\n", describe_rows(plan.rows.size(), plan.loaded.problem,
                                               gradients_checked(plan, identities)));
  } else {
    return true;
  }
  print_check(checked.report, output);
  if (plan.check) print_settlement(checked.settled, document, output);
  if (identities != nullptr) print_identities(*identities, document, output);
  const bool passed = checked.passed() && (identities == nullptr || identities->hold());
  document["passed"] = passed;
  document["check"] = report_json(checked.report);
  return passed;
}

Json print_paces(const RunOptions& options, const RunResult& result, Output& output) {
  std::vector<RankPace> paces;
  for (const RankStats& rank : result.ranks) paces.push_back(pace_of(rank));
  const bool simulated = options.transport == TransportKind::simulated;
  return print_pace(paces, result.seconds, simulated ? WaitsAre::simulated : WaitsAre::measured,
                    output);
}

int run(Arguments& arguments) {
  if (wants_job(arguments)) return run_job(arguments);
  if (arguments.operands()[0] == "reference") return run_reference(arguments);
  Output output(arguments);
  const Plan plan = take_plan(arguments);
  Json document = {{"configuration", print_plan(plan, output)}, {"notes", plan.loaded.notes}};
  std::optional<verify::GradientIdentities> identities = wanted_identities(plan);
  verify::GradientIdentities* const sums = identities ? &*identities : nullptr;
  const RunResult result = run_plan(plan, sums);
  document.update(print_result(result, output));
  document.update(print_paces(plan.options, result, output));
  print_costs(plan, result, document, output);
  if (plan.trace_path) {
    output.print("wrote {} events to {}\n", write_trace(*plan.trace_path, result),
                 *plan.trace_path);
  }
  const bool right = check_plan(plan, result, sums, document, output);
  if (plan.output_path && right) {
    write_results(*plan.output_path, plan.loaded, {result.output, result.gradients});
    output.print("wrote {} to {}\n", result.gradients ? "o, lse, dq, dk, dv" : "o and lse",
                 *plan.output_path);
  }
  output.finish("run", document);
  return right ? 0 : 1;
}

}  // namespace

Command run_command() {
  Command command{"run", "run one subject on given tensors; print time, bytes moved, peak memory"};
  command.operands = "SUBJECT";
  command.min_operands = command.max_operands = 1;
  command.options = problem_options();
  command.options.push_back({"output", "PATH",
                             "write o and lse (and dq, dk, dv) to a .safetensors file, or to "
                             "PATH/{o,lse,…}.npy"});
  command.options.push_back(output_shards_option());
  for (const OptionSpec& option : run_option_specs()) command.options.push_back(option);
  for (const OptionSpec& option : job_option_specs()) command.options.push_back(option);
  for (const OptionSpec& option : device_options()) command.options.push_back(option);
  command.options.push_back({"backward", "",
                             "gradients too: with --input, of the tensor do in it; else of a "
                             "random one"});
  command.options.push_back({"check", "", "compare with the fp64 reference; exit 1 when wrong"});
  command.options.push_back(check_rows_option());
  command.options.push_back(exact_option());
  command.options.push_back(trace_option());
  command.options.push_back(json_option());
  command.examples = {
      "ringlab run ring --text README.md --ranks 4 --mask causal --check",
      "ringlab run 06 --input qkv.safetensors --dtype bf16 --mask window:256,0 --output "
      "o.safetensors",
      "ringlab run optimized --text README.md --ranks 6 --schedule double:2 --backward --check",
      "ringlab run broadcast --input folder_of_npy --output results --json -",
      "ringlab run reference --input qkv.safetensors --dtype bf16 --exact --output "
      "golden.safetensors",
      "mpirun -n 4 ringlab run optimized --random --dtype bf16 --device cuda --transport nccl",
  };
  command.more =
      "`ringlab list` shows the subjects; `reference` is what they are compared with. Results are "
      "written only when the run, and the "
      "check if asked for, succeeded.";
  command.run = run;
  return command;
}

}  // namespace ringlab::cli
