#include "property_tests/plugins/host_service.h"

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

#include "property_tests/plugins/confinement.h"
#include "property_tests/plugins/host_guard.h"
#include "property_tests/plugins/library_list.h"
#include "property_tests/plugins/supervisor.h"
#include "reference/core/machine/machine_failure.h"

namespace ringlab::plugins {
namespace {

void tell(const Reply& reply) {
  if (send(kSocket, &reply, sizeof(reply), MSG_NOSIGNAL) < 0) _exit(4);
}

/// Waits for a call and the two files of its arrays; false when the other end is closed.
bool receive(CallMessage& message, int (&files)[2]) {
  iovec part{.iov_base = &message, .iov_len = sizeof(message)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(files))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  const ssize_t bytes = recvmsg(kSocket, &header, MSG_CMSG_CLOEXEC);
  if (bytes != static_cast<ssize_t>(sizeof(message))) return false;
  const cmsghdr* attached = CMSG_FIRSTHDR(&header);
  if (attached == nullptr || attached->cmsg_len != CMSG_LEN(sizeof(files))) return false;
  std::memcpy(files, CMSG_DATA(attached), sizeof(files));
  return true;
}

/// Makes one call in a known floating-point mode, with signals reported and processor time limited,
/// and reports processes and modes that the library left behind.
void answer(Hosted& hosted, CallMessage& message, const int (&files)[2]) {
  const pid_t self = getpid();
  Reply reply;
  reply.sequence = message.sequence;
  try {
    set_default_float_mode();
    report_signals(message.sequence);
    const int workers = message.call.threads * message.call.ranks;
    allow_processor_seconds(message.deadline_s * static_cast<double>(workers) + 5);
    hosted.call(message, File(files[0]), File(files[1]), reply);
    reply.mode_changes = float_mode_changes();
    set_default_float_mode();
    const bool failed = reply.kind == ReplyKind::threw || reply.code != RINGLAB_OK;
    reply.ran_out = failed && memory_is_scarce() ? 1 : 0;
  } catch (const std::bad_alloc&) {  // before the library was called
    reply.kind = ReplyKind::no_memory;
  }
  if (getpid() != self) _exit(0);  // a copy that the library made of this process
  reply.message[sizeof(reply.message) - 1] = '\0';
  reply.children = end_children();
  std::fflush(nullptr);
  tell(reply);
}

/// Puts up the walls, loads the library and answers calls until the other end is closed.
[[noreturn]] void serve(const char* path, std::int64_t address_bytes, Hosted& hosted) {
  note_limits_from_outside(address_bytes);
  const std::string missing =
      confine({.address_bytes = address_bytes, .files = {.readable = libraries_of(path)}});
  report_signals(0);
  set_default_float_mode();
  Reply introduction = hosted.load(path);
  introduction.kind = ReplyKind::ready;
  introduction.mode_changes = float_mode_changes();
  put(introduction.message, sizeof(introduction.message), missing);
  tell(introduction);
  CallMessage message;
  int files[2] = {-1, -1};
  while (receive(message, files)) answer(hosted, message, files);
  _exit(0);
}

}  // namespace

void put(char* text, std::size_t size, const std::string& words) {
  std::snprintf(text, size, "%s", words.c_str());
}

void refuse(const std::string& why, Reply reply) {
  reply.kind = ReplyKind::load_failed;
  put(reply.message, sizeof(reply.message), why);
  tell(reply);
  _exit(0);
}

void* loaded_symbol(const char* path, const char* symbol) {
  errno = 0;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const int error = errno;
  if (library == nullptr) {
    const char* why = dlerror();
    Reply reply;
    reply.ran_out = is_of_machine(error) || memory_is_scarce() ? 1 : 0;
    refuse(why != nullptr ? why : "the dynamic linker does not say why", reply);
  }
  void* address = dlsym(library, symbol);
  if (address == nullptr) refuse("it exports no symbol " + std::string(symbol));
  return address;
}

int serve_foreign_code(int argc, char** argv, Hosted& hosted) {
  if (argc != 3) {
    std::fprintf(stderr, "ringlab starts this program to run the code of others in.\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // last words should not be lost
  try {
    serve(argv[1], std::strtoll(argv[2], nullptr, 10), hosted);
  } catch (const std::bad_alloc&) {
    Reply reply;
    reply.ran_out = 1;
    refuse("no memory left", reply);
  } catch (const std::system_error& error) {
    Reply reply;
    reply.ran_out = is_of_machine(error.code().value()) ? 1 : 0;
    refuse(error.what(), reply);
  }
}

}  // namespace ringlab::plugins
