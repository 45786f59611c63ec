// The ring player: chooses a run, goes through its moments, and says what happens.
"use strict";

const NAMES = { ranks: "ranks", layout: "layout", mask: "mask", schedule: "schedule", slots: "slots", link: "links",
                slow: "slow rank" };
const FIRST = { ranks: "4", layout: "contiguous", mask: "causal", schedule: "ring", slots: "2", link: "fast", slow: "none" };
const by = id => document.getElementById(id);
let data, run, at = 0, now = 0, playing = 0;

const chosen = () => Object.fromEntries(Object.keys(data.choices).map(name => [name, by(name).value]));

function numberOf(setting) {
  let number = 0;
  for (const [name, words] of Object.entries(data.choices)) number = number * words.length + words.indexOf(setting[name]);
  return data.index[number];
}

// Takes the run that the choices name; options that do not exist together are put right.
function choose() {
  const isRing = !["broadcast", "allgather"].includes(by("schedule").value);
  by("slots").disabled = !isRing;
  if (!isRing) by("slots").value = "2";
  const two = [...by("schedule").options].find(option => option.value === "double:2");
  two.disabled = +by("ranks").value < 4;
  if (two.disabled && two.selected) by("schedule").value = "ring";
  const setting = chosen(), trace = data.traces[numberOf(setting)];
  const events = eventsOf(trace, data.kinds);
  run = { setting, trace, events, ranks: +setting.ranks, end: trace.end,
          pairs: data.pairs[`${setting.ranks}/${setting.layout}/${setting.mask}`],
          moments: [...new Set(events.flatMap(e => [e.begin, e.end]))].sort((a, b) => a - b) };
  by("at").max = run.moments.length - 1;
  by("command").textContent = commandOf(setting);
  go(Math.min(at, run.moments.length - 1));
}

function commandOf(setting) {
  const slots = by("slots").disabled ? "" : ` --slots ${setting.slots}`;
  const slow = setting.slow === "none" ? "" : ` --slow ${setting.slow}:2`;
  return `ringlab simulate ${data.words} --ranks ${setting.ranks} --layout ${setting.layout} --mask ${setting.mask} ` +
    `--schedule ${setting.schedule}${slots} --bandwidth ${data.links[setting.link]}${slow}`;
}

// What begins and ends at a moment, in words; the first few of it.
function told(moment) {
  const said = [];
  for (const e of run.events) {
    if (e.kind === "receive" && e.end === moment) said.push(`Chunk ${e.owner} is at rank ${e.rank}.`);
    if (e.kind === "compute" && e.begin === moment) said.push(`Rank ${e.rank} computes on chunk ${e.owner}.`);
    if (e.kind === "wait" && e.begin === moment && e.end > moment) said.push(`Rank ${e.rank} waits for chunk ${e.owner}.`);
    if (e.kind === "compute" && e.end === moment && !run.events.some(o => o.rank === e.rank && o.kind === "compute" && o.begin >= moment))
      said.push(`Rank ${e.rank} is done.`);
  }
  const more = said.length > 6 ? ` And ${said.length - 6} more.` : "";
  return said.slice(0, 6).join(" ") + more || "Something is sent on.";
}

function countsAt(moment) {
  const done = (kind, sum) => run.events.filter(e => e.kind === kind && e.end <= moment).reduce((all, e) => all + sum(e), 0);
  const busy = run.events.filter(e => e.kind === "compute").reduce((all, e) => all + Math.max(0, Math.min(e.end, moment) - e.begin), 0);
  return { time: `${(moment * data.tick * 1e3).toFixed(1)} ms`, pairs: done("compute", e => run.pairs[e.rank][e.owner]),
           chunks: done("receive", () => 1), bytes: done("receive", e => e.bytes),
           idle: moment ? `${(100 * (1 - busy / moment / run.ranks)).toFixed(1)} %` : "0.0 %" };
}

function showCounts(moment) {
  const words = { time: "time", pairs: "pairs computed", chunks: "chunks arrived", bytes: "bytes moved", idle: "idle so far" };
  by("counts").replaceChildren(...Object.entries(countsAt(moment)).map(([name, value]) => {
    const shown = element("dd", "", `${value}`);
    shown.dataset.count = name;
    return element("div", "", element("dt", "", words[name]), shown);
  }));
}

function showRow() {
  const token = +by("row").value, rank = run.trace.holds.findIndex(runs =>
    runs.some(([first, step, count]) => token >= first && token < first + step * count && (token - first) % step === 0));
  const order = run.events.filter(e => e.kind === "compute" && e.rank === rank);
  const { mask, ranks, layout } = run.setting;
  const states = data.rows[`${mask}/${token}/${ranks}/${layout}/${order.map(e => e.owner).join(",")}`];
  by("rowsays").textContent = `held by rank ${rank}`;
  by("state").replaceChildren(stateTable(run, states, order, now));
}

function show() {
  by("ring").innerHTML = ringPicture(run, now);
  by("tiles").replaceChildren(tileTable(run, now));
  by("slots-now").replaceChildren(slotTable(run, now));
  by("lanes").innerHTML = lanesPicture(run, now);
  showCounts(now);
  showRow();
}

// Goes to a moment by its number, and keeps that and the choices in the address.
function go(to) {
  at = Math.max(0, Math.min(to, run.moments.length - 1));
  now = run.moments[at];
  by("at").value = at;
  by("at").setAttribute("aria-valuetext", `moment ${at + 1} of ${run.moments.length}`);
  by("say").textContent = told(now);
  show();
  const words = new URLSearchParams({ ...run.setting, row: by("row").value, at });
  history.replaceState(null, "", `#${words}`);
}

function pause() {
  clearTimeout(playing);
  cancelAnimationFrame(playing);
  playing = 0;
  by("play").textContent = "▶ play";
}

// Twelve seconds for all of it; moment by moment for readers who prefer less motion.
function play() {
  if (playing) { pause(); go(at); return; }
  if (at === run.moments.length - 1) go(0);
  by("play").textContent = "⏸ pause";
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
    const tick = () => {
      go(at + 1);
      if (at === run.moments.length - 1) pause(); else playing = setTimeout(tick, 1200);
    };
    playing = setTimeout(tick, 1200);
    return;
  }
  let before = performance.now();
  const frame = time => {
    now = Math.min(run.end, now + run.end * (time - before) / 12000);
    before = time;
    const reached = run.moments.findLastIndex(moment => moment <= now);
    if (reached !== at) { at = reached; by("at").value = at; by("say").textContent = told(run.moments[at]); }
    show();
    if (now >= run.end) { pause(); go(run.moments.length - 1); } else playing = requestAnimationFrame(frame);
  };
  playing = requestAnimationFrame(frame);
}

function choicesForm() {
  for (const [name, words] of Object.entries(data.choices)) {
    const select = element("select");
    select.id = name;
    for (const word of words) select.append(new Option(word, word, word === FIRST[name], word === FIRST[name]));
    select.addEventListener("change", () => { pause(); choose(); });
    by("choices").append(element("label", "", NAMES[name], select));
  }
  by("row").append(...data.shown.map(token => new Option(token, token)));
  by("row").value = data.shown.at(-1);
  by("row").addEventListener("change", () => go(at));
}

function fromAddress() {
  for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
    if (name === "at") at = value === "end" ? Infinity : +value || 0;
    else if (by(name)?.options && [...by(name).options].some(option => option.value === value)) by(name).value = value;
  }
}

function listen() {
  const steps = { first: () => go(0), back: () => go(at - 1), next: () => go(at + 1), last: () => go(Infinity) };
  for (const [id, step] of Object.entries(steps)) by(id).addEventListener("click", () => { pause(); step(); });
  by("play").addEventListener("click", play);
  by("at").addEventListener("input", () => { pause(); go(+by("at").value); });
  const keys = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last", " ": "play" };
  document.addEventListener("keydown", event => {
    if (!keys[event.key] || ["SELECT", "INPUT", "BUTTON", "A"].includes(event.target.tagName)) return;
    event.preventDefault();
    by(keys[event.key]).click();
  });
  addEventListener("hashchange", () => { pause(); fromAddress(); choose(); });
}

async function unpack() {
  const bytes = Uint8Array.from(atob(packed), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

if (window.top !== window) document.body.classList.add("embedded");  // in a lesson
unpack().then(read => {
  data = read;
  choicesForm();
  fromAddress();
  listen();
  choose();
}).catch(error => { by("say").textContent = `This browser cannot unpack the runs: ${error}`; });
