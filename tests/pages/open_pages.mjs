// usage: node open_pages.mjs CHROMIUM [--legible] FILE...
// Opens each page in headless Chromium, uses it as a reader does, and prints a line of JSON for each:
// what its console said, which of the checks below failed, and how long keys take.
import path from "node:path";
import {chromium} from "playwright-core";

const [executablePath, ...files] = process.argv.slice(2);
const isLegibleOnly = files[0] === "--legible";  // geometry, touch and names, but not each key
if (isLegibleOnly) files.shift();
const browser = await chromium.launch({executablePath, args: ["--no-sandbox"]});

/** What the page says of the selected row, [what, why] for each run. */
const told = page => page.evaluate(() => [...document.querySelectorAll("#about table")].map(table => {
  const value = name => [...table.rows].find(row => row.cells[0].textContent === name)?.cells[1].textContent;
  return [value("what"), value("why") ?? null];
}));

const WIDTHS = [1280, 390];
const LEAST_TARGET = 24;  // WCAG 2.2, 2.5.8
const SCROLLS = 10;       // views of a page in which geometry is checked

/** Once for each page: long ones have a hundred megabytes. */
const readData = page => page.evaluate(() => {
  window.known = JSON.parse(document.getElementById("data").textContent);
  window.knownRows = Map.groupBy(window.known.happenings, one => one.row);
});
/** What the checks need of it. */
const dataOf = page => page.evaluate(() => ({
  folds: window.known.folds,
  happenings: window.known.happenings.map(({row, tone, text, reason, topic, bytes}) => (
    {row, tone, text, reason, topic, hasBytes: bytes.length > 0})),
}));
const painted = page => page.evaluate(
    () => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));

async function check(page, failed) {
  const expect = (holds, what) => { if (!holds) failed.push(what); };
  const data = await dataOf(page), rows = data.happenings.toSorted((a, b) => a.row - b.row);
  expect(rows.length > 0, "there are rows");
  const closed = await page.locator("[role=row]").count();
  if (data.folds.length) await page.locator("#folds").click();
  expect(!data.folds.length || await page.locator("[role=row][aria-expanded=true]").count() > 0,
      "folds are opened all at once");
  await page.locator("[role=row][tabindex='0']").focus();
  const text = () => told(page);
  const is = (one, runs) => runs.some(([what, why]) => one.text === what && (one.reason || null) === why);
  const startsFolded = data.folds.some(([first]) => first === rows[0].row);
  await page.keyboard.press("Home");
  if (startsFolded) await page.keyboard.press("j");
  expect(is(rows[0], await text()), "Home goes to the first row");
  if (rows.length > 1 && rows[1].row > rows[0].row && !data.folds.some(([first]) => first === rows[1].row)) {
    await page.keyboard.press("j");
    expect(is(rows[1], await text()), "j goes to the next row");
    await page.keyboard.press("k");
    expect(is(rows[0], await text()), "k goes back");
  }
  await page.keyboard.press("End");
  expect(is(rows.at(-1), await text()), "End goes to the last row");
  const first = rows.find(one => one.tone >= 2);
  await page.keyboard.press("Home");
  if (first) {
    if (first.row > rows[0].row) {
      await page.keyboard.press("n");
      expect(is(first, await text()), "n goes to the first fault");
    }
    await page.keyboard.press("Home");
    await page.locator("#faults button").first().click();
    expect(is(first, await text()), "the list of faults goes to the first");
  } else {
    expect(await page.locator("#faults button").count() === 0, "no fault is listed where there is none");
  }
  expect(await page.evaluate(() => document.activeElement.tagName === "BODY" ||
      document.activeElement.getAttribute("role") === "row" || document.activeElement.closest("button, aside") !== null),
  "the focus is on a row or a control");
  const explained = rows.find(one => one.topic && one.topic.startsWith("IBV_WC_"));
  if (explained) {
    await page.keyboard.press("Home");
    await page.locator("#search").fill(explained.text);
    const matches = rows.filter(one => (one.text + " " + one.reason).toLowerCase().includes(
        explained.text.toLowerCase())), matching = new Set(matches.map(one => one.row)).size;
    const status = () => page.locator("#status").textContent();
    expect((await status()).includes(`${matching} rows match`) || /of \d+/.test(await status()),
        "the live region says how many rows match");
    await page.locator("#search").press("Enter");
    expect(is(matches[0], await text()), "Enter goes to what is searched");
    expect((await status()).includes(`1 of ${matching}`), "the live region says which match it is");
    for (let row = matches[0].row; row !== explained.row; row = matches.find(one => one.row > row).row)
      await page.locator("#search").press("Enter");
    expect((await page.locator("#meaning").textContent()).length > 20, "a status is explained");
    await page.locator("#search").press("Escape");
    expect(await page.locator("#search").inputValue() === "", "Escape ends the search");
  }
  const frame = rows.find(one => one.hasBytes);
  if (frame) {
    await page.locator("#search").fill(frame.text);
    await page.locator("#search").press("Home");
    await page.keyboard.press("Enter");
    expect(/^0000 +([0-9a-f]{2} )+/.test(await page.locator("#about pre").first().textContent()),
        "a frame shows its bytes");
    await page.locator("#search").press("Escape");
  }
  if (!data.folds.length) return;
  await page.locator("#folds").click();
  await page.evaluate(() => { document.getElementById("ladder").scrollTop = 0; });
  await painted(page);
  const fold = page.locator("[role=row][aria-expanded]").first();
  const isOpen = async () => await fold.getAttribute("aria-expanded") === "true";
  await fold.focus();
  await page.keyboard.press("Home");
  const isFirst = await page.evaluate(() => document.activeElement.hasAttribute("aria-expanded"));
  if (isFirst) {
    await page.keyboard.press("Enter");
    expect(await isOpen(), "Enter opens a fold");
    await page.keyboard.press("ArrowLeft");
    expect(!await isOpen(), "the left arrow closes it");
  }
  await fold.click();
  expect(await isOpen(), "a click opens a fold");
  await fold.click();
  expect(!await isOpen(), "and another closes it");
  expect(closed > 0, "there are rows before");
}

/** What a finger needs: rows and controls are large enough, and a tap opens a fold and selects a row. */
async function checkTouch(page, failed) {
  const small = await page.evaluate(least => [...document.querySelectorAll(
      "button, input, summary, [role=row][tabindex]")].filter(one => one.checkVisibility()).filter(one => {
    const box = one.getBoundingClientRect();
    return box.height < least || box.width < least;
  }).map(one => one.outerHTML.slice(0, 80)), LEAST_TARGET);
  if (small.length) failed.push("targets are large enough: " + small[0]);
  const fold = page.locator("[role=row][aria-expanded=false]").first();
  if (await fold.count()) {
    await fold.tap();
    if (!await page.locator("[role=row][aria-expanded=true]").count()) failed.push("a tap opens a fold");
    await page.locator("[role=row][aria-expanded=true]").first().tap();
  }
  await page.locator("summary").tap();
  if (!await page.locator("#about").isVisible()) failed.push("a tap shows details");
  await page.locator("summary").tap();
}

/** What a screen reader needs, of the document itself. */
const unnamed = page => page.evaluate(() => {
  const wrong = [];
  for (const landmark of ["header", "main", "aside[aria-label]", "h1", "[role=treegrid][aria-label][aria-rowcount]"])
    if (document.querySelectorAll(landmark).length !== 1) wrong.push("there is one " + landmark);
  for (const control of document.querySelectorAll("button, input"))
    if (!(control.getAttribute("aria-label") || control.textContent)) wrong.push("a control has no name");
  for (const row of document.querySelectorAll("[role=row]")) {
    if (!row.querySelector("[role=gridcell]")) wrong.push("a row has no cells");
    if (!row.hasAttribute("aria-rowindex")) wrong.push("a row has no index");
  }
  for (const level of document.querySelectorAll("h2"))
    if (level.checkVisibility() && !level.closest("section")) wrong.push("a heading has no section");
  if (document.querySelectorAll("[role=row][tabindex='0']").length !== 1) wrong.push("one row is in the tab order");
  if (document.querySelector("[title]")) wrong.push("something is told only to a mouse");
  const data = window.known;
  const lane = one => [data.lanes[one].process, data.lanes[one].qp].filter(Boolean).join(" ");
  const shown = [...document.querySelectorAll("[role=row]")].flatMap(
      row => (window.knownRows.get(+row.dataset.line) ?? []).map(one => [row, one]));
  for (const [row, one] of shown) {
    if (one.to < 0 || one.to === one.lane || one.topic === "first difference") continue;
    const text = row.textContent.replaceAll("\n", " ");
    if (!text.includes(`from ${lane(one.lane)} to ${lane(one.to)}: `)) wrong.push("an arrow says from where to where");
    if (!(one.lost ? /is lost/ : /arrives at /).test(text)) wrong.push("an arrow says when it arrives");
  }
  return [...new Set(wrong)];
});

/** Checks by arithmetic, on what is in view: arrows end in the row of their arrival, and no text is cut. */
const measure = page => page.evaluate(() => {
  const wrong = [], data = window.known;
  const grid = document.getElementById("rows").getBoundingClientRect();
  const at = box => ({left: box.left - grid.left, right: box.right - grid.left,
    top: box.top - grid.top, bottom: box.bottom - grid.top});
  const sameTime = text => (text.match(/[\d.]+ (ns|µs|ms|s)$/) ?? [""])[0];
  const timeText = ns => {
    const [scale, unit, digits] = ns < 1e3 ? [1, "ns", 0] : ns < 1e6 ? [1e3, "µs", 3] :
        ns < 1e9 ? [1e6, "ms", 3] : [1e9, "s", 6];
    return +(ns / scale).toFixed(digits) + " " + unit;
  };
  const labels = [];
  for (const part of document.querySelectorAll(".label b, .label i")) {
    const range = document.createRange();
    range.selectNodeContents(part);
    for (const box of range.getClientRects()) labels.push({...at(box), text: part.textContent});
  }
  const segments = [];
  for (const group of document.querySelectorAll("#rows g[data-row]")) {
    const points = group.querySelector(".shaft").getAttribute("d").slice(1).split("L").map(
        point => point.split(" ").map(Number));
    for (let i = 1; i < points.length; ++i) segments.push([points[i - 1], points[i]]);
    const [, y] = points.at(-1), [, start] = points[0];
    if (y < start) wrong.push(`the arrow of row ${group.dataset.row} goes up`);
    const isLost = group.querySelector(".cross") !== null;
    const line = document.querySelector(`[data-line="${isLost ? group.dataset.row : group.dataset.end}"]`);
    if (!line) continue;  // out of view, or in a fold
    const box = at(line.getBoundingClientRect());
    if (y < box.top - .1 || y > box.bottom + .1) wrong.push(`the arrow of row ${group.dataset.row} ends beside its row`);
    const sender = window.knownRows.get(+group.dataset.row).filter(one => one.to >= 0);
    const times = [...line.querySelectorAll(".time")].map(one => sameTime(one.textContent));
    if (!isLost && !sender.some(one => times.includes(timeText(one.at + one.flight))))
      wrong.push(`the arrow of row ${group.dataset.row} ends at ${times}`);
  }
  const inside = ([fromX, fromY], [toX, toY], box) => {  // Liang and Barsky
    let enters = 0, leaves = 1;
    for (const [way, room] of [[fromX - toX, fromX - box.left], [toX - fromX, box.right - fromX],
        [fromY - toY, fromY - box.top], [toY - fromY, box.bottom - fromY]]) {
      if (way === 0) { if (room <= 0) return false; continue; }
      if (way < 0) enters = Math.max(enters, room / way); else leaves = Math.min(leaves, room / way);
    }
    return enters < leaves;
  };
  for (const box of labels) {
    const core = {...box, top: box.top + 2, bottom: box.bottom - 2};  // without the leading
    for (const [from, to] of segments) if (inside(from, to, core)) wrong.push(`"${box.text}" is cut by an arrow`);
    for (const other of labels) {
      if (other !== box && core.left < other.right && other.left < core.right && core.top < other.bottom - 2 &&
          other.top + 2 < core.bottom) wrong.push(`"${box.text}" and "${other.text}" overlap`);
    }
    if (box.left < 0 || box.right > Math.max(grid.width, document.getElementById("ladder").clientWidth) + .5)
      wrong.push(`"${box.text}" is cut off`);
  }
  const ladder = document.getElementById("ladder");
  if (ladder.scrollWidth > ladder.clientWidth && data.lanes.length < 8) wrong.push("the ladder is too wide");
  return {wrong: [...new Set(wrong)], labels: labels.length};
});

async function checkGeometry(page, failed) {
  const isOver = () => page.evaluate(() => {
    const ladder = document.getElementById("ladder"), before = ladder.scrollTop;
    ladder.scrollTop += ladder.clientHeight;
    return ladder.scrollTop === before;
  });
  let labels = 0;
  await page.evaluate(() => { document.getElementById("ladder").scrollTop = 0; });
  for (let i = 0; i < SCROLLS; ++i) {
    await painted(page);
    const found = await measure(page);
    failed.push(...found.wrong.slice(0, 3));
    labels += found.labels;
    if (found.wrong.length || await isOver()) break;
  }
  if (labels === 0) failed.push("there are labels");
}

/** Milliseconds from a key press until the next frame but one is painted: the longest of all, of which
 *  each is tried several times, since other programs may have the processors meanwhile. */
const keyTime = page => page.evaluate(async () => {
  const TRIES = 5;
  const painted = () => new Promise(
      done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const keys = ["Home", "j", "j", "PageDown", "k", "n", "End", "PageUp", "p", "Home", "j"];
  const shortest = keys.map(() => Infinity);
  for (let i = 0; i < TRIES; ++i) {
    for (const [at, key] of keys.entries()) {
      const start = performance.now();
      dispatchEvent(new KeyboardEvent("keydown", {key}));
      await painted();
      shortest[at] = Math.min(shortest[at], performance.now() - start);
    }
  }
  return Math.round(Math.max(...shortest));
});

for (const file of files) {
  const failed = [], said = [];
  let slowest = 0;
  for (const colorScheme of isLegibleOnly ? ["light"] : ["light", "dark"]) {
    for (const width of WIDTHS) {
      const page = await browser.newPage({viewport: {width, height: 800}, colorScheme, hasTouch: width < 700});
      page.on("console", message => said.push(message.text()));
      page.on("pageerror", error => said.push(String(error)));
      page.on("request", request => {
        if (!/^(file|data):/.test(request.url())) said.push("asks for " + request.url());
      });
      await page.goto("file://" + path.resolve(file));
      const here = [];
      const overflows = await page.evaluate(
          () => document.documentElement.scrollWidth > innerWidth);
      if (overflows) here.push("the page scrolls sideways");
      if (await page.locator("#data").count() && colorScheme === "light") {
        await readData(page);
        await checkGeometry(page, here);
        here.push(...await unnamed(page));
        if (width < 700) {
          await checkTouch(page, here);
        } else if (!isLegibleOnly) {
          await check(page, here);
          slowest = await keyTime(page);
        }
      }
      failed.push(...here.map(what => `${width} pixels, ${colorScheme}: ${what}`));
      await page.close();
    }
  }
  console.log(JSON.stringify({file, said, failed, slowest}));
}
await browser.close();
