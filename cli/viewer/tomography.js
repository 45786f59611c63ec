// The page of `ringlab verify --tomography`: softmax matrices, read from outside.

/** A matrix as rows of { got, exact, mark }: right weights blue, the deeper the larger; wrong ones orange. */
function softmaxMap({ marks, got, exact }) {
  const longest = Math.max(marks.length, marks[0]?.length ?? 0);
  if (longest === 0) return "";
  const cell = Math.min(Math.max(320 / longest, 3), 20);
  const shapes = marks.map((row, query) => [...row].map((mark, key) => {
    if (mark === " ") return "";
    const weight = Math.max(numberOf(got[query][key]), numberOf(exact[query][key])), right = mark === "=";
    const depth = right ? Math.sqrt(Math.min(Math.max(weight, 0.02), 1)) : 1;
    return rect({ x: cell * key, y: cell * query, width: cell, height: cell }, "hop",
      `query ${query}, key ${key}: ${digits(got[query][key], 4)}, exact ${digits(exact[query][key], 4)}`,
      `${hopStyle(right ? 0 : 1, 2)};opacity:${depth.toFixed(2)}`);
  }));
  return svg(cell * marks[0].length, cell * marks.length, "softmax weights: queries down, keys across", shapes);
}

function tomographyPage(data) {
  return { title: "ringlab: softmax matrices", body: [html`<h1>Softmax matrices, read from outside</h1>`,
    banner(data.passed, data.passed ? "Every weight is right" : "Some weights are wrong by more than rounding",
      "With slices of the identity as values an attention returns its own weights. Right ones are blue, the deeper the larger; "
      + "wrong ones are orange."),
    data.tomography.map(({ subject, findings }, index) => [html`<h2>${subject}</h2>`, findings.map(words => html`<p>${words}</p>`),
      cards((data.drawn.heads[index] ?? []).map((head, number) =>
        figure(`head ${number}`, "queries down, keys across", softmaxMap(head))))]), footer(data)] };
}
