// node collect-wasm.mjs FOLDER VARIANT=GLUE...: puts what the links have made into FOLDER, one glue file for each name
// and one attn-VARIANT.wasm for each variant, after checking that links that share a name or a variant agree.
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const [folder, ...links] = process.argv.slice(2);
const glues = new Map();
const binaries = new Map();

function keep(map, name, bytes, from) {
  const known = map.get(name);
  if (known && !known.bytes.equals(bytes)) {
    throw new Error(`${name} differs between ${known.from} and ${from}: one file cannot serve both`);
  }
  map.set(name, { bytes, from });
}

// Read by hand: Node 20 compiles a relaxed module only with a flag that newer versions refuse.
function customSections(bytes, name) {
  let at = 8;
  const number = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  const found = [];
  while (at < bytes.length) {
    const id = bytes[at++];
    const end = number() + at;
    if (id === 0) {
      const length = number();
      if (bytes.toString('utf8', at, at + length) === name) found.push(bytes.toString('utf8', at + length, end));
    }
    at = end;
  }
  return found;
}

for (const link of links) {
  const [variant, path] = link.split('=');
  const name = basename(path);
  const wasm = name.replace(/\.mjs$/, '.wasm');

  // web/lib always says where the binary comes from. The glue's own guess, a file beside it, does not exist under that
  // name, and bundlers would look for it.
  const text = readFileSync(path, 'utf8');
  const guess = new RegExp(String.raw`new URL\(["']${wasm}["'], ?import\.meta\.url\)\.href`, 'g');
  if (text.match(guess)?.length !== 1) throw new Error(`${path}: expected exactly one URL of ${wasm}`);
  const glue = text.replace(guess, '""');
  keep(glues, name, Buffer.from(glue), path);

  const bytes = readFileSync(path.replace(/\.mjs$/, '.wasm'));
  const sections = customSections(bytes, 'attn');
  if (sections.length !== 1 || sections[0] !== variant) {
    throw new Error(`${path}: custom section "attn" holds ${JSON.stringify(sections)}, expected ["${variant}"]`);
  }
  keep(binaries, `attn-${variant}.wasm`, bytes, path);

  const types = join(dirname(path), 'attn.d.ts');
  if (existsSync(types)) copyFileSync(types, join(folder, 'attn-embind.d.ts'));
}
for (const [name, { bytes }] of [...binaries, ...glues]) writeFileSync(join(folder, name), bytes);
