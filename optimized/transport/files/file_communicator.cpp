#include "optimized/transport/files/file_communicator.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "optimized/transport/files/folder_file.h"
#include "optimized/transport/post_check.h"
#include "reference/core/error.h"

namespace ringlab {
namespace {

// One note for the whole job: the first failure that is written down is the one all are told.
constexpr const char* kFailed = "failed";  // "RANK\nWHY" of a rank that failed
constexpr std::int64_t kLongestNote = std::int64_t{1} << 20;
constexpr std::chrono::milliseconds kBetweenLooks{10};
constexpr std::chrono::microseconds kShortestPause{100}, kLongestPause{5000};

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::string name_of(int rank) { return "rank " + std::to_string(rank); }

std::string receive_text(int from, int tag) {
  return "receive tag " + std::to_string(tag) + " from " + name_of(from);
}

}  // namespace

FileCommunicator::FileCommunicator(FolderPlace place)
    : place_(std::move(place)), next_id_(place_.rank), next_look_(Clock::now()) {
  if (place_.rank >= 0 && place_.rank < place_.ranks && place_.timeout_s > 0) return;
  throw_usage_error({.where = place_.folder.string(),
                     .expected = "a rank below the ranks, and a timeout above 0 s",
                     .actual = name_of(place_.rank) + " of " + std::to_string(place_.ranks) + ", " +
                               std::to_string(place_.timeout_s) + " s"});
}

std::filesystem::path FileCommunicator::file_of(int from, int to, int tag,
                                                std::int64_t number) const {
  // FROM-TO.TAG.NUMBER: with a number per line of messages no name is ever used twice.
  return place_.folder / (std::to_string(from) + "-" + std::to_string(to) + "." +
                          std::to_string(tag) + "." + std::to_string(number));
}

Request FileCommunicator::new_request() {
  // The rank is part of the number, so that a request handed to another rank is recognised.
  const std::int64_t id = next_id_;
  next_id_ += ranks();
  return {id};
}

void FileCommunicator::write(const std::filesystem::path& file,
                             std::span<const std::byte> bytes) const {
  std::filesystem::path part = file;
  part += ".part";
  // Renamed when complete: a receiver sees all of a message or nothing.
  write_folder_file(part, file, bytes, name_of(rank()));
}

Request FileCommunicator::post_send(int to, int tag, std::span<const std::byte> bytes) {
  check_post({rank(), "post_send", to, tag}, ranks());
  check_others("post a send to " + name_of(to));
  // Complete when this returns, so waiting for a send has nothing to do.
  write(file_of(rank(), to, tag, sent_[{to, tag}]++), bytes);
  traffic_.sent_bytes += std::ssize(bytes);
  ++traffic_.sent_messages;
  const Request request = new_request();
  sends_[request.id] = to;
  return request;
}

Request FileCommunicator::post_receive(int from, int tag, std::span<std::byte> buffer) {
  check_post({rank(), "post_receive", from, tag}, ranks());
  check_others("post a receive from " + name_of(from));
  const Request request = new_request();
  // Numbered at the post, so receives may be waited for in any order.
  receives_[request.id] = {from, tag, file_of(from, rank(), tag, expected_[{from, tag}]++), buffer};
  return request;
}

void FileCommunicator::wait(Request request) {
  if (sends_.erase(request.id) != 0) return;
  const auto found = receives_.find(request.id);
  if (found == receives_.end()) {
    throw_usage_error({.where = name_of(rank()) + ", wait",
                       .expected = "a request this rank posted and has not waited for",
                       .actual = "request " + std::to_string(request.id),
                       .hint = "Wait once for every request, on the rank that posted it"});
  }
  const OpenReceive receive = found->second;
  const auto begin = Clock::now();
  std::chrono::microseconds pause = kShortestPause;
  // Longer and longer pauses, up to 5 ms: a folder may lie on a network.
  while (!take(receive, begin)) {
    check_others(receive_text(receive.from, receive.tag));
    if (seconds_since(begin) >= place_.timeout_s) fail(receive, begin, "no message");
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
  receives_.erase(found);
  traffic_.received_bytes += std::ssize(receive.buffer);
  ++traffic_.received_messages;
}

bool FileCommunicator::take(const OpenReceive& receive, Clock::time_point begin) {
  const std::optional<FolderFile> file = FolderFile::open(receive.file);
  if (!file) return false;
  if (file->size() != std::ssize(receive.buffer)) {
    fail(receive, begin,
         "a message of " + std::to_string(file->size()) + " bytes, not " +
             std::to_string(receive.buffer.size()) +
             ": sender and receiver disagree about the size");
  }
  file->read(receive.buffer);
  std::error_code ignored;
  // Names are not used again, so a file that cannot be removed is litter and does no harm.
  std::filesystem::remove(receive.file, ignored);
  return true;
}

void FileCommunicator::fail(const OpenReceive& receive, Clock::time_point begin,
                            const std::string& reason) {
  // The others are told first: this rank is about to leave.
  abort(reason);
  throw RankError({.rank = rank(),
                   .suspect = receive.from,
                   .operation = receive_text(receive.from, receive.tag),
                   .reason = reason,
                   .elapsed_s = seconds_since(begin)});
}

void FileCommunicator::check_others(const std::string& operation) {
  // A look at the folder costs a call of the file system, so it is taken every 10 ms at most.
  if (!failed_ && Clock::now() < next_look_) return;
  next_look_ = Clock::now() + kBetweenLooks;
  const std::optional<FolderFile> file = FolderFile::open(place_.folder / kFailed);
  if (!file && !failed_) return;
  // A rank that failed and could not write its note blames itself.
  std::istringstream note(file ? file->text(kLongestNote) : std::to_string(rank()));
  int who = rank();
  note >> who;
  note.ignore(1);
  const std::string why(std::istreambuf_iterator<char>(note), {});
  failed_ = true;
  throw RankError({.rank = rank(),
                   .suspect = who,
                   .operation = operation,
                   .reason = name_of(who) + " failed" + (why.empty() ? "" : " (" + why + ")")});
}

void FileCommunicator::abort(const std::string& why) noexcept {
  if (std::exchange(failed_, true)) return;
  try {
    const std::filesystem::path failed = place_.folder / kFailed;
    if (FolderFile::open(failed)) return;  // the first failure counts
    const std::string note = (std::to_string(rank()) + "\n" + why).substr(0, kLongestNote);
    std::filesystem::path part = failed;
    // Temporary names of ranks differ, so two that fail at once do not write into one file; the
    // last rename wins, which names a failure as well.
    part += "." + std::to_string(rank());
    write_folder_file(part, failed, bytes_of(note.data(), std::ssize(note)), name_of(rank()));
  } catch (...) {  // the others find out at their deadline
  }
}

}  // namespace ringlab
