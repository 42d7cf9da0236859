/** Words errors as the native program does. */
import { getSystemErrorMap } from 'node:util';
import { reason } from '../args/error.js';

/** Returns "PATH: No such file or directory" for errors of the operating system. */
export function systemReason(error: unknown): string {
  const { code, errno, path: source, dest } = (error ?? {}) as NodeJS.ErrnoException & { readonly dest?: string };
  const path = dest ?? source; // a file is renamed from a temporary name
  // Node's own words for EISDIR are "illegal operation on a directory".
  const text = code === 'EISDIR' ? 'is a directory' : errno === undefined ? undefined : getSystemErrorMap().get(errno)?.[1];
  if (text === undefined || path === undefined) return reason(error);
  return `${path}: ${text.replace(/^./, (letter) => letter.toUpperCase())}`;
}

/** Names the path that the user gave, not a temporary one, in errors of the operating system. */
export async function naming<T>(path: string, result: Promise<T>): Promise<T> {
  try {
    return await result;
  } catch (error) {
    if (error instanceof Error && 'errno' in error) Object.assign(error, { path });
    throw error;
  }
}
