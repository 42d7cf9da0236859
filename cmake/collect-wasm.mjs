// node collect-wasm.mjs [--release] FOLDER VARIANT=GLUE...: copies glue and attn-VARIANT.wasm into FOLDER if links that
// share a file made the same. --release refuses printf formats that src/bindings/libc.cpp lacks.
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

// Not WebAssembly.Module: Node 20 compiles a relaxed module only with a flag that newer versions refuse.
class Reader {
  constructor(bytes, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }
  byte() {
    return this.bytes[this.at++];
  }
  number() {
    let value = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = this.byte();
      value |= (byte & 127) << shift;
      if (byte < 128) return value;
    }
  }
  take(size) {
    return this.bytes.subarray(this.at, (this.at += size));
  }
}

function* sections(bytes) {
  const reader = new Reader(bytes, 8);
  while (reader.at < bytes.length) {
    const id = reader.byte();
    const size = reader.number();
    const end = reader.at + size;
    const name = id === 0 ? reader.take(reader.number()).toString() : '';
    yield { id, name, content: reader.take(end - reader.at) };
  }
}

function* segments(content) {
  const reader = new Reader(content);
  for (let count = reader.number(); count > 0; --count) {
    const kind = reader.number();
    if (kind > 1) throw new Error(`a data segment of kind ${kind}`);
    if (kind === 0) {
      if (reader.byte() !== 0x41) throw new Error('a data segment whose address is not a constant');
      reader.number();
      reader.byte();
    }
    yield reader.take(reader.number());
  }
}

// Formats other than %g are for messages that are never shown, or printed by the C++ runtime before it aborts; Embind
// prints %p instead of type names.
const knownFormats = ['%g', '%p', '<U+%.4X>', 'Unknown error %d', '%s:%d: %s', /^terminating due to %s /, /^%s failed to /];

function unknownFormats(bytes) {
  const data = [...sections(bytes)].filter(({ id }) => id === 11).flatMap(({ content }) => [...segments(content)]);
  // Two letters between zeros or at the start of a segment are a 32-bit number.
  const all = data.map((segment) => `\0\0${segment.toString('latin1')}`).join('\0\0');
  const isNumber = (index) => all.slice(index - 2, index) === '\0\0' && all.slice(index + 2, index + 4) === '\0\0';
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

  // web/lib passes the location of the binary, and bundlers would look for the glue's default.
  const text = readFileSync(path, 'utf8');
  const guess = new RegExp(String.raw`new URL\(["']${wasm}["'], ?import\.meta\.url\)\.href`, 'g');
  if (text.match(guess)?.length !== 1) throw new Error(`${path}: expected exactly one URL of ${wasm}`);
  const glue = text.replace(guess, '""');
  keep(glues, name, Buffer.from(glue), path);

  const bytes = readFileSync(path.replace(/\.mjs$/, '.wasm'));
  const said = [...sections(bytes)].filter(({ id, name }) => id === 0 && name === 'attn').map(({ content }) => content.toString('utf8'));
  if (said.length !== 1 || said[0] !== variant) {
    throw new Error(`${path}: custom section "attn" contains ${JSON.stringify(said)}, expected ["${variant}"]`);
  }
  const formats = release ? unknownFormats(bytes) : [];
  if (formats.length) throw new Error(`${path}: src/bindings/libc.cpp does not print ${JSON.stringify(formats)}`);
  keep(binaries, `attn-${variant}.wasm`, bytes, path);

  const types = join(dirname(path), 'attn.d.ts');
  if (existsSync(types)) copyFileSync(types, join(folder, 'attn-embind.d.ts'));
}
for (const [name, { bytes }] of [...binaries, ...glues]) writeFileSync(join(folder, name), bytes);
