import { describe, expect, it } from 'vitest';
import { modelFiles, readyToLoad } from '../src/model/folder.ts';

const of = (...paths: string[]) => modelFiles(paths.map((path) => [path, path] as const));
const commit = '0123456789abcdef0123456789abcdef01234567';

describe('finding a model among files', () => {
  it('selects the topmost config.json with weights and ignores files outside its folder', () => {
    const { name, files } = of('m/1_Pooling/config.json', 'm/config.json', 'm/model.safetensors', 'other/x');
    expect(name).toBe('m');
    expect(files).toEqual({
      '1_Pooling/config.json': 'm/1_Pooling/config.json',
      'config.json': 'm/config.json',
      'model.safetensors': 'm/model.safetensors',
    });
  });
  it.each([
    ['without a folder', ['config.json', 'tokenizer.json'], 'your files', ['config.json', 'tokenizer.json']],
    ['in a nested folder', ['a/b/tokenizer.json', 'a/b/config.json'], 'b', ['config.json', 'tokenizer.json']],
    [
      'of an older sentence-transformers version without a config.json at the top',
      ['m/1_Pooling/config.json', 'm/0_Transformer/config.json', 'm/0_Transformer/model.safetensors', 'm/modules.json'],
      'm',
      ['0_Transformer/config.json', '0_Transformer/model.safetensors', '1_Pooling/config.json', 'modules.json'],
    ],
    [
      'in 0_Transformer if modules.json is missing',
      ['m/1_Pooling/config.json', 'm/0_Transformer/config.json', 'm/0_Transformer/model.safetensors'],
      'm',
      ['config.json', 'model.safetensors'],
    ],
    [
      'in the Hub cache',
      [`models--o--n/blobs/${commit}`, `models--o--n/snapshots/${commit}/config.json`, `models--o--n/snapshots/${commit}/model.safetensors`],
      'o/n',
      ['config.json', 'model.safetensors'],
    ],
    [
      'in a single snapshot of the Hub cache',
      [`${commit}/config.json`, `${commit}/model.safetensors`],
      'your files',
      ['config.json', 'model.safetensors'],
    ],
    [
      'with an onnx subfolder',
      ['m/onnx/config.json', 'm/onnx/model.onnx', 'm/config.json', 'm/model.safetensors'],
      'm',
      ['config.json', 'model.safetensors'],
    ],
  ])('accepts a model %s', (_, paths, name, expected) => {
    const found = of(...paths);
    expect(found.name).toBe(name);
    expect(found.problem).toBeUndefined();
    expect(Object.keys(found.files).sort()).toEqual(expect.arrayContaining(expected));
    for (const each of expected) expect(found.files[each], each).toMatch(new RegExp(`${each}$`));
  });
  it.each([[['tiny.gguf']], [['m/notes.txt', 'm/tiny.gguf']], [['m/config.json', 'm/tokenizer.json', 'm/tiny.gguf']]])(
    'accepts the GGUF file among %j',
    (paths) => expect(of(...paths)).toEqual({ name: 'tiny.gguf', files: { 'tiny.gguf': paths.at(-1) } }),
  );
  it('prefers model.safetensors to a GGUF file', () => {
    expect(Object.keys(of('m/config.json', 'm/model.safetensors', 'm/tiny.gguf').files)).toContain('model.safetensors');
  });
  it.each([
    [['notes.txt', 'my_config.json'], /no config\.json/],
    [['model.safetensors'], /model\.safetensors, but no config\.json/],
    [['bert.zip'], /archive/],
    [['a.gguf', 'b.gguf'], /several GGUF files/],
    [['downloads/bert.tar.gz', 'downloads/notes.txt'], /archive/],
    [[`models--o--n/blobs/${commit}`, 'models--o--n/refs/main'], /links/],
    [[], /no file/],
  ])('rejects %j with a cause and a fix', (paths, cause) => {
    const { problem } = of(...paths);
    expect(problem!.cause).toMatch(cause);
    expect(problem!.fix).toMatch(/^[A-Z].*\.$/);
  });
});

const text = (content: unknown) => new Blob([JSON.stringify(content)]);
const modules = text([
  { idx: 0, path: '', type: 'sentence_transformers.models.Transformer' },
  { idx: 1, path: '1_Pooling', type: 'sentence_transformers.models.Pooling' },
]);

describe('preparing a model for loading', () => {
  it('assumes mean pooling, with a note, if the pooling folder is missing', async () => {
    const { files, note } = await readyToLoad({ 'modules.json': modules, 'config.json': text({}) });
    expect(JSON.parse(await files['1_Pooling/config.json']!.text())).toMatchObject({ pooling_mode_mean_tokens: true, pooling_mode_cls_token: false });
    expect(note).toMatch(/^1_Pooling is missing.*mean/);
  });
  it('leaves complete files and an unreadable modules.json unchanged', async () => {
    const whole = { 'modules.json': modules, 'config.json': text({}), '1_Pooling/config.json': text({}) };
    expect(await readyToLoad(whole)).toEqual({ files: whole });
    const broken = { 'modules.json': new Blob(['[']), 'config.json': text({}) };
    expect(await readyToLoad(broken)).toEqual({ files: broken });
  });

  const shard = (tensors: Readonly<Record<string, readonly number[]>>): Blob => {
    let at = 0;
    const header = Object.fromEntries(
      Object.entries(tensors).map(([name, values]) => [
        name,
        { dtype: 'F32', shape: [values.length], data_offsets: [at, (at += 4 * values.length)] },
      ]),
    );
    const head = new TextEncoder().encode(JSON.stringify({ __metadata__: { format: 'pt' }, ...header }));
    const size = new DataView(new ArrayBuffer(8));
    size.setBigUint64(0, BigInt(head.length), true);
    return new Blob([size, head, Float32Array.from(Object.values(tensors).flat())]);
  };
  const sharded = {
    'model.safetensors.index.json': text({
      weight_map: { a: 'model-1-of-2.safetensors', b: 'model-2-of-2.safetensors', c: 'model-2-of-2.safetensors' },
    }),
    'model-1-of-2.safetensors': shard({ a: [1, 2, 3] }),
    'model-2-of-2.safetensors': shard({ b: [4], c: [5, 6] }),
  };
  it('joins sharded weights into one file without changing the tensors', async () => {
    const { load } = await import('attn');
    const attn = await load();
    const { files } = await readyToLoad({ ...sharded, 'config.json': text({}) });
    expect(Object.keys(files).sort()).toEqual(['config.json', 'model.safetensors', 'model.safetensors.index.json']);
    const tensors = attn.parseSafetensors(new Uint8Array(await files['model.safetensors']!.arrayBuffer()));
    expect([...tensors].map(([name, { data }]) => [name, [...data]])).toEqual([
      ['a', [1, 2, 3]],
      ['b', [4]],
      ['c', [5, 6]],
    ]);
    attn.dispose();
  });
  it('names a missing shard', async () => {
    const { 'model-2-of-2.safetensors': _, ...some } = sharded;
    await expect(readyToLoad(some)).rejects.toThrow(/names model-2-of-2\.safetensors, which is not among the files/);
  });
  const part = 'model-1-of-2.safetensors';
  const headed = (header: string, length = header.length) => {
    const size = new DataView(new ArrayBuffer(8));
    size.setBigUint64(0, BigInt(length), true);
    return new Blob([size, header]);
  };
  it.each([
    ['model.safetensors.index.json', new Blob(['{']), 'model.safetensors.index.json is not a JSON object'],
    ['model.safetensors.index.json', new Blob(['null']), 'model.safetensors.index.json is not a JSON object'],
    ['model.safetensors.index.json', new Blob(['{"weight_map": 3}']), 'model.safetensors.index.json names no files in weight_map'],
    [part, new Blob(['x']), `${part}: readSafetensorsHeader: bytes has 1 elements, expected at least 8`],
    [part, headed('{}', 9), `${part}: readSafetensorsHeader: bytes has 10 elements, expected at least 17`],
    [part, headed('[1]'), `${part}: readSafetensorsHeader: the header is not valid, expected a JSON object of tensors`],
    [part, headed('{"a": {"dtype": "F32"}}'), `${part}: readSafetensorsHeader: "a" is not valid, expected dtype, shape and data_offsets`],
    [part, headed('{"a": null}'), `${part}: readSafetensorsHeader: "a" is not valid, expected dtype, shape and data_offsets`],
  ])('names a damaged shard or index: %s', (name, file, message) =>
    expect(readyToLoad({ ...sharded, [name]: file })).rejects.toThrow(new Error(message)),
  );
});
