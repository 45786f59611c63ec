// Pages of `ringlab compare` and `ringlab bench`: rows next to one another.

function comparedChart(ways, name, unit) {
  return barChart({ description: name, rows: ways.map(way => ({ name: way.way,
    bars: [{ value: way[name], label: inUnit(unit)(way[name]), css: way.exact ? "first" : "second" }] })) });
}

function answerWords(way) {
  if (!way.exact) return `${percent(way.wrong_numbers / way.numbers)} of the numbers wrong`;
  return way.passed ? "within its bounds" : "WRONG";
}

function comparePage(data) {
  const { ways, passed } = data;
  return { title: `ringlab compare: ${passed ? "as computed" : "wrong"}`, body: [html`<h1>Every way to one attention</h1>`,
    banner(passed, passed ? "Every exact way is right, and sent what its closed form says" : "Some way is wrong, or sent other bytes than computed",
      plural(ways.length, "way")),
    legend([["first", "exact"], ["second", "leaves something out"]]),
    cards([figure("Bytes sent", "sum over ranks", comparedChart(ways, "sent_bytes", "bytes")),
      figure("K/V held", "of the fullest rank", comparedChart(ways, "peak_kv_bytes", "bytes")),
      figure("Idle", "share of the run", comparedChart(ways, "idle", "share"))]),
    nextStep("Ask which of them is fastest on a machine of yours.", "ringlab plan --help"),
    table(["way", "#sent", "#K/V held", "#memory", "#pairs", "#idle", "#time", "answer"], ways.map(way => [html`<b>${way.way}</b>`,
      bytes(way.sent_bytes), bytes(way.peak_kv_bytes), bytes(way.peak_bytes), count(way.pairs), percent(way.idle),
      seconds(way.seconds), answerWords(way)])),
    folded("Configuration", configuration(data)), footer(data)] };
}

function benchPage(data) {
  const { lines } = data;
  const name = row => `${row.subject}, ${count(row.tokens)} tokens${row.ranks > 1 ? `, ${row.ranks} ranks` : ""}`;
  const right = lines.every(row => row.right !== false);
  const chart = barChart({ description: "median seconds", rows: lines.map(row => ({ name: name(row), bars: [{
    value: row.seconds.median, label: seconds(row.seconds.median), css: row.right === false ? "bad" : "first",
    title: `p10 ${seconds(row.seconds.p10)}, p90 ${seconds(row.seconds.p90)}` }] })) });
  return { title: "ringlab bench", body: [html`<h1>Measured on this machine</h1>`,
    banner(right, right ? "Every answer that was checked is right" : "Some answer is wrong", plural(lines.length, "line")),
    cards([figure("Time", "median", chart)]),
    table(["subject", "#tokens", "#heads", "#head_dim", "#ranks", "#median", "#p10", "#p90", "#/ first", "#Gflop/s", "#sent", "#error / bound"], lines.map(row => [
      html`<b>${row.subject}</b>`, count(row.tokens), row.heads, row.head_dim, row.ranks, seconds(row.seconds.median),
      seconds(row.seconds.p10), seconds(row.seconds.p90), row.ratio == null ? "" : digits(row.ratio.median),
      row.flops_per_s == null ? "" : digits(row.flops_per_s / 1e9), row.sent_bytes == null ? "" : bytes(row.sent_bytes),
      row.worst_ratio == null ? "" : digits(row.worst_ratio)])),
    folded("Configuration", configuration(data)), footer(data)] };
}
