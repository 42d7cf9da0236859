import { Fragment } from 'preact';
import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { AttentionOptions } from 'attn';
import type { Status } from '../app.tsx';
import { explain, newestOnly, type Engine } from '../engine.ts';
import { headKind } from '../head_kind.ts';
import type { StoredLayer } from '../layer.ts';
import { fixed } from '../numbers.ts';
import { AttentionMap, type Cell } from '../ui/attention_map.tsx';
import { HeadThumbnail } from '../ui/head_thumbnail.tsx';
import { NumberTable } from '../ui/number_table.tsx';
import { Proof } from '../ui/proof.tsx';

/** Head 2 links words by meaning in the first sentence. */
const firstHead = 1;

/** What is on the screen, with the settings that it was computed with. */
interface Shown {
  readonly sentence: number;
  readonly causal: boolean;
  readonly padding: number;
  /** (H, L, L) */
  readonly weights: Float32Array;
}

interface Props {
  readonly engine: Engine | undefined;
  readonly layer: StoredLayer | undefined;
  readonly onStatus: (status: Status) => void;
  readonly onHelp: () => void;
}

export function Explorer({ engine, layer, onStatus, onHelp }: Props) {
  return (
    <section id="sentence" aria-labelledby="sentence-title">
      <div class="lede">
        <h1 id="sentence-title">Which words look at which?</h1>
        <p>
          In a Transformer, every word gathers from the others. How much it takes from each is its <em>attention</em>. This is a real layer at work:
          where a cell is bright, the word of the <span class="as-query">row</span> looks at the word of the <span class="as-key">column</span>.
        </p>
      </div>
      {engine && layer ? <Loaded engine={engine} layer={layer} onStatus={onStatus} onHelp={onHelp} /> : <div class="explorer placeholder" />}
    </section>
  );
}

function Loaded({ engine, layer, onStatus, onHelp }: { engine: Engine; layer: StoredLayer; onStatus: (status: Status) => void; onHelp: () => void }) {
  const [sentence, setSentence] = useState(0);
  const [head, setHead] = useState(firstHead);
  const [causal, setCausal] = useState(false);
  const [padding, setPadding] = useState(0);
  const [factor, setFactor] = useState(1);
  const [shown, setShown] = useState<Shown>();
  const [cell, setCell] = useState<Cell>({ row: 4, column: 12 });
  const [held, setHeld] = useState(false);
  const [asTable, setAsTable] = useState(false);
  const run = useMemo(newestOnly, []);

  const scale = factor / Math.sqrt(layer.headWidth);
  const chosen = layer.sentences[sentence]!;

  useEffect(() => {
    void run(async () => {
      try {
        const length = chosen.tokens.length;
        const options: AttentionOptions = {
          needWeights: true,
          isCausal: causal,
          // At 1 the layer's own default decides, as in PyTorch.
          ...(factor === 1 ? {} : { scale }),
          ...(padding
            ? { keyPaddingMask: { kind: 'block', data: Uint8Array.from({ length }, (_, j) => Number(j >= length - padding)), dims: [1, length] } }
            : {}),
        };
        const start = performance.now();
        const { weights } = await layer.attention.forward(chosen.x, undefined, undefined, options);
        setShown({ sentence, causal, padding, weights: weights!.data });
        onStatus({ text: `Ready. ${layer.numHeads} heads over ${length} tokens, computed in ${(performance.now() - start).toFixed(1)} ms.` });
      } catch (error) {
        onStatus({ text: `The attention could not be computed. ${explain(error)}`, failed: true });
      }
    });
  }, [layer, sentence, causal, padding, factor]);

  const firstDrawn = useRef(false);
  const drawn = useCallback(() => {
    if (firstDrawn.current) return;
    firstDrawn.current = true;
    document.documentElement.dataset.ready = 'true';
  }, []);

  // The map stays what it was until new numbers are there.
  const tokens = shown && layer.sentences[shown.sentence]!.tokens;
  const size = tokens?.length ?? 0;
  const heads = useMemo(() => {
    if (!shown) return [];
    return Array.from({ length: layer.numHeads }, (_, h) => {
      const weights = shown.weights.subarray(h * size * size, (h + 1) * size * size);
      return { weights, label: `Head ${h + 1}, ${headKind(weights, size)}` };
    });
  }, [shown]);
  const blocked = useCallback(
    (row: number, column: number) => !!shown && ((shown.causal && column > row) || column >= size - shown.padding),
    [shown],
  );

  const chooseSentence = (index: number) => {
    const length = layer.sentences[index]!.tokens.length;
    setSentence(index);
    setPadding((k) => Math.min(k, length - 1));
    setHeld(false);
    setCell(index === 0 ? { row: 4, column: 12 } : { row: Math.min(2, length - 1), column: 1 });
  };

  const weights = heads[head]?.weights;
  const safeCell = { row: Math.min(cell.row, size - 1), column: Math.min(cell.column, size - 1) };

  const saveCsv = () => {
    if (!tokens || !weights) return;
    const quote = (text: string) => `"${text.replaceAll('"', '""')}"`;
    const lines = [
      ['query \\ key', ...tokens].map(quote).join(','),
      ...tokens.map((token, i) => [quote(token), ...weights.subarray(i * size, (i + 1) * size)].join(',')),
    ];
    const link = document.createElement('a');
    link.href = URL.createObjectURL(new Blob([lines.join('\r\n') + '\r\n'], { type: 'text/csv' }));
    link.download = `attention-layer-1-head-${head + 1}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    onStatus({ text: `Saved ${link.download}.` });
  };

  const onKey = (key: string) => {
    if (key === ',' || key === '.') {
      const next = (head + (key === '.' ? 1 : layer.numHeads - 1)) % layer.numHeads;
      setHead(next);
      onStatus({ text: `${heads[next]!.label}.` });
    } else if (key === 'm') setCausal((on) => !on);
    else if (key === 'e') saveCsv();
    else if (key === '?') onHelp();
    else onStatus({ text: 'Only the first layer of the model is stored in this page.' });
  };

  return (
    <div class="explorer">
      <div class="choose">
        <label class="field">
          <span>Sentence</span>
          <select value={String(sentence)} onChange={(event) => chooseSentence(Number(event.currentTarget.value))}>
            {layer.sentences.map(({ text }, i) => (
              <option key={i} value={String(i)}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label class="field">
          <span>Layer</span>
          <select value="1">
            <option value="1">1</option>
          </select>
        </label>
        <label class="field">
          <span>Head</span>
          <select value={String(head + 1)} onChange={(event) => setHead(Number(event.currentTarget.value) - 1)}>
            {Array.from({ length: layer.numHeads }, (_, h) => (
              <option key={h} value={String(h + 1)}>
                {h + 1}
              </option>
            ))}
          </select>
        </label>
      </div>

      <div class="focus">
        {tokens && weights && (
          <>
            <div class="focus-head">
              <h2>Layer 1, head {head + 1}</h2>
              <Legend largest={weights.reduce((a, b) => Math.max(a, b), 0)} hides={shown.causal || shown.padding > 0} />
            </div>
            <AttentionMap
              tokens={tokens}
              weights={weights}
              label={`Attention of layer 1, head ${head + 1}. Rows are queries, columns are keys.`}
              blocked={blocked}
              cell={safeCell}
              held={held}
              onPoint={setCell}
              onHold={(target, hold) => {
                setCell(target);
                setHeld(hold);
              }}
              onKey={onKey}
              onDrawn={drawn}
            />
            <p class="note" id="map-hint">
              Point at a cell to read it, click to hold it. By keyboard: arrow keys move, ? lists all keys.
            </p>
            <div class="buttons">
              <button type="button" aria-expanded={asTable} aria-controls="weights-table" onClick={() => setAsTable(!asTable)}>
                View as table
              </button>
              <button type="button" class="quiet" onClick={saveCsv}>
                Save as CSV
              </button>
            </div>
          </>
        )}
      </div>

      <div class="side">
        {tokens && weights && <Reading tokens={tokens} weights={weights} cell={safeCell} held={held} />}
        <div>
          <h2>{layer.numHeads} heads, one layer</h2>
          <p class="note">Each head has learned to look for something else. Try head 3, then head 2.</p>
          <div class="thumbnails" role="radiogroup" aria-label="Heads as pictures">
            {heads.map(({ weights: part, label }, h) => (
              <HeadThumbnail key={h} weights={part} size={size} head={h} label={label} chosen={h === head} onChoose={() => setHead(h)} />
            ))}
          </div>
        </div>
        <div class="controls">
          <h2>Change the rules</h2>
          <label class="check">
            <input type="checkbox" checked={causal} aria-describedby="causal-hint" onChange={(event) => setCausal(event.currentTarget.checked)} />
            <span>Causal mask</span>
          </label>
          <p class="note" id="causal-hint">
            No word may look at a later one, as in a model that writes text.
          </p>
          <Slider
            label="Padding tokens"
            min={0}
            max={chosen.tokens.length - 1}
            step={1}
            value={padding}
            text={padding === 0 ? 'none' : `last ${padding}`}
            onInput={setPadding}
            hint="The last words count as filling: nobody looks at them."
          />
          <Slider
            label="Score scale"
            min={0}
            max={4}
            step={0.05}
            value={factor}
            text={`${scale.toFixed(4)}${factor === 1 ? ` = 1/√${layer.headWidth}` : ''}`}
            onInput={setFactor}
            hint="Larger: each word settles on fewer words. Zero: all count alike."
          />
        </div>
      </div>

      <div id="weights-table" class="full">
        {asTable && tokens && weights && (
          <NumberTable
            name="Attention weights"
            rows={{ kind: 'query', count: size, label: (i) => tokens[i]! }}
            columns={{ kind: 'key', count: size, label: (j) => tokens[j]! }}
            cell={(i, j) => fixed(weights[i * size + j]!, 4)}
          />
        )}
      </div>
      <div class="full">
        <Proof engine={engine} layer={layer} sentence={chosen} />
      </div>
    </div>
  );
}

interface SliderProps {
  readonly label: string;
  readonly min: number;
  readonly max: number;
  readonly step: number;
  readonly value: number;
  readonly text: string;
  readonly hint: string;
  readonly onInput: (value: number) => void;
}

function Slider({ label, min, max, step, value, text, hint, onInput }: SliderProps) {
  const id = `slider-${label.toLowerCase().replaceAll(' ', '-')}`;
  return (
    <div class="slider">
      <div class="slider-head">
        <label for={id}>{label}</label>
        <span class="figure" aria-hidden="true">
          {text}
        </span>
      </div>
      <input
        id={id}
        type="range"
        min={min}
        max={max}
        step={step}
        value={value}
        aria-valuetext={text}
        aria-describedby={`${id}-hint`}
        onInput={(event) => onInput(Number(event.currentTarget.value))}
      />
      <p class="note" id={`${id}-hint`}>
        {hint}
      </p>
    </div>
  );
}

function Legend({ largest, hides }: { largest: number; hides: boolean }) {
  return (
    <p class="legend">
      <span class="figure">0</span>
      <span class="legend-ramp" aria-hidden="true" />
      <span class="figure">{largest.toFixed(2)}</span>
      {hides && <span class="legend-hidden">⁄ hidden</span>}
    </p>
  );
}

/** The cell in numbers, and its row as the sentence with each word shaded by its weight. */
function Reading({ tokens, weights, cell, held }: { tokens: readonly string[]; weights: Float32Array; cell: Cell; held: boolean }) {
  const row = weights.subarray(cell.row * tokens.length, (cell.row + 1) * tokens.length);
  const largest = row.reduce((a, b) => Math.max(a, b), 0);
  return (
    <div class="reading">
      <p class="reading-cell">
        <span class="as-query">{tokens[cell.row]}</span> <span aria-hidden="true">→</span>
        <span class="visually-hidden">to</span> <span class="as-key">{tokens[cell.column]}</span>{' '}
        <strong class="figure">{fixed(row[cell.column]!, 4)}</strong>
        {held && <span class="tag">held</span>}
      </p>
      <p class="strip" aria-hidden="true">
        {tokens.map((token, j) => (
          <Fragment key={j}>
            <span class={j === cell.row ? 'self' : ''} style={{ '--share': `${Math.round((100 * row[j]!) / (largest || 1))}%` }}>
              {token}
            </span>{' '}
          </Fragment>
        ))}
      </p>
    </div>
  );
}
