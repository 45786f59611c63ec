// The page of `ringlab verify`: verdict, mistakes, work, errors, costs, laws.

const brokenLaws = ({ laws }) => laws.filter(({ failure }) => failure).length;

/** The largest error / bound of the laws that held, infinite when one was broken. */
function lawRatio(subject) {
  return Math.max(0, ...subject.laws.map(law => law.failure ? Infinity : numberOf(law.worst_ratio)));
}

function lawsText(subject) {
  const broken = brokenLaws(subject);
  return broken > 0 ? `${broken} broken` : digits(lawRatio(subject));
}

function inputText({ input }) {
  return input.skipped ? "skipped" : input.report ? digits(input.report.worst_ratio) : "failed";
}

function verdictTag({ passed, verdict }) { return html`<span class="tag ${passed ? "good" : "bad"}">${verdict}</span>`; }

function summary(data) {
  const titles = ["subject", "verdict", "#error / bound, input", "#error / bound, laws", "#laws held", "#skipped",
    "#bytes moved", "#peak per rank", "#time, input"];
  return [html`<h2>Summary</h2>`, table(titles, data.subjects.map(subject => [html`<b>${subject.subject}</b>`,
    verdictTag(subject), inputText(subject), lawsText(subject), `${subject.laws_held} of ${subject.laws.length}`,
    subject.laws_skipped, bytes(subject.input.sent_bytes ?? 0), bytes(subject.input.peak_bytes_per_rank ?? 0),
    seconds(subject.input.seconds ?? 0)]))];
}

function errorChart(subjects) {
  const bar = (ratio, words, css) => ({ value: ratio, label: words, css: ratio <= 1 ? css : "bad" });
  const rows = subjects.filter(({ input, laws: { length } }) => input.report || length > 0).map(subject => ({
    name: subject.subject, bars: [
      ...(subject.input.error ? [bar(Infinity, "input failed")] : []),
      ...(subject.input.report?.tensors ?? []).map(({ tensor, worst }) =>
        bar(numberOf(worst.ratio), `${tensor} ${digits(worst.ratio)}`, "first")),
      bar(lawRatio(subject), `laws ${lawsText(subject)}`, "second")] }));
  return barChart({ description: "worst error over bound of each subject", rows, marks: [{ value: 1, label: "bound" }], least: 1.02 });
}

/** Bytes of K and V of so many tokens. */
function cacheBytes({ k, v, dtype }, tokens) {
  const size = { f64: 8, f32: 4 }[dtype] ?? 2;
  return k[0] * k[1] * tokens * (k[3] + v[3]) * size;
}

function trafficFigure({ subjects, configuration }) {
  const moved = cacheBytes(configuration, configuration.k[2]) * (configuration.ranks - 1);
  const rows = subjects.map(({ subject, input: { sent_bytes: sent = 0 } }) =>
    ({ name: subject, bars: [{ value: sent, label: bytes(sent), css: "first" }] }));
  return figure("Bytes moved", "sum over ranks", barChart({ description: "bytes moved by each subject", rows,
    marks: [{ value: moved, label: `(P−1) · all K/V = ${bytes(moved)}` }] }),
  "The mark is what every K/V chunk visiting every other rank once costs. Headers and positions that travel along come on top.");
}

function memoryFigure({ subjects, configuration, drawn }) {
  const rows = subjects.map(({ subject, input: { peak_kv_bytes_per_rank: held = 0, peak_bytes_per_rank: peak = 0 } }) => ({
    name: subject, bars: [
      { value: held, label: `K/V ${bytes(held)}`, css: "first", title: "K/V chunks held at one time" },
      { value: peak, label: `all ${bytes(peak)}`, css: "second", title: "every buffer besides inputs and outputs" }] }));
  const all = cacheBytes(configuration, configuration.k[2]);
  const chosen = drawn.layouts.find(({ chosen: is }) => is);
  const two = chosen && cacheBytes(configuration, 2 * Math.max(...chosen.key_tokens));
  return figure("Peak memory", "of the rank that holds most", barChart({ description: "peak memory of each subject", rows, marks: [
    ...(chosen ? [{ value: two, label: `two chunks, 2N/P = ${bytes(two)}` }] : []), { value: all, label: `all K/V, N = ${bytes(all)}` }] }),
  "Measured allocations. A broadcast holds all keys and values; a ring two chunks.");
}

function errorFigure({ subjects }) {
  return figure("Error against bound", "1 is the limit", errorChart(subjects), "Largest |got − exact| / allowed over all compared "
    + "elements. Longer than the mark is wrong; a bar near zero means a loose bound or an exact input, not a better subject.");
}

function costs(data) {
  return [html`<h2>Error and cost</h2>`, legend([["first", "on the input"], ["second", "under the laws"], ["bad", "outside"]]),
    cards([errorFigure(data), trafficFigure(data), memoryFigure(data)])];
}

function hopLegend(hops) {
  return html`<p class="legend"><span>computed at hop</span>${upTo(hops).map(hop =>
    html`<span><i class="hop" style="${hopStyle(hop, hops)}"></i>${hop}</span>`)}<span><i class="none"></i>nothing visible</span></p>`;
}

function layoutFigure(layout, direction, caption) {
  const hops = workByHop(layout.pairs, direction);
  return figure(layout.layout + (layout.chosen ? " · this run" : ""), busyText(busyShare(hops)),
    [layoutMap(layout, direction), workChart(hops)], caption, layout.chosen);
}

/** Maps of the layouts of this mask, and what the subjects computed when. */
function work({ subjects, configuration: { mask }, drawn: { layouts, direction } }) {
  if (layouts.length === 0) return "";
  const maps = layouts.map(layout => layoutFigure(layout, direction));
  const measured = subjects.map(({ subject, input }) => [subject, measuredWork(input.ranks ?? [])])
    .map(([subject, hops]) => [subject, hops, hops.flat().reduce((sum, pairs) => sum + pairs, 0)]).filter(([, , pairs]) => pairs > 0);
  return [html`<h2>Who computes what, when</h2><p class="soft">Mask <code>${mask}</code> over ${layouts[0].pairs.length} ranks. Above:
    queries (down) against keys (across) in the order the ranks hold them; the number is the hop at which a ring computes the block.
    Below: the pairs each rank has at each hop. Busy is work over time when every hop waits for its busiest rank.</p>`,
  hopLegend(layouts[0].pairs.length), cards(maps), measured.length > 0 && [html`<h2>What the subjects computed</h2>`,
    soft("Recorded during the run: pairs per rank and hop, relative to the busiest."),
    cards(measured.map(([subject, hops, pairs]) => figure(subject, `${count(pairs)} pairs per head`, workChart(hops))))]];
}

function promises(data) {
  const roundoff = u => u === 0 ? "exact" : digits(u, 2);
  return [html`<h2>What each subject promises</h2>`, soft("The bounds above follow from these unit roundoffs; a subject that "
    + "computes less precisely than it promises is wrong."),
  table(["subject", "output", "#accumulation", "#exp", "#probabilities", "#lse", "#rescales"], data.subjects.map(
    ({ subject, profile }) => [html`<b>${subject}</b>`, profile.out_dtype, roundoff(profile.u_accumulate), roundoff(profile.exp_error),
      roundoff(profile.u_probability), roundoff(profile.u_lse), profile.max_rescales]))];
}

/** The map of this run, and the errors where they fit beside it. */
function firstPictures(data) {
  const chosen = data.drawn.layouts.find(layout => layout.chosen);
  const few = data.subjects.length <= 6;
  return (chosen || few) && cards([chosen && layoutFigure(chosen, data.drawn.direction,
    "Which rank computes which block of pairs, and at which hop of a ring; below, the pairs of each rank and hop."), few && errorFigure(data)]);
}

function verifyStep(data) {
  if (!data.passed) return nextStep("Find out why it is not a pass: open “All laws, and what was tried” below.");
  return nextStep("Keep trying new cases for an hour.",
    `ringlab verify ${data.subjects.map(({ subject }) => subject).slice(0, 3).join(" ")} --time 3600`);
}

function verifyPage(data) {
  const { subjects, passed, ended } = data;
  const right = subjects.filter(subject => subject.passed).length;
  const wrong = subjects.filter(({ answer }) => answer).map(({ subject, answer }) => answerCard(subject, answer));
  const lawByLaw = folded("Law by law", wrong.length > 0 && [html`<h2>What went wrong</h2>`, failures(data), diagnoses(data)]);
  return { title: `ringlab verify: ${passed ? "passed" : "wrong"}`, body: [html`<h1>${passed ? "Exact attention, verified" : "Verification of exact attention"}</h1>`,
    banner(passed, `${right} of ${subjects.length} subjects stay inside every bound and keep every law`,
      seconds(data.seconds) + (ended ? `, ${ended}` : "")),
    wrong.length > 0 ? [wrong, lawByLaw, folded("The run", [configuration(data), notes(data), summary(data)])] :
      [firstPictures(data), verifyStep(data), summary(data), diagnoses(data), folded("The run", [configuration(data), notes(data)])],
    folded("Work, errors and costs", [work(data), costs(data)]),
    folded("All laws, and what was tried", [laws(data), coverage(data), promises(data)]),
    footer(data, "Bounds are a-priori, per element, from the fp64 reference with a certified error of its own; a ratio above 1 "
      + "is wrong. A skipped law says why; absent is not passed.")] };
}
