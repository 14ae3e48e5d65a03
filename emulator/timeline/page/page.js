// Shows the timeline in #data as a grid of rows with a picture of arrows behind it. Only the rows in view, and the
// selected one, are elements. layout.js knows where everything is.
const data = JSON.parse(document.getElementById("data").textContent);
const happenings = data.happenings;  // see write_page.cc for the fields
const TONES = ["plain", "again", "fault", "error"];
const TONE_WORDS = ["", "sent again: ", "fault: ", "error: "];
const LEGEND = ["as usual", "sent again, or a request to do so", "changed by a fault rule", "error"];
const RUNS = ["1st run", "2nd run"];
const $ = id => document.getElementById(id);
const ladder = $("ladder"), grid = $("rows"), svg = grid.querySelector("svg"), overview = $("overview");

function element(tag, properties = {}, ...children) {
  const one = Object.assign(document.createElement(tag), properties);
  one.append(...children);
  return one;
}

const pen = document.createElement("canvas").getContext("2d");
pen.font = getComputedStyle(grid).font;
const layout = new Layout(data, pen.measureText("0".repeat(100)).width / 100);
let cursor = layout.data.rows ? 0 : -1;  // a line's name: see Layout.resize
let matches = [], wanted = "";  // matching rows, and the searched text
const drawn = new Map();  // elements, by the line's name

const laneName = lane => [data.lanes[lane].process, data.lanes[lane].qp].filter(Boolean).join(" ");
const happeningsOf = line => layout.runs.map((_, run) => layout.itemOf(line, run)).filter(Boolean);
const isFault = one => one.tone >= 2;

/** Returns a dot whose shape shows its tone, as its color does. */
function shape(x, y, tone) {
  const at = `M${x} ${y}`;
  const path = tone === 2 ? `M${x - 6} ${y}l6 -6l6 6l-6 6z` : tone === 3 ? `M${x - 5} ${y - 5}h10v10h-10z` :
      `${at}m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0`;
  return `<path class="${TONES[tone]} ${tone === 1 ? "ring" : "dot"}" d="${path}"/>`;
}
function cross(x, y, tone) {
  return `<path class="${TONES[tone]} cross" d="M${x - 6} ${y - 6}l12 12m0 -12l-12 12"/>`;
}
function arrowOf(one) {
  const points = layout.arrow(one), [x, y] = points.at(-1), [beforeX, beforeY] = points.at(-2);
  const line = points.map(point => point.map(value => value.toFixed(1)).join(" ")).join("L");
  let end = cross(x, y, one.tone);
  if (!one.lost) {
    const length = Math.hypot(x - beforeX, y - beforeY), alongX = (x - beforeX) / length, alongY = (y - beforeY) / length;
    const wing = side => `${(x - 9 * alongX - 4 * side * alongY).toFixed(1)} ${(y - 9 * alongY + 4 * side * alongX).toFixed(1)}`;
    end = `<path class="${TONES[one.tone]} head" d="M${x.toFixed(1)} ${y.toFixed(1)}L${wing(1)}L${wing(-1)}z"/>`;
  }
  return `<g data-row="${one.row}" data-end="${one.end}"><path class="${TONES[one.tone]} shaft" d="M${line}"/>${end}</g>` +
      shape(...points[0], one.tone);
}

/** Draws what is between two lines, and what is in flight there. */
function drawPicture(first, last) {
  const top = layout.tops[first], height = layout.tops[last + 1] - top;
  let text = "";
  data.lanes.forEach((_, lane) => {
    text += `<path class="lane" d="M${layout.laneX(lane)} ${top}v${height}"/>`;
  });
  const firstRow = layout.lines.slice(first, last + 1).find(line => line >= 0) ?? 0;
  const start = layout.lineOf[layout.earliest[firstRow] ?? 0] ?? 0;
  const seen = new Set();  // arrows that began above: lines less than a pixel apart are drawn once
  const isApart = one => {
    const [[fromX, fromY], [toX, toY]] = layout.arrow(one).slice(-2);
    const x = fromX + (toX - fromX) * (top - fromY) / (toY - fromY);
    const key = [one.tone, one.end, one.lane, Math.round(x)].join();
    return !seen.has(key) && seen.add(key);
  };
  for (let index = Math.min(start, first); index <= last; ++index) {
    const line = layout.lines[index];
    layout.runs.forEach((_, run) => {
      const one = layout.itemOf(line, run);
      if (!one || isMark(one)) return;
      if (isArrow(one)) {
        if (index >= first || layout.lineOf[one.end] >= first && isApart(one)) text += arrowOf(one);
      } else if (index >= first) {
        text += shape(layout.laneX(one.lane), layout.middleOf(index, run), one.tone);
      }
    });
  }
  svg.style.cssText = `top:${top}px;width:${layout.width}px;height:${height}px`;
  svg.setAttribute("viewBox", `0 ${top} ${layout.width} ${height}`);
  svg.innerHTML = text;
}

function cellsOf(index, row) {
  const line = layout.lines[index], top = layout.tops[index];
  layout.runs.forEach((_, run) => {
    const at = line < 0 ? data.folds[-1 - line][0] : line, time = layout.times[run][at];
    if (isNaN(time) || isNaN(layout.heightOf(line, run))) return;
    const y = layout.topOf(index, run) - top + ABOVE, one = layout.itemOf(line, run);
    const cell = (name, left, width) => {
      const part = element("span", {className: name});
      part.setAttribute("role", "gridcell");
      part.style.cssText = `left:${left}px;width:${width}px;top:${y}px`;
      row.append(part);
      return part;
    };
    let before = line >= 0 && line === data.folds[layout.foldOf[line]]?.[0] ? at : at - 1;  // the fold's head has it
    while (before >= 0 && isNaN(layout.times[run][before])) --before;
    const isSame = before >= 0 && layout.times[run][before] === time && index > 0;
    const stamp = cell(isSame ? "time same" : "time", layout.timeX(run), layout.timeWidth);
    if (layout.runs.length > 1) stamp.append(element("span", {className: layout.isCompact ? "run" : "vh", textContent: RUNS[run] + " "}));
    stamp.append(timeText(time));
    const [text, reason] = layout.linesOf(line, run), [left, right] = layout.boxOf(line, run);
    if (text.length === 0) return;
    const tone = one ? one.tone : 0;
    const label = cell(`label ${TONES[tone]}${line < 0 ? " fold" : ""}`, left, right - left);
    if (one && !isMark(one)) {
      const where = isArrow(one) ? `from ${laneName(one.lane)} to ${laneName(one.to)}: ` : laneName(one.lane) + ": ";
      label.append(element("span", {className: "vh", textContent: TONE_WORDS[tone] + where}));
    }
    label.append(element("b", {textContent: text.join("\n")}));
    if (reason.length) {
      const why = element("i", {textContent: reason.join("\n")});
      why.style.marginTop = layout.shaftOf(line, run) + "px";
      label.append(why);
    }
    if (one && isArrow(one)) {
      label.append(element("span", {className: "vh",
        textContent: one.lost ? ", is lost" : ", arrives at " + timeText(one.at + one.flight)}));
    }
  });
}

function drawRow(index) {
  const line = layout.lines[index], row = element("div", {className: "row"});
  row.setAttribute("role", "row");
  row.setAttribute("aria-rowindex", index + 1);
  row.setAttribute("aria-level", line >= 0 && layout.foldOf[line] >= 0 ? 2 : 1);
  row.dataset.line = line;
  row.style.cssText = `top:${layout.tops[index]}px;height:${layout.tops[index + 1] - layout.tops[index]}px`;
  if (line < 0) row.setAttribute("aria-expanded", layout.open.has(-1 - line));
  if (happeningsOf(line).some(isMark)) row.classList.add("mark");
  if (matchSet.has(line)) row.classList.add("match");
  cellsOf(index, row);
  if (line < 0 || happeningsOf(line).length) row.tabIndex = -1;
  grid.append(row);
  drawn.set(line, row);
}

let matchSet = new Set(), selected = null;
function draw(from = ladder.scrollTop - 300, to = ladder.scrollTop + ladder.clientHeight + 300) {
  const first = layout.lineAt(from), last = layout.lineAt(to), keep = new Set();
  for (let index = first; index <= last && index < layout.lines.length; ++index) keep.add(index);
  if (layout.lines.length) keep.add(layout.indexOf(cursor));
  const names = new Set([...keep].map(index => layout.lines[index]));
  for (const [line, row] of drawn) {
    if (names.has(line)) continue;
    row.remove();
    drawn.delete(line);
  }
  for (const index of keep) if (!drawn.has(layout.lines[index])) drawRow(index);
  const current = drawn.get(cursor);
  if (selected !== current) {
    selected?.removeAttribute("aria-selected");
    if (selected) selected.tabIndex = -1;
    selected = current;
  }
  if (current) {
    current.tabIndex = 0;
    current.setAttribute("aria-selected", true);
  }
  if (layout.lines.length) drawPicture(first, last);
  paintThumb();
}
let isPlanned = false;
function plan() {
  if (isPlanned) return;
  isPlanned = true;
  requestAnimationFrame(() => { isPlanned = false; draw(); });
}

/** Draws all rows anew; the focused element keeps the focus. */
function redraw() {
  const hadFocus = grid.contains(document.activeElement);
  for (const row of drawn.values()) row.remove();
  drawn.clear();
  draw();
  if (hadFocus) drawn.get(cursor)?.focus({preventScroll: true});
}
/** Call it after heights changed. */
function rebuild() {
  grid.setAttribute("aria-rowcount", layout.lines.length);
  grid.style.height = layout.height + "px";
  grid.style.width = layout.width + "px";
  overview.hidden = layout.height < 2 * ladder.clientHeight;
  redraw();
  paintOverview();
}
/** Keeps the selected row where it is, or at least in view if it was. */
let lastHeight = 0;
function resize() {
  const offset = layout.tops ? layout.tops[layout.indexOf(cursor)] - ladder.scrollTop : -1;
  const wasInView = offset >= 0 && offset < lastHeight;
  lastHeight = ladder.clientHeight;
  layout.resize(ladder.clientWidth);
  drawHeads();
  rebuild();
  if (wasInView) ladder.scrollTop = layout.tops[layout.indexOf(cursor)] - Math.min(offset, lastHeight / 2);
}

function drawHeads() {
  const heads = data.lanes.map((lane, i) => element("li", {}, element("b", {textContent:
      (layout.isCompact ? layout.numberOf(i) + " " : "") + (lane.process || lane.device)}), " " + lane.qp));
  $("heads").className = layout.isCompact ? "compact" : "";
  $("heads").style.gridTemplateColumns = layout.runs.map((_, run) =>
      `${layout.timeWidth + EDGE}px repeat(${layout.lanes[run].length}, ${layout.column}px)`).join(" ");
  $("heads").replaceChildren(...layout.runs.flatMap((_, run) => layout.lanes[run].map((lane, slot) => {
    if (slot === 0 && !layout.isCompact) heads[lane].style.gridColumnStart = layout.laneX(lane) > layout.runWidth ? layout.lanes[0].length + 3 : 2;
    return heads[lane];
  })));
  if (!layout.isCompact || layout.column < 14 || data.lanes.length < 2) return;
  const numbers = element("li", {className: "numbers", ariaHidden: "true"});
  data.lanes.forEach((_, lane) => {
    const number = element("span", {textContent: layout.numberOf(lane)});
    number.style.left = layout.laneX(lane) + "px";
    numbers.append(number);
  });
  $("heads").append(numbers);
}

/** Draws the whole run beside the ladder: a wider line is a more serious happening. */
function paintOverview() {
  if (overview.hidden) return;
  const {clientWidth: width, clientHeight: height} = overview, ink = getComputedStyle(document.documentElement);
  overview.width = width;
  overview.height = height;
  const worst = new Int8Array(height).fill(-1), context = overview.getContext("2d");
  layout.lines.forEach((line, index) => {
    const y = Math.min(height - 1, Math.floor(layout.tops[index] / layout.height * height));
    for (const one of happeningsOf(line)) worst[y] = Math.max(worst[y], one.tone);
  });
  worst.forEach((tone, y) => {
    if (tone < 0) return;
    context.fillStyle = ink.getPropertyValue("--" + TONES[tone]);
    context.fillRect(0, tone > 0 ? y - 1 : y, width * (tone + 1) / 4, tone > 0 ? 3 : 1);
  });
}
function paintThumb() {
  overview.style.setProperty("--from", ladder.scrollTop / layout.height);
  overview.style.setProperty("--part", ladder.clientHeight / layout.height);
}

/** What a QP is at the cursor: its state, and what it has sent and what has completed. */
const KEPT = 4096;  // number of happenings between kept sets of states
const kept = [data.lanes.map(() => ({state: "", next: null, acked: null, sends: 0, receives: 0}))];
function advance(all, one) {
  const lane = all[one.lane];
  if (one.state) lane.state = one.state;
  if (one.kind === "post") one.text.startsWith("post_send") ? ++lane.sends : ++lane.receives;
  if (one.kind === "completion") one.request ? --lane.sends : --lane.receives;
  if (one.kind !== "frame" || one.psn === null) return;
  if (one.request) lane.next = Math.max(lane.next ?? 0, one.psn + 1);
  else if (one.to >= 0 && /^ACK/.test(one.text)) all[one.to].acked = one.psn;
}
function statesAt(last) {
  const copy = all => all.map(one => ({...one}));
  const wantedSet = Math.floor((last + 1) / KEPT);
  while (kept.length <= wantedSet) {
    const all = copy(kept[kept.length - 1]), start = (kept.length - 1) * KEPT;
    for (let i = start; i < start + KEPT; ++i) advance(all, happenings[i]);
    kept.push(all);
  }
  const all = copy(kept[wantedSet]);
  for (let i = wantedSet * KEPT; i <= last && i < happenings.length; ++i) advance(all, happenings[i]);
  return all;
}

function addRow(table, name, ...values) {
  const row = table.insertRow();
  row.append(element("th", {scope: "row", textContent: name}), ...values.map(value => element("td", {textContent: value})));
}
function hex(base64) {
  const bytes = atob(base64);
  let text = "";
  for (let at = 0; at < bytes.length; at += 8) {
    text += at.toString(16).padStart(4, "0") + "  " + [...bytes.slice(at, at + 8)].map(
        c => c.charCodeAt(0).toString(16).padStart(2, "0")).join(" ") + "\n";
  }
  return text;
}
function showFold(fold, about) {
  layout.runs.forEach((_, run) => {
    const counts = new Map();
    for (const verb of layout.verbsOf(fold, run)) counts.set(verb, (counts.get(verb) ?? 0) + 1);
    const text = [...counts].map(([verb, count]) => count > 1 ? `${verb} ×${count}` : verb).join(", ");
    if (text) about.append(element("p", {textContent: (layout.runs.length > 1 ? RUNS[run] + ": " : "") + text}));
  });
  about.append(element("button", {textContent: layout.open.has(fold) ? "close these rows" : "open these rows",
    onclick: () => toggle(fold)}));
}
function show() {
  const about = $("about"), topics = new Set();
  about.replaceChildren();
  if (cursor < 0 && layout.data.rows) showFold(-1 - cursor, about);
  layout.runs.forEach((_, run) => {
    const one = layout.itemOf(cursor, run);
    if (!one || isMark(one) && run > 0) return;
    const table = element("table");
    if (layout.runs.length > 1 && !isMark(one)) about.append(element("h3", {textContent: RUNS[run]}));
    addRow(table, "at", timeText(one.at));
    addRow(table, "what", one.text);
    if (one.reason) addRow(table, "why", one.reason);
    if (!isMark(one)) addRow(table, isArrow(one) ? "from" : "where", laneName(one.lane));
    if (isArrow(one)) {
      addRow(table, "to", laneName(one.to));
      addRow(table, "arrives", one.lost ? "never" : timeText(one.at + one.flight));
    }
    for (const [name, value] of one.details) addRow(table, name, value);
    about.append(table);
    if (one.bytes) about.append(element("pre", {textContent: hex(one.bytes)}));
    if (data.topics[one.topic]) topics.add(one.topic + ": " + data.topics[one.topic]);
  });
  $("meaning").textContent = [...topics].join("\n");
  const list = $("states"), row = cursor < 0 ? data.folds[-1 - cursor]?.[1] : cursor;
  list.replaceChildren();
  statesAt(Math.max(...layout.items.map(items => items[row] ?? -1))).forEach((lane, i) => {
    if (!lane.state && lane.next === null) return;
    const run = data.lanes[i].run ? RUNS[data.lanes[i].run - 1] + " " : "";
    addRow(list, run + data.lanes[i].qp, [lane.state, lane.next === null ? "" : "next psn +" + lane.next,
      lane.acked === null ? "" : "acknowledged +" + lane.acked,
      lane.sends > 0 ? lane.sends + " sends posted" : "",
      lane.receives > 0 ? lane.receives + " receives posted" : ""].filter(Boolean).join(", "));
  });
}

/** Selects a line, and opens the fold that it is in. */
function go(line, takeFocus = true) {
  const fold = layout.foldOf[line] ?? -1;
  if (fold >= 0 && !layout.open.has(fold)) {
    layout.open.add(fold);
    layout.refresh();
    cursor = line;
    rebuild();
  }
  cursor = line;
  const index = layout.indexOf(line), top = layout.tops[index], bottom = layout.tops[index + 1];
  const view = ladder.clientHeight;
  if (top < ladder.scrollTop) ladder.scrollTop = top - view / 3;
  if (bottom > ladder.scrollTop + view) ladder.scrollTop = bottom - view * 2 / 3;
  draw();
  if (takeFocus) drawn.get(cursor)?.focus({preventScroll: true});
  show();
}
function toggle(fold, isOpen = !layout.open.has(fold)) {
  const before = layout.tops[layout.indexOf(-1 - fold)] - ladder.scrollTop;
  if (isOpen) layout.open.add(fold); else layout.open.delete(fold);
  if (!isOpen && layout.foldOf[cursor] === fold) cursor = -1 - fold;
  layout.refresh();
  rebuild();
  ladder.scrollTop = layout.tops[layout.indexOf(-1 - fold)] - before;
  showFolds();
  show();
}
function showFolds() {
  $("folds").hidden = data.folds.length === 0;
  $("folds").textContent = layout.open.size < data.folds.length ? "open all folds" : "close all folds";
}
const canBeSelected = line => line < 0 || happeningsOf(line).length > 0;
function step(by) {
  const sign = Math.sign(by);
  let index = layout.indexOf(cursor), last = index;
  for (let left = Math.abs(by); left > 0;) {
    index += sign;
    if (index < 0 || index >= layout.lines.length) break;
    if (canBeSelected(layout.lines[index])) last = index, --left;
  }
  go(layout.lines[last]);
}
const rowOf = line => line < 0 ? data.folds[-1 - line][0] - .5 : line;
function next(by, rows, takeFocus) {
  const at = rowOf(cursor);
  const found = by > 0 ? rows.find(row => row > at) : rows.findLast(row => row < at);
  if (found !== undefined) go(found, takeFocus);
  return found;
}

const faults = happenings.filter(isFault).sort((a, b) => a.row - b.row);
const faultRows = [...new Set(faults.map(one => one.row))];

const tellMatches = () => {
  const at = matches.indexOf(cursor);
  $("status").textContent = !wanted ? "" : at < 0 ? `${matches.length} rows match` :
      `match ${at + 1} of ${matches.length}: ${happeningsOf(cursor)[0].text}`;
};
function search() {
  wanted = $("search").value.toLowerCase();
  matches = wanted ? [...new Set(happenings.filter(one =>
    (one.text + " " + one.reason).toLowerCase().includes(wanted)).map(one => one.row))].sort((a, b) => a - b) : [];
  matchSet = new Set(matches);
  redraw();
  tellMatches();
}
function nextMatch(by) {
  if (next(by, matches, false) === undefined && matches.length) go(by > 0 ? matches[0] : matches.at(-1), false);
  tellMatches();
}

const KEYS = {
  j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1),
  Home: () => step(-Infinity), End: () => step(Infinity),
  PageDown: () => step(20), PageUp: () => step(-20),
  n: () => next(1, faultRows), p: () => next(-1, faultRows), "/": () => $("search").focus(),
};
addEventListener("keydown", event => {
  if (event.target === $("search")) {
    if (event.key === "Enter") nextMatch(event.shiftKey ? -1 : 1);
    if (event.key === "Escape") { $("search").value = ""; search(); go(cursor); }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const row = event.target.closest?.(".row"), fold = row ? -1 - cursor : -1;
  if (fold >= 0 && ["Enter", " ", "ArrowRight", "ArrowLeft"].includes(event.key)) {
    event.preventDefault();
    toggle(fold, event.key === "ArrowRight" ? true : event.key === "ArrowLeft" ? false : undefined);
    return;
  }
  const inPanel = event.target.closest?.("aside") && event.key.length > 1;  // the panel scrolls by itself
  if (inPanel || !KEYS[event.key] || !data.rows) return;
  event.preventDefault();
  KEYS[event.key]();
});
grid.addEventListener("click", event => {
  const row = event.target.closest(".row");
  if (!row || !canBeSelected(+row.dataset.line)) return;
  const line = +row.dataset.line;
  go(line);
  if (line < 0) toggle(-1 - line);
});
ladder.addEventListener("scroll", plan);
$("search").addEventListener("input", search);
$("found-after").onclick = () => nextMatch(1);
$("found-before").onclick = () => nextMatch(-1);
$("after").onclick = () => next(1, faultRows);
$("before").onclick = () => next(-1, faultRows);
$("folds").onclick = () => {
  const all = data.folds.map((_, fold) => fold), areOpen = layout.open.size === all.length;
  layout.open = new Set(areOpen ? [] : all);
  if (areOpen && layout.foldOf[cursor] >= 0) cursor = -1 - layout.foldOf[cursor];
  layout.refresh();
  rebuild();
  showFolds();
  go(cursor, false);
};
const scrollFromOverview = event => {
  if (event.type === "pointermove" && !event.buttons) return;
  const box = overview.getBoundingClientRect();
  ladder.scrollTop = (event.clientY - box.top) / box.height * layout.height - ladder.clientHeight / 2;
};
overview.addEventListener("pointerdown", scrollFromOverview);
overview.addEventListener("pointermove", scrollFromOverview);
addEventListener("beforeprint", () => draw(0, layout.height));

document.querySelector("h1").textContent = document.title = "rocemu timeline: " + data.source;
$("legend").innerHTML = TONES.map((_, tone) => `<li><svg aria-hidden="true" viewBox="0 0 36 16">` +
    `<path class="${TONES[tone]} shaft" d="M8 8H30"/>${shape(8, 8, tone)}</svg>${LEGEND[tone]}</li>`).join("") +
    `<li><svg aria-hidden="true" viewBox="0 0 36 16"><path class="plain shaft" d="M4 8H26"/>${cross(26, 8, 0)}</svg>lost</li>`;
const LISTED = 500;
const listed = [];  // equal happenings in a row become one
for (const one of faults) {
  const text = (one.tone === 2 ? "fault: " : "error: ") + timeText(one.at) + "  " + one.text +
      (one.reason && !isMark(one) ? ": " + one.reason : "");
  if (listed.at(-1)?.text === text) ++listed.at(-1).count; else listed.push({text, one, count: 1});
}
for (const {text, one, count} of listed.slice(0, LISTED)) {
  $("faults").append(element("button", {className: TONES[one.tone], onclick: () => go(one.row),
    textContent: count > 1 ? `${text} (${count} times)` : text}));
}
if (faults.length === 0) {
  $("faults").textContent = "none";
  $("before").hidden = $("after").hidden = true;
}
if (listed.length > LISTED) $("faults").append(`and ${listed.length - LISTED} more: n and p go to them`);
for (const note of data.notes) $("notes").append(element("p", {textContent: note}));
$("notes").hidden = data.notes.length === 0;
const difference = happenings.find(isMark);
if (difference) {
  $("difference").hidden = false;
  for (const [field, ...values] of data.differences) addRow($("difference").querySelector("tbody"), field, ...values);
  $("difference").querySelector("button").onclick = () => go(difference.row);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paintOverview);
$("panel").open = innerWidth > 700;
showFolds();
layout.resize(ladder.clientWidth);
if (data.rows) cursor = layout.lines.find(canBeSelected);
resize();
new ResizeObserver(resize).observe(ladder);
if (data.rows) go(difference ? difference.row : cursor, false);
