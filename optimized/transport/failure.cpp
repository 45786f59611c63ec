#include "optimized/transport/failure.h"

#include <new>
#include <string_view>
#include <utility>

#include "reference/core/machine/machine_failure.h"

namespace ringlab::in_process {
namespace {

std::string rank_name(int rank) { return "rank " + std::to_string(rank); }

// Looks at the character after the number, too: "rank 1" is not "rank 12".
bool names_rank(const std::string& where, int rank) {
  const std::string name = rank_name(rank);
  return where == name || where.starts_with(name + ",") || where.starts_with(name + ":");
}

/// True when `later`, of the same rank, tells at which step `first` happened.
bool adds_the_step(const Error& first, const Error& later) {
  const auto* before = dynamic_cast<const RankError*>(&first);
  const auto* after = dynamic_cast<const RankError*>(&later);
  return before && after && before->failure().step < 0 && after->failure().step >= 0;
}

/// True when `later` explains `first`: ranks that wait for one whose device is stuck may reach
/// their deadlines before it does.
bool is_the_cause(const Error& first, const Error& later) {
  return dynamic_cast<const DeviceStuck*>(&later) && !dynamic_cast<const DeviceStuck*>(&first);
}

std::shared_ptr<const Error> foreign_error(int rank, const std::string& text) {
  return std::make_shared<const Error>(
      ErrorKind::environment, ErrorParts{.where = rank_name(rank), .expected = "", .actual = text});
}

/// The text is so short that copies of the error need no memory.
std::shared_ptr<const Error> out_of_memory(int rank) {
  return std::make_shared<const MachineError>(
      ErrorParts{.where = rank_name(rank), .actual = "out of memory"});
}

/// The error of a rank that threw something of the standard library.
std::shared_ptr<const Error> standard_error(int rank, const std::exception& thrown) {
  if (dynamic_cast<const std::bad_alloc*>(&thrown)) return out_of_memory(rank);
  const std::optional<MachineError> of_machine = machine_failure(thrown, rank_name(rank));
  if (of_machine) return std::make_shared<const MachineError>(*of_machine);
  return foreign_error(rank, thrown.what());
}

/// A copy of the same type, so that catch clauses still tell errors apart.
std::shared_ptr<const Error> copy_of(const Error& error) {
  if (const auto* of_rank = dynamic_cast<const RankError*>(&error)) {
    return std::make_shared<const RankError>(*of_rank);
  }
  if (const auto* stuck = dynamic_cast<const DeviceStuck*>(&error)) {
    return std::make_shared<const DeviceStuck>(*stuck);
  }
  if (const auto* of_machine = dynamic_cast<const MachineError*>(&error)) {
    return std::make_shared<const MachineError>(*of_machine);
  }
  return std::make_shared<const Error>(error);
}

ErrorParts with_rank(ErrorParts parts, int rank) {
  if (names_rank(parts.where, rank)) return parts;
  parts.where = rank_name(rank) + (parts.where.empty() ? "" : ", " + parts.where);
  return parts;
}

}  // namespace

FirstFailure::FirstFailure(int ranks) {
  for (int rank = 0; rank < ranks; ++rank) {
    out_of_memory_.push_back(out_of_memory(rank));
  }
}

void FirstFailure::record(int rank, const Error& error) {
  // Three ways in: there is none yet, the same rank knows its step now, or this is what caused it.
  const bool same_rank = rank == rank_;
  if (error_ && !(same_rank && adds_the_step(*error_, error)) && !is_the_cause(*error_, error)) {
    return;
  }
  error_ = copy_of(error);
  rank_ = rank;
}

void FirstFailure::record_thrown(int rank, const std::exception_ptr& thrown) noexcept {
  try {
    record(rank, *error_of_rank(rank, thrown));
  } catch (...) {  // no memory left to say what it was: record() copies texts
    if (error_) return;
    // Made when there was memory; handing it on needs none.
    error_ = out_of_memory_[static_cast<std::size_t>(rank)];
    rank_ = rank;
  }
}

void FirstFailure::rethrow() const { throw_copy(*error_); }

void FirstFailure::throw_to_survivor(int rank, const std::string& doing) const {
  // The failed rank itself gets its own error, type and all; a deadlock is everybody's own.
  if (rank == rank_ || rank_ == kEveryRank) rethrow();
  throw wait_error({.rank = rank, .doing = doing}, rank_,
                   rank_name(rank_) + " failed (" + error_->what() + ")");
}

void throw_copy(const Error& error) {
  if (const auto* of_rank = dynamic_cast<const RankError*>(&error)) throw RankError(*of_rank);
  if (const auto* stuck = dynamic_cast<const DeviceStuck*>(&error)) throw DeviceStuck(*stuck);
  if (const auto* of_machine = dynamic_cast<const MachineError*>(&error)) {
    throw MachineError(*of_machine);
  }
  throw Error(error);
}

std::shared_ptr<const Error> error_of_rank(int rank, const std::exception_ptr& thrown) {
  // The most special type first: a DeviceStuck is a MachineError, and all three are Errors.
  try {
    std::rethrow_exception(thrown);
  } catch (const RankError& error) {
    return std::make_shared<const RankError>(error);
  } catch (const DeviceStuck& error) {
    return std::make_shared<const DeviceStuck>(with_rank(error.parts(), rank));
  } catch (const MachineError& error) {
    return std::make_shared<const MachineError>(with_rank(error.parts(), rank));
  } catch (const Error& error) {
    return std::make_shared<const Error>(error.kind(), with_rank(error.parts(), rank));
  } catch (const std::exception& error) {
    return standard_error(rank, error);
  } catch (...) {
    return foreign_error(rank, "an exception of unknown type");
  }
}

RankError wait_error(const Attempt& attempt, int suspect, const std::string& reason) {
  constexpr std::string_view kTo = "to ";  // RankError writes it itself
  std::string operation = attempt.doing;
  if (operation.starts_with(kTo)) operation.erase(0, kTo.size());
  return RankError({.rank = attempt.rank,
                    .suspect = suspect,
                    .operation = std::move(operation),
                    .reason = reason,
                    .elapsed_s = attempt.elapsed_s});
}

RankError size_error(int rank, const PairedMessage& message) {
  const std::string doing =
      describe({Direction::receive, std::make_shared<PairedMessage>(message)}) + " in " +
      std::to_string(message.target.size()) + " bytes";
  return wait_error({.rank = rank, .doing = doing}, message.from,
                    "a message of " + std::to_string(message.sent_bytes) +
                        " bytes: sender and receiver disagree about the size");
}

RankError deadlock_error(const std::vector<std::optional<HalfMessage>>& waiting,
                         const MessageTable& table) {
  // The list is the message: in a circle of waiting every rank is as guilty as the next.
  std::string list;
  std::string advice = "post every send and receive of a step before waiting for any of them";
  Attempt first{.rank = kEveryRank};
  for (std::size_t rank = 0; rank < waiting.size(); ++rank) {
    if (!waiting[rank]) continue;
    if (!list.empty()) list += "; ";
    list += rank_name(static_cast<int>(rank)) + " waits " + describe(*waiting[rank]);
    if (first.rank != kEveryRank) continue;
    first = {.rank = static_cast<int>(rank), .doing = describe(*waiting[rank])};
    if (const std::optional<HalfMessage> other = table.other_tag(*waiting[rank])) {
      advice = rank_name(peer_of(*waiting[rank])) + " has posted " + describe(*other) +
               ", and nobody the other end of that: do both ends use the same tag?";
    }
  }
  return wait_error(first, kEveryRank, "a deadlock: " + list + " (" + advice + ")");
}

void check_ranks(int ranks) {
  if (ranks >= 1) return;
  throw_usage_error({.where = "ranks", .expected = "at least 1", .actual = std::to_string(ranks)});
}

}  // namespace ringlab::in_process
