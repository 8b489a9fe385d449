// SPDX-License-Identifier: MIT OR Apache-2.0
//
//   node trace_pixels.js <browser> <folder> [<folder for pictures>]
//
// Pages of traces in a headless Chromium, light and dark: what its pictures show is compared with the same traces in
// Chrome's format and with the numbers in JSON. Each span is where its time says and has its name's colour, the path
// of the run is one line, texts are there, and the page asks nobody for anything.
"use strict";

const assert = require("assert");
const childProcess = require("child_process");
const fs = require("fs");
const os = require("os");
const path = require("path");
const url = require("url");
const zlib = require("zlib");

const [browserPath, folder, pictures] = process.argv.slice(2);
const WIDTH = 1200, HEIGHT = 1000;
// A browser that hangs is ended then. The whole takes a few seconds.
const PATIENCE_MS = 300000;

// ---- A browser, by the DevTools protocol over two pipes ----

class Browser {
  constructor() {
    this.home = fs.mkdtempSync(path.join(os.tmpdir(), "weir-browser-"));
    const options = ["--headless=new", "--remote-debugging-pipe", `--user-data-dir=${this.home}`, "--no-first-run",
      "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
      "--disable-extensions", "--hide-scrollbars", "--force-color-profile=srgb",
      // Its sandbox asks for rights that containers do not give; the pages are the test's own.
      "--no-sandbox"];
    this.process = childProcess.spawn(browserPath, options, { stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"] });
    this.asked = new Map();
    this.number = 0;
    this.heard = [];
    this.said = "";
    let rest = Buffer.alloc(0);
    this.process.stderr.on("data", (text) => { this.said = (this.said + text).slice(-4000); });
    this.process.stdio[4].on("data", (data) => {
      rest = Buffer.concat([rest, data]);
      for (let end; (end = rest.indexOf(0)) >= 0; rest = rest.subarray(end + 1)) {
        this.hear(JSON.parse(rest.subarray(0, end)));
      }
    });
    this.over = new Promise((resolve) => this.process.on("exit", resolve));
    setTimeout(() => {
      this.said += `, ended after ${PATIENCE_MS} ms`;
      this.process.kill("SIGKILL");
    }, PATIENCE_MS).unref();
    this.over.then(() => this.asked.forEach(({ reject }) => reject(new Error(`the browser is gone: ${this.said}`))));
    this.process.stdio[3].on("error", () => {});
  }

  hear(message) {
    if (message.id === undefined) return void this.heard.push(message);
    const { resolve, reject, what } = this.asked.get(message.id);
    this.asked.delete(message.id);
    if (message.error) reject(new Error(`${what}: ${message.error.message}`)); else resolve(message.result);
  }

  ask(method, params = {}, sessionId = undefined) {
    const id = ++this.number;
    this.process.stdio[3].write(JSON.stringify({ id, method, params, sessionId }) + "\0");
    return new Promise((resolve, reject) => this.asked.set(id, { resolve, reject, what: method }));
  }

  async end() {
    this.ask("Browser.close").catch(() => {});
    await this.over;
    fs.rmSync(this.home, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Tab {
  static async open(browser, scheme) {
    const tab = new Tab();
    tab.browser = browser;
    const { targetId } = await browser.ask("Target.createTarget", { url: "about:blank" });
    tab.session = (await browser.ask("Target.attachToTarget", { targetId, flatten: true })).sessionId;
    for (const domain of ["Page", "Runtime", "Network", "Log"]) await tab.ask(domain + ".enable");
    await tab.ask("Emulation.setDeviceMetricsOverride",
      { width: WIDTH, height: HEIGHT, deviceScaleFactor: 1, mobile: false });
    await tab.prefer(scheme);
    return tab;
  }

  ask(method, params) { return this.browser.ask(method, params, this.session); }

  prefer(scheme) {
    this.scheme = scheme;
    return this.ask("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
  }

  async tell(expression) {
    const told = await this.ask("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    assert(!told.exceptionDetails, told.exceptionDetails && JSON.stringify(told.exceptionDetails.exception));
    return told.result.value;
  }

  // Opens a page, and waits until it has drawn.
  async show(file) {
    this.browser.heard.length = 0;
    const { errorText } = await this.ask("Page.navigate", { url: url.pathToFileURL(file).href });
    assert(!errorText, errorText);
    await this.tell(`new Promise((resolve) => document.readyState === "complete" ? resolve()
      : window.addEventListener("load", resolve))`);
  }

  async picture(name) {
    // What was asked for is drawn in the next frame.
    await this.tell("new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)))");
    const { data } = await this.ask("Page.captureScreenshot", { format: "png" });
    const png = Buffer.from(data, "base64");
    if (pictures) fs.writeFileSync(path.join(pictures, `${name}.png`), png);
    return new Picture(png);
  }

  // The page has thrown nothing, asked nobody, and opened no window.
  checkQuiet(file) {
    const own = url.pathToFileURL(file).href;
    for (const { method, params } of this.browser.heard) {
      assert(method !== "Runtime.exceptionThrown", JSON.stringify(params));
      assert(method !== "Page.javascriptDialogOpening", `a dialog: ${params.message}`);
      assert(method !== "Runtime.consoleAPICalled" && method !== "Log.entryAdded", JSON.stringify(params));
      if (method === "Network.requestWillBeSent") assert.strictEqual(params.request.url, own);
    }
  }
}

// ---- Pictures ----

class Picture {
  // A PNG of 8 bits a channel, as the browser writes it.
  constructor(png) {
    const parts = [];
    for (let at = 8; at < png.length;) {
      const length = png.readUInt32BE(at), kind = png.toString("latin1", at + 4, at + 8);
      const data = png.subarray(at + 8, at + 8 + length);
      if (kind === "IHDR") {
        [this.width, this.height] = [data.readUInt32BE(0), data.readUInt32BE(4)];
        assert(data[8] === 8 && (data[9] === 2 || data[9] === 6) && data[12] === 0, "a PNG of another kind");
        this.channels = data[9] === 2 ? 3 : 4;
      }
      if (kind === "IDAT") parts.push(data);
      at += length + 12;
    }
    const raw = zlib.inflateSync(Buffer.concat(parts)), n = this.channels, stride = this.width * n;
    this.data = Buffer.alloc(stride * this.height);
    for (let y = 0; y < this.height; y++) {
      const filter = raw[y * (stride + 1)], row = raw.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1));
      const to = y * stride;
      for (let i = 0; i < stride; i++) {
        const left = i >= n ? this.data[to + i - n] : 0, up = y > 0 ? this.data[to + i - stride] : 0;
        const corner = i >= n && y > 0 ? this.data[to + i - stride - n] : 0;
        let guess = [0, left, up, (left + up) >> 1][filter];
        if (filter === 4) {
          const p = left + up - corner, a = Math.abs(p - left), b = Math.abs(p - up), c = Math.abs(p - corner);
          guess = a <= b && a <= c ? left : b <= c ? up : corner;
        }
        this.data[to + i] = row[i] + guess;
      }
    }
  }

  at(x, y) {
    assert(x >= 0 && y >= 0 && x < this.width && y < this.height, `${x}, ${y} is outside of the picture`);
    const place = (Math.floor(y) * this.width + Math.floor(x)) * this.channels;
    return [this.data[place], this.data[place + 1], this.data[place + 2]];
  }

  // How many pixels of a rectangle are like the colour, of all.
  share(colour, left, top, right, bottom, tolerance = 8) {
    let alike = 0, all = 0;
    for (let y = top; y < bottom; y++) {
      for (let x = left; x < right; x++, all++) if (distance(this.at(x, y), colour) <= tolerance) alike++;
    }
    return alike / Math.max(all, 1);
  }
}

const distance = (a, b) => Math.max(...a.map((value, i) => Math.abs(value - b[i])));
const rgb = (text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));

function hsl(hue, saturation, lightness) {
  const most = saturation * Math.min(lightness, 1 - lightness);
  return [0, 8, 4].map((n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (lightness - most * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  });
}

const COLOURS = {
  light: { paper: "#fbfaf7", card: "#ffffff", ink: "#1d1d1b", path: "#c2185b", run: "#e4e1d8", line: "#d9d6cd" },
  dark: { paper: "#16171a", card: "#1e2024", ink: "#e8e6e1", path: "#ff6f9f", run: "#3a3d44", line: "#34363b" },
};
const IN_NODES = rgb("#4c9f70");
for (const scheme of Object.values(COLOURS)) for (const name in scheme) scheme[name] = rgb(scheme[name]);

// The colour of a span: that of its name, but for runs.
function colourOf(span, scheme) {
  if (span.category === "run") return COLOURS[scheme].run;
  let hash = 0;
  for (const letter of span.name) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
  return hsl(hash % 360, 0.45, scheme === "dark" ? 0.42 : 0.68);
}
// How much of a span has its colour at least; the rest is its pattern.
const LEAST = { node: 0.9, run: 0.9, host: 0.5, region: 0.5, stream: 0.4 };

// ---- What a trace has, by its other formats ----

class Trace {
  constructor(name) {
    this.name = name;
    this.page = path.join(folder, `${name}.html`);
    this.numbers = JSON.parse(fs.readFileSync(path.join(folder, `${name}.json`)));
    const chrome = path.join(folder, `${name}.chrome`);
    this.spans = fs.existsSync(chrome) ? this.spansOf(JSON.parse(fs.readFileSync(chrome)).traceEvents) : [];
  }

  // The arrays of the page, by row.
  rows() {
    const text = fs.readFileSync(this.page, "utf8");
    const script = (id) => text.match(new RegExp(`<script [^>]*id="${id}">([^<]*)</script>`))[1];
    const times = (id) => {
      const bytes = Buffer.from(script(id), "base64");
      return new Float64Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    };
    const [begins, ends] = [times("begins"), times("ends")];
    return JSON.parse(script("drawn")).rows.map(({ lane, depth, first, end }) =>
      ({ lane, depth, begins: begins.subarray(first, end), ends: ends.subarray(first, end) }));
  }

  // Spans of threads, with their times from the trace's beginning on, and how many others they lie in.
  spansOf(events) {
    const lanes = new Map(this.numbers.threads.map(({ id }, lane) => [id, lane])), open = new Map();
    return events.filter(({ ph }) => ph === "X").map(({ name, cat, tid, ts, dur }) => {
      const begin = Math.round(ts * 1000) - this.numbers.begin_ns, end = begin + Math.round(dur * 1000);
      const around = open.get(tid) || [];
      while (around.length > 0 && around[around.length - 1] <= begin && around[around.length - 1] < end) around.pop();
      open.set(tid, [...around, end]);
      return { name, category: cat, lane: lanes.get(tid), depth: around.length, begin, end };
    });
  }
}

const lengthOf = (span) => span.end - span.begin;

// ---- What a page shows ----

const ROW = 17;

// A picture of a page, and how the page has laid out what is in it.
class Shown {
  static async of(tab, trace, name) {
    const shown = new Shown();
    [shown.trace, shown.scheme, shown.colours] = [trace, tab.scheme, COLOURS[tab.scheme]];
    shown.what = `${trace.name}, ${tab.scheme}, ${name}`;
    shown.picture = await tab.picture(`${trace.name}-${tab.scheme}-${name}`);
    Object.assign(shown, await tab.tell(`(() => {
      const box = canvas.getBoundingClientRect();
      const boxes = (chosen) =>
        [...document.querySelectorAll(chosen)].map((one) => one.getBoundingClientRect().toJSON());
      return { box: box.toJSON(), tops: lanes.map((lane) => lane.y), left: LEFT, pathTop, view,
        texts: boxes("h1, h2, p, #remark, select, button"), spans: begins.length, run: trace.runs.indexOf(run) };
    })()`));
    shown.box.x = Math.round(shown.box.x);
    shown.box.y = Math.round(shown.box.y);
    return shown;
  }

  x(ns) {
    const { from, to } = this.view;
    return this.box.x + this.left + (ns - from) / (to - from) * (this.box.width - this.left);
  }
  get right() { return this.box.x + this.box.width; }

  checkGround() {
    const { paper, card, ink } = this.colours, { picture, box, what } = this;
    assert(distance(picture.at(2, 2), paper) <= 2, `${what}: the page's ground is ${picture.at(2, 2)}`);
    const corner = picture.at(box.x + 3, box.y + 3);
    assert(distance(corner, card) <= 2, `${what}: the timeline's ground is ${corner}`);
    const light = (colour) => colour.reduce((sum, one) => sum + one) / 3;
    assert(this.scheme === "dark" ? light(paper) < 50 && light(ink) > 200 : light(paper) > 220 && light(ink) < 50);
    let read = 0;
    for (const { left, top, width, height } of this.texts) {
      if (width === 0 || top < 0 || top + height > HEIGHT) continue;
      const all = [left, top, Math.min(left + width, WIDTH), top + height].map(Math.floor);
      const differs = 1 - Math.max(picture.share(paper, ...all, 24), picture.share(card, ...all, 24));
      assert(differs > 0.01, `${what}: nothing is written at ${all}`);
      read++;
    }
    assert(read >= 5, `${what}: only ${read} texts can be seen`);
  }

  checkNames() {
    for (const top of this.tops) {
      const [x, y] = [this.box.x, this.box.y + top];
      if (y + ROW > HEIGHT) continue;
      const ink = this.picture.share(this.colours.ink, x + 8, y, x + this.left, y + ROW, 90);
      assert(ink > 0.01, `${this.what}: the lane at ${top} has no name`);
    }
  }

  // Spans that are wide enough, where they have to be; and nothing where none is. Gives the lanes that have nodes.
  checkSpans() {
    const { picture, what, box } = this, lanes = new Set(), names = new Set();
    const rows = new Map();
    for (const span of this.trace.spans) {
      const row = `${span.lane} ${span.depth}`;
      if (!rows.has(row)) rows.set(row, []);
      rows.get(row).push(span);
    }
    let checked = 0, gaps = 0;
    for (const row of rows.values()) {
      let free = box.x + this.left;
      for (const span of row) {
        // Above its name.
        const y = box.y + this.tops[span.lane] + span.depth * ROW + 1;
        const x = Math.max(this.x(span.begin), box.x + this.left), right = Math.min(this.x(span.end), this.right);
        if (y + ROW > HEIGHT || right < box.x + this.left || x > this.right) continue;
        // An axis may be there.
        if (x - free >= 8) {
          const empty = picture.share(this.colours.card, Math.ceil(free) + 1, y, Math.floor(x) - 1, y + 1);
          assert(empty > 0.7, `${what}: something is before ${span.name}, between ${free} and ${x} at ${y}`);
          gaps++;
        }
        free = right;
        // A pattern comes again after 8 pixels.
        if (right - x < (LEAST[span.category] < 0.9 ? 18 : 5)) continue;
        const alike = picture.share(colourOf(span, this.scheme), Math.ceil(x) + 1, y, Math.floor(right) - 1, y + 2);
        assert(alike >= LEAST[span.category],
          `${what}: ${span.name} from ${x} to ${right} at ${y} has its colour in ${alike} of its pixels`);
        if (right - x > 40) {
          const written = picture.share(this.colours.ink, Math.ceil(x), y, Math.floor(right), y + ROW - 3, 60);
          assert(written > 0, `${what}: ${span.name} is not written where it is`);
        }
        checked++;
        names.add(span.name);
        if (span.category === "node") lanes.add(span.lane);
      }
    }
    return { lanes, names, checked, gaps };
  }

  // The line from node to node along the path of the run, without a hole, and its lane.
  checkPath() {
    const { picture, what, box, colours } = this, path = this.trace.numbers.runs[this.run].path;
    const isPath = (x, y, tolerance) => {
      for (let dx = -1; dx <= 1; dx++) {
        for (let dy = -2; dy <= 1; dy++) {
          if (distance(picture.at(x + dx, y + dy), colours.path) <= tolerance) return true;
        }
      }
      return false;
    };
    let last = null, nodes = 0;
    for (const part of path) {
      const x = this.x(part.begin_ns), right = this.x(part.end_ns);
      assert(x >= box.x + this.left && right <= this.right, `${what}: the run is not in sight`);
      const top = box.y + this.pathTop + 2;
      if (right - x > 4) {
        const [from, to] = [Math.ceil(x) + 1, Math.floor(right) - 1];
        const empty = picture.share(colours.card, from, top, to, top + 1);
        assert(empty === 0, `${what}: the lane of the path has a hole between ${x} and ${right}`);
        if (part.node !== null && part.part === this.trace.numbers.parts[0]) {
          const alike = picture.share(IN_NODES, from, top, to, top + 1);
          assert(alike > 0.9, `${what}: ${part.node} is not in the lane of the path`);
        }
      }
      if (part.part !== this.trace.numbers.parts[0]) continue;
      const y = box.y + this.tops[part.thread] + part.depth * ROW + ROW - 3;
      if (last !== null) {
        const steps = Math.ceil(2 * Math.hypot(x - last.x, y - last.y));
        for (let i = 0; i <= steps; i++) {
          const [at, to] = [last.x + (x - last.x) * i / steps, last.y + (y - last.y) * i / steps];
          if (steps > 0) assert(isPath(at, to, 70), `${what}: no path before ${part.node}, at ${at}, ${to}`);
        }
      }
      for (let at = Math.ceil(x); at < Math.floor(right); at++) {
        assert(isPath(at, y, 8), `${what}: no path in ${part.node}, at ${at}, ${y}`);
      }
      last = { x: right, y };
      nodes++;
    }
    assert(nodes > 0, `${what}: the path has no nodes`);
    return nodes;
  }
}

// ---- The pages ----

async function drawsPath(tab, wanted) {
  const isOn = await tab.tell("byId('draws_path').checked");
  if (isOn !== wanted) await tab.tell("byId('draws_path').click()");
}

// Zooms until a span takes a fifth of the width.
function closeTo(tab, span) {
  return tab.tell(`show(${span.begin - 2 * lengthOf(span)}, ${span.end + 2 * lengthOf(span)})`);
}

// When the page is made to draw something wrong, a check has to say so.
async function isFoundOut(tab, trace, name, breaks, check) {
  await tab.tell(`{ ${breaks} }`);
  const shown = await Shown.of(tab, trace, name);
  assert.throws(() => check(shown), assert.AssertionError, `${name} is not found out`);
}

async function wholePage(browser, trace) {
  const tab = await Tab.open(browser, "light");
  await tab.show(trace.page);
  for (const scheme of ["light", "dark"]) {
    // The page is open: it draws once more when the browser's scheme changes.
    await tab.prefer(scheme);
    let nodes = 0;
    await drawsPath(tab, true);
    // The slowest run, and the median one.
    for (const number of [1, 0]) {
      await tab.tell(`which.value = ${number}; which.dispatchEvent(new Event("change"))`);
      const fitted = await Shown.of(tab, trace, `path-${number}`);
      assert.strictEqual(fitted.run, number);
      fitted.checkGround();
      fitted.checkNames();
      nodes += fitted.checkPath();
    }
    await drawsPath(tab, false);
    const found = [(await Shown.of(tab, trace, "fitted")).checkSpans()];
    // Each lane with nodes, around the longest of them.
    const longest = new Map();
    for (const span of trace.spans.filter(({ category }) => category === "node")) {
      const other = longest.get(span.lane);
      if (!other || lengthOf(span) > lengthOf(other)) longest.set(span.lane, span);
    }
    for (const [lane, span] of longest) {
      await closeTo(tab, span);
      found.push((await Shown.of(tab, trace, `lane-${lane}`)).checkSpans());
      assert(found[found.length - 1].lanes.has(lane), `no node in lane ${lane}`);
    }
    const sum = (of) => found.reduce((all, one) => all + of(one), 0);
    const checked = sum((one) => one.checked);
    assert(longest.size >= 2 && checked >= 10 && sum((one) => one.gaps) > 0, JSON.stringify(found));
    console.log(`${trace.name}, ${scheme}: ${checked} spans in ${longest.size} lanes, ${nodes} nodes on two paths`);
  }
  await tab.prefer("light");
  // Names are text, wherever they are shown.
  assert.deepStrictEqual(await tab.tell("['b', 'i', 'script'].map((tag) => document.querySelectorAll(tag).length)"),
    [0, 0, 6]);
  assert(await tab.tell("byId('tables').textContent.includes('</script><b>')"));
  // A pointer over a node is told its name.
  const long = trace.spans.filter(({ category }) => category === "node")
    .reduce((a, b) => (lengthOf(b) > lengthOf(a) ? b : a));
  await closeTo(tab, long);
  const shown = await Shown.of(tab, trace, "long");
  await tab.ask("Input.dispatchMouseEvent", { type: "mouseMoved", x: (shown.x(long.begin) + shown.x(long.end)) / 2,
    y: shown.box.y + shown.tops[long.lane] + long.depth * ROW + 5 });
  const says = `[tip.style.display, tip.textContent.startsWith(${JSON.stringify(long.name)})]`;
  assert.deepStrictEqual(await tab.tell(says), ["block", true]);
  await tab.ask("Input.dispatchMouseEvent", { type: "mouseMoved", x: 1, y: 1 });
  tab.checkQuiet(trace.page);

  await tab.tell("var lookBefore = lookOf");
  await isFoundOut(tab, trace, "colours", "lookOf = () => ['#5b7fd1', 'solid']; looks.clear(); draw()",
    (one) => one.checkSpans());
  await tab.tell("lookOf = lookBefore; looks.clear()");
  await isFoundOut(tab, trace, "early",
    "for (const all of [begins, ends]) all.forEach((at, i) => { all[i] = at - 0.1 * (view.to - view.from); }); draw()",
    (one) => one.checkSpans());
  await tab.tell("byId('fit').click()");
  await isFoundOut(tab, trace, "no-path", "draw()", (one) => one.checkPath());
  // A hole in the line of the longest node.
  await isFoundOut(tab, trace, "hole", `byId("draws_path").checked = true;
    draw();
    const part = run.path.filter((one) => one.part === trace.parts[0])
      .reduce((a, b) => (b.end_ns - b.begin_ns > a.end_ns - a.begin_ns ? b : a));
    context.clearRect((xOf(part.begin_ns) + xOf(part.end_ns)) / 2 - 2,
      lanes[part.thread].y + part.depth * ROW + ROW - 8, 5, 8)`, (one) => one.checkPath());
}

async function smallPage(browser, trace, scheme, spans) {
  const tab = await Tab.open(browser, scheme);
  await tab.show(trace.page);
  await drawsPath(tab, false);
  const shown = await Shown.of(tab, trace, "page");
  assert.strictEqual(shown.spans, spans);
  shown.checkGround();
  shown.checkNames();
  let { checked } = shown.checkSpans();
  for (const span of trace.spans) {
    await closeTo(tab, span);
    const close = (await Shown.of(tab, trace, "close")).checkSpans();
    assert(close.names.has(span.name), `${trace.name}: ${span.name} is not there`);
    checked += close.checked;
  }
  if (trace.numbers.runs.length > 0) {
    await drawsPath(tab, true);
    await tab.tell("byId('fit').click()");
    (await Shown.of(tab, trace, "path")).checkPath();
  }
  tab.checkQuiet(trace.page);
  console.log(`${trace.name}, ${scheme}: ${checked} spans`);
}

async function largePage(browser, trace) {
  const tab = await Tab.open(browser, "light");
  const begin = Date.now();
  await tab.show(trace.page);
  const fitted = await Shown.of(tab, trace, "path");
  const took = Date.now() - begin;
  assert(fitted.spans > 200000, `only ${fitted.spans} spans`);
  fitted.checkGround();
  const nodes = fitted.checkPath();
  await tab.tell("byId('whole').click()");
  const whole = await Shown.of(tab, trace, "whole"), { picture, box, colours } = whole;
  // Far more spans than pixels: a pixel has something where spans take a part of its time, and nothing else has.
  const left = box.x + whole.left, seen = { full: 0, empty: 0 };
  for (const { depth, lane, begins, ends } of trace.rows()) {
    const taken = new Float64Array(WIDTH + 2), near = new Uint8Array(WIDTH + 2);
    const y = box.y + whole.tops[lane] + depth * ROW + 2;
    for (let i = 0; i < begins.length; i++) {
      const x = whole.x(begins[i]), right = whole.x(ends[i]);
      near.fill(1, Math.floor(x) - 1, Math.floor(right) + 2);
      // What is narrower than a pixel counts where it begins; what is wider leaves half a pixel to its neighbour.
      if (right - x < 1) taken[Math.floor(x)] += right - x;
      for (let at = Math.floor(x); right - x >= 1 && at < right - 0.5; at++) {
        taken[at] += Math.min(right - 0.5, at + 1) - Math.max(x, at);
      }
    }
    for (let at = left + 1; at < whole.right - 1; at++) {
      const isEmpty = [colours.card, colours.line].some((one) => distance(picture.at(at, y), one) <= 2);
      if (taken[at] > 0.3) {
        assert(!isEmpty, `nothing is at ${at}, ${y}, of which spans take ${taken[at]}`);
        seen.full++;
      } else if (near[at] === 0) {
        assert(isEmpty, `something is at ${at}, ${y}, where there are no spans`);
        seen.empty++;
      }
    }
  }
  assert(seen.full > 100, JSON.stringify(seen));
  tab.checkQuiet(trace.page);
  console.log(`${trace.name}: ${fitted.spans} spans in ${seen.full} pixels, ${nodes} nodes on the path, ${took} ms`);
}

async function main() {
  const browser = new Browser();
  try {
    await wholePage(browser, new Trace("trace"));
    await smallPage(browser, new Trace("none"), "light", 0);
    await smallPage(browser, new Trace("one"), "dark", 1);
    await smallPage(browser, new Trace("node"), "dark", 3);
    await largePage(browser, new Trace("many"));
  } finally {
    await browser.end();
  }
}
main().catch((error) => {
  console.error(error);
  process.exitCode = 1;
});
