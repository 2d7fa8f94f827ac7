// The picture of the swarm, kept up to date from one stream. Each part has a
// signal of its own, so that a change redraws what shows it and nothing else.
import { batch, computed, signal, type Signal } from '@preact/signals';
import { headers, refusal, Refused } from './access';
import { messages } from './sse';
import type { Answers, Event, Flow, Frame, Model, Node, Pool, Pulse, Swarm } from './types';

export type Connection =
  | { state: 'connecting' }
  | { state: 'live' }
  | { state: 'lost'; since: number; next: number }
  | { state: 'refused'; status: number; message: string };

export const connection = signal<Connection>({ state: 'connecting' });
export const swarm = signal<Swarm | undefined>(undefined);
export const answers = signal<Answers | undefined>(undefined);
export const pool = signal<Pool | undefined>(undefined);
export const flows = signal<Flow[]>([]);
export const events = signal<Event[]>([]);
export const history = signal<{ points: Pulse[]; end: number }>({ points: [], end: 0 });
export const now = signal(Date.now());

const nodeParts = new Map<string, Signal<Node>>();
const modelParts = new Map<string, Signal<Model>>();
export const nodeIDs = signal<string[]>([]);
export const modelIDs = signal<string[]>([]);
export const nodeOf = (id: string): Signal<Node> | undefined => nodeParts.get(id);
export const modelOf = (id: string): Signal<Model> | undefined => modelParts.get(id);
export const livingCount = computed(() => nodeIDs.value.filter((id) => nodeParts.get(id)!.value.alive).length);

/** Rescues as they happen, for the answer that they befell. */
export const rescueListeners = new Set<(e: Event) => void>();

const keptEvents = 400;
const keptSeconds = 300;
// The gateway says something every ten seconds; after this much silence the connection is dead.
const silence = 25_000;
let lastID = '';
let pulse: Pulse = { tokens_per_second: 0, first_token_ms: null, gap_ms: null, running: 0, queued: 0 };

function take(frame: Frame): void {
  batch(() => {
    if (frame.full) {
      forget(nodeParts, nodeIDs, 'node/', frame.parts);
      forget(modelParts, modelIDs, 'model/', frame.parts);
    }
    for (const [name, value] of Object.entries(frame.parts)) {
      if (name === 'swarm') swarm.value = value as Swarm;
      else if (name === 'answers') answers.value = value as Answers;
      else if (name === 'pool') pool.value = value as Pool;
      else if (name === 'flows') flows.value = value as Flow[];
      else if (name === 'pulse') pulse = value as Pulse;
      else if (name.startsWith('node/')) part(nodeParts, nodeIDs, name.slice(5), value as Node | null);
      else if (name.startsWith('model/')) part(modelParts, modelIDs, name.slice(6), value as Model | null);
    }
  });
}

function part<T>(parts: Map<string, Signal<T>>, ids: Signal<string[]>, id: string, value: T | null): void {
  const known = parts.get(id);
  if (value === null) {
    parts.delete(id);
    ids.value = ids.value.filter((x) => x !== id);
  } else if (known) {
    known.value = value;
  } else {
    parts.set(id, signal(value) as Signal<T>);
    ids.value = [...ids.value, id].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  }
}

function forget<T>(parts: Map<string, Signal<T>>, ids: Signal<string[]>, prefix: string, there: Record<string, unknown>): void {
  for (const id of [...parts.keys()]) if (!(prefix + id in there)) part(parts, ids, id, null);
}

function happened(e: Event, id?: string): void {
  if (id) lastID = id;
  const known = events.value;
  const newest = known[0];
  // After a restart the numbers begin anew, and the story goes on above.
  if (newest && newest.seq === e.seq && newest.time === e.time) return;
  events.value = [e, ...known].slice(0, keptEvents);
  if (e.kind === 'answer_rescued' || e.kind === 'answer_lost') for (const listen of rescueListeners) listen(e);
}

/** beat adds the second that has passed to the history; the page's own clock, so that a quiet swarm moves on too. */
function beat(): void {
  now.value = Date.now();
  if (connection.value.state !== 'live') return;
  history.value = { points: [...history.value.points, pulse].slice(-keptSeconds), end: now.value };
}

async function follow(signal: AbortSignal, heard: () => void): Promise<void> {
  const response = await fetch('/v1/swarm/live', { headers: headers(lastID ? { 'Last-Event-ID': lastID } : {}), signal, cache: 'no-store' });
  if (!response.ok || !response.body) throw await refusal(response);
  for await (const m of messages(response.body, heard)) {
    if (m.event === 'frame') {
      take(JSON.parse(m.data) as Frame);
      if (connection.value.state !== 'live') connection.value = { state: 'live' };
      tries = 0;
    } else if (m.event === 'event') {
      happened(JSON.parse(m.data) as Event, m.id);
    } else if (m.event === 'history') {
      history.value = { points: JSON.parse(m.data) as Pulse[], end: Date.now() };
    }
  }
}

let tries = 0;
let waker: (() => void) | undefined;

/** retry tries again now, when a key was given or somebody lost patience. */
export const retry = (): void => waker?.();

/** run follows the stream for as long as the page is open, over restarts of the gateway. */
export async function run(): Promise<never> {
  setInterval(beat, 1000);
  for (;;) {
    const abort = new AbortController();
    let patience = 0;
    const heard = () => {
      clearTimeout(patience);
      patience = window.setTimeout(() => abort.abort(), silence);
    };
    heard();
    try {
      await follow(abort.signal, heard);
      throw new Error('the stream ended');
    } catch (error) {
      clearTimeout(patience);
      abort.abort();
      await pause(error);
    }
  }
}

async function pause(error: unknown): Promise<void> {
  const refused = error instanceof Refused && (error.status === 401 || error.status === 403);
  const wait = Math.min(250 * 2 ** tries++, 5000);
  if (refused) connection.value = { state: 'refused', status: error.status, message: error.message };
  else {
    const before = connection.value;
    connection.value = { state: 'lost', since: before.state === 'lost' ? before.since : Date.now(), next: Date.now() + wait };
  }
  await new Promise<void>((resolve) => {
    waker = resolve;
    if (!refused) setTimeout(resolve, wait);
  });
  waker = undefined;
}
