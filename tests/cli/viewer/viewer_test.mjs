// The viewer's functions, without a browser: node viewer_test.mjs FOLDER SCRIPT.js…
import assert from "node:assert/strict";
import fs from "node:fs";
import test from "node:test";
import vm from "node:vm";

const [folder, ...names] = process.argv.slice(2);
const scripts = names.map(name => fs.readFileSync(`${folder}/${name}`, "utf8")).join("");
const viewer = new Proxy({}, { get: (_, name) => vm.runInThisContext(name) });
vm.runInThisContext(scripts);

const places = (text, pattern) => [...String(text).matchAll(new RegExp(pattern, "g"))].length;
const page = data => viewer.piece(viewer.pageOf(data).body);

/** Tokens of each rank. */
const LAYOUTS = {
  contiguous: (tokens, ranks) => cut(tokens, ranks, ranks),
  striped: (tokens, ranks) => upTo(ranks).map(rank => upTo(tokens).filter(token => token % ranks === rank)),
  zigzag: (tokens, ranks) => {
    const parts = cut(tokens, 2 * ranks, 2 * ranks);
    return upTo(ranks).map(rank => [...parts[rank], ...parts[2 * ranks - 1 - rank]]);
  },
};
const upTo = number => [...Array(number).keys()];
const cut = (tokens, parts) => upTo(parts).map(part =>
  upTo(tokens).filter(token => Math.floor(tokens * part / parts) <= token && token < Math.floor(tokens * (part + 1) / parts)));

/** The member "layouts" of a causal mask; each cell has its own share. */
function causalLayout(kind, tokens, ranks) {
  const held = LAYOUTS[kind](tokens, ranks);
  const seen = (queries, keys) => queries.reduce((sum, query) => sum + keys.filter(key => key <= query).length, 0);
  const pairs = held.map(queries => held.map(keys => seen(queries, keys)));
  const cells = held.map(queries => held.map(keys => [[Math.round(100 * seen(queries, keys) / Math.max(queries.length * keys.length, 1))]]));
  return { layout: kind, chosen: kind === "zigzag", pairs, cells, query_tokens: held.map(({ length }) => length),
    key_tokens: held.map(({ length }) => length) };
}
const causalWork = (kind, tokens, ranks) => viewer.workByHop(causalLayout(kind, tokens, ranks).pairs, "next");

test("text is escaped and control characters are dropped", () => {
  assert.equal(String(viewer.html`${"a<b>&\"'\x01\x7f"}`), "a&#60;b&#62;&#38;&#34;&#39;\x7f");
  assert.equal(String(viewer.html`${[1, null, undefined, false, viewer.html`<b>`]}`), "1<b>");
});

test("titles and texts of pictures are escaped", () => {
  const text = String(viewer.svg(10, 10, "<&>", [viewer.rect({ x: 0, y: 0, width: 1, height: 1 }, "idle", "</title>"),
    viewer.label(0, 0, "</text>")]));
  assert.equal(places(text, "</title>"), 1);
  assert.equal(places(text, "</text>"), 1);
  assert.match(text, /aria-label="&#60;&#38;&#62;"/);
});

test("numbers are told with their units", () => {
  assert.deepEqual([0, 1023, 1024, 1.5 * 2 ** 20, 300 * 2 ** 30].map(viewer.bytes), ["0 B", "1023 B", "1.00 KiB", "1.50 MiB", "300 GiB"]);
  assert.deepEqual([2e-6, 0.0125, 3].map(viewer.seconds), ["2 µs", "12.5 ms", "3.0 s"]);
  assert.deepEqual([viewer.count(1234567), viewer.percent(0.5), viewer.digits(0.123456), viewer.digits("inf"), viewer.digits("nan")],
    ["1 234 567", "50.0 %", "0.123", "inf", "nan"]);
});

test("every visible pair is work of one hop", () => {
  for (const kind of Object.keys(LAYOUTS)) {
    for (const ranks of upTo(9)) {
      assert.equal(causalWork(kind, 23, ranks + 1).flat().reduce((sum, pairs) => sum + pairs, 0), 23 * 24 / 2);
    }
  }
});

test("contiguous causal work leaves half of the ring idle", () => {
  for (const ranks of [1, 2, 4, 8]) {
    const all = 16 * ranks;
    assert.equal(viewer.busyShare(causalWork("contiguous", all, ranks)), (all + 1) / (2 * all - 16 + 1));
  }
});

test("zigzag causal work is balanced exactly, striped work nearly", () => {
  for (const ranks of [1, 2, 3, 8]) assert.equal(viewer.busyShare(causalWork("zigzag", 12 * ranks, ranks)), 1);
  for (const ranks of [2, 3, 8]) {
    assert.equal(viewer.busyShare(causalWork("striped", 10 * ranks, ranks)), (ranks * 10 + 1) / (ranks * 11));
  }
});

test("the direction decides whose keys are met first", () => {
  const { pairs } = causalLayout("contiguous", 4, 4);
  assert.deepEqual(Array.from(viewer.workByHop(pairs, "next")[1]), [1, 1, 0, 0]);
  assert.deepEqual(Array.from(viewer.workByHop(pairs, "previous")[1]), [1, 0, 0, 1]);
});

test("no work counts as busy, and a share below 1 never reads as 100 %", () => {
  assert.equal(viewer.busyShare([]), 1);
  assert.equal(viewer.busyShare(causalWork("striped", 0, 3)), 1);
  assert.deepEqual([1, 0.99999, 0.5].map(viewer.busyText), ["busy 100 %", "busy 99.9 %", "busy 50 %"]);
});

test("recorded work is by rank and hop", () => {
  const ranks = [{ visits: [{ owner: 0, hop: 0, pairs: 3 }] }, { visits: [{ owner: 1, hop: 1, pairs: 1 }, { owner: 0, hop: 1, pairs: 4 }] }];
  assert.deepEqual(viewer.measuredWork(ranks).map(row => Array.from(row)), [[3, 0], [0, 5]]);
});

test("a map of a layout has one frame per block and colours only visible ones", () => {
  const svg = viewer.layoutMap(causalLayout("contiguous", 8, 4), "next");
  assert.equal(places(svg, 'class="frame"'), 16);
  assert.equal(places(svg, ": empty</title>"), 6);
  assert.equal(places(svg, ": full</title>"), 6);
  assert.equal(places(svg, ": partial, 75 % visible</title>"), 4);
});

test("more ranks than tokens are drawn", () => {
  const svg = viewer.layoutMap(causalLayout("zigzag", 2, 5), "next");
  assert.equal(places(svg, 'class="frame"'), 25);
  assert.equal(places(svg, "NaN|Infinity"), 0);
});

test("bars that are not finite reach the edge and stay out of the coordinates", () => {
  const bars = [{ value: NaN, label: "a", css: "bad" }, { value: Infinity, label: "b", css: "bad" }, { value: 0.5, label: "c", css: "first" }];
  const svg = viewer.barChart({ description: "x", rows: [{ name: "r", bars }], marks: [{ value: 1, label: "bound" }] });
  assert.equal(places(svg, "NaN|Infinity"), 0);
  assert.equal(places(svg, 'class="bar bad"'), 2);
  assert.equal(places(svg, 'width="288" height="11" class="bar bad"'), 2);
  assert.equal(places(viewer.barChart({ description: "x", rows: [] }), "<svg "), 1);
});

const MAP = { ranks: 2, direction: "next", query_ranks: [0, 0, 1], key_ranks: [0, 0, 1], visible: ["100", "110", "111"] };

test("the map of a case shows every pair, which are visible and which row is wrong", () => {
  const svg = viewer.caseMap(MAP, { tensor: "o", token: 2 });
  assert.equal(places(svg, 'class="pair visible hop"'), 6);
  assert.equal(places(svg, 'class="pair"'), 3);
  assert.match(String(svg), /query 2, key 0: hop 1 of rank 1/);
  assert.match(String(svg), /query 2 is wrong/);
  assert.match(String(viewer.caseMap(MAP, { tensor: "dk", token: 0 })), /key 0 is wrong/);
});

test("cases without pairs or with too many are left out", () => {
  assert.equal(viewer.caseMap({ ...MAP, query_ranks: [] }), "");
  assert.equal(viewer.caseMap({ ...MAP, query_ranks: Array(500).fill(0) }), "");
});

const event = (cat, rank, ts, dur, more = {}) =>
  ({ cat, name: cat, ts, dur, args: { rank, owner: -1, peer: -1, pass: "forward", bytes: 0, ...more } });
const spread = { count: 1, p50_seconds: 1e-7, p99_seconds: 1e-7 };
const TRACE = { command: "trace", trace: "/x/<b>.json", seconds: 2e-7, overlap: 0.5, idle: 0.25, straggler: null, straggler_ratio: 0,
  slowest_link: null, links: [{ from: 1, to: 0, bytes: 100, receive: spread }], ranks: [{ rank: 0, compute_seconds: 1.5e-7, in_flight_seconds: 1e-7,
    wait_seconds: 5e-8, overlap: 0.5, idle: 0.25, block: spread }], drawn: { events: [event("compute", 0, 0, 0.1, { owner: 3 }),
    event("receive", 0, 0.05, 0.1, { peer: 1, bytes: 100 }), event("add", 0, 0.06, 0.08), event("wait", 0, 0.1, 0.05), event("compute", 0, 0.15, 0.05)] } };

test("a trace has one box per event and one track per lane", () => {
  const svg = viewer.lanes(TRACE.drawn.events, "x");
  assert.equal(places(svg, 'class="event '), 5);
  assert.equal(places(svg, 'class="track"'), 4);
  assert.equal(places(svg, "<title>"), 5);
  assert.match(String(svg), /rank 0, receive from rank 1, took 0 µs, 100 B/);
});

test("nothing and moments without length are drawn with finite numbers", () => {
  for (const events of [[], [event("compute", 0, 5, 0)]]) assert.equal(places(viewer.lanes(events, "x"), "NaN|Infinity"), 0);
});

test("the page of a trace escapes the name of its file and tells its figures", () => {
  const text = page(TRACE);
  assert.equal(places(text, "<b>.json"), 0);
  assert.equal(places(text, "&#60;b&#62;.json"), 1);
  assert.equal(places(text, "50.0 %"), 3);  // the verdict, the box, the table
  assert.match(page({ ...TRACE, overlap: null }), /Nothing was in flight/);
  assert.match(page({ ...TRACE, straggler: 0, straggler_ratio: 2 }), /slow: rank 0, 2.00 times/);
});

const law = (id, more = {}) => ({ id, name: "constant_values", statement: "if v is c, o is c", verdict: "held", cases: 40, discarded: 0,
  worst_ratio: 0.25, classes: {}, ...more });
const TRIED = { refused: 0, claimed_not_tried: ["gradients"], pairs: { claimed: 20, not_met: ["dtype f16 × keys 8192 …"] },
  as_used: [{ sizes: "f16, head_dim 64, 1 heads per K/V head, 8192 … keys", calls: 0 }], forward: { calls: 2, sizes: { tokens: [1, 7] }, kinds: { masks: { full: 2 } } }, gradients: { calls: 0 } };
const insight = { explains: [], sentence: "", findings: [], passes_if: "", warnings: [], remarks: [] };
const subject = (name, more = {}) => ({ subject: name, passed: true, verdict: "pass", laws_held: 1, laws_skipped: 1, gaps: [], answer: null, insight,
  coverage: { cases: 40, judged: true, classes: { "a <class>": { cases: 1, share: 0.01, required: true } }, tried: TRIED },
  profile: { out_dtype: "f32", u_accumulate: 0, exp_error: 1e-7, u_probability: 1e-7, u_lse: 1e-7, max_rescales: 3 },
  input: { passed: true, report: { worst_ratio: 0.5, tensors: [{ tensor: "o", worst: { ratio: 0.5 } }] }, seconds: 1, sent_bytes: 5,
    peak_bytes_per_rank: 6, peak_kv_bytes_per_rank: 7, ranks: [{ visits: [{ owner: 0, hop: 0, pairs: 3 }] }, { visits: [] }] },
  laws: [law("P1"), law("P72", { verdict: "skipped", skipped: "K/V do not travel", cases: 0 })], ...more });
const run = (...subjects) => ({ command: "verify", passed: subjects.every(({ passed }) => passed), seconds: 3, ended: "", notes: ["<note>"], subjects,
  configuration: { mask: "causal", ranks: 2, dtype: "f32", k: [1, 2, 16, 4], v: [1, 2, 16, 4] },
  drawn: { direction: "next", layouts: Object.keys(LAYOUTS).map(kind => causalLayout(kind, 16, 2)) } });
const failure = { case: "N=3", token: "ring/P1/b1", message: "got 1, exact <2>", shrinks: 4, doubt: "", replay: "ringlab verify --replay ring/P1/b1",
  map: MAP, at: { tensor: "o", token: 1 } };
const answer = { name: "the chunk that comes last is never computed on", case: "N=3 tokens", found: "got 1, exact <2>", again: "", seen: ["one more"],
  question: "How many chunks must a rank compute on?", law: "P1: if v is c, o is c", other_laws: 1, replay: failure.replay, map: MAP, at: failure.at };
const WRONG = subject("ring", { passed: false, verdict: "wrong", answer, laws: [law("P1", { verdict: "broken", failure })] });

test("a page says so when every subject passes", () => {
  const text = page(run(subject("ring"), subject("merge")));
  assert.match(text, /2 of 2 subjects stay inside every bound/);
  assert.equal(viewer.pageOf(run(subject("ring"))).title, "ringlab verify: passed");
  assert.doesNotMatch(text, /What went wrong/);
  assert.match(text, /Pairs of claims that met: 19 of 20; not met: dtype f16 × keys 8192 …/);
  assert.match(text, /1 heads per K\/V head, 8192 … keys<\/th><td>none/);
  assert.equal(places(text, "<svg "), 3 + 3 * 2 + 2 + 3 + 1);  // first ones, layouts, recorded work, errors and costs, classes
});

test("the mistake comes first and the rest is folded", () => {
  const text = page(run(WRONG, subject("merge")));
  assert.match(text, /1 of 2 subjects stay inside every bound/);
  const folded = text.indexOf("<details>"), first = text.slice(0, folded);
  for (const words of ["ring: the chunk that comes last is never computed on", "How many chunks must a rank compute on",
    'class="pair visible hop"', "ringlab verify --replay ring/P1/b1", "exact &#60;2&#62;", "; and 1 more below", "one more"]) {
    assert.ok(first.includes(words), words);
  }
  assert.doesNotMatch(first, /<table|Smallest case found/);
  assert.match(text.slice(folded), /ring breaks P1[^]*Smallest case found \(4 shrinks\)/);
});

test("one failure of several subjects is one card", () => {
  assert.match(page(run(WRONG, { ...WRONG, subject: "merge" })), /ring, merge break P1/);
});

test("a skipped law tells its reason, once for all its subjects", () => {
  assert.match(page(run(subject("ring"), subject("merge"))), /<li>P72 \(ring, merge\): K\/V do not travel/);
});

test("an error on the input is told even without a report", () => {
  const input = { passed: false, error: "rank 1 <failed>" };
  const text = page(run(subject("ring", { passed: false, verdict: "wrong", input, answer: { ...answer, map: undefined, at: undefined } })));
  assert.match(text, /ring is wrong on the input<\/h3><pre>rank 1 &#60;failed&#62;/);
});

test("what was tried is told with its gaps, and rare classes are red", () => {
  const text = page(run(subject("ring", { passed: false, verdict: "not checked", gaps: ["too few"] })));
  assert.match(text, /No pass for ring: too few/);
  assert.match(text, /Claimed, but not tried: gradients/);
  assert.match(text, /tokens<\/th><td>1 … 7/);
  assert.match(text, /a &#60;class&#62;[^]*class="bar bad"/);
});

test("a certificate shows verdicts, faults and its digest", () => {
  const fault = { class: "values", law: "P1", statement: "s", found: "<x>", replay: "t", smallest_case: "c", rank: 1 };
  const one = { subject: "./a.so", verdict: "FAIL", sentence: "1 of 2 laws broken", warnings: ["w"], findings: [], remarks: [], gaps: ["g"], content: "abc",
    faults: [fault], declared_numerics: { u_lse: 1e-7 }, exact_probes: { held: 1, tried: 2 }, determinism: { held: 3, tried: 4 }, input: { verdict: "held" },
    coverage: { cases: 9, tried: TRIED }, rounds: 1, cases_sha256: "ff",
    laws: [law("P1", { verdict: "broken" }), law("P2", { verdict: "skipped", skipped: "<why>" }), law("P3", { verdict: "skipped" })] };
  const text = page({ digest: "sha256:0123456789abcdef0123", verdict: "FAIL", subjects: [one], strength: { known: true, killed: 3, mutants: 4, laws_added_since: [] },
    ringlab: { version: "1" }, machine: {}, written: "today", oracle: {}, cases: {}, not_checked: [{ what: "devices", why: "none" }] });
  for (const words of ["FAIL ./a.so", "finds 3 of 4 planted mistakes", "ringlab verify ./a.so --replay t", "&#60;x&#62;", "&#60;why&#62;: P2",
    "no case applied: P3", "devices: none", "sha256:0123456789abcdef0123", "<b>rank</b> 1", "warnings: w", "1 of 2 held"]) {
    assert.ok(text.includes(words), words);
  }
  assert.doesNotMatch(text, /laws added since/);
});

test("softmax matrices show right and wrong weights", () => {
  const head = { marks: ["= ", "-="], got: [[1, 0], ["nan", 0.5]], exact: [[1, 0], [0.5, 0.5]] };
  const text = page({ command: "verify", passed: false, tomography: [{ subject: "<s>", findings: ["key 0 <lost>"] }], drawn: { heads: [[head]] } });
  assert.equal(places(text, 'class="hop"'), 3);
  assert.match(text, /&#60;s&#62;[^]*key 0 &#60;lost&#62;/);
  assert.equal(places(text, "NaN"), 0);
});

test("rows of ways and of benchmarks are drawn and named", () => {
  const way = { way: "ring <x>", exact: true, passed: true, sent_bytes: 1, peak_kv_bytes: 2, peak_bytes: 3, pairs: 4, idle: 0.5, seconds: 1, wrong_numbers: 1, numbers: 2 };
  const text = page({ command: "compare", passed: true, ways: [way, { ...way, exact: false }], configuration: { ranks: 4 } });
  assert.match(text, /within its bounds[^]*50.0 % of the numbers wrong/);
  assert.equal(places(text, "<x>"), 0);
  const bench = page({ command: "bench", configuration: {}, lines: [{ subject: "ring", tokens: 1024, heads: 1, head_dim: 2, ranks: 2,
    seconds: { median: 1, p10: 0.5, p90: 2 }, flops_per_s: 1e9, right: false }] });
  assert.match(bench, /Some answer is wrong[^]*ring, 1 024 tokens, 2 ranks/);
});

test("the report of a function has its failures and laws", () => {
  const text = page({ command: "report", subject: "f", headline: "f: WRONG", passed: false, gaps: ["<gap>"], diagnosis: "d", passes_if: "", findings: [],
    laws: [law("P1", { verdict: "broken", failure: { ...failure, replay: undefined } }), law("P2", { verdict: "skipped", skipped: "why" })], tried: TRIED });
  for (const words of ["f: WRONG", "no pass: &#60;gap&#62;", "report.replay(fn, &#34;ring/P1/b1&#34;)", 'class="pair visible hop"', "why"]) {
    assert.ok(text.includes(words), words);
  }
});

test("results without a page of their own are shown as they are", () => {
  assert.match(page({ command: "doctor", x: "<y>" }), /&#60;y&#62;/);
});
