// usage: node parse_mermaid.mjs FILE...
// Lets Mermaid's own parser read each file; the exit status is 1 if it refuses one.
import fs from "node:fs";
import {JSDOM} from "jsdom";

const page = new JSDOM("<body></body>");
globalThis.window = page.window;  // Mermaid purifies texts with the page's document
globalThis.document = page.window.document;
const {default: mermaid} = await import("mermaid");
for (const file of process.argv.slice(2)) {
  const {diagramType} = await mermaid.parse(fs.readFileSync(file, "utf8"));
  if (diagramType !== "sequence") throw new Error(`${file} is a ${diagramType} diagram`);
}
