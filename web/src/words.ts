// Numbers with units and states in words. Everything that the page says of the
// swarm in sentences stands here.
import type { Model, Node, Range } from './types';

export function bytes(n: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let i = 0;
  while (n >= 1000 && i < units.length - 1) {
    n /= 1024;
    i++;
  }
  return `${n >= 100 || i === 0 ? n.toFixed(0) : n.toFixed(1)} ${units[i]}`;
}

export function ms(v: number | null | undefined): string {
  if (v === null || v === undefined) return '–';
  return v >= 1000 ? `${(v / 1000).toFixed(1)}\u00a0s` : `${v >= 100 ? v.toFixed(0) : v.toFixed(1)}\u00a0ms`;
}

export function count(n: number): string {
  return n >= 1e6 ? `${(n / 1e6).toFixed(1)} M` : n >= 10_000 ? `${(n / 1000).toFixed(0)} k` : n.toLocaleString('en');
}

export const layers = (r: Range): string => (r[0] === r[1] ? `layer ${r[0]}` : `layers ${r[0]}–${r[1]}`);
export const plural = (n: number, one: string, many = one + 's'): string => `${n} ${n === 1 ? one : many}`;

export function clock(time: string): string {
  return new Date(time).toLocaleTimeString('en', { hour12: false });
}

export function ago(time: string, now: number): string {
  const s = Math.max(0, Math.round((now - Date.parse(time)) / 1000));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min`;
  if (s < 86400) return `${Math.floor(s / 3600)} h`;
  return `${Math.floor(s / 86400)} d`;
}

/** What a death means for one model, and how grave that is. */
export const outcomes: Record<string, { words: string; grave: 0 | 1 | 2 }> = {
  unaffected: { words: 'nothing happens', grave: 0 },
  copy: { words: 'another copy takes over', grave: 0 },
  splice: { words: 'others take over its layers', grave: 0 },
  fallback: { words: 'a smaller model answers instead', grave: 1 },
  down: { words: 'it cannot be asked any more', grave: 2 },
};

/** deathOf says what happens if a node dies, worst first. */
export function deathOf(n: Node): { words: string; grave: 0 | 1 | 2 } {
  const all = Object.entries(n.if_it_dies ?? {});
  const known = all.map(([model, o]) => ({ model, ...(outcomes[o] ?? { words: o, grave: 1 as const }) })).sort((a, b) => b.grave - a.grave);
  const worst = known[0];
  if (!worst) return { words: 'nothing depends on it', grave: 0 };
  const rest = known.length - 1;
  return { words: `${rest ? `${worst.model}: ` : ''}${worst.words.replace(/^it /, `${worst.model} `)}${rest ? `, and ${plural(rest, 'more model')}` : ''}`, grave: worst.grave };
}

/** stateOf is a node's state in one word. */
export function stateOf(n: Node): 'serving' | 'paused' | 'unplugged' | 'suspect' | 'dead' | 'leaving' | 'loading' {
  if (!n.alive) return 'dead';
  if (n.link) return 'unplugged';
  if (n.status === 'suspect') return 'suspect';
  if (n.desired === 'paused') return 'paused';
  if (n.desired && n.desired !== 'active') return 'leaving';
  if (n.loading?.some((l) => l.phase !== 'failed')) return 'loading';
  return 'serving';
}

/** headline says how the swarm is, to somebody who sees this page for the first time. */
export function headline(nodes: Node[], models: Model[]): { title: string; text: string } {
  const living = nodes.filter((n) => n.alive).length;
  const machines = living === 1 ? 'One machine answers' : `${living <= 12 ? spelled[living] : living} machines answer as one`;
  if (nodes.length === 0) return { title: 'No machine has joined yet', text: 'Run hecate node run --join TOKEN on each machine; hecate token create makes a token.' };
  if (living === 0) return { title: 'No machine is reachable', text: `${plural(nodes.length, 'node is', 'nodes are')} known and silent. Start them again: they come back by themselves.` };
  const ready = models.filter((m) => m.ready);
  if (models.length === 0) return { title: 'There is no model yet', text: 'hecate model add FILE puts one into the catalogue.' };
  if (ready.length === 0) return { title: 'Almost there', text: `${models[0]!.id} waits: ${models[0]!.missing ?? 'it is being loaded'}.` };
  const first = ready[0]!;
  const copies = first.pipelines.filter((p) => p.live).length;
  const fatal = nodes.filter((n) => n.alive && Object.values(n.if_it_dies ?? {}).includes('down'));
  const what = ready.length === 1 ? `${first.id} is ready in ${copies === 1 ? 'one whole copy' : `${(spelled[copies] ?? String(copies)).toLowerCase()} whole copies`}` : `${ready.length} models are ready`;
  if (fatal.length) {
    const names = fatal.length > 3 ? `any of ${fatal.length} nodes` : fatal.map((n) => n.id).join(' or ');
    return { title: machines, text: `${what}, but nothing could replace ${names}.` };
  }
  const hurt = nodes.some((n) => !n.alive || n.link) || models.some((m) => m.pipelines.some((p) => !p.live));
  if (hurt) return { title: machines, text: `${what}. Something is missing: answers go on, with less in reserve until it is back.` };
  return { title: machines, text: `${what}. Pull the plug of any one of them: running answers go on.` };
}

const spelled = ['No', 'One', 'Two', 'Three', 'Four', 'Five', 'Six', 'Seven', 'Eight', 'Nine', 'Ten', 'Eleven', 'Twelve'];
