// Writes patterns.jsonl beside it: node tests/javascript/record_patterns.mjs > tests/javascript/patterns.jsonl
let s = 2463534242;
const below = (n) => { s ^= s << 13; s >>>= 0; s ^= s >>> 17; s ^= s << 5; s >>>= 0; return s % n; };
const one = (list) => list[below(list.length)];
const atoms = ['a', 'b', 'é', '\\w', '\\W', '\\d', '\\D', '\\s', '\\S', '.', '[a-z]', '[^a]', '[\\w-]', '[\\s\\S]', '\\b', '\\B', '^', '$', 'K', 's', '1', ' ', '\\.', '(a|b)', '(?:ab)', '(?=b)', '(?!b)', '[\\d,]', '\\n', '_', '(?<=a)', '[^]', '\\u00e9'];
const counts = ['', '', '', '', '*', '+', '?', '*?', '+?', '{2}', '{1,3}', '{2,}'];
const letters = ['a', 'b', 'é', 'É', 'K', 'K', 'k', 's', 'ſ', '1', '٣', ' ', '\t', '\n', '\r', '\u2028', '\u00a0', '\u0085', '\x1c', '\ufeff', '_', '-', '.', ',', '👍', 'ß'];
for (let i = 0; i < 900; i++) {
  const pattern = Array.from({length: 1 + below(4)}, () => one(atoms) + one(counts)).join('');
  const text = Array.from({length: below(14)}, () => one(letters)).join('');
  let row = {pattern, text, flags: i % 5 ? '' : 'i'};
  try { row.matches = new RegExp(pattern, row.flags).test(text); row.found = [...text.matchAll(new RegExp(pattern, row.flags + 'g'))].filter(m => m[0]).map(m => m[0]); }
  catch (error) { row.invalid = true; }
  console.log(JSON.stringify(row));
}
