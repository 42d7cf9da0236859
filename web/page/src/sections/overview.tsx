import { useLayoutEffect, useRef } from 'preact/hooks';
import { headKinds, kindText, leastShare, leastSpread, type HeadKind } from '../head_kind.ts';
import { paint } from '../palette.ts';
import { heads, type Head } from '../state/heads.ts';
import { shownModel } from '../state/derived.ts';
import { headInFocus, layerInFocus } from '../state/shown.ts';
import { update, view, type HeadOrder } from '../state/view.ts';
import '../styles/overview.css';
import { Term } from '../ui/term.tsx';

const kinds = Object.keys(headKinds) as HeadKind[];
const place = (head: Head) => head.layer * 1000 + head.head;
/** Of two heads of the same kind the clearer one comes first. */
const clarity = ({ kind, shares, entropy }: Head) => (kind === 'diffuse' ? entropy : kind === 'mixed' ? -entropy : shares[kind]);

const orders: Readonly<Record<HeadOrder, (a: Head, b: Head) => number>> = {
  index: (a, b) => place(a) - place(b),
  entropy: (a, b) => a.entropy - b.entropy || place(a) - place(b),
  kind: (a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind) || clarity(b) - clarity(a) || place(a) - place(b),
};

export function Overview() {
  return (
    <section id="heads" aria-labelledby="heads-title">
      <h2 id="heads-title">All heads</h2>
      <div class="lede">
        <p>
          Each <Term word="layer">layer</Term> has several <Term word="head">heads</Term>, and each has learned to look for something different. A
          small picture is the map above for one head. A bright diagonal means that every word looks at itself, a line just below it that it looks at
          the word before, and a bright column that all words look at one token.
        </p>
        <p class="try">
          <strong>Try:</strong> sort by <Term word="entropy" /> and choose the first head: its words look at the fewest tokens. Then switch it off.{' '}
          {shownModel.value && !shownModel.value.labels ? 'Do the maps of later layers change?' : 'Does the answer above change?'}
        </p>
      </div>
      {heads.value ? <Loaded /> : <div class="heads-placeholder" />}
    </section>
  );
}

function Loaded() {
  const { run: of, list } = heads.value!;
  const { order, off } = view.value;
  const perLayer = of.model.heads;
  const [layer, head] = [layerInFocus.value, headInFocus.value];
  const number = layer * perLayer + head;
  const sorted = [...list].sort(orders[order]);
  // On a phone a layer with many heads takes several rows of equal length.
  const narrow = Math.ceil(perLayer / Math.ceil(perLayer / 6));
  const group = useRef<HTMLDivElement>(null);

  const choose = (target: Head | undefined) => {
    if (!target) return;
    update({ layer: target.layer, head: target.head });
    // After the choice has been drawn: only the chosen one can take the focus.
    requestAnimationFrame(() => group.current?.querySelector<HTMLElement>('[aria-checked=true]')?.focus());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const at = sorted.findIndex((each) => each.layer === layer && each.head === head);
    const [first, ...rest] = Array.from(group.current!.children, (child) => (child as HTMLElement).offsetTop);
    const across = 1 + rest.filter((top) => top === first).length;
    const targets: Record<string, number> = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at - across,
      ArrowDown: at + across,
      Home: 0,
      End: sorted.length - 1,
    };
    if (!Object.hasOwn(targets, event.key)) return;
    event.preventDefault();
    choose(sorted[targets[event.key]!]);
  };
  const isOff = off.includes(number);
  const chosen = list[number];
  return (
    <>
      <div class="heads-tools">
        <label class="inline-field">
          <span>Sort by</span>
          <select value={order} onChange={(event) => update({ order: event.currentTarget.value as HeadOrder })}>
            <option value="index">layer and head</option>
            <option value="entropy">entropy</option>
            <option value="kind">kind</option>
          </select>
        </label>
        <p class="heads-chosen">
          <strong>
            Layer {layer + 1}, head {head + 1}
          </strong>
          {chosen && `: ${kindText(chosen)}`}
        </p>
        <div class="buttons">
          <button
            type="button"
            aria-pressed={isOff}
            onClick={() => update({ off: isOff ? off.filter((each) => each !== number) : [...off, number].sort((a, b) => a - b) })}
          >
            Switch off head
          </button>
          {off.length > 0 && (
            <button type="button" class="quiet" onClick={() => update({ off: [] })}>
              All heads on
            </button>
          )}
        </div>
      </div>
      <div
        ref={group}
        class={order === 'index' ? 'thumbnails by-layer' : 'thumbnails'}
        role="radiogroup"
        aria-label="Heads as pictures"
        style={{ '--columns': perLayer, '--columns-narrow': narrow }}
        onKeyDown={onKeyDown}
      >
        {sorted.map((each) => (
          <Thumbnail
            key={place(each)}
            of={each}
            chosen={each.layer === layer && each.head === head}
            off={off.includes(each.layer * perLayer + each.head)}
            onChoose={() => update({ layer: each.layer, head: each.head })}
          />
        ))}
      </div>
      <details class="kinds">
        <summary>What the kinds mean</summary>
        <dl>
          <div>
            <dt>previous, next, self</dt>
            <dd>
              How much a token of the text looks at the one before it, at the one after it, or at itself, on average. The largest of the three names
              the head, if it is at least {Math.round(100 * leastShare)} %.
            </dd>
          </div>
          <div>
            <dt>separator</dt>
            <dd>
              How much it looks at all <Term word="special token">special tokens</Term> together. Heads that have nothing to add often look there
              (Clark et al. 2019).
            </dd>
          </div>
          <div>
            <dt>diffuse</dt>
            <dd>
              None of these is that large, and a row spreads over at least {Math.round(100 * leastSpread)} % of the tokens. A row of weights w spreads
              over{' '}
              <math>
                <msup>
                  <mi>e</mi>
                  <mi>H</mi>
                </msup>
              </math>{' '}
              tokens, as if it looked at that many of them equally, where H is its <Term word="entropy">entropy</Term>{' '}
              <math>
                <mi>H</mi>
                <mo>=</mo>
                <mo>−</mo>
                <munder>
                  <mo>∑</mo>
                  <mi>j</mi>
                </munder>
                <msub>
                  <mi>w</mi>
                  <mi>j</mi>
                </msub>
                <mi>ln</mi>
                <msub>
                  <mi>w</mi>
                  <mi>j</mi>
                </msub>
              </math>
              ; H is the mean over all rows.
            </dd>
          </div>
          <div>
            <dt>mixed</dt>
            <dd>None of these: it depends on the words. These heads are worth reading word by word.</dd>
          </div>
        </dl>
      </details>
    </>
  );
}

function Thumbnail({ of, chosen, off, onChoose }: { of: Head; chosen: boolean; off: boolean; onChoose: () => void }) {
  const { layer, head, kind, entropy, picture, size } = of;
  const canvas = useRef<HTMLCanvasElement>(null);
  useLayoutEffect(() => {
    const context = canvas.current!.getContext('2d', { willReadFrequently: true })!;
    const image = context.createImageData(size, size);
    for (let i = 0; i < picture.length; ++i) paint(image.data, i, picture[i]!);
    context.putImageData(image, 0, 0);
  }, [picture, size]);
  const words = `Layer ${layer + 1}, head ${head + 1}, ${kindText(of)}${off ? ', switched off' : ''}`;
  return (
    <button
      type="button"
      role="radio"
      aria-checked={chosen}
      aria-label={words}
      title={`${words}; entropy ${entropy.toFixed(2)}`}
      tabIndex={chosen ? 0 : -1}
      class={off ? 'thumbnail off' : 'thumbnail'}
      onClick={onChoose}
    >
      <canvas ref={canvas} width={size} height={size} aria-hidden="true" />
      <span aria-hidden="true">
        {layer + 1}.{head + 1} <small>{off ? 'off' : kind}</small>
      </span>
    </button>
  );
}
