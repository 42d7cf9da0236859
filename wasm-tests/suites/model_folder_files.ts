/**
 * Compares models that use additional files of a folder with sentence-transformers and transformers; testdata/README.md
 * describes the data file.
 */
import type { Attn, Tensor, TextModel } from 'attn';
import { load as loadWorker } from 'attn/worker';
import { assert } from 'chai';
import { assertRejects } from '../support/errors.ts';
import { readGoldenFile } from '../support/golden.ts';
import { bytes, host, loadHere, settledHeap, setup } from '../support/host.ts';
import { tolerance } from '../support/model_cases.ts';
import { assertClose, assertDims, assertSameBits } from '../support/tensors.ts';

type Files = Record<string, Uint8Array<ArrayBuffer> | string>;
type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };
interface FolderCase {
  readonly name: string;
  readonly checkpoint: string;
  readonly files: Readonly<Record<string, Json>>;
  readonly texts: readonly string[] | readonly (readonly [string, string])[];
  readonly options: { readonly prompt?: string; readonly promptName?: string; readonly normalize?: boolean };
  readonly base?: string;
  readonly expected: Readonly<Record<'embedding' | 'logits' | 'scores', number>>;
}

const isObject = (value: Json | undefined): value is { readonly [name: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

function merged(value: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const result: Record<string, Json> = isObject(value) ? { ...value } : {};
  for (const [name, part] of Object.entries(patch)) {
    if (part === null) delete result[name];
    else result[name] = merged(result[name], part);
  }
  return result;
}

const own = ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors'];
const beside = ['modules.json', '1_Pooling/config.json', 'sentence_bert_config.json', 'config_sentence_transformers.json'];
const stock = new Map<string, Files>();

async function filesOf(checkpoint: string): Promise<Files> {
  const names = checkpoint === 'tiny-bert-cls' ? [...own, ...beside] : own;
  if (!stock.has(checkpoint))
    stock.set(
      checkpoint,
      Object.fromEntries(await Promise.all(names.map(async (name) => [name, await bytes(`testdata/models/${checkpoint}/${name}`)] as const))),
    );
  return { ...stock.get(checkpoint)! };
}

const textOf = (file: Uint8Array | string) => (typeof file === 'string' ? file : new TextDecoder().decode(file));
function change(files: Files, changes: Readonly<Record<string, Json>>): Files {
  for (const [name, patch] of Object.entries(changes)) {
    const before = files[name];
    if (patch === null) delete files[name];
    else files[name] = JSON.stringify(merged(before === undefined ? undefined : (JSON.parse(textOf(before)) as Json), patch));
  }
  return files;
}

describe('model folders, compared with sentence-transformers and transformers', () => {
  let attn: Attn;
  let cases: readonly FolderCase[];
  let tensors: Map<string, Tensor>;
  before(async () => {
    attn = await loadHere();
    const golden = await readGoldenFile('models/folders');
    cases = golden.cases as unknown as readonly FolderCase[];
    tensors = attn.parseSafetensors(golden.bytes);
  });
  after(() => attn.dispose());

  async function folderOf(c: FolderCase): Promise<Files> {
    const stored = await filesOf(c.checkpoint);
    const files = change(c.base ? Object.fromEntries(Object.entries(stored).map(([name, file]) => [`${c.base}/${name}`, file])) : stored, c.files);
    for (const folder of Object.keys(c.files).flatMap((name) => /^\d_Dense(?=\/config\.json$)/.exec(name) ?? [])) {
      const parts = ['linear.weight', 'linear.bias'].flatMap((part) => {
        const tensor = tensors.get(`${c.name}/${folder}/${part}`);
        return tensor ? [[part, tensor] as const] : [];
      });
      files[`${folder}/model.safetensors`] = attn.writeSafetensors(Object.fromEntries(parts)) as Uint8Array<ArrayBuffer>;
    }
    return files;
  }

  async function compute(model: TextModel, { texts, options }: FolderCase, what: string): Promise<Tensor> {
    if (what === 'embedding') return model.embed(texts as readonly string[], options);
    if (what === 'logits') return model.forward(model.tokenize(texts)).logits!;
    const labels = model.labels!;
    const scores = await model.classify(texts);
    const data = scores.flatMap((of) => labels.map((label) => of.find((each) => each.label === label)!.score));
    return { data: Float32Array.from(data), dims: [texts.length, labels.length] };
  }

  async function embedOf(files: Files): Promise<Tensor> {
    const model = await attn.loadModel(files);
    const vector = await model.embed('the film was good');
    model.dispose();
    return vector;
  }

  it('every case', async () => {
    assert.isAtLeast(cases.length, 36);
    const wrong: string[] = [];
    for (const c of cases)
      try {
        const model = await attn.loadModel(await folderOf(c));
        for (const [what, error] of Object.entries(c.expected))
          assertClose(await compute(model, c, what), tensors.get(`${c.name}/expected.${what}`)!, tolerance(error));
        model.dispose();
      } catch (thrown) {
        wrong.push(`${c.name}: ${(thrown as Error).message}`);
      }
    assert.deepEqual(wrong, []);
  });

  it('a pooling given in the call takes precedence over the folder', async () => {
    const texts = ['A happy person smiles.', '', 'Was it bad?'];
    const stockModel = await attn.loadModel(await filesOf('tiny-bert-cls'));
    const flags = { lasttoken: 'lasttoken', weightedmean: 'weightedmean_tokens', mean_sqrt_len: 'mean_sqrt_len_tokens', max: 'max_tokens' } as const;
    for (const pooling of Object.keys(flags) as (keyof typeof flags)[]) {
      const mode = { pooling_mode_cls_token: false, [`pooling_mode_${flags[pooling]}`]: true };
      const model = await attn.loadModel(change(await filesOf('tiny-bert-cls'), { '1_Pooling/config.json': mode }));
      assertSameBits(await stockModel.embed(texts, { pooling, batchSize: 2 }), await model.embed(texts), pooling);
      model.dispose();
    }
    stockModel.dispose();
  });

  it("vectors have the width of the folder's last module, also without texts, and a pooling that Dense does not accept is refused", async () => {
    const find = async (name: string) => attn.loadModel(await folderOf(cases.find((c) => c.name === name)!));
    const [one, two, several] = [await find('Dense'), await find('Dense after two poolings'), await find('three poolings by their names')];
    assertDims(await one.embed([]), [0, 20]);
    assertDims(await one.embed([], { pooling: 'cls' }), [0, 20]);
    assertDims(await two.embed([]), [0, 12]);
    assertDims(await several.embed([]), [0, 96]);
    assertDims(await several.embed(['a'], { pooling: 'cls' }), [1, 32]);
    await assertRejects(two.embed(['a'], { pooling: 'cls' }), 'CONFIG', ['pooling', '64', '32']);
    for (const model of [one, two, several]) model.dispose();
  });

  it('prompts: unknown ones are refused with a list, and their tokens count towards the length', async () => {
    const files = change(await filesOf('tiny-bert-cls'), { 'config_sentence_transformers.json': { prompts: { topic: 'the film ' } } });
    const model = await attn.loadModel(files);
    assert.deepEqual(model.prompts, { query: '', document: '', topic: 'the film ' });
    assert.isTrue(Object.isFrozen(model.prompts));
    assert.deepEqual((await attn.loadModel(await filesOf('tiny-bert'))).prompts, { query: '', document: '' });
    const { detail } = await assertRejects(model.embed('a', { promptName: 'topics' }), 'CONFIG', ['promptName', 'query', 'document', 'topic']);
    assert.deepEqual([detail.op, detail.argument, detail.got], ['embed', 'promptName', '"topics"']);
    await assertRejects(model.embed('a', { promptName: 5 as never }), 'ARGUMENT', ['promptName']);
    await assertRejects(model.embed('a', { promptName: 'toString' }), 'CONFIG', ['promptName']);
    await assertRejects(model.embed('a', { prompt: null as never }), 'ARGUMENT', ['prompt']);
    assertSameBits(await model.embed(['was bad', ''], { promptName: 'topic' }), await model.embed(['the film was bad', 'the film ']));
    const long = await assertRejects(model.embed(['a', 'bad'], { prompt: 'the film '.repeat(20), truncation: false }), 'OUT_OF_RANGE', ['16']);
    assert.equal(long.detail.index, 0);
    model.dispose();
    for (const [bad, code, word] of [
      [{ prompts: {}, default_prompt_name: 'topic' }, 'CONFIG', 'default_prompt_name'],
      [{ prompts: { topic: 5 } }, 'CONFIG', 'prompts.topic'],
      [{ prompts: 'topic' }, 'CONFIG', 'prompts'],
      [[], 'FORMAT', 'object'],
    ] as const)
      await assertRejects(attn.loadModel({ ...files, 'config_sentence_transformers.json': JSON.stringify(bad) }), code, [word]);
  });

  it('module paths may begin with ./ and end with a slash', async () => {
    const files = await filesOf('tiny-bert-cls');
    const expected = await embedOf(files);
    const modules = JSON.parse(textOf(files['modules.json'])) as { path: string }[];
    for (const pooling of ['1_Pooling/', './1_Pooling', './1_Pooling/'])
      for (const own of ['', '.', './'])
        assertSameBits(
          await embedOf({ ...files, 'modules.json': JSON.stringify(modules.map((each, i) => ({ ...each, path: [own, pooling][i] ?? each.path }))) }),
          expected,
          `${own}, ${pooling}`,
        );
  });

  it('rank puts the default prompt before the query, classify does not', async () => {
    const modules = [{ idx: 0, name: '0', path: '', type: 'sentence_transformers.base.modules.transformer.Transformer' }];
    const oneLabel = { 'config.json': { id2label: { 0: 'LABEL_0', 1: null, 2: null } } };
    const files = change(await filesOf('tiny-bert'), oneLabel);
    const head = new Map(
      Array.from(attn.parseSafetensors(files['model.safetensors'] as Uint8Array), ([name, { data, dims }]) => {
        const size = dims.slice(1).reduce((a, b) => a * b, 1);
        return [name, name.startsWith('classifier.') ? { data: data.slice(0, size), dims: [1, ...dims.slice(1)] } : { data, dims }] as const;
      }),
    );
    files['model.safetensors'] = attn.writeSafetensors(head) as Uint8Array<ArrayBuffer>;
    files['modules.json'] = JSON.stringify(modules);
    const prompts = { model_type: 'CrossEncoder', default_prompt_name: 'search', prompts: { search: 'the film ' } };
    const [plain, prompted] = [
      await attn.loadModel(files),
      await attn.loadModel({ ...files, 'config_sentence_transformers.json': JSON.stringify(prompts) }),
    ];
    const documents = ['It was bad.', 'A happy person smiles.'];
    const ranked = await prompted.rank('was good', documents);
    assert.deepEqual(ranked, await plain.rank('the film was good', documents));
    assert.notDeepEqual(ranked, await plain.rank('was good', documents));
    assert.deepEqual(await prompted.classify([['was good', 'bad']]), await plain.classify([['was good', 'bad']]));
    for (const model of [plain, prompted]) model.dispose();
  });

  it("a cross-encoder's activation applies to pairs, and to single texts if there is one label", async () => {
    const activation = { 'config.json': { sentence_transformers: { activation_fn: 'torch.nn.modules.linear.Identity' } } };
    const [named, plain] = [await attn.loadModel(change(await filesOf('tiny-bert'), activation)), await attn.loadModel(await filesOf('tiny-bert'))];
    assert.deepEqual(await named.classify('the film was good'), await plain.classify('the film was good'));
    const [scores] = await named.classify([['the film', 'was good']]);
    const { data } = named.forward(named.tokenize([['the film', 'was good']])).logits!;
    for (const { label, score } of scores!) assert.equal(score, data[named.labels!.indexOf(label)]);
    for (const model of [named, plain]) model.dispose();
  });

  it("Python's non-JSON numbers are accepted in all files except tokenizer.json, a byte order mark in none", async () => {
    const stored = await filesOf('tiny-bert-cls');
    const expected = await embedOf(stored);
    for (const name of [...own, ...beside]) {
      if (name === 'model.safetensors') continue;
      await assertRejects(attn.loadModel({ ...stored, [name]: `\ufeff${textOf(stored[name])}` }), 'FORMAT', [name]);
      const unread = textOf(stored[name]).replace(/^(\s*\[?\s*\{)/, (start) => `${start}"unread": [NaN, -Infinity, Infinity, "a NaN\\", NaN"],`);
      if (name === 'tokenizer.json') await assertRejects(attn.loadModel({ ...stored, [name]: unread }), 'FORMAT', [name]);
      else assertSameBits(await embedOf({ ...stored, [name]: unread }), expected, name);
    }
    const config = textOf(stored['config.json']).replace(/"layer_norm_eps":[^,]*/, '"layer_norm_eps": NaN');
    await assertRejects(attn.loadModel({ ...stored, 'config.json': config }), 'CONFIG', ['layer_norm_eps', 'NaN']);
  });

  it('unused tensors are ignored and listed in a note', async () => {
    const stored = await filesOf('tiny-bert');
    const model = await attn.loadModel(stored);
    assert.deepEqual(model.notes, []);
    const vector = await model.embed('good');
    model.dispose();
    for (const architectures of [null, ['BertModel']]) {
      const headless = await attn.loadModel(change({ ...stored }, { 'config.json': { architectures } }));
      assert.equal(headless.task, 'embedding');
      assert.lengthOf(headless.notes, 1);
      for (const word of ['model.safetensors', '2 tensors', 'classifier.bias, classifier.weight']) assert.include(headless.notes[0], word);
      assertSameBits(await headless.embed('good'), vector);
      assert.throws(() => (headless.notes as string[]).push('x'), TypeError);
      headless.dispose();
    }
  });

  it('a model has the tokens of files next to tokenizer.json, and export() writes these files', async () => {
    const stored = change(await filesOf('tiny-bert-cls'), { 'tokenizer_config.json': { additional_special_tokens: ['[XX]'] } });
    const files = { ...stored, 'special_tokens_map.json': '{"ent_token":"[YY]"}', 'added_tokens.json': '{"good":289,"bad bad":500}' };
    const model = await attn.loadModel(files);
    const tokens = ['[CLS]', 'bad bad', '[XX]', '[YY]', '[SEP]'];
    assert.deepEqual(model.tokenize('bad bad[XX][YY]').tokens[0], tokens);
    const again = await attn.loadModel(await model.export());
    assert.deepEqual(again.tokenize('bad bad[XX][YY]').tokens[0], tokens);
    const split = await attn.loadModel(change({ ...files }, { 'tokenizer_config.json': { split_special_tokens: true } }));
    assert.notInclude(split.tokenize('a [XX] b').tokens[0], '[XX]');
    for (const each of [model, again, split]) each.dispose();
    const decoder = await attn.loadModel(change({ ...files }, { 'tokenizer_config.json': { added_tokens_decoder: {} } }));
    assert.notInclude(decoder.tokenize('bad bad [YY]').tokens[0], 'bad bad');
    decoder.dispose();
  });

  it('a prompt excluded from pooling: all of its tokens, whether or not the tokenizer adds a final token', async () => {
    const pooling = { pooling_mode_cls_token: false, pooling_mode_mean_tokens: true, include_prompt: false };
    const stored = change(await filesOf('tiny-bert-cls'), { '1_Pooling/config.json': pooling });
    const [prompt, text] = ['the film ', 'was not bad'];
    for (const [files, ends] of [
      [stored, 1],
      [change({ ...stored }, { 'tokenizer.json': { post_processor: null } }), 0],
    ] as const) {
      const model = await attn.loadModel(files);
      const skipped = model.tokenize(prompt).dims[1]! - ends;
      const { lastHiddenState } = model.forward(model.tokenize(prompt + text));
      const [, rows, width] = lastHiddenState.dims as [number, number, number];
      const mean = Float32Array.from({ length: width }, (_, i) => {
        let sum = 0;
        for (let row = skipped; row < rows; row++) sum += lastHiddenState.data[row * width + i]!;
        return sum / (rows - skipped);
      });
      assertClose(await model.embed(text, { prompt, normalize: false }), { data: mean, dims: [1, width] }, 1e-6);
      model.dispose();
    }
  });

  it('an empty file is FORMAT and is not treated as missing', async () => {
    const files = await filesOf('tiny-bert-cls');
    const start = settledHeap(attn);
    for (const name of [...own, ...beside])
      for (const empty of ['', new Uint8Array(0)])
        await assertRejects(attn.loadModel({ ...files, [name]: empty }), 'FORMAT', [name === 'model.safetensors' ? 'safetensors' : name]);
    const dense = await folderOf(cases.find((c) => c.name === 'Dense')!);
    for (const name of ['2_Dense/config.json', '2_Dense/model.safetensors'])
      await assertRejects(attn.loadModel({ ...dense, [name]: '' }), 'FORMAT', [name]);
    assert.equal(settledHeap(attn), start);
  });

  it('a first module other than Transformer is UNSUPPORTED with its name, whatever else the folder has', async () => {
    const kinds = ['base.modules.router.Router', 'sentence_transformer.modules.static_embedding.StaticEmbedding'];
    for (const type of [...kinds, 'sparse_encoder.modules.mlm_transformer.MLMTransformer']) {
      const first = { idx: 0, name: '0', path: '', type: `sentence_transformers.${type}` };
      const others = { 'modules.json': JSON.stringify([first]) };
      await assertRejects(attn.loadModel(others), 'UNSUPPORTED', ['modules.json', type.replace(/^.*\./, '')]);
    }
  });

  it('files named by modules.json must exist, in folders of the model', async () => {
    const dense = await folderOf(cases.find((c) => c.name === 'Dense')!);
    for (const name of ['1_Pooling/config.json', '2_Dense/config.json', '2_Dense/model.safetensors']) {
      const { [name]: _, ...others } = dense;
      await assertRejects(attn.loadModel(others), 'FORMAT', [name, 'modules.json']);
    }
    const { '2_Dense/model.safetensors': _, ...pickled } = dense;
    await assertRejects(attn.loadModel({ ...pickled, '2_Dense/pytorch_model.bin': 'PK' }), 'UNSUPPORTED', [
      '2_Dense/pytorch_model.bin',
      'SentenceTransformer',
    ]);
    const files = await filesOf('tiny-bert-cls');
    const modules = (path: string) =>
      JSON.stringify((JSON.parse(textOf(files['modules.json'])) as object[]).map((each, i) => (i === 1 ? { ...each, path } : each)));
    for (const path of ['../other', '/etc', 'https://example.org', '..', 'a/b', 'a'.repeat(200)])
      await assertRejects(attn.loadModel({ ...files, 'modules.json': modules(path) }), 'UNSUPPORTED', ['path']);
    const moved = { ...files, 'modules.json': modules('pooled.1'), 'pooled.1/config.json': files['1_Pooling/config.json'] };
    const [a, b] = [await attn.loadModel(files), await attn.loadModel(moved)];
    assertSameBits(await b.embed('good'), await a.embed('good'));
    for (const model of [a, b]) model.dispose();
    const many = JSON.stringify(Array(9).fill({ type: 'x.Dense', path: '2_Dense' }));
    await assertRejects(attn.loadModel({ ...files, 'modules.json': many }), 'UNSUPPORTED', ['the number of modules', 'is 9, expected at most 8']);
    for (const bad of ['{}', '[5]', 'null', '[{"type": 5, "path": ""}]']) {
      const error = await attn.loadModel({ ...files, 'modules.json': bad }).then(
        () => assert.fail(`${bad} was accepted`),
        (thrown: unknown) => thrown as Error & { code: string },
      );
      assert.include(['FORMAT', 'UNSUPPORTED'], error.code, bad);
    }
  });

  // The checked builds lack the second binary that attn/worker needs.
  if (host.build === 'release')
    it('prompts and poolings through attn/worker', async () => {
      const remote = await loadWorker(setup);
      const files = change(await filesOf('tiny-bert-cls'), { 'config_sentence_transformers.json': { prompts: { topic: 'the film ' } } });
      const [near, far] = [await attn.loadModel(files), await remote.loadModel(files)];
      for (const options of [{ promptName: 'topic' }, { prompt: 'a ' }, { pooling: 'lasttoken' }, { pooling: 'weightedmean' }] as const)
        assertSameBits(await far.embed('was bad', options), await near.embed('was bad', options));
      near.dispose();
      await remote.dispose();
    });
});
