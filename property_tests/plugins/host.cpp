// ringlab-plugin-host PLUGIN MEMORY_BYTES: a process for a plugin, which may do anything.
#include <fmt/format.h>

#include <cstring>
#include <exception>
#include <string>

#include "property_tests/plugins/host_memory.h"
#include "property_tests/plugins/host_service.h"

namespace {

using namespace ringlab::plugins;

using Entry = const ringlab_plugin* (*)();

const ringlab_plugin* loaded_plugin(const char* path) {
  void* symbol = loaded_symbol(path, "ringlab_plugin_v1");
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

class PluginLibrary : public Hosted {
 public:
  Reply load(const char* path) override {
    plugin_ = loaded_plugin(path);
    Reply reply;
    put(reply.name, sizeof(reply.name), plugin_->name != nullptr ? plugin_->name : "");
    put(reply.title, sizeof(reply.title), plugin_->title != nullptr ? plugin_->title : "");
    reply.can = plugin_->can;
    std::memcpy(reply.numerics, plugin_->numerics, sizeof(reply.numerics));
    return reply;
  }

  void call(CallMessage& message, File inputs, File outputs, Reply& reply) override {
    try {
      const MappedCall mapped(message, inputs.get(), outputs.get());
      inputs = File();
      outputs = File();
      message.call.message = reply.message;
      message.call.message_size = sizeof(reply.message);
      run(message.call, reply);
    } catch (const NoAddresses& missing) {
      reply.kind = ReplyKind::no_addresses;
      put(reply.message, sizeof(reply.message), missing.what());
    }
  }

 private:
  // A plugin in C++ may forget to catch.
  void run(const ringlab_call& call, Reply& reply) {
    try {
      reply.code = plugin_->run(&call, plugin_->context);
    } catch (const std::exception& error) {
      reply.kind = ReplyKind::threw;
      put(reply.message, sizeof(reply.message), error.what());
    } catch (...) {
      reply.kind = ReplyKind::threw;
      put(reply.message, sizeof(reply.message), "something that is no std::exception");
    }
  }

  const ringlab_plugin* plugin_ = nullptr;
};

}  // namespace

int main(int argc, char** argv) {
  PluginLibrary library;
  return serve_foreign_code(argc, argv, library);
}
