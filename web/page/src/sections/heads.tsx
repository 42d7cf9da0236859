import { useRef } from 'preact/hooks';
import { capitalized, headName } from '../formats/names.ts';
import { headKinds, kindText, leastShare, leastSpread, type HeadKind } from '../model/head_kind.ts';
import { opening } from '../state/bundled.ts';
import { heads, toggleHead, type Head } from '../state/heads.ts';
import { run } from '../state/run.ts';
import { headInFocus, layerInFocus } from '../state/map_view.ts';
import { update, view, type HeadOrder } from '../state/view.ts';
import '../styles/heads.css';
import { LevelMap } from '../ui/level_map.tsx';
import { Term } from '../ui/term.tsx';

/** `summary` arrives shortly after the map. */
interface Place {
  readonly layer: number;
  readonly head: number;
  readonly summary: Head | undefined;
}

const kinds = Object.keys(headKinds) as HeadKind[];
const place = ({ layer, head }: Pick<Place, 'layer' | 'head'>) => layer * 1000 + head;
/** Within a kind, the clearer head comes first. */
const clarity = ({ kind, shares, entropy }: Head) => (kind === 'diffuse' ? entropy : kind === 'mixed' ? -entropy : shares[kind]);

const orders: Readonly<Record<HeadOrder, (a: Head, b: Head) => number>> = {
  index: (a, b) => place(a) - place(b),
  entropy: (a, b) => a.entropy - b.entropy || place(a) - place(b),
  kind: (a, b) => kinds.indexOf(a.kind) - kinds.indexOf(b.kind) || clarity(b) - clarity(a) || place(a) - place(b),
};

/** Unsorted until the summaries arrive. */
function placesIn(order: HeadOrder, layers: number, perLayer: number): readonly Place[] {
  const of = run.value;
  const list = of && heads.value?.run.model === of.model ? heads.value.list : undefined;
  if (list && order !== 'index') return [...list].sort(orders[order]).map((summary) => ({ layer: summary.layer, head: summary.head, summary }));
  return Array.from({ length: layers * perLayer }, (_, i) => ({ layer: Math.floor(i / perLayer), head: i % perLayer, summary: list?.[i] }));
}

export function Heads() {
  const { layers, heads: perLayer } = run.value?.model ?? opening();
  const { order, off } = view.value;
  const [layer, head] = [layerInFocus.value, headInFocus.value];
  const places = placesIn(order, layers, perLayer);
  // On a phone, rows of at most 6 heads, equally long.
  const narrow = Math.ceil(perLayer / Math.ceil(perLayer / 6));
  const group = useRef<HTMLDivElement>(null);

  /** Moves the focus with the choice, from picture to picture or from switch to switch. */
  const choose = (target: Place | undefined, what: string) => {
    if (!target) return;
    update({ layer: target.layer, head: target.head });
    // Only the chosen head is a tab stop, so wait until it is drawn.
    requestAnimationFrame(() => group.current?.querySelector<HTMLElement>(`.chosen ${what}`)?.focus());
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const at = places.findIndex((each) => each.layer === layer && each.head === head);
    const [first, ...rest] = Array.from(group.current!.children, (child) => (child as HTMLElement).offsetTop);
    const across = 1 + rest.filter((top) => top === first).length;
    const targets: Record<string, number> = {
      ArrowLeft: at - 1,
      ArrowRight: at + 1,
      ArrowUp: at - across,
      ArrowDown: at + across,
      Home: 0,
      End: places.length - 1,
    };
    if (!Object.hasOwn(targets, event.key)) return;
    event.preventDefault();
    choose(places[targets[event.key]!], (event.target as HTMLElement).localName);
  };
  return (
    <section id="heads" aria-labelledby="heads-title">
      <div class="heads-tools">
        <h2 id="heads-title">Heads</h2>
        <label class="inline-field">
          <span>Sort by</span>
          <select value={order} onChange={(event) => update({ order: event.currentTarget.value as HeadOrder })}>
            <option value="index">layer and head</option>
            <option value="entropy">entropy</option>
            <option value="kind">kind</option>
          </select>
        </label>
        <button type="button" disabled={!run.value} onClick={() => toggleHead(layer * perLayer + head)}>
          {off.includes(layer * perLayer + head) ? 'Switch head on' : 'Switch off head'}
        </button>
        {/* Keeps its room, so that nothing moves under the pointer. */}
        <button type="button" class={off.length > 0 ? 'quiet' : 'quiet unneeded'} onClick={() => update({ off: [] })}>
          All heads on
        </button>
      </div>
      <p class="note">Each head has a map of its own (part 4). 2.4 is layer 2, head 4.</p>
      <div
        ref={group}
        class={['head-cards', order === 'index' && 'by-layer', layers > 3 && 'many-layers', perLayer > 6 && 'many-heads'].filter(Boolean).join(' ')}
        role="group"
        aria-label="Heads as pictures"
        style={{ '--layers': layers, '--columns': perLayer, '--columns-narrow': narrow }}
        onKeyDown={onKeyDown}
      >
        {places.map((each) => (
          <Card
            key={place(each)}
            of={each}
            chosen={each.layer === layer && each.head === head}
            off={off.includes(each.layer * perLayer + each.head)}
            onChoose={() => update({ layer: each.layer, head: each.head })}
            onSwitch={() => toggleHead(each.layer * perLayer + each.head)}
          />
        ))}
      </div>
    </section>
  );
}

interface CardProps {
  readonly of: Place;
  readonly chosen: boolean;
  readonly off: boolean;
  readonly onChoose: () => void;
  readonly onSwitch: () => void;
}

/** A picture of the map, and a switch. Only one picture and one switch are tab stops. */
function Card({ of: { layer, head, summary }, chosen, off, onChoose, onSwitch }: CardProps) {
  const name = headName(layer, head);
  const names = ['head-card', chosen && 'chosen', off && 'off'].filter(Boolean).join(' ');
  return (
    <div class={names}>
      <button
        type="button"
        aria-pressed={chosen}
        aria-label={capitalized(name)}
        title={summary && `${kindText(summary)}; entropy ${summary.entropy.toFixed(2)}`}
        tabIndex={chosen ? 0 : -1}
        onClick={onChoose}
      >
        <LevelMap levels={summary?.picture} size={summary?.size ?? 1} />
      </button>
      <p aria-hidden="true" onClick={onChoose}>
        {layer + 1}.{head + 1} <small>{summary?.kind ?? '…'}</small>
      </p>
      <label>
        <input type="checkbox" checked={off} aria-label={`Switch off ${name}`} tabIndex={chosen ? 0 : -1} onChange={onSwitch} />
        <span aria-hidden="true">off</span>
      </label>
    </div>
  );
}

export function Kinds() {
  return (
    <details class="kinds">
      <summary>What do the kinds mean?</summary>
      <dl>
        <div>
          <dt>previous, next, self</dt>
          <dd>
            The average weight of the token before, of the token after, or of the token itself, for tokens of the text. The largest of these shares
            names the head if it is at least {Math.round(100 * leastShare)} %.
          </dd>
        </div>
        <div>
          <dt>separator</dt>
          <dd>
            The average weight of all <Term word="special token">special tokens</Term> together. Heads often attend to them if they have nothing to
            add (Clark et al. 2019).
          </dd>
        </div>
        <div>
          <dt>diffuse</dt>
          <dd>
            None of these shares is that large, and a row spreads over at least {Math.round(100 * leastSpread)} % of the tokens. A row of weights w
            spreads over{' '}
            <math>
              <msup>
                <mi>e</mi>
                <mi>H</mi>
              </msup>
            </math>{' '}
            tokens, as if it attended to that many equally. H is its <Term word="entropy">entropy</Term>{' '}
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
            ; for a head, H is the mean over all rows.
          </dd>
        </div>
        <div>
          <dt>mixed</dt>
          <dd>None of these: the pattern depends on the words. Read these heads word by word.</dd>
        </div>
      </dl>
    </details>
  );
}
