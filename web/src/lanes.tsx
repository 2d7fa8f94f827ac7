// Each model as a sheet of music: a lane for every copy, layers from left to
// right, colours for machines, and beads for answers on their way.
import { useComputed } from '@preact/signals';
import { events, flows, modelIDs, modelOf, nodeIDs, nodeOf, swarm } from './live';
import { spot, spotting, tint } from './spot';
import type { Flow, Model, Range, Stage } from './types';
import { bytes, deathOf, layers, outcomes, plural, stateOf } from './words';

export const laneHeight = 58;
const barTop = 4;
const barHeight = 38;
const threadAt = barTop + barHeight + 8;

export function Lanes() {
  return (
    <section aria-labelledby="lanes-title" class="lanes">
      <h2 id="lanes-title">Models</h2>
      <Caption />
      {modelIDs.value.length === 0 && <p class="empty">{swarm.value ? <>No model is in the catalogue. <code>hecate model add FILE</code> puts one there.</> : 'Waiting for the first look.'}</p>}
      {modelIDs.value.map((id) => <Sheet key={id} id={id} />)}
    </section>
  );
}

/** Caption says what the lanes show, and what the death of the node in the spot would mean. Its height never changes. */
function Caption() {
  const id = spot.value;
  const node = id ? nodeOf(id)?.value : undefined;
  if (!node) {
    return <p class="caption">Every lane is one whole copy of a model, cut by layers; every colour is a machine. Point at one to see what its death would mean.</p>;
  }
  const death = deathOf(node);
  if (!node.alive) return <p class="caption" data-grave="1"><b>{node.id}</b> is dead. What it held is served by others, or missing.</p>;
  return <p class="caption" data-grave={death.grave}>If <b>{node.id}</b> dies, {death.words}.</p>;
}

function Sheet({ id }: { id: string }) {
  const model = modelOf(id)!.value;
  const spares = sparesOf(model);
  const lanes = model.pipelines.length + (spares.length ? 1 : 0);
  const outcome = spot.value ? nodeOf(spot.value)?.value.if_it_dies?.[id] : undefined;
  return (
    <article class="sheet" aria-label={`Model ${id}`}>
      <header>
        <h3>{id}</h3>
        <p>
          {plural(model.layers, 'layer')}, {bytes(model.bytes)}, context {model.context_length.toLocaleString('en')} tokens
          {model.demo && <span class="tag">a toy, to show and not to use</span>}
        </p>
        <p class="verdict" data-grave={outcome ? outcomes[outcome]?.grave : undefined}>
          {outcome ? outcomes[outcome]?.words ?? outcome : model.ready ? 'ready' : 'not ready'}
        </p>
      </header>
      {!model.ready && <p class="missing">Waits: {model.missing}</p>}
      <div class="staves">
        {model.pipelines.map((p) => (
          <div class="lane" key={p.pipeline_id} style={{ height: `${laneHeight}px` }}>
            <span class="name">copy {p.pipeline_id}<small>{p.live ? 'whole' : 'broken'}</small></span>
            <div class="bar" role="group" aria-label={`Copy ${p.pipeline_id} of ${id}, ${p.live ? 'whole' : 'broken'}`}>
              {p.stages.map((s) => <Block key={`${s.node}-${s.layers[0]}`} stage={s} of={model} />)}
            </div>
          </div>
        ))}
        {spares.length > 0 && (
          <div class="lane spare" style={{ height: `${laneHeight}px` }}>
            <span class="name">spare<small>held warm</small></span>
            <div class="bar" role="group" aria-label={`Spare layers of ${id}`}>
              {spares.map((s) => <Block key={`${s.node}-${s.layers[0]}`} stage={s} of={model} />)}
            </div>
          </div>
        )}
        <Threads model={model} lanes={lanes} />
        <Ruler layers={model.layers} />
      </div>
    </article>
  );
}

function place(r: Range, of: number): { left: string; width: string } {
  return { left: `${(r[0] / of) * 100}%`, width: `${((r[1] - r[0] + 1) / of) * 100}%` };
}

function Block({ stage, of }: { stage: Stage; of: Model }) {
  const node = nodeOf(stage.node)?.value;
  const state = node ? stateOf(node) : 'dead';
  const holds = node?.fragments.some((f) => f.model === of.id && f.layers[0] <= stage.layers[0] && f.layers[1] >= stage.layers[1]);
  const shown = state === 'serving' && !holds ? 'loading' : state;
  const hurt = useComputed(() => {
    const e = events.value[0];
    return e?.kind === 'answer_rescued' && e.node === stage.node ? e.seq : 0;
  });
  const word = shown === 'serving' ? '' : shown;
  return (
    <button
      type="button" class="block" style={{ ...place(stage.layers, of.layers), ...tint(stage.node), top: `${barTop}px`, height: `${barHeight}px` }}
      data-state={shown} data-spot={spot.value === stage.node || undefined} data-dim={(spot.value && spot.value !== stage.node) || undefined}
      {...spotting(stage.node)}
    >
      <span class="face">
        <b>{stage.node}</b>
        <small>{word || (stage.layers[0] === stage.layers[1] ? stage.layers[0] : `${stage.layers[0]}–${stage.layers[1]}`)}</small>
      </span>
      <span class="unseen">{layers(stage.layers)}. {node?.alive ? `If it dies, ${deathOf(node).words}.` : ''}</span>
      {hurt.value > 0 && <span class="ring" key={hurt.value} />}
    </button>
  );
}

/** sparesOf lists what nodes hold of a model and no copy uses. */
function sparesOf(model: Model): Stage[] {
  const out: Stage[] = [];
  for (const id of nodeIDs.value) {
    const node = nodeOf(id)!.value;
    if (!node.alive) continue;
    const used = model.pipelines.flatMap((p) => p.stages).filter((s) => s.node === id);
    for (const f of node.fragments) {
      if (f.model === model.id && !used.some((s) => s.layers[0] <= f.layers[1] && f.layers[0] <= s.layers[1])) out.push({ node: id, layers: f.layers });
    }
  }
  return out;
}

function Ruler({ layers: n }: { layers: number }) {
  const step = n <= 16 ? 2 : n <= 40 ? 8 : 16;
  const marks = Array.from({ length: Math.ceil(n / step) }, (_, i) => i * step);
  return (
    <div class="ruler" aria-hidden="true">
      {marks.map((m) => <i key={m} style={{ left: `${(m / n) * 100}%` }}>{m === 0 ? 'layer 0' : m}</i>)}
    </div>
  );
}

/** Threads are the ways of running answers through the lanes. */
function Threads({ model, lanes }: { model: Model; lanes: number }) {
  const mine = flows.value.filter((f) => f.model === model.id);
  return (
    <svg class="threads" viewBox={`0 0 1000 ${lanes * laneHeight}`} preserveAspectRatio="none" style={{ height: `${lanes * laneHeight}px` }} aria-hidden="true">
      {model.pipelines.map((p, i) => <path key={p.pipeline_id} class="rest" d={`M0 ${y(i)}H1000`} />)}
      {mine.map((f) => <path key={f.stages.map((s) => `${s.node}.${s.first}`).join()} class="flow" style={{ strokeWidth: `${Math.min(2.5 + Math.log2(f.count + 1), 7)}px` }} d={wayOf(f, model)} />)}
    </svg>
  );
}

const y = (lane: number): number => lane * laneHeight + threadAt;

/** wayOf draws a flow: along the lane of each stage, over to the next. */
function wayOf(f: Flow, model: Model): string {
  let at = 0;
  let d = '';
  for (const s of f.stages) {
    const found = model.pipelines.findIndex((p) => p.stages.some((t) => t.node === s.node && t.layers[0] <= s.first && t.layers[1] >= s.last));
    const lane = found >= 0 ? found : Math.max(0, model.pipelines.findIndex((p) => p.stages.some((t) => t.node === s.node)));
    const from = (s.first / model.layers) * 1000;
    const to = ((s.last + 1) / model.layers) * 1000;
    if (!d) d = `M${from} ${y(lane)}`;
    else if (lane !== at) d += `C${from + 14} ${y(at)} ${from - 14} ${y(lane)} ${from + 18} ${y(lane)}`;
    d += `H${to}`;
    at = lane;
  }
  return d;
}
