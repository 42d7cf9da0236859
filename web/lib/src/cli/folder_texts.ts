import { readdir, readFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { reason } from '../args/error.js';
import { decodeStrictUtf8 } from '../platform/utf8.js';
import { type Page, readHtml, readMarkdown } from './sections.js';
import { naming } from './system_error.js';

export interface FileSection {
  /** Relative to the folder, with `/`. */
  readonly path: string;
  readonly anchor: string;
  readonly title: string;
  readonly heading: string;
  readonly text: string;
  readonly [member: string]: unknown;
}

const readText = (text: string): Page => ({
  title: undefined,
  sections: [{ anchor: '', heading: '', text: text.replaceAll('\r\n', '\n').trimEnd() }].filter((section) => section.text.trim() !== ''),
});

const readers: Readonly<Record<string, (text: string) => Page>> = {
  '.md': readMarkdown,
  '.markdown': readMarkdown,
  '.html': readHtml,
  '.htm': readHtml,
  '.txt': readText,
};
const readerOf = (path: string) => readers[extname(path).toLowerCase()];

/** Sorts the paths. Links are not followed. */
export async function textFilesBelow(folder: string): Promise<string[]> {
  const found: string[] = [];
  const search = async (below: string): Promise<void> => {
    const path = join(folder, below);
    for (const entry of await naming(path, readdir(path, { withFileTypes: true }))) {
      if (entry.name.startsWith('.') || entry.name === 'node_modules') continue;
      const name = below === '' ? entry.name : `${below}/${entry.name}`;
      if (entry.isDirectory()) await search(name);
      else if (entry.isFile() && readerOf(name)) found.push(name);
    }
  };
  await search('');
  return found.sort();
}

/** Returns undefined if the file is not UTF-8. */
export async function sectionsOf(folder: string, path: string): Promise<FileSection[] | undefined> {
  const file = join(folder, path);
  const bytes = await naming(file, readFile(file));
  let text: string;
  try {
    text = decodeStrictUtf8(bytes).replace(/^\ufeff/, '');
  } catch {
    return undefined;
  }
  let page: Page;
  try {
    page = readerOf(path)!(text);
  } catch (error) {
    // The parsers call themselves for nested parts, and the stack is limited.
    throw new Error(`${file} cannot be read as ${extname(path)} (${reason(error).split('\n')[0]!})`, { cause: error });
  }
  const { title, sections } = page;
  const name = path.slice(path.lastIndexOf('/') + 1);
  return sections.map(({ anchor, heading, text: own }) => ({ path, anchor, title: title ?? name, heading, text: own }));
}
