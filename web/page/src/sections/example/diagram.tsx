/** Clicking a matrix opens its step. */
import { Fragment } from 'preact';
import { useRef } from 'preact/hooks';
import { colourOf, edgeShapes, flowOf, nodeShapes, stateOf, type FlowPart, type FlowShape } from '../../draw/flow.ts';
import { download } from '../../export/download.ts';
import { computedExample, example, exampleSteps, exampleWords, updateExample, type ComputedExample } from '../../state/example.ts';
import { status } from '../../state/status.ts';
import '../../styles/flow.css';
import { useWidth } from '../../ui/size.ts';

const tensorOf = (made: ComputedExample, part: FlowPart) =>
  ({
    X: made.X,
    Q: made.Q,
    K: made.K,
    V: made.V,
    products: made.products,
    scores: made.head.scores,
    masked: made.head.masked,
    weights: made.head.weights,
    context: made.head.output,
    second: made.second.output,
    merged: made.merged,
    Y: made.Y,
  })[part];

const Shape = ({ of: { kind: Kind, look, at, text } }: { of: FlowShape }) => (
  <Kind class={`flow-${look}`} {...at}>
    {text}
  </Kind>
);

/** Drawn next to a matrix, outside its button. */
const asides: readonly FlowShape['look'][] = ['size', 'word'];

export function FlowDiagram({ titles }: { titles: readonly string[] }) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const { step } = example.value;
  const made = computedExample.value;
  const flow = flowOf(width);
  const valuesOf = (part: FlowPart) => made && tensorOf(made, part).data;
  const go = (to: number) => updateExample({ step: Math.max(0, Math.min(to, exampleSteps - 1)) });
  /** The only tab stop; arrow keys move it and the focus. */
  const stop = flow.nodes.find((node) => stateOf(node, step) === 'now')!.id;
  const onKeyDown = (event: KeyboardEvent & { currentTarget: SVGSVGElement }) => {
    const targets: Readonly<Record<string, number>> = {
      ArrowRight: step + 1,
      ArrowDown: step + 1,
      ArrowLeft: step - 1,
      ArrowUp: step - 1,
      Home: 0,
      End: exampleSteps - 1,
    };
    if (!Object.hasOwn(targets, event.key)) return;
    event.preventDefault();
    go(targets[event.key]!);
    const svg = event.currentTarget;
    requestAnimationFrame(() => svg.querySelector<SVGGElement>('[tabindex="0"]')?.focus());
  };
  const save = async () => {
    const { flowSvg } = await import('../../export/flow_svg.ts');
    const name = `attention-by-hand-step-${step + 1}.svg`;
    const title = `Attention by hand, step ${step + 1} of ${titles.length}: ${titles[step]}`;
    download(new Blob([flowSvg(flow, step, title, exampleWords, valuesOf)], { type: 'image/svg+xml' }), name);
    status.value = { text: `Saved ${name}.` };
  };
  const stateAt = (part: FlowPart) =>
    stateOf(
      flow.nodes.find(({ id }) => id === part)!,
      step,
    );
  return (
    <div class="flow">
      <div ref={frame}>
        <svg
          viewBox={`0 0 ${flow.width} ${flow.height}`}
          role="group"
          aria-label="Flow of attention"
          onKeyDown={onKeyDown}
          style={{ maxWidth: `${1.2 * flow.width}px` }}
        >
          {flow.edges.map((edge) => (
            <g key={`${edge.from} ${edge.to}`} class={`flow-edge ${stateAt(edge.to)}`} aria-hidden="true">
              {edgeShapes(edge).map((shape, i) => (
                <Shape key={i} of={shape} />
              ))}
            </g>
          ))}
          {flow.nodes.map((node) => {
            const first = node.steps[0]!;
            const state = stateOf(node, step);
            const shapes = nodeShapes(node, valuesOf(node.id), node.id === 'X' ? exampleWords : undefined);
            const drawn = (isAside: boolean) =>
              shapes.filter(({ look }) => asides.includes(look) === isAside).map((shape, i) => <Shape key={i} of={shape} />);
            return (
              <Fragment key={node.id}>
                <g
                  class={`flow-node ${state} of-${colourOf[node.id] ?? 'ink'}`}
                  role="button"
                  tabindex={node.id === stop ? 0 : -1}
                  aria-label={`${node.name}, step ${first + 1}: ${titles[first]}`}
                  aria-current={state === 'now' ? 'step' : undefined}
                  onClick={() => go(first)}
                >
                  {drawn(false)}
                </g>
                <g class={`flow-aside ${state}`} aria-hidden="true">
                  {drawn(true)}
                </g>
              </Fragment>
            );
          })}
        </svg>
      </div>
      <div class="flow-foot">
        <p class="note">
          A stronger colour means a larger number. The frames follow “{exampleWords[0]}”. Click a matrix or use the arrow keys to go to its step.
        </p>
        <button type="button" class="quiet" onClick={() => void save()}>
          Save diagram as SVG
        </button>
      </div>
    </div>
  );
}
