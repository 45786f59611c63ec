// The explanation of a wrong answer: the name of the mistake, the smallest case as a picture, what
// was found, a question, and what to do next.

/** The map of a failing case with a caption; nothing where there is none. */
function casePicture(map, element) {
  const picture = map && caseMap(map, element);
  return picture && html`<div class="picture">${picture}${soft("Queries down, keys across; filled pairs are visible, the "
    + "framed row or column is wrong. The margins tell which rank holds a token.")}</div>`;
}

function answerCard(subject, answer) {
  const paragraph = (title, words) => words && html`<p><b>${title}</b> ${words}</p>`;
  const others = answer.other_laws > 0 ? `; and ${answer.other_laws} more below` : "";
  return html`<div class="card failure"><div><h2>${subject}: ${answer.name}</h2>${[
    paragraph("Smallest case:", answer.case), paragraph("Found:", answer.found), paragraph("Again:", answer.again),
    answer.seen.map(words => paragraph("Seen:", words)), paragraph("Think:", answer.question),
    paragraph("Breaks", answer.law + others), answer.replay && nextStep("Run it again:", answer.replay)]}</div>${
    casePicture(answer.map, answer.at)}</div>`;
}

/** Failures of one law in one and the same smallest case, with the subjects that have them. */
function breachesOf(subjects) {
  const breaches = new Map();
  for (const { subject, laws } of subjects) {
    for (const law of laws.filter(({ failure }) => failure)) {
      const key = `${law.id} ${law.failure.case}`;
      if (!breaches.has(key)) breaches.set(key, { law, names: [] });
      breaches.get(key).names.push(subject);
    }
  }
  return [...breaches.values()];
}

function breachCard({ law: { id, statement, failure }, names }) {
  const again = failure.doubt ? `\n${failure.doubt}` : "";
  return html`<div class="card failure"><div><h3>${names.join(", ")} ${names.length === 1 ? "breaks" : "break"} ${id}</h3>
    <p>${statement}</p>${soft(`Smallest case found (${failure.shrinks} shrinks): ${failure.case}`)}<pre>${
    failure.message + again}</pre>${failure.replay && html`${soft("Run it again:")}<pre>${failure.replay}</pre>`}</div>${
    casePicture(failure.map, failure.at)}</div>`;
}

function inputCard({ subject, input }) {
  return html`<div class="card failure"><div><h3>${subject} is wrong on the input</h3><pre>${
    input.error ?? input.summary}</pre></div></div>`;
}

function failures(data) {
  const wrong = data.subjects.filter(({ input }) => !input.passed && !input.skipped);
  return [wrong.map(inputCard), breachesOf(data.subjects).map(breachCard)];
}

function insightCard({ subject, insight }) {
  const texts = [insight.explains.length > 0 && html`<p><b>${insight.sentence}</b></p>`,
    insight.passes_if && html`<p>${insight.passes_if}</p>`, insight.findings.map(soft),
    insight.warnings.map(words => soft(`Warning: ${words}`)), insight.remarks.map(soft)];
  return piece(texts) !== "" && html`<div class="card"><div><h3>${subject}</h3>${texts}</div></div>`;
}

function diagnoses(data) {
  const all = data.subjects.map(insightCard).filter(Boolean);
  return all.length > 0 && [html`<h2>Diagnosis</h2>`, all];
}
