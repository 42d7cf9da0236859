/** Draws the numbers in the address, or computes the head in the address. */
import { render } from 'preact';
import { mapOptionsOf } from './export/figures.ts';
import { selectionOf } from './export/selection.ts';
import { wholeMegabytes } from './formats/numbers.ts';
import { keepInHash, linkHash } from './state/hash.ts';
import { expectedBytes, nameOf, otherHostOf } from './model/known.ts';
import { chooseModel, startPage } from './state/load_model.ts';
import { loading, model } from './state/model.ts';
import { ownMapIn, type OwnMap } from './state/own_map.ts';
import { follow, run } from './state/run.ts';
import { shown } from './state/map_view.ts';
import { explain, status } from './state/status.ts';
import { view } from './state/view.ts';
import { MapElement } from './ui/map_element.tsx';

const drawn = () => void (document.documentElement.dataset['ready'] = 'true');

/** The map already shows the title. */
const Heading = ({ children }: { children: string }) => <h1 class="visually-hidden">{children}</h1>;

function Own({ of: { tokens, keys, values, caption } }: { of: OwnMap }) {
  return (
    <>
      <Heading>{caption || 'Attention weights'}</Heading>
      <MapElement tokens={tokens} keys={keys} weights={values} caption={caption} />
      <About hash="" />
    </>
  );
}

function About({ hash }: { hash: string }) {
  return (
    <p>
      <a href={`./index.html${hash && `#${hash}`}`} target="_blank" rel="noopener">
        {hash ? 'See every number of this map in attn' : 'attn'}
      </a>
    </p>
  );
}

/** Nothing is loaded without a click. */
function Offer({ id }: { id: string }) {
  const [host, bytes] = [otherHostOf(id), expectedBytes(id, view.value.dtype)];
  return (
    <p>
      <button type="button" onClick={() => void chooseModel(id)}>
        Load {nameOf(id)}
        {bytes !== undefined && `, ${wholeMegabytes(bytes)}`}
        {host && ` from ${host}`}
      </button>
    </p>
  );
}

function Computed() {
  const of = run.value;
  const wanted = view.value.model;
  const waits = wanted !== 'files' && wanted !== model.value?.id && model.value !== undefined && !loading.value;
  const selection = of && shown.value && wanted === of.model.id ? selectionOf(of, view.value) : undefined;
  if (selection) drawn();
  return (
    <>
      <Heading>{selection?.title ?? 'Attention weights'}</Heading>
      {selection && <MapElement {...mapOptionsOf(selection)} />}
      {waits && <Offer id={wanted} />}
      {(!selection || status.value.failed) && (
        <p role="status" class={status.value.failed ? 'failed' : ''}>
          {waits ? 'This map needs another model than the built-in one.' : status.value.text}
        </p>
      )}
      <About hash={linkHash()} />
    </>
  );
}

const place = document.getElementById('embed')!;
try {
  const own = ownMapIn(location.hash);
  if (own) {
    render(<Own of={own} />, place);
    drawn();
  } else {
    keepInHash();
    follow();
    void startPage();
    render(<Computed />, place);
  }
} catch (error) {
  render(
    <p role="alert" class="failed">
      This map cannot be drawn. {explain(error)}.
    </p>,
    place,
  );
}
