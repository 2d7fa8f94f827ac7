// Keys: the API key is kept until the tab is closed; the admin token as long as
// the page is open, and nowhere else.
import { signal } from '@preact/signals';

const kept = 'hecate-key';

export const apiKey = signal(sessionStorage.getItem(kept) ?? '');
export const adminToken = signal('');

export function setKey(key: string): void {
  apiKey.value = key.trim();
  if (apiKey.value) sessionStorage.setItem(kept, apiKey.value);
  else sessionStorage.removeItem(kept);
}

export function headers(more: Record<string, string> = {}): Record<string, string> {
  return apiKey.value ? { Authorization: `Bearer ${apiKey.value}`, ...more } : more;
}

/** Refused is an answer of the gateway that is no success, in its own words. */
export class Refused extends Error {
  constructor(readonly status: number, readonly code: string, message: string) {
    super(message);
  }
}

export async function refusal(response: Response): Promise<Refused> {
  try {
    const { error } = await response.json();
    return new Refused(response.status, error.code ?? '', error.message ?? response.statusText);
  } catch {
    return new Refused(response.status, '', `The gateway answered ${response.status} ${response.statusText}.`);
  }
}

export async function post(path: string, body: unknown, more: Record<string, string> = {}): Promise<void> {
  const response = await fetch(path, { method: 'POST', headers: headers({ 'Content-Type': 'application/json', ...more }), body: JSON.stringify(body) });
  if (!response.ok) throw await refusal(response);
}

export const steer = (node: string, action: 'pause' | 'resume'): Promise<void> =>
  post(`/v1/swarm/nodes/${encodeURIComponent(node)}/${action}`, {}, { 'X-Hecate-Admin': adminToken.value });

export const bend = (node: string, command: string): Promise<void> => post('/v1/swarm/chaos/link', { node, command });
export const arm = (model: string, stage: number, token: number): Promise<void> =>
  post('/v1/swarm/chaos/arm', { model, stage, at_token: token, action: 'kill' });
