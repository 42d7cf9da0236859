import { expect, it } from 'vitest';
import { modelFiles } from '../src/model_folder.ts';

const of = (...paths: string[]) => modelFiles(paths.map((path) => [path, path] as const));

it('the folder is where the uppermost config.json is; what lies outside of it is left out', () => {
  const { folder, files } = of('m/1_Pooling/config.json', 'm/config.json', 'm/model.safetensors', 'other/x');
  expect(folder).toBe('m');
  expect(files).toEqual({
    '1_Pooling/config.json': 'm/1_Pooling/config.json',
    'config.json': 'm/config.json',
    'model.safetensors': 'm/model.safetensors',
  });
});
it('files without a folder', () => {
  expect(of('config.json', 'tokenizer.json')).toEqual({
    folder: 'your files',
    files: { 'config.json': 'config.json', 'tokenizer.json': 'tokenizer.json' },
  });
});
it('a folder in a folder', () => {
  expect(of('a/b/tokenizer.json', 'a/b/config.json')).toMatchObject({ folder: 'b', files: { 'tokenizer.json': 'a/b/tokenizer.json' } });
});
it('no config.json: all that is there, for the loader to say what is missing', () => {
  expect(of('notes.txt', 'my_config.json').files).toEqual({ 'notes.txt': 'notes.txt', 'my_config.json': 'my_config.json' });
});
