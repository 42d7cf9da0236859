/** CHANGELOG.md: a section per version, newest first, `## 1.2.3 (2026-01-31)`; the next one is `(unreleased)`. */

const heading = /^## (\S+) \((.*)\)$/gm;

export function sections(changelog) {
  const headings = [...changelog.matchAll(heading)];
  return headings.map(({ 0: line, 1: version, 2: date, index }, i) => ({
    version,
    date,
    text: changelog.slice(index + line.length, headings[i + 1]?.index).trim(),
  }));
}

export function changelogFindings(changelog, version) {
  const all = sections(changelog);
  const section = all.find((each) => each.version === version);
  if (!section) return [`CHANGELOG.md has no section for ${version}`];
  const found = [];
  if (section.date === 'unreleased') found.push(`CHANGELOG.md calls ${version} unreleased: make version VERSION=${version} dates it`);
  else if (!/^\d{4}-\d\d-\d\d$/.test(section.date) || Number.isNaN(Date.parse(section.date)))
    found.push(`CHANGELOG.md dates ${version} by '${section.date}', which is no day of the form 2026-01-31`);
  if (section.text === '') found.push(`CHANGELOG.md says nothing of ${version}`);
  if (all[0] !== section) found.push(`CHANGELOG.md begins with ${all[0].version} (${all[0].date}), not with ${version}`);
  for (const other of all)
    if (other !== section && other.date === 'unreleased') found.push(`CHANGELOG.md calls ${other.version} unreleased beside ${version}`);
  return found;
}

export function dated(changelog, version, date) {
  const [first] = sections(changelog);
  if (first?.date !== 'unreleased')
    throw new Error(`CHANGELOG.md does not begin with an unreleased section, but with ${first?.version} (${first?.date})`);
  return changelog.replace(`## ${first.version} (unreleased)`, `## ${version} (${date})`);
}
