/** Model files on the disk, in Node. */
import type { Stats } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AttnError } from '../args/error.js';
import { folderStorage } from './node_cache.js';

/** A single letter before a colon is a Windows drive. */
export function pathOf(location: string | URL): string | undefined {
  if (typeof location === 'string' && !/^[a-z][a-z0-9+.-]+:/i.test(location)) return location;
  const url = new URL(location);
  return url.protocol === 'file:' ? fileURLToPath(url) : undefined;
}

export const kindOf = (about: Stats) => (about.isDirectory() ? 'is a folder' : about.isFIFO() ? 'is a FIFO' : 'is a device or a socket');

export const disk = {
  pathOf,
  join: resolve,
  async size(path: string): Promise<number | undefined> {
    try {
      const about = await stat(path);
      // Opening a pipe blocks one of Node's threads, and no signal ends that.
      if (!about.isFile()) throw new AttnError('FORMAT', `loadModel: ${path} ${kindOf(about)}, expected a regular file`, { op: 'loadModel', path });
      return about.size;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
      throw error;
    }
  },
  async *read(path: string, pieceBytes: number): AsyncGenerator<Uint8Array> {
    const file = await open(path);
    try {
      const buffer = new Uint8Array(pieceBytes);
      for (;;) {
        const { bytesRead } = await file.read(buffer, 0, buffer.length); // Node before 20.12 requires offset and length
        if (bytesRead === 0) return;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  },
  storage: (op: string, cacheDir: string | undefined) => folderStorage(op, cacheDir, true),
};
