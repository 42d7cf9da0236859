// Shows which words support a classifier's answer and which oppose it:
// node examples/node/explain.mjs "Dull, but funny."
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { load } from 'attn';

const methods = ['integrated_gradients', 'gradient_x_input', 'attention_rollout', 'attention_gradient', 'leave_one_out'];
const usage = `node examples/node/explain.mjs [--model FOLDER] [--method METHOD] [--target LABEL] [TEXT...]

  TEXT...         texts, each in quotes
  --model FOLDER  a classifier, default testdata/models/sentiment, which knows film reviews
  --method METHOD ${methods[0]} (default), ${methods.slice(1, 3).join(', ')},
                  ${methods.slice(3).join(', ')}
  --target LABEL  a label or its number, default the answer; of a model that does not classify the number of a component
In a terminal words are coloured, blue for, orange against; elsewhere, and with NO_COLOR, each has its score.`;

let values;
let texts;
try {
  ({ values, positionals: texts } = parseArgs({
    allowPositionals: true,
    options: {
      model: { type: 'string' },
      method: { type: 'string', default: methods[0] },
      target: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  }));
  if (!methods.includes(values.method)) throw new Error(`--method is ${values.method}; it has to be one of ${methods.join(', ')}`);
} catch (error) {
  console.error(`${error.message}\n\n${usage}`);
  process.exit(2);
}
if (values.help) {
  console.log(usage);
  process.exit();
}
if (texts.length === 0) texts = ['The ending is dreadful, but the film is warm and funny.', 'The plot is dull, and the acting is dreadful.'];

const { FORCE_COLOR, NO_COLOR } = process.env;
const colored = FORCE_COLOR ? FORCE_COLOR !== '0' : !NO_COLOR && process.stdout.isTTY && process.stdout.hasColors(256);
// Backgrounds from pale to strong, in xterm's 256 colours.
const [blues, oranges] = [
  [195, 159, 117, 75],
  [230, 223, 216, 208],
];

/** Words and punctuation with the sum of their tokens' scores; truncated words have none. */
function scored(text, { scores, offsets }) {
  const words = [...text.matchAll(/[\p{L}\p{M}\p{N}]+|[^\s\p{L}\p{M}\p{N}]/gu)].map(({ 0: word, index }) => ({ word, start: index }));
  for (const [i, offset] of offsets.entries()) {
    const of = offset && words.find(({ word, start }) => start + word.length > offset[0]);
    if (of) of.score = (of.score ?? 0) + scores[i];
  }
  return words.filter(({ score }) => score !== undefined);
}

function painted(text, words) {
  const most = Math.max(...words.map(({ score }) => Math.abs(score)));
  let [line, at] = ['', 0];
  for (const { word, start, score } of words) {
    const level = Math.round((4 * Math.abs(score)) / most); // 0 to 4
    const color = (score > 0 ? blues : oranges)[level - 1];
    line += text.slice(at, start) + (color ? `\x1b[38;5;16;48;5;${color}m${word}\x1b[0m` : word);
    at = start + word.length;
  }
  return line + text.slice(at);
}

const attn = await load();
try {
  const model = await attn.loadModel(values.model ?? fileURLToPath(new URL('../../testdata/models/sentiment', import.meta.url)));
  for (const text of texts) {
    const answers = model.labels ? (await model.classify(text))[0] : [];
    const { target = answers[0]?.label } = values;
    const number = /^\d+$/.test(target) && !model.labels?.includes(target) ? Number(target) : target;
    const words = scored(text, await model.attribute(text, { method: values.method, target: number }));
    const answer = answers.find(({ label }) => label === (model.labels[number] ?? number));
    console.log(`${answer ? `${answer.label} ${answer.score.toFixed(3)}  ` : ''}${colored ? painted(text, words) : text}`);
    if (!colored) for (const { word, score } of words) console.log(`${score.toFixed(3).padStart(8)}  ${word}`);
  }
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
attn.dispose();
