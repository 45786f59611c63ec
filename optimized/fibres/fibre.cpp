#include "optimized/fibres/fibre.h"

#include <boost/context/preallocated.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <cassert>
#include <exception>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define RINGLAB_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define RINGLAB_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RINGLAB_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define RINGLAB_THREAD_SANITIZER 1
#endif
#endif

#ifdef RINGLAB_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef RINGLAB_THREAD_SANITIZER
#include <sanitizer/tsan_interface.h>
#endif

namespace ringlab {
namespace {

/// Stacks are larger with the address sanitizer, which surrounds every variable with poison.
#ifdef RINGLAB_ADDRESS_SANITIZER
constexpr std::size_t kTimes = 4;
#else
constexpr std::size_t kTimes = 1;
#endif

/// Called before a switch to the stack that ends at `bottom`; with a null `fake_stack` this stack
/// is left for good.
void leave_stack([[maybe_unused]] void** fake_stack, [[maybe_unused]] const void* bottom,
                 [[maybe_unused]] std::size_t bytes) {
#ifdef RINGLAB_ADDRESS_SANITIZER
  __sanitizer_start_switch_fiber(fake_stack, bottom, bytes);
#endif
}

/// Called after a switch; tells which stack was left.
void enter_stack([[maybe_unused]] void* fake_stack, [[maybe_unused]] const void** left_bottom,
                 [[maybe_unused]] std::size_t* left_bytes) {
#ifdef RINGLAB_ADDRESS_SANITIZER
  __sanitizer_finish_switch_fiber(fake_stack, left_bottom, left_bytes);
#endif
}

void switch_history([[maybe_unused]] void* history) {
#ifdef RINGLAB_THREAD_SANITIZER
  __tsan_switch_to_fiber(history, 0);
#endif
}

}  // namespace

struct Stacks::Kept {
  boost::context::protected_fixedsize_stack source;
  std::vector<boost::context::stack_context> idle = {};
  std::size_t made = 0;

  explicit Kept(std::size_t bytes) : source(bytes) {}
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  ~Kept() {
    for (boost::context::stack_context& stack : idle) source.deallocate(stack);
  }
};

Stacks::Stacks(std::size_t bytes) : kept_(std::make_shared<Kept>(bytes)) {}

boost::context::stack_context Stacks::allocate() {
  if (kept_->idle.empty()) {
    kept_->idle.reserve(kept_->made + 1);  // there is room when they come back
    const boost::context::stack_context stack = kept_->source.allocate();
    ++kept_->made;
    return stack;
  }
  const boost::context::stack_context stack = kept_->idle.back();
  kept_->idle.pop_back();
  return stack;
}

void Stacks::deallocate(boost::context::stack_context& stack) noexcept {
  kept_->idle.push_back(stack);
}

Stacks make_stacks(std::size_t bytes) {
  thread_local std::map<std::size_t, Stacks> kept;
  return kept.try_emplace(bytes, bytes * kTimes).first->second;
}

Fibre::Fibre(Stacks& stacks, std::function<void()> body)
    : stacks_(stacks), body_(std::move(body)), stack_(stacks_.allocate()) {
  const boost::context::preallocated place(stack_.sp, stack_.size, stack_);
  inside_ = boost::context::fiber(
      std::allocator_arg, place, stacks_,
      [this](boost::context::fiber&& outside) { return enter(std::move(outside)); });
#ifdef RINGLAB_THREAD_SANITIZER
  own_history_ = __tsan_create_fiber(0);
#endif
}

Fibre::~Fibre() {
#ifdef RINGLAB_THREAD_SANITIZER
  __tsan_destroy_fiber(own_history_);
#endif
}

boost::context::fiber Fibre::enter(boost::context::fiber&& outside) {
  enter_stack(nullptr, &outer_bottom_, &outer_size_);
  has_begun_ = true;
  outside_ = std::move(outside);
  body_();
  has_ended_ = true;
  leave_stack(nullptr, outer_bottom_, outer_size_);
  switch_history(outer_history_);
  return std::move(outside_);
}

void Fibre::resume() {
  leave_stack(&outer_fake_stack_, static_cast<const char*>(stack_.sp) - stack_.size, stack_.size);
#ifdef RINGLAB_THREAD_SANITIZER
  outer_history_ = __tsan_get_current_fiber();
#endif
  switch_history(own_history_);
  inside_ = std::move(inside_).resume();
  enter_stack(outer_fake_stack_, nullptr, nullptr);
}

void Fibre::suspend() {
  assert(!std::current_exception() && std::uncaught_exceptions() == 0);
  leave_stack(&own_fake_stack_, outer_bottom_, outer_size_);
  switch_history(outer_history_);
  outside_ = std::move(outside_).resume();
  enter_stack(own_fake_stack_, &outer_bottom_, &outer_size_);
}

}  // namespace ringlab
