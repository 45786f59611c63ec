// Messages of ranks besides data: "whom are you waiting for?", and "the job has failed".
#pragma once

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <vector>

namespace ringlab::mpi {

/// Environment error that names the rank and the call unless `code` is MPI_SUCCESS.
void check_mpi(int code, int rank, const char* call);

inline constexpr int kNobody = -1;
inline constexpr int kEverybody = -2;  ///< of a rank that waits for the job's end

inline std::string name_of(int rank) { return "rank " + std::to_string(rank); }

/// News that the job has failed.
struct Failed {
  int finder = kNobody;
  int suspect = kNobody;
  std::string why = {};
  bool asked_to_end = false;  ///< the suspect, which is well
};

/// State of a rank: whom it waits for (a rank, kEverybody, or kNobody when it is at work), and for
/// how long it has.
struct Activity {
  int waiting_for = kNobody;
  double seconds = 0;
};

/// A second communicator, so that questions overtake data. Answers come only while a rank calls
/// poll(): silence betrays a rank whose watching thread has died with its process. Not thread-safe.
class ControlChannel {
 public:
  /// Duplicates `comm`; collective.
  explicit ControlChannel(MPI_Comm comm);
  ~ControlChannel();
  ControlChannel(const ControlChannel&) = delete;
  ControlChannel& operator=(const ControlChannel&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  /// Sets this rank's state from now on: it waits for a rank or kEverybody, or works (kNobody).
  void set_waiting_for(int peer);
  Activity activity() const;
  /// Deals with all that has arrived.
  void poll();
  const std::optional<Failed>& failed() const { return failed_; }

  void ask(int peer);
  /// The answer of `peer` to the last ask(); empty as long as there is none.
  std::optional<Activity> answer(int peer) const {
    return answers_[static_cast<std::size_t>(peer)];
  }

  /// Tells all others; from now on failed() is set here too.
  void announce(const Failed& failed);
  /// Never call MPI again: memory that messages on their way refer to is about to die.
  void abandon() { abandoned_ = true; }
  bool is_abandoned() const { return abandoned_; }

 private:
  enum class NoteKind : std::int32_t { question, answer, failed, asked_to_end };
  struct Note {
    NoteKind kind = NoteKind::question;
    std::int32_t about = kNobody;
    double seconds = 0;
    std::array<char, 496> text{};
  };
  struct Outgoing {
    Note note;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  void send(int peer, Note note);
  void receive_next();
  void handle(int from);
  void forget_sent();

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0;
  int ranks_ = 1;
  int waiting_for_ = kNobody;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
  bool abandoned_ = false;
  Note arriving_;
  MPI_Request arrival_ = MPI_REQUEST_NULL;
  std::list<Outgoing> outgoing_;
  std::vector<std::optional<Activity>> answers_;  // per rank
  std::optional<Failed> failed_;
};

}  // namespace ringlab::mpi
