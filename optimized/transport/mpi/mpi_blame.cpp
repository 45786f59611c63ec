#include "optimized/transport/mpi/mpi_blame.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace ringlab::mpi {

Clock::duration duration_of(double seconds) {
  const std::chrono::duration<double> bounded(std::min(seconds, 1e9));
  return std::chrono::duration_cast<Clock::duration>(bounded);
}

namespace {

std::string chain_text(const std::vector<int>& chain) {
  std::string text;
  for (const int rank : chain) text += (text.empty() ? "rank " : " → ") + std::to_string(rank);
  return text;
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

std::vector<int> others_of(const ControlChannel& control) {
  std::vector<int> others;
  for (int rank = 0; rank < control.ranks(); ++rank) {
    if (rank != control.rank()) others.push_back(rank);
  }
  return others;
}

/// Asks all of `peers` at once and waits until all have answered or the grace is over. False when
/// the question has gone meanwhile.
bool ask(const Inquiry& inquiry, const std::vector<int>& peers) {
  // All at once: asking P ranks takes one grace, not P of them.
  for (const int peer : peers) inquiry.control.ask(peer);
  const auto end = Clock::now() + inquiry.grace;
  const auto has_answered = [&](int peer) { return inquiry.control.answer(peer).has_value(); };
  while (!std::ranges::all_of(peers, has_answered) && Clock::now() < end) {
    if (!inquiry.pause()) return false;
    inquiry.control.poll();
  }
  return true;
}

std::optional<Suspicion> dead(const PeerProcesses& processes, int rank) {
  // Gone for certain: the system says so of processes of this machine, and of those only.
  if (processes.look(rank) != ProcessState::gone) return {};
  return Suspicion{rank, name_of(rank) + " is dead: " + processes.name_of(rank) + " has ended"};
}

// Called when the grace is over; only what the system knows tells a stopped rank from a dead one.
Suspicion silent(const Inquiry& inquiry, int rank) {
  if (inquiry.processes.look(rank) == ProcessState::stopped) {
    return {rank, name_of(rank) + " is stopped: " + inquiry.processes.name_of(rank)};
  }
  const auto grace = std::chrono::duration_cast<std::chrono::milliseconds>(inquiry.grace).count();
  return {rank, name_of(rank) + " does not answer within " + std::to_string(grace) +
                    " ms: it is dead, stopped or inside MPI"};
}

/// A rank that answered is to blame when it has been at one thing for too long.
std::optional<Suspicion> overdue(const Inquiry& inquiry, int rank) {
  const Activity activity = *inquiry.control.answer(rank);
  // It has got on within the timeout: busy, and no suspect.
  if (activity.seconds < inquiry.timeout_s) return {};
  if (activity.waiting_for == kNobody) {
    return Suspicion{rank, name_of(rank) + " has been at work for " +
                               seconds_text(activity.seconds) +
                               " without a message; if its steps take that long, choose a longer "
                               "timeout"};
  }
  return Suspicion{rank, name_of(rank) + " still waits for " + name_of(activity.waiting_for)};
}

/// For one that waits for the end of the job: the first rank that is silent is to blame, else the
/// first that is at something else for too long.
std::optional<Suspicion> find_among_all(const Inquiry& inquiry) {
  const std::vector<int> others = others_of(inquiry.control);
  if (!ask(inquiry, others)) return {};
  // A rank that waits for the end has done its part. If all do, MPI itself does not go on.
  bool all_wait_for_the_end = true;
  for (const int rank : others) {
    if (!inquiry.control.answer(rank)) return silent(inquiry, rank);
    if (inquiry.control.answer(rank)->waiting_for == kEverybody) continue;
    all_wait_for_the_end = false;
    if (auto late = overdue(inquiry, rank)) return late;
  }
  // Somebody is at work and not late: it is asked again later.
  if (!all_wait_for_the_end) return {};
  return Suspicion{kNobody, "all ranks answer and none of them goes on"};
}

}  // namespace

std::optional<Suspicion> find_dead_here(const ControlChannel& control,
                                        const PeerProcesses& processes) {
  for (const int rank : others_of(control)) {
    if (auto found = dead(processes, rank)) return found;
  }
  return {};
}

std::optional<Suspicion> find_dead(const Inquiry& inquiry) {
  if (auto found = find_dead_here(inquiry.control, inquiry.processes)) return found;
  std::vector<int> unseen;
  // Nobody of this machine was dead; others have to be asked, and silence means dead there.
  for (const int rank : others_of(inquiry.control)) {
    if (inquiry.processes.look(rank) == ProcessState::unknown) unseen.push_back(rank);
  }
  if (!ask(inquiry, unseen)) return {};
  for (const int rank : unseen) {
    if (!inquiry.control.answer(rank)) return silent(inquiry, rank);
  }
  return {};
}

std::optional<Suspicion> find_suspect(const Inquiry& inquiry, int peer) {
  if (peer == kEverybody) {
    auto found = find_dead_here(inquiry.control, inquiry.processes);
    return found ? found : find_among_all(inquiry);
  }
  // Every rank on the chain waits for the next one. The chain ends at a rank that is silent, that
  // waits for nobody, or that stands on it already: then the wait is a circle, and no rank's fault.
  std::vector<int> chain = {inquiry.control.rank()};
  for (int next = peer;;) {
    const bool closed = std::ranges::find(chain, next) != chain.end();
    chain.push_back(next);
    if (closed) {
      return Suspicion{kNobody, "a deadlock: " + chain_text(chain) + " wait for each other"};
    }
    // Without asking: a dead process of this machine costs no grace.
    if (auto found = dead(inquiry.processes, next)) return found;
    if (!ask(inquiry, {next})) return {};
    const std::optional<Activity> answer = inquiry.control.answer(next);
    if (!answer) return silent(inquiry, next);
    // It has left its last send or receive behind, so it will never send what is waited for.
    if (answer->waiting_for == kEverybody) {
      return Suspicion{next, name_of(next) + " has ended its part"};
    }
    // At work: to blame only when that lasts longer than the timeout.
    if (answer->waiting_for == kNobody) return overdue(inquiry, next);
    if (answer->seconds < inquiry.timeout_s) return {};  // it has got on, and asks by itself
    next = answer->waiting_for;
  }
}

}  // namespace ringlab::mpi
