// The tests' end of the library RINGLAB_FAKE_NCCL.
#include <dlfcn.h>

#include <cstdlib>
#include <stdexcept>
#include <string>

#include "optimized/transport/nccl/nccl_library.h"
#include "tests/optimized/transport/fake_nccl.h"

namespace ringlab::nccl {
namespace {

const RinglabFakeNccl& loaded() {
  static const RinglabFakeNccl* const fake = [] {
    ::setenv(kLibraryVariable, RINGLAB_FAKE_NCCL, 1);
    void* const library = ::dlopen(RINGLAB_FAKE_NCCL, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(::dlerror());
    return reinterpret_cast<decltype(&ringlab_fake_nccl)>(::dlsym(library, "ringlab_fake_nccl"))();
  }();
  return *fake;
}

}  // namespace

FakeNccl& fake_nccl() { return *loaded().state; }
void reset_fake_nccl() { loaded().reset(); }
int messages_left(const CUstream_st* stream) { return loaded().messages_left(stream); }
bool nccl_uses(const std::byte* memory, std::int64_t bytes) { return loaded().uses(memory, bytes); }

}  // namespace ringlab::nccl
