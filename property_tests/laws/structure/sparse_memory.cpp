#include "property_tests/laws/structure/sparse_memory.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "property_tests/endings.h"
#include "property_tests/subject.h"

namespace ringlab::verify {
namespace {

std::int64_t numbers_per_page() {
  static const std::int64_t numbers = sysconf(_SC_PAGESIZE) / std::int64_t{sizeof(double)};
  return numbers;
}

[[noreturn]] void refuse(std::int64_t bytes) {
  throw Unsupported(fmt::format("was not asked: the machine gives no {} GiB of addresses",
                                (bytes + (1 << 30) - 1) >> 30));
}

}  // namespace

SparseMemory::SparseMemory(std::int64_t count)
    : bytes_((count + 1) * std::int64_t{sizeof(double)}) {
  void* memory = mmap(nullptr, static_cast<std::size_t>(bytes_), PROT_READ,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) refuse(bytes_);
  data_ = static_cast<double*>(memory);
}

SparseMemory::~SparseMemory() { munmap(data_, static_cast<std::size_t>(bytes_)); }

double& SparseMemory::touch(std::int64_t index) {
  const std::int64_t page = index / numbers_per_page();
  if (touched_.insert(page).second) {
    double* first = data_ + page * numbers_per_page();
    const std::int64_t bytes = numbers_per_page() * std::int64_t{sizeof(double)};
    if (mprotect(first, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE) != 0) {
      refuse(bytes_);
    }
    std::fill_n(first, numbers_per_page(), std::numeric_limits<double>::quiet_NaN());
  }
  return data_[index];
}

}  // namespace ringlab::verify
