// The page of a certificate, made to be printed on one or two sheets.

const isPass = word => word.startsWith("PASS");

function shown(value) {
  if (typeof value === "number") return Number.isInteger(value) ? String(value) : digits(value);
  return typeof value === "string" ? value : JSON.stringify(value);
}

function facts(named) {
  return html`<table class="facts">${Object.entries(named).map(([name, value]) =>
    html`<tr><th>${name.replaceAll("_", " ")}</th><td><code>${shown(value)}</code></td></tr>`)}</table>`;
}

function factCard(title, ...tables) { return html`<div class="card"><h3>${title}</h3>${tables.map(facts)}</div>`; }

function seal({ verdict, subjects, strength, ringlab, written, digest }) {
  const power = strength.known ? `a suite that finds ${strength.killed} of ${strength.mutants} planted mistakes` : "a suite of unknown strength";
  return html`<div class="verdict ${isPass(verdict) ? "good" : "bad"}"><b>${verdict}</b><div>${
    subjects.map(one => `${one.verdict} ${one.subject}`).join(", ")}<br><span>ringlab ${ringlab.version} · ${power} · ${written} · ${
    digest.slice(0, 23)}</span></div></div>`;
}

function faultCard(fault, library) {
  const place = ["rank", "step", "element", "suspected_cause", "doubt"].map(name => [name, fault[name]]);
  return html`<div class="card failure"><div><h3>${fault.class} · ${fault.law}</h3><p>${fault.statement}</p>${chips(place)}<pre>${
    shown(fault.found)}</pre>${fault.replay !== "" && [soft(`Smallest case: ${fault.smallest_case}`),
    html`<pre>ringlab verify ${library}--replay ${fault.replay}</pre>`]}</div></div>`;
}

function lawsTried({ laws: tried }) {
  const rows = tried.filter(({ verdict }) => verdict !== "skipped").map(law => [law.id,
    html`<span class="${law.verdict === "held" ? "held" : "broken"}">${law.verdict}</span>`, law.cases, shown(law.worst_ratio),
    shown(law.worst_element ?? "")]);
  const reasons = new Map();
  for (const law of tried.filter(({ verdict }) => verdict === "skipped")) {
    const why = law.skipped ?? "no case applied";
    reasons.set(why, [...(reasons.get(why) ?? []), law.id]);
  }
  return [table(["law", "verdict", "#cases", "#error / bound", "worst element"], rows, false), reasons.size > 0 && [soft("Skipped laws"),
    html`<ul class="soft">${[...reasons].map(([why, ids]) => html`<li>${why}: ${ids.join(" ")}</li>`)}</ul>`]];
}

function certifiedSubject(subject) {
  // A token that names content needs the file beside it.
  const library = subject.content === "" ? "" : `${subject.subject} `;
  const { exact_probes: probes, determinism: repeats, coverage: { cases, tried } } = subject;
  const said = ["warnings", "findings", "remarks"].flatMap(name => subject[name].map(words => soft(`${name}: ${words}`)));
  return html`<h2>${subject.subject} <span class="tag ${isPass(subject.verdict) ? "good" : "bad"}">${subject.verdict}</span></h2><p>${
    subject.sentence}</p>${said}${subject.gaps.map(gap => html`<p>${gap}</p>`)}${
    subject.faults.map(fault => faultCard(fault, library))}${cards([factCard("Declared numerics", subject.declared_numerics),
    factCard("Checks", { input: subject.input.verdict, exact_probes: `${probes.held} of ${probes.tried} held`,
      repeated_runs: `${repeats.held} of ${repeats.tried} laws held`, cases_held: cases, rounds: subject.rounds,
      cases_sha256: subject.cases_sha256 })])}<details class="lawlist" open><summary>What was tried</summary>${
    triedTable(tried)}</details><details class="lawlist" open><summary>Laws tried</summary>${lawsTried(subject)}</details>`;
}

function certificatePage(data) {
  const { laws_added_since: _, ...strength } = data.strength;
  return { title: `ringlab certificate: ${data.verdict}`, body: [html`<h1>Certificate of verification</h1>`, seal(data),
    data.subjects.map(certifiedSubject), data.not_checked.length > 0 && html`<h2>Not checked</h2><ul>${
      data.not_checked.map(({ what, why }) => html`<li>${what}: ${why}</li>`)}</ul>`,
    html`<h2>The verifier</h2>`, cards([factCard("Its strength", strength), factCard("Its reference", data.oracle),
      factCard("Program and machine", data.ringlab, data.machine), factCard("Cases", data.cases)]),
    html`<footer>Digest of this document: <code>${data.digest}</code>. It shows changes, not who made them: it is no signature.
      <code>ringlab verify --check-certificate FILE</code> compares it; with <code>--again</code> the verification is repeated.</footer>`] };
}
