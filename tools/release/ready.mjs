/** Findings that prevent the release of the tree as `version`, except those of builds. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import semver from 'semver';
import { changelogFindings } from './changelog.mjs';
import { differences } from './api_diff.mjs';
import { disagreements, mayBreak, versionOf } from './versions.mjs';

const git = (root, ...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();

export function commitOf(root, tag) {
  try {
    return git(root, 'rev-parse', '--verify', `refs/tags/${tag}^{commit}`);
  } catch {
    return undefined;
  }
}

export function treeFindings(root, version) {
  const found = [];
  const changed = git(root, 'status', '--porcelain', '--untracked-files=no');
  if (changed)
    found.push(
      `not committed, and so in no source archive: ${changed
        .split('\n')
        .map((line) => line.trim().split(/\s+/).at(-1))
        .join(', ')}`,
    );
  const tagged = commitOf(root, `v${version}`);
  if (tagged && tagged !== git(root, 'rev-parse', 'HEAD')) found.push(`the tag v${version} is another commit, ${tagged.slice(0, 12)}`);
  return found;
}

export function versionFindings(root, version, last) {
  const found = disagreements(root);
  if (versionOf(root) !== version) found.push(`CMakeLists.txt says ${versionOf(root)}, not ${version}: make version VERSION=${version} writes it`);
  if (last && !semver.gt(version, last.version)) found.push(`${version} does not follow ${last.version}`);
  return [...found, ...changelogFindings(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'), version)];
}

/** Breaking changes that the version number does not announce. Languages missing in `api` were not compared. */
export function apiFindings(api, version, last) {
  const looked = Object.fromEntries(Object.entries(last.api).filter(([language]) => language in api));
  const { removed, changed } = differences(looked, api);
  if (removed.length + changed.length === 0 || mayBreak(last.version, version)) return [];
  return [
    `${removed.length} names are gone and ${changed.length} changed since ${last.version}, which ${version} may not do: ${[...removed, ...changed].map(({ name }) => name).join(', ')}`,
  ];
}
