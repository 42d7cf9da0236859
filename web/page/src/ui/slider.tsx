import type { ComponentChildren } from 'preact';

/** A range with a label, its value in words, and a note. */
export function Slider({
  id,
  label,
  min,
  max,
  step,
  value,
  text,
  hint,
  onInput,
}: {
  id: string;
  label: string;
  min: number;
  max: number;
  step: number;
  value: number;
  text: string;
  hint: ComponentChildren;
  onInput: (value: number) => void;
}) {
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
