// The checks of a message before any transport takes it.
#pragma once

#include <limits>

namespace ringlab {

/// The end of a message that a rank wants to post.
struct PostedEnd {
  int rank = 0;
  const char* call = "";  ///< "post_send"
  int peer = 0;
  int tag = 0;
};

/// Usage error that names rank and call: for a peer that is none of the ranks, and for a tag that
/// is negative or larger than the transport can tell apart.
void check_post(const PostedEnd& end, int ranks, int largest_tag = std::numeric_limits<int>::max());

}  // namespace ringlab
