import { useEffect, useRef } from 'preact/hooks';
import { shownModel } from '../state/background.ts';
import { quantized } from '../state/quantized.ts';
import { comparison } from '../state/reference.ts';
import { selfCheck } from '../state/self_check.ts';
import { followSpeed } from '../state/speed.ts';
import '../styles/proof.css';
import { useSeen } from '../ui/seen.ts';
import type { LoadedModel } from '../model/loaded.ts';
import { Agreement, total } from './proof/agreement.tsx';
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
      module
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
  return (
    <section id="proof" ref={section} aria-labelledby="proof-title">
      <h3 id="proof-title" class="sub-title">
        Proof
      </h3>
      <div class="lede">
        <p>
          Why should you believe these numbers? PyTorch, the library in which such models are made, has also computed the sentiment classifier, and
          this page has just compared its numbers with PyTorch’s. It has recomputed every layer without its WebAssembly module. It can show how
          rounding the weights to 8 bits changes the results. And it has measured the speed of this browser.
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
