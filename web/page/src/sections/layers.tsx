/** Part 5: the sums, norms and the feed-forward network of a layer, and what the model would guess after each. */
import type { Tensor } from 'attn';
import { useEffect, useRef } from 'preact/hooks';
import { difference } from '../arithmetic/differences.ts';
import { hasPostNorm, isPreNorm } from '../model/kind.ts';
import { shownModel } from '../state/background.ts';
import { query } from '../state/guess.ts';
import { hasGuesses, layerGuesses } from '../state/layer_guesses.ts';
import { chooseModel } from '../state/load_model.ts';
import { loading } from '../state/model.ts';
import { layerTrace, type LayerInFocus } from '../state/run.ts';
import '../styles/layers.css';
import { Alert } from '../ui/alert.tsx';
import { Bar } from '../ui/bar.tsx';
import { Part } from '../ui/part.tsx';
import { PartTitle } from '../ui/part_title.tsx';
import { useSeen } from '../ui/seen.ts';
import { largest, StripRows } from '../ui/strip.tsx';
import { Term } from '../ui/term.tsx';
import { percent } from './first_look/drawing.tsx';

export function Layers() {
  return (
    <section id="layers" aria-labelledby="layers-title">
      <PartTitle of="layers" name="layers-title" />
      <div class="lede">
        <p>
          What attention has gathered is added to the row of the word, by a <Term word="residual">residual connection</Term>. A norm keeps its numbers
          in range. Then each row alone goes through the <Term word="feed-forward">feed-forward network</Term>, which adds what it makes of it. The
          next <Term word="layer" /> does the same with the new rows.
        </p>
      </div>
      <OneLayer />
      <Guesses />
    </section>
  );
}

function OneLayer() {
  const frame = useRef<HTMLDivElement>(null);
  const isNear = useSeen(frame, 300);
  const of = isNear ? layerTrace.value : undefined;
  return (
    <div ref={frame} class="one-layer">
      {of && <Rows of={of} />}
    </div>
  );
}

function Rows({ of: { trace, run, layer } }: { of: LayerInFocus }) {
  const { hiddenSize: width, config, layers } = run.model;
  const token = Math.min(query.value, run.tokens.length - 1);
  const rowOf = ({ data }: { readonly data: Float32Array }) => data.subarray(token * width, (token + 1) * width);
  const before = run.hiddenStates[layer]!;
  // Some models normalise what they add; the last hidden state of a pre-norm model is after the last norm.
  const added = (what: Tensor, sum: Tensor, to: Tensor) => rowOf(hasPostNorm(config) ? difference(sum, to) : what);
  const rows = [
    { name: 'its row before the layer', values: rowOf(before) },
    { name: '+ what attention adds', values: added(trace.output, trace.attn_residual, before) },
    isPreNorm(config) ? { name: '= their sum', values: rowOf(trace.attn_residual) } : { name: '= their sum, normalised', values: rowOf(trace.norm1) },
    { name: '+ what feed-forward adds', values: added(trace.ff_output, trace.ff_residual, trace.attn_residual) },
    {
      name: isPreNorm(config) ? '= its row after the layer' : '= its row after the layer, normalised',
      values: rowOf(isPreNorm(config) ? trace.ff_residual : run.hiddenStates[layer + 1]!),
    },
  ];
  // One scale, so that sums can be followed by eye.
  const most = Math.max(...rows.map(({ values }) => largest(values)));
  return (
    <>
      <p>
        “{run.tokens[token]}” in layer {layer + 1} of {layers}:
      </p>
      <StripRows rows={rows.map((each) => ({ ...each, most }))} />
      <p class="note">One cell for each of {width} numbers. Violet is positive, gold negative; all rows have one scale.</p>
    </>
  );
}

function Guesses() {
  const frame = useRef<HTMLDivElement>(null);
  const isNear = useSeen(frame, 300);
  useEffect(() => (isNear ? layerGuesses.follow() : undefined), [isNear]);
  const of = shownModel.value;
  const made = layerGuesses.value.value?.run.model === of ? layerGuesses.value.value : undefined;
  const { run, query: token, kind, rows } = made ?? {};
  return (
    <Part class="layer-guesses" title="The guess after each layer">
      <div ref={frame} style={{ '--rows': (of?.layers ?? 3) + 1 }}>
        {of && !hasGuesses(of) && <NoGuesses />}
        <Alert what="The guesses could not be computed." why={layerGuesses.failure.value} />
        {run && rows && (
          <>
            <p>
              The output layer that {kind === 'next' ? 'predicts the next word' : 'fills blanks'}, applied after every layer (the logit lens),
              although it was trained only for the last
              {isPreNorm(run.model.config) && ' (with the norm that comes before it)'}:{' '}
              {kind === 'blank'
                ? 'what would the blank be?'
                : kind === 'next'
                  ? `what would come after “${run.tokens[token!]}”?`
                  : `what would be in place of “${run.tokens[token!]}”, if it were blank?`}
            </p>
            <ol aria-label="Guesses after each layer">
              {rows.map((guesses, i) => (
                <li key={i}>
                  <span class="layer-name">{i === 0 ? 'before layer 1' : `after layer ${i}`}</span>
                  {guesses.map(({ word, share }, place) => (
                    <span key={place} class={place === 0 ? 'layer-guess best' : 'layer-guess'}>
                      <span class="guess-word">{word}</span> <Bar share={share} /> <span class="guess-share">{percent(share)}</span>
                    </span>
                  ))}
                </li>
              ))}
            </ol>
          </>
        )}
      </div>
    </Part>
  );
}

const NoGuesses = () => (
  <>
    <p>This model does not predict words. The mask model does.</p>
    <button type="button" disabled={!!loading.value} onClick={() => void chooseModel('masks')}>
      Change to the mask model
    </button>
  </>
);
