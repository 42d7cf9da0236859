// node compare.mjs MODEL FILE: how far attn/lens is from FILE, which activations.py has written.
import { readFileSync } from 'node:fs';
import { attributionPatching, logitAttribution, logitLens, patchActivations, trace } from '../../../web/lib/dist/lens.js';
import { load } from '../../../web/lib/dist/node.js';

const [path, file] = process.argv.slice(2);
const attn = await load();
const model = await attn.loadModel(path);
const expected = attn.parseSafetensors(readFileSync(file));
const numbers = (name) => [...expected.get(name).data];
const [clean, corrupted, [answer, contrast]] = ['clean', 'corrupted', 'answers'].map(numbers);

function report(name, got, wanted) {
  if (got.length !== wanted.length) throw new Error(`${name}: ${got.length} numbers, expected ${wanted.length}`);
  const largest = Math.max(...wanted.map(Math.abs));
  const difference = Math.max(...wanted.map((value, i) => Math.abs(got[i] - value)));
  console.log(`${name.padEnd(22)} ${difference.toExponential(1)} of ${largest.toExponential(1)}: ${(difference / largest).toExponential(1)}`);
}

const names = [...expected.keys()].filter((name) => name.startsWith('blocks.'));
const cache = await trace(model, clean, names);
const hookOf = (name) => name.replace(/^blocks\.\d+\./, '');
for (const hook of new Set(names.map(hookOf))) {
  const of = names.filter((name) => hookOf(name) === hook);
  report(
    hook,
    of.flatMap((name) => Array.from(cache.get(name).data, (value) => (value === -Infinity ? 0 : value))),
    of.flatMap(numbers),
  );
}
const topK = expected.get('lens.ids').dims[1];
const { predictions } = await logitLens(model, clean, { positions: [clean.length - 1], topK });
const tokens = predictions.flatMap(([list]) => list);
const ids = numbers('lens.ids');
console.log(`logit lens: ${tokens.filter(({ id }, i) => id === ids[i]).length} of ${ids.length} tokens are equal`);
report(
  'logit lens',
  tokens.map(({ logit }) => logit),
  numbers('lens.logits'),
);
const parts = await logitAttribution(model, clean, { target: answer, contrast });
report('heads of a logit', parts.heads.data, numbers('parts.heads'));
report('MLPs of a logit', parts.mlps.data, numbers('parts.mlps'));
report('embedding of a logit', [parts.embedding], numbers('parts.embedding'));
for (const site of ['residual', 'attention', 'mlp', 'head']) {
  const options = { answer, contrast, site };
  if (expected.has(`patched.${site}`))
    report(`patched ${site}`, (await patchActivations(model, clean, corrupted, options)).recovered.data, numbers(`patched.${site}`));
  report(`attributed ${site}`, (await attributionPatching(model, clean, corrupted, options)).recovered.data, numbers(`attributed.${site}`));
}
attn.dispose();
