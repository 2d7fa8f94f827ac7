import { openAccess } from './accessdialog';
import { connection, modelIDs, modelOf, nodeIDs, nodeOf, now, retry, swarm } from './live';
import { nextTheme, theme } from './theme';
import { headline } from './words';

/** Brand is the bar with the name, the state of the connection, and the page's own switches. */
export function Brand() {
  return (
    <header class="brand">
      <Mark />
      <span class="wordmark">hecate</span>
      <Link />
      <span class="tools">
        <button type="button" class="quiet" onClick={nextTheme} aria-label={`Colours: ${theme.value}. Change`}>
          {theme.value === 'auto' ? '◐' : theme.value === 'dark' ? '●' : '○'} <span>{theme.value}</span>
        </button>
        <button type="button" class="quiet" onClick={() => openAccess()}>Keys</button>
      </span>
    </header>
  );
}

/** Headline says in a sentence how the swarm is. */
export function Headline() {
  const { title, text } = words();
  return (
    <div class="top">
      <h1>{title}</h1>
      <p class="lede">{text}</p>
      <Why />
    </div>
  );
}

function words(): { title: string; text: string } {
  const c = connection.value;
  if (c.state === 'refused') return { title: 'This swarm wants a key', text: c.message };
  if (!swarm.value) {
    if (c.state === 'lost') return { title: 'The gateway does not answer', text: 'Start it again with hecate up or hecate serve: this page comes back by itself.' };
    return { title: 'Looking for the swarm', text: 'Asking the gateway what it sees.' };
  }
  return headline(nodeIDs.value.map((id) => nodeOf(id)!.value), modelIDs.value.map((id) => modelOf(id)!.value));
}

function Link() {
  const c = connection.value;
  if (c.state === 'live') return <span class="link live">live</span>;
  if (c.state === 'connecting') return <span class="link">connecting</span>;
  if (c.state === 'refused') return <button type="button" class="link lost" onClick={() => openAccess()}>give a key</button>;
  return (
    <button type="button" class="link lost" onClick={retry}>
      gateway gone for {Math.max(0, Math.round((now.value - c.since) / 1000))} s, trying again
    </button>
  );
}

/** Why is what is missing for a healthy swarm. Its line is always there, so that nothing moves when it fills. */
function Why() {
  const s = swarm.value;
  const why = s?.why ?? [];
  return (
    <p class="why" data-state={s?.state}>
      {why.length > 0 && <><b>{s?.state}</b> {why[0]}{why.length > 1 ? ` (and ${why.length - 1} more)` : ''}</>}
    </p>
  );
}

/** Mark is the crossroads: three ways, one light. */
function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <circle cx="16" cy="16" r="15" />
      <path d="M16 5v11m0 0-9.5 6.5M16 16l9.5 6.5" />
      <circle class="light" cx="16" cy="16" r="3.4" />
    </svg>
  );
}
