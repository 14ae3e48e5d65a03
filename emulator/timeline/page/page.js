// Draws the timeline in #data: one row for each happening, of which only those in view are painted.
// Where rows are lower than pixels, an overview is painted instead: see paintOverview.
const data = JSON.parse(document.getElementById("data").textContent);
const rows = data.happenings;  // see write_page.cc for the fields
const TONES = ["plain", "again", "fault", "error"];
const $ = id => document.getElementById(id);
const view = $("lanes"), canvas = document.createElement("canvas"), pen = canvas.getContext("2d");
const space = document.createElement("div");
view.append(canvas, space);
const HEAD = 44, TIME = 86, OVERVIEW_ROW = 2;
// Browsers end an element at about 33 million pixels.
const MOST_ROW = Math.min(40, 30e6 / Math.max(1, rows.length));
let rowHeight = Math.min(24, MOST_ROW), cursor = 0, found = "";

function timeText(ns) {
  const [scale, unit] = ns < 1e3 ? [1, "ns"] : ns < 1e6 ? [1e3, "µs"] : ns < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  return +(ns / scale).toFixed(3) + " " + unit;
}
function laneWidth() {
  return Math.max(250, (view.clientWidth - TIME - 10) / Math.max(1, data.lanes.length));
}
function laneX(lane) { return TIME + lane * laneWidth(); }

/** The row in which something at this time ends, at most a few below its own. */
function arrivalRow(index) {
  const end = rows[index].at + rows[index].flight;
  let row = index;
  while (row < index + 4 && row + 1 < rows.length && rows[row + 1].at < end) ++row;
  return rows[index].flight > 0 ? row + 0.7 : row + 0.3;
}

function clipped(text, room) {
  if (pen.measureText(text).width <= room) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (pen.measureText(text.slice(0, middle) + "…").width <= room) low = middle; else high = middle - 1;
  }
  return text.slice(0, low) + "…";
}

function paint() {
  const ratio = devicePixelRatio || 1, width = view.clientWidth, height = view.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = width + "px";
    canvas.style.height = height + "px";
  }
  const style = getComputedStyle(document.documentElement);
  const colour = name => style.getPropertyValue("--" + name).trim();
  const colours = Object.fromEntries([...TONES, "back", "ink", "soft", "line", "at", "panel"].map(
      name => [name, colour(name)]));
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.fillStyle = colours.back;
  pen.fillRect(0, 0, width, height);
  const left = view.scrollLeft, top = view.scrollTop, lane = laneWidth();
  const y = row => HEAD + row * rowHeight - top;
  const first = Math.max(0, Math.floor(top / rowHeight) - 5);
  const last = Math.min(rows.length, Math.ceil((top + height) / rowHeight) + 1);
  pen.fillStyle = colours.at;
  pen.fillRect(0, y(cursor), width, Math.max(2, rowHeight));
  pen.strokeStyle = colours.line;
  pen.lineWidth = 1;
  data.lanes.forEach((_, i) => {
    const x = Math.round(laneX(i) - left) + .5;
    pen.beginPath(); pen.moveTo(x, HEAD); pen.lineTo(x, height); pen.stroke();
  });
  const legible = rowHeight >= 13;
  pen.font = "13px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const labels = [];  // over all arrows
  const isOverview = rowHeight < OVERVIEW_ROW;
  if (isOverview) paintOverview(first, last, height, y, left, colours);
  for (let i = first; i < last && !isOverview; ++i) {
    const one = rows[i], middle = y(i) + rowHeight / 2, x = laneX(one.lane) - left;
    pen.fillStyle = pen.strokeStyle = colours[one.kind === "verb" && !one.tone ? "ink" : TONES[one.tone]];
    pen.globalAlpha = found && !matches(one) ? .25 : 1;
    if (one.to >= 0 && one.to !== one.lane) {
      const end = laneX(one.to) - left, endY = y(arrivalRow(i)) + rowHeight / 2 - (legible ? 4 : 0);
      const stop = one.lost ? x + (end - x) * .8 : end, way = Math.sign(end - x);
      const startY = y(i) + rowHeight * .35;
      const stopY = startY + (endY - startY) * (stop - x) / (end - x);
      pen.lineWidth = one.tone ? 1.8 : 1.2;
      pen.beginPath(); pen.moveTo(x, startY); pen.lineTo(stop, stopY); pen.stroke();
      pen.beginPath();
      if (one.lost) {
        pen.moveTo(stop - 5, stopY - 5); pen.lineTo(stop + 5, stopY + 5);
        pen.moveTo(stop - 5, stopY + 5); pen.lineTo(stop + 5, stopY - 5); pen.stroke();
      } else {
        pen.moveTo(stop, stopY); pen.lineTo(stop - 8 * way, stopY - 4);
        pen.lineTo(stop - 8 * way, stopY + 4); pen.fill();
      }
      if (legible) {
        // Beside its beginning, where the arrows of one burst are a row apart.
        const text = clipped(one.text, Math.abs(end - x) - 40), size = pen.measureText(text).width;
        const place = way > 0 ? x + 12 : x - 12 - size;
        const slope = (endY - startY) / Math.abs(end - x);
        // In its own row, however steep the arrow is: the next row has a text of its own.
        const at = Math.min(startY + slope * Math.min(60, size / 2), middle);
        labels.push([text, place, at, size, pen.fillStyle,
          i === cursor ? colours.at : colours.back, pen.globalAlpha]);
      }
    } else {
      pen.beginPath(); pen.arc(x, middle, legible ? 3.5 : 1.5, 0, 7); pen.fill();
      if (legible) {
        const text = clipped(one.text, lane - 22);
        labels.push([text, x + 10, middle, pen.measureText(text).width, pen.fillStyle,
          i === cursor ? colours.at : colours.back, pen.globalAlpha]);
      }
    }
    pen.globalAlpha = 1;
    if (legible && (i === first || rows[i - 1].at !== one.at)) {
      pen.fillStyle = colours.back; pen.fillRect(0, y(i), TIME - 8, rowHeight);
      pen.fillStyle = colours.soft; pen.textAlign = "right";
      pen.fillText(timeText(one.at), TIME - 14, middle); pen.textAlign = "left";
    }
  }
  for (const [text, place, at, size, ink, back, alpha] of labels) {
    pen.globalAlpha = alpha;
    pen.fillStyle = back; pen.fillRect(place - 3, at - 8, size + 6, 16);
    pen.fillStyle = ink; pen.fillText(text, place, at);
  }
  pen.globalAlpha = 1;
  pen.fillStyle = colours.panel;
  pen.fillRect(0, 0, width, HEAD);
  data.lanes.forEach((one, i) => {
    pen.fillStyle = colours.ink; pen.font = "600 13px system-ui, sans-serif";
    pen.fillText(clipped(one.process || one.device, lane - 10), laneX(i) - left - 4, 14);
    pen.fillStyle = colours.soft; pen.font = "12px system-ui, sans-serif";
    pen.fillText(clipped(one.qp, lane - 10), laneX(i) - left - 4, 32);
  });
  pen.strokeStyle = colours.line;
  pen.beginPath(); pen.moveTo(0, HEAD - .5); pen.lineTo(width, HEAD - .5); pen.stroke();
}

/** One line of pixels is of many rows: each lane shows the worst of them, and lines where frames go. */
function paintOverview(first, last, height, y, left, colours) {
  const lines = Math.ceil(height), lanes = data.lanes.length;
  const worst = new Int8Array(lines * lanes).fill(-1), between = new Int8Array(lines * lanes).fill(-1);
  for (let i = first; i < last; ++i) {
    const line = Math.floor(y(i)), one = rows[i];
    if (line < HEAD || line >= lines || found && !matches(one)) continue;
    const at = line * lanes + one.lane;
    if (worst[at] < one.tone) worst[at] = one.tone;
    if (one.to < 0) continue;
    const end = Math.max(one.lane, one.to);
    for (let lane = Math.min(one.lane, one.to); lane < end; ++lane)
      if (between[line * lanes + lane] < one.tone) between[line * lanes + lane] = one.tone;
  }
  const bar = laneWidth();
  for (let tone = 0; tone < TONES.length; ++tone) {
    pen.fillStyle = colours[TONES[tone]];
    for (let at = HEAD * lanes; at < worst.length; ++at) {
      const line = Math.floor(at / lanes), x = laneX(at % lanes) - left;
      if (between[at] === tone) {
        pen.globalAlpha = tone ? .8 : .25;
        pen.fillRect(x, line, bar, 1);
      }
      if (worst[at] === tone) {
        pen.globalAlpha = 1;
        pen.fillRect(x - 3, line, 6, 1);
      }
    }
  }
  pen.globalAlpha = 1;
}

let planned = false;
function repaint() {
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => { planned = false; paint(); });
}
function resize() {
  space.style.height = Math.max(0, HEAD + rows.length * rowHeight + 20 - view.clientHeight) + "px";
  space.style.width = TIME + data.lanes.length * laneWidth() + "px";
  repaint();
}
function zoom(factor) {
  const inView = (cursor * rowHeight) - view.scrollTop;
  const whole = (view.clientHeight - HEAD - 20) / Math.max(1, rows.length);  // all in view
  rowHeight = Math.min(MOST_ROW, Math.max(Math.min(3, whole), rowHeight * factor));
  resize();
  view.scrollTop = cursor * rowHeight - inView;
}
function matches(one) {
  return (one.text + " " + one.reason).toLowerCase().includes(found);
}

/** What a QP is at the cursor: its state, and what it has sent and what has completed. */
const KEPT = 4096;  // rows from one kept set of states to the next
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
function states() {
  const copy = all => all.map(one => ({...one}));
  const wanted = Math.floor((cursor + 1) / KEPT);
  while (kept.length <= wanted) {
    const all = copy(kept[kept.length - 1]), start = (kept.length - 1) * KEPT;
    for (let i = start; i < start + KEPT; ++i) advance(all, rows[i]);
    kept.push(all);
  }
  const all = copy(kept[wanted]);
  for (let i = wanted * KEPT; i <= cursor && i < rows.length; ++i) advance(all, rows[i]);
  return all;
}
function line(table, name, value) {
  const row = table.insertRow();
  row.insertCell().textContent = name;
  row.insertCell().textContent = value;
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
function show() {
  const one = rows[cursor];
  const table = $("about");
  table.replaceChildren();
  $("bytes").textContent = $("meaning").textContent = "";
  if (!one) return;
  line(table, "at", timeText(one.at));
  line(table, "what", one.text);
  if (one.reason) line(table, "why", one.reason);
  $("meaning").textContent = data.topics[one.topic] ? one.topic + ": " + data.topics[one.topic] : "";
  for (const [name, value] of one.details) line(table, name, value);
  if (one.bytes) $("bytes").textContent = hex(one.bytes);
  const list = $("states");
  list.replaceChildren();
  states().forEach((lane, i) => {
    if (!lane.state && lane.next === null) return;
    line(list, data.lanes[i].qp, [lane.state, lane.next === null ? "" : "next psn +" + lane.next,
      lane.acked === null ? "" : "acknowledged +" + lane.acked,
      lane.sends > 0 ? lane.sends + " sends posted" : "",
      lane.receives > 0 ? lane.receives + " receives posted" : ""].filter(Boolean).join(", "));
  });
}
function go(index) {
  cursor = Math.min(rows.length - 1, Math.max(0, index));
  const at = cursor * rowHeight, room = view.clientHeight - HEAD - rowHeight;
  if (at < view.scrollTop) view.scrollTop = at - room / 3;
  if (at > view.scrollTop + room) view.scrollTop = at - room * 2 / 3;
  show();
  repaint();
}
function next(step, wanted) {
  for (let i = cursor + step; i >= 0 && i < rows.length; i += step) if (wanted(rows[i])) return go(i);
}
const isFault = one => one.tone >= 2;

function rowAt(event) {
  const box = canvas.getBoundingClientRect(), y = event.clientY - box.top;
  return y < HEAD ? -1 : Math.floor((y - HEAD + view.scrollTop) / rowHeight);
}
view.addEventListener("scroll", repaint);
view.addEventListener("click", event => { const at = rowAt(event); if (rows[at]) go(at); });
view.addEventListener("mousemove", event => {
  const one = rows[rowAt(event)], tip = $("tip");
  tip.style.display = one ? "block" : "none";
  if (!one) return;
  tip.textContent = [timeText(one.at), one.text, one.reason, ...one.details.slice(0, 2).map(
      pair => pair.join(": "))].filter(Boolean).join("\n");
  tip.style.whiteSpace = "pre-wrap";
  tip.style.left = Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8) + "px";
  tip.style.top = Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8) + "px";
});
view.addEventListener("mouseleave", () => { $("tip").style.display = "none"; });
view.addEventListener("wheel", event => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  zoom(event.deltaY < 0 ? 1.2 : 1 / 1.2);
}, {passive: false});
const KEYS = {
  j: () => go(cursor + 1), ArrowDown: () => go(cursor + 1),
  k: () => go(cursor - 1), ArrowUp: () => go(cursor - 1),
  Home: () => go(0), End: () => go(rows.length - 1),
  PageDown: () => go(cursor + 20), PageUp: () => go(cursor - 20),
  n: () => next(1, isFault), p: () => next(-1, isFault),
  "+": () => zoom(1.25), "-": () => zoom(.8), "0": () => zoom(0), "/": () => $("search").focus(),
};
addEventListener("keydown", event => {
  if (event.target === $("search")) {
    if (event.key === "Enter") next(event.shiftKey ? -1 : 1, matches);
    if (event.key === "Escape") { $("search").value = found = ""; view.focus(); repaint(); }
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
$("search").addEventListener("input", () => { found = $("search").value.toLowerCase(); repaint(); });
$("in").addEventListener("click", () => zoom(1.25));
$("out").addEventListener("click", () => zoom(.8));

document.querySelector("h1").textContent = document.title = "rocemu timeline: " + data.source;
const LISTED = 500;
const faults = rows.map((one, index) => [one, index]).filter(([one]) => isFault(one));
for (const [one, index] of faults.slice(0, LISTED)) {
  const button = document.createElement("button");
  button.className = TONES[one.tone];
  button.textContent = timeText(one.at) + "  " + one.text + (one.tone === 2 && one.reason ? ": " + one.reason : "");
  button.onclick = () => go(index);
  $("faults").append(button);
}
if (faults.length === 0) $("faults").textContent = "none";
if (faults.length > LISTED) $("faults").append(`and ${faults.length - LISTED} more: n and p go to them`);
for (const note of data.notes) {
  const text = document.createElement("p");
  text.textContent = note;
  $("notes").append(text);
}
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", repaint);
new ResizeObserver(resize).observe(view);
resize();
const difference = rows.findIndex(one => one.topic === "first difference");
go(Math.max(0, difference));
