// The process between ringlab and foreign code: it ends processes that the code leaves behind.
#pragma once

namespace ringlab::plugins {

enum class Descendants {
  in_a_namespace,  ///< the next child is the first process of a namespace, and they end with it
  adopted          ///< orphans become children of the nearest process that has asked for them
};

/// Returns in a new process. The calling process never returns: it waits until the new one has
/// ended or the other end of the socket is closed, ends all descendants and then itself, just as
/// the new process did: by the same exit code or signal.
void become_supervised(Descendants descendants);

/// Ends all descendants of this process; returns how many there were.
int end_children();

}  // namespace ringlab::plugins
