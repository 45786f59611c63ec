// Pictures of a run at one moment. Each takes what the program said and says nothing new.
"use strict";

const element = (name, classes, ...inside) => {
  const made = document.createElement(name);
  if (classes) made.className = classes;
  made.append(...inside);
  return made;
};

const drawn = (width, height, label, parts) =>
  `<svg viewBox="0 0 ${width} ${height}" width="${width}" role="img" aria-label="${label}">${parts.join("")}</svg>`;

// The events of a trace as objects, begin and end in ticks.
function eventsOf(trace, kinds) {
  let begin = 0;
  return trace.kind.map((kind, at) => {
    begin += trace.after[at];
    return { kind: kinds[kind], rank: trace.rank[at], owner: trace.owner[at], slot: trace.slot[at],
             peer: trace.peer[at], bytes: trace.bytes[at], begin, end: begin + trace.ticks[at] };
  });
}

// What a rank computes on at a moment; none when it computes on nothing.
const computing = (run, rank, now) =>
  run.events.find(e => e.kind === "compute" && e.rank === rank && e.begin <= now && now < e.end);

function ringPicture(run, now) {
  const size = 300, middle = size / 2, far = 108, radius = run.ranks > 4 ? 24 : 30;
  const place = rank => {
    const turn = 2 * Math.PI * rank / run.ranks - Math.PI / 2;
    return [middle + far * Math.cos(turn), middle + far * Math.sin(turn)];
  };
  const parts = [];
  for (const e of run.events) {  // messages on their way
    if (e.kind !== "receive" || !(e.begin <= now && now < e.end)) continue;
    const [ax, ay] = place(e.peer), [bx, by] = place(e.rank);
    const share = (now - e.begin) / (e.end - e.begin);
    const x = ax + (bx - ax) * (0.3 + 0.4 * share), y = ay + (by - ay) * (0.3 + 0.4 * share);
    parts.push(`<line x1="${ax}" y1="${ay}" x2="${bx}" y2="${by}" class="line"/>`,
      `<rect x="${x - 9}" y="${y - 9}" width="18" height="18" rx="4" class="c${e.owner}"/>`,
      `<text x="${x}" y="${y + 4}" text-anchor="middle" class="on">${e.owner}</text>`);
  }
  for (let rank = 0; rank < run.ranks; ++rank) {
    const [x, y] = place(rank), at = computing(run, rank, now);
    const isDone = !run.events.some(e => e.kind === "compute" && e.rank === rank && e.end > now);
    const does = at ? `chunk ${at.owner}` : isDone ? "done" : "waits";
    parts.push(`<circle cx="${x}" cy="${y}" r="${radius}" class="${at ? `c${at.owner}` : "back"}" stroke="currentColor"/>`,
      `<text x="${x}" y="${y - 2}" text-anchor="middle" class="${at ? "on" : ""}" font-weight="600">rank ${rank}</text>`,
      `<text x="${x}" y="${y + 13}" text-anchor="middle" class="${at ? "on" : ""}">${does}</text>`);
  }
  return drawn(size, size, "ranks in a circle and chunks between them", parts);
}

function tileTable(run, now) {
  const table = element("table"), head = element("tr", "", element("td"));
  for (let owner = 0; owner < run.ranks; ++owner) head.append(element("th", "", `keys ${owner}`));
  table.append(head);
  for (let rank = 0; rank < run.ranks; ++rank) {
    const row = element("tr", "", element("th", "", `queries ${rank}`));
    const order = run.events.filter(e => e.kind === "compute" && e.rank === rank);
    for (let owner = 0; owner < run.ranks; ++owner) {
      const hop = order.findIndex(e => e.owner === owner), pairs = run.pairs[rank][owner];
      if (hop < 0) { row.append(element("td", "none", "0")); continue; }
      const when = now >= order[hop].end ? "" : now >= order[hop].begin ? " now" : " later";
      row.append(element("td", `${pairs ? `c${owner}` : "none"}${when}`, `${hop}`, element("br"), `${pairs}`));
    }
    table.append(row);
  }
  return table;
}

// What lies in a slot of a rank: the chunk, and whether it is still coming in.
function slotContent(run, rank, slot, now) {
  const here = run.events.filter(e => e.rank === rank && e.slot === slot);
  const incoming = here.filter(e => e.kind === "receive" && e.begin <= now);
  if (!incoming.length) return null;
  const last = incoming.reduce((a, b) => a.begin >= b.begin ? a : b);
  if (now < last.end) return { owner: last.owner, filling: true };
  const uses = here.filter(e => e.kind !== "receive" && e.owner === last.owner && e.begin >= last.begin);
  const until = Math.max(last.end, ...uses.map(e => e.end));
  return now < until ? { owner: last.owner, filling: false } : null;
}

function slotTable(run, now) {
  const slots = [...new Set(run.events.map(e => e.slot))].filter(slot => slot >= 0).sort((a, b) => a - b);
  const table = element("table"), head = element("tr", "", element("td"), element("th", "", "own"));
  for (const slot of slots) head.append(element("th", "", `slot ${slot}`));
  table.append(head);
  for (let rank = 0; rank < run.ranks; ++rank) {
    const row = element("tr", "", element("th", "", `rank ${rank}`), element("td", `c${rank}`, `chunk ${rank}`));
    for (const slot of slots) {
      const content = slotContent(run, rank, slot, now);
      row.append(!content ? element("td", "free", "free")
        : element("td", `c${content.owner}${content.filling ? " filling" : ""}`, `chunk ${content.owner}`));
    }
    table.append(row);
  }
  return table;
}

function lanesPicture(run, now) {
  const width = 1100, left = 118, lane = 13, names = ["compute", "send", "receive"];
  const across = tick => left + (width - left - 10) * tick / run.end, parts = [];
  for (let rank = 0; rank < run.ranks; ++rank) {
    const top = 4 + rank * (3 * lane + 12);
    parts.push(`<text x="4" y="${top + 24}" font-weight="600">rank ${rank}</text>`);
    names.forEach((name, at) => {
      const y = top + at * lane;
      parts.push(`<text x="${left - 6}" y="${y + 10}" text-anchor="end" style="font-size:10px">${name}</text>`,
        `<rect x="${left}" y="${y}" width="${width - left - 10}" height="${lane - 2}" class="back"/>`);
      const here = run.events.filter(e => e.rank === rank && e.kind === name);
      for (const e of here.sort((a, b) => (b.end - b.begin) - (a.end - a.begin))) {  // short ones on top
        const x = across(e.begin), wide = Math.max(1, across(e.end) - x);
        parts.push(`<rect x="${x}" y="${y}" width="${wide}" height="${lane - 2}" class="c${e.owner}" ` +
          `stroke="var(--card)" opacity="${e.begin <= now ? 1 : 0.35}"/>`);
        if (wide > 14) parts.push(`<text x="${x + wide / 2}" y="${y + 9}" text-anchor="middle" class="on" style="font-size:10px">${e.owner}</text>`);
      }
    });
  }
  const height = run.ranks * (3 * lane + 12);
  parts.push(`<line x1="${across(now)}" x2="${across(now)}" y1="0" y2="${height}" class="now"/>`);
  return drawn(width, height, "lanes of computing, sending and receiving; gaps in computing are idle", parts);
}

function stateTable(run, states, order, now) {
  const table = element("table"), head = element("tr");
  for (const name of ["after chunk", "maximum", "sum", "v₀", "v₁", "v₂", "v₃"]) head.append(element("th", "", name));
  table.append(head);
  order.forEach((e, at) => {
    const when = now >= e.end ? "" : now >= e.begin ? "now" : "later";
    const row = element("tr", "", element("td", `c${e.owner} ${when}`, `${e.owner}`));
    const numbers = states[at].length ? states[at] : ["−∞", 0, 0, 0, 0, 0];
    for (const number of numbers)
      row.append(element("td", when, when === "later" ? "…" : typeof number === "number" ? number.toFixed(3) : number));
    table.append(row);
  });
  return table;
}
