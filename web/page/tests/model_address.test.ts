import { describe, expect, it } from 'vitest';
import { AddressError, nameInPath, readAddress } from '../src/model/address.ts';

const page = 'https://example.org/attn/index.html#text=a';
const read = (text: string) => readAddress(text, page);
const main = 'https://huggingface.co/owner/name/resolve/main/';

describe('a model on the Hub', () => {
  it.each([
    'owner/name',
    ' owner/name ',
    '"owner/name"',
    'https://huggingface.co/owner/name',
    'https://huggingface.co/owner/name/',
    'https://www.huggingface.co/owner/name?library=transformers#usage',
    'http://huggingface.co/owner/name',
    'huggingface.co/owner/name',
    'hf.co/owner/name',
    'https://hf.co/owner/name/tree/main',
    'https://huggingface.co/owner/name/tree/main/',
    'https://huggingface.co/owner/name/tree/main/onnx',
    'https://huggingface.co/owner/name/blob/main/config.json',
    'https://huggingface.co/owner/name/blob/main/onnx/model.onnx',
    'https://huggingface.co/owner/name/blob/main/1_Pooling/config.json',
    'https://huggingface.co/owner/name/resolve/main/model.safetensors?download=true',
    'https://huggingface.co/owner/name/raw/main/README.md',
    'https://huggingface.co/owner/name/discussions/3',
    'https://huggingface.co/api/models/owner/name',
    'git clone https://huggingface.co/owner/name',
    'https://huggingface.co/owner/name.git',
    'git@hf.co:owner/name',
    'hf://owner/name',
    main,
  ])('is recognized from %s', (text) => {
    expect(read(text)).toMatchObject({ id: 'owner/name', name: 'owner/name', location: main, host: 'huggingface.co' });
  });
  it.each([
    ['owner/name@v1.0', 'v1.0', 'owner/name@v1.0'],
    ['https://huggingface.co/owner/name/tree/v1.0', 'v1.0', 'owner/name@v1.0'],
    ['https://huggingface.co/owner/name/tree/refs%2Fpr%2F4', 'refs%2Fpr%2F4', 'owner/name@refs/pr/4'],
    ['https://huggingface.co/owner/name/blob/refs/pr/4/config.json', 'refs%2Fpr%2F4', 'owner/name@refs/pr/4'],
    ['owner/name@refs/pr/4', 'refs%2Fpr%2F4', 'owner/name@refs/pr/4'],
  ])('is recognized with its revision from %s', (text, revision, id) => {
    expect(read(text)).toMatchObject({ id, location: `https://huggingface.co/owner/name/resolve/${revision}/`, name: id });
    expect(read(id).location).toBe(read(text).location);
  });
  it('has a short commit in its name and the full commit in its address', () => {
    const commit = '0123456789abcdef0123456789abcdef01234567';
    expect(read(`owner/name@${commit}`)).toMatchObject({
      name: 'owner/name@01234567',
      location: `https://huggingface.co/owner/name/resolve/${commit}/`,
    });
  });
  it('may have no owner or be in a subfolder with its own address', () => {
    expect(read('bert-base-uncased').location).toBe('https://huggingface.co/bert-base-uncased/resolve/main/');
    expect(read('https://huggingface.co/bert-base-uncased/tree/main').id).toBe('bert-base-uncased');
    const inside = read('https://huggingface.co/owner/name/tree/main/models/small');
    expect(inside).toMatchObject({ name: 'owner/name/models/small', location: `${main}models/small/` });
    expect(read(inside.id)).toEqual(inside);
  });
  it('is recognized on a mirror', () => {
    expect(read('https://mirror.example/owner/name/tree/main')).toMatchObject({
      location: 'https://mirror.example/owner/name/resolve/main/',
      host: 'mirror.example',
      name: 'owner/name',
    });
  });
});

describe('a model folder', () => {
  it.each([
    ['https://example.com/models/my-bert', 'https://example.com/models/my-bert/', 'my-bert'],
    ['https://example.com/models/my-bert/config.json', 'https://example.com/models/my-bert/', 'my-bert'],
    ['example.com/models/my-bert', 'https://example.com/models/my-bert/', 'my-bert'],
    ['localhost:8080/my-bert/main', 'http://localhost:8080/my-bert/main/', 'my-bert'],
    ['./models/my-bert', 'https://example.org/attn/models/my-bert/', 'my-bert'],
    ['models/my-bert/', 'https://example.org/attn/models/my-bert/', 'my-bert'],
    ['a/b/my-bert', 'https://example.org/attn/a/b/my-bert/', 'my-bert'],
    ['/my-bert', 'https://example.org/my-bert/', 'my-bert'],
    ['https://example.com/m/?token=1', 'https://example.com/m/?token=1', 'm'],
  ])('is recognized from %s', (text, folder, name) => {
    expect(read(text)).toMatchObject({ id: folder, location: folder, name, hub: undefined });
    expect(read(folder).location).toBe(folder);
  });
});

describe('a GGUF file', () => {
  it.each([
    ['https://example.com/models/tiny.gguf', 'https://example.com/models/tiny.gguf', 'tiny.gguf', undefined],
    ['models/tiny.gguf', 'https://example.org/attn/models/tiny.gguf', 'tiny.gguf', undefined],
    ['tiny.gguf', 'https://example.org/attn/tiny.gguf', 'tiny.gguf', undefined],
    ['https://huggingface.co/owner/name/blob/main/q8.gguf', `${main}q8.gguf`, 'owner/name/q8.gguf', 'owner/name'],
    ['https://huggingface.co/owner/name/resolve/main/onnx/q8.gguf?download=true', `${main}onnx/q8.gguf`, 'owner/name/onnx/q8.gguf', 'owner/name'],
  ])('is recognized from %s', (text, location, name, repository) => {
    const found = read(text);
    expect(found).toMatchObject({ id: location, location, name });
    expect(found.hub?.repository).toBe(repository);
    expect(read(found.id)).toEqual(found);
  });
});

it.each([
  ['', /There is no model name/],
  ['ftp://example.org/', /only http and https/],
  ['https://huggingface.co/datasets/owner/name', /a data set/],
  ['https://huggingface.co/spaces/owner/name', /a Space/],
  ['https://huggingface.co/', /contains no model name/],
  ['C:\\models\\bert', /path on your disk/],
  ['~/models/bert', /path on your disk/],
  ['file:///models/bert', /path on your disk/],
  ['what is this?', /not a valid address/],
  ['https://example.org/100%/', /not a valid address/],
])('the address %j is rejected with an explanation', (text, message) => {
  let said = '';
  try {
    read(text);
  } catch (error) {
    expect(error).toBeInstanceOf(AddressError);
    said = (error as Error).message;
  }
  expect(said).toMatch(message);
});

it.each([
  ['models--owner--name/snapshots/0123456789abcdef0123456789abcdef01234567/', 'owner/name'],
  ['downloads/my-bert/0_Transformer/', 'my-bert'],
  ['downloads/my-bert/', 'my-bert'],
  ['', 'your files'],
])('the name for the path %j is %s', (path, name) => expect(nameInPath(path, 'your files')).toBe(name));

describe('an address with invalid UTF-8', () => {
  it.each(['https://huggingface.co/owner/%ff', 'https://example.org/models/%ff/', 'https://example.org/%e2%82/tree/main', 'models/%C0%80'])(
    'is rejected: %s',
    (text) => {
      expect(() => read(text)).toThrow(AddressError);
      expect(() => read(text)).toThrow('This is not a valid address.');
    },
  );
});
