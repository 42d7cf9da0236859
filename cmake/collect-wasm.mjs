// node collect-wasm.mjs FOLDER VARIANT=GLUE...: puts what the links have made into FOLDER, one glue file for each name
// and one attn-VARIANT.wasm for each variant, after checking that links that share a name or a variant agree. --release: and that no
// text in them asks for more of snprintf than src/bindings/libc.cpp answers.
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';

const release = process.argv.includes('--release');
const [folder, ...links] = process.argv.slice(2).filter((argument) => argument !== '--release');
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
function* sections(bytes) {
  let at = 8;
  const number = () => {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = bytes[at++];
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const id = bytes[at++];
    const size = number();
    const end = at + size;
    const length = id === 0 ? number() : 0;
    yield { id, name: bytes.toString('utf8', at, at + length), content: bytes.subarray(at + length, end) };
    at = end;
  }
}

// Formats of printf in a module: snprintf answers %g; those of the JSON reader and of std::system_error are words that nobody gets to see; the
// others are what the C++ runtime says before it ends the program, and libc.cpp has no part in that.
const knownFormats = ['%g', '<U+%.4X>', 'Unknown error %d', '%s:%d: %s', /^terminating due to %s /, /^%s failed to /];

function unknownFormats(bytes) {
  const data = [...sections(bytes)].filter(({ id }) => id === 11).map(({ content }) => content.toString('latin1'));
  const all = data.join('\0');
  // Strings lie one NUL apart. Two letters between zeros on either side are a number of 32 bits, mostly an address; so are they at the start of a
  // segment, behind the end of its offset (0x0b) and its size.
  const isNumber = (index) => (all.slice(index - 2, index) === '\0\0' || all[index - 2] === '\x0b') && all.slice(index + 2, index + 4) === '\0\0';
  const texts = [...all.matchAll(/[ -~]+/g)].filter(({ 0: text, index }) => text.length !== 2 || !isNumber(index)).map(([text]) => text);
  return texts.filter(
    (text) =>
      /%[-+#0]*(\d+|\*)?(\.(\d+|\*))?(hh?|ll?|[zjtL])?[diouxXeEfFgGaAcspn]/.test(text) &&
      !knownFormats.some((known) => (typeof known === 'string' ? known === text : known.test(text))),
  );
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
  const said = [...sections(bytes)].filter(({ id, name }) => id === 0 && name === 'attn').map(({ content }) => content.toString('utf8'));
  if (said.length !== 1 || said[0] !== variant) {
    throw new Error(`${path}: custom section "attn" holds ${JSON.stringify(said)}, expected ["${variant}"]`);
  }
  const formats = release ? unknownFormats(bytes) : [];
  if (formats.length) throw new Error(`${path}: src/bindings/libc.cpp does not print ${JSON.stringify(formats)}`);
  keep(binaries, `attn-${variant}.wasm`, bytes, path);

  const types = join(dirname(path), 'attn.d.ts');
  if (existsSync(types)) copyFileSync(types, join(folder, 'attn-embind.d.ts'));
}
for (const [name, { bytes }] of [...binaries, ...glues]) writeFileSync(join(folder, name), bytes);
