// Puts the page together.

import { Compute } from './compute.js';
import { Cost } from './cost.js';
import { Demo } from './demo.js';
import { byId, say, whenNear } from './dom.js';
import { Model } from './model.js';
import { Order } from './order.js';
import { Scale } from './scale.js';


const compute = new Compute();
const demo = new Demo(await (await fetch('demo.json')).json(), compute);
new Cost(compute);

let answered = false;

/** What computes, in words, and what one can do about it. */
function show() {
  const { state, why, adapter } = compute;
  const first = state === 'webgpu' && !answered;
  const slow = first || state === 'opening';
  const text = {
    loading: 'Loading the kernels …',
    opening: 'Asking the browser for a GPU …',
    webgpu: first ? `Compiling the kernels for ${adapter} …` : `Computed on WebGPU: ${adapter}`,
    cpu: `Computed by the CPU reference in WebAssembly${why ? `. ${why}.` : ''}`,
    lost: `The WebGPU device was lost${why ? `: ${why}` : ''}. Your vectors are kept.`,
    failed: `The page’s WebAssembly did not load: ${why}`,
  }[state];
  say(byId('engine-text'), text);
  byId('engine').dataset.state = first ? 'compiling' : state;
  byId('engine-progress').hidden = !(slow || state === 'loading');
  say(byId('engine-cpu'), slow ? 'Stop, use the CPU' : 'Use the CPU');
  byId('engine-cpu').hidden = !['opening', 'webgpu', 'lost'].includes(state);
  byId('engine-gpu').hidden =
    ['loading', 'opening', 'webgpu'].includes(state) || (state === 'cpu' && !navigator.gpu);
  say(byId('engine-gpu'), { lost: 'Try again', failed: 'Try again' }[state] ?? 'Try WebGPU');
}

compute.addEventListener('change', () => {
  answered = false;
  show();
});
demo.addEventListener('computed', () => {
  answered = true;
  show();
});
// Their kernels are compiled when they are looked at, and not before the demo's.
demo.addEventListener(
  'computed',
  () => {
    whenNear(byId('model'), () => new Model(compute));
    whenNear(byId('order'), () => new Order(demo, compute));
    whenNear(byId('scale'), () => new Scale(compute));
  },
  { once: true },
);
byId('engine-cpu').addEventListener('click', () => compute.useCpu());
byId('engine-gpu').addEventListener('click', () => compute.open());

await compute.open();
