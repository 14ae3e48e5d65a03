// usage: node open_pages.mjs CHROMIUM FILE...
// Opens each page in headless Chromium, uses it as a reader does, and prints a line of JSON for each:
// what its console said, which of the checks below failed, and how long zooming takes.
import path from "node:path";
import {chromium} from "playwright-core";

const [executablePath, ...files] = process.argv.slice(2);
const browser = await chromium.launch({executablePath, args: ["--no-sandbox"]});

/** What "At the cursor" says of a row, as "what" or "at". */
const told = (page, name) => page.evaluate(name => {
  for (const row of document.getElementById("about").rows)
    if (row.cells[0].textContent === name) return row.cells[1].textContent;
  return null;
}, name);

const WIDTHS = [1280, 390];

async function check(page, failed) {
  const expect = (holds, what) => { if (!holds) failed.push(what); };
  const rows = await page.evaluate(
      () => JSON.parse(document.getElementById("data").textContent).happenings);
  expect(rows.length > 0, "there are rows");
  await page.locator("#lanes").focus();
  const text = async () => [await told(page, "what"), await told(page, "why")];
  const is = (one, [what, why]) => one.text === what && (one.reason || null) === why;
  await page.keyboard.press("Home");
  expect(is(rows[0], await text()), "Home goes to the first row");
  await page.keyboard.press("j");
  if (rows.length > 1) expect(is(rows[1], await text()), "j goes to the next row");
  await page.keyboard.press("k");
  expect(is(rows[0], await text()), "k goes back");
  await page.keyboard.press("End");
  expect(is(rows.at(-1), await text()), "End goes to the last row");
  const fault = rows.find((one, i) => i > 0 && one.tone >= 2);
  await page.keyboard.press("Home");
  if (fault) {
    await page.keyboard.press("n");
    expect(is(fault, await text()), "n goes to the first fault");
    await page.keyboard.press("Home");
    const first = rows.find(one => one.tone >= 2);
    await page.locator("#faults button").first().click();
    expect(is(first, await text()), "the list of faults goes to the first");
  } else {
    expect(await page.locator("#faults button").count() === (rows[0].tone >= 2 ? 1 : 0),
        "no fault is listed where there is none");
  }
  const explained = rows.findIndex(one => one.topic && one.topic.startsWith("IBV_WC_"));
  if (explained >= 0) {
    await page.locator("#search").fill(rows[explained].text);
    await page.evaluate(() => document.getElementById("lanes").focus());
    await page.keyboard.press("Home");
    await page.locator("#search").focus();
    await page.keyboard.press("Enter");
    const wanted = rows[explained].text.toLowerCase();
    const found = rows.findIndex(
        (one, i) => i > 0 && (one.text + " " + one.reason).toLowerCase().includes(wanted));
    expect(is(rows[found], await text()), "Enter goes to what is searched");
    if (found === explained) {
      expect((await page.locator("#meaning").textContent()).length > 20, "a status is explained");
    }
    await page.keyboard.press("Escape");
    expect(await page.locator("#search").inputValue() === "", "Escape ends the search");
  }
  const frame = rows.findIndex(one => one.bytes);
  if (frame >= 0 && frame < 2000) {
    await page.locator("#lanes").focus();
    await page.keyboard.press("Home");
    for (let i = 0; i < frame; ++i) await page.keyboard.press("j");
    expect(/^0000 +([0-9a-f]{2} )+/.test(await page.locator("#bytes").textContent()),
        "a frame shows its bytes");
  }
  await page.keyboard.press("Home");
  await page.mouse.click(300, 130);
  expect((await told(page, "what")) !== null, "a click goes to a row");
  await page.mouse.move(300, 134);
  // Browsers tell of the mouse with the next frame.
  await page.locator("#tip").waitFor({state: "visible", timeout: 60000}).catch(
      () => failed.push("a row under the mouse is told"));
}

/** Milliseconds from a key press until the next frame but one is painted: the longest of all, of which
 *  each is tried several times, since other programs may have the processors meanwhile. */
const zoomTime = page => page.evaluate(async () => {
  const TRIES = 5;
  const painted = () => new Promise(
      done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const keys = ["0", "+", "+", "+", "0", ..."++++++++++++", ..."------", "End", "+", "-"];
  const shortest = keys.map(() => Infinity);
  for (let i = 0; i < TRIES; ++i) {
    for (const [at, key] of keys.entries()) {
      const start = performance.now();
      dispatchEvent(new KeyboardEvent("keydown", {key}));
      await painted();
      shortest[at] = Math.min(shortest[at], performance.now() - start);
    }
  }
  return Math.round(Math.max(...shortest.filter((_, at) => keys[at] !== "End")));
});

for (const file of files) {
  const failed = [], said = [];
  let zoom = 0;
  for (const colorScheme of ["light", "dark"]) {
    for (const width of WIDTHS) {
      const page = await browser.newPage({viewport: {width, height: 800}, colorScheme});
      page.on("console", message => said.push(message.text()));
      page.on("pageerror", error => said.push(String(error)));
      page.on("request", request => {
        if (!/^(file|data):/.test(request.url())) said.push("asks for " + request.url());
      });
      await page.goto("file://" + path.resolve(file));
      const overflows = await page.evaluate(
          () => document.documentElement.scrollWidth > innerWidth);
      if (overflows) failed.push(`${width} pixels are enough`);
      if (width === WIDTHS[0] && colorScheme === "light" && await page.locator("#data").count()) {
        await check(page, failed);
        zoom = await zoomTime(page);
      }
      await page.close();
    }
  }
  console.log(JSON.stringify({file, said, failed, zoom}));
}
await browser.close();
