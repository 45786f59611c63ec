// `ringlab run SUBJECT --device cuda`: what is refused, and what the engine says of itself.
#pragma once

#include "cli/arguments.h"
#include "cli/output.h"
#include "property_tests/subject.h"

namespace ringlab::cli {

/// Usage error where the subject has no kernels for devices, and for options without effect there.
void check_device_wishes(const verify::Subject& subject, const Arguments& arguments);

/// Adds the kernels and devices that the engine uses; takes away what has no effect on them.
void describe_device_engine(const Problem& problem, const RunOptions& options, Json& configuration);

/// What a job computes with, as rank 0 found it.
struct DeviceJob {
  std::string kernels, nccl;
};
/// The same for --transport nccl, whose deadlines have an effect.
void describe_device_job(const DeviceJob& job, Json& configuration);

}  // namespace ringlab::cli
