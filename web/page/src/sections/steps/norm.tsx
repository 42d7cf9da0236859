import type { Tensor } from 'attn';
import { bracketed, brief, fixed, joined } from '../../formats/numbers.ts';
import type { LinearNames } from '../../model/parameter_names.ts';
import { Call, Eq, Formula, I, Plus } from '../../ui/formula.tsx';
import { Term } from '../../ui/term.tsx';
import { difference } from '../../arithmetic/differences.ts';
import { Working } from '../../ui/working.tsx';
import { meanAndVariance } from '../../arithmetic/workings.ts';
import { at, before, isShown, LinearTables, numberInFocus, reader, rowInFocus, TokenTable, WeightsBehind, type StepProps } from './parts.tsx';

function Norm({
  walk,
  sizes,
  name,
  input,
  output,
  linear,
  trace,
}: StepProps & { name: string; input: Tensor; output: Tensor; linear: LinearNames | undefined; trace: 'norm1' | 'norm2' }) {
  const { E, eps, tokens, rmsNorm, gainFrom } = sizes;
  const [row, column] = [rowInFocus(sizes), numberInFocus('model', E)];
  const numbers = input.data.subarray(row * E, (row + 1) * E);
  const { mean, variance } = meanAndVariance(numbers);
  const square = meanAndVariance(numbers.map((value) => value * value)).mean;
  const x = at(input, row, column);
  const weight = isShown(walk, linear) ? reader(walk, linear.weight).value(0, column) + gainFrom : 1;
  const bias = isShown(walk, linear) && linear.bias ? reader(walk, linear.bias).value(0, column) : undefined;
  return (
    <>
      <Formula>
        <Call name="norm">
          <I>x</I>
        </Call>
        <Eq />
        <mfrac>
          <mrow>
            <I>x</I>
            {!rmsNorm && (
              <>
                <mo>−</mo>
                <mi mathvariant="normal">mean</mi>
              </>
            )}
          </mrow>
          <msqrt>
            <mrow>
              <mi mathvariant="normal">{rmsNorm ? 'mean square' : 'variance'}</mi>
              <Plus />
              <I>ε</I>
            </mrow>
          </msqrt>
        </mfrac>
        <I>γ</I>
        {bias !== undefined && (
          <>
            <Plus />
            <I>β</I>
          </>
        )}
      </Formula>
      <TokenTable sizes={sizes} name={name} tensor={output} kind="model" />
      <Working
        name={`${name} of ${tokens[row]}, number ${column + 1}`}
        value={at(output, row, column)}
        before={before(walk, trace, row * E + column)}
      >
        {linear && !isShown(walk, linear) ? null : (
          <>
            {rmsNorm ? brief(x) : `(${brief(x)} − ${bracketed(mean)})`} / √({brief(rmsNorm ? square : variance)} + {eps.toExponential()}) ·{' '}
            {bracketed(weight)}
            {bias !== undefined && ` ${joined(bias)}`} = {fixed(at(output, row, column))}
          </>
        )}
      </Working>
      <p class="note">
        {rmsNorm ? 'The mean square is that' : 'Mean and variance are those'} of the row of {tokens[row]}.{gainFrom > 0 && ' The file has γ − 1.'}
      </p>
      {isShown(walk, linear) && (
        <WeightsBehind>
          <LinearTables walk={walk} name="γ" biasName="β" linear={linear} inKind="model" outKind="model" />
        </WeightsBehind>
      )}
    </>
  );
}

const PostNorm = () => <p class="note">This model also normalises the outputs that it adds, so the second number is that of the normalised row.</p>;

function Residual({
  walk,
  sizes,
  name,
  a,
  b,
  sum,
  trace,
}: StepProps & { name: string; a: Tensor; b: Tensor; sum: Tensor; trace: 'attn_residual' | 'ff_residual' }) {
  const [row, column] = [rowInFocus(sizes), numberInFocus('model', sizes.E)];
  return (
    <>
      <TokenTable sizes={sizes} name={name} tensor={sum} kind="model" />
      <Working
        name={`${name} of ${sizes.tokens[row]}, number ${column + 1}`}
        value={at(sum, row, column)}
        before={before(walk, trace, row * sizes.E + column)}
      >
        <span class="as-query">{brief(at(a, row, column))}</span> <span class="as-key">{joined(at(b, row, column))}</span> ={' '}
        {fixed(at(sum, row, column))}
      </Working>
    </>
  );
}

export function FirstNormStep({ walk, sizes }: StepProps) {
  const { run, layer, trace, names } = walk;
  return (
    <>
      <p>
        The output of attention is added to X (a <Term word="residual" /> connection). A <Term word="layer norm" /> then brings each row back to a
        standard size.
      </p>
      <h4>The sum</h4>
      <Formula>
        <I>Z</I>
        <Eq />
        <I>X</I>
        <Plus />
        <I>Y</I>
      </Formula>
      <Residual
        walk={walk}
        sizes={sizes}
        name="Z"
        a={run.hiddenStates[layer]!}
        b={sizes.postNorm ? difference(trace.attn_residual, run.hiddenStates[layer]!) : trace.output}
        sum={trace.attn_residual}
        trace="attn_residual"
      />
      {sizes.postNorm && <PostNorm />}
      <h4>The norm</h4>
      {sizes.preNorm && (
        <p class="note">
          This model is <Term word="pre-norm" />: only the input of the feed-forward network is normalised{sizes.parallel && ', here X'}. Z itself
          stays as it is.
        </p>
      )}
      {sizes.preNorm ? (
        <Norm
          walk={walk}
          sizes={sizes}
          name={sizes.parallel ? 'Norm of X' : 'Norm of Z'}
          input={sizes.parallel ? run.hiddenStates[layer]! : trace.attn_residual}
          output={trace.norm2}
          linear={names?.norm2}
          trace="norm2"
        />
      ) : (
        <Norm walk={walk} sizes={sizes} name="Norm of Z" input={trace.attn_residual} output={trace.norm1} linear={names?.norm1} trace="norm1" />
      )}
    </>
  );
}

export function SecondNormStep({ walk, sizes }: StepProps) {
  const { trace, names, layer, run } = walk;
  return (
    <>
      <p>
        The sum{sizes.preNorm ? '' : ', normalised again,'} is the output of layer {layer + 1}
        {layer + 1 < run.model.layers ? ` and the X of layer ${layer + 2}` : ', the last one'}.
      </p>
      <h4>The sum</h4>
      <Formula>
        <I>R</I>
        <Eq />
        {sizes.preNorm ? (
          <I>Z</I>
        ) : (
          <Call name="norm">
            <I>Z</I>
          </Call>
        )}
        <Plus />
        <I>F</I>
      </Formula>
      <Residual
        walk={walk}
        sizes={sizes}
        name="R"
        a={sizes.preNorm ? trace.attn_residual : trace.norm1}
        b={sizes.postNorm ? difference(trace.ff_residual, trace.attn_residual) : trace.ff_output}
        sum={trace.ff_residual}
        trace="ff_residual"
      />
      {sizes.postNorm && <PostNorm />}
      {sizes.preNorm ? (
        <p class="note">This model is pre-norm: it has no norm here, only one after the last layer.</p>
      ) : (
        <>
          <h4>The norm</h4>
          <Norm walk={walk} sizes={sizes} name="Norm of R" input={trace.ff_residual} output={trace.norm2} linear={names?.norm2} trace="norm2" />
        </>
      )}
    </>
  );
}
