#include "optimized/transport/failure.h"

#include <new>

namespace ringlab::in_process {
namespace {

std::string rank_name(int rank) { return "rank " + std::to_string(rank); }

bool names_rank(const std::string& where, int rank) {
  const std::string name = rank_name(rank);
  return where == name || where.starts_with(name + ",") || where.starts_with(name + ":");
}

Error foreign_error(int rank, const std::string& text) {
  return Error(ErrorKind::environment,
               {.where = rank_name(rank), .expected = "", .actual = text, .hint = ""});
}

}  // namespace

void FirstFailure::record(int rank, const Error& error) {
  if (error_) return;
  rank_ = rank;
  error_ = error;
}

void FirstFailure::rethrow() const { throw Error(*error_); }

void FirstFailure::throw_to_survivor(int rank, const std::string& doing) const {
  if (rank == rank_ || rank_ == kEveryRank) rethrow();
  throw wait_error(rank, doing, rank_name(rank_) + " failed (" + error_->what() + ")", "");
}

Error error_of_rank(int rank, const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    ErrorParts parts = error.parts();
    if (!names_rank(parts.where, rank)) {
      parts.where = rank_name(rank) + (parts.where.empty() ? "" : ", " + parts.where);
    }
    return Error(error.kind(), std::move(parts));
  } catch (const std::bad_alloc&) {
    return foreign_error(rank, "out of memory");
  } catch (const std::exception& error) {
    return foreign_error(rank, error.what());
  } catch (...) {
    return foreign_error(rank, "an exception of unknown type");
  }
}

Error wait_error(int rank, const std::string& doing, const std::string& found,
                 const std::string& hint) {
  return Error(ErrorKind::environment,
               {.where = rank_name(rank), .expected = doing, .actual = found, .hint = hint});
}

Error size_error(int rank, const Message& message) {
  return wait_error(rank,
                    describe({Direction::receive, std::make_shared<Message>(message)}) + " in " +
                        std::to_string(message.target.size()) + " bytes",
                    "a message of " + std::to_string(message.sent_bytes) + " bytes",
                    "Sender and receiver disagree about the size");
}

Error deadlock_error(const std::vector<std::optional<Operation>>& waiting) {
  std::string list;
  for (std::size_t rank = 0; rank < waiting.size(); ++rank) {
    if (!waiting[rank]) continue;
    if (!list.empty()) list += "; ";
    list += rank_name(static_cast<int>(rank)) + " waits " + describe(*waiting[rank]);
  }
  return Error(ErrorKind::environment,
               {.where = "network",
                .expected = "some rank able to go on",
                .actual = "a deadlock: " + list,
                .hint = "Post every send and receive of a step before waiting for any of them"});
}

void check_ranks(int ranks) {
  if (ranks >= 1) return;
  throw_usage_error(
      {.where = "ranks", .expected = "at least 1", .actual = std::to_string(ranks), .hint = ""});
}

}  // namespace ringlab::in_process
