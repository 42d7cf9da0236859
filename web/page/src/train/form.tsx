import { useId, useState } from 'preact/hooks';
import { beside, choose, chooseBeside, choosePace, pace, paces, settings } from './state.ts';
import { changes, choices, faultOf, fitted, ranges, settingsFor, type ChoiceSetting, type NumberSetting } from './settings.ts';
import { choiceWords, numberWords, switchWords } from './words.ts';

/** The settings that a task changes, or that are rarely changed. */
const further = ['width', 'scale', 'causal', 'dropout', 'optimiser', 'learningRate', 'batch', 'steps', 'seed'] as const;

export function SettingsForm() {
  const of = settings.value;
  // A link may contain any of them.
  const [isOpen, setOpen] = useState(false);
  if (!isOpen && further.some((name) => of[name] !== settingsFor(of.task)[name])) setOpen(true);
  return (
    <div class="train-settings">
      <h3>Change the setting</h3>
      <div class="train-setting-grid">
        <NumberField name="layers" />
        <NumberField name="heads" />
        <Choice name="positions" />
        <Choice name="initialisation" />
        {of.initialisation === 'normal' && <NumberField name="std" />}
        <Pick
          name="Second run for comparison"
          hint="The same seed with one change."
          value={beside.value}
          options={[['', 'none'], ...Object.entries(changes).map(([id, { label }]) => [id, label(of)] as const)]}
          onChoose={chooseBeside}
        />
      </div>
      <details open={isOpen}>
        <summary>More settings</summary>
        <div class="train-setting-grid">
          <NumberField name="width" />
          <Switch name="scale" />
          <Switch name="causal" />
          <NumberField name="dropout" />
          <Choice name="optimiser" />
          <NumberField name="learningRate" />
          <NumberField name="batch" />
          <NumberField name="steps" />
          <NumberField name="seed" />
          <Pick
            name="Pace"
            hint="A slower pace lets you watch the maps."
            value={pace.value}
            options={Object.entries(paces).map(([id, { label }]) => [id, label] as const)}
            onChoose={choosePace}
          />
        </div>
      </details>
    </div>
  );
}

function Pick({
  name,
  hint,
  value,
  options,
  onChoose,
}: {
  name: string;
  hint: string;
  value: string;
  options: readonly (readonly [string, string])[];
  onChoose: (value: string) => void;
}) {
  const id = useId();
  return (
    <div class="train-setting">
      <label for={id}>{name}</label>
      <select id={id} value={value} aria-describedby={`${id}-hint`} onChange={(event) => onChoose(event.currentTarget.value)}>
        {options.map(([key, label]) => (
          <option key={key} value={key}>
            {label}
          </option>
        ))}
      </select>
      <p id={`${id}-hint`}>{hint}</p>
    </div>
  );
}

function Choice({ name }: { name: ChoiceSetting }) {
  const { name: called, hint, values } = choiceWords[name];
  return (
    <Pick
      name={called}
      hint={hint}
      value={settings.value[name]}
      options={choices[name].map((value) => [value, values[value]!] as const)}
      onChoose={(value) => choose({ [name]: value })}
    />
  );
}

function Switch({ name }: { name: keyof typeof switchWords }) {
  const id = useId();
  const { name: called, hint } = switchWords[name];
  return (
    <div class="train-setting">
      <label for={id}>{called}</label>
      <input
        id={id}
        type="checkbox"
        checked={settings.value[name]}
        aria-describedby={`${id}-hint`}
        onChange={(event) => choose({ [name]: event.currentTarget.checked })}
      />
      <p id={`${id}-hint`}>{hint}</p>
    </div>
  );
}

function NumberField({ name }: { name: NumberSetting }) {
  const id = useId();
  /** Invalid input, as typed. */
  const [typed, setTyped] = useState<string>();
  const of = settings.value;
  const { name: called, hint, step } = numberWords[name];
  const [least, most] = ranges[name];
  const fault = typed === undefined ? undefined : faultOf(name, typed.trim() === '' ? NaN : Number(typed), of.heads);
  const set = (text: string) => {
    const value = text.trim() === '' ? NaN : Number(text);
    if (faultOf(name, value, of.heads)) return void setTyped(text);
    setTyped(undefined);
    if (value !== of[name]) choose(name === 'heads' ? fitted({ ...of, heads: value }) : { [name]: value });
  };
  return (
    <div class="train-setting">
      <label for={id}>{called}</label>
      <input
        id={id}
        type="number"
        min={least}
        max={most}
        step={step}
        value={typed ?? String(of[name])}
        aria-invalid={fault ? 'true' : undefined}
        aria-describedby={`${id}-hint`}
        onInput={(event) => set(event.currentTarget.value)}
      />
      <p id={`${id}-hint`} class={fault ? 'error' : ''} role={fault ? 'alert' : undefined}>
        {fault ?? hint}
      </p>
    </div>
  );
}
