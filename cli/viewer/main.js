// From the results of a command to its page.

/** Results of commands without a page of their own, as they are. */
function plainPage(data) {
  return { title: `ringlab ${data.command}`, body: [html`<h1>ringlab ${data.command}</h1>`, html`<pre>${JSON.stringify(data, null, 2)}</pre>`] };
}

function pageOf(data) {
  if (data.digest) return certificatePage(data);
  if (data.tomography) return tomographyPage(data);
  const pages = { trace: tracePage, simulate: simulatePage, verify: verifyPage, plan: planPage, compare: comparePage, bench: benchPage, report: reportPage };
  return (pages[data.command] ?? plainPage)(data);
}

/** Makes the frame of a notebook as high as the page in it. */
function fitFrame(document) {
  const frame = window.frameElement;
  if (!frame) return;
  const fit = () => { frame.style.height = `${document.documentElement.scrollHeight}px`; };
  fit();
  document.addEventListener("toggle", fit, true);
}

function show(document) {
  const { title, body } = pageOf(JSON.parse(document.getElementById("data").textContent));
  document.title = title;
  document.querySelector("main").innerHTML = piece(body);
  fitFrame(document);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(part => { part.open = true; }));
}

if (typeof document !== "undefined") show(document);
