/**
 * Control and bidirectional characters: in a file's texts they could move the cursor, fake a line or reverse the text.
 * src/command has the same set.
 */
const controls = /[\p{Cc}\p{Bidi_Control}]/gu;

/** Escapes control characters as \u for a table or an error. */
export const shown = (text: string) => text.replace(controls, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** Encodes JSON with the same escapes. */
export const quoted = (text: string) => shown(JSON.stringify(text));
