import type { Params } from '../state/address.ts';
import type { TaskId } from './task.ts';

export interface Settings {
  readonly task: TaskId;
  readonly layers: number;
  readonly heads: number;
  readonly width: number;
  readonly positions: 'none' | 'sinusoidal' | 'learned';
  /** Scores are divided by √D. */
  readonly scale: boolean;
  readonly initialisation: 'torch' | 'xavier_uniform' | 'kaiming_uniform' | 'normal';
  /** Standard deviation of the Gaussian. */
  readonly std: number;
  readonly dropout: number;
  readonly causal: boolean;
  readonly optimiser: 'adamw' | 'adam' | 'sgd';
  readonly learningRate: number;
  readonly batch: number;
  /** The learning rate falls until this step; then the run pauses. */
  readonly steps: number;
  readonly seed: number;
}

const common: Omit<Settings, 'task'> = {
  layers: 1,
  heads: 1,
  width: 32,
  positions: 'learned',
  scale: true,
  initialisation: 'torch',
  std: 1,
  dropout: 0,
  causal: false,
  optimiser: 'adamw',
  learningRate: 0.001,
  batch: 32,
  steps: 400,
  seed: 1,
};

const perTask: Readonly<Record<TaskId, Partial<Settings>>> = {
  reverse: {},
  previous: {},
  sort: { heads: 2, learningRate: 0.003, batch: 64, steps: 800 },
  brackets: { layers: 2, heads: 2, learningRate: 0.003, steps: 600 },
  frequent: { learningRate: 0.002 },
  reviews: { heads: 2, learningRate: 0.003, dropout: 0.2 },
};

export const taskIds = Object.keys(perTask) as readonly TaskId[];

export const settingsFor = (task: TaskId): Settings => ({ ...common, ...perTask[task], task });

export const choices = {
  positions: ['none', 'sinusoidal', 'learned'],
  initialisation: ['torch', 'xavier_uniform', 'kaiming_uniform', 'normal'],
  optimiser: ['adamw', 'adam', 'sgd'],
} as const;

/** Minimum, maximum, and whether only integers are allowed. */
export const ranges = {
  layers: [1, 2, true],
  heads: [1, 4, true],
  width: [16, 64, true],
  std: [0.001, 5, false],
  dropout: [0, 0.9, false],
  learningRate: [1e-6, 10, false],
  batch: [1, 256, true],
  steps: [1, 5000, true],
  seed: [0, 999_999_999, true],
} as const satisfies Partial<Record<keyof Settings, readonly [number, number, boolean]>>;

export type NumberSetting = keyof typeof ranges;
export type ChoiceSetting = keyof typeof choices;

export function faultOf(name: NumberSetting, value: number, heads = 1): string | undefined {
  const [least, most, isWhole] = ranges[name];
  if (!(value >= least && value <= most) || (isWhole && !Number.isInteger(value)))
    return `${isWhole ? 'A whole number' : 'A number'} from ${least} to ${most}.`;
  if (name === 'width' && (value % heads !== 0 || value % 2 !== 0))
    return `A multiple of ${heads % 2 ? 2 * heads : heads}, so that all heads have the same width.`;
  return undefined;
}

/** Rounds the width so that the heads can share it equally. */
export function fitted(settings: Settings): Settings {
  const unit = settings.heads % 2 ? 2 * settings.heads : settings.heads;
  const width = Math.min(Math.floor(ranges.width[1] / unit), Math.max(1, Math.round(settings.width / unit))) * unit;
  return { ...settings, width };
}

/** Single changes for a second run. */
export const changes: Readonly<Record<string, { readonly label: (of: Settings) => string; readonly change: (of: Settings) => Partial<Settings> }>> = {
  scale: {
    label: ({ scale }) => (scale ? 'without the scale' : 'with the scale'),
    change: ({ scale }) => ({ scale: !scale }),
  },
  gaussian: {
    label: ({ initialisation }) => (initialisation === 'normal' ? 'with Xavier’s weights' : 'with Gaussian weights, std 1'),
    change: ({ initialisation }) => (initialisation === 'normal' ? { initialisation: 'xavier_uniform' } : { initialisation: 'normal', std: 1 }),
  },
  positions: {
    label: ({ positions }) => (positions === 'none' ? 'with learned positions' : 'without positions'),
    change: ({ positions }) => ({ positions: positions === 'none' ? 'learned' : 'none' }),
  },
  causal: {
    label: ({ causal }) => (causal ? 'not causal' : 'causal'),
    change: ({ causal }) => ({ causal: !causal }),
  },
  layers: {
    label: ({ layers }) => (layers === 1 ? 'with 2 layers' : 'with 1 layer'),
    change: ({ layers }) => ({ layers: 3 - layers }),
  },
  heads: {
    label: ({ heads }) => (heads === 1 ? 'with 4 heads' : 'with 1 head'),
    change: ({ heads }) => ({ heads: heads === 1 ? 4 : 1 }),
  },
  optimiser: {
    label: ({ optimiser }) => (optimiser === 'sgd' ? 'with AdamW' : 'with SGD'),
    change: ({ optimiser }) => ({ optimiser: optimiser === 'sgd' ? 'adamw' : 'sgd' }),
  },
  seed: { label: ({ seed }) => `with seed ${seed + 1}`, change: ({ seed }) => ({ seed: seed + 1 }) },
};

export function runsOf(settings: Settings, beside: string): readonly Settings[] {
  const other = Object.hasOwn(changes, beside) ? changes[beside] : undefined;
  return other ? [settings, fitted({ ...settings, ...other.change(settings) })] : [settings];
}

export function settingsToParams(settings: Settings): Params {
  const plain = settingsFor(settings.task);
  const task: Params = settings.task === 'reverse' ? [] : [['train.task', settings.task]];
  const names = Object.keys(common) as readonly (keyof typeof common)[];
  const text = (value: string | number | boolean) => String(typeof value === 'boolean' ? Number(value) : value);
  return [...task, ...names.filter((name) => settings[name] !== plain[name]).map((name) => [`train.${name}`, text(settings[name])] as const)];
}

/** Unknown or invalid values become the task's defaults. */
export function settingsFromParams(params: URLSearchParams): Settings {
  const task = taskIds.find((id) => id === params.get('train.task')) ?? 'reverse';
  const plain = settingsFor(task);
  const read = (name: string) => params.get(`train.${name}`);
  const found: Record<string, unknown> = {};
  for (const name of Object.keys(ranges) as readonly NumberSetting[]) {
    const text = read(name);
    if (text !== null && /^\d+(\.\d+)?(e-?\d+)?$/.test(text) && !faultOf(name, Number(text))) found[name] = Number(text);
  }
  for (const name of Object.keys(choices) as readonly ChoiceSetting[]) {
    const text = read(name);
    if ((choices[name] as readonly (string | null)[]).includes(text)) found[name] = text;
  }
  for (const name of ['scale', 'causal']) {
    const text = read(name);
    if (text === '0' || text === '1') found[name] = text === '1';
  }
  return fitted({ ...plain, ...found });
}
