import { useEffect, useRef } from 'preact/hooks';
import { scientific } from '../formats/numbers.ts';
import { editedWeights, shownModel } from '../state/background.ts';
import { openBeside } from '../state/load_model.ts';
import { quantized } from '../state/quantized.ts';
import { comparison, exactOf, referenced } from '../state/reference.ts';
import { selfCheck } from '../state/self_check.ts';
import { followSpeed } from '../state/speed.ts';
import '../styles/proof.css';
import { useSeen } from '../ui/seen.ts';
import type { LoadedModel } from '../model/loaded.ts';
import { Agreement, largest, total } from './proof/agreement.tsx';
import { Checks } from './proof/checks.tsx';
import { Quantization } from './proof/quantization.tsx';
import { SpeedPart } from './proof/speed.tsx';

function Line({ of }: { of: LoadedModel }) {
  const torch = comparison.value.value?.model === of ? comparison.value.value : undefined;
  const own = selfCheck.value.value?.model === of ? selfCheck.value.value : undefined;
  if (!own) return <>The numbers are checked when you come here.</>;
  const rows = [...(torch?.rows ?? []), ...own.steps];
  const agrees = rows.every(({ passes }) => passes);
  return (
    <span class={agrees ? 'proof-line' : 'proof-line failed'}>
      {agrees ? '✓' : '✗'} {total(rows)} numbers {agrees ? 'agree' : 'do not all agree'} with {torch ? 'PyTorch and ' : ''}a calculation without the
      module; the largest difference is {scientific(largest(rows).difference)}
    </span>
  );
}

export function ProofSection() {
  const section = useRef<HTMLElement>(null);
  // The checks take seconds, so they start when the visitor comes near, early enough to move nothing.
  const isNear = useSeen(section, 1500);
  const wasSeen = useRef(false);
  wasSeen.current ||= isNear;
  useEffect(() => {
    if (!wasSeen.current) return;
    const ends = [comparison.follow(), selfCheck.follow(), quantized.follow(), followSpeed()];
    return () => ends.forEach((end) => end());
  }, [wasSeen.current]);
  const of = shownModel.value;
  // PyTorch's numbers need the same weights as float32. They are small, and were downloaded already.
  useEffect(() => {
    if (wasSeen.current && of && referenced.includes(of.id) && !exactOf(of) && editedWeights.value.length === 0) void openBeside();
  }, [wasSeen.current, of]);
  return (
    <section id="proof" ref={section} aria-labelledby="proof-title">
      <h3 id="proof-title" class="sub-title">
        Proof
      </h3>
      <div class="lede">
        <p>
          Why should you believe these numbers? This page recomputes every layer without its WebAssembly module. It compares its mask model and its
          classifier with the results of PyTorch, the library in which such models are made. It shows how rounding the weights to 8 bits changes the
          results, and it measures the speed of this browser.
        </p>
        <p class="try">
          <strong>Try:</strong> measure the speed again while a video plays in another tab, or with your laptop unplugged.
        </p>
      </div>
      <details class="proof-all">
        <summary>{of ? <Line of={of} /> : 'The numbers are checked once there is a model.'}</summary>
        {of && (
          <>
            <Agreement of={of} />
            <Checks of={of} />
            <Quantization of={of} />
            <SpeedPart of={of} />
          </>
        )}
      </details>
    </section>
  );
}
