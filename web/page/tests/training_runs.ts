import { readFileSync } from 'node:fs';
import { load, type Attn } from 'attn';
import { puzzles } from '../src/train/puzzles.ts';
import { reviewsTask } from '../src/train/reviews.ts';
import { settingsFor, type Settings } from '../src/train/settings.ts';
import type { Task, TaskId } from '../src/train/task.ts';

export const loadTraining = (): Promise<Attn> => load({ variant: 'simd' });

export const reviewsBytes = (): Uint8Array => readFileSync(new URL('../src/train/reviews.bin', import.meta.url));
let reviews: Task | undefined;
export const readReviews = (): Task => (reviews ??= reviewsTask(reviewsBytes()));

export const taskOf = (id: TaskId): Task => puzzles.find((each) => each.id === id) ?? readReviews();
export const settingsOf = (task: TaskId, changes: Partial<Settings> = {}): Settings => ({ ...settingsFor(task), ...changes });
