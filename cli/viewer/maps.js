// Pictures of masks: who computes which block of pairs when, and the pairs of one small case.

/** The hop at which a ring brings the chunk of `owner` to `rank`. */
function hopOf(rank, owner, ranks, direction) {
  const ahead = direction === "previous" ? owner - rank : rank - owner;
  return ((ahead % ranks) + ranks) % ranks;
}

/** Pairs by [rank][hop] from pairs by [rank][owner]. */
function workByHop(pairs, direction) {
  const ranks = pairs.length;
  return pairs.map((row, rank) => row.map((_, hop) => row.findIndex(
    (__, owner) => hopOf(rank, owner, ranks, direction) === hop)).map(owner => row[owner]));
}

/** Pairs by [rank][hop] that a subject recorded. */
function measuredWork(ranks) {
  const hops = Math.max(1, ...ranks.flatMap(({ visits }) => visits.map(({ hop }) => hop + 1)));
  return ranks.map(({ visits }) => upTo(hops).map(
    hop => visits.filter(visit => visit.hop === hop).reduce((sum, { pairs }) => sum + pairs, 0)));
}

/** Work done over work possible if every hop takes as long as its busiest rank; 1 without work. */
function busyShare(work) {
  const hops = work[0] ?? [];
  const possible = hops.reduce((sum, _, hop) => sum + work.length * Math.max(...work.map(row => row[hop])), 0);
  return possible > 0 ? work.flat().reduce((sum, pairs) => sum + pairs, 0) / possible : 1;
}

/** The busy share in percent, never rounded up to 100. */
function busyText(share) {
  const tenths = Math.floor(1000 * share) / 10;
  return `busy ${tenths > 99 && tenths < 100 ? tenths.toFixed(1) : tenths.toFixed(0)} %`;
}

/** One row per rank, one column per hop; bars are pairs, relative to the busiest. */
function workChart(work) {
  const width = 360, labels = 52, top = 16, gap = 3;
  const hops = (work[0] ?? []).length;
  const height = Math.min(Math.max(120 / Math.max(work.length, 1), 8), 22), column = (width - labels) / Math.max(hops, 1);
  const busiest = Math.max(1, ...work.flat());
  const every = Math.max(1, Math.ceil(hops * 30 / 308));
  const heads = upTo(hops).filter(hop => hop % every === 0)
    .map(hop => label(labels + column * hop, 11, hop === 0 ? "hop 0" : hop, "small"));
  const rows = work.map((row, rank) => {
    const y = top + height * rank;
    const named = height >= 11 || rank % 2 === 0;
    return [named && label(labels - 6, y + height / 2 + 3.5, `rank ${rank}`, "small", "end"), row.map((pairs, hop) => {
      const box = { x: labels + column * hop, y: y + 1, width: Math.max(column - gap, 1), height: height - 2 };
      return [rect(box, "idle"), rect({ ...box, width: box.width * pairs / busiest }, "hop",
        `rank ${rank}, hop ${hop}: ${count(pairs)} pairs`, hopStyle(hop, hops))];
    })];
  });
  return svg(width, top + height * work.length + 2, "pairs computed by each rank at each hop", [heads, rows]);
}

function shareText(share) {
  return share === 0 ? "empty" : share === 1 ? "full" : `partial, ${(100 * share).toFixed(0)} % visible`;
}

/** The cells of a block, each with the percentage of its pairs that are visible; neighbours of one
 *  shade are one rectangle. */
function blockCells(cells, box, style) {
  const height = box.height / cells.length;
  return cells.map((row, down) => {
    const width = box.width / row.length, shapes = [];
    for (let begin = 0, end; begin < row.length; begin = end) {
      for (end = begin + 1; end < row.length && row[end] === row[begin];) ++end;
      if (row[begin] === 0) continue;
      shapes.push(rect({ x: box.x + begin * width, y: box.y + down * height, width: (end - begin) * width, height },
        "hop cell", "", `${style};opacity:${(0.25 + 0.75 * row[begin] / 100).toFixed(2)}`));
    }
    return shapes;
  });
}

/** Blocks of query ranks × K/V owners in the order in which ranks hold their tokens; the colour is
 *  the hop, its depth the share of visible pairs. layout: { layout, pairs, query_tokens, key_tokens,
 *  cells }, all by rank and owner. */
function layoutMap({ layout, pairs, query_tokens, key_tokens, cells }, direction) {
  const width = 360, left = 52, top = 34, plot = width - left - 2;
  const ranks = pairs.length, side = plot / ranks, every = ranks > 12 ? 4 : 1;
  const axes = [label(left, 11, "key/value tokens, held by rank", "small"),
    upTo(ranks).filter(rank => rank % every === 0).map(rank => [
      label(left + side * (rank + 0.5), 27, rank, "small", "middle"),
      label(left - 6, top + side * (rank + 0.5) + 4, `rank ${rank}`, "small", "end")])];
  const blocks = pairs.map((row, rank) => row.map((visible, owner) => {
    const hop = hopOf(rank, owner, ranks, direction), style = hopStyle(hop, ranks);
    const box = { x: left + side * owner, y: top + side * rank, width: side, height: side };
    const all = query_tokens[rank] * key_tokens[owner], share = all > 0 ? visible / all : 0;
    return [rect(box, "empty"), share === 1 && rect(box, "hop", "", style),
      share > 0 && share < 1 && blockCells(cells[rank][owner], box, style),
      rect(box, "frame", `rank ${rank} with the keys of rank ${owner}, hop ${hop}: ${shareText(share)}`),
      side >= 26 && label(box.x + 5, box.y + 13, hop, "hopnumber")];
  }));
  return svg(width, top + plot + 2, `${layout} layout over ${ranks} ranks`, [axes, blocks]);
}

/** A frame around the row or column of a case's map that was wrong. */
function wrongFrame(map, element, cell, place) {
  const ofKey = /^d[kv]/.test(element.tensor), { token } = element;
  if (token >= (ofKey ? map.key_ranks : map.query_ranks).length) return "";
  const first = ofKey ? place(0, token) : place(token, 0);
  return rect({ x: first.x, y: first.y, width: ofKey ? cell : cell * map.key_ranks.length,
    height: ofKey ? cell * map.query_ranks.length : cell }, "wrongtoken", `${ofKey ? "key" : "query"} ${token} is wrong`);
}

/** The (query, key) pairs of a small case: tokens with the rank that holds them, visible pairs with
 *  the hop of a ring that computes them; `element` was wrong. Nothing where it would be too large to
 *  read. map: { ranks, direction, query_ranks, key_ranks, visible: ["110", …] }. */
function caseMap(map, element) {
  const { ranks, query_ranks: queries, key_ranks: keys, visible } = map;
  const longest = Math.max(queries.length, keys.length);
  if (longest > 96 || queries.length === 0 || keys.length === 0) return "";
  const left = 34, top = 34, cell = Math.min(26, 230 / longest), readable = cell >= 11, ring = ranks > 1;
  const place = (query, key) => ({ x: left + cell * key, y: top + cell * query, width: cell, height: cell });
  const middle = (box, words, css) => readable && label(box.x + box.width / 2, box.y + box.height / 2 + 3.5, words, css, "middle");
  const token = (box, rank, index) => [rect(box, "holder", `token ${index}, rank ${rank}`), middle(box, ring ? rank : index, "holdernumber")];
  const pair = (query, key) => {
    const box = place(query, key), words = `query ${query}, key ${key}`;
    if (visible[query][key] !== "1") return rect(box, "pair", `${words}: hidden`);
    const hop = hopOf(queries[query], keys[key], ranks, map.direction);
    return [rect(box, "pair visible hop", `${words}: hop ${hop} of rank ${queries[query]}`, hopStyle(hop, ranks)),
      ring && middle(box, hop, "onhop")];
  };
  const bottom = top + cell * queries.length;
  return svg(Math.max(left + cell * keys.length + 4, 264), bottom + 22, "visible pairs of the failing case: queries down, keys across", [
    label(left, 12, ring ? "keys, by the rank that holds them" : "keys", "small"), label(2, top - 5, ring ? "rank" : "query", "small"),
    queries.map((rank, index) => token({ ...place(index, 0), x: 17, width: 13 }, rank, index)),
    keys.map((rank, index) => token({ ...place(0, index), y: 17, height: 13 }, rank, index)),
    queries.map((_, query) => keys.map((__, key) => pair(query, key))),
    element && wrongFrame(map, element, cell, place),
    label(left, bottom + 16, ring ? "number and colour of a pair: hop of a ring" : "filled: visible pairs", "small")]);
}
