/** A model's files by their names in its folder, wherever that folder is in what was dropped or chosen. */
export function modelFiles<T>(files: readonly (readonly [path: string, file: T])[]): {
  readonly folder: string;
  readonly files: Readonly<Record<string, T>>;
} {
  const depth = (path: string) => path.split('/').length;
  const configs = files.map(([path]) => path).filter((path) => /(^|\/)config\.json$/.test(path));
  // Folders inside a model's, such as 1_Pooling, have a config.json of their own.
  const config = configs.reduce<string | undefined>((best, path) => (best === undefined || depth(path) < depth(best) ? path : best), undefined);
  const root = config?.replace(/config\.json$/, '') ?? '';
  return {
    folder: root.split('/').at(-2) ?? 'your files',
    files: Object.fromEntries(files.filter(([path]) => path.startsWith(root)).map(([path, file]) => [path.slice(root.length), file])),
  };
}
