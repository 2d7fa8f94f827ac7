import { signal } from '@preact/signals';
import { adminToken, bend, Refused, steer } from './access';
import { openAccess } from './accessdialog';
import { livingCount, nodeIDs, nodeOf, swarm } from './live';
import { spot, spotting, tint } from './spot';
import type { Node } from './types';
import { bytes, count, deathOf, layers, ms, plural, stateOf } from './words';

/** crowd is from how many nodes on each gets a tile instead of a row. */
const crowd = 13;
const picked = signal<string | undefined>(undefined);

export function Nodes() {
  const ids = nodeIDs.value;
  const many = ids.length >= crowd;
  return (
    <section aria-labelledby="nodes-title" class="nodes">
      <h2 id="nodes-title">Machines <small>{ids.length ? `${livingCount.value} of ${ids.length} alive` : ''}</small></h2>
      {ids.length === 0 && <p class="empty">Nobody is here yet. On each machine: <code>hecate node run --join TOKEN</code></p>}
      {many ? <Crowd ids={ids} /> : <ul class="rows">{ids.map((id) => <Row key={id} id={id} />)}</ul>}
    </section>
  );
}

/** Crowd shows many nodes as tiles, and one of them, picked or pointed at, as a row. */
function Crowd({ ids }: { ids: string[] }) {
  const shown = spot.value && ids.includes(spot.value) ? spot.value : picked.value && ids.includes(picked.value) ? picked.value : ids[0]!;
  return (
    <>
      <ul class="rows single"><Row key={shown} id={shown} /></ul>
      <ul class="tiles">{ids.map((id) => <Tile key={id} id={id} />)}</ul>
    </>
  );
}

function Tile({ id }: { id: string }) {
  const n = nodeOf(id)!.value;
  const load = n.load ?? 0;
  return (
    <li>
      <button type="button" class="tile" style={tint(id)} data-state={stateOf(n)} aria-pressed={picked.value === id} onClick={() => (picked.value = id)} {...spotting(id)}>
        <b>{id}</b>
        <span class="unseen">{stateOf(n)}, load {Math.round(load * 100)} percent</span>
        <i class="meter"><i style={{ transform: `scaleX(${Math.min(1, load)})` }} /></i>
      </button>
    </li>
  );
}

function Row({ id }: { id: string }) {
  const n = nodeOf(id)!.value;
  const state = stateOf(n);
  const death = deathOf(n);
  const load = n.load ?? 0;
  const memory = n.memory_budget ? n.memory_used / n.memory_budget : 0;
  return (
    <li class="row-node" style={tint(id)} data-state={state} data-spot={spot.value === id || undefined} {...pointing(id)}>
      <div class="who">
        <i class="swatch" aria-hidden="true" />
        <h3>{id}</h3>
        <span class="state">{state}</span>
      </div>
      <dl>
        <Gauge name="load" value={load} text={n.alive ? `${Math.round(load * 100)} %` : '–'} />
        <Gauge name="memory" value={n.alive ? memory : 0} text={n.alive ? bytes(n.memory_used) : '–'} of={n.memory_budget ? `of ${bytes(n.memory_budget)}` : ''} />
        <div><dt>round trip</dt><dd>{n.alive ? ms(n.round_trip_ms) : '–'}</dd></div>
        <div><dt>tokens / s</dt><dd>{n.alive ? count(n.tokens_per_second) : '–'}</dd></div>
      </dl>
      <p class="fate">
        <span>{holding(n)}</span>
        <span data-grave={death.grave}>{n.alive ? <>If it dies: {death.words}.</> : 'It comes back by itself when it is started.'}</span>
      </p>
      <Handles node={n} state={state} />
    </li>
  );
}

/** pointing is spotting for what cannot have the focus itself, but holds buttons that can. */
const pointing = (id: string) => ({
  onPointerEnter: () => (spot.value = id),
  onPointerLeave: () => (spot.value = undefined),
  onFocusIn: () => (spot.value = id),
  onFocusOut: () => (spot.value = undefined),
});

function holding(n: Node): string {
  if (!n.alive) return 'Holds nothing now.';
  const moving = n.loading?.find((l) => l.phase !== 'failed');
  if (moving) return `Gets ${layers(moving.layers)} of ${moving.model}: ${moving.total ? `${Math.round((moving.done / moving.total) * 100)} % of ${bytes(moving.total)}` : moving.phase}.`;
  const failed = n.loading?.find((l) => l.error);
  if (failed) return `Cannot load ${layers(failed.layers)} of ${failed.model}: ${failed.error}`;
  if (n.fragments.length === 0) return 'Holds no layers.';
  const models = new Set(n.fragments.map((f) => f.model));
  const what = n.fragments.slice(0, 3).map((f) => (models.size > 1 ? `${f.model} ` : '') + layers(f.layers)).join(', ');
  return `Holds ${what}${n.fragments.length > 3 ? ` and ${plural(n.fragments.length - 3, 'range')} more` : ''}.`;
}

function Gauge({ name, value, text, of }: { name: string; value: number; text: string; of?: string }) {
  return (
    <div class="gauge">
      <dt>{name}</dt>
      <dd>{text} {of && <small>{of}</small>}</dd>
      <i class="meter" aria-hidden="true"><i style={{ transform: `scaleX(${Math.min(1, Math.max(0, value))})` }} /></i>
    </div>
  );
}

const busy = signal<string | undefined>(undefined);
const trouble = signal<{ node: string; text: string } | undefined>(undefined);

/** Handles are what can be done to a node from here. */
function Handles({ node, state }: { node: Node; state: string }) {
  const paused = node.desired === 'paused';
  const links = swarm.value?.links;
  return (
    <div class="handles">
      <button type="button" disabled={busy.value === node.id} onClick={() => hold(node.id, paused ? 'resume' : 'pause')} aria-label={`${paused ? 'Resume' : 'Pause'} ${node.id}`}>
        {paused ? 'Resume' : 'Pause'}
      </button>
      {links && (
        <button type="button" class="danger" disabled={busy.value === node.id || (state === 'dead' && !node.link)} onClick={() => plug(node)} aria-label={`${node.link ? 'Plug in' : 'Pull the plug of'} ${node.id}`}>
          {node.link ? 'Plug in' : 'Pull the plug'}
        </button>
      )}
      {trouble.value?.node === node.id && <p class="trouble" role="alert">{trouble.value.text}</p>}
    </div>
  );
}

async function doing(node: string, deed: () => Promise<void>): Promise<void> {
  busy.value = node;
  trouble.value = undefined;
  try {
    await deed();
  } catch (error) {
    if (error instanceof Refused && error.code.startsWith('admin_token')) {
      adminToken.value = '';
      openAccess(error.message, () => void doing(node, deed));
    } else {
      trouble.value = { node, text: error instanceof Refused ? error.message : 'The gateway did not answer. Try again when it is back.' };
    }
  } finally {
    busy.value = undefined;
  }
}

function hold(node: string, action: 'pause' | 'resume'): void {
  const deed = () => doing(node, () => steer(node, action));
  if (adminToken.value) void deed();
  else openAccess(`To ${action} ${node}, the gateway wants the admin token.`, () => void deed());
}

/** plug cuts a node off from the gateway, as a pulled network cable does, or ends that. */
function plug(node: Node): void {
  void doing(node.id, () => bend(node.id, node.link ? 'heal' : 'partition'));
}
