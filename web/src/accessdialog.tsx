import { signal } from '@preact/signals';
import { useLayoutEffect, useRef } from 'preact/hooks';
import { adminToken, apiKey, setKey } from './access';
import { connection, retry, swarm } from './live';

interface Asking { because?: string; then?: () => void }
const asking = signal<Asking | undefined>(undefined);

/** openAccess asks for keys; then runs once an admin token was given. */
export const openAccess = (because?: string, then?: () => void): void => {
  asking.value = { because, then };
};

export function AccessDialog() {
  const dialog = useRef<HTMLDialogElement>(null);
  const ask = asking.value;
  useLayoutEffect(() => {
    const box = dialog.current!;
    if (ask && !box.open) box.showModal();
    else if (!ask && box.open) box.close();
  }, [ask]);
  const save = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setKey(String(form.get('key') ?? ''));
    adminToken.value = String(form.get('admin') ?? '').trim();
    asking.value = undefined;
    if (connection.value.state !== 'live') retry();
    if (adminToken.value) ask?.then?.();
  };
  return (
    <dialog ref={dialog} aria-labelledby="access-title" onCancel={(e) => { e.preventDefault(); asking.value = undefined; }}>
      {ask && (
        <form onSubmit={save}>
          <h2 id="access-title">Keys</h2>
          {ask.because && <p class="because">{ask.because}</p>}
          <label>
            API key
            <input name="key" type="password" autocomplete="off" defaultValue={apiKey.value} />
            <small>{needs()} <code>hecate key create</code> makes one. Kept until this tab is closed.</small>
          </label>
          <label>
            Admin token
            <input name="admin" type="password" autocomplete="off" defaultValue={adminToken.value} />
            <small>To pause and resume nodes. It is <code>token</code> in <code>admin.json</code>, in the gateway's data folder. Kept as long as this page is open.</small>
          </label>
          <div class="row">
            <button type="submit" class="strong">Use these</button>
            <button type="button" onClick={() => (asking.value = undefined)}>Cancel</button>
          </div>
        </form>
      )}
    </dialog>
  );
}

function needs(): string {
  return swarm.value && !swarm.value.keys ? 'This gateway asks for none.' : 'To look and to chat.';
}
