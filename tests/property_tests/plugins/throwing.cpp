// A plugin in C++ that lets an exception out of its C interface.
#include <stdexcept>

#include "reference/core/ringlab_plugin.h"

namespace {

int32_t throw_through_c(const ringlab_call*, void*) { throw std::logic_error("not a tile"); }

}  // namespace

extern "C" const ringlab_plugin* ringlab_plugin_v1() {
  static ringlab_plugin plugin = {};
  plugin.struct_size = sizeof(ringlab_plugin);
  plugin.version = RINGLAB_PLUGIN_VERSION;
  plugin.name = "throwing";
  plugin.can.dtypes = RINGLAB_DTYPE_BIT(RINGLAB_F32);
  plugin.run = throw_through_c;
  return &plugin;
}
