// The page of a report of the Python package, which notebooks show.

function reportPage(data) {
  const broken = data.laws.filter(({ failure }) => failure);
  const replay = failure => ({ ...failure, replay: `report.replay(fn, ${JSON.stringify(failure.token)})` });
  const breaches = broken.map(law => breachCard({ law: { ...law, failure: replay(law.failure) }, names: [data.subject] }));
  const remarks = [...data.gaps.map(gap => `no pass: ${gap}`), data.diagnosis, data.passes_if, ...data.findings].filter(Boolean);
  const held = data.laws.filter(({ skipped }) => !skipped), skipped = data.laws.filter(law => law.skipped);
  const row = law => [law.id, law.verdict, law.cases, law.failure || law.skipped ? "" : digits(law.worst_ratio), law.skipped ?? law.statement];
  return { title: `ringlab: ${data.subject}`, body: [
    banner(data.passed, data.headline), remarks.map(words => html`<p>${words}</p>`), breaches[0],
    breaches.length > 1 && folded(`${breaches.length - 1} more`, breaches.slice(1)),
    folded("All laws", table(["law", "verdict", "#cases", "#error / bound", ""], [...held, ...skipped].map(row))),
    data.tried.forward && folded("What was tried", triedTable(data.tried))] };
}
