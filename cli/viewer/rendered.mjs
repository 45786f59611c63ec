// Prints what a page of the viewer shows, without a browser: node rendered.mjs PAGE.html
import fs from "node:fs";
import vm from "node:vm";

const page = fs.readFileSync(process.argv[2], "utf8");
const data = page.match(/<script type="application\/json" id="data">(.*?)<\/script>/s)[1];
const script = page.match(/<script>(.*?)<\/script>/s)[1];
process.stdout.write(vm.runInNewContext(
  `${script}; { const { title, body } = pageOf(JSON.parse(DATA)); piece(html\`<title>\${title}</title>\`) + piece(body); }`, { DATA: data }));
