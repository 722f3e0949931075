// `node tint.mjs FOLDER`: what Tint has against each module there, and what Dawn has against the
// pipeline of its only entry point, as JSON. A process of its own, because Dawn keeps it alive.

import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';

import { create } from 'webgpu';

// Its devices need it. Without a GPU, its limits are those that every browser grants.
globalThis.dawn = create(['backend=null']);
const adapter = await dawn.requestAdapter();
// Some modules use the type, or subgroups, where a device has them.
const requiredFeatures = ['shader-f16', 'subgroups'].filter((feature) => adapter.features.has(feature));
const device = await adapter.requestDevice({ requiredFeatures });

async function verdict(code) {
  device.pushErrorScope('validation');
  const module = device.createShaderModule({ code });
  const refused = await device.popErrorScope();
  if (refused) return { refused: refused.message };
  const pipeline = device.createComputePipelineAsync({ layout: 'auto', compute: { module } });
  return pipeline.then(() => ({}), (error) => ({ unfit: error.message }));
}

const [folder] = process.argv.slice(2);
const verdicts = {};
for (const name of readdirSync(folder)) {
  verdicts[name] = await verdict(readFileSync(path.join(folder, name), 'utf8'));
}
process.stdout.write(JSON.stringify(verdicts), () => process.exit());
