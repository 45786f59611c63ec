#include "cli/run/job_plan.h"

#include <fmt/format.h>

#include "cli/inputs/modifier_options.h"
#include "cli/line/output.h"
#include "cli/run/device_run.h"
#include "cli/run/run_check.h"
#include "cli/run/run_options.h"
#include "optimized/cpu/vectors.h"
#include "optimized/ring/device_engine.h"
#include "optimized/ring/vendor/cudnn_engine.h"
#include "property_tests/engine_subject.h"
#include "property_tests/vendor_subject.h"
#include "reference/core/error.h"

namespace ringlab::cli {
namespace {

verify::Subject take_subject(const Arguments& arguments, Carrier carrier) {
  const std::string& name = arguments.operands()[0];
  verify::Subject engine = verify::engine_subject(), cudnn = verify::cudnn_subject();
  if (name == engine.name) return engine;
  if (carrier == Carrier::nccl && name == cudnn.name) return cudnn;
  throw_usage_error({"--transport " + carrier_name(carrier),
                     carrier == Carrier::nccl
                         ? "the subject optimized or cudnn, which run on processes"
                         : "the subject optimized, which runs on processes",
                     name, fmt::format("Run {} with --transport threads.", name)});
}

// The first of these is what each carrier serves.
void check_device(DeviceKind device, Carrier carrier) {
  const bool on_devices = device == DeviceKind::cuda;
  if (carrier == Carrier::mpi && on_devices) {
    throw_usage_error(
        {"--device", "cpu with --transport mpi", "cuda", "--transport nccl is for devices."});
  }
  if (carrier == Carrier::nccl && !on_devices) {
    throw_usage_error({"--device", "cuda with --transport nccl", "cpu",
                       "Give --device cuda; --transport mpi is for CPUs."});
  }
}

RunOptions take_options(Arguments& arguments, const verify::Subject& subject, Carrier carrier,
                        int ranks) {
  if (carrier == Carrier::nccl) check_device_wishes(subject, arguments);
  RunOptions options = take_run_options(
      arguments, {.ranks = ranks, .tile_queries = cpu::kTileQueries, .tile_keys = cpu::kTileKeys});
  if (options.ranks != ranks) {
    throw_usage_error({"--ranks", fmt::format("{}, the size of the job", ranks),
                       fmt::format("{}", options.ranks),
                       fmt::format("Leave it out with --transport {}.", carrier_name(carrier))});
  }
  check_device(options.device, carrier);
  take_device_options(arguments, subject, options);
  return options;
}

// Paths of files that rank 0 alone writes are checked where it runs.
void take_trace(Arguments& arguments, const JobSession& session, JobPlan& plan) {
  plan.trace_path = arguments.take_text("trace");
  plan.options.trace = plan.trace_path.has_value();
  if (session.rank() != 0 || !plan.trace_path) return;
  check_file("trace", *plan.trace_path);
}

}  // namespace

ring::AttentionOf JobPlan::attention() const {
  return subject.name == verify::cudnn_subject().name ? ring::AttentionOf::cudnn
                                                      : ring::AttentionOf::ringlab;
}

std::string carrier_name(Carrier carrier) { return carrier == Carrier::mpi ? "mpi" : "nccl"; }

JobPlan take_job_plan(Arguments& arguments, Carrier carrier, const JobSession& session) {
  const verify::Subject subject = take_subject(arguments, carrier);
  refuse_unknown_modifiers(arguments, subject);
  JobPlan plan{.carrier = carrier,
               .subject = subject,
               .options = take_options(arguments, subject, carrier, session.ranks())};
  plan.check = arguments.take_switch("check");
  plan.check_rows = take_check_rows(arguments);
  plan.backward = arguments.take_switch("backward");
  plan.output = take_job_output(arguments);
  take_trace(arguments, session, plan);
  plan.input = load_rank_input(arguments, plan.options,
                               {.rank = session.rank(),
                                .whole = plan.checks(),
                                .whole_if_random = plan.check,
                                .gradients = plan.backward});
  arguments.reject_unused();
  check_row_count(plan.check_rows, plan.input.problem);
  if (carrier == Carrier::nccl) {
    check_problem_on_devices(plan.subject, plan.input.problem, plan.options,
                             plan.backward ? Pass::backward : Pass::forward);
    ring::require_nccl();
    if (plan.subject.require) plan.subject.require();
  }
  return plan;
}

}  // namespace ringlab::cli
