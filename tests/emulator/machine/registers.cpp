#include "tests/emulator/machine/registers.h"

#include <algorithm>

#include "tests/emulator/machine/block.h"
#include "tests/emulator/machine/fault.h"

namespace ringlab::cuda::emulator {
namespace {

constexpr int kAll = 65536;  // of a multiprocessor

int at_first(int threads, int per_thread) {
  // As ptxas allots registers: a multiple of 8, at most 248 unless told otherwise.
  return per_thread ? per_thread : std::min(kAll / threads / 8 * 8, 248);
}

void check(const char* what, int registers) {
  if (registers < 24 || registers > 256 || registers % 8 != 0) {
    fault("{}: {} is no multiple of 8 from 24 to 256", what, registers);
  }
}

}  // namespace

Registers::Registers(int threads, int per_thread)
    : held_(static_cast<std::size_t>(threads), at_first(threads, per_thread)),
      free_(kAll - threads * at_first(threads, per_thread)) {}

void Registers::take(int registers) {
  check("take_registers()", registers);
  Thread& thread = *running_thread();
  int& mine = held_[static_cast<std::size_t>(thread.index)];
  if (registers < mine) fault("take_registers<{}>(): has {} already", registers, mine);
  // Waits until other warps have given enough back: all parked threads then try again.
  while (free_ < registers - mine) {
    parked_.push_back(thread.index);
    thread.block->scheduler.park({"take_registers<{}>(), has {}", registers, mine});
  }
  free_ -= registers - mine;
  mine = registers;
}

void Registers::give(int registers) {
  check("give_registers()", registers);
  Thread& thread = *running_thread();
  int& mine = held_[static_cast<std::size_t>(thread.index)];
  if (registers > mine) fault("give_registers<{}>(): has only {}", registers, mine);
  free_ += mine - registers;
  mine = registers;
  for (int other : parked_) {
    thread.block->scheduler.wake(&thread.block->threads[static_cast<std::size_t>(other)]);
  }
  parked_.clear();
}

namespace instructions {

void take_registers(int registers) { running_thread()->block->registers.take(registers); }
void give_registers(int registers) { running_thread()->block->registers.give(registers); }

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
