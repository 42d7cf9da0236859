import { describe, fail, reading } from './error.js';
import { readMembers } from './signature.js';

const host = 'https://huggingface.co';
/** Also matches relative folders. */
export const hubId = /^([\w-][\w.-]{0,95}\/)?[\w-][\w.-]{0,95}$/;
/** A branch, a tag, a commit, or refs/pr/1; no empty part, . or .. */
const revisions = /^(?!.*\.\.)[\w-][\w.-]*(\/[\w-][\w.-]*)*$/;

export function hub(id: string, options?: { revision?: string | undefined }): URL {
  return reading('hub', 'options', () => {
    if (typeof id !== 'string') fail('ARGUMENT', 'hub', 'id', describe(id), 'a string');
    if (!hubId.test(id) || /\.\.|\.git$/.test(id)) fail('CONFIG', 'hub', 'id', describe(id), 'owner/name');
    const [revision = 'main'] = options === undefined ? [] : readMembers('hub', 'options', options, ['revision']);
    if (typeof revision !== 'string') fail('ARGUMENT', 'hub', 'revision', describe(revision), 'a string');
    if (revision.length > 255 || !revisions.test(revision))
      fail('CONFIG', 'hub', 'revision', describe(revision), 'the name of a branch or tag, or a commit');
    return new URL(`${host}/${id}/resolve/${encodeURIComponent(revision)}`);
  });
}
