// The page of the viewer: what is put into it stays data.
#include "cli/viewer/viewer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace ringlab::viewer {
namespace {

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t first = text.find(begin) + begin.size();
  return text.substr(first, text.find(end, first) - first);
}

TEST(Viewer, holds_the_document_as_it_is_whatever_its_names_are) {
  const nlohmann::json document = {
      {"</script><script>alert(1)</script>", "<!-- & \xe2\x80\xa8 \xe2\x80\xa9 \" ' \\ é"}};
  const std::string made = page(document.dump(), "words");
  const std::string data =
      between(made, "<script type=\"application/json\" id=\"data\">", "</script>");
  EXPECT_EQ(nlohmann::json::parse(data), document);
  EXPECT_EQ(data.find_first_of("<>&"), std::string::npos);
  EXPECT_EQ(data.find("\xe2\x80\xa8"), std::string::npos);
}

TEST(Viewer, tells_the_verdict_where_no_script_runs) {
  const std::string made = page("{}", "ring <wrong> & 'more' \"\x01");
  EXPECT_EQ(between(made, "<noscript><p>", "</p></noscript>"),
            "ring &lt;wrong&gt; &amp; &#39;more&#39; &quot;");
}

TEST(Viewer, allows_its_own_script_and_nothing_from_outside) {
  const std::string made = page("{}", "");
  EXPECT_NE(made.find("default-src 'none'"), std::string::npos);
  EXPECT_NE(made.find("script-src 'sha256-"), std::string::npos);
  for (const char* outside : {"http:", "https:", "src=", "url(", "@import"}) {
    EXPECT_EQ(made.find(outside), std::string::npos) << outside;
  }
  EXPECT_NE(style_sheet().find("prefers-color-scheme"), std::string::npos);
}

}  // namespace
}  // namespace ringlab::viewer
