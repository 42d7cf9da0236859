import { counted, scientific } from '../../formats/numbers.ts';
import type { LoadedModel } from '../../model/loaded.ts';
import { selfCheck, type SelfCheck } from '../../state/self_check.ts';
import { Alert } from '../../ui/alert.tsx';
import { Part } from '../../ui/part.tsx';
import { ComparedTable } from './agreement.tsx';

export function Checks({ of }: { of: LoadedModel }) {
  const made = selfCheck.value.value?.model === of ? selfCheck.value.value : undefined;
  return (
    <Part class="proof-part" title="Recomputed without the module">
      <p>
        You can check any model in two ways. Every row of attention weights must sum to 1. And the page recomputes each step of each layer in plain
        JavaScript with 64-bit numbers, from the weights and the input of the step, without any code of the module.
      </p>
      <Alert what="The check failed." why={selfCheck.failure.value} />
      {of.dtype === 'int8' && (
        <p>
          The weights are int8, so the rows that they multiply are rounded to 8 bits. The check rounds them in the same way and multiplies them by the
          numbers that the weights represent.
        </p>
      )}
      {made ? <Checked of={made} layers={of.layers} /> : !selfCheck.failure.value && <p>Checking …</p>}
    </Part>
  );
}

export function shortened(text: string, most = 80): string {
  const letters = Array.from(text);
  return letters.length <= most ? text : `${letters.slice(0, most).join('').trimEnd()} …`;
}

function Checked({ of: { sums, rows, tokens, steps, text }, layers }: { of: SelfCheck; layers: number }) {
  const passes = steps.every((each) => each.passes);
  return (
    <>
      <p class={passes ? 'proof-verdict' : 'proof-verdict failed'}>
        <strong>{passes ? 'They agree.' : 'They do not agree.'}</strong> The text was “{shortened(text)}”, and{' '}
        {rows === tokens ? `all of its ${counted(tokens, 'token')}` : `${rows} of its ${counted(tokens, 'token')}`} were recomputed in{' '}
        {counted(layers, 'layer')}. The sums of {sums.count} rows of weights differ from 1 by at most{' '}
        <strong class="figure">{scientific(sums.difference)}</strong>.
      </p>
      <ComparedTable name="Layers recomputed step by step" rows={steps} />
      <p class="note">
        For each step, the table shows the number that comes closest to its tolerance. The tolerance is the error that rounding can cause in a sum of
        32-bit products: √K · 2<sup>-23</sup> times the sum of their absolute values for K products, plus a few roundings. Positions, masks and
        embeddings are not checked here.
      </p>
    </>
  );
}
