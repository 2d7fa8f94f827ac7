// One conversation: what was asked, what came, and what befell the nodes while
// it came.
import { batch, signal, type Signal } from '@preact/signals';
import { arm, headers, refusal, Refused } from './access';
import { events, modelOf, rescueListeners } from './live';
import { messages } from './sse';
import type { Event, Model } from './types';

/** A Mark is the place in an answer's text where a failure was survived. */
export interface Mark { at: number; node: string; how: string; gap: number; seq: string; position: number }
export interface Turn {
  role: 'user' | 'assistant';
  text: string;
  marks: Mark[];
  state: 'running' | 'done' | 'stopped' | 'failed';
  note: string;
  problem?: string;
}

export const turns = signal<Signal<Turn>[]>([]);
export const asking = signal(false);
/** Where to kill a node in the middle of the next answer. */
export const ambush = signal<'off' | 'first' | 'last'>('off');

/** How many tokens an ambushed node still computes: enough to read, before a short answer is over. */
const ambushAt = 16;
let abort: AbortController | undefined;

export const stop = (): void => abort?.abort();

export function startOver(): void {
  stop();
  turns.value = [];
}

export async function ask(model: string, question: string): Promise<void> {
  const before = turns.value.map((t) => t.value).filter((t) => t.text && t.state !== 'failed').map((t) => ({ role: t.role, content: t.text }));
  const answer = signal<Turn>({ role: 'assistant', text: '', marks: [], state: 'running', note: '' });
  const asked = signal<Turn>({ role: 'user', text: question, marks: [], state: 'done', note: '' });
  batch(() => {
    turns.value = [...turns.value, asked, answer];
    asking.value = true;
  });
  abort = new AbortController();
  const scribe = new Scribe(answer);
  try {
    await setAmbush(model);
    const response = await fetch('/v1/chat/completions', {
      method: 'POST', signal: abort.signal, headers: headers({ 'Content-Type': 'application/json' }),
      body: JSON.stringify({ model, messages: [...before, { role: 'user', content: question }], stream: true, stream_options: { include_usage: true } }),
    });
    if (!response.ok || !response.body) throw await refusal(response);
    for await (const m of messages(response.body)) scribe.take(m.data);
    scribe.end();
  } catch (error) {
    scribe.fail(error);
    if (error instanceof Refused) asked.value = { ...asked.value, state: 'failed' };
  } finally {
    scribe.close();
    asking.value = false;
  }
}

async function setAmbush(model: string): Promise<void> {
  const m = modelOf(model)?.value;
  if (ambush.value === 'off' || !m) return;
  const stage = ambush.value === 'first' ? 0 : lastStage(m);
  ambush.value = 'off';
  await arm(model, stage, ambushAt);
}

/** lastStage is the last stage that every living copy has. */
export function lastStage(m: Model): number {
  const live = m.pipelines.filter((p) => p.live);
  return Math.max(0, Math.min(...(live.length ? live : m.pipelines).map((p) => p.stages.length)) - 1);
}

/** A Scribe writes one answer down, and finds the places where failures were survived. */
class Scribe {
  private id = '';
  private arrivals: { time: number; at: number }[] = []; // of pieces of text, newest last
  private waiting: Event[] = []; // rescues from before the id was known
  private ended = false;
  private finished = false;
  private readonly began = performance.now();
  private first = 0;
  private usage = '';
  private counted: { prompt_tokens: number; completion_tokens: number } | undefined;

  constructor(private readonly turn: Signal<Turn>) {
    rescueListeners.add(this.happened);
  }

  close(): void {
    // A rescue may be told a moment after the answer's end.
    setTimeout(() => rescueListeners.delete(this.happened), 3000);
  }

  take(data: string): void {
    if (data === '[DONE]') {
      this.ended = true;
      return;
    }
    const chunk = JSON.parse(data);
    if (chunk.error) throw new Refused(200, chunk.error.code ?? '', chunk.error.message ?? 'The answer broke off.');
    if (!this.id && chunk.id) {
      this.id = chunk.id;
      this.waiting = events.value.filter((e) => this.mine(e));
    }
    const choice = chunk.choices?.[0];
    const text: string = choice?.delta?.content ?? '';
    if (text) this.add(text);
    if (choice?.finish_reason) this.finished = true;
    for (const e of this.waiting.splice(0)) this.mark(e);
    if (chunk.usage) {
      this.usage = this.sum(chunk);
      this.counted = chunk.usage;
      this.settle();
    }
  }

  private add(text: string): void {
    const t = this.turn.value;
    const now = performance.now();
    if (!this.first) this.first = now - this.began;
    this.arrivals.push({ time: now, at: t.text.length });
    this.turn.value = { ...t, text: t.text + text };
  }

  private sum(chunk: { usage: { completion_tokens: number }; hecate?: { rescues: number; route?: string } }): string {
    const took = (performance.now() - this.began) / 1000;
    const parts = [`${chunk.usage.completion_tokens} tokens in ${took.toFixed(1)} s`, `first after ${Math.round(this.first)} ms`];
    const rescues = chunk.hecate?.rescues ?? 0;
    if (rescues) parts.push(`survived ${rescues === 1 ? 'one failure' : `${rescues} failures`}`);
    if (chunk.hecate?.route) parts.push(`over ${chunk.hecate.route.replaceAll('[', ' ').replaceAll(']', '').replaceAll('-', '–').replaceAll(',', ', ')}`);
    return parts.join(' · ');
  }

  private mine(e: Event): boolean {
    return e.kind === 'answer_rescued' && !!this.id && e.job === this.id;
  }

  private readonly happened = (e: Event): void => {
    if (this.mine(e)) this.mark(e);
  };

  /** mark puts a rescue where the stream paused longest in the time that the event tells of. */
  private mark(e: Event): void {
    const t = this.turn.value;
    const seq = `${e.time}-${e.seq}`;
    if (t.marks.some((m) => m.seq === seq)) return;
    const gap = Number(e.detail.gap_ms ?? 0);
    const now = performance.now();
    let at = t.text.length;
    let longest = this.arrivals.length ? now - this.arrivals[this.arrivals.length - 1]!.time : 0;
    for (let i = this.arrivals.length - 1; i > 0 && now - this.arrivals[i]!.time < gap + 2000; i--) {
      const pause = this.arrivals[i]!.time - this.arrivals[i - 1]!.time;
      if (pause > longest) {
        longest = pause;
        at = this.arrivals[i]!.at;
      }
    }
    const marks = [...t.marks, { at, node: e.node ?? 'a node', how: String(e.detail.how ?? ''), gap, seq, position: Number(e.detail.position ?? 0) }].sort((a, b) => a.at - b.at);
    this.turn.value = { ...t, marks };
    this.settle();
  }

  /** settle moves the marks to the tokens that they belong to, once it is known how many the question had: a burst hides pauses. */
  private settle(): void {
    const t = this.turn.value;
    if (!this.counted || !t.marks.length || !this.arrivals.length) return;
    const perToken = this.arrivals.length / Math.max(1, this.counted.completion_tokens); // some tokens wait for the next to be text
    const place = (m: Mark): number => {
      const piece = Math.round((m.position - this.counted!.prompt_tokens) * perToken);
      return this.arrivals[piece]?.at ?? (piece < 0 ? 0 : t.text.length);
    };
    this.turn.value = { ...t, marks: t.marks.map((m) => ({ ...m, at: place(m) })) };
  }

  end(): void {
    if (!this.ended || !this.finished) throw new Refused(200, 'broken', 'The answer broke off: the connection to the gateway was lost. Ask again.');
    this.turn.value = { ...this.turn.value, state: 'done', note: this.usage };
  }

  fail(error: unknown): void {
    const t = this.turn.value;
    if (error instanceof DOMException && error.name === 'AbortError') {
      this.turn.value = { ...t, state: 'stopped', note: 'stopped' };
      return;
    }
    const problem = error instanceof Refused ? error.message : 'The gateway did not answer. Ask again when it is back; this page reconnects by itself.';
    this.turn.value = { ...t, state: 'failed', problem };
  }
}
