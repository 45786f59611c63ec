// A fibre: code with a stack of its own that runs when it is resumed and stops where it suspends.
#pragma once

#include <boost/context/fiber.hpp>
#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <functional>
#include <memory>

namespace ringlab {

/// Stacks of one size, with guard pages, that the fibres of one thread use one after the other.
/// Copies share them. Stacks are kept from one use to the next, because touched pages cost nothing
/// again.
class Stacks {
 public:
  explicit Stacks(std::size_t bytes);
  boost::context::stack_context allocate();  ///< std::bad_alloc where there is no memory
  void deallocate(boost::context::stack_context& stack) noexcept;

 private:
  struct Kept;
  std::shared_ptr<Kept> kept_;
};
/// The stacks of the calling thread, of `bytes` each (more where a sanitizer needs more).
Stacks make_stacks(std::size_t bytes);

/// A body with a stack, resumed and suspended on one operating system thread. Must have ended when
/// it is destroyed, or never been resumed. The body must not throw, and must not suspend while it
/// handles an exception: exceptions in handling belong to the thread, and would mix with those of
/// another fibre.
class Fibre {
 public:
  Fibre(Stacks& stacks, std::function<void()> body);
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  void resume();   ///< from outside, until the body suspends or ends
  void suspend();  ///< from inside
  bool has_begun() const { return has_begun_; }
  bool has_ended() const { return has_ended_; }

 private:
  boost::context::fiber enter(boost::context::fiber&& outside);

  Stacks stacks_;
  std::function<void()> body_;
  boost::context::stack_context stack_;
  boost::context::fiber inside_;
  boost::context::fiber outside_;
  bool has_begun_ = false;
  bool has_ended_ = false;
  // State of the sanitizers, which are told of every switch.
  void* own_fake_stack_ = nullptr;
  void* outer_fake_stack_ = nullptr;
  const void* outer_bottom_ = nullptr;
  std::size_t outer_size_ = 0;
  void* own_history_ = nullptr;
  void* outer_history_ = nullptr;
};

}  // namespace ringlab
