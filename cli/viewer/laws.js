// Laws and coverage on the page of `ringlab verify`.

function lawMark({ verdict, cases }) {
  const [css, sign] = verdict === "broken" ? ["broken", "✗"] : verdict === "skipped" ? ["skipped", "–"] :
    cases === 0 ? ["skipped", "?"] : ["held", "✓"];
  return html`<span class="${css}">${sign}</span>`;
}

function lawTitle(law) {
  if (law.failure) return `broken: ${law.failure.message}`;
  if (law.skipped) return `skipped: ${law.skipped}`;
  return `held in ${law.cases} cases, worst error / bound ${digits(law.worst_ratio)}, ${law.discarded} discarded`;
}

function lawsTable(subjects) {
  const heads = subjects.map(({ subject }, index) => html`<th class="mark" title="${subject}">${index + 1}</th>`);
  const rows = subjects[0].laws.map((law, index) => html`<tr><td class="id">${law.id}</td><td>${
    law.name.replaceAll("_", " ")}<small>${law.statement}</small></td>${
    subjects.filter(({ laws }) => index < laws.length).map(({ laws }) =>
      html`<td class="mark" title="${lawTitle(laws[index])}">${lawMark(laws[index])}</td>`)}</tr>`);
  return html`<div class="framed"><table class="laws"><thead><tr><th class="id">law</th><th></th>${heads}</tr></thead><tbody>${
    rows}</tbody></table></div><p class="legend">${subjects.map(({ subject }, index) => html`<span>${index + 1} ${subject}</span>`)}</p>`;
}

/** Each reason to skip once, with its laws and subjects: [["P1, P2", "ring, merge", reason], …]. */
function skips(subjects) {
  const groups = new Map();
  const skipped = subjects.flatMap(({ laws }) => laws).filter(law => law.skipped);
  for (const [reason, id] of new Map(skipped.map(law => [`${law.skipped}\n${law.id}`, [law.skipped, law.id]])).values()) {
    const names = subjects.filter(({ laws }) => laws.some(law => law.id === id && law.skipped === reason))
      .map(({ subject }) => subject).join(", ");
    const key = `${reason}\n${names}`;
    groups.set(key, [[...(groups.get(key)?.[0] ?? []), id], names, reason]);
  }
  return [...groups.values()].map(([ids, names, reason]) => [ids.join(", "), names, reason]);
}

function laws(data) {
  const { subjects } = data;
  if (!subjects[0]?.laws.length) return "";
  const reasons = skips(subjects);
  return [html`<h2>Laws</h2>`, soft("Statements that every exact attention satisfies, each tried on random small cases. "
    + "✓ held · ✗ broken · – skipped · ? no case applied"), lawsTable(subjects),
    reasons.length > 0 && html`<h3>Skipped, and why</h3><ul class="soft">${
      reasons.map(([ids, names, reason]) => html`<li>${ids} (${names}): ${reason}</li>`)}</ul>`];
}

/** The rarest kinds of cases, each for the subject that had fewest. */
function rarestClasses(subjects) {
  const least = new Map();
  for (const { subject, coverage } of subjects.filter(one => one.coverage.judged)) {
    for (const [name, { cases, share, required }] of Object.entries(coverage.classes)) {
      if (required && !(share >= least.get(name)?.share)) least.set(name, { name, cases, share, subject });
    }
  }
  return [...least.values()].sort((a, b) => a.share - b.share);
}

function shares(subjects) {
  const enough = 0.02, classes = rarestClasses(subjects);
  if (classes.length === 0) return "";
  const rows = classes.slice(0, 18).map(({ name, cases, share, subject }) => ({ name, bars: [{ value: share,
    label: percent(share), css: share >= enough ? "first" : "bad", title: `${cases} cases of ${subject}` }] }));
  const chart = barChart({ description: "share of the cases in each class", rows, marks: [{ value: enough, label: "2 %" }], least: 0.1 });
  return [html`<h2>What was tried</h2>`, soft("Kinds of cases that a subject supports have to make up 2 % of its cases or "
    + `more, or the verification fails. Here the rarest of ${classes.length}, each for the subject that had fewest.`),
    cards(figure("Rarest classes of cases", "share of all cases that held", chart, "A case is in several classes."))];
}

function passRows(name, { calls, sizes, kinds }) {
  const ranges = Object.entries(sizes).map(([size, [least, most]]) => [size, least === most ? least : `${least} … ${most}`]);
  const words = Object.entries(kinds).map(([kind, calls]) => [kind,
    Object.entries(calls).map(([word, number]) => `${word} (${number})`).join(", ")]);
  return [[name, `${calls} calls`], ...ranges, ...words].map(([title, text]) => html`<tr><th>${title}</th><td>${text}</td></tr>`);
}

/** The range of cases that reached a subject. */
function triedTable({ forward, gradients, refused, claimed_not_tried: missing,
  pairs = { claimed: 0, not_met: [] }, as_used: used = [] }) {
  const open = pairs.not_met, shown = 12;
  return [pairs.claimed > 0 && html`<p>Pairs of claims that met: ${pairs.claimed - open.length} of ${pairs.claimed}${
    open.length > 0 && `; not met: ${open.slice(0, shown).join(", ")}${open.length > shown ? ", …" : ""}`}</p>`,
    used.length > 0 && folded("Calls at sizes of models", html`<table class="facts">${used.map(({ sizes, calls, open: wide = 0 }) =>
      html`<tr><th>${sizes}</th><td>${calls > 0 ? calls : wide > 0 ? "open: bounds as wide as the answer" : "none"}</td></tr>`)}</table>`), html`<table class="facts">${passRows("forward", forward)}${
    gradients.calls > 0 && passRows("with gradients", gradients)}</table>`,
    refused > 0 && html`<p>Cases refused although claimed: ${refused}</p>`,
    missing.length > 0 && html`<p>Claimed, but not tried: ${missing.join(", ")}</p>`];
}

function coverage(data) {
  return [shares(data.subjects), data.subjects.map(({ subject, gaps, coverage: { cases, tried } }) => [
    gaps.map(gap => html`<p>No pass for ${subject}: ${gap}</p>`),
    cases > 0 && folded(`What was tried of ${subject}`, triedTable(tried))])];
}
