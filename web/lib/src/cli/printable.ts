/** Characters of a file's texts that could move the cursor or fake a line. src/command has the same set. */
const controls = /[\p{Cc}\p{Bidi_Control}]/gu;

export const printable = (text: string) => text.replace(controls, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);

export const quoted = (text: string) => printable(JSON.stringify(text));
