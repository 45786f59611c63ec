// A trace drawn: one lane per rank and kind of work, time to the right. Events are those of the
// trace event format: { cat, name, ts, dur, args }, times in microseconds.

const LANES = ["compute", "send", "receive", "wait"];

/** 1, 2 or 5 times a power of ten, for about `parts` steps over the span. */
function niceStep(span, parts) {
  if (!(span > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(span / parts));
  return [1, 2, 5].map(factor => factor * power).find(step => step * parts >= span) ?? 10 * power;
}

function eventTitle({ name, dur, args }) {
  const peer = args.peer >= 0 ? `${name.startsWith("send") ? " to" : " from"} rank ${args.peer}` : "";
  const size = args.bytes > 0 ? `, ${bytes(args.bytes)}` : "";
  const pass = args.pass === "backward" ? ", backward pass" : "";
  return `rank ${args.rank}, ${name}${peer}, took ${seconds(dur * 1e-6)}${size}${pass}`;
}

function lanes(events, description) {
  const width = 1100, left = 112, right = 14, top = 8, axis = 26, lane = 11, gap = 8;
  const height = LANES.length * lane + gap;
  const ranks = events.reduce((most, { args }) => Math.max(most, args.rank + 1), 0);
  const begin = events.reduce((least, { ts }) => Math.min(least, ts), Infinity);
  const span = events.reduce((most, { ts, dur }) => Math.max(most, ts + dur - begin), 0);
  const x = time => left + (span > 0 ? (time - begin) / span : 0) * (width - left - right);
  const y = (rank, kind) => top + rank * height + Math.max(LANES.indexOf(kind), 0) * lane;  // sums are computed
  const bottom = top + ranks * height - gap;
  const tracks = upTo(ranks).map(rank => [
    label(2, y(rank, "receive"), `rank ${rank}`),
    LANES.map(kind => [
      rect({ x: left, y: y(rank, kind), width: width - left - right, height: lane - 1.5 }, "track"),
      label(left - 6, y(rank, kind) + 8.2, kind, "lane", "end")])]);
  const step = Math.max(niceStep(span, 8), 1e-3);
  const ticks = upTo(Math.floor(span / step) + 1).map(index => {
    const time = index * step, place = x(begin + time);
    return [line(place, top, place, bottom + 4, "tick"),
      label(place, bottom + 17, time === 0 ? "0" : seconds(time * 1e-6), "small", "middle")];
  });
  const boxes = events.map(event => {
    const { cat, ts, dur, args } = event, from = x(ts), long = Math.max(x(ts + dur) - from, 0.4);
    const box = rect({ x: from, y: y(args.rank, cat), width: long, height: lane - 1.5 }, `event ${cat}`, eventTitle(event));
    const named = cat === "compute" && args.owner >= 0 && long > 16;
    return [box, named && label(from + long / 2, y(args.rank, cat) + 7.8, args.owner, "onevent", "middle")];
  });
  return svg(width, bottom + axis, description, [tracks, ticks, boxes]);
}

/** The lanes with their legend. */
function lanesFigure(events, description, caption) {
  return html`<figure><div class="wide">${lanes(events, description)}</div>${legend([
    ["compute", "attention, with the chunk's owner"], ["add", "sum of gradients"], ["send", "send under way"],
    ["receive", "receive under way"], ["wait", "stands still"]])}<figcaption>${caption}</figcaption></figure>`;
}
