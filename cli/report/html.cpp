#include "cli/report/html.h"

#include <fmt/format.h>

namespace ringlab::report {
namespace {

constexpr std::string_view kStyleSheet = R"css(
:root { color-scheme: light dark;
  --page:#f6f7f9; --card:#fff; --ink:#1b2430; --soft:#5b6675; --line:#dfe4ea; --faint:#eef1f5;
  --good:#13795b; --good-back:#e2f5ee; --bad:#b42318; --bad-back:#fdeae7; --skip:#7a5d00;
  --first:#3867d6; --second:#8fb0f5; --mark:#c2410c; --depth:46%; --onhop:#fff; }
@media (prefers-color-scheme: dark) { :root {
  --page:#11161d; --card:#19212b; --ink:#e6ebf1; --soft:#9aa7b6; --line:#2c3744; --faint:#222c38;
  --good:#5fd0a5; --good-back:#12352b; --bad:#ff8f80; --bad-back:#43201d; --skip:#e0b84a;
  --first:#6f9bff; --second:#3d5a9e; --mark:#ff9e64; --depth:62%; --onhop:#11161d; } }
* { box-sizing:border-box; }
body { margin:0; background:var(--page); color:var(--ink);
  font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif; }
main { max-width:1180px; margin:0 auto; padding:20px 16px 48px; }
h1 { font-size:1.55rem; line-height:1.2; margin:0 0 4px; letter-spacing:-.01em; }
h2 { font-size:1.15rem; margin:36px 0 4px; }
h3 { font-size:1rem; margin:0; }
p { margin:4px 0 12px; max-width:70ch; } .soft,figcaption { color:var(--soft); font-size:.9rem; }
code { font:.87em/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace; overflow-wrap:anywhere; }
pre { font:.82rem/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace; background:var(--faint);
  border-radius:8px; padding:10px 12px; margin:8px 0; white-space:pre-wrap; overflow-wrap:anywhere; }
.verdict { display:flex; gap:14px; align-items:center; border-radius:12px; padding:14px 18px;
  margin:16px 0; font-size:1.1rem; font-weight:600; }
.verdict b { font-size:1.6rem; line-height:1; } .verdict span { font-weight:400; }
.verdict.good { background:var(--good-back); color:var(--good); }
.verdict.bad { background:var(--bad-back); color:var(--bad); }
.chips { display:flex; flex-wrap:wrap; gap:6px; padding:0; margin:12px 0; list-style:none; }
.chips li { background:var(--card); border:1px solid var(--line); border-radius:8px; padding:3px 9px;
  font-size:.86rem; overflow-wrap:anywhere; } .chips b { color:var(--soft); font-weight:500; }
.cards { display:grid; gap:14px; grid-template-columns:repeat(auto-fill,minmax(min(100%,330px),1fr));
  margin:12px 0; }
figure,.card { background:var(--card); border:1px solid var(--line); border-radius:12px; margin:0;
  padding:14px 16px; break-inside:avoid; min-width:0; }
figure.chosen { border-color:var(--first); box-shadow:0 0 0 1px var(--first); }
figure header { display:flex; justify-content:space-between; align-items:baseline; gap:8px;
  margin-bottom:8px; } figure header span { color:var(--soft); font-size:.85rem; text-align:right; }
svg { display:block; width:100%; height:auto; margin:0 auto; }
figcaption { margin-top:8px; }
table { border-collapse:collapse; width:100%; font-size:.92rem; background:var(--card); }
.framed { border:1px solid var(--line); border-radius:12px; overflow-x:auto; margin:12px 0; }
th { text-align:left; color:var(--soft); font-weight:500; font-size:.84rem; vertical-align:bottom; }
th,td { padding:7px 10px; border-bottom:1px solid var(--line); } tr:last-child td { border-bottom:0; }
td.n,th.n { text-align:right; } td.n { font-variant-numeric:tabular-nums; white-space:nowrap; }
.tag { display:inline-block; border-radius:6px; padding:0 8px; font-weight:600; font-size:.84rem; }
.tag.good { color:var(--good); background:var(--good-back); }
.tag.bad { color:var(--bad); background:var(--bad-back); }
table.laws td { vertical-align:top; } table.laws .id { white-space:nowrap; color:var(--soft); }
table.laws .mark { text-align:center; width:2.2em; padding:7px 2px; }
table.laws small { display:block; color:var(--soft); }
table.facts th { white-space:nowrap; vertical-align:top; } table.facts td,table.facts th { padding:2px 8px 2px 0;
  border:0; overflow-wrap:anywhere; } table.certified td { padding:2px 8px; }
summary { cursor:pointer; color:var(--soft); }
.held { color:var(--good); } .broken { color:var(--bad); font-weight:700; } .skipped { color:var(--soft); }
.failure { border-left:5px solid var(--bad); margin:14px 0; display:grid; gap:14px; }
.failure .picture svg { max-width:330px; margin:0; }
.legend { display:flex; flex-wrap:wrap; gap:4px 14px; font-size:.85rem; color:var(--soft); margin:8px 0; }
.legend i { display:inline-block; width:12px; height:12px; border-radius:3px; margin-right:5px;
  vertical-align:-1px; }
i.first { background:var(--first); } i.second { background:var(--second); } i.bad { background:var(--bad); }
i.hop { background:hsl(var(--hue) 62% var(--depth)); }
i.none { background:var(--faint); border:1px solid var(--line); }
svg text { font:11.5px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif; fill:var(--ink); }
svg .small { font-size:10.5px; fill:var(--soft); } svg .label { font-weight:600; font-size:11.5px; }
svg .number { font-variant-numeric:tabular-nums; } svg .marklabel { fill:var(--mark); }
svg .hopnumber { font-size:10.5px; font-weight:700; fill:var(--ink); paint-order:stroke;
  stroke:var(--card); stroke-width:2.5px; }
svg .onhop { font-size:9.5px; font-weight:700; fill:var(--onhop); }
svg .hop { fill:hsl(var(--hue) 62% var(--depth)); } svg .empty,svg .idle,svg .track { fill:var(--faint); }
svg .cell { shape-rendering:crispEdges; }
svg .frame { fill:transparent; stroke:var(--card); stroke-width:2; }
svg .bar.first { fill:var(--first); } svg .bar.second { fill:var(--second); } svg .bar.bad { fill:var(--bad); }
svg .mark { stroke:var(--mark); stroke-width:1.4; stroke-dasharray:4 3; }
svg .pair { fill:var(--faint); stroke:var(--card); stroke-width:1; } svg .pair.visible { fill:var(--first); }
svg .pair.visible.hop { fill:hsl(var(--hue) 62% var(--depth)); }
svg .holder { fill:var(--faint); stroke:var(--line); stroke-width:1; }
svg .holdernumber { font-size:9.5px; font-weight:600; fill:var(--soft); }
svg .wrongtoken { fill:transparent; stroke:var(--bad); stroke-width:2.2; }
footer { margin-top:36px; padding-top:12px; border-top:1px solid var(--line); font-size:.86rem;
  color:var(--soft); overflow-wrap:anywhere; }
@media (min-width:760px) { .failure { grid-template-columns:minmax(0,1fr) minmax(0,330px); } }
@media (max-width:700px) {
  table.stack thead { display:none; } table.stack tr { display:grid; grid-template-columns:repeat(3,1fr);
    padding:10px 14px; border-bottom:1px solid var(--line); gap:0 10px; }
  table.stack td:first-child { grid-column:span 2; } .chips li { font-size:.8rem; padding:1px 7px; }
  table.stack td { border:0; padding:3px 0; text-align:left; white-space:normal; }
  table.stack td[data-label]::before { content:attr(data-label); display:block; font-size:.75rem;
    color:var(--soft); }
  table.stack tr:last-child { border-bottom:0; } th,td { padding:6px 8px; } .laws .id { display:none; }
  table.laws .mark { width:1.7em; } table.laws small { display:none; } }
@media print {
  :root { --page:#fff; --card:#fff; --ink:#000; --soft:#444; --line:#bbb; --faint:#eee; --good:#0b5a43;
    --good-back:#fff; --bad:#a01208; --bad-back:#fff; --first:#2f5bc4; --second:#9db8ee; --mark:#a33a08;
    --depth:46%; --onhop:#fff; }
  * { print-color-adjust:exact; -webkit-print-color-adjust:exact; }
  body { font-size:10.5pt; } th,td { padding:4px 6px; } table { font-size:.82rem; } main { padding:0; max-width:none; } .verdict { border:1.5px solid; }
  .cards { grid-template-columns:repeat(2,minmax(0,1fr)); } tr,figure,.failure { break-inside:avoid; }
  h2 { break-after:avoid; } .lawlist { display:none; } .facts { font-size:.72rem; } }
)css";

}  // namespace

std::string_view style_sheet() { return kStyleSheet; }

std::string escape(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') safe += c;
    }
  }
  return safe;
}

std::string html_page(const HtmlPage& page) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n{}</main>\n{}</body>\n"
      "</html>\n",
      escape(page.title), style_sheet(), page.more_style, page.body, page.after);
}

std::string verdict_banner(bool good, const std::string& sign, const std::string& html) {
  return fmt::format("<div class=\"verdict {}\"><b>{}</b><div>{}</div></div>\n",
                     good ? "good" : "bad", escape(sign), html);
}

std::string chips(const std::vector<std::pair<std::string, std::string>>& named) {
  std::string html = "<ul class=\"chips\">";
  for (const auto& [name, value] : named) {
    html += fmt::format("<li><b>{}</b> {}</li>", escape(name), escape(value));
  }
  return html + "</ul>\n";
}

std::string html_table(const std::vector<std::string>& titles, const std::string& rows,
                       const std::string& css_class) {
  std::string head;
  for (const std::string& title : titles) {
    const bool numbers = title.starts_with('#');
    head += fmt::format("<th{}>{}</th>", numbers ? " class=\"n\"" : "",
                        escape(std::string_view(title).substr(numbers ? 1 : 0)));
  }
  return fmt::format(
      "<div "
      "class=\"framed\"><table{}><thead><tr>{}</tr></thead><tbody>\n{}</tbody></table></div>\n",
      css_class.empty() ? "" : fmt::format(" class=\"{}\"", css_class), head, rows);
}

std::string figure(const HtmlFigure& parts) {
  std::string html = parts.chosen ? "<figure class=\"chosen\">" : "<figure>";
  html += fmt::format("<header><h3>{}</h3><span>{}</span></header>{}", escape(parts.heading),
                      escape(parts.remark), parts.picture);
  if (!parts.caption.empty()) {
    html += fmt::format("<figcaption>{}</figcaption>", escape(parts.caption));
  }
  return html + "</figure>\n";
}

}  // namespace ringlab::report
