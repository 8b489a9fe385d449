// SPDX-License-Identifier: MIT OR Apache-2.0
//
//   node trace_page.js <page>
//
// Runs the page of a trace on a document that is only as much of one as the page uses, and whose canvas notes what is
// drawn: every rectangle has finite numbers and lies on the canvas, the path of the run is drawn without a hole, zoom
// and keys and pointers work, and no name of the trace becomes markup.
"use strict";

const assert = require("assert");
const fs = require("fs");
const vm = require("vm");

const page = fs.readFileSync(process.argv[2], "utf8");

// ---- A document ----

class Canvas2d {
  constructor(canvas) {
    this.canvas = canvas;
    this.globalAlpha = 1;
    this.rectangles = [];
    this.texts = [];
    this.lines = [];
  }
  finite(...numbers) {
    for (const number of numbers) assert(Number.isFinite(number), `draws at ${numbers}`);
  }
  setTransform(...numbers) { this.finite(...numbers); }
  clearRect() {
    this.rectangles = [];
    this.texts = [];
    this.lines = [];
  }
  fillRect(x, y, width, height) {
    this.finite(x, y, width, height);
    assert(this.fillStyle, "a rectangle without a colour");
    assert(width >= 0 && height >= 0, `a rectangle of ${width} x ${height}`);
    this.rectangles.push({ x, y, width, height, style: this.fillStyle });
  }
  strokeRect(...numbers) { this.finite(...numbers); }
  fillText(text, x, y) {
    this.finite(x, y);
    assert.strictEqual(typeof text, "string");
    assert(!/NaN|undefined/.test(text), text);
    this.texts.push({ text, y });
  }
  beginPath() { this.last = null; }
  moveTo(x, y) {
    this.finite(x, y);
    this.last = [x, y];
  }
  lineTo(x, y) {
    this.finite(x, y);
    if (this.last) this.lines.push([this.last, [x, y], this.strokeStyle]);
    this.last = [x, y];
  }
  stroke() {}
  createPattern(tile) { return { pattern: tile }; }
}

let markup = 0;
class Element {
  constructor(tag) {
    this.tag = tag;
    this.attributes = {};
    this.style = {};
    this.children = [];
    this.listeners = {};
    this.own = "";
    this.clientWidth = 1000;
    this.checked = true;
  }
  get textContent() { return this.own + this.children.map((child) => child.textContent).join(""); }
  set textContent(text) {
    this.own = String(text);
    this.children = [];
  }
  set innerHTML(text) { markup++; }
  setAttribute(name, value) {
    assert(!/NaN|undefined/.test(String(value)), `${name}=${value}`);
    this.attributes[name] = String(value);
    if (name === "value") this.value = String(value);
  }
  append(...children) {
    for (const child of children) {
      if (child instanceof Element) {
        this.children.push(child);
      } else {
        const text = new Element("#text");
        text.own = String(child);
        assert(!/NaN|undefined/.test(text.own), text.own);
        this.children.push(text);
      }
    }
  }
  replaceChildren(...children) {
    this.own = "";
    this.children = [];
    this.append(...children);
  }
  addEventListener(kind, f) { this.listeners[kind] = f; }
  setPointerCapture() {}
  getContext(kind) {
    assert.strictEqual(kind, "2d");
    this.context = this.context || new Canvas2d(this);
    return this.context;
  }
}

const elements = {};
for (const [, tag, id] of page.matchAll(/<(\w+)[^>]* id="(\w+)"/g)) elements[id] = new Element(tag);
for (const [, id, text] of page.matchAll(/<script type="[^"]*" id="(\w+)">([^]*?)<\/script>/g)) elements[id].own = text;
const scripts = [...page.matchAll(/<script>([^]*?)<\/script>/g)];
assert.strictEqual(scripts.length, 1, "the page has one script");
const frames = [];
const media = { matches: false, addEventListener(kind, f) { this.change = f; } };
const window = {
  devicePixelRatio: 2,
  matchMedia: () => media,
  addEventListener(kind, f) { this[kind] = f; },
};
const sandbox = {
  window,
  document: {
    documentElement: new Element("html"),
    getElementById(id) {
      assert(elements[id], `no element ${id}`);
      return elements[id];
    },
    createElement: (tag) => new Element(tag),
    createElementNS: (space, tag) => new Element(tag),
  },
  getComputedStyle: () => ({ getPropertyValue: (name) => " " + name }),
  requestAnimationFrame: (f) => frames.push(f),
  atob,
  console,
};
vm.runInNewContext(scripts[0][1], sandbox, { filename: "page.js" });

function settle() {
  while (frames.length > 0) frames.shift()();
}
settle();

// ---- What it shows ----

const data = JSON.parse(elements.analysis.own), drawn = JSON.parse(elements.drawn.own);
const canvas = elements.canvas, context = canvas.getContext("2d");
const LEFT = 150, ROW = 17;

function checkDrawing(what, fewest = 6) {
  assert(context.rectangles.length >= fewest, `${what}: only ${context.rectangles.length} rectangles`);
  for (const { x, y, width, height } of context.rectangles) {
    assert(x >= LEFT - 1 && x + width <= 1001, `${what}: a rectangle from ${x}, ${width} wide`);
    assert(y >= 0 && y + height <= parseFloat(canvas.style.height), `${what}: a rectangle at ${y}, ${height} high`);
  }
  // However close: no two times of the axis read the same.
  const times = context.texts.filter(({ y }) => y === 22 - 9).map(({ text }) => text);
  assert(times.length > 2 && new Set(times).size === times.length, `${what}: an axis of ${times}`);
}

// The lane of the path: what is drawn there from left to right.
function pathOf() {
  const top = 22 + 34 + 9;
  const path = context.rectangles.filter((one) => one.y === top).sort((a, b) => a.x - b.x);
  return path;
}

function checkPath(what) {
  const path = pathOf();
  assert(path.length > 0, `${what}: no path`);
  let at = path[0].x;
  for (const one of path) {
    assert(one.x <= at + 0.6, `${what}: a hole in the path before ${one.x}, behind ${at}`);
    at = Math.max(at, one.x + one.width);
  }
  return [path[0].x, at];
}

assert(data.runs.length >= 1 && data.threads.length >= 1);
checkDrawing("at first");
const [begin, end] = checkPath("at first");
// The run is fitted: it takes nearly all of the width.
assert(begin < LEFT + 30 && end > 960, `the path goes from ${begin} to ${end}`);
const path = context.lines.filter(([, , style]) => style === "--path");
for (let i = 1; i < path.length; i++) assert.deepStrictEqual(path[i][0], path[i - 1][1], "the line has a hole");
assert(path.length > 0, "no line from node to node");

const every = (element, tag) => [...(element.tag === tag ? [element] : []),
  ...element.children.flatMap((child) => every(child, tag))];
assert.strictEqual(every(elements.memory, "path").length, new Set(data.memory.map(({ what }) => what)).size);
const text = elements.why.textContent;
for (const words of ["Why did the run take so long?", "The path of the run", "The longest path of the graph"]) {
  assert(text.includes(words), `nothing says '${words}'`);
}
const tables = elements.tables.textContent;
for (const program of data.programs) {
  for (const { node } of program.nodes) assert(tables.includes(node), `the table has no ${node}`);
}
assert.strictEqual(elements.which.children.length, data.runs.length);
assert(/^\d+ spans are drawn/.test(elements.foot.textContent));

// Each run that can be chosen is drawn.
for (let number = 0; number < data.runs.length; number++) {
  elements.which.value = String(number);
  elements.which.listeners.change();
  settle();
  checkDrawing(`run ${number}`);
  checkPath(`run ${number}`);
  assert(elements.why.textContent.includes(`with ${data.runs[number].threads} thread`));
  const { graph } = data.runs[number], shapes = every(elements.graph, "rect"), titles = every(elements.graph, "title");
  assert(graph.length > 0, "a run without its graph");
  assert.strictEqual(shapes.length, graph.length, "a node that is not drawn");
  graph.forEach(({ node }, i) => assert(titles[i].textContent.startsWith(node + ": "), titles[i].textContent));
  const places = new Set(shapes.map((shape) => `${shape.attributes.x} ${shape.attributes.y}`));
  assert.strictEqual(places.size, graph.length, "two nodes at one place");
  assert.strictEqual(every(elements.graph, "path").length, graph.reduce((sum, { before }) => sum + before.length, 0));
}

const at = (x, y, more) =>
  ({ offsetX: x, offsetY: y, deltaX: 0, deltaY: 0, pointerId: 1, preventDefault() {}, ...more });
const key = (name) => canvas.listeners.keydown({ key: name, preventDefault() {} });
// A part of the trace may show next to nothing; what it shows is in its place.
function step(what, does, fewest = 0) {
  does();
  settle();
  checkDrawing(what, fewest);
}
step("wheel in", () => { for (let i = 0; i < 5; i++) canvas.listeners.wheel(at(500, 100, { deltaY: -200 })); });
step("wheel out", () => { for (let i = 0; i < 50; i++) canvas.listeners.wheel(at(500, 100, { deltaY: 300 })); }, 6);
// All of the trace: each thread's lane has something.
const lanes = new Set(context.rectangles.map((one) => one.y));
assert(lanes.size > drawn.lanes.filter((lane) => lane.depth > 0).length, "a lane is empty");
for (const name of ["f", "ArrowLeft", "ArrowRight", "w", "s", "+", "-", "0", "f"]) {
  step(`key ${name}`, () => key(name), name === "f" || name === "0" ? 6 : 0);
}
step("as close as it goes", () => { for (let i = 0; i < 40; i++) key("+"); });
key("f");
settle();
// A pointer over each rectangle of a node tells what it is; a click marks it, a double click fits it.
let told = 0;
const all = context.rectangles.filter((one) => one.width > 3 && one.y > 22 + 34 + 9 + ROW).slice(0, 50);
for (const one of all) {
  canvas.listeners.pointermove(at(one.x + one.width / 2, one.y + 3));
  if (elements.tip.style.display === "block") told++;
}
assert(all.length > 0 && told === all.length, `${told} of ${all.length} rectangles say what they are`);
canvas.listeners.pointermove(at((begin + end) / 2, 22 + 34 + 9 + 3));
assert.strictEqual(elements.tip.style.display, "block", "the path does not say what it is");
canvas.listeners.pointerleave();
assert.strictEqual(elements.tip.style.display, "none");
const some = all[all.length - 1];
step("click", () => {
  canvas.listeners.pointerdown(at(some.x + 1, some.y + 3));
  canvas.listeners.pointerup(at(some.x + 1, some.y + 3));
});
step("drag", () => {
  canvas.listeners.pointerdown(at(400, 200));
  canvas.listeners.pointermove(at(420, 200));
  canvas.listeners.pointerup(at(420, 200));
});
step("double click", () => canvas.listeners.dblclick(at(some.x + some.width / 2, some.y + 3)));
step("buttons", () => ["whole", "in", "out", "fit"].forEach((id) => elements[id].listeners.click()), 6);
step("dark", () => {
  media.matches = true;
  media.change();
}, 6);
elements.draws_path.checked = false;
step("without the path", () => elements.draws_path.listeners.change(), 6);
assert.strictEqual(pathOf().length, 0);
step("resize", () => {
  canvas.clientWidth = 1000;
  window.resize();
}, 6);
assert.strictEqual(markup, 0, "something was put in as markup");
console.log(`${context.rectangles.length} rectangles at last; ${data.runs.length} runs`);
