// Pages of `ringlab plan`: the choice, its parts, and what would change it.

const isTraining = ({ choice }) => "replicas" in choice;
const isServing = ({ choice }) => "pass" in choice;

/** A chart that the program computed: { heading, remark, caption, unit, rows: [{ name, values, fits }],
 *  marks }. The second value of a row is another choice. */
function computedChart({ heading, remark, caption, unit, rows, marks = [], least = 0 }) {
  const human = inUnit(unit);
  const bars = ({ values, fits = true }) => values.map((value, index) =>
    ({ value, label: human(value), css: !fits ? "bad" : index === 0 ? "first" : "second" }));
  return figure(heading, remark, barChart({ description: heading, least, marks: marks.map(
    ({ value, label: words }) => ({ value, label: `${human(value)} ${words}` })), rows: rows.map(row => ({ name: row.name, bars: bars(row) })) }), caption);
}

function splitWords(way) {
  const heads = way.by_heads > 1 ? ` · heads over ${way.by_heads}` : "";
  const replicas = way.replicas ? ` · replicas ${way.replicas}` : "";
  return `context ${way.context}${heads} · tensor ${way.tensor} · stages ${way.stages}${replicas}`;
}

function wayOptions(way) {
  const slots = way.slots ? ` --slots ${way.slots}` : "";
  return `--ranks ${way.ranks} --layout ${way.layout} --schedule ${way.schedule}${slots}`;
}

/** The best way of each number of ranks. */
function ranksChart(plans) {
  const rows = plans.map(({ best, holds }) => ({ fits: holds, values: [best.efficiency],
    name: `${plural(best.ranks, "rank")}: ${seconds(best.seconds)}, ${best.layout} ${best.schedule}${best.slots ? `, slots ${best.slots}` : ""}` }));
  return { heading: "More ranks", remark: "efficiency", unit: "share", rows, least: 1,
    caption: "The best way of each number of ranks. Red does not keep the limits." };
}

function splitsTable(data) {
  const ways = data.ways.slice(0, 16);
  if (isServing(data)) {
    return table(["split", "goes round", "#time", "#tokens/s", "#memory"], ways.map(way => [splitWords(way), way.pass,
      seconds(way.seconds), digits(way.tokens_per_second, 4), bytes(way.memory_bytes)]));
  }
  return table(["split", "kept", "cut", "ring", "#step", "#utilisation", "#memory"], ways.map(way => [splitWords(way),
    way.keep, way.shard, way.schedule === "double" ? "by nodes" : "plain", seconds(way.seconds), percent(way.utilisation),
    bytes(way.memory_bytes)]));
}

function waysTable({ plans }) {
  return table(["ranks", "layout", "schedule", "#slots", "#time", "#efficiency", "#memory"], plans.map(({ best }) => [best.ranks,
    best.layout, best.schedule, best.slots ?? "all", seconds(best.seconds), percent(best.efficiency), bytes(best.memory_bytes)]));
}

function reasons({ choice }) {
  return html`<ul class="soft">${(choice.reasons ?? []).map(({ part, sentence }) => html`<li><b>${part}</b> ${sentence}</li>`)}${
    (choice.what_if ?? []).map(({ change, seconds: then, same_choice: same }) =>
      html`<li>With ${change}: ${seconds(then)}${same ? "" : ", and another choice is better then"}</li>`)}</ul>`;
}

function planHead(data) {
  const { choice, configuration: { machine, model, phase, devices } } = data;
  if (isTraining(data)) return `A step of ${model} on ${devices} ${machine}`;
  if (isServing(data)) return `${phase === "decode" ? "A token" : "A prompt"} of ${model} on ${devices} ${machine}`;
  return `Attention on ${choice.ranks} ${machine}`;
}

function planVerdict(data) {
  const { choice } = data;
  const words = "ranks" in choice ? wayOptions(choice) : splitWords(choice);
  const expected = choice.expected_seconds ? `${seconds(choice.expected_seconds)} expected on real devices` : "";
  const { efficiency, utilisation } = choice;
  return banner(undefined, `${words}: ${seconds(choice.seconds)}`, [expected, efficiency && `${percent(efficiency)} efficient`,
    utilisation && `${percent(utilisation)} of the peak`, `${bytes(choice.memory_bytes)} of memory on a device`]
    .filter(Boolean).join(", "));
}

function planPage(data) {
  const { choice, drawn } = data;
  const parts = choice.memory ? [
    figure("Memory of a device", bytes(choice.memory_bytes), partsChart("memory by parts", choice.memory, "bytes")),
    figure("Time", seconds(choice.seconds), partsChart("time by parts", choice.time, "seconds"))] : [];
  const charts = [...(data.plans ? [ranksChart(data.plans)] : []), ...drawn.charts];
  const figures = [...parts, ...charts.map(computedChart)], rest = figures.slice(2);
  return { title: "ringlab plan", body: [html`<h1>${planHead(data)}</h1>`, planVerdict(data), cards(figures.slice(0, 2)),
    "ranks" in choice && nextStep("See what each rank does in it:", `ringlab simulate ${wayOptions(choice)} --html rings.html`),
    reasons(data),
    chips([["tokens/s", choice.tokens_per_second && digits(choice.tokens_per_second, 4)],
      ["longest context", choice.longest_context && count(choice.longest_context)],
      ["device-hours for a billion tokens", choice.device_hours_per_billion_tokens && digits(choice.device_hours_per_billion_tokens)]]),
    rest.length > 0 && folded("What would change it", cards(rest)),
    drawn.events && folded("The ring", lanesFigure(drawn.events, "what ranks do", drawn.caption)),
    folded(data.plans ? "Numbers of ranks" : "Splits", data.plans ? waysTable(data) : splitsTable(data)),
    folded("Configuration", configuration(data)), footer(data)] };
}
