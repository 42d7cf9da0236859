export const paper = '#ffffff';
export const ink = '#16181d';
export const queryInk = '#1f4fc4';
export const keyInk = '#a03f09';
export const valueInk = '#0d7a55';
export const font = "'DejaVu Sans', Verdana, sans-serif";

/** XML allows no control characters. */
export const escaped = (text: string) =>
  text
    .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '\ufffd')
    .replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign]!);
