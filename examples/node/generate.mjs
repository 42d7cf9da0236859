// Continues a text with a language model and prints it while the model writes: node examples/node/generate.mjs --model FOLDER "Once upon"
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { load } from 'attn';

const usage = `node examples/node/generate.mjs [--model FOLDER] [--tokens N] [--seed N] [TEXT]

  TEXT            the start of the text, in quotes
  --model FOLDER  a language model, default testdata/models/tiny-gpt2, whose weights are random: it writes nonsense
  --tokens N      maximum number of new tokens, default 24
  --seed N        draws tokens instead of taking the likeliest`;

let values;
let texts;
try {
  ({ values, positionals: texts } = parseArgs({
    allowPositionals: true,
    options: { model: { type: 'string' }, tokens: { type: 'string' }, seed: { type: 'string' }, help: { type: 'boolean', short: 'h' } },
  }));
} catch (error) {
  console.error(`${error.message}\n\n${usage}`);
  process.exit(2);
}
if (values.help) {
  console.log(usage);
  process.exit();
}
const text = texts.join(' ') || 'The old man';

const attn = await load();
try {
  const model = await attn.loadModel(values.model ?? fileURLToPath(new URL('../../testdata/models/tiny-gpt2', import.meta.url)));
  process.stdout.write(text);
  const { ids, finishReason } = await model.generate(text, {
    maxNewTokens: Number(values.tokens ?? 24),
    doSample: values.seed !== undefined,
    seed: Number(values.seed ?? 0),
    onToken: (token) => void process.stdout.write(token.text),
  });
  console.log(`\n\n${finishReason} after ${ids.length} tokens`);
  const { perplexity } = await model.scoreTokens(text);
  console.log(`perplexity of your text: ${perplexity.toFixed(1)}`);
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
}
attn.dispose();
