// The process of foreign code: behind walls it loads one library and makes the calls that come over
// kSocket, one after the other.
#pragma once

#include <string>

#include "property_tests/plugins/child_process.h"
#include "property_tests/plugins/protocol.h"

namespace ringlab::plugins {

/// A kind of library: how it is loaded and called.
class Hosted {
 public:
  virtual ~Hosted() = default;
  /// Loads a library, checks it before anything of it is trusted, and introduces it; refuse() where
  /// it is none of this kind.
  virtual Reply load(const char* path) = 0;
  /// Makes one call, whose arrays are in two files, and fills in the reply. Foreign code finds no
  /// descriptor open that it does not need. std::bad_alloc: there is no memory for the arrays.
  virtual void call(CallMessage& message, File inputs, File outputs, Reply& reply) = 0;
};

/// Copies words into a field of a Reply, cut where it ends.
void put(char* text, std::size_t size, const std::string& words);

/// Replies that the library cannot be served, and ends the process.
[[noreturn]] void refuse(const std::string& why, Reply reply = {});

/// The address of a symbol of the library; refuse() where it cannot be loaded or exports none.
void* loaded_symbol(const char* path, const char* symbol);

/// main() of a process for foreign code: PROGRAM LIBRARY MEMORY_BYTES.
int serve_foreign_code(int argc, char** argv, Hosted& hosted);

}  // namespace ringlab::plugins
