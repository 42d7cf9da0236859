import { figureToPng, figureToSvg } from 'attn/element';
import { useState } from 'preact/hooks';
import { download } from '../export/download.ts';
import { explain, status } from '../state/status.ts';

const formats = ['SVG', 'PNG'] as const;

/** Saves an <svg> of the page as it is now, with `title` above it. `file` has no extension. */
export function SavePicture({ title, file, picture }: { title: string; file: string; picture: () => SVGSVGElement | null | undefined }) {
  const [failure, setFailure] = useState('');
  const save = async (format: (typeof formats)[number]) => {
    const svg = picture();
    if (!svg) return;
    try {
      const { figureOfSvg } = await import('../export/inline_svg.ts');
      const figure = figureOfSvg(svg, title);
      const name = `${file}.${format.toLowerCase()}`;
      download(format === 'SVG' ? new Blob([figureToSvg(figure)], { type: 'image/svg+xml' }) : await figureToPng(figure), name);
      status.value = { text: `Saved ${name}.` };
      setFailure('');
    } catch (error) {
      setFailure(`The picture could not be saved. ${explain(error)}`);
    }
  };
  return (
    <span class="save-picture">
      {formats.map((format) => (
        <button key={format} type="button" class="quiet" aria-label={`Save ${title} as ${format}`} onClick={() => void save(format)}>
          {format}
        </button>
      ))}
      {failure && (
        <span role="alert" class="error">
          {failure}
        </span>
      )}
    </span>
  );
}
