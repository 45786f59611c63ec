// Horizontal bars: a row per name, one or more values each, lines for what is expected.

/** chart: { description, rows: [{ name, bars: [{ value, label, css, title }] }], marks: [{ value,
 *  label }], least }. Values that are not finite, or beyond twice the largest mark where there are
 *  marks, reach the right edge; their label tells the number. */
function barChart({ description, rows, marks = [], least = 0 }) {
  const width = 360, left = 2, plot = width - 72, bar = 13, name = 17, gap = 7, mark = 14;
  const furthest = Math.max(least, ...marks.map(({ value }) => value));
  const limit = marks.length > 0 ? 2 * furthest : Infinity;
  const values = rows.flatMap(row => row.bars.map(({ value }) => value)).filter(Number.isFinite);
  const span = Math.max(furthest, ...values.map(value => Math.min(value, limit))) || 1;
  const shapes = [];
  let y = mark * marks.length + 4;
  for (const row of rows) {
    shapes.push(label(left, y + 12, row.name));
    y += name;
    for (const { value, label: words, css, title } of row.bars) {
      const part = Number.isFinite(value) ? Math.min(Math.max(value / span, 0), 1) : 1;
      shapes.push(rect({ x: left, y, width: plot, height: bar - 2 }, "track"));
      shapes.push(rect({ x: left, y, width: Math.max(part * plot, value > 0 ? 1 : 0), height: bar - 2 }, `bar ${css}`, title));
      shapes.push(label(width - 2, y + 9.5, words, "small number", "end"));
      y += bar;
    }
    y += gap;
  }
  marks.forEach(({ value, label: words }, index) => {
    const x = left + plot * value / span, top = mark * index + 10, onLeft = x > width / 2;
    shapes.push(line(x, top - 9, x, y - gap, "mark"));
    shapes.push(label(onLeft ? x - 4 : x + 4, top, words, "small marklabel", onLeft ? "end" : "start"));
  });
  return svg(width, y, description, shapes);
}

/** Named amounts of one unit as bars, without empty ones. */
function partsChart(description, parts, unit) {
  const rows = Object.entries(parts).filter(([, amount]) => amount > 0)
    .map(([name, value]) => ({ name, bars: [{ value, label: inUnit(unit)(value), css: "first" }] }));
  return barChart({ description, rows });
}
