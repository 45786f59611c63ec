#include "cli/run/run_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <optional>
#include <set>
#include <thread>

#include "cli/inputs/problem_options.h"
#include "cli/inputs/run_options.h"
#include "cli/line/output.h"
#include "cli/line/progress.h"
#include "cli/report/human.h"
#include "cli/run/run_output.h"
#include "reference/attention/exact.h"
#include "reference/precise/correctly_rounded.h"
#include "reference/precise/rounded_gradients.h"

namespace ringlab::cli {
namespace {

struct ReferencePlan {
  bool exact = false;
  int threads = 1;
  std::optional<std::string> output_path;
  LoadedInput loaded;
  std::set<std::string> defaults;  ///< names of options that were not given

  std::int64_t rows() const {
    const Shape& shape = loaded.problem.shape;
    return shape.batch * shape.q_heads * shape.q_tokens;
  }
};

struct ReferenceResult {
  AttentionOutput output;
  std::optional<AttentionGradients> gradients = {};
  Json said = Json::object();  // how sure the numbers are
};

ReferencePlan take_reference_plan(Arguments& arguments) {
  ReferencePlan plan;
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  plan.exact = arguments.take_switch("exact");
  plan.defaults = left_to_defaults(arguments);
  plan.threads = static_cast<int>(take_whole(arguments, "threads", cores));
  const bool backward = arguments.take_switch("backward");
  plan.output_path = arguments.take_text("output");
  if (plan.output_path) check_output(*plan.output_path);
  plan.loaded =
      load_input(arguments, {.gradients = backward ? Gradients::of_input : Gradients::none});
  arguments.reject_unused();
  if (plan.exact) check_roundable(plan.loaded.problem);
  return plan;
}

double largest(const Tensor<double>& errors) {
  double most = 0;
  for (const double error : errors.values()) most = std::max(most, error);
  return most;
}

Tensor<double> rounded_tensor(DType dtype, Tensor<double> tensor) {
  for (double& x : tensor.values()) x = round_to(dtype, x);
  return tensor;
}

ReferenceResult compute_fp64(const ReferencePlan& plan, Output& output) {
  const Progress progress("computing the fp64 reference");
  const AttentionInput input = plan.loaded.input();
  const DType dtype = input.problem.dtype;
  ExactForward exact = exact_forward(input, {.threads = plan.threads});
  ReferenceResult result;
  result.said = {{"o_error", json_number(largest(exact.out_error))},
                 {"lse_error", json_number(largest(exact.lse_error))}};
  output.print("fp64 reference, before rounding: o within {:.3g}, lse within {:.3g}\n",
               largest(exact.out_error), largest(exact.lse_error));
  const DType lse_dtype = dtype == DType::f64 ? DType::f64 : DType::f32;
  result.output = {rounded_tensor(dtype, std::move(exact.out)),
                   rounded_tensor(lse_dtype, std::move(exact.lse))};
  if (!input.dout) return result;
  ExactBackward back = exact_backward(input, *input.dout, plan.threads);
  output.print("  dq within {:.3g}, dk within {:.3g}, dv within {:.3g}\n", largest(back.dq_error),
               largest(back.dk_error), largest(back.dv_error));
  result.said.update({{"dq_error", json_number(largest(back.dq_error))},
                      {"dk_error", json_number(largest(back.dk_error))},
                      {"dv_error", json_number(largest(back.dv_error))}});
  result.gradients = {rounded_tensor(dtype, std::move(back.dq)),
                      rounded_tensor(dtype, std::move(back.dk)),
                      rounded_tensor(dtype, std::move(back.dv))};
  return result;
}

void print_effort(const RoundingEffort& effort, DType dtype, Json& said, Output& output) {
  using report::human_count;
  output.print(
      "o and lse correctly rounded to {}: {} elements, {} decided in double-double, {} by their "
      "side of a midpoint, {} of them ties\n",
      dtype_info(dtype).name, human_count(effort.elements), human_count(effort.by_double_double),
      human_count(effort.by_sign), human_count(effort.ties));
  said.update({{"elements", effort.elements},
               {"by_double_double", effort.by_double_double},
               {"by_sign", effort.by_sign},
               {"ties", effort.ties},
               {"most_bits", std::max(effort.most_bits, effort.most_sign_bits)}});
}

AttentionGradients round_gradients(const ReferencePlan& plan, Json& said, Output& output) {
  std::atomic<std::int64_t> done{0};
  const Progress progress("gradients, in intervals", {&done, plan.rows()});
  const AttentionInput input = plan.loaded.input();
  RoundedGradients gradients = rounded_backward(
      input, *input.dout, input.problem.dtype,
      {.threads = plan.threads, .progress = [&](auto rows, auto) { done = rows; }});
  output.print("dq, dk and dv rounded from intervals of {} bits: {} elements undecided\n",
               gradients.bits, report::human_count(gradients.undecided));
  said.update({{"gradient_bits", gradients.bits}, {"gradients_undecided", gradients.undecided}});
  return {std::move(gradients.dq), std::move(gradients.dk), std::move(gradients.dv)};
}

ReferenceResult compute_exactly(const ReferencePlan& plan, Output& output) {
  const AttentionInput input = plan.loaded.input();
  const DType dtype = input.problem.dtype;
  ReferenceResult result;
  {
    std::atomic<std::int64_t> done{0};
    const Progress progress("rounding correctly", {&done, plan.rows()});
    CorrectlyRounded forward = correctly_rounded_forward(
        input, {.dtype = dtype, .work = {.threads = plan.threads, .progress = [&](auto rows, auto) {
                                           done = rows;
                                         }}});
    result.output = {std::move(forward.out), std::move(forward.lse)};
    print_effort(forward.effort, dtype, result.said, output);
  }
  if (input.dout) result.gradients = round_gradients(plan, result.said, output);
  return result;
}

}  // namespace

int run_reference(Arguments& arguments) {
  Output output(arguments);
  const ReferencePlan plan = take_reference_plan(arguments);
  Json configuration = {{"subject", "reference"}, {"exact", plan.exact}};
  describe_input(plan.loaded, configuration);
  configuration["threads"] = plan.threads;
  output.print_configuration(configuration, plan.defaults);
  for (const std::string& note : plan.loaded.notes) output.print("note: {}\n", note);
  const auto start = std::chrono::steady_clock::now();
  ReferenceResult result = plan.exact ? compute_exactly(plan, output) : compute_fp64(plan, output);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  output.print("\ntime {}\n", report::human_seconds(seconds));
  Json document = {{"configuration", configuration}, {"notes", plan.loaded.notes}};
  document["seconds"] = seconds;
  document[plan.exact ? "exact" : "certified"] = std::move(result.said);
  if (plan.output_path) {
    write_results(*plan.output_path, plan.loaded, {result.output, result.gradients},
                  output.files());
    output.write_at_the_end(fmt::format("wrote {} to {}",
                                        result.gradients ? "o, lse, dq, dk, dv" : "o and lse",
                                        *plan.output_path));
  }
  return output.finish("run", document);
}

}  // namespace ringlab::cli
