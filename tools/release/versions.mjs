/**
 * CMakeLists.txt contains the version. CMake, scikit-build-core and tools/deb.mjs read it; other files repeat it, are
 * checked here and written by `make version`.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import semver from 'semver';

const source = { file: 'CMakeLists.txt', pattern: /^(project\(attn VERSION )([\w.-]+)()/m };
const copies = [
  { file: 'web/lib/package.json', pattern: /^( {2}"version": ")([^"]*)(")/m },
  { file: 'packaging/vcpkg/ports/attn/vcpkg.json', pattern: /^( {2}"version-semver": ")([^"]*)(")/m },
  { file: 'CITATION.cff', pattern: /^(version: *["']?)([\w.-]+)()/m },
];

function written(root, { file, pattern }) {
  const match = pattern.exec(readFileSync(join(root, file), 'utf8'));
  if (!match) throw new Error(`${file} contains no version that matches ${pattern}`);
  return match[2];
}

export const versionOf = (root) => written(root, source);

export function disagreements(root) {
  const version = versionOf(root);
  const there = (file) => existsSync(join(root, file));
  const found = copies
    .filter(({ file }) => there(file))
    .map((copy) => [copy.file, written(root, copy)])
    .filter(([, other]) => other !== version)
    .map(([file, other]) => `${file} says ${other}, CMakeLists.txt ${version}`);
  // The file name of the shared library contains the minor version, and so do its Debian package and the files that
  // describe it.
  const abi = version.split('.', 2).join('.');
  const debian = `libattn-c${abi}`;
  if (there('packaging/debian/control')) {
    if (!new RegExp(`^Package: ${debian.replace('.', '\\.')}$`, 'm').test(readFileSync(join(root, 'packaging/debian/control'), 'utf8')))
      found.push(`packaging/debian/control has no package ${debian}, and libattn_c.so.${abi} would be in another one`);
    for (const kind of ['install', 'symbols'])
      if (!there(`packaging/debian/${debian}.${kind}`))
        found.push(`packaging/debian/${debian}.${kind} is missing: rename the one of the version before`);
  }
  if (there('pyproject.toml') && !/^dynamic = .*"version"/m.test(readFileSync(join(root, 'pyproject.toml'), 'utf8')))
    found.push('pyproject.toml has a version of its own; it takes that of CMakeLists.txt');
  return found;
}

export function setVersion(root, version) {
  if (semver.valid(version) !== version || semver.prerelease(version)) throw new Error(`version is ${version}, expected the form 1.2.3`);
  const places = [source, ...copies.filter(({ file }) => existsSync(join(root, file)))];
  for (const { file, pattern } of places) {
    const path = join(root, file);
    writeFileSync(path, readFileSync(path, 'utf8').replace(pattern, `$1${version}$3`));
  }
  return places.map(({ file }) => file);
}

/**
 * Whether names may be removed or changed between these versions: in a major version, or before 1.0.0 in a minor one.
 */
export function mayBreak(from, to) {
  const step = semver.diff(from, to);
  return step === 'major' || (step === 'minor' && semver.major(to) === 0);
}
