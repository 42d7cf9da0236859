import { useRef } from 'preact/hooks';
import { counted } from '../formats/numbers.ts';
import { fit, placeLabels } from '../draw/labels.ts';
import type { WordMap } from '../state/words.ts';
import { SavePicture } from './save_picture.tsx';
import { useWidth } from './size.ts';

const size = 13;
const radius = 4;

/**
 * As many names as fit; an empty frame until there are points. Drawn at its actual width, so that letters keep their
 * size.
 */
export function WordMapPicture({ points, label }: { points: WordMap['points']; label: string }) {
  const frame = useRef<HTMLDivElement>(null);
  const width = Math.max(240, useWidth(frame));
  const { height, places } = fit(points, width, Math.min(60, width / 12));
  // Chosen words come first, so they are labelled first.
  const named = placeLabels(
    points.map(({ token }, i) => ({ ...places[i]!, text: token })),
    { width, height },
    size,
    radius,
    points.filter(({ of }) => of === undefined).length,
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
      <p class="note words-nameless">{nameless > 0 && `${counted(nameless, 'name')} did not fit. The table has all of them.`}</p>
    </div>
  );
}
