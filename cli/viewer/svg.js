// Small pictures, drawn to be read at 360 px as well as on paper. Colours come from the classes of
// the style sheet, so that pictures follow light, dark and print.

function at(number) { return Number.isFinite(number) ? Number(number.toFixed(3)) : 0; }

/** `description` is what a screen reader says. */
function svg(width, height, description, shapes) {
  return html`<svg viewBox="0 0 ${at(width)} ${at(height)}" role="img" aria-label="${description}">${shapes}</svg>`;
}

function rect(box, css, title, style) {
  const shape = html`<rect x="${at(box.x)}" y="${at(box.y)}" width="${at(box.width)}" height="${at(box.height)}" class="${css}"${
    style && html` style="${style}"`}`;
  return title ? html`${shape}><title>${title}</title></rect>` : html`${shape}/>`;
}

function line(x1, y1, x2, y2, css) {
  return html`<line x1="${at(x1)}" y1="${at(y1)}" x2="${at(x2)}" y2="${at(y2)}" class="${css}"/>`;
}

/** `anchor` is start, middle or end. */
function label(x, y, words, css = "label", anchor = "start") {
  return html`<text x="${at(x)}" y="${at(y)}" class="${css}" text-anchor="${anchor}">${words}</text>`;
}

/** The hue of hop `hop` of `hops`, from blue by violet and red to orange. */
function hopStyle(hop, hops) {
  return `--hue:${Math.round(212 + (hops > 1 ? 178 * hop / (hops - 1) : 0)) % 360}`;
}

/** 0, 1, … below `number`. */
function upTo(number) { return Array.from({ length: number }, (_, index) => index); }
