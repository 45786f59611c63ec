#include "optimized/transport/files/folder_session.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "optimized/transport/files/file_communicator.h"
#include "optimized/transport/files/file_meeting.h"
#include "optimized/transport/files/folder_file.h"
#include "reference/core/error.h"

namespace ringlab {
namespace {

constexpr int kSessionTag = 0x7ffffffe;  // nobody else's

std::string hexadecimal(std::uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

/// A text that no other rank says, now or in another run.
std::string random_text() {
  std::random_device source;
  return hexadecimal((std::uint64_t{source()} << 32) | source());
}

/// FNV-1a (Fowler, Noll & Vo 1991). Texts are of one length, so none can be cut in two ways.
std::uint64_t hash_of(const std::vector<std::string>& texts) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  for (const std::string& text : texts) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  }
  return hash;
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code failure;
  // All ranks try at once; whoever comes late finds it made.
  std::filesystem::create_directories(folder, failure);
  if (std::filesystem::is_directory(folder, failure)) return;  // perhaps another rank was faster
  throw_environment_error({.where = folder.string(),
                           .expected = "a folder, or room for one",
                           .actual = failure ? failure.message() : "something else"});
}

void check_job(const FolderJob& job) {
  if (job.rank >= 0 && job.rank < job.ranks && job.timeout_s > 0) return;
  throw_usage_error({.where = job.folder.string(),
                     .expected = "a rank below the ranks, and a timeout above 0 s",
                     .actual = "rank " + std::to_string(job.rank) + " of " +
                               std::to_string(job.ranks) + ", " + std::to_string(job.timeout_s) +
                               " s"});
}

std::chrono::milliseconds milliseconds_of(double seconds) {
  constexpr double kLongest = 1e9;  // thirty years
  return std::chrono::ceil<std::chrono::milliseconds>(
      std::chrono::duration<double>(std::min(seconds, kLongest)));
}

/// The folder of this one job, which all ranks know once they have met: random texts of all of them
/// make its name, so no run meets messages of an earlier one.
std::filesystem::path job_folder(const FolderJob& job, FileMeeting& meeting) {
  std::filesystem::path folder =
      job.folder / ("job-" + hexadecimal(hash_of(meeting.tell_all(random_text()))));
  make_folder(folder);
  // Somebody else may have put a link where the folder was to be: messages would go elsewhere.
  if (std::filesystem::is_symlink(folder)) {
    throw_environment_error({.where = folder.string(),
                             .expected = "a folder that the ranks of this job have made",
                             .actual = "a link",
                             .hint = "Use a folder that nobody else can write to"});
  }
  return folder;
}

class FolderSession final : public JobSession {
 public:
  FolderSession(const FolderJob& job, FileMeeting& meeting)
      : folder_(job_folder(job, meeting)),
        timeout_s_(job.timeout_s),
        network_(
            {.folder = folder_, .rank = job.rank, .ranks = job.ranks, .timeout_s = job.timeout_s}) {
    come_together();  // from here on nobody reads what the meeting has written
  }
  ~FolderSession() override {
    if (finished_) remove(folder_);  // the last rank to go finds it empty
  }
  FolderSession(const FolderSession&) = delete;
  FolderSession& operator=(const FolderSession&) = delete;

  int rank() const override { return network_.rank(); }
  int ranks() const override { return network_.ranks(); }
  Communicator& network() override { return network_; }
  void check_others(const std::string& operation) override { network_.check_others(operation); }
  void abort(const std::string& why) noexcept override { network_.abort(why); }

  void outlast(int peer, const std::string& operation, const std::function<bool()>& done) override {
    const auto begin = std::chrono::steady_clock::now();
    while (!done()) {
      const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
      if (waited.count() >= timeout_s_) {
        throw RankError({.rank = rank(),
                         .suspect = peer,
                         .operation = operation,
                         .reason = "nothing done by rank " + std::to_string(peer),
                         .elapsed_s = waited.count()});
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  void finish() override {
    // Ranks go as soon as they hear of it: the folder must not be empty until all have been told.
    const std::filesystem::path kept = folder_ / "finishing";
    if (rank() == 0) write_folder_file(folder_ / "finishing.part", kept, {}, "rank 0");
    come_together();
    if (rank() == 0) remove(kept);
    finished_ = true;
  }

 private:
  static void remove(const std::filesystem::path& path) {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }

  // Messages without bytes: that they come is all they say.
  void send(int peer) { network_.wait(network_.post_send(peer, kSessionTag, {})); }
  void receive(int peer) { network_.wait(network_.post_receive(peer, kSessionTag, {})); }

  /// Returns when all ranks have come here.
  /// By way of rank 0: 2 (P − 1) messages, a few times in a job.
  void come_together() {
    if (rank() == 0) {
      for (int peer = 1; peer < ranks(); ++peer) receive(peer);
      for (int peer = 1; peer < ranks(); ++peer) send(peer);
    } else {
      send(0);
      receive(0);
    }
  }

  const std::filesystem::path folder_;
  const double timeout_s_;
  FileCommunicator network_;
  bool finished_ = false;
};

}  // namespace

std::unique_ptr<JobSession> start_in_folder(const FolderJob& job) {
  check_job(job);
  make_folder(job.folder);
  FileMeeting meeting({.folder = job.folder,
                       .name = "rank",
                       .run = "job",
                       .rank = job.rank,
                       .ranks = job.ranks,
                       .deadline = milliseconds_of(job.timeout_s)});
  return std::make_unique<FolderSession>(job, meeting);
}

}  // namespace ringlab
