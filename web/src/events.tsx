import { signal } from '@preact/signals';
import { events } from './live';
import { clock } from './words';

const routine = signal(false);
const shape: Record<string, string> = { debug: '·', info: '•', warn: '▲', error: '■' };

export function Events() {
  const shown = events.value.filter((e) => routine.value || e.level !== 'debug').slice(0, 120);
  return (
    <section aria-labelledby="events-title" class="events">
      <h2 id="events-title">
        What happened
        <label class="switch"><input type="checkbox" checked={routine.value} onChange={(e) => (routine.value = e.currentTarget.checked)} /> with the routine</label>
      </h2>
      <div class="scroll" tabIndex={0} role="region" aria-label="Events, newest first">
        {shown.length === 0 && <p class="empty">Nothing yet: a calm swarm.</p>}
        <ol>
          {shown.map((e) => (
            <li key={`${e.time}-${e.seq}`} data-level={e.level} data-kind={e.kind}>
              <time dateTime={e.time}>{clock(e.time)}</time>
              <i aria-label={e.level} role="img">{shape[e.level]}</i>
              <span>{e.text}</span>
            </li>
          ))}
        </ol>
      </div>
    </section>
  );
}
