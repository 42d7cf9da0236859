/** Task heads with more than one answer per text. A chunk that is loaded with the first model that has such a head. */
import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef } from 'preact/hooks';
import { readLines } from '../state/compare_texts.ts';
import type { LoadedModel } from '../model/loaded.ts';
import { taskTexts, type TaskText } from '../state/task_texts.ts';
import {
  aggregation,
  aggregations,
  entities,
  faultOfContext,
  faultOfDocuments,
  faultOfMasked,
  faultOfNames,
  faultOfQuery,
  faultOfQuestion,
  filled,
  found,
  ranks,
  type Aggregation,
} from '../state/tasks.ts';
import '../styles/tasks.css';
import { BarNumber } from '../ui/bar_number.tsx';
import { NumberTable } from '../ui/number_table.tsx';
import { numberedLine, Ranked } from '../ui/ranked.tsx';
import { Term } from '../ui/term.tsx';
import { Alert } from '../ui/alert.tsx';
import { Part } from '../ui/part.tsx';

export function TaskPart({ of }: { of: LoadedModel }) {
  switch (of.task) {
    case 'token-classification':
      return <Entities of={of} />;
    case 'fill-mask':
      return <Masks of={of} />;
    case 'question-answering':
      return <Answers of={of} />;
    default:
      return of.labels?.length === 1 ? <Ranks of={of} /> : null;
  }
}

interface FieldProps {
  readonly name: string;
  readonly of: TaskText;
  readonly rows: number;
  readonly fault: string | undefined;
  readonly area?: { current: HTMLTextAreaElement | null };
}

function Field({ name, of, rows, fault, area }: FieldProps) {
  const id = useId();
  const error = `${id}-error`;
  return (
    <div class="field">
      <label for={id}>{name}</label>
      <textarea
        id={id}
        {...(area && { ref: area })}
        rows={rows}
        dir="auto"
        spellcheck={false}
        value={taskTexts[of].value}
        aria-invalid={fault ? 'true' : undefined}
        aria-describedby={fault ? error : undefined}
        onInput={(event) => (taskTexts[of].value = event.currentTarget.value)}
      />
      <Alert id={error} why={fault} />
    </div>
  );
}

const percent = (score: number) => `${(100 * score).toFixed(0)} %`;

/** Number of colours for types; each name also shows its type. */
const looks = 5;
const typeOf = (label: string) => label.replace(/^[BI]-/, '');

const typeNames: Readonly<Record<string, string>> = {
  PER: 'a person',
  ORG: 'an organisation',
  LOC: 'a place',
  DATE: 'a day, month or year',
  MISC: 'a people, a language, an event or a work',
};

const aggregationNames: Readonly<Record<Aggregation, string>> = {
  first: 'words, by their first token',
  simple: 'neighbours with the same label',
  average: 'words, by the mean of their tokens',
  max: 'words, by their most certain token',
  none: 'each token alone',
};

function Entities({ of }: { of: LoadedModel }) {
  useEffect(() => entities.follow(), []);
  const id = useId();
  const fault = faultOfNames(taskTexts.names.value);
  const made = entities.value.value;
  const current = !fault && made?.of === of ? made : undefined;
  const types = [...new Set((of.tokenLabels ?? []).map(typeOf))].filter((type) => type !== 'O');
  const lookOf = (label: string) => Math.max(0, types.indexOf(typeOf(label))) % looks;
  const known = types.filter((type) => typeNames[type]);
  return (
    <Part class="use-part task" title="What does the text name?">
      <div>
        <p>
          This model classifies each <Term word="token" />. Neighbouring tokens of one class form a name; its score is the mean of theirs.
          {known.length > 0 && ` ${known.map((type) => `${type} is ${typeNames[type]}`).join(', ')}.`} Write about people and places that you know.
        </p>
        <div class="task-fields">
          <Field name="Text with names" of="names" rows={4} fault={fault} />
          <div class="field">
            <label for={id}>Group tokens into</label>
            <select id={id} value={aggregation.value} onChange={(event) => (aggregation.value = event.currentTarget.value as Aggregation)}>
              {aggregations.map((each) => (
                <option key={each} value={each}>
                  {aggregationNames[each]}
                </option>
              ))}
            </select>
          </div>
        </div>
      </div>
      <div class="task-result">
        <Alert what="The text could not be read." why={entities.failure.value} />
        {current && (
          <>
            <p class="task-text" role="group" aria-label="Text with its names marked">
              {marked(current.texts[0]!, current.found, ({ text, label, score }) => (
                <mark class={`entity look-${lookOf(label)}`}>
                  {text}
                  <span class="entity-type">
                    {' '}
                    {label} {percent(score)}
                  </span>
                </mark>
              ))}
            </p>
            <p class="note" aria-live="polite">
              {current.found.length === 0 ? 'The model finds no name in this text.' : `${current.found.length} found.`}
            </p>
            {current.found.length > 0 && (
              <div class="use-lines">
                <NumberTable
                  name="Names in the text"
                  rows={{ kind: 'name', count: current.found.length, label: (i) => current.found[i]!.text }}
                  columns={{ kind: 'property', count: 4, label: (j) => ['type', 'score', 'from', 'to'][j]! }}
                  cell={(i, j) => {
                    const { label, score, start, end } = current.found[i]!;
                    return [label, <BarNumber value={score} />, start, end][j];
                  }}
                />
              </div>
            )}
          </>
        )}
      </div>
    </Part>
  );
}

/** `show` is applied to parts, which are sorted and do not overlap. */
function marked<T extends { readonly start: number; readonly end: number }>(text: string, parts: readonly T[], show: (part: T) => ComponentChildren) {
  const pieces: ComponentChildren[] = [];
  let at = 0;
  for (const part of parts) {
    if (part.start < at) continue;
    pieces.push(text.slice(at, part.start), show(part));
    at = part.end;
  }
  return [...pieces, text.slice(at)];
}

function Masks({ of }: { of: LoadedModel }) {
  useEffect(() => filled.follow(), []);
  const area = useRef<HTMLTextAreaElement>(null);
  const mask = of.maskToken!;
  const text = taskTexts.masked.value;
  const fault = faultOfMasked(text, mask);
  const made = filled.value.value;
  const current = !fault && made?.of === of ? made : undefined;
  const insert = () => {
    const { selectionStart, selectionEnd } = area.current!;
    const before = text.slice(0, selectionStart);
    taskTexts.masked.value = `${before}${mask}${text.slice(selectionEnd)}`;
    const caret = before.length + mask.length;
    requestAnimationFrame(() => {
      area.current?.focus();
      area.current?.setSelectionRange(caret, caret);
    });
  };
  return (
    <Part class="use-part task" title="Which word is missing?">
      <div>
        <p>
          This model was trained to guess hidden words. For each mask it computes the probability of every <Term word="token" />; the list shows the
          most likely ones. Select a word and replace it with the mask.
        </p>
        <Field name="Text with a mask" of="masked" rows={3} fault={fault} area={area} />
        <div class="buttons">
          <button type="button" onClick={insert}>
            Insert {mask}
          </button>
        </div>
      </div>
      <div class="task-result">
        <Alert what="The masks could not be filled." why={filled.failure.value} />
        {current && (
          <div class="task-lists">
            {current.found.map((candidates, i) => (
              <div key={i}>
                {current.found.length > 1 && <h4>Mask {i + 1}</h4>}
                <Ranked
                  name={current.found.length > 1 ? `Candidates for mask ${i + 1}` : 'Candidates for the mask'}
                  items={candidates.map(({ id, token, score, text: title }) => ({ key: id, name: token.trim() || token, value: score, title }))}
                />
              </div>
            ))}
          </div>
        )}
      </div>
    </Part>
  );
}

function Answers({ of }: { of: LoadedModel }) {
  useEffect(() => found.follow(), []);
  const [question, context] = [taskTexts.question.value, taskTexts.context.value];
  const [wrongQuestion, wrongContext] = [faultOfQuestion(question), faultOfContext(context)];
  const made = found.value.value;
  const current = !wrongQuestion && !wrongContext && made?.of === of ? made : undefined;
  const best = current?.found[0];
  return (
    <Part class="use-part task" title="What is the answer?">
      <div>
        <p>
          This model reads the question together with the text and computes for each <Term word="token" /> how likely the answer starts and ends
          there. The score of an answer is the product of the two probabilities.
        </p>
        <Field name="Question" of="question" rows={1} fault={wrongQuestion} />
        <Field name="Text to answer from" of="context" rows={5} fault={wrongContext} />
      </div>
      <div class="task-result">
        <Alert what="The question could not be answered." why={found.failure.value} />
        {current && (
          <>
            <p class="task-text" role="group" aria-label="Text with the answer marked">
              {marked(current.texts[1]!, best ? [best] : [], ({ text, score }) => (
                <mark class="entity look-0">
                  {text}
                  <span class="entity-type"> {percent(score)}</span>
                </mark>
              ))}
            </p>
            {current.found.length === 0 && <p>The model finds no answer in this text.</p>}
            {best && <Ranked name="Answers" items={current.found.map(({ text, score, start }) => ({ key: start, name: text, value: score }))} />}
          </>
        )}
      </div>
    </Part>
  );
}

function Ranks({ of }: { of: LoadedModel }) {
  useEffect(() => ranks.follow(), []);
  const documents = readLines(taskTexts.documents.value);
  const [wrongQuery, wrongDocuments] = [faultOfQuery(taskTexts.query.value), faultOfDocuments(documents)];
  const made = ranks.value.value;
  const current = !wrongQuery && !wrongDocuments && made?.of === of ? made : undefined;
  return (
    <Part class="use-part task" title="Which line fits the query best?">
      <div>
        <p>
          A head with one output can be a cross-encoder: it reads the query together with a line and returns one number, which is higher the better
          they fit. If the model was trained for something else, this order means little.
        </p>
        <Field name="Query" of="query" rows={1} fault={wrongQuery} />
        <Field name="Lines to rank, one per line" of="documents" rows={5} fault={wrongDocuments} />
      </div>
      <div class="task-result">
        <Alert what="The lines could not be put in order." why={ranks.failure.value} />
        {current && (
          <Ranked
            name="Lines by relevance"
            items={current.found.map(({ index, score }) => ({ key: index, name: numberedLine(index, current.texts[index + 1]), value: score }))}
            hasBars={current.found.every(({ score }) => score >= 0 && score <= 1)}
          />
        )}
      </div>
    </Part>
  );
}
