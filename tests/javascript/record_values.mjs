// Writes values.jsonl beside it: node tests/javascript/record_values.mjs > tests/javascript/values.jsonl
// deterministic values: xorshift
let s = 88172645463325252n;
const next = () => { s ^= (s << 13n) & 0xffffffffffffffffn; s ^= s >> 7n; s ^= (s << 17n) & 0xffffffffffffffffn; return s; };
const buf = new DataView(new ArrayBuffer(8));
const any = () => { buf.setBigUint64(0, next()); return buf.getFloat64(0); };
const out = [];
const num = (x, literal) => out.push({kind: 'number', literal, text: String(x), json: JSON.stringify(x), fixed: [0,1,2,3,4].map(d => x.toFixed(d)), precision: [1,2,5].map(d => x.toPrecision(d))});
for (const l of ['0','-0','1','1.0','0.1','-1.5','1e21','1e20','999999999999999900000','123456789012345680000','1e-6','1e-7','0.000001','0.0000012','1.5e-7','5e-324','1.7976931348623157e308','1e400','-1e400','9007199254740992','9007199254740993','9007199254740995','1152921504606846976','1152921504606846977','18446744073709551616','-9223372036854775808','0.5','1.5','2.5','-2.5','0.125','0.375','1.005','1.255','8.345','1.45','0.05','10.235','-0.0004','-0.4','1e3','1E+2','100000000000000000000000','0.1e1'])
  num(JSON.parse(l), l);
for (let i = 0; i < 400; i++) { const x = any(); if (Number.isFinite(x)) num(x, x.toExponential()); }
for (let i = 0; i < 250; i++) { const n = next() >> BigInt(Number(next() % 60n)); num(Number(n), String(n)); }
for (let i = 0; i < 150; i++) { const x = Number(next() % 200000n) / 1000 / (i % 3 + 1); num(x, x.toExponential()); }
for (let i = 0; i < 100; i++) { const x = Number(next() % 4096n) / 32; num(x, String(x)); }
for (const t of ['', ' ', '\t\n', '12', ' 12 ', '\ufeff12', '\u008512', '\x1c12', '\u300012', '1_000', '0x1F', '0X1f', '-0x1f', '0b101', '0b12', '0o17', '0x', 'Infinity', '+Infinity', '-Infinity', 'infinity', 'inf', 'nan', 'NaN', '1e5', '1e', '.5', '5.', '.', '+5', '--5', '1,5', '٣', '１', '1n', '1e1000', '9007199254740993', '0x20000000000001', '1 2', '0x1_0', '00012', '-0', '1e-400'])
  out.push({kind: 'parse', literal: t, text: String(Number(t)), truthy: !!t, trim: t.trim(), words: t.trim().split(/\s+/).filter(Boolean)});
for (let c = 0; c < 0x10000; c++) { const t = String.fromCharCode(c); if (t.trim() === '') out.push({kind: 'space', code: c}); }
const docs = ['{"b":1,"2":2,"a":[],"1":{},"10":3,"01":4,"4294967294":5,"4294967295":6,"-1":7}', '[1.0,1e21,1e-7,-0,1152921504606846976,0.00001,[],{},[[]],null,true]', '{"t":"\\u2028\\u007f\\u0001\\b\\f\\n\\r\\t\\"\\\\/é😀"}', '"\\ud800x\\udc00"', '{"a":{"b":[1,{"c":2}],"d":{}}}', '[[1,2],[3,[4,null]],"x"]'];
for (const d of docs) { const v = JSON.parse(d); out.push({kind: 'json', literal: d, compact: JSON.stringify(v), two: JSON.stringify(v, null, 2), tab: JSON.stringify(v, null, '\t'), many: JSON.stringify(v, null, 14), text: String(v)}); }
import util from 'node:util';
const operands = ['0','-0','1','1.0','"1"','""','null','true','false','[]','[1]','{}','{"a":1}','{"a":1.0}','9007199254740992','9007199254740993','"9007199254740993"','1152921504606846976','1152921504606846977','" 1 "','"a"','[1,2]','"1,2"','{"a":[0]}','{"a":[-0]}'];
for (const a of operands) for (const b of operands) { const x = JSON.parse(a), y = JSON.parse(b); const plain = v => v === null || typeof v !== 'object'; out.push({kind: 'pair', a, b, deep: util.isDeepStrictEqual(x, y), ...(plain(x) && plain(y) ? {strict: x === y, loose: x == y, less: x < y, sum: JSON.stringify(x + y)} : {})}); }
for (const r of out) console.log(JSON.stringify(r));
