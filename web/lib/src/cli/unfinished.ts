/** Removes unfinished files if writing fails or is interrupted. */
import { rmdirSync, rmSync } from 'node:fs';
import { chmod, type FileHandle, open, rename, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { naming } from './system_error.js';

const unfinished = new Set<() => void>();
let watching = false;

function watch(): void {
  if (watching) return;
  watching = true;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => {
      for (const remove of unfinished) remove();
      process.kill(process.pid, signal); // no listener is left, so the signal ends the program
    });
}

export function removeTree(path: string): void {
  rmSync(path, { recursive: true, force: true });
}

/** Removes the folder and its parents up to `top`, as long as they are empty. */
export function removeEmpty(folder: string, top: string): void {
  try {
    for (let each = resolve(folder); each.startsWith(resolve(top)); each = dirname(each)) rmdirSync(each);
  } catch {
    // This folder has files of others.
  }
}

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

/** Keeps the output written so far. */
export class WrittenSoFar extends Error {}

/** Writes a regular file under a temporary name and renames it; writes a device or pipe directly. */
export async function replacing(path: string, work: (file: FileHandle, isFile: boolean) => Promise<void>): Promise<void> {
  const before = await stat(path).catch(() => undefined);
  const isFile = before?.isFile() ?? true;
  const beside = isFile ? `${path}.attn-${process.pid}` : path;
  const write = async () => {
    const file = await naming(path, open(beside, isFile ? 'wx' : 'w'));
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
