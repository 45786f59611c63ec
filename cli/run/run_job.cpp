#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "cli/inputs/run_options.h"
#include "cli/inputs/subjects.h"
#include "cli/run/job.h"
#include "optimized/transport/files/folder_session.h"
#include "optimized/transport/mpi/mpi_session.h"
#include "reference/core/machine_error.h"

namespace ringlab::cli {
namespace {

constexpr double kDefaultTimeoutSeconds = 60;
// A rank that failed stays that long, so that the launcher does not end the others unheard; with
// the grace before it less than the second that mpirun leaves between SIGTERM and SIGKILL.
constexpr std::chrono::milliseconds kStay{300};

int tell(const JobSession& session, const Error& error) {
  fmt::print(stderr, "ringlab: {}\n", error.what());
  if (const auto* of_rank = dynamic_cast<const RankError*>(&error)) {
    if (!of_rank->failure().recording.empty()) {
      fmt::print(stderr, "rank {}, its last events:\n{}\n", session.rank(),
                 of_rank->failure().recording);
    }
  }
  std::fflush(stderr);
  return error.exit_code();
}

// What the ranks found wrong before the run, said by rank 0.
int end_before_run(JobSession& session, const JobFailure& failure) {
  if (session.rank() == 0) fmt::print(stderr, "ringlab: {}\n", failure.text);
  std::fflush(stderr);
  session.finish();
  return failure.exit_code;
}

int end_with_failure(JobSession& session, const Error& error) {
  session.abort(error.what());
  const int code = tell(session, error);
  std::this_thread::sleep_for(kStay);
  return code;
}

// A wrong --timeout is reported once there is a session to do it with.
double timeout_of(Arguments& arguments) {
  try {
    return take_number(arguments, "timeout", kDefaultTimeoutSeconds);
  } catch (const Error&) {
    return kDefaultTimeoutSeconds;
  }
}

// The ranks that meet in a folder have been told their numbers by whoever started them.
FolderJob take_folder_job(Arguments& arguments) {
  for (const char* option : {"ranks", "rank", "meet"}) {
    if (arguments.given(option)) continue;
    throw_usage_error({fmt::format("--{}", option),
                       "--ranks P, --rank R and --meet FOLDER together", "none",
                       "With mpirun none of the three is needed."});
  }
  const auto ranks = take_whole(arguments, "ranks", 1);
  const auto rank = arguments.take_integer("rank", 0, 0, ranks - 1);
  return {.folder = *arguments.take_text("meet"),
          .rank = static_cast<int>(rank),
          .ranks = static_cast<int>(ranks),
          .timeout_s = timeout_of(arguments)};
}

std::unique_ptr<JobSession> start_session(Arguments& arguments) {
  const bool nccl = place_of(arguments).transport == TransportKind::nccl;
  if (nccl && (arguments.given("meet") || arguments.given("rank"))) {
    return start_in_folder(take_folder_job(arguments));
  }
  if (nccl && !mpi_available()) {
    throw_environment_error({"--transport nccl", "--ranks P, --rank R and --meet FOLDER",
                             "a build without MPI, which would bring the ranks together",
                             "Give these three, or build with -DRINGLAB_MPI=ON"});
  }
  return start_mpi({.timeout_s = timeout_of(arguments)});
}

int run_in(JobSession& session, Arguments& arguments) {
  std::optional<Output> output;
  std::optional<RunPlan> plan;
  std::optional<Error> wrong;
  try {
    if (session.rank() == 0) output.emplace(arguments);
    arguments.take_text("json");  // rank 0's, whose other ranks would seem to ignore it
    plan = take_run_plan(arguments, &session);
  } catch (const Error& error) {
    wrong = error;
  }
  if (const auto failure = share_failure(wrong, session.network())) {
    return end_before_run(session, *failure);
  }
  const int code = run_job_rank(*plan, output ? &*output : nullptr, session);
  session.finish();
  return code;
}

}  // namespace

int run_job(Arguments& arguments) {
  const std::unique_ptr<JobSession> session = start_session(arguments);
  try {
    return run_in(*session, arguments);
  } catch (const DeviceStuck& error) {  // destructors would wait for the device
    const int code = end_with_failure(*session, error);
    std::fflush(nullptr);
    std::_Exit(code);
  } catch (const Error& error) {
    return end_with_failure(*session, error);
  } catch (const std::exception& error) {
    const bool memory = dynamic_cast<const std::bad_alloc*>(&error) != nullptr;
    return end_with_failure(
        *session, Error(ErrorKind::environment,
                        {.where = fmt::format("rank {}", session->rank()),
                         .actual = memory ? std::string("out of memory") : error.what()}));
  }
}

}  // namespace ringlab::cli
