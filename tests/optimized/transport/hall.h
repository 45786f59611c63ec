// Where ranks that are threads meet before there is a network between them.
#pragma once

#include <barrier>
#include <string>
#include <vector>

#include "optimized/transport/files/file_meeting.h"

namespace ringlab {

/// Lets threads tell each other a text.
class Hall {
 public:
  explicit Hall(int ranks) : texts_(static_cast<std::size_t>(ranks)), all_(ranks) {}
  TellAll of(int rank) {
    return [this, rank](const std::string& mine) {
      texts_[static_cast<std::size_t>(rank)] = mine;
      all_.arrive_and_wait();
      return texts_;
    };
  }

 private:
  std::vector<std::string> texts_;
  std::barrier<> all_;
};

}  // namespace ringlab
