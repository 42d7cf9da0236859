/** Everything below the first screen. A chunk that is loaded after the first picture. */
import '../styles/story.css';
import { addStates } from '../state/hash.ts';
import { wantsParameters } from '../state/run.ts';
import { storyStates } from '../state/story_states.ts';
import { followWhy } from '../state/why.ts';
import { Footer } from '../ui/footer.tsx';
export { Help } from '../ui/help.tsx';
import { Example } from './example.tsx';
import { More } from './head_details.tsx';
import { Lab } from './lab.tsx';
import { Layers } from './layers.tsx';
import { Many } from './many.tsx';
import { Playground } from './playground.tsx';
import { ProofSection } from './proof.tsx';
import { Steps } from './steps.tsx';
import { Train } from './train.tsx';
import { Use } from './use.tsx';
import { Words } from './words.tsx';
import '../styles/first_forced.css';
import '../styles/print.css';

export { Steps } from './first_look/steps.tsx';

addStates(storyStates);
wantsParameters.value = true;
followWhy();

export function Story({ onHelp }: { onHelp: () => void }) {
  return (
    <>
      <Words />
      <div id="one">
        <Example />
      </div>
      <div id="all">
        <Playground onHelp={onHelp} />
        <More />
      </div>
      <Many />
      <Layers />
      <div id="answer">
        <Use />
      </div>
      <Train />
      <div id="numbers">
        <Steps />
        <Lab />
        <ProofSection />
      </div>
      <Footer />
    </>
  );
}
