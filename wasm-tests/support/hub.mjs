/**
 * A model hub for tests: /hub/OWNER/NAME/resolve/REVISION/FILE, in the usual layouts of published models. The worker of
 * the page /without/hub/ uses it instead of the Hub (server.mjs).
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { readSafetensorsHeader } from '../../web/lib/dist/node.js';

const plain = ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors'];
const pooled = [...plain, 'modules.json', 'sentence_bert_config.json', '1_Pooling/config.json'];

function shards(file) {
  const { tensors, dataStart } = readSafetensorsHeader(file);
  const names = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'];
  const files = {};
  const weight_map = {};
  for (const [part, name] of names.entries()) {
    const some = Object.entries(tensors).filter((_, i) => i % 2 === part);
    const pieces = some.map(([, { data_offsets }]) => file.subarray(dataStart + data_offsets[0], dataStart + data_offsets[1]));
    let at = 0;
    const described = Object.fromEntries(
      some.map(([tensor, { dtype, shape }], i) => [tensor, { dtype, shape, data_offsets: [at, (at += pieces[i].length)] }]),
    );
    for (const [tensor] of some) weight_map[tensor] = name;
    const text = Buffer.from(JSON.stringify({ __metadata__: { format: 'pt' }, ...described }));
    const size = Buffer.alloc(8);
    size.writeBigUInt64LE(BigInt(text.length));
    files[name] = Buffer.concat([size, text, ...pieces]);
  }
  return { ...files, 'model.safetensors.index.json': Buffer.from(JSON.stringify({ metadata: {}, weight_map })) };
}

const withoutArchitectures = (text) => {
  const config = JSON.parse(text);
  delete config.architectures;
  return Buffer.from(JSON.stringify(config));
};

/** Maps each repository to its revisions and their files by path; a number is the status for every request. */
export function layouts(folder) {
  const read = (name, path) => readFileSync(join(folder, name, path));
  const of = (name, paths, prefix = '') => Object.fromEntries(paths.map((path) => [prefix + path, read(name, path)]));
  const without = (files, ...names) => Object.fromEntries(Object.entries(files).filter(([name]) => !names.includes(name)));
  const bert = of('tiny-bert', plain);
  const noWeights = without(bert, 'model.safetensors');
  return {
    plain: { main: bert },
    sentences: { main: of('tiny-bert-cls', pooled) },
    legacy: {
      main: {
        ...of('tiny-bert-cls', [...plain, 'sentence_bert_config.json'], '0_Transformer/'),
        ...of('tiny-bert-cls', ['1_Pooling/config.json']),
        'modules.json': Buffer.from(read('tiny-bert-cls', 'modules.json').toString().replace('"path": ""', '"path": "0_Transformer"')),
      },
    },
    'onnx-beside': { main: { ...bert, 'onnx/model.onnx': Buffer.from('\b\x07'), 'pytorch_model.bin': Buffer.from('PK') } },
    inside: { main: of('tiny-bert', plain, 'models/small/') },
    revised: { main: {}, 'v2.0': bert, 'refs/pr/3': bert },
    'no-architectures': { main: { ...of('tiny-bert-cls', pooled), 'config.json': withoutArchitectures(read('tiny-bert-cls', 'config.json')) } },
    sharded: { main: { ...noWeights, ...shards(read('tiny-bert', 'model.safetensors')) } },
    pickle: { main: { ...noWeights, 'pytorch_model.bin': Buffer.from('PK') } },
    'onnx-only': { main: { ...noWeights, 'onnx/model.onnx': Buffer.from('\b\x07') } },
    'no-tokenizer': { main: { ...without(bert, 'tokenizer.json'), 'vocab.txt': Buffer.from('[PAD]\n') } },
    decoder: { main: { ...bert, 'config.json': Buffer.from('{"model_type":"t5","architectures":["T5ForConditionalGeneration"]}') } },
    gated: 401,
  };
}

export function hub(folder) {
  let all;
  return (request, response) => {
    const [, name, revision, path] = /^\/hub\/tests\/([\w-]+)\/resolve\/([^/]+)\/([^?]+)/.exec(request.url) ?? [];
    const moved = /^\/hub-files\/([\w-]+)\/([^/]+)\/(.+)$/.exec(request.url);
    if (!name && !moved) return request.url.startsWith('/hub/') ? (response.writeHead(401).end('no such repository'), true) : false;
    all ??= layouts(folder);
    const [repository, at, file] = (moved?.slice(1) ?? [name, revision, path]).map(decodeURIComponent);
    const found = all[repository];
    if (found === undefined || typeof found === 'number') return (response.writeHead(found ?? 401).end(), true);
    const bytes = found[at]?.[file];
    if (!bytes) response.writeHead(404, { 'x-error-code': 'EntryNotFound' }).end();
    else if (!moved && file.endsWith('.safetensors'))
      response.writeHead(302, { location: `/hub-files/${repository}/${encodeURIComponent(at)}/${file}` }).end();
    else response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes.length }).end(bytes);
    return true;
  };
}
