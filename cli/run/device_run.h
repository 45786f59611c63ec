// `ringlab run SUBJECT --device cuda`: what is refused, and what the engine says of itself.
#pragma once

#include <string>
#include <vector>

#include "cli/line/arguments.h"
#include "cli/line/output.h"
#include "property_tests/subject.h"

namespace ringlab::cli {

/// Usage error where the subject has no kernels for devices, and for options without effect there.
void check_device_wishes(const verify::Subject& subject, const Arguments& arguments);

/// --graph, --free-sms and --deterministic, of `run`.
std::vector<OptionSpec> device_options();
/// Into `options`. Usage error for a subject whose runs on devices do not take what is given; on the
/// CPU they are not taken.
void take_device_options(Arguments& arguments, const verify::Subject& subject, RunOptions& options);

/// --deterministic alone, of `verify`, too.
OptionSpec deterministic_option();
void take_deterministic(Arguments& arguments, RunOptions& options);

/// Usage error for what the subject cannot do on any device; known without one, so that the same
/// command line ends alike on every machine. Other subjects, and the CPU, are left alone.
void check_problem_on_devices(const verify::Subject& subject, const Problem& problem,
                              const RunOptions& options, Pass last_pass);

/// Usage error where the subject does not run on that device; environment error that says what is
/// missing where it cannot be used here.
void require_device_of(const verify::Subject& subject, DeviceKind device);

/// Adds the kernels and devices that the engine uses; takes away what has no effect on them.
void describe_device_engine(const Problem& problem, const RunOptions& options, Json& configuration);

/// The same for the subject cudnn.
void describe_cudnn_engine(const RunOptions& options, Json& configuration);

/// What a job computes with, as rank 0 found it.
struct DeviceJob {
  std::string kernels, nccl;
  const RunOptions& options;
};
/// The same for --transport nccl, whose deadlines have an effect.
void describe_device_job(const DeviceJob& job, Json& configuration);

}  // namespace ringlab::cli
