// Runs functions of people's JavaScript files for node_host.py: requests come in and answers go out as
// JSON lines on the socket whose number is the first argument. Stands alone; needs nothing but node.
import { AsyncLocalStorage } from 'node:async_hooks';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import net from 'node:net';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath, pathToFileURL } from 'node:url';
import vm from 'node:vm';

const MOST_PRINTED = 100_000;
const MOST_WATCHED = 500;
const JAVASCRIPT = /\.(?:[cm]?[jt]s|json)$/;
const REFERENCE = /^__fn_(?:([\w$]+)_)?(?:(%5B.*%5D)_)?(\d+)$/;
const LONGEST_NAMES = 4_000_000; // characters of a config in the names of all functions that are made with it

const channel = new net.Socket({ fd: Number(process.argv[2]), readable: true, writable: true });
const running = new AsyncLocalStorage();
const loaded = new Set();
const modules = new Map();
const named = new Map();
const providers = new Map();

// What a call that takes long has printed goes out before it ends: some never do.
const PASSED_ON_AFTER = 500; // ms
const later = setTimeout; // people's code may replace it
function passOn(call) {
  call.waiting = undefined;
  if (call.over || !call.printed) return;
  answer(call.request, { kind: 'printed', stdout: call.printed });
  call.printed = '';
}

// What is printed belongs to the call that prints it.
for (const stream of [process.stdout, process.stderr]) {
  stream.write = (chunk, encoding, done) => {
    const call = running.getStore();
    if (call && call.size < MOST_PRINTED) {
      const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
      call.printed += text;
      call.size += text.length;
      call.waiting ??= later(passOn, PASSED_ON_AFTER, call).unref();
    }
    const after = typeof encoding === 'function' ? encoding : done;
    if (after) after();
    return true;
  };
}
// A promise that somebody left alone must not end the calls of others.
process.on('unhandledRejection', () => {});
process.on('uncaughtException', () => {});

async function load(file) {
  if (!modules.has(file)) {
    loaded.add(file);
    modules.set(file, import(pathToFileURL(file).href).catch((error) => commonJs(file, error)));
  }
  const space = await modules.get(file);
  return { space, main: space.default?.default ?? space.default ?? space };
}

// A `.js` file written for `require` in a package of ES modules (`"type": "module"`): promptfoo runs it all the same.
function commonJs(file, error) {
  const foreign = /\b(?:require|module|exports|__dirname|__filename) is not defined/.test(error?.message ?? '');
  if (!foreign || !file.endsWith('.js')) throw error;
  const module = { exports: {} };
  const names = ['module', 'exports', 'require', '__filename', '__dirname'];
  let body;
  try {
    const options = { filename: file, importModuleDynamically: vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER };
    body = vm.compileFunction(fs.readFileSync(file, 'utf8').replace(/^#!.*/, ''), names, options);
  } catch {
    throw error; // it is an ES module
  }
  body.call(module.exports, module, module.exports, createRequire(pathToFileURL(file)), file, path.dirname(file));
  return { default: module.exports };
}

async function find(request) {
  const { space, main } = await load(request.file);
  const name = request.function;
  const reference = name && REFERENCE.exec(name);
  if (reference) {
    const maker = reference[1] ?? '';
    const given = reference[2] ?? '';
    const key = `${request.file}\n${maker}\n${given}`;
    const args = given ? JSON.parse(decodeURIComponent(given)) : [];
    if (!named.has(key)) await valueOf({ ...request, function: maker, args });
    return named.get(key)[Number(reference[3])];
  }
  if (name) {
    const steps = name.split('.');
    for (const root of [main, space]) {
      let found = root;
      for (const step of steps) found = found?.[step];
      if (found !== undefined) return found;
    }
    if (!request.lenient) return undefined;
  }
  return main;
}

async function call(request) {
  const target = await find(request);
  if (typeof target !== 'function') {
    const wanted = request.function ? `a function ${request.function}` : 'a function';
    throw new Error(`${path.basename(request.file)} must export ${wanted}`);
  }
  for (const place of request.undefined ?? []) request.args[place] = undefined;
  const [first, second] = request.args;
  join(first, second);
  join(first?.output, first?.context); // inline code is given an object of its variables
  const before = request.told ? Object.entries(first).map(([name, one]) => [name, JSON.stringify(one)]) : [];
  const returned = await target(...request.args);
  // JSON has it as what is in it, but `new Boolean(false)` is true, and no boolean.
  const box = [Boolean, Number, String].find((one) => returned instanceof one)?.name;
  if (box) throw new TypeError(`gives a ${box} object (new ${box}), which is no ${box.toLowerCase()}`);
  if (request.told) {
    const all = { ...Object.fromEntries(before.map(([name]) => [name, first[name]])), ...Object(returned) };
    const changed = before.filter(([name, one]) => JSON.stringify(first[name]) !== one).map(([name]) => [name, first[name]]);
    const undefined_ = Object.keys(all).filter((name) => all[name] === undefined);
    return { value: returned, undefined: undefined_, changed: Object.fromEntries(changed) };
  }
  if (!request.changed) return returned;
  // No more than that: beside it there may be what JSON cannot hold, a timer or a client.
  return { returned, changed: request.args.find((one) => typeof one === 'object')[request.changed] };
}

// What an assertion is given and the response that it is of are one object; a provider says its `id()`.
function join(output, context) {
  const object = (value) => value !== null && typeof value === 'object';
  const response = context?.providerResponse;
  if (object(output) && object(response?.output) && JSON.stringify(output) === JSON.stringify(response.output)) {
    response.output = output;
  }
  const provider = context?.provider, id = provider?.id;
  if (typeof id === 'string') provider.id = () => id;
}

// Whether a file can be imported and exports what can be called, a function or a provider; nothing is called.
async function imported(request) {
  const target = await find(request);
  if (typeof target !== 'function' && typeof target?.callApi !== 'function') {
    const wanted = request.function ? `a function ${request.function}` : 'a function';
    throw new Error(`${path.basename(request.file)} must export ${wanted}`);
  }
  return null;
}

// What a file exports; a function is called for it. Functions within become `file://…:__fn_0`, …, of what its
// function `make` gives `file://…:__fn_make_0`, …, and with a config this stands before the number: they are found again
// by making it again.
async function valueOf(request) {
  let value = await find(request);
  if (value === undefined) {
    throw new Error(`${path.basename(request.file)} exports no ${request.function || 'value'}`);
  }
  if (typeof value === 'function') value = await value(...request.args);
  const functions = [];
  const maker = request.function ? `${request.function}_` : '';
  const given = request.args.length > 0 ? encoded(JSON.stringify(request.args)) : '';
  const start = `${request.reference ?? request.file}:__fn_${maker}${given && `${given}_`}`;
  const result = plain(value, functions, start, new Set());
  const tooLong = given.length * functions.length > LONGEST_NAMES;
  if (functions.length > 0 && (tooLong || /[^\w$]/.test(maker))) {
    const config = `${functions.length} functions with a config of ${given.length} characters`;
    const why = tooLong ? `${config} cannot be kept` : `functions within what ${request.function} makes cannot be called later`;
    throw new Error(`${why}; name them: file://FILE.js:NAME`);
  }
  named.set(`${request.file}\n${request.function ?? ''}\n${given}`, functions);
  return result;
}

// As Python's `quote` has it, so that what is a secret in it is known for one.
function encoded(text) {
  return encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);
}

function plain(value, functions, reference, above) {
  if (typeof value === 'function') {
    functions.push(value);
    return `file://${reference}${functions.length - 1}`;
  }
  if (typeof value === 'bigint') return value.toString();
  if (value === null || typeof value !== 'object') return value;
  if (typeof value.toJSON === 'function') return value.toJSON();
  if (above.has(value)) throw new Error('the value contains itself');
  above.add(value);
  const result = Array.isArray(value)
    ? value.map((item) => plain(item, functions, reference, above))
    : Object.fromEntries(
        Object.entries(value).map(([key, item]) => [key, plain(item, functions, reference, above)]),
      );
  above.delete(value);
  return result;
}

// What promptfoo's providers find in their context beside data: a logger, whose lines are kept with the attempt, and a
// cache for as long as this process lives.
const kept = new Map();
const cache = {
  get: async (key) => kept.get(key),
  set: async (key, value) => { kept.set(key, value); return value; },
  del: async (key) => kept.delete(key),
  clear: async () => kept.clear(),
  wrap: async (key, make) => {
    if (!kept.has(key)) kept.set(key, await make());
    return kept.get(key);
  },
};
const print = (level) => (...parts) => console.log(`${level}:`, ...parts);
const logger = { debug() {}, info: print('info'), warn: print('warn'), error: print('error') };

// A provider of a suite: a class with `callApi`, made once per options, or a function.
// An Error among what a provider returns has nothing in it as JSON.
async function provider(request) {
  const found = await asked(request);
  return found?.error instanceof Error ? { ...found, error: found.error.message || String(found.error) } : found;
}

async function asked(request) {
  const target = await find(request);
  const [options, prompt, given, more] = request.args;
  const context = { ...given, filters: {}, getCache: () => cache, logger };
  if (typeof target !== 'function') {
    if (typeof target?.callApi === 'function') return await target.callApi(prompt, context, more);
    throw new Error(`${path.basename(request.file)} must export a provider: a class with callApi`);
  }
  if (typeof target.prototype?.callApi !== 'function') return await target(prompt, context, more);
  context.originalProvider = made(request, target, options);
  return await context.originalProvider.callApi(prompt, context, more);
}

function made(request, target, options) {
  const key = `${request.file}\n${request.function}\n${JSON.stringify(options)}`;
  if (!providers.has(key)) providers.set(key, new target(options));
  return providers.get(key);
}

// What a provider calls itself: its `id()`; null where it says none.
async function identity(request) {
  const target = await find(request);
  const isClass = typeof target?.prototype?.callApi === 'function';
  const one = isClass ? made(request, target, request.args[0]) : target;
  const said = typeof one?.id === 'function' ? await one.id() : null;
  return typeof said === 'string' ? said : null;
}

// Modification time (ns) and size of every file whose change should start another process.
function watched(file) {
  const paths = new Set([...loaded, ...Object.keys(createRequire(import.meta.url).cache)]);
  try {
    const folder = path.dirname(file);
    const names = fs.readdirSync(folder).filter((name) => JAVASCRIPT.test(name));
    for (const name of names.slice(0, MOST_WATCHED)) paths.add(path.join(folder, name));
  } catch {}
  const parts = [];
  for (const name of paths) {
    try {
      const status = fs.statSync(name, { bigint: true });
      if (status.isFile() && parts.length < MOST_WATCHED) {
        parts.push(`${JSON.stringify(name)}:[${status.mtimeNs},${status.size}]`);
      }
    } catch {}
  }
  return `{${parts.join(',')}}`;
}

function oneLine(error) {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return text.split(/\s+/).join(' ').slice(0, 1000);
}

// The last line of the person's own code on the way to an error: not node's, a package's or this file's.
function raisedAt(error) {
  for (const line of String(error?.stack ?? '').split('\n')) {
    const found = /^\s+at (?:.*\()?((?:file:\/\/)?\/[^()]+):(\d+):(\d+)\)?$/.exec(line);
    if (!found || found[1].includes('/node_modules/') || found[1] === import.meta.url) continue;
    const file = found[1].startsWith('file:') ? fileURLToPath(found[1]) : found[1];
    return [file, Number(found[2]), Number(found[3])];
  }
  return undefined;
}

// The characters of that line at which it was thrown: a word, else one.
function columnsOf([file, line, column]) {
  try {
    const word = /[\w$]+|./y;
    word.lastIndex = column - 1;
    const found = word.exec(fs.readFileSync(file, 'utf8').split('\n')[line - 1]);
    return found ? [column - 1, column - 1 + found[0].length] : undefined;
  } catch {
    return undefined;
  }
}

function answer(request, fields, files) {
  const body = JSON.stringify({ id: request.id, ...fields });
  channel.write(files ? `${body.slice(0, -1)},"files":${files}}\n` : `${body}\n`);
}

const operations = { call, import: imported, value: valueOf, provider, identity };

async function serve(request) {
  const state = { request, printed: '', size: 0, over: false };
  await running.run(state, async () => {
    let fields;
    try {
      const value = await operations[request.op](request);
      // Now, so that what JSON cannot hold is an error of this call.
      fields = { kind: 'result', value: JSON.parse(JSON.stringify(value ?? null, jsonable) ?? 'null') };
      if (value === undefined) fields.undefined = true;
    } catch (error) {
      fields = { kind: 'error', message: oneLine(error), traceback: String(error?.stack ?? '') };
      const place = error instanceof Error ? raisedAt(error) : undefined;
      if (place) {
        fields.raised_at = place.slice(0, 2);
        fields.columns = columnsOf(place);
      }
      if (error instanceof RangeError && /allocation failed/.test(error.message)) fields.spent = true;
    }
    state.over = true;
    answer(request, { ...fields, stdout: state.printed }, watched(request.file));
  });
}

function jsonable(key, value) {
  return typeof value === 'bigint' ? value.toString() : value;
}

// The last request that was taken is noted in a file of the host's (script_process.TAKEN).
const taken = Number(process.env.TUI_EVAL_TAKEN ?? -1);
delete process.env.TUI_EVAL_TAKEN;
const note = Buffer.alloc(8);
if (taken >= 0) fs.writeSync(taken, note, 0, 8, 0);

const open = new Set();
readline.createInterface({ input: channel, crlfDelay: Infinity }).on('line', (line) => {
  const request = JSON.parse(line);
  if (request.op === 'cancel') {
    // Nothing here can be stopped from outside: the process ends with its other calls.
    if (open.has(request.id)) answer(request, { kind: 'stuck' });
    return;
  }
  if (taken >= 0) {
    note.writeBigUInt64LE(BigInt(request.id));
    fs.writeSync(taken, note, 0, 8, 0);
  }
  open.add(request.id);
  serve(request)
    .catch((error) => {
      answer(request, { kind: 'error', message: oneLine(error), traceback: '', stdout: '' });
    })
    .finally(() => open.delete(request.id));
});
channel.on('close', () => process.exit(0));
channel.on('error', () => process.exit(0));
