// One rank's end of a network: post sends and receives, then wait. The same interface serves
// threads, the simulator, MPI and files; NCCL moves groups of messages on a stream (nccl_group.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <span>

namespace ringlab {

/// Messages and payload bytes that one rank has moved so far.
struct Traffic {
  std::int64_t sent_bytes = 0;
  std::int64_t sent_messages = 0;
  std::int64_t received_bytes = 0;
  std::int64_t received_messages = 0;
};

/// Handle of one posted operation. Valid until waited for; belongs to the communicator it came
/// from.
struct Request {
  std::int64_t id = -1;
};

/// Non-blocking point-to-point messages between ranks. Messages from one rank to another with the
/// same tag are matched with its receives in the order of posting; which of them is complete first
/// is open. Used by one thread only (the rank's own).
///
/// Errors: every call throws an environment error when a deadline passes, when another rank has
/// failed, or when no progress is possible; the message names this rank, the operation, the peer
/// and the tag it was waiting for. A receive whose buffer is not exactly as long as the message is
/// an environment error too (a broken protocol), never a truncation.
class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;

  /// Starts sending. The bytes must stay alive and unchanged until wait() returns.
  virtual Request post_send(int to, int tag, std::span<const std::byte> bytes) = 0;
  /// Starts receiving. The buffer must stay alive and untouched until wait() returns.
  virtual Request post_receive(int from, int tag, std::span<std::byte> buffer) = 0;
  /// Returns when the operation is complete: the receive buffer is full, the send buffer reusable.
  virtual void wait(Request request) = 0;
  /// Called by a rank that fails, before it frees the buffers of operations that it has not waited
  /// for: nothing reads or writes them from now on. The rank posts nothing any more. `why` is for
  /// other ranks, if they have to be told at once.
  virtual void let_go([[maybe_unused]] const char* why) noexcept {}

  virtual const Traffic& traffic() const = 0;
};

/// Runs `body`, which posts operations and waits for them. If it fails, let_go() is called, so that
/// the caller may free the buffers.
template <class Body>
void let_go_on_error(Communicator& network, const Body& body) {
  try {
    body();
  } catch (const std::exception& error) {
    network.let_go(error.what());
    throw;
  } catch (...) {
    network.let_go("an unknown error");
    throw;
  }
}

/// Bytes of an array, for sending and receiving.
template <class T>
std::span<const std::byte> bytes_of(const T* data, std::int64_t count) {
  return {reinterpret_cast<const std::byte*>(data), static_cast<std::size_t>(count) * sizeof(T)};
}
template <class T>
std::span<std::byte> writable_bytes_of(T* data, std::int64_t count) {
  return {reinterpret_cast<std::byte*>(data), static_cast<std::size_t>(count) * sizeof(T)};
}

}  // namespace ringlab
