/** Runs the page state in Node, without browser functions and without a worker. */
import { readFileSync } from 'node:fs';
import { AttnError, type Attn as Direct, type ErrorCode, type TextModel as DirectModel } from 'attn';
import type { Attn } from 'attn/worker';
import { expect, vi } from 'vitest';
import type { LoadedModel } from '../src/model/loaded.ts';
import { engine, model } from '../src/state/model.ts';
import { wantsParameters } from '../src/state/run.ts';
import { initialView, view, type View } from '../src/state/view.ts';
import { loadDirect, openModel } from './models.ts';

/** Milliseconds; `make mutants` sets a shorter limit. */
const mostWait = Number(process.env['ATTN_TEST_WAIT'] ?? 120_000);
vi.setConfig({ testTimeout: 2 * mostWait, hookTimeout: 2 * mostWait });

// As with the whole page.
wantsParameters.value = true;

export const until = (what: string, holds: () => unknown): Promise<void> =>
  vi.waitFor(() => expect(Boolean(holds()), what).toBe(true), { timeout: mostWait, interval: 5 });

/** Long enough for immediate reactions. */
export const aMoment = (milliseconds = 60): Promise<void> => new Promise((resolve) => setTimeout(resolve, milliseconds));

/** Blocks each `pass` until `let` admits it. */
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

/** Reads Vite's file URLs, as fetch does in a page. */
export const fetchFile = async (url: string): Promise<Response> => new Response(Uint8Array.from(readFileSync(url.replace(/^\/@fs/, ''))));

export const failing = (code: ErrorCode, message = 'planted') => new AttnError(code, message);

/** Replaced methods of a model; each receives the original. */
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
