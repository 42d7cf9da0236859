import { figureToPng, figureToSvg } from 'attn/element';
import { toCsv } from './csv.ts';
import { download } from './download.ts';
import { linesOf, mapOf } from './figures.ts';
import { toJson } from './json.ts';
import { toNpy } from './npy.ts';
import { frameOf } from './frame.ts';
import type { Selection } from './selection.ts';

type Write = (selection: Selection) => Blob | Promise<Blob>;
const typed = (content: BlobPart, type: string) => new Blob([content], { type });

/** By button label. */
export const formats: Readonly<Record<string, { readonly ending: string; readonly write: Write }>> = {
  PNG: { ending: 'png', write: (of) => figureToPng(mapOf(of)) },
  SVG: { ending: 'svg', write: (of) => typed(figureToSvg(mapOf(of)), 'image/svg+xml') },
  'Lines as PNG': { ending: 'lines.png', write: (of) => figureToPng(linesOf(of)) },
  'Lines as SVG': { ending: 'lines.svg', write: (of) => typed(figureToSvg(linesOf(of)), 'image/svg+xml') },
  CSV: { ending: 'csv', write: ({ shown }) => typed(toCsv(shown), 'text/csv') },
  JSON: { ending: 'json', write: (of) => typed(toJson(of), 'application/json') },
  '.npy': {
    ending: 'npy',
    write: ({ shown: { weights, places } }) => typed(toNpy(weights, [places.length, places.length]), 'application/octet-stream'),
  },
  iframe: { ending: 'html', write: (of) => typed(frameOf(of), 'text/html') },
};

export async function save(selection: Selection, format: string): Promise<string> {
  const { ending, write } = formats[format]!;
  const name = `${selection.name}.${ending}`;
  download(await write(selection), name);
  return name;
}
