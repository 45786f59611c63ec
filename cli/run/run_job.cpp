#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "cli/inputs/run_options.h"
#include "cli/inputs/subjects.h"
#include "cli/line/launcher.h"
#include "cli/run/job.h"
#include "optimized/transport/files/folder_session.h"
#include "optimized/transport/mpi/mpi_session.h"
#include "reference/core/machine/machine_error.h"

namespace ringlab::cli {
namespace {

constexpr double kDefaultTimeoutSeconds = 60;
// A rank that failed stays that long, so that the launcher does not end the others unheard; with
// the grace before it less than the second that mpirun leaves between SIGTERM and SIGKILL.
constexpr std::chrono::milliseconds kStay{300};

int tell(const JobSession& session, const Error& error) {
  std::string text = fmt::format("ringlab: {}\n", error.what());
  if (const auto* of_rank = dynamic_cast<const RankError*>(&error)) {
    if (!of_rank->failure().recording.empty()) {
      text += fmt::format("rank {}, its last events:\n{}\n", session.rank(),
                          of_rank->failure().recording);
    }
  }
  say_to_user(text);
  told_failure() = error.exit_code();
  return error.exit_code();
}

int end_with_failure(JobSession& session, const Error& error) {
  session.abort(error.what());
  const int code = tell(session, error);
  tell_as_json(session.rank(), error, error.what());
  std::this_thread::sleep_for(kStay);
  return code;
}

// Called by a thread of the session when the job has failed while this rank computes, or hangs in
// MPI: tells it early, since launchers kill soon, and waits for no device and no peer.
[[noreturn]] void end_at_once(const Error& error) {
  static std::atomic_flag has_spoken;
  while (has_spoken.test_and_set()) std::this_thread::sleep_for(kStay);  // another thread ends it
  const int told = told_failure();
  const auto* const of_rank = dynamic_cast<const RankError*>(&error);
  const std::string prefix = of_rank != nullptr ? "" : rank_prefix();
  if (told == 0) {
    say_to_user(fmt::format("ringlab: {}{}\n", prefix, error.what()));
    tell_as_json(of_rank != nullptr ? of_rank->failure().rank : -1, error, error.what());
  }
  io::discard_uncommitted_files();
  if (told == 0) std::this_thread::sleep_for(kStay);
  std::_Exit(told != 0 ? told : error.exit_code());
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
  return start_mpi({.timeout_s = timeout_of(arguments), .last_word = end_at_once});
}

int run_in(JobSession& session, Arguments& arguments) {
  std::optional<Output> output;
  std::optional<RunPlan> plan;
  std::optional<Error> wrong;
  io::AtomicFiles others;  // of a rank without an output
  try {
    if (session.rank() == 0) output.emplace(arguments);
    arguments.take_text("json");  // rank 0's, whose other ranks would seem to ignore it
    plan = take_run_plan(arguments, &session);
  } catch (const Error& error) {
    wrong = error;
  }
  if (const auto failure = share_failure(wrong, session.network())) {
    return end_job(session, *failure);
  }
  const JobEnd end{output ? &*output : nullptr, output ? output->files() : others};
  if (plan->output) expect_job_output(*plan->output, end.files);
  agree_on_job(arguments, *plan, session.network());
  return run_job_rank(*plan, end, session);
}

}  // namespace

int run_job(Arguments& arguments) {
  std::signal(SIGPIPE, SIG_IGN);  // a launcher that is killed closes its pipe: files still go
  tell_failures_to(arguments.text("json"));
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
