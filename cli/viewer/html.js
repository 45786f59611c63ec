// HTML from data. All text goes through html`…`, which escapes what is put into it.

class Html {
  constructor(text) { this.text = text; }
  toString() { return this.text; }
}

/** & < > " ' as entities, control characters dropped; for text and for attribute values. */
function escaped(value) {
  return String(value).replace(/[\u0000-\u0008\u000b-\u001f]/g, "")
    .replace(/[&<>"']/g, sign => `&#${sign.charCodeAt(0)};`);
}

/** Arrays one after the other; nothing for undefined, null and false. */
function piece(value) {
  if (value === undefined || value === null || value === false) return "";
  if (Array.isArray(value)) return value.map(piece).join("");
  return value instanceof Html ? value.text : escaped(value);
}

function html(texts, ...values) {
  return new Html(texts.map((text, at) => text + (at < values.length ? piece(values[at]) : "")).join(""));
}

/** The verdict in green or red, or grey for undefined: a sentence, and a smaller one below. */
function banner(good, sentence, remark) {
  const sign = good === undefined ? "→" : good ? "✓" : "✗";
  return html`<div class="verdict ${good === undefined ? "" : good ? "good" : "bad"}"><b>${sign}</b><div>${sentence}${
    remark && html`<br><span>${remark}</span>`}</div></div>`;
}

/** One thing to do now: words, and a command where there is one. */
function nextStep(words, command) {
  return html`<div class="next"><b>Next</b> ${words}${command && html`<pre>${command}</pre>`}</div>`;
}

/** Names and values as a row of boxes, without what is not known. */
function chips(named) {
  return html`<ul class="chips">${named.filter(([, value]) => value !== undefined && value !== "").map(
    ([name, value]) => html`<li><b>${name}</b> ${value}</li>`)}</ul>`;
}

/** Titles that begin with # stand over numbers; `stack`: on phones each row is a card. */
function table(titles, rows, stack = true) {
  const plain = titles.map(title => title.replace(/^#/, ""));
  const align = titles.map(title => title.startsWith("#") ? "n" : "");
  const cells = row => row.map((cell, at) => html`<td class="${align[at]}" data-label="${plain[at]}">${cell}</td>`);
  return html`<div class="framed"><table class="${stack ? "stack" : ""}"><thead><tr>${
    plain.map((title, at) => html`<th class="${align[at]}">${title}</th>`)}</tr></thead><tbody>${
    rows.map(row => html`<tr>${cells(row)}</tr>`)}</tbody></table></div>`;
}

/** A picture with a heading, a remark at its right and a caption. */
function figure(heading, remark, picture, caption, chosen) {
  return html`<figure class="${chosen ? "chosen" : ""}"><header><h3>${heading}</h3><span>${remark}</span></header>${
    picture}${caption && html`<figcaption>${caption}</figcaption>`}</figure>`;
}

function cards(figures) { return html`<div class="cards">${figures}</div>`; }

/** A part of the page that is closed until it is clicked; nothing for nothing. */
function folded(title, content) {
  return piece(content) === "" ? "" : html`<details><summary>${title}</summary>${content}</details>`;
}

function soft(text) { return html`<p class="soft">${text}</p>`; }

/** Colours, each a class, and their meaning. */
function legend(meanings) {
  return html`<p class="legend">${meanings.map(([css, words]) => html`<span><i class="${css}"></i>${words}</span>`)}</p>`;
}

/** A value of a configuration as people read it. */
function plainValue(value) {
  if (Array.isArray(value)) return `(${value.map(plainValue).join(", ")})`;
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}

function configuration(data) {
  return chips(Object.entries(data.configuration ?? {}).map(([name, value]) => [name, plainValue(value)])
    .filter(([, value]) => value.length < 200));
}

function notes(data) { return (data.notes ?? []).map(note => soft(`Note: ${note}`)); }

function footer(data, words) {
  return html`<footer>ringlab ${data.ringlab} · ${data.compiler}, ${data.build_type} · <code>${data.flags}</code>${
    words && html`<br>${words}`}</footer>`;
}
