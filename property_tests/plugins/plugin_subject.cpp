#include "property_tests/plugins/plugin_subject.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <utility>

#include "property_tests/foreign_subject.h"
#include "property_tests/plugins/plugin_profile.h"
#include "property_tests/plugins/reply_text.h"
#include "property_tests/sha256.h"

namespace ringlab::verify {

bool names_a_plugin(const std::string& word) {
  return word.find('/') != std::string::npos || word.ends_with(".so");
}

std::string content_name(const std::string& path) {
  constexpr std::size_t kDigits = 12;
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  std::string name = std::filesystem::path(path).filename().string();
  const auto is_odd = [](char letter) {
    return std::isalnum(static_cast<unsigned char>(letter)) == 0 && letter != '.' && letter != '-';
  };
  std::replace_if(name.begin(), name.end(), is_odd, '_');
  return name + "@" + sha256(bytes).substr(0, kDigits);
}

// The subject is shared by its copies through one process; foreign_subject() adds the laws that
// only matter for code we cannot read.
Subject plugin_subject(const std::string& path, const plugins::PluginOptions& options) {
  const auto process = std::make_shared<plugins::PluginProcess>(path, options);
  const plugins::Reply& declared = process->introduction();
  const std::string title = plugins::shown_text(declared.title);
  const std::string name = plugins::shown_text(declared.name);
  Subject raw{.name = path,
              .title = name + (title.empty() ? "" : ": ") + title,
              .can = plugins::plugin_capabilities(declared.can, "plugin " + path),
              .run =
                  [process](const AttentionInput& input, const RunOptions& run) {
                    if (run.q_layout || run.kv_layout) throw Unsupported("takes no other layouts");
                    return process->run(input, run);
                  },
              .profile =
                  [process, path](const Problem& problem, const RunOptions&) {
                    const auto dtype =
                        static_cast<std::size_t>(plugins::dtype_index(problem.dtype));
                    return plugins::plugin_profile(process->introduction().numerics[dtype], problem,
                                                   "plugin " + path);
                  }};
  // Promises are wrong at once or never.
  for (const DType dtype : raw.can.dtypes)
    raw.profile(Problem{.shape = {}, .dtype = dtype, .mask = {}}, {});
  Subject subject = foreign_subject(std::move(raw));
  subject.id = content_name(path);
  subject.printed = [process] { return process->printed(); };
  return subject;
}

}  // namespace ringlab::verify
