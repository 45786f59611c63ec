// Pages of `ringlab trace` and `ringlab simulate`: what each rank did, and when.

function overlapText(overlap) { return overlap === null ? "none in flight" : percent(overlap); }

function linkText(link) {
  return link ? `rank ${link.from} to rank ${link.to}, p50 ${seconds(link.receive.p50_seconds)}, p99 ${
    seconds(link.receive.p99_seconds)}` : "none";
}

function stragglerText({ straggler, straggler_ratio: ratio }) {
  return straggler === null ? "none" : `rank ${straggler}, ${ratio.toFixed(2)} times the median of the others`;
}

function rankRows(ranks) {
  return ranks.map(rank => [rank.rank, seconds(rank.compute_seconds), seconds(rank.in_flight_seconds),
    seconds(rank.wait_seconds), overlapText(rank.overlap), percent(rank.idle),
    seconds(rank.block.p50_seconds), seconds(rank.block.p99_seconds)]);
}

function linkRows(links) {
  return links.map(({ from, to, bytes: size, receive }) => [`${from} to ${to}`, count(receive.count), bytes(size),
    seconds(receive.p50_seconds), seconds(receive.p99_seconds)]);
}

function traceVerdict(data) {
  const hidden = data.overlap === null ? "Nothing was in flight" :
    `${percent(data.overlap)} of the time with messages in flight was spent computing`;
  return banner(undefined, `${hidden}, and ranks were idle ${percent(data.idle)} of the run`,
    data.straggler === null ? "no rank is slower than the others" : `slow: ${stragglerText(data)}`);
}

function traceStep(data) {
  if (data.straggler !== null) {
    return nextStep(`Look at rank ${data.straggler}: its processor, its device, or blocks that are larger than others.`);
  }
  return nextStep("Weigh other layouts, schedules and slots for this problem.", "ringlab plan --help");
}

function tracePage(data) {
  const name = data.trace.split("/").pop();
  return { title: "ringlab trace", body: [html`<h1>Trace of ${name}</h1>`, traceVerdict(data),
    lanesFigure(data.drawn.events, `what ${data.ranks.length} ranks did in ${seconds(data.seconds)}`,
      "Time from the first event. Overlap is the share of the time with messages in flight that was spent computing."),
    traceStep(data),
    chips([["run", seconds(data.seconds)], ["overlap", overlapText(data.overlap)], ["idle", percent(data.idle)],
      ["straggler", stragglerText(data)], ["slowest link", linkText(data.slowest_link)]]),
    folded("Ranks", table(["rank", "#computing", "#in flight", "#waiting", "#overlap", "#idle", "#block p50", "#block p99"],
      rankRows(data.ranks))),
    data.links.length > 0 && folded("Links", table(["link", "#receives", "#bytes", "#p50", "#p99"], linkRows(data.links)))] };
}

function simulatePage(data) {
  const { machine } = data.configuration;
  const expected = data.expected && `${seconds(data.expected.seconds)} expected on real devices`;
  const rows = (data.ranks ?? []).map((rank, index) => [index, seconds(rank.compute_seconds), seconds(rank.add_seconds),
    seconds(rank.wait_seconds), seconds(rank.incoming_seconds), percent(rank.idle)]);
  return { title: "ringlab simulate", body: [
    html`<h1>A simulated run on ${data.executed_ranks} ranks of ${machine}</h1>`,
    banner(undefined, `${seconds(data.seconds)}, where one device takes ${seconds(data.one_device_seconds)}: ${
      percent(data.efficiency)} efficient`, expected),
    lanesFigure(data.drawn.events, `what ${data.executed_ranks} ranks do in ${seconds(data.seconds)}`,
      "Time on the model of the machine."),
    nextStep("Weigh all layouts, schedules and slots on this machine.", "ringlab plan --help"),
    chips([["memory of the fullest rank", bytes(data.memory_bytes)], ["tokens of a chunk", count(data.chunk_tokens)]]),
    folded("Configuration", configuration(data)),
    folded("Ranks", table(["rank", "#computing", "#adding", "#waiting", "#incoming", "#idle"], rows))] };
}
