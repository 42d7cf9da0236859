/** Gives a host what it lacks of the globals that attn needs. Called by load: nothing runs at import. */
export function complete(globals: Readonly<Record<string, unknown>>): void {
  for (const [name, value] of Object.entries(globals)) if (!(name in globalThis)) Object.assign(globalThis, { [name]: value });
}
