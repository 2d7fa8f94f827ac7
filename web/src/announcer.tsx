import { useSignal, useSignalEffect } from '@preact/signals';
import { connection, events } from './live';

/** Announcer tells screen readers what goes wrong and when it is right again, and nothing of the routine. */
export function Announcer() {
  const said = useSignal('');
  const seen = useSignal(0);
  useSignalEffect(() => {
    const c = connection.value;
    if (c.state === 'lost') said.value = 'The connection to the gateway was lost. Trying again.';
  });
  useSignalEffect(() => {
    const newest = events.value.find((e) => e.level === 'warn' || e.level === 'error');
    const at = newest ? Date.parse(newest.time) : 0;
    if (newest && at > seen.peek()) {
      const fresh = Date.now() - at < 10_000;
      seen.value = at;
      if (fresh) said.value = newest.text;
    }
  });
  return <p class="unseen" role="status">{said}</p>;
}
