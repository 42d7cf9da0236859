/** src/command/lens.cpp writes the same bytes. */
import type { TextModel } from '../attn.js';
import type { HeadKind, PatchSite } from '../lens.js';
import { attributionPatching, headScores, logitAttribution, logitLens, patchActivations } from '../lens/lens.js';
import { textOf, withModel } from './generation.js';
import { type Call, Misuse } from './options.js';
import { quoted } from './printable.js';
import { array, columns, number, object } from './written.js';

type Options = Call['options'];

/** The analyses, and the options that each takes in addition to --method, --weights and --json. */
const methods = {
  'logit-lens': ['position', 'top-k'],
  'logit-attribution': ['target', 'contrast', 'position'],
  'patch-activations': ['target', 'contrast', 'corrupted', 'site', 'position'],
  'attribution-patching': ['target', 'contrast', 'corrupted', 'site', 'position'],
  'head-scores': ['kind'],
} as const satisfies Readonly<Record<string, readonly (keyof Options)[]>>;
type Method = keyof typeof methods;

const kinds: Readonly<Record<HeadKind, string>> = {
  previousToken: 'previous-token',
  duplicateToken: 'duplicate-token',
  induction: 'induction',
  firstToken: 'first-token',
};

const ids = (list: readonly number[]) => array(list.map(String));
const words = (list: readonly string[]) => array(list.map(quoted));
const rowsOf = ({ data, dims }: { data: Float32Array; dims: readonly number[] }) =>
  Array.from({ length: dims[0]! }, (_, i) => Array.from(data.subarray(i * dims[1]!, (i + 1) * dims[1]!), number));
const table = (tensor: { data: Float32Array; dims: readonly number[] }) => array(rowsOf(tensor).map(array));

function required(options: Options, name: 'target' | 'corrupted', kind: string): string {
  const value = options[name];
  if (value === undefined) throw new Misuse(`--${name} is missing, expected a ${kind}`);
  return value as string;
}

async function printLogitLens(model: TextModel, text: string, options: Options): Promise<void> {
  const position = options.position as number | undefined;
  const result = await logitLens(model, text, {
    topK: options['top-k'] as number | undefined,
    ...(position !== undefined && { positions: [position] }),
  });
  if (options.json === undefined) {
    for (const [i, layer] of result.layers.entries())
      console.log(
        [layer, ...result.predictions[i]!.at(-1)!.map(({ token, probability }) => `${columns([token])}\t${number(probability)}`)].join('\t'),
      );
    return;
  }
  const predictions = array(
    result.predictions.map((layer) =>
      array(
        layer.map((row) =>
          array(
            row.map(({ id, token, logit, probability }) =>
              object({ id: String(id), token: quoted(token), logit: number(logit), probability: number(probability) }),
            ),
          ),
        ),
      ),
    ),
  );
  console.log(object({ tokens: words(result.tokens), layers: ids(result.layers), positions: ids(result.positions), predictions }));
}

async function printLogitAttribution(model: TextModel, text: string, options: Options): Promise<void> {
  const target = required(options, 'target', 'token');
  const { contrast, position } = options as { contrast?: string; position?: number };
  const parts = await logitAttribution(model, text, { target, contrast, position });
  const [value, embedding, biases] = [parts.value, parts.embedding, parts.biases].map(number) as [string, string, string];
  const mlps = Array.from(parts.mlps.data, number);
  if (options.json !== undefined) {
    const rest = { position: String(parts.position), value, embedding, heads: table(parts.heads), mlps: array(mlps), biases };
    console.log(object({ tokens: words(parts.tokens), ...rest }));
    return;
  }
  console.log(`${embedding}\tembedding`);
  for (const [layer, row] of rowsOf(parts.heads).entries()) {
    for (const [head, each] of row.entries()) console.log(`${each}\tlayer ${layer} head ${head}`);
    console.log(`${mlps[layer]!}\tlayer ${layer} mlp`);
  }
  console.log(`${biases}\tbiases\n${value}\ttotal`);
}

async function printPatching(model: TextModel, text: string, options: Options): Promise<void> {
  const { contrast, position, site } = options as { contrast?: string; position?: number; site?: PatchSite };
  const analyse = options.method === 'attribution-patching' ? attributionPatching : patchActivations;
  const answer = required(options, 'target', 'token');
  const result = await analyse(model, text, required(options, 'corrupted', 'text'), { answer, contrast, site, position });
  const { tokens, recovered } = result;
  if (options.json !== undefined) {
    const numbers = { clean: number(result.clean), corrupted: number(result.corrupted), recovered: table(recovered) };
    console.log(object({ clean_tokens: words(tokens.clean), corrupted_tokens: words(tokens.corrupted), ...numbers }));
    return;
  }
  const names = Array.from({ length: recovered.dims[1]! }, (_, i) => (site === 'head' ? `head ${i}` : columns([tokens.clean[i]!])));
  console.log(['layer', ...names].join('\t'));
  for (const [layer, row] of rowsOf(recovered).entries()) console.log([layer, ...row].join('\t'));
}

async function printHeadScores(model: TextModel, text: string | undefined, { kind, json }: Options): Promise<void> {
  const asked = (Object.keys(kinds) as HeadKind[]).filter((each) => kind === undefined || kinds[each] === kind);
  const { tokens, ids: list, scores } = await headScores(model, { kinds: asked, text });
  if (json !== undefined) {
    const all = object(Object.fromEntries(asked.map((each) => [kinds[each].replace('-', '_'), table(scores[each]!)])));
    console.log(object({ tokens: words(tokens), ids: ids(list), scores: all }));
    return;
  }
  for (const each of asked) for (const [layer, row] of rowsOf(scores[each]!).entries()) console.log([kinds[each], layer, ...row].join('\t'));
}

export async function runLens(call: Call): Promise<void> {
  const { paths, options } = call;
  const method = (options.method ?? 'logit-lens') as Method;
  const known: readonly string[] = [...methods[method], 'method', 'weights', 'json'];
  for (const option of Object.keys(options).sort()) if (!known.includes(option)) throw new Misuse(`lens --method ${method} takes no --${option}`);
  if (paths[1] === undefined && method !== 'head-scores') throw new Misuse('TEXT is missing');
  const text = paths[1] === undefined ? undefined : await textOf(paths[1]);
  if (method === 'logit-attribution' || method.includes('patch')) required(options, 'target', 'token');
  if (method.includes('patch')) required(options, 'corrupted', 'text');
  await withModel(call, paths[0]!, async (model) => {
    if (method === 'head-scores') return printHeadScores(model, text, options);
    if (method === 'logit-lens') return printLogitLens(model, text!, options);
    return (method === 'logit-attribution' ? printLogitAttribution : printPatching)(model, text!, options);
  });
}
