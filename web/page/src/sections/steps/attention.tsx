/** The steps inside the attention of one head: from X to its results. */
import { Fragment } from 'preact';
import { useState } from 'preact/hooks';
import { splitHeads } from '../../arrays.ts';
import { bracketed, brief, fixed, joined } from '../../numbers.ts';
import { changeInFocus, changeLayer, toggled, update, view, type ScoreFunction } from '../../state/view.ts';
import { ofHead } from '../../state/walk.ts';
import { Call, Eq, Formula, I, Plus, Sub, Sum, Transposed } from '../../ui/formula.tsx';
import { Term } from '../../ui/term.tsx';
import { Dot, Working } from '../../ui/working.tsx';
import { softmaxWorking } from '../../workings.ts';
import {
  at,
  before,
  Choice,
  columnInFocus,
  EditHint,
  editX,
  isShown,
  LinearDot,
  LinearTables,
  numberInFocus,
  PairTable,
  rowInFocus,
  Slider,
  TokenTable,
  WeightsBehind,
  type StepProps,
} from './parts.tsx';

export function InputStep({ walk, sizes }: StepProps) {
  const { run, layer, trace } = walk;
  return (
    <>
      <p>
        One row for each <Term word="token" />: its <Term word="hidden state" /> of {sizes.E} numbers.{' '}
        {layer === 0
          ? 'Before the first layer that is the token’s own vector, plus one for its position.'
          : `X is what layer ${layer} has made of them.`}
      </p>
      <Formula>
        <I>X</I>
        <mo>∈</mo>
        <msup>
          <mi>ℝ</mi>
          <mrow>
            <mn>{sizes.L}</mn>
            <mo>×</mo>
            <mn>{sizes.E}</mn>
          </mrow>
        </msup>
      </Formula>
      <EditHint />
      <TokenTable sizes={sizes} name="X" tensor={run.hiddenStates[layer]!} kind="model" edit={editX(sizes.E)} />
      {sizes.preNorm && (
        <>
          <p class="note">
            This model is <Term word="pre-norm" />:{' '}
            {layer === 0 ? 'but its first layer leaves the norm out, and X is used as it is.' : 'X is normed before it is used.'}
          </p>
          {layer > 0 && <TokenTable sizes={sizes} name="Norm of X" tensor={trace.norm1} kind="model" />}
        </>
      )}
    </>
  );
}

type Letter = 'Q' | 'K' | 'V';
const words = { Q: 'query', K: 'key', V: 'value' } as const;
const traces = { Q: 'q_proj', K: 'k_proj', V: 'v_proj' } as const;
const turned = { Q: 'q', K: 'k', V: 'v' } as const;

export function ProjectionStep({ walk, sizes }: StepProps) {
  const [letter, setLetter] = useState<Letter>('Q');
  const { head, trace, names, run, layer } = walk;
  const { D, E, tokens } = sizes;
  const word = words[letter];
  const linear = names?.[word];
  const all = trace[traces[letter]];
  const first = head * D;
  const own = ofHead(splitHeads(all, sizes.H), head);
  const x = sizes.preNorm ? trace.norm1 : run.hiddenStates[layer]!;
  const row = letter === 'Q' ? rowInFocus(sizes) : columnInFocus(sizes);
  const column = numberInFocus('head', D);
  const rotates = sizes.rotary && letter !== 'V';
  return (
    <>
      <p>
        Three small matrices of this <Term word="head" /> make a <Term word="query" />, a <Term word="key" /> and a <Term word="value" /> of {D}{' '}
        numbers from each row of X.
      </p>
      <Choice
        name="Projection shown"
        value={letter}
        options={[
          ['Q', 'Queries'],
          ['K', 'Keys'],
          ['V', 'Values'],
        ]}
        onChange={setLetter}
      />
      <Formula>
        <I>{letter}</I>
        <Eq />
        <I>X</I>
        <Sub base="W" sub={letter} />
        {linear?.bias && (
          <>
            <Plus />
            <Sub base="b" sub={letter} />
          </>
        )}
      </Formula>
      <TokenTable sizes={sizes} name={letter} tensor={own} kind="head" of={letter === 'Q' ? 'query' : 'key'} />
      <Working
        name={`${letter} of ${tokens[row]}, number ${column + 1}`}
        value={at(own, row, column)}
        before={before(walk, traces[letter], row * all.dims[2]! + first + column)}
      >
        {isShown(walk, linear) && (
          <LinearDot
            walk={walk}
            linear={linear}
            part={{ out: [first, D] }}
            a={(e) => at(x, row, e)}
            count={E}
            column={column}
            result={at(own, row, column)}
          />
        )}
      </Working>
      {rotates && (
        <>
          <p class="note">
            This model has <Term word="rotary">rotary positions</Term>: before they are compared, the rows of {letter} are turned by an angle that
            depends on their position only. Nothing about it is learned, so there is nothing to change.
          </p>
          <TokenTable
            sizes={sizes}
            name={`${letter}, turned`}
            tensor={ofHead(trace[turned[letter]], head)}
            kind="head"
            of={letter === 'Q' ? 'query' : 'key'}
          />
        </>
      )}
      {isShown(walk, linear) ? (
        <WeightsBehind>
          <LinearTables
            key={letter}
            walk={walk}
            name={`W_${letter}`}
            biasName={`b_${letter}`}
            linear={linear}
            part={{ out: [first, D] }}
            inKind="model"
            outKind="head"
          />
          <p class="note">
            In the model’s file W_{letter} is part of {linear.weight.name}
            {linear.weight.first > 0 || linear.weight.count !== walk.parameters.get(linear.weight.name)!.dims[0]
              ? ', which holds the matrices for queries, keys and values one after the other'
              : ''}
            : {D} of its {linear.weight.count} columns belong to this head.
          </p>
        </WeightsBehind>
      ) : (
        <p class="note">The page does not know where this family of models keeps these weights.</p>
      )}
    </>
  );
}

const scoreFunctions: Readonly<Record<ScoreFunction, string>> = {
  scaled_dot: 'Scaled dot product (Vaswani et al. 2017)',
  dot: 'Dot product (Luong et al. 2015)',
  general: 'General (Luong et al. 2015)',
  additive: 'Additive (Bahdanau et al. 2015)',
};

const qi = <Sub base="q" sub="i" />;
const kj = <Sub base="k" sub="j" />;

function ScoreFormula({ score }: { score: ScoreFunction }) {
  return (
    <Formula>
      <Sub base="s" sub="ij" />
      <Eq />
      {score === 'additive' ? (
        <>
          <Transposed>
            <I>v</I>
          </Transposed>
          <Call name="tanh">
            <Sub base="W" sub="Q" />
            {qi}
            <Plus />
            <Sub base="W" sub="K" />
            {kj}
          </Call>
        </>
      ) : (
        <>
          {qi}
          {score === 'general' && <I>W</I>}
          <Transposed>{kj}</Transposed>
        </>
      )}
    </Formula>
  );
}

export function CompareStep({ walk, sizes }: StepProps) {
  const { head, trace, products } = walk;
  const { score } = changeInFocus.value;
  const [row, column] = [rowInFocus(sizes), columnInFocus(sizes)];
  const [q, k] = [ofHead(trace.q, head), ofHead(trace.k, head)];
  const value = at(products, row, column);
  return (
    <>
      <p>
        Every query is compared with every key by their <Term word="dot product" />. The larger it is, the better the key fits the query.
      </p>
      <ScoreFormula score={score} />
      <div class="step-controls">
        <label class="field">
          <span>Score function</span>
          <select value={score} onChange={(event) => changeLayer({ score: event.currentTarget.value as ScoreFunction })}>
            {Object.entries(scoreFunctions).map(([each, label]) => (
              <option key={each} value={each}>
                {label}
              </option>
            ))}
          </select>
        </label>
        {score === 'scaled_dot' && <p class="note">This model was trained with this one. The others are older ways to compare.</p>}
        {(score === 'general' || score === 'additive') && (
          <p class="note">
            This model has no learned weights for it, so{' '}
            {score === 'general'
              ? 'W is the identity matrix, and what is left is the dot product'
              : 'W_Q and W_K are identity matrices, and v is all ones'}
            .
          </p>
        )}
      </div>
      <PairTable
        sizes={sizes}
        name={score === 'additive' ? 'Scores before the scale' : 'Q times K transposed'}
        value={(i, j) => at(products, i, j)}
      />
      <Working name={`${sizes.tokens[row]} to ${sizes.tokens[column]}, before the scale`} value={value}>
        {score === 'additive' ? (
          <>
            {Array.from({ length: Math.min(8, sizes.D) }, (_, d) => (
              <Fragment key={d}>
                <span class="working-term">
                  {d > 0 && '+ '}tanh(<span class="as-query">{brief(at(q, row, d))}</span> + <span class="as-key">{bracketed(at(k, column, d))}</span>
                  )
                </span>{' '}
              </Fragment>
            ))}
            {sizes.D > 8 && <span class="note">+ {sizes.D - 8} more </span>}= {fixed(value)}
          </>
        ) : (
          <Dot a={(d) => at(q, row, d)} b={(d) => at(k, column, d)} count={sizes.D} result={value} />
        )}
      </Working>
    </>
  );
}

export function ScaleStep({ walk, sizes }: StepProps) {
  const { head, trace, products } = walk;
  const { factor, score } = changeInFocus.value;
  const scores = ofHead(trace.scores, head);
  const [row, column] = [rowInFocus(sizes), columnInFocus(sizes)];
  const unscaled = score === 'scaled_dot' ? 1 / Math.sqrt(sizes.D) : 1;
  const scale = factor * unscaled;
  const value = at(scores, row, column);
  const product = at(products, row, column);
  return (
    <>
      <p>
        All scores are multiplied by one factor: one over the root of a query’s width. Without it, wide queries give large scores, and a few tokens
        get all the attention.
      </p>
      <Formula>
        <I>S</I>
        <Eq />
        <I>Q</I>
        <Transposed>
          <I>K</I>
        </Transposed>
        <mo>·</mo>
        <mfrac>
          <mn>{factor}</mn>
          {score === 'scaled_dot' ? (
            <msqrt>
              <mn>{sizes.D}</mn>
            </msqrt>
          ) : (
            <mn>1</mn>
          )}
        </mfrac>
        {sizes.positionBias && (
          <>
            <Plus />
            <I>B</I>
          </>
        )}
      </Formula>
      <div class="step-controls">
        <Slider
          label="Score scale"
          min={0}
          max={4}
          step={0.05}
          value={factor}
          text={`${factor} × ${score === 'scaled_dot' ? `1/√${sizes.D}` : '1'} = ${fixed(scale, 4)}`}
          hint="Larger: each token looks at fewer tokens. Zero: it looks at all of them equally."
          onInput={(value) => changeLayer({ factor: value })}
        />
        <button type="button" disabled={factor === 1} onClick={() => changeLayer({ factor: 1 })}>
          Usual scale
        </button>
      </div>
      <PairTable sizes={sizes} name="S, the scaled scores" value={(i, j) => at(scores, i, j)} />
      <Working
        name={`${sizes.tokens[row]} to ${sizes.tokens[column]}, scaled`}
        value={value}
        before={before(walk, 'scores', (head * sizes.L + row) * sizes.L + column)}
      >
        {fixed(product)} · {fixed(scale)}
        {sizes.positionBias && (
          <>
            {' '}
            {joined(value - product * scale)} <span class="note">position bias</span>
          </>
        )}{' '}
        = {fixed(value)}
      </Working>
      {sizes.positionBias && (
        <p class="note">
          This model adds a <Term word="position bias" />: one learned number for each distance between two tokens, the same in all layers. It cannot
          be changed here.
        </p>
      )}
    </>
  );
}

export function MaskStep({ walk, sizes }: StepProps) {
  const { head, trace } = walk;
  const { causal, padding, drawn } = view.value;
  const masked = ofHead(trace.masked_scores, head);
  const { L, tokens } = sizes;
  const [row, column] = [rowInFocus(sizes), columnInFocus(sizes)];
  const value = at(masked, row, column);
  const reasons = [
    causal && column > row && 'the key comes later, and the causal mask hides later keys',
    padding.includes(column) && 'the key is hidden as padding',
    drawn.includes(row * L + column) && 'you blocked it in the drawn mask',
  ].filter((each) => each !== false);
  return (
    <>
      <p>
        A <Term word="mask" /> says which keys a query may not look at. Their scores become −Infinity, and softmax turns that into 0. It applies to
        every layer and head.
      </p>
      <Formula>
        <Sub base="s" sub="ij" />
        <Eq />
        <mo>−</mo>
        <mi mathvariant="normal">∞</mi>
        <mspace width="0.6em" />
        <mtext>where blocked</mtext>
      </Formula>
      <div class="step-controls">
        <label class="check">
          <input type="checkbox" checked={causal} onChange={(event) => update({ causal: event.currentTarget.checked })} />
          <span>Hide later tokens</span>
        </label>
        <fieldset class="token-toggles">
          <legend>
            Hide tokens as <Term word="padding" />
          </legend>
          {tokens.map((token, j) => (
            <button
              key={j}
              type="button"
              aria-pressed={padding.includes(j)}
              aria-label={`Hide ${token}, token ${j + 1}`}
              onClick={() => update({ padding: toggled(padding, j) })}
            >
              {token}
            </button>
          ))}
        </fieldset>
        <div class="buttons">
          <p class="note">To draw your own mask, click cells of the table, or press Enter on them.</p>
          <button type="button" disabled={drawn.length === 0} onClick={() => update({ drawn: [] })}>
            Clear the drawn mask
          </button>
        </div>
      </div>
      <PairTable
        sizes={sizes}
        name="Masked scores"
        value={(i, j) => at(masked, i, j)}
        toggle={{
          flip: (cell) => update({ drawn: toggled(drawn, cell.row * L + cell.column) }),
          on: (cell) => drawn.includes(cell.row * L + cell.column),
        }}
      />
      <Working name={`${tokens[row]} to ${tokens[column]}, masked`} value={value}>
        {value === -Infinity
          ? `Blocked: ${reasons.join('; ') || (sizes.rotary ? 'it is outside of what this layer’s local attention can see, or it is padding' : 'it is padding')}.`
          : 'Not blocked: the score stays the same.'}
      </Working>
    </>
  );
}

export function SoftmaxStep({ walk, sizes }: StepProps) {
  const { head, trace } = walk;
  const { dropout, seed } = changeInFocus.value;
  const { L, tokens } = sizes;
  const [row, column] = [rowInFocus(sizes), columnInFocus(sizes)];
  const masked = ofHead(trace.masked_scores, head);
  const shares = ofHead(trace.probabilities, head);
  const weights = ofHead(trace.weights, head);
  const working = softmaxWorking(masked.data.subarray(row * L, (row + 1) * L));
  const sumOf = (tensor: typeof shares, i: number) => tensor.data.subarray(i * L, (i + 1) * L).reduce((a, b) => a + b, 0);
  const most = working ? [...working.exponentials.keys()].sort((a, b) => working.exponentials[b]! - working.exponentials[a]!).slice(0, 8) : [];
  return (
    <>
      <p>
        <Term word="softmax">Softmax</Term> turns each row into shares that add up to 1: the <Term word="attention weight">attention weights</Term>.
        This is what the map above shows.
      </p>
      <Formula>
        <Sub base="a" sub="ij" />
        <Eq />
        <mfrac>
          <Call name="exp">
            <Sub base="s" sub="ij" />
          </Call>
          <Sum over="k">
            <Call name="exp">
              <Sub base="s" sub="ik" />
            </Call>
          </Sum>
        </mfrac>
      </Formula>
      <PairTable
        sizes={sizes}
        name="A, the shares"
        value={(i, j) => at(shares, i, j)}
        tint={(i, j) => at(shares, i, j)}
        total={{ name: 'row sum', value: (i) => sumOf(shares, i) }}
      />
      <Working
        name={`${tokens[row]} to ${tokens[column]}, share`}
        value={at(shares, row, column)}
        before={before(walk, 'probabilities', (head * L + row) * L + column)}
      >
        {working ? (
          <>
            exp({brief(at(masked, row, column))} − {bracketed(working.largest)}) = {fixed(working.exponentials[column]!)}
            <br />
            sum of the row: {most.map((j) => `${fixed(working.exponentials[j]!, 4)} (${tokens[j]})`).join(' + ')}
            {L > most.length && ` + ${L - most.length} smaller ones`} = {fixed(working.sum)}
            <br />
            {fixed(working.exponentials[column]!)} / {fixed(working.sum)} = {fixed(working.exponentials[column]! / working.sum)}
          </>
        ) : (
          'Every key is blocked, so all get the same share, as in the transformers library.'
        )}
      </Working>
      {working && (
        <p class="note">
          The largest score of the row is subtracted first. That does not change the shares, and it keeps the exponentials from overflowing.
        </p>
      )}
      <p>
        In training, <Term word="dropout" /> sets some of the weights to 0 at random. Try it here: the same seed hits the same weights.
      </p>
      <div class="step-controls">
        <Slider
          label="Dropout"
          min={0}
          max={0.9}
          step={0.05}
          value={dropout}
          text={dropout === 0 ? 'none' : String(dropout)}
          hint="How likely a weight is set to 0. The others grow to make up for it."
          onInput={(value) => changeLayer({ dropout: value })}
        />
        <label class="field seed">
          <span>Dropout seed</span>
          <input
            type="number"
            min={0}
            step={1}
            value={seed}
            onInput={(event) => {
              const value = event.currentTarget.valueAsNumber;
              if (Number.isSafeInteger(value) && value >= 0) changeLayer({ seed: value });
            }}
          />
        </label>
      </div>
      {dropout > 0 && (
        <PairTable
          sizes={sizes}
          name="A after dropout"
          value={(i, j) => at(weights, i, j)}
          tint={(i, j) => at(weights, i, j)}
          total={{ name: 'row sum', value: (i) => sumOf(weights, i) }}
        />
      )}
    </>
  );
}

export function ContextStep({ walk, sizes }: StepProps) {
  const { head, trace } = walk;
  const { L, D, tokens } = sizes;
  const [weights, v, context] = [ofHead(trace.weights, head), ofHead(trace.v, head), ofHead(trace.context, head)];
  const [row, column] = [rowInFocus(sizes), numberInFocus('head', D)];
  return (
    <>
      <p>Multiply the value of every token by its share and add them up. The result is a mixture of the values the query looked at.</p>
      <Formula>
        <Sub base="o" sub="i" />
        <Eq />
        <Sum over="j">
          <Sub base="a" sub="ij" />
          <Sub base="v" sub="j" />
        </Sum>
      </Formula>
      <TokenTable sizes={sizes} name="AV, the results of this head" tensor={context} kind="head" of="query" />
      <Working
        name={`Result of ${tokens[row]}, number ${column + 1}`}
        value={at(context, row, column)}
        before={before(walk, 'context', (head * L + row) * D + column)}
      >
        <Dot a={(j) => at(weights, row, j)} b={(j) => at(v, j, column)} count={L} result={at(context, row, column)} />
      </Working>
      <p class="note">In each product the first number is a token’s share, the second is from its value.</p>
    </>
  );
}
