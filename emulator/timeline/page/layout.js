// Places everything on the page, in pixels: arithmetic only. The data has the row of each happening and that of its
// arrow's end (arrange.h). An arrow runs level along its label to the last few pixels before its receiver, and falls
// there to the row of its arrival; no label is in those gutters, so none is cut. Where columns would be too narrow for
// labels, the ladder is small, and texts stand beside it.
const GUTTER = 26, LOST = 13, GAP = 5, EDGE = 8, LINE = 17, ABOVE = 4, BELOW = 4, SHAFT = 7, ARRIVAL_ROW = 20;
const LEAST_COLUMN = 175, COMPACT_LANE = [7, 34];

/** Breaks a text into lines of limited length, at spaces if there are any, but not between a number and B. */
function wrap(text, room) {
  const lines = [];
  while (text.length > room) {
    let cut = text.lastIndexOf(" ", room);
    if (text.slice(cut, cut + 2) === " B") cut = text.lastIndexOf(" ", cut - 1);
    if (cut <= 0) cut = room;
    lines.push(text.slice(0, cut));
    text = text.slice(text[cut] === " " ? cut + 1 : cut);
  }
  lines.push(text);
  return lines;
}

function timeText(ns) {
  const [scale, unit, digits] = ns < 1e3 ? [1, "ns", 0] : ns < 1e6 ? [1e3, "µs", 3] :
      ns < 1e9 ? [1e6, "ms", 3] : [1e9, "s", 6];
  return +(ns / scale).toFixed(digits) + " " + unit;
}

const isArrow = one => one.to >= 0 && one.to !== one.lane;
const isMark = one => one.topic === "first difference";

class Layout {
  /** `character` is the width of one character. */
  constructor(data, character) {
    this.data = data;
    this.character = character;
    this.runs = data.lanes.some(lane => lane.run) ? [1, 2] : [0];
    this.lanes = this.runs.map(run => data.lanes.flatMap((lane, i) => lane.run === run ? [i] : []));
    this.runOf = data.lanes.map(lane => Math.max(0, lane.run - 1));
    this.slotOf = data.lanes.map((_, i) => this.lanes[this.runOf[i]].indexOf(i));
    this.items = this.runs.map(() => new Int32Array(data.rows).fill(-1));
    this.times = this.runs.map(() => new Float64Array(data.rows).fill(NaN));
    this.earliest = new Int32Array(data.rows).fill(data.rows);  // by row: the first row with something in flight there
    data.happenings.forEach((one, i) => {
      const run = this.runOf[one.lane], arrival = one.at + one.flight;
      this.runs.forEach((_, r) => {
        if (r !== run && !isMark(one)) return;
        this.items[r][one.row] = i;
        this.times[r][one.row] = one.at;
      });
      this.earliest[one.end] = Math.min(this.earliest[one.end], one.row);
      if (isNaN(this.times[run][one.end])) this.times[run][one.end] = arrival;
    });
    for (let row = data.rows - 2; row >= 0; --row)
      this.earliest[row] = Math.min(this.earliest[row], this.earliest[row + 1], row);
    this.foldOf = new Int32Array(data.rows).fill(-1);
    data.folds.forEach(([first, last], fold) => this.foldOf.fill(fold, first, last + 1));
    this.open = new Set();
    let longest = 5;
    for (const times of this.times)
      for (const time of times) if (!isNaN(time)) longest = Math.max(longest, timeText(time).length);
    this.timeWidth = Math.ceil(longest * character) + EDGE;
  }

  /** A line is a row, or -1 - N for the head of fold N. */
  resize(width) {
    this.width = width;
    const most = Math.max(1, ...this.lanes.map(lanes => lanes.length)), all = this.data.lanes.length;
    this.runWidth = width / this.runs.length;
    this.column = (this.runWidth - this.timeWidth - EDGE) / most;
    this.isCompact = this.column < LEAST_COLUMN;
    if (this.isCompact) {
      this.column = Math.min(COMPACT_LANE[1], Math.max(COMPACT_LANE[0], width * .22 / all));
      this.textX = this.timeWidth + (all - 1) * this.column + 2 * EDGE + 6;
      this.width = Math.max(width, this.textX + 170);
    }
    this.refresh();
  }

  /** Call it after folds were opened or closed. */
  refresh() {
    const lines = [];
    for (let row = 0; row < this.data.rows; ++row) {
      const fold = this.foldOf[row];
      if (fold >= 0 && row === this.data.folds[fold][0]) {
        lines.push(-1 - fold);
        if (!this.open.has(fold)) row = this.data.folds[fold][1]; else lines.push(row);
      } else {
        lines.push(row);
      }
    }
    this.lines = lines;
    this.headOf = new Int32Array(this.data.folds.length);  // lines of folds
    this.lineOf = new Int32Array(this.data.rows);
    this.tops = new Float64Array(lines.length + 1);
    lines.forEach((line, i) => {
      const [first, last] = line < 0 && !this.open.has(-1 - line) ? this.data.folds[-1 - line] : [line, line];
      if (line < 0) this.headOf[-1 - line] = i;
      if (first >= 0) this.lineOf.fill(i, first, last + 1);
      const heights = this.runs.map((_, run) => this.heightOf(line, run));
      this.tops[i + 1] = this.tops[i] +
          (this.isCompact ? heights.reduce((sum, one) => sum + one, 0) : Math.max(...heights));
    });
  }
  get height() { return this.tops[this.lines.length]; }

  indexOf(line) { return line < 0 ? this.headOf[-1 - line] : this.lineOf[line]; }

  /** Returns the line at this height. */
  lineAt(y) {
    let low = 0, high = this.lines.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle] <= y) low = middle; else high = middle - 1;
    }
    return low;
  }

  itemOf(line, run) { return line < 0 ? undefined : this.data.happenings[this.items[run][line]]; }

  /** Returns a line's text for a run, and the reason below it. */
  textOf(line, run) {
    if (line < 0) return [this.foldText(-1 - line, run), ""];
    const one = this.itemOf(line, run);
    if (!one) return ["", ""];
    if (isMark(one)) return ["first difference", this.data.differences.map(
        ([field, ...values]) => field + ": " + values[run]).join("; ")];
    const place = !this.isCompact ? one.to === one.lane ? "to itself: " : "" :
        this.numberOf(one.lane) + (one.to >= 0 ? "→" + this.numberOf(one.to) : "") + " ";
    return [place + one.text, one.reason];
  }
  numberOf(lane) { return this.data.lanes.length > 1 ? String(lane + 1) : ""; }
  foldText(fold, run) {
    const verbs = this.verbsOf(fold, run), count = verbs.length;
    if (count === 0) return "";
    const isOne = verbs.every(verb => verb === verbs[0]);
    return isOne ? `${verbs[0]} ×${count}` : `${count} calls: ${verbs[0]} … ${verbs.at(-1)}`;
  }
  verbsOf(fold, run) {
    const [first, last] = this.data.folds[fold], verbs = [];
    for (let row = first; row <= last; ++row) {
      const one = this.itemOf(row, run);
      if (one) verbs.push(one.text.split(/[ ,]/)[0]);
    }
    return verbs;
  }

  laneX(lane) {
    const slot = this.isCompact ? lane : this.slotOf[lane];
    const left = this.isCompact ? 0 : this.runOf[lane] * this.runWidth;
    return left + this.timeWidth + EDGE + slot * this.column;
  }
  timeX(run) { return this.isCompact ? 0 : run * this.runWidth; }

  /** Returns the left and right edge of a text. */
  boxOf(line, run) {
    if (this.isCompact) return [this.textX, this.width - EDGE];
    const one = this.itemOf(line, run), lanes = this.lanes[run];
    let slot = 0;
    if (one && !isMark(one))
      slot = this.slotOf[one.lane] - (isArrow(one) && this.slotOf[one.to] < this.slotOf[one.lane] ? 1 : 0);
    const isLast = slot >= lanes.length - 1;
    const x = this.timeX(run) + this.timeWidth + EDGE + slot * this.column;
    return isLast ? [x + 14, this.timeX(run) + this.runWidth - EDGE] : [x + GUTTER + GAP, x + this.column - GUTTER - GAP];
  }
  linesOf(line, run) {
    const [text, reason] = this.textOf(line, run), [left, right] = this.boxOf(line, run);
    const room = Math.max(8, Math.floor((right - left) / this.character));
    return [text ? wrap(text, room) : [], reason ? wrap(reason, room - 2) : []];
  }
  heightOf(line, run) {
    const row = line < 0 ? this.data.folds[-1 - line][0] : line;
    const [text, reason] = this.linesOf(line, run);
    if (text.length === 0) return isNaN(this.times[run][row]) ? 0 : ARRIVAL_ROW;
    return ABOVE + (text.length + reason.length) * LINE + this.shaftOf(line, run) + BELOW;
  }
  /** Room below a text for the arrow's shaft. */
  shaftOf(line, run) {
    const one = this.itemOf(line, run);
    return one && isArrow(one) && !this.isCompact ? SHAFT : 0;
  }
  /** Returns the upper edge of a run's part of a line. */
  topOf(index, run) {
    return this.tops[index] + (this.isCompact && run > 0 ? this.heightOf(this.lines[index], 0) : 0);
  }
  /** Returns the height of dots and of arrows' ends. */
  middleOf(index, run) {
    const line = this.lines[index];
    return this.topOf(index, run) +
        (line < 0 || this.itemOf(line, run) ? ABOVE + LINE / 2 : ARRIVAL_ROW / 2);
  }

  /** Returns the points of an arrow; for a lost frame, those up to the loss. */
  arrow(one) {
    const run = this.runOf[one.lane], index = this.lineOf[one.row];
    const from = this.laneX(one.lane), to = this.laneX(one.to), way = Math.sign(to - from);
    const start = this.isCompact ? this.middleOf(index, run) :
        this.topOf(index, run) + ABOVE + this.linesOf(one.row, run)[0].length * LINE + SHAFT / 2;
    if (one.lost) return [[from, start], [this.isCompact ? from + (to - from) / 2 : to - way * LOST, start]];
    if (one.end === one.row) return [[from, start], [to, start]];
    const end = this.middleOf(this.lineOf[one.end], run);
    return this.isCompact ? [[from, start], [to, end]] : [[from, start], [to - way * GUTTER, start], [to, end]];
  }
}
