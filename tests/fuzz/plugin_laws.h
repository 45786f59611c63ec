// What the process of a plugin may say of itself, byte by byte.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "property_tests/plugins/plugin_profile.h"
#include "property_tests/plugins/protocol.h"
#include "property_tests/plugins/reply_text.h"
#include "tests/fuzz/laws.h"

namespace ringlab::fuzz {

inline void require_shown(const std::string& text, std::size_t most) {
  require(text.size() <= most);
  require(std::none_of(text.begin(), text.end(), [](char letter) {
    return static_cast<unsigned char>(letter) < 0x20 || letter == 0x7f;
  }));
}

inline void require_usable(const NumericsProfile& profile) {
  for (const double error :
       {profile.u_accumulate, profile.u_work, profile.exp_error, profile.u_probability,
        profile.u_row_sum, profile.p_underflow, profile.u_partial, profile.u_query, profile.u_lse,
        profile.exp_underflow, profile.product_underflow}) {
    require(error >= 0 && error < 1);
  }
  require(profile.max_rescales >= 1);
  require(profile.lse_merges >= 0 && profile.accumulation_chain >= 0);
}

/// An input error, or abilities and promises within their ranges.
inline bool plugin_laws(const Bytes& bytes) {
  plugins::Reply reply;
  const std::size_t size = std::min(sizeof(reply), bytes.size());
  if (size > 0) std::memcpy(static_cast<void*>(&reply), bytes.data(), size);
  require_shown(plugins::shown_text(reply.name), sizeof(reply.name));
  require_shown(plugins::shown_text(reply.title), sizeof(reply.title));
  require_shown(plugins::shown_text(reply.message), sizeof(reply.message));
  return accepts(ErrorKind::input, [&] {
    const verify::Capabilities can = plugins::plugin_capabilities(reply.can, "fuzz");
    require(!can.dtypes.empty());
    require(can.head_dim_multiple >= 1 && can.head_dim_multiple <= 1024);
    require(can.max_head_dim >= can.head_dim_multiple);
    for (const DType dtype : can.dtypes) {
      Problem problem;
      problem.dtype = dtype;
      problem.shape.kv_tokens = 1 << 20;
      const auto index = static_cast<std::size_t>(plugins::dtype_index(dtype));
      require_usable(plugins::plugin_profile(reply.numerics[index], problem, "fuzz"));
    }
  });
}

}  // namespace ringlab::fuzz
