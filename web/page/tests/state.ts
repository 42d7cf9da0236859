/** The state of the page without a page: what browsers have and Node does not, and the package beside it instead of in a worker. */
import { readFileSync } from 'node:fs';
import { AttnError, type Attn as Direct, type ErrorCode, type TextModel as DirectModel } from 'attn';
import type { Attn } from 'attn/worker';
import { expect, vi } from 'vitest';
import type { LoadedModel } from '../src/model/loaded.ts';
import { engine, model } from '../src/state/model.ts';
import { initialView, view, type View } from '../src/state/view.ts';
import { loadDirect, openModel } from './models.ts';

/** Milliseconds: `make mutants` has less patience with what will not come. */
const mostWait = Number(process.env['ATTN_TEST_WAIT'] ?? 120_000);
vi.setConfig({ testTimeout: 2 * mostWait, hookTimeout: 2 * mostWait });

/** Waits until it holds; says what it waited for. */
export const until = (what: string, holds: () => unknown): Promise<void> =>
  vi.waitFor(() => expect(Boolean(holds()), what).toBe(true), { timeout: mostWait, interval: 5 });

/** Long enough for what would follow at once. */
export const aMoment = (milliseconds = 60): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** What work waits at: it passes when it is let, as often as it is let. */
export function gate(): { readonly waiting: number; readonly pass: () => Promise<void>; readonly let: (times?: number) => void } {
  const queue: (() => void)[] = [];
  let free = 0;
  return {
    get waiting() {
      return queue.length;
    },
    pass: () =>
      new Promise<void>((resolve) => {
        if (free > 0) {
          --free;
          resolve();
        } else queue.push(resolve);
      }),
    let(times = Infinity) {
      free += times;
      for (; free > 0 && queue.length > 0; --free) queue.shift()!();
    },
  };
}

/** Vite's addresses of files, as fetch in a page takes them. */
export const fetchFile = async (url: string): Promise<Response> => new Response(Uint8Array.from(readFileSync(url.replace(/^\/@fs/, ''))));

export const failing = (code: ErrorCode, message = 'planted') => new AttnError(code, message);

/** Methods of a model replaced: each is given the model's own. */
export type Changes = Readonly<Record<string, (own: (...args: unknown[]) => unknown, ...args: unknown[]) => unknown>>;

export function changed(text: DirectModel, changes: Changes): DirectModel {
  return new Proxy(text, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== 'function') return value;
      const own = (...args: unknown[]): unknown => value.apply(target, args);
      const change = changes[String(name)];
      return change ? (...args: unknown[]) => change(own, ...args) : own;
    },
  });
}

export async function openNamed(direct: Direct, name: string, changes: Changes = {}): Promise<LoadedModel> {
  const of = await openModel(direct, name, (text) => changed(text, changes));
  return { ...of, id: name, name: `the model ${name}` };
}

/** The module and a model, as if they had been loaded, and a view of it. */
export async function open(
  name: string,
  of: Partial<View> = {},
): Promise<{ readonly attn: Attn; readonly direct: Direct; readonly of: LoadedModel }> {
  const { attn, direct } = await loadDirect();
  const loaded = await openNamed(direct, name);
  engine.value = attn;
  model.value = loaded;
  view.value = { ...initialView, ...of };
  return { attn, direct, of: loaded };
}
