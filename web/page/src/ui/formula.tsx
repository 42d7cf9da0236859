/** MathML elements. */
import type { ComponentChildren } from 'preact';

// Strings, because Preact omits attributes that are false.
const plain: object = { stretchy: 'false' };
const beside: object = { movablelimits: 'false' };

export const Formula = ({ children }: { children: ComponentChildren }) => (
  <math display="block" class="formula">
    {children}
  </math>
);

export const I = ({ children }: { children: string }) => <mi>{children}</mi>;
export const Eq = () => <mo>=</mo>;
export const Plus = () => <mo>+</mo>;
/** Each letter of a short subscript is an index; longer ones are words. */
export const Sub = ({ base, sub }: { base: string; sub: string }) => (
  <msub>
    <mi>{base}</mi>
    <mrow>{sub.length > 2 ? <mi>{sub}</mi> : [...sub].map((letter) => <mi key={letter}>{letter}</mi>)}</mrow>
  </msub>
);
export const Transposed = ({ children }: { children: ComponentChildren }) => (
  <msup>
    {children}
    <mi mathvariant="normal">T</mi>
  </msup>
);
export const Group = ({ children }: { children: ComponentChildren }) => (
  <mrow>
    <mo {...plain}>(</mo>
    {children}
    <mo {...plain}>)</mo>
  </mrow>
);
export const Call = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <mrow>
    <mi mathvariant="normal">{name}</mi>
    <mo {...plain}>(</mo>
    {children}
    <mo {...plain}>)</mo>
  </mrow>
);
export const Sum = ({ over, children }: { over: string; children: ComponentChildren }) => (
  <mrow>
    <munder>
      <mo {...beside}>∑</mo>
      <mi>{over}</mi>
    </munder>
    {children}
  </mrow>
);
