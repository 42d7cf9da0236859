import { story, type StoryId } from '../state/parts.ts';

/** The heading of a part of the story; `name` is the id by which its section is labelled. */
export function PartTitle({ of, name }: { of: StoryId; name: string }) {
  const index = story.findIndex(({ id }) => id === of);
  return (
    <h2 id={name} class="part-title">
      <span class="part-number">{index + 1}</span> {story[index]!.title}
    </h2>
  );
}
