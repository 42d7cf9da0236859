import { useEffect } from 'preact/hooks';
import { shownModel } from '../state/derived.ts';
import { quantized } from '../state/quantized.ts';
import { comparison } from '../state/reference.ts';
import { selfCheck } from '../state/self_check.ts';
import { followSpeed } from '../state/speed.ts';
import '../styles/proof.css';
import { Agreement } from './proof/agreement.tsx';
import { Checks } from './proof/checks.tsx';
import { Quantization } from './proof/quantization.tsx';
import { SpeedPart } from './proof/speed.tsx';

export function ProofSection() {
  useEffect(() => {
    const ends = [comparison.follow(), selfCheck.follow(), quantized.follow(), followSpeed()];
    return () => ends.forEach((end) => end());
  }, []);
  const of = shownModel.value;
  return (
    <section id="proof" aria-labelledby="proof-title">
      <h2 id="proof-title">Proof</h2>
      <div class="lede">
        <p>
          Why believe these numbers? PyTorch, the program in which such models are made, has computed the sentiment classifier too: the page has just
          compared its own numbers with those. It has computed every layer once more without its WebAssembly module. It can show what rounding the
          weights to 8 bits changes. And it has measured how fast this browser is.
        </p>
        <p class="try">
          <strong>Try:</strong> measure the speed again while a video plays in another tab, or with the laptop unplugged.
        </p>
      </div>
      {of && (
        <>
          <Agreement of={of} />
          <Checks of={of} />
          <Quantization of={of} />
          <SpeedPart of={of} />
        </>
      )}
    </section>
  );
}
