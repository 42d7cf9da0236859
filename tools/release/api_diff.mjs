/**
 * Names that were removed, changed and added between two surfaces (surface.mjs), as "attn/worker: TextModel.embed"
 * and declarations.
 */
export function differences(before, after) {
  const found = { removed: [], changed: [], added: [] };
  for (const [language, names] of Object.entries(before))
    for (const [name, declarations] of Object.entries(names)) {
      const now = after[language]?.[name];
      if (!now) found.removed.push({ name: `${language}: ${name}`, before: declarations });
      else if (declarations.some((each) => !now.includes(each)))
        found.changed.push({ name: `${language}: ${name}`, before: declarations, after: now });
    }
  for (const [language, names] of Object.entries(after))
    for (const name of Object.keys(names)) if (!before[language]?.[name]) found.added.push({ name: `${language}: ${name}`, after: names[name] });
  return found;
}

export function describe({ removed, changed, added }) {
  return [
    ...removed.map(({ name, before }) => `gone     ${name}   was  ${before.join(' | ')}`),
    ...changed.map(({ name, before, after }) => {
      const [old, now] = [before.filter((each) => !after.includes(each)), after.filter((each) => !before.includes(each))];
      return `changed  ${name}   was  ${old.join(' | ')}   is  ${now.join(' | ')}`;
    }),
    ...added.map(({ name }) => `new      ${name}`),
  ];
}
