import { fixed } from '../formats/numbers.ts';
import { layerTrace, run } from '../state/run.ts';
import { headInFocus, layerInFocus } from '../state/map_view.ts';
import { cellChosen } from '../state/pointed.ts';
import { StripRows } from '../ui/strip.tsx';

const told = 3;

const signed = (value: number) => `${value < 0 ? '−' : '+'}${fixed(Math.abs(value), 2)}`;

export function Dimensions() {
  return (
    <div class="dimensions">
      <h3>Why this weight? Query and key, dimension by dimension</h3>
      <Strips />
    </div>
  );
}

function Strips() {
  const [of, inside, cell] = [run.value, layerTrace.value, cellChosen.value];
  if (!of || inside?.run !== of || inside.layer !== layerInFocus.value) return null;
  const { q, k } = inside.trace;
  const [length, width] = [q.dims[2]!, q.dims[3]!];
  // Several query heads may share one key head.
  const [head, keyHead] = [headInFocus.value, Math.floor((headInFocus.value * k.dims[1]!) / q.dims[1]!)];
  if (cell.row >= length || cell.column >= length) return null;
  const query = q.data.subarray((head * length + cell.row) * width, (head * length + cell.row + 1) * width);
  const key = k.data.subarray((keyHead * length + cell.column) * width, (keyHead * length + cell.column + 1) * width);
  const products = query.map((value, d) => value * key[d]!);
  const sum = products.reduce((a, b) => a + b, 0);
  const order = Array.from(products.keys()).sort((a, b) => Math.abs(products[b]!) - Math.abs(products[a]!));
  const [from, to] = [of.tokens[cell.row]!, of.tokens[cell.column]!];
  return (
    <>
      <StripRows
        rows={[
          { name: `query of ${from}`, values: query },
          { name: `key of ${to}`, values: key },
          { name: 'query × key', values: products },
        ]}
      />
      <p>
        The products add up to <strong class="figure">{signed(sum)}</strong>. The largest contributions come from dimension{' '}
        {order.slice(0, told).map((d, i) => (
          <span key={d}>
            {i > 0 && ', '}
            {d + 1} (<span class="figure">{signed(products[d]!)}</span>)
          </span>
        ))}
        . This sum is scaled, and softmax over all keys turns it into the weight. <span class="plus">Violet is positive</span>,{' '}
        <span class="minus">gold negative</span>.
      </p>
    </>
  );
}
