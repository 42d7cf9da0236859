/** Vite's dev server serves scripts of packages from a folder of its own (Vite 7: not what lies beside them, which stays in the package). */
export const placed = (url: string) => url.replace('/.vite/deps/', '/attn/dist/');

export const noWorkers = 'workers cannot be started here';
