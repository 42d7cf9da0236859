import { useEffect } from 'preact/hooks';
import { headName } from '../formats/names.ts';
import { lookText } from '../model/head_kind.ts';
import { brokenAnswers, finding, findingText } from '../state/finding.ts';
import { heads } from '../state/heads.ts';
import { run } from '../state/run.ts';
import { headInFocus, layerInFocus } from '../state/map_view.ts';

export function Finding() {
  useEffect(() => brokenAnswers.follow(), []);
  return (
    <p class="finding" aria-live="polite">
      <Sentence />
    </p>
  );
}

function Sentence() {
  if (finding.value) return <>{findingText(finding.value)}</>;
  const [of, layer, head] = [run.value, layerInFocus.value, headInFocus.value];
  const summary = of && heads.value?.run.model === of.model ? heads.value.list[layer * of.model.heads + head] : undefined;
  if (!summary) return <>…</>;
  return (
    <>
      On this text, {headName(layer, head)}, {lookText(summary)}.
    </>
  );
}
