/** What is printed may come from files of others: control characters could move the cursor, fake a line or turn it round. src/command has the same. */
const controls = /[\p{Cc}\p{Bidi_Control}]/gu;

/** A text for a table or an error: control characters as \u escapes. */
export const shown = (text: string) => text.replace(controls, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** A text as JSON, which means the same with these escapes. */
export const quoted = (text: string) => shown(JSON.stringify(text));
