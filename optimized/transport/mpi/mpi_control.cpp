#include "optimized/transport/mpi/mpi_control.h"

#include <algorithm>
#include <cstring>

#include "reference/core/error.h"

namespace ringlab::mpi {

void check_mpi(int code, int rank, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw_environment_error({.where = "rank " + std::to_string(rank),
                           .expected = std::string(call) + " to succeed",
                           .actual = std::string(text.data())});
}

ControlChannel::ControlChannel(MPI_Comm comm) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &ranks_);
  // A communicator of its own: notes can be received from any source and never meet data.
  check_mpi(MPI_Comm_dup(comm, &comm_), rank_, "MPI_Comm_dup");
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  answers_.resize(static_cast<std::size_t>(ranks_));
  // One receive is always posted, for the next note of whomever.
  receive_next();
}

ControlChannel::~ControlChannel() {
  if (abandoned_) return;
  // A receive that is cancelled has to be completed as well.
  MPI_Cancel(&arrival_);
  MPI_Wait(&arrival_, MPI_STATUS_IGNORE);
  for (Outgoing& each : outgoing_) MPI_Wait(&each.request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm_);
}

void ControlChannel::set_waiting_for(int peer) {
  waiting_for_ = peer;
  since_ = std::chrono::steady_clock::now();
}

Activity ControlChannel::activity() const {
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - since_;
  return {waiting_for_, time.count()};
}

void ControlChannel::receive_next() {
  // Bytes of the struct as they are: all ranks run the same build, on one kind of machine.
  check_mpi(MPI_Irecv(&arriving_, sizeof arriving_, MPI_BYTE, MPI_ANY_SOURCE, 0, comm_, &arrival_),
            rank_, "MPI_Irecv");
}

void ControlChannel::poll() {
  if (abandoned_) return;
  for (;;) {
    int done = 0;
    // All that is there; the last receive stays posted. Handled before the next is posted,
    // because both use `arriving_`.
    MPI_Status status;
    check_mpi(MPI_Test(&arrival_, &done, &status), rank_, "MPI_Test");
    if (!done) break;
    handle(status.MPI_SOURCE);
    receive_next();
  }
  forget_sent();
}

void ControlChannel::handle(int from) {
  switch (arriving_.kind) {
    case NoteKind::question:
      return send(from,
                  // At once, from whichever thread polls: that is what
                  // makes silence mean something.
                  {.kind = NoteKind::answer, .about = waiting_for_, .seconds = activity().seconds});
    case NoteKind::answer:
      answers_[static_cast<std::size_t>(from)] = {arriving_.about, arriving_.seconds};
      return;
    case NoteKind::failed:
    case NoteKind::asked_to_end:
      // Text of others is ended here, whatever they sent.
      arriving_.text.back() = '\0';
      // The first news counts: later ones are consequences, or the same from another finder.
      if (failed_) return;
      failed_ = {from, arriving_.about, arriving_.text.data(),
                 arriving_.kind == NoteKind::asked_to_end};
      return;
  }
}

void ControlChannel::ask(int peer) {
  // An old answer would be taken for a new one.
  answers_[static_cast<std::size_t>(peer)].reset();
  send(peer, {});
}

void ControlChannel::announce(const Failed& failed) {
  if (abandoned_) return;
  // Told to the others even when this rank heard first: they may have heard of nothing yet.
  if (!failed_) failed_ = failed;
  Note note{.kind = failed.asked_to_end ? NoteKind::asked_to_end : NoteKind::failed,
            .about = failed.suspect};
  // Too long a reason is cut: a note has one size.
  const std::size_t length = std::min(failed.why.size(), note.text.size() - 1);
  std::memcpy(note.text.data(), failed.why.data(), length);
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer != rank_) send(peer, note);
  }
}

void ControlChannel::send(int peer, Note note) {
  // A list: MPI reads the note until its send is complete, so it must not move.
  Outgoing& out = outgoing_.emplace_back();
  out.note = note;
  check_mpi(MPI_Isend(&out.note, sizeof out.note, MPI_BYTE, peer, 0, comm_, &out.request), rank_,
            "MPI_Isend");
}

void ControlChannel::forget_sent() {
  std::erase_if(outgoing_, [](Outgoing& each) {
    int done = 0;
    MPI_Test(&each.request, &done, MPI_STATUS_IGNORE);
    return done != 0;
  });
}

}  // namespace ringlab::mpi
