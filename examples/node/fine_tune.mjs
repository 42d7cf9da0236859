// Trains a classifier on a CSV of texts and labels and saves it for transformers:
// node examples/node/fine_tune.mjs texts.csv --out FOLDER
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { load } from 'attn';

const usage = `node examples/node/fine_tune.mjs FILE --out FOLDER [--model FOLDER] [--layers LAYERS] [--epochs N] [--rate RATE]

  FILE            CSV with a text and its label in each line; a first line "text,label" may name the columns
  --out FOLDER    where the model goes, for AutoModelForSequenceClassification.from_pretrained
  --model FOLDER  what it begins with, default testdata/models/sentiment
  --layers LAYERS head (default), all, or a number: the last layers and the head
  --epochs N      default 3
  --rate RATE     learning rate, default 5e-5, of the head alone 1e-3
A fifth of the texts is held out, and says how good it is.`;

/** Parses CSV (RFC 4180): fields may be quoted, with quotes inside doubled. */
function readCsv(csv) {
  const lines = [];
  let [line, start, fields, at] = [1, 1, [], 0];
  const wrong = (what) => {
    throw new Error(`line ${start}: ${what}`);
  };
  while (at < csv.length) {
    let field = '';
    if (csv[at] === '"') {
      const [quoted] = /^"(?:[^"]|"")*"?/.exec(csv.slice(at));
      if (!/^"(?:[^"]|"")*"$/.test(quoted) || quoted.length < 2) wrong('a quote opens and does not close');
      field = quoted.slice(1, -1).replaceAll('""', '"');
      line += field.split('\n').length - 1;
      at += quoted.length;
      if (at < csv.length && !/[,\r\n]/.test(csv[at])) wrong(`${JSON.stringify(csv[at])} after a closing quote, expected a comma or the line's end`);
    } else {
      [field] = /^[^,\r\n]*/.exec(csv.slice(at));
      if (field.includes('"')) wrong('a quote in the middle of a field: quote all of it, and write its own quotes twice');
      at += field.length;
    }
    fields.push(field);
    const [end] = /^(,|\r?\n|)/.exec(csv.slice(at));
    at += end.length;
    if (end === ',') {
      if (at === csv.length) fields.push('');
      else continue;
    }
    if (fields.length > 1 || fields[0] !== '') lines.push({ line: start, fields });
    fields = [];
    start = ++line;
  }
  return lines;
}

function examplesOf(csv) {
  const lines = readCsv(csv.replace(/^\uFEFF/, ''));
  const names = lines[0]?.fields.map((name) => name.trim().toLowerCase()) ?? [];
  const named = names.includes('text') && names.includes('label');
  const [text, label] = named ? [names.indexOf('text'), names.indexOf('label')] : [0, 1];
  const width = named ? names.length : 2;
  return lines.slice(named ? 1 : 0).map(({ line, fields }) => {
    if (fields.length !== width) throw new Error(`line ${line}: ${fields.length} fields, expected ${width}${named ? '' : ', a text and a label'}`);
    for (const [name, i] of [
      ['text', text],
      ['label', label],
    ])
      if (fields[i].trim() === '') throw new Error(`line ${line}: the ${name} is empty`);
    return { text: fields[text], label: fields[label].trim() };
  });
}

let values;
let file;
let layers;
try {
  const parsed = parseArgs({
    allowPositionals: true,
    options: {
      out: { type: 'string' },
      model: { type: 'string' },
      layers: { type: 'string', default: 'head' },
      epochs: { type: 'string', default: '3' },
      rate: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  ({ values } = parsed);
  [file] = parsed.positionals;
  if (!values.help) {
    if (parsed.positionals.length !== 1) throw new Error('expected one CSV file');
    if (!values.out) throw new Error('--out is missing: the folder that the model goes into');
    if (!/^(head|all|\d+)$/.test(values.layers)) throw new Error(`--layers is ${values.layers}; it has to be head, all or a number`);
    if (!/^[1-9]\d*$/.test(values.epochs)) throw new Error(`--epochs is ${values.epochs}; it has to be a whole number from 1 on`);
    if (values.rate !== undefined && !(Number(values.rate) > 0)) throw new Error(`--rate is ${values.rate}; it has to be a number above 0`);
    layers = /^\d+$/.test(values.layers) ? Number(values.layers) : values.layers;
  }
} catch (error) {
  console.error(`${error.message}\n\n${usage}`);
  process.exit(2);
}
if (values.help) {
  console.log(usage);
  process.exit();
}

let attn;
try {
  const csv = await readFile(file, 'utf8');
  let examples;
  try {
    examples = examplesOf(csv);
  } catch (error) {
    throw new Error(`${file}, ${error.message}`);
  }
  const labels = [...new Set(examples.map(({ label }) => label))].sort();
  if (labels.length < 2) throw new Error(`${file} has ${labels.length === 0 ? 'no texts' : `one label, ${labels[0]}`}; two labels at the least`);

  attn = await load();
  const model = await attn.loadModel(values.model ?? fileURLToPath(new URL('../../testdata/models/sentiment', import.meta.url)));
  console.log(`${examples.length} texts, labels ${labels.join(', ')}`);
  const { isTTY } = process.stdout;
  const { validationAccuracy } = await model.fineTune(examples, {
    layers,
    labels,
    epochs: Number(values.epochs),
    ...(values.rate && { learningRate: Number(values.rate) }),
    validation: 0.2,
    onProgress({ epoch, step, steps, loss, validationAccuracy: right }) {
      const text = `epoch ${epoch}, step ${step} of ${steps}, loss ${loss.toFixed(3)}`;
      if (right !== undefined) console.log(`${isTTY ? '\r\x1b[K' : ''}${text}, ${(100 * right).toFixed(1)} % of held-out texts right`);
      else if (isTTY) process.stdout.write(`\r\x1b[K${text}`);
    },
  });
  for (const [name, bytes] of Object.entries(await model.export())) {
    await mkdir(dirname(join(values.out, name)), { recursive: true });
    await writeFile(join(values.out, name), bytes);
  }
  const how = validationAccuracy === undefined ? '' : `, ${(100 * validationAccuracy).toFixed(1)} % right`;
  console.log(`written to ${values.out}${how}`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
attn?.dispose();
