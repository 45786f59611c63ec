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
                           .actual = std::string(text.data()),
                           .hint = ""});
}

ControlChannel::ControlChannel(MPI_Comm comm) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &ranks_);
  check_mpi(MPI_Comm_dup(comm, &comm_), rank_, "MPI_Comm_dup");
  MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  answers_.resize(static_cast<std::size_t>(ranks_));
  receive_next();
}

ControlChannel::~ControlChannel() {
  if (abandoned_) return;
  MPI_Cancel(&arrival_);
  MPI_Wait(&arrival_, MPI_STATUS_IGNORE);
  for (Outgoing& each : outgoing_) MPI_Wait(&each.request, MPI_STATUS_IGNORE);
  MPI_Comm_free(&comm_);
}

void ControlChannel::receive_next() {
  check_mpi(MPI_Irecv(&arriving_, sizeof arriving_, MPI_BYTE, MPI_ANY_SOURCE, 0, comm_, &arrival_),
            rank_, "MPI_Irecv");
}

void ControlChannel::poll() {
  if (abandoned_) return;
  for (;;) {
    int done = 0;
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
      return send(from, NoteKind::answer, waiting_for_, "");
    case NoteKind::answer:
      answers_[static_cast<std::size_t>(from)] = arriving_.about;
      return;
    case NoteKind::failed:
      arriving_.text.back() = '\0';
      if (!failed_) failed_ = {from, arriving_.about, arriving_.text.data()};
      return;
  }
}

void ControlChannel::ask(int peer) {
  answers_[static_cast<std::size_t>(peer)].reset();
  send(peer, NoteKind::question, kNobody, "");
}

void ControlChannel::announce(const Failed& failed) {
  if (abandoned_) return;
  if (!failed_) failed_ = failed;
  for (int peer = 0; peer < ranks_; ++peer) {
    if (peer != rank_) send(peer, NoteKind::failed, failed.suspect, failed.why);
  }
}

void ControlChannel::send(int peer, NoteKind kind, int about, const std::string& text) {
  Outgoing& out = outgoing_.emplace_back();
  out.note.kind = kind;
  out.note.about = about;
  const std::size_t length = std::min(text.size(), out.note.text.size() - 1);
  std::memcpy(out.note.text.data(), text.data(), length);
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
