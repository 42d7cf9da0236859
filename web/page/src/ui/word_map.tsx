import { useRef } from 'preact/hooks';
import { counted } from '../formats/numbers.ts';
import { fit, placeLabels } from '../draw/labels.ts';
import type { WordMap } from '../state/words.ts';
import { SavePicture } from './save_picture.tsx';
import { useWidth } from './size.ts';

const size = 13;
const radius = 4;

/** Words as points, names beside them as far as there is room. As wide as its place, so that letters stay as large as they are. */
export function WordMapPicture({ of: { points }, label }: { of: WordMap; label: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const width = Math.max(240, useWidth(frame));
  const { height, places } = fit(points, width, Math.min(60, width / 12));
  // The chosen words come first: they get their names before their neighbours do.
  const named = placeLabels(
    points.map(({ token }, i) => ({ ...places[i]!, text: token })),
    { width, height },
    size,
    radius,
  );
  const nameless = named.filter((place) => place === undefined).length;
  return (
    <div ref={frame}>
      <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} role="img" aria-label={label}>
        {points.map((point, i) => {
          const from = point.of === undefined ? undefined : places[point.of]!;
          return from && <line key={i} x1={from.x} y1={from.y} x2={places[i]!.x} y2={places[i]!.y} />;
        })}
        {points.map((point, i) => (
          <circle key={i} class={point.of === undefined ? 'own' : 'near'} cx={places[i]!.x} cy={places[i]!.y} r={radius}>
            <title>{point.token}</title>
          </circle>
        ))}
        {points.map((point, i) => {
          const place = named[i];
          return (
            place && (
              <text key={i} class={point.of === undefined ? 'own' : 'near'} x={place.x} y={place.y} text-anchor={place.anchor} font-size={size}>
                {point.token}
              </text>
            )
          );
        })}
      </svg>
      <SavePicture title="Map of the words" file="attn-words" picture={() => frame.current?.querySelector('svg')} />
      {nameless > 0 && <p class="note">{counted(nameless, 'name')} found no room; all are in the table.</p>}
    </div>
  );
}
