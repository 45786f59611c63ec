// setmaxnreg: the registers of a machine, handed from warpgroup to warpgroup.
#pragma once

#include <vector>

namespace ringlab::cuda::emulator {

/// 65536 registers, of which every thread has the same number at first. A thread that takes more
/// than are free waits until others have given some back.
class Registers {
 public:
  Registers(int threads, int per_thread);

  void take(int registers);
  void give(int registers);

 private:
  std::vector<int> held_;
  int free_;
  std::vector<int> parked_;
};

namespace instructions {

void take_registers(int registers);
void give_registers(int registers);

}  // namespace instructions
}  // namespace ringlab::cuda::emulator
