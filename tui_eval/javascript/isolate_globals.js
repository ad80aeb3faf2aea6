// What a web page or node has beyond JavaScript itself and many suites use, for isolates: timers, base64,
// text encodings, Buffer, structuredClone, URL. It reaches nothing. Evaluates to a function that defines them
// and returns the timers' clock.
() => {
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true });
  define('global', globalThis);

  // --- timers: the host asks `next` how long to wait, then for what is due
  const timers = new Map();
  let count = 0;
  let now = 0;
  const set = (repeat) => (action, wait = 0, ...rest) => {
    const pause = Math.max(Number(wait) || 0, repeat ? 1 : 0);
    timers.set(++count, { at: now + pause, action, rest, every: repeat ? pause : undefined });
    return count;
  };
  const clear = (id) => void timers.delete(id);
  define('setTimeout', set(false));
  define('setInterval', set(true));
  define('setImmediate', (action, ...rest) => set(false)(action, 0, ...rest));
  define('clearTimeout', clear);
  define('clearInterval', clear);
  define('clearImmediate', clear);
  if (typeof globalThis.queueMicrotask !== 'function')
    define('queueMicrotask', (action) => void Promise.resolve().then(action));
  const earliest = () => [...timers.entries()].sort((a, b) => a[1].at - b[1].at || a[0] - b[0])[0];
  const clock = {
    next: () => (timers.size ? Math.max(earliest()[1].at - now, 0) : -1),
    fire: () => {
      const [id, timer] = earliest();
      now = Math.max(now, timer.at);
      if (timer.every === undefined) timers.delete(id);
      else timer.at = now + timer.every;
      timer.action(...timer.rest);
    },
  };

  // --- base64 and text
  const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  const PLACES = new Map([...ALPHABET].map((letter, place) => [letter, place]));
  PLACES.set('-', 62).set('_', 63);
  const toBase64 = (bytes, url) => {
    let text = '';
    for (let i = 0; i < bytes.length; i += 3) {
      const three = (bytes[i] << 16) | ((bytes[i + 1] ?? 0) << 8) | (bytes[i + 2] ?? 0);
      for (let place = 0; place < 4; place++)
        text += i + place <= bytes.length ? ALPHABET[(three >> (18 - 6 * place)) & 63] : '=';
    }
    return url ? text.replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '') : text;
  };
  const fromBase64 = (text) => {
    const bytes = [];
    let held = 0;
    let bits = 0;
    for (const letter of text) {
      const place = PLACES.get(letter);
      if (place === undefined) continue;
      held = ((held << 6) | place) & 0xffffff;
      bits += 6;
      if (bits >= 8) bytes.push((held >> (bits -= 8)) & 255);
    }
    return bytes;
  };
  const toUtf8 = (text) => {
    const bytes = [];
    for (const letter of text.toWellFormed ? text.toWellFormed() : text) {
      const code = letter.codePointAt(0);
      if (code < 0x80) bytes.push(code);
      else if (code < 0x800) bytes.push(0xc0 | (code >> 6), 0x80 | (code & 63));
      else if (code < 0x10000) bytes.push(0xe0 | (code >> 12), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
      else bytes.push(0xf0 | (code >> 18), 0x80 | ((code >> 12) & 63), 0x80 | ((code >> 6) & 63), 0x80 | (code & 63));
    }
    return bytes;
  };
  const fromUtf8 = (bytes, fatal) => {
    const parts = [];
    let i = 0;
    while (i < bytes.length) {
      const first = bytes[i++];
      let more = first < 0x80 ? 0 : first >= 0xc2 && first < 0xe0 ? 1 : (first & 0xf0) === 0xe0 ? 2 : first >= 0xf0 && first < 0xf5 ? 3 : -1;
      let code = more <= 0 ? first : first & (0x3f >> more);
      let low = first === 0xe0 ? 0xa0 : first === 0xf0 ? 0x90 : 0x80;
      let high = first === 0xed ? 0x9f : first === 0xf4 ? 0x8f : 0xbf;
      for (; more > 0 && bytes[i] >= low && bytes[i] <= high; more--, low = 0x80, high = 0xbf) code = (code << 6) | (bytes[i++] & 63);
      if (more !== 0 && fatal) throw new TypeError('The encoded data was not valid for encoding utf-8');
      parts.push(String.fromCodePoint(more === 0 ? code : 0xfffd));
    }
    return parts.join('');
  };
  const viewed = (data) =>
    data instanceof ArrayBuffer ? new Uint8Array(data) : new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  define('btoa', (data) => {
    const bytes = [...String(data)].map((letter) => letter.codePointAt(0));
    if (bytes.some((code) => code > 255)) throw new Error('Invalid character');
    return toBase64(bytes);
  });
  define('atob', (data) => {
    const text = String(data).replace(/[\t\n\f\r ]/g, '').replace(/={1,2}$/, '');
    if (/[^A-Za-z0-9+/]/.test(text) || text.length % 4 === 1)
      throw new Error('The string to be decoded is not correctly encoded.');
    return String.fromCharCode(...fromBase64(text));
  });
  define('TextEncoder', class TextEncoder {
    get encoding() { return 'utf-8'; }
    encode(text = '') { return Uint8Array.from(toUtf8(String(text))); }
  });
  define('TextDecoder', class TextDecoder {
    #fatal; #bom;
    constructor(label = 'utf-8', { fatal = false, ignoreBOM = false } = {}) {
      if (!/^(?:utf-?8|unicode-1-1-utf-8)$/i.test(String(label).trim())) throw new RangeError(`The "${label}" encoding is not supported`);
      this.#fatal = fatal; this.#bom = ignoreBOM;
    }
    get encoding() { return 'utf-8'; }
    decode(data) {
      const text = data === undefined ? '' : fromUtf8(viewed(data), this.#fatal);
      return this.#bom ? text : text.replace(/^\ufeff/, '');
    }
  });

  // --- Buffer, as far as texts go
  const encoded = (text, encoding = 'utf8') => {
    switch (String(encoding).toLowerCase()) {
      case 'utf8': case 'utf-8': return toUtf8(text);
      case 'base64': case 'base64url': return fromBase64(text.replace(/=+$/, ''));
      case 'hex': return (text.match(/^(?:[0-9a-fA-F]{2})*/)[0].match(/../g) ?? []).map((pair) => parseInt(pair, 16));
      case 'latin1': case 'binary': case 'ascii': return Array.from(text, (letter) => letter.charCodeAt(0) & 255);
      default: throw new TypeError(`Unknown encoding: ${encoding}`);
    }
  };
  class Buffer extends Uint8Array {
    static from(data, encoding) {
      if (typeof data === 'string') return new Buffer(encoded(data, encoding));
      if (data instanceof ArrayBuffer) return new Buffer(data);
      if (data?.type === 'Buffer' && Array.isArray(data.data)) return new Buffer(data.data);
      return new Buffer([...(data ?? [])]);
    }
    static alloc(size, fill = 0, encoding) { return new Buffer(size).fill(fill, encoding); }
    static isBuffer(data) { return data instanceof Buffer; }
    static byteLength(data, encoding) { return typeof data === 'string' ? encoded(data, encoding).length : data.byteLength; }
    static concat(list) { return new Buffer(list.flatMap((part) => [...part])); }
    fill(value, encoding) {
      const bytes = typeof value === 'string' ? encoded(value, encoding) : [value];
      for (let i = 0; bytes.length && i < this.length; i++) this[i] = bytes[i % bytes.length];
      return this;
    }
    equals(other) { return this.length === other.length && this.every((byte, i) => byte === other[i]); }
    toJSON() { return { type: 'Buffer', data: [...this] }; }
    toString(encoding = 'utf8', start = 0, end = this.length) {
      const bytes = this.subarray(start, end);
      switch (String(encoding).toLowerCase()) {
        case 'utf8': case 'utf-8': return fromUtf8(bytes, false);
        case 'base64': return toBase64(bytes);
        case 'base64url': return toBase64(bytes, true);
        case 'hex': return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
        case 'latin1': case 'binary': return Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
        case 'ascii': return Array.from(bytes, (byte) => String.fromCharCode(byte & 127)).join('');
        default: throw new TypeError(`Unknown encoding: ${encoding}`);
      }
    }
  }
  define('Buffer', Buffer);

  // --- structuredClone
  const clone = (value, seen) => {
    if (typeof value === 'function' || typeof value === 'symbol') throw new TypeError(`${String(value)} could not be cloned.`);
    if (value === null || typeof value !== 'object') return value;
    if (seen.has(value)) return seen.get(value);
    const keep = (made) => (seen.set(value, made), made);
    if (value instanceof Date) return keep(new Date(value));
    if (value instanceof RegExp) return keep(new RegExp(value.source, value.flags));
    if (value instanceof ArrayBuffer) return keep(value.slice(0));
    if (ArrayBuffer.isView(value)) return keep(Uint8Array.prototype.slice.call(value));
    if (value instanceof Map) { const made = keep(new Map()); for (const [k, v] of value) made.set(clone(k, seen), clone(v, seen)); return made; }
    if (value instanceof Set) { const made = keep(new Set()); for (const v of value) made.add(clone(v, seen)); return made; }
    if (value instanceof Error) { const made = keep(new (globalThis[value.name] ?? Error)(value.message)); made.stack = value.stack; return made; }
    const made = keep(Array.isArray(value) ? new Array(value.length) : {});
    for (const key of Object.keys(value)) made[key] = clone(value[key], seen);
    return made;
  };
  define('structuredClone', (value) => clone(value, new Map()));

  // --- URL, by the URL standard as far as addresses of the web go
  const PORTS = { http: '80', https: '443', ws: '80', wss: '443', ftp: '21', file: '' };
  const percent = (text, also) =>
    [...text].map((c) => (c > '~' || c < '!' || also.includes(c)
      ? toUtf8(c).map((byte) => '%' + byte.toString(16).toUpperCase().padStart(2, '0')).join('') : c)).join('');
  const punycode = (label) => {
    const points = [...label].map((c) => c.codePointAt(0));
    let text = [...label].filter((c) => c < '\x80').join('');
    const basic = text.length;
    let done = basic, limit = 128, delta = 0, bias = 72;
    if (basic) text += '-';
    while (done < points.length) {
      const least = Math.min(...points.filter((point) => point >= limit));
      delta += (least - limit) * (done + 1);
      limit = least;
      for (const point of points) {
        if (point < limit) delta++;
        if (point !== limit) continue;
        let rest = delta;
        for (let k = 36; ; k += 36) {
          const t = Math.min(Math.max(k - bias, 1), 26);
          const digit = rest < t ? rest : t + ((rest - t) % (36 - t));
          text += String.fromCharCode(digit < 26 ? digit + 97 : digit + 22);
          if (rest < t) break;
          rest = Math.floor((rest - t) / (36 - t));
        }
        let spread = Math.floor(delta / (done === basic ? 700 : 2));
        spread += Math.floor(spread / (done + 1));
        for (bias = 0; spread > 455; bias += 36) spread = Math.floor(spread / 35);
        bias += Math.floor((36 * spread) / (spread + 38));
        delta = 0;
        done++;
      }
      delta++;
      limit++;
    }
    return `xn--${text}`;
  };
  const hostname = (text, special) => {
    if (/^\[[0-9a-fA-F:.]+\]$/.test(text)) return text.toLowerCase();
    if (!special) return /[\0\t\n\r #/<>?@[\\\]^|]/.test(text) ? null : percent(text, '');
    const plain = unescape(text.replace(/\+/g, '%2B')).normalize('NFKC').toLowerCase();
    if (/[\0-\x20"#%/:<>?@[\\\]^`{|}\x7f]/.test(plain)) return null;
    const labels = plain.split(/[.\u3002]/).map((label) => (/[^\x00-\x7f]/.test(label) ? punycode(label) : label));
    const last = labels.at(-1) || labels.at(-2) || '';
    if (!/^(?:\d+|0x[0-9a-f]*)$/.test(last)) return labels.join('.');
    const numbers = labels.filter((label, i) => label || i < labels.length - 1).map((n) => (n ? Number(/^0[0-7]+$/.test(n) ? `0o${n}` : n === '0x' ? 0 : n) : NaN));
    const whole = numbers.pop();
    const room = 256 ** (4 - numbers.length);
    if (numbers.length > 3 || !(whole < room) || numbers.some((n) => !(n < 256))) return null;
    const address = numbers.reduce((sum, n, i) => sum + n * 256 ** (3 - i), whole);
    return [24, 16, 8, 0].map((bits) => Math.floor(address / 2 ** bits) % 256).join('.');
  };
  const straight = (path, special) => {
    const found = [];
    const parts = path.split(special ? /[\\/]/ : '/');
    parts.forEach((part, place) => {
      const dots = part.replace(/%2e/gi, '.');
      const last = place === parts.length - 1;
      if (dots === '..') { found.pop(); if (last) found.push(''); }
      else if (dots !== '.') found.push(percent(part, '"<>`{}'));
      else if (last) found.push('');
    });
    return found;
  };
  const query = (text, special) => (text === undefined ? '' : '?' + percent(text, special ? '"<>\'' : '"<>'));
  const address = (given, base) => {
    const text = given.replace(/^[\0-\x20]+|[\0-\x20]+$|[\t\n\r]/g, '');
    const scheme = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(text)?.[1].toLowerCase();
    const under = base && (scheme === undefined || (scheme in PORTS && !/^[^:]*:[\\/]{2}/.test(text))) ? address(base, '') : null;
    if (scheme === undefined && !under) return null;
    const relative = under && (scheme === undefined || under.protocol === `${scheme}:`);
    const protocol = relative ? under.protocol : `${scheme}:`;
    const special = protocol.slice(0, -1) in PORTS;
    const [, main, search, hash] = /^([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/s.exec(scheme === undefined ? text : text.slice(scheme.length + 1));
    const end = { search: query(search, special), hash: hash === undefined ? '' : '#' + percent(hash, '"<>`') };
    const slash = special ? '[\\\\/]' : '/';
    const rooted = new RegExp(`^${slash}`).test(main);
    const blank = { username: '', password: '', hostname: '', port: '', slashes: special };
    const real = special && protocol !== 'file:';
    let rest = new RegExp(`^${slash}${slash}(.*)$`, 's').exec(main)?.[1];
    if (relative && rest === undefined) {
      if (!under.slashes && (main || search !== undefined)) return main || !under.slashes ? null : { ...under, ...end };
      const old = under.pathname.split('/').slice(1);
      const path = rooted ? main.slice(1) : main ? [...old.slice(0, -1), main].join('/') : null;
      const same = path === null && search === undefined ? under.search : end.search;
      return { ...under, ...end, search: same, pathname: path === null ? under.pathname : '/' + straight(path, special).join('/') };
    }
    if (rest === undefined) {
      if (real) rest = main.replace(/^[\\/]*/, '');
      else if (protocol === 'file:') return { ...blank, ...end, protocol, special: false, pathname: '/' + straight(main.replace(/^[\\/]/, ''), true).join('/') };
      else return { ...blank, ...end, protocol, special: false, pathname: rooted ? '/' + straight(main.slice(1), false).join('/') : main.split(' ').map((part) => percent(part, '')).join(' ') };
    }
    if (real) rest = rest.replace(/^[\\/]+/, '');
    const cut = rest.search(new RegExp(slash));
    const authority = cut < 0 ? rest : rest.slice(0, cut);
    const at = authority.lastIndexOf('@');
    const [, user = '', password = ''] = at < 0 ? [] : /^([^:]*)(?::(.*))?$/s.exec(authority.slice(0, at));
    const place = /^(\[[^\]]*\]|[^:]*)(?::(\d*))?$/.exec(authority.slice(at + 1));
    const host = place && (place[1] || !real ? hostname(place[1], special) : null);
    if (host === null || (real && !host) || (!host && place[2] !== undefined) || (!host && at >= 0) || (protocol === 'file:' && (at >= 0 || place[2] !== undefined)) || Number(place[2] ?? 0) > 65535) return null;
    const port = place[2] ? String(Number(place[2])) : '';
    const path = cut < 0 ? '' : '/' + straight(rest.slice(cut + 1), special).join('/');
    const hidden = '"#<>?`{}/:;=@[\\]^|';
    return {
      ...end, protocol, slashes: true, special: real, username: percent(user, hidden), password: percent(password, hidden),
      hostname: protocol === 'file:' && host === 'localhost' ? '' : host, port: port === PORTS[protocol.slice(0, -1)] ? '' : port,
      pathname: path || (special ? '/' : ''),
    };
  };
  const escape = (text) =>
    encodeURIComponent(String(text)).replace(/%20/g, '+').replace(/[!'()~]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase());
  const unescape = (text) => {
    const bytes = [];
    const plain = text.replace(/\+/g, ' ');
    for (let i = 0; i < plain.length; i++) {
      if (plain[i] === '%' && /^[0-9a-fA-F]{2}$/.test(plain.slice(i + 1, i + 3))) { bytes.push(parseInt(plain.slice(i + 1, i + 3), 16)); i += 2; }
      else { const point = String.fromCodePoint(plain.codePointAt(i)); bytes.push(...toUtf8(point)); i += point.length - 1; }
    }
    return fromUtf8(bytes, false);
  };
  class URLSearchParams {
    #pairs = []; #changed = () => {};
    constructor(given = '') {
      if (given !== null && typeof given === 'object') {
        const pairs = typeof given[Symbol.iterator] === 'function' ? [...given] : Object.entries(given);
        this.#pairs = pairs.map(([name, value]) => [String(name), String(value)]);
      } else this.#read(String(given));
    }
    #read(text) {
      this.#pairs = text.replace(/^\?/, '').split('&').filter(Boolean).map((part) => {
        const at = part.indexOf('=');
        return at < 0 ? [unescape(part), ''] : [unescape(part.slice(0, at)), unescape(part.slice(at + 1))];
      });
    }
    static _of(text, changed) { const made = new URLSearchParams(text); made.#changed = changed; return made; }
    _again(text) { this.#read(text); }
    append(name, value) { this.#pairs.push([String(name), String(value)]); this.#changed(); }
    delete(name, value) { this.#pairs = this.#pairs.filter(([key, own]) => key !== String(name) || (value !== undefined && own !== String(value))); this.#changed(); }
    get(name) { return this.#pairs.find(([key]) => key === String(name))?.[1] ?? null; }
    getAll(name) { return this.#pairs.filter(([key]) => key === String(name)).map(([, value]) => value); }
    has(name, value) { return this.#pairs.some(([key, own]) => key === String(name) && (value === undefined || own === String(value))); }
    set(name, value) {
      const at = this.#pairs.findIndex(([key]) => key === String(name));
      if (at < 0) return this.append(name, value);
      this.#pairs = this.#pairs.filter(([key], place) => key !== String(name) || place === at);
      this.#pairs[at] = [String(name), String(value)];
      this.#changed();
    }
    sort() { this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)); this.#changed(); }
    forEach(action, self) { for (const [name, value] of this.#pairs) action.call(self, value, name, this); }
    keys() { return this.#pairs.map(([name]) => name)[Symbol.iterator](); }
    values() { return this.#pairs.map(([, value]) => value)[Symbol.iterator](); }
    entries() { return this.#pairs.map((pair) => [...pair])[Symbol.iterator](); }
    [Symbol.iterator]() { return this.entries(); }
    get size() { return this.#pairs.length; }
    toString() { return this.#pairs.map(([name, value]) => `${escape(name)}=${escape(value)}`).join('&'); }
  }
  define('URLSearchParams', URLSearchParams);
  const PARTS = ['protocol', 'username', 'password', 'hostname', 'port', 'pathname', 'search', 'hash'];
  class URL {
    #parts; #params;
    constructor(text, base) {
      this.#take(String(text), base === undefined ? '' : String(base));
      this.#params = URLSearchParams._of(this.#parts.search, () => {
        const query = this.#params.toString();
        this.#parts.search = query && `?${query}`;
      });
    }
    #take(text, base) {
      const found = address(text, base);
      if (!found) throw Object.assign(new TypeError('Invalid URL'), { code: 'ERR_INVALID_URL', input: text });
      this.#parts = found;
    }
    static canParse(text, base) { return Boolean(address(String(text), base === undefined ? '' : String(base))); }
    static parse(text, base) { return URL.canParse(text, base) ? new URL(text, base) : null; }
    get href() {
      const { protocol, username, password, pathname, search, hash } = this.#parts;
      const who = username || password ? `${username}${password && `:${password}`}@` : '';
      return `${protocol}${this.#parts.slashes ? `//${who}${this.host}` : ''}${pathname}${search}${hash}`;
    }
    set href(text) { this.#take(String(text), ''); this.#params._again(this.#parts.search); }
    get host() { return this.#parts.hostname + (this.#parts.port && `:${this.#parts.port}`); }
    set host(text) { const [, name, port = ''] = /^(.*?)(?::(\d*))?$/.exec(String(text)); this.#put({ hostname: name, port }); }
    get origin() { return this.#parts.special ? `${this.protocol}//${this.host}` : 'null'; }
    get searchParams() { return this.#params; }
    #put(changed) {
      const before = this.#parts;
      this.#parts = { ...before, ...changed };
      try { this.#take(this.href, ''); } catch { this.#parts = before; }
      this.#params._again(this.#parts.search);
    }
    static _parts() {
      for (const name of PARTS)
        Object.defineProperty(URL.prototype, name, {
          get() { const part = this.#parts[name]; return part === '?' || part === '#' ? '' : part; },
          set(value) {
            let text = String(value);
            if (name === 'protocol') text = text.replace(/:*$/, ':');
            if (name === 'search' || name === 'hash') text = text && (name === 'search' ? '?' : '#') + text.replace(/^[?#]/, '');
            if (name === 'pathname' && this.#parts.slashes) text = text.replace(/^\/?/, '/').replace(/[?#]/g, (c) => (c === '?' ? '%3F' : '%23'));
            this.#put({ [name]: text });
          },
          enumerable: true, configurable: true,
        });
    }
    toString() { return this.href; }
    toJSON() { return this.href; }
  }
  URL._parts();
  delete URL._parts;
  define('URL', URL);
  return clock;
};
