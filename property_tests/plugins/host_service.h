// The process of foreign code: behind walls it loads one library and makes the calls that come over
// kSocket, one after the other.
#pragma once

#include <string>

#include "property_tests/plugins/child_process.h"
#include "property_tests/plugins/protocol.h"

namespace ringlab::plugins {

/// What a kind of library is loaded and called like.
class Hosted {
 public:
  virtual ~Hosted() = default;
  /// Checks all that can be checked before anything of it is trusted, and says what it is; refuse()
  /// where it is none.
  virtual Reply load(const char* path) = 0;
  /// Makes one call, whose arrays are in two files, and says what came of it. Foreign code finds no
  /// descriptor open that it does not need. std::bad_alloc: there is no memory for the arrays.
  virtual void call(CallMessage& message, File inputs, File outputs, Reply& reply) = 0;
};

/// Copies words into a field of a Reply, cut where it ends.
void put(char* text, std::size_t size, const std::string& words);

/// Ends the process: there is nothing that it could do.
[[noreturn]] void refuse(const std::string& why, Reply reply = {});

/// The address of what the library exports; refuse() where it cannot be loaded or exports none.
void* loaded_symbol(const char* path, const char* symbol);

/// main() of such a process: PROGRAM LIBRARY MEMORY_BYTES.
int serve_foreign_code(int argc, char** argv, Hosted& hosted);

}  // namespace ringlab::plugins
