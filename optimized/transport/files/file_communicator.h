// Messages as files in a folder that all ranks see: for the few words of a job, not for its data.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "optimized/transport/communicator.h"

namespace ringlab {

/// One rank's end. Sends are buffered: a message is a file, written under a temporary name and
/// renamed when complete, that its receiver removes.
class FileCommunicator final : public Communicator {
 public:
  struct FolderPlace {
    std::filesystem::path folder;  ///< of these ranks alone; must exist
    int rank = 0;
    int ranks = 1;
    double timeout_s = 60.0;  ///< a wait longer than this is a RankError
  };

  /// Usage error for a rank that is not below ranks, and for a timeout that is not positive.
  explicit FileCommunicator(FolderPlace place);

  int rank() const override { return place_.rank; }
  int ranks() const override { return place_.ranks; }
  Request post_send(int to, int tag, std::span<const std::byte> bytes) override;
  Request post_receive(int from, int tag, std::span<std::byte> buffer) override;
  void wait(Request request) override;
  const Traffic& traffic() const override { return traffic_; }

  /// Calls of JobSession. The folder is looked into every few milliseconds only.
  void check_others(const std::string& operation);
  void abort(const std::string& why) noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  struct OpenReceive {
    int from = 0;
    int tag = 0;
    std::filesystem::path file = {};
    std::span<std::byte> buffer = {};
  };
  /// A peer and a tag.
  using Line = std::pair<int, int>;

  std::filesystem::path file_of(int from, int to, int tag, std::int64_t number) const;
  void write(const std::filesystem::path& file, std::span<const std::byte> bytes) const;
  /// Takes the message: true when it was there; it is removed then.
  bool take(const OpenReceive& receive, Clock::time_point begin);
  [[noreturn]] void fail(const OpenReceive& receive, Clock::time_point begin,
                         const std::string& reason);
  Request new_request();

  const FolderPlace place_;
  std::int64_t next_id_;
  std::map<std::int64_t, OpenReceive> receives_;
  std::map<std::int64_t, int> sends_;  // not waited for; to whom
  std::map<Line, std::int64_t> sent_, expected_;
  Clock::time_point next_look_;
  bool failed_ = false;
  Traffic traffic_;
};

}  // namespace ringlab
