/** Checks links between pages of a built site. */
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';

export const filesOf = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => relative(folder, join(each.parentPath, each.name)));

const unescaped = (text) => text.replaceAll('&amp;', '&');

/** Lists missing files, missing anchors, and files loaded from other hosts. */
export function faultyLinks(folder, outside) {
  const pages = new Map(
    filesOf(folder).flatMap((name) => (name.endsWith('.html') ? [[join(folder, name), readFileSync(join(folder, name), 'utf8')]] : [])),
  );
  const ids = new Map([...pages].map(([file, html]) => [file, new Set([...html.matchAll(/\bid="([^"]+)"/g)].map(([, id]) => unescaped(id)))]));
  const faults = [];
  for (const [file, html] of pages) {
    const say = (what) => faults.push(`${relative(folder, file)}: ${what}`);
    for (const [tag, name, address] of html.matchAll(/<(?:a|link|script|img|iframe)\b[^>]*?\b(href|src)="([^"]*)"[^>]*>/g)) {
      if (/^(https?:)?\/\//.test(address)) {
        if (!tag.startsWith('<a ')) say(`${address} is loaded from elsewhere`);
        continue;
      }
      const [path, id] = unescaped(address).split('#');
      let target = path === '' ? file : resolve(dirname(file), decodeURIComponent(path));
      if (path !== '' && (path.endsWith('/') || (existsSync(target) && statSync(target).isDirectory()))) target = join(target, 'index.html');
      if (path.startsWith('/')) say(`${name}="${address}" holds under one path alone`);
      else if (!target.startsWith(join(outside, '/')) || !existsSync(target)) say(`${address} is not there`);
      else if (id && ids.has(target) && !ids.get(target).has(decodeURIComponent(id))) say(`${address}: there is no such part`);
    }
  }
  return faults;
}
