// ringlab-plugin-host PLUGIN MEMORY_BYTES: loads a plugin and makes the calls that come over
// socket 3, one after the other. Started by ringlab; a process of its own because a plugin may do
// anything.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "property_tests/plugins/confinement.h"
#include "property_tests/plugins/host_guard.h"
#include "property_tests/plugins/host_memory.h"
#include "property_tests/plugins/supervisor.h"
#include "reference/core/machine/machine_failure.h"

namespace {

using namespace ringlab::plugins;

using Entry = const ringlab_plugin* (*)();

void put(char* text, std::size_t size, const std::string& words) {
  std::snprintf(text, size, "%s", words.c_str());
}

void tell(const Reply& reply) {
  if (send(kSocket, &reply, sizeof(reply), MSG_NOSIGNAL) < 0) _exit(4);
}

/// Ends the process: there is nothing that it could do.
[[noreturn]] void refuse(const std::string& why, Reply reply = {}) {
  reply.kind = ReplyKind::load_failed;
  put(reply.message, sizeof(reply.message), why);
  tell(reply);
  _exit(0);
}

/// Loads the plugin and checks all that can be checked before anything of it is trusted.
const ringlab_plugin* load(const char* path) {
  errno = 0;
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const int error = errno;
  if (library == nullptr) {
    const char* why = dlerror();
    Reply reply;
    reply.ran_out = ringlab::is_of_machine(error) || memory_is_scarce() ? 1 : 0;
    refuse(why != nullptr ? why : "the dynamic linker does not say why", reply);
  }
  void* symbol = dlsym(library, "ringlab_plugin_v1");
  if (symbol == nullptr) refuse("it exports no symbol ringlab_plugin_v1");
  Entry entry = nullptr;
  std::memcpy(&entry, &symbol, sizeof(entry));
  const ringlab_plugin* plugin = entry();
  if (plugin == nullptr) refuse("ringlab_plugin_v1() returned NULL");
  if (plugin->version != RINGLAB_PLUGIN_VERSION) {
    refuse(fmt::format("version {} of the interface, and this is version {}", plugin->version,
                       RINGLAB_PLUGIN_VERSION));
  }
  if (plugin->struct_size < sizeof(ringlab_plugin)) {
    refuse(fmt::format("a ringlab_plugin of {} bytes, and version {} has {}", plugin->struct_size,
                       RINGLAB_PLUGIN_VERSION, sizeof(ringlab_plugin)));
  }
  if (plugin->run == nullptr) refuse("its function `run` is NULL");
  return plugin;
}

void introduce(const ringlab_plugin& plugin, const std::string& missing) {
  Reply reply;
  reply.kind = ReplyKind::ready;
  reply.mode_changes = float_mode_changes();
  put(reply.name, sizeof(reply.name), plugin.name != nullptr ? plugin.name : "");
  put(reply.title, sizeof(reply.title), plugin.title != nullptr ? plugin.title : "");
  put(reply.message, sizeof(reply.message), missing);
  reply.can = plugin.can;
  std::memcpy(reply.numerics, plugin.numerics, sizeof(reply.numerics));
  tell(reply);
}

/// Waits for a call and the two files of its arrays; false when nobody wants anything any more.
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

/// Calls `run`, and says what it returned or threw. A plugin in C++ may forget to catch.
void call(const ringlab_plugin& plugin, ringlab_call& given, Reply& reply) {
  try {
    reply.code = plugin.run(&given, plugin.context);
    reply.kind = ReplyKind::done;
  } catch (const std::exception& error) {
    reply.kind = ReplyKind::threw;
    put(reply.message, sizeof(reply.message), error.what());
  } catch (...) {
    reply.kind = ReplyKind::threw;
    put(reply.message, sizeof(reply.message), "something that is no std::exception");
  }
}

/// Makes one call in a known floating-point mode, with signals reported and processor time limited,
/// and says what the plugin left behind.
void answer(const ringlab_plugin& plugin, CallMessage& message, const int (&files)[2]) {
  const pid_t self = getpid();
  Reply reply;
  reply.sequence = message.sequence;
  try {
    MappedCall mapped(message, files[0], files[1]);
    close(files[0]);
    close(files[1]);
    message.call.message = reply.message;
    message.call.message_size = sizeof(reply.message);
    set_default_float_mode();
    report_signals(message.sequence);
    allow_processor_seconds(message.deadline_s * static_cast<double>(message.call.threads) + 5);
    call(plugin, message.call, reply);
    reply.mode_changes = float_mode_changes();
    set_default_float_mode();
    const bool failed = reply.kind == ReplyKind::threw || reply.code != RINGLAB_OK;
    reply.ran_out = failed && memory_is_scarce() ? 1 : 0;
  } catch (const std::bad_alloc&) {  // before the plugin was called
    reply.kind = ReplyKind::no_memory;
  }
  if (getpid() != self) _exit(0);  // a copy that the plugin made of this process
  reply.message[sizeof(reply.message) - 1] = '\0';
  reply.children = end_children();
  std::fflush(nullptr);
  tell(reply);
}

/// Behind the walls until nobody wants anything any more.
[[noreturn]] void serve(const char* path, std::int64_t address_bytes) {
  note_limits_from_outside(address_bytes);
  const std::string missing = confine({.address_bytes = address_bytes});
  report_signals(0);
  set_default_float_mode();
  const ringlab_plugin* plugin = load(path);
  introduce(*plugin, missing);
  CallMessage message;
  int files[2] = {-1, -1};
  while (receive(message, files)) answer(*plugin, message, files);
  _exit(0);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "ringlab starts this program to run plugins in.\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // last words should not be lost
  try {
    serve(argv[1], std::strtoll(argv[2], nullptr, 10));
  } catch (const std::bad_alloc&) {
    Reply reply;
    reply.ran_out = 1;
    refuse("no memory left", reply);
  }
}
