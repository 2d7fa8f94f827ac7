import { signal, useSignal, type Signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { ambush, ask, asking, startOver, stop, turns, type Mark, type Turn } from './conversation';
import { connection, modelIDs, modelOf, swarm } from './live';
import { tint } from './spot';
import { ms } from './words';

const chosen = signal('');
const suggestions = ['Tell me a long story about a fox and a lantern.', 'Count from one to thirty in words.', 'What is the capital of France?'];

function currentModel(): string {
  const ids = modelIDs.value;
  if (ids.includes(chosen.value)) return chosen.value;
  return ids.find((id) => modelOf(id)!.value.ready) ?? ids[0] ?? '';
}

export function Chat() {
  const model = currentModel();
  const draft = useSignal('');
  const why = obstacle(model);
  const send = (text: string): void => {
    const question = text.trim();
    if (!question || asking.value || why) return;
    draft.value = '';
    void ask(model, question);
  };
  return (
    <aside class="chat" id="ask" aria-labelledby="chat-title">
      <header>
        <h2 id="chat-title">Ask the swarm</h2>
        {modelIDs.value.length > 1 ? (
          <select aria-label="Model" value={model} onChange={(e) => (chosen.value = e.currentTarget.value)}>
            {modelIDs.value.map((id) => <option key={id} value={id}>{id}</option>)}
          </select>
        ) : <span class="model">{model}</span>}
        {turns.value.length > 0 && <button type="button" class="quiet" onClick={startOver}>Start over</button>}
      </header>
      <Thread send={send} />
      <form onSubmit={(e) => { e.preventDefault(); send(draft.value); }}>
        {swarm.value?.chaos && <Ambush />}
        <div class="ask">
          <textarea
            aria-label="Your question" rows={2} placeholder={why ?? 'Ask something'} value={draft.value}
            onInput={(e) => (draft.value = e.currentTarget.value)}
            onKeyDown={(e) => { if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) { e.preventDefault(); send(draft.value); } }}
          />
          {asking.value
            ? <button type="button" class="strong" onClick={stop}>Stop</button>
            : <button type="submit" class="strong" disabled={!!why || !draft.value.trim()}>Ask</button>}
        </div>
        <p class="hint">{why ?? 'Enter asks, Shift and Enter make a new line.'}</p>
      </form>
    </aside>
  );
}

/** obstacle is why nothing can be asked now. */
function obstacle(model: string): string | undefined {
  const c = connection.value;
  if (c.state === 'refused') return 'First give a key.';
  if (c.state === 'lost') return 'The gateway is gone; wait for it.';
  if (!swarm.value) return 'Connecting.';
  if (!model) return 'There is no model yet.';
  return undefined;
}

function Thread({ send }: { send: (text: string) => void }) {
  const list = useRef<HTMLDivElement>(null);
  return (
    <div class="thread" ref={list} tabIndex={0} role="log" aria-label="Conversation" aria-busy={asking.value}>
      {turns.value.length === 0 && (
        <div class="start">
          <p>An answer here runs over several machines. If one of them dies in the middle, the answer goes on, and you see the place.</p>
          {suggestions.map((s) => <button type="button" key={s} onClick={() => send(s)}>{s}</button>)}
        </div>
      )}
      {turns.value.map((t, i) => <TurnView key={i} turn={t} scroller={list} />)}
    </div>
  );
}

function TurnView({ turn, scroller }: { turn: Signal<Turn>; scroller: { current: HTMLDivElement | null } }) {
  const t = turn.value;
  useEffect(() => {
    const box = scroller.current;
    if (box && box.scrollHeight - box.scrollTop - box.clientHeight < 160) box.scrollTop = box.scrollHeight;
  }, [t.text, t.marks, t.state]);
  return (
    <div class="turn" data-role={t.role} data-state={t.state}>
      <span class="unseen">{t.role === 'user' ? 'You asked:' : 'The swarm answered:'}</span>
      <div class="text">{pieces(t)}{t.state === 'running' && <i class="cursor" aria-hidden="true" />}</div>
      {t.problem && <p class="problem" role="alert">{t.problem}{/context|tokens/.test(t.problem) && <> <button type="button" onClick={startOver}>Start over</button></>}</p>}
      {t.note && <p class="note">{t.note}</p>}
    </div>
  );
}

/** pieces are the text with its marks between. */
function pieces(t: Turn) {
  const out = [];
  let at = 0;
  for (const m of t.marks) {
    out.push(t.text.slice(at, m.at), <RescueMark key={m.seq} mark={m} />);
    at = m.at;
  }
  out.push(at ? t.text.slice(at).trimStart() : t.text);
  return out;
}

const ways: Record<string, string> = {
  splice: 'others took over its layers', copy: 'another copy took over', reconnect: 'its connection broke and it kept its state',
  reroute: 'it went another way', revival: 'it came back and was fed again', hedge: 'a second try was faster',
};

function RescueMark({ mark }: { mark: Mark }) {
  return (
    <span class="mark-rescue" style={tint(mark.node)} role="note">
      <b>{mark.node}</b> failed here; {ways[mark.how] ?? mark.how} after {ms(mark.gap)}
    </span>
  );
}

/** Ambush lets a node be killed in the middle of the next answer. */
function Ambush() {
  const options = [['off', 'nobody'], ['first', 'its first machine'], ['last', 'its last machine']] as const;
  return (
    <fieldset class="ambush">
      <legend>In the middle of the next answer, kill</legend>
      {options.map(([value, words]) => (
        <label key={value} data-on={ambush.value === value || undefined}>
          <input type="radio" name="ambush" value={value} checked={ambush.value === value} onChange={() => (ambush.value = value)} />
          {words}
        </label>
      ))}
    </fieldset>
  );
}
