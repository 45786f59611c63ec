#include "optimized/transport/nccl/nccl_group.h"

#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "optimized/transport/nccl/nccl_calls.h"
#include "reference/core/error.h"

namespace ringlab::nccl {
namespace {

constexpr std::chrono::microseconds kPause{50};
constexpr int kSharesDevices = 23000;
constexpr const char* kSharesVariable = "NCCL_MULTI_RANK_GPU_ENABLE";  // off unless it is set
// Thread blocks of an exchange where ranks share a device: those of all ranks, and of attention,
// must be on it at the same time, or each waits for what has no room.
constexpr int kMostBlocksOfSharers = 4;

std::string reason_of(ncclResult_t status, ncclComm_t communicator) {
  std::string reason = calls().get_error_string(status);
  const char* const last = calls().get_last_error(communicator);
  if (last && *last) reason += std::string(" (") + last + ")";
  return reason;
}

/// Environment error that names the rank, the call and NCCL's reason unless it went well, or goes
/// on.
void check_nccl(ncclResult_t status, const char* call, int rank, ncclComm_t communicator) {
  if (status == ncclSuccess || status == ncclInProgress) return;
  throw_environment_error({.where = "rank " + std::to_string(rank) + ", " + call,
                           .expected = "success",
                           .actual = reason_of(status, communicator),
                           .hint = "NCCL_DEBUG=INFO says more"});
}

int loaded_version(int rank) {
  int version = 0;
  check_nccl(calls().get_version(&version), "ncclGetVersion", rank, nullptr);
  return version;
}

/// The words by which a rank introduces itself to the others.
struct Introduction {
  ncclUniqueId id = {};  // that of rank 0 counts
  int version = 0;
  bool may_share = false;  // its NCCL was told that ranks share devices
  std::string device;
};

/// Reads the variable as NCCL does.
bool may_share_devices() {
  const char* const text = std::getenv(kSharesVariable);
  return text && std::strtoll(text, nullptr, 0) != 0;
}

std::string introduction_of(const GroupPlace& place) {
  ncclUniqueId id{};
  if (place.rank == 0) {
    check_nccl(calls().get_unique_id(&id), "ncclGetUniqueId", place.rank, nullptr);
  }
  return std::string(id.internal, sizeof id.internal) + std::to_string(loaded_version(place.rank)) +
         (may_share_devices() ? " 1 " : " 0 ") + place.device;
}

/// Reads an introduction; empty when it is cut off.
std::optional<Introduction> parsed(const std::string& text) {
  Introduction introduction;
  const std::size_t end = text.find(' ', sizeof introduction.id);
  if (text.size() <= sizeof introduction.id || end == std::string::npos) return {};
  constexpr std::size_t kFlag = 3;  // " 1 "
  if (text.size() < end + kFlag) return {};
  std::memcpy(introduction.id.internal, text.data(), sizeof introduction.id);
  introduction.version = std::atoi(text.c_str() + sizeof introduction.id);
  introduction.may_share = text[end + 1] == '1';
  introduction.device = text.substr(end + kFlag);
  return introduction;
}

std::vector<Introduction> check_introductions(const GroupPlace& place,
                                              const std::vector<std::string>& texts) {
  std::vector<Introduction> introductions;
  for (const std::string& text : texts) {
    if (auto introduction = parsed(text)) introductions.push_back(std::move(*introduction));
  }
  if (introductions.size() == static_cast<std::size_t>(place.ranks)) return introductions;
  throw_environment_error(
      {.where = "rank " + std::to_string(place.rank),
       .expected = "the introductions of " + std::to_string(place.ranks) + " ranks",
       .actual = std::to_string(texts.size()) + ", or some that are cut off"});
}

void check_versions(const std::vector<Introduction>& ranks) {
  for (std::size_t rank = 1; rank < ranks.size(); ++rank) {
    if (ranks[rank].version == ranks[0].version) continue;
    throw_environment_error(
        {.where = "rank " + std::to_string(rank),
         .expected = "NCCL " + version_text(ranks[0].version) + ", which rank 0 has",
         .actual = "NCCL " + version_text(ranks[rank].version),
         .hint = "Let RINGLAB_NCCL_LIBRARY name the same release on all machines"});
  }
}

/// Two ranks on one device, the first of them first.
struct Sharers {
  std::size_t first = 0, second = 0;
};
std::optional<Sharers> sharers_of(const std::vector<Introduction>& ranks) {
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    for (std::size_t other = 0; other < rank; ++other) {
      if (ranks[other].device == ranks[rank].device) return Sharers{other, rank};
    }
  }
  return {};
}

/// Refuses shared devices where NCCL cannot share them. Before 2.30 it cannot, and does not say
/// whose device it is; later ones want to be told, all of them, since any rank may be who looks for
/// duplicates.
void check_sharing(const std::vector<Introduction>& ranks, const Sharers& sharers) {
  const Introduction& second = ranks[sharers.second];
  const auto refuse = [&](const std::string& rank, const std::string& expected,
                          const std::string& found, const std::string& hint) {
    throw_environment_error({.where = "rank " + rank,
                             .expected = "a device for every rank, or " + expected,
                             .actual = "device " + second.device + " of ranks " +
                                       std::to_string(sharers.first) + " and " +
                                       std::to_string(sharers.second) + ", and " + found,
                             .hint = hint + "; ranks of one process can share a device"});
  };
  if (second.version < kSharesDevices) {
    refuse(std::to_string(sharers.second), "NCCL 2.30", "NCCL " + version_text(second.version),
           "Use as many ranks as devices");
  }
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].may_share) continue;
    refuse(std::to_string(rank), std::string(kSharesVariable) + "=1 for all ranks",
           "a rank without it",
           "Use as many ranks as devices, or set " + std::string(kSharesVariable) + "=1");
  }
}

}  // namespace

Group::Group(const GroupPlace& place, const TellAll& tell_all) : place_(place) {
  const std::vector<std::string> texts = tell_all(introduction_of(place));
  const std::vector<Introduction> introductions = check_introductions(place, texts);
  check_versions(introductions);
  const std::optional<Sharers> sharers = sharers_of(introductions);
  if (sharers) check_sharing(introductions, *sharers);
  try {
    const int wanted = place.most_blocks > 0 ? place.most_blocks : NCCL_CONFIG_UNDEF_INT;
    connect(texts.front(), sharers ? kMostBlocksOfSharers : wanted);
  } catch (...) {
    abort();
    throw;
  }
}

// Not blocking: a rank that never comes would otherwise hold the others in NCCL for ever. With
// `blocking = 0` every call may return ncclInProgress, and settle() asks until it is over.
void Group::connect(const std::string& introduction_of_rank_0, int most_blocks) {
  const auto begin = Clock::now();
  const ncclUniqueId id = parsed(introduction_of_rank_0)->id;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  config.maxCTAs = most_blocks;
  const ncclResult_t status =
      calls().init_rank(&communicator_, place_.ranks, id, place_.rank, &config);
  const std::string operation = "connect " + std::to_string(place_.ranks) + " ranks";
  if (status != ncclSuccess && status != ncclInProgress) {
    fail(operation, begin, reason_of(status, nullptr));
  }
  settle(operation, begin);
}

// NCCL's finalize waits for all operations: the deadline holds here, too, and then abort() is left.
Group::~Group() {
  if (!communicator_) return;
  if (has_failed_) {
    abort();
    return;
  }
  const auto begin = Clock::now();
  ncclResult_t status = calls().finalize(communicator_);
  while (status == ncclInProgress && Clock::now() - begin < place_.deadline) {
    // All parts go between group_start and group_end: sends and receives of a group meet in any
    // order, so that two ranks that send to each other do not wait for each other.
    std::this_thread::sleep_for(kPause);
    if (calls().get_async_error(communicator_, &status) != ncclSuccess) break;
  }
  if (status == ncclSuccess) {
    calls().destroy(communicator_);
  } else {
    calls().abort(communicator_);
  }
}

void Group::exchange(std::span<const GroupMessage> parts, CUstream_st* stream,
                     const std::string& operation) {
  const auto begin = Clock::now();
  check_usable(operation);
  ncclResult_t status = calls().group_start();
  for (const GroupMessage& part : parts) {
    if (part.bytes == 0 || (status != ncclSuccess && status != ncclInProgress)) continue;
    const auto bytes = static_cast<std::size_t>(part.bytes);
    status = part.side == Side::send
                 ? calls().send(part.memory, bytes, ncclInt8, part.peer, communicator_, stream)
                 : calls().receive(part.memory, bytes, ncclInt8, part.peer, communicator_, stream);
  }
  const ncclResult_t ended = calls().group_end();  // also after an error, or no group could follow
  for (const ncclResult_t result : {status, ended}) {
    if (result == ncclSuccess || result == ncclInProgress) continue;
    fail(operation, begin, reason_of(result, communicator_));
  }
  settle(operation, begin);
}

void Group::wait(const std::function<bool()>& is_over, const std::string& operation) {
  const auto begin = Clock::now();
  check_usable(operation);
  while (!is_over()) {
    is_in_progress(operation, begin);
    pause(operation, begin);
  }
}

void Group::check(const std::string& operation) {
  check_usable(operation);
  is_in_progress(operation, Clock::now());
}

void Group::check_usable(const std::string& operation) {
  if (!communicator_ || has_failed_) {
    fail(operation, Clock::now(), "the communicator failed or was aborted before");
  }
}

void Group::abort() noexcept {
  if (communicator_) calls().abort(std::exchange(communicator_, nullptr));
}

void Group::settle(const std::string& operation, Clock::time_point begin) {
  while (is_in_progress(operation, begin)) pause(operation, begin);
}

bool Group::is_in_progress(const std::string& operation, Clock::time_point begin) {
  ncclResult_t news = ncclSuccess;
  const ncclResult_t status = calls().get_async_error(communicator_, &news);
  for (const ncclResult_t result : {status, news}) {
    if (result == ncclSuccess || result == ncclInProgress) continue;
    fail(operation, begin, reason_of(result, communicator_));
  }
  return news == ncclInProgress;
}

void Group::pause(const std::string& operation, Clock::time_point begin) {
  try {
    if (place_.check_others) place_.check_others(operation);
  } catch (...) {
    has_failed_ = true;
    throw;
  }
  if (Clock::now() - begin >= place_.deadline) {
    fail(operation, begin, "no end within " + std::to_string(place_.deadline.count()) + " ms");
  }
  std::this_thread::sleep_for(kPause);
}

void Group::fail(const std::string& operation, Clock::time_point begin, const std::string& reason) {
  has_failed_ = true;
  const std::chrono::duration<double> elapsed = Clock::now() - begin;
  throw RankError({.rank = place_.rank,
                   .operation = operation,
                   .reason = reason,
                   .elapsed_s = elapsed.count()});
}

std::string require_nccl() {
  return version_text(loaded_version(0)) + " (" + calls().library.file + ")";
}

}  // namespace ringlab::nccl
