/** Files and folders that are removed unless what writes them comes to its end: because it failed, or the program was interrupted. */
import { rmSync } from 'node:fs';
import { chmod, type FileHandle, open, rename, stat } from 'node:fs/promises';

/** Each with what removes it. */
const unfinished = new Set<() => void>();
let watching = false;

function watch(): void {
  if (watching) return;
  watching = true;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => {
      for (const remove of unfinished) remove();
      process.kill(process.pid, signal); // nobody listens any more: the program ends as by the signal
    });
}

export function removeTree(path: string): void {
  rmSync(path, { recursive: true, force: true });
}

/** `work`; where it does not come to its end, `remove` is called. */
export async function unlessFinished<T>(remove: () => void, work: () => Promise<T>): Promise<T> {
  watch();
  unfinished.add(remove);
  try {
    return await work();
  } catch (error) {
    remove();
    throw error;
  } finally {
    unfinished.delete(remove);
  }
}

/** A failure after which what was written is good. */
export class WrittenSoFar extends Error {}

/**
 * Opens `path` for `work`, which is told whether it can be gone back in. A file is written beside it, and takes its place in the end; a device or a
 * pipe is written to as it is.
 */
export async function replacing(path: string, work: (file: FileHandle, isFile: boolean) => Promise<void>): Promise<void> {
  const before = await stat(path).catch(() => undefined);
  const isFile = before?.isFile() ?? true;
  const beside = isFile ? `${path}.attn-${process.pid}` : path;
  const write = async () => {
    const file = await open(beside, isFile ? 'wx' : 'w');
    let failure: unknown;
    try {
      await work(file, isFile).catch((error: unknown) => {
        if (!(error instanceof WrittenSoFar)) throw error;
        failure = error;
      });
    } finally {
      await file.close();
    }
    if (isFile && before) await chmod(beside, before.mode & 0o777);
    if (isFile) await rename(beside, path);
    return failure;
  };
  const failure = isFile ? await unlessFinished(() => removeTree(beside), write) : await write();
  if (failure !== undefined) throw failure as WrittenSoFar;
}
