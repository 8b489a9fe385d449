// SPDX-License-Identifier: MIT OR Apache-2.0
//
//   node trace_sql.js <folder> <trace>... <queries
//
// Perfetto's trace_processor, from a folder with its trace_processor.wasm and the engine_bundle.js of Perfetto's UI.
// Asks it the queries of standard input, a JSON object, about each trace, and prints a list with one object for each:
// of each query its rows, or {"error": text} for a trace that was refused.
"use strict";

const assert = require("assert");
const fs = require("fs");
const path = require("path");
const v8 = require("v8");
const vm = require("vm");

const [folder, ...traces] = process.argv.slice(2);
const queries = JSON.parse(fs.readFileSync(0, "utf8"));
// Each trace takes less time than a better compiler.
v8.setFlagsFromString("--no-wasm-tier-up");
const bundle = new vm.Script(fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8"), { filename: "engine.js" });

// ---- Messages in protocol buffers ----

function varint(value) {
  const bytes = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    if (rest < 128n) return Buffer.from([...bytes, Number(rest)]);
    bytes.push(Number(rest & 127n) | 128);
  }
}
const number = (field, value) => Buffer.concat([varint(field << 3), varint(value)]);
const bytes = (field, data) => Buffer.concat([varint(field << 3 | 2), varint(data.length), data]);

class Reader {
  constructor(data) {
    this.data = Buffer.from(data.buffer, data.byteOffset, data.length);
    this.at = 0;
  }
  get isAtEnd() { return this.at >= this.data.length; }
  varint() {
    for (let value = 0n, shift = 0n; ; shift += 7n) {
      const byte = this.data[this.at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return BigInt.asIntN(64, value);
    }
  }
  double() {
    this.at += 8;
    return this.data.readDoubleLE(this.at - 8);
  }
  bytes() {
    const length = Number(this.varint());
    this.at += length;
    return this.data.subarray(this.at - length, this.at);
  }
  // The fields of a message: [number, value] with numbers as BigInt and the rest as bytes.
  *fields() {
    while (!this.isAtEnd) {
      const key = Number(this.varint()), kind = key & 7;
      assert(kind === 0 || kind === 1 || kind === 2, `a field of kind ${kind}`);
      yield [key >> 3, kind === 0 ? this.varint() : kind === 1 ? this.double() : this.bytes()];
    }
  }
}
const all = (data, read) => {
  const values = [], reader = new Reader(data);
  while (!reader.isAtEnd) values.push(read(reader));
  return values;
};

// ---- trace_processor, in a context of its own that looks like a worker of a browser ----

// Of the messages in protos/perfetto/trace_processor: the kinds of requests. Of answers 5 is a fatal error, 201 that to
// APPEND, and 203 a part of a query's: columns 1, error 2, and batches 3 of cells with their kinds 1, integers 2,
// doubles 3 and texts 5.
const APPEND = 1, FINALIZE = 2, QUERY = 3;

class TraceProcessor {
  constructor() {
    this.answers = [];
    this.said = [];
    const say = (...words) => this.said.push(words.join(" "));
    class File {
      open(method, name) { this.name = path.basename(name); }
      send() {
        const data = fs.readFileSync(path.join(folder, this.name));
        this.status = 200;
        this.response = data.buffer.slice(data.byteOffset, data.byteOffset + data.length);
      }
    }
    const context = {
      console: { log: say, warn: say, error: say }, WorkerGlobalScope: class {}, XMLHttpRequest: File,
      TextDecoder, TextEncoder, performance, setTimeout, clearTimeout, crypto: globalThis.crypto,
      location: { href: "engine_bundle.js" },
    };
    context.self = context;
    vm.createContext(context);
    this.Bytes = vm.runInContext("Uint8Array", context);
    // The engine tries a module of nothing but a large memory. Told that there is none, it is the same on each Node.
    vm.runInContext(`const Whole = WebAssembly.Module;
      WebAssembly.Module = function (code) {
        const first = 8, memory = 5;
        if (code[first] === memory) throw new Error("no large memory");
        return new Whole(code);
      };`, context);
    bundle.runInContext(context);
    this.port = { postMessage: (data) => this.answers.push(...this.answersIn(data)) };
    context.self.onmessage({ data: this.port });
    this.asked = 0;
  }

  *answersIn(data) {
    for (const [, answer] of new Reader(data).fields()) yield new Map(new Reader(answer).fields());
  }

  // Sends a request, and gives that field of its first answer, as bytes. The answers are there when it returns.
  ask(request, fill, field) {
    const fields = [number(1, this.asked++), number(2, request), ...fill];
    this.port.onmessage({ data: new this.Bytes(bytes(1, Buffer.concat(fields))) });
    const answer = this.answers.shift();
    assert(answer && !answer.has(5), `no answer, or a fatal one: ${answer && answer.get(5)} ${this.said.join("\n")}`);
    return answer.get(field);
  }

  load(file) {
    const told = new Map(new Reader(this.ask(APPEND, [bytes(101, fs.readFileSync(file))], 201)).fields());
    if (told.has(2)) throw new Error(String(told.get(2)));
    this.ask(FINALIZE, []);
  }

  query(sql) {
    const answers = [this.ask(QUERY, [bytes(103, bytes(1, Buffer.from(sql)))], 203)];
    while (this.answers.length > 0) answers.push(this.answers.shift().get(203));
    const columns = [], cells = [];
    for (const data of answers) {
      for (const [field, value] of new Reader(data).fields()) {
        if (field === 1) columns.push(String(value));
        if (field === 2) throw new Error(`${value}: ${sql}`);
        if (field !== 3) continue;
        const batch = new Map(new Reader(value).fields());
        const of = (field, read) => (batch.has(field) ? all(batch.get(field), read) : []);
        const [integers, doubles] = [of(2, (reader) => Number(reader.varint())), of(3, (reader) => reader.double())];
        const texts = batch.has(5) ? String(batch.get(5)).split("\0") : [];
        const kinds = { 1: () => null, 2: () => integers.shift(), 3: () => doubles.shift(), 4: () => texts.shift() };
        for (const kind of of(1, (reader) => Number(reader.varint()))) cells.push(kinds[kind]());
      }
    }
    const rows = [];
    for (let i = 0; i < cells.length; i += columns.length) rows.push(cells.slice(i, i + columns.length));
    return rows;
  }
}

async function main() {
  const told = [];
  for (const trace of traces) {
    const processor = new TraceProcessor();
    // It has begun when its promises have been kept.
    await new Promise((resolve) => setTimeout(resolve));
    const found = {};
    try {
      processor.load(trace);
      for (const [name, sql] of Object.entries(queries)) found[name] = processor.query(sql);
    } catch (error) {
      found.error = error.message;
    }
    told.push(found);
  }
  console.log(JSON.stringify(told));
}
main();
